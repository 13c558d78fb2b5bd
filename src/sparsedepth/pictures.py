"""Pictures of maps, variances and dictionaries, as PNG files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import Colormap, LogNorm, Normalize
from matplotlib.figure import Figure

from sparsedepth.dictionary import Dictionary
from sparsedepth.vocabulary import DepthMap

UNKNOWN = "#c81e5a"
"""The colour of pixels of which nothing is known; no depth has it."""


def save_map(
    depth: DepthMap, path: str | Path, *, title: str = "", unit: str = "", limits: tuple[float, float] | None = None
) -> None:
    """A map in colours with a scale bar; unknown pixels stand out."""
    known = depth[np.isfinite(depth)]
    low, high = limits or ((np.percentile(known, 0.5), np.percentile(known, 99.5)) if known.size else (0.0, 1.0))
    _save(depth, path, title, unit, "viridis", Normalize(float(low), float(high)))


def save_variance(variance: DepthMap, path: str | Path, *, title: str = "", unit: str = "") -> None:
    """A variance map on a logarithmic scale; infinite variance counts as unknown."""
    finite = np.where(np.isfinite(variance) & (variance > 0), variance, np.nan)
    known = finite[np.isfinite(finite)]
    low, high = (known.min(), known.max()) if known.size else (1.0, 10.0)
    _save(finite, path, title, unit, "magma", LogNorm(float(low), float(max(high, low * 1.01))))


def save_mosaic(dictionary: Dictionary, path: str | Path, *, title: str = "") -> None:
    """All atoms of a dictionary, each scaled to its own largest value: grey is zero."""
    mosaic = dictionary.mosaic()
    scale = max(1, round(700 / mosaic.shape[1]))
    picture = np.kron(mosaic, np.ones((scale, scale)))
    figure = Figure(figsize=(picture.shape[1] / 100, picture.shape[0] / 100 + (0.3 if title else 0)), dpi=100)
    axes = figure.add_axes((0, 0, 1, picture.shape[0] / 100 / figure.get_size_inches()[1]))
    axes.imshow(picture, cmap=_with_unknown("gray", "#26415e"), vmin=-1, vmax=1, interpolation="nearest")
    axes.set_axis_off()
    if title:
        figure.suptitle(title, fontsize=9, y=0.995, va="top")
    _write(figure, path)


def _save(values: DepthMap, path: str | Path, title: str, unit: str, colours: str, norm: Normalize) -> None:
    height, width = values.shape
    figure = Figure(figsize=(7, 7 * height / width + 0.4), dpi=100, layout="constrained")
    axes = figure.add_subplot()
    shown = axes.imshow(
        np.ma.masked_invalid(values), cmap=_with_unknown(colours, UNKNOWN), norm=norm, interpolation="nearest"
    )
    axes.set_axis_off()
    axes.set_title(title, fontsize=10)
    figure.colorbar(shown, ax=axes, shrink=0.85, label=unit)
    _write(figure, path)


def _with_unknown(name: str, unknown: str) -> Colormap:
    return colormaps[name].with_extremes(bad=unknown)


def _write(figure: Figure, path: str | Path) -> None:
    FigureCanvasAgg(figure)
    figure.savefig(path)
