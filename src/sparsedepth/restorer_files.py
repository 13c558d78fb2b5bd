"""Save the options of a `Restorer` with its dictionary, and load them again."""

from __future__ import annotations

import io
import json
import zipfile
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from sparsedepth.atomic_files import write_atomically
from sparsedepth.checks import one_line
from sparsedepth.dictionary import Dictionary
from sparsedepth.messages import Message
from sparsedepth.sensors.choice import NoiseChoice
from sparsedepth.vocabulary import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KIND = "sparsedepth restorer"
MAX_BYTES = 1 << 26
"""Larger files, or arrays, are no restorers."""


def save_config(path: str | Path, config: Message) -> None:
    """Write options and arrays to an npz file, whole or not at all."""
    options, arrays = config
    if Path(path).suffix.lower() != ".npz":
        raise InputError(f"{path}: a restorer is saved as .npz; name the file so")
    content = io.BytesIO()
    text = json.dumps({"kind": KIND, "options": options})
    np.savez_compressed(content, allow_pickle=False, config=np.array(text), **arrays)
    write_atomically(Path(path), content.getvalue())


def load_config(path: str | Path) -> Message:
    """Read options and arrays of `save_config`; anything else is refused with one sentence."""
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(member.file_size for member in archive.infolist()) > MAX_BYTES:
                raise InputError(f"it is larger than {MAX_BYTES >> 20} MiB")
        with np.load(path, allow_pickle=False) as file:
            config: dict[str, Any] = json.loads(str(file["config"]))
            if config["kind"] != KIND:
                raise InputError("its kind is another one")
            return config["options"], {"atoms": file["atoms"]}
    except FileNotFoundError:
        raise InputError(f"there is no file {path}") from None
    except Exception as error:  # a broken or hostile archive fails in many ways; all mean the same to the user
        raise InputError(f"{path} holds no restorer ({one_line(error)}); write one with Restorer.save") from None


class SavedRestorer:
    """What a restorer can do besides restoring: describe itself, show its dictionary, be saved and loaded."""

    _config: dict[str, Any]
    _coder: Any
    _noise: NoiseChoice
    _invalid: Any
    _default_settings: bool

    def as_config(self) -> Message:
        """Return all options as texts and numbers, and the atoms of the dictionary."""
        dictionary = self._coder.dictionary
        config = {**self._config, "patch_shape": dictionary.patch_shape, **self._noise.as_texts()}
        config["invalid"] = None if self._invalid is None else np.atleast_1d(self._invalid).tolist()
        return config, {"atoms": dictionary.atoms}

    @classmethod
    def from_config(cls, config: Message) -> Self:
        """Make a restorer with the options of another one."""
        options, arrays = dict(config[0]), config[1]
        noise = NoiseChoice.from_texts(options.pop("sensor"), options.pop("unit"))
        dictionary = Dictionary(arrays["atoms"], tuple(options.pop("patch_shape")))
        make: Any = cls
        return make(dictionary, **options, sensor=noise.sensor, unit=noise.unit)

    def require_default_settings(self, what: str) -> None:
        """Refuse settings of one's own, which no file and no message holds."""
        if not self._default_settings:
            raise InputError(f"{what} the default settings; use threads with settings of your own")

    def __repr__(self) -> str:
        options, arrays = self.as_config()
        sensor = options["sensor"] if not options["sensor"].startswith("{") else "a record"
        shown = f"quality={options['quality']!r}, method={options['method']!r}, sensor={sensor!r}"
        height, width = options["patch_shape"]
        return f"Restorer({shown}, fill={options['fill']!r}; {len(arrays['atoms'])} atoms of {height} x {width} pixels)"

    def _repr_html_(self) -> str:
        return f"<div><pre>{escape(repr(self))}</pre>{self._dictionary()._repr_html_()}</div>"

    def plot(self) -> Figure:
        """Draw the atoms of the dictionary; returns a matplotlib figure."""
        return self._dictionary().plot()

    def _dictionary(self) -> Dictionary:
        options, arrays = self.as_config()
        return Dictionary(arrays["atoms"], options["patch_shape"])

    def save(self, path: str | Path) -> None:
        """Write all options and the dictionary to an npz file, whole or not at all.

        Parameters
        ----------
        path
            The file; it ends in .npz.
        """
        self.require_default_settings("a file of options has")
        save_config(path, self.as_config())

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a restorer that `save` wrote.

        Parameters
        ----------
        path
            The file.

        Returns
        -------
        Restorer
            It restores as the one that was saved.
        """
        config = load_config(path)
        try:
            return cls.from_config(config)
        except (KeyError, TypeError, AttributeError) as error:
            raise InputError(f"{path} lacks an option ({one_line(error)}); write it with Restorer.save") from None
