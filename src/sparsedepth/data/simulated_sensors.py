"""Simulated frames of four real depth cameras over clean maps, by their measured laws.

The laws are those of the sensor presets. Noise is correlated and drawn in the domain where it is stationary; rounding
follows. Stereo and structured light leave shadows to the left of near objects, because the second camera or the
projector is to the right. Real frames of all three have them there. The noise of time of flight follows the amplitude
of the echo.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation, gaussian_filter

from sparsedepth.data import require_choice
from sparsedepth.data.synthetic import hidden_behind, range_of_neighbours
from sparsedepth.sensors import Correlation, PowerLaw, Sensor
from sparsedepth.sensors.simulate import correlated_noise
from sparsedepth.vocabulary import DepthMap, Floats, InputError

Mask = NDArray[np.bool_]
STEP_STDS = 10.0
"""Depths that differ by more standard deviations than this between neighbours are a step of the scene."""
ALBEDO_SPREAD, ALBEDO_PX = 0.3, 12.0
"""Standard deviation of the logarithm of the albedo, and its scale in pixels."""
MIN_COSINE = 0.25
"""Least cosine between the ray and the surface normal, which bounds the noise of grazing rays."""
MIN_AMPLITUDE = 0.55
"""Echoes below are holes; 1 = a surface of medium albedo, seen from the front at 1 m."""


@dataclass(frozen=True)
class Optics:
    """Geometry and defects of a simulated sensor.

    Parameters
    ----------
    focal_px
        Focal length in pixels.
    baseline_mm
        Distance of the second camera or projector, to the right; 0 = time of flight.
    range_mm
        Depths that scenes of this sensor have.
    lost_at_steps, flying_at_steps, lost
        Fractions of the pixels at steps of depth that are missing or mixed, and of all pixels that are missing.
    pixel_px
        Side of a pixel of the sensor, in pixels of the frame: 2 = the frame is enlarged by repeating pixels.
    noise_ratio, correlation
        Noise before rounding over that of the preset, and its correlation in pixels of the sensor. None = that of the
        preset, which was measured on the frame.
    """

    focal_px: float
    baseline_mm: float
    range_mm: tuple[float, float]
    lost_at_steps: float
    flying_at_steps: float
    lost: float = 0.003
    pixel_px: int = 1
    noise_ratio: float = 1.0
    correlation: Correlation | None = None


OPTICS = {
    "kinect_v1": Optics(585.0, 75.0, (900.0, 3000.0), 0.11, 0.001, noise_ratio=1.05, correlation=Correlation(8.5, 8.5)),
    "realsense_d435": Optics(382.0, 50.0, (700.0, 4000.0), 0.25, 0.011),
    "realsense_d455": Optics(325.0, 95.0, (500.0, 3500.0), 0.40, 0.024),
    "pico_zense": Optics(
        456.6, 0.0, (680.0, 1300.0), 0.14, 0.017, pixel_px=2, correlation=Correlation(1.317, 1.317, 1.725)
    ),
}
"""Measured on real frames, except the baseline of Kinect, which is nominal, and the fraction of holes at random."""
SIMULATED = tuple(OPTICS)


@dataclass(frozen=True, eq=False)
class SimulatedFrame:
    """A simulated frame with its truth; maps are (height, width), lengths in mm, NaN = missing.

    Parameters
    ----------
    name
        One of `SIMULATED`.
    depth
        The frame: noisy, rounded, with holes.
    truth
        True depths, also where the frame has holes.
    std
        Standard deviation of the noise at each pixel, rounding and fixed pattern included.
    shadow_mask
        Pixels that the second camera or the projector does not see.
    outlier_mask
        Flying pixels and impulses.
    """

    name: str
    depth: Floats
    truth: Floats
    std: Floats
    shadow_mask: Mask
    outlier_mask: Mask


def simulated_frame(name: str, depth: DepthMap, rng: np.random.Generator) -> SimulatedFrame:
    """Simulate a frame of a sensor over a clean map.

    Parameters
    ----------
    name
        One of `SIMULATED`.
    depth
        True depths (height, width) in mm; NaN = missing.
    rng
        Source of randomness: the same state gives the same frame.

    Returns
    -------
    The frame with its truth.

    Examples
    --------
    >>> wall = np.full((64, 64), 2000.0)
    >>> frame = simulated_frame("kinect_v1", wall, np.random.default_rng(0))
    >>> len(np.unique(frame.depth[np.isfinite(frame.depth)])) < 10
    True
    """
    require_choice("simulated sensor", name, SIMULATED)
    truth = np.asarray(depth, float)
    if truth.ndim != 2:
        raise InputError(f"the scene has shape {truth.shape}; give one map of (height, width)")
    sensor, optics = Sensor.preset(name), OPTICS[name]
    relative_std, faint = _by_amplitude(truth, optics, rng)
    std = relative_std * optics.noise_ratio * sensor.noise(truth)
    measured = _with_noise(truth, sensor, std * _noise(truth.shape, sensor, optics, rng))
    steps = _steps(truth, sensor)
    flying = steps & (rng.random(truth.shape) < optics.flying_at_steps)
    low, high = range_of_neighbours(truth)
    measured = np.where(flying, low + rng.random(truth.shape) * (high - low), measured)
    shadow = _shadow(truth, optics)
    lost = faint | _lost(truth, shadow, steps, optics, rng) | (truth < sensor.nearest) | (truth > sensor.farthest)
    total = np.hypot(std * np.hypot(1.0, sensor.pattern), sensor.step(truth) / np.sqrt(12.0))
    frame = np.where(lost, np.nan, rounded(measured, sensor))
    return SimulatedFrame(name, frame, truth, total, shadow, flying & ~lost)


def with_impulses(frame: SimulatedFrame, fraction: float, rng: np.random.Generator) -> SimulatedFrame:
    """Replace a fraction of the valid pixels by depths anywhere in the range of the frame.

    Parameters
    ----------
    frame
        A simulated frame.
    fraction
        Fraction of the pixels, 0 to 1.
    rng
        Source of randomness.

    Returns
    -------
    The frame with impulses, which count as outliers.

    Examples
    --------
    >>> frame = simulated_frame("kinect_v1", np.full((64, 64), 2000.0), np.random.default_rng(0))
    >>> hit = with_impulses(frame, 0.05, np.random.default_rng(1))
    >>> 0.03 < float(hit.outlier_mask.mean()) < 0.07
    True
    """
    valid = np.isfinite(frame.depth)
    seen = frame.truth[valid] if valid.any() else np.ones(1)
    hit = (rng.random(frame.depth.shape) < fraction) & valid
    anywhere = rng.uniform(seen.min(), seen.max(), frame.depth.shape)
    depth = np.where(hit, rounded(anywhere, Sensor.preset(frame.name)), frame.depth)
    return replace(frame, depth=depth, outlier_mask=frame.outlier_mask | hit)


def rounded(depth: Floats, sensor: Sensor) -> Floats:
    """Round depths to the codes of a sensor, uniform in inverse depth where its step is quadratic, and then to 1 mm.

    Parameters
    ----------
    depth
        Depths in mm of any shape.
    sensor
        A sensor whose step is a `PowerLaw`, constant or quadratic.

    Returns
    -------
    Depths in whole mm, as a file holds them.

    Examples
    --------
    >>> rounded(np.array([1000.0, 1001.0, 1002.0]), Sensor.preset("kinect_v1"))
    array([1000., 1002., 1002.])
    """
    if isinstance(sensor.step, PowerLaw) and sensor.step.factor > 0:
        depth = 1 / (sensor.step.factor * np.maximum(np.rint(1 / (sensor.step.factor * depth)), 1.0))
    return np.rint(depth)


def _noise(shape: tuple[int, int], sensor: Sensor, optics: Optics, rng: np.random.Generator) -> Floats:
    """Draw temporal noise of variance one and the fixed pattern."""
    correlation = optics.correlation or sensor.correlation
    height, width = (-(-size // optics.pixel_px) for size in shape)
    temporal, pattern = (correlated_noise((height, width), correlation, rng) for _ in range(2))
    noise = temporal + sensor.pattern * pattern
    return _repeated(noise, optics.pixel_px, shape)


def _repeated(values: Floats, times: int, shape: tuple[int, ...]) -> Floats:
    """Enlarge a map by repeating its pixels, and cut it to a shape."""
    return values.repeat(times, 0).repeat(times, 1)[: shape[0], : shape[1]]


def _with_noise(truth: Floats, sensor: Sensor, noise: Floats) -> Floats:
    """Add noise given in mm, in inverse depth where it is stationary there."""
    return truth / np.maximum(1 - noise / truth, 0.2) if sensor.domain == "1/z" else truth + noise


def _by_amplitude(truth: Floats, optics: Optics, rng: np.random.Generator) -> tuple[Floats, Mask]:
    """Compute the noise of each pixel over that of its depth, and where the echo is too faint; 1 for stereo.

    The amplitude is albedo times cosine over squared depth. Its mean fall with depth is in the law of depth, so that
    albedo and slant remain. The mean of the squared ratio over albedos is one.
    """
    if optics.baseline_mm > 0:
        return np.ones(truth.shape), np.zeros(truth.shape, bool)
    texture = gaussian_filter(rng.standard_normal(truth.shape), ALBEDO_PX, mode="wrap")
    albedo = np.exp(ALBEDO_SPREAD * texture / texture.std() + ALBEDO_SPREAD**2)
    step = optics.pixel_px
    shade = _repeated((albedo * _cosine(truth, optics.focal_px))[::step, ::step], step, truth.shape)
    return 1 / shade, shade / (truth / 1000.0) ** 2 < MIN_AMPLITUDE


def _cosine(truth: Floats, focal_px: float) -> Floats:
    """Compute the cosine between the optical axis and the normal; steps of depth do not count as slant."""
    slopes = []
    for axis in (0, 1):
        rise = np.abs(np.diff(truth, axis=axis))
        ends = [np.insert(rise, place, np.inf, axis) for place in (0, rise.shape[axis])]
        slope = np.fmin(*ends) * focal_px / truth
        slopes.append(np.where(np.isfinite(slope), slope, 0.0))
    return np.maximum(1 / np.sqrt(1 + slopes[0] ** 2 + slopes[1] ** 2), MIN_COSINE)


def _steps(truth: Floats, sensor: Sensor) -> Mask:
    """Find the pixels at steps of depth."""
    low, high = range_of_neighbours(truth)
    return np.isfinite(truth) & (high - low > STEP_STDS * sensor.std(low))


def _shadow(truth: Floats, optics: Optics) -> Mask:
    """Find what nearer pixels hide from the second camera or from the projector."""
    if optics.baseline_mm == 0 or not np.isfinite(truth).any():
        return np.zeros(truth.shape, bool)
    disparity = optics.focal_px * optics.baseline_mm / truth
    return hidden_behind(disparity, 1, float(np.nanmax(disparity) - np.nanmin(disparity)))


def _lost(truth: Floats, shadow: Mask, steps: Mask, optics: Optics, rng: np.random.Generator) -> Mask:
    """Draw the holes: shadows with a thin ragged band, pixels at steps, and a few anywhere."""
    band = np.asarray(binary_dilation(shadow, np.ones((3, 3))), bool) & (rng.random(truth.shape) < 0.5)
    at_steps = steps & (rng.random(truth.shape) < optics.lost_at_steps)
    return shadow | band | at_steps | (rng.random(truth.shape) < optics.lost)
