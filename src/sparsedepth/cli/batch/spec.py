"""What is done to the maps of a batch, what they share while it is done, and what becomes of each."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from threading import Condition, Lock
from typing import Any, Self

from sparsedepth import __version__
from sparsedepth.cli.batch.guides import Guides
from sparsedepth.cli.batch.journal import Journal
from sparsedepth.cli.batch.plan import Target, file_for
from sparsedepth.cli.options import MapReader
from sparsedepth.cli.terminal import warn
from sparsedepth.dictionary import Dictionary
from sparsedepth.files import confidence_variance, memmap, read_array, read_confidence, read_photo
from sparsedepth.files.profiles import profile_named
from sparsedepth.sensors import Sensor
from sparsedepth.vocabulary import DepthImage, InputError, Restoration


@dataclass(frozen=True)
class RestoreSpec:
    """How every map of a batch is read, restored and written."""

    restore: Callable[..., Restoration]
    options: dict[str, Any]
    """The options of ``restore``, for the record."""
    read: MapReader
    output_profile: str | None
    output_scale: float | None
    sensor_variance: str | None
    guide: str | None = None
    confidence: str | None = None
    """Confidences of ARKit, a file or a folder: the sensor's variance is that of their levels."""
    mapped_pixels: int = memmap.MIN_PIXELS
    """Pixels above which a map stays in its file."""
    release_seconds: float = memmap.RELEASE_SECONDS
    """Time between two releases of mapped memory."""

    def __post_init__(self) -> None:
        if self.output_profile is not None:
            profile_named(self.output_profile)
        if self.sensor_variance is not None and self.confidence is not None:
            raise InputError("--sensor-variance and --confidence say the same twice; give one of them")
        for path in (self.sensor_variance, self.guide, self.confidence):
            if path is not None and not os.path.exists(path):
                raise InputError(f"there is no file {path}")

    @property
    def about(self) -> dict[str, str]:
        """How the maps are made, in words, for files that can hold it."""
        verb = "denoise" if self.options.get("correct", True) else "inpaint"
        settings = {name.replace("_", " "): _words(value) for name, value in self.options.items() if name != "correct"}
        return {"made by": f"sparsedepth {__version__}, {verb}"} | settings

    @property
    def fingerprint(self) -> dict[str, Any]:
        """All that decides what becomes of a map, besides its files."""
        dictionary = self.options.get("dictionary")
        atoms = None if dictionary is None else hashlib.sha256(dictionary.atoms.tobytes()).hexdigest()
        return {
            "version": __version__,
            "options": {**self.options, "dictionary": atoms, "sensor": _words(self.options.get("sensor"))},
            "reading": repr(self.read),
            "writing": [self.output_profile, self.output_scale],
        }

    def inputs_of(self, target: Target) -> list[Path]:
        """Return the files that a map's result is made of."""
        found = (target.source, self.variance_file(target), self._guide_file(target), self._confidence_file(target))
        return [path for path in found if path is not None]

    def read_extras(self, target: Target, image: DepthImage) -> dict[str, Any]:
        """Read the sensor's variance of this map and the guide picture, if there are any."""
        guide, levels = self._guide_file(target), self._confidence_file(target)
        variance = self.read_variance(target)
        if levels is not None:
            variance = confidence_variance(image, read_confidence(levels))
        return {"variance": variance} | ({} if guide is None else {"guide": read_photo(guide)})

    def read_variance(self, target: Target) -> Any:
        """Read the sensor's variance of this map, or return None."""
        file = self.variance_file(target)
        return None if file is None else read_array(file, name="variance" if file.suffix.lower() == ".npz" else "")

    def variance_file(self, target: Target) -> Path | None:
        """Return the file of the sensor's variance of this map, if there is one."""
        return None if self.sensor_variance is None else file_for(Path(self.sensor_variance), target.name)

    def _confidence_file(self, target: Target) -> Path | None:
        return None if self.confidence is None else file_for(Path(self.confidence), target.name)

    @property
    def leaves_large_holes(self) -> bool:
        """Whether holes are filled, but those that are too wide to be known."""
        return self.options.get("holes") == "auto" and self.options.get("fill") != "none"

    @cached_property
    def guides(self) -> Guides | None:
        """The guide pictures, if there are any."""
        return None if self.guide is None else Guides(Path(self.guide))

    def _guide_file(self, target: Target) -> Path | None:
        return None if self.guides is None else self.guides.file_of(target)


def _words(value: object) -> str:
    if isinstance(value, Sensor):
        return value.to_json()
    if isinstance(value, Dictionary):
        return f"{value.n_atoms} atoms of {value.patch_shape[0]}x{value.patch_shape[1]} pixels"
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


@dataclass(frozen=True)
class Outcome:
    """The result of one file; shares are of all its pixels."""

    input: str
    output: str
    shape: tuple[int, int] | None = None
    unit: str = ""
    known: float | None = None
    """Of the input; the other shares are of the output."""
    corrected: float | None = None
    filled: float | None = None
    refused: float | None = None
    smoothed: float | None = None
    seconds: float = 0.0
    warnings: tuple[str, ...] = ()
    error: str | None = None

    def facts(self) -> dict[str, Any]:
        """Return all fields by their names."""
        return asdict(self)


class Notes:
    """Assumptions about files, each printed once however many files it holds for."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.said: list[str] = []

    def add(self, name: str, sentence: str) -> None:
        """Print what was assumed of a file, unless it was printed of another one."""
        about_any_file = sentence.removeprefix(f"{name}: ")
        with self._lock:
            if sentence and about_any_file not in self.said:
                self.said.append(about_any_file)
                warn(sentence)


class WritingGate:
    """A gate that any number of threads may pass to write; closing it waits for those inside and admits no more."""

    def __init__(self) -> None:
        self._changed, self._inside, self._closed = Condition(), 0, False

    def __enter__(self) -> Self:
        with self._changed:
            self._changed.wait_for(lambda: not self._closed)
            self._inside += 1
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._inside -= 1
            self._changed.notify_all()

    def close(self) -> None:
        """Admit nobody any more, and wait for those inside."""
        with self._changed:
            self._closed = True
            self._changed.wait_for(lambda: self._inside == 0)


@dataclass(frozen=True)
class RunContext:
    """What all maps of a run share while they are restored."""

    gate: WritingGate
    notes: Notes
    journal: Journal | None
    threads: int | None
    strict: bool = False
    """Whether a warning about a map is a failure."""
