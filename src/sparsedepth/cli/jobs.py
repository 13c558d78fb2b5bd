"""One map's way through: read it, restore it, write what was asked for."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np

from sparsedepth.cli import huge
from sparsedepth.cli.batch import Outcome, attempted
from sparsedepth.cli.tasks import Place, RestoringTask, Shared
from sparsedepth.cli.terminal import say
from sparsedepth.files import write_array
from sparsedepth.files.writing import encode_file
from sparsedepth.vocabulary import InputError, Origin, Restoration


def attempt(task: RestoringTask, place: Place, *, shared: Shared) -> Outcome:
    """Restore one map; whatever fails is a sentence in the outcome."""
    blank = Outcome(str(place.source), str(place.output))
    way = huge.restored if huge.stays_in_its_file(task, place) else _restored
    return attempted(lambda: way(task, place, blank, shared), blank)


def _restored(task: RestoringTask, place: Place, blank: Outcome, shared: Shared) -> Outcome:
    image = task.read(place.source)
    shared.notes.add(place.source.name, image.assumed)
    try:
        result = task.restore(image, **task.given_with(place), threads=shared.threads)
    except InputError as error:
        raise InputError(f"{place.source}: {error}") from None
    shares = np.bincount(result.origin.ravel(), minlength=len(Origin)) / result.origin.size
    if shares[Origin.REFUSED] == 1:
        say(f"{place.source}: nothing could be said of any pixel; the result is unknown everywhere")
    with shared.gate:
        if shared.journal is not None:
            shared.journal.begin(place.output)
        unit = _write(task, place, result)
        if shared.journal is not None:
            shared.journal.end(task.inputs_of(place), place.outputs)
    return replace(
        blank,
        shape=(result.depth.shape[0], result.depth.shape[1]),
        unit=unit,
        known=float(np.isfinite(image.values).mean()),
        corrected=float(shares[Origin.CORRECTED]),
        filled=float(shares[Origin.FILLED]),
        refused=float(shares[Origin.REFUSED]),
    )


def _write(task: RestoringTask, place: Place, result: Restoration) -> str:
    """Write all that was asked for, or nothing; returns the unit."""
    fresh = [path for path in place.outputs if not os.path.lexists(path)]
    try:
        file = encode_file(place.output, result, profile=task.output_profile, scale=task.output_scale, about=task.about)
    except InputError as error:
        raise InputError(f"{error}; --output-profile and --output-scale say how it is written") from None
    try:
        for path in place.outputs:
            path.parent.mkdir(parents=True, exist_ok=True)
        if place.variance is not None and file.variance is not None:
            write_array(place.variance, file.variance)
        if place.origin is not None:
            write_array(place.origin, result.origin)
        file.save()
    except (InputError, OSError):
        for path in fresh:
            path.unlink(missing_ok=True)
        raise
    return file.unit
