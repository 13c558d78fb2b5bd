"""The competitors: what one would otherwise do to a noisy or a holed depth map.

Every one is a pure function from a float map to a float map. NaN is missing: it takes no part, and stays NaN, except
in `biharmonic` and `linear`, which fill. Strengths and thresholds are in units of the map, so a map in millimetres
with a parameter in millimetres gives the map in metres times a thousand; the weight of `tv_l1` needs no unit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pywt
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import LinearNDInterpolator
from scipy.ndimage import binary_dilation, distance_transform_edt, uniform_filter
from skimage.restoration import denoise_tv_chambolle, inpaint_biharmonic

from sparsedepth.vocabulary import DepthMap, Floats, InputError, Vector

STRIP_VALUES = 1 << 22
"""Neighbours that are sorted at once, which bounds the memory a large map needs."""


def median(depth: ArrayLike, size: int = 3) -> DepthMap:
    """The median of the known pixels in a size x size window; windows are cut at the border.

    >>> median([[1.0, 1.0, 1.0], [1.0, 9.0, np.nan], [1.0, 1.0, 1.0]])
    array([[ 1.,  1.,  1.],
           [ 1.,  1., nan],
           [ 1.,  1.,  1.]])
    """
    values = _map(depth)
    return _finish(values, _by_strips(_middle, values, _radius("size", size)))


def switching_median(depth: ArrayLike, threshold: float, size: int = 3) -> DepthMap:
    """The window's median, but only at pixels that differ from their surroundings by more than the threshold.

    A pixel differs by the mean of its smaller half of absolute differences to its neighbours (rank-ordered absolute
    differences, ROAD), in units of the map: an edge has like neighbours on its own side and is left alone. With
    threshold 0 this is `median`, with an infinite one the identity.
    """
    values = _map(depth)
    _require_at_least_zero("the threshold", threshold)
    radius = _radius("size", size)
    suspect = _by_strips(_nearer_half, values, radius) > threshold
    return _finish(values, np.where(suspect, _by_strips(_middle, values, radius), values))


def tv_l2(depth: ArrayLike, weight: float) -> DepthMap:
    """Total variation with a squared data term (Rudin-Osher-Fatemi, Chambolle's algorithm).

    Minimises sum |gradient| + sum of squared changes / (2 weight): weight is in units of the map, 0 changes nothing.
    Holes take the value of the nearest known pixel meanwhile.
    """
    _require_at_least_zero("the weight", weight)
    if weight == 0:
        return _map(depth).copy()
    return _on_filled(depth, lambda f: denoise_tv_chambolle(f, weight=weight, eps=1e-5, max_num_iter=1000))


def tv_l1(depth: ArrayLike, weight: float, iterations: int = 300) -> DepthMap:
    """Total variation with an absolute data term, by Chambolle and Pock's primal-dual steps.

    Minimises sum |gradient| + weight * sum |change| over the known pixels. Both sums are in units of the map, so
    ``weight`` needs none: discs of less than about 2 / weight pixels in radius vanish, whatever their height. A weight
    of 4 or more changes nothing.
    """
    _require_at_least_zero("the weight", weight)
    return _on_filled(depth, lambda f: _total_variation_l1(f, weight * ~np.isnan(_map(depth)), iterations))


def nl_means(depth: ArrayLike, strength: float, patch: int = 3, distance: int = 3) -> DepthMap:
    """Non-local means (Buades): each pixel is the mean of pixels whose surroundings look alike.

    Surroundings that differ by ``strength``, root mean square in units of the map, count exp(-1); a pixel's own count
    as the most alike among the others. ``patch`` is the side of the surroundings and ``distance`` how far they are
    looked for, in pixels; the defaults did best on Middlebury 2005. Strength 0 changes nothing.

    Not scikit-image's: the windows of its fast mode lie half a pixel off their centre, so a flipped map gives another
    result; and a pixel's own weight of 1 holds on to impulses.
    """
    return _non_local(depth, strength, patch, distance, _weighted_mean)


def nl_means_median(depth: ArrayLike, strength: float, patch: int = 3, distance: int = 3) -> DepthMap:
    """Non-local means with a median: each pixel is the weighted median of those whose surroundings look alike.

    The weights are those of `nl_means`; impulses among the look-alikes then leave no trace.
    """
    return _non_local(depth, strength, patch, distance, _weighted_median)


def bilateral(depth: ArrayLike, strength: float, distance: float = 2.0) -> DepthMap:
    """The bilateral filter: a mean over near pixels of like value.

    Gaussian weights with deviation ``strength`` in value, in units of the map, and ``distance`` in space, in pixels.
    """
    values = _map(depth)
    _require_at_least_zero("the strength", strength)
    if not distance > 0:
        raise InputError(f"the distance is {distance!r}; it must be a positive number of pixels")
    if strength == 0:
        return values.copy()
    radius = math.ceil(3 * distance)
    total, weights = np.zeros(values.shape), np.zeros(values.shape)
    for (dy, dx), neighbour in _shifted(np.pad(values.astype(np.float64), radius, constant_values=np.nan), radius):
        change = neighbour - values
        near = math.exp(-(dy**2 + dx**2) / (2 * distance**2))
        weight = near * np.exp(-(np.where(np.isnan(change), np.inf, change / strength) ** 2) / 2)
        total += weight * np.where(np.isnan(change), 0, change)
        weights += weight
    return _finish(values, values + total / np.where(weights > 0, weights, 1))


def biharmonic(depth: ArrayLike) -> DepthMap:
    """Fill what is missing with the surface of least bending (biharmonic equation), within the range of the known."""
    values = _map(depth)
    missing = _missing_among_known(values)
    if not missing.any():
        return values.copy()
    return _finish(values, inpaint_biharmonic(_nearest_filled(values), missing), fills=True)


def linear(depth: ArrayLike) -> DepthMap:
    """Fill what is missing with flat triangles between known pixels (Delaunay), outside their hull with the nearest."""
    values = _map(depth)
    missing = _missing_among_known(values)
    filled = _nearest_filled(values)
    if not missing.any():
        return values.copy()
    if 1 in values.shape:
        at = np.arange(values.size)
        return np.interp(at, at[~missing.ravel()], values[~missing]).astype(values.dtype).reshape(values.shape)
    # The circle around a Delaunay triangle holds no known pixel. One that covers a missing pixel is so large that it
    # holds a neighbour of each of its corners, which therefore is missing: only pixels beside holes can be corners.
    near = np.asarray(binary_dilation(missing, np.ones((3, 3))), bool)
    beside = np.argwhere(near & ~missing)
    if not _on_one_line(beside):
        inside = LinearNDInterpolator(beside, filled[tuple(beside.T)])(np.argwhere(missing))
        filled[missing] = np.where(np.isnan(inside), filled[missing], inside)
    return _finish(values, filled, fills=True)


@dataclass(frozen=True)
class Competitor:
    """A method with the one parameter that matters, and the parameters worth trying."""

    restore: Callable[[DepthMap, float], DepthMap]
    grid: tuple[float, ...]
    in_units: bool = True
    """Whether the grid is in standard deviations of the map; otherwise its numbers are the parameters."""

    def parameters(self, depth: DepthMap) -> list[float]:
        """The grid in units of this map."""
        spread = float(np.nanstd(depth, dtype=np.float64)) if self.in_units else 1.0
        return [value * spread for value in self.grid]


def _steps(first: float, last: float, n: int) -> tuple[float, ...]:
    return tuple(float(value) for value in np.geomspace(first, last, n))


DENOISERS = {
    "median": Competitor(lambda depth, size: median(depth, int(size)), (1, 3, 5, 7), in_units=False),
    "switching median": Competitor(switching_median, (0.0, *_steps(0.005, 1.5, 23), math.inf)),
    "TV-L2": Competitor(tv_l2, (0.0, *_steps(0.002, 2.0, 25))),
    "TV-L1": Competitor(tv_l1, (*_steps(0.25, 3.6, 23), 4.0), in_units=False),
    "NL-means": Competitor(nl_means, (0.0, *_steps(0.003, 1.0, 21))),
    "NL-means, median": Competitor(nl_means_median, (0.0, *_steps(0.003, 1.0, 21))),
    "bilateral": Competitor(bilateral, (0.0, *_steps(0.01, 3.0, 21))),
}
"""Each grid reaches from doing nothing to doing far too much, in steps of a third or less."""

INPAINTERS: dict[str, Callable[[DepthMap], DepthMap]] = {"biharmonic": biharmonic, "linear": linear}


def wavelet_frame(patch_shape: tuple[int, int], wavelet: str = "bior4.4") -> Floats:
    """The synthesis atoms of the translation-invariant 7-9 wavelet transform on a patch: unit norm, one a row.

    At each level an atom of each of three orientations is centred at every pixel, and a scaling function of the last
    level. Atoms are cut at the patch's border, as a frame on the whole map would be by looking at a patch of it; to
    wrap them round would join opposite sides of patches that have nothing to do with each other. Atoms centred outside
    are left out: their remainders are nearly single pixels and would explain noise. The levels are those whose atoms
    keep 95 % of their energy inside the patch when they are centred in it: 3 in 16 x 16, and 2560 atoms.
    """
    if len(patch_shape) != 2 or min(patch_shape) < 4:
        raise InputError(f"a patch of shape {patch_shape} has no room for wavelets; take 4 x 4 or more")
    lows, highs = _levels(wavelet, min(patch_shape))
    pairs = [pair for low, high in zip(lows, highs, strict=True) for pair in ((low, high), (high, low), (high, high))]
    bands = [np.kron(_centred(a, patch_shape[0]), _centred(b, patch_shape[1])) for a, b in [*pairs, (lows[-1],) * 2]]
    atoms = np.concatenate(bands)
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    alike = np.triu(np.abs(atoms @ atoms.T) > 1 - 1e-9, 1).any(axis=0)
    return atoms[~alike]


def _levels(wavelet: str, side: int) -> tuple[list[Vector], list[Vector]]:
    """Scaling functions and wavelets of each level that fits into a side, odd in length and symmetric."""
    filters = pywt.Wavelet(wavelet)  # pyright: ignore[reportAttributeAccessIssue]
    low, high = (np.trim_zeros(np.asarray(taps)) for taps in (filters.rec_lo, filters.rec_hi))
    lows, highs = [], []
    scaling = np.ones(1)
    for level in range(64):
        wave, scaling = (np.convolve(scaling, _dilated(taps, 2**level)) for taps in (high, low))
        if level and min(_energy_inside(wave, side), _energy_inside(scaling, side)) < 0.95:
            break
        lows.append(scaling)
        highs.append(wave)
    return lows, highs


def _dilated(taps: Vector, step: int) -> Vector:
    spread = np.zeros((len(taps) - 1) * step + 1)
    spread[::step] = taps
    return spread


def _energy_inside(function: Vector, side: int) -> float:
    centre = len(function) // 2
    first = max(centre - side // 2, 0)
    return float((function[first : centre + (side + 1) // 2] ** 2).sum() / (function**2).sum())


def _centred(function: Vector, side: int) -> Floats:
    """The function centred at each of ``side`` places and cut at both ends, one a row."""
    padded = np.pad(function, side)
    middle = len(padded) // 2
    return np.stack([padded[middle - place : middle - place + side] for place in range(side)])


def _total_variation_l1(f: Floats, weight: Floats, iterations: int) -> Floats:
    """Chambolle-Pock: dual ascent on the gradient, then shrinkage of the change towards 0 at each pixel."""
    spread = float(f.std())
    if spread == 0:
        return f
    # The product of both steps may be at most 1 / 8 = 1 / |gradient|^2. Changes are in units of the map and the dual
    # has none, so their ratio carries the unit; 3 brings the energy of Middlebury maps lowest within 300 steps.
    ascent, descent = 3 / spread / math.sqrt(8), spread / 3 / math.sqrt(8)
    u, ahead = f.copy(), f.copy()
    p, q = np.zeros_like(f), np.zeros_like(f)
    for _ in range(iterations):
        p[:-1] += ascent * np.diff(ahead, axis=0)
        q[:, :-1] += ascent * np.diff(ahead, axis=1)
        length = np.maximum(1, np.hypot(p, q))
        p /= length
        q /= length
        down = u + descent * (p + q)
        down[1:] -= descent * p[:-1]
        down[:, 1:] -= descent * q[:, :-1]
        change = down - f
        new = f + np.sign(change) * np.maximum(np.abs(change) - descent * weight, 0)
        ahead = 2 * new - u
        u = new
    return u


def _non_local(
    depth: ArrayLike, strength: float, patch: int, distance: int, average: Callable[[Floats, Floats], Floats]
) -> DepthMap:
    """A weighted average of each pixel's look-alikes, some rows at a time."""
    values = _map(depth)
    _require_at_least_zero("the strength", strength)
    radius = _radius("patch", patch)
    if strength == 0:
        return values.copy()

    def strip(padded: Floats, margin: int) -> Floats:
        return average(*_look_alikes(padded, margin, strength, radius, distance))

    return _finish(values, _by_strips(strip, values, distance + radius, (2 * distance + 1) ** 2))


def _look_alikes(padded: Floats, margin: int, strength: float, radius: int, distance: int) -> tuple[Floats, Floats]:
    """Values and weights (height, width, n) of the search window's pixels; NaN has no value and no weight."""
    known = ~np.isnan(padded)
    values = np.where(known, padded, 0)
    inner, side = (slice(margin, -margin),) * 2, 2 * radius + 1
    stack, weights = [], []
    for (dy, dx), neighbour in _shifted(values, distance, margin):
        other_known, other = (np.roll(array, (-dy, -dx), (0, 1)) for array in (known, values))
        both = known & other_known
        squares, share = (
            uniform_filter(array, side, mode="constant")[inner]
            for array in (np.where(both, (values - other) ** 2, 0), both.astype(np.float64))
        )
        apart = np.maximum(squares, 0) / np.maximum(share, 0.5 / side**2)
        stack.append(neighbour)
        weights.append(np.where(other_known[inner] & ((dy, dx) != (0, 0)), np.exp(-apart / strength**2), 0))
    alike = np.stack(weights, axis=-1)
    most = alike.max(axis=-1)
    alike[..., len(weights) // 2] = np.where(known[inner], np.where(most > 0, most, 1), 0)
    return np.stack(stack, axis=-1), alike


def _weighted_mean(values: Floats, weights: Floats) -> Floats:
    """Along the last axis; 0 where nothing has any weight."""
    total = weights.sum(axis=-1)
    return (weights * values).sum(axis=-1) / np.where(total > 0, total, 1)


def _weighted_median(values: Floats, weights: Floats) -> Floats:
    """Along the last axis: the value at which half the weight is reached, the mean of two if it is met exactly."""
    order = np.argsort(values, axis=-1)
    ranked = np.take_along_axis(values, order, axis=-1)
    below = np.take_along_axis(weights, order, axis=-1).cumsum(axis=-1)
    half = below[..., -1:] / 2
    tie = 1e-12 * half
    last = values.shape[-1] - 1
    places = ((below < half - tie).sum(axis=-1), (below <= half + tie).sum(axis=-1))
    low, high = (np.take_along_axis(ranked, np.minimum(i, last)[..., None], axis=-1)[..., 0] for i in places)
    return _between(low, high)


def _between(low: Floats, high: Floats) -> Floats:
    return np.where(low == high, low, low / 2 + high / 2)


def _middle(padded: Floats, radius: int) -> Floats:
    """The median of the known values in each window, NaN where there is none."""
    ranked = np.sort(np.stack([window for _, window in _shifted(padded, radius)]), axis=0)
    count = (~np.isnan(ranked)).sum(axis=0)
    low, high = (np.take_along_axis(ranked, i[None], axis=0)[0] for i in (np.maximum(count - 1, 0) // 2, count // 2))
    return _between(low, high)


def _nearer_half(padded: Floats, radius: int) -> Floats:
    """The mean of the smaller half of absolute differences to the known neighbours; 0 where there is none."""
    windows = dict(_shifted(padded, radius))
    centre = windows.pop((0, 0))
    if not windows:
        return np.zeros_like(centre)
    ranked = np.sort(np.stack([np.abs(window - centre) for window in windows.values()]), axis=0)
    half = ((~np.isnan(ranked)).sum(axis=0) + 1) // 2
    total = np.nancumsum(ranked, axis=0)
    return np.where(
        half > 0, np.take_along_axis(total, np.maximum(half - 1, 0)[None], axis=0)[0] / np.maximum(half, 1), 0
    )


def _shifted(padded: Floats, radius: int, margin: int | None = None) -> Iterator[tuple[tuple[int, int], Floats]]:
    """The map as each neighbour within a radius sees it, without the margin that it was padded with."""
    margin = radius if margin is None else margin
    height, width = (side - 2 * margin for side in padded.shape)
    for dy in range(-radius, radius + 1):
        for dx in range(-radius, radius + 1):
            yield (dy, dx), padded[margin + dy : margin + dy + height, margin + dx : margin + dx + width]


def _by_strips(
    work: Callable[[Floats, int], Floats], values: DepthMap, margin: int, n_neighbours: int | None = None
) -> Floats:
    """Do some rows of a map at a time: ``work`` gets them with a margin around, NaN outside the map."""
    padded = np.pad(values.astype(np.float64), margin, constant_values=np.nan)
    n_neighbours = (2 * margin + 1) ** 2 if n_neighbours is None else n_neighbours
    rows = max(1, STRIP_VALUES // (n_neighbours * values.shape[1]))
    strips = (padded[top : min(top + rows, len(values)) + 2 * margin] for top in range(0, len(values), rows))
    return np.concatenate([work(strip, margin) for strip in strips])


def _on_filled(depth: ArrayLike, smooth: Callable[[Floats], Floats]) -> DepthMap:
    """Apply a filter that knows no NaN, on holes filled by their nearest known pixels; they are NaN again after."""
    values = _map(depth)
    if np.isnan(values).all():
        return values.copy()
    return _finish(values, smooth(_nearest_filled(values)))


def _nearest_filled(values: DepthMap) -> Floats:
    missing = np.isnan(values)
    nearest = np.asarray(distance_transform_edt(missing, return_distances=False, return_indices=True))
    return values[nearest[0], nearest[1]].astype(np.float64)


def _on_one_line(points: NDArray[np.int_]) -> bool:
    """Whether integer points (n, 2) are collinear; two points always are."""
    away = points - points[0]
    far = away[np.abs(away).sum(axis=1).argmax()]
    return not (away[:, 0] * far[1] - away[:, 1] * far[0]).any()


def _missing_among_known(values: DepthMap) -> NDArray[np.bool_]:
    missing = np.isnan(values)
    if missing.all():
        raise InputError("no pixel of the map is known; there is nothing to fill from")
    return missing


def _finish(values: DepthMap, result: Floats, *, fills: bool = False) -> DepthMap:
    """The result in the type that came; NaN where NaN came, or the known pixels untouched where holes are filled."""
    kept = np.where(np.isnan(values), result, values) if fills else np.where(np.isnan(values), np.nan, result)
    return kept.astype(values.dtype)


def _map(depth: ArrayLike) -> DepthMap:
    """A map as float32 if it came so, otherwise float64: integers keep their values."""
    values = np.asarray(depth)
    if values.ndim != 2 or values.size == 0 or values.dtype.kind not in "fiu":
        raise InputError(
            f"{values.dtype} of shape {values.shape} came; a map is (height, width) real numbers, NaN = missing"
        )
    values = values.astype(np.float32 if values.dtype == np.float32 else np.float64, copy=False)
    if np.isinf(values).any():
        raise InputError(f"{int(np.isinf(values).sum())} pixels are infinite; mark unknown pixels with NaN")
    return values


def _radius(what: str, side: int) -> int:
    if side < 1 or side % 2 == 0:
        raise InputError(f"{what} is {side!r}; it must be an odd number of pixels")
    return side // 2


def _require_at_least_zero(what: str, value: float) -> None:
    if not value >= 0:
        raise InputError(f"{what} is {value!r}; it must be zero or more")
