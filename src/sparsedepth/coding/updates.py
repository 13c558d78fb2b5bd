"""Update rules of dictionary learning: how the atoms move after each batch (Eq. 7)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsedepth.coding.accumulate import Statistics
from sparsedepth.vocabulary import Floats


@dataclass(frozen=True)
class Gradient:
    """The paper's update rule: a step against the gradient of Eq. 7, averaged over the batch.

    The step is ``rate / (1 + step / decay)`` over the largest curvature of the energy with respect to the atoms. So
    one rate suits all patch sizes, noise levels and units. Beyond 2 the energy of *fixed* codes would rise; codes that
    follow the atoms allow a little more.
    """

    rate: float = 2.5
    decay: float = 1000.0
    steady: bool = False
    """Whether the curvature is the largest of all batches so far, rather than the batch's own."""

    def start(self, atoms: Floats) -> dict[str, Floats]:
        return {"largest": np.zeros(1)} if self.steady else {}

    def move(self, atoms: Floats, memory: dict[str, Floats], batch: Statistics, step: int) -> Floats:
        largest = largest_eigenvalue(batch.products / batch.count)
        if self.steady:
            np.maximum(memory["largest"], largest, out=memory["largest"])
            largest = float(memory["largest"][0])
        curvature = largest / batch.least_variance
        if curvature == 0:
            return atoms
        rate = self.rate / (1 + step / self.decay) / curvature
        return atoms + atoms.dtype.type(rate / batch.count) * batch.descent


def largest_eigenvalue(matrix: Floats, iterations: int = 16) -> float:
    """Estimate the largest eigenvalue of a non-negative matrix by the power method, a few per cent too low."""
    vector = np.ones(len(matrix), matrix.dtype)
    value = 0.0
    for _ in range(iterations):
        vector = matrix @ vector
        value = float(np.linalg.norm(vector))
        if value == 0:
            break
        vector /= value
    return value


@dataclass(frozen=True)
class BlockCoordinate:
    """An update rule that minimises a quadratic upper bound of the energy, atom by atom; faster while noise is large.

    The weights are w = smallest variance / variance <= 1. The weighted misfit of a patch is at most the plain misfit
    to the target T = w * residual + reconstruction. So codes'codes and codes'T suffice, averaged over past batches
    (``averaging``). codes'T is the smallest variance times the descent, plus codes'codes times the atoms. ``damping``
    (in mean curvatures) holds rarely used atoms where they are.
    """

    averaging: float = 0.9
    damping: float = 0.05
    warm_up: int = 4

    def start(self, atoms: Floats) -> dict[str, Floats]:
        curvature = np.zeros((len(atoms), len(atoms)), atoms.dtype)
        return {"curvature": curvature, "pull": np.zeros_like(atoms), "seen": np.zeros(1, atoms.dtype)}

    def move(self, atoms: Floats, memory: dict[str, Floats], batch: Statistics, step: int) -> Floats:
        pull = batch.products @ atoms + atoms.dtype.type(batch.least_variance) * batch.descent
        seen = memory["seen"]
        seen += 1
        fresh = max(1 - self.averaging, 1 / float(seen[0]))
        for name, value in (("curvature", batch.products), ("pull", pull)):
            memory[name] *= 1 - fresh
            memory[name] += value * atoms.dtype.type(fresh / batch.count)
        if seen[0] <= self.warm_up:
            return atoms
        curvature, pull = memory["curvature"].copy(), memory["pull"].copy()
        damping = self.damping * np.trace(curvature) / len(atoms)
        curvature[np.diag_indices_from(curvature)] += damping
        return _coordinate_pass(atoms.copy(), curvature, pull + damping * atoms)


def _coordinate_pass(atoms: Floats, curvature: Floats, pull: Floats, block: int = 64) -> Floats:
    """Make one Gauss-Seidel pass over the atoms, each projected to the unit sphere, in blocks for large products."""
    for first in range(0, len(atoms), block):
        some = slice(first, min(first + block, len(atoms)))
        descent = pull[some] - curvature[some] @ atoms
        for row, atom in enumerate(range(some.start, some.stop)):
            moved = atoms[atom] + descent[row] / curvature[atom, atom]
            norm = np.linalg.norm(moved)
            if norm > 0:
                moved /= norm
                descent -= np.outer(curvature[some, atom], moved - atoms[atom])
                atoms[atom] = moved
    return atoms


Update = Gradient | BlockCoordinate
