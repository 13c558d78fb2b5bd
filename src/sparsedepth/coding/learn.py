"""Dictionary learning: code a batch, update the atoms (Eq. 7), repeat; an iterator of steps that can resume.

An update needs sums over the patches of a batch (`coding.accumulate`). So a batch may be coded in one process or in
many. The sums are added in one order: the dictionary is the same to the last bit.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsedepth.atomic_files import write_atomically
from sparsedepth.coding.accumulate import Accumulate, Statistics, accumulate, total
from sparsedepth.coding.noise import Jeffreys, Known, NoiseModel, Stationary
from sparsedepth.coding.starts import Batches, start_from
from sparsedepth.coding.updates import BlockCoordinate, Gradient, Update
from sparsedepth.dictionary import Dictionary
from sparsedepth.parallel import one_blas_thread
from sparsedepth.patches import Batch, PatchPool
from sparsedepth.tensor_files import encode_tensors, read_tensors
from sparsedepth.vocabulary import Floats, InputError, Patches, Vector

ANNEALING_VARIANCES = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003)
"""The noise variances of annealing, for patches of unit variance."""
CHECKPOINT_KIND = "sparsedepth learning checkpoint"
PAPER_UPDATE = Gradient(rate=8.0, decay=math.inf, steady=True)
"""The paper's "small step", constant once the steepest batch is seen."""
ROUNDS = 48
"""Iterations of coding a batch."""
PAPER_ROUNDS = 24
"""Iterations of coding a batch in the paper's learning: its inference converges "in a few iterations"."""
USAGE_DECAY = 0.98
MIN_USAGE_FRACTION = 0.02
"""An atom is replaced when its mean absolute coefficient falls below this share of the median atom's."""
MAX_COHERENCE = 0.98
"""... or when it is this coherent with another atom."""


@dataclass(frozen=True)
class Phase:
    """A part of the schedule with one noise model and one update rule."""

    steps: int
    noise: NoiseModel = field(default_factory=Jeffreys)
    update: Update = field(default_factory=BlockCoordinate)
    sparsity: float = 1.0
    renewal: bool = True
    """Whether unused atoms and twins start afresh."""


def schedule(noise: NoiseModel, steps: int, sparsity: float = 1.0) -> list[Phase]:
    """Plan the annealing: plain sparse coding with a falling variance, then the noise model itself.

    With a small variance almost any atoms fit a patch, and nothing improves them. With inferred variances, edges that
    cannot be represented yet are taken for noise. A large constant variance has neither fault. It allows few atoms a
    patch, so coarse shapes come first, and each level refines them. Coarse levels use the coordinate update, fine ones
    the gradient. Each level takes a tenth of the steps.
    """
    floor = float(noise.floor_variance(np.zeros((1, 1))).min())
    levels = [v for v in ANNEALING_VARIANCES if v > 1.5 * floor]
    updates = [BlockCoordinate() if v > 0.2 else Gradient() for v in levels]
    annealing = [Phase(steps // 10, Stationary(v), u, sparsity) for v, u in zip(levels, updates, strict=True)]
    annealing = [phase for phase in annealing if phase.steps]
    return [*annealing, Phase(steps - sum(phase.steps for phase in annealing), noise, Gradient(), sparsity)]


def paper_phases(noise: NoiseModel, steps: int, sparsity: float = 1.0) -> list[Phase]:
    """Plan the paper's learning: Eq. 7 with one noise model from first to last, and no atom ever replaced.

    Give `learn` a `random_start`, ``rounds=PAPER_ROUNDS``, and patches divided by their map's deviation:
    ``PatchStream(..., scale="map", least_contrast=0)``. The paper's Φ1 and Φ2 (``holes="keep"``) are learned with
    `Jeffreys`, its Φ3 with ``Stationary(1)``.

    Parameters
    ----------
    noise
        Model of the noise, in squared units of the patches.
    steps
        Number of steps.
    sparsity
        Weight of the codes' absolute values.

    Returns
    -------
    list of Phase
        One phase.

    Examples
    --------
    >>> [phase.steps for phase in paper_phases(Jeffreys(), 900)]
    [900]
    """
    return [Phase(steps, noise, PAPER_UPDATE, sparsity, renewal=False)]


@dataclass(frozen=True, eq=False)
class LearningState:
    """All that a run needs to continue: its position, the atoms, their usage, and the memory of the update rule."""

    step: int
    atoms: Floats
    usage: Floats
    memory: dict[str, Floats]
    history: Floats = field(default_factory=lambda: np.empty((0, 2)))
    """(m, 2): the steps that reported a held-out energy, and what they reported."""

    @property
    def ranked_atoms(self) -> Floats:
        """The atoms, most used first."""
        return self.atoms[np.argsort(-self.usage, kind="stable")]

    def save(self, path: str | Path, about: dict[str, Any]) -> None:
        """Write a checkpoint, whole or not at all; ``about`` must be equal on resuming."""
        arrays = {"atoms": self.atoms, "usage": self.usage, "history": self.history}
        arrays |= {f"memory.{k}": v for k, v in self.memory.items()}
        header = {"kind": CHECKPOINT_KIND, "step": str(self.step), "about": json.dumps(about, sort_keys=True)}
        header["sha256"] = _digest(arrays, header["step"])
        write_atomically(path, encode_tensors(arrays, header))

    @classmethod
    def load(cls, path: str | Path, about: dict[str, Any]) -> LearningState:
        arrays, header = read_tensors(path, CHECKPOINT_KIND)
        if header.get("about") != json.dumps(about, sort_keys=True):
            raise InputError(f"{path} belongs to a run with other data or settings; repeat its command, or start again")
        if header.get("sha256") != _digest(arrays, header.get("step", "")):
            raise InputError(f"{path} is damaged; start again without it")
        memory = {name.removeprefix("memory."): v for name, v in arrays.items() if name.startswith("memory.")}
        return cls(int(header["step"]), arrays["atoms"], arrays["usage"], memory, arrays["history"])


def _digest(arrays: dict[str, Any], step: str) -> str:
    """Compute a checksum of all that a checkpoint holds."""
    digest = hashlib.sha256(step.encode())
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype} {arrays[name].shape}".encode())
        digest.update(np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class LearningStep:
    """The result of one step of learning.

    Parameters
    ----------
    state
        What a run is resumed from.
    patch_shape
        Height and width of a patch.
    energy
        Mean energy (Eq. 6) of the batch, before the atoms moved.
    held_out
        Mean energy of the held-out patches under the last phase's noise model, on the steps that report it.
    replaced
        Atoms that were unused or twins, now started afresh from badly represented patches.

    Examples
    --------
    >>> from sparsedepth import learn
    >>> patches = np.random.default_rng(0).standard_normal((64, 4))
    >>> [step.step for step in learn(patches, 4, steps=2)]
    [1, 2]
    """

    state: LearningState
    patch_shape: tuple[int, int]
    energy: float
    held_out: float | None
    replaced: int

    @property
    def step(self) -> int:
        """The number of steps done so far."""
        return self.state.step

    @property
    def dictionary(self) -> Dictionary:
        """The atoms, most used first."""
        return Dictionary(self.state.ranked_atoms, self.patch_shape)


def learn(
    patches: Patches | Batches,
    start: Dictionary | int,
    noise: NoiseModel = Jeffreys(),
    *,
    steps: int = 1000,
    sparsity: float = 1.0,
    phases: Sequence[Phase] | None = None,
    held_out: Patches | Batch | None = None,
    report_every: int = 50,
    resume: LearningState | None = None,
    seed: int = 0,
    rounds: int = ROUNDS,
    threads: int | None = None,
    accumulator: Accumulate = accumulate,
) -> Iterator[LearningStep]:
    """Learn a dictionary from normalised patches; yields after each step, so the caller shows progress or stops.

    The same arguments give the same dictionary, whatever the number of threads. A run resumed from the state of any
    step ends as if it had never stopped.

    Parameters
    ----------
    patches
        (n, pixels), NaN = missing; batches are drawn from them by ``seed``. Or a function from the number of a step to
        its `Batch`, such as a `PatchStream`.
    start
        A dictionary, or how many atoms to begin with (square patches of the data).
    noise
        Model of the noise, in squared units of the patches.
    steps, sparsity, phases
        Length and price of the default `schedule` for ``noise``; or phases of one's own.
    held_out
        Patches on which the energy is reported, every ``report_every`` steps.
    resume
        State of a step of another run.
    rounds
        Iterations after which coding a batch ends. The default is near enough, as the atoms move anyway; with half as
        many, atoms are learned that suit unfinished codes.
    threads
        Number of threads; all cores by default.
    accumulator
        Who codes the batches: this process, or `sparsedepth.cluster.ClusterAccumulator`.

    Yields
    ------
    LearningStep
        One after each step.

    Examples
    --------
    >>> from sparsedepth import learn
    >>> patches = np.random.default_rng(0).standard_normal((64, 4))
    >>> list(learn(patches, 4, steps=3))[-1].state.atoms.shape
    (4, 4)
    """
    batches = patches if callable(patches) else PatchPool(patches, seed=seed)
    if not isinstance(start, Dictionary):
        start = start_from(batches, start, seed=seed)
    if report_every < 1:
        raise InputError(f"report_every is {report_every}; it must be at least 1")
    if isinstance(noise, Known):
        raise InputError("give the known variances with the patches (PatchPool or PatchStream), not as the noise model")
    phases = schedule(noise, steps, sparsity) if phases is None else phases
    held = held_out if isinstance(held_out, Batch) or held_out is None else Batch(held_out)
    state = resume or LearningState(0, start.atoms.astype(np.float32), np.ones(start.n_atoms, np.float32), {})
    last = sum(phase.steps for phase in phases)
    for phase, within in _from_step(phases, state.step):
        if within == 0:
            state = replace(state, memory=phase.update.start(state.atoms))
        batch = batches(state.step)
        found = total(accumulator(batch, state.atoms, phase.noise, phase.sparsity, rounds=rounds, threads=threads))
        with one_blas_thread:
            state, replaced = _moved(state, phase, batch, found, within)
        reported = None
        if held is not None and (state.step % report_every == 0 or state.step == last):
            final = phases[-1]
            seen = total(accumulator(held, state.atoms, final.noise, final.sparsity, rounds=None, threads=threads))
            reported = seen.energy / seen.count
            state = replace(state, history=np.append(state.history, [[state.step, reported]], axis=0))
        yield LearningStep(state, start.patch_shape, found.energy / found.count, reported, replaced)


def _from_step(phases: Sequence[Phase], step: int) -> Iterator[tuple[Phase, int]]:
    """Yield the phase of each coming step, and the number of the step within the phase."""
    for phase in phases:
        yield from ((phase, within) for within in range(min(step, phase.steps), phase.steps))
        step = max(step - phase.steps, 0)


def _moved(
    state: LearningState, phase: Phase, batch: Batch, found: Statistics, within: int
) -> tuple[LearningState, int]:
    """Update the atoms once; return the new state and the number of atoms that were replaced."""
    memory = {name: value.copy() for name, value in state.memory.items()}
    atoms = phase.update.move(state.atoms, memory, found, within)
    atoms = (atoms / np.linalg.norm(atoms, axis=1, keepdims=True)).astype(state.atoms.dtype)
    usage = USAGE_DECAY * state.usage + (1 - USAGE_DECAY) * found.usage / found.count
    if not phase.renewal:
        return LearningState(state.step + 1, atoms, usage.astype(np.float32), memory, state.history), 0
    fresh = _worst_represented(batch.patches, found.excess)
    idle = _idle(atoms, usage)[: len(fresh)]
    atoms[idle] = fresh[: len(idle)] / np.linalg.norm(fresh[: len(idle)], axis=1, keepdims=True)
    usage[idle] = np.median(usage)
    for name in memory.keys() & {"curvature", "pull"}:
        memory[name][idle] = 0
    if "curvature" in memory:
        memory["curvature"][:, idle] = 0
    return LearningState(state.step + 1, atoms, usage.astype(np.float32), memory, state.history), len(idle)


def _worst_represented(patches: Patches, excess: Vector) -> Patches:
    """Rank the patches of a batch by their energy beyond the noise floor, highest first; patches with holes last."""
    whole = np.isfinite(patches).all(axis=1)
    patches = np.nan_to_num(patches[np.lexsort((-excess, ~whole))])
    return patches[np.abs(patches).max(axis=1) > 0]


def _idle(atoms: Floats, usage: Floats) -> NDArray[np.intp]:
    """Find atoms that are hardly used, and the less used one of each pair of nearly equal atoms."""
    coherence = np.abs(atoms @ atoms.T)
    busier = (usage[None, :] > usage[:, None]) | (
        (usage[None, :] == usage[:, None]) & np.tri(len(usage), k=-1, dtype=bool)
    )
    twin = ((coherence > MAX_COHERENCE) & busier).any(axis=1)
    return np.flatnonzero(twin | (usage < MIN_USAGE_FRACTION * np.median(usage)))
