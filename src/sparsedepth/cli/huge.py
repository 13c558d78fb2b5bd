"""A huge map's way through: it stays in its file, and its result grows in others, a tile at a time."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sparsedepth.atomic_files import atomic_file
from sparsedepth.cli.batch import Outcome
from sparsedepth.cli.tasks import Place, RestoringTask, Shared
from sparsedepth.files import mapped, write_array
from sparsedepth.files.stored import Pixels
from sparsedepth.vocabulary import InputError, Origin, Profile, Restoration

BLOCK = 1 << 22
"""Pixels looked at together where every pixel is."""


def stays_in_its_file(task: RestoringTask, place: Place) -> bool:
    """Whether a map is huge, and what is asked for can be written piece by piece."""
    plain = task.output_unit is None and task.output_scale is None and task.guide is None
    outputs = [path for path in (place.output, place.variance) if path is not None]
    return plain and all(path.suffix.lower() in mapped.SUFFIXES for path in outputs) and mapped.is_huge(place.source)


def restored(task: RestoringTask, place: Place, blank: Outcome, shared: Shared) -> Outcome:
    """Restore one huge map; nothing takes its name before all of it is there."""
    came = mapped.map_file(place.source, task.read.unit, scale=task.read.scale, invalid=task.read.invalid or None)
    shared.notes.add(place.source.name, came.assumed)
    for path in place.outputs:
        path.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as files:
        room = _room(place, came, files)
        with mapped.given_back([came.pixels, room.depth, room.variance, room.origin]):
            try:
                task.restore(
                    came.pixels,
                    variance=_variance(task, place),
                    invalid=came.profile.invalid,
                    threads=shared.threads,
                    out=room,
                )
            except InputError as error:
                raise InputError(f"{place.source}: {error}") from None
            shares = _finish(room, came.profile)
        with shared.gate:
            if shared.journal is not None:
                shared.journal.begin(place.output)
            if place.origin is not None and place.origin.suffix.lower() != ".npy":
                write_array(place.origin, np.asarray(room.origin))
            files.close()
            if shared.journal is not None:
                shared.journal.end(task.inputs_of(place), place.outputs)
    height, width = room.depth.shape
    return replace(
        blank,
        shape=(height, width),
        unit=came.profile.unit,
        known=float(shares[Origin.MEASURED] + shares[Origin.CORRECTED]),
        corrected=float(shares[Origin.CORRECTED]),
        filled=float(shares[Origin.FILLED]),
        refused=float(shares[Origin.REFUSED]),
    )


def _variance(task: RestoringTask, place: Place) -> Any:
    sensor = task.inputs_of(place)[1:]
    if sensor and mapped.is_huge(sensor[0]):
        return mapped.map_file(sensor[0]).pixels
    return task.given_with(place)["variance"]


def _room(place: Place, came: mapped.MappedMap, files: ExitStack) -> Restoration:
    """Files for what was asked for, and for what was not, room on the disk that is given up at the end."""
    height, width = came.pixels.shape
    says = Profile("", came.profile.unit, came.profile.kind)

    def room(path: Path | None, dtype: type, profile: Profile | None) -> Pixels:
        if path is None or path.suffix.lower() not in mapped.SUFFIXES:
            return mapped.scratch((height, width), np.dtype(dtype), place.output.parent)
        temporary = files.enter_context(atomic_file(path))
        kind = path.suffix.lower()
        return mapped.new_file(temporary, (height, width), np.dtype(dtype), profile, kind=kind)

    depth = room(place.output, np.float32, says)  # entered first, so that it takes its name last
    return Restoration(depth, room(place.variance, np.float32, None), room(place.origin, np.uint8, None))


def _finish(room: Restoration, profile: Profile) -> Any:
    """From stored numbers to the unit of the map; returns the shares of the origins."""
    counts = np.zeros(len(Origin))
    rows = max(1, BLOCK // room.depth.shape[1])
    for top in range(0, room.depth.shape[0], rows):
        block = slice(top, top + rows)
        counts += np.bincount(room.origin[block].ravel(), minlength=len(Origin))
        if profile.scale not in (None, 1.0):
            room.depth[block] = room.depth[block] / np.float64(profile.scale)
            room.variance[block] = room.variance[block] / np.float64(profile.scale) ** 2
    return counts / room.origin.size
