"""Write the points of a depth map: the command cloud."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from sparsedepth.cli.batch.plan import Source, Sources, require_apart, require_new, require_writable
from sparsedepth.cli.options import (
    INTRINSICS_HELP,
    INTRINSICS_METAVAR,
    ForceOption,
    InvalidOption,
    JsonOption,
    MapReader,
    ProfileOption,
    ScaleOption,
    parse_intrinsics,
)
from sparsedepth.cli.pipes import shown_name, takes_pipes
from sparsedepth.cli.show import origins_of
from sparsedepth.cli.terminal import print_json, print_line, warn
from sparsedepth.files import read_array, read_photo
from sparsedepth.files.numpy_arrays import array_names
from sparsedepth.geometry import PointCloud, point_cloud
from sparsedepth.geometry.cloud_files import SUFFIXES
from sparsedepth.stereo.calibration import StereoCalibration
from sparsedepth.vocabulary import DepthImage, InputError, Match, Origin, Restoration


@takes_pipes(".ply")
def cloud_command(
    file: Annotated[Path, typer.Argument(help="A depth map, or a result (.npz) with variance and origin.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The points: .ply or .pcd, binary.")],
    intrinsics: Annotated[
        str | None, typer.Option("--intrinsics", metavar=INTRINSICS_METAVAR, help=f"{INTRINSICS_HELP}.")
    ] = None,
    calib: Annotated[
        Path | None,
        typer.Option("--calib", help="Of the pair, for disparities: calib.txt, or camera_info of the right camera."),
    ] = None,
    colour: Annotated[
        Path | None, typer.Option("--colour", "--color", help="A picture of the same view and size.")
    ] = None,
    variance: Annotated[
        Path | None, typer.Option("--variance", help="File of the variances, in squared units; an npz has its own.")
    ] = None,
    max_std: Annotated[
        float | None, typer.Option("--max-std", help="Leave out points less certain along the ray, in units.", min=0)
    ] = None,
    unit: Annotated[
        str | None, typer.Option("--to", metavar="[m|mm]", help="Unit of the points; that of the map by default.")
    ] = None,
    profile: ProfileOption = "auto",
    scale: ScaleOption = None,
    invalid: InvalidOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write a depth map as points in space, with normals, standard deviations along the rays, origins and colours.

    Missing and refused pixels are left out. The name - is standard input, or standard output (.ply).
    """
    if output.suffix.lower() not in SUFFIXES:
        raise InputError(f"{output}: clouds are written as {' or '.join(SUFFIXES)}; choose one of these")
    if unit is not None and unit not in ("m", "mm"):
        raise InputError(f"--to is {unit!r}; choose m or mm")
    if intrinsics is None and calib is None:
        raise InputError("a cloud needs the camera: --intrinsics; or --calib, for disparities of a stereo pair")
    require_writable(output)
    require_apart(Sources([Source(file, Path(file.name))], many=False), [output])
    require_new([output], force)
    image = MapReader(profile, scale, invalid)(file)
    if image.assumed:
        warn(image.assumed)
    shape = image.values.shape[0], image.values.shape[1]
    camera = parse_intrinsics(intrinsics or str(calib), shape)
    picture = None if colour is None else read_photo(colour)
    try:
        result = _in_metres(_result(file, image, variance), calib, shape)
        cloud = point_cloud(result, camera, picture, max_std=max_std)
        cloud = cloud if unit is None else cloud.to(unit)
    except InputError as error:
        raise InputError(f"{file}: {error}") from None
    cloud.write(output)
    _print(cloud, file, output, as_json)


def _result(file: Path, image: DepthImage, variance: Path | None) -> Restoration:
    """Return the map with the variance and the origins that are there."""
    inside = array_names(file) if file.suffix.lower() == ".npz" else ()
    if variance is not None:
        spread = read_array(variance)
    else:
        spread = read_array(file, name="variance") if "variance" in inside else np.full(image.values.shape, np.nan)
    origin = origins_of(file) if "origin" in inside else np.full(image.values.shape, Origin.MEASURED)
    if origin.shape != image.values.shape:
        raise InputError(f"{file}: its origins have shape {origin.shape} and its map {image.values.shape}")
    return Restoration(image.values, spread, origin.astype(np.uint8)).described_by(image)


def _in_metres(result: Restoration, calib: Path | None, shape: tuple[int, int]) -> Restoration:
    """Return depths; disparities become some by the calibration of their pair."""
    if calib is None:
        return result
    if result.kind != "disparity":
        raise InputError(f"--calib is for disparities, and the map holds {result.kind}; drop it, or say its --profile")
    found = Match(result.depth, result.variance, result.origin)
    return StereoCalibration.from_file(calib, shape).depth(found)


def _print(cloud: PointCloud, file: Path, output: Path, as_json: bool) -> None:
    known = cloud.std[np.isfinite(cloud.std)]
    middle = float(np.median(known)) if known.size else float("nan")
    if as_json:
        facts = {"input": str(file), "output": str(output), "points": len(cloud), "unit": cloud.unit}
        print_json(facts | {"median_std": middle})
        return
    sure = f", give or take {middle:.2g} {cloud.unit}" if known.size else ", of unknown certainty"
    names, unit = f"{shown_name(file)} -> {shown_name(output)}", cloud.unit or "an unknown unit"
    print_line(f"{names}: {len(cloud)} points in {unit}{sure}")
