"""Pictures of the sensor experiment: a frame before and after, and side views of its point cloud."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import ListedColormap, LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from sparsedepth.atomic_files import write_atomically
from sparsedepth.pictures import ORIGINS, UNKNOWN
from sparsedepth.vocabulary import DepthMap, Floats, Origin, Restoration
from sparsedepth_experiments._sensors_methods import Camera, JudgedFrame

BAND_ROWS = 4
"""Rows of the side views."""


def draw_frame(camera: Camera, frame: JudgedFrame, result: Restoration, path: Path) -> None:
    """Draw depth before and after, standard deviation, origin, and the point cloud from the side, before and after."""
    figure = Figure(figsize=(15, 8.4), dpi=80, layout="constrained")
    axes = figure.subplots(2, 3).ravel()
    low, high = (float(value) for value in np.nanpercentile(frame.depth, (0.5, 99.5)))
    for place, (title, depth) in enumerate({"before": frame.depth, "after": result.depth}.items()):
        _draw_map(axes[place], depth, f"depth {title}, mm", "viridis", Normalize(low, high))
    std = np.sqrt(np.where(np.isfinite(result.variance), result.variance, np.nan))
    ends = [float(value) for value in np.nanpercentile(std, (1, 99))]
    _draw_map(axes[2], std, "standard deviation, mm", "bone", LogNorm(ends[0], max(ends[1], 1.01 * ends[0])))
    _draw_origin(axes[3], result)
    top = _fullest_band(frame.depth)
    for place, (title, depth) in enumerate({"before": frame.depth, "after": result.depth}.items()):
        _draw_side(axes[4 + place], camera, depth, top, _limits(frame.depth[top : top + BAND_ROWS]), title)
    figure.suptitle(f"{camera.name}, frame {frame.number}", fontsize=11)
    FigureCanvasAgg(figure)
    content = io.BytesIO()
    figure.savefig(content, format="png")
    write_atomically(path, content.getvalue())


def side_view(depth: DepthMap, intrinsics: tuple[float, float, float, float], rows: slice) -> tuple[Floats, Floats]:
    """Project the valid pixels of some rows to the plane of x and z.

    Parameters
    ----------
    depth
        (height, width); NaN = missing.
    intrinsics
        fx, fy, cx, cy in pixels.
    rows
        Rows that are projected.

    Returns
    -------
    x and z of the points, in the unit of the map.

    Examples
    --------
    >>> side_view(np.array([[2.0, np.nan, 4.0]]), (2.0, 2.0, 1.0, 0.0), slice(0, 1))
    (array([-1.,  2.]), array([2., 4.]))
    """
    z = np.asarray(depth[rows], float)
    x = (np.arange(depth.shape[1])[None, :] - intrinsics[2]) * z / intrinsics[0]
    valid = np.isfinite(z)
    return x[valid], z[valid]


def _draw_map(axes: Axes, values: Floats, title: str, colours: str, norm: Normalize) -> None:
    shown = axes.imshow(
        np.ma.masked_invalid(values), cmap=colormaps[colours].with_extremes(bad=UNKNOWN), norm=norm,
        interpolation="nearest",
    )  # fmt: skip
    axes.set_axis_off()
    axes.set_title(title, fontsize=9)
    axes.figure.colorbar(shown, ax=axes, shrink=0.8, pad=0.01)


def _draw_origin(axes: Axes, result: Restoration) -> None:
    colours = list(ORIGINS.values())
    axes.imshow(
        result.origin, cmap=ListedColormap(colours), vmin=-0.5, vmax=len(colours) - 0.5, interpolation="nearest"
    )
    axes.set_axis_off()
    axes.set_title("origin", fontsize=9)
    found = [(name, float((result.origin == Origin[name.upper()]).mean())) for name in ORIGINS if name != "remembered"]
    patches = [Patch(color=ORIGINS[name], label=f"{name} {share:.1%}") for name, share in found]
    axes.legend(handles=patches, loc="upper left", bbox_to_anchor=(0, 0), ncols=3, fontsize=7, frameon=False)


def _draw_side(axes: Axes, camera: Camera, depth: DepthMap, top: int, limits: tuple[float, float], title: str) -> None:
    x, z = side_view(depth, camera.intrinsics, slice(top, top + BAND_ROWS))
    axes.plot(x, z, ".", color="#26415e", markersize=1.5, markeredgewidth=0)
    axes.set_ylim(*limits)
    axes.set(xlabel="x, mm", ylabel="z, mm")
    axes.set_title(f"from above, {title}: rows {top} to {top + BAND_ROWS - 1}", fontsize=9)
    axes.grid(alpha=0.3)


def _limits(depth: DepthMap) -> tuple[float, float]:
    """Find the depths between which nearly all pixels lie, with a margin."""
    low, high = (float(value) for value in np.nanpercentile(depth, (1, 99)))
    margin = 0.05 * (high - low) + 0.005 * high
    return low - margin, high + margin


def _fullest_band(depth: DepthMap) -> int:
    """Find the first of the rows in the middle half that have the most valid pixels."""
    valid = np.isfinite(depth).sum(axis=1)
    total = np.convolve(valid, np.ones(BAND_ROWS), "valid")
    first, last = len(total) // 4, max(3 * len(total) // 4, len(total) // 4 + 1)
    return first + int(np.argmax(total[first:last]))
