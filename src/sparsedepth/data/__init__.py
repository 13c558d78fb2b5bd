"""Sources of depth maps, one file each. Real data is read from the folder that SPARSEDEPTH_DATA names."""

import os
from pathlib import Path

from sparsedepth.vocabulary import InputError


def data_folder() -> Path:
    """Find the folder with the real data sets."""
    name = os.environ.get("SPARSEDEPTH_DATA")
    if not name or not Path(name).is_dir():
        raise InputError(
            "set SPARSEDEPTH_DATA to the folder that holds the data sets (middlebury2005, middlebury2006, ...)"
        )
    return Path(name)


def data_set(*names: str) -> Path:
    """Find the folder of one data set; an error says where it should be."""
    folder = data_folder().joinpath(*names)
    if not folder.is_dir():
        raise InputError(f"there is no folder {'/'.join(names)} in {data_folder()}; put the data set there")
    return folder


def require_choice(what: str, name: object, choices: tuple[object, ...]) -> None:
    """Refuse a name that is not one of the choices."""
    if name not in choices:
        raise InputError(f"there is no {what} {name!r}; choose one of {', '.join(map(str, choices))}")
