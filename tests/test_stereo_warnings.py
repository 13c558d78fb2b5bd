"""What is said of views that are not rectified, of ranges that are too small, and of maps that are mostly filled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter, rotate, shift

from sparsedepth import InputWarning, match


def scene(seed: int, moved: Any = None, near: int = 14) -> tuple[Any, Any]:
    """A square before a wall, with a smooth texture; the right view is moved."""
    rng = np.random.default_rng(seed)
    wall, square = (255 * _stretched(gaussian_filter(rng.random(shape), 1.2)) for shape in ((120, 200), (60, 60)))
    left, right = wall[:, 10:170].copy(), wall[:, 15:175].copy()
    left[30:90, 60:120], right[30:90, 60 - near : 120 - near] = square, square
    return left, right if moved is None else np.clip(moved(right), 0, 255)


def _stretched(values: Any) -> Any:
    return (values - values.min()) / np.ptp(values)


@pytest.mark.parametrize("seed", range(3))
def test_a_rectified_pair_has_no_warning(seed):
    assert match(*scene(seed), max_disparity=20).warnings == ()


MOVES = {
    "up": lambda view: shift(view, (-1, 0), mode="nearest"),
    "down": lambda view: shift(view, (1, 0), mode="nearest"),
    "rotated": lambda view: rotate(view, 0.6, reshape=False, mode="nearest", order=1),
}


@pytest.mark.slow
@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES)
@pytest.mark.parametrize("seed", range(2))
def test_views_that_are_not_rectified_are_named(move, seed):
    with pytest.warns(InputWarning, match="rectif"):
        found = match(*scene(seed, move), max_disparity=20)
    assert any("probably not rectified" in sentence for sentence in found.warnings)


def test_the_right_view_is_told_to_move_where_it_belongs():
    for move, sign in ((MOVES["down"], "-"), (MOVES["up"], "+")):
        with pytest.warns(InputWarning, match=rf"moved by \{sign}[01]\.\d rows"):
            match(*scene(0, move), max_disparity=20)


def test_a_range_that_is_too_small_is_named():
    with pytest.warns(InputWarning, match="largest disparity that was searched, 13 px"):
        match(*scene(1), max_disparity=13)


def test_a_map_that_is_mostly_filled_is_named():
    noise = [np.random.default_rng(seed).integers(0, 256, (60, 90), np.uint8) for seed in (0, 1)]
    with pytest.warns(InputWarning, match="most of this map is a guess"):
        match(*noise, max_disparity=20)
