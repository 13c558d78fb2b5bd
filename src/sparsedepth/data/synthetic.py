"""Synthetic noise and holes over clean maps: the paper's impulses, and what sensors and stereo matching leave.

Each kind is a function of a map and a random generator. Missing pixels stay missing, and the type stays. Lengths in
depth are in standard deviations of the map, so the unit does not matter. Kinds that depend on near and far need
``near``: 1 where large values are near, as in disparities; -1 where they are far, as in ranges.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation, maximum_filter, minimum_filter

from sparsedepth.vocabulary import DepthMap, Floats

MIN_EDGE_SIGMA = 0.25
"""Deviations of the map between neighbours that make an edge of depth."""


def corrupted(depth: DepthMap, share: float, rng: np.random.Generator, amplitude: float = 1.0) -> DepthMap:
    """Add Gaussian noise to a fraction of the pixels, each with its own variance, uniform in (0, 1) map variances.

    So does the paper; ``amplitude`` multiplies the noise.
    """
    chosen = rng.random(depth.shape) < share
    deviation = np.sqrt(rng.random(depth.shape)) * np.nanstd(depth)
    noise = rng.standard_normal(depth.shape) * deviation * amplitude
    return (depth + np.where(chosen, noise, 0)).astype(depth.dtype)


PAPER_RANGE = 1.8815
"""Range of the paper's map in units of its noise. With variances uniform in (0, 1) at 1 % of the pixels, the mean
squared error is 0.005. The noisy map of the paper has 28.5 dB over the range."""


def corrupted_as_in_paper(depth: DepthMap, share: float, rng: np.random.Generator) -> DepthMap:
    """Add Gaussian noise to a fraction of the pixels, as large relative to the map's range as the paper's.

    At 1 % of the pixels the expected PSNR is the 28.5 dB of its Fig. 4b; the amplitude is the same at every share.
    """
    spread = float(np.nanstd(depth))
    span = float(np.nanmax(depth) - np.nanmin(depth))
    return corrupted(depth, share, rng, amplitude=span / (PAPER_RANGE * spread) if spread else 1.0)


def with_clusters(depth: DepthMap, share: float, rng: np.random.Generator, largest: float = 3.0) -> DepthMap:
    """Shift whole discs, each by one number of the paper's noise model, until they cover a fraction of the map.

    Radii are uniform from 1 to ``largest`` pixels: a wrong match or a reflection corrupts neighbouring pixels together.
    """
    rows, columns = np.indices(depth.shape)
    offset, covered = np.zeros(depth.shape), np.zeros(depth.shape, bool)
    while covered.mean() < share:
        row, column = rng.integers(depth.shape[0]), rng.integers(depth.shape[1])
        disc = np.hypot(rows - row, columns - column) <= rng.uniform(1, largest)
        offset[disc] = np.sqrt(rng.random()) * rng.standard_normal() * np.nanstd(depth)
        covered |= disc
    return (depth + offset).astype(depth.dtype)


def with_range_noise(ranges: DepthMap, strength: float, rng: np.random.Generator) -> DepthMap:
    """Add Gaussian noise at every pixel that grows with the square of the range, as of triangulation.

    ``strength`` is its deviation at the median range, in deviations of the map. Ranges are positive.
    """
    return (ranges + range_deviation(ranges, strength) * rng.standard_normal(ranges.shape)).astype(ranges.dtype)


def range_deviation(ranges: DepthMap, strength: float) -> Floats:
    """Compute the standard deviation of the noise that `with_range_noise` adds to each pixel."""
    return strength * np.nanstd(ranges) * np.square(ranges / np.nanmedian(ranges))


def with_gaussian_noise(depth: DepthMap, strength: float, rng: np.random.Generator) -> DepthMap:
    """Add Gaussian noise to every pixel; ``strength`` is its standard deviation, in standard deviations of the map."""
    return (depth + strength * np.nanstd(depth) * rng.standard_normal(depth.shape)).astype(depth.dtype)


def with_stuck_pixels(depth: DepthMap, share: float, rng: np.random.Generator) -> DepthMap:
    """Set a fraction of the valid pixels to the least or to the greatest value of the map (salt and pepper)."""
    chosen = (rng.random(depth.shape) < share) & np.isfinite(depth)
    ends = np.where(rng.random(depth.shape) < 0.5, np.nanmin(depth), np.nanmax(depth))
    return np.where(chosen, ends, depth).astype(depth.dtype)


def quantised(depth: DepthMap, levels: int) -> DepthMap:
    """Round to a number of levels over the map's range."""
    low, high = np.nanmin(depth), np.nanmax(depth)
    step = (high - low) / (levels - 1) or 1.0
    return (low + np.rint((depth - low) / step) * step).astype(depth.dtype)


def with_flying_pixels(depth: DepthMap, share: float, rng: np.random.Generator) -> DepthMap:
    """Mix near and far at a fraction of the pixels next to depth edges, as a beam does that hits both."""
    low, high = range_of_neighbours(depth)
    chosen = (rng.random(depth.shape) < share) & beside_edges(depth)
    mixed = low + rng.random(depth.shape) * (high - low)
    return np.where(chosen, mixed, depth).astype(depth.dtype)


def beside_edges(depth: DepthMap) -> NDArray[np.bool_]:
    """Find the valid pixels whose 3x3 neighbourhood spans more than a jump."""
    low, high = range_of_neighbours(depth)
    return np.isfinite(depth) & (high - low > MIN_EDGE_SIGMA * np.nanstd(depth))


def with_missing(depth: DepthMap, share: float, rng: np.random.Generator) -> DepthMap:
    """Remove a fraction of the pixels at random."""
    return np.where(rng.random(depth.shape) < share, np.nan, depth).astype(depth.dtype)


def with_matching_shadows(depth: DepthMap, near: int, widest: float = 12.0) -> DepthMap:
    """Remove what a second camera, to the right, cannot see: the holes that a left-right check leaves.

    The map's range becomes ``widest`` pixels of parallax.
    """
    return np.where(hidden_behind(depth, near, widest), np.nan, depth).astype(depth.dtype)


def with_kinect_shadows(depth: DepthMap, near: int, rng: np.random.Generator, widest: float = 8.0) -> DepthMap:
    """Remove pixels as a structured-light camera does: ragged shadows of the projector, and patches without echo.

    The projector is to the left. Half of the pixels at the rims of its shadows are lost too. Discs of 2 to 5 pixels in
    radius are removed until they cover a hundredth of the map.
    """
    shadow = hidden_behind(depth[:, ::-1], near, widest)[:, ::-1]
    rims = np.asarray(binary_dilation(shadow, np.ones((3, 3))), bool) & (rng.random(depth.shape) < 0.5)
    rows, columns = np.indices(depth.shape)
    discs = np.zeros(depth.shape, bool)
    while discs.mean() < 0.01:
        row, column = rng.integers(depth.shape[0]), rng.integers(depth.shape[1])
        discs |= np.hypot(rows - row, columns - column) <= rng.uniform(2, 5)
    return np.where(shadow | rims | discs, np.nan, depth).astype(depth.dtype)


def hidden_behind(depth: DepthMap, near: int, widest: float) -> NDArray[np.bool_]:
    """Find what nearer pixels hide from a second view to the right, with ``widest`` pixels of parallax over the map.

    The second view shows a pixel of column x with parallax p at x - p. The pixel is hidden if a pixel further right
    appears at the same place or further left.
    """
    known = np.isfinite(depth)
    if not known.any():
        return known
    low, high = np.nanmin(depth), np.nanmax(depth)
    parallax = widest * near * (depth - low) / ((high - low) or 1.0)
    place = np.where(known, np.arange(depth.shape[1]) - parallax, np.inf)
    leftmost = np.minimum.accumulate(place[:, ::-1], axis=1)[:, ::-1]
    beyond = np.pad(leftmost[:, 1:], ((0, 0), (0, 1)), constant_values=np.inf)
    return known & (beyond <= place)


def range_of_neighbours(depth: DepthMap) -> tuple[Floats, Floats]:
    """Find the least and the largest valid value of the 3x3 neighbourhood; 0 where the map is NaN."""
    known = np.isfinite(depth)
    low = minimum_filter(np.where(known, depth, np.inf), 3, mode="nearest")
    high = maximum_filter(np.where(known, depth, -np.inf), 3, mode="nearest")
    return np.where(known, low, 0), np.where(known, high, 0)
