"""How far filled pixels err.

They err more the deeper they lie in a hole, the more is missing around them and the more the map varies there. How
these go together was learned on maps of many kinds (training/variance_filled.py), twice.

Where what is missing is **scattered**, it might as well have been something else: known pixels that are hidden and
filled err as the unknown ones do. So the law is in units of their error, and they also say by what factor and what
power this map differs from it, as far as they are enough to say it; what they leave open is added to the promise. What
was filled is smooth where little is known, so known pixels alone are asked how much the map varies, as far away as it
takes to find enough of them.

Holes that **keep together** are mostly there because of an edge, and no pixel that can be hidden errs as those do, by a
factor of a hundred. Then the law stands alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_cdt, uniform_filter

from sparsedepth.vocabulary import Floats, Vector

NEAR, WIDE = 3, 15
"""The sides of squares around a pixel, in pixels."""
SQUARES = (3, 5, 7, 9, 13, 19, 27, 39)
"""The sides of squares of which the smallest is taken that holds enough known pixels."""
FEW, MANY = 3, 32
"""The known pixels between which there is a step, and those that tell how large steps are about a pixel."""
SCATTERED = np.array([-3.53, 0.778, 1.16, 1.559, 0.704])
"""The logarithm of the squared error in units of that of hidden pixels, and how it grows with each of the
`signs_of_scattered`."""
TOGETHER = np.array([-3.588, 0.161, 0.122, 0.47, 0.0])
"""The logarithm of the squared error where holes keep together, and how it grows with each of the `signs`."""
LEAST = 0.03
"""The deviation in a square, in deviations of the map, below which it means nothing where holes keep together."""
MOST = 4.0
"""No pixel errs by more, in variances of the map."""
ALIKE = 0.12
"""Holes keep together if this share of their neighbours is missing, beyond those that are so by chance."""
WORST = 2.0
"""Nor by more than this many times what the worst hidden pixel errs by, where they tell."""
UNSEEN = 0.02
"""The squared error of one more pixel that counts as if it had been hidden."""
OWN = np.array([1.5, 0.3])
"""The deviations, over maps, of the logarithm of their own factor and of their own power."""
PIXELS = 50.0
"""Hidden pixels that say as much as one whose squared error has no tail."""
STEPS = 30
FIRM = 20.0
"""Filled pixels that say as much of what the signs of pixels beyond them are worth as the law does."""


def keep_together(unknown: NDArray[np.bool_], apart: NDArray[np.bool_]) -> bool:
    """Whether neighbours of unknown pixels are unknown far more often than others; what lies apart does not count."""
    unknown, within = unknown & ~apart, ~apart
    share = unknown.sum() / max(int(within.sum()), 1)
    both = sum(int((one & other).sum()) for one, other in _neighbours(unknown, unknown))
    either = sum(int((one & other).sum()) for one, other in _neighbours(unknown, within) + _neighbours(within, unknown))
    return share < 1 and 2 * both > either * (share + ALIKE * (1 - share))


def _neighbours(one: NDArray[np.bool_], other: NDArray[np.bool_]) -> list[tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
    return [(one[1:], other[:-1]), (one[:, 1:], other[:, :-1])]


def signs(answer: Floats, unknown: NDArray[np.bool_], floor: float) -> Floats:
    """What tells the error of each unknown pixel of a map of unit deviation that was filled.

    One, the logarithm of the depth in the hole, those of the variances in a near and a wide square, added to a floor
    and divided by it, and the share that is missing in the wide square.
    """
    return _signs([_varying(answer, NEAR), _varying(answer, WIDE)], unknown, floor)


def signs_of_scattered(answer: Floats, unknown: NDArray[np.bool_], floor: float) -> Floats:
    """The same where holes are scattered, with the steps between known pixels for the variance in the wide square."""
    return _signs([_varying(answer, NEAR), _steps_between(answer, ~unknown)], unknown, floor)


def _signs(varying: Sequence[Floats], unknown: NDArray[np.bool_], floor: float) -> Floats:
    deep = np.log(np.maximum(depth_in_holes(unknown)[unknown], 1))
    above = [np.log1p(variance[unknown] / floor) for variance in varying]
    share = uniform_filter(unknown.astype(np.float32), WIDE, mode="nearest")[unknown]
    return np.stack([np.ones(len(deep)), deep, *above, share], axis=1)


def expected_error(answer: Floats, unknown: NDArray[np.bool_]) -> Floats:
    """The squared error of the unknown pixels of a map of unit deviation whose holes keep together; 0 at known ones."""
    return _placed(signs(answer, unknown, LEAST**2) @ TOGETHER, unknown)


def beyond(answer: Floats, unknown: NDArray[np.bool_], promised: Floats) -> Floats:
    """The same where some unknown pixels have a promise, which is positive: those beyond them get a like one."""
    told = promised[unknown] > 0
    if not told.any():
        return expected_error(answer, unknown)
    given = promised[unknown][told]
    telling = signs(answer, unknown, float(given.mean()))
    theirs = telling[told]
    firm = np.diag([0.0, *np.full(len(TOGETHER) - 1, FIRM)])
    own = TOGETHER + np.linalg.solve(theirs.T @ theirs + firm, theirs.T @ (np.log(given) - theirs @ TOGETHER))
    return _placed(telling @ own, unknown)


@dataclass(frozen=True, eq=False)
class Scattered:
    """The squared error of the unknown pixels of a map of which they are no special ones."""

    usual: float
    """The squared error of hidden pixels."""
    centre: float
    """The mean logarithm that the law gives to hidden ones, in that unit."""
    own: Vector
    """What it is on this map, and how it grows with that of the law."""
    doubt: Vector
    """The variances of these two."""
    most: float

    @classmethod
    def of(cls, answers: Floats, unknown: NDArray[np.bool_], hidden: NDArray[np.bool_], squared: Floats) -> Scattered:
        """Learn from the squared errors of hidden pixels of filled maps, (parts, height, width)."""
        usual = float((squared[hidden].sum() + UNSEEN) / (hidden.sum() + 1))
        told = [signs_of_scattered(answer, holes, usual) for answer, holes in zip(answers, unknown, strict=True)]
        logarithm = np.concatenate(told)[hidden[unknown]] @ SCATTERED
        centre = float(logarithm.mean()) if len(logarithm) else 0.0
        own, doubt = _own(logarithm - centre, squared[hidden] / usual, np.array([centre, 1.0]))
        worst = float(squared[hidden].max()) if hidden.any() else MOST
        return cls(usual, centre, own, doubt, min(max(WORST * worst, usual), MOST))

    def __call__(self, answer: Floats, unknown: NDArray[np.bool_]) -> Floats:
        away = signs_of_scattered(answer, unknown, self.usual) @ SCATTERED - self.centre
        open_still = self.doubt[0] + self.doubt[1] * np.square(away)
        return _placed(np.log(self.usual) + self.own[0] + self.own[1] * away + open_still / 2, unknown, self.most)


def _own(away: Vector, squared: Vector, usual: Vector) -> tuple[Vector, Vector]:
    """The likeliest line, near a usual one, for the logarithm of the mean of gamma-distributed numbers; its doubt."""
    along = np.stack([np.ones(len(away)), away], axis=1)
    firm = np.diag(OWN**-2.0)
    line = usual.copy()
    for _ in range(STEPS):
        ratio = squared * np.exp(-along @ line)
        slope = along.T @ (1 - ratio) / PIXELS + firm @ (line - usual)
        step = np.linalg.solve((along.T * ratio) @ along / PIXELS + firm, slope)
        line = line - step / max(1.0, float(np.abs(step).max()))
    return line, 1 / (np.square(along).sum(axis=0) / PIXELS + OWN**-2.0)


def _placed(logarithm: Vector, unknown: NDArray[np.bool_], most: float = MOST) -> Floats:
    expected = np.zeros(unknown.shape)
    expected[unknown] = np.minimum(np.exp(np.minimum(logarithm, np.log(MOST))), most)
    return expected


def depth_in_holes(unknown: NDArray[np.bool_]) -> NDArray[np.integer]:
    """The pixels from each unknown one to the nearest known one; 0 where something is known."""
    framed = np.pad(unknown, 1, constant_values=True)
    return np.asarray(distance_transform_cdt(framed, "chessboard"))[1:-1, 1:-1]


def _varying(values: Floats, side: int) -> Floats:
    """The variance in squares of a side."""
    mean, square = (uniform_filter(each, side, mode="nearest") for each in (values, np.square(values)))
    return np.maximum(square - np.square(mean), 0)


def _steps_between(values: Floats, known: NDArray[np.bool_]) -> Floats:
    """The mean square, over the known pixels about each pixel, of what parts them from those beside them."""
    mean, count = _mean_of_known(values, known, FEW)
    step = (values - mean) * count / np.maximum(count - 1, 1)  # the pixel itself is one of those in the mean
    return _mean_of_known(np.square(step), known, MANY)[0]


def _mean_of_known(values: Floats, known: NDArray[np.bool_], enough: int) -> tuple[Floats, Floats]:
    """Over the known pixels in the smallest square about each pixel that holds enough of them, and how many there are.

    Where even the largest square holds fewer, these have to do.
    """
    mean, count = np.zeros(known.shape), np.zeros(known.shape)
    for side in (side for side in SQUARES if side**2 >= enough):
        short = count < enough
        if not short.any():
            break
        total, held = (_sums(each, side)[short] for each in (np.where(known, values, 0.0), known.astype(np.float64)))
        count[short] = np.rint(held)
        mean[short] = total / np.maximum(count[short], 1)
    return mean, count


def _sums(values: Floats, side: int) -> Floats:
    """In squares of a side; beyond the border there is nothing."""
    return side**2 * uniform_filter(values, side, mode="constant")
