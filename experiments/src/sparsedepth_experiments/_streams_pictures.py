"""Pictures of the stream experiment: curves against age, a passing object, maps before and after, a video."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure

from sparsedepth.pictures import UNKNOWN, write_figure
from sparsedepth.stream_video import VideoWriter
from sparsedepth.streams import Intrinsics, Stream
from sparsedepth.vocabulary import Floats
from sparsedepth_experiments._streams_methods import (
    ALIGNED,
    BLIND,
    EXPONENTIAL,
    LIMIT,
    MEAN,
    OURS,
    RAW,
    SINGLE,
    Parameters,
    methods_for,
)
from sparsedepth_experiments._streams_runs import Run
from sparsedepth_experiments._streams_scores import Ages

COLUMNS = 3
STYLES = {
    OURS: ("C3", "o", "-"),
    BLIND: ("C1", "D", "-"),
    ALIGNED: ("C5", "v", "--"),
    SINGLE: ("C0", "s", "--"),
    MEAN: ("C2", "^", "--"),
    EXPONENTIAL: ("C4", "P", "--"),
    LIMIT: ("black", "", ":"),
}
"""Colour, marker and line of each method."""
ERROR_SIGMAS = 8.0
"""Ends of the colours of errors, in standard deviations of the sensor."""
FRAMES_PER_SECOND = 10.0


def draw_ages(ages: Mapping[str, Ages], path: Path, shows: str) -> None:
    """Draw the ``left`` or ``honesty`` of all sequences against the number of frames."""
    rows = -(-len(ages) // COLUMNS)
    figure = Figure(figsize=(4.6 * COLUMNS, 3.2 * rows + 0.7), dpi=80, layout="constrained")
    plots = figure.subplots(rows, COLUMNS, squeeze=False).ravel()
    for axes, (name, by) in zip(plots, ages.items(), strict=False):
        _draw_curves(axes, name, by, shows)
    for axes in plots[len(ages) :]:
        axes.set_axis_off()
    lines = {str(line.get_label()): line for axes in plots[: len(ages)] for line in axes.get_lines()}
    shown = [method for method in STYLES if method in lines]
    figure.legend([lines[method] for method in shown], shown, loc="outside lower center", ncols=4, fontsize=9)
    write_figure(figure, path)


def _draw_curves(axes: Axes, name: str, by: Ages, shows: str) -> None:
    for method, scores in by.items():
        values = [np.mean(getattr(score, shows)) for score in scores.values() if getattr(score, shows)]
        if values and method != RAW:
            colour, marker, line = STYLES[method]
            width = 2.4 if method in (OURS, BLIND) else 1.2
            axes.plot(list(scores), values, line, color=colour, marker=marker, linewidth=width, label=method)
    axes.axhline(1.0, color="#7c8a99", linewidth=1)
    ages = list(by[OURS])
    axes.set(xscale="log", yscale="log", xlabel="frames", xticks=ages, ylim=(0.12, 2.5))
    axes.set_xticks([], minor=True)
    axes.set_xticklabels([f"{age}" for age in ages])
    axes.set_yticks([0.2, 0.3, 0.5, 1.0, 2.0], ["0.2", "0.3", "0.5", "1", "2"])
    axes.set_yticks([], minor=True)
    axes.set_title(name, fontsize=10)
    axes.grid(alpha=0.3)


def draw_object(run: Run, parameters: Parameters, path: Path) -> None:
    """Draw the errors of all methods in a frame in which an object passes."""
    k = len(run.frames) * 2 // 3
    methods = methods_for([run], parameters)
    figure = Figure(figsize=(14.5, 5.6), dpi=80, layout="constrained")
    plots = figure.subplots(2, 4).ravel()
    _draw_map(plots[0], run.frames[k], "the frame, mm", "viridis", Normalize(*_limits(run.details[k].truth)))
    for axes, (name, restore) in zip(plots[1:], methods.items(), strict=False):
        errors = (restore(run, [k])[k].depth - run.details[k].truth) / run.details[k].std
        _draw_map(axes, errors, name, "RdBu", Normalize(-ERROR_SIGMAS, ERROR_SIGMAS))
    figure.suptitle("error in standard deviations of the sensor: red is too near, magenta is unknown", fontsize=11)
    write_figure(figure, path)


def draw_maps(run: Run, path: Path) -> None:
    """Draw the last frame of a camera that moves: before, after, standard deviation, and error over it."""
    last, stream = len(run.frames) - 1, Stream(run.sensor, Intrinsics(*run.intrinsics), unit="mm")
    result = [stream.push(frame, pose=pose) for frame, pose in zip(run.frames, run.poses, strict=True)][-1]
    truth, std = run.details[last].truth, np.sqrt(np.where(np.isfinite(result.variance), result.variance, np.nan))
    figure = Figure(figsize=(15, 3.3), dpi=80, layout="constrained")
    plots, depths = figure.subplots(1, 4), Normalize(*_limits(truth))
    _draw_map(plots[0], run.frames[last], f"frame {last + 1} before, mm", "viridis", depths)
    _draw_map(plots[1], result.depth, "after, mm", "viridis", depths)
    ends = [float(end) for end in np.nanpercentile(std, (1, 99))]
    _draw_map(plots[2], std, "standard deviation, mm", "bone", LogNorm(ends[0], max(ends[1], 1.01 * ends[0])))
    _draw_map(plots[3], (result.depth - truth) / std, "error, in these deviations", "RdBu", Normalize(-4, 4))
    write_figure(figure, path)


def write_video(run: Run, path: Path) -> None:
    """Write a video of a stream: before, after, and the logarithm of the standard deviation."""
    stream, video = Stream(run.sensor, unit="mm"), VideoWriter(path, FRAMES_PER_SECOND)
    for frame in run.frames:
        video.add(frame, stream.push(frame))
    video.close()


def _draw_map(axes: Axes, values: Floats, title: str, colours: str, norm: Normalize) -> None:
    shown: Any = axes.imshow(
        np.ma.masked_invalid(values),
        cmap=colormaps[colours].with_extremes(bad=UNKNOWN),
        norm=norm,
        interpolation="nearest",
    )
    axes.set_axis_off()
    axes.set_title(title, fontsize=10)
    axes.figure.colorbar(shown, ax=axes, shrink=0.85, pad=0.01)


def _limits(depth: Floats) -> tuple[float, float]:
    low, high = np.nanpercentile(depth, (0.5, 99.5))
    return float(low), float(high)
