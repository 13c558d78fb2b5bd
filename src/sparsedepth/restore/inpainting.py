"""Fill holes: by surfaces through the valid pixels, by codes that start from them, and by a picture of the same view.

A hole gives a patch little to hold on to. The thin plate is a fair first guess everywhere, and the robust plate often a
better one. The codes then sharpen it, with the guess counting as a measurement of small weight. Held-out pixels show
how far the result errs.

A hole at a depth edge may belong to either side; a picture of the same view often decides. The guided surface is a
membrane through the valid pixels: neighbours of similar colour pull at each other. It ignores slopes, so where most
pixels are missing, held-out pixels decide how far to follow it. They also calibrate its variance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation, find_objects, label

from sparsedepth.coding.aggregate import PatchCoder, average_patches
from sparsedepth.coding.noise import Stationary
from sparsedepth.isotonic import IsotonicCurve
from sparsedepth.missing import holes_containing_patch
from sparsedepth.parallel import map_in_threads
from sparsedepth.patches import Window
from sparsedepth.restore.noise_model import Simulation
from sparsedepth.restore.settings import GuideSettings, Settings, VarianceSettings
from sparsedepth.restore.variance_filled import (
    ScatteredVariance,
    clustered_variance,
    extrapolate_variance,
    holes_are_clustered,
)
from sparsedepth.surfaces import colour_affinity, interpolate, membrane
from sparsedepth.tiling import centre_and_scale
from sparsedepth.vocabulary import DepthMap, Floats, Origin, Restoration, Vector


def blend_weight(step: Vector, wanted: Vector) -> float:
    """Return the least-squares step length in [0, 1]."""
    energy = float(step @ step)
    return float(np.clip(step @ wanted / energy, 0, 1)) if energy > 0 else 1.0


def fill_holes(
    depth: DepthMap,
    coder: PatchCoder,
    settings: Settings,
    threads: int,
    skip: NDArray[np.bool_] | None = None,
    window: Window | None = None,
) -> Floats:
    """Fill the missing pixels of a map of unit standard deviation; those to ``skip`` get a coarse guess."""
    valid, chosen = np.isfinite(depth), settings.inpainting
    floor = settings.scores.difference_floor
    plate, robust = interpolate(depth, skip, settings.surfaces)
    robust[~valid] = plate[~valid] + _shrink_small(robust[~valid] - plate[~valid], floor)
    if valid.all() or not valid.any() or coder.unit is None or not (coder.overlapping and chosen.rounds):
        return robust
    stride = min(coder.stride + 1, min(coder.dictionary.patch_shape) // 2)
    quiet = replace(
        coder,
        noise=Stationary(1.0),
        sparsity=chosen.sparsity,
        stride=max(stride, 1),
        max_rounds=chosen.rounds,
        core=settings.scores.core_weight,
    )
    guess_variance = coder.unit**2 * (1 / chosen.guess_weight - 1)
    variance = np.where(valid, chosen.measured_variance, guess_variance).astype(np.float32)
    wanted = ~valid if skip is None else ~valid & ~skip
    average = average_patches(robust.astype(np.float32), quiet, variance, only=wanted, window=window, threads=threads)
    change = _shrink_small(average.mean - robust, floor)
    return robust + np.where(valid | (average.weight == 0), 0, change)


def _shrink_small(step: Floats, floor: float) -> Floats:
    """Shrink steps below the floor to zero, so that level areas stay level."""
    squared = np.square(step)
    return step * squared / (squared + floor**2)


@dataclass(frozen=True, eq=False)
class HeldOutFills:
    """Parts of a corrected map whose held-out pixels were filled; arrays are (parts, height, width)."""

    filled: Floats
    truth: Floats
    """Values of the corrected map."""
    missing: NDArray[np.bool_]
    held_out: NDArray[np.bool_]


def fill_held_out(
    value: Floats, simulation: Simulation, coder: PatchCoder, settings: Settings, threads: int
) -> HeldOutFills:
    """Hold out valid pixels of parts of a corrected map, and fill them."""
    truth = simulation.sample(value)
    held_out = simulation.held_out & np.isfinite(truth)
    shown = np.where(held_out, np.nan, truth)
    parts = map_in_threads(lambda part: fill_holes(part, coder, settings, 1), shown, threads)
    return HeldOutFills(np.stack(list(parts)), truth, np.isnan(shown), held_out)


FilledVariance = Callable[[Floats, NDArray[np.bool_]], Floats]
"""(filled map, missing pixels) -> squared error of the missing pixels."""


def fit_filled_variance(
    value: Floats, simulation: Simulation, coder: PatchCoder, settings: Settings, threads: int
) -> FilledVariance:
    """Return how far filled pixels of a corrected map err; if holes are scattered, held-out pixels decide."""
    holes, chosen = np.isnan(value), settings.variance_filled
    if holes_are_clustered(holes, holes_containing_patch(holes, coder.dictionary.patch_shape), chosen):
        return partial(clustered_variance, settings=chosen)
    known = fill_held_out(value, simulation, coder, settings, threads)
    squared = np.square(known.filled - known.truth)
    return ScatteredVariance.fit(known.filled, known.missing, known.held_out, squared, chosen)


def fill_large_holes(result: Restoration, settings: Settings) -> None:
    """Fill every refused pixel of a restored map by the robust plate, in place; the variance grows inwards."""
    refused = np.asarray(result.origin == Origin.REFUSED)
    if not refused.any() or refused.all():
        return
    margin, chosen = settings.inpainting.large_hole_margin_px, settings.variance_filled
    thinning = max(1, result.depth.size // settings.inpainting.statistics_pixels)
    centre, scale = centre_and_scale(result.depth[np.isfinite(result.depth)][::thinning].astype(np.float64))
    holes: Any = label(refused, np.ones((3, 3)))[0]  # pyright: ignore[reportIndexIssue]
    for number, place in enumerate(find_objects(holes), start=1):
        wider = tuple(slice(max(side.start - margin, 0), side.stop + margin) for side in place)
        mine, origin = holes[wider] == number, result.origin[wider]
        filled = origin == Origin.FILLED
        missing = filled | (origin == Origin.REFUSED)
        depth = (result.depth[wider].astype(np.float64) - centre) / scale
        surface = interpolate(depth, settings=settings.surfaces).robust
        result.depth[wider][mine] = surface[mine] * scale + centre
        variance = result.variance[wider]
        known = np.where(filled, variance, 0) / scale**2
        variance[mine] = (extrapolate_variance(surface, missing, known, chosen) * scale**2)[mine]
        origin[mine] = Origin.FILLED


def guided_inpaint(
    result: Restoration,
    guide: Floats,
    fill_plain: Callable[[DepthMap], Restoration],
    settings: GuideSettings,
    curve: VarianceSettings,
) -> None:
    """Fill the holes of a restored map again, in place, by a picture; refused pixels stay refused.

    ``fill_plain`` fills a map without a picture.
    """
    holes, refused = result.origin == Origin.FILLED, result.origin == Origin.REFUSED
    valid = ~holes & ~refused
    if not holes.any() or not valid.any():
        return
    affinity, many = colour_affinity(guide, settings.membrane), bool(holes.mean() > settings.many_holes_fraction)
    held_out = valid & _hold_out(holes, many, settings)
    along_steps = valid & ~held_out & _along_steps(result.depth, settings) & (not many)
    shown = np.where(valid & ~held_out & ~along_steps, result.depth, np.nan)
    plain = fill_plain(shown)
    held_out, along_steps = (part & (plain.origin == Origin.FILLED) for part in (held_out, along_steps))
    theirs = membrane(shown, affinity, plain.depth, settings.membrane)
    ours = membrane(np.where(valid, result.depth, np.nan), affinity, result.depth, settings.membrane)
    judged = held_out | along_steps
    step, wanted = (theirs - plain.depth)[judged], (result.depth - plain.depth)[judged]
    clear = bool(np.square(step - wanted).sum() < settings.clear_ratio * np.square(wanted).sum())
    weight = 1.0 if clear and not many else blend_weight(step, wanted)
    variance = _disagreement(ours, result)
    if held_out.any():
        error = np.square(plain.depth + weight * (theirs - plain.depth) - result.depth)[held_out]
        calibrated = IsotonicCurve.fit(
            _disagreement(theirs, plain)[held_out], error, curve.min_per_bin, curve.max_bins
        )(variance)
        variance = np.maximum(calibrated, settings.min_variance_ratio * error.mean())
    result.variance[holes] = np.maximum(variance, np.finfo(np.float32).tiny)[holes]
    result.depth[holes] += (weight * (ours - result.depth))[holes]


def _along_steps(depth: DepthMap, settings: GuideSettings) -> NDArray[np.bool_]:
    """Mark pixels along steps: a step between valid pixels shows how far a picture is shifted, a hole hides it."""
    known = np.where(np.isfinite(depth), depth, np.nan)
    limit = settings.step_ratio * float(np.nanstd(known))
    step = np.zeros(depth.shape, bool)
    step[:, 1:] |= np.abs(np.diff(known, axis=1)) > limit
    step[1:] |= np.abs(np.diff(known, axis=0)) > limit
    return np.asarray(binary_dilation(step, np.ones((3, 3)), iterations=settings.step_ring_px), bool)


def _disagreement(guided: Floats, plain: Restoration) -> Floats:
    """Return the variance without a picture plus the squared difference of the two fills."""
    return np.where(np.isfinite(plain.variance), plain.variance, 0) + np.square(guided - plain.depth)


def _hold_out(holes: NDArray[np.bool_], many: bool, settings: GuideSettings) -> NDArray[np.bool_]:
    """Choose pixels around the holes and under the holes turned about the centre; at random if holes are many."""
    if many:
        return np.random.default_rng(0).random(holes.shape) < settings.held_out_fraction
    ring = np.asarray(binary_dilation(holes, np.ones((3, 3)), iterations=settings.held_out_ring_px), bool)
    return ring | holes[::-1, ::-1]
