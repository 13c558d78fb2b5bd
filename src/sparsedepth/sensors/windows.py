"""Noise in windows of one frame: robust quadratic surfaces, their residuals and the correlation these show."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsedepth.kernels import windows as kernels
from sparsedepth.sensors.laws import Correlation
from sparsedepth.sensors.settings import MAD_TO_STD, SensorSettings
from sparsedepth.vocabulary import DepthMap, Floats

N_TERMS = 6
"""Coefficients of a quadratic surface."""


@dataclass(frozen=True, eq=False)
class WindowFits:
    """Windows of a map that a quadratic surface explains.

    Parameters
    ----------
    values
        The map, (height, width).
    side
        Side of the windows.
    places
        (n,), flat indices of their first pixels.
    standard
        (n, 3), median of the values, their spread, and standard deviation of the residuals of inliers.
    surface
        (n, 7), terms of the surface over the spread, and largest residual of an inlier.
    tried
        Number of windows that are dense enough, whether or not a surface explains them.
    """

    values: Floats
    side: int
    places: NDArray[np.int64]
    standard: Floats
    surface: Floats
    tried: int

    @property
    def level(self) -> Floats:
        """Medians of the values, (n,)."""
        return self.standard[:, 0]

    @property
    def std(self) -> Floats:
        """Standard deviations of the residuals of inliers, (n,)."""
        return self.standard[:, 2]

    @property
    def residual(self) -> Floats:
        """Residuals over the spread, (n, pixels); zero at missing pixels."""
        return self.residuals[0]

    @property
    def inlier(self) -> NDArray[np.bool_]:
        """Pixels that the surface explains, (n, pixels)."""
        return self.residuals[1]

    @cached_property
    def residuals(self) -> tuple[Floats, NDArray[np.bool_]]:
        """Residuals over the spread, and whether they are those of inliers."""
        n, side = len(self.places), self.side
        residual, inlier = np.empty((n, side**2), np.float32), np.empty((n, side**2), np.uint8)
        found, scratch = (self.places, self.standard, self.surface), np.empty(kernels.scratch(side, 0), np.float32)
        kernels.residuals(n, side, self.values.shape[1], self.values, *found, scratch, residual, inlier)
        return residual, inlier.view(bool)

    def chosen(self, which: NDArray[Any]) -> WindowFits:
        """Select windows by a mask or by their numbers."""
        return replace(self, places=self.places[which], standard=self.standard[which], surface=self.surface[which])


@lru_cache(maxsize=8)
def quadratic_basis(side: int) -> Floats:
    """Return an orthonormal basis of quadratic surfaces on a window, (pixels, terms)."""
    t = (np.arange(side) - (side - 1) / 2) / (side / 2)
    y, x = (part.ravel() for part in np.meshgrid(t, t, indexing="ij"))
    return np.linalg.qr(np.stack([np.ones_like(x), x, y, x * x, x * y, y * y], axis=1))[0]


def fit_windows(values: DepthMap, settings: SensorSettings) -> WindowFits:
    """Fit robust quadratic surfaces to the windows of a map.

    Parameters
    ----------
    values
        (height, width); NaN or infinite = missing.
    settings
        Side and stride of the windows, thresholds.

    Returns
    -------
    The windows that are dense enough and that their surface explains.
    """
    values, side = np.ascontiguousarray(values, np.float64), settings.window_px
    places, sample = _dense_windows(values, settings), _sampled(settings)
    n, keys = len(places), np.empty(len(sample), np.int64)
    standard, surface = np.empty((n, kernels.STANDARD)), np.empty((n, kernels.SURFACE), np.float32)
    scratch, counts = np.empty(kernels.scratch(side, len(sample)), np.float32), np.empty((n, 2), np.int64)
    sizes, limits = (n, side, values.shape[1], len(sample)), (MAD_TO_STD, settings.tukey, settings.inlier_sigmas)
    arrays = (values, places, sample, settings.fit_iterations, *limits)
    kernels.fit(*sizes, *arrays, scratch, keys, standard, surface, counts)
    good = (counts[:, 0] >= settings.window_inliers * counts[:, 1]) & np.isfinite(standard[:, 0])
    return WindowFits(values, side, places, standard, surface, n).chosen(good)


def _dense_windows(values: DepthMap, settings: SensorSettings) -> NDArray[np.int64]:
    """Return the flat indices of the first pixels of windows that are dense enough."""
    side, stride = settings.window_px, settings.window_stride_px
    if min(values.shape) < side:
        return np.zeros(0, np.int64)
    down, right = (np.arange(0, size - side + 1, stride) for size in values.shape)
    valid = np.empty(len(down) * len(right), np.int64)
    kernels.valid(*values.shape, side, stride, values, np.empty(values.shape[1], np.int32), valid)
    density = valid / side**2
    least = settings.window_valid * np.quantile(density, settings.window_dense_quantile)
    dense = density >= max(least, settings.window_pixels_per_term * N_TERMS / side**2)
    return np.add.outer(down * values.shape[1], right).ravel()[dense]


@lru_cache(maxsize=8)
def _sample_numbers(side: int, count: int) -> NDArray[np.int64]:
    """Return the numbers of some pixels: the same under flips, without any period that a lattice could share."""
    quarter = np.random.default_rng(0).random(((side + 1) // 2,) * 2)
    half = np.concatenate([quarter, quarter[::-1][side % 2 :]])
    rank = np.concatenate([half, half[:, ::-1][:, side % 2 :]], axis=1).ravel()
    return np.sort(np.argsort(rank, kind="stable")[:count]).astype(np.int64)


def _sampled(settings: SensorSettings) -> NDArray[np.int64]:
    return _sample_numbers(settings.window_px, settings.fit_pixels)


def estimate_correlation(fits: WindowFits, settings: SensorSettings) -> Correlation:
    """Estimate the spatial correlation of noise from the residuals of windows.

    The autocovariance of residuals is compared with that of correlated noise after the same fit: a surface takes the
    longest waves with it.

    Parameters
    ----------
    fits
        Windows that show noise alone.
    settings
        Lags and number of windows.

    Returns
    -------
    The correlation whose projected autocovariance fits best.
    """
    from scipy.optimize import least_squares  # slow to import

    every = -(-len(fits.std) // settings.correlation_windows)
    along_rows, along_columns = _autocovariance(fits.chosen(np.arange(0, len(fits.std), every)), settings)
    seen = np.concatenate([along_rows, along_columns])
    shortest, longest = np.log(settings.shortest_correlation_px), np.log(settings.window_px / 2)
    lowest = [shortest, shortest, settings.window_exponent, 0.0]
    highest = [longest, longest, 2.0, settings.largest_white]

    def misfit(numbers: Floats) -> Floats:
        rows, columns, variance = fitted_autocovariance(correlation_of(numbers), settings)
        return np.concatenate([rows, columns]) / variance - seen

    limits = {"max_nfev": settings.window_evaluations, "ftol": settings.window_tolerance}
    best = least_squares(misfit, correlation_start(settings), bounds=(lowest, highest), **limits)
    return correlation_of(best.x)


def correlation_start(settings: SensorSettings) -> list[float]:
    """Return the numbers of a correlation that a fit starts from: logarithms of both lengths, exponent, white part."""
    length = float(np.log(settings.start_correlation_px))
    return [length, length, settings.start_exponent, settings.start_white]


def correlation_of(numbers: Floats) -> Correlation:
    """Build a correlation from the numbers of a fit."""
    along_rows, along_columns, exponent, white = numbers
    return Correlation(float(np.exp(along_rows)), float(np.exp(along_columns)), float(exponent), float(white))


def visible_fraction(correlation: Correlation, settings: SensorSettings) -> float:
    """Compute the fraction of the standard deviation that the residuals of a window show."""
    return float(np.sqrt(fitted_autocovariance(correlation, settings)[2]))


def _autocovariance(fits: WindowFits, settings: SensorSettings) -> tuple[Floats, Floats]:
    """Compute the autocorrelation of residuals at lags from one pixel, along rows and along columns."""
    side, lags = settings.window_px, settings.correlation_lags
    residual, inlier = fits.residuals
    scratch, found = np.empty(kernels.products_scratch(side, lags), np.float32), np.empty((2, 2, lags))
    kernels.products(len(residual), side, lags, residual, inlier.view(np.uint8), scratch, found)
    rows, columns = found[0] / np.maximum(found[1], 1.0)
    return rows[1:] / rows[0], columns[1:] / columns[0]


def fitted_autocovariance(correlation: Correlation, settings: SensorSettings) -> tuple[Floats, Floats, float]:
    """Compute the mean autocovariance of unit noise after a quadratic fit: lags along both axes, lag zero."""
    side, lags = settings.window_px, settings.correlation_lags
    lag = np.arange(float(side))
    left = _projection(side, lags) @ correlation(lag[:, None], lag[None, :]).ravel()
    return left[1:lags], left[lags:], float(left[0])


@lru_cache(maxsize=8)
def _projection(side: int, lags: int) -> Floats:
    """Return the matrix from the covariance at all lags to that of residuals at lag zero, along rows, along columns.

    With the covariance R and the projection H on the surfaces, the residuals have R - HR - RH + HRH. Its mean at a lag
    is linear in R. HR and RH are sums of outer products, whose sum at a lag is a correlation of pictures.
    """
    basis = quadratic_basis(side).T.reshape(N_TERMS, side, side)
    spectra = np.fft.rfft2(basis, s=(2 * side, 2 * side))
    wanted = [(0, 0), *((0, lag) for lag in range(1, lags)), *((lag, 0) for lag in range(1, lags))]
    matrix = np.empty((len(wanted), side, side))
    for row, (down, right) in zip(matrix, wanted, strict=True):
        row[:] = _lost_at(down, right, basis, spectra) / -((side - down) * (side - right))
        row[down, right] += 1
    return matrix.reshape(len(wanted), -1)


def _lost_at(down: int, right: int, basis: Floats, spectra: Any) -> Floats:
    """Return what the covariance at each lag contributes to what a fit takes away at one lag, over all pairs."""
    side = basis.shape[-1]
    both, there, back = np.zeros_like(basis), slice(0, side - down), slice(down, side)
    both[:, back, right:] += basis[:, there, : side - right]
    both[:, there, : side - right] += basis[:, back, right:]
    flat, pictures = basis.reshape(N_TERMS, -1), both.reshape(N_TERMS, -1)
    once = (pictures - pictures @ flat.T @ flat / 2).reshape(basis.shape)
    size = (2 * side, 2 * side)
    sums = np.fft.irfft2((np.fft.rfft2(once, s=size).conj() * spectra).sum(0), s=size)
    for axis in (0, 1):  # the covariance is the same on both sides
        sums = np.moveaxis(sums, axis, 0)
        sums[1:side] += sums[:-side:-1]
        sums = np.moveaxis(sums[:side], 0, axis)
    return sums
