"""The shipped dictionaries: the paper's three side by side (its Fig. 3) and the others, with their energy curves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from sparsedepth.coding.infer import infer
from sparsedepth.coding.noise import Jeffreys
from sparsedepth.data.motorcycle import motorcycle_disparity
from sparsedepth.dictionary import Dictionary
from sparsedepth.markdown import table
from sparsedepth.patches import PatchStream
from sparsedepth.pictures import save_mosaic
from sparsedepth.vocabulary import Floats
from sparsedepth_experiments import Progress
from sparsedepth_experiments.harness import Job, run_jobs, write_page

PAPERS = ("phi1", "phi2", "phi3")
ORDER = (*PAPERS, "phi1_annealed", "phi1_32", "default")
TWIN = 0.9
"""Coherence from which two atoms count as repeats of each other."""


def run(output: Path, progress: Progress, quick: bool = False) -> dict[str, Any]:
    """Draw every shipped dictionary and its curve; measure it on patches of a map that no training saw."""
    names = [name for name in ORDER if name in Dictionary.builtins()]
    n_patches = 64 if quick else 1024
    jobs = [Job({"dictionary": name}, partial(_measure, Dictionary.builtin(name), n_patches)) for name in names]
    facts = {str(key["dictionary"]): measured for key, measured in run_jobs(jobs, progress)}
    output.mkdir(parents=True, exist_ok=True)
    for name in names:
        path = output / f"dictionary-{name}.png"
        save_mosaic(Dictionary.builtin(name), path, title=f"{name}: most used atoms first")
    _draw_curves(names, output / "dictionaries-energy.png")
    write_page(output, "dictionaries", "The shipped dictionaries", _parts(facts), quick)
    return facts


def _parts(facts: Mapping[str, Mapping[str, Any]]) -> list[str]:
    head = ["", *next(iter(facts.values()))]
    rows = [[f"`{name}`", *map(str, measured.values())] for name, measured in facts.items()]
    pictures = {name: f"### `{name}`\n\n![{name}](dictionary-{name}.png)" for name in facts}
    commands = "\n".join(f"    {Dictionary.builtin(name).about['command']}" for name in facts)
    return [
        "Measured on patches of the Motorcycle disparities (Middlebury 2014), which no training saw. "
        "Energies are Eq. 6 at floor 0.01 and sparsity 1, a pixel; lower is better among dictionaries of one size.",
        "## The paper's Fig. 3",
        table(head, rows),
        f"Twins are atoms with another of coherence {TWIN:g} or more. Atoms like noise have neighbouring pixels "
        "that are hardly correlated: learning from random atoms has not reached them.",
        *(pictures[name] for name in PAPERS),
        "## How they were learned",
        "The commands that trained them, in the folder of the data sets:",
        commands,
        "![held-out energy](dictionaries-energy.png)",
        "## The other dictionaries",
        *(picture for name, picture in pictures.items() if name not in PAPERS),
    ]


def _measure(dictionary: Dictionary, n: int) -> dict[str, Any]:
    patches = PatchStream([motorcycle_disparity()], dictionary.patch_shape, batch=n, seed=1)(0).patches
    code = infer(patches, dictionary, Jeffreys(), threads=1)
    known = np.isfinite(patches).sum()
    atoms = dictionary.atoms
    coherence = np.abs(atoms @ atoms.T) - np.eye(len(atoms))
    return {
        "patch": "x".join(map(str, dictionary.patch_shape)),
        "atoms": dictionary.n_atoms,
        "noise model": dictionary.about["noise"],
        "holes": dictionary.about["holes"],
        "energy a pixel": round(float(code.energy.sum() / known), 4),
        "codes used a patch": round(float((code.codes != 0).sum(axis=1).mean()), 1),
        "median / largest coherence": f"{np.median(coherence.max(axis=1)):.2f} / {coherence.max():.2f}",
        "twins": int((coherence.max(axis=1) >= TWIN).sum()),
        "noise-like atoms": f"{noise_like(dictionary).mean():.0%}",
    }


def noise_like(dictionary: Dictionary) -> Floats:
    """Find atoms without structure: neighbouring pixels uncorrelated, and values spread like Gaussian noise."""
    height, width = dictionary.patch_shape
    atoms = dictionary.atoms - dictionary.atoms.mean(axis=1, keepdims=True)
    square = atoms.reshape(-1, height, width)
    energy = np.maximum(np.square(atoms).sum(axis=1), 1e-6)
    alike = (
        (square[:, 1:] * square[:, :-1]).sum(axis=(1, 2)) + (square[:, :, 1:] * square[:, :, :-1]).sum(axis=(1, 2))
    ) / 2
    kurtosis = atoms.shape[1] * (atoms**4).sum(axis=1) / energy**2
    return (alike / energy < 0.3) & (kurtosis < 8)


def _draw_curves(names: list[str], path: Path) -> None:
    """Draw each curve in a plot of its own: energies of different noise models and sizes have different levels."""
    figure = Figure(figsize=(9, 5.2), dpi=100, layout="constrained")
    for axes, name in zip(figure.subplots(2, 3).ravel(), names, strict=True):
        dictionary = Dictionary.builtin(name)
        curve = np.array(json.loads(dictionary.about["held_out_energy"]))
        energies = curve[:, 1] / dictionary.atoms.shape[1]
        axes.plot(curve[:, 0], energies)
        axes.set(title=name, xlabel="step", ylabel="held-out energy a pixel", ylim=_around(energies))
    FigureCanvasAgg(figure)
    figure.savefig(path)


def _around(values: Floats) -> tuple[float, float]:
    """Choose limits that show the second half of a curve well."""
    late = values[len(values) // 3 :]
    return float(late.min() - 0.1 * np.ptp(late) - 1e-3), float(late.max() + 0.3 * np.ptp(late) + 1e-3)
