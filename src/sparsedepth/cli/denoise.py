"""Restore depth maps, one or thousands: the commands denoise and inpaint."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from sparsedepth.cli.batch.plan import plan_targets
from sparsedepth.cli.batch.run import RunOptions, run_batch
from sparsedepth.cli.batch.spec import RestoreSpec
from sparsedepth.cli.options import (
    ClusterOption,
    ForceOption,
    InvalidOption,
    MapReader,
    MapsArgument,
    ProfileOption,
    ScaleOption,
    load_dictionary,
    takes_options_of,
    words_of,
)
from sparsedepth.cli.pipes import piped
from sparsedepth.dictionary import Dictionary
from sparsedepth.files import PROFILES
from sparsedepth.hole_filling import HOLES, SIDES
from sparsedepth.restore import METHODS, QUALITIES, Restorer
from sparsedepth.sensors.choice import AUTO, CLEAN, sensor_from
from sparsedepth.sensors.presets import names

Output = Annotated[
    str, typer.Option("-o", "--output", help="A file; or a folder, for several maps or with a slash at its end.")
]
OutputProfile = Annotated[
    str | None,
    typer.Option(
        "--output-profile",
        help="Write as this profile does, instead of as the map came.",
        autocompletion=words_of(PROFILES),
    ),
]
OutputScale = Annotated[float | None, typer.Option("--output-scale", help="Stored number per unit, in the output.")]
VarianceOut = Annotated[
    str | None, typer.Option("--variance-out", help="File (or folder) for the variances, in squared units: .tiff, ...")
]
OriginOut = Annotated[
    str | None,
    typer.Option(
        "--origin-out",
        help="File (or folder) for origins: 0 measured, 1 corrected, 2 filled, 3 refused, 4 smoothed, 5 remembered.",
    ),
]
NpzOption = Annotated[
    bool, typer.Option("--npz", help="Write each map with its variance, origin and unit into one .npz.")
]


def _known_quality(name: str) -> str:
    """Refuse a quality that is not known."""
    if name not in QUALITIES:
        raise typer.BadParameter(f"{name!r} is not one of {', '.join(QUALITIES)}")
    return name


QualityOption = Annotated[
    str,
    typer.Option(
        "--quality",
        metavar=f"[{'|'.join(QUALITIES)}]",
        callback=_known_quality,
        help="Effort; 'paper' is the paper's own, and slow.",
        autocompletion=words_of(QUALITIES),
    ),
]
DictionaryOption = Annotated[
    str | None,
    typer.Option(
        "--dictionary",
        help="A dictionary file, or the name of a shipped one.",
        autocompletion=words_of(Dictionary.builtins()),
    ),
]
MethodOption = Annotated[
    str | None,
    typer.Option("--method", help=f"One of: {', '.join(METHODS)}.", autocompletion=words_of(METHODS)),
]
SensorVariance = Annotated[
    str | None,
    typer.Option(
        "--sensor-variance",
        help="Variance of each pixel, in squared units; a file for all maps, or a folder with one of each name.",
    ),
]
ConfidenceOption = Annotated[
    str | None,
    typer.Option(
        "--confidence",
        help="Confidences of ARKit (low, medium, high) instead of variances: a file for all maps, or a folder.",
    ),
]
GuideOption = Annotated[
    str | None,
    typer.Option(
        "--guide",
        help="A picture of the same view and size, to fill holes by; a file for all maps, or a folder with one of each "
        "name (x.png, or x_color.jpg for x_depth.png).",
    ),
]
SensorOption = Annotated[
    str | None,
    typer.Option(
        "--sensor",
        metavar="NAME|FILE",
        help=f"Noise of the camera: {', '.join(names())}, a file of calibrate, auto (from each map), or clean (none).",
        autocompletion=words_of((AUTO, CLEAN, *names())),
    ),
]
FillOption = Annotated[
    str,
    typer.Option(
        "--fill",
        metavar=f"[{'|'.join(SIDES)}]",
        help="Side that holes are filled from; auto is background for stereo and structured light.",
        autocompletion=words_of(SIDES),
    ),
]
HolesOption = Annotated[
    str,
    typer.Option(
        "--holes",
        metavar="[auto|all]",
        help="Which holes are filled; all = large ones too.",
        autocompletion=words_of(HOLES),
    ),
]
JobsOption = Annotated[int | None, typer.Option("--jobs", help="Files at the same time; all cores by default.", min=1)]
SkipOption = Annotated[bool, typer.Option("--skip-existing", help="Skip maps whose result exists.")]
ResumeOption = Annotated[
    bool, typer.Option("--resume", help="Skip maps whose result is complete and has the same inputs and options.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document with the outcome of each file.")]
StrictOption = Annotated[
    bool,
    typer.Option("--strict", help="Fail files with a warning: codes taken for depths, no guide, mostly holes."),
]


def _restore(
    inputs: MapsArgument,
    output: Output,
    profile: ProfileOption = "auto",
    scale: ScaleOption = None,
    invalid: InvalidOption = None,
    output_profile: OutputProfile = None,
    output_scale: OutputScale = None,
    variance_out: VarianceOut = None,
    origin_out: OriginOut = None,
    npz: NpzOption = False,
    quality: QualityOption = "balanced",
    dictionary: DictionaryOption = None,
    method: MethodOption = None,
    sensor: SensorOption = None,
    sensor_variance: SensorVariance = None,
    confidence: ConfidenceOption = None,
    guide: GuideOption = None,
    fill: FillOption = "auto",
    holes: HolesOption = "auto",
    jobs: JobsOption = None,
    force: ForceOption = False,
    skip_existing: SkipOption = False,
    resume: ResumeOption = False,
    cluster: ClusterOption = None,
    as_json: JsonOption = False,
    strict: StrictOption = False,
    *,
    title: str,
    **wanted: Any,
) -> None:
    """Restore maps; the keywords are the title of the progress bar and further options of `Restorer`."""
    options = {"quality": quality, "fill": fill, "holes": holes, **_sensor_option(sensor), **wanted}
    reader = MapReader(profile, scale, invalid)
    with piped(inputs, output, ".npz" if npz else None) as (sources, result):
        targets = plan_targets(sources, result, variance_out, origin_out, npz)
        spec = _spec(
            options, dictionary, method, reader, output_profile, output_scale, sensor_variance, guide, confidence
        )
        run = RunOptions(result, jobs, force, skip_existing, resume, cluster, as_json, strict)
        run_batch(title, spec, targets, run)


@takes_options_of(_restore)
def denoise_command(
    *,
    second_pass: Annotated[
        bool, typer.Option("--second-pass", help="Fill outliers that moved clearly like holes; for --method paper.")
    ] = False,
    no_fill: Annotated[bool, typer.Option("--no-fill", help="Leave holes as they are: --fill none.")] = False,
    **options: Any,
) -> None:
    """Correct noisy pixels and fill holes, with a variance and an origin for each pixel.

    One bad file does not stop the others: the exit code is then 1. Results are whole or absent, never half-written.
    The name - is standard input, or standard output.
    """
    fill = "none" if no_fill else options["fill"]
    _restore(**{**options, "fill": fill}, title="denoising", second_pass=second_pass)


@takes_options_of(_restore)
def inpaint_command(**options: Any) -> None:
    """Fill holes and leave what was measured as it is; options, files and exit codes are those of denoise."""
    _restore(**options, title="inpainting", correct=False)


def _sensor_option(sensor: str | None) -> dict[str, Any]:
    """Return the sensor that the maps come from, if one is named."""
    return {} if sensor is None else {"sensor": sensor_from(sensor)}


def _spec(
    options: dict[str, Any], dictionary: str | None, method: str | None, reader: MapReader, *more: Any
) -> RestoreSpec:
    """Return what is done to every map; options that cannot be met are refused now."""
    if method is not None:
        options = {**options, "method": method}
    if dictionary is not None:
        options = {**options, "dictionary": load_dictionary(dictionary)}
    return RestoreSpec(Restorer(**options), options, reader, *more)
