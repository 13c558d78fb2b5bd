"""Findings about results, as pictures and tables for a report."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsedepth.metrics import calibration, sparsification
from sparsedepth.pictures import save_calibration, save_map, save_origin, save_variance
from sparsedepth.report import Html, heading, pictures, table
from sparsedepth.vocabulary import DepthImage, DepthMap, Floats, Origin


@dataclass(frozen=True, eq=False)
class Finding:
    """A result: the map, and whatever else is known of it, in the map's unit."""

    name: str
    image: DepthImage
    variance: Floats | None = None
    origin: NDArray[np.integer[Any]] | None = None
    truth: DepthMap | None = None
    errors: Mapping[str, Any] = field(default_factory=dict)
    """Against the truth: psnr, rmse, mae, bad_pixels beyond a threshold."""
    about: Mapping[str, str] = field(default_factory=dict)
    """How it was made."""
    before: DepthImage | None = None
    """What was restored."""

    @property
    def unit(self) -> str:
        return self.image.unit or "unit unknown"

    @property
    def error(self) -> Floats | None:
        return None if self.truth is None else np.asarray(self.image.values, np.float64) - self.truth

    @property
    def held(self) -> tuple[Floats, Floats] | None:
        """Errors and the variances to compare them with; None unless there are both."""
        if self.error is None or self.variance is None:
            return None
        finite = np.isfinite(self.error) & np.isfinite(self.variance)
        return (self.error, self.variance) if finite.any() and (self.variance[finite] > 0).all() else None


def sections(findings: Sequence[Finding], folder: Path) -> list[Html]:
    """Describe all results in one table if there are several, then each by itself; pictures go to the folder."""
    parts = [_summary(findings)] if len(findings) > 1 else []
    for number, finding in enumerate(findings):
        parts += [heading(finding.name), _drawn(finding, folder, str(number)), _described(finding)]
    return parts


def versions(*packages: str) -> str:
    """List the versions of this program, of Python and of the packages that results depend on."""
    names = ("sparsedepth", "numpy", "scipy", *packages)
    return ", ".join([*(f"{name} {version(name)}" for name in names), f"Python {platform.python_version()}"])


def draw_calibration(error: Floats, variance: Floats, path: Path, unit: str) -> float:
    """Draw the calibration of variances; return the mean of squared error / variance, 1 = calibrated."""
    found, order = calibration(error, variance), sparsification(error, variance)
    predicted, came = np.sqrt(found.variance), np.sqrt(np.maximum(found.squared_error, np.finfo(np.float32).tiny))
    save_calibration(predicted, came, order.share, order.by_variance, order.by_error, path, unit)
    return found.overall


def _summary(findings: Sequence[Finding]) -> Html:
    """Tabulate one row for each result and one column for each fact that any of them has."""
    rows = [_facts(finding) for finding in findings]
    head = list(dict.fromkeys(name for row in rows for name in row))
    return table(
        ["", *head], [[f.name, *(row.get(name, "") for name in head)] for f, row in zip(findings, rows, strict=True)]
    )


def _described(finding: Finding) -> Html:
    facts = _facts(finding) | dict(finding.about)
    return table(["", ""], [[name, value] for name, value in facts.items()])


def _facts(finding: Finding) -> dict[str, str]:
    """Describe the facts of a result in words, with units."""
    values = finding.image.values
    known = values[np.isfinite(values)]
    facts = {"pixels": f"{values.shape[1]} x {values.shape[0]}"}
    if finding.before is not None:
        facts["known before"] = f"{np.isfinite(finding.before.values).mean():.1%}"
    facts["known"] = f"{known.size / values.size:.1%}"
    if known.size:
        low, middle, high = (f"{value:.4g}" for value in np.percentile(known, (1, 50, 99)))
        facts[f"{finding.image.kind}, {finding.unit}"] = f"{low} … {middle} … {high}"
    if finding.origin is not None:
        shares = np.bincount(finding.origin.ravel(), minlength=len(Origin)) / finding.origin.size
        shown = [origin for origin in Origin if origin != Origin.REMEMBERED or shares[origin] > 0]
        facts |= {origin.name.lower(): f"{shares[origin]:.1%}" for origin in shown}
    if finding.variance is not None and np.isfinite(finding.variance).any():
        typical = np.sqrt(np.median(finding.variance[np.isfinite(finding.variance)]))
        facts["median deviation"] = f"{typical:.3g} {finding.unit}"
    return facts | _compared(finding)


def _compared(finding: Finding) -> dict[str, str]:
    if not finding.errors:
        return {}
    errors = finding.errors
    facts = {
        "PSNR": "flat truth" if errors["psnr"] is None else f"{errors['psnr']:.2f} dB",
        "RMSE": f"{errors['rmse']:.4g} {finding.unit}",
        "MAE": f"{errors['mae']:.4g} {finding.unit}",
        f"off by more than {errors['threshold']:g} {finding.unit}": f"{errors['bad_pixels']:.2%}",
    }
    if finding.held is not None:
        facts["squared error / variance (1 = calibrated)"] = f"{calibration(*finding.held).overall:.3g}"
    return facts


def _drawn(finding: Finding, folder: Path, name: str) -> Html:
    unit, values = finding.unit, finding.image.values
    shown: list[tuple[Path, str]] = []

    def place(what: str, caption: str) -> Path:
        shown.append((folder / f"{name}-{what}.png", caption))
        return shown[-1][0]

    named, known = f"{finding.image.kind}, {unit}", values[np.isfinite(values)]
    limits = (float(np.percentile(known, 0.5)), float(np.percentile(known, 99.5))) if known.size else None
    if finding.before is not None:
        save_map(finding.before.values, place("before", "The input."), unit=named, limits=limits)
    save_map(values, place("map", "The map; what could not be known stays unknown."), unit=named, limits=limits)
    if finding.variance is not None:
        squared = f"{unit}²" if unit.isalpha() else f"({unit})²"
        picture = place("variance", "How far each pixel may be off: its variance.")
        save_variance(finding.variance, picture, unit=f"variance, {squared}")
    if finding.origin is not None:
        save_origin(finding.origin, place("origin", "Where each pixel comes from."))
    if finding.error is not None:
        size = np.abs(finding.error)
        limits = (0.0, float(np.nanpercentile(size, 99)) or 1.0) if np.isfinite(size).any() else None
        save_map(
            size, place("error", "How far each pixel is from the truth."), unit=f"absolute error, {unit}", limits=limits
        )
    if finding.held is not None:
        caption = "Left: predicted and observed standard deviations. Right: whether the variance ranks the errors."
        draw_calibration(*finding.held, place("calibration", caption), unit)
    return pictures(*shown)


def closing(settings: Mapping[str, str] | None = None) -> list[Html]:
    """Describe how the report itself was made."""
    rows = [[name, value] for name, value in {**(settings or {}), "versions": versions()}.items()]
    return [heading("This report"), table(["", ""], rows)]
