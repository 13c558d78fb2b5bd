"""Files that belong together by their names: a map, its guide picture, its pose."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

WORDS = ("depth", "color", "colour", "rgb", "image", "pose")
"""Last words of names that say what a file holds."""
_ENDING = re.compile(rf"[._-]({'|'.join(WORDS)})$", re.IGNORECASE)


def common_name(name: Path) -> Path:
    """Return the part of a name that the files of one frame share: no suffix, and no word for what the file holds.

    Parameters
    ----------
    name
        Name of a file; its folders are kept.

    Returns
    -------
    The name without its suffix, and without one of `WORDS` at its end.

    Examples
    --------
    >>> [str(common_name(Path(name))) for name in ("a/0012_depth.png", "a/0012.color.jpg", "a/0012-RGB.png", "a/0012")]
    ['a/0012', 'a/0012', 'a/0012', 'a/0012']
    """
    return name.with_name(_ENDING.sub("", name.stem) or name.stem)


def last_word(name: Path) -> str:
    """Return the word of `WORDS` at the end of a name, "" = none.

    Examples
    --------
    >>> last_word(Path("0012_Depth.png")), last_word(Path("depth.png"))
    ('depth', '')
    """
    found = _ENDING.search(name.stem)
    return found[1].lower() if found else ""


def by_common_name(folder: Path, suffixes: Iterable[str]) -> dict[Path, list[Path]]:
    """Find the files of a folder with these suffixes, hidden ones left out, by their common names in order."""
    wanted, found = {suffix.lower() for suffix in suffixes}, {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.suffix.lower() in wanted and not any(part.startswith(".") for part in name.parts) and path.is_file():
            found.setdefault(common_name(name), []).append(path)
    return found
