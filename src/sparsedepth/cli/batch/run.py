"""Restore all files of a batch: in threads, with a bar, to the last one whatever fails, whole files only."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import typer
from rich.progress import ProgressColumn, Task
from rich.text import Text

import sparsedepth
from sparsedepth.atomic_files import discard_unfinished
from sparsedepth.cli.batch.journal import Journal
from sparsedepth.cli.batch.plan import Target, is_folder, require_new
from sparsedepth.cli.batch.restore_file import restore_file
from sparsedepth.cli.batch.spec import Notes, Outcome, RestoreSpec, RunContext, WritingGate
from sparsedepth.cli.pipes import discard_piped, shown_name
from sparsedepth.cli.terminal import print_json, print_line, progress_bar, say, say_error
from sparsedepth.cluster import Restoring, connect, slots
from sparsedepth.parallel import cores, map_in_threads, one_blas_thread
from sparsedepth.restore import Restorer
from sparsedepth.vocabulary import InputError

SHOWN_FRACTION = 0.0005
"""Least fraction of refused pixels that is printed as more than 0.0 %."""
MIN_MAPS_FOR_PROCESSES = 32
"""Fewer maps are restored by threads: a process takes a second to start."""

Item = TypeVar("Item")


@dataclass(frozen=True)
class RunOptions:
    """How the files of one command are worked through."""

    output: str
    jobs: int | None
    force: bool
    skip_existing: bool
    resume: bool
    cluster: str | None
    as_json: bool
    strict: bool = False

    def __post_init__(self) -> None:
        if self.resume and self.skip_existing:
            raise InputError("--resume and --skip-existing exclude each other; --resume checks more, and is enough")
        if self.resume and not is_folder(self.output):
            raise InputError(f"--resume needs a folder of results and {self.output} is none")


def run_batch(title: str, spec: RestoreSpec, targets: list[Target], options: RunOptions) -> None:
    """Restore every map, print errors and results, and exit with code 1 if any map failed."""
    journal = Journal(Path(options.output), spec.fingerprint) if is_folder(options.output) else None
    if spec.guides is not None:
        spec.guides.require_any(targets)
    waiting = _select(spec, targets, options, journal)
    _require_new(waiting, options, journal)
    spec, jobs = _on_cluster(spec, options) if options.cluster is not None and waiting else (spec, options.jobs)
    jobs = min(jobs or cores(), max(len(waiting), 1))
    context = RunContext(WritingGate(), Notes(), journal, threads=1 if jobs > 1 else None, strict=options.strict)
    outcomes = _restore_all(title, spec, waiting, context, jobs)
    _print_outcomes(outcomes, len(targets) - len(waiting), context.notes, options.as_json, spec.leaves_large_holes)
    if any(outcome.error for outcome in outcomes):
        raise typer.Exit(1)


def _on_cluster(spec: RestoreSpec, options: RunOptions) -> tuple[RestoreSpec, int]:
    """Return the spec with the workers of a cluster, and the number of maps they get at the same time."""
    client = connect(str(options.cluster), sparsedepth.__version__)
    return replace(spec, restore=Restoring(client, spec.restore)), options.jobs or min(2 * slots(client), 128)


def _restore_all(title: str, spec: RestoreSpec, targets: list[Target], context: RunContext, jobs: int) -> list[Outcome]:
    """Restore all maps with a progress bar; return their outcomes in order."""
    outcomes: dict[str, Outcome] = {}
    with ExitStack() as held, _whole_files_only(context.gate), one_blas_thread, progress_bar(Rate()) as bar:
        if isinstance(spec.restore, Restorer) and jobs > 1 and len(targets) >= MIN_MAPS_FOR_PROCESSES:
            spec = replace(spec, restore=held.enter_context(spec.restore.in_processes(jobs)))
        shown = bar.add_task(title, total=len(targets))
        for outcome in _in_parallel(partial(restore_file, spec, context=context), targets, jobs):
            bar.advance(shown)
            outcomes[outcome.output] = outcome
            if outcome.error is not None:
                say_error(outcome.error)
    return [outcomes[str(target.output)] for target in targets]


@contextmanager
def _whole_files_only(gate: WritingGate) -> Iterator[None]:
    """Let a signal that ends the program wait for what is being written, but not for what is being computed."""
    try:
        yield
    except SystemExit as stop:
        gate.close()
        discard_unfinished()
        discard_piped()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(stop.code if isinstance(stop.code, int) else 1)


class Rate(ProgressColumn):
    """A column with files a second, or seconds a file."""

    def render(self, task: Task) -> Text:
        """Return the speed as text."""
        speed = task.finished_speed or task.speed
        if not speed:
            return Text("")
        return Text(f"{speed:.1f} files/s" if speed >= 1 else f"{1 / speed:.1f} s/file")


def _in_parallel(work: Callable[[Item], Outcome], items: Sequence[Item], jobs: int) -> Iterator[Outcome]:
    """Yield outcomes as they come; all work is done in threads, so that the main thread gets Ctrl-C at once."""
    pool = ThreadPoolExecutor(jobs)
    try:
        for future in as_completed([pool.submit(work, item) for item in items]):
            yield future.result()
        pool.shutdown()  # all is done: its threads end before those of another run begin, which then use their memory
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _select(spec: RestoreSpec, targets: list[Target], options: RunOptions, journal: Journal | None) -> list[Target]:
    """Return the maps that are left to restore."""
    if options.skip_existing:
        return [target for target in targets if not os.path.lexists(target.output)]
    if not options.resume or journal is None:
        return targets

    def is_done(target: Target) -> bool:
        try:
            return os.path.lexists(target.output) and journal.is_valid(spec.inputs_of(target), target.outputs)
        except InputError:  # a sensor's file is missing: the map is tried, and says so
            return False

    with progress_bar(Rate()) as bar:
        verified = list(bar.track(map_in_threads(is_done, targets, cores()), len(targets), description="verifying"))
    return [target for target, whole in zip(targets, verified, strict=True) if not whole]


def _require_new(waiting: list[Target], options: RunOptions, journal: Journal | None) -> None:
    """Refuse to overwrite files; a resumed run may overwrite what an earlier one began."""
    ours = journal if options.resume else None
    foreign = [target for target in waiting if ours is None or not ours.contains(target.output)]
    hint = "" if options.resume else ", or --resume to leave out what is done"
    require_new([path for target in foreign for path in target.outputs], options.force, hint)


def _print_outcomes(outcomes: list[Outcome], skipped: int, notes: Notes, as_json: bool, leaves_holes: bool) -> None:
    failed = sum(outcome.error is not None for outcome in outcomes)
    if as_json:
        files = [outcome.facts() for outcome in outcomes]
        print_json({"files": files, "failed": failed, "skipped": skipped, "assumed": notes.said})
        return
    for outcome in outcomes:
        if outcome.error is None:
            shares = (
                f"{getattr(outcome, share):.1%} {share}" for share in ("smoothed", "corrected", "filled", "refused")
            )
            names = f"{shown_name(outcome.input)} -> {shown_name(outcome.output)}"
            hint = " (--holes all fills them)" if leaves_holes and (outcome.refused or 0) >= SHOWN_FRACTION else ""
            print_line(f"{names}: {', '.join(shares)}{hint}, {outcome.seconds:.1f} s")
    if failed or skipped:
        say(f"{len(outcomes) - failed} restored, {failed} failed, {skipped} left out")
