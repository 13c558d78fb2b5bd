"""Save results in npz files, and load them again, bit by bit."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from sparsedepth.atomic_files import write_atomically
from sparsedepth.files import numpy_arrays
from sparsedepth.files.errors import describe_errors
from sparsedepth.files.profiles import as_text, from_text
from sparsedepth.files.reading import MOST_BYTES, MOST_PIXELS
from sparsedepth.files.stored import Budget
from sparsedepth.vocabulary import InputError, Match, Origin, Profile, Restoration

PARTS = ("variance", "origin")


def save_result(path: str | Path, result: Restoration | Match) -> None:
    """Write a result with all its arrays and their meaning to an npz file, whole or not at all."""
    path = Path(path)
    if path.suffix.lower() != ".npz":
        raise InputError(f"{path}: a result is saved as .npz; other formats hold its map: sparsedepth.files.write")
    more: dict[str, Any] = {"variance": np.asarray(result.variance), "origin": np.asarray(result.origin)}
    more["result"] = np.array(type(result).__name__)
    more["warnings"] = np.array(json.dumps(result.warnings)[: numpy_arrays.MAX_TEXT_BYTES // 4])
    if isinstance(result, Match):
        values, meaning = result.disparity, Profile("", "px", "disparity")
    else:
        values, meaning = result.depth, Profile("", result.unit, result.kind)
        if result.profile is not None:
            more["profile"] = np.array(as_text(result.profile))
    write_atomically(path, numpy_arrays.write_npz(np.asarray(values), meaning, **more))


def load_result(path: str | Path, kind: type[Restoration] | type[Match]) -> Any:
    """Read a result that `save_result` or `sparsedepth.files.write` wrote; the budget is that of maps."""
    path, budget = Path(path), Budget(MOST_PIXELS, MOST_BYTES)
    if not path.is_file():
        raise InputError(f"there is no file {path}")
    with describe_errors(path):
        stored = numpy_arrays.read_npz(path, budget)
        said = _text(path, "result") or kind.__name__  # what `write` wrote does not say it
        if stored.declared is None or said != kind.__name__ or (kind is Match and stored.declared.kind != "disparity"):
            raise InputError(f"it holds no {kind.__name__}; write one with {kind.__name__}.save")
        variance, origin = (numpy_arrays.read_named(path, budget, name) for name in PARTS)
        _check(stored.pixels, variance, origin)
        if kind is Match:
            return Match(stored.pixels, variance, origin.astype(np.uint8, copy=False), _warnings(path))
        meaning, profile = stored.declared, from_text(_text(path, "profile"))
        origin = origin.astype(np.uint8, copy=False)
        return Restoration(stored.pixels, variance, origin, meaning.unit, meaning.kind, profile, _warnings(path))


def _text(path: Path, name: str) -> str:
    with zipfile.ZipFile(path) as archive:
        return numpy_arrays.small_text(archive, name)


def _warnings(path: Path) -> tuple[str, ...]:
    try:
        return tuple(str(sentence) for sentence in json.loads(_text(path, "warnings") or "[]"))
    except (ValueError, TypeError, RecursionError):
        return ()


def _check(values: Any, variance: Any, origin: Any) -> None:
    """Refuse arrays that cannot be those of a result."""
    if not values.shape == variance.shape == origin.shape:
        raise InputError(f"its map has shape {values.shape}, its variance {variance.shape}, its origin {origin.shape}")
    if values.dtype.kind != "f" or variance.dtype.kind != "f" or origin.dtype.kind not in "iu":
        raise InputError("its map and its variance must be floats and its origin integers; write it with save")
    if origin.size and (origin.min() < 0 or origin.max() > max(Origin)):
        raise InputError(f"its origins go from {origin.min()} to {origin.max()}; they are 0 to {max(Origin):d}")
