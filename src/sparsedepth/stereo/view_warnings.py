"""Warnings of pairs that can be matched but are probably not what they seem: not rectified, or a range too small."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from sparsedepth.kernels import stereo_costs
from sparsedepth.stereo.ad_census import AdCensus
from sparsedepth.stereo.rows import at_once
from sparsedepth.vocabulary import DepthMap, Floats


@dataclass(frozen=True)
class WarningLimits:
    """When a pair is suspicious; found on eight scenes of Middlebury 2005 and 2006, as they are and made worse."""

    max_shift_rows: float = 0.15
    """Between the rows of both views; rectified scenes have up to 0.04, those shifted by half a row 0.19 or more."""
    max_tilt_rows: float = 0.4
    """Of the shift, between opposite borders; rectified scenes have up to 0.11, rotated by 0.3 degrees 0.69 or more."""
    max_share_at_end: float = 0.01
    """Of the matched pixels, at the end of the range; 0 where the range holds the scene, 0.014 to 0.18 in most scenes
    where it ends at 90 % of it."""
    end_px: float = 0.75
    """From the end of the range."""
    max_filled: float = 0.55
    """Of all pixels; rectified scenes have up to 0.49, shifted by four rows 0.65 or more."""
    searched_rows: int = 3
    """Up and down."""
    row_step: int = 4
    """Between the rows that are looked at."""
    min_pixels: int = 50
    """Of a ninth of the picture, to be looked at."""


LIMITS = WarningLimits()


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
        *_rectification(*row_shift(cost, disparity, unmatched, limits, threads), limits),
        *_range(disparity[~unmatched], max_disparity, limits),
        *_filled(float(unmatched.mean()), limits),
    )


def _rectification(shift: float, tilt: float, limits: WarningLimits) -> list[str]:
    if abs(shift) <= limits.max_shift_rows and abs(tilt) <= limits.max_tilt_rows:
        return []
    return [
        f"the views match best if the right one is moved by {-shift:+.1f} rows, and by {abs(tilt):.1f} rows more at "
        "one side than at the other: they are probably not rectified; rectify them with the calibration of the cameras"
    ]


def _range(matched: Floats, max_disparity: int, limits: WarningLimits) -> list[str]:
    share = float((matched >= max_disparity - limits.end_px).mean()) if matched.size else 0.0
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
    cost: AdCensus,
    disparity: DepthMap,
    unmatched: NDArray[np.bool_],
    limits: WarningLimits = LIMITS,
    threads: int = 1,
) -> tuple[float, float]:
    """Estimate by how many rows the right view is too low: at the centre, and how much more at one side than the other.

    In each ninth of the picture, the mean cost of the matches is compared over rows above and below; a plane is fitted
    to the offsets of least cost.
    """
    height, width = disparity.shape
    reach = limits.searched_rows
    rows = np.arange(reach, height - reach, limits.row_step)
    if len(rows) < 3:
        return 0.0, 0.0
    offsets_down = range(-reach, reach + 1)
    costs = np.stack(at_once([partial(_costs, cost, disparity, rows, down) for down in offsets_down], threads))
    valid, offsets, places = ~unmatched[rows], [], []
    for y in np.array_split(np.arange(len(rows)), 3):
        for x in np.array_split(np.arange(width), 3):
            chosen = valid[np.ix_(y, x)]
            if chosen.sum() >= limits.min_pixels:
                offsets.append(_least(costs[:, y[0] : y[-1] + 1, x[0] : x[-1] + 1][:, chosen].mean(axis=1)) - reach)
                places.append((1.0, y.mean() / len(rows) - 0.5, x.mean() / width - 0.5))
    if len(offsets) < 4:
        return 0.0, 0.0
    shift, down, across = np.linalg.lstsq(np.array(places), np.array(offsets), rcond=None)[0].tolist()
    return shift, max(down, across, key=abs)


def _costs(cost: AdCensus, disparity: DepthMap, rows: NDArray[np.intp], down: int) -> Floats:
    """Compute the costs of some rows with those of the right view that are further down."""
    n_channels, width = cost.left.shape[1:]
    found = np.empty((len(rows), width), np.float32)
    views = cost.left[rows], cost.right[rows + down], cost.words[rows], cost.other_words[rows + down]
    given = np.ascontiguousarray(disparity[rows], np.float32)
    prices = cost.colour_price, cost.census_price
    stereo_costs.ad_census_at(len(rows), width, n_channels, given, *views, *prices, found)
    return found


def _least(costs: Floats) -> float:
    """Find the place of the least of some numbers, refined by a parabola."""
    best = int(costs.argmin())
    if not 0 < best < len(costs) - 1:
        return float(best)
    below, here, above = costs[best - 1 : best + 2].tolist()
    bend = below - 2 * here + above
    return best + (below - above) / (2 * bend) if bend > 0 else float(best)
