"""Restoring a depth map is computing what is believed of each pixel: `denoise`, `inpaint`, `believe`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsedepth.coding.noise import Jeffreys, NoiseModel
from sparsedepth.dictionary import Dictionary
from sparsedepth.restore import calibrated, paper
from sparsedepth.restore import outward as rings
from sparsedepth.restore.door import Part, Work
from sparsedepth.restore.votes import Coding, vote
from sparsedepth.vocabulary import Belief, Floats, InputError, Origin, Restoration
from sparsedepth.workers import cores

METHODS = {"calibrated": calibrated, "paper": paper}
"""Name -> module with ``coding(dictionary, quality)`` and ``restorer(work, coding, ...)``."""


def believe(
    depth: Any,
    dictionary: Dictionary | str | None = None,
    noise: NoiseModel = Jeffreys(),  # noqa: B008 (frozen)
    *,
    sparsity: float = 1.0,
    stride: int = 1,
    variance: Any = None,
    invalid: float | Sequence[float] | None = None,
    threads: int | None = None,
) -> Belief:
    """The mean and the noise variance of each pixel, averaged over the patches that cover it.

    NaN in ``depth`` is unknown; ``variance`` is what a sensor says of each pixel. Where a pixel is unknown the variance
    is that of its prediction; where no patch knows anything, the mean is NaN and the variance infinite.
    """
    chosen = _dictionary(dictionary) or Dictionary.builtin("default")
    work = Work.of(depth, variance, chosen.patch_shape, invalid)
    coding = Coding(chosen, noise, sparsity, _at_least_one("stride", stride))

    def believed(part: Part, threads: int) -> tuple[Floats, Floats, NDArray[np.integer[Any]]]:
        votes = vote(part.depth, coding, part.variance, window=part.window, threads=threads)
        spread = np.where(np.isfinite(part.depth), votes.noise, paper.predicted_variance(votes))
        return votes.mean, spread, np.where(votes.count > 0, Origin.MEASURED, Origin.REFUSED)

    result = work.do(believed, None, _threads(threads))
    return Belief(result.depth, result.variance)


def denoise(
    depth: Any,
    *,
    variance: Any = None,
    dictionary: Dictionary | str | None = None,
    method: str = "calibrated",
    quality: str = "balanced",
    fill: bool = True,
    outward: bool = False,
    second_pass: bool = False,
    invalid: float | Sequence[float] | None = None,
    threads: int | None = None,
    out: Restoration | None = None,
) -> Restoration:
    """Correct the noisy pixels of a depth map and fill its holes; the result says which pixel is which.

    ``depth`` is (height, width) in any unit, NaN = unknown; in integer maps 0 is unknown too, unless ``invalid`` names
    other codes. ``variance`` is what a sensor says of each pixel, in squared units. A hole that holds a whole patch is
    refused (NaN, infinite variance), unless ``outward`` asks to fill it ring by ring with growing variance.
    ``second_pass`` inpaints what the first pass found noisy. ``quality`` is "fast", "balanced" or "best", or "paper"
    for the paper's method, dictionary and stride. A huge map is worked on in tiles; it may lie in a memory-mapped file,
    and so may the arrays of ``out``, which receive the result.

    >>> import numpy as np
    >>> from sparsedepth import denoise
    >>> depth = np.add.outer(np.zeros(24), np.linspace(1.0, 2.0, 24))
    >>> depth[3, 4] = np.nan
    >>> result = denoise(depth)
    >>> int(result.origin[3, 4]), bool(abs(result.depth[3, 4] - depth[2, 4]) < 0.02)
    (2, True)
    """
    return _restore(
        depth, variance, dictionary, method, quality, invalid, threads, out, outward,
        correct=True, fill=fill, second_pass=second_pass,
    )  # fmt: skip


def inpaint(
    depth: Any,
    *,
    variance: Any = None,
    dictionary: Dictionary | str | None = None,
    method: str = "calibrated",
    quality: str = "balanced",
    outward: bool = False,
    invalid: float | Sequence[float] | None = None,
    threads: int | None = None,
    out: Restoration | None = None,
) -> Restoration:
    """Fill the holes of a depth map and leave what was measured as it is. Arguments are those of `denoise`."""
    return _restore(
        depth, variance, dictionary, method, quality, invalid, threads, out, outward,
        correct=False, fill=True, second_pass=False,
    )  # fmt: skip


def _restore(
    depth: Any,
    variance: Any,
    dictionary: Dictionary | str | None,
    method: str,
    quality: str,
    invalid: float | Sequence[float] | None,
    threads: int | None,
    out: Restoration | None,
    outward: bool,
    *,
    correct: bool,
    fill: bool,
    second_pass: bool,
) -> Restoration:
    if method not in METHODS:
        raise InputError(f"method is {method!r}; choose one of {', '.join(map(repr, METHODS))}")
    method = "paper" if quality == "paper" else method
    coding = METHODS[method].coding(_dictionary(dictionary), quality)
    work = Work.of(depth, variance, coding.dictionary.patch_shape, invalid)
    threads = _threads(threads)
    wishes = {"correct": correct, "fill": fill, "second_pass": second_pass}
    result = work.do(METHODS[method].restorer(work, coding, **wishes, threads=threads), out, threads)
    if outward and fill:
        rings.fill(work, result, coding, threads)
    return result


def _dictionary(dictionary: Dictionary | str | None) -> Dictionary | None:
    if dictionary is None or isinstance(dictionary, Dictionary):
        return dictionary
    if isinstance(dictionary, str):
        return Dictionary.builtin(dictionary)
    raise InputError(
        f"the dictionary is a {type(dictionary).__name__}; give a Dictionary or the name of a built-in one"
    )


def _threads(threads: int | None) -> int:
    return cores() if threads is None else _at_least_one("threads", threads)


def _at_least_one(name: str, count: int) -> int:
    if count < 1:
        raise InputError(f"{name} is {count}; it must be at least 1")
    return count
