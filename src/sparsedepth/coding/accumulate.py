"""What a batch of patches tells of the atoms that code it: sums over patches, in one order wherever they are taken.

A batch is cut into shards of a fixed size. The sums of two neighbouring shards are added, then those of two
neighbouring pairs, and so on: a tree whose shape depends on the batch alone. Whoever holds some shards adds up whatever
whole branches they make, and the rest is added elsewhere, in the same order and so to the same bits.
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

SHARD = 128
"""Patches in a shard."""

Branch = tuple[int, int]
"""Level and number: branch (l, n) holds the shards from n * 2**l to (n + 1) * 2**l."""


@dataclass(frozen=True, eq=False)
class Statistics:
    """All that a move of the atoms needs to know of some patches; those of more patches are their sum."""

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


Branches = Mapping[Branch, Statistics]


class Examine(Protocol):
    """Codes a batch and says what it tells; ``rounds=None`` = until the energy is at rest."""

    def __call__(
        self,
        batch: Batch,
        atoms: Floats,
        noise: NoiseModel,
        sparsity: float,
        *,
        rounds: int | None,
        threads: int | None,
    ) -> Branches: ...


def examine(
    batch: Batch,
    atoms: Floats,
    noise: NoiseModel,
    sparsity: float,
    *,
    rounds: int | None,
    threads: int | None,
    first: int = 0,
) -> Branches:
    """Code a batch, or the shards of one from number ``first`` on; the noise model is that without a sensor."""
    noise = noise if batch.variance is None else noise.plus(batch.variance)
    effort = {} if rounds is None else {"tolerance": 0.0, "max_rounds": rounds}
    code = infer(batch.patches, atoms, noise, sparsity, threads=threads, **effort)

    def told(start: int) -> Statistics:
        rows = slice(start, start + SHARD)
        mine = SparseCode(*(values[rows] for values in vars(code).values()))
        return Statistics.of(batch.patches[rows], atoms, mine, noise.take(rows))

    shards = map_in_threads(told, range(0, len(batch.patches), SHARD), 1)
    return joined({(0, first + number): each for number, each in enumerate(shards)})


def joined(branches: Branches) -> Branches:
    """The same sums in as few branches as they make."""
    left, whole = dict(branches), {}
    while left:
        level, number = min(left)
        even, odd = (level, number & ~1), (level, number | 1)
        if even in left and odd in left:
            left[level + 1, number >> 1] = left.pop(even) + left.pop(odd)
        else:
            whole[level, number] = left.pop((level, number))
    return whole


def total(branches: Branches) -> Statistics:
    """The sum over a whole batch."""
    left = joined(branches)
    first, *others = sorted(left, key=lambda branch: branch[1] << branch[0])
    found = left[first]
    for branch in others:
        found = found + left[branch]
    return found


def dictionary_gradient(patches: Patches, dictionary: Dictionary | Floats, codes: Codes, variance: Floats) -> Floats:
    """Eq. 7: the gradient of the mean energy with respect to the atoms (atoms, pixels), codes and variances fixed."""
    atoms = dictionary.atoms if isinstance(dictionary, Dictionary) else np.asarray(dictionary)
    return -(codes.T @ _pull(patches, atoms, codes, variance)) / len(patches)


def _pull(patches: Patches, atoms: Floats, codes: Codes, variance: Floats) -> Floats:
    """The residual of each patch over its variance; 0 where nothing was measured."""
    return np.where(np.isfinite(variance) & ~np.isnan(patches), (patches - codes @ atoms) / variance, 0)
