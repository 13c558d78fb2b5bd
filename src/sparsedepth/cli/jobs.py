"""One map's way through: read it, restore it, write what was asked for."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np

from sparsedepth.cli import huge
from sparsedepth.cli.batch import Outcome, attempted
from sparsedepth.cli.tasks import Place, RestoringTask, Shared
from sparsedepth.cli.terminal import in_options, say
from sparsedepth.files import write, write_array
from sparsedepth.files.formats import format_of
from sparsedepth.files.profiles import for_dtype, profile_named
from sparsedepth.vocabulary import DepthImage, InputError, Origin, Restoration, Unit


def attempt(task: RestoringTask, place: Place, *, shared: Shared) -> Outcome:
    """Restore one map; whatever fails is a sentence in the outcome."""
    blank = Outcome(str(place.source), str(place.output))
    way = huge.restored if huge.stays_in_its_file(task, place) else _restored
    return attempted(lambda: way(task, place, blank, shared), blank)


def _restored(task: RestoringTask, place: Place, blank: Outcome, shared: Shared) -> Outcome:
    image = task.read(place.source)
    shared.notes.add(place.source.name, image.assumed)
    try:
        result = task.restore(image.values, **task.given_with(place), threads=shared.threads)
    except InputError as error:
        raise InputError(f"{place.source}: {error}") from None
    shares = np.bincount(result.origin.ravel(), minlength=len(Origin)) / result.origin.size
    if shares[Origin.REFUSED] == 1:
        say(f"{place.source}: nothing could be said of any pixel; the result is unknown everywhere")
    with shared.gate:
        if shared.journal is not None:
            shared.journal.begin(place.output)
        unit = _write(task, place, DepthImage(result.depth, image.unit, image.kind, image.profile), result)
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


def _write(task: RestoringTask, place: Place, image: DepthImage, result: Restoration) -> str:
    """Write all that was asked for, or nothing; returns the unit."""
    fresh = [path for path in place.outputs if not os.path.lexists(path)]
    try:
        unit = _unit(task, place, image)
        variance = result.variance * SQUARED.get((image.unit, unit), 1)
        for path in place.outputs:
            path.parent.mkdir(parents=True, exist_ok=True)
        if place.variance is not None:
            write_array(place.variance, variance)
        if place.origin is not None:
            write_array(place.origin, result.origin)
        inside = place.output.suffix.lower() == ".npz"
        beside = {"variance": variance, "origin": result.origin, "about": task.about} if inside else {}
        write(place.output, image, profile=task.output_unit, scale=task.output_scale, **beside)
    except (InputError, OSError) as error:
        for path in fresh:
            path.unlink(missing_ok=True)
        if isinstance(error, InputError):
            raise InputError(in_options(str(error), output=True)) from None
        raise
    return unit


SQUARED = {("m", "mm"): 1e6, ("mm", "m"): 1e-6}
"""What variances are multiplied by when the unit changes."""


def _unit(task: RestoringTask, place: Place, image: DepthImage) -> Unit:
    """The unit that the output will be in."""
    if task.output_unit is None:
        return image.unit
    stored = np.dtype(np.uint16 if format_of(place.output).integers else np.float32)
    return for_dtype(profile_named(task.output_unit), stored).unit
