"""Draw a map, its variance or its origin."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from sparsedepth.cli.batch.plan import Source, Sources, require_apart, require_new, require_writable
from sparsedepth.cli.options import ForceOption, InvalidOption, MapReader, ProfileOption, ScaleOption
from sparsedepth.cli.pipes import takes_pipes
from sparsedepth.cli.terminal import warn
from sparsedepth.files import read_array
from sparsedepth.files.profiles import profile_named
from sparsedepth.files.stored import Pixels
from sparsedepth.vocabulary import InputError, Origin

MAX_TITLE_LETTERS = 80


@takes_pipes(".png")
def show_command(
    file: Annotated[Path, typer.Argument(help="A map, or a variance or origin that was written with one.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The picture (.png).")],
    profile: ProfileOption = "auto",
    scale: ScaleOption = None,
    invalid: InvalidOption = None,
    variance: Annotated[bool, typer.Option("--variance", help="Draw the file's variances, on a log scale.")] = False,
    origin: Annotated[bool, typer.Option("--origin", help="Draw the file's origins.")] = False,
    limits: Annotated[
        tuple[float, float] | None, typer.Option("--limits", help="The values at both ends of the scale bar.")
    ] = None,
    title: Annotated[str | None, typer.Option("--title", help="Instead of the file's name.")] = None,
    force: ForceOption = False,
) -> None:
    """Draw a map in colours, with a scale bar in its unit; missing pixels have a colour of their own.

    The name - is standard input, or standard output.
    """
    from sparsedepth.pictures import save_map, save_origin, save_variance

    if variance and origin:
        raise InputError("--variance and --origin are two pictures; draw one at a time")
    if limits is not None and not (np.isfinite(limits).all() and limits[0] < limits[1]):
        raise InputError(f"--limits are {limits[0]:g} and {limits[1]:g}; the first must be below the second")
    require_writable(output, ".png")
    require_apart(Sources([Source(file, Path(file.name))], many=False), [output])
    require_new([output], force)
    name = _title(file.name if title is None else title)
    reader = MapReader(profile, scale, invalid)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph", UserWarning)  # letters that the font lacks are drawn as boxes
        if origin:
            save_origin(origins_of(file), output, title=name)
        elif variance:
            save_variance(_numbers(file, "variance"), output, title=name, unit=_squared(file, reader), limits=limits)
        else:
            image = reader(file)
            if image.assumed:
                warn(image.assumed)
            what = f"{image.kind}, {image.unit}" if image.unit else f"{image.kind}, unit unknown"
            save_map(image.values, output, title=name, unit=what, limits=limits)


def _title(text: str) -> str:
    text = "".join(letter if letter.isprintable() else "?" for letter in text.encode(errors="replace").decode())
    return (
        text
        if len(text) <= MAX_TITLE_LETTERS
        else text[: MAX_TITLE_LETTERS // 2] + "…" + text[-MAX_TITLE_LETTERS // 2 + 1 :]
    )


def _numbers(file: Path, name: str) -> Pixels:
    return read_array(file, name=name if file.suffix.lower() == ".npz" else "")


def origins_of(file: Path) -> Pixels:
    """Read the origins that a file holds."""
    origins = _numbers(file, "origin")
    if origins.dtype.kind not in "iu" or origins.min() < 0 or origins.max() > max(Origin):
        codes = ", ".join(f"{each.value} {each.name.lower()}" for each in Origin)
        raise InputError(f"{file} holds no origins; they are {codes}")
    return origins


def _squared(file: Path, reader: MapReader) -> str:
    """Return the label of a variance, with its unit where it is known."""
    if reader.profile != "auto":
        unit = profile_named(reader.profile).unit
    else:
        unit = reader(file).unit if file.suffix.lower() == ".npz" else ""
    return f"variance, ({unit})²" if "/" in unit else f"variance, {unit}²" if unit else "variance, squared units"
