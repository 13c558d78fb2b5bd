"""Tables of the page on streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np

from sparsedepth.markdown import machine, table
from sparsedepth_experiments._streams_methods import EXPONENTIAL, MEAN, OURS, PERSISTENCE_FRAMES, WINDOWS, Parameters
from sparsedepth_experiments._streams_runs import TRIM_SIGMAS, WRONG_SIGMAS
from sparsedepth_experiments._streams_scores import AGE_BINS, SPARE, Ages, ObjectScore, SlowScore, TurnScore
from sparsedepth_experiments._streams_time import Timing

DEVELOPMENT = (
    "**All recorded sequences are development sequences**: settings were chosen with them in view, nothing of them is "
    "held out."
)


@dataclass(frozen=True, eq=False)
class Results:
    """Scores of a run of the experiment; those of its jobs are merged."""

    ages: dict[str, Ages] = field(default_factory=dict)
    """By sequence."""
    parameters: dict[str, Parameters] = field(default_factory=dict)
    """Best parameters of the filters over time, by sequence."""
    pixels: dict[str, list[float | None]] = field(default_factory=dict)
    """Honesty by the age of the pixel, in the bins of `AGE_BINS`."""
    objects: dict[str, dict[str, ObjectScore]] = field(default_factory=dict)
    """sensor -> method."""
    slow: dict[str, dict[float, dict[str, SlowScore]]] = field(default_factory=dict)
    """sensor -> standard deviations a frame -> method."""
    turning: dict[str, dict[str, TurnScore]] = field(default_factory=dict)
    """sensor -> what is known and how fast it turns."""
    times: dict[str, dict[str, Timing]] = field(default_factory=dict)
    """Frames -> kind of stream."""
    grown: tuple[int, int] = (0, 0)
    """Number of frames, and bytes by which memory grows."""

    @classmethod
    def merged(cls, parts: Sequence[Results]) -> Results:
        """Merge the scores of jobs; names of sequences, sensors and frames are of one job each."""
        names = [each.name for each in fields(cls) if each.name != "grown"]
        found = {name: {k: v for part in parts for k, v in getattr(part, name).items()} for name in names}
        return cls(**found, grown=max((part.grown for part in parts), default=(0, 0)))

    def facts(self) -> dict[str, Any]:
        """Convert the scores to what JSON can hold."""
        return {
            "ages": {name: _plain(by) for name, by in self.ages.items()},
            "parameters": {name: {m: list(values) for m, values in by.items()} for name, by in self.parameters.items()},
            "pixels": self.pixels,
            "objects": _plain(self.objects),
            "slow": {name: _plain(by) for name, by in self.slow.items()},
            "turning": _plain(self.turning),
            "seconds": _plain(self.times),
            "grown": list(self.grown),
        }


def _plain(scores: Mapping[Any, Mapping[Any, Any]]) -> dict[str, dict[str, Any]]:
    """Convert scores in two levels to dictionaries."""
    return {f"{outer}": {f"{inner}": asdict(score) for inner, score in by.items()} for outer, by in scores.items()}


def described(scenes: str) -> str:
    """Define what is measured."""
    return "\n".join(
        [
            "* *Error*: root mean square of the 99 % smallest errors of measured pixels, in standard deviations of the "
            "sensor at that depth, the standard error of the reference taken off, over that of the raw frames.",
            "* *Honesty*: median of squared error over variance, over 0.455; 1 is honest, above 1 the variance is too "
            "small.",
            "* References. Kinect: the data set's, of frames 240 and 260; they have seen some of the frames. "
            "RealSense: the mean of the 21 frames after the ten of the run. It shares the fixed pattern of the sensor, "
            "so the preset is used without it. Time of flight: each half of ten frames is judged by the mean of the "
            f"other. Simulated: the truth. Means leave out what is farther than {TRIM_SIGMAS:g} standard deviations "
            "from the median.",
            "* *Stream* is given the preset of its sensor, *unknown sensor* nothing, *no poses* the intrinsics alone. "
            "*denoise* restores each frame alone, and knows the sensor.",
            f"* *Running mean* of the last {', '.join(map(str, WINDOWS[:-1]))} or of all frames. *Exponential filter*: "
            "new frames enter with a weight, unless they differ by more than a threshold, in standard deviations; then "
            f"it starts anew. It keeps missing pixels for {PERSISTENCE_FRAMES} frames. Such filters come with cameras. "
            "Both have the parameters that suit each sequence best, chosen with the reference.",
            "* *Mean of warped frames* is the limit: the reference tells which pixels of earlier frames see the same "
            "surface, and leaves outliers out.",
            f"* Simulated scenes: {scenes}.",
        ]
    )


def age_table(results: Results, name: str) -> str:
    """Tabulate error and honesty of a sequence by the number of frames."""
    by = results.ages[name]
    ages = list(by[OURS])
    rows = [
        [_named(method, results.parameters[name]), *(_age_cell(scores[age].left, scores[age].honesty) for age in ages)]
        for method, scores in by.items()
    ]
    return table(["error (honesty) after frames", *map(str, ages)], rows)


def _age_cell(left: Sequence[float], honesty: Sequence[float]) -> str:
    return f"{np.mean(left):.2f}" + (f" ({np.mean(honesty):.2f})" if honesty else "")


def _named(method: str, parameters: Parameters) -> str:
    if method == MEAN:
        window = parameters[MEAN][0]
        return f"{method} of {'all' if window == WINDOWS[-1] else f'{window:g}'}"
    if method == EXPONENTIAL:
        return f"{method}, {parameters[method][0]:g}, {parameters[method][1]:g}"
    return method


def filled_table(results: Results) -> str:
    """Tabulate what became of missing pixels after the last age of each sequence."""
    names = list(results.ages)
    methods = [method for method in results.ages[names[0]] if method != "raw"]
    rows = []
    for method in dict.fromkeys([*methods, *(each for by in results.ages.values() for each in by if each != "raw")]):
        cells = []
        for name in names:
            scores = results.ages[name].get(method)
            last = scores[max(scores)] if scores else None
            cells.append(f"{np.mean(last.filled):.0%} / {np.mean(last.wrong):.1%}" if last else "-")
        rows.append([method, *cells])
    return table(["filled / of those wrong", *names], rows) + (
        "\n\nMissing pixels that have a depth after the last frame, and how many of those with a reference are wrong "
        f"by more than {WRONG_SIGMAS:g} standard deviations. References of recorded frames have few of these pixels."
    )


def pixel_table(results: Results) -> str:
    """Tabulate honesty by the age of the pixel."""
    ages = [f"{low}" if low == high else f"{low} to {high}" if high < 1000 else f"{low} on" for low, high in AGE_BINS]
    rows = [
        [name, *("-" if ratio is None else f"{ratio:.2f}" for ratio in ratios)]
        for name, ratios in results.pixels.items()
    ]
    return table(["honesty by measurements in the pixel", *ages], rows)


def object_table(results: Results) -> str:
    """Tabulate ghosts and flicker while an object passes."""
    rows = [
        [
            sensor,
            _named(method, results.parameters[f"{sensor}, passing object"]),
            f"{score.uncovered:.2f}",
            f"{score.ghosts:.2%}",
            f"{score.moving:.2f}",
            f"{score.misplaced:.1%}",
            f"{score.wrong} of {score.shadow}",
            f"{score.flicker:.2f}",
            f"{score.deviation:.2f}",
        ]
        for sensor, by in results.objects.items()
        for method, score in by.items()
    ]
    head = ["sensor", "", "uncovered, of raw", "ghosts", "object, of raw", "object, wrong", "wrong in the shadow"]
    return table([*head, "flicker, of raw", "deviation, of raw"], rows) + (
        "\n\n*Uncovered*: error of pixels in the third frame after the object has left them. *Ghosts*: those that are "
        f"wrong by more than {WRONG_SIGMAS:g} standard deviations; raw frames have outliers. *Object*: median error of "
        "its own pixels, and how many are wrong. *Shadow*: pixels beside the object that the camera does not measure; "
        "of those with a depth, so many are wrong; of streams, those that are remembered. *Flicker*: "
        "differences of successive frames at pixels that nothing "
        "ever covers. *Deviation*: median over these of the standard deviation over ten frames."
    )


def slow_table(results: Results) -> str:
    """Tabulate error and honesty in a region that changes slowly."""
    rows = [
        [sensor, method, *(_slow_cell(by[speed][method]) for speed in by)]
        for sensor, by in results.slow.items()
        for method in next(iter(by.values()))
    ]
    speeds = [f"{speed:g} a frame" for speed in next(iter(results.slow.values()))]
    return table(["sensor", "", *speeds], rows) + (
        "\n\nA disc approaches by so many standard deviations a frame. Error over raw, and its worst frame. Honesty: "
        f"the median of the changing frames, and the frame farthest from 1. Single frames: every {SPARE}th. "
        "Parameters of the filters are those of each speed."
    )


def _slow_cell(score: SlowScore) -> str:
    honest = "" if score.honesty is None else f"; {score.honesty:.2f}, {score.extreme:.2f}"
    return f"{score.left:.2f}, {score.worst:.2f}{honest}"


def turning_table(results: Results) -> str:
    """Tabulate streams without poses of a camera that stops and turns."""
    rows = [
        [sensor, kind, f"{s.mean:.2f}", f"{s.worst:.2f}", f"{s.of_denoise:.2f}", f"{s.lost:.0%}"]
        for sensor, by in results.turning.items()
        for kind, s in by.items()
    ]
    head = ["sensor", "", "of single live frames", "worst frame", "of denoise", "lost"]
    return table(head, rows) + (
        "\n\nThe camera moves, stops, turns by so many pixels a frame, and stops. Errors over those of the same frames "
        "restored one by one, by new streams and by `denoise`. *Lost*: fraction of the frames."
    )


def seconds_table(results: Results) -> str:
    """Tabulate CPU seconds."""
    rows = [
        [frames, kind, f"{t.mean:.4f}", f"{t.median:.4f}", f"{t.slowest:.3f}", f"{t.ratio:.1f}" if t.ratio else "-"]
        for frames, by in results.times.items()
        for kind, t in by.items()
    ]
    head = ["frames", "stream", "mean", "median", "slowest", "mean, of `cv2.bilateralFilter(d=9)`"]
    return table(head, rows) + (
        "\n\nCPU seconds a frame, all threads together, the first frames and the estimate of the sensor included. The "
        f"bilateral filter restores the same frames in turn. Memory grows by {results.grown[1]} bytes from the "
        f"first tenth to the end of {results.grown[0]:,} frames of 64 x 48 pixels, whose maps have "
        f"12,288 bytes. {machine()}"
    )
