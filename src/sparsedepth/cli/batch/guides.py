"""Find the guide picture of each map: one file for all, or a folder whose pictures have the names of the maps."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from sparsedepth.cli.batch.plan import Target
from sparsedepth.cli.names import by_common_name, common_name, last_word
from sparsedepth.files.photos import PHOTO_SUFFIXES
from sparsedepth.vocabulary import InputError

PICTURE_WORDS = ("color", "colour", "rgb", "image")


@dataclass(frozen=True)
class Guides:
    """Guide pictures of a batch of maps.

    In a folder, the picture of ``a/x.png`` is ``a/x`` with any suffix of a picture. A pair such as ``x_depth.png`` and
    ``x_color.jpg`` belongs together, too; so do ``.``, ``-`` and the other words of pictures.

    Parameters
    ----------
    given
        A picture for all maps, or a folder.
    """

    given: Path

    @cached_property
    def _pictures(self) -> dict[Path, list[Path]]:
        return by_common_name(self.given, PHOTO_SUFFIXES)

    def file_of(self, target: Target) -> Path | None:
        """Return the picture of a map; None = the folder has none."""
        if not self.given.is_dir():
            return self.given
        there = self._pictures.get(common_name(target.name), [])
        there = [path for path in there if os.path.realpath(path) != os.path.realpath(target.source)]
        same = [path for path in there if path.stem == target.name.stem]
        pairs = [path for path in there if last_word(path) in PICTURE_WORDS]
        plain = [path for path in there if last_word(path) == ""]
        return next(iter([*same, *pairs, *plain]), None)

    def missing(self, target: Target) -> list[str]:
        """Return a sentence where the folder has no picture of a map."""
        if self.file_of(target) is not None:
            return []
        name = common_name(target.name)
        return [
            f"{self.given} has no picture for {target.name}, so that its holes were filled without a guide; it holds "
            f"{self._example()}, and {name}.png or {name}_color.png was looked for"
        ]

    def require_any(self, targets: Sequence[Target]) -> None:
        """Refuse a folder that has a picture of none of the maps."""
        if targets and all(self.file_of(target) is None for target in targets):
            name = common_name(targets[0].name)
            raise InputError(
                f"{self.given} has no picture for any of the {len(targets)} maps: {targets[0].name} needs {name}.png "
                f"or {name}_color.png, and the folder holds {self._example()}; name the pictures like the maps"
            )

    def _example(self) -> str:
        """Return the name of a picture of the folder."""
        pictures = [path for files in self._pictures.values() for path in files if last_word(path) != "depth"]
        return str(pictures[0].relative_to(self.given)) if pictures else "no pictures"
