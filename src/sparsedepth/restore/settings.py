"""Every threshold of the default method, in frozen records.

Lengths in depth are in standard deviations of the map (sd) unless a field says otherwise. Each record says where its
data came from, as far as that was recorded: docs/decisions.md has the comparisons. A field without a remark of its own
has no recorded comparison. "Validation crops" are crops of Middlebury 2005, of Kinect and time-of-flight frames and of
simulated laser scans. "Development maps" are the maps of the restoration page. Coefficients that a script fitted are in
``models/``, with the script, the data, the seed and the commit that made them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sparsedepth.surfaces import MembraneSettings, SurfaceSettings
from sparsedepth.tiling import TilingSettings
from sparsedepth.vocabulary import InputError


@dataclass(frozen=True)
class Effort:
    """What a quality costs."""

    stride: int  #: Pixels between patches of eight; larger patches lie further apart in proportion.
    rounds: int  #: Most rounds of the coding, or with the paper's method most iterations.
    tolerance: float = 0.0  #: Relative change at which the coding stops.


class Qualities:
    """Efforts by the names of their qualities."""

    def effort(self, quality: str) -> Effort:
        """Return the effort of a quality."""
        efforts = {name: value for name, value in vars(self).items() if isinstance(value, Effort)}
        if quality not in efforts:
            raise InputError(f"quality is {quality!r}; choose one of {', '.join(map(repr, efforts))}")
        return efforts[quality]


@dataclass(frozen=True)
class CodingSettings(Qualities):
    """How patches are coded. Chosen on validation crops with 1, 5 and 20 % of impulses."""

    noise_floor: float = 0.02  #: sd; residuals below it cost their square, larger ones their size (Huber).
    sparsity: float = 1.2  #: Cost of a unit of code, in noise floors.
    fast: Effort = Effort(5, 8)
    balanced: Effort = Effort(2, 8)
    best: Effort = Effort(1, 16)
    window: float = 0.2  #: Standard deviation of the weight of a patch's pixels, in patch sides.


@dataclass(frozen=True)
class ScoreSettings:
    """How pixels are scored. Chosen on validation crops."""

    difference_floor: float = 0.01  #: sd; smaller differences between pixels are not significant.
    first_spacing: int = 2  #: Distance of patches in the first scoring, in strides. 1: twice the time, equal dB.
    step_weight: float = 0.3  #: Quantisation steps; near 1/sqrt(12), set by hand.
    patch_variance_weight: float = 8.0  #: Weight of the patches' variance in the score.
    #: Fraction of the 3x3 window that is valid, below which a pixel is near a border.
    border_valid_fraction: float = 0.7
    rescore_above: float = 1.0  #: Score above which a pixel is scored again.
    #: By how many pixels patches lie further apart than those of the quality. One more than this loses 0.3 dB.
    rescore_apart_px: int = 1
    rescore_sparsity: float = 1.1  #: Cost of a unit of code in the second scoring, in noise floors.
    rescore_rounds: int = 8  #: Rounds of the second scoring.
    core_weight: float = 0.4  #: Relative weight from which a pixel lies in the core of a patch.
    equal_difference: float = 1e-6  #: sd; smaller differences are none.
    min_equal_fraction: float = 0.2  #: Fraction of equal neighbours from which a map is quantised.
    step_percentile: float = 20.0  #: Percentile of the other differences that is the step.


@dataclass(frozen=True)
class SimulationSettings:
    """How known noise is added to a map and valid pixels are held out. Set by hand to bound the cost."""

    pixels: int = 20_000  #: A larger map is simulated on parts of it; a smaller one several times.
    part_px: int = 64  #: Side of a part.
    max_repeats: int = 16  #: Most simulations of a small map.
    noisy_fraction: float = 0.04  #: Pixels that get noise: images of one pixel never touch.
    held_out_fraction: float = 0.03  #: Valid pixels that are held out where holes are few, at random.
    held_out_fraction_many_holes: float = 0.1  #: Valid pixels that are held out where holes are many.
    #: Fraction of holes up to which they are few, and pixels under the turned holes are held out, too.
    few_holes_fraction: float = 0.2


@dataclass(frozen=True)
class NoiseModelSettings:
    """How impulse noise is estimated. Chosen on validation crops."""

    #: Fractions of a map, its smoothest pixels, on which the noise is estimated.
    smooth_fractions: tuple[float, ...] = (1.0, 0.5, 0.25)
    z: float = 2.5  #: Standard deviations of a count by which a smooth part must differ to be preferred.
    log_amplitude_std: float = 0.7  #: Standard deviation of the logarithm of detected noise.
    #: Least log ratio of amplitudes at which a smooth part is preferred: two steps of the grid.
    min_log_ratio: float = 0.3
    #: Scores are counted above quantiles of the noise up to this one; fewer pixels count badly.
    max_quantile: float = 0.5
    n_quantiles: int = 60  #: Quantiles that are tried.
    prior_count: int = 5  #: Pixels that weigh as much as the prior: an amplitude of 1 sd and no asymmetry.


@dataclass(frozen=True)
class OutlierSettings:
    """How outliers are decided. Chosen on validation crops unless said otherwise."""

    min_score: float = 0.2  #: Score up to which a pixel is no outlier; 0.3 costs 0.15 dB at 20 %.
    block_similarity: float = 0.7  #: Range of a 2x2 block, in residuals of its pixel, up to which the block is uniform.
    max_amplitude: float = 3.0  #: Residual, in amplitudes of the noise, above which the log-odds fall.
    max_penalty: float = 8.0  #: Most that the log-odds lose.
    #: Expected outliers below which a map is left unchanged: one that is found counts as two, but for rounding.
    min_count: float = 1.9
    #: Part of the estimated outliers that must be found: 0.02 to 0.17 on clean scans, 0.6 to 1.2 on noisy maps.
    min_detected_fraction: float = 1 / 3
    #: Outliers up to which a raw sensor map is left unchanged. Seen on development maps: scans have up to 0.28 %.
    raw_map_fraction: float = 3e-3
    corrected_weight: float = 0.5  #: Weight of the coded value above which a pixel is called corrected.
    third_pass_fraction: float = 0.1  #: Outliers from which suspects are scored three times: +0.1 to +0.5 dB.
    #: Variance of the coded value where a sensor gives its own, in variances of the patches.
    patch_variance_factor: float = 3.0
    ignored_features: tuple[int, ...] = ()  #: Features that the classifier does not see; for ablation.
    coding_failure_probability: float = 5e-4  #: Prior that the codes have failed at a pixel, at a step say.


@dataclass(frozen=True)
class StuckSettings:
    """How pixels stuck at an end of the range are found. Compared on 953 validation maps, of which none has any."""

    min_count: int = 10  #: Pixels with the same extreme value.
    #: Stuck ones among the neighbours of stuck pixels: by chance their fraction, on a clipped surface nearly all.
    max_adjacent_fraction: float = 0.25


@dataclass(frozen=True)
class ClusterSettings:
    """How clusters of outliers are found. Chosen on crops of Middlebury 2005 and simulated scans."""

    min_step: float = 0.15  #: sd; least step around a cluster.
    min_step_ratio: float = 4.0  #: The same step, in median steps between neighbours.
    min_step_levels: float = 1.5  #: The same step, in quantisation steps.
    step_multiples: tuple[int, ...] = (2, 4)  #: Larger steps that are tried, too, where small ones show clusters.
    max_side_px: int = 8  #: Largest extent of a cluster.
    min_smooth_fraction: float = 0.5  #: Part of the surroundings that is valid and smooth.
    step_floor: float = 0.02  #: sd; smaller differences between steps are not significant.
    min_score: float = 1.5  #: Score above which a component counts.
    #: Offset, in median offsets, above which a component is a structure. Seen on a development map.
    max_offset_ratio: float = 6.0
    min_count: int = 3  #: Components on either side.
    min_fraction: float = 1e-3  #: Pixels in components on either side.
    max_asymmetry_z: float = 2.5  #: Standard deviations of a count by which one side may have more.
    max_missed_fraction: float = 0.9  #: Bound of the estimated fraction of missed clusters.


@dataclass(frozen=True)
class FlyingSettings:
    """How flying pixels are found. Chosen on windows of Middlebury 2005 and 2006, Kinect and simulated scans."""

    min_step: float = 0.25  #: sd; least step between two sides.
    min_step_ratio: float = 6.0  #: The same step, in median steps between neighbours and in quantisation steps.
    similar: float = 0.05  #: sd; largest difference of neighbours on one side.
    similar_ratio: float = 3.0  #: The same difference, in median steps.
    similar_levels: float = 1.1  #: The same difference, in quantisation steps.
    min_similar_neighbours: int = 2  #: Of the eight neighbours, for a pixel that belongs to a side.
    min_valid_neighbours: int = 6  #: Of the eight neighbours, for a pixel that may be a mixture.
    own_depth_weight: float = 1.0  #: Weight of the pixel's own depth in the log-odds of its side.
    snap_probability: float = 0.8  #: Probability of a side from which a pixel is moved to it.
    min_mix: float = 0.01  #: Distance of a mixture from either side, as a part of the step.
    evidence_mix: float = 0.1  #: The same distance where a pixel counts as evidence for mixtures.
    min_face_px: int = 4  #: Pixels of a face.
    max_face_spread: float = 0.2  #: Range of a face, as a part of the step.
    chance_factor: float = 4  #: Bound of pixels between faces by chance, relative to those beyond.
    min_face_fraction: float = 0.04  #: Candidates that lie between faces; fewer are texture.
    max_ordered_ratio: float = 5  #: Ordered over disordered pairs of mixtures; ramps have more.
    #: Disordered over ordered pairs; thin structures have more. Seen on a development map.
    max_disordered_ratio: float = 3
    pseudocount: float = 2  #: Added to the ordered pairs in that ratio.
    min_count: int = 14  #: Mixtures between faces, and those out of order.
    min_fraction_of_edges: float = 0.03  #: Those mixtures, relative to sharp transitions.


@dataclass(frozen=True)
class DenseSettings:
    """How noise at every pixel is found and smoothed. Chosen on simulated time-of-flight maps and validation crops."""

    min_sigma: float = 0.03  #: sd; noise above it is smoothed.
    max_outlier_fraction: float = 0.05  #: Outliers from which one level is used for all depths.
    sparsity: float = 4.2  #: Cost of a unit of code, in standard deviations of the noise.
    rounds: int = 32  #: Iterations of the coding.
    second_pass_ratio: float = 0.3  #: Standard deviation of what is left after coding once, relative to the noise.
    raw_roughness: float = 5e-4  #: sd; low quantile of the differences in most blocks of a raw sensor map.
    #: Local residual, in standard deviations of the noise, up to which surroundings are smooth: less than the median of
    #: Gaussian noise. Seen on development maps, where 1 takes texture for outliers.
    smooth_residual: float = 0.5
    outlier_sigmas: float = 4.0  #: Residual, in standard deviations of the noise, above which a pixel is an outlier.
    sigma_floor: float = 1e-6  #: sd of a perfectly flat block.
    min_blocks: int = 12  #: Blocks below which the level is the same at all depths.
    max_blocks: int = 4096  #: Blocks that are used to fit the level; speed only.
    #: High over low quantile of the differences in flat blocks; 4 for Gaussian noise, more is texture.
    max_tail_ratio: float = 8.0
    #: Energy that smoothing removes, relative to the noise, above which some of it is texture.
    texture_ratio: float = 1.1


@dataclass(frozen=True)
class InpaintingSettings:
    """How holes are filled. Compared on validation crops with 50 to 95 % of the pixels missing."""

    sparsity: float = 1.0  #: Cost of a unit of code, in noise floors.
    rounds: int = 12  #: Rounds of the coding.
    guess_weight: float = 0.02  #: Weight of a guessed pixel, relative to a measured one.
    measured_variance: float = 1e-8  #: Variance of measured pixels above the noise floor; only keeps it positive.
    large_hole_margin_px: int = 24  #: Context of a large hole.
    statistics_pixels: int = 2**20  #: Pixels for the median and the standard deviation of a restored map; speed only.


@dataclass(frozen=True)
class GuideSettings:
    """How filling by a picture is calibrated. Set by hand."""

    membrane: MembraneSettings = field(default_factory=MembraneSettings)
    held_out_ring_px: int = 2  #: Pixels around holes that are held out.
    many_holes_fraction: float = 0.3  #: Fraction of holes above which pixels are held out at random.
    held_out_fraction: float = 0.2  #: Valid pixels that are held out then.
    step_ratio: float = 0.2  #: sd; least step along which pixels are held out to see whether a picture is registered.
    step_ring_px: int = 3  #: Distance to such a step within which pixels are held out.
    clear_ratio: float = 0.5  #: Squared error with the picture over that without, below which it is followed wholly.
    min_variance_ratio: float = 0.01  #: Least variance, relative to the mean squared error of held-out pixels.


@dataclass(frozen=True)
class VarianceSettings:
    """How the variance of measured pixels is predicted. Chosen with the fitted coefficients."""

    range_floor: float = 0.005  #: sd; smaller local ranges are level.
    max_log_error: float = 2.0  #: Log of the largest squared error of missed outliers.
    pooled_fraction: float = 0.4  #: Kept pixels that share one variance; 0.3 to 0.6 are as well calibrated.
    #: Added to the sums of p (1 - p) and of p, for maps without suspects.
    ambiguity_prior: tuple[float, float] = (0.02, 0.2)
    fit_pixels: int = 2**16  #: Pixels that decide which are the most certain; speed only.
    min_per_bin: int = 30  #: Observations in a bin of an isotonic curve.
    max_bins: int = 16  #: Bins of an isotonic curve.


@dataclass(frozen=True)
class FilledVarianceSettings:
    """How the variance of filled pixels is predicted. Chosen with the fitted coefficients."""

    close_px: int = 3  #: Side of the close window.
    wide_px: int = 15  #: Side of the wide window.
    min_for_difference: int = 3  #: Valid pixels that a difference is taken from.
    min_for_mean: int = 32  #: Valid pixels over which squared differences are averaged.
    variance_floor: float = 0.03**2  #: Map variances; smaller local variances are level where holes are clustered.
    max_variance: float = 4.0  #: Map variances; no pixel errs by more.
    max_over_worst: float = 2.0  #: Largest variance, relative to the worst held-out pixel.
    clustering: float = 0.12  #: Missing neighbours of missing pixels, beyond chance, from which holes are clustered.
    prior_error: float = 0.02  #: Squared error, in map variances, of one more held-out pixel.
    #: Standard deviations, over maps, of their log factor and of their power.
    prior_std: tuple[float, float] = (1.5, 0.3)
    pixels_per_sample: float = 50.0  #: Held-out pixels that count as one gamma-distributed observation.
    newton_steps: int = 30  #: Iterations of the fit.
    prior_weight: float = 20.0  #: Filled pixels that weigh as much as the law, in large holes.


@dataclass(frozen=True)
class PaperSettings(Qualities):
    """How the paper's method codes. The efforts of the other qualities have no recorded comparison."""

    fast: Effort = Effort(7, 32, 2e-2)
    balanced: Effort = Effort(5, 56, 1e-2)
    best: Effort = Effort(2, 300, 2e-3)
    paper: Effort = Effort(1, 300, 2e-3)
    min_confidence: float = 0.5  #: Noise floor / inferred variance below which a pixel is noisy: half its weight.


@dataclass(frozen=True)
class Settings:
    """All thresholds of the default method."""

    tiling: TilingSettings = field(default_factory=TilingSettings)
    coding: CodingSettings = CodingSettings()
    scores: ScoreSettings = ScoreSettings()
    simulation: SimulationSettings = SimulationSettings()
    noise_model: NoiseModelSettings = NoiseModelSettings()
    outliers: OutlierSettings = OutlierSettings()
    #: None: stuck pixels are not looked for; so for the other kinds of corruption.
    stuck: StuckSettings | None = StuckSettings()
    clusters: ClusterSettings | None = ClusterSettings()
    flying: FlyingSettings | None = FlyingSettings()
    dense: DenseSettings = DenseSettings()
    surfaces: SurfaceSettings = field(default_factory=SurfaceSettings)
    inpainting: InpaintingSettings = InpaintingSettings()
    guide: GuideSettings = GuideSettings()
    variance: VarianceSettings = VarianceSettings()
    variance_filled: FilledVarianceSettings = FilledVarianceSettings()
    paper: PaperSettings = PaperSettings()
