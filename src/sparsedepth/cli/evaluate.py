"""Compare a result with the truth."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from sparsedepth.cli.options import (
    InvalidOption,
    JsonOption,
    MapReader,
    ProfileOption,
    ScaleOption,
    ThresholdOption,
    TruthProfileOption,
    TruthScaleOption,
)
from sparsedepth.cli.terminal import print_json, print_line, say, warn
from sparsedepth.files import read_array
from sparsedepth.files.stored import Pixels
from sparsedepth.metrics import bad_pixels, calibration, mae, psnr, rmse
from sparsedepth.vocabulary import DepthImage, DepthMap, InputError, unit_factor


def evaluate_command(
    result: Annotated[Path, typer.Argument(help="The restored map.")],
    truth: Annotated[Path, typer.Argument(help="The ground truth.")],
    profile: ProfileOption = "auto",
    scale: ScaleOption = None,
    invalid: InvalidOption = None,
    truth_profile: TruthProfileOption = None,
    truth_scale: TruthScaleOption = None,
    variance: Annotated[
        Path | None, typer.Option(help="The result's variances, where they are in a file of their own.")
    ] = None,
    threshold: ThresholdOption = 1.0,
    peak: Annotated[float | None, typer.Option(help="Peak of the PSNR; the truth's range by default.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare a result with the ground truth: errors, and the calibration of its variances (1 = calibrated)."""
    if peak is not None and not peak > 0:
        raise InputError(f"--peak is {peak:g}; it must be a positive number")
    image = read_and_warn(result, MapReader(profile, scale, invalid))
    true_scale = scale if truth_scale is None else truth_scale
    true = read_and_warn(truth, MapReader(truth_profile or profile, true_scale, invalid))
    variances = variance_of(result, variance)
    if named_array(truth, "origin") is not None and variances is None:
        say(f"{truth} is itself a restoration, and {result} is not; the order is RESULT TRUTH")
    came, image = image.unit, in_unit_of(true, image)
    facts = errors_of(image.values, true.values, threshold, peak) | {"unit": true.unit or "unknown"}
    if variances is not None:
        variances = variances * unit_factor(came, image.kind, image.unit) ** 2
        facts["calibration"] = _calibration(image.values, true.values, variances)
    if as_json:
        print_json(facts)
    else:
        _print_facts(facts, threshold)


def read_and_warn(path: Path, reader: MapReader) -> DepthImage:
    """Read a map, and print what was assumed of it."""
    image = reader(path)
    if image.assumed:
        warn(image.assumed)
    return image


def named_array(path: Path, name: str) -> Pixels | None:
    """Read a named array of an npz file, if it has one."""
    if path.suffix.lower() != ".npz":
        return None
    with zipfile.ZipFile(path) as archive:
        there = f"{name}.npy" in archive.namelist()
    return read_array(path, name=name) if there else None


def variance_of(result: Path, own_file: Path | None = None) -> Pixels | None:
    """Read the variances of a result, in a file of their own or in its npz file, if there are any."""
    if own_file is not None:
        return read_array(own_file, name="variance" if own_file.suffix.lower() == ".npz" else "")
    return named_array(result, "variance")


def in_unit_of(truth: DepthImage, image: DepthImage) -> DepthImage:
    """Return the result in the truth's unit; metres and millimetres convert, all else must agree."""
    if image.kind != truth.kind:
        raise InputError(
            f"the result is {image.kind} and the truth {truth.kind}; say --profile and --truth-profile, or convert"
        )
    if image.unit == truth.unit:
        return image
    if not (image.unit and truth.unit):
        raise InputError(
            f"the result is in {image.unit or 'an unknown unit'} and the truth in {truth.unit or 'an unknown unit'}; "
            "say --profile and --truth-profile"
        )
    return image.to(truth.unit)


def errors_of(estimate: DepthMap, truth: DepthMap, threshold: float, peak: float | None = None) -> dict[str, Any]:
    """Measure how far a map is from the truth, in its unit; the PSNR is None where the truth is flat."""
    known = np.isfinite(truth)
    error = rmse(estimate, truth, missing="ignore")
    flat = peak is None and np.ptp(truth[known]) == 0
    return {
        "psnr": None if flat else psnr(estimate, truth, peak, missing="ignore"),
        "rmse": error,
        "mae": mae(estimate, truth, missing="ignore"),
        "threshold": threshold,
        "bad_pixels": bad_pixels(estimate, truth, threshold, missing="ignore"),
        "bad_or_missing": bad_pixels(estimate, truth, threshold, missing="bad"),
        "truth_known": float(known.mean()),
        "compared": float((known & np.isfinite(estimate)).mean()),
    }


def _calibration(estimate: DepthMap, truth: DepthMap, variance: Pixels) -> dict[str, Any]:
    if variance.dtype.kind not in "fiu" or variance.shape != estimate.shape:
        raise InputError(f"the variance is {variance.dtype} of shape {variance.shape} but the map {estimate.shape}")
    found = calibration(np.asarray(estimate, np.float64) - truth, variance)
    tenths = zip(found.count, found.variance, found.squared_error, found.ratio, strict=True)
    names = ("pixels", "variance", "squared_error", "ratio")
    return {"overall": found.overall, "deciles": [dict(zip(names, map(float, tenth), strict=True)) for tenth in tenths]}


def _print_facts(facts: dict[str, Any], threshold: float) -> None:
    unit = facts["unit"] if facts["unit"] != "unknown" else "(unit unknown)"
    decibels = "flat truth: give --peak" if facts["psnr"] is None else f"{facts['psnr']:.2f} dB"
    lines = {
        "PSNR": decibels,
        "RMSE": f"{facts['rmse']:.4g} {unit}",
        "MAE": f"{facts['mae']:.4g} {unit}",
        f"off by more than {threshold:g} {unit}": f"{facts['bad_pixels']:.2%} of what is compared",
        "missing or off": f"{facts['bad_or_missing']:.2%} of what the truth knows",
        "compared": f"{facts['compared']:.1%} of all pixels; the truth knows {facts['truth_known']:.1%}",
    }
    for name, value in lines.items():
        print_line(f"{name}: {value}")
    if "calibration" in facts:
        print_line(f"calibration: {facts['calibration']['overall']:.3g} (squared error / variance; 1 = calibrated)")
        for number, tenth in enumerate(facts["calibration"]["deciles"], 1):
            print_line(f"  {number:2d}: variance {tenth['variance']:.3g}, ratio {tenth['ratio']:.3g}")
