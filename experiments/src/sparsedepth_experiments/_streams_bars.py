"""Targets of the stream experiment, and whether a run meets them."""

from __future__ import annotations

from sparsedepth_experiments._streams_methods import BLIND, OURS
from sparsedepth_experiments._streams_page import Results
from sparsedepth_experiments._streams_scores import ObjectScore, SlowScore
from sparsedepth_experiments.harness import Bar

LEFT = {"Kinect v1, poses": (10, 0.60), "RealSense (cup), static": (10, 0.45), "time of flight, static": (5, 0.50)}
"""Number of frames, and largest error left."""
HONESTY, SLOW_HONESTY = (0.5, 2.0), (0.3, 3.0)
UNCOVERED, FLICKER, SLOW, TURNING = 1.1, 0.2, 1.1, 1.05
SECONDS, RATIO, TIMED_SHAPE = 0.066, 4.0, "640 x 480"
GROWN_BYTES = 120_000
"""To keep one map in a hundred of the frames whose memory is measured takes as much."""


def bars_of(results: Results) -> list[Bar]:
    """Compare a run with the targets."""
    return [*_ages(results), *_objects(results), *_slow(results), *_turning(results), *_time(results)]


def _ages(results: Results) -> list[Bar]:
    bars = []
    for name, by in results.ages.items():
        for method in (OURS, BLIND):
            if name in LEFT:
                age, most = LEFT[name]
                bars.append(_most(f"{name}, {method}: error after {age} frames", max(by[method][age].left), most))
            ratios = [ratio for score in by[method].values() for ratio in score.honesty]
            bars.append(_within(f"{name}, {method}: honesty at every age", ratios, HONESTY))
    return bars


def _objects(results: Results) -> list[Bar]:
    bars = []
    for sensor, by in results.objects.items():
        for method in (OURS, BLIND):
            score: ObjectScore = by[method]
            where = f"passing object, {sensor}, {method}"
            bars.append(_most(f"{where}: error of uncovered pixels", score.uncovered, UNCOVERED))
            bars.append(_most(f"{where}: wrong remembered pixels in the shadow", score.wrong, 0))
            bars.append(_most(f"{where}: flicker", max(score.flicker, score.deviation), FLICKER))
    return bars


def _slow(results: Results) -> list[Bar]:
    bars = []
    for sensor, by in results.slow.items():
        for speed, scores in by.items():
            for method in (OURS, BLIND):
                score: SlowScore = scores[method]
                where = f"slow change of {speed:g}, {sensor}, {method}"
                bars.append(_most(f"{where}: error", score.left, SLOW))
                bars.append(_within(f"{where}: honesty, median", [score.honesty or 0.0], SLOW_HONESTY))
                bars.append(_within(f"{where}: honesty, worst frame", [score.extreme or 0.0], SLOW_HONESTY))
    return bars


def _turning(results: Results) -> list[Bar]:
    return [
        _most(f"turning camera, {sensor}, {kind}: worst frame over single frames", score.worst, TURNING)
        for sensor, by in results.turning.items()
        for kind, score in by.items()
    ]


def _time(results: Results) -> list[Bar]:
    bars = []
    for frames, by in results.times.items():
        if not frames.endswith(TIMED_SHAPE):
            continue
        for kind, timing in by.items():
            bars.append(_most(f"CPU s a frame, {frames}, {kind}", timing.mean, SECONDS, "{:.3f}"))
            if timing.ratio is not None:
                bars.append(_most(f"... over the bilateral filter, {frames}, {kind}", timing.ratio, RATIO))
    return [*bars, _most(f"growth of memory over {results.grown[0]:,} frames, bytes", results.grown[1], GROWN_BYTES)]


def _most(what: str, value: float, most: float, form: str = "{:.2f}") -> Bar:
    shown = f"{value}" if isinstance(value, int) else form.format(value)
    return Bar(f"{what} | at most {most:,g}", shown, value <= most)


def _within(what: str, values: list[float], limits: tuple[float, float]) -> Bar:
    low, high = min(values), max(values)
    shown = f"{low:.2f}" if low == high else f"{low:.2f} to {high:.2f}"
    return Bar(f"{what} | {limits[0]:g} to {limits[1]:g}", shown, limits[0] <= low and high <= limits[1])
