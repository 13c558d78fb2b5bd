"""Warnings of pairs that can be matched but are probably not what they seem: not rectified, or a range too small."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from sparsedepth.stereo.ad_census import PRICE_STEPS, AdCensus, padded
from sparsedepth.stereo.team import at_once
from sparsedepth.vocabulary import DepthMap, Floats


@dataclass(frozen=True)
class WarningLimits:
    """When a pair is suspicious; found on Middlebury 2005 and 2006, 27 scenes as they are and made worse."""

    max_shift_rows: float = 0.25
    """Between the rows of both views; rectified scenes have up to 0.14, those shifted by half a row 0.46 or more."""
    max_tilt_rows: float = 0.45
    """Of the shift, between opposite borders; rectified scenes have up to 0.34, tilted by one row 0.46 or more."""
    max_share_at_end: float = 0.01
    """Of the matched pixels, at the end of the range. It is 0 where the range holds the scene, and 0.014 to 0.18 in
    most scenes where it ends at 90 % of it."""
    end_px: float = 0.75
    """From the end of the range."""
    max_filled: float = 0.55
    """Of all pixels; rectified scenes have up to 0.49, shifted by four rows 0.65 or more."""
    searched_rows: int = 4
    """Up and down."""
    looked_at_rows: int = 24
    """Of the left view, evenly spaced."""


LIMITS = WarningLimits()
BEYOND = 2 * PRICE_STEPS
"""The cost of what is not searched: the largest there is."""


def pair_warnings(
    cost: AdCensus,
    disparity: DepthMap,
    unmatched: NDArray[np.bool_],
    max_disparity: int,
    limits: WarningLimits = LIMITS,
    threads: int = 1,
) -> tuple[str, ...]:
    """Find what is suspicious about a pair.

    Parameters
    ----------
    cost
        The cost of the pair.
    disparity
        (height, width), in pixels, as the solver found it.
    unmatched
        (height, width), the pixels that do not match both ways.
    max_disparity
        End of the range, in pixels.
    limits
        When something is suspicious.
    threads
        That work at once.

    Returns
    -------
    Sentences: what was seen, what it means, and what to do.
    """
    return (
        *_rectification(*row_shift(cost, max_disparity, limits, threads), limits),
        *_range(disparity, ~unmatched, max_disparity, limits),
        *_filled(float(unmatched.mean()), limits),
    )


def _rectification(shift: float, tilt: float, limits: WarningLimits) -> list[str]:
    if abs(shift) <= limits.max_shift_rows and abs(tilt) <= limits.max_tilt_rows:
        return []
    least = "at least " if abs(shift) > limits.searched_rows - 0.5 else ""
    return [
        f"the views match best if the right one is moved by {least}{-shift:+.1f} rows, and by {abs(tilt):.1f} rows "
        "more at one side than at the other: they are probably not rectified; rectify them with the calibration of the "
        "cameras"
    ]


def _range(disparity: DepthMap, matched: NDArray[np.bool_], max_disparity: int, limits: WarningLimits) -> list[str]:
    at_end = np.count_nonzero((disparity >= max_disparity - limits.end_px) & matched)
    share = at_end / max(np.count_nonzero(matched), 1)
    if share <= limits.max_share_at_end:
        return []
    return [
        f"{100 * share:.0f} % of the matched pixels have the largest disparity that was searched, {max_disparity} px; "
        "near surfaces are probably cut off; raise max_disparity (--max-disparity)"
    ]


def _filled(share: float, limits: WarningLimits) -> list[str]:
    if share <= limits.max_filled:
        return []
    return [
        f"{100 * share:.0f} % of the pixels did not match both ways and were filled: most of this map is a guess; "
        "check that the views are rectified, of one moment and in focus, and that the range is large enough"
    ]


def row_shift(
    cost: AdCensus, max_disparity: int, limits: WarningLimits = LIMITS, threads: int = 1
) -> tuple[float, float]:
    """Estimate by how many rows the right view is too low: at the centre, and how much more at one side than the other.

    Rows of the left view are matched with rows of the right view above and below, each pixel at its best disparity.
    In each ninth of the picture, the offset of least mean cost is found. A plane is fitted to these offsets. The
    solver's map does not serve: where the views are shifted, it has the disparities that fit the wrong rows.
    """
    height, _, width = cost.left.shape
    reach = limits.searched_rows
    rows = np.unique(np.linspace(reach, height - 1 - reach, limits.looked_at_rows).astype(np.intp))
    if height <= 2 * reach or len(rows) < 3 or width < 3:
        return 0.0, 0.0
    tasks = [partial(_least_costs, cost, rows, down, max_disparity) for down in range(-reach, reach + 1)]
    costs = np.stack(at_once(tasks, threads))
    found, places = [], []
    for y in np.array_split(np.arange(len(rows)), 3):
        for x in np.array_split(np.arange(width), 3):
            found.append(_least(costs[:, y[0] : y[-1] + 1, x[0] : x[-1] + 1].mean(axis=(1, 2))))
            places.append((1.0, rows[y].mean() / height - 0.5, x.mean() / width - 0.5))
    offsets, weight = np.array(found).T
    fitted = np.linalg.lstsq(weight[:, None] * np.array(places), weight * (offsets - reach), rcond=None)
    shift, down, across = fitted[0].tolist()
    return shift, max(down, across, key=abs)


def _least_costs(cost: AdCensus, rows: NDArray[np.intp], down: int, max_disparity: int) -> Floats:
    """Compute the least cost over all disparities of some rows with those of the right view that are further down."""
    n = max_disparity + 1
    paired = cost.paired(rows, rows + down)
    volume = np.empty((*paired.words.shape, padded(n)), np.int16)
    paired.in_whole_numbers(n, PRICE_STEPS, BEYOND)(slice(None), volume)
    return volume.min(axis=2).astype(np.float32)


def _least(costs: Floats) -> tuple[float, float]:
    """Find the place of the least of some numbers, refined by two lines of opposite slope, and that slope."""
    best = int(costs.argmin())
    if not 0 < best < len(costs) - 1:
        return float(best), float(np.abs(np.diff(costs[max(best - 1, 0) : best + 2])[0]))
    below, here, above = costs[best - 1 : best + 2].tolist()
    slope = max(below, above) - here
    return best + (below - above) / (2 * slope) if slope > 0 else float(best), slope
