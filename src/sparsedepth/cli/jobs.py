"""One map's way through: read it, restore it, write what was asked for."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from sparsedepth import __version__
from sparsedepth.cli.batch import Outcome, WritingGate, attempted
from sparsedepth.cli.journal import Journal
from sparsedepth.cli.places import file_for
from sparsedepth.cli.reading import Reading
from sparsedepth.cli.terminal import in_options, say, warn
from sparsedepth.dictionary import Dictionary
from sparsedepth.files import read_array, read_photo, write, write_array
from sparsedepth.files.formats import format_of
from sparsedepth.files.profiles import for_dtype, profile_named
from sparsedepth.vocabulary import DepthImage, InputError, Origin, Restoration, Unit


@dataclass(frozen=True)
class Place:
    """One map's way through: from where, to where."""

    source: Path
    name: Path
    output: Path
    variance: Path | None = None
    origin: Path | None = None

    @property
    def outputs(self) -> list[Path]:
        """The map last: where it is, the others are."""
        return [path for path in (self.variance, self.origin, self.output) if path is not None]


@dataclass(frozen=True)
class RestoringTask:
    """What to do to every map."""

    restore: Callable[..., Restoration]
    wishes: dict[str, Any]
    """What the function was told, for the record."""
    read: Reading
    output_unit: str | None
    output_scale: float | None
    sensor_variance: str | None
    guide: str | None = None

    def __post_init__(self) -> None:
        if self.output_unit is not None:
            profile_named(self.output_unit)
        for path in (self.sensor_variance, self.guide):
            if path is not None and not os.path.exists(path):
                raise InputError(f"there is no file {path}")

    @property
    def about(self) -> dict[str, str]:
        """How the maps are made, in words, for files that can say it."""
        verb = "denoise" if self.wishes.get("correct", True) else "inpaint"
        settings = {name.replace("_", " "): _words(value) for name, value in self.wishes.items() if name != "correct"}
        return {"made by": f"sparsedepth {__version__}, {verb}"} | settings

    def inputs_of(self, place: Place) -> list[Path]:
        """The files that a map's result is made of."""
        return [path for path in (place.source, self._sensor_file(place), self._guide_file(place)) if path is not None]

    def given_with(self, place: Place) -> dict[str, Any]:
        """What the sensor says of this map's pixels, and a picture of the same view, if there are any."""
        sensor, guide = self._sensor_file(place), self._guide_file(place)
        given: dict[str, Any] = {"variance": None}
        if sensor is not None:
            given["variance"] = read_array(sensor, name="variance" if sensor.suffix.lower() == ".npz" else "")
        return given if guide is None else {**given, "guide": read_photo(guide)}

    def _sensor_file(self, place: Place) -> Path | None:
        return None if self.sensor_variance is None else file_for(Path(self.sensor_variance), place.name)

    def _guide_file(self, place: Place) -> Path | None:
        return None if self.guide is None else file_for(Path(self.guide), place.name, PHOTOS)


PHOTOS = (".png", ".jpg", ".jpeg", ".ppm", ".pgm", ".tif", ".tiff", ".bmp", ".webp")


def _words(value: object) -> str:
    if isinstance(value, Dictionary):
        return f"{value.n_atoms} atoms of {value.patch_shape[0]}x{value.patch_shape[1]} pixels"
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


class Notes:
    """Sentences for the user, each said once however many files they hold for."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.said: list[str] = []

    def add(self, name: str, sentence: str) -> None:
        """Say what was assumed of a file, unless it was said of another one."""
        about_any_file = in_options(sentence.removeprefix(f"{name}: "))
        with self._lock:
            if sentence and about_any_file not in self.said:
                self.said.append(about_any_file)
                warn(sentence)


@dataclass(frozen=True)
class Shared:
    """What all maps of a run have in common while they are restored."""

    gate: WritingGate
    notes: Notes
    journal: Journal | None
    threads: int | None


def attempt(task: RestoringTask, place: Place, *, shared: Shared) -> Outcome:
    """Restore one map; whatever fails is a sentence in the outcome."""
    blank = Outcome(str(place.source), str(place.output))
    return attempted(lambda: _restored(task, place, blank, shared), blank)


def _restored(task: RestoringTask, place: Place, blank: Outcome, shared: Shared) -> Outcome:
    image = task.read(place.source)
    shared.notes.add(place.source.name, image.assumed)
    try:
        result = task.restore(image.values, **task.given_with(place), threads=shared.threads)
    except InputError as error:
        raise InputError(f"{place.source}: {error}") from None
    shares = np.bincount(result.origin.ravel(), minlength=len(Origin)) / result.origin.size
    if shares[Origin.REFUSED] == 1:
        say(f"{place.source}: nothing could be said of any pixel; the result is unknown everywhere")
    with shared.gate:
        if shared.journal is not None:
            shared.journal.begin(place.output)
        unit = _write(task, place, DepthImage(result.depth, image.unit, image.kind, image.profile), result)
        if shared.journal is not None:
            shared.journal.end(task.inputs_of(place), place.outputs)
    return replace(
        blank,
        shape=(result.depth.shape[0], result.depth.shape[1]),
        unit=unit,
        known=float(np.isfinite(image.values).mean()),
        corrected=float(shares[Origin.CORRECTED]),
        filled=float(shares[Origin.FILLED]),
        refused=float(shares[Origin.REFUSED]),
    )


def _write(task: RestoringTask, place: Place, image: DepthImage, result: Restoration) -> str:
    """Write all that was asked for, or nothing; returns the unit."""
    fresh = [path for path in place.outputs if not os.path.lexists(path)]
    try:
        unit = _unit(task, place, image)
        variance = result.variance * SQUARED.get((image.unit, unit), 1)
        for path in place.outputs:
            path.parent.mkdir(parents=True, exist_ok=True)
        if place.variance is not None:
            write_array(place.variance, variance)
        if place.origin is not None:
            write_array(place.origin, result.origin)
        inside = place.output.suffix.lower() == ".npz"
        beside = {"variance": variance, "origin": result.origin, "about": task.about} if inside else {}
        write(place.output, image, profile=task.output_unit, scale=task.output_scale, **beside)
    except (InputError, OSError) as error:
        for path in fresh:
            path.unlink(missing_ok=True)
        if isinstance(error, InputError):
            raise InputError(in_options(str(error), output=True)) from None
        raise
    return unit


SQUARED = {("m", "mm"): 1e6, ("mm", "m"): 1e-6}
"""What variances are multiplied by when the unit changes."""


def _unit(task: RestoringTask, place: Place, image: DepthImage) -> Unit:
    """The unit that the output will be in."""
    if task.output_unit is None:
        return image.unit
    stored = np.dtype(np.uint16 if format_of(place.output).integers else np.float32)
    return for_dtype(profile_named(task.output_unit), stored).unit
