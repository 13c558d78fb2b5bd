"""One HTML file to look at and to send: maps with their variances, origins and errors."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from sparsedepth.cli.evaluating import errors_of, in_unit_of, named_array, read_aloud, variance_of
from sparsedepth.cli.places import Source, file_for, find_sources, require_new, require_place
from sparsedepth.cli.reading import InvalidOption, ProfileOption, Reading, ScaleOption
from sparsedepth.cli.showing import origins_of
from sparsedepth.cli.terminal import ForceOption, JsonOption, progress_bar, report
from sparsedepth.files import read_about
from sparsedepth.findings import Finding, closing, sections
from sparsedepth.report import write_report
from sparsedepth.vocabulary import InputError, unit_factor

MOST = 100
"""Maps in one report; each is some hundred thousand bytes of pictures."""


def report_command(
    results: Annotated[
        list[str], typer.Argument(help="Maps, best as .npz with variance and origin; folders, or quoted patterns.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The report (.html).")],
    profile: ProfileOption = "auto",
    scale: ScaleOption = None,
    invalid: InvalidOption = None,
    truth: Annotated[
        Path | None,
        typer.Option("--truth", help="What they should be: a file for all, or a folder with one of each name."),
    ] = None,
    truth_profile: Annotated[str | None, typer.Option(help="As --profile, for the truth where it differs.")] = None,
    truth_scale: Annotated[float | None, typer.Option(help="As --scale, for the truth where it differs.")] = None,
    threshold: Annotated[float, typer.Option(help="A pixel is bad if it is further off, in units.", min=0)] = 1.0,
    title: Annotated[str, typer.Option("--title", help="Of the page.")] = "Depth maps",
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write pictures, numbers and settings of results as one HTML file that opens from disk and needs nothing else.

    With --truth it also shows errors, and whether the variances are honest.
    """
    sources = find_sources(results)
    if len(sources.files) > MOST:
        raise InputError(f"{len(sources.files)} maps were named and a report shows at most {MOST}; make several")
    require_place(output, ".html")
    require_new([output], force)
    truths = Truths(
        truth, Reading(truth_profile or profile, scale if truth_scale is None else truth_scale, invalid), threshold
    )
    reading = Reading(profile, scale, invalid)
    with progress_bar() as bar:
        found = [_finding(source, reading, truths) for source in bar.track(sources.files, description="reading")]
    with tempfile.TemporaryDirectory() as folder:
        settings = {"maps": str(len(found)), "profile": profile} | ({} if truth is None else {"truth": truth.name})
        write_report(output, title, *sections(found, Path(folder)), *closing(settings))
    report(as_json, {"report": str(output), "maps": len(found), "bytes": output.stat().st_size})


@dataclass(frozen=True)
class Truths:
    """Where the truth of a map is, if anywhere, and how it is read."""

    place: Path | None
    reading: Reading
    threshold: float


def _finding(source: Source, reading: Reading, truths: Truths) -> Finding:
    image, variance = read_aloud(source.path, reading), variance_of(source.path)
    if variance is not None and variance.shape != image.values.shape:
        raise InputError(f"{source.path}: the variance has shape {variance.shape} but the map {image.values.shape}")
    origin = None if named_array(source.path, "origin") is None else origins_of(source.path)
    name, about = str(source.name), read_about(source.path)
    if truths.place is None:
        return Finding(name, image, variance, origin, about=about)
    true = read_aloud(file_for(truths.place, source.name), truths.reading)
    came, image = image.unit, in_unit_of(true, image)
    if variance is not None:
        variance = variance * unit_factor(came, image.kind, image.unit) ** 2
    errors = errors_of(image.values, true.values, truths.threshold)
    return Finding(name, image, variance, origin, true.values, errors, about)
