"""Targets of the sensor experiment, and whether a run meets them."""

from __future__ import annotations

import numpy as np

from sparsedepth_experiments._sensors_page import Results
from sparsedepth_experiments._sensors_scores import Score
from sparsedepth_experiments.harness import Bar

LEFT = {
    "kinect_v1_7scenes": 0.69,
    "realsense_d4xx_aims": 0.84,
    "realsense_d4xx_cup": 0.89,
    "tof_pico_zense": 0.51,
}
"""Largest error left by the blind mode, as a fraction of the raw error."""
RATIO = (0.5, 2.0)
CALIBRATED_RATIO = (0.8, 1.25)
CALIBRATED_DECILES = (0.4, 2.5)
WITHIN = (0.90, 0.98)
"""Least and largest values of the calibration of the variance."""
REFUSED = 0.3
"""Largest fraction of the missing pixels that is refused."""
IMPULSES = 1.05
"""Largest error with impulses over the error without."""
SECONDS = 0.8
"""CPU seconds for a frame of 640 x 480 pixels, the estimate of the sensor included."""


def bars_of(results: Results) -> list[Bar]:
    """Compare a run with the targets and with the filters of the same run."""
    bars = [bar for camera in results.modes for bar in _of_camera(camera, results)]
    for name, modes in results.simulated.items():
        bars += _of_simulation(name, {share: score for share, (_, score) in modes["blind"].items()})
    timed = [camera for camera, shape in results.shapes.items() if shape[1:] == (480, 640)]
    if timed:
        seconds = float(np.mean([results.modes[camera]["blind"].seconds for camera in timed]))
        bars.append(Bar(f"CPU s a frame of 640 x 480: at most {SECONDS:g}", f"{seconds:.2f}", seconds <= SECONDS))
    return bars


def _of_camera(camera: str, results: Results) -> list[Bar]:
    found, raw, filters = results.modes[camera]["blind"], results.raw[camera].pooled, results.filters[camera]
    left, best = found.error.pooled / raw, min(filters, key=lambda name: filters[name].pooled)
    least = filters[best].pooled / raw
    bars = [Bar(f"{camera}: error left below the best filter ({best})", f"{left:.3f}, {least:.3f}", left < least)]
    if camera in LEFT:
        bars.append(Bar(f"{camera}: error left at most {LEFT[camera]:.2f}", f"{left:.3f}", left <= LEFT[camera]))
    bars.append(_between(f"{camera}, blind: ratio", found.ratio, RATIO))
    bars.append(_between(f"{camera}, blind: within two std", found.within, WITHIN))
    bars.append(Bar(f"{camera}: refused below {REFUSED:.0%}", f"{found.refused:.0%}", found.refused < REFUSED))
    if "calibrated" in results.modes[camera]:
        known = results.modes[camera]["calibrated"]
        bars.append(_between(f"{camera}, calibrated: ratio", known.ratio, CALIBRATED_RATIO))
        bars.append(_between(f"{camera}, calibrated: least tenth", min(known.deciles), CALIBRATED_DECILES))
        bars.append(_between(f"{camera}, calibrated: greatest tenth", max(known.deciles), CALIBRATED_DECILES))
    return bars


def _of_simulation(name: str, by_impulses: dict[float, Score]) -> list[Bar]:
    bars = [_between(f"simulated {name}, {share:.0%}: ratio", s.ratio, RATIO) for share, s in by_impulses.items()]
    without = by_impulses[min(by_impulses)].error.pooled
    more = max(score.error.pooled for score in by_impulses.values()) / without
    return [
        *bars,
        Bar(
            f"simulated {name}: error with impulses at most {IMPULSES:g} of that without",
            f"{more:.3f}",
            more <= IMPULSES,
        ),
    ]


def _between(what: str, value: float, limits: tuple[float, float]) -> Bar:
    return Bar(f"{what} {limits[0]:g} to {limits[1]:g}", f"{value:.3f}", limits[0] <= value <= limits[1])
