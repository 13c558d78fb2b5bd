"""The README's table, from the pages of results: `make readme`."""

from __future__ import annotations

import re
from pathlib import Path

from sparsedepth.atomic_files import write_atomically
from sparsedepth.markdown import table

ROOT = Path(__file__).parent.parent
BEGIN, END = "<!-- numbers: begin -->", "<!-- numbers: end -->"
SHARE = "5%"
SHOWN = {
    "noisy": "the noisy map",
    "median": "median",
    "NL-means": "non-local means",
    "TV-L2": "total variation, TV-L2",
    "TV-L1": "total variation, TV-L1",
    "ns-SC Φ1": "the paper's method",
    'denoise, "calibrated"': "**`denoise(map)`**",
}
"""Rows of the page, and what the README calls them."""
OURS = 'denoise, "calibrated"'
SAYS = {"noisy": "", "ns-SC Φ1": "of its noise", OURS: "**yes**"}


def rows_below(page: str, heading: str) -> list[list[str]]:
    """The cells of the first table below a heading, its head first."""
    lines = page[page.index(heading) :].splitlines()
    start = next(index for index, line in enumerate(lines) if line.startswith("|"))
    rows = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip().strip("*") for cell in line.strip("|").split("|")])
    return [rows[0], *rows[2:]]


def comparison(page: str) -> str:
    """Tabulate the mean PSNR of each method on both kinds of maps, and how its parameter was chosen."""
    kinds = {"laser scans": "## Laser: mean PSNR", "disparities": "## Disparity: mean PSNR"}
    scores: dict[str, list[str]] = {}
    help_of: dict[str, str] = {}
    for heading in kinds.values():
        head, *rows = rows_below(page, heading)
        for row in rows:
            help_of[row[0]] = row[1]
            scores.setdefault(row[0], []).append(row[head.index(SHARE)])
    helped = {"tuned": "best for each map, by the truth", "blind": "none", "": ""}
    body = []
    for name, words in SHOWN.items():
        numbers = [f"**{score}**" if name == OURS else score for score in scores[name]]
        body.append([words, *numbers, helped[help_of[name]], SAYS.get(name, "no")])
    return table([f"{SHARE} of the pixels wrong; PSNR, dB", *kinds, "parameter", "variance of each pixel"], body)


def renewed(readme: str, page: str) -> str:
    """The README with the numbers of the page."""
    made = f"{BEGIN}\n\n{comparison(page)}\n\n{END}"
    return re.sub(f"{BEGIN}.*?{END}", lambda _: made, readme, flags=re.DOTALL)


if __name__ == "__main__":
    numbers = (ROOT / "docs" / "results" / "denoising.md").read_text()
    write_atomically(ROOT / "README.md", renewed((ROOT / "README.md").read_text(), numbers).encode())
