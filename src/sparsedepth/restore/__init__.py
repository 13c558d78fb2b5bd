"""Restoring a depth map is computing what is believed of each pixel: `denoise`, `inpaint`, `believe`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsedepth.coding.noise import Jeffreys, NoiseModel
from sparsedepth.dictionary import Dictionary
from sparsedepth.restore import paper
from sparsedepth.restore.aggregate import Coding, vote_on_noise
from sparsedepth.restore.restorer import METHODS, QUALITIES, Restorer, at_least_one, dictionary_of, n_threads
from sparsedepth.restore.tiling import Part, Work
from sparsedepth.vocabulary import Belief, DepthImage, Floats, Origin, Restoration

__all__ = ["METHODS", "QUALITIES", "Restorer", "believe", "denoise", "inpaint"]


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

    ``depth`` is an array or a `DepthImage`, NaN = unknown; ``variance`` is what a sensor says of each pixel. Where a
    pixel is unknown the variance is that of its prediction; where no patch knows anything, the mean is
    NaN and the variance infinite.
    """
    chosen = dictionary_of(dictionary) or Dictionary.builtin("default")
    values = depth.values if isinstance(depth, DepthImage) else depth
    work = Work.of(values, variance, chosen.patch_shape, invalid)
    coding = Coding(chosen, noise, sparsity, at_least_one("stride", stride))

    def believed(part: Part, threads: int) -> tuple[Floats, Floats, NDArray[np.integer[Any]]]:
        votes = vote_on_noise(part.depth, coding, part.variance, window=part.window, threads=threads)
        spread = np.where(np.isfinite(part.depth), votes.noise, paper.predicted_variance(votes))
        return votes.mean, spread, np.where(votes.count > 0, Origin.MEASURED, Origin.REFUSED)

    result = work.do(believed, None, n_threads(threads))
    return Belief(result.depth, result.variance)


def denoise(
    depth: Any,
    *,
    variance: Any = None,
    guide: Any = None,
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
    other codes. A `DepthImage`, as `sparsedepth.files.read` returns it, gives its unit, kind and profile to the result.
    ``variance`` is what a sensor says of each pixel, in squared units. A hole that holds a whole patch is
    refused (NaN, infinite variance), unless ``outward`` asks to fill it ring by ring with growing variance.
    ``second_pass`` inpaints what the first pass found noisy, which pays with the paper's method. ``quality`` is "fast",
    "balanced" or "best", or "paper" for the paper's method, dictionary and stride. ``guide`` is a picture of the same
    view, grey or colour: holes are then filled from where it looks alike. A huge map is worked on in tiles; it may lie
    in a memory-mapped file, and so may the arrays of ``out``, which receive the result.

    >>> import numpy as np
    >>> from sparsedepth import denoise
    >>> depth = np.add.outer(np.zeros(24), np.linspace(1.0, 2.0, 24))
    >>> depth[3, 4] = np.nan
    >>> result = denoise(depth)
    >>> int(result.origin[3, 4]), bool(abs(result.depth[3, 4] - depth[2, 4]) < 0.02)
    (2, True)
    """
    restore = Restorer(
        dictionary, quality, method=method, fill=fill, outward=outward, second_pass=second_pass, invalid=invalid
    )
    return restore(depth, variance=variance, guide=guide, threads=threads, out=out)


def inpaint(
    depth: Any,
    *,
    variance: Any = None,
    guide: Any = None,
    dictionary: Dictionary | str | None = None,
    method: str = "calibrated",
    quality: str = "balanced",
    outward: bool = False,
    invalid: float | Sequence[float] | None = None,
    threads: int | None = None,
    out: Restoration | None = None,
) -> Restoration:
    """Fill the holes of a depth map and leave what was measured as it is. Arguments are those of `denoise`."""
    restore = Restorer(dictionary, quality, method=method, correct=False, outward=outward, invalid=invalid)
    return restore(depth, variance=variance, guide=guide, threads=threads, out=out)
