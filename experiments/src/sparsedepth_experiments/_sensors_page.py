"""Tables of the page on depth cameras, from the scores of the sensor experiment."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from sparsedepth.markdown import machine, table
from sparsedepth_experiments._sensors_methods import FILTERS, TUNING_STEP
from sparsedepth_experiments._sensors_scores import DECILES, GAUSSIAN_MEDIAN, Error, Score
from sparsedepth_experiments._zoo import SENSOR_IMPULSES
from sparsedepth_experiments.harness import Records

MODES = ("blind", "preset", "calibrated")


@dataclass(frozen=True, eq=False)
class CameraScores:
    """Scores of a camera: of the frames as they are, of filters, and of the method in each mode."""

    raw: Error
    modes: dict[str, Score]
    filters: dict[str, Error] = field(default_factory=dict)
    shape: tuple[int, int, int] = (0, 0, 0)
    """Frames, height, width."""


class Results:
    """Scores by camera and by simulated sensor.

    Parameters
    ----------
    records
        Scores with the keys "camera" and "impulses"; the latter is None for frames that are judged as they are.
    """

    def __init__(self, records: Records[CameraScores]) -> None:
        cameras = {str(key["camera"]): scores for key, scores in records.where(impulses=None)}
        self.raw = {name: scores.raw for name, scores in cameras.items()}
        self.filters = {name: scores.filters for name, scores in cameras.items()}
        self.modes = {name: scores.modes for name, scores in cameras.items()}
        self.shapes = {name: scores.shape for name, scores in cameras.items()}
        self.simulated: dict[str, dict[str, dict[float, tuple[Error, Score]]]] = {}
        """sensor -> mode -> fraction of impulses -> raw error and score."""
        for key, scores in records:
            if isinstance(share := key["impulses"], float):
                for mode, score in scores.modes.items():
                    by_mode = self.simulated.setdefault(str(key["camera"]), {})
                    by_mode.setdefault(mode, {})[share] = scores.raw, score


def facts_of(results: Results) -> dict[str, Any]:
    """Convert the scores to what JSON can hold."""
    return {
        "raw": {name: asdict(error) for name, error in results.raw.items()},
        "filters": {name: {f: asdict(e) for f, e in by.items()} for name, by in results.filters.items()},
        "modes": {name: {mode: asdict(s) for mode, s in by.items()} for name, by in results.modes.items()},
        "simulated": {
            name: {mode: {f"{share:g}": asdict(pair[1]) for share, pair in by.items()} for mode, by in modes.items()}
            for name, modes in results.simulated.items()
        },
    }


def described(results: Results) -> str:
    """Describe frames, modes and definitions."""
    shapes = ", ".join(f"{name}: {n} of {w} x {h} pixels" for name, (n, h, w) in results.shapes.items())
    return (
        f"Frames with a reference: {shapes}. Errors are of measured pixels that have a reference, in standard "
        "deviations of the sensor at the depth of the reference, from the tables of the data set. An error is the root "
        "mean square of the 99 % smallest ones among the pixels of all frames of a camera. *Blind* knows nothing but "
        "the frame. *Preset* is `Sensor.preset`. *Calibrated* is `Sensor.estimate` of frames that are not judged with "
        "it: frames of the sequence in between for Kinect and cup, the other half of the ten frames for time of "
        "flight; the scenes are the same. The camera aims has no sequence, hence no calibration. Each filter has the "
        f"parameter that suits every {TUNING_STEP}rd frame of the camera best, chosen with the reference. The "
        "reference of cup is the mean of its frames and shares the fixed pattern."
    )


def error_table(results: Results) -> str:
    """Tabulate the errors of all methods."""
    cameras = list(results.raw)
    rows = [["raw", *(f"{results.raw[camera].pooled:.2f}" for camera in cameras)]]
    for name in FILTERS:
        rows.append([name, *(_cell(results.filters[camera][name], results.raw[camera]) for camera in cameras)])
    for mode in MODES:
        scores = [results.modes[camera].get(mode) for camera in cameras]
        if any(scores):
            cells = [_cell(s.error, results.raw[c]) if s else "-" for s, c in zip(scores, cameras, strict=True)]
            rows.append([f"ours, {mode}", *cells])
    return table(["error (of raw; parameter)", *cameras], rows)


def _cell(error: Error, raw: Error) -> str:
    parameter = "" if error.parameter is None else f"; {error.parameter:.3g}"
    return f"{error.pooled:.2f} ({error.pooled / raw.pooled:.3f}{parameter})"


def definition_table(results: Results) -> str:
    """Tabulate the other definition of the error: a 99 % RMSE for each frame, and their mean."""
    rows = [
        [
            camera,
            f"{raw.mean:.2f}",
            *(f"{by[m].error.mean / raw.mean:.3f}" if m in by else "-" for m in MODES),
        ]
        for camera, raw in results.raw.items()
        for by in [results.modes[camera]]
    ]
    head = ["mean over frames of their errors", "raw", *(f"{mode}, of raw" for mode in MODES)]
    return table(head, rows)


def variance_table(results: Results) -> str:
    """Tabulate the calibration of the variance and what became of holes."""
    rows = [
        [
            camera,
            mode,
            f"{found.ratio:.2f}",
            f"{found.within:.1%}",
            " ".join(f"{decile:.2f}" for decile in found.deciles),
            f"{found.filled:.0%} / {found.refused:.0%}",
        ]
        for camera, by in results.modes.items()
        for mode, found in by.items()
    ]
    head = ["", "mode", "ratio", "within two std", f"ratio in {DECILES} tenths", "holes filled / refused"]
    return table(head, rows) + (
        f"\n\n*Ratio* is the median of squared error over variance, over {GAUSSIAN_MEDIAN:g}, its value for Gaussian "
        "errors: 1 is calibrated, above 1 the variance is too small. Tenths of the pixels go from the smallest "
        "variance to the largest. Gaussian errors have 95.4 % within two standard deviations."
    )


def simulated_table(results: Results, scenes: int) -> str:
    """Tabulate the errors of simulated sensors with and without impulses."""
    rows = []
    for sensor, modes in results.simulated.items():
        for mode, by in modes.items():
            clean = by[0.0][1].error.pooled
            left = [f"{s.error.pooled:.2f} ({s.error.pooled / raw.pooled:.2f})" for raw, s in by.values()]
            ratios = [f"{s.error.pooled / clean:.2f}" for share, (_, s) in by.items() if share]
            rows.append([sensor, mode, *left, *ratios, " / ".join(f"{s.ratio:.2f}" for _, s in by.values())])
    shares = [f"{share:.0%}" for share in SENSOR_IMPULSES]
    head = ["", "mode", *(f"error at {s} (of raw)" for s in shares), *(f"{s} over 0%" for s in shares[1:]), "ratio"]
    return table(head, rows) + (
        f"\n\n{scenes} room{'s' * (scenes > 1)} a sensor, by `sparsedepth.data.simulated_sensors`; impulses replace so "
        "many of the valid pixels by depths anywhere in the range of the frame. Errors are over all valid pixels, "
        f"impulses and flying pixels included. *Ratio* as above, at {', '.join(shares)} of impulses."
    )


def seconds_table(results: Results) -> str:
    """Tabulate CPU seconds."""
    rows = [
        [camera, f"{width} x {height}", *(f"{by[m].seconds:.2f}" if m in by else "-" for m in MODES)]
        for camera, (_, height, width) in results.shapes.items()
        for by in [results.modes[camera]]
    ]
    text = "CPU seconds a frame, all threads together; blind includes the estimate of the sensor."
    return table(["", "pixels", *MODES], rows) + f"\n\n{text} {machine()}"
