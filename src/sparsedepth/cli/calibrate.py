"""Measure the noise of a depth camera from frames of one scene: the command calibrate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Annotated, Any

import typer

from sparsedepth.cli.batch.plan import Source, Sources, find_sources, require_apart, require_new, require_writable
from sparsedepth.cli.batch.spec import Notes
from sparsedepth.cli.options import (
    INTRINSICS_HELP,
    INTRINSICS_METAVAR,
    ForceOption,
    InvalidOption,
    JsonOption,
    MapReader,
    MapsArgument,
    ProfileOption,
    ScaleOption,
    parse_intrinsics,
)
from sparsedepth.cli.poses import read_poses
from sparsedepth.cli.terminal import print_json, print_line
from sparsedepth.sensors import Calibration, calibrate
from sparsedepth.vocabulary import UNIT_FACTORS, DepthImage, InputError, Unit


def calibrate_command(
    frames: MapsArgument,
    output: Annotated[Path, typer.Option("-o", "--output", help="The record of the sensor (.json).")],
    poses: Annotated[
        Path | None,
        typer.Option(
            "--poses",
            help="Camera-to-world poses of a moving camera: a folder of 4x4 matrices by the frames' names, or a file.",
        ),
    ] = None,
    pose_unit: Annotated[str, typer.Option("--pose-unit", metavar="[m|mm]", help="Unit of the poses.")] = "m",
    intrinsics: Annotated[
        str | None,
        typer.Option("--intrinsics", metavar=INTRINSICS_METAVAR, help=f"{INTRINSICS_HELP}; wanted with --poses."),
    ] = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="A picture of what was measured (.png).")] = None,
    name: Annotated[str, typer.Option("--name", help="Name of the camera, for the record.")] = "",
    profile: ProfileOption = "auto",
    scale: ScaleOption = None,
    invalid: InvalidOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Measure the noise of a depth camera from at least five frames of a static scene.

    Put the camera on a tripod; a moving camera needs --poses and --intrinsics. Frames that cannot show one static scene
    are refused. The summary gives the error of the record, and what the frames cannot show.
    """
    _require_camera(intrinsics, poses)
    if pose_unit not in ("m", "mm"):
        raise InputError(f"--pose-unit is {pose_unit!r}; choose m or mm")
    sources = find_sources(frames)
    _require_outputs(sources, output, plot, force)
    notes = Notes()
    images = _read_frames(sources.files, MapReader(profile, scale, invalid), notes)
    unit, (height, width) = images[0].unit, images[0].values.shape
    camera = None if intrinsics is None else astuple(parse_intrinsics(intrinsics, (height, width)))
    matrices = None if poses is None else read_poses(poses, sources.files, UNIT_FACTORS.get((pose_unit, unit), 1.0))
    found = calibrate([image.values for image in images], unit=unit, name=name, poses=matrices, intrinsics=camera)
    found.sensor.save(output)
    if plot is not None:
        from sparsedepth.sensor_pictures import save_calibrated_sensor

        save_calibrated_sensor(found, plot, title=name)
    _print(found, output, plot, notes, as_json)


def _require_camera(intrinsics: str | None, poses: Path | None) -> None:
    """Refuse intrinsics without poses, and poses without intrinsics."""
    if (intrinsics is None) != (poses is None):
        lacking = "--intrinsics FX,FY,CX,CY" if intrinsics is None else "--poses"
        raise InputError(f"a moving camera needs --poses and --intrinsics; {lacking} is missing")


def _require_outputs(sources: Sources, output: Path, plot: Path | None, force: bool) -> None:
    """Refuse outputs that cannot be written, exist or are inputs, before any work is done."""
    outputs = [output] if plot is None else [output, plot]
    for path, suffix in zip(outputs, (".json", ".png"), strict=False):
        require_writable(path, suffix)
        for source in sources.files:
            require_apart(Sources([source], many=False), [path])
    require_new(outputs, force)


def _read_frames(sources: Sequence[Source], reader: MapReader, notes: Notes) -> list[DepthImage]:
    """Read the frames; all are depth of one size, in the unit of the first."""
    images: list[DepthImage] = []
    for source in sources:
        image = reader(source.path)
        notes.add(source.path.name, image.assumed)
        _require_depth(source.path, image)
        if images and image.values.shape != images[0].values.shape:
            raise InputError(
                f"{source.path} has {_size(image)} pixels and {sources[0].path} has {_size(images[0])}; give frames of "
                "one camera and one resolution"
            )
        images.append(image if not images else image.to(images[0].unit))
    return images


def _require_depth(path: Path, image: DepthImage) -> None:
    depth_units: tuple[Unit, ...] = ("m", "mm")
    if image.kind != "depth":
        raise InputError(
            f"{path} holds {image.kind}; the noise of a sensor is measured on depth: convert the maps, or give the "
            "--profile that the file has"
        )
    if image.unit not in depth_units:
        raise InputError(f"{path} has no unit; say how it holds depth: --profile m, or --profile mm, or another one")


def _size(image: DepthImage) -> str:
    return " x ".join(map(str, image.values.shape))


def _print(found: Calibration, output: Path, plot: Path | None, notes: Notes, as_json: bool) -> None:
    if as_json:
        print_json({"output": str(output), "plot": plot and str(plot), **_facts(found), "assumed": notes.said})
        return
    print_line(f"{output}: {found.summary()}")


def _facts(found: Calibration) -> dict[str, Any]:
    seen, sensor = found.evidence, found.sensor
    return {
        "name": sensor.name,
        "unit": sensor.unit,
        "frames": seen.n_frames,
        "pixels": seen.n_pixels,
        "nearest": seen.nearest,
        "farthest": seen.farthest,
        "median": seen.median,
        "std": float(found.temporal_std(seen.median)),
        "standard_error": found.standard_error,
        "scatter": found.scatter,
        "pattern": None if seen.moving else sensor.pattern,
        "temporal": sensor.temporal,
        "not_measured": found.not_measured,
        "summary": found.summary(),
    }
