"""The default method: the map calibrates its own detector of outliers.

1. **Remove artefacts** that look like structure: stuck pixels, clusters of outliers, flying pixels (`artefacts`,
   `flying`). Each is fitted on a sample of the map, which may show none.
2. **Score** every pixel. Patches are coded robustly, under a variance for each pixel with an exponential prior
   (Huber's loss). An outlier is far from the coded value, and far from its nearest neighbours in depth (`scores`).
3. **Simulate.** Known noise is added to some pixels of the map, and valid pixels are held out. The scores of the known
   noise show how many outliers the map has, and of what amplitude (`noise_model`).
4. **Correct.** A classifier turns scores and other features into the probability of an outlier (`outliers`). Measured
   and coded values are blended by it. Suspects are scored again by the codes of the corrected map. A map without
   outliers is left unchanged. Where there is noise at every pixel, all are smoothed instead (`dense`).
5. **Fill** holes (`inpainting`).
6. **Predict the variance** of every pixel (`variance_measured`, `variance_filled`).

Lengths in depth are in standard deviations of the map. Every threshold is in `settings`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsedepth.coding.aggregate import PatchCoder
from sparsedepth.coding.noise import Exponential
from sparsedepth.dictionary import Dictionary
from sparsedepth.missing import holes_containing_patch
from sparsedepth.parallel import Once
from sparsedepth.restore import dense
from sparsedepth.restore.artefacts import Artefact, OutlierClusters, Removal, StuckPixels
from sparsedepth.restore.flying import FlyingPixels
from sparsedepth.restore.inpainting import FilledVariance, fill_holes, fit_filled_variance
from sparsedepth.restore.noise_model import (
    SIMULATED_AMPLITUDES,
    ImpulseNoise,
    Simulation,
    estimate_impulse_noise,
    simulate,
)
from sparsedepth.restore.outliers import OutlierClassifier, OutlierModel, Posterior, shipped_classifier
from sparsedepth.restore.scores import PixelScores, quantization_step, rescore_suspects, score_pixels
from sparsedepth.restore.settings import Settings
from sparsedepth.restore.variance_measured import MapNoise, MeasuredCoefficients, MeasuredVariance, ambiguity
from sparsedepth.tiling import Tile, classify_origin
from sparsedepth.vocabulary import Floats

ARTEFACTS: dict[str, type[Artefact]] = {"stuck": StuckPixels, "clusters": OutlierClusters, "flying": FlyingPixels}
"""Kinds of corruption in the order of their removal, by the names of their settings."""


def patch_coder(dictionary: Dictionary | None, quality: str, settings: Settings) -> PatchCoder:
    """Return the robust patch coder of a quality."""
    chosen, effort = settings.coding, settings.coding.effort(quality)
    dictionary = dictionary or Dictionary.builtin("default")
    return PatchCoder(
        dictionary,
        Exponential(1.0),
        chosen.sparsity,
        stride=max(1, effort.stride * min(dictionary.patch_shape) // 8),
        tolerance=effort.tolerance,
        max_rounds=effort.rounds,
        unit=chosen.noise_floor,
        free_mean=True,
        window=chosen.window,
    )


def fit(
    sample: Tile, coder: PatchCoder, settings: Settings, *, correct: bool, fill: bool, second_pass: bool, threads: int
) -> FittedRestorer:
    """Fit the method on a sample of a map; the result restores any tile of it."""
    artefacts, removal = find_artefacts(sample, settings) if correct else ((), Removal.nothing(sample))
    survey = Survey.of(removal.tile, coder, settings, threads)
    corrector = Corrector.fit(survey, correct, threads)
    corrected = Once(lambda: corrector(removal.tile, threads))
    filled = Once(lambda: fit_filled_variance(corrected().value, survey.simulation, coder, settings, threads))
    return FittedRestorer(sample, artefacts, removal, corrector, corrected, filled, fill, second_pass)


def find_artefacts(sample: Tile, settings: Settings) -> tuple[tuple[Artefact, ...], Removal]:
    """Fit every kind of artefact on a sample without the kinds before it; return those found, and the sample."""
    found: list[Artefact] = []
    removal, step = Removal.nothing(sample), quantization_step(sample.steps, settings.scores)
    for name, kind in ARTEFACTS.items():
        if getattr(settings, name) is not None and (artefact := kind.fit(removal.tile, step, settings)):
            found.append(artefact)
            removal = removal.then(artefact)
            step = quantization_step(removal.tile.steps, settings.scores)
    return tuple(found), removal


@dataclass(frozen=True, eq=False)
class FittedRestorer:
    """Restores any tile of the map that it was fitted on."""

    sample: Tile
    artefacts: tuple[Artefact, ...]
    removal: Removal
    """The sample without artefacts."""
    corrector: Corrector
    corrected: Once[Corrected]
    """The sample, corrected."""
    filled_variance: Once[FilledVariance]
    fill: bool
    second_pass: bool

    @property
    def smooths(self) -> bool:
        """Whether there is noise at every pixel, which is smoothed after outliers were found."""
        return self.corrector.smoother is not None

    def __call__(self, tile: Tile, threads: int) -> tuple[Floats, Floats, NDArray[np.integer[Any]]]:
        """Return depth, variance and origin of a tile."""
        removal = self.removal if tile is self.sample else Removal.nothing(tile).then(*self.artefacts)
        corrected = self.corrected() if tile is self.sample else self.corrector(removal.tile, threads)
        value, variance = corrected.value, corrected.variance + removal.variance
        coder, settings = self.corrector.survey.coder, self.corrector.survey.settings
        refused = (corrected.weight == 0) | holes_containing_patch(~tile.valid, coder.dictionary.patch_shape)
        refused = ~tile.valid & (refused | (not self.fill))
        moved = np.square(value - removal.tile.depth) > variance  # otherwise a fill may only be worse
        holes, again = ~removal.tile.valid & ~refused, corrected.outlier & moved & self.second_pass
        if (holes | again).any():
            shown = np.where(again, np.nan, value)
            filled = fill_holes(shown, coder, settings, threads, refused, tile.window)
            value = np.where(holes | again, filled, value)
            if holes.any():
                variance = np.where(holes, self.filled_variance()(filled, np.isnan(shown)), variance)
        smoothed = tile.valid & self.smooths
        return value, variance, classify_origin(tile.valid, corrected.outlier | removal.corrupted, refused, smoothed)


@dataclass(frozen=True, eq=False)
class Survey:
    """A sample of a map, its scores, and the noise that these show."""

    sample: Tile
    coder: PatchCoder
    settings: Settings
    step: float
    """Quantisation step; 0 = continuous."""
    scores: PixelScores
    simulation: Simulation
    noise: ImpulseNoise

    @classmethod
    def of(cls, sample: Tile, coder: PatchCoder, settings: Settings, threads: int) -> Survey:
        """Score a sample, simulate known noise on it, score that, and estimate the noise of the map."""
        step = quantization_step(sample.steps, settings.scores)
        scores = score_pixels(sample, coder, step, settings.scores, threads)
        simulation = simulate(sample, SIMULATED_AMPLITUDES, np.random.default_rng(0), settings.simulation)
        simulated = score_pixels(simulation.tile, coder, step, settings.scores, threads)
        noise = estimate_impulse_noise(scores, sample.valid, simulation, simulated, settings.noise_model)
        return cls(sample, coder, settings, step, scores, simulation, noise)

    def has_dense_noise(self) -> bool:
        """Tell whether there is noise at every pixel; where a sensor gives a variance, that decides."""
        return self.sample.variance is None and dense.has_dense_noise(
            self.sample.depth, self.noise.fraction, self.settings.dense
        )

    def is_clean(self, probability: Floats) -> bool:
        """Tell whether a map has far fewer outliers than estimated, or no more than raw sensor maps have."""
        chosen, found = self.settings.outliers, float(probability[self.sample.valid].mean())
        few = min(found, self.noise.fraction) < chosen.raw_map_fraction
        raw = few and dense.is_raw_sensor_map(self.sample.depth, self.settings.dense)
        return found < chosen.min_detected_fraction * self.noise.fraction or raw


@dataclass(frozen=True, eq=False)
class Corrected:
    """The valid pixels of a tile after correction."""

    value: Floats
    """NaN where missing."""
    variance: Floats
    outlier: NDArray[np.bool_]
    weight: Floats
    """Weight of the patches that cover each pixel; 0 = none."""


@dataclass(frozen=True, eq=False)
class Corrector:
    """Corrects the outliers of any tile, and smooths dense noise."""

    survey: Survey
    model: OutlierModel
    passes: int
    """Scorings after the first."""
    judged: tuple[PixelScores, Posterior]
    """Of the sample."""
    variance: MeasuredVariance
    smoother: dense.Smoother | None
    """For maps with noise at every pixel."""

    @classmethod
    def fit(cls, survey: Survey, correct: bool, threads: int, classifier: OutlierClassifier | None = None) -> Corrector:
        """Decide how to correct a map: not at all, its outliers, or every pixel."""
        sample, noise, settings = survey.sample, survey.noise, survey.settings
        smooth = correct and survey.has_dense_noise()
        n_valid = int(np.count_nonzero(sample.valid))
        enabled = correct and noise.fraction * n_valid >= settings.outliers.min_count
        enabled = enabled and n_valid >= survey.coder.atoms.shape[1]  # codes fit nearly any map of fewer pixels
        model = OutlierModel(noise, survey.step, enabled, settings, classifier or shipped_classifier())
        if smooth:
            sigma = dense.NoiseLevel.fit(sample.depth, settings.dense).mean(sample.depth)
            model = replace(model, dense_residual=settings.dense.smooth_residual * sigma)
        once = not enabled or not survey.coder.overlapping
        passes = 0 if once else 1 + (noise.fraction > settings.outliers.third_pass_fraction)
        judged = judge(sample, survey.scores, survey.coder, model, passes, threads)
        if enabled and not smooth and survey.is_clean(judged[1].probability):
            model, passes = replace(model, enabled=False), 0
            judged = judge(sample, survey.scores, survey.coder, model, passes, threads)
        variance = _fit_variance(survey, model, *judged)
        smoother = _fit_smoother(survey, model, *judged, threads) if smooth else None
        return cls(survey, model, passes, judged, variance, smoother)

    def __call__(self, tile: Tile, threads: int) -> Corrected:
        """Correct a tile of the map."""
        scores, posterior = self.judged if tile is self.survey.sample else self._judge(tile, threads)
        value, outlier = posterior.blend(tile.depth, scores), self.model.outliers(tile, posterior)
        if self.smoother is not None:
            outlier &= self.smoother.level.exceeded(scores.residual, tile.depth)
            shown = np.where(outlier, value, tile.depth).astype(np.float32)
            smoothed, variance = self.smoother(shown, tile.window, threads)
            extra = np.where(outlier, self.variance(value, scores, posterior, outlier), 0)
            smoothed = np.where(tile.valid, smoothed, np.nan)
            return Corrected(smoothed, np.maximum(variance, extra), outlier, scores.weight)
        variance = self.variance(value, scores, posterior, outlier)
        if tile.variance is not None:
            kept = np.square(1 - posterior.weight) * np.where(tile.valid, tile.variance, 0)
            variance = np.maximum(variance, kept)
        return Corrected(value, variance, outlier, scores.weight)

    def _judge(self, tile: Tile, threads: int) -> tuple[PixelScores, Posterior]:
        coder, step, chosen = self.survey.coder, self.survey.step, self.survey.settings.scores
        return judge(tile, score_pixels(tile, coder, step, chosen, threads), coder, self.model, self.passes, threads)


def judge(
    tile: Tile, scores: PixelScores, coder: PatchCoder, model: OutlierModel, passes: int, threads: int
) -> tuple[PixelScores, Posterior]:
    """Judge the pixels of a tile by their first scores, and by further ones of the corrected tile."""
    posterior = model(tile, scores)
    for _ in range(passes):
        corrected = posterior.blend(tile.depth, scores)
        scores = rescore_suspects(tile, scores, corrected, coder, model.step, model.settings.scores, threads)
        posterior = model(tile, scores)
    return scores, posterior


def _fit_variance(survey: Survey, model: OutlierModel, scores: PixelScores, posterior: Posterior) -> MeasuredVariance:
    chosen, sample = survey.settings.variance, survey.sample
    coefficients = MeasuredCoefficients.load(quantized=survey.step > 0)
    noise = MapNoise(survey.noise, coefficients, ambiguity(posterior.probability, chosen))
    restored = posterior.blend(sample.depth, scores)
    return MeasuredVariance.fit(noise, restored, scores, posterior, model.outliers(sample, posterior), chosen)


def _fit_smoother(
    survey: Survey, model: OutlierModel, scores: PixelScores, posterior: Posterior, threads: int
) -> dense.Smoother:
    """Calibrate the smoother on parts of the sample without outliers."""
    sample, settings = survey.sample, survey.settings
    level = dense.NoiseLevel.fit(sample.depth, settings.dense)
    outlier = model.outliers(sample, posterior) & level.exceeded(scores.residual, sample.depth)
    shown = np.where(outlier, posterior.blend(sample.depth, scores), sample.depth).astype(np.float32)
    return dense.Smoother(level, survey.coder).calibrate(survey.simulation.sample(shown), settings.variance, threads)
