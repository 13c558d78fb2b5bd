"""The numbers of the sensor model, in one record."""

from __future__ import annotations

from dataclasses import dataclass

DEVELOPMENT = (
    "chosen on the 18 tuning frames of benchmarks/sensors.py (Kinect v1, RealSense D435 and D455, Pico Zense) and on "
    "simulated sensors"
)
"""Provenance of all numbers without one of their own."""


@dataclass(frozen=True)
class SensorSettings:
    """Thresholds and scales of the estimates from one frame and from several, and of the smoothing.

    Fields that end in ``_px`` are in pixels, those in ``_sigmas`` in standard deviations of the noise that a window
    shows (sigma). Others are ratios or counts. Provenance: `DEVELOPMENT`, unless a field says otherwise. Set by hand,
    without a recorded comparison: blocks, `window_dense_quantile` to `inlier_sigmas`, bounds and starts of the fitted
    correlation, and all fields from `least_frames` on.
    """

    window_px: int = 32
    """Side of the windows that show the noise; the shared measurements ask for 16 to 32."""
    window_stride_px: int = 16
    window_valid: float = 0.8
    """Least density of valid pixels of a window, as a fraction of that of the densest windows."""
    window_inliers: float = 0.85
    """Least fraction of the valid pixels of a window that its quadratic surface explains."""
    lattice_density: float = 0.6
    """Valid pixels that are sparser than this where they are densest form a lattice, which is worked on in cells."""
    largest_cell_px: int = 2
    """Sparser pixels than one in a cell of this side are left as they are: their neighbours are too far."""
    block_px: int = 16
    """Side of the blocks whose density of valid pixels is measured."""
    block_quantile: float = 0.75
    """Quantile of the densities of blocks that is the density where valid pixels are densest."""
    window_dense_quantile: float = 0.95
    """Quantile of the densities of windows that is that of the densest ones."""
    window_pixels_per_term: int = 4
    """Fewest valid pixels of a window for each coefficient of its surface."""
    inlier_sigmas: float = 4.0
    """Largest residual of an inlier of a window, in robust standard deviations."""
    fit_iterations: int = 5
    fit_pixels: int = 256
    """Pixels of a window that measure the scale of its residuals."""
    tukey: float = 4.685
    """Tuning constant of Tukey's biweight: 95 % efficiency for Gaussian noise (textbook)."""
    min_windows: int = 8
    """Fewer windows than this say nothing."""
    visible_quantile: float = 0.4
    """Quantile of the residuals of windows at one depth that is noise without structure."""
    depth_knots: int = 12
    depth_kernel: float = 0.2
    """Width of a knot in natural logarithms of depth."""
    prior_windows: float = 15.0
    """Weight of the law of all depths, sigma ~ z^2, in windows."""
    step_quantile: float = 0.02
    """Quantile of the differences of successive valid pixels, zero excluded, that is one step."""
    frequent_part: float = 0.01
    """Fraction of the pixels, with depths next to a value on either side, that tell how frequent it should be."""
    frequent_ratio: float = 0.1
    """Least count of a value, over that of the value of a usual pixel near it; rarer ones are impulses."""
    step_bins: int = 12
    step_sample_pixels: int = 2**16
    """Pixels in whose rows differences are counted; speed only."""
    step_pixels: int = 50
    """Fewest differences that show the step of a bin."""
    noisy_over_step: float = 1.25
    """Gate: residuals of nearly all windows exceed those of rounding by this ratio."""
    noisy_evidence: float = 0.22
    """Gate: noise has a sharp floor that most windows share, scenes do not. Set between 0.25 (an Azure Kinect before
    near and far walls) and 0.16 (laser scan of a walkway); 52 of 54 maps of Middlebury fail the other gate."""
    noisy_explained: float = 0.8
    """Gate: surfaces explain this fraction of the windows. Cameras have 0.98, and 0.92 with 5 % of impulses.
    Disparities and laser scans with 20 % of impulses have at most 0.69."""
    noisy_windows: int = 40
    few_windows_evidence: float = 0.68
    few_windows_over_step: float = 2.0
    """Gates where windows are fewer, in maps below some 130 x 130 pixels: laser crops reach an evidence of 0.60. One
    disparity crop with impulses reaches 0.85 and 1.36; simulated cameras have 2.6 there."""
    windows_ratio: float = 0.5
    """Least standard deviation of a map that may be noisy, over that of windows. Pooled squared error / variance over
    the zoo has a mean of 0.9 with it, and 5.9 without: small crops of simulated cameras pass no gate."""
    white_ratio: float = 0.15
    """White noise over all noise, above which the floor must be sharper: structure with some white noise looks alike.
    No real camera reaches 0.01; Gaussian noise on disparities of Middlebury is above 0.19. Strong noise above it is
    smoothed by sparse codes; simulated time of flight has 0.47 to 0.93."""
    white_evidence: float = 0.45
    """Gate where white noise is visible. Set between 0.36 (Baby2 with 1 % of Gaussian noise) and 0.58 (simulations)."""
    difference_block_px: int = 6
    """Side of the blocks in which crossed differences are measured."""
    flat_percentile: float = 20.0
    """Percentile of these blocks, from the flattest, that show noise alone."""
    noisy_factor: float = 1.8
    """Factor within which residuals of windows are about the same."""
    pattern_sharpness: float = 0.5
    """Least ratio of the 10 % to the 40 % quantile of residuals of the mean frame that is a fixed pattern."""
    correlation_lags: int = 15
    correlation_windows: int = 300
    correlation_frames: int = 8
    """Number of frames, about, that measure the correlation where several are given."""
    shortest_correlation_px: float = 0.3
    longest_correlation_px: float = 32.0
    """Bounds of a fitted length; in one frame, half a window is the upper one."""
    window_exponent: float = 1.0
    frames_exponent: float = 0.7
    """Least fitted exponents, from one frame and from several; 2, a Gaussian, is the largest."""
    largest_white: float = 0.95
    """Largest fitted fraction of white noise, which leaves the lengths defined."""
    start_correlation_px: float = 4.0
    start_exponent: float = 1.3
    start_white: float = 0.1
    """Numbers that the fit of a correlation starts from."""
    window_evaluations: int = 25
    """Most evaluations of the fit from one frame."""
    window_tolerance: float = 1e-3
    """Relative change of the misfit at which that fit stops."""
    min_visible: float = 0.7
    """Least fraction of the standard deviation that a window is believed to show."""
    most_nonpositive: float = 0.05
    """Largest fraction of depths that are not positive; they are outliers, and more of them are no depths (by hand)."""
    outlier_sigmas: float = 4.0
    """Pixels within this of each other support each other; the law of no measured sensor reaches it (0.4 %)."""
    outlier_support: float = 0.11
    """Fraction of the 24 neighbours below which a pixel is an outlier; a line of one pixel has 4 of 24."""
    outlier_ratio: float = 1.5
    """Variance of a replaced outlier over that of the pixels around it, which have their own value."""
    tv_weight: float = 3.0
    tv_iterations: int = 20
    slope_px: float = 12.0
    """Standard deviation of the window that averages slopes."""
    slope_limit: float = 3.0
    """Slopes that differ more from those around, in sigma a pixel, are steps of the scene."""
    slope_clip: float = 12.0
    """Steepest slope of a surface, in sigma a pixel."""
    reach_px: int = 20
    stride_px: int = 4
    """Pixels averaged lie on a grid: adjacent ones repeat each other where noise is correlated."""
    spatial_px: float = 10.0
    range_sigmas: float = 2.0
    near_weight: float = 0.4
    """Weight of each of the eight adjacent pixels, against the loss of what is smaller than the grid."""
    detail_px: float = 1.5
    """Standard deviation of the window that removes white noise from residuals."""
    residual_px: float = 4.0
    """Standard deviation of the window that averages squared residuals."""
    bias: float = 0.025
    """Squared bias of smoothing surfaces of usual curvature, as a ratio of the variance before."""
    unseen: float = 0.47
    """Least fraction of the variance of strongly correlated noise that is left: it is longer than any window."""
    unseen_from_px: float = 2.0
    unseen_to_px: float = 3.8
    """Correlation lengths between which that fraction rises from zero to its value."""
    least_excess: float = 0.85
    largest_excess: float = 4.0
    excess_power: float = 1.0
    """Bounds of squared residuals around a pixel, over the median of the frame."""
    misfit: float = 0.1
    misfit_from: float = 2.0
    """Probability that a pixel is right where it is farther from its smoothed value than ``misfit_from`` sigma."""
    largest_ratio: float = 1.5
    """Most variance after smoothing, as a ratio of that before."""
    least_frames: int = 5
    """Fewest distinct frames of a calibration, and fewest frames that measure a pixel of it."""
    least_overlap: float = 0.02
    """Least fraction of the pixels that `least_frames` frames measure."""
    most_drift: float = 3.0
    """Difference of both halves of time that most pixels may have, in standard deviations of uncorrelated noise."""
    pixel_drift: float = 5.0
    """Difference of both halves of time that a static pixel may have, in those standard deviations."""
    moving_ratio: float = 3.0
    """Standard deviation of a pixel over that of its depth, above which it moves."""
    trim_depth: float = 1e-3
    """Deviations from the median over time below this fraction of the depth are kept in the mean."""
    clip_sigmas: float = 3.0
    """Deviations over time beyond this are left out of means and clipped in correlations (sigma of the noise)."""
    error_bins: int = 14
    """Knots of the noise against depth."""
    error_fraction: float = 0.8
    """Fraction of the errors, the smallest, that measure a standard deviation."""
    error_fraction_std: float = 0.6616
    """Root mean square of that fraction of standard normal numbers (derived from `error_fraction`)."""
    least_noise: float = 0.1
    """Least part of the standard deviation that is noise, the rest being quantisation."""
    floor_quantile: float = 0.1
    """Quantile of the residuals of windows of the mean frame that is their floor."""
    largest_temporal: float = 0.9
    largest_pattern: float = 2.0
    """Largest correlation of consecutive frames, and largest fixed pattern in sigma of the noise."""
    range_margin: float = 0.1
    """Fraction by which the range of a sensor exceeds the depths of its frames."""
    inflation_frames: int = 3
    inflation_least: int = 3
    """Frames that are smoothed to measure the inflation, and fewest values of a reference pixel."""
    least_inflation: float = 0.2
    largest_inflation: float = 5.0
    align_pixels: int = 1000
    """Fewest common pixels that align a view with the middle one."""
    align_stride: int = 4
    """Stride of the common pixels that are fitted."""
    align_sigmas: float = 8.0
    """Largest difference of aligned views, in robust standard deviations of their inverse depths."""
    huber: float = 1.345
    """Tuning constant of Huber's weights: 95 % efficiency for Gaussian noise (textbook)."""
    huber_iterations: int = 6


DEFAULT = SensorSettings()
MAD_TO_STD = 1.4826
"""Standard deviation of Gaussian noise over its median absolute deviation (textbook)."""
GAUSSIAN_MEDIAN = 0.455
"""Median of a squared standard normal number (textbook)."""
