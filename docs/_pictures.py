"""The pictures at the end of the pages: what their own blocks draw. `make pictures` runs the pages and keeps them.

A page shows ``pictures/PAGE-NAME.png`` where one of its blocks writes ``NAME.png``.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
PICTURES = HERE / "pictures"
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def shown_by(page: Path) -> list[str]:
    """Return the names of the pictures that a page shows, without its own name and suffix."""
    return re.findall(rf"\]\(pictures/{page.stem}-([\w-]+)\.png\)", page.read_text())


def run(page: Path) -> None:
    """Run the blocks of a page in their order, in the folder of this process."""
    names: dict[str, object] = {"__name__": "example"}
    for language, block in BLOCK.findall(page.read_text()):
        if language == "python":
            exec(compile(block, page.name, "exec", dont_inherit=True), names)
            continue
        for line in block.splitlines():
            subprocess.run([sys.executable, "-m", *shlex.split(line, comments=True)], check=True)


def draw(page: Path) -> None:
    """Run a page in an empty folder, and keep the pictures that it shows."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            run(page)
            for name in shown_by(page):
                shutil.copyfile(f"{name}.png", PICTURES / f"{page.stem}-{name}.png")
        finally:
            os.chdir(before)


if __name__ == "__main__":
    PICTURES.mkdir(exist_ok=True)
    wanted = sys.argv[1:] or [page.stem for page in sorted(HERE.glob("*.md")) if shown_by(page)]
    for stem in wanted:
        draw(HERE / f"{stem}.md")
