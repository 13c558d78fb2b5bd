"""Simulated laser scans of streets: ground, walls, trunks, poles, and crowns that let some beams through.

They stand in for outdoor laser scans where something has to be chosen: the real ones are for tests only.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter
from scipy.special import ndtr

from sparsedepth.vocabulary import DepthMap, Floats

SCANNER_HEIGHT_M = 1.8
"""Metres of the scanner above the ground."""
MAX_RANGE_M = 70.0
MIN_VALID_FRACTION = 0.6
"""Scenes with more sky than this leaves are not used."""


def simulated_scans(n: int, size: int = 100) -> list[DepthMap]:
    """Simulate scenes that are not mostly sky: log ranges of unit standard deviation; NaN = sky or lost."""
    found, seed = [], 0
    while len(found) < n:
        scan = np.log(simulated_ranges(np.random.default_rng([77, seed]), size))
        seed += 1
        if np.isfinite(scan).mean() > MIN_VALID_FRACTION:
            found.append((scan / np.nanstd(scan)).astype(np.float32))
    return found


def simulated_ranges(rng: np.random.Generator, size: int) -> Floats:
    """Simulate ranges in metres over 35 degrees both ways, with a centimetre of noise and 1 % lost."""
    up = np.deg2rad(np.linspace(16, -19, size))[:, None]
    across = np.deg2rad(np.linspace(-17.5, 17.5, size))[None]
    beams = np.stack([np.cos(up) * np.cos(across), np.cos(up) * np.sin(across), np.sin(up) * np.ones_like(across)], -1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ranges = _ground(beams, rng)
        for _ in range(rng.integers(1, 3)):
            ranges = np.minimum(ranges, _wall(beams, rng))
        for _ in range(rng.integers(1, 5)):
            ranges = _with_tree(ranges, beams, up, rng)
        for _ in range(rng.integers(0, 3)):
            far, place = rng.uniform(5, 20), rng.uniform(-0.3, 0.3)
            near = np.abs(across - place) * np.ones_like(up) < 0.06 / far + 0.002
            ranges = _with_post(ranges, near, far, 4, up)
    ranges = ranges + 0.012 * rng.standard_normal(ranges.shape)
    lost = rng.random(ranges.shape) < 0.01
    return np.where(np.isfinite(ranges) & ~lost, ranges, np.nan)


def _ground(beams: Floats, rng: np.random.Generator) -> Floats:
    level = -SCANNER_HEIGHT_M / beams[..., 2]
    rough = level * (1 + 0.003 * gaussian_filter(rng.standard_normal(level.shape), 2))
    return np.where((beams[..., 2] < 0) & (level < MAX_RANGE_M), rough, np.inf)


def _wall(beams: Floats, rng: np.random.Generator) -> Floats:
    angle = rng.uniform(-1, 1)
    ranges = rng.uniform(12, 35) / (beams @ np.array([np.cos(angle), np.sin(angle), 0]))
    top = rng.uniform(3, 12)
    height, aside = ranges * beams[..., 2] + SCANNER_HEIGHT_M, ranges * beams[..., 1]
    inside = (height > 0) & (height < top) & (aside > rng.uniform(-15, 0)) & (aside < rng.uniform(0, 15))
    return np.where((ranges > 0) & inside, ranges, np.inf)


def _with_tree(ranges: Floats, beams: Floats, up: Floats, rng: np.random.Generator) -> Floats:
    """Add a ball of leaves, into which each beam goes some way, or through; and a trunk below."""
    far, place, height, radius = rng.uniform(6, 22), rng.uniform(-0.35, 0.35), rng.uniform(0.5, 4), rng.uniform(1, 3.2)
    centre = np.array([far * np.cos(place), far * np.sin(place), height])
    along = beams @ centre
    square = along**2 - (centre @ centre - radius**2)
    half = np.sqrt(np.maximum(square, 0))
    leaf = rng.uniform(0.4, 0.9)
    leaves = gaussian_filter(rng.standard_normal(ranges.shape), leaf)
    luck = ndtr(leaves / leaves.std())
    hit = along - half - np.log(np.maximum(luck, 1e-9)) / rng.uniform(0.4, 2.0)
    ranges = np.minimum(ranges, np.where((square > 0) & (hit < along + half), hit, np.inf))
    near = np.abs(np.arctan2(beams[..., 1], beams[..., 0]) - place) < 0.12 / far
    return _with_post(ranges, near, far, height, up)


def _with_post(ranges: Floats, near: NDArray[np.bool_], far: float, top: float, up: Floats) -> Floats:
    height = far * np.tan(up) * np.ones_like(ranges)
    return np.where(near & (height < top) & (height > -SCANNER_HEIGHT_M) & (far < ranges), far, ranges)
