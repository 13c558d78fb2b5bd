"""Known sensors, each number with its source."""

from __future__ import annotations

from sparsedepth.sensors.laws import Correlation, PowerLaw, TableLaw
from sparsedepth.sensors.record import Sensor

_KINECT = "measured on 18 frames of a 7-Scenes sequence against a fusion of other frames (law off by 4 % at most bins)"
_D435 = "measured on 12 raw frames of a hand-held D4xx whose steps are those of a D435"
_D455 = "measured on 20 frames of a static D4xx whose steps are those of a D455 (law off by 8 %)"
_ZENSE = "measured on 10 frames of a static Pico Zense outdoors, 0.65 to 1.4 m"
_AZURE_SHEET = "data sheet: Azure Kinect DK hardware specifications, NFOV unbinned"
_INTEL = (
    "Grunnet-Jepsen et al., Best-known methods for tuning Intel RealSense D400 cameras: RMS error = z^2 * sub-pixel "
    "error / (focal length * baseline)"
)


def names() -> list[str]:
    """List the names of all presets.

    Returns
    -------
    list of str

    Examples
    --------
    >>> "kinect_v1" in names()
    True
    """
    return sorted(PRESETS)


PRESETS: dict[str, Sensor] = {
    "kinect_v1": Sensor(
        name="kinect_v1",
        unit="mm",
        noise=PowerLaw(constant=0.53, factor=1.3e-6),
        step=PowerLaw(factor=2.9e-6),
        correlation=Correlation(along_rows=6.8, along_columns=7.0, exponent=1.0, white=0.13),
        temporal=0.3,
        outliers=0.0036,
        outlier_kind="mixed",
        domain="1/z",
        nearest=500.0,
        farthest=4000.0,
        sources={
            "noise": f"{_KINECT}; the total of 0.53 + 1.56e-6 z^2 without the part of the steps",
            "step": f"{_KINECT}; 1/8 px of disparity, as in Khoshelham and Elberink, Sensors 2012",
            "correlation": f"{_KINECT}; lags 1 to 8 px",
            "temporal": "measured: 0.3 to 0.45 between adjacent frames, 0.18 at six frames with motion",
            "outliers": f"{_KINECT}; beyond 6 standard deviations",
            "nearest": "Khoshelham and Elberink, Sensors 2012: 0.5 to 5 m; Kinect for Windows SDK: 0.8 to 4 m",
        },
    ),
    "realsense_d435": Sensor(
        name="realsense_d435",
        unit="mm",
        noise=TableLaw(
            depths=(675.0, 814.0, 965.0, 1157.0, 1338.0, 1603.0, 2032.0, 3123.0, 4741.0, 10000.0),
            lengths=(1.3, 1.95, 2.7, 3.6, 5.0, 8.1, 16.3, 39.9, 85.0, 380.0),
        ),
        step=PowerLaw(factor=1.65e-6),
        correlation=Correlation(along_rows=11.5, along_columns=7.2, exponent=1.6, white=0.02),
        temporal=0.12,
        outliers=0.0036,
        outlier_kind="mixed",
        domain="1/z",
        nearest=280.0,
        farthest=10000.0,
        sources={
            "noise": f"{_D435}; beyond 4.7 m it is continued as z^2",
            "step": f"{_D435}; 1/32 px of disparity at f 382 px, baseline 50 mm",
            "correlation": f"{_D435}; lags 1 to 8 px",
            "temporal": f"{_D435}; 0.12 at one frame, 0.05 at three",
            "pattern": "none of its own: the camera moved, so the measured noise holds it",
            "outliers": f"{_D435}; beyond 6 standard deviations",
            "nearest": "data sheet: Intel RealSense D400 series, D435: 0.28 m; the far limit is a convention",
        },
    ),
    "realsense_d455": Sensor(
        name="realsense_d455",
        unit="mm",
        noise=PowerLaw(factor=2.6e-6),
        step=PowerLaw(factor=1.0e-6),
        correlation=Correlation(along_rows=11.0, along_columns=7.4, exponent=1.6, white=0.04),
        temporal=0.04,
        pattern=1.1,
        inflation=0.85,
        outliers=0.0041,
        outlier_kind="mixed",
        domain="1/z",
        nearest=400.0,
        farthest=10000.0,
        sources={
            "noise": _D455,
            "step": f"{_D455}; 1/32 px of disparity at f * baseline of 31 m px",
            "correlation": f"{_D455}; lags 1 to 8 px",
            "temporal": _D455,
            "pattern": f"{_D455}; 1.05 mm on a plane where the temporal noise is 0.94 mm",
            "inflation": "measured on 10 of these frames, against the mean of the sensor",
            "outliers": f"{_D455}; beyond 6 standard deviations",
            "nearest": "data sheet: Intel RealSense D455: 0.4 m; the far limit is a convention",
        },
    ),
    "realsense_d415": Sensor(
        name="realsense_d415",
        unit="mm",
        noise=PowerLaw(factor=0.08 / (610.0 * 55.0)),
        step=PowerLaw(factor=1 / 32 / (610.0 * 55.0)),
        correlation=Correlation(along_rows=11.0, along_columns=7.4, exponent=1.6, white=0.03),
        temporal=0.08,
        pattern=1.1,
        outliers=0.004,
        outlier_kind="mixed",
        domain="1/z",
        nearest=310.0,
        farthest=10000.0,
        sources={
            "noise": f"{_INTEL}; sub-pixel error 0.08 px, f 610 px (65 degrees at 848 columns), baseline 55 mm",
            "step": f"{_INTEL}; 1/32 px, the same f and baseline",
            "correlation": "assumed: mean of the D435 and D455 presets, the same matcher",
            "temporal": "assumed: mean of the D435 and D455 presets",
            "pattern": "assumed: that of the D455 preset",
            "outliers": "assumed: that of the D455 preset",
            "nearest": "data sheet: Intel RealSense D400 series, D415; the far limit is a convention",
        },
    ),
    "azure_kinect": Sensor(
        name="azure_kinect",
        unit="mm",
        noise=TableLaw(depths=(500.0, 1500.0, 3000.0, 3860.0), lengths=(1.0, 1.5, 4.0, 17.0)),
        step=PowerLaw(constant=1.0),
        correlation=Correlation(along_rows=1.5, along_columns=1.5, exponent=1.4, white=0.2),
        outliers=0.002,
        outlier_kind="flying",
        domain="z",
        nearest=500.0,
        farthest=3860.0,
        sources={
            "noise": f"{_AZURE_SHEET}: random error at most 17 mm, confirmed by Toelgyessy et al., Sensors 2021; "
            "that bound stands at the far limit, the nearer values are assumed: calibrate your camera",
            "step": "data format: 16 bit, 1 mm",
            "correlation": "assumed: weaker than that of the Pico Zense preset, which is filtered on the camera",
            "outliers": "assumed",
            "nearest": f"{_AZURE_SHEET}: 0.5 to 3.86 m",
        },
    ),
    "pico_zense": Sensor(
        name="pico_zense",
        unit="mm",
        noise=TableLaw(
            depths=(671.0, 726.0, 802.0, 878.0, 955.0, 1047.0, 1104.0, 1187.0, 1287.0),
            lengths=(8.4, 7.4, 8.5, 10.3, 13.2, 18.0, 21.0, 35.2, 55.1),
        ),
        step=PowerLaw(constant=1.0),
        correlation=Correlation(along_rows=2.7, along_columns=2.5, exponent=1.35, white=0.0),
        inflation=1.3,
        outliers=0.0018,
        outlier_kind="flying",
        domain="z",
        nearest=300.0,
        farthest=1500.0,
        sources={
            "noise": f"{_ZENSE}, in sunlight: indoors it is less",
            "step": f"{_ZENSE}; 1 mm",
            "correlation": f"{_ZENSE}; lags 1 to 8 px",
            "temporal": f"{_ZENSE}; none",
            "inflation": "measured on 5 of these frames, the noise of the reference included",
            "outliers": f"{_ZENSE}; beyond 6 standard deviations",
            "nearest": "measured: the range of the frames, rounded",
        },
    ),
}
"""Sensors by name."""
