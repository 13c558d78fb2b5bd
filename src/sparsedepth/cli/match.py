"""Match two views."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from sparsedepth.cli.batch.plan import (
    Source,
    Sources,
    require_apart,
    require_new,
    require_origin_format,
    require_variance_format,
    require_writable,
)
from sparsedepth.cli.options import ForceOption, JsonOption, words_of
from sparsedepth.cli.terminal import print_json, print_line, progress_bar, say_warning
from sparsedepth.files import read_photo, write, write_array
from sparsedepth.files.formats import format_of
from sparsedepth.matching import Stage, stages
from sparsedepth.stereo import solvers
from sparsedepth.stereo.calibration import StereoCalibration
from sparsedepth.vocabulary import DepthImage, InputError, Match, Origin, Restoration, StereoPair

MAX_METRES = 65.0
"""Farthest depth in an integer file of millimetres; what is farther is unknown there."""


def match_command(
    left: Annotated[Path, typer.Argument(help="The left view: a photograph, rectified.")],
    right: Annotated[Path, typer.Argument(help="The right view, of equal size.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Disparities of the left view, in pixels: .pfm, ...")],
    max_disparity: Annotated[int, typer.Option("--max-disparity", help="The largest shift between the views, in px.")],
    solver: Annotated[
        str,
        typer.Option(
            "--solver", help=f"One of: {', '.join(solvers.names())}.", autocompletion=words_of(solvers.names())
        ),
    ] = "semi_global",
    variance_out: Annotated[
        Path | None, typer.Option("--variance-out", help="File for the variances, in squared pixels: .tiff, ...")
    ] = None,
    origin_out: Annotated[
        Path | None, typer.Option("--origin-out", help="File for origins: 0 matched, 2 filled.")
    ] = None,
    depth_out: Annotated[
        Path | None,
        typer.Option(
            "--depth-out",
            help="File for depths in metres; in integers, mm up to 65 m. Needs --calib, or --focal and --baseline.",
        ),
    ] = None,
    depth_variance_out: Annotated[
        Path | None,
        typer.Option("--depth-variance-out", help="File for their variances, in squared metres: .tiff, ..."),
    ] = None,
    calib: Annotated[
        Path | None,
        typer.Option("--calib", help="Calibration: calib.txt of Middlebury, or camera_info YAML of the right camera."),
    ] = None,
    focal: Annotated[float | None, typer.Option("--focal", help="Focal length, in pixels.")] = None,
    baseline: Annotated[
        float | None, typer.Option("--baseline", help="Distance between the cameras, in metres.")
    ] = None,
    doffs: Annotated[
        float | None,
        typer.Option("--doffs", help="Right principal point minus the left one, in pixels: 0 in most pairs."),
    ] = None,
    sensor: Annotated[
        str | None, typer.Option("--sensor", help="Sensor file in px: least noise of the disparities.")
    ] = None,
    rounds: Annotated[
        int, typer.Option("--rounds", help="Number of times to solve again with the sparse prior.", min=0)
    ] = 0,
    threads: Annotated[
        int | None, typer.Option("--threads", help="Number of threads; all cores by default.", min=1)
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of random solvers.", min=0)] = 0,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Match two rectified views: disparities of the left view, their variances and origins.

    Integer files hold disparities as KITTI does, 256 a pixel.
    """
    outputs = {"disparity": output, "variance": variance_out, "origin": origin_out, "depth": depth_out}
    outputs["depth_variance"] = depth_variance_out
    paths = {name: path for name, path in outputs.items() if path is not None}
    _require_camera(paths, calib, focal, baseline, doffs)
    _require_outputs(left, right, paths, force)
    begin = time.monotonic()
    solvers.load(solver)
    pair = StereoPair.from_images(read_photo(left), read_photo(right), max_disparity)
    camera = _calibration(calib, focal, baseline, doffs, pair.shape)
    found = _follow(stages(pair, solver=solver, sensor=sensor, rounds=rounds, threads=threads, seed=seed))
    _write(found, paths, camera)
    for sentence in found.warnings:
        say_warning(f"{left}, {right}: {sentence}")
    facts = _facts(found, pair, solver) | {"seconds": round(time.monotonic() - begin, 3)}
    _print_facts(facts | {name: str(path) for name, path in paths.items()}, left, right, output, as_json)


def _follow(steps: Iterator[Stage]) -> Match:
    """Return the result of the last stage, with a bar on the way."""
    with progress_bar() as bar:
        shown = bar.add_task("matching", total=None)
        for stage in steps:
            bar.update(shown, description=stage.description, completed=stage.done, total=stage.total)
            if stage.result is not None:
                return stage.result
    raise RuntimeError("the stages ended without a result")


def _require_camera(
    paths: dict[str, Path], calib: Path | None, focal: float | None, baseline: float | None, doffs: float | None
) -> None:
    """Refuse depths without a calibration, a calibration without depths, and half of one."""
    by_numbers = focal is not None and baseline is not None
    given = [number for number in (focal, baseline, doffs, calib) if number is not None]
    wanted = "depth" in paths or "depth_variance" in paths
    if wanted != bool(given) or (given and calib is None and not by_numbers):
        raise InputError(
            "depths in metres need --depth-out or --depth-variance-out, and --calib FILE or both --focal (pixels) and "
            "--baseline (metres)"
        )


def _calibration(
    calib: Path | None, focal: float | None, baseline: float | None, doffs: float | None, shape: tuple[int, int]
) -> StereoCalibration | None:
    """Return the calibration of the pair; numbers on the command line stand before those of the file."""
    numbers = {"focal_px": focal, "baseline_m": baseline, "doffs_px": doffs}
    given = {name: number for name, number in numbers.items() if number is not None}
    if calib is not None:
        return replace(StereoCalibration.from_file(calib, shape), **given)
    return StereoCalibration(**given) if given else None


def _require_outputs(left: Path, right: Path, paths: dict[str, Path], force: bool) -> None:
    """Refuse what cannot be written, before any work is done."""
    for name, path in paths.items():
        require_writable(path)
        format_of(path)
        if name in ("variance", "depth_variance"):
            require_variance_format(path)
        if name == "origin":
            require_origin_format(path)
    for view in (left, right):
        require_apart(Sources([Source(view, Path(view.name))], many=False), *([path] for path in paths.values()))
    require_new(list(paths.values()), force)


def _write(found: Match, paths: dict[str, Path], camera: StereoCalibration | None) -> None:
    """Write the disparities last: where they are, the others are."""
    if "variance" in paths:
        write_array(paths["variance"], found.variance)
    if "origin" in paths:
        write_array(paths["origin"], found.origin)
    if camera is not None:
        _write_depth(camera.depth(found), paths)
    path = paths["disparity"]
    write(path, found, profile="kitti-disparity" if _integers(path) else None)


def _write_depth(metres: Restoration, paths: dict[str, Path]) -> None:
    """Write depths and their variances; integers hold millimetres up to 65 m."""
    if "depth_variance" in paths:
        write_array(paths["depth_variance"], metres.variance)
    if "depth" in paths:
        path, depth = paths["depth"], metres.depth
        if _integers(path):
            depth = np.where(depth <= MAX_METRES, depth, np.nan)
        write(path, DepthImage(depth, "m"), profile="mm" if _integers(path) else None)


def _integers(path: Path) -> bool:
    return format_of(path).integers


def _facts(found: Match, pair: StereoPair, solver: str) -> dict[str, Any]:
    return {
        "shape": pair.shape,
        "max_disparity": pair.max_disparity,
        "solver": solver,
        "filled_share": float((found.origin == Origin.FILLED).mean()),
        "median_disparity": float(np.median(found.disparity)),
        "median_deviation": float(np.sqrt(np.median(found.variance))),
        "warnings": list(found.warnings),
    }


def _print_facts(facts: dict[str, Any], left: Path, right: Path, output: Path, as_json: bool) -> None:
    if as_json:
        print_json({"left": str(left), "right": str(right)} | facts)
        return
    print_line(
        f"{left}, {right} -> {output}: {facts['filled_share']:.1%} filled, median {facts['median_disparity']:.3g} px "
        f"(give or take {facts['median_deviation']:.2g}), {facts['seconds']:.1f} s"
    )
