"""The tasks of the worker processes, each in the folder of its job: names of files are relative."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from sparsedepth.files import read, read_photo
from sparsedepth.files.frames import holds_frames
from sparsedepth.files.profiles import as_text
from sparsedepth.matching import stages
from sparsedepth.restore import denoise, inpaint
from sparsedepth.serve import examples
from sparsedepth.serve.cameras import camera_of
from sparsedepth.serve.products import PRODUCTS, STREAM_PRODUCTS, load_raw, load_result, save_metadata, save_raw
from sparsedepth.serve.streaming import make_stream, read_stream, stream
from sparsedepth.vocabulary import DepthImage, InputError, Match, Origin, Restoration, StereoPair

Report = Callable[[str], None]
Facts = dict[str, Any]


def warm_up() -> None:
    """Load the modules and the dictionary that the first job needs."""
    denoise(np.add.outer(np.arange(32.0), np.arange(32.0)), quality="fast")


def read_map(folder: str, file: str, profile: str, scale: float | None, invalid: list[float] | None,
             intrinsics: list[float] | None, guide: str | None, calibration: str | None, limits: dict[str, int],
             report: Report) -> Facts:  # fmt: skip
    """Decode an uploaded map, the picture of its view, and the intrinsics of its camera."""
    os.chdir(folder)
    pixels = limits["pixels"]
    if holds_frames(file):
        raise InputError(f"{file} holds several frames; restore it as a stream, not as a map")
    image = read(file, profile, scale=scale, invalid=invalid, most_pixels=pixels, most_bytes=8 * pixels)
    os.remove(file)
    facts = _store_map(image) | {"intrinsics": camera_of(intrinsics, calibration, image.values.shape)}
    if guide is not None:
        np.save("guide.npy", read_photo(guide, most_pixels=pixels))
        os.remove(guide)
    return facts


def read_pair(folder: str, left: str, right: str, max_disparity: int, limits: dict[str, int], report: Report) -> Facts:
    """Decode two uploaded views."""
    os.chdir(folder)
    views = {file: read_photo(file, most_pixels=limits["pixels"]) for file in (left, right)}
    for file in views:
        os.remove(file)
    return _store_pair(StereoPair.from_images(views[left], views[right], max_disparity))


def make_example(folder: str, name: str, report: Report) -> Facts:
    """Make an example in place of an upload."""
    os.chdir(folder)
    return _example_facts(folder, name) | {"source": examples.SOURCES[name]}


def _example_facts(folder: str, name: str) -> Facts:
    if name in examples.STREAMS:
        return make_stream(folder, name)
    if name in examples.PAIRS:
        return _store_pair(examples.example_pair())
    return _store_map(examples.example_map(name)) | {"intrinsics": examples.example_camera(name)}


def _store_map(image: DepthImage) -> Facts:
    save_raw("before.f32", image.values)
    save_metadata(image.metadata)
    profile = None if image.profile is None else as_text(image.profile)
    known = float(np.isfinite(image.values).mean())
    return {"shape": image.values.shape, "unit": image.unit, "kind": image.kind, "profile": profile, "input": "map",
            "known": known, "assumed": image.assumed.partition(": ")[2]}  # fmt: skip


def _store_pair(pair: StereoPair) -> Facts:
    save_raw("before.f32", pair.grey().left[..., 0])
    np.save("pair.npy", np.stack([pair.left, pair.right]))
    return {"shape": pair.shape, "unit": "px", "kind": "disparity", "profile": None, "input": "photo", "known": 1.0,
            "assumed": "", "max_disparity": pair.max_disparity}  # fmt: skip


def restore(folder: str, facts: Facts, what: str, options: dict[str, Any], report: Report) -> Facts:
    """Restore the decoded map."""
    os.chdir(folder)
    report("restoring")
    before = DepthImage(load_raw("before.f32", facts["shape"]), facts["unit"], facts["kind"])
    guide = np.load("guide.npy", allow_pickle=False) if os.path.exists("guide.npy") else None
    result = {"denoise": denoise, "inpaint": inpaint}[what](before, guide=guide, **options)
    return _store_result(facts, result) | {"warnings": result.warnings}


def match(folder: str, facts: Facts, options: dict[str, Any], report: Report) -> Facts:
    """Match the decoded views."""
    os.chdir(folder)
    left, right = np.load("pair.npy", allow_pickle=False)
    for stage in stages(StereoPair(left, right, facts["max_disparity"]), **options):
        report(stage.description)
        if stage.result is not None:
            os.remove("pair.npy")
            return _store_result(facts, stage.result) | {"warnings": stage.result.warnings}
    raise RuntimeError("the stages ended without a result")


def _store_result(facts: Facts, result: Restoration | Match) -> Facts:
    save_raw("after.f32", result.image.values)
    save_raw("variance.f32", result.variance)
    save_raw("origin.u8", result.origin)
    shares = np.bincount(result.origin.ravel(), minlength=len(Origin)) / result.origin.size
    return facts | {origin.name.lower(): float(shares[origin]) for origin in Origin}


def make_product(folder: str, facts: Facts, name: str, frame: int, file: str, report: Report) -> None:
    """Encode a result."""
    os.chdir(folder)
    temporary = Path(f"making-{file}")
    if name in STREAM_PRODUCTS:
        STREAM_PRODUCTS[name].make(temporary, facts)
    else:
        PRODUCTS[name].make(temporary, load_result(facts, frame), facts.get("intrinsics"))
    os.replace(temporary, file)


TASKS: dict[str, Callable[..., Any]] = {
    "read_map": read_map,
    "read_pair": read_pair,
    "read_stream": read_stream,
    "example": make_example,
    "denoise": partial(restore, what="denoise"),
    "inpaint": partial(restore, what="inpaint"),
    "stream": stream,
    "match": match,
    "product": make_product,
}
