"""How suspicious a pixel is: a small network looks at the signs of noise, and says how they go together.

Noise is far from what the codes say, far from its neighbours and outside of their range, as large as the map's noise
usually is, and alone: texture comes in flocks. No rule of thumb weighs these signs as well as examples do, so a network
of two hidden layers learned it once, from other maps whose noise is known (benchmarks/suspicion.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load
from scipy.ndimage import uniform_filter

from sparsedepth.restore.door import Part
from sparsedepth.restore.evidence import RESOLUTION, Evidence, resolution
from sparsedepth.restore.law import Law
from sparsedepth.vocabulary import DepthMap, Floats, Vector

REACH = 3
"""How far away neighbours are looked for, in pixels."""
NEAREST = {1: (0, 1, 3), 2: (0, 1, 2, 4, 7), 3: (0, 3, 10)}
"""Which of the nearest neighbours, in depth, are asked for their distance, within each reach."""
FLOCKS, FLOCK = (5, 9, 21), 1.0
"""The sides of the squares in which others are counted whose score is beyond this."""
LARGEST = 4.0
"""Deviations of a sign beyond which it is not heeded."""
BLOCK = 2**16
"""Pixels whose neighbours are looked at together: a matter of memory only."""
TOO_LARGE, IMPOSSIBLE = 3.0, 8.0
"""Sizes of the map's noise beyond which noise is hardly ever, and the most that this takes from the odds."""


@dataclass(frozen=True, eq=False)
class Network:
    """The logarithm of the odds that a pixel is noisy, from its signs."""

    mean: Floats
    deviation: Floats
    layers: tuple[tuple[Floats, Floats], ...]
    """The weights and the offsets of each."""

    @classmethod
    def of(cls, stored: dict[str, Floats]) -> Network:
        layers = tuple((stored[f"weights{i}"], stored[f"offsets{i}"]) for i in range(len(stored) // 2 - 1))
        return cls(stored["mean"], stored["deviation"], layers)

    def __call__(self, signs: Floats) -> Vector:
        return self.layer_by_layer(self.scaled(signs))[-1][:, 0]

    def scaled(self, signs: Floats) -> Floats:
        return np.clip((signs - self.mean) / self.deviation, -LARGEST, LARGEST)

    def layer_by_layer(self, scaled: Floats) -> list[Floats]:
        """What each layer makes of scaled signs, which come first."""
        seen = [scaled]
        for weights, offsets in self.layers[:-1]:
            seen.append(np.tanh(seen[-1] @ weights + offsets))
        weights, offsets = self.layers[-1]
        return [*seen, seen[-1] @ weights + offsets]


@cache
def network() -> Network:
    return Network.of(load((resources.files("sparsedepth") / "restore" / "suspicion.safetensors").read_bytes()))


def odds(part: Part, evidence: Evidence, law: Law, quantum: float, where: NDArray[np.bool_]) -> Vector:
    """The logarithm of the odds that pixels of a map are noisy whose noise follows a law."""
    if not where.any():
        return np.empty(0)
    signs = signs_of(part, evidence, law, quantum, where)
    told = [network()(signs[begin : begin + BLOCK]) for begin in range(0, len(signs), BLOCK)]
    return np.concatenate(told) + too_large(evidence.at(where), law)


def too_large(evidence: Evidence, law: Law) -> Vector:
    """What the odds lose where noise would be larger than the map's noise ever is.

    A few outliers clear of everything may be larger than all others; amid texture and on a rim they are things.
    """
    lost = np.clip((TOO_LARGE**2 - np.square(evidence.residual / law.size)) / 2, -IMPOSSIBLE, 0)
    return np.where(evidence.rim | (evidence.texture > RESOLUTION), lost, 0)


def signs_of(part: Part, evidence: Evidence, law: Law, quantum: float, where: NDArray[np.bool_]) -> Floats:
    """The signs of some pixels of a map or of a stack of maps, whose noise follows a law (pixels, signs).

    Lengths are told in units of what a difference has to exceed to mean anything; the residual in sizes of noise, too.
    """
    depth, known = part.depth, np.isfinite(part.depth)
    size, least = np.abs(evidence.residual[where]), np.broadcast_to(resolution(part, quantum), depth.shape)[where]
    columns = [
        _log(size / law.size),
        np.full(len(size), np.log(max(law.share, 1e-4))),
        np.full(len(size), np.log(law.size)),
        _log(evidence.score[where]),
        _log(size / least),
        _log(np.sqrt(evidence.spread[where]) / least),
        _log(evidence.texture[where] / least),
        _mean(known, 3)[where],
        _mean(known, 5)[where],
        *_flocks(known, evidence.score > FLOCK, where),
        _log(_mean(np.minimum(np.abs(evidence.residual), 1), FLOCKS[-1])[where] / least),
        *_neighbours(depth, size, least, where),
    ]
    return np.stack(columns, axis=1, dtype=np.float32)


def _flocks(known: NDArray[np.bool_], suspect: NDArray[np.bool_], where: NDArray[np.bool_]) -> list[Vector]:
    """The share of suspects among the known pixels about each, itself not among them."""

    def others(of: NDArray[np.bool_], side: int) -> Vector:
        return _mean(of, side)[where] * side**2 - of[where]

    return [np.clip(others(suspect, side) / np.maximum(others(known, side), 1), 0, 1) for side in FLOCKS]


def _neighbours(depth: DepthMap, size: Vector, least: Vector, where: NDArray[np.bool_]) -> list[Vector]:
    """How far each pixel is from its neighbours: from the nearest in depth, the middle one, and the range of all."""
    value, around = depth[where], _Around.of(depth, where)
    blocks = [slice(begin, begin + BLOCK) for begin in range(0, len(value), BLOCK)]
    told = [_among(around(block), value[block], size[block], least[block]) for block in blocks]
    return [np.concatenate(column) for column in zip(*told, strict=True)]


def _among(around: Floats, value: Vector, size: Vector, least: Vector) -> list[Vector]:
    """The same of some pixels with the neighbours ``around``."""
    reach = _reaches()
    distance = np.abs(around - value[:, None])
    distance[np.isnan(distance)] = np.inf
    told = []
    for far, ranks in NEAREST.items():
        nearest = np.sort(distance[:, reach <= far], axis=1)
        told += [_log(nearest[:, rank] / least) for rank in ranks]
    close, wide = (np.sort(around[:, reach <= far], axis=1) for far in (1, 2))
    told += [_log(np.abs(value - _at_share(rising, 0.5)) / least) for rising in (close, wide)]
    low, high = _at_share(wide, 0), _at_share(wide, 1)
    beyond = np.maximum(value - high, low - value) / least
    alike = (distance[:, reach <= 2] < size[:, None] / 2).sum(axis=1)
    return [*told, np.sign(beyond) * np.log1p(np.abs(beyond)), _log((high - low) / least), alike]


def _at_share(rising: Floats, share: float) -> Vector:
    """Of the known numbers of each row, which come first, the one beyond a share of them; 0 where there is none."""
    last = np.isfinite(rising).sum(axis=1) - 1
    at = np.maximum(np.rint(last * share).astype(np.intp), 0)
    return np.nan_to_num(np.take_along_axis(rising, at[:, None], axis=1)[:, 0])


@cache
def _reaches() -> NDArray[np.intp]:
    """How far away each neighbour is that `_Around` tells."""
    rows, columns = np.indices((2 * REACH + 1, 2 * REACH + 1)) - REACH
    reach = np.maximum(np.abs(rows), np.abs(columns)).ravel()
    return reach[reach > 0]


@dataclass(frozen=True, eq=False)
class _Around:
    """The neighbours of a block of pixels (pixels, neighbours); NaN where unknown or beyond the border."""

    framed: Vector
    at: NDArray[np.intp]
    offsets: NDArray[np.intp]

    @classmethod
    def of(cls, depth: DepthMap, where: NDArray[np.bool_]) -> _Around:
        framed = np.pad(depth, [(0, 0)] * (depth.ndim - 2) + [(REACH, REACH)] * 2, constant_values=np.nan)
        *which, row, column = np.nonzero(where)
        at = np.ravel_multi_index((*which, row + REACH, column + REACH), framed.shape)
        rows, columns = np.indices((2 * REACH + 1, 2 * REACH + 1)) - REACH
        offsets = (rows * framed.shape[-1] + columns).ravel()
        return cls(framed.ravel(), at, offsets[offsets != 0])

    def __call__(self, block: slice) -> Floats:
        return self.framed[self.at[block, None] + self.offsets]


def _mean(values: NDArray[np.bool_] | Floats, side: int) -> Floats:
    return uniform_filter(values.astype(np.float32), side, mode="constant", axes=(-2, -1))


def _log(values: Vector) -> Vector:
    return np.log(np.clip(values, 1e-3, 1e4))
