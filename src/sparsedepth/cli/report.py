"""Write one HTML file with maps, their variances, origins and errors."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from sparsedepth.cli.batch.plan import Source, file_for, find_sources, require_new, require_writable
from sparsedepth.cli.evaluate import errors_of, in_unit_of, named_array, read_and_warn, variance_of
from sparsedepth.cli.options import (
    ForceOption,
    InvalidOption,
    JsonOption,
    MapReader,
    ProfileOption,
    ScaleOption,
    ThresholdOption,
    TruthProfileOption,
    TruthScaleOption,
)
from sparsedepth.cli.show import origins_of
from sparsedepth.cli.terminal import print_facts, progress_bar
from sparsedepth.files import read_about
from sparsedepth.findings import Finding, closing, sections
from sparsedepth.report import write_report
from sparsedepth.vocabulary import InputError, unit_factor

MAX_MAPS = 100
"""Of one report; each map is some hundred thousand bytes of pictures."""


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
    truth_profile: TruthProfileOption = None,
    truth_scale: TruthScaleOption = None,
    threshold: ThresholdOption = 1.0,
    title: Annotated[str, typer.Option("--title", help="Of the page.")] = "Depth maps",
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write pictures, numbers and settings of results as one HTML file that opens from disk, without a network.

    With --truth it also shows errors, and whether the variances are calibrated.
    """
    sources = find_sources(results)
    if len(sources.files) > MAX_MAPS:
        raise InputError(f"{len(sources.files)} maps were named and a report shows at most {MAX_MAPS}; make several")
    require_writable(output, ".html")
    require_new([output], force)
    truths = Truths(
        truth, MapReader(truth_profile or profile, scale if truth_scale is None else truth_scale, invalid), threshold
    )
    reader = MapReader(profile, scale, invalid)
    with progress_bar() as bar:
        found = [_finding(source, reader, truths) for source in bar.track(sources.files, description="reading")]
    with tempfile.TemporaryDirectory() as folder:
        settings = {"maps": str(len(found)), "profile": profile} | ({} if truth is None else {"truth": truth.name})
        write_report(output, title, *sections(found, Path(folder)), *closing(settings))
    print_facts(as_json, {"report": str(output), "maps": len(found), "bytes": output.stat().st_size})


@dataclass(frozen=True)
class Truths:
    """The file or folder of true maps, if any, and how it is read."""

    place: Path | None
    reader: MapReader
    threshold: float


def _finding(source: Source, reader: MapReader, truths: Truths) -> Finding:
    image, variance = read_and_warn(source.path, reader), variance_of(source.path)
    if variance is not None and variance.shape != image.values.shape:
        raise InputError(f"{source.path}: the variance has shape {variance.shape} but the map {image.values.shape}")
    origin = None if named_array(source.path, "origin") is None else origins_of(source.path)
    name, about = str(source.name), read_about(source.path)
    if truths.place is None:
        return Finding(name, image, variance, origin, about=about)
    true = read_and_warn(file_for(truths.place, source.name), truths.reader)
    came, image = image.unit, in_unit_of(true, image)
    if variance is not None:
        variance = variance * unit_factor(came, image.kind, image.unit) ** 2
    errors = errors_of(image.values, true.values, truths.threshold)
    return Finding(name, image, variance, origin, true.values, errors, about)
