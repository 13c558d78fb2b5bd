"""Pictures of the calibration of a sensor: what was measured and what was fitted to it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sparsedepth.extras import needed_for
from sparsedepth.pictures import UNKNOWN, write_figure
from sparsedepth.sensors import Calibration
from sparsedepth.vocabulary import Floats

with needed_for("drawing", "plot"):
    from matplotlib import colormaps
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MEASURED = "#3b5b7a"
FITTED = UNKNOWN


def save_calibrated_sensor(calibration: Calibration, path: str | Path, *, title: str = "") -> None:
    """Draw a calibration in four panels: noise, correlation, quantisation and fixed pattern.

    Parameters
    ----------
    calibration
        As `sparsedepth.sensors.calibrate` returns it.
    path
        PNG file to write; an existing one is replaced.
    title
        Line above the panels.
    """
    figure = Figure(figsize=(11, 7.6), dpi=100, layout="constrained")
    panels = figure.subplots(2, 2)
    _draw_noise(panels[0, 0], calibration)
    _draw_correlation(panels[0, 1], calibration)
    _draw_steps(panels[1, 0], calibration)
    _draw_pattern(figure, panels[1, 1], calibration)
    for axes in panels.ravel()[:3]:
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    if title:
        figure.suptitle(title, fontsize=10, parse_math=False)
    write_figure(figure, path)


def _draw_noise(axes: Axes, calibration: Calibration) -> None:
    seen, unit = calibration.evidence, _unit(calibration)
    at = np.geomspace(seen.depths[0], seen.depths[-1], 200)
    axes.plot(seen.depths, seen.stds, "o", color=MEASURED, markersize=4, label="measured, in bins of depth")
    axes.plot(at, calibration.temporal_std(at), color=FITTED, label="record: noise and quantisation")
    error = calibration.standard_error
    axes.errorbar(
        [seen.median],
        [float(calibration.temporal_std(seen.median))],
        yerr=[error],
        color="black",
        capsize=4,
        label=f"median depth, standard error {error:.1g}{unit and f' {unit}'}",
    )
    _set_axes(axes, "Noise over time", f"depth{_in(unit)}", f"standard deviation{_in(unit)}")


def _draw_correlation(axes: Axes, calibration: Calibration) -> None:
    seen, fitted = calibration.evidence.autocorrelation, calibration.sensor.correlation
    lags = np.arange(seen.shape[1])
    fine = np.linspace(0, lags[-1], 200)[1:]
    axes.axhline(0, color="black", linewidth=0.8)
    for marker, name, values, curve in (
        ("o", "rows", seen[0], fitted(0.0, fine)),
        ("s", "columns", seen[1], fitted(fine, 0.0)),
    ):
        axes.plot(lags, values, marker, color=MEASURED, fillstyle="none", markersize=5, label=f"measured along {name}")
        axes.plot(fine, curve, color=FITTED, linestyle="-" if marker == "o" else "--", label=f"record along {name}")
    _set_axes(axes, "Spatial correlation of the noise", "distance, pixels", "correlation")


def _draw_steps(axes: Axes, calibration: Calibration) -> None:
    seen, unit = calibration.evidence, _unit(calibration)
    at = np.geomspace(seen.nearest, seen.farthest, 200)
    if len(seen.steps):
        axes.plot(seen.step_depths, seen.steps, "o", color=MEASURED, markersize=4, label="measured, single frames")
    axes.plot(at, calibration.sensor.step(at), color=FITTED, label="record")
    axes.plot(at, calibration.temporal_std(at), color="#7c8a99", linestyle="--", label="standard deviation")
    _set_axes(axes, "Quantisation", f"depth{_in(unit)}", f"step between codes{_in(unit)}")


def _draw_pattern(figure: Figure, axes: Axes, calibration: Calibration) -> None:
    pattern = calibration.evidence.pattern
    axes.set_axis_off()
    if not np.isfinite(pattern).any():
        reason = "the camera moved" if calibration.evidence.moving else "the scene has no smooth surfaces"
        axes.set_title("Fixed pattern", fontsize=10)
        axes.text(0.5, 0.5, f"not measured: {reason}", ha="center", va="center", transform=axes.transAxes)
        return
    limit = _limit(pattern)
    colours = colormaps["RdBu"].with_extremes(bad="#d9d9d9")
    shown = axes.imshow(np.ma.masked_invalid(pattern), cmap=colours, vmin=-limit, vmax=limit, interpolation="nearest")
    axes.set_title(f"Fixed pattern: {calibration.sensor.pattern:.2f} standard deviations of the noise", fontsize=10)
    label = "mean frame minus smooth surfaces, in standard\ndeviations of the noise; grey = not measured"
    figure.colorbar(shown, ax=axes, shrink=0.9).set_label(label, fontsize=8)


def _limit(pattern: Floats) -> float:
    """Return the limit of the colours: most of the deviations lie within it."""
    return max(3 * float(np.nanmedian(np.abs(pattern))) / 0.6745, 1e-6)


def _set_axes(axes: Axes, title: str, x: str, y: str) -> None:
    axes.set_title(title, fontsize=10)
    axes.set(xlabel=x, ylabel=y)
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))


def _unit(calibration: Calibration) -> str:
    return calibration.sensor.unit


def _in(unit: str) -> str:
    return f", {unit}" if unit else ", unit of the maps"
