"""What `learn` is to do: its settings, its maps, and the record that the dictionary carries."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import sparsedepth
from sparsedepth.cli.batch.plan import find_sources
from sparsedepth.cli.batch.spec import Notes
from sparsedepth.cli.options import MapReader, load_dictionary
from sparsedepth.coding.learn import PAPER_ROUNDS, ROUNDS, Phase, paper_phases, schedule
from sparsedepth.coding.noise import Jeffreys, NoiseModel, Stationary
from sparsedepth.coding.starts import random_start, start_from
from sparsedepth.data.motorcycle import motorcycle_disparity
from sparsedepth.dictionary import Dictionary
from sparsedepth.patches import PatchStream, thinned
from sparsedepth.vocabulary import DepthImage, InputError

HELD_OUT_BATCH, HELD_OUT_STEP = 512, 1 << 41
"""Patches on which the energy is reported: a batch that no step of learning draws."""


class Noise(StrEnum):
    """The names of noise models."""

    jeffreys = "jeffreys"
    stationary = "stationary"


class Holes(StrEnum):
    """What becomes of unknown pixels."""

    mask = "mask"
    keep = "keep"


PLAIN = {"floor": 0.01, "initial": 0.02, "batch": 512}
PAPER = {"floor": 0.01, "initial": 1.0, "batch": 128}
PAPER_CONSTANT_VARIANCE = 1.0
"""What is not given: by us, by --as-paper, and the variance of the paper's plain sparse coding, whose value it does not
say. With 1, learning repeats atoms as its Φ3 does; with 0.01 it does not."""


@dataclass(frozen=True)
class Settings:
    """How a dictionary is learned, whatever the maps."""

    patch: int
    atoms: int
    noise: Noise
    holes: Holes
    floor: float
    initial: float
    every: tuple[int, ...]
    sparsity: float
    steps: int
    batch: int
    seed: int
    start: str | None
    as_paper: bool = False
    half: bool = False
    """Whether the file stores 16-bit floats."""

    @classmethod
    def completed(cls, *, as_paper: bool, **given: Any) -> Settings:
        """Return the settings with defaults for what is None; they depend on how is learned."""
        defaults = dict(PAPER if as_paper else PLAIN)
        if as_paper and given["noise"] is Noise.stationary:
            defaults["floor"] = PAPER_CONSTANT_VARIANCE
        if as_paper and given["every"]:
            raise InputError("--as-paper learns from the maps as they are; leave --every out")
        chosen = {name: defaults[name] if name in defaults and v is None else v for name, v in given.items()}
        return cls(**chosen, as_paper=as_paper)

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width of a patch, in pixels."""
        return self.patch, self.patch

    @property
    def model(self) -> NoiseModel:
        """The noise model of learning."""
        return Jeffreys(self.floor, self.initial) if self.noise is Noise.jeffreys else Stationary(self.floor)

    @property
    def phases(self) -> Sequence[Phase]:
        """The phases of learning."""
        if self.as_paper:
            return paper_phases(self.model, self.steps, self.sparsity)
        return schedule(self.model, self.steps, self.sparsity)

    @property
    def rounds(self) -> int:
        """Iterations of coding a batch."""
        return PAPER_ROUNDS if self.as_paper else ROUNDS

    @property
    def normalisation(self) -> dict[str, Any]:
        """How patches are chosen and scaled, where it is not as usual."""
        return {"scale": "map", "least_contrast": 0.0} if self.as_paper else {}

    def first_dictionary(self, stream: PatchStream) -> Dictionary:
        """Return the dictionary that learning starts from: the user's, random atoms, or patches of the maps."""
        if self.start:
            first = load_dictionary(self.start)
        elif self.as_paper:
            first = random_start(self.atoms, self.shape, self.seed)
        else:
            first = start_from(stream, self.atoms, self.shape, self.seed)
        if first.patch_shape != self.shape:
            raise InputError(f"the start has patches of {first.patch_shape}, not {self.shape}; set --patch accordingly")
        return first

    def facts(self) -> dict[str, str]:
        """Return the settings in words, for the dictionary's record."""
        return {
            "noise": repr(self.model),
            "holes": str(self.holes),
            "every": ", ".join(map(str, [1, *self.every])),
            "sparsity": str(self.sparsity),
            "steps": str(self.steps),
            "batch": str(self.batch),
            "seed": str(self.seed),
            "start": _name(self.start) if self.start else "random" if self.as_paper else "data patches",
            **({"learning": "as in the paper"} if self.as_paper else {}),
            **({"bits": "16"} if self.half else {}),
        }

    def options(self, n_atoms: int) -> dict[str, Any]:
        """Return the options of a command that learns with these settings."""
        names = ("noise", "holes", "floor", "sparsity", "steps", "batch", "seed")
        options = {"patch": self.patch, "atoms": n_atoms} | {name: getattr(self, name) for name in names}
        options |= {"initial": self.initial} if self.noise is Noise.jeffreys else {}
        return options | ({"start": _name(self.start)} if self.start else {})


@dataclass(frozen=True, eq=False)
class Training:
    """The maps to learn from and to report on, how they were read, and the settings."""

    files: list[Path]
    images: list[DepthImage]
    held_out: list[str]
    other_maps: list[Any]
    reader: MapReader
    settings: Settings

    @classmethod
    def prepare(cls, maps: Sequence[str], held_out: list[str], settings: Settings, reader: MapReader) -> Training:
        """Read all maps; what is assumed of them is said once."""
        files, notes = [source.path for source in find_sources(maps).files], Notes()
        images = [_read(file, reader, notes) for file in files]
        others = [
            motorcycle_disparity() if name == "motorcycle" else _read(Path(name), reader, notes).values
            for name in held_out
        ]
        return cls(files, images, held_out, others, reader, settings)

    @cached_property
    def stream(self) -> PatchStream:
        """The patches to learn from."""
        options = {"batch": self.settings.batch, "seed": self.settings.seed, **self.settings.normalisation}
        maps = thinned([image.values for image in self.images], self.settings.every)
        return PatchStream(maps, self.settings.shape, holes=str(self.settings.holes), **options)

    def held_out_batch(self) -> Any:
        """Return the patches on which the energy is reported."""
        maps = self.other_maps or [image.values for image in self.images]
        options = {"batch": HELD_OUT_BATCH, "seed": self.settings.seed + 1, **self.settings.normalisation}
        return PatchStream(maps, self.settings.shape, **options)(HELD_OUT_STEP)

    @cached_property
    def about(self) -> dict[str, str]:
        """What the dictionary is made of, for its record."""
        divided = f"sqrt(variance + softening^2), softening {self.stream.softening:g} map deviations"
        if self.settings.as_paper:
            divided = "the map's deviation"
        scale = {} if self.reader.scale is None else {"scale": str(self.reader.scale)}
        return {
            "trained_on": _checksum(self.files),
            "unit": ", ".join(sorted({image.unit or "unknown" for image in self.images})),
            "profile": self.reader.profile,
            **scale,
            "normalisation": f"mean removed, divided by {divided}",
            **self.settings.facts(),
            "held_out": ", ".join(map(_name, self.held_out)) or "other patches of the same maps",
            "version": sparsedepth.__version__,
        }

    def identity(self, first: Dictionary) -> dict[str, Any]:
        """Return what a checkpoint must agree with to be resumed."""
        beginning = hashlib.sha256(np.ascontiguousarray(first.atoms).tobytes()).hexdigest()
        return {
            **self.about,
            "patch": self.settings.patch,
            "beginning": beginning,
            "phases": repr(self.settings.phases),
        }

    def command(self, output: Path, n_atoms: int) -> str:
        """Return a command that does the same again; a long list of files is shortened to its ends."""
        given = [_name(file) for file in self.files]
        words = [
            *("sparsedepth", "learn", *(given if len(given) <= 4 else [given[0], "...", given[-1]])),
            *("-o", output.name, "--profile", self.reader.profile),
        ]
        words += [] if self.reader.scale is None else ["--scale", str(self.reader.scale)]
        words += ["--as-paper"] if self.settings.as_paper else []
        words += ["--half"] if self.settings.half else []
        for name, value in self.settings.options(n_atoms).items():
            words += [f"--{name}", str(value)]
        repeated: dict[str, Iterable[object]] = {
            "invalid": self.reader.invalid or [],
            "every": self.settings.every,
            "held-out": map(_name, self.held_out),
        }
        for name, values in repeated.items():
            for value in values:
                words += [f"--{name}", str(value)]
        return shlex.join(words)


def _read(file: Path, reader: MapReader, notes: Notes) -> DepthImage:
    image = reader(file)
    notes.add(file.name, image.assumed)
    return image


def _checksum(files: Sequence[Path]) -> str:
    """Return one SHA-256 over the contents of all files, in order."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return f"{len(files)} maps, sha256 {digest.hexdigest()}"


def _name(path: str | Path) -> str:
    """Return a path without the folders of one machine: relative ones stay, unless they climb."""
    path = Path(path)
    short = path.name if path.is_absolute() or ".." in path.parts else str(path)
    return short.encode(errors="replace").decode()
