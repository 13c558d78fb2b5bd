"""Confidences of a phone's depth camera, as variances: ARKit (iPhone, iPad), by Record3D, Stray Scanner or Polycam."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsedepth.files.reading import read_array
from sparsedepth.vocabulary import DepthImage, Floats, InputError, as_array

LEVELS = ({0, 1, 2}, {0, 54, 255}, {0, 127, 255}, {0, 128, 255})
"""Numbers that stand for low, medium and high confidence in the files of different programs."""
RELATIVE_STD = (np.inf, 0.03, 0.01)
"""Standard deviation over depth for low, medium and high confidence: low is unknown. ARKit publishes no numbers; these
are assumptions, in the order of the centimetre at a metre or two that users of these cameras report."""


def read_confidence(path: str | Path) -> NDArray[np.uint8]:
    """Read a map of confidences.

    Parameters
    ----------
    path
        A picture or array of three levels, as ARKit's programs write them.

    Returns
    -------
    (height, width) uint8: 0 low, 1 medium, 2 high.

    Examples
    --------
    >>> import tempfile
    >>> from sparsedepth.files import write_array
    >>> path = Path(tempfile.mkdtemp()) / "confidence.png"
    >>> write_array(path, np.array([[0, 54, 255]], np.uint8))
    >>> read_confidence(path)
    array([[0, 1, 2]], dtype=uint8)
    """
    numbers = read_array(path)
    found = set(np.unique(numbers).tolist()) if numbers.size else set()
    codes = next((sorted(levels) for levels in LEVELS if found <= levels), None)
    if codes is None:
        came = ", ".join(f"{number:g}" for number in sorted(found)[:5])
        raise InputError(f"{path} holds {len(found)} different numbers ({came}, ...); confidences are 0, 1 and 2")
    return np.searchsorted(codes, numbers).astype(np.uint8)


def confidence_variance(
    depth: DepthImage | ArrayLike, confidence: ArrayLike, relative_std: Sequence[float] = RELATIVE_STD
) -> Floats:
    """Return the variance of each pixel that its confidence stands for.

    Parameters
    ----------
    depth
        (height, width), NaN = unknown; or a `DepthImage`.
    confidence
        (height, width), levels 0, 1, ... from low to high, as `read_confidence` gives them.
    relative_std
        Standard deviation over depth for each level; inf = as good as missing. The defaults are assumptions.

    Returns
    -------
    (height, width), in squared units of the map, for ``variance=`` of `denoise` and `inpaint`.

    Examples
    --------
    >>> confidence_variance([[1.0, 2.0, 2.0]], [[2, 2, 0]])
    array([[0.0001, 0.0004,    inf]])
    """
    values = depth.values if isinstance(depth, DepthImage) else as_array("the map", depth)
    levels = np.asarray(as_array("the confidence", confidence))
    known = np.abs(np.ma.filled(values.astype(np.float64), np.nan))
    if levels.shape != known.shape:
        raise InputError(f"the confidence has shape {levels.shape} and the map {known.shape}; give one for each pixel")
    if levels.dtype.kind not in "iu" or levels.min() < 0 or levels.max() >= len(relative_std):
        raise InputError(f"the confidence must be whole numbers from 0 to {len(relative_std) - 1}; see read_confidence")
    std = np.asarray(relative_std, float)[levels] * np.where(known > 0, known, np.inf)
    return np.where(np.isfinite(std), std, np.inf) ** 2
