"""Hypothesis strategies: any map that a user might bring, and what is none."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

FLOATS = ("f4", "f8", ">f4", ">f8", "f2", "g")
INTEGERS = ("u1", "u2", ">u2", "i2", "i4", ">i4", "u8", "i8")
LAYOUTS = ("plain", "columns first", "every other", "backwards", "turned", "one row for all", "read-only", "masked")
HOLES = ("none", "some", "a block", "all but one", "all", "infinities")


@st.composite
def maps(draw: st.DrawFn, most: int = 12) -> Any:
    """A map of any real type, shape, scale and memory layout, with holes of every kind; it may be masked."""
    dtype = np.dtype(draw(st.sampled_from(FLOATS + INTEGERS)))
    shape = draw(st.tuples(st.integers(1, most), st.integers(1, most)))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    values = _numbers(draw, rng, shape, dtype)
    layout = draw(st.sampled_from(LAYOUTS))
    depth = _laid_out(values, layout, rng)
    if draw(st.booleans()):
        depth.flags.writeable = False
    return depth


def _numbers(draw: st.DrawFn, rng: np.random.Generator, shape: tuple[int, int], dtype: np.dtype[Any]) -> Any:
    y, x = np.indices(shape) / 12
    surface = draw(st.sampled_from((y - x, 0 * x, np.where(x > y, 1.0, -1.0), rng.normal(size=shape))))
    surface = surface + draw(st.sampled_from((0.0, 2.0, -3.0, 1e4)))
    if dtype.kind != "f":
        limits = np.iinfo(dtype)
        scaled = np.clip(surface * draw(st.sampled_from((1, 40, 1e4, 1e18))), limits.min, float(limits.max) * 0.99)
        return np.where(rng.random(shape) < draw(st.sampled_from((0, 0.2, 1))), 0, scaled).astype(dtype)
    largest = {2: 2.0, 4: 33.0, 8: 200.0}.get(dtype.itemsize, 300.0)
    power = draw(st.sampled_from((0.0, 0.0, 3.0, -3.0, 12.0, -30.0, -44.0, 25.0, 33.0, 99.0, 200.0, 300.0)))
    with np.errstate(all="ignore"):
        values = (surface * np.longdouble(10) ** min(power, largest)).astype(dtype)
    return _holed(values, draw(st.sampled_from(HOLES)), rng)


def _holed(values: Any, kind: str, rng: np.random.Generator) -> Any:
    height, width = values.shape
    if kind == "some":
        values[rng.random(values.shape) < 0.2] = np.nan
    elif kind == "a block":
        values[height // 3 : height // 3 + 8, width // 4 : width // 4 + 9] = np.nan
    elif kind == "infinities":
        values[rng.random(values.shape) < 0.2] = np.inf
        values[rng.random(values.shape) < 0.1] = -np.inf
    elif kind.startswith("all"):
        values[:] = np.nan
        if kind == "all but one":
            values[height // 2, width // 2] = 3
    return values


def _laid_out(values: Any, layout: str, rng: np.random.Generator) -> Any:
    if layout == "columns first":
        return np.asfortranarray(values)
    if layout == "every other":
        return np.repeat(np.repeat(values, 2, axis=0), 3, axis=1)[::2, ::3]
    if layout == "backwards":
        return values[::-1, ::-1].copy()[::-1, ::-1]
    if layout == "turned":
        return values.T.copy().T
    if layout == "one row for all":
        return np.lib.stride_tricks.as_strided(values[0].copy(), values.shape, (0, values.itemsize))
    if layout == "masked":
        return np.ma.masked_array(values, rng.random(values.shape) < 0.3)
    return values


NO_MAPS: tuple[Any, ...] = (
    3.0,
    np.zeros((0, 4)),
    np.zeros(5),
    np.zeros((2, 3, 4, 5)),
    None,
    "a name",
    [[1.0, 2.0], [3.0]],
    {"depth": 1},
    np.zeros((4, 4), complex),
    np.zeros((4, 4), "datetime64[s]"),
    np.zeros((4, 4), "timedelta64[s]"),
    np.full((4, 4), "1.5"),
    np.full((4, 4), None),
    np.zeros((4, 4), [("x", "f4")]),
    np.zeros((4, 4), "V4"),
)
"""What is no map; each is refused by every function that wants one."""
N_SHAPES = 4
"""The first ones are real numbers, but not in two dimensions."""
