"""Sources of depth maps, one file each. Real data lies in the folder that SPARSEDEPTH_DATA names."""

import os
from pathlib import Path

from sparsedepth.vocabulary import InputError


def data_folder() -> Path:
    """The folder with the real data sets."""
    name = os.environ.get("SPARSEDEPTH_DATA")
    if not name or not Path(name).is_dir():
        raise InputError(
            "set SPARSEDEPTH_DATA to the folder that holds the data sets (middlebury2005, middlebury2006, ...)"
        )
    return Path(name)
