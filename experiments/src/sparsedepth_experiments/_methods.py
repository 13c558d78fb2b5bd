"""The methods of the restoration experiments: blind ones, and those tuned on the truth."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsedepth.baselines import DENOISERS, INPAINTERS, tight_wavelet_frame, wavelet_frame
from sparsedepth.belief import believe
from sparsedepth.coding.infer import infer
from sparsedepth.coding.noise import Jeffreys, Known, Stationary
from sparsedepth.data import data_folder
from sparsedepth.dictionary import Dictionary
from sparsedepth.metrics import oracle
from sparsedepth.parallel import cores
from sparsedepth.patches import cut, normalise, overlay
from sparsedepth.restore import METHODS, denoise, inpaint
from sparsedepth.vocabulary import DepthMap, Floats, InputError, Patches

MOST_THREADS = 2
TUNED = "tuned"
"""What tables say of a method whose parameter the truth chose."""
SOFTENING = 1e-3
"""Deviations of the map that are added to the contrast of a flat patch, as `PatchCoder` does."""
VARIANCES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
"""Of plain sparse coding, in variances of the patch: the truth selects the best, at a stride of 4 pixels."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of a method on a map."""

    depth: DepthMap
    variance: DepthMap | None = None
    parameter: float | None = None
    """The one that the truth chose; None = blind, or without end."""
    origin: NDArray[np.uint8] | None = None


@dataclass(frozen=True)
class Method:
    """A method under its name in tables; only a tuned one uses the truth, to choose its parameter."""

    name: str
    restore: Callable[[DepthMap, DepthMap], Outcome]
    """(noisy map, truth) -> outcome."""
    tuned: bool = False

    @property
    def help(self) -> str:
        return TUNED if self.tuned else "" if self is NOISY else "blind"


NOISY = Method("noisy", lambda noisy, truth: Outcome(noisy))


def coded(name: str, dictionary: Dictionary | str, stride: int = 1) -> Method:
    """Build the paper's method: every patch coded with inferred variances, every pixel the mean of its patches."""

    def restore(noisy: DepthMap, truth: DepthMap) -> Outcome:
        belief = believe(noisy, dictionary, Jeffreys(), stride=stride, threads=1)
        return Outcome(belief.mean, belief.variance)

    return Method(name, restore)


def coded_with_one_variance(name: str, dictionary: Dictionary | str, stride: int = 1) -> Method:
    """Build plain sparse coding with the variance that suits the map best."""

    def restore(noisy: DepthMap, truth: DepthMap) -> Outcome:
        def at(stride: int) -> Callable[[DepthMap, float], DepthMap]:
            return lambda depth, v: believe(depth, dictionary, Stationary(v), stride=stride, threads=1).mean

        variance = oracle(at(max(4, stride)), VARIANCES, noisy, truth).parameter
        return Outcome(at(stride)(noisy, variance), parameter=variance)

    return Method(name, restore, tuned=True)


def coded_with_wavelets(name: str, stride: int, side: int = 16) -> Method:
    """Build the paper's method with the translation-invariant 7-9 wavelet frame as its dictionary."""
    frame = Dictionary(wavelet_frame((side, side)), (side, side))

    def restore(noisy: DepthMap, truth: DepthMap) -> Outcome:
        return Outcome(believe(noisy, frame, Jeffreys(), stride=stride, threads=1).mean)

    return Method(name, restore)


def coded_with_tight_frame(name: str, stride: int, side: int = 16) -> Method:
    """Build the paper's method with the periodic wavelet frame, whose atoms keep their norms.

    The code of an atom of norm n is that of its unit atom at a price of 1 / n.
    """
    frame = tight_wavelet_frame((side, side))
    norms = np.linalg.norm(frame, axis=1)
    atoms = (frame / norms[:, None]).astype(np.float32)

    def restore(noisy: DepthMap, truth: DepthMap) -> Outcome:
        def denoised(patches: Patches) -> Patches:
            return infer(patches, atoms, Jeffreys(), 1 / norms, threads=1).codes @ atoms

        return Outcome(_patch_by_patch(noisy, denoised, (side, side), stride))

    return Method(name, restore)


def alternated(name: str, dictionary: Dictionary, alternations: int, stride: int = 1) -> Method:
    """Build the paper's alternation: codes at fixed variances to the end, then variances, a number of times."""

    def denoised(patches: Patches) -> Patches:
        noise = Jeffreys()
        variance = noise.initial_variance(patches)
        shown = np.zeros_like(patches)
        for _ in range(alternations):
            code = infer(patches, dictionary, Known(variance), threads=1)
            shown = (code.codes @ dictionary.atoms).astype(patches.dtype)
            variance = noise.best_variance(patches - shown)
        return shown

    def restore(noisy: DepthMap, truth: DepthMap) -> Outcome:
        return Outcome(_patch_by_patch(noisy, denoised, dictionary.patch_shape, stride))

    return Method(name, restore)


def _patch_by_patch(
    depth: DepthMap, denoised: Callable[[Patches], Patches], patch_shape: tuple[int, int], stride: int
) -> DepthMap:
    """Restore normalised patches, and average those that cover each pixel."""
    unit = normalise(cut(depth, patch_shape, stride), SOFTENING * float(np.nanstd(depth)))
    values = denoised(unit.patches.astype(np.float32)) * unit.scale[:, None] + unit.centre[:, None]
    return overlay(values, depth.shape, patch_shape, stride).astype(depth.dtype)


def competitor(name: str) -> Method:
    """Build a baseline at the best parameter of its grid."""

    def restore(noisy: DepthMap, truth: DepthMap) -> Outcome:
        baseline = DENOISERS[name]
        best = oracle(baseline.restore, baseline.parameters(noisy), noisy, truth)
        return Outcome(best.result, parameter=best.parameter if math.isfinite(best.parameter) else None)

    return Method(name, restore, tuned=True)


def searched(name: str, apart: int = 3) -> Method:
    """Build a baseline at the best parameter of its grid, searched coarsely first, then around the best."""

    def restore(noisy: DepthMap, truth: DepthMap) -> Outcome:
        baseline = DENOISERS[name]
        grid = baseline.parameters(noisy)
        if len(grid) <= 4 * apart:
            return competitor(name).restore(noisy, truth)
        coarse = sorted({*range(0, len(grid), apart), len(grid) - 1})
        first = oracle(baseline.restore, [grid[i] for i in coarse], noisy, truth)
        middle = grid.index(first.parameter)
        near = [grid[i] for i in range(max(middle - apart + 1, 0), min(middle + apart, len(grid)))]
        best = oracle(baseline.restore, near, noisy, truth)
        return Outcome(best.result, parameter=best.parameter if math.isfinite(best.parameter) else None)

    return Method(name, restore, tuned=True)


def filler(name: str) -> Method:
    """Build a baseline that fills holes; there is nothing to tune."""
    return Method(name, lambda holed, truth: Outcome(INPAINTERS[name](holed)))


def own_filler(picture: Floats | None = None) -> Method:
    """Build `inpaint` with its defaults, which fills wide holes too; with a guide, or without."""

    def restore(holed: DepthMap, truth: DepthMap) -> Outcome:
        result = inpaint(holed, guide=picture, holes="all", threads=1)
        return Outcome(result.depth, result.variance, origin=result.origin)

    return Method("inpaint" if picture is None else "inpaint, guided", restore)


def own_methods(names: Iterable[str] = METHODS) -> list[Method]:
    """List what `denoise` offers besides the paper's method, each with its defaults."""
    return [denoised(f'denoise, "{name}"', method=name) for name in names if name != "paper"]


def denoised(name: str, **options: Any) -> Method:
    """Build `denoise` with some options."""

    def restore(noisy: DepthMap, truth: DepthMap) -> Outcome:
        result = denoise(noisy, threads=1, **options)
        return Outcome(result.depth, result.variance, origin=result.origin)

    return Method(name, restore)


def threads() -> int:
    return min(MOST_THREADS, cores())


def data_at_hand() -> bool:
    """Test whether SPARSEDEPTH_DATA names a folder."""
    try:
        data_folder()
    except InputError:
        return False
    return True
