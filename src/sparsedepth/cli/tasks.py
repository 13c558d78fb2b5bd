"""What is to be done to the maps of a command, and what they share while it is done."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

from sparsedepth import __version__
from sparsedepth.cli.batch import WritingGate
from sparsedepth.cli.journal import Journal
from sparsedepth.cli.places import file_for
from sparsedepth.cli.reading import Reading
from sparsedepth.cli.terminal import warn
from sparsedepth.dictionary import Dictionary
from sparsedepth.files import memmap, read_array, read_photo
from sparsedepth.files.profiles import profile_named
from sparsedepth.vocabulary import InputError, Restoration


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
    output_profile: str | None
    output_scale: float | None
    sensor_variance: str | None
    guide: str | None = None
    mapped_pixels: int = memmap.MIN_PIXELS
    """Pixels above which a map stays in its file."""
    release_seconds: float = memmap.RELEASE_SECONDS
    """Time between two releases of mapped memory."""

    def __post_init__(self) -> None:
        if self.output_profile is not None:
            profile_named(self.output_profile)
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
        about_any_file = sentence.removeprefix(f"{name}: ")
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
