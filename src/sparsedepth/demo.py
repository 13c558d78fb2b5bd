"""The demo: a real map with real holes and added noise, restored by us and by others."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sparsedepth.baselines import DENOISERS
from sparsedepth.data.motorcycle import motorcycle_disparity
from sparsedepth.data.synthetic import corrupted
from sparsedepth.files import write
from sparsedepth.findings import draw_calibration, versions
from sparsedepth.metrics import bad_pixels, oracle, psnr, rmse
from sparsedepth.pictures import Panel, save_bars, save_map, save_origin, save_panels, save_variance
from sparsedepth.report import heading, paragraph, pictures, table, write_report
from sparsedepth.restore import denoise
from sparsedepth.vocabulary import DepthImage, DepthMap, Origin, Restoration

Progress = Callable[[str, int, int], None]
"""(what is being done, steps done, steps in all)."""
COMPETITORS = ("median", "switching median", "TV-L2", "TV-L1", "NL-means")
PRODUCTS = (
    "original.png",
    "noisy.png",
    "restored.png",
    "variance.png",
    "origin.png",
    "competitors.png",
    "psnr.png",
    "calibration.png",
    "restored.npz",
    "report.html",
)
SHARE = 0.05
SEED = 0
QUALITY = "best"
ABOUT = {"made by": "sparsedepth demo", "quality": QUALITY}


@dataclass(frozen=True, eq=False)
class Entry:
    """A row of the table."""

    name: str
    help: str
    depth: DepthMap
    seconds: float | None
    """Of one run at the parameter chosen."""

    @property
    def label(self) -> str:
        """The name, with the kind of help the method had."""
        return f"{self.name}, {self.help.split()[0]}" if self.help else self.name


def run(output: Path, progress: Progress, quick: bool = False) -> dict[str, Any]:
    """Corrupt a crop of the Motorcycle map, restore it by all methods, and write pictures, the map and a report."""
    disparity = motorcycle_disparity()
    truth = disparity[200:260, 520:580] if quick else disparity[150:350, 480:680]
    noisy = corrupted(truth, SHARE, np.random.default_rng(SEED))
    steps = len(COMPETITORS) + 2
    progress("restoring", 0, steps)
    result, seconds = _timed(lambda: denoise(noisy, quality="fast" if quick else QUALITY))
    entries = [Entry("noisy", "", noisy, None)]
    for done, name in enumerate(COMPETITORS, 1):
        progress(f"{name}, tuned on the truth", done, steps)
        entries.append(_tuned(name, noisy, truth, every=8 if quick else 3))
    entries.append(Entry("sparsedepth", "blind", result.depth, seconds))
    progress("drawing", steps - 1, steps)
    scores = {entry.name: round(psnr(entry.depth, truth), 2) for entry in entries}
    _draw(output, truth, noisy, result, entries, scores)
    image = DepthImage(result.depth, "px", "disparity")
    write(output / "restored.npz", image, variance=result.variance, origin=result.origin, about=ABOUT)
    _report(output, truth, result, entries, scores)
    progress("done", steps, steps)
    shares = {origin: round(share, 4) for origin, share in _shares(result).items()}
    return {"report": str(output / "report.html"), "psnr_db": scores, **shares}


def _timed(work: Any) -> tuple[Any, float]:
    start = time.perf_counter()
    return work(), time.perf_counter() - start


def _tuned(name: str, noisy: DepthMap, truth: DepthMap, every: int) -> Entry:
    competitor = DENOISERS[name]
    grid = list(competitor.parameters(noisy))
    coarse = grid[:: min(every, len(grid) - 1)]
    middle = grid.index(oracle(competitor.restore, coarse, noisy, truth).parameter)
    near = grid[max(middle - every + 1, 0) : middle + every]
    best = oracle(competitor.restore, near, noisy, truth)
    _, seconds = _timed(lambda: competitor.restore(noisy, best.parameter))
    return Entry(name, f"tuned on the truth: {best.parameter:.3g}", best.result, seconds)


def _shares(result: Restoration) -> dict[str, float]:
    shares = np.bincount(result.origin.ravel(), minlength=len(Origin)) / result.origin.size
    return {origin.name.lower(): float(shares[origin]) for origin in Origin}


def _draw(
    output: Path,
    truth: DepthMap,
    noisy: DepthMap,
    result: Restoration,
    entries: list[Entry],
    scores: dict[str, float],
) -> None:
    limits = float(np.nanmin(truth)), float(np.nanmax(truth))
    for name, values in {"original": truth, "noisy": noisy, "restored": result.depth}.items():
        save_map(values, output / f"{name}.png", title=name, unit="disparity, px", limits=limits)
    save_variance(result.variance, output / "variance.png", title="variance", unit="variance, px²")
    save_origin(result.origin, output / "origin.png", title="origin")
    panels = [Panel("original", truth)]
    panels += [Panel(f"{entry.label}: {scores[entry.name]:.1f} dB", entry.depth) for entry in entries]
    save_panels(panels, output / "competitors.png", limits=limits, unit="disparity, px")
    bars = {entry.label: scores[entry.name] for entry in entries}
    save_bars(bars, output / "psnr.png", ours={entries[-1].label}, label="PSNR, dB (higher is better)")


def _report(output: Path, truth: DepthMap, result: Restoration, entries: list[Entry], scores: dict[str, float]) -> None:
    rows = [
        [
            entry.name,
            entry.help,
            f"{scores[entry.name]:.1f}",
            f"{rmse(entry.depth, truth):.2f}",
            f"{bad_pixels(entry.depth, truth, 1.0):.1%}",
            "" if entry.seconds is None else f"{entry.seconds:.2f}",
        ]
        for entry in entries
    ]
    shares = _shares(result)
    error = np.asarray(result.depth, np.float64) - truth
    ratio = draw_calibration(error, result.variance, output / "calibration.png", "px")
    write_report(
        output / "report.html",
        "sparsedepth: a noisy map with holes, restored",
        paragraph(
            f"The map is a crop of {truth.shape[1]} x {truth.shape[0]} pixels of the Motorcycle disparities "
            f"(Middlebury 2014) with the holes it really has: {np.isnan(truth).mean():.1%} of its pixels are unknown. "
            f"{SHARE:.0%} of the pixels were corrupted by Gaussian noise, each with a variance of its own. Restoring "
            "it blindly, without knowing which pixels are noisy or how much, gives three maps:"
        ),
        pictures(
            (output / "noisy.png", "What came in: noise and holes."),
            (output / "restored.png", "The restored map; what could not be known stays unknown."),
            (output / "variance.png", "How far each pixel may be off: its variance."),
            (output / "origin.png", "Where each pixel comes from."),
        ),
        paragraph(
            f"{shares['measured']:.1%} of the pixels were kept as measured, {shares['corrected']:.1%} corrected, "
            f"{shares['filled']:.1%} filled, {shares['refused']:.1%} refused. Squared errors are {ratio:.2f} times "
            "the variances on average; 1 is calibrated, above 1 the variance is too small."
        ),
        pictures((output / "calibration.png", "Is the variance calibrated, and does it rank the errors?")),
        heading("Comparison with other methods"),
        paragraph(
            "The competitors had help: each was run over a grid of parameters, coarsely first, then around the best. "
            "The result nearest to the truth is shown, which nobody can pick who does not know the truth. They leave "
            "holes unknown. Errors count where the truth is known."
        ),
        table(
            ["", "parameter", "PSNR, dB", "RMSE, px", "off by more than 1 px", "seconds"], rows, ours={len(rows) - 1}
        ),
        pictures((output / "competitors.png", "All results."), (output / "psnr.png", "Peak signal-to-noise ratios.")),
        heading("Settings"),
        table(
            ["", ""],
            [
                ["restoration", f"denoise(map, quality={QUALITY!r})"],
                ["corrupted pixels", f"{SHARE:.0%}, variance uniform in (0, 1) variances of the map, seed {SEED}"],
                ["PSNR's peak", "the range of the true map"],
                ["versions", versions("scikit-image", "matplotlib")],
            ],
        ),
    )
