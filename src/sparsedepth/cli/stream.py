"""Restore the frames of a depth camera over time: the command stream."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from sparsedepth.cli.batch.plan import find_sources, require_folder, require_new
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
)
from sparsedepth.cli.poses import read_poses
from sparsedepth.cli.terminal import print_json, print_line, progress_bar, warn
from sparsedepth.files import write
from sparsedepth.files.bags import is_bag, read_bag
from sparsedepth.stream_video import VideoWriter
from sparsedepth.streams import Stream
from sparsedepth.vocabulary import DepthImage, InputError, Origin, Restoration


@dataclass(frozen=True, eq=False)
class NamedFrame:
    """A frame, its name without suffix, and its pose if there is one."""

    name: str
    image: DepthImage
    pose: Any = None


def stream_command(
    inputs: Annotated[
        list[str],
        typer.Argument(help="Frames in their order: files, folders, patterns; or one bag.", show_default=False),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the restored frames.")],
    sensor: SensorOption = None,
    poses: Annotated[
        Path | None, typer.Option("--poses", help="Camera-to-world poses of a moving camera: a folder or a file.")
    ] = None,
    intrinsics: Annotated[
        str | None,
        typer.Option("--intrinsics", metavar=INTRINSICS_METAVAR, help=f"{INTRINSICS_HELP}; of a camera that moves."),
    ] = None,
    quality: Annotated[str, typer.Option("--quality", metavar="[live|best]", help="Effort.")] = "live",
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
    """Restore the frames of a depth camera, each with what was seen before.

    The sensor is estimated from the first frames unless one is named. A camera that moves needs --intrinsics; with
    --poses its motion is known, without them it is estimated.
    """
    camera = None if intrinsics is None else parse_intrinsics(intrinsics)
    frames, total = _frames(inputs, topic, poses, MapReader(profile, scale, invalid))
    folder = require_folder(output) if not output.exists() else output
    require_new([] if video is None else [video], force)
    stream = Stream(sensor, camera, quality=quality)
    writer = None if video is None else VideoWriter(video)
    done = _run(stream, frames, total, folder, suffix, writer, force)
    if writer is not None:
        writer.close()
    _print(done, stream, output, video, as_json)


def _frames(
    inputs: Sequence[str], topic: str | None, poses: Path | None, reader: MapReader
) -> tuple[Iterator[NamedFrame], int | None]:
    """Return the frames, one after the other, and how many there are, if that is known."""
    if len(inputs) == 1 and is_bag(inputs[0]):
        if poses is not None:
            raise InputError("poses of a bag are not read; write its frames to files, or drop --poses")
        return (NamedFrame(f"{stamp:019d}", image) for stamp, image in read_bag(inputs[0], topic)), None
    sources = find_sources(inputs).files
    matrices = [None] * len(sources) if poses is None else read_poses(poses, sources, 1.0)

    def read_all() -> Iterator[NamedFrame]:
        for source, pose in zip(sources, matrices, strict=True):
            image = reader(source.path)
            if image.assumed and source is sources[0]:
                warn(image.assumed)
            yield NamedFrame(source.path.stem, image, pose)

    return read_all(), len(sources)


@dataclass(frozen=True)
class Done:
    """Result of a run: frames, seconds of work, and mean shares of all pixels."""

    frames: int
    seconds: float
    shares: dict[str, float]


def _run(
    stream: Stream,
    frames: Iterator[NamedFrame],
    total: int | None,
    folder: Path,
    suffix: str,
    writer: VideoWriter | None,
    force: bool,
) -> Done:
    counts, seconds, number = np.zeros(len(Origin)), 0.0, 0
    with progress_bar() as bar:
        shown = bar.add_task("streaming", total=total)
        for frame in frames:
            start = time.monotonic()
            result = stream.push(frame.image, pose=frame.pose)
            seconds, number = seconds + time.monotonic() - start, number + 1
            _save(folder / f"{frame.name}{suffix}", result, force)
            if writer is not None:
                writer.add(frame.image.values, result)
            counts += np.bincount(result.origin.ravel(), minlength=len(Origin)) / result.origin.size
            bar.update(shown, advance=1, description=f"streaming, {number / max(seconds, 1e-9):.0f} frames/s")
    if number == 0:
        raise InputError("there are no frames; give files, a folder or a bag")
    shares = {origin.name.lower(): float(counts[origin] / number) for origin in Origin}
    return Done(number, seconds, shares)


def _save(path: Path, result: Restoration, force: bool) -> None:
    require_new([path], force)
    write(path, result)


def _print(done: Done, stream: Stream, output: Path, video: Path | None, as_json: bool) -> None:
    rate = done.frames / max(done.seconds, 1e-9)
    if as_json:
        told = {"output": str(output), "video": video and str(video), "frames": done.frames, "state": stream.state}
        print_json(told | {"frames_per_second": rate, "shares": done.shares})
        return
    shares = ", ".join(f"{share:.1%} {name}" for name, share in done.shares.items() if share >= 0.0005)
    print_line(f"{output}: {done.frames} frames at {rate:.0f} frames/s ({stream.state}): {shares}")
