"""Restore the frames of a depth camera over time: the command stream."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from sparsedepth.cli.denoise import SensorOption
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
    words_of,
)
from sparsedepth.cli.stream_results import StreamResults
from sparsedepth.cli.stream_sources import FrameSource, open_files, open_live
from sparsedepth.cli.terminal import print_json, print_line, progress_bar
from sparsedepth.streams import Stream
from sparsedepth.streams.stream import QUALITIES
from sparsedepth.vocabulary import InputError, Origin


def stream_command(
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the restored frames.")],
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            help="Frames in their order: files, folders, patterns; or a bag, zip or npz.", show_default=False
        ),
    ] = None,
    camera: Annotated[
        str | None,
        typer.Option(
            "--camera",
            metavar="[realsense|openni|simulated]",
            help="A live camera instead.",
            autocompletion=words_of(("realsense", "openni", "simulated")),
        ),
    ] = None,
    seconds: Annotated[float | None, typer.Option("--seconds", help="How long the camera is read.", min=0)] = None,
    sensor: SensorOption = None,
    poses: Annotated[
        Path | None, typer.Option("--poses", help="Camera-to-world poses of a moving camera: a folder or a file.")
    ] = None,
    intrinsics: Annotated[
        str | None,
        typer.Option("--intrinsics", metavar=INTRINSICS_METAVAR, help=f"{INTRINSICS_HELP}; of a camera that moves."),
    ] = None,
    quality: Annotated[
        str,
        typer.Option("--quality", metavar="[live|best]", help="Effort.", autocompletion=words_of(QUALITIES)),
    ] = "live",
    topic: Annotated[str | None, typer.Option("--topic", help="Topic of the depth images of a bag.")] = None,
    suffix: Annotated[
        str, typer.Option("--format", metavar="[.png|.npz|...]", help="Format of the files; .npz has the variance too.")
    ] = ".npz",
    video: Annotated[
        Path | None, typer.Option("--video", help="Before, after and standard deviation: a .gif or .webp.")
    ] = None,
    profile: ProfileOption = "auto",
    scale: ScaleOption = None,
    invalid: InvalidOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Restore the frames of a depth camera over time.

    The sensor is estimated from the first frames unless one is named. A camera that moves needs --intrinsics; with
    --poses its motion is known, without them it is estimated.
    """
    maps = MapReader(profile, scale, invalid)
    results = StreamResults(output, suffix, video, force)
    with _opened(inputs, camera, seconds, topic, poses, quality, maps) as source, results:
        if source.dropped is not None:
            results.require_empty()
        given = source.intrinsics if intrinsics is None else parse_intrinsics(intrinsics)
        stream = Stream(sensor, given, quality=quality)
        done = _run(stream, source, results)
    _print(done, stream, output, video, as_json)


def _opened(
    inputs: Sequence[str] | None,
    camera: str | None,
    seconds: float | None,
    topic: str | None,
    poses: Path | None,
    quality: str,
    reader: MapReader,
) -> AbstractContextManager[FrameSource]:
    if (camera is None) == (not inputs):
        raise InputError("frames come from files, a bag or a live camera; give one of them, or --camera NAME")
    if camera is None:
        return open_files(inputs or (), topic, poses, reader)
    if poses is not None or topic is not None:
        raise InputError("a live camera has neither --poses nor --topic; drop them")
    return open_live(camera, seconds, colour=quality == "best")


@dataclass(frozen=True)
class Done:
    """Result of a run: frames, those that were dropped, seconds, and mean shares of all pixels.

    Seconds are those of the work, or of a live camera those since the first frame.
    """

    frames: int
    dropped: int | None
    seconds: float
    shares: dict[str, float]


def _run(stream: Stream, source: FrameSource, results: StreamResults) -> Done:
    counts, seconds, number, dropped = np.zeros(len(Origin)), 0.0, 0, None
    began = None
    with progress_bar() as bar:
        shown = bar.add_task("streaming", total=source.total)
        for frame in source.frames:
            start = time.monotonic()
            began = start if began is None else began
            result = stream.push(frame.image, pose=frame.pose, guide=frame.guide)
            seconds, number = seconds + time.monotonic() - start, number + 1
            results.add(frame.name, frame.image.values, result)
            counts += np.bincount(result.origin.ravel(), minlength=len(Origin)) / result.origin.size
            if source.dropped is not None:
                seconds, dropped = time.monotonic() - began, source.dropped()
            bar.update(shown, advance=1, description=_progress(number, dropped, seconds))
    if number == 0:
        raise InputError("there are no frames; give files, a folder, a bag, or a camera that streams")
    shares = {origin.name.lower(): float(counts[origin] / number) for origin in Origin}
    return Done(number, dropped, seconds, shares)


def _progress(number: int, dropped: int | None, seconds: float) -> str:
    lost = "" if dropped is None else f", {dropped} dropped"
    return f"streaming, {number / max(seconds, 1e-9):.0f} frames/s{lost}"


def _print(done: Done, stream: Stream, output: Path, video: Path | None, as_json: bool) -> None:
    rate = done.frames / max(done.seconds, 1e-9)
    if as_json:
        facts = {"output": str(output), "video": video and str(video), "frames": done.frames, "state": stream.state}
        facts |= {} if done.dropped is None else {"dropped": done.dropped}
        print_json(facts | {"frames_per_second": rate, "shares": done.shares})
        return
    shares = ", ".join(f"{share:.1%} {name}" for name, share in done.shares.items() if share >= 0.0005)
    lost = "" if done.dropped is None else f", {done.dropped} dropped,"
    print_line(f"{output}: {done.frames} frames{lost} at {rate:.0f} frames/s ({stream.state}): {shares}")
