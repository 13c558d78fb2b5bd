"""Learn dictionaries, and say what they are."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import time
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.progress import TextColumn

import sparsedepth
from sparsedepth.cli.places import dictionary_named, require_place
from sparsedepth.cli.terminal import ClusterOption, ForceOption, JsonOption, progress_bar, report, say
from sparsedepth.cluster import ClusterAccumulator, connect
from sparsedepth.coding.accumulate import accumulate
from sparsedepth.coding.learn import LearningState, LearningStep, learn, schedule, start_from
from sparsedepth.coding.noise import Jeffreys, NoiseModel, Stationary
from sparsedepth.data.motorcycle import motorcycle_disparity
from sparsedepth.dictionary import Dictionary
from sparsedepth.files import read_map
from sparsedepth.patches import PatchStream, thinned
from sparsedepth.pictures import save_mosaic
from sparsedepth.vocabulary import InputError


class Noise(StrEnum):
    jeffreys = "jeffreys"
    stationary = "stationary"


class Holes(StrEnum):
    mask = "mask"
    keep = "keep"


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
    initial: Annotated[
        float, typer.Option(help="Noise variance from which inference starts; small: edges are learned, not dismissed.")
    ] = 0.02,
    every: Annotated[
        list[int] | None,
        typer.Option(help="Learn from every so many-th pixel of the maps as well, for finer shapes; repeatable."),
    ] = None,
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
    force: ForceOption = False,
    threads: Annotated[int | None, typer.Option(help="Worker threads; all cores by default.", min=1)] = None,
    cluster: ClusterOption = None,
    as_json: JsonOption = False,
) -> None:
    """Learn a dictionary of depth patches. Killed at any moment, --resume ends with the same dictionary."""
    require_place(output)
    if output.exists() and not (force or resume):
        raise InputError(f"{output} exists; use --force to overwrite it or --resume to go on")
    shape = (patch, patch)
    model: NoiseModel = Jeffreys(floor, initial) if noise is Noise.jeffreys else Stationary(floor)
    phases = schedule(model, steps, sparsity)
    unseen = held_out or []
    about = {
        "trained_on": _checksum(files),
        "unit": unit,
        "normalisation": "mean removed, divided by sqrt(variance + softening^2), softening 0.05 map deviations",
        "noise": repr(model),
        "holes": str(holes),
        "every": ", ".join(map(str, [1, *(every or [])])),
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
        say(f"{output} is complete; nothing to resume")
        return
    maps = [read_map(file, scale=scale) for file in files]
    stream = PatchStream(thinned(maps, every or []), shape, batch=batch, seed=seed, holes=str(holes))
    others = [motorcycle_disparity() if name == "motorcycle" else read_map(name, scale=scale) for name in unseen]
    held = PatchStream(others or maps, shape, batch=512, seed=seed + 1)(1 << 41)
    first = dictionary_named(start) if start else start_from(stream, atoms, shape, seed)
    if first.patch_shape != shape:
        raise InputError(f"the start has patches of {first.patch_shape}, not {shape}; set --patch accordingly")
    beginning = hashlib.sha256(np.ascontiguousarray(first.atoms).tobytes()).hexdigest()
    identity = {**about, "patch": patch, "beginning": beginning, "phases": repr(phases)}
    state = LearningState.load(checkpoint, identity) if resume and checkpoint.exists() else None
    if state is not None:
        say(f"resuming after step {state.step}")
    accumulator = accumulate if cluster is None else ClusterAccumulator(connect(cluster, sparsedepth.__version__))
    run = learn(stream, first, phases=phases, held_out=held, resume=state, threads=threads, accumulator=accumulator)
    last = _follow(run, state, steps, lambda state: state.save(checkpoint, identity), checkpoint_every)
    options: dict[str, Any] = {"patch": patch, "atoms": first.n_atoms, "noise": noise, "holes": holes, "floor": floor}
    options |= {"sparsity": sparsity, "steps": steps, "batch": batch, "seed": seed, "scale": scale, "unit": unit}
    options |= {"initial": initial} if noise is Noise.jeffreys else {}
    options |= {"start": _name(start)} if start else {}
    about |= {
        "held_out_energy": json.dumps([[int(step), round(value, 3)] for step, value in last.history]),
        "command": _command(files, output, options, {"every": every or [], "held-out": map(_name, unseen)}),
    }
    Dictionary(last.ranked_atoms, shape, about).save(output)
    checkpoint.unlink(missing_ok=True)
    energy = float(last.history[-1, 1])
    report(
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


def _require_same_run(output: Path, about: dict[str, str], shape: tuple[int, int]) -> None:
    """Refuse to call a dictionary complete that another run made."""
    known = Dictionary.load(output)
    if {**known.about, **about} != known.about or known.patch_shape != shape:
        raise InputError(f"{output} belongs to a run with other data or settings; use --force to overwrite it")


def dictionary_command(
    name: Annotated[str, typer.Argument(help="A dictionary file, or the name of a shipped one.", show_default=False)],
    mosaic: Annotated[Path | None, typer.Option(help="Write a picture of all atoms (PNG).")] = None,
    as_json: JsonOption = False,
) -> None:
    """Say what a dictionary is and where it comes from; draw it."""
    if mosaic is not None:
        require_place(mosaic, ".png")
    dictionary = dictionary_named(name)
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
    report(as_json, facts)


def _checksum(files: list[Path]) -> str:
    """One SHA-256 over the contents of all files, in order."""
    digest = hashlib.sha256()
    for file in files:
        if not os.path.isfile(file):
            raise InputError(f"there is no file {file}")
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return f"{len(files)} maps, sha256 {digest.hexdigest()}"


def _command(files: list[Path], output: Path, options: dict[str, Any], repeated: dict[str, Iterable[object]]) -> str:
    """A command that does the same again; a long list of files is shortened to its ends."""
    given = [_name(file) for file in files]
    words = ["sparsedepth", "learn", *(given if len(given) <= 4 else [given[0], "...", given[-1]]), "-o", output.name]
    for name, value in options.items():
        words += [f"--{name}", str(value)]
    for name, values in repeated.items():
        for value in values:
            words += [f"--{name}", str(value)]
    return shlex.join(words)


def _name(path: str | Path) -> str:
    """A path without the folders of one machine: relative ones stay, unless they climb; broken letters are replaced."""
    path = Path(path)
    short = path.name if path.is_absolute() or ".." in path.parts else str(path)
    return short.encode(errors="replace").decode()
