"""Match two views."""

from __future__ import annotations

import time
from collections.abc import Iterator
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
from sparsedepth.cli.options import ForceOption, JsonOption
from sparsedepth.cli.terminal import print_json, print_line, progress_bar
from sparsedepth.files import read_photo, write, write_array
from sparsedepth.files.formats import format_of
from sparsedepth.matching import Stage, stages
from sparsedepth.stereo import solvers
from sparsedepth.vocabulary import DepthImage, DepthMap, InputError, Match, Origin, StereoPair

MAX_METRES = 65.0
"""Farthest depth in an integer file of millimetres; what is farther is unknown there."""


def match_command(
    left: Annotated[Path, typer.Argument(help="The left view: a photograph, rectified.")],
    right: Annotated[Path, typer.Argument(help="The right view, of equal size.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Disparities of the left view, in pixels: .pfm, ...")],
    max_disparity: Annotated[int, typer.Option("--max-disparity", help="The largest shift between the views, in px.")],
    solver: Annotated[str, typer.Option("--solver", help=f"One of: {', '.join(solvers.names())}.")] = "semi_global",
    variance_out: Annotated[
        Path | None, typer.Option("--variance-out", help="File for the variances, in squared pixels: .tiff, ...")
    ] = None,
    origin_out: Annotated[
        Path | None, typer.Option("--origin-out", help="File for origins: 0 matched, 2 filled.")
    ] = None,
    depth_out: Annotated[
        Path | None,
        typer.Option(
            "--depth-out", help="File for depths in metres; in integers, mm up to 65 m. Needs --focal, --baseline."
        ),
    ] = None,
    focal: Annotated[float | None, typer.Option("--focal", help="Focal length, in pixels.")] = None,
    baseline: Annotated[float | None, typer.Option("--baseline", help="Between the cameras, in metres.")] = None,
    no_prior: Annotated[bool, typer.Option("--no-prior", help="Variances without the sparse belief; faster.")] = False,
    sensor: Annotated[
        str | None, typer.Option("--sensor", help="File of a sensor in px: noise that the belief allows for.")
    ] = None,
    rounds: Annotated[int, typer.Option("--rounds", help="Solve again with the belief, so often.", min=0)] = 0,
    threads: Annotated[int | None, typer.Option("--threads", help="All cores by default.", min=1)] = None,
    seed: Annotated[int, typer.Option("--seed", help="Of solvers that choose by chance.", min=0)] = 0,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Match two rectified views: disparities of the left one, how sure they are, and which were hidden and filled.

    Integer files hold disparities as KITTI does, 256 a pixel.
    """
    outputs = {"disparity": output, "variance": variance_out, "origin": origin_out, "depth": depth_out}
    paths = {name: path for name, path in outputs.items() if path is not None}
    _require_camera(depth_out, focal, baseline)
    _require_outputs(left, right, paths, force)
    begin = time.monotonic()
    solvers.load(solver)
    pair = StereoPair.from_images(read_photo(left), read_photo(right), max_disparity)
    options: dict[str, Any] = {"prior": not no_prior, "sensor": sensor, "rounds": rounds}
    found = _follow(stages(pair, solver=solver, **options, threads=threads, seed=seed))
    _write(found, paths, (focal or 0) * (baseline or 0))
    facts = _facts(found, pair, solver, not no_prior) | {"seconds": round(time.monotonic() - begin, 3)}
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


def _require_camera(depth_out: Path | None, focal: float | None, baseline: float | None) -> None:
    for name, number in (("focal", focal), ("baseline", baseline)):
        if (number is None) != (depth_out is None):
            raise InputError("depths in metres need all of --depth-out, --focal (pixels) and --baseline (metres)")
        if number is not None and not (np.isfinite(number) and number > 0):
            raise InputError(f"--{name} is {number:g}; it must be a positive number")


def _require_outputs(left: Path, right: Path, paths: dict[str, Path], force: bool) -> None:
    """Refuse what cannot be written, before any work is done."""
    for name, path in paths.items():
        require_writable(path)
        format_of(path)
        if name == "variance":
            require_variance_format(path)
        if name == "origin":
            require_origin_format(path)
    for view in (left, right):
        require_apart(Sources([Source(view, Path(view.name))], many=False), *([path] for path in paths.values()))
    require_new(list(paths.values()), force)


def _write(found: Match, paths: dict[str, Path], metres: float) -> None:
    """Write the disparities last: where they are, the others are."""
    if "variance" in paths:
        write_array(paths["variance"], found.variance)
    if "origin" in paths:
        write_array(paths["origin"], found.origin)
    if "depth" in paths:
        path = paths["depth"]
        depth = _depth(found.disparity, metres)
        if _integers(path):
            depth = np.where(depth <= MAX_METRES, depth, np.nan)
        write(path, DepthImage(depth, "m"), profile="mm" if _integers(path) else None)
    path = paths["disparity"]
    write(path, found, profile="kitti-disparity" if _integers(path) else None)


def _integers(path: Path) -> bool:
    return format_of(path).integers


def _depth(disparity: DepthMap, metres: float) -> DepthMap:
    """Return focal length times baseline over disparity; NaN at infinity."""
    near = disparity > 0
    return np.where(near, metres / np.where(near, disparity, 1), np.nan).astype(np.float32)


def _facts(found: Match, pair: StereoPair, solver: str, prior: bool) -> dict[str, Any]:
    return {
        "shape": pair.shape,
        "max_disparity": pair.max_disparity,
        "solver": solver,
        "prior": prior,
        "filled_share": float((found.origin == Origin.FILLED).mean()),
        "median_disparity": float(np.median(found.disparity)),
        "median_deviation": float(np.sqrt(np.median(found.variance))),
    }


def _print_facts(facts: dict[str, Any], left: Path, right: Path, output: Path, as_json: bool) -> None:
    if as_json:
        print_json({"left": str(left), "right": str(right)} | facts)
        return
    print_line(
        f"{left}, {right} -> {output}: {facts['filled_share']:.1%} filled, median {facts['median_disparity']:.3g} px "
        f"(give or take {facts['median_deviation']:.2g}), {facts['seconds']:.1f} s"
    )
