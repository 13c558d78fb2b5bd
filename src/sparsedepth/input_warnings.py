"""Warn of maps that can be restored but are probably not what they seem: codes taken for depths, mostly holes."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsedepth.vocabulary import Origin, Restoration, Unit

LARGEST_CODE = 65535
"""Largest number of 16 bits, which cameras and renderers write where they measure nothing."""
MAX_PIXELS = 1 << 20
"""Of a map with more pixels, evenly spread rows are looked at."""
SAMPLE_PIXELS = 4096
"""Pixels that show how values are distributed."""
NEAREST_RATIO = 0.1
"""Least 1 % quantile of the positive values over their median where zeros stand apart, and are hence a code."""
NEAR_CODE = 0.99
"""A code stands apart if fewer values than there are codes lie between this fraction of it and itself."""
REPEATED_SHARE = 0.2
"""Share of the valid pixels with one value, above which it is suspicious."""
MIN_OTHER_VALUES = 100
"""Fewest other distinct values of the sample: maps of few levels repeat every value, and are left alone."""
RUNNER_UP_RATIO = 0.1
"""Most pixels with the second most frequent value, over those with the first; many levels repeat, a code alone does."""
MAX_FILLED = 0.4
"""Share of filled pixels above which a result is mostly a guess."""

InvalidCodes = float | Sequence[float] | None


class InputWarning(UserWarning):
    """A map that was restored, but is probably not what it seems."""


def suspicious_values(depth_values: Any, unit: Unit = "", invalid: InvalidCodes = None) -> list[str]:
    """Find values of a map that are probably codes and not depths.

    Parameters
    ----------
    depth_values
        (height, width), as it was given; it may lie in a file, of which some rows are then read.
    unit
        Unit of the map; "" = unknown.
    invalid
        Values that mark missing pixels; None = 0 in integer maps. An empty list says that all values are depths.

    Returns
    -------
    Sentences: what was seen, why it is suspicious, and what to do.

    Examples
    --------
    >>> depth = np.random.default_rng(0).uniform(1.0, 2.0, (40, 40))
    >>> suspicious_values(depth)
    []
    >>> depth[:5] = 0.0
    >>> suspicious_values(depth)[0].split(";")[0]
    '12 % of the pixels are exactly 0, far below all others'
    """
    if invalid is not None and np.size(invalid) == 0:
        return []
    values, known = _looked_at(depth_values, invalid)
    if not known.any():
        return []
    codes = _codes(values, known, unit)
    return codes or _repeated(values, known)


def suspicious_result(origin: NDArray[np.integer[Any]]) -> list[str]:
    """Find that most of a restored map is a guess.

    Parameters
    ----------
    origin
        (height, width), the `Origin` of each pixel.

    Returns
    -------
    One sentence, or none.

    Examples
    --------
    >>> suspicious_result(np.full((4, 4), Origin.FILLED))[0].split(";")[0]
    '100 % of the pixels were filled: most of this map is a guess'
    """
    filled = float((_rows_of(origin) == Origin.FILLED).mean())
    if filled <= MAX_FILLED:
        return []
    return [
        f"{_share(filled, 1)} of the pixels were filled: most of this map is a guess; use its variance, or check that "
        "the values named in invalid= (--invalid) are right"
    ]


def with_warnings(result: Restoration, depth: Any, invalid: InvalidCodes, unit: Unit = "") -> Restoration:
    """Look for suspicious values of a map and of its result, emit an `InputWarning` for each, and record them.

    Parameters
    ----------
    result
        The restored map.
    depth
        The map as it was given, (height, width).
    invalid
        Values that mark missing pixels.
    unit
        Unit of the map; "" = unknown.

    Returns
    -------
    The result with its ``warnings``.
    """
    sentences = (*suspicious_values(depth, unit, invalid), *suspicious_result(result.origin))
    emit_warnings(sentences)
    return replace(result, warnings=sentences) if sentences else result


def emit_warnings(sentences: Iterable[str]) -> None:
    """Emit an `InputWarning` for each sentence, at the line that called the package."""
    for sentence in sentences:
        warnings.warn(sentence, InputWarning, stacklevel=_level_of_caller())


def _level_of_caller() -> int:
    """Return the stack level, as seen by the caller of this function, of the first frame outside the package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("sparsedepth"):
        frame, level = frame.f_back, level + 1
    return level


def _rows_of(array: Any) -> NDArray[Any]:
    """Return the array, or evenly spread rows of a large one."""
    every = -(-array.size // MAX_PIXELS)
    return array[:: min(every, array.shape[0])]


def _looked_at(depth_values: Any, invalid: InvalidCodes) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the values that are looked at, and which of them are valid."""
    given = depth_values if isinstance(depth_values, np.ndarray) else np.asarray(depth_values)
    rows = _rows_of(given)
    values = np.asarray(np.ma.getdata(rows))
    known = np.isfinite(values) & ~np.ma.getmaskarray(rows) if np.ma.isMaskedArray(rows) else np.isfinite(values)
    missing = ([0] if values.dtype.kind in "iu" else []) if invalid is None else np.atleast_1d(invalid).tolist()
    for code in missing:
        known &= values != code
    return values, known


def _codes(values: NDArray[Any], known: NDArray[np.bool_], unit: Unit) -> list[str]:
    """Find zeros and the largest number of 16 bits."""
    found = []
    zeros = int(((values == 0) & known).sum())
    if zeros and _stands_apart(_sample(values, known)):
        found.append(
            f"{_share(zeros, values.size)} of the pixels are exactly 0, far below all others; a sensor writes 0 where "
            "it measures nothing, and it was taken for a depth; name 0 and all other codes in invalid= (--invalid 0)"
        )
    if unit == "mm" or values.dtype.kind in "iu":
        largest = int(((values == LARGEST_CODE) & known).sum())
        if largest and largest > int(((values > NEAR_CODE * LARGEST_CODE) & (values < LARGEST_CODE) & known).sum()):
            found.append(
                f"{_share(largest, values.size)} of the pixels are {LARGEST_CODE}, the largest number of 16 bits; it "
                f"is a code for missing pixels and was taken for a depth; name 0 and {LARGEST_CODE} in invalid= "
                f"(--invalid 0 --invalid {LARGEST_CODE})"
            )
    return found


def _stands_apart(sample: NDArray[Any]) -> bool:
    """Return whether all values but zeros are far above zero; a ramp that begins at zero is no code."""
    above = sample[sample > 0]
    if len(above) == 0 or sample.min() < 0:
        return False
    return bool(np.quantile(above, 0.01) > NEAREST_RATIO * np.median(above))


def _repeated(values: NDArray[Any], known: NDArray[np.bool_]) -> list[str]:
    """Find one value that many pixels share where the others are hardly repeated."""
    sample = _sample(values, known)
    distinct, counts = np.unique(sample, return_counts=True)
    order = np.argsort(counts)
    first = order[-1]
    if counts[first] < REPEATED_SHARE * len(sample) or len(distinct) <= MIN_OTHER_VALUES:
        return []
    if counts[order[-2]] > RUNNER_UP_RATIO * counts[first]:
        return []
    value, share = distinct[first], float(counts[first] / len(sample))
    return [
        f"about {_share(share, 1)} of the valid pixels are {value:g}, and no other value is nearly as frequent; it is "
        f"probably a code, or the limit of the sensor, and was taken for a depth; name {value:g} and all other "
        f"codes in invalid= (--invalid), unless the scene is so"
    ]


def _sample(values: NDArray[Any], known: NDArray[np.bool_]) -> NDArray[Any]:
    """Return some valid values, in no order that the map has."""
    place = np.random.default_rng(0).integers(0, values.size, SAMPLE_PIXELS)
    sample = values[np.unravel_index(place, values.shape)]
    chosen = sample[known[np.unravel_index(place, values.shape)]]
    return chosen if len(chosen) else values[known][:SAMPLE_PIXELS]


def _share(count: float, of: int) -> str:
    percent = 100 * count / of
    return f"{percent:.0f} %" if percent >= 1 else f"{percent:.2g} %"
