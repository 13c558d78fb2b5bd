"""Cases of `same_bits.py`: small seeded maps, and the public function that each is given to.

Maps are made with numpy alone or are crops of the Motorcycle pair, so no data set is needed and both trees get the
same input. Each case is one entry of `CASES`; a keyword or field that was renamed gets its spellings in `SPELLINGS`.
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sparsedepth as sd

Array = NDArray[Any]

SPELLINGS: dict[str, tuple[str, ...]] = {}
"""Keyword or field as the cases write it -> every spelling it has had, newest first; no entry means just one."""


def call(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    """Call a function of either tree, with each keyword in the newest spelling that the function has."""
    accepted = inspect.signature(function).parameters
    spelled = {_spelling(accepted, name): value for name, value in keywords.items()}
    return function(*arguments, **spelled)


def _spelling(accepted: Iterable[str], name: str) -> str:
    return next((spelling for spelling in SPELLINGS.get(name, ()) if spelling in accepted), name)


def _canonical(spelling: str) -> str:
    return next((name for name, spellings in SPELLINGS.items() if spelling in spellings), spelling)


# Maps


def scene(height: int = 120, width: int = 160) -> Array:
    """Make a slanted floor, a ball and three boxes, in metres."""
    rows, columns = np.mgrid[:height, :width] / min(height, width)
    depth = 3.0 - 0.8 * rows + 0.3 * columns
    ball = 0.09 - (rows - 0.45) ** 2 - (columns - 0.4) ** 2
    depth = np.where(ball > 0, 1.6 - np.sqrt(np.maximum(ball, 0)), depth)
    for top, left, size, distance in ((0.1, 0.85, 0.35, 1.9), (0.6, 0.7, 0.3, 1.4), (0.65, 0.05, 0.25, 2.1)):
        box = (abs(rows - top - size / 2) < size / 2) & (abs(columns - left - size / 2) < size / 2)
        depth = np.where(box, distance + 0.1 * columns, depth)
    return depth.astype(np.float32)


@cache
def _motorcycle() -> tuple[Array, Array, Array]:
    from skimage.data import stereo_motorcycle

    return stereo_motorcycle()


def motorcycle(view: int = 2, top: int = 180, left: int = 300, height: int = 80, width: int = 120) -> Array:
    """Cut a piece out of the Motorcycle pair: 0 = left view, 1 = right view, 2 = disparity, NaN = missing."""
    piece = _motorcycle()[view][top : top + height, left : left + width]
    return np.where(np.isfinite(piece), piece, np.nan).astype(np.float32) if view == 2 else piece


def impulses(depth: Array, fraction: float = 0.05, seed: int = 0) -> Array:
    """Add Gaussian noise of random variance to a fraction of the pixels."""
    rng = np.random.default_rng(seed)
    sigma = np.sqrt(rng.random(depth.shape)) * np.nanstd(depth)
    noise = rng.standard_normal(depth.shape) * sigma
    return (depth + np.where(rng.random(depth.shape) < fraction, noise, 0)).astype(depth.dtype)


def gaussian(depth: Array, level: float = 0.1, seed: int = 1, power: float = 0.0) -> Array:
    """Add Gaussian noise to every pixel, growing with a power of the depth."""
    sigma = level * np.nanstd(depth) * (depth / np.nanmedian(depth)) ** power
    return (depth + sigma * np.random.default_rng(seed).standard_normal(depth.shape)).astype(depth.dtype)


def salt_and_pepper(depth: Array, fraction: float = 0.04, seed: int = 2) -> Array:
    """Set a fraction of the pixels to the ends of a range wider than the map's."""
    chance = np.random.default_rng(seed).random(depth.shape)
    low, high = np.nanmin(depth) - np.nanstd(depth), np.nanmax(depth) + np.nanstd(depth)
    return np.select([chance < fraction / 2, chance < fraction], [low, high], depth).astype(depth.dtype)


def clusters(depth: Array, count: int = 24, seed: int = 3) -> Array:
    """Shift small discs up or down."""
    rng = np.random.default_rng(seed)
    rows, columns = np.indices(depth.shape)
    shifted = depth.copy()
    for number in range(count):
        distance = np.hypot(rows - rng.integers(depth.shape[0]), columns - rng.integers(depth.shape[1]))
        shifted[distance <= rng.uniform(1.2, 3)] += (-1) ** number * rng.uniform(0.4, 1.2) * np.nanstd(depth)
    return shifted


def flying(depth: Array, fraction: float = 0.5, seed: int = 4) -> Array:
    """Mix near and far at a fraction of the pixels beside depth steps."""
    rng = np.random.default_rng(seed)
    around = np.stack([np.roll(depth, (down, right), (0, 1)) for down in (-1, 0, 1) for right in (-1, 0, 1)])
    low, high = around.min(axis=0), around.max(axis=0)
    mixed = (rng.random(depth.shape) < fraction) & (high - low > 0.25 * depth.std())
    return np.where(mixed, low + rng.random(depth.shape) * (high - low), depth).astype(depth.dtype)


def holes(depth: Array, fraction: float = 0.08, seed: int = 5) -> Array:
    """Remove a fraction of the pixels, and a bar narrower than a patch."""
    missing = np.random.default_rng(seed).random(depth.shape) < fraction
    missing[depth.shape[0] // 3 : depth.shape[0] // 3 + 4, 10:40] = True
    return np.where(missing, np.nan, depth).astype(depth.dtype)


def shadows(depth: Array, widest: float = 0.12) -> Array:
    """Remove the pixels to the right of each near object, as a projector on the left leaves them."""
    step = np.diff(depth, axis=1, append=depth[:, -1:])
    missing = np.zeros(depth.shape, bool)
    for row, column in np.argwhere(step > 0.3 * np.nanstd(depth)):
        missing[row, column + 1 : column + 1 + int(widest * 40 * min(step[row, column], 1.5))] = True
    return np.where(missing, np.nan, depth).astype(depth.dtype)


def large_hole(depth: Array) -> Array:
    """Remove a rhombus that holds several patches; no patch fits into its tips."""
    rows, columns = np.indices(depth.shape)
    return np.where(abs(rows - 40) + abs(columns - 50) < 20, np.nan, depth).astype(depth.dtype)


def millimetres(depth: Array) -> Array:
    """Convert metres to uint16 millimetres, with 0 where the depth is missing."""
    return np.nan_to_num(depth * 1000, nan=0).astype(np.uint16)


def coded(depth: Array) -> Array:
    """Write the codes 0 and 65535 into an integer map."""
    rng = np.random.default_rng(6)
    chance = rng.random(depth.shape)
    return np.select([chance < 0.03, chance < 0.06], [0, 65535], depth * 1000).astype(np.uint16)


def quantised(depth: Array, levels: int = 48) -> Array:
    """Round to a number of levels."""
    step = np.ptp(depth) / (levels - 1)
    return (np.rint(depth / step) * step).astype(depth.dtype)


def sensor_variance(depth: Array, seed: int = 7) -> Array:
    """Make variances over two decades, infinite at some pixels."""
    rng = np.random.default_rng(seed)
    variance = np.square(0.01 * depth) * 10 ** rng.uniform(-1, 1, depth.shape)
    return np.where(rng.random(depth.shape) < 0.03, np.inf, variance)


def picture_of(depth: Array) -> Array:
    """Make a grey picture whose edges are those of the map."""
    return (255 * (depth - depth.min()) / np.ptp(depth)).astype(np.uint8)


def views(height: int = 40, width: int = 64, disparity: int = 5) -> tuple[Array, Array]:
    """Make a stereo pair: a textured background, and a nearer square."""
    rng = np.random.default_rng(8)
    back = rng.integers(0, 200, (height, width + 16), np.uint8)
    front = rng.integers(50, 255, (height // 2, width // 3), np.uint8)
    left, right = back[:, :width].copy(), back[:, 2 : width + 2].copy()
    top, start = height // 4, width // 2
    left[top : top + front.shape[0], start : start + front.shape[1]] = front
    right[top : top + front.shape[0], start - disparity : start - disparity + front.shape[1]] = front
    return left, right


def patches(depth: Array, side: int = 8) -> Array:
    """Cut a map into normalised patches, one a row."""
    windows = np.lib.stride_tricks.sliding_window_view(depth, (side, side))[::2, ::2].reshape(-1, side * side)
    centred = windows - np.nanmean(windows, axis=1, keepdims=True)
    return (centred / (np.nanstd(centred, axis=1, keepdims=True) + 0.05 * np.nanstd(depth))).astype(np.float32)


# Calls


def denoise(depth: Array, **options: Any) -> Any:
    return call(sd.denoise, depth, **{"threads": 1, **options})


def inpaint(depth: Array, **options: Any) -> Any:
    return call(sd.inpaint, depth, **{"threads": 1, **options})


def believe(depth: Array, **options: Any) -> Any:
    return call(sd.believe, depth, **{"stride": 3, "threads": 1, **options})


def match(pair: tuple[Array, Array], **options: Any) -> Any:
    return call(sd.match, *pair, **{"threads": 1, **options})


def learn(data: Array, **options: Any) -> Any:
    *_, last = call(sd.learn, data, 24, **{"steps": 60, "rounds": 8, "threads": 1, **options})
    return last.dictionary.atoms


def infer(noise: Any) -> Any:
    return call(sd.infer, patches(impulses(scene()))[::4], sd.Dictionary.builtin("default"), noise)


def lasso() -> Any:
    data = patches(scene())[::16]
    return call(sd.weighted_lasso, data, sd.Dictionary.builtin("default"), np.full(data.shape, 0.05))


def stream(**workers: int) -> list[Any]:
    """Restore three frames of different sizes with one Restorer."""
    frames = (impulses(scene(height, 64), seed=height) for height in (40, 48, 56))
    return list(call(call(sd.Restorer, quality="fast").each, frames, **workers))


def big() -> Array:
    """Make a map that is just large enough to be restored in tiles, with each kind of defect."""
    depth = scene(1449, 1449)
    return holes(impulses(gaussian(depth, 1e-4), 0.03), 0.02)


@dataclass(frozen=True)
class Case:
    """A call whose result is compared."""

    make: Callable[[], Any]
    needs: str | None = None
    """A module without which the case is left out."""


CASES: dict[str, Case] = {
    "denoise-fast": Case(lambda: denoise(impulses(scene()), quality="fast")),
    "denoise-balanced": Case(lambda: denoise(impulses(motorcycle()))),
    "denoise-best": Case(lambda: denoise(impulses(scene(56, 64)), quality="best")),
    "denoise-paper": Case(lambda: denoise(impulses(scene(48, 56)), quality="paper")),
    "denoise-much-noise": Case(lambda: denoise(impulses(scene(), 0.2))),
    "denoise-float64": Case(lambda: denoise(impulses(scene().astype(np.float64)))),
    "denoise-variance": Case(lambda: denoise(impulses(scene()), variance=sensor_variance(scene()))),
    "denoise-one-variance": Case(lambda: denoise(gaussian(scene()), variance=0.002)),
    "denoise-guide": Case(
        lambda: denoise(holes(motorcycle(height=64)), guide=motorcycle(0, height=64), quality="fast")
    ),
    "denoise-holes": Case(lambda: denoise(large_hole(holes(impulses(scene()))))),
    "denoise-no-fill": Case(lambda: denoise(holes(impulses(scene())), fill=False)),
    "denoise-integer": Case(lambda: denoise(millimetres(holes(impulses(scene()))))),
    "denoise-invalid": Case(lambda: denoise(coded(scene()), invalid=(0, 65535))),
    "denoise-second-pass": Case(lambda: denoise(impulses(scene()), method="paper", second_pass=True)),
    "denoise-outward": Case(lambda: denoise(large_hole(scene()), holes="all")),
    "denoise-dictionary": Case(lambda: denoise(impulses(scene()), dictionary="phi2")),
    "denoise-salt-and-pepper": Case(lambda: denoise(salt_and_pepper(motorcycle()))),
    "denoise-clusters": Case(lambda: denoise(clusters(scene()))),
    "denoise-flying": Case(lambda: denoise(flying(scene()))),
    "denoise-dense": Case(lambda: denoise(holes(impulses(gaussian(scene()), 0.02)))),
    "denoise-dense-growing": Case(lambda: denoise(gaussian(scene(), power=2.0), quality="fast")),
    "denoise-quantised": Case(lambda: denoise(impulses(quantised(scene())))),
    "denoise-clean": Case(lambda: denoise(scene())),
    "denoise-texture": Case(lambda: denoise(gaussian(scene(), 0.012, power=2.0))),
    "denoise-raw": Case(lambda: denoise(impulses(gaussian(scene(), 0.012), 0.001))),
    "denoise-tiled": Case(lambda: denoise(big(), quality="fast")),
    "denoise-stream": Case(lambda: stream(threads=2)),
    "denoise-processes": Case(lambda: stream(processes=1)),
    "inpaint-scattered": Case(lambda: inpaint(holes(scene(), 0.3))),
    "inpaint-shadows": Case(lambda: inpaint(shadows(scene()))),
    "inpaint-guided": Case(lambda: inpaint(shadows(scene()), guide=picture_of(scene()))),
    "inpaint-guided-sparse": Case(lambda: inpaint(holes(scene(), 0.6), guide=picture_of(scene()), quality="fast")),
    "believe": Case(lambda: believe(holes(impulses(scene())))),
    "believe-variance": Case(lambda: believe(impulses(scene()), variance=sensor_variance(scene()))),
    "match-semi-global": Case(lambda: match(views(), max_disparity=8)),
    "match-rounds": Case(lambda: match(views(), max_disparity=8, rounds=1)),
    "match-winner-takes-all": Case(lambda: match(views(), max_disparity=8, solver="winner_takes_all")),
    "match-second-order": Case(lambda: match(views(), max_disparity=8, solver="second_order"), needs="cv2"),
    "match-graph-cut": Case(lambda: match(views(), max_disparity=8, solver="graph_cut")),
    "learn": Case(lambda: learn(patches(motorcycle()))),
    "learn-holes": Case(lambda: learn(patches(holes(scene())), noise=sd.Exponential(0.05))),
    "weighted-lasso": Case(lasso),
    "infer-jeffreys": Case(lambda: infer(sd.Jeffreys())),
    "infer-stationary": Case(lambda: infer(sd.Stationary(0.02))),
}


def arrays_of(result: Any) -> dict[str, Array]:
    """Name every array of a result: of an array, of a record's fields, or of a list of either."""
    if isinstance(result, np.ndarray):
        return {"array": result}
    if isinstance(result, Sequence):
        return {f"{number}.{name}": array for number, r in enumerate(result) for name, array in arrays_of(r).items()}
    assert is_dataclass(result), type(result)
    values = {_canonical(field.name): getattr(result, field.name) for field in fields(result)}
    return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}


def left_out(name: str) -> str | None:
    """Say why a case cannot run here."""
    needs = CASES[name].needs
    return f"{needs} is not installed" if needs and importlib.util.find_spec(needs) is None else None


def run(names: Iterable[str], folder: Path) -> Iterator[dict[str, str]]:
    """Run cases in turn; write the arrays of each to ``folder`` and report its end or its error."""
    for name in names:
        try:
            np.savez(folder / f"{name}.npz", **arrays_of(CASES[name].make()))  # type: ignore[arg-type]
            yield {"name": name}
        except Exception as error:
            yield {"name": name, "error": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    tree, folder, *chosen = sys.argv[1:]
    assert Path(sd.__file__).is_relative_to(tree), f"{sd.__file__} was imported, which is not in {tree}"
    for report in run(chosen, Path(folder)):
        print(json.dumps(report), flush=True)
