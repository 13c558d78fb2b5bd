"""The paper's belief about a map: the mean and the noise variance of each pixel, averaged over its patches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsedepth.checks import positive
from sparsedepth.coding.aggregate import PatchCoder, average_patches_and_noise
from sparsedepth.coding.noise import Jeffreys, NoiseModel
from sparsedepth.containers import unpack
from sparsedepth.dictionary import Dictionary, dictionary_from
from sparsedepth.parallel import n_threads
from sparsedepth.sensors.choice import NoiseChoice, SensorChoice, sensor_from
from sparsedepth.tiling import Tile, TiledMap, TilingSettings
from sparsedepth.vocabulary import Belief, DepthImage, Floats, Origin, Unit


def believe(
    depth: DepthImage | ArrayLike,
    dictionary: Dictionary | str | None = None,
    noise: NoiseModel = Jeffreys(),
    *,
    sparsity: float = 1.0,
    stride: int = 1,
    sensor: SensorChoice = "clean",
    unit: Unit = "",
    variance: ArrayLike | None = None,
    invalid: float | Sequence[float] | None = None,
    threads: int | None = None,
) -> Belief:
    """Average the values and the noise variances of the patches that cover each pixel, as the paper does.

    Parameters
    ----------
    depth, sensor, unit, variance, invalid, threads
        As for `denoise`, but the paper's method knows no sensor unless one is named.
    dictionary, noise, sparsity
        As for `infer`.
    stride
        Pixels between patches.

    Returns
    -------
    Belief
        Mean and variance of each pixel. The variance of a missing pixel is that of its prediction. Where no patch has a
        valid pixel, the mean is NaN and the variance infinite.

    Examples
    --------
    >>> from sparsedepth import believe
    >>> depth = np.add.outer(np.zeros(16), np.linspace(1.0, 2.0, 16))
    >>> bool(abs(believe(depth).mean - depth).max() < 0.05)
    True
    """
    coder = PatchCoder(
        dictionary_from(dictionary) or Dictionary.builtin("default"), noise, sparsity, positive("stride", stride)
    )
    depth, wrap, named = unpack(depth)
    choice = NoiseChoice(sensor_from(sensor), unit or named)
    if isinstance(depth, DepthImage):
        choice, depth = choice.for_numbers(depth.unit, depth.kind), depth.values
    source = TiledMap.from_array(depth, variance, coder.dictionary.patch_shape, invalid, TilingSettings())
    source = choice.with_variance(source)
    result = source.run(lambda tile, threads: _believe_tile(tile, coder, threads), None, n_threads(threads))
    belief = Belief(result.depth, result.variance)
    return belief if wrap is None else wrap(belief)


def _believe_tile(tile: Tile, coder: PatchCoder, threads: int) -> tuple[Floats, Floats, NDArray[np.integer[Any]]]:
    """Return the mean and the noise variance of each pixel of a tile; refused where no patch has a valid pixel."""
    average = average_patches_and_noise(tile.depth, coder, tile.variance, window=tile.window, threads=threads)
    variance = np.where(tile.valid, average.noise, average.predicted_variance)
    return average.mean, variance, np.where(average.weight > 0, Origin.MEASURED, Origin.REFUSED)
