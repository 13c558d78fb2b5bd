"""Restore depth maps: `denoise`, `inpaint`, and `Restorer` for many maps.

Every result has a variance and an `Origin` for each pixel.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from numpy.typing import ArrayLike

from sparsedepth.checks import as_guide, positive
from sparsedepth.containers import unpack
from sparsedepth.dictionary import Dictionary, dictionary_from
from sparsedepth.hole_filling import Filling
from sparsedepth.input_warnings import with_warnings
from sparsedepth.messages import Message
from sparsedepth.parallel import map_in_threads, n_threads, one_blas_thread
from sparsedepth.restore import paper, pipeline
from sparsedepth.restore.inpainting import fill_large_holes, guided_inpaint
from sparsedepth.restore.settings import Settings
from sparsedepth.restorer_files import SavedRestorer
from sparsedepth.restorer_pool import RestorerPool
from sparsedepth.sensors.choice import AUTO, FoundNoise, NoiseChoice, SensorChoice, sensor_from
from sparsedepth.sensors.restorer import MARGIN_PX, Floored, SensorRestorer
from sparsedepth.tiling import TiledMap
from sparsedepth.vocabulary import DepthImage, DepthMap, Floats, InputError, Kind, Restoration, Unit

__all__ = ["METHODS", "METHOD_VERSION", "QUALITIES", "Restorer", "Settings", "denoise", "inpaint"]

METHOD_VERSION = 13
"""Version of the results of restoration. Raise it by one with every change of results: cached outcomes are then made
again."""

QUALITIES = ("fast", "balanced", "best", "paper")
"""From the least effort to the paper's own."""
METHODS = {"calibrated": pipeline, "paper": paper}
"""Name -> module with ``patch_coder(dictionary, quality, settings)`` and ``fit(sample, coder, settings, ...)``."""


def denoise(
    depth: DepthImage | ArrayLike,
    *,
    sensor: SensorChoice = None,
    unit: Unit = "",
    variance: ArrayLike | None = None,
    guide: ArrayLike | None = None,
    dictionary: Dictionary | str | None = None,
    method: str = "calibrated",
    quality: str = "balanced",
    fill: str | bool = "auto",
    holes: str = "auto",
    second_pass: bool = False,
    invalid: float | Sequence[float] | None = None,
    threads: int | None = None,
    out: Restoration | None = None,
) -> Restoration:
    """Correct the outliers of a depth map, smooth the noise of its sensor, and fill its holes.

    Parameters
    ----------
    depth
        (height, width) in any unit, or a `DepthImage`, which gives its unit, kind and profile to the result. NaN is
        missing; so is 0 in integer maps, unless ``invalid`` names other codes. It may lie in a memory-mapped file; a
        large map is restored in tiles.
    sensor
        Noise of the camera: a `Sensor`, the name of a preset, or a file of `Sensor.save`. None or "auto" estimates it
        from the map; a map without dense noise keeps its values. "clean" assumes that there is none.
    unit
        Unit of the map, "m" or "mm". A preset needs it, unless the map is a `DepthImage`.
    variance
        Variance that a sensor gives for each pixel, in squared units of the map.
    guide
        A grey or colour picture of the same view: holes are filled from pixels of similar colour.
    dictionary
        A `Dictionary` or the name of a shipped one.
    method
        "calibrated", or "paper" for the method of the paper.
    quality
        "fast", "balanced" or "best"; "paper" for the paper's method, dictionary and stride.
    fill
        How holes are filled. "background" continues the farther of the surfaces around a hole, "nearest" the nearest
        one, "surface" joins all. "none" or False leaves holes. "auto" takes "background" where noise is that of stereo
        or structured light, and "surface" elsewhere.
    holes
        "auto" refuses holes that are too wide to be known; "all" fills them, with a variance that grows inwards.
    second_pass
        Whether outliers that moved clearly are filled like holes. It pays with the paper's method.
    invalid
        Values that mark missing pixels.
    threads
        Number of threads; all cores by default.
    out
        Arrays that receive the result; they may be memory-mapped.

    Returns
    -------
    Restoration
        Depth, variance in squared units and `Origin` of each pixel; refused ones are NaN with infinite variance.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsedepth import denoise
    >>> depth = np.add.outer(np.zeros(24), np.linspace(1.0, 2.0, 24))
    >>> depth[3, 4] = np.nan
    >>> result = denoise(depth)
    >>> int(result.origin[3, 4]), bool(abs(result.depth[3, 4] - depth[2, 4]) < 0.02)
    (2, True)
    """
    options: dict[str, Any] = {"sensor": sensor, "unit": unit, "method": method, "invalid": invalid}
    restore = Restorer(dictionary, quality, fill=fill, holes=holes, second_pass=second_pass, **options)
    return restore(depth, variance=variance, guide=guide, threads=threads, out=out)


def inpaint(
    depth: DepthImage | ArrayLike,
    *,
    sensor: SensorChoice = None,
    unit: Unit = "",
    variance: ArrayLike | None = None,
    guide: ArrayLike | None = None,
    dictionary: Dictionary | str | None = None,
    method: str = "calibrated",
    quality: str = "balanced",
    fill: str = "auto",
    holes: str = "auto",
    invalid: float | Sequence[float] | None = None,
    threads: int | None = None,
    out: Restoration | None = None,
) -> Restoration:
    """Fill the holes of a depth map and leave measured pixels unchanged, bit by bit.

    Parameters
    ----------
    depth, sensor, unit, variance, guide, dictionary, method, quality, fill, holes, invalid, threads, out
        As for `denoise`.

    Returns
    -------
    Restoration
        Depth, variance and `Origin` of each pixel.

    Examples
    --------
    >>> import numpy as np
    >>> depth = np.where(np.eye(24) == 1, np.nan, np.linspace(1.0, 2.0, 24))
    >>> int((inpaint(depth).depth == depth).sum()), 24 * 23
    (552, 552)
    """
    options: dict[str, Any] = {"sensor": sensor, "unit": unit, "method": method, "invalid": invalid}
    restore = Restorer(dictionary, quality, correct=False, fill=fill, holes=holes, **options)
    return restore(depth, variance=variance, guide=guide, threads=threads, out=out)


class Restorer(SavedRestorer):
    """Restores maps, one by one or as they come from a camera, with the same options for all.

    The result of a map depends on that map alone.

    Parameters
    ----------
    dictionary, quality, sensor, unit, method, fill, holes, second_pass, invalid
        As for `denoise`.
    correct
        Whether measured pixels may change; False leaves them, as `inpaint` does.
    settings
        Replaces thresholds of the methods.

    Examples
    --------
    >>> import numpy as np
    >>> restorer = Restorer(quality="fast")
    >>> frames = (np.add.outer(np.zeros(24), np.linspace(1.0, 2.0 + n, 24)) for n in range(3))
    >>> [float(result.depth.max().round(1)) for result in restorer.each(frames)]
    [2.0, 3.0, 4.0]
    """

    def __init__(
        self,
        dictionary: Dictionary | str | None = None,
        quality: str = "balanced",
        *,
        sensor: SensorChoice = None,
        unit: Unit = "",
        method: str = "calibrated",
        correct: bool = True,
        fill: str | bool = "auto",
        holes: str = "auto",
        second_pass: bool = False,
        invalid: float | Sequence[float] | None = None,
        settings: Settings | None = None,
    ) -> None:
        if dictionary in QUALITIES:
            raise InputError(f"{dictionary!r} is a quality, not a dictionary; write Restorer(quality={dictionary!r})")
        if method not in METHODS:
            raise InputError(f"method is {method!r}; choose one of {', '.join(map(repr, METHODS))}")
        self._method = "paper" if quality == "paper" else method
        self._settings = settings or Settings()
        self._default_settings = self._settings == Settings()
        self._coder = METHODS[self._method].patch_coder(dictionary_from(dictionary), quality, self._settings)
        self._noise = NoiseChoice(sensor_from(sensor), unit)
        if self._method == "paper" and self._noise.sensor != AUTO:
            raise InputError("the paper's method knows no sensor; drop the sensor, or give its variance=")
        self._filling = Filling.chosen(fill, holes)
        self._options = {"correct": correct, "second_pass": second_pass}
        self._invalid = invalid
        self._config = {**self._options, "quality": quality, "method": method, "fill": fill, "holes": holes}

    def __call__(
        self,
        depth: DepthImage | ArrayLike,
        *,
        unit: Unit = "",
        kind: Kind = "depth",
        numbers_per_unit: float = 1.0,
        variance: ArrayLike | None = None,
        guide: ArrayLike | None = None,
        invalid: float | Sequence[float] | None = None,
        threads: int | None = None,
        out: Restoration | None = None,
    ) -> Restoration:
        """Restore one map; ``invalid`` replaces that of all, and stored numbers have so many ``numbers_per_unit``."""
        if isinstance(depth, DepthImage):
            options: dict[str, Any] = {"variance": variance, "guide": guide, "threads": threads, "out": out}
            meaning: dict[str, Any] = {"unit": depth.unit, "kind": depth.kind}
            return self(depth.values, **meaning, invalid=invalid, **options).described_by(depth)
        depth, wrapped, named = unpack(depth)
        noise = self._noise.for_numbers(unit or named, kind, numbers_per_unit)
        codes, patch_shape = self._invalid if invalid is None else invalid, self._coder.dictionary.patch_shape
        source = TiledMap.from_array(depth, variance, patch_shape, codes, self._settings.tiling)
        picture = None if guide is None else as_guide(guide, source.shape)
        if picture is not None and self._filling.side == "none":
            raise InputError("a guide is for filling holes, and fill='none' leaves them; drop one of the two")
        with one_blas_thread:  # also without threads of ours: BLAS threads would add up in another order
            result = self._run(source, noise, picture, out, n_threads(threads))
        result = with_warnings(replace(result, unit=noise.unit) if noise.unit else result, depth, codes, noise.unit)
        return result if wrapped is None else wrapped(replace(result, kind=kind))

    def _run(
        self, source: TiledMap, noise: NoiseChoice, guide: Floats | None, out: Restoration | None, threads: int
    ) -> Restoration:
        limit = self._settings.dense.min_sigma
        found = FoundNoise() if self._method == "paper" else noise.found_in(source, limit)
        shadows = found.sensor is not None and found.sensor.domain == "1/z"
        filling = self._filling.resolved(shadows)
        if found.sensor is None and filling.side == "surface":
            return self._restore_by_codes(source, found, filling, guide, out, threads)
        result = self._restore_unfilled(source, found, out, threads)
        filling.fill(result, noise.kind, guide)
        return result

    def _restore_unfilled(
        self, source: TiledMap, found: FoundNoise, out: Restoration | None, threads: int
    ) -> Restoration:
        if found.sensor is None:
            return self._fit_and_run(source, {**self._options, "fill": False}, found, out, threads)
        source = source.with_margin(MARGIN_PX)
        return source.run(SensorRestorer.fit(source, found.sensor, correct=self._options["correct"]), out, threads)

    def _restore_by_codes(
        self,
        source: TiledMap,
        found: FoundNoise,
        filling: Filling,
        guide: Floats | None,
        out: Restoration | None,
        threads: int,
    ) -> Restoration:
        def fill_plain(depth: DepthMap) -> Restoration:
            plain = TiledMap.from_array(depth, None, source.patch_shape, (), source.settings)
            options = {"correct": False, "second_pass": False, "fill": True}
            return outward(self._fit_and_run(plain, options, FoundNoise(), None, threads))

        def outward(result: Restoration) -> Restoration:
            if filling.everything:
                fill_large_holes(result, self._settings)
            return result

        result = outward(self._fit_and_run(source, {**self._options, "fill": True}, found, out, threads))
        if guide is not None:
            guided_inpaint(result, guide, fill_plain, self._settings.guide, self._settings.variance)
        return result

    def _fit_and_run(
        self, source: TiledMap, options: dict[str, bool], found: FoundNoise, out: Restoration | None, threads: int
    ) -> Restoration:
        fitted = METHODS[self._method].fit(source.sample, self._coder, self._settings, **options, threads=threads)
        if getattr(fitted, "smooths", False):
            source = source.with_margin(self._settings.tiling.dense_margin_patches * max(source.patch_shape))
        if found.floor is not None:
            fitted = Floored(fitted, source, found.floor)
        return source.run(fitted, out, threads)

    def each(
        self, frames: Iterable[DepthImage | ArrayLike], *, threads: int | None = None, processes: int | None = None
    ) -> Iterator[Restoration]:
        """Restore a stream of maps in their order, several at the same time, each by one thread.

        At most two frames a thread are taken ahead, so memory does not grow with the stream. ``processes`` uses
        processes instead of threads: each takes a second to start, but does not wait for the others.
        """
        if processes is None:
            return map_in_threads(lambda frame: self(frame, threads=1), frames, n_threads(threads))
        return self._each_in_processes(frames, positive("processes", processes))

    def _each_in_processes(self, frames: Iterable[DepthImage | ArrayLike], count: int) -> Iterator[Restoration]:
        with self.in_processes(count) as restore:
            yield from map_in_threads(restore, frames, count)

    def in_processes(self, count: int) -> RestorerPool:
        """Return a pool of processes that restore as this object does; it may be called by as many threads."""
        self.require_default_settings("processes have")
        return RestorerPool(self, _from_config, self.as_config(), count)


def _from_config(message: Message) -> Restorer:
    return Restorer.from_config(message)
