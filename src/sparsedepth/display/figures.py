"""Figures of maps, results, dictionaries and sensors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import ListedColormap, LogNorm
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray

from sparsedepth.dictionary import Dictionary
from sparsedepth.pictures import ORIGINS, UNKNOWN
from sparsedepth.sensors.record import Sensor
from sparsedepth.vocabulary import DepthImage, Floats, Match, Restoration

MOST_SIDE_PX = 800
"""Larger maps are drawn with every second, third, ... pixel."""
PANEL_INCHES = 4.0
SENSOR_RANGE_MM = (300.0, 5000.0)
"""Depths that a sensor without range limits is drawn for."""


@singledispatch
def draw(shown: Any) -> Figure:
    """Draw an object."""
    raise TypeError(f"there is no picture of a {type(shown).__name__}")


@draw.register
def _(shown: DepthImage) -> Figure:
    figure, (axes,) = _panels(1, shown.values.shape)
    _draw_map(axes, shown.values, f"{shown.kind}{_in(shown.unit)}")
    return figure


@draw.register
def _(shown: Restoration) -> Figure:
    return _draw_result(np.asarray(shown.depth), shown.variance, shown.origin, shown.kind, shown.unit)


@draw.register
def _(shown: Match) -> Figure:
    return _draw_result(np.asarray(shown.disparity), shown.variance, shown.origin, "disparity", "px")


@draw.register
def _(shown: Dictionary) -> Figure:
    mosaic = shown.mosaic()
    figure, (axes,) = _panels(1, mosaic.shape)
    axes.imshow(mosaic, cmap="gray", vmin=-1, vmax=1, interpolation="nearest")
    axes.set_title(f"{shown.n_atoms} atoms, each scaled to its largest value", fontsize=10)
    return figure


@draw.register
def _(shown: Sensor) -> Figure:
    figure = Figure(figsize=(1.4 * PANEL_INCHES, 0.9 * PANEL_INCHES), layout="constrained")
    FigureCanvasAgg(figure)
    axes, factor = figure.subplots(), 0.001 if shown.unit == "m" else 1.0
    nearest = shown.nearest or SENSOR_RANGE_MM[0] * factor
    farthest = shown.farthest if np.isfinite(shown.farthest) else max(SENSOR_RANGE_MM[1] * factor, 2 * nearest)
    at = np.geomspace(nearest, farthest, 200)
    axes.plot(at, shown.std(at), label="one measurement")
    axes.plot(at, shown.noise(at), "--", label="noise over time")
    axes.plot(at, shown.step(at), ":", label="step between codes")
    axes.set(xlabel=f"depth{_in(shown.unit)}", ylabel=f"standard deviation{_in(shown.unit)}", title=shown.name)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    return figure


def _draw_result(values: Floats, variance: Any, origin: Any, kind: str, unit: str) -> Figure:
    """Draw the map, the standard deviation of each pixel, and the origins."""
    figure, axes = _panels(3, values.shape)
    _draw_map(axes[0], values, f"{kind}{_in(unit)}")
    _draw_std(axes[1], np.sqrt(np.asarray(variance)), f"standard deviation{_in(unit)}")
    _draw_origins(axes[2], np.asarray(origin))
    return figure


def _panels(count: int, shape: Sequence[int]) -> tuple[Figure, list[Axes]]:
    ratio = float(np.clip(shape[0] / max(shape[1], 1), 0.2, 3.0))
    figure = Figure(figsize=(count * PANEL_INCHES, PANEL_INCHES * ratio + 0.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, count, squeeze=False)[0].tolist()
    for each in axes:
        each.set_axis_off()
    return figure, axes


def _thinned(values: NDArray[Any]) -> NDArray[Any]:
    step = max(1, -(-max(values.shape) // MOST_SIDE_PX))
    return values[::step, ::step]


def _draw_map(axes: Axes, values: Floats, title: str) -> None:
    shown = np.ma.masked_invalid(_thinned(values))
    low, high = np.percentile(shown.compressed(), (0.5, 99.5)) if shown.count() else (0.0, 1.0)
    _draw_image(axes, shown, title, cmap="viridis", vmin=low, vmax=high)


def _draw_std(axes: Axes, values: Floats, title: str) -> None:
    thin = _thinned(values)
    shown = np.ma.masked_where(~(np.isfinite(thin) & (thin > 0)), thin)
    low, high = (float(shown.min()), float(shown.max())) if shown.count() else (0.1, 1.0)
    _draw_image(axes, shown, title, cmap="bone", norm=LogNorm(low, max(high, 1.01 * low)))


def _draw_image(axes: Axes, values: Any, title: str, **look: Any) -> None:
    shown = axes.imshow(values, interpolation="nearest", **look)
    shown.set_cmap(shown.get_cmap().with_extremes(bad=UNKNOWN))
    axes.set_title(title, fontsize=10)
    axes.figure.colorbar(shown, ax=axes, shrink=0.8)


def _draw_origins(axes: Axes, origin: NDArray[Any]) -> None:
    axes.imshow(_thinned(origin), cmap=ListedColormap(list(ORIGINS.values())), vmin=-0.5, vmax=len(ORIGINS) - 0.5,
                interpolation="nearest")  # fmt: skip
    shares = np.bincount(origin.ravel(), minlength=len(ORIGINS)) / origin.size
    names = [(name, share) for name, share in zip(ORIGINS, shares, strict=True) if share > 0]
    marks = [Patch(color=ORIGINS[name], label=f"{name} {share:.1%}") for name, share in names]
    axes.set_title("origin", fontsize=10)
    axes.legend(handles=marks, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=2, frameon=False)


def _in(unit: str) -> str:
    return f", {unit}" if unit else ", unit unknown"
