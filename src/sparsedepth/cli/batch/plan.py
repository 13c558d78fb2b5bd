"""Plan a batch: which files are read, where results go, and what is refused before any work is done."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sparsedepth.files import FORMATS
from sparsedepth.files.formats import format_of
from sparsedepth.vocabulary import InputError


@dataclass(frozen=True)
class Source:
    """A file to read, and its name below an output folder."""

    path: Path
    name: Path


@dataclass(frozen=True)
class Sources:
    """The files that the user named; ``many`` = several, a folder or a pattern, so the output must be a folder."""

    files: list[Source]
    many: bool


@dataclass(frozen=True)
class Target:
    """The files of one map: where it is read and where its results go."""

    source: Path
    name: Path
    output: Path
    variance: Path | None = None
    origin: Path | None = None

    @property
    def outputs(self) -> list[Path]:
        """The files that are written, the map last: where it is, the others are."""
        return [path for path in (self.variance, self.origin, self.output) if path is not None]


def plan_targets(
    inputs: Sequence[str], output: str, variance_out: str | None, origin_out: str | None, npz: bool
) -> list[Target]:
    """Return the files of every map; what cannot be read or written is refused."""
    sources = find_sources(inputs, [folder for folder in (output, variance_out, origin_out) if folder])
    lists = {"output": output_paths(sources, output, ".npz" if npz else None)}
    if npz and lists["output"][0].suffix.lower() != ".npz":
        raise InputError(f"--npz writes .npz and the output is {output}; name a folder, or a file that ends in .npz")
    if variance_out is not None:
        lists["variance"] = output_paths(sources, variance_out, ".tiff")
    if origin_out is not None:
        lists["origin"] = output_paths(sources, origin_out, ".png")
    _require_formats(sources, output, lists)
    require_apart(sources, *lists.values())
    return [
        Target(source.path, source.name, **{what: paths[index] for what, paths in lists.items()})
        for index, source in enumerate(sources.files)
    ]


def _require_formats(sources: Sources, output: str, lists: dict[str, list[Path]]) -> None:
    """Refuse suffixes that cannot hold what is asked; an odd suffix in a folder is reported with its input."""
    if not (sources.many or is_folder(output)):
        format_of(lists["output"][0])
    for name, require in (("variance", require_variance_format), ("origin", require_origin_format)):
        if name in lists:
            require(lists[name][0])


def require_variance_format(path: Path) -> None:
    """Refuse a file that cannot hold variances."""
    if format_of(path).integers:
        raise InputError(f"{path} holds integers and variances are none; use .tiff, .pfm, .npy or .npz")


def require_origin_format(path: Path) -> None:
    """Refuse a file that cannot hold origins."""
    if not (format_of(path).integers or path.suffix.lower() in (".npy", ".npz")):
        raise InputError(f"{path} holds float numbers and origins are integers; use .png, .pgm, .npy or .npz")


def find_sources(given: Sequence[str], outputs: Iterable[str] = ()) -> Sources:
    """Find the maps that files, folders and quoted patterns name, but not those in an output folder within.

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
    """Return the folder that names are relative to, and the maps in it; no folder where the word is one file."""
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
    """Return whether the user means a folder: it is one, or the name ends with a slash."""
    return output.endswith(("/", os.sep)) or os.path.isdir(output)


def output_paths(sources: Sources, output: str, suffix: str | None = None) -> list[Path]:
    """Return the output of each source: the file that was named, or one below that folder, with another suffix."""
    if not (sources.many or is_folder(output)):
        require_writable(Path(output))
        return [Path(output)]
    folder = require_folder(Path(output))
    names = [source.name if suffix is None else source.name.with_suffix(suffix) for source in sources.files]
    return [_inside(folder, name) for name in names]


def _inside(folder: Path, name: Path) -> Path:
    """Return a file below the folder; a name or a link that leads out of it is refused."""
    place = folder / name
    if not place.parent.resolve().is_relative_to(folder.resolve()):
        raise InputError(f"{place} leads out of {folder}; remove the link, or choose another folder")
    return place


def require_apart(sources: Sources, *lists: Sequence[Path]) -> None:
    """Refuse results that would overwrite each other or a source, even if forced."""
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


def require_writable(output: Path, suffix: str | None = None) -> None:
    """Refuse an output that cannot be written, before any work is done."""
    if not output.name or output.is_dir():
        raise InputError(f"{output} is a folder; name a file in it")
    if not output.parent.is_dir():
        raise InputError(f"there is no folder {output.parent} to write {output.name} into; make it first")
    _require_rights(output.parent)
    if suffix is not None and output.suffix.lower() != suffix:
        raise InputError(f"{output} must end in {suffix}")


def require_folder(output: Path) -> Path:
    """Return the folder; it is made if need be."""
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


def file_for(given: Path, name: Path) -> Path:
    """Return the file itself, or the one below a folder that has this name, whatever its suffix."""
    if not given.is_dir():
        return given
    found = [given / name.with_suffix(suffix) for suffix in FORMATS]
    found = [file for file in found if os.path.isfile(file)]
    if not found:
        raise InputError(f"there is no file {given / name.with_suffix('.*')} for {name}")
    return found[0]
