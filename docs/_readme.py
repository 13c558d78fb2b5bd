"""The README's tables, from the pages of results: `make readme`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sparsedepth.atomic_files import write_atomically
from sparsedepth.markdown import table

ROOT = Path(__file__).parent.parent
CAMERAS = {
    "kinect_v1_7scenes": "Kinect v1",
    "realsense_d4xx_aims": "RealSense, hand-held",
    "realsense_d4xx_cup": "RealSense, static",
    "tof_pico_zense": "time of flight",
}
"""Columns of the page of sensors, and what the README calls them."""
BLIND = "ours, blind"
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
"""Rows of the page of denoising, and what the README calls them."""
OURS = 'denoise, "calibrated"'
SAYS = {"noisy": "", "ns-SC Φ1": "of its noise", OURS: "**yes**"}
MATCHERS = {
    "OpenCV SGBM, filled": "OpenCV, SGBM, filled",
    "OpenCV SGBM + WLS": "OpenCV, SGBM + WLS",
    "sparsedepth match": "**`match`**",
}
"""Rows of the page of stereo, and what the README calls them."""
SCENES = ("Tsukuba", "Venus", "Teddy", "Cones")


def rows_below(page: str, heading: str) -> list[list[str]]:
    """Read the cells of the first table below a heading, its head first."""
    lines = page[page.index(heading) :].splitlines()
    start = next(index for index, line in enumerate(lines) if line.startswith("|"))
    rows = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip().strip("*") for cell in line.strip("|").split("|")])
    return [rows[0], *rows[2:]]


def cameras(page: str) -> str:
    """Tabulate the error left on frames of cameras, and the calibration of the variance."""
    head, *rows = rows_below(page, "## Error left")
    left = {row[0]: [_of_raw(row[head.index(name)]) for name in CAMERAS] for row in rows if not _is_informed(row[0])}
    ours = left.pop(BLIND)
    found = {row[0]: row for row in rows_below(page, "## Variance and holes") if row[1] == "blind"}
    body = [
        [
            "best of six filters, parameter by the truth",
            *(f"{min(each):.2f}" for each in zip(*left.values(), strict=True)),
        ],
        ["**`denoise(frame)`**", *(f"**{error:.2f}**" for error in ours)],
        ["its squared error / variance, median (1 = calibrated)", *(found[name][2] for name in CAMERAS)],
        ["its pixels within two standard deviations", *(found[name][3] for name in CAMERAS)],
    ]
    return table(["error left, 1 = that of the frame", *CAMERAS.values()], body)


def _is_informed(method: str) -> bool:
    """Tell whether a row is not of a method that gets the frame alone: the raw frame, or a known sensor."""
    return method == "raw" or (method.startswith("ours") and method != BLIND)


def _of_raw(cell: str) -> float:
    """Read the fraction of the raw error in a cell: ``0.98 (0.911; 11)``."""
    return float(cell.split("(")[1].rstrip(")").split(";")[0])


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


def stereo(page: str) -> str:
    """Tabulate the bad pixels of `match` and of OpenCV."""
    head, *rows = rows_below(page, "## `match` ")
    cells = {row[0]: [f"{float(row[head.index(f'{scene} all')]):.1f}" for scene in SCENES] for row in rows}
    body = [[words, *cells[name]] for name, words in MATCHERS.items()]
    return table(["% of all pixels more than 1 px wrong", *SCENES], body)


PARTS: dict[str, tuple[str, Callable[[str], str]]] = {
    "cameras": ("sensors", cameras),
    "numbers": ("denoising", comparison),
    "stereo": ("stereo", stereo),
}
"""Name of a part of the README -> the page that it is made from, and how."""


def renewed(readme: str) -> str:
    """Replace the tables of the README by those of today's pages."""
    for name, (page, make) in PARTS.items():
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        before, rest = readme.split(begin)
        _, after = rest.split(end)
        made = make((ROOT / "docs" / "results" / f"{page}.md").read_text())
        readme = f"{before}{begin}\n\n{made}\n\n{end}{after}"
    return readme


if __name__ == "__main__":
    write_atomically(ROOT / "README.md", renewed((ROOT / "README.md").read_text()).encode())
