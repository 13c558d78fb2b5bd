"""Restore depth maps, one or thousands: denoise and inpaint."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

import sparsedepth
from sparsedepth.cli.batch import Outcome, Rate, WritingGate, in_parallel, whole_files_only
from sparsedepth.cli.jobs import attempt
from sparsedepth.cli.journal import Journal
from sparsedepth.cli.places import (
    Sources,
    dictionary_named,
    find_sources,
    is_folder,
    require_apart,
    require_new,
    targets,
)
from sparsedepth.cli.reading import InvalidOption, Reading, ScaleOption, UnitOption
from sparsedepth.cli.tasks import Notes, Place, RestoringTask, Shared
from sparsedepth.cli.terminal import ClusterOption, ForceOption, print_json, print_line, progress_bar, say, say_error
from sparsedepth.cluster import Restoring, connect, slots
from sparsedepth.files.formats import format_of
from sparsedepth.parallel import cores, map_in_threads, one_blas_thread
from sparsedepth.restore import METHODS, Restorer
from sparsedepth.vocabulary import InputError

MANY = 32
"""Maps from which it pays to start a process for each job; threads wait for each other."""


class Quality(StrEnum):
    fast = "fast"
    balanced = "balanced"
    best = "best"
    paper = "paper"


Inputs = Annotated[
    list[str], typer.Argument(help="Maps, folders of maps, or quoted patterns ('scans/**/*.png').", show_default=False)
]
Output = Annotated[
    str, typer.Option("-o", "--output", help="A file; or a folder, for several maps or with a slash at its end.")
]
OutputUnit = Annotated[
    str | None, typer.Option("--output-unit", help="Write as this --unit does, instead of as the map came.")
]
OutputScale = Annotated[float | None, typer.Option("--output-scale", help="Stored number per unit, in the output.")]
VarianceOut = Annotated[
    str | None, typer.Option("--variance-out", help="File (or folder) for the variances, in squared units: .tiff, ...")
]
OriginOut = Annotated[
    str | None,
    typer.Option("--origin-out", help="File (or folder) for origins: 0 measured, 1 corrected, 2 filled, 3 refused."),
]
NpzOption = Annotated[
    bool, typer.Option("--npz", help="Write each map with its variance, origin and unit into one .npz.")
]
QualityOption = Annotated[Quality, typer.Option("--quality", help="Effort; 'paper' is the paper's own, and slow.")]
DictionaryOption = Annotated[
    str | None, typer.Option("--dictionary", help="A dictionary file, or the name of a shipped one.")
]
MethodOption = Annotated[str | None, typer.Option("--method", help=f"One of: {', '.join(METHODS)}.")]
SensorVariance = Annotated[
    str | None,
    typer.Option(
        "--sensor-variance",
        help="Variance of each pixel, in squared units; a file for all maps, or a folder with one of each name.",
    ),
]
GuideOption = Annotated[
    str | None,
    typer.Option(
        "--guide",
        help="A picture of the same view and size, to fill holes by; a file for all maps, or a folder as above.",
    ),
]
OutwardOption = Annotated[bool, typer.Option("--outward", help="Fill large holes too, less certain inwards.")]
JobsOption = Annotated[int | None, typer.Option("--jobs", help="Files at the same time; all cores by default.", min=1)]
SkipOption = Annotated[bool, typer.Option("--skip-existing", help="Leave out maps whose result exists.")]
ResumeOption = Annotated[
    bool, typer.Option("--resume", help="Leave out maps whose result was made so before and is whole; redo the others.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document: what became of each file.")]


def denoise_command(
    inputs: Inputs,
    output: Output,
    unit: UnitOption = "auto",
    scale: ScaleOption = None,
    invalid: InvalidOption = None,
    output_unit: OutputUnit = None,
    output_scale: OutputScale = None,
    variance_out: VarianceOut = None,
    origin_out: OriginOut = None,
    npz: NpzOption = False,
    quality: QualityOption = Quality.balanced,
    dictionary: DictionaryOption = None,
    method: MethodOption = None,
    sensor_variance: SensorVariance = None,
    guide: GuideOption = None,
    second_pass: Annotated[bool, typer.Option("--second-pass", help="Then inpaint what was found noisy.")] = False,
    outward: OutwardOption = False,
    no_fill: Annotated[bool, typer.Option("--no-fill", help="Leave holes as they are.")] = False,
    jobs: JobsOption = None,
    force: ForceOption = False,
    skip_existing: SkipOption = False,
    resume: ResumeOption = False,
    cluster: ClusterOption = None,
    as_json: JsonOption = False,
) -> None:
    """Correct noisy pixels and fill holes; say of each pixel how sure that is and where it comes from.

    One bad file does not stop the others: the exit code is then 1. Results are whole or absent, never half-written.
    """
    wishes = {"quality": str(quality), "outward": outward, "fill": not no_fill, "second_pass": second_pass}
    reading = Reading(unit, scale, invalid)
    places = _places(inputs, output, variance_out, origin_out, npz)
    task = _task(wishes, dictionary, method, reading, output_unit, output_scale, sensor_variance, guide)
    _run("denoising", task, places, Run(output, jobs, force, skip_existing, resume, cluster, as_json))


def inpaint_command(
    inputs: Inputs,
    output: Output,
    unit: UnitOption = "auto",
    scale: ScaleOption = None,
    invalid: InvalidOption = None,
    output_unit: OutputUnit = None,
    output_scale: OutputScale = None,
    variance_out: VarianceOut = None,
    origin_out: OriginOut = None,
    npz: NpzOption = False,
    quality: QualityOption = Quality.balanced,
    dictionary: DictionaryOption = None,
    method: MethodOption = None,
    sensor_variance: SensorVariance = None,
    guide: GuideOption = None,
    outward: OutwardOption = False,
    jobs: JobsOption = None,
    force: ForceOption = False,
    skip_existing: SkipOption = False,
    resume: ResumeOption = False,
    cluster: ClusterOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fill holes and leave what was measured as it is; options, files and exit codes are those of denoise."""
    wishes = {"quality": str(quality), "outward": outward, "correct": False}
    reading = Reading(unit, scale, invalid)
    places = _places(inputs, output, variance_out, origin_out, npz)
    task = _task(wishes, dictionary, method, reading, output_unit, output_scale, sensor_variance, guide)
    _run("inpainting", task, places, Run(output, jobs, force, skip_existing, resume, cluster, as_json))


def _task(
    wishes: dict[str, Any], dictionary: str | None, method: str | None, reading: Reading, *more: Any
) -> RestoringTask:
    """What to do to every map; a wish that cannot be met is refused now."""
    if method is not None:
        wishes = {**wishes, "method": method}
    if dictionary is not None:
        wishes = {**wishes, "dictionary": dictionary_named(dictionary)}
    return RestoringTask(Restorer(**wishes), wishes, reading, *more)


def _places(
    inputs: Sequence[str], output: str, variance_out: str | None, origin_out: str | None, npz: bool
) -> list[Place]:
    sources = find_sources(inputs, [folder for folder in (output, variance_out, origin_out) if folder])
    lists = {"output": targets(sources, output, ".npz" if npz else None)}
    if npz and lists["output"][0].suffix.lower() != ".npz":
        raise InputError(f"--npz writes .npz and the output is {output}; name a folder, or a file that ends in .npz")
    if variance_out is not None:
        lists["variance"] = targets(sources, variance_out, ".tiff")
    if origin_out is not None:
        lists["origin"] = targets(sources, origin_out, ".png")
    _require_formats(sources, output, lists)
    require_apart(sources, *lists.values())
    return [
        Place(source.path, source.name, **{what: paths[index] for what, paths in lists.items()})
        for index, source in enumerate(sources.files)
    ]


def _require_formats(sources: Sources, output: str, lists: dict[str, list[Path]]) -> None:
    """Refuse suffixes that cannot hold what is asked; in a folder an odd suffix is that of an input, which will say."""
    if not (sources.many or is_folder(output)):
        format_of(lists["output"][0])
    variance, origin = (lists.get(what, [None])[0] for what in ("variance", "origin"))
    if variance is not None and format_of(variance).integers:
        raise InputError(f"{variance} holds integers and variances are none; use .tiff, .pfm, .npy or .npz")
    if origin is not None and not (format_of(origin).integers or origin.suffix.lower() in (".npy", ".npz")):
        raise InputError(f"{origin} holds float numbers and origins are integers; use .png, .pgm, .npy or .npz")


@dataclass(frozen=True)
class Run:
    """How the maps of one command are gone through."""

    output: str
    jobs: int | None
    force: bool
    skip_existing: bool
    resume: bool
    cluster: str | None
    as_json: bool

    def __post_init__(self) -> None:
        if self.resume and self.skip_existing:
            raise InputError("--resume and --skip-existing say two things; --resume looks closer, and is enough")
        if self.resume and not is_folder(self.output):
            raise InputError(f"--resume needs a folder of results and {self.output} is none")


def _run(title: str, task: RestoringTask, places: list[Place], run: Run) -> None:
    """Restore every map, say what failed, report, and end with code 1 if anything did."""
    journal = Journal(Path(run.output), _making(task)) if is_folder(run.output) else None
    waiting = _waiting(task, places, run, journal)
    _require_new(waiting, run, journal)
    jobs = run.jobs or cores()
    if run.cluster is not None and waiting:
        client = connect(run.cluster, sparsedepth.__version__)
        task, jobs = replace(task, restore=Restoring(client, task.restore)), run.jobs or min(2 * slots(client), 128)
    jobs = min(jobs, max(len(waiting), 1))
    shared = Shared(WritingGate(), Notes(), journal, threads=1 if jobs > 1 else None)
    outcomes: dict[str, Outcome] = {}
    with ExitStack() as held, whole_files_only(shared.gate), one_blas_thread, progress_bar(Rate()) as bar:
        if isinstance(task.restore, Restorer) and jobs > 1 and len(waiting) >= MANY:
            task = replace(task, restore=held.enter_context(task.restore.in_processes(jobs)))
        shown = bar.add_task(title, total=len(waiting))
        for outcome in in_parallel(partial(attempt, task, shared=shared), waiting, jobs):
            bar.advance(shown)
            outcomes[outcome.output] = outcome
            if outcome.error is not None:
                say_error(outcome.error)
    ordered = [outcomes[str(place.output)] for place in waiting]
    _tell(ordered, len(places) - len(waiting), shared.notes, run.as_json)
    if any(outcome.error for outcome in ordered):
        raise typer.Exit(1)


def _making(task: RestoringTask) -> dict[str, Any]:
    """All that decides what becomes of a map, besides its files."""
    dictionary = task.wishes.get("dictionary")
    atoms = None if dictionary is None else hashlib.sha256(dictionary.atoms.tobytes()).hexdigest()
    return {
        "version": sparsedepth.__version__,
        "wishes": {**task.wishes, "dictionary": atoms},
        "reading": repr(task.read),
        "writing": [task.output_unit, task.output_scale],
    }


def _waiting(task: RestoringTask, places: list[Place], run: Run, journal: Journal | None) -> list[Place]:
    """The maps that are left to restore."""
    if run.skip_existing:
        return [place for place in places if not os.path.lexists(place.output)]
    if not run.resume or journal is None:
        return places

    def done(place: Place) -> bool:
        try:
            return os.path.lexists(place.output) and journal.vouches(task.inputs_of(place), place.outputs)
        except InputError:  # a sensor's file is missing: the map is tried, and says so
            return False

    with progress_bar(Rate()) as bar:
        verified = list(bar.track(map_in_threads(done, places, cores()), len(places), description="verifying"))
    return [place for place, whole in zip(places, verified, strict=True) if not whole]


def _require_new(waiting: list[Place], run: Run, journal: Journal | None) -> None:
    """Refuse to overwrite what is there; a resumed run may overwrite what an earlier one began."""
    ours = journal if run.resume else None
    strange = [place for place in waiting if ours is None or not ours.mentions(place.output)]
    hint = ", or --resume to leave out what is done"
    require_new([path for place in strange for path in place.outputs], run.force, "" if run.resume else hint)


def _tell(outcomes: list[Outcome], skipped: int, notes: Notes, as_json: bool) -> None:
    failed = sum(outcome.error is not None for outcome in outcomes)
    if as_json:
        files = [outcome.facts() for outcome in outcomes]
        print_json({"files": files, "failed": failed, "skipped": skipped, "assumed": notes.said})
        return
    for outcome in outcomes:
        if outcome.error is None:
            shares = (f"{getattr(outcome, share):.1%} {share}" for share in ("corrected", "filled", "refused"))
            print_line(f"{outcome.input} -> {outcome.output}: {', '.join(shares)}, {outcome.seconds:.1f} s")
    if failed or skipped:
        say(f"{len(outcomes) - failed} restored, {failed} failed, {skipped} left out")
