"""The tasks of a stream: its frames are decoded into one file, and restored one after the other."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from sparsedepth.files import record3d
from sparsedepth.files.bags import describe_bag, is_bag
from sparsedepth.files.frames import read_frames
from sparsedepth.files.profiles import as_text, from_text
from sparsedepth.serve import examples
from sparsedepth.serve.cameras import camera_of
from sparsedepth.serve.products import RAW, load_raw
from sparsedepth.streams import Stream
from sparsedepth.vocabulary import DepthImage, InputError, Origin, TooLargeError

Facts = dict[str, Any]


def read_stream(folder: str, files: Sequence[str], profile: str, scale: float | None, invalid: list[float] | None,
                intrinsics: list[float] | None, calibration: str | None, limits: dict[str, int],
                report: Callable[[str], None]) -> Facts:  # fmt: skip
    """Decode the uploaded frames."""
    os.chdir(folder)
    if len(files) == 1 and intrinsics is None and calibration is None:
        intrinsics = _told_by(files[0])

    def frames() -> Iterator[DepthImage]:
        most = {"most_pixels": limits["pixels"], "most_bytes": 8 * limits["pixels"]}
        for file in files:
            for _, image in read_frames(file, profile, scale=scale, invalid=invalid, folder=folder, **most):
                yield image
            os.remove(file)

    return store_frames(frames(), limits, intrinsics, calibration)


def _told_by(file: str) -> list[float] | None:
    """Return the intrinsics that a bag or a phone's recording holds, if any."""
    if is_bag(file):
        found = describe_bag(file).intrinsics
    elif file.lower().endswith(record3d.SUFFIX):
        found = record3d.describe_recording(file).intrinsics
    else:
        return None
    return None if found is None else list(found)


def make_stream(folder: str, name: str) -> Facts:
    """Make an example in place of an upload."""
    os.chdir(folder)
    camera, frames = examples.example_stream(name)
    return store_frames(frames, {"frames": 1 << 20, "stream_pixels": 1 << 40}, camera, None)


def store_frames(
    frames: Iterator[DepthImage], limits: dict[str, int], intrinsics: list[float] | None, calibration: str | None
) -> Facts:
    """Store frames in one file, within limits, and return the facts of the stream."""
    first, number, known = None, 0, 0.0
    with open("before.f32", "wb") as file:
        for number, image in enumerate(frames, 1):
            first = image if first is None else first
            _require_alike(first, image, number, limits)
            np.ascontiguousarray(image.values, RAW["before.f32"]).tofile(file)
            known += float(np.isfinite(image.values).mean())
    if first is None:
        raise InputError("the stream has no frames; send some")
    camera = camera_of(intrinsics, calibration, first.values.shape)
    profile = None if first.profile is None else as_text(first.profile)
    return {"shape": first.values.shape, "frames": number, "unit": first.unit, "kind": first.kind, "profile": profile,
            "input": "stream", "known": known / number, "assumed": first.assumed.partition(": ")[2],
            "intrinsics": camera}  # fmt: skip


def _require_alike(first: DepthImage, image: DepthImage, number: int, limits: dict[str, int]) -> None:
    shapes = tuple(" x ".join(map(str, each.values.shape)) for each in (image, first))
    if shapes[0] != shapes[1] or image.unit != first.unit:
        came, wanted = (f"{shape} in {each.unit or '?'}" for shape, each in zip(shapes, (image, first), strict=True))
        raise InputError(f"frame {number} is {came}, the first one {wanted}; send frames of one camera")
    if image.kind != "depth":
        raise InputError(f"the frames hold {image.kind}; a stream takes depths: give their profile")
    if number > limits["frames"]:
        raise TooLargeError(f"a stream has at most {limits['frames']} frames here; send fewer")
    if number * image.values.size > limits["stream_pixels"]:
        raise TooLargeError(f"all frames of a stream have at most {limits['stream_pixels']} pixels here; send fewer")


def stream(folder: str, facts: Facts, options: dict[str, Any], report: Callable[[str], None]) -> Facts:
    """Restore the decoded frames."""
    os.chdir(folder)
    shape, n_frames, profile = facts["shape"], facts["frames"], from_text(facts["profile"])
    working = Stream(options["sensor"], facts["intrinsics"], facts["unit"], options["quality"])
    shares = np.zeros(len(Origin))
    with open("after.f32", "wb") as after, open("variance.f32", "wb") as variance, open("origin.u8", "wb") as origin:
        for number in range(n_frames):
            report(f"frame {number + 1} of {n_frames}")
            before = DepthImage(load_raw("before.f32", shape, number), facts["unit"], profile=profile)
            result = working.push(before)
            for array, file, name in (
                (result.depth, after, "after.f32"),
                (result.variance, variance, "variance.f32"),
                (result.origin, origin, "origin.u8"),
            ):
                np.ascontiguousarray(array, RAW[name]).tofile(file)
            shares += np.bincount(result.origin.ravel(), minlength=len(Origin)) / result.origin.size / n_frames
    return facts | {origin.name.lower(): float(shares[origin]) for origin in Origin} | {"state": working.state}
