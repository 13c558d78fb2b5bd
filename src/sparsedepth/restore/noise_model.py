"""Estimate the impulse noise of a map: the fraction of its pixels that are outliers, and their amplitude.

Known noise of many amplitudes is added to some pixels of the map, and all pixels are scored again. Reweighting these
pixels shows the scores under impulse noise of any amplitude. The estimate must not predict more pixels of high score
than the map has, and the predicted residuals must be as large as the map's. This bounds the fraction of outliers from
above, tightly where no other pixels score so high.

Noise occurs anywhere, texture does not. Where the smoothest part of a map has significantly fewer high scores than the
whole predicts, or significantly smaller residuals, the smooth part decides. Slivers at a border or at a hole look like
noise, so pixels near a border are left out.

Added noise and held-out pixels have the symmetries of a square about the map's centre, so that flips commute.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from sparsedepth.ranks import quantile, quantiles
from sparsedepth.restore.scores import PixelScores
from sparsedepth.restore.settings import NoiseModelSettings, SimulationSettings
from sparsedepth.tiling import Tile
from sparsedepth.vocabulary import DepthMap, Floats, Vector

AMPLITUDES = np.geomspace(0.25, 4, 17)
"""Amplitudes that are tried, in map standard deviations: Gaussian noise, its variance uniform up to their square."""
SIMULATED_AMPLITUDES = AMPLITUDES[2:15]
"""Amplitudes of the noise that is added."""


@dataclass(frozen=True, eq=False)
class Simulation:
    """Parts of a map with known noise added and valid pixels held out; arrays are (parts, height, width)."""

    depth: DepthMap
    truth: DepthMap
    """The map as it was measured."""
    noise: Floats
    """What was added; 0 at most pixels."""
    held_out: NDArray[np.bool_]
    variance: DepthMap | None
    """A sensor's, if there is one."""
    corners: list[tuple[int, int]]

    @property
    def tile(self) -> Tile:
        """All parts, as a stack."""
        return Tile.full(self.depth, self.variance)

    def sample(self, values: NDArray[Any]) -> NDArray[Any]:
        """Cut the parts out of a map."""
        return _cut(values, self.corners, (self.depth.shape[1], self.depth.shape[2]))


@dataclass(frozen=True)
class ImpulseNoise:
    """Gaussian noise at random pixels, its variance uniform up to the amplitude squared."""

    fraction: float
    """Upper bound of the fraction of outliers."""
    amplitude: float
    """In map standard deviations."""
    score_threshold: float
    """Score above which outliers were counted."""
    asymmetry: float = 0.0
    """Pixels above that score in front of the surface minus those behind, as a fraction: noise lies on both sides."""


def simulate(tile: Tile, amplitudes: ArrayLike, rng: np.random.Generator, settings: SimulationSettings) -> Simulation:
    """Add impulse noise of one amplitude, or of several, to parts of a map, and hold out some valid pixels."""
    depth = tile.depth
    whole = depth.size <= settings.pixels
    shape = (
        depth.shape[0] if whole else min(settings.part_px, depth.shape[0]),
        depth.shape[1] if whole else min(settings.part_px, depth.shape[1]),
    )
    repeats = int(np.clip(settings.pixels // depth.size, 1, settings.max_repeats))
    corners = [(0, 0)] * repeats if whole else _draw_corners(depth, shape, rng, settings)
    truth = _cut(depth, corners, shape)
    noise = np.stack([np.where(np.isfinite(part), _draw_noise(shape, amplitudes, rng, settings), 0) for part in truth])
    held_out = np.stack([_hold_out(part, rng, settings) for part in truth]) & (noise == 0)
    shown = np.where(held_out, np.nan, truth + noise).astype(depth.dtype)
    variance = None if tile.variance is None else _cut(tile.variance, corners, shape)
    return Simulation(shown, truth, noise, held_out, variance, corners)


def _draw_corners(
    depth: DepthMap, shape: tuple[int, int], rng: np.random.Generator, settings: SimulationSettings
) -> list[tuple[int, int]]:
    """Draw parts from a grid, of those at least half valid; if none is, of those half as valid as the best."""
    valid = {
        (top, left): float(np.isfinite(depth[top : top + shape[0], left : left + shape[1]]).mean())
        for top in range(0, depth.shape[0] - shape[0] + 1, shape[0])
        for left in range(0, depth.shape[1] - shape[1] + 1, shape[1])
    }
    most = max(valid.values())
    corners = [corner for corner, share in valid.items() if share >= (0.5 if most >= 0.5 else most / 2)]
    chosen = rng.permutation(len(corners))[: settings.pixels // (shape[0] * shape[1])]
    return [corners[i] for i in np.sort(chosen)]


def _cut(values: NDArray[Any], corners: list[tuple[int, int]], shape: tuple[int, int]) -> NDArray[Any]:
    return np.stack([values[top : top + shape[0], left : left + shape[1]] for top, left in corners])


def _hold_out(depth: DepthMap, rng: np.random.Generator, settings: SimulationSettings) -> NDArray[np.bool_]:
    """Choose valid pixels at random and, where holes are few, those under the holes turned about the centre."""
    valid = np.isfinite(depth)
    few = bool((~valid).mean() < settings.few_holes_fraction)
    fraction = settings.held_out_fraction if few else settings.held_out_fraction_many_holes
    held_out = _draw_ranks((depth.shape[0], depth.shape[1]), fraction, rng) < 1
    if few:
        held_out |= ~valid[::-1, ::-1]
    return held_out & valid


def _draw_ranks(shape: tuple[int, int], fraction: float, rng: np.random.Generator) -> Floats:
    """Draw symmetric ranks, below 1 at a fraction of the pixels; no two images of one pixel touch."""
    side = max(shape) // 2 + 1
    draw = rng.random((side, side)) / fraction
    draw = np.triu(draw) + np.triu(draw, 1).T
    row, column = np.indices(draw.shape)
    draw[(row < 1) | (column < 1) | (np.abs(row - column) < 2)] = 1
    from_centre = (np.abs(2 * np.arange(n) - (n - 1)) // 2 for n in shape)
    return draw[tuple(np.meshgrid(*from_centre, indexing="ij"))]


def _draw_noise(
    shape: tuple[int, int], amplitudes: ArrayLike, rng: np.random.Generator, settings: SimulationSettings
) -> Floats:
    """Draw noise at some pixels, spread evenly over its distribution."""
    rank = _draw_ranks(shape, settings.noisy_fraction, rng)
    chosen = rank < 1
    distinct, which = np.unique(rank[chosen], return_inverse=True)
    noise = np.zeros(shape)
    if len(distinct):
        draws = np.sqrt(rng.random(20_000)) * np.abs(rng.standard_normal(20_000))
        draws *= rng.choice(np.atleast_1d(np.asarray(amplitudes, np.float64)), len(draws))
        spread = quantiles(draws, (np.arange(len(distinct)) + 0.5) / len(distinct))
        noise[chosen] = (rng.permutation(spread) * rng.choice([-1, 1], len(distinct)))[which]
    return noise


@dataclass(frozen=True)
class _Fit:
    """The noise model that fits one part of the map."""

    noise: ImpulseNoise
    weight: Vector
    """How often noise of each simulated size occurs under the model."""
    exceeds: Vector
    """How often each simulated pixel lies in this part with a high score: mostly 0 or 1."""
    count: int
    """Pixels of the map in this part with such scores."""


def magnitude_density(magnitudes: Floats, amplitude: float) -> Floats:
    """Return the probability density of the magnitude of impulse noise of an amplitude."""
    unit = magnitudes / amplitude
    return 4 / amplitude * (np.exp(-np.square(unit) / 2) / np.sqrt(2 * np.pi) - unit * ndtr(-unit))


def estimate_impulse_noise(
    scores: PixelScores,
    valid: NDArray[np.bool_],
    simulation: Simulation,
    simulated: PixelScores,
    settings: NoiseModelSettings,
) -> ImpulseNoise:
    """Estimate fraction and amplitude of a map's impulse noise from its scores and those of a simulation.

    Pixels near a border are left out if most pixels are not.
    """
    inside = valid & ~scores.near_border
    if 2 * np.count_nonzero(inside) > np.count_nonzero(valid):
        valid, simulation = inside, replace(simulation, noise=np.where(simulated.near_border, 0, simulation.noise))
    added, n_valid = simulation.noise != 0, int(np.count_nonzero(valid))
    if not added.any() or not n_valid:
        return ImpulseNoise(0.0, 1.0, np.inf)
    sizes = np.abs(simulation.noise[added])
    weights = np.stack([magnitude_density(sizes, amplitude) for amplitude in AMPLITUDES])
    weights /= np.mean([magnitude_density(sizes, amplitude) for amplitude in SIMULATED_AMPLITUDES], axis=0)
    weights /= weights.sum(axis=1, keepdims=True)
    best, *smoother_fits = (
        _fit_smooth_part(scores, valid, simulation, simulated, weights, fraction, settings)
        for fraction in settings.smooth_fractions
    )
    for fit in smoother_fits:
        expected = n_valid * best.noise.fraction * (best.weight @ fit.exceeds)
        fewer = fit.count < expected - settings.z * np.sqrt(expected) - 1
        chance = settings.z * settings.log_amplitude_std / np.sqrt(max(fit.count, 1))
        smaller = np.log(best.noise.amplitude / fit.noise.amplitude) > max(chance, settings.min_log_ratio)
        if fewer or smaller:
            best = fit
    counted = valid & (scores.score > best.noise.score_threshold)
    return replace(best.noise, asymmetry=_asymmetry(scores.residual[counted], settings))


def _asymmetry(residuals: Vector, settings: NoiseModelSettings) -> float:
    return float(np.sign(residuals).sum() / (len(residuals) + settings.prior_count))


def _fit_smooth_part(
    scores: PixelScores,
    valid: NDArray[np.bool_],
    simulation: Simulation,
    simulated: PixelScores,
    weights: Floats,
    fraction: float,
    settings: NoiseModelSettings,
) -> _Fit:
    """Fit the amplitude to the pixels of least local residual, a fraction of the map."""
    added, n_valid = simulation.noise != 0, int(np.count_nonzero(valid))
    limit = _quantile(scores.local_residual[valid], fraction) if fraction < 1 else np.inf
    smooth = valid & (scores.local_residual <= limit) if fraction < 1 else valid
    # Noise raises the local residual around it, so all added noise counts, also what is no longer in the smooth part;
    # but the simulated parts may by chance have more or less smooth pixels than the map.
    sampled = simulation.sample(valid)
    smooth_sampled = (simulation.sample(scores.local_residual) <= limit)[sampled].mean()
    ratio = (np.count_nonzero(smooth) / n_valid) / max(smooth_sampled, 1e-9)
    their_score = np.where(simulated.local_residual <= limit, simulated.score, -1)[added]
    score_before = simulation.sample(scores.score)[added]
    their_size = _log_size(simulated.residual[added])
    least_score = np.nextafter(np.float32(their_score[their_score >= 0].min(initial=np.inf)), np.float32(0))
    large = np.flatnonzero(smooth & (scores.score > least_score))  # no threshold lies below
    score, residual = scores.score.ravel()[large].astype(np.float32), scores.residual.ravel()[large]
    ordered = np.sort(score)
    best, least = None, np.inf
    for weight, amplitude in zip(weights, AMPLITUDES, strict=True):
        outliers, threshold = _bound_fraction(ordered, n_valid, their_score, weight * ratio, settings)
        theirs, ours = their_score > threshold, np.flatnonzero(score > threshold)
        single = weight * (theirs & (score_before <= threshold))  # noise on top of noise is larger than what was added
        count, mass = len(ours), single.sum()
        excess = _log_size(residual[ours]).mean() - (single @ their_size) / mass if count and mass > 0 else 0.0
        prior = settings.prior_count
        misfit = (count * abs(excess) + prior * abs(np.log(amplitude))) / (count + prior)
        if misfit < least:
            best = _Fit(ImpulseNoise(outliers, float(amplitude), threshold), weight, ratio * theirs, count)
            least = misfit
    assert best is not None
    return best


def _quantile(values: Vector, fraction: float) -> float:
    return quantile(values, fraction, n=len(values))


def _log_size(residuals: Vector) -> Vector:
    return np.log(np.maximum(np.abs(residuals), 1e-6))


def _bound_fraction(
    scores: Vector, n_pixels: int, noisy: Vector, weight: Vector, settings: NoiseModelSettings
) -> tuple[float, float]:
    """Return the least upper bound of the fraction of outliers, and the score above which it was counted.

    ``scores`` are sorted; ``noisy`` are the scores of added noise, negative where it does not count.
    """
    order = np.argsort(noisy)
    noisy, weight = noisy[order], weight[order]
    first = int(np.searchsorted(noisy, 0))
    if first == len(noisy):
        return 0.0, np.inf
    left = np.cumsum(weight[::-1])[::-1]  # at or above each
    wanted = left[first] * (1 - np.linspace(0, settings.max_quantile, settings.n_quantiles))
    at = np.maximum(len(left) - np.searchsorted(left[::-1], wanted, side="left") - 1, first)
    limits = np.nextafter(noisy[at], -1)
    above = len(scores) - np.searchsorted(scores, limits, side="right") + 1
    bounds = above / n_pixels / np.maximum(left[at], 1e-3)
    return float(min(1.0, bounds.min())), float(limits[bounds.argmin()])
