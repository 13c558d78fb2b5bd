"""Every public function, whatever the map: a valid result or one sentence, and what came in is left as it was."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import sparsedepth
from conftest import unit_atoms
from sparsedepth import (
    Belief,
    DepthImage,
    Dictionary,
    InputError,
    Known,
    Match,
    Origin,
    Restoration,
    Restorer,
    StereoPair,
    Stream,
    believe,
    denoise,
    energy,
    files,
    infer,
    inpaint,
    learn,
    match,
    metrics,
    pictures,
    point_cloud,
    weighted_lasso,
)
from sparsedepth import baselines as rivals
from strategies import N_SHAPES, NO_MAPS, maps

Call = Callable[[Any, Path], Any]


@cache
def atoms() -> Dictionary:
    return Dictionary(unit_atoms(12, 16, dtype=np.float32), (4, 4))


def other(depth: Any) -> np.ndarray:
    """A plain map of the same shape."""
    shape = np.shape(depth) if isinstance(depth, np.ndarray) else (4, 4)
    return np.linspace(1.0, 2.0, int(np.prod(shape))).reshape(shape)


def patches(depth: Any) -> Any:
    """The map's pixels as rows of patches, where it is one."""
    if isinstance(depth, np.ndarray) and depth.ndim == 2 and depth.size:
        return np.resize(depth, (5, 16)) if not np.ma.isMaskedArray(depth) else np.ma.resize(depth, (5, 16))
    return depth


def written(write: Callable[..., None], suffix: str, *, again: Callable[[Path], Any] = Path.read_bytes) -> Call:
    """A call that writes a file and looks at what it holds."""

    def call(depth: Any, folder: Path) -> Any:
        path = folder / f"x{suffix}"
        path.unlink(missing_ok=True)
        write(path, depth)
        return again(path)

    return call


def stored(read: Callable[[Path], Any]) -> Call:
    """A call that reads the map from an npy file."""

    def call(depth: Any, folder: Path) -> Any:
        array = depth if isinstance(depth, np.ndarray) else np.asarray(depth, object)
        np.save(folder / "x.npy", np.ma.getdata(array), allow_pickle=True)
        return read(folder / "x.npy")

    return call


RESTORING: dict[str, Call] = {
    "denoise": lambda d, _: denoise(d, dictionary=atoms(), quality="fast", threads=1),
    "denoise, all holes": lambda d, _: denoise(d, dictionary=atoms(), quality="fast", threads=1, holes="all"),
    "denoise, paper": lambda d, _: denoise(d, dictionary=atoms(), method="paper", quality="fast", threads=1),
    "Restorer": lambda d, _: Restorer(atoms(), "fast")(d, threads=1),
    "inpaint": lambda d, _: inpaint(d, dictionary=atoms(), quality="fast", threads=1),
    "denoise, sensor": lambda d, _: denoise(d, dictionary=atoms(), threads=1, sensor="kinect_v1", unit="mm"),
    "Stream": lambda d, _: Stream().push(d),
    "believe": lambda d, _: believe(d, dictionary=atoms(), stride=3, threads=1),
}
CODING: dict[str, Call] = {
    "infer": lambda d, _: infer(patches(d), atoms(), threads=1, max_rounds=8),
    "infer, Known": lambda d, _: infer(other(np.zeros((5, 16))), atoms(), Known(patches(d)), threads=1, max_rounds=8),
    "weighted_lasso": lambda d, _: weighted_lasso(patches(d), atoms(), 0.1, tolerance=0.1, threads=1),
    "energy": lambda d, _: energy(patches(d), atoms(), np.ones((5, 12)), np.ones((5, 16))),
    "learn": lambda d, _: next(islice(learn(patches(d), atoms(), steps=4, rounds=4, threads=1), 2, None)).state.atoms,
}
COMPARING: dict[str, Call] = {
    name: partial(lambda measure, d, _: measure(d, other(d), missing="ignore"), getattr(metrics, name))
    for name in ("psnr", "rmse", "mae")
}
COMPARING |= {
    f"{name}, as truth": partial(lambda measure, d, _: measure(other(d), d), getattr(metrics, name))
    for name in ("psnr", "rmse", "mae")
}
COMPARING |= {
    "bad_pixels": lambda d, _: metrics.bad_pixels(d, other(d), 0.5, missing="bad"),
    "fixed_and_broken": lambda d, _: metrics.fixed_and_broken(d, other(d), other(d) + 1, 0.5, missing="ignore"),
    "calibration": lambda d, _: metrics.calibration(d, other(d)),
    "calibration, as variance": lambda d, _: metrics.calibration(other(d), d),
    "sparsification": lambda d, _: metrics.sparsification(d, other(d), steps=4),
    "sparsification, as variance": lambda d, _: metrics.sparsification(other(d), d, steps=4),
    "average_precision": lambda d, _: metrics.average_precision(d, other(d) > 1.5),
    "oracle": lambda d, _: metrics.oracle(lambda noisy, p: noisy + p, (0.0, 1.0), other(d), d),
}
RIVALS: dict[str, Call] = {
    "median": lambda d, _: rivals.median(d),
    "switching_median": lambda d, _: rivals.switching_median(d, 0.1),
    "bilateral": lambda d, _: rivals.bilateral(d, 0.1),
    "nl_means": lambda d, _: rivals.nl_means(d, 0.1),
    "nl_means_median": lambda d, _: rivals.nl_means_median(d, 0.1),
    "tv_l1": lambda d, _: rivals.tv_l1(d, 1.0, iterations=20),
    "tv_l2": lambda d, _: rivals.tv_l2(d, 0.1),
    "biharmonic": lambda d, _: rivals.biharmonic(d),
    "linear": lambda d, _: rivals.linear(d),
}
FILES: dict[str, Call] = {
    "read": stored(lambda path: files.read(path)),
    "read_map": stored(files.read_map),
    "read_array": stored(files.read_array),
    "write": written(files.write, ".npz", again=files.read),
    "write, png": written(lambda path, d: files.write(path, DepthImage(d, "m"), profile="tum"), ".png"),
    "write_array": written(files.write_array, ".tiff", again=files.read_array),
    "DepthImage": lambda d, _: DepthImage(d, "m").to("mm"),
}
STEREO: dict[str, Call] = {
    "StereoPair": lambda d, _: StereoPair(d, d, 1),
    "match": lambda d, _: match(d, d, max_disparity=1, threads=1),
}
PICTURES: dict[str, Call] = {
    "save_map": written(lambda path, d: pictures.save_map(d, path), ".png"),
    "save_variance": written(lambda path, d: pictures.save_variance(d, path), ".png"),
    "save_panels": written(
        lambda path, d: pictures.save_panels(
            [pictures.Panel("x", d, shows) for shows in ("depth", "error", "variance")], path, limits=(0, 1)
        ),
        ".png",
    ),
}
CLOUDS: dict[str, Call] = {
    "point_cloud": lambda d, _: point_cloud(d, (5.0, 5.0, 1.0, 1.0), unit="m"),
}
DICTIONARIES: dict[str, Call] = {
    "Dictionary": lambda d, _: Dictionary(d, (1, (*getattr(d, "shape", ()), 1, 1)[1])).mosaic()
}
CALLS = RESTORING | CODING | COMPARING | RIVALS | FILES | STEREO | DICTIONARIES | CLOUDS | PICTURES
"""Each public function by name; after a comma, another way to call it."""

ELSEWHERE = {
    "Exponential", "Jeffreys", "Known", "Stationary",  # numbers; with a map they are called by infer
    "Belief", "InputError", "Intrinsics", "LearningStep", "Match", "Origin", "Restoration", "Sensor",  # records
    "PointCloud", "SparseCode", "StereoCalibration",
    "InputWarning",  # the laws of warnings
    "confidence_variance", "read_confidence", "read_normals", "write_normals",  # the laws of formats
    "Profile", "Format", "read_photo", "read_about",  # photographs and descriptions of files: the laws of reading
    "Competitor", "tight_wavelet_frame", "wavelet_frame",  # no map goes in
    "save_bars", "save_calibration", "save_curves", "save_learning", "save_mosaic", "save_origin",  # draw what we found
    "write_figure",  # a figure goes in
}  # fmt: skip


def test_every_public_name_is_here():
    public = {*sparsedepth.__all__, *files.__all__, *rivals.__all__}
    public = {name for name in public if not name.isupper()}
    for module in (metrics, pictures):
        public |= {
            n for n, f in inspect.getmembers(module, inspect.isfunction) if f.__module__.startswith(module.__name__)
        }
    assert {name for name in public if not name.startswith("_")} == {n.split(",")[0] for n in CALLS} | ELSEWHERE


def outcome(call: Call, depth: Any, folder: Path) -> Any:
    """What the call gives, or its sentence."""
    try:
        return call(depth, folder)
    except InputError as error:
        sentence = str(error)
    assert sentence.isprintable(), sentence
    assert 10 < len(sentence) < 600
    return sentence


def numbers(result: Any) -> Iterator[Any]:
    """All arrays and numbers of a result."""
    if is_dataclass(result):
        for field in fields(result):
            yield from numbers(getattr(result, field.name))
    else:
        yield result


def valid(result: Any) -> None:
    """What holds of all results of a kind."""
    if isinstance(result, Restoration):
        assert result.depth.shape == result.variance.shape == result.origin.shape
        refused = result.origin == Origin.REFUSED
        np.testing.assert_array_equal(np.isnan(result.depth), refused)
        np.testing.assert_array_equal(np.isinf(result.variance), refused)
    if isinstance(result, (Restoration, Match, Belief)):
        assert (result.variance > 0).all()
    if isinstance(result, Match):
        assert np.isfinite(result.disparity).all()
    if isinstance(result, DepthImage):
        assert not np.isinf(result.values).any()


def frozen(depth: Any) -> tuple[bytes, bytes]:
    return np.ma.getdata(depth).tobytes(), np.ma.getmaskarray(depth).tobytes()


def plain(depth: Any) -> Any:
    """The same numbers in the plainest layout."""
    copy = np.array(np.ma.getdata(depth), depth.dtype.newbyteorder("="), order="C")
    return np.ma.masked_array(copy, np.ma.getmaskarray(depth)) if np.ma.isMaskedArray(depth) else copy


def same(one: Any, two: Any, why: str) -> None:
    assert isinstance(one, str) == isinstance(two, str), why
    if not isinstance(one, str):
        for number, other_number in zip(numbers(one), numbers(two), strict=True):
            np.testing.assert_array_equal(number, other_number, why)


IGNORE_MASKS = {"read", "read_map", "read_array", "infer, Known", "Dictionary", "StereoPair", "match", "learn"}
"""A file has no mask, and what must be known everywhere cannot have one."""
COST = {**dict.fromkeys(PICTURES, 2), **dict.fromkeys(RESTORING, 8), "match": 15, "tv_l2": 15, "weighted_lasso": 15}
"""How many maps the slow ones are tried on."""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*not within the tolerance:RuntimeWarning")
@pytest.mark.parametrize("name", CALLS)
def test_any_map_gives_a_valid_result_or_a_sentence(name, tmp_path):
    call = CALLS[name]

    @settings(max_examples=COST.get(name, 40), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
    @given(depth=maps())
    def law(depth):
        before = frozen(depth)
        result = outcome(call, depth, tmp_path)
        assert frozen(depth) == before, "what came in was changed"
        valid(result)
        again = outcome(call, plain(depth), tmp_path)
        same(result, again, "the layout in memory makes a difference")
        if np.ma.isMaskedArray(depth) and depth.dtype == np.float64 and name not in IGNORE_MASKS:
            same(result, outcome(call, np.ma.filled(depth, np.nan), tmp_path), "masked is not the same as NaN")

    law()


@pytest.mark.parametrize("name", CALLS)
def test_what_is_no_map_is_a_sentence(name, tmp_path):
    any_shape = name in COMPARING or name == "infer, Known"  # these take a vector as well
    for what in NO_MAPS[N_SHAPES:] if any_shape else NO_MAPS:
        assert isinstance(outcome(CALLS[name], what, tmp_path), str), repr(what)
