"""How the numbers of the user's files are to be understood."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from sparsedepth.files import PROFILES, read
from sparsedepth.files.profiles import profile_named
from sparsedepth.vocabulary import DepthImage, InputError

ProfileOption = Annotated[
    str,
    typer.Option("--profile", help=f"How files hold numbers: {', '.join(PROFILES)}; auto says what it assumed."),
]
ScaleOption = Annotated[
    float | None, typer.Option("--scale", help="Stored number per unit, instead of the profile's own.")
]
InvalidOption = Annotated[
    list[float] | None, typer.Option("--invalid", help="Stored number that means unknown; repeatable.")
]


@dataclass(frozen=True)
class Reading:
    """How the numbers of the files are to be understood."""

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
        return read(path, self.profile, scale=self.scale, invalid=self.invalid or None)
