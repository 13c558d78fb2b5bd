"""Learn a dictionary from maps, with checkpoints."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import TextColumn

import sparsedepth
from sparsedepth.cli.batch.plan import require_writable
from sparsedepth.cli.options import (
    ClusterOption,
    ForceOption,
    InvalidOption,
    JsonOption,
    MapReader,
    MapsArgument,
    ProfileOption,
    ScaleOption,
)
from sparsedepth.cli.terminal import print_facts, progress_bar, say
from sparsedepth.cli.training import Holes, Noise, Settings, Training
from sparsedepth.cluster import ClusterAccumulator, connect
from sparsedepth.coding.accumulate import accumulate
from sparsedepth.coding.learn import LearningState, LearningStep, learn
from sparsedepth.dictionary import Dictionary
from sparsedepth.markdown import commit
from sparsedepth.vocabulary import InputError


def learn_command(
    maps: MapsArgument,
    output: Annotated[Path, typer.Option("-o", "--output", help="Where to write the dictionary (.safetensors).")],
    patch: Annotated[int, typer.Option(help="Side of the square patches, pixels.", min=2, max=64)] = 16,
    atoms: Annotated[int, typer.Option(help="Number of atoms.", min=1, max=1 << 14)] = 256,
    noise: Annotated[
        Noise, typer.Option(help="Infer a variance at every pixel, or keep one for all.")
    ] = Noise.jeffreys,
    holes: Annotated[Holes, typer.Option(help="Missing pixels are masked, or count as zeros.")] = Holes.mask,
    as_paper: Annotated[
        bool,
        typer.Option(
            "--as-paper",
            help="Learn as the paper does: from random atoms by Eq. 7 alone, without annealing or renewal of atoms.",
        ),
    ] = False,
    floor: Annotated[
        float | None,
        typer.Option(
            help="Smallest noise variance, for patches of unit variance: 0.01; 1 with --as-paper --noise stationary."
        ),
    ] = None,
    initial: Annotated[
        float | None,
        typer.Option(
            help="Noise variance from which inference starts: 0.02, by which edges are learned; 1 with --as-paper."
        ),
    ] = None,
    every: Annotated[
        list[int] | None,
        typer.Option(help="Learn from every n-th pixel of the maps as well, for finer shapes; repeatable."),
    ] = None,
    sparsity: Annotated[float, typer.Option(help="Weight of the codes' absolute values.")] = 1.0,
    steps: Annotated[int, typer.Option(help="Learning steps.", min=3)] = 1000,
    batch: Annotated[
        int | None, typer.Option(help="Patches a step: 512; 128 with --as-paper.", min=8, max=1 << 16)
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same dictionary.", min=0)] = 0,
    half: Annotated[bool, typer.Option("--half", help="Store 16-bit floats: half of the size.")] = False,
    profile: ProfileOption = "auto",
    scale: ScaleOption = None,
    invalid: InvalidOption = None,
    start: Annotated[str | None, typer.Option(help="Begin with this dictionary (file or shipped name).")] = None,
    held_out: Annotated[
        list[str] | None, typer.Option(help="Map to report the energy on, or 'motorcycle'; repeatable.")
    ] = None,
    checkpoint_every: Annotated[float, typer.Option(help="Seconds between two checkpoints.", min=0)] = 20.0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint of the output.")] = False,
    force: ForceOption = False,
    threads: Annotated[int | None, typer.Option(help="Worker threads; all cores by default.", min=1)] = None,
    cluster: ClusterOption = None,
    as_json: JsonOption = False,
) -> None:
    """Learn a dictionary of depth patches. After an interruption, --resume gives the same dictionary."""
    require_writable(output)
    if output.exists() and not (force or resume):
        raise InputError(f"{output} exists; use --force to overwrite it or --resume to go on")
    settings = Settings.completed(
        as_paper=as_paper,
        patch=patch,
        atoms=atoms,
        noise=noise,
        holes=holes,
        floor=floor,
        initial=initial,
        every=tuple(every or ()),
        sparsity=sparsity,
        steps=steps,
        batch=batch,
        seed=seed,
        half=half,
        start=start,
    )
    training = Training.prepare(maps, held_out or [], settings, MapReader(profile, scale, invalid))
    checkpoint = output.with_name(output.name + ".checkpoint")
    if resume and output.exists() and not checkpoint.exists():
        _require_same_run(output, training)
        say(f"{output} is complete; nothing to resume")
        return
    first = settings.first_dictionary(training.stream)
    learned = _learn(training, first, checkpoint, resume, checkpoint_every, threads, cluster)
    _save(learned, training, output)
    checkpoint.unlink(missing_ok=True)
    facts = {"dictionary": str(output), "atoms": first.n_atoms, "patch_shape": list(settings.shape)}
    print_facts(as_json, facts | {"held_out_energy": float(learned.history[-1, 1])})


def _learn(
    training: Training,
    first: Dictionary,
    checkpoint: Path,
    resume: bool,
    checkpoint_every: float,
    threads: int | None,
    cluster: str | None,
) -> LearningState:
    """Learn from the start or from the checkpoint, and save checkpoints on the way."""
    identity = training.identity(first)
    state = LearningState.load(checkpoint, identity) if resume and checkpoint.exists() else None
    if state is not None:
        say(f"resuming after step {state.step}")
    run = learn(
        training.stream,
        first,
        phases=training.settings.phases,
        held_out=training.held_out_batch(),
        resume=state,
        rounds=training.settings.rounds,
        threads=threads,
        accumulator=accumulate if cluster is None else ClusterAccumulator(connect(cluster, sparsedepth.__version__)),
    )
    steps = training.settings.steps
    return _follow(run, state, steps, lambda state: state.save(checkpoint, identity), checkpoint_every)


def _follow(
    run: Iterator[LearningStep],
    state: LearningState | None,
    steps: int,
    save: Callable[[LearningState], None],
    every: float,
) -> LearningState:
    """Show a run's progress, save its state every ``every`` seconds, and return the last one."""
    saved = time.monotonic()
    with progress_bar(TextColumn("energy {task.fields[energy]}")) as progress:
        task = progress.add_task("learning", total=steps, completed=state.step if state else 0, energy="...")
        for step in run:
            state = step.state
            shown = f"{step.energy:.1f}" + (f", held out {state.history[-1, 1]:.1f}" if len(state.history) else "")
            progress.update(task, completed=step.step, energy=shown)
            if time.monotonic() - saved >= every:
                save(state)
                saved = time.monotonic()
    assert state is not None
    return state


def _save(learned: LearningState, training: Training, output: Path) -> None:
    """Write the dictionary with its record."""
    history = [[int(step), round(value, 3)] for step, value in learned.history]
    atoms = learned.ranked_atoms
    about = training.about | {
        "held_out_energy": json.dumps(history),
        "command": training.command(output, len(atoms)),
        "commit": commit(Path(sparsedepth.__file__).parent),
    }
    Dictionary(atoms, training.settings.shape, about).save(output, half=training.settings.half)


def _require_same_run(output: Path, training: Training) -> None:
    """Refuse to call a dictionary complete that another run made."""
    known = Dictionary.load(output)
    same = training.about.items() <= known.about.items() and ("bits" in known.about) == training.settings.half
    if not same or known.patch_shape != training.settings.shape:
        raise InputError(f"{output} belongs to a run with other data or settings; use --force to overwrite it")
