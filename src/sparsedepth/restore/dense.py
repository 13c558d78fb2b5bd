"""Noise at every pixel, as time-of-flight cameras have it: no value is exact, so all are smoothed.

The noise level is measured by crossed differences where the map is flattest (`sensors.differences`). A low quantile of
them in small blocks ignores outliers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sparsedepth.coding.aggregate import PatchCoder, average_patches
from sparsedepth.coding.noise import Stationary
from sparsedepth.isotonic import IsotonicCurve
from sparsedepth.parallel import map_in_threads
from sparsedepth.patches import Window
from sparsedepth.restore.settings import DenseSettings, VarianceSettings
from sparsedepth.sensors.differences import (
    GAUSSIAN_QUANTILE,
    HIGH_QUANTILE,
    LOW_QUANTILE,
    block_depths,
    block_quantiles,
    white_std,
)
from sparsedepth.sensors.settings import DEFAULT as SENSOR
from sparsedepth.vocabulary import DepthMap, Floats, Vector

RATIO_GRID = np.geomspace(1 / 8, 8, 49)
"""Ratios of the root of the standard deviation at both ends of the depths that are tried."""


def is_raw_sensor_map(depth: DepthMap, settings: DenseSettings) -> bool:
    """Tell whether a map is rough nearly everywhere: measured pixel by pixel, neither matched nor smoothed."""
    blocks = block_quantiles(depth)
    valid = blocks[np.isfinite(blocks)]
    return len(valid) >= 4 and bool(np.median(valid) > settings.raw_roughness)


@dataclass(frozen=True)
class NoiseLevel:
    """Standard deviation of noise at every pixel, as a function of depth.

    Its root is linear in depth between two ends, as for ranges from triangulation.
    """

    sigma: float
    """At the lower end."""
    settings: DenseSettings
    ends: tuple[float, float] = (0.0, 1.0)
    ratio: float = 1.0
    """Of the roots at the upper and at the lower end."""

    @classmethod
    def fit(cls, depth: DepthMap, settings: DenseSettings) -> NoiseLevel:
        """Fit the curve above the flattest blocks of the map that lies nearest to all of them."""
        blocks, depths = block_quantiles(depth), block_depths(depth)
        valid = np.isfinite(blocks) & np.isfinite(depths)
        if valid.sum() < settings.min_blocks:
            return cls(white_std(depth), settings)
        some = np.flatnonzero(valid)[:: -(-int(valid.sum()) // settings.max_blocks)]
        blocks, depths = np.maximum(blocks.ravel()[some], settings.sigma_floor), depths.ravel()[some]
        ends = (float(depths.min()), float(depths.max()))
        candidates = [cls(1.0, settings, ends, float(ratio)) for ratio in RATIO_GRID]
        above = np.log(blocks / [each.at_depth(depths) for each in candidates])
        scales, losses = _fit_to_flattest(above)
        best = int(losses.argmin())
        return replace(candidates[best], sigma=float(np.exp(scales[best])) / GAUSSIAN_QUANTILE)

    def at_depth(self, depth: Floats) -> Floats:
        """Return the standard deviation at depths, clamped to the fitted range; NaN depths get the lower end."""
        low, high = self.ends
        along = np.clip((np.where(np.isfinite(depth), depth, low) - low) / max(high - low, 1e-12), 0, 1)
        return self.sigma * np.square(1 + (self.ratio - 1) * along)

    def mean(self, depth: DepthMap) -> float:
        """Return the mean standard deviation over a map."""
        return float(self.at_depth(depth[np.isfinite(depth)]).mean())

    def exceeded(self, residual: Floats, depth: DepthMap) -> NDArray[np.bool_]:
        """Mark residuals that are larger than dense noise."""
        return np.abs(residual) > self.settings.outlier_sigmas * self.at_depth(depth)


def _fit_to_flattest(above: Floats) -> tuple[Vector, Vector]:
    """Return the quantile of each row of log ratios that the flattest blocks have, and the quantile loss there."""
    fraction = SENSOR.flat_percentile / 100
    scales = np.percentile(above, SENSOR.flat_percentile, axis=1)
    over = above - scales[:, None]
    return scales, np.maximum(fraction * over, (fraction - 1) * over).mean(axis=1)


def has_dense_noise(depth: DepthMap, outlier_fraction: float, settings: DenseSettings) -> bool:
    """Tell whether there is noise worth smoothing at every pixel, with such a fraction of outliers.

    Many outliers look like noise at some depths, but not in the flattest blocks of all. Foliage does even there, but
    its differences are not Gaussian.
    """
    if outlier_fraction >= settings.max_outlier_fraction:
        return white_std(depth) > settings.min_sigma
    level = NoiseLevel.fit(depth, settings)
    valid = depth[np.isfinite(depth)]
    large = len(valid) > 0 and np.square(level.at_depth(valid)).mean() > settings.min_sigma**2
    return bool(large and not _is_texture(depth, level))


def _is_texture(depth: DepthMap, level: NoiseLevel) -> bool:
    """Tell whether even the flattest blocks have far larger differences than Gaussian noise has."""
    chosen = level.settings
    low, high = (block_quantiles(depth, quantile) for quantile in (LOW_QUANTILE, HIGH_QUANTILE))
    expected = level.at_depth(block_depths(depth))
    flat = (low <= expected * GAUSSIAN_QUANTILE) & (expected > chosen.min_sigma)
    return bool(flat.any() and np.median(high[flat] / expected[flat]) > chosen.max_tail_ratio * GAUSSIAN_QUANTILE)


@dataclass(frozen=True, eq=False)
class Smoothed:
    """A map with dense noise, and what its codes make of it."""

    depth: DepthMap
    smooth: DepthMap
    patch_variance: Floats
    sigma: DepthMap
    """Standard deviation of the noise."""

    @property
    def disagreement(self) -> Floats:
        """Variance of the patches, in variances of the noise."""
        return self.patch_variance / np.square(self.sigma)

    @property
    def removed(self) -> Floats:
        """What smoothing removes, in standard deviations of the noise; NaN where missing."""
        return (self.depth - self.smooth) / self.sigma


@dataclass(frozen=True, eq=False)
class Shrinkage:
    """The fraction to remove of what smoothing would remove, by the disagreement of the patches: the rest is texture.

    The optimum is the mean of noise times removed over that of removed squared. The latter is measured on the map, the
    former on a simulation whose noise is known.
    """

    gain: IsotonicCurve
    removed: IsotonicCurve

    @classmethod
    def fit(cls, simulation: Sequence[tuple[Smoothed, Smoothed]], settings: VarianceSettings) -> Shrinkage:
        """Fit parts of the map, each with its simulation: known noise on the smoothed part, smoothed again."""
        gain = (
            (again.disagreement, again.removed * (again.depth - once.smooth) / again.sigma)
            for once, again in simulation
        )
        removed = ((once.disagreement, np.square(once.removed)) for once, _ in simulation)
        return cls(_fit_curve(gain, settings), _fit_curve(removed, settings))

    def __call__(self, smoothed: Smoothed) -> Floats:
        at = smoothed.disagreement
        return np.clip(self.gain(at) / np.maximum(self.removed(at), np.finfo(np.float64).tiny), 0, 1)


@dataclass(frozen=True, eq=False)
class Smoother:
    """Smooths any tile of a map with dense noise."""

    level: NoiseLevel
    coder: PatchCoder
    shrinkage: Shrinkage | None = None
    variance: IsotonicCurve | None = None
    """Squared error, by the variance of the patches."""

    def __call__(self, depth: DepthMap, window: Window, threads: int) -> tuple[Floats, Floats]:
        """Return the value of each pixel and its variance."""
        smoothed = self._smooth(depth, window, threads)
        spread = smoothed.patch_variance
        return self._blend(smoothed), spread if self.variance is None else self.variance(spread)

    def _smooth(self, depth: DepthMap, window: Window, threads: int) -> Smoothed:
        """Code a map, and the result again, as what is left is small."""
        chosen = self.level.settings
        coder = replace(
            self.coder,
            noise=Stationary(1.0),
            sparsity=chosen.sparsity,
            max_rounds=chosen.rounds,
            refit=True,
        )
        sigma = self.level.at_depth(depth).astype(np.float32)
        patch_variance: Floats = np.zeros(depth.shape)
        smooth = depth
        for left in (1, chosen.second_pass_ratio):
            average = average_patches(smooth, coder, units=left * sigma, window=window, threads=threads)
            patch_variance = patch_variance + average.variance
            smooth = average.mean.astype(np.float32)
        return Smoothed(depth, smooth, patch_variance, sigma)

    def calibrate(self, parts: DepthMap, settings: VarianceSettings, threads: int) -> Smoother:
        """Smooth parts of the map without outliers, add known noise, smooth again, and fit the errors."""
        window = Window.full((parts.shape[1], parts.shape[2]))

        def simulate(index: int) -> tuple[Smoothed, Smoothed]:
            once = self._smooth(parts[index], window, 1)
            noise = once.sigma * np.random.default_rng(index).standard_normal(window.whole)
            return once, self._smooth((once.smooth + noise).astype(np.float32), window, 1)

        simulation = list(map_in_threads(simulate, range(len(parts)), threads))
        careful = self
        if self._removes_texture([once for once, _ in simulation]):
            careful = replace(self, shrinkage=Shrinkage.fit(simulation, settings))
        error = ((again.patch_variance, np.square(careful._blend(again) - once.smooth)) for once, again in simulation)
        return replace(careful, variance=_fit_curve(error, settings))

    def _removes_texture(self, parts: Sequence[Smoothed]) -> bool:
        """Tell whether smoothing removes clearly more than the noise amounts to."""
        removed = sum(np.nansum(np.square(part.depth - part.smooth)) for part in parts)
        noise = sum(np.square(part.sigma)[np.isfinite(part.depth)].sum() for part in parts)
        return bool(removed > self.level.settings.texture_ratio * noise)

    def _blend(self, smoothed: Smoothed) -> Floats:
        """Return the smooth value where missing, and elsewhere what is left after removing noise."""
        fraction = 1.0 if self.shrinkage is None else self.shrinkage(smoothed)
        depth, smooth = smoothed.depth, smoothed.smooth
        return np.where(np.isfinite(depth), depth - fraction * (depth - smooth), smooth)


def _fit_curve(parts: Iterable[tuple[Floats, Floats]], settings: VarianceSettings) -> IsotonicCurve:
    """Fit a curve to the finite targets of several parts of the map."""
    finite = [(predictor[np.isfinite(target)], target[np.isfinite(target)]) for predictor, target in parts]
    predictor, target = map(np.concatenate, zip(*finite, strict=True))
    return IsotonicCurve.fit(predictor, target, settings.min_per_bin, settings.max_bins)
