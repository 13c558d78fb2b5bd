"""Options that several commands share, and what they mean to the library."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np
import typer

from sparsedepth.cli.terminal import say_warning
from sparsedepth.dictionary import Dictionary
from sparsedepth.files import PROFILES, read
from sparsedepth.files.profiles import profile_named
from sparsedepth.geometry.intrinsics import KNOWN_CAMERAS, Intrinsics, intrinsics_from
from sparsedepth.input_warnings import InputWarning
from sparsedepth.vocabulary import DepthImage, InputError

Command = TypeVar("Command", bound=Callable[..., None])


def words_of(choices: Iterable[str]) -> Callable[[str], list[str]]:
    """Return a function that completes the beginning of a word to choices, for shells."""
    return lambda incomplete: [choice for choice in choices if choice.startswith(incomplete)]


MapsArgument = Annotated[
    list[str], typer.Argument(help="Maps, folders of maps, or quoted patterns ('scans/**/*.png').", show_default=False)
]
ProfileOption = Annotated[
    str,
    typer.Option(
        "--profile",
        help=f"How files store depths: {', '.join(PROFILES)}; auto says what it assumed.",
        autocompletion=words_of(("auto", *PROFILES)),
    ),
]
ScaleOption = Annotated[
    float | None, typer.Option("--scale", help="Stored number per unit, instead of the profile's own.")
]
InvalidOption = Annotated[
    list[float] | None,
    typer.Option("--invalid", help="Stored number that means missing, instead of the profile's; repeatable."),
]
TruthProfileOption = Annotated[
    str | None,
    typer.Option(
        "--truth-profile",
        help="As --profile, for the truth where it differs.",
        autocompletion=words_of(("auto", *PROFILES)),
    ),
]
TruthScaleOption = Annotated[
    float | None, typer.Option("--truth-scale", help="As --scale, for the truth where it differs.")
]
ThresholdOption = Annotated[
    float, typer.Option("--threshold", help="Error above which a pixel is bad, in units of the map.", min=0)
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Overwrite files that exist.")]
ClusterOption = Annotated[
    str | None,
    typer.Option("--cluster", help="Address of a Dask scheduler whose workers do the work: tcp://scheduler:8786."),
]


@dataclass(frozen=True)
class MapReader:
    """A function that reads maps as the options say."""

    profile: str
    scale: float | None
    invalid: Sequence[float] | None

    def __post_init__(self) -> None:
        if self.profile != "auto":
            profile = profile_named(self.profile)
            if profile.scale is None and self.scale is None:
                needed = f"the stored number per {profile.unit} of the scene"
                raise InputError(f"--profile {self.profile} needs --scale, {needed}")
        if self.scale is not None and not (np.isfinite(self.scale) and self.scale > 0):
            raise InputError(f"--scale is {self.scale:g}; it must be a positive number")

    def __call__(self, path: str | Path) -> DepthImage:
        """Read a map."""
        return read(path, self.profile, scale=self.scale, invalid=self.invalid or None)


INTRINSICS_METAVAR = "FX,FY,CX,CY|FILE"
INTRINSICS_HELP = f"In pixels; or a calibration file (YAML, JSON, calib.txt); or one of {', '.join(KNOWN_CAMERAS)}"


def parse_intrinsics(text: str, shape: tuple[int, int] | None = None) -> Intrinsics:
    """Parse FX,FY,CX,CY, or read a calibration file; what is suspicious about it is said."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", InputWarning)
        try:
            found = intrinsics_from(text, shape)
        except InputError as error:
            raise InputError(f"--intrinsics: {error}") from None
    for warning in said:
        say_warning(str(warning.message))
    assert found is not None  # a text came
    return found


def load_dictionary(name: str) -> Dictionary:
    """Load a dictionary file, or a shipped dictionary by its name."""
    return Dictionary.load(name) if os.path.exists(name) or name.endswith(".safetensors") else Dictionary.builtin(name)


def takes_options_of(common: Callable[..., Any]) -> Callable[[Command], Command]:
    """Let a command that takes ``**options`` show the options of a function before its own keywords."""
    shared = [each for each in _parameters(common) if each.kind is Parameter.POSITIONAL_OR_KEYWORD]

    def wrap(command: Command) -> Command:
        own = [each for each in _parameters(command) if each.kind is Parameter.KEYWORD_ONLY]
        vars(command)["__signature__"] = Signature([*shared, *own])
        return command

    return wrap


def _parameters(function: Callable[..., Any]) -> list[Parameter]:
    return list(signature(function, eval_str=True).parameters.values())
