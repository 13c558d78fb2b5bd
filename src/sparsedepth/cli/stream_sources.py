"""Where the frames of the command stream come from: files, a bag, or a live camera."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparsedepth.cameras import NewestFrames, open_camera
from sparsedepth.cameras.newest import for_seconds
from sparsedepth.cli.batch.plan import find_sources
from sparsedepth.cli.options import MapReader
from sparsedepth.cli.poses import read_poses
from sparsedepth.cli.terminal import say, warn
from sparsedepth.files import record3d
from sparsedepth.files.bags import describe_bag, is_bag, read_bag
from sparsedepth.files.frames import holds_frames, read_frames
from sparsedepth.geometry import Intrinsics
from sparsedepth.vocabulary import DepthImage, InputError


@dataclass(frozen=True, eq=False)
class NamedFrame:
    """A frame, its name without suffix, its pose if there is one, and a picture of the view if there is one."""

    name: str
    image: DepthImage
    pose: Any = None
    guide: Any = None


@dataclass(frozen=True, eq=False)
class FrameSource:
    """Frames one after the other, and what is known about them.

    Parameters
    ----------
    frames
        The frames.
    total
        How many there are; None = nobody knows.
    intrinsics
        What the source tells about its camera.
    dropped
        Function that counts the frames of a live camera that were left out; None = the source is not live.
    """

    frames: Iterator[NamedFrame]
    total: int | None = None
    intrinsics: Intrinsics | None = None
    dropped: Callable[[], int] | None = None


@contextmanager
def open_files(
    inputs: Sequence[str], topic: str | None, poses: Path | None, reader: MapReader
) -> Iterator[FrameSource]:
    """Open the frames of files, or those in one file: a bag, a phone's recording, a zip, or a stack of arrays."""
    if len(inputs) != 1 or not holds_frames(inputs[0]):
        yield _files(inputs, poses, reader)
        return
    if poses is not None:
        raise InputError("--poses come with files, one each; extract the frames, or drop --poses")
    if not is_bag(inputs[0]):
        found = read_frames(inputs[0], reader.profile, scale=reader.scale, invalid=reader.invalid or None)
        recording = record3d.describe_recording(inputs[0]) if inputs[0].lower().endswith(record3d.SUFFIX) else None
        camera = (
            Intrinsics(*recording.intrinsics) if recording is not None and recording.intrinsics is not None else None
        )
        frames = (NamedFrame(name, image) for name, image in found)
        yield FrameSource(frames, None if recording is None else recording.frames, camera)
        return
    bag = describe_bag(inputs[0], topic)
    say(f"{inputs[0]}: {bag.frames} images of {bag.topic}, {1000 * bag.unit_m:g} mm a stored number")
    frames = (NamedFrame(f"{stamp:019d}", image) for stamp, image in read_bag(inputs[0], bag.topic))
    yield FrameSource(frames, bag.frames, bag.intrinsics and Intrinsics(*bag.intrinsics))


def _files(inputs: Sequence[str], poses: Path | None, reader: MapReader) -> FrameSource:
    sources = find_sources(inputs).files
    matrices = [None] * len(sources) if poses is None else read_poses(poses, sources, 1.0)

    def read_all() -> Iterator[NamedFrame]:
        for source, pose in zip(sources, matrices, strict=True):
            image = reader(source.path)
            if image.assumed and source is sources[0]:
                warn(image.assumed)
            yield NamedFrame(source.path.stem, image, pose)

    return FrameSource(read_all(), len(sources))


@contextmanager
def open_live(name: str, seconds: float | None, colour: bool) -> Iterator[FrameSource]:
    """Open a camera; Ctrl-C ends it after the frame in work, and a second one ends the program."""
    with open_camera(name, colour) as camera, NewestFrames(camera) as newest, _stopped_by_signals(newest.stop):
        say(f"{name} streams; Ctrl-C ends it")
        frames = (
            NamedFrame(f"{number:06d}_{frame.stamp_ns:019d}", frame.depth, None, frame.colour)
            for number, frame in enumerate(for_seconds(newest, seconds))
        )
        yield FrameSource(frames, None, camera.intrinsics, lambda: newest.dropped)


@contextmanager
def _stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Call a function at the first signal that asks to end; the second one does what it did before."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in numbers}

    def handle(number: int, _: object) -> None:
        signal.signal(number, before[signal.Signals(number)])
        stop()

    for number in numbers:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, before[number])
