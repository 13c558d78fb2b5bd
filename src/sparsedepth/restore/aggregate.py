"""A map coded patch by patch, and what the overlapping patches say of each pixel.

The patches are taken a band of rows at a time, so memory does not grow with the map beyond a few maps' worth of sums;
a patch's codes do not depend on its band, so neither bands nor threads change a result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from sparsedepth.coding.infer import infer, sparse_codes
from sparsedepth.coding.matmul import row_stable_matmul
from sparsedepth.coding.noise import Jeffreys, NoiseModel
from sparsedepth.dictionary import Dictionary
from sparsedepth.parallel import map_in_threads
from sparsedepth.patches import Normalised, add_tiles, normalise
from sparsedepth.restore.tiling import Window
from sparsedepth.vocabulary import DepthMap, Floats, Vector

BAND = 2048
"""Patches coded at once by one thread."""
CALM, LOUD = 1.5, 3.0
"""The contrast, in noise floors, below which a patch is calm, and what a pixel adds to it at most."""
IN_USE, MOST_IN_USE, RIDGE = 0.05, 24, 0.001
"""When codes are fitted again: those beyond a size, at most so many, with a little damping."""
SOFTENING = 1e-3
"""Contrast, in standard deviations of the map, below which a patch is not blown up to unit variance."""


@dataclass(frozen=True)
class Coding:
    """How the patches of a map are coded."""

    dictionary: Dictionary
    noise: NoiseModel = field(default_factory=Jeffreys)
    sparsity: float = 1.0
    stride: int = 1
    tolerance: float = 2e-3
    max_rounds: int = 300
    calm_rounds: int | None = None
    """Iterations for calm patches, if they need fewer than the others."""
    unit: float | None = None
    """What patches are divided by, less their median; None = each by its own deviation, less its mean."""
    free_mean: bool = False
    """Whether a patch's mean level costs nothing: a constant atom without price."""
    refit: bool = False
    """Whether the codes in use are fitted again without their price; a patch then counts less, the more it uses."""
    window: float = np.inf
    """The deviation, in patch sides, of the Gaussian by which a patch's pixels count less towards its border."""
    core: float = 0.0
    """How much a pixel must count in a patch, of the most that one counts, for the patch to be coded for its sake."""

    @property
    def overlapping(self) -> bool:
        """Whether a pixel mostly lies in several patches."""
        return 2 * self.stride <= min(self.dictionary.patch_shape)

    @cached_property
    def atoms(self) -> Floats:
        atoms = self.dictionary.atoms
        if not self.free_mean:
            return atoms
        zero_mean = atoms - atoms.mean(axis=1, keepdims=True)
        zero_mean = zero_mean[np.linalg.norm(zero_mean, axis=1) > 0.1]
        constant = np.full((1, atoms.shape[1]), atoms.shape[1] ** -0.5, atoms.dtype)
        return np.vstack([zero_mean / np.linalg.norm(zero_mean, axis=1, keepdims=True), constant]).astype(atoms.dtype)

    @cached_property
    def prices(self) -> float | Floats:
        """The sparsity of each of the `atoms`."""
        if not self.free_mean:
            return self.sparsity
        prices = np.full(len(self.atoms), self.sparsity)
        prices[-1] = 0
        return prices

    @cached_property
    def weights(self) -> Floats:
        """How much each pixel of a patch counts."""
        along = [
            np.exp(-(((np.arange(n) - (n - 1) / 2) / (self.window * n)) ** 2) / 2) for n in self.dictionary.patch_shape
        ]
        return np.outer(*along).ravel()


@dataclass(frozen=True)
class Votes:
    """Averages over the patches that cover a pixel, each counting by its share of known pixels."""

    count: Floats
    """The sum of the shares; 0 = no patch with anything known covers the pixel."""
    mean: Floats
    """Of the patches' values; NaN without votes."""
    spread: Floats
    """The variance of the patches' values around their mean."""


@dataclass(frozen=True)
class NoiseVotes(Votes):
    """What the patches say of the noise, too."""

    floor: Floats
    """Of the noise floors of the patches, in squared units of the map."""
    noise: Floats
    """Of the inferred noise variances; inf at unknown pixels."""
    trust: Floats
    """Of noise floor / inferred variance: 1 = as good as the floor, 0 = no weight at all; 0 at unknown pixels."""


def vote(
    depth: DepthMap,
    coding: Coding,
    variance: DepthMap | None = None,
    *,
    only: NDArray[np.bool_] | None = None,
    units: DepthMap | None = None,
    window: Window | None = None,
    threads: int = 1,
) -> Votes:
    """Code every patch of a map of about unit variance, or those coded for the sake of the pixels of ``only``.

    A stack of maps (n, height, width) is coded at once. ``variance`` is a sensor's own, for each pixel. ``units`` are
    what patches are divided by, where that is not the same for all. ``window`` says of which part of a larger map this
    is.
    """
    return Votes(*_averages(_sums(Band(depth, variance, only, units), coding, window, threads, of_noise=False)))


def vote_on_noise(
    depth: DepthMap,
    coding: Coding,
    variance: DepthMap | None = None,
    *,
    window: Window | None = None,
    threads: int = 1,
) -> NoiseVotes:
    """The same of every patch, with what it says of the noise."""
    sums = _sums(Band(depth, variance), coding, window, threads, of_noise=True)
    count, mean, spread = _averages(sums[:3])
    known, some = np.isfinite(depth), np.where(count > 0, count, 1)
    floor, noise, trust = (total / some for total in sums[3:])
    noise, trust = np.where(known & (count > 0), noise, np.inf), np.where(known, trust, 0)
    return NoiseVotes(count, mean, spread, floor, noise, trust)


@dataclass(frozen=True, eq=False)
class Band:
    """Some rows of a map, or of a stack of maps, and what is told of them."""

    depth: DepthMap
    variance: DepthMap | None = None
    only: NDArray[np.bool_] | None = None
    units: DepthMap | None = None

    def flat(self) -> Band:
        """A stack as one map, one under the other."""
        return self._each(lambda values: values.reshape(-1, values.shape[-1]))

    def rows(self, which: slice) -> Band:
        return self._each(lambda values: values[which])

    def _each(self, change: Callable[[NDArray[Any]], NDArray[Any]]) -> Band:
        told = (None if values is None else change(values) for values in (self.variance, self.only, self.units))
        return Band(change(self.depth), *told)


def _sums(whole: Band, coding: Coding, window: Window | None, threads: int, *, of_noise: bool) -> Floats:
    """What the patches of a map say, summed up at each pixel."""
    shape = whole.depth.shape
    rows, columns = shape[-2], shape[-1]
    height = coding.dictionary.patch_shape[0]
    tops, lefts = (window or Window.on_all((rows, columns))).corners(coding.dictionary.patch_shape, coding.stride)
    tops = (np.arange(0, whole.depth.size // columns, rows)[:, None] + tops).ravel()
    whole = whole.flat()
    sums = np.zeros((6 if of_noise else 3, *whole.depth.shape))

    def tally(band: slice) -> tuple[NDArray[np.intp], Floats]:
        mine = tops[band]
        return mine, _tally(whole.rows(slice(mine[0], mine[-1] + height)), coding, mine - mine[0], lefts, of_noise)

    for mine, part in map_in_threads(tally, _bands(len(tops), len(lefts)), threads):
        sums[:, mine[0] : mine[-1] + height] += part
    return sums.reshape(-1, *shape)


def _bands(rows: int, columns: int) -> Iterator[slice]:
    step = max(1, BAND // columns)
    for start in range(0, rows, step):
        yield slice(start, min(rows, start + step))


def _tally(band: Band, coding: Coding, tops: NDArray[np.intp], lefts: NDArray[np.intp], of_noise: bool) -> Floats:
    """The sums of one band: votes, values and squares; and of noise: floors, and where known variance and trust."""
    shape = coding.dictionary.patch_shape
    pixels = shape[0] * shape[1]

    def cut(values: NDArray[Any]) -> NDArray[Any]:
        return sliding_window_view(values, shape)[np.ix_(tops, lefts)].reshape(-1, pixels)

    atoms = coding.atoms
    patches = cut(band.depth)
    share = np.isfinite(patches).mean(axis=1)
    core = coding.weights >= coding.core * coding.weights.max()
    voting = np.flatnonzero((share > 0) & (True if band.only is None else cut(band.only)[:, core].any(axis=1)))
    patches, share = patches[voting], share[voting]
    given = None if band.variance is None else cut(band.variance)[voting]
    if band.units is not None:
        unit = _levelled(patches, np.median(cut(band.units)[voting], axis=1))
    else:
        unit = normalise(patches, SOFTENING, given) if coding.unit is None else _levelled(patches, coding.unit)
    scale = unit.scale[:, None]
    noise = coding.noise if given is None else coding.noise.plus(given / scale**2)
    if of_noise:
        effort = {"tolerance": coding.tolerance, "max_rounds": coding.max_rounds}
        code = infer(unit.patches, atoms, noise, coding.prices, **effort, threads=1)
        codes, inferred = code.codes, code.variance
    else:
        codes, inferred = _coded(unit.patches, share, noise, coding), None
    codes, counts = refitted(unit.patches, atoms, codes) if coding.refit else (codes, 1)
    value = row_stable_matmul(codes, atoms) * scale + unit.centre[:, None]
    weight = (share / counts)[:, None] * coding.weights
    terms = [weight, weight * value, weight * value**2]
    if inferred is not None:
        known = np.isfinite(patches)
        floor = np.where(known, noise.floor_variance(unit.patches), 0.0)
        typical = floor.sum(axis=1, keepdims=True) / known.sum(axis=1, keepdims=True)
        terms.append(weight * typical * scale**2)
        terms.append(np.where(known, weight * inferred * scale**2, 0))
        terms.append(np.where(known, weight * floor / inferred, 0))
    sums = np.zeros((len(terms), *band.depth.shape))
    tiles = np.zeros((len(tops) * len(lefts), pixels))
    for index, term in enumerate(terms):
        tiles[voting] = term
        add_tiles(sums[index], tiles.reshape(len(tops), len(lefts), *shape), tops, lefts)
    return sums


def _coded(patches: Floats, share: Vector, noise: NoiseModel, coding: Coding) -> Floats:
    """The codes of patches, of which a share is known; those of calm ones come to rest sooner."""
    if coding.calm_rounds is None:
        kinds = [(np.ones(len(patches), bool), coding.max_rounds)]
    else:
        sizes = np.clip(np.nan_to_num(patches), -LOUD, LOUD)
        calm = np.square(sizes).mean(axis=1) < CALM**2 * share
        kinds = [(calm, min(coding.calm_rounds, coding.max_rounds)), (~calm, coding.max_rounds)]
    codes = np.empty((len(patches), len(coding.atoms)), patches.dtype)
    for mine, rounds in kinds:
        codes[mine] = sparse_codes(
            patches[mine], coding.atoms, noise.take(mine), coding.prices, tolerance=coding.tolerance, max_rounds=rounds
        )
    return codes


def refitted(patches: Floats, atoms: Floats, codes: Floats) -> tuple[Floats, NDArray[np.intp]]:
    """The codes in use fitted by least squares over the known pixels, and how many they are.

    A price on codes makes all of them too small. Of a patch with too many, the largest are fitted, the others dropped.
    """
    known = np.isfinite(patches)
    sizes = np.abs(codes)
    most = int(np.clip((sizes > IN_USE).sum(axis=1).max(initial=1), 1, MOST_IN_USE))
    which = np.argpartition(-sizes, most - 1, axis=1)[:, :most]
    used = np.take_along_axis(sizes, which, axis=1) > IN_USE
    shown = np.where(used[:, :, None] & known[:, None, :], atoms[which], 0)
    ridge = np.where(used, RIDGE, 1)[:, :, None] * np.eye(most, dtype=atoms.dtype)
    wanted = np.matmul(shown, np.where(known, patches, 0)[:, :, None])
    fitted = np.linalg.solve(np.matmul(shown, shown.transpose(0, 2, 1)) + ridge, wanted)[:, :, 0]
    again = np.zeros_like(codes)
    np.put_along_axis(again, which, np.where(used, fitted, 0).astype(codes.dtype), axis=1)
    return again, np.maximum(used.sum(axis=1), 1)


def _levelled(patches: Floats, unit: float | Vector) -> Normalised:
    """Patches without their median, in a given unit."""
    unit = np.broadcast_to(np.asarray(unit, np.float64), len(patches))
    last = np.isfinite(patches).sum(axis=1, keepdims=True) - 1
    rising, middle = np.sort(patches, axis=1), np.concatenate([last // 2, (last + 1) // 2], axis=1)
    centre = np.take_along_axis(rising, middle, axis=1).mean(axis=1).astype(np.float64)
    levelled = ((patches - centre[:, None]) / unit[:, None]).astype(patches.dtype)
    return Normalised(levelled, centre, unit, unit)


def _averages(sums: Floats) -> tuple[Floats, Floats, Floats]:
    """The votes, the mean of the values and their variance around it."""
    count, value, square = sums
    some = np.where(count > 0, count, 1)
    value, square = value / some, square / some
    return count.copy(), np.where(count > 0, value, np.nan), np.maximum(square - value**2, 0)
