"""Dictionaries of depth atoms: their files, the shipped ones, and a picture of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Self

import numpy as np

from sparsedepth.atomic_files import write_atomically
from sparsedepth.tensor_files import encode_tensors, read_tensors
from sparsedepth.vocabulary import Floats, InputError, Shown, as_array

DICTIONARY_KIND = "sparsedepth dictionary"
MAX_NORM_ERROR = 1e-3
"""Of an atom, whose norm is 1."""


@dataclass(frozen=True, eq=False)
class Dictionary(Shown):
    """Atoms of depth patches, and where they come from.

    Parameters
    ----------
    atoms
        (atoms, height * width) float32 or float64, one atom a row, each of norm 1.
    patch_shape
        Height and width of a patch, in pixels.
    about
        Free-form strings on how the atoms were made.

    Examples
    --------
    >>> Dictionary(np.eye(4), (2, 2)).n_atoms
    4
    """

    atoms: Floats
    patch_shape: tuple[int, int]
    about: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        atoms = np.asarray(as_array("the set of atoms", self.atoms))
        shape = _shape(self.patch_shape)
        if atoms.ndim != 2 or len(atoms) == 0 or len(shape) != 2 or atoms.shape[1] != shape[0] * shape[1]:
            raise InputError(
                f"atoms of shape {atoms.shape} do not fit patches of {'x'.join(map(str, shape))} pixels; "
                "give them as rows, (atoms, height * width)"
            )
        if atoms.dtype not in (np.float32, np.float64):
            raise InputError(f"atoms are of type {atoms.dtype}; give float32 or float64")
        if not np.isfinite(atoms).all():
            raise InputError("the atoms hold NaN or infinite values; learn the dictionary again, or repair its source")
        with np.errstate(over="ignore"):
            norms = np.linalg.norm(atoms.astype(np.float64), axis=1)
        if (norms == 0).any():
            raise InputError(f"atom {int(np.argmin(norms))} is zero everywhere; remove it")
        if np.abs(norms - 1).max() > MAX_NORM_ERROR:
            raise InputError(
                f"atom {int(np.abs(norms - 1).argmax())} has norm {norms[np.abs(norms - 1).argmax()]:.4g}; "
                "divide each atom by its norm"
            )
        object.__setattr__(self, "atoms", atoms)
        object.__setattr__(self, "patch_shape", shape)
        object.__setattr__(self, "about", {str(k): str(v) for k, v in self.about.items()})

    def __repr__(self) -> str:
        height, width = self.patch_shape
        source = self.about.get("trained_on", "").split(",")[0]
        trained = f", trained on {source[:60]}" if source else ""
        return f"Dictionary({self.n_atoms} atoms of {height} x {width} pixels{trained})"

    @property
    def n_atoms(self) -> int:
        return len(self.atoms)

    def save(self, path: str | Path, *, half: bool = False) -> None:
        """Write a safetensors file whose header says where the atoms come from; it appears whole or not at all.

        Parameters
        ----------
        path
            Where to write; an existing file is replaced.
        half
            Whether to store 16-bit floats: half of the size; pixels are rounded to 5e-4 of themselves, or to 3e-8.
        """
        header = {**self.about, "kind": DICTIONARY_KIND, "patch_shape": json.dumps(self.patch_shape)}
        atoms = self.atoms.astype(np.float16) if half else self.atoms
        write_atomically(path, encode_tensors({"atoms": atoms}, header))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a dictionary file; anything else is refused with a sentence that helps.

        Atoms of 16-bit floats become float32 again, of norm 1.
        """
        arrays, header = read_tensors(path, DICTIONARY_KIND)
        try:
            shape = _shape(json.loads(header.pop("patch_shape")))
            atoms = _as_learned(arrays["atoms"])
        except (KeyError, ValueError, RecursionError):
            raise InputError(f"{path} lacks its atoms or their patch shape; write it with Dictionary.save") from None
        try:
            return cls(atoms, shape, header)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None

    @classmethod
    def builtin(cls, name: str) -> Self:
        """Load a shipped dictionary by its name; ``Dictionary.builtins()`` lists them."""
        if name not in cls.builtins():
            raise InputError(f"there is no shipped dictionary {name!r}; choose one of {', '.join(cls.builtins())}")
        with resources.as_file(
            resources.files("sparsedepth") / "models" / "dictionaries" / f"{name}.safetensors"
        ) as path:
            return cls.load(path)

    @staticmethod
    def builtins() -> list[str]:
        models = resources.files("sparsedepth") / "models" / "dictionaries"
        return sorted(Path(entry.name).stem for entry in models.iterdir() if entry.name.endswith(".safetensors"))

    def mosaic(self, *, gap: int = 1) -> Floats:
        """Arrange all atoms in one picture (height, width) with values in [-1, 1], row by row, NaN between them."""
        height, width = self.patch_shape
        columns = int(np.ceil(np.sqrt(self.n_atoms)))
        rows = -(-self.n_atoms // columns)
        picture = np.full((rows * (height + gap) + gap, columns * (width + gap) + gap), np.nan)
        for index, atom in enumerate(self.atoms):
            top, left = gap + (index // columns) * (height + gap), gap + (index % columns) * (width + gap)
            picture[top : top + height, left : left + width] = (atom / np.abs(atom).max()).reshape(height, width)
        return picture


def _as_learned(stored: Any) -> Any:
    """Undo the rounding to 16 bits as far as it changed the norms."""
    if stored.dtype != np.float16 or stored.ndim != 2:
        return stored
    atoms = stored.astype(np.float32)
    norms = np.linalg.norm(atoms, axis=1, keepdims=True)
    return atoms / norms if (np.abs(norms - 1) < MAX_NORM_ERROR).all() else atoms


def _shape(given: Any) -> tuple[int, int]:
    if (
        isinstance(given, (tuple, list))
        and len(given) == 2
        and all(isinstance(side, (int, np.integer)) and side > 0 for side in given)
    ):
        return int(given[0]), int(given[1])
    raise InputError(f"the patch shape is {given!r}; give (height, width) in pixels")


def dictionary_from(choice: Dictionary | str | None) -> Dictionary | None:
    """Return a dictionary, or the shipped one of a name; None stays None."""
    if choice is None or isinstance(choice, Dictionary):
        return choice
    if isinstance(choice, str):
        return Dictionary.builtin(choice)
    raise InputError(f"the dictionary is a {type(choice).__name__}; give a Dictionary or the name of a built-in one")
