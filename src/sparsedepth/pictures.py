"""Pictures of maps, variances, dictionaries and curves, as PNG files."""

from __future__ import annotations

import io
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sparsedepth.atomic_files import write_atomically
from sparsedepth.checks import as_floats
from sparsedepth.dictionary import Dictionary
from sparsedepth.extras import needed_for
from sparsedepth.vocabulary import DepthMap, Floats, InputError

with needed_for("drawing", "plot"):
    from matplotlib import colormaps
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Colormap, ListedColormap, LogNorm, Normalize
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch
    from matplotlib.ticker import FixedLocator, NullLocator

UNKNOWN = "#c81e5a"
"""The colour of pixels of which nothing is known; no depth has it."""


def save_map(
    depth: DepthMap, path: str | Path, *, title: str = "", unit: str = "", limits: tuple[float, float] | None = None
) -> None:
    """Draw a map in colours with a scale bar; missing pixels have a colour of their own."""
    depth = _drawable(depth)
    known = depth[np.isfinite(depth)]
    low, high = limits or ((np.percentile(known, 0.5), np.percentile(known, 99.5)) if known.size else (0.0, 1.0))
    if not low < high:  # a flat map lies in the middle of its scale
        low, high = low - max(abs(low), 1.0) / 100, high + max(abs(high), 1.0) / 100
    _save(depth, path, title, unit, "viridis", Normalize(float(low), float(high)))


def save_variance(
    variance: DepthMap, path: str | Path, *, title: str = "", unit: str = "", limits: tuple[float, float] | None = None
) -> None:
    """Draw a variance map on a logarithmic scale; infinite variance counts as missing."""
    variance = _drawable(variance)
    finite = np.where(np.isfinite(variance) & (variance > 0), variance, np.nan)
    known = finite[np.isfinite(finite)]
    low, high = limits or ((known.min(), known.max()) if known.size else (1.0, 10.0))
    low = max(float(low), float(np.finfo(np.float32).tiny))
    _save(finite, path, title, unit, "bone", LogNorm(low, max(float(high), low * 1.01)))


ORIGINS = {"measured": "#3b5b7a", "corrected": "#f2b134", "filled": "#6fbf73", "refused": UNKNOWN,
           "smoothed": "#7fb2d9", "remembered": "#9a7fc7"}  # fmt: skip
"""In the order of `Origin`."""


def save_origin(origin: NDArray[np.integer[Any]], path: str | Path, *, title: str = "") -> None:
    """Draw the origin of each pixel, with the fraction of each kind."""
    figure, axes, aspect = _canvas(origin.shape)
    axes.imshow(origin, cmap=ListedColormap(list(ORIGINS.values())), vmin=-0.5, vmax=len(ORIGINS) - 0.5,
                interpolation="nearest", aspect=aspect)  # fmt: skip
    axes.set_title(title, fontsize=10, parse_math=False)
    shares = np.bincount(origin.ravel(), minlength=len(ORIGINS)) / origin.size
    shown = {name: share for name, share in zip(ORIGINS, shares, strict=True) if name != "remembered" or share > 0}
    _add_legend(axes, {f"{name} {share:.1%}": ORIGINS[name] for name, share in shown.items()})
    write_figure(figure, path)


def save_mosaic(dictionary: Dictionary, path: str | Path, *, title: str = "") -> None:
    """Draw all atoms of a dictionary, each scaled to its own largest value: grey is zero."""
    mosaic = dictionary.mosaic()
    scale = max(1, round(700 / mosaic.shape[1]))
    picture = np.kron(mosaic, np.ones((scale, scale)))
    figure = Figure(figsize=(picture.shape[1] / 100, picture.shape[0] / 100 + (0.3 if title else 0)), dpi=100)
    axes = figure.add_axes((0, 0, 1, picture.shape[0] / 100 / figure.get_size_inches()[1]))
    axes.imshow(picture, cmap=_with_unknown("gray", "#26415e"), vmin=-1, vmax=1, interpolation="nearest")
    axes.set_axis_off()
    if title:
        figure.suptitle(title, fontsize=9, y=0.995, va="top")
    write_figure(figure, path)


@dataclass(frozen=True, eq=False)
class Panel:
    """A map with its title; one that is no depth has colours and limits of its own, given in the title."""

    title: str
    values: DepthMap
    shows: Literal["depth", "error", "variance", "change", "photo"] = "depth"
    """A change is 1 (white), -1 (black) or 0; a photo has 0..255."""


def save_panels(
    panels: Sequence[Panel],
    path: str | Path,
    *,
    limits: tuple[float, float],
    unit: str = "",
    columns: int = 4,
    width: int = 200,
) -> None:
    """Draw maps of one size side by side, about ``width`` pixels each: depths share their colours and limits.

    Every pixel of a map is a square of whole pixels, unless the map is wider than a panel.
    """
    panels = [replace(panel, values=_drawable(panel.values)) for panel in panels]
    rows = -(-len(panels) // columns)
    across = panels[0].values.shape[1]
    zoom = width // across if across <= width else width / across
    high, wide = (side * zoom / 100 for side in panels[0].values.shape)
    gap, head, bar = 0.08, 0.42, 0.85
    size = columns * (wide + gap) + bar, rows * (high + head) + 0.1
    figure = Figure(figsize=size, dpi=100)

    def place(left: float, bottom: float, wide: float, high: float) -> Axes:
        return figure.add_axes((left / size[0], bottom / size[1], wide / size[0], high / size[1]))

    depths = Normalize(*limits)
    for index, panel in enumerate(panels):
        row, column = divmod(index, columns)
        _draw_panel(
            place(column * (wide + gap) + gap / 2, size[1] - (row + 1) * (high + head), wide, high), panel, depths
        )
    scale = figure.colorbar(
        ScalarMappable(depths, "viridis"),
        cax=place(size[0] - bar + 0.08, 0.1, 0.14, min(rows * (high + head) - head, 4.0)),
        extend="both",
        extendfrac=0.02,
    )
    scale.set_label(unit, fontsize=8)
    scale.ax.tick_params(labelsize=8)
    write_figure(figure, path)


def _draw_panel(axes: Axes, panel: Panel, depths: Normalize) -> None:
    colours, norm, values, title = _look(panel, depths)
    colour_map = _with_unknown(colours, UNKNOWN)
    axes.imshow(np.ma.masked_invalid(values), cmap=colour_map, norm=norm, interpolation="nearest")
    axes.set_axis_off()
    axes.set_title(title, fontsize=8, pad=3)


def _look(panel: Panel, depths: Normalize) -> tuple[str, Normalize, DepthMap, str]:
    """Choose the colours, limits, values and title of a panel."""
    if panel.shows == "depth":
        return "viridis", depths, panel.values, panel.title
    if panel.shows in ("change", "photo"):
        return "gray", Normalize(-1, 1) if panel.shows == "change" else Normalize(0, 255), panel.values, panel.title
    positive = np.where(np.isfinite(panel.values) & (panel.values > 0), panel.values, np.nan)
    low, high = (np.nanmin(positive), np.nanmax(positive)) if np.isfinite(positive).any() else (0.1, 1.0)
    if panel.shows == "error":
        return "bone", Normalize(0, float(high)), panel.values, f"{panel.title}\n0 (black) to {high:.3g}"
    norm = LogNorm(float(low), float(max(high, low * 1.01)))
    return "bone", norm, positive, f"{panel.title}\n{low:.2g} (black) to {high:.3g}, log"


@dataclass(frozen=True, eq=False)
class Curve:
    """A line with a name."""

    name: str
    values: Floats | Sequence[float]
    ours: bool = False
    """Whether it is drawn thick, to stand out from the others."""


def save_learning(history: Sequence[tuple[float, float]], path: str | Path, *, title: str = "") -> None:
    """Draw the held-out energy of learning over its steps."""
    steps, energies = zip(*history, strict=True)
    figure = Figure(figsize=(5.2, 3.4), dpi=100, layout="constrained")
    axes = figure.add_subplot()
    axes.plot(steps, energies, marker="o", markersize=3)
    axes.set(xlabel="step", ylabel="held-out energy of a patch")
    axes.set_title(title, fontsize=10)
    axes.grid(alpha=0.3)
    write_figure(figure, path)


def save_curves(
    groups: Mapping[str, Sequence[Curve]],
    at: Sequence[float],
    path: str | Path,
    *,
    x: str,
    y: str,
    columns: int = 2,
    scales: tuple[Literal["log", "linear"], Literal["log", "linear"]] = ("log", "linear"),
) -> None:
    """Draw groups of curves over the same x, a plot each; ``scales`` are those of x and y."""
    rows = -(-len(groups) // columns)
    figure = Figure(figsize=(5.2 * columns, 3.4 * rows), dpi=100, layout="constrained")
    names = list(dict.fromkeys(curve.name for group in groups.values() for curve in group))
    styles = dict(zip(names, zip(cycle(_COLOURS), cycle("osD^vP*X<>hp"), strict=False), strict=False))
    plots = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, (title, group) in zip(plots, groups.items(), strict=False):
        for curve in group:
            colour, marker = styles[curve.name]
            line = {"linewidth": 2, "linestyle": "-"} if curve.ours else {"linewidth": 1, "linestyle": "--"}
            axes.plot(at, curve.values, color=colour, marker=marker, markersize=5, label=curve.name, **line)
        axes.set_title(title, fontsize=10)
        axes.set(xlabel=x, ylabel=y, xscale=scales[0], yscale=scales[1])
        axes.xaxis.set_major_locator(FixedLocator(list(at)))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xticklabels([f"{place:g}" for place in at])
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    write_figure(figure, path)


_COLOURS = (*(f"C{i}" for i in range(10)), "black", "darkgoldenrod", "navy", "lime", "crimson")


def save_bars(values: Mapping[str, float], path: str | Path, *, ours: Collection[str] = (), label: str = "") -> None:
    """Draw named numbers as bars with their values, from the top down; ours are highlighted."""
    figure = Figure(figsize=(7, 0.4 * len(values) + 0.8), dpi=100, layout="constrained")
    axes = figure.add_subplot()
    colours = [UNKNOWN if name in ours else "#7c8a99" for name in values]
    bars = axes.barh(list(values), list(values.values()), color=colours)
    axes.bar_label(bars, fmt="{:.1f}", padding=3)
    axes.invert_yaxis()
    axes.margins(x=0.1)
    axes.set_xlabel(label)
    axes.spines[["top", "right"]].set_visible(False)
    write_figure(figure, path)


def save_calibration(
    predicted: Floats,
    found: Floats,
    left_out: Floats,
    by_variance: Floats,
    by_error: Floats,
    path: str | Path,
    unit: str,
) -> None:
    """Draw predicted against observed errors, and the error as the least certain pixels are removed.

    ``predicted`` and ``found`` are standard deviations, a point each; the curves are errors over fractions of removed
    pixels.
    """
    figure = Figure(figsize=(10, 4), dpi=100, layout="constrained")
    ratio, order = figure.subplots(1, 2)
    least = float(np.min(predicted)) / 30  # tenths almost without error lie below the axis
    ends = [max(float(np.min([predicted, found])), least), float(np.max([predicted, found]))]
    ratio.plot(ends, ends, color="#7c8a99", linewidth=1, linestyle="--", label="calibrated")
    ratio.plot(predicted, found, color=UNKNOWN, marker="o", markersize=5, label="each tenth of the pixels")
    ratio.set(xscale="log", yscale="log", xlabel=f"predicted standard deviation, {unit}", ylabel=f"RMSE found, {unit}")
    ratio.set_ylim(bottom=0.8 * ends[0])
    ratio.set_title("above the line: variance too small", fontsize=10)
    order.plot(left_out, by_error, color="#7c8a99", linewidth=1, linestyle="--", label="by true error (the best)")
    order.plot(left_out, by_variance, color=UNKNOWN, label="by variance")
    order.set(xlabel="fraction of pixels removed, largest variance first", ylabel="RMSE of the rest, over that of all")
    order.set_title("near the dashed curve: the variance ranks the errors", fontsize=10)
    for axes in (ratio, order):
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    write_figure(figure, path)


def _save(values: DepthMap, path: str | Path, title: str, unit: str, colours: str, norm: Normalize) -> None:
    figure, axes, aspect = _canvas(values.shape)
    shown = axes.imshow(
        np.ma.masked_invalid(values),
        cmap=_with_unknown(colours, UNKNOWN),
        norm=norm,
        interpolation="nearest",
        aspect=aspect,
    )
    axes.set_title(title, fontsize=10, parse_math=False)
    figure.colorbar(shown, ax=axes, shrink=0.9, aspect=30, pad=0.02, label=unit)
    unknown = 1 - np.isfinite(values).mean()
    if unknown > 0:
        _add_legend(axes, {f"unknown {unknown:.1%}": UNKNOWN})
    write_figure(figure, path)


def _drawable(values: Any) -> Floats:
    """Convert to a map that can be drawn: floats in two dimensions, NaN where masked."""
    depth = as_floats("the map", values)
    if depth.ndim != 2 or depth.size == 0:
        raise InputError(f"a map to draw has shape {depth.shape}; give (height, width)")
    return depth


def _canvas(shape: tuple[int, ...]) -> tuple[Figure, Axes, Literal["equal", "auto"]]:
    """Create a figure for a map; a very long or very high one is stretched, so that it can be seen at all."""
    height = 6 * shape[0] / shape[1]
    shown = min(max(height, 1.0), 12.0)
    figure = Figure(figsize=(7, shown + 0.8), dpi=100, layout="constrained")
    axes = figure.add_subplot()
    axes.set_axis_off()
    return figure, axes, "equal" if shown == height else "auto"


def _add_legend(axes: Axes, colours: Mapping[str, str]) -> None:
    patches = [Patch(color=colour, label=label) for label, colour in colours.items()]
    axes.legend(
        handles=patches, loc="upper left", bbox_to_anchor=(0, 0), ncols=4, fontsize=8, frameon=False, borderaxespad=0.3
    )


def _with_unknown(name: str, unknown: str) -> Colormap:
    return colormaps[name].with_extremes(bad=unknown)


def write_figure(figure: Figure, path: str | Path) -> None:
    """Write a figure as PNG; the file appears whole or not at all."""
    FigureCanvasAgg(figure)
    content = io.BytesIO()
    figure.savefig(content, format="png")
    write_atomically(path, content.getvalue())
