"""Which files go in, where the results go, and what is refused before any work is done."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sparsedepth.dictionary import Dictionary
from sparsedepth.files import FORMATS
from sparsedepth.vocabulary import InputError


@dataclass(frozen=True)
class Source:
    """A file to read, and its name below an output folder."""

    path: Path
    name: Path


@dataclass(frozen=True)
class Sources:
    """What the user named; ``many`` = several files, a folder or a pattern, so the output must be a folder."""

    files: list[Source]
    many: bool


def find_sources(given: Sequence[str], outputs: Iterable[str] = ()) -> Sources:
    """Files as they are, folders and quoted patterns as the maps they hold, but not in an output folder within.

    Below the output folder a file keeps its name, and one of a folder or a pattern its path from there.
    """
    results = [Path(output).resolve() for output in outputs if os.path.isdir(output)]
    files: list[Source] = []
    many = len(given) > 1
    for word in given:
        if not word:
            raise InputError("an input has an empty name; name a file or a folder")
        folder, found = _expanded(word)
        if folder is None:
            files.append(Source(Path(word), Path(Path(word).name)))
            continue
        many = True
        within = [output for output in results if folder.resolve() in output.parents]
        maps = [path for path in found if not any(path.resolve().is_relative_to(output) for output in within)]
        if not maps:
            raise InputError(f"{word} holds no maps; they are files that end in {', '.join(FORMATS)}")
        files += [Source(path, path.relative_to(folder)) for path in maps]
    return Sources(files, many)


def _expanded(word: str) -> tuple[Path | None, list[Path]]:
    """The folder that names count from, and the maps in it; no folder where the word is one file."""
    if os.path.isdir(word):
        return Path(word), sorted(_maps_below(word))
    if os.path.lexists(word) or not glob.has_magic(word):
        return None, []
    found = sorted(Path(name) for name in glob.glob(word, recursive=True) if os.path.isfile(name))
    plain = []
    for part in Path(word).parts[:-1]:
        if glob.has_magic(part):
            break
        plain.append(part)
    return Path(*plain), [path for path in found if path.suffix.lower() in FORMATS]


def _maps_below(folder: str) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (
            Path(parent, name) for name in names if Path(name).suffix.lower() in FORMATS and not name.startswith(".")
        )


def is_folder(output: str) -> bool:
    """Whether the user means a folder: it is one, or the name ends with a slash."""
    return output.endswith(("/", os.sep)) or os.path.isdir(output)


def targets(sources: Sources, output: str, suffix: str | None = None) -> list[Path]:
    """Where the result of each source goes: the file that was named, or below that folder, with another suffix."""
    if not (sources.many or is_folder(output)):
        require_place(Path(output))
        return [Path(output)]
    folder = require_folder(Path(output))
    names = [source.name if suffix is None else source.name.with_suffix(suffix) for source in sources.files]
    return [_inside(folder, name) for name in names]


def _inside(folder: Path, name: Path) -> Path:
    """A file below the folder; a name or a link that leads out of it is refused."""
    place = folder / name
    if not place.parent.resolve().is_relative_to(folder.resolve()):
        raise InputError(f"{place} leads out of {folder}; remove the link, or choose another folder")
    return place


def require_apart(sources: Sources, *lists: Sequence[Path]) -> None:
    """Refuse results that would fall on each other or on a source, whatever else is allowed."""
    inputs = {os.path.realpath(source.path): source.path for source in sources.files}
    taken: dict[str, Path] = {}
    for outputs in lists:
        for source, output in zip(sources.files, outputs, strict=True):
            place = os.path.join(os.path.realpath(output.parent), output.name)
            if place in taken:
                raise InputError(
                    f"{taken[place]} and {source.path} would both be written to {output}; "
                    "name the folder they lie in, or run them apart"
                )
            if os.path.realpath(output) in inputs or place in inputs:
                raise InputError(f"{output} is one of the inputs, which are never overwritten; choose another output")
            taken[place] = source.path


def require_new(outputs: Sequence[Path], force: bool, hint: str = "") -> None:
    """Refuse to overwrite anything, unless forced."""
    there = [output for output in outputs if os.path.lexists(output)]
    if there and not force:
        more = f" (and {len(there) - 1} more)" if len(there) > 1 else ""
        raise InputError(f"{there[0]}{more} exists; use --force to overwrite{hint}")


def require_place(output: Path, suffix: str | None = None) -> None:
    """Refuse an output that cannot be written, before any work is done."""
    if not output.name or output.is_dir():
        raise InputError(f"{output} is a folder; name a file in it")
    if not output.parent.is_dir():
        raise InputError(f"there is no folder {output.parent} to write {output.name} into; make it first")
    _require_rights(output.parent)
    if suffix is not None and output.suffix.lower() != suffix:
        raise InputError(f"{output} must end in {suffix}")


def require_folder(output: Path) -> Path:
    """The folder, made if need be."""
    if os.path.lexists(output) and not output.is_dir():
        raise InputError(f"{output} is a file; name a folder")
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder {output}: {error.strerror}") from None
    _require_rights(output)
    return output


def _require_rights(folder: Path) -> None:
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"cannot write into {folder}: it is read-only; choose another folder, or change its rights")


def file_for(place: Path, name: Path, suffixes: Iterable[str] = FORMATS) -> Path:
    """The file itself, or the one below a folder that has this name, whatever its suffix."""
    if not place.is_dir():
        return place
    found = [place / name.with_suffix(suffix) for suffix in suffixes]
    found = [file for file in found if os.path.isfile(file)]
    if not found:
        raise InputError(f"there is no file {place / name.with_suffix('.*')} for {name}")
    return found[0]


def dictionary_named(name: str) -> Dictionary:
    """A dictionary file, or a shipped one."""
    return Dictionary.load(name) if os.path.exists(name) or name.endswith(".safetensors") else Dictionary.builtin(name)
