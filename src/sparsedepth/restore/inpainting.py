"""Filling holes: surfaces through what is known, then codes that trust them a little.

A hole gives a patch nothing to hold on to: with many holes its codes are those of very few pixels. The surface that
bends least is a fair first guess everywhere, and one that is folded often a better one; the codes then sharpen it, with
the guess counting as a measurement of small weight. How far to follow the folded surface, and then the codes, is
learned from known pixels that were hidden. Where patches hardly overlap, codes take more time than they are worth.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sparsedepth.coding.noise import Stationary
from sparsedepth.restore.aggregate import Coding, vote
from sparsedepth.restore.scores import CORE, RESOLUTION
from sparsedepth.restore.surfaces import surfaces
from sparsedepth.restore.tiling import Window
from sparsedepth.vocabulary import DepthMap, Floats, Vector

SPARSITY = 1.0
"""What a unit of code costs, in noise floors."""
ROUNDS = 24
GUESS_WEIGHT = 0.02
"""What a guessed pixel counts for beside a measured one."""
UNSEEN = 20
"""Pixels that count for following folds and codes all the way, whatever hidden ones say."""
MEASURED = 1e-8
"""The variance that measured pixels have beside the noise floor."""


@dataclass(frozen=True, eq=False)
class Filled:
    """Three answers at every unknown pixel."""

    smooth: Floats
    folded: Floats
    coded: Floats
    unknown: NDArray[np.bool_]

    def blend(self, trust: Trust) -> Floats:
        surface = self.smooth + trust.folds * (self.folded - self.smooth)
        return surface + trust.codes * (self.coded - surface)


@dataclass(frozen=True)
class Trust:
    """How far to go from the smooth surface to the folded one, and from there to the codes."""

    folds: float
    codes: float


def fill(
    depth: DepthMap,
    coding: Coding,
    threads: int,
    hopeless: NDArray[np.bool_] | None = None,
    window: Window | None = None,
) -> Filled:
    """Fill the unknown pixels of a map of unit deviation; known ones keep their values.

    ``hopeless`` pixels get a coarse guess that nobody will see, so that no time is spent on wide holes.
    """
    known = np.isfinite(depth)
    smooth, folded = surfaces(depth, hopeless)
    folded = smooth + _heeded(folded - smooth)
    if known.all() or not known.any() or coding.unit is None or not coding.overlapping:
        return Filled(smooth, folded, folded, ~known)
    apart = min(coding.stride + 1, min(coding.dictionary.patch_shape) // 2)
    rounds = min(ROUNDS, coding.max_rounds)
    quiet = replace(
        coding, noise=Stationary(1.0), sparsity=SPARSITY, stride=max(apart, 1), max_rounds=rounds, core=CORE
    )
    variance = np.where(known, MEASURED, coding.unit**2 * (1 / GUESS_WEIGHT - 1)).astype(np.float32)
    wanted = ~known if hopeless is None else ~known & ~hopeless
    votes = vote(folded.astype(np.float32), quiet, variance, only=wanted, window=window, threads=threads)
    coded = folded + np.where(known | (votes.count == 0), 0, _heeded(votes.mean - folded))
    return Filled(smooth, folded, coded, ~known)


def trust(filled: Filled, truth: Floats, hidden: NDArray[np.bool_]) -> Trust:
    """What serves hidden pixels best."""
    smooth, folded, coded, true = (values[hidden] for values in (filled.smooth, filled.folded, filled.coded, truth))
    folds = _how_far(folded - smooth, true - smooth)
    surface = smooth + folds * (folded - smooth)
    return Trust(folds, _how_far(coded - surface, true - surface))


def _how_far(step: Vector, wanted: Vector) -> float:
    """To go along a step, by least squares, as if some more pixels had wanted all of it."""
    energy = float(step @ step)
    if energy == 0:
        return 1.0
    unseen = UNSEEN * energy / len(step)
    return float(np.clip((step @ wanted + unseen) / (energy + unseen), 0, 1))


def _heeded(step: Floats) -> Floats:
    """A step without what is too small to mean anything: where all is level it stays level."""
    squared = np.square(step)
    return step * squared / (squared + RESOLUTION**2)
