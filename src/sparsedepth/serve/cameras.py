"""The intrinsics of an upload: numbers, or a calibration file."""

from __future__ import annotations

import os
from dataclasses import astuple
from typing import Any

from sparsedepth.geometry import Intrinsics
from sparsedepth.vocabulary import InputError


def camera_of(numbers: list[float] | None, file: str | None, shape: tuple[Any, ...]) -> list[float] | None:
    """Return fx, fy, cx and cy for maps of a shape; None = nothing was given."""
    if file is None:
        return numbers
    if numbers is not None:
        raise InputError("intrinsics came as numbers and as a file; send one of them")
    found = Intrinsics.from_file(file, (shape[0], shape[1]))
    os.remove(file)
    return [float(number) for number in astuple(found)]
