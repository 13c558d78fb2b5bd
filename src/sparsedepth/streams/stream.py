"""A stream of frames, restored one after the other with what was seen before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from sparsedepth.containers import unpack
from sparsedepth.geometry import Intrinsics, intrinsics_from
from sparsedepth.hole_filling import Filling
from sparsedepth.sensors import Sensor
from sparsedepth.sensors.choice import CLEAN, SensorChoice, in_unit_of_map, sensor_from
from sparsedepth.streams.axis import Axis
from sparsedepth.streams.belief import Belief, Change, Updater
from sparsedepth.streams.camera import METRE
from sparsedepth.streams.changes import Arrivals, follow_surfaces
from sparsedepth.streams.flow import shows_motion
from sparsedepth.streams.frames import Frame, frame_from
from sparsedepth.streams.key_frames import KeyFrames
from sparsedepth.streams.learning import first_guess, learned, settled
from sparsedepth.streams.report import Reporter
from sparsedepth.streams.settings import DEFAULT, StreamSettings
from sparsedepth.streams.tracker import State, Tracker
from sparsedepth.vocabulary import DepthImage, Floats, InputError, Restoration, Unit

QUALITIES = ("live", "best")
"""Cheap smoothing of young pixels; or that of `denoise`, with all holes filled."""


class Stream:
    """A depth camera over time: each frame is restored with what was seen before.

    Each pixel has a mean, a variance and an age. A measurement within the noise is fused by its precision. One that
    disagrees is a new surface, a moving edge or an outlier: the belief follows within two frames. Missing pixels keep
    what was seen before, unless something moved near them.

    Parameters
    ----------
    sensor
        Noise of the camera: a `Sensor`, the name of a preset, or a file of `Sensor.save`. None estimates it from the
        first frames.
    intrinsics
        `Intrinsics` of a camera that moves. Without them the camera must stand still.
    unit
        Unit of the maps, "m" or "mm". Presets and poses need it, unless maps are `DepthImage`.
    quality
        "live" smooths young pixels by few adjacent ones, and fills holes on key frames, one a second, in the
        background. "best" smooths young pixels as `denoise` does, and fills holes in every frame.
    fill
        Side from which holes are filled that were never seen, as in `denoise`; "none" leaves them missing.
    settings
        Thresholds and rates.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsedepth import Sensor, Stream
    >>> from sparsedepth.sensors import PowerLaw
    >>> rng = np.random.default_rng(0)
    >>> stream = Stream(Sensor(noise=PowerLaw(constant=5.0)))
    >>> frames = (1000.0 + rng.normal(0.0, 5.0, (60, 80)) for _ in range(16))
    >>> results = list(stream.each(frames))
    >>> bool(np.std(results[-1].depth) < 2), stream.state
    (True, 'static')
    """

    def __init__(
        self,
        sensor: SensorChoice = None,
        intrinsics: Intrinsics | None = None,
        unit: Unit = "",
        quality: str = "live",
        *,
        fill: str | bool = "auto",
        settings: StreamSettings = DEFAULT,
    ) -> None:
        chosen = sensor_from(sensor)
        if chosen == CLEAN:
            raise InputError("a stream of clean frames has nothing to average; give a sensor, or None to estimate it")
        if quality not in QUALITIES:
            raise InputError(f"quality is {quality!r}; choose one of {', '.join(map(repr, QUALITIES))}")
        if unit not in ("", *METRE):
            raise InputError(f"the unit is {unit!r}; use 'm' or 'mm'")
        self._given = chosen if isinstance(chosen, Sensor) else None
        self._camera = intrinsics_from(intrinsics)
        self._unit: Unit = unit
        self._quality, self._settings = quality, settings
        self._filling = Filling.chosen(fill, "auto")
        self._state: State = "empty"
        self._sensor: Sensor | None = None
        self._last: tuple[Frame, Restoration] | None = None

    @property
    def sensor(self) -> Sensor | None:
        """Noise of the camera in the unit of the maps, given or estimated so far; None before the first frame."""
        return self._sensor if self._sensor is not None else self._given

    @property
    def state(self) -> State:
        """How the last frame was placed: "empty", "started", "static", "tracking" or "lost"."""
        return self._state

    @property
    def age(self) -> np.ndarray:
        """Number of measurements in the mean of each pixel, (height, width); 0 = unknown."""
        if self._last is None:
            return np.zeros((0, 0), np.int32)
        return self._belief.count.reshape(self._shape).astype(np.int32)

    def each(self, frames: Iterable[DepthImage | ArrayLike]) -> Iterator[Restoration]:
        """Restore frames in their order.

        Parameters
        ----------
        frames
            Maps as `push` takes them.

        Yields
        ------
        Restoration
            One for each frame.
        """
        for frame in frames:
            yield self.push(frame)

    def push(
        self,
        depth: DepthImage | ArrayLike,
        *,
        pose: ArrayLike | None = None,
        variance: ArrayLike | None = None,
        guide: ArrayLike | None = None,
    ) -> Restoration:
        """Restore the next frame.

        Parameters
        ----------
        depth
            (height, width), positive, or a `DepthImage`; NaN and values that are not positive are missing, as is 65535
            in maps of 16 bits. A frame that repeats the last one to the bit tells nothing new: its result is returned.
        pose
            Camera to world, (4, 4), translation in metres. It needs intrinsics and a unit. All frames have one, or
            none.
        variance
            Variance that the sensor gives for each pixel, (height, width), in squared units of the map.
        guide
            A picture of the same view. Quality "best" fills holes by it.

        Returns
        -------
        Restoration
            Depth, variance in squared units and `Origin` of each pixel; refused ones are NaN with infinite variance.

        Examples
        --------
        >>> import numpy as np
        >>> from sparsedepth import Origin, Sensor, Stream
        >>> from sparsedepth.sensors import PowerLaw
        >>> stream = Stream(Sensor(noise=PowerLaw(constant=5.0)))
        >>> first = stream.push(np.full((24, 32), 1000.0))
        >>> second = stream.push(np.pad(np.full((24, 31), 1001.0), ((0, 0), (0, 1))))
        >>> Origin(second.origin[3, 31]).name, round(float(second.depth[3, 31]))
        ('REMEMBERED', 1000)
        """
        array, wrap, named = unpack(depth)
        frame = frame_from(array, pose, variance, guide)
        if named:
            frame = replace(frame, image=DepthImage(frame.values, named))
        result = self._push(frame)
        return result if wrap is None else wrap(result)

    def _push(self, frame: Frame) -> Restoration:
        self._require_same(frame)
        if self._last is not None and frame.repeats(self._last[0]):
            return self._last[1]
        if self._last is None or not self._started:
            self._start(frame)
        restored = self._restored(frame)
        result = replace(restored, unit=self._unit) if self._unit else restored
        self._last = frame, result
        return result

    def _require_same(self, frame: Frame) -> None:
        """Refuse a frame that does not continue the stream."""
        if frame.unit and self._unit and frame.unit != self._unit:
            raise InputError(f"the map is in {frame.unit}, but the stream in {self._unit}; convert one of them")
        if frame.pose is not None and self._camera is None:
            raise InputError("a pose came without intrinsics; give Stream(intrinsics=Intrinsics(fx, fy, cx, cy))")
        if frame.pose is not None and (frame.unit or self._unit) not in METRE:
            raise InputError("poses are in metres, and the map has no unit; give unit='m' or unit='mm'")
        if self._last is None:
            return
        if frame.values.shape != self._shape:
            raise InputError(f"the frame has shape {frame.values.shape}, the stream {self._shape}; start a new Stream")
        if (frame.pose is None) != (self._tracker.pose is None):
            raise InputError("some frames have a pose and others none; give one each, or none at all")

    def _start(self, frame: Frame) -> None:
        self._unit = self._unit or frame.unit
        height, width = frame.values.shape
        self._shape: tuple[int, int] = (height, width)
        self._sensor = in_unit_of_map(self._given, self._unit) if self._given else first_guess(frame.values, self._unit)
        self._tracker = Tracker(self._shape, self._camera, frame.pose, self._unit, self._settings)
        self._arrivals = Arrivals(height * width, self._settings)
        self._frames, self._started = 0, bool(np.isfinite(frame.values).any())
        self._axis = Axis.of(self._sensor, frame.values, self._settings)
        filling = self._filling.resolved(self._sensor.domain == "1/z")
        in_background = self._quality == "live" and filling.side != "none"
        self._key_frames = KeyFrames(self._shape, filling, self._settings) if in_background else None
        self._prepare()

    @property
    def _belief(self) -> Belief:
        return self._tracker.belief

    def _prepare(self) -> None:
        """Prepare what depends on the sensor."""
        assert self._sensor is not None
        self._updater = Updater(self._shape, self._sensor.temporal, self._sensor.correlation, self._settings)
        filling = self._filling if self._quality == "best" else None
        self._reporter = Reporter(self._sensor, self._axis, self._updater, filling, self._settings)

    def _restored(self, frame: Frame) -> Restoration:
        with np.errstate(divide="ignore"):
            value = self._axis.count(frame.values).ravel()
        noise = self._noise(value, frame)
        self._frames += 1
        self._state = self._tracker.place(value, noise, frame, self._axis)
        if self._tracker.overdue is not None:
            self._fuse(*self._tracker.overdue)
        learns = self._given is None and frame.variance is None and self._shows_noise(value, noise)
        sampled = self._sampled_before()
        change, alone = self._fuse(value, noise)
        if learns:
            self._learn(value, change, noise, sampled)
        self._follow_key_frame()
        result = self._reporter.report(frame, self._belief, value, change, alone)
        if self._key_frames is not None:
            self._key_frames.take(self._frames, result)
        return result

    def _fuse(self, value: Floats, noise: Floats) -> tuple[Change, np.ndarray]:
        """Update the belief; return what changed, and the numbers of the pixels that jumped alone."""
        self._add_noise_of_memory(value, noise)
        change = self._updater.update(self._belief, value, noise)
        new, alone = follow_surfaces(self._belief, value, change, self._shape, self._settings)
        if self._key_frames is not None:
            self._key_frames.note_changes(new)
        self._forget_passing(value, change)
        return change, alone

    def _follow_key_frame(self) -> None:
        """Carry the key frame to this view, and add what was filled on it when it is due."""
        keys, motion = self._key_frames, self._tracker.motion
        if keys is None:
            return
        if motion is None:
            keys.forget()
            return
        keys.travel = motion @ keys.travel
        keys.add_due(self._frames, self._belief, self._axis, self._tracker.view if self._camera is not None else None)

    def _shows_noise(self, value: Floats, noise: Floats) -> bool:
        """Tell whether the noise of the sensor can be estimated again, from innovations that no motion explains."""
        if self._frames not in self._settings.learn_frames:
            return False
        return not shows_motion(self._belief, value, noise, self._shape, self._settings)

    def _forget_passing(self, value: Floats, change: Change) -> None:
        """Forget missing pixels whose surface may have moved on, unless the camera is known to move."""
        if self._state == "tracking":
            self._arrivals.restart()
        else:
            self._arrivals.forget_passing(self._belief, value, change.noise)

    def _noise(self, value: Floats, frame: Frame) -> Floats:
        """Return the variance of one measurement at every measured pixel."""
        noise = self._axis.noise[self._axis.places(value)]
        if frame.variance is None:
            return noise
        with np.errstate(invalid="ignore"):
            given = (frame.variance * np.square(self._axis.slope(frame.values))).ravel()
        return np.where(given > 0, given, noise)

    def _add_noise_of_memory(self, value: Floats, noise: Floats) -> None:
        """Set the variance of one measurement at missing pixels by what is remembered there."""
        missing = np.flatnonzero(value != value)
        noise[missing] = self._axis.noise[self._axis.places(self._belief.mean[missing])]

    def _sampled_before(self) -> tuple[Floats, Floats]:
        every = slice(None, None, self._settings.learn_stride_px)
        return self._belief.count[every].copy(), self._belief.residual[every].copy()

    def _learn(self, value: Floats, change: Change, noise: Floats, before: tuple[Floats, Floats]) -> None:
        """Estimate the sensor again, and rescale the belief by what changed."""
        assert self._sensor is not None
        every = slice(None, None, self._settings.learn_stride_px)
        innovation, level = change.innovation[every], noise[every]
        depth = self._axis.depth(value[every] - innovation)  # of the mean before, which has less noise
        with np.errstate(invalid="ignore", divide="ignore"):
            squares = np.square(innovation) / (level * (1 + 1 / before[0]))
            successive = np.square(innovation - before[1]) / (2 * level)
            squares[~settled(before[0], self._frames)] = np.nan
        self._sensor = learned(self._sensor, depth, squares, successive, self._frames, self._settings)
        places, before_learning = self._axis.places(self._belief.mean), self._axis.noise
        self._axis = self._axis.under(self._sensor, self._settings)
        self._rescale(self._axis.noise[places] / before_learning[places])
        self._prepare()

    def _rescale(self, ratio: Floats) -> None:
        """Rescale the belief to variances of one measurement that are larger by a ratio."""
        belief = self._belief
        before = np.maximum(belief.scale, 1)
        np.divide(belief.scale, ratio, out=belief.scale)
        np.multiply(belief.variance, ratio * np.maximum(belief.scale, 1) / before, out=belief.variance)
