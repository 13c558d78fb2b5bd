"""Restore one file: read, restore, write; a large map stays in its file."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sparsedepth.atomic_files import atomic_file
from sparsedepth.cli.batch.plan import Target
from sparsedepth.cli.batch.spec import Outcome, RestoreSpec, RunContext
from sparsedepth.cli.terminal import say, say_warning
from sparsedepth.files import memmap, write_array
from sparsedepth.files.stored import Pixels
from sparsedepth.files.writing import encode_file
from sparsedepth.vocabulary import Floats, InputError, Origin, Profile, Restoration

BLOCK_PIXELS = 1 << 22
"""Pixels of a mapped result that are converted at once."""


def restore_file(spec: RestoreSpec, target: Target, *, context: RunContext) -> Outcome:
    """Restore one map; a failure is a sentence in the outcome."""
    blank = Outcome(str(target.source), str(target.output))
    restore = _restore_mapped if _can_stay_mapped(spec, target) else _restore_in_memory
    return _attempt(lambda: restore(spec, target, blank, context), blank)


def _attempt(work: Callable[[], Outcome], blank: Outcome) -> Outcome:
    """Return the outcome of the work, or the blank with a sentence on why it failed; with the time it took."""
    start = time.monotonic()
    try:
        done = work()
    except InputError as error:
        done = replace(blank, error=str(error))
    except MemoryError:
        done = replace(blank, error=f"{blank.input}: there is not enough memory for it; use fewer --jobs")
    except OSError as error:
        done = replace(blank, error=f"{error.filename or blank.input}: {error.strerror or error}")
    except Exception as error:  # the other files go on, whatever is wrong with this one or with us
        if os.environ.get("SPARSEDEPTH_TRACEBACK"):
            raise
        done = replace(blank, error=f"{blank.input}: a mistake in sparsedepth ({type(error).__name__}: {error})")
    return replace(done, seconds=round(time.monotonic() - start, 3))


def _restore_in_memory(spec: RestoreSpec, target: Target, blank: Outcome, context: RunContext) -> Outcome:
    """Read a map, restore it, and write what was asked for."""
    image = spec.read(target.source)
    context.notes.add(target.source.name, image.assumed)
    with _errors_name(target.source):
        result = spec.restore(image, **spec.read_extras(target, image), threads=context.threads)
        _report_warnings(target, _warnings(spec, target, result), context)
    shares = np.bincount(result.origin.ravel(), minlength=len(Origin)) / result.origin.size
    if shares[Origin.REFUSED] == 1:
        say(f"{target.source}: nothing could be said of any pixel; the result is unknown everywhere")
    with _recorded(spec, target, context):
        unit = _write(spec, target, result)
    known = float(np.isfinite(image.values).mean())
    found = _warnings(spec, target, result)
    return replace(_with_shares(blank, result, shares), unit=unit, known=known, warnings=found)


def _warnings(spec: RestoreSpec, target: Target, result: Restoration) -> tuple[str, ...]:
    """Return all that is suspicious about a map and its guide."""
    return (*(() if spec.guides is None else spec.guides.missing(target)), *result.warnings)


def _report_warnings(target: Target, sentences: Sequence[str], context: RunContext) -> None:
    """Print warnings with the name of the file; where they count as failures, raise an error."""
    if sentences and context.strict:
        raise InputError(f"{'; '.join(sentences)} (--strict)")
    for sentence in sentences:
        say_warning(f"{target.source}: {sentence}")


@contextmanager
def _errors_name(file: Path) -> Iterator[None]:
    """Put the name of the file in front of errors about its map."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{file}: {error}") from None


@contextmanager
def _recorded(spec: RestoreSpec, target: Target, context: RunContext) -> Iterator[None]:
    """Write inside the gate, between two entries of the journal."""
    with context.gate:
        if context.journal is not None:
            context.journal.begin(target.output)
        yield
        if context.journal is not None:
            context.journal.end(spec.inputs_of(target), target.outputs)


def _with_shares(blank: Outcome, result: Restoration, shares: Floats) -> Outcome:
    return replace(
        blank,
        shape=(result.depth.shape[0], result.depth.shape[1]),
        corrected=float(shares[Origin.CORRECTED]),
        filled=float(shares[Origin.FILLED]),
        refused=float(shares[Origin.REFUSED]),
        smoothed=float(shares[Origin.SMOOTHED]),
    )


def _write(spec: RestoreSpec, target: Target, result: Restoration) -> str:
    """Write all that was asked for, or nothing; return the unit."""
    fresh = [path for path in target.outputs if not os.path.lexists(path)]
    try:
        file = encode_file(
            target.output, result, profile=spec.output_profile, scale=spec.output_scale, about=spec.about
        )
    except InputError as error:
        raise InputError(f"{error}; --output-profile and --output-scale say how it is written") from None
    try:
        for path in target.outputs:
            path.parent.mkdir(parents=True, exist_ok=True)
        if target.variance is not None and file.variance is not None:
            write_array(target.variance, file.variance, metadata=result.metadata)
        if target.origin is not None:
            write_array(target.origin, result.origin, metadata=result.metadata)
        file.save()
    except (InputError, OSError):
        for path in fresh:
            path.unlink(missing_ok=True)
        raise
    return file.unit


def _can_stay_mapped(spec: RestoreSpec, target: Target) -> bool:
    """Return whether a map is large, and what is asked for can be written piece by piece."""
    plain = spec.output_profile is None and spec.output_scale is None and spec.guide is None and spec.confidence is None
    outputs = [path for path in (target.output, target.variance) if path is not None]
    mappable = all(path.suffix.lower() in memmap.SUFFIXES for path in outputs)
    return plain and mappable and memmap.should_map(target.source, spec.mapped_pixels)


def _restore_mapped(spec: RestoreSpec, target: Target, blank: Outcome, context: RunContext) -> Outcome:
    """Restore a large map in its file, tile by tile; nothing takes its name before all of it is there."""
    reader = spec.read
    source = memmap.map_file(target.source, reader.profile, scale=reader.scale, invalid=reader.invalid or None)
    context.notes.add(target.source.name, source.assumed)
    for path in target.outputs:
        path.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as files:
        out = _allocate(target, source, files)
        arrays = [source.pixels, out.depth, out.variance, out.origin]
        with memmap.release_pages(arrays, spec.release_seconds):
            with _errors_name(target.source):
                options = {"variance": _mapped_variance(spec, target), **_meaning(source)}
                out = spec.restore(source.pixels, **options, threads=context.threads, out=out)
                _report_warnings(target, out.warnings, context)
            shares = _convert(out, source.profile, _unknown(target, source))
        with _recorded(spec, target, context):
            if target.origin is not None and target.origin.suffix.lower() != ".npy":
                write_array(target.origin, np.asarray(out.origin))
            files.close()
    known = float(shares[Origin.MEASURED] + shares[Origin.CORRECTED] + shares[Origin.SMOOTHED])
    return replace(_with_shares(blank, out, shares), unit=source.profile.unit, known=known, warnings=out.warnings)


def _meaning(source: memmap.MappedMap) -> dict[str, Any]:
    """Return what the stored numbers of a mapped file mean."""
    profile = source.profile
    codes = profile.invalid or (None if source.pixels.dtype.kind == "f" else ())
    return {"unit": profile.unit, "kind": profile.kind, "numbers_per_unit": profile.scale or 1.0, "invalid": codes}


def _mapped_variance(spec: RestoreSpec, target: Target) -> Any:
    file = spec.variance_file(target)
    if file is not None and memmap.should_map(file, spec.mapped_pixels):
        return memmap.map_file(file).pixels
    return spec.read_variance(target)


def _unknown(target: Target, source: memmap.MappedMap) -> float | None:
    """Return the code for unknown pixels that the output carries from its source; None = NaN."""
    carries = target.output.suffix.lower() in (".tif", ".tiff") and source.metadata is not None
    return source.metadata.code if carries and source.metadata is not None else None


def _allocate(target: Target, source: memmap.MappedMap, files: ExitStack) -> Restoration:
    """Create files for what was asked for, and temporary disk space for the rest."""
    height, width = source.pixels.shape
    code = _unknown(target, source)
    profile = Profile("", source.profile.unit, source.profile.kind, invalid=() if code is None else (code,))

    def allocate(path: Path | None, dtype: type, profile: Profile | None) -> Pixels:
        if path is None or path.suffix.lower() not in memmap.SUFFIXES:
            return memmap.scratch((height, width), np.dtype(dtype), target.output.parent)
        temporary = files.enter_context(atomic_file(path))
        options: dict[str, Any] = {"kind": path.suffix.lower(), "metadata": source.metadata}
        return memmap.new_file(temporary, (height, width), np.dtype(dtype), profile, **options)

    depth = allocate(target.output, np.float32, profile)  # entered first, so that it takes its name last
    return Restoration(depth, allocate(target.variance, np.float32, None), allocate(target.origin, np.uint8, None))


def _convert(out: Restoration, profile: Profile, unknown: float | None) -> Floats:
    """Convert stored numbers to the unit of the map, in place; return the shares of the origins."""
    counts = np.zeros(len(Origin))
    rows = max(1, BLOCK_PIXELS // out.depth.shape[1])
    for top in range(0, out.depth.shape[0], rows):
        block = slice(top, top + rows)
        counts += np.bincount(out.origin[block].ravel(), minlength=len(Origin))
        if profile.scale not in (None, 1.0):
            out.depth[block] = out.depth[block] / np.float64(profile.scale)
            out.variance[block] = out.variance[block] / np.float64(profile.scale) ** 2
        if unknown is not None:
            out.depth[block] = np.where(np.isfinite(out.depth[block]), out.depth[block], np.float32(unknown))
    return counts / out.origin.size
