"""Write one HTML file with maps, their variances, origins and errors."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
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
    words_of,
)
from sparsedepth.cli.show import origins_of
from sparsedepth.cli.terminal import print_facts, progress_bar
from sparsedepth.files import PROFILES, read_about
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
    before: Annotated[
        Path | None,
        typer.Option("--input", help="The maps that were restored: a file for all, or a folder with one of each name."),
    ] = None,
    input_profile: Annotated[
        str | None,
        typer.Option(
            "--input-profile",
            help="As --profile, for the input where it differs.",
            autocompletion=words_of(("auto", *PROFILES)),
        ),
    ] = None,
    truth: Annotated[
        Path | None,
        typer.Option("--truth", help="The ground truth: a file for all, or a folder with one of each name."),
    ] = None,
    truth_profile: TruthProfileOption = None,
    truth_scale: TruthScaleOption = None,
    threshold: ThresholdOption = 1.0,
    title: Annotated[str, typer.Option("--title", help="Title of the page.")] = "Depth maps",
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write pictures, numbers and settings of results as one HTML file that opens from disk, without a network.

    With --input it shows what was restored, too. With --truth it shows errors, and whether the variances are
    calibrated.
    """
    sources = find_sources(results)
    if len(sources.files) > MAX_MAPS:
        raise InputError(f"{len(sources.files)} maps were named and a report shows at most {MAX_MAPS}; make several")
    if before is not None and not before.exists():
        raise InputError(f"there is no file {before}")
    require_writable(output, ".html")
    require_new([output], force)
    truths = Truths(
        truth, MapReader(truth_profile or profile, scale if truth_scale is None else truth_scale, invalid), threshold
    )
    reader, inputs = (
        MapReader(profile, scale, invalid),
        Inputs(before, MapReader(input_profile or profile, scale, invalid)),
    )
    with progress_bar() as bar:
        files = bar.track(sources.files, description="reading")
        found = [inputs.beside(read_finding(source, reader, truths), source) for source in files]
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


@dataclass(frozen=True)
class Inputs:
    """The file or folder of maps that were restored, if any, and how it is read."""

    place: Path | None
    reader: MapReader

    def beside(self, finding: Finding, source: Source) -> Finding:
        """Return the finding with what was restored, in its unit."""
        if self.place is None:
            return finding
        path = file_for(self.place, source.name)
        image = read_and_warn(path, self.reader)
        if image.values.shape != finding.image.values.shape:
            came, wanted = (each.values.shape for each in (image, finding.image))
            raise InputError(f"{path} has shape {came} and {source.path} {wanted}; name what was restored")
        return replace(finding, before=image.to(finding.image.unit))


def read_finding(source: Source, reader: MapReader, truths: Truths) -> Finding:
    """Read a map with its variance, its origin and its truth, in the unit of the truth."""
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
