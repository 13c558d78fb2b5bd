"""The numbers of streams, in one record."""

from __future__ import annotations

from dataclasses import dataclass

DEVELOPMENT = (
    "chosen on simulated pixels (static, drifting by 0.2 to 1 standard deviation a frame, jumping) and on the "
    "sequences of `sparsedepth reproduce streams`"
)
"""Provenance of all numbers without one of their own."""


@dataclass(frozen=True)
class StreamSettings:
    """Thresholds and rates of the estimate over time.

    Fields that end in ``_px`` are in pixels, in ``_frames`` in frames, in ``_sigmas`` in standard deviations of what
    they limit. Others are ratios. Provenance: `DEVELOPMENT`, unless a field says otherwise.
    """

    gate_sigmas: float = 8.0
    """A measurement farther from the mean than this is no noise: a new surface, an outlier or a moving edge."""
    huber_sigmas: float = 3.0
    """Larger innovations have the weight of one of this size."""
    least_gain: float = 1 / 30
    """Weight of a new frame in the mean of many: the memory is 30 frames long."""
    scale_rate: float = 0.1
    """Rate at which the local noise level follows the differences of successive frames."""
    largest_scale: float = 16.0
    """Largest squared difference that counts, over the one that the sensor predicts."""
    run_memory: float = 0.8
    """Memory of the mean innovation, which shows slow change."""
    run_sigmas: float = 2.6
    """A mean innovation beyond this is slow change."""
    run_clip: float = 6.0
    """Largest innovation that counts in the mean innovation."""
    run_relief: float = 0.25
    """Fraction of the explained part that is taken off the mean innovation."""
    drift_prior: float = 2.0
    """Least variance of the mean where change is certain, in variances of one measurement."""
    drift_block_px: int = 8
    """Side of the blocks whose mean innovations are taken."""
    drift_regions: tuple[tuple[int, float], ...] = ((3, 0.0), (7, 1.0))
    """Regions that show slow change: their side in blocks, and what their mean innovations need beyond the limits."""
    drift_share: float = 0.05
    """Least fraction of a region that is measured, where its mean innovation is divided by that fraction."""
    drift_sigmas: float = 2.0
    """A mean innovation of a region over the last frames beyond this is slow change."""
    onset_sigmas: float = 3.0
    """A mean innovation of a region in one frame beyond this is slow change."""
    lag_sigmas: float = 1.5
    """A mean innovation of a region beyond this makes its pixels less certain, by its square less that of this."""
    candidate_sigmas: float = 3.0
    """Two successive measurements beyond the gate that agree within this are a new surface."""
    support: int = 4
    """Fewest of the eight adjacent pixels that make a new surface at once, if they jump to about the same depth."""
    outlier_risk: float = 0.1
    """Probability that a single measurement beyond the gate is right."""
    memory_frames: int = 30
    """A pixel that was not measured for longer is forgotten."""
    memory_growth: float = 0.25
    """Growth of the variance of a remembered pixel a frame, in variances of one measurement."""
    key_first_frames: int = 5
    """Number of the first key frame, whose holes are filled in the background (set by hand)."""
    key_every_frames: int = 30
    """Distance of key frames: one a second. A filled pixel is remembered for as long."""
    key_delay_frames: int = 8
    """Delay of their results: filling 640 x 480 pixels takes 0.14 CPU s, four frames."""
    shadow_px: int = 16
    """Remembered pixels that are nearer to a new surface are forgotten: they lie in the shadow of what moved."""
    block_px: int = 4
    """Side of the blocks that measure the distance to new surfaces."""
    young_ratio: float = 0.35
    """Pixels are young, and smoothed in space, while their variance exceeds this fraction of one measurement's, times
    the fraction of the variance that smoothing leaves."""
    smooth_px: tuple[int, ...] = (2, 4, 7)
    """Distances of the pixels that young ones are averaged with."""
    smooth_sigmas: tuple[float, float] = (4.5, 2.5)
    """Largest difference of a pixel and the mean of two opposite ones that are averaged with it. The first number holds
    where smoothing leaves nothing of the variance, the second where it leaves all."""
    smooth_inflation: float = 1.35
    """Variance after smoothing over that of weights that do not depend on the noise."""
    table_knots: int = 4096
    """Knots of the tables of variance."""
    table_reach: float = 4.0
    """Depths of the table beyond those of the first frame, as a ratio."""
    least_std: float = 1e-4
    """Least standard deviation of a measurement, as a fraction of depth (set by hand)."""
    learn_frames: tuple[int, ...] = (2, 3, 5, 8, 12, 20, 30)
    """Numbers of frames after which an unknown sensor is estimated again."""
    learn_bins: int = 12
    """Bins of depth of that estimate."""
    learn_ratio: float = 1.1
    """Least ratio of the ends of a bin."""
    learn_stride_px: int = 3
    """Distance of the pixels that it uses."""
    still_px: float = 0.05
    """A camera that moves the picture by less than this stands still."""
    still_block_px: int = 16
    """Side of the blocks whose mean differences show motion."""
    still_stride_px: int = 2
    """Distance of the pixels that they use."""
    still_region: int = 5
    """Side of the regions that are judged, in blocks."""
    still_share: float = 0.3
    """Least fraction of a region that is measured."""
    still_correlation: float = 0.3
    """Mean agreement of successive differences in a region beyond which it moves; -1 to 1, noise has -0.27 to -0.18."""
    noise_agreement: float = -0.18
    """Largest mean agreement that noise has: that of frames with a correlation of 0.3."""
    noise_sigmas: float = 4.0
    """Excess of the agreement of all blocks that is motion, over one by the root of their number."""
    motion_ratio: float = 4.0
    """A motion of the picture is shown by innovations of which it explains more than this times what chance does,"""
    motion_share: float = 0.01
    """and this fraction. The belief is set aside for one frame, until the next one tells."""
    largest_chance: float = 0.15
    """Largest fraction that chance explains, times the ratio; cameras that stand still had at most 0.10."""
    motion_square: float = 1.6
    """Mean square of the innovations of the second frame, each limited, beyond which the camera may move; 1 = noise."""
    motion_stride: int = 2
    """Distance of the cells that show it."""
    most_moving: float = 0.5
    """A camera without poses moves if more than this fraction of the picture does."""
    warp_variance: float = 0.02
    """Variance that warping adds, in squared differences of adjacent pixels."""
    crack: float = 0.02
    """Relative difference of inverse depths below which two pixels belong to one surface (set by hand)."""
    edge_sigmas: float = 6.0
    """Pixels that differ by more are not interpolated when a view is warped."""
    fit_stride_px: int = 4
    """Distance of the pixels that show the smooth disagreement of views."""
    fit_iterations: int = 3
    """Reweighted least squares of the smooth disagreement."""
    align_stride_px: int = 6
    """Distance of the pixels that align views and judge it."""
    cell_px: int = 3
    """Side of the cells whose means align views and show motion; noise of single pixels would hide their slopes."""
    cell_sigmas: float = 6.0
    """Pixels of a cell that differ by more from its centre are of another surface."""
    cell_share: float = 0.5
    """Least fraction of a cell that belongs together."""
    align_iterations: int = 6
    """Steps of the point-to-plane alignment."""
    align_sigmas: float = 4.0
    """Tuning constant of Tukey's biweight in the alignment."""
    align_gain: float = 0.05
    """Least gain of an alignment, as a fraction of the squared innovations, for a camera that moves."""
    align_agreement: float = 0.96
    """An alignment that leaves fewer of the compared pixels within the gate in agreement is wrong."""
    align_cost: float = 1.4
    """Largest mean square of the innovations, each limited, that a right alignment leaves; noise alone leaves 1."""
    least_agreement: float = 0.6
    """A view that agrees with the belief at fewer of the pixels is lost."""
    agreement_sigmas: float = 3.0
    """Largest innovation of a pixel that agrees."""


DEFAULT = StreamSettings()
"""The numbers that streams use."""
