"""The pictures of the gallery: what an example wrote into example-output."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from sphinx_gallery.scrapers import figure_rst


def scrape(block: tuple, variables: dict[str, Any], settings: dict[str, Any]) -> str:
    """Take the pictures that are new since the example's last part, in the order they were drawn."""
    shown = []
    drawn = Path(variables["src_file"]).parent / "example-output"
    for file in sorted(drawn.glob("*.png"), key=lambda path: path.stat().st_mtime_ns):
        place = next(variables["image_path_iterator"])
        shutil.move(file, place)
        shown.append(place)
    return figure_rst(shown, settings["src_dir"])
