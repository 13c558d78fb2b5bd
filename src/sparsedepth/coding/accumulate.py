"""Sums over a batch of patches that an update of the atoms needs, equal to the bit wherever they are computed.

A batch is cut into shards of a fixed size. The sums of two neighbouring shards are added, then those of two
neighbouring pairs, and so on. The shape of this tree depends on the batch alone. A worker that holds some shards adds
up all whole branches that they make. Merging the rest later follows the same tree, and so gives the same bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sparsedepth.coding.infer import SparseCode, infer
from sparsedepth.coding.noise import NoiseModel
from sparsedepth.dictionary import Dictionary
from sparsedepth.parallel import map_in_threads
from sparsedepth.patches import Batch
from sparsedepth.vocabulary import Codes, Floats, Patches, Vector

SHARD_PATCHES = 128
"""Patches in a shard: the leaves of the tree of sums."""

Branch = tuple[int, int]
"""Level and number: branch (l, n) holds the shards from n * 2**l to (n + 1) * 2**l."""


@dataclass(frozen=True, eq=False)
class Statistics:
    """What an update of the atoms needs to know of some patches; the statistics of more patches are the sum."""

    count: int
    products: Floats
    """codes'codes, (atoms, atoms)."""
    descent: Floats
    """codes'(residual / variance), (atoms, pixels): minus the gradient of Eq. 7, summed over the patches."""
    least_variance: float
    usage: Vector
    """The absolute values of the codes, for each atom."""
    energy: float
    """Eq. 6."""
    excess: Vector
    """(count,): the energy of each patch beyond its noise floor."""

    @classmethod
    def of(cls, patches: Patches, atoms: Floats, code: SparseCode, noise: NoiseModel) -> Statistics:
        return cls(
            len(patches),
            code.codes.T @ code.codes,
            code.codes.T @ _pull(patches, atoms, code.codes, code.variance),
            float(code.variance.min()),
            np.abs(code.codes).sum(axis=0),
            float(code.energy.sum()),
            code.energy - noise.cost(noise.floor_variance(patches)),
        )

    def __add__(self, other: Statistics) -> Statistics:
        return Statistics(
            self.count + other.count,
            self.products + other.products,
            self.descent + other.descent,
            min(self.least_variance, other.least_variance),
            self.usage + other.usage,
            self.energy + other.energy,
            np.concatenate([self.excess, other.excess]),
        )


PartialSums = Mapping[Branch, Statistics]


class Accumulate(Protocol):
    """A function that codes a batch and accumulates its statistics; ``rounds=None`` codes until convergence."""

    def __call__(
        self,
        batch: Batch,
        atoms: Floats,
        noise: NoiseModel,
        sparsity: float,
        *,
        rounds: int | None,
        threads: int | None,
    ) -> PartialSums: ...


def accumulate(
    batch: Batch,
    atoms: Floats,
    noise: NoiseModel,
    sparsity: float,
    *,
    rounds: int | None,
    threads: int | None,
    first: int = 0,
) -> PartialSums:
    """Code a batch and accumulate its statistics.

    The patches may be the shards of a larger batch from number ``first`` on. ``noise`` is the model without the
    sensor's variance, which comes with the batch.
    """
    noise = noise if batch.variance is None else noise.plus(batch.variance)
    effort = {} if rounds is None else {"tolerance": 0.0, "max_rounds": rounds}
    code = infer(batch.patches, atoms, noise, sparsity, threads=threads, **effort)

    def partial(start: int) -> Statistics:
        rows = slice(start, start + SHARD_PATCHES)
        shard_code = SparseCode(*(values[rows] for values in vars(code).values()))
        return Statistics.of(batch.patches[rows], atoms, shard_code, noise.take(rows))

    shards = map_in_threads(partial, range(0, len(batch.patches), SHARD_PATCHES), 1)
    return merge({(0, first + number): each for number, each in enumerate(shards)})


def merge(sums: PartialSums) -> PartialSums:
    """Add partial sums of neighbouring branches until as few as possible are left."""
    left, whole = dict(sums), {}
    while left:
        level, number = min(left)
        even, odd = (level, number & ~1), (level, number | 1)
        if even in left and odd in left:
            left[level + 1, number >> 1] = left.pop(even) + left.pop(odd)
        else:
            whole[level, number] = left.pop((level, number))
    return whole


def total(sums: PartialSums) -> Statistics:
    """Add the partial sums of a whole batch."""
    left = merge(sums)
    first, *others = sorted(left, key=lambda branch: branch[1] << branch[0])
    found = left[first]
    for branch in others:
        found = found + left[branch]
    return found


def dictionary_gradient(patches: Patches, dictionary: Dictionary | Floats, codes: Codes, variance: Floats) -> Floats:
    """Compute the gradient of the mean energy with respect to the atoms (Eq. 7), for fixed codes and variances.

    Returns
    -------
    ndarray of float, shape (atoms, pixels)
    """
    atoms = dictionary.atoms if isinstance(dictionary, Dictionary) else np.asarray(dictionary)
    return -(codes.T @ _pull(patches, atoms, codes, variance)) / len(patches)


def _pull(patches: Patches, atoms: Floats, codes: Codes, variance: Floats) -> Floats:
    """Divide the residual of each pixel by its variance; 0 where a pixel is missing."""
    return np.where(np.isfinite(variance) & ~np.isnan(patches), (patches - codes @ atoms) / variance, 0)
