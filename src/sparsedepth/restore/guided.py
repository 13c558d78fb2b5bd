"""Filling holes with a picture of the same view: depth flows between pixels that look alike.

A hole beside an edge of depth cannot be told from the depths around it: it may belong to either side. The picture often
can. The guided surface is a membrane through the known pixels that is pulled between neighbours by how much they look
alike: it bends where colours are even and tears where they change. It knows nothing of slopes; so where most pixels are
missing, how far to follow it is learned from known pixels that are hidden. So is the variance: where holes are few, the
hidden pixels are those around the holes, and those under the holes turned about the map's centre.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation
from scipy.sparse import csr_matrix, diags
from scipy.sparse.linalg import cg

from sparsedepth.restore.simulation import Levels
from sparsedepth.vocabulary import DepthMap, Floats, InputError, Origin, Restoration

LIKE = 8.0
"""The difference of colours, of 255, at which neighbours count a third of what they do if they look the same."""
ANYWAY = 3e-4
"""What neighbours count for however they look, so that every hole hangs on something."""
DIAGONAL = 0.5
"""What diagonal neighbours count for beside straight ones."""
RIM = 2
"""Pixels around holes that are hidden to learn from."""
MANY_HOLES, DRAWN = 0.3, 0.2
"""Beyond this share of holes hardly anything has no hole beside it: then a share of the known pixels is hidden."""
LEAST = 0.01
"""No variance is below this part of the mean squared error of hidden pixels."""
ROUNDS, TOLERANCE = 400, 1e-5
NEIGHBOURS = ((0, 1, 1.0), (1, 0, 1.0), (1, 1, DIAGONAL), (1, -1, DIAGONAL))


def picture(guide: Any, shape: tuple[int, ...]) -> Floats:
    """A grey or colour picture of the map's size as (height, width, channels) of 0..255."""
    array = np.asarray(guide)
    if array.ndim not in (2, 3) or array.shape[:2] != tuple(shape) or array.dtype.kind not in "fiu":
        raise InputError(
            f"the guide is {array.dtype} of shape {array.shape} but the map is {shape[0]} x {shape[1]}; give a grey or "
            "colour picture of the same view and size"
        )
    values = array.reshape(*shape, -1).astype(np.float64)
    if not np.isfinite(values).all():
        raise InputError("the guide holds NaN or infinities; every pixel of a picture must have a colour")
    white = 255.0 if array.dtype == np.uint8 else float(np.abs(values).max())
    return values * (255 / white if white > 0 else 1)


def refill(result: Restoration, guide: Floats, fill: Callable[[DepthMap], Restoration]) -> None:
    """Fill the holes of a restored map again, in place, with a picture; what was refused stays refused.

    ``fill`` fills a map without a picture.
    """
    holes, refused = result.origin == Origin.FILLED, result.origin == Origin.REFUSED
    known = ~holes & ~refused
    if not holes.any() or not known.any():
        return
    weights, many = alike(guide), bool(holes.mean() > MANY_HOLES)
    hidden = known & _hidden(holes, many)
    told = np.where(known & ~hidden, result.depth, np.nan)
    plain = fill(told)
    hidden &= plain.origin == Origin.FILLED
    theirs = membrane(told, weights, plain.depth)
    ours = membrane(np.where(known, result.depth, np.nan), weights, result.depth)
    trust = _trust((theirs - plain.depth)[hidden], (result.depth - plain.depth)[hidden]) if many else 1.0
    doubt = _doubt(ours, result)
    if hidden.any():
        error = np.square(plain.depth + trust * (theirs - plain.depth) - result.depth)[hidden]
        doubt = np.maximum(Levels.of_means(_doubt(theirs, plain)[hidden], error)(doubt), LEAST * error.mean())
    result.variance[holes] = np.maximum(doubt, np.finfo(np.float32).tiny)[holes]
    result.depth[holes] += (trust * (ours - result.depth))[holes]


def _doubt(guided: Floats, plain: Restoration) -> Floats:
    """The variance without a picture, and the squared difference of the two answers."""
    return np.where(np.isfinite(plain.variance), plain.variance, 0) + np.square(guided - plain.depth)


def _trust(step: Floats, wanted: Floats) -> float:
    """How far to go from the plain answer to the guided one, by least squares."""
    energy = float(step @ step)
    return float(np.clip(step @ wanted / energy, 0, 1)) if energy > 0 else 1.0


def _hidden(holes: NDArray[np.bool_], many: bool) -> NDArray[np.bool_]:
    if many:
        return np.random.default_rng(0).random(holes.shape) < DRAWN
    rim = np.asarray(binary_dilation(holes, np.ones((3, 3)), iterations=RIM), bool)
    return rim | holes[::-1, ::-1]


def alike(guide: Floats) -> csr_matrix:
    """How much each pixel's neighbours count for it, by their colours: symmetric, one row a pixel."""
    height, width = guide.shape[:2]
    index = np.arange(height * width).reshape(height, width)
    ends, weights = [], []
    for down, right, near in NEIGHBOURS:
        first = (slice(0, height - down), slice(max(-right, 0), width - max(right, 0)))
        second = (slice(down, height), slice(max(right, 0), width - max(-right, 0)))
        apart = np.sqrt(np.square(guide[first] - guide[second]).sum(axis=2))
        ends.append((index[first].ravel(), index[second].ravel()))
        weights.append((near * (np.exp(-apart / LIKE) + ANYWAY)).ravel())
    one, other = (np.concatenate(part) for part in zip(*ends, strict=True))
    weight = np.concatenate(weights)
    both = (np.concatenate([weight, weight]), (np.concatenate([one, other]), np.concatenate([other, one])))
    return csr_matrix(both, shape=(index.size, index.size))


def membrane(depth: DepthMap, weights: csr_matrix, start: DepthMap) -> Floats:
    """Through the known pixels, of least weighted sum of squared differences between neighbours, from a start.

    Where the start is unknown too, it begins at the mean; known pixels keep their values.
    """
    flat = np.asarray(depth, np.float64).ravel()
    unknown = np.flatnonzero(np.isnan(flat))
    known = np.flatnonzero(~np.isnan(flat))
    if not len(unknown) or not len(known):
        return np.asarray(depth, np.float64).copy()
    level = float(flat[known].mean())
    rows = weights[unknown]
    degree = np.asarray(rows.sum(axis=1)).ravel()
    inner = diags(degree) - rows[:, unknown]
    first = np.nan_to_num(np.asarray(start, np.float64).ravel()[unknown] - level)
    found, _ = cg(
        inner, rows[:, known] @ (flat[known] - level), x0=first, rtol=TOLERANCE, maxiter=ROUNDS, M=diags(1 / degree)
    )
    filled = flat.copy()
    filled[unknown] = found + level
    return filled.reshape(depth.shape)
