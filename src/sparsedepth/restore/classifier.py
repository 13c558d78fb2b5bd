"""How suspicious a pixel is: a small network looks at the signs of noise, and says how they go together.

Noise is far from what the codes say, far from its neighbours and outside of their range, as large as the map's noise
usually is, and alone: texture comes in flocks. No rule of thumb weighs these signs as well as examples do, so a network
of two hidden layers learned it once, from other maps whose noise is known (training/outlier_classifier.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, reduce
from importlib import resources

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load
from scipy.ndimage import uniform_filter

from sparsedepth.coding.matmul import row_stable_matmul
from sparsedepth.restore.noise_model import Law
from sparsedepth.restore.scores import RESOLUTION, Evidence, resolution
from sparsedepth.restore.tiling import Part
from sparsedepth.vocabulary import DepthMap, Floats, Vector

REACH = 3
"""How far away neighbours are looked for, in pixels."""
NEAREST = {1: (0, 1, 3), 2: (0, 1, 2, 4, 7), 3: (0, 3, 10)}
"""Which of the nearest neighbours, in depth, are asked for their distance, within each reach."""
FAR = (-9, -6, -3, 0, 3, 6, 9)
"""The rows and columns about a pixel of those further away that are asked, too: things come in crowds."""
FAR_RANKS = (0, 3)
"""Which of them, in order of their distance in depth."""
FLOCKS, FLOCK = (5, 9, 21), 1.0
"""The sides of the squares in which others are counted whose score is beyond this."""
FRAME = max(FLOCKS) // 2
LARGEST = 4.0
"""Deviations of a sign beyond which it is not heeded."""
BLOCK = 2**16
"""Pixels whose neighbours are looked at together: a matter of memory only."""
ALIKE = 0.7
"""What four pixels differ by, at most, in residuals of one of them, if they are one thing."""
TOO_LARGE, IMPOSSIBLE = 3.0, 8.0
"""Sizes of the map's noise beyond which noise is hardly ever, and the most that a veto takes from the odds."""


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
        return self.layer_by_layer(self.scaled(signs), row_stable_matmul)[-1][:, 0]

    def scaled(self, signs: Floats) -> Floats:
        return np.clip((signs - self.mean) / self.deviation, -LARGEST, LARGEST)

    def layer_by_layer(self, scaled: Floats, times: Callable[[Floats, Floats], Floats] = np.matmul) -> list[Floats]:
        """What each layer makes of scaled signs, which come first."""
        seen = [scaled]
        for weights, offsets in self.layers[:-1]:
            seen.append(np.tanh(times(seen[-1], weights) + offsets))
        weights, offsets = self.layers[-1]
        return [*seen, times(seen[-1], weights) + offsets]


@cache
def network() -> Network:
    return Network.of(load((resources.files("sparsedepth") / "models" / "outlier_classifier.safetensors").read_bytes()))


def odds(part: Part, evidence: Evidence, law: Law, quantum: float, where: NDArray[np.bool_]) -> Vector:
    """The logarithm of the odds that pixels of a map are noisy whose noise follows a law."""
    if not where.any():
        return np.empty(0)
    signs = signs_of(part, evidence, law, quantum, where)
    told = [network()(signs[block]) for block in _blocks(len(signs))]
    return np.concatenate(told) + vetoes(part, evidence, law, quantum, where)


def vetoes(part: Part, evidence: Evidence, law: Law, quantum: float, where: NDArray[np.bool_]) -> Vector:
    """What the odds of some pixels lose whatever the network says."""
    return np.where(in_squares(part, evidence, quantum)[where], -IMPOSSIBLE, too_large(evidence.at(where), law))


def in_squares(part: Part, evidence: Evidence, quantum: float) -> NDArray[np.bool_]:
    """Whether a pixel makes a square with three others that are alike: noise does not, the corners of things do."""
    frame = [(0, 0)] * (part.depth.ndim - 2) + [(1, 1)] * 2
    depth = np.pad(part.depth, frame, constant_values=np.nan)
    four = [depth[..., down : down - 1 or None, right : right - 1 or None] for down in (0, 1) for right in (0, 1)]
    apart = np.nan_to_num(reduce(np.maximum, four) - reduce(np.minimum, four), nan=np.inf)
    least = reduce(np.minimum, (apart[..., a : a - 1 or None, b : b - 1 or None] for a in (0, 1) for b in (0, 1)))
    return least <= np.maximum(resolution(part, quantum), ALIKE * np.abs(evidence.residual))


def too_large(evidence: Evidence, law: Law) -> Vector:
    """What the odds lose where noise would be larger than the map's noise ever is.

    A few outliers clear of everything may be larger than all others; amid texture and on a rim they are things.
    """
    lost = np.clip((TOO_LARGE**2 - np.square(evidence.residual / law.size)) / 2, -IMPOSSIBLE, 0)
    return np.where(_is_clear(evidence), 0, lost)


def _is_clear(evidence: Evidence) -> NDArray[np.bool_]:
    """Whether a pixel lies neither amid texture nor on a rim: what is alone there is noise on any map."""
    return ~evidence.rim & (evidence.texture <= RESOLUTION)


def signs_of(part: Part, evidence: Evidence, law: Law, quantum: float, where: NDArray[np.bool_]) -> Floats:
    """The signs of some pixels of a map or of a stack of maps, whose noise follows a law (pixels, signs).

    Lengths are told in units of what a difference has to exceed to mean anything; the residual in sizes of noise, too.
    """
    depth, known = part.depth, np.isfinite(part.depth)
    held, suspects = _Sums.of(known, where), _Sums.of(evidence.score > FLOCK, where)
    size, least = np.abs(evidence.residual[where]), np.broadcast_to(resolution(part, quantum), depth.shape)[where]
    columns = [
        _log(size / law.size),
        np.full(len(size), np.log(max(law.share, 1e-4))),
        np.full(len(size), np.log(law.size)),
        _log(evidence.score[where]),
        _log(size / least),
        _log(np.sqrt(evidence.spread[where]) / least),
        _log(evidence.texture[where] / least),
        *(held.within(side) / side**2 for side in (3, 5)),
        *(np.minimum(suspects.about(side) / np.maximum(held.about(side), 1), 1) for side in FLOCKS),
        _log(_mean(np.minimum(np.abs(evidence.residual), 1), FLOCKS[-1])[where] / least),
        *_neighbours(depth, size, least, where),
        *_sides(evidence, law, suspects, where),
        *_far(depth, least, where),
    ]
    return np.stack(columns, axis=1, dtype=np.float32)


def _sides(evidence: Evidence, law: Law, suspects: _Sums, where: NDArray[np.bool_]) -> list[Vector]:
    """How many more suspects lie on the same side of what the codes say than on the other: nearby, and in all.

    What lies clear is not asked about all: outliers may lie on one side, too, or seem to by luck.
    """
    side = np.sign(evidence.residual)
    lean = _Sums.of(np.where(evidence.score > FLOCK, side, 0).astype(np.int8), where).about(FLOCKS[-1])
    in_all = np.where(_is_clear(evidence), 0, law.lean)
    return [side[where] * lean / (suspects.about(FLOCKS[-1]) + 1), (side * in_all)[where]]


def _far(depth: DepthMap, least: Vector, where: NDArray[np.bool_]) -> list[Vector]:
    """The distance in depth to the nearest of those further away."""
    value, around = depth[where], _Around.of(depth, where, _far_offsets())
    nearest = np.empty((len(value), len(FAR_RANKS)), value.dtype)
    for block in _blocks(len(value)):
        distance = np.abs(around(block) - value[block, None])
        distance[np.isnan(distance)] = np.inf
        nearest[block] = np.partition(distance, FAR_RANKS, axis=1)[:, FAR_RANKS]
    return [_log(nearest[:, i] / least) for i in range(len(FAR_RANKS))]


def _neighbours(depth: DepthMap, size: Vector, least: Vector, where: NDArray[np.bool_]) -> list[Vector]:
    """How far each pixel is from its neighbours: from the nearest in depth, the middle one, and the range of all."""
    value, around = depth[where], _Around.of(depth, where, _near_offsets())
    told = [_among(around(block), value[block], size[block], least[block]) for block in _blocks(len(value))]
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


def _blocks(n_pixels: int) -> list[slice]:
    return [slice(begin, begin + BLOCK) for begin in range(0, max(n_pixels, 1), BLOCK)]


@cache
def _near_offsets() -> NDArray[np.intp]:
    """The rows and columns of the neighbours within `REACH` (two, neighbours)."""
    square = np.indices((2 * REACH + 1, 2 * REACH + 1)).reshape(2, -1) - REACH
    return square[:, np.abs(square).max(axis=0) > 0]


@cache
def _far_offsets() -> NDArray[np.intp]:
    """Those beyond it that are asked."""
    grid = np.stack(np.meshgrid(FAR, FAR, indexing="ij")).reshape(2, -1)
    return grid[:, np.abs(grid).max(axis=0) > REACH]


@cache
def _reaches() -> NDArray[np.intp]:
    """How far away each of the near neighbours is."""
    return np.abs(_near_offsets()).max(axis=0)


@dataclass(frozen=True, eq=False)
class _Around:
    """The neighbours of a block of pixels (pixels, neighbours); NaN where unknown or beyond the border."""

    framed: Vector
    at: NDArray[np.intp]
    offsets: NDArray[np.intp]

    @classmethod
    def of(cls, depth: DepthMap, where: NDArray[np.bool_], offsets: NDArray[np.intp]) -> _Around:
        reach = int(np.abs(offsets).max())
        framed = np.pad(depth, [(0, 0)] * (depth.ndim - 2) + [(reach, reach)] * 2, constant_values=np.nan)
        *which, row, column = np.nonzero(where)
        at = np.ravel_multi_index((*which, row + reach, column + reach), framed.shape)
        return cls(framed.ravel(), at, offsets[0] * framed.shape[-1] + offsets[1])

    def __call__(self, block: slice) -> Floats:
        return self.framed[self.at[block, None] + self.offsets]


@dataclass(frozen=True, eq=False)
class _Sums:
    """Of small integers in squares about some pixels of a map or of a stack of maps; beyond the border is nothing."""

    table: NDArray[np.int32]
    """The sums of all above and to the left."""
    at: tuple[NDArray[np.intp], ...]
    """The pixels, in the table."""
    own: NDArray[np.int32]

    @classmethod
    def of(cls, values: NDArray[np.bool_ | np.int8], where: NDArray[np.bool_]) -> _Sums:
        frame = [(0, 0)] * (values.ndim - 2) + [(FRAME + 1, FRAME)] * 2
        table = np.pad(values, frame).cumsum(axis=-1, dtype=np.int32)
        np.cumsum(table, axis=-2, out=table)
        *which, row, column = np.nonzero(where)
        return cls(table, (*which, row + FRAME, column + FRAME), values[where].astype(np.int32))

    def within(self, side: int) -> Vector:
        """The sums in squares of an odd side."""
        before, behind = -(side // 2), side // 2 + 1
        *which, row, column = self.at
        low, high = (
            self.table[*which, row + down, column + behind] - self.table[*which, row + down, column + before]
            for down in (before, behind)
        )
        return (high - low).astype(np.float64)

    def about(self, side: int) -> Vector:
        """The same without the pixel itself."""
        return self.within(side) - self.own


def _mean(values: Floats, side: int) -> Floats:
    return uniform_filter(values.astype(np.float32), side, mode="constant", axes=(-2, -1))


def _log(values: Vector) -> Vector:
    return np.log(np.clip(values, 1e-3, 1e4))
