"""The command line: parse, call, show progress, write. Results go to standard output, progress to standard error."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NoReturn

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

import sparsedepth
from sparsedepth import experiments
from sparsedepth.coding.learn import LearningState, LearningStep, learn, schedule, start_from
from sparsedepth.coding.noise import Jeffreys, NoiseModel, Stationary
from sparsedepth.data.motorcycle import motorcycle_disparity
from sparsedepth.dictionary import Dictionary
from sparsedepth.files import read_map
from sparsedepth.patches import PatchStream
from sparsedepth.pictures import save_mosaic
from sparsedepth.vocabulary import InputError

app = typer.Typer(
    help="Sparse representations of depth: learn dictionaries, code depth maps, infer the noise of every pixel.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
console = Console(stderr=True)
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


class Noise(StrEnum):
    jeffreys = "jeffreys"
    stationary = "stationary"


class Holes(StrEnum):
    mask = "mask"
    keep = "keep"


def main() -> None:
    """Run the command line; a user's mistake is one sentence and exit code 2, Ctrl-C is 130."""
    signal.signal(signal.SIGINT, _stop)
    try:
        app()
    except InputError as error:
        _fail(str(error))
    except OSError as error:
        _fail(f"{error.filename or 'a file'}: {error.strerror or error}")


def _fail(message: str) -> NoReturn:
    console.print(f"[bold red]error:[/] {escape(message)}", highlight=False, soft_wrap=True)
    sys.exit(2)


def _stop(*_: object) -> None:
    console.print("stopped")
    sys.exit(130)


def _version(wanted: bool) -> None:
    if wanted:
        print(sparsedepth.__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None: ...


@app.command("learn")
def learn_command(
    files: Annotated[
        list[Path], typer.Argument(help="Depth or disparity maps: PNG, PGM, PFM, TIFF, npy.", show_default=False)
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="Where to write the dictionary (.safetensors).")],
    patch: Annotated[int, typer.Option(help="Side of the square patches, pixels.", min=2, max=64)] = 16,
    atoms: Annotated[int, typer.Option(help="Number of atoms.", min=1, max=1 << 14)] = 256,
    noise: Annotated[
        Noise, typer.Option(help="Infer a variance at every pixel, or keep one for all.")
    ] = Noise.jeffreys,
    holes: Annotated[Holes, typer.Option(help="Unknown pixels take no part, or count as zeros.")] = Holes.mask,
    floor: Annotated[float, typer.Option(help="Smallest noise variance, for patches of unit variance.")] = 0.01,
    sparsity: Annotated[float, typer.Option(help="Weight of the codes' absolute values.")] = 1.0,
    steps: Annotated[int, typer.Option(help="Learning steps.", min=3)] = 1000,
    batch: Annotated[int, typer.Option(help="Patches a step.", min=8, max=1 << 16)] = 512,
    seed: Annotated[int, typer.Option(help="The same seed gives the same dictionary.", min=0)] = 0,
    scale: Annotated[float, typer.Option(help="Divide the files' values by this.")] = 1.0,
    unit: Annotated[str, typer.Option(help="Unit of the values, for the record.")] = "px",
    start: Annotated[str | None, typer.Option(help="Begin with this dictionary (file or shipped name).")] = None,
    held_out: Annotated[
        list[str] | None, typer.Option(help="Map to report the energy on, or 'motorcycle'; repeatable.")
    ] = None,
    checkpoint_every: Annotated[float, typer.Option(help="Seconds between two checkpoints.", min=0)] = 20.0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint beside the output.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the output.")] = False,
    threads: Annotated[int | None, typer.Option(help="Worker threads; all cores by default.", min=1)] = None,
    as_json: JsonOption = False,
) -> None:
    """Learn a dictionary of depth patches. Killed at any moment, --resume ends with the same dictionary."""
    _require_place(output)
    if output.exists() and not (force or resume):
        raise InputError(f"{output} exists; use --force to overwrite it or --resume to go on")
    shape = (patch, patch)
    model: NoiseModel = Jeffreys(floor) if noise is Noise.jeffreys else Stationary(floor)
    phases = schedule(model, steps, sparsity)
    unseen = held_out or []
    about = {
        "trained_on": _checksum(files),
        "unit": unit,
        "normalisation": "mean removed, divided by sqrt(variance + softening^2), softening 0.05 map deviations",
        "noise": repr(model),
        "holes": str(holes),
        "sparsity": str(sparsity),
        "steps": str(steps),
        "batch": str(batch),
        "seed": str(seed),
        "scale": str(scale),
        "start": _name(start) if start else "data patches",
        "held_out": ", ".join(_name(name) for name in unseen) or "other patches of the same maps",
        "version": sparsedepth.__version__,
    }
    checkpoint = output.with_name(output.name + ".checkpoint")
    if resume and output.exists() and not checkpoint.exists():
        _require_same_run(output, about, shape)
        console.print(f"{output} is complete; nothing to resume")
        return
    maps = [read_map(file, scale=scale) for file in files]
    stream = PatchStream(maps, shape, batch=batch, seed=seed, holes=str(holes))
    others = [motorcycle_disparity() if name == "motorcycle" else read_map(name, scale=scale) for name in unseen]
    held = PatchStream(others or maps, shape, batch=512, seed=seed + 1)(1 << 41)
    first = _dictionary(start) if start else start_from(stream, atoms, shape, seed)
    if first.patch_shape != shape:
        raise InputError(f"the start has patches of {first.patch_shape}, not {shape}; set --patch accordingly")
    beginning = hashlib.sha256(np.ascontiguousarray(first.atoms).tobytes()).hexdigest()
    identity = {**about, "patch": patch, "beginning": beginning, "phases": repr(phases)}
    state = LearningState.load(checkpoint, identity) if resume and checkpoint.exists() else None
    if state is not None:
        console.print(f"resuming after step {state.step}")
    run = learn(stream, first, phases=phases, held_out=held, resume=state, threads=threads)
    last = _follow(run, state, steps, lambda state: state.save(checkpoint, identity), checkpoint_every)
    options: dict[str, Any] = {"patch": patch, "atoms": first.n_atoms, "noise": noise, "holes": holes, "floor": floor}
    options |= {"sparsity": sparsity, "steps": steps, "batch": batch, "seed": seed, "scale": scale, "unit": unit}
    options |= {"start": _name(start)} if start else {}
    about |= {
        "held_out_energy": json.dumps([[int(step), round(value, 3)] for step, value in last.history]),
        "command": _command(files, output, options, unseen),
    }
    Dictionary(last.ranked_atoms, shape, about).save(output)
    checkpoint.unlink(missing_ok=True)
    energy = float(last.history[-1, 1])
    _report(
        as_json,
        {"dictionary": str(output), "atoms": first.n_atoms, "patch_shape": list(shape), "held_out_energy": energy},
    )


def _follow(
    run: Iterator[LearningStep],
    state: LearningState | None,
    steps: int,
    save: Callable[[LearningState], None],
    every: float,
) -> LearningState:
    """Show a run's progress, save its state every so many seconds, and return the last one."""
    saved = time.monotonic()
    with _progress("energy {task.fields[energy]}") as progress:
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


def _require_same_run(output: Path, about: dict[str, str], shape: tuple[int, int]) -> None:
    """Refuse to call a dictionary complete that another run made."""
    known = Dictionary.load(output)
    if {**known.about, **about} != known.about or known.patch_shape != shape:
        raise InputError(f"{output} belongs to a run with other data or settings; use --force to overwrite it")


@app.command("dictionary")
def dictionary_command(
    name: Annotated[str, typer.Argument(help="A dictionary file, or the name of a shipped one.", show_default=False)],
    mosaic: Annotated[Path | None, typer.Option(help="Write a picture of all atoms (PNG).")] = None,
    as_json: JsonOption = False,
) -> None:
    """Say what a dictionary is and where it comes from; draw it."""
    if mosaic is not None:
        _require_place(mosaic, ".png")
    dictionary = _dictionary(name)
    coherence = np.abs(dictionary.atoms @ dictionary.atoms.T) - np.eye(dictionary.n_atoms)
    facts: dict[str, Any] = {
        "atoms": dictionary.n_atoms,
        "patch_shape": list(dictionary.patch_shape),
        "type": str(dictionary.atoms.dtype),
        "median_coherence": round(float(np.median(coherence.max(axis=1))), 4),
        **dictionary.about,
    }
    if mosaic is not None:
        save_mosaic(dictionary, mosaic, title=f"{Path(name).stem}: {dictionary.n_atoms} atoms")
        facts["mosaic"] = str(mosaic)
    _report(as_json, facts)


@app.command("demo")
def demo_command(
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the pictures.")] = Path("demo"),
    as_json: JsonOption = False,
) -> None:
    """Learn a small dictionary from a real disparity map, code a noisy copy with it, and draw everything."""
    _require_folder(output)
    with _progress() as progress:
        task = progress.add_task("demo", total=None)
        facts = experiments.load("demo").run(
            output, lambda what, done, total: progress.update(task, description=what, completed=done, total=total)
        )
    _report(as_json, facts)


@app.command("reproduce")
def reproduce_command(
    name: Annotated[str, typer.Argument(help="An experiment, or 'all'.")] = "all",
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for tables and pictures.")] = Path(
        "docs/results"
    ),
    quick: Annotated[bool, typer.Option("--quick", help="A short version of the experiment.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Repeat an experiment of the paper and write its table and pictures."""
    names = experiments.names() if name == "all" else [name]
    _require_folder(output)
    results = {}
    for each in names:
        with _progress() as progress:
            task = progress.add_task(each, total=None)
            results[each] = experiments.load(each).run(
                output,
                lambda what, done, total, task=task, progress=progress: progress.update(
                    task, description=what, completed=done, total=total
                ),
                quick=quick,
            )
    _report(as_json, results)


def _dictionary(name: str) -> Dictionary:
    return Dictionary.load(name) if os.path.exists(name) or name.endswith(".safetensors") else Dictionary.builtin(name)


def _progress(extra: str | None = None) -> Progress:
    columns = [
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    ]
    return Progress(*columns, *([TextColumn(extra)] if extra else []), console=console, transient=True)


def _checksum(files: list[Path]) -> str:
    """One SHA-256 over the contents of all files, in order."""
    digest = hashlib.sha256()
    for file in files:
        if not os.path.isfile(file):
            raise InputError(f"there is no file {file}")
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return f"{len(files)} maps, sha256 {digest.hexdigest()}"


def _command(files: list[Path], output: Path, options: dict[str, Any], held_out: list[str]) -> str:
    """A command that does the same again; a long list of files is shortened to its ends."""
    given = [_name(file) for file in files]
    words = ["sparsedepth", "learn", *(given if len(given) <= 4 else [given[0], "...", given[-1]]), "-o", output.name]
    for name, value in options.items():
        words += [f"--{name}", str(value)]
    for name in held_out:
        words += ["--held-out", _name(name)]
    return shlex.join(words)


def _name(path: str | Path) -> str:
    """A path without the folders of one machine: relative ones stay, unless they climb; broken letters are replaced."""
    path = Path(path)
    short = path.name if path.is_absolute() or ".." in path.parts else str(path)
    return short.encode(errors="replace").decode()


def _require_place(output: Path, suffix: str | None = None) -> None:
    """Refuse an output that cannot be written, before any work is done."""
    if not output.name or output.is_dir():
        raise InputError(f"{output} is a folder; name a file in it")
    if not output.parent.is_dir():
        raise InputError(f"there is no folder {output.parent} to write {output.name} into; make it first")
    if suffix is not None and output.suffix.lower() != suffix:
        raise InputError(f"{output} must end in {suffix}")


def _require_folder(output: Path) -> None:
    if output.exists() and not output.is_dir():
        raise InputError(f"{output} is a file; name a folder")
    output.mkdir(parents=True, exist_ok=True)


def _report(as_json: bool, facts: dict[str, Any]) -> None:
    if as_json:
        print(json.dumps(facts, indent=2, default=str))
        return
    for key, value in facts.items():
        print(f"{key}: {value}")
