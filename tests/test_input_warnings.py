"""Maps that are probably not what they seem: said in Python, and silent for maps that are what they seem."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable

import numpy as np
import pytest

from sparsedepth import DepthImage, InputWarning, Origin, Restoration, Restorer, denoise, inpaint
from sparsedepth.input_warnings import suspicious_result, suspicious_values

RNG = np.random.default_rng(0)
DEPTH = 1.0 + np.add.outer(np.linspace(0, 1, 48), np.linspace(0, 1, 64)) + 0.001 * RNG.standard_normal((48, 64))
HOLE = np.add.outer(np.arange(48) % 7, np.arange(64) % 5) == 0
MILLIMETRES = (1000 * DEPTH).astype(np.uint16)
ROWS, COLUMNS = np.mgrid[:48, :64]
WALL = np.where(COLUMNS < 20, 3.0, DEPTH)

SUSPICIOUS = {
    "zeros in a float map": (np.where(HOLE, 0.0, DEPTH), "m", None, "exactly 0"),
    "zeros beside other codes": (np.where(HOLE, 0.0, DEPTH), "m", -1.0, "exactly 0"),
    "65535 in millimetres": (np.where(HOLE, 65535.0, 1000 * DEPTH), "mm", None, "65535"),
    "65535 in an integer map": (np.where(HOLE, 65535, MILLIMETRES), "", None, "65535"),
    "one 65535": (np.where((ROWS == 7) & (COLUMNS == 9), 65535, MILLIMETRES), "", 0, "65535"),
    "a filled code": (np.where(ROWS < 15, 10.0, DEPTH), "m", None, "are 10,"),
    "a limit of the sensor": (np.minimum(DEPTH, 2.2), "m", None, "are 2.2,"),
}


@pytest.mark.parametrize("name", SUSPICIOUS)
def test_codes_are_suspicious(name):
    values, unit, invalid, words = SUSPICIOUS[name]
    (sentence,) = suspicious_values(values, unit, invalid)
    assert words in sentence
    assert "invalid" in sentence, "it says what to do"


PLAIN = {
    "a map": (DEPTH, "m", None),
    "holes": (np.where(HOLE, np.nan, DEPTH), "m", None),
    "masked zeros": (np.ma.masked_equal(np.where(HOLE, 0.0, DEPTH), 0.0), "m", None),
    "zeros that are declared": (np.where(HOLE, 0.0, DEPTH), "m", 0.0),
    "zeros of an integer map": (np.where(HOLE, 0, MILLIMETRES), "mm", None),
    "all values are depths": (np.where(HOLE, 0.0, DEPTH), "m", ()),
    "65535 that is declared": (np.where(HOLE, 65535, MILLIMETRES), "mm", (0, 65535)),
    "65535 in metres": (np.where(HOLE, 65535.0, DEPTH), "m", None),
    "full range of 16 bits": (np.linspace(1, 65535, 3072).reshape(48, 64).astype(np.uint16), "", None),
    "a ramp from zero": (np.add.outer(np.zeros(48), np.linspace(0.0, 1.0, 64)), "", None),
    "heights around zero": (np.round(DEPTH - 2.0, 1), "m", None),
    "constant": (np.full((48, 64), 2.0), "m", None),
    "constant zero": (np.zeros((48, 64)), "m", None),
    "two planes": (np.where(COLUMNS < 30, 1.0, 2.0), "m", None),
    "few levels of disparity": (np.where(COLUMNS < 30, 12.0, np.round(20 * DEPTH)), "px", None),
    "quarters of a pixel": (np.where(COLUMNS < 30, 12.0, np.round(40 * DEPTH) / 4), "px", None),
    "unknown": (np.full((48, 64), np.nan), "m", None),
    "one pixel": (np.ones((1, 1)), "m", None),
}


@pytest.mark.parametrize("name", PLAIN)
def test_maps_that_are_what_they_seem(name):
    assert suspicious_values(*PLAIN[name]) == []


def test_mostly_filled_maps_are_guesses():
    origin = np.full((10, 10), Origin.MEASURED)
    origin[:4] = Origin.FILLED
    assert suspicious_result(origin) == []
    origin[4, 0] = Origin.FILLED
    assert "41 %" in suspicious_result(origin)[0]
    assert "guess" in suspicious_result(origin)[0]


def in_a_process(restorer: Restorer, image: DepthImage) -> Restoration:
    with restorer.in_processes(1) as pool:
        return pool(image)


CODED = DepthImage(np.where(HOLE, 65535.0, 1000 * DEPTH), "mm")
CALLS: dict[str, Callable[[], Restoration]] = {
    "denoise, array": lambda: denoise(CODED.values.astype(np.uint16), quality="fast"),
    "denoise": lambda: denoise(CODED, quality="fast"),
    "inpaint": lambda: inpaint(CODED, quality="fast"),
    "restorer": lambda: Restorer(quality="fast")(CODED),
    "stream": lambda: next(Restorer(quality="fast").each([CODED], threads=1)),
    "process": lambda: in_a_process(Restorer(quality="fast"), CODED),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_warnings_are_emitted_where_the_call_is(name):
    with pytest.warns(InputWarning, match="65535") as caught:
        result = CALLS[name]()
    assert [str(each.message) for each in caught] == list(result.warnings)
    assert len(result.warnings) == 1
    assert caught[0].filename == __file__


@pytest.mark.slow
def test_invalid_values_of_a_restorer_are_no_suspicion():
    values = np.where(HOLE, 0.0, DEPTH)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Restorer(quality="fast", invalid=0)(values).warnings == ()
        assert Restorer(quality="fast")(values, invalid=0).warnings == ()
        with Restorer(quality="fast", invalid=0).in_processes(1) as pool:
            assert pool(values).warnings == ()
    with pytest.warns(InputWarning, match="exactly 0"):
        Restorer(quality="fast", invalid=-1)(values)


def test_a_mostly_filled_result_is_said():
    sparse = np.where((ROWS + COLUMNS) % 2 == 0, DEPTH, np.nan)
    with pytest.warns(InputWarning, match="guess"):
        assert (inpaint(sparse, quality="fast").origin == Origin.FILLED).mean() > 0.4


def test_looking_is_quick_and_large_maps_are_sampled(rng, tmp_path):
    frame = rng.uniform(1, 2, (480, 640)).astype(np.float32)
    start = time.perf_counter()
    for _ in range(5):
        suspicious_values(frame, "mm")
    assert (time.perf_counter() - start) / 5 < 0.05, "1 ms on an idle machine"
    large = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", np.uint16, (4096, 4096))
    large[:] = 1000 + np.arange(4096) % 997
    large[::2, ::3] = 65535
    assert "65535" in suspicious_values(large)[0]
