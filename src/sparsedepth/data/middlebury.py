"""Middlebury 2005 and 2006 disparity maps at a third of their size: px = value / 3, 0 = unknown."""

from __future__ import annotations

from pathlib import Path

from sparsedepth.data import data_folder
from sparsedepth.files import read_map
from sparsedepth.vocabulary import DepthMap, InputError

SCALE = 3.0


def disparity_files(year: int) -> list[Path]:
    """The files of both views of every scene, in order."""
    files = sorted((data_folder() / f"middlebury{year}").glob("*/disp[15].png"))
    if not files:
        raise InputError(f"there are no Middlebury {year} scenes in {data_folder()}")
    return files


def disparities(year: int) -> list[DepthMap]:
    """Disparities in pixels, NaN = unknown."""
    return [read_map(file, scale=SCALE) for file in disparity_files(year)]
