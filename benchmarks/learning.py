"""Compare learning with scikit-learn: held-out ns-SC energy after some CPU time. Writes docs/results/learning.md."""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.decomposition import MiniBatchDictionaryLearning
from threadpoolctl import threadpool_limits

from sparsedepth import Jeffreys, infer, learn
from sparsedepth.data.middlebury import disparities
from sparsedepth.data.motorcycle import motorcycle_disparity
from sparsedepth.markdown import machine, table, write_made_part
from sparsedepth.patches import PatchStream

SHAPE, ATOMS = (16, 16), 256


def streams() -> tuple[PatchStream, np.ndarray, str]:
    """Return patches to learn from, held-out patches, and their source."""
    if os.environ.get("SPARSEDEPTH_DATA"):
        stream = PatchStream(disparities(2006), SHAPE, batch=512, seed=1)
        return (
            stream,
            PatchStream(disparities(2005), SHAPE, batch=512, seed=2)(0).patches,
            "Middlebury 2006, held out 2005",
        )
    left, right = np.array_split(motorcycle_disparity(), 2, axis=1)
    stream = PatchStream([left], SHAPE, batch=512, seed=1)
    return (
        stream,
        PatchStream([right], SHAPE, batch=512, seed=2)(0).patches,
        "Motorcycle, left half, held out right half",
    )


def ours(stream: PatchStream, budget: float) -> tuple[np.ndarray, float]:
    """Learn atoms within so many CPU seconds: the default schedule, with as many steps as fit."""
    start = time.process_time()
    for step in learn(stream, ATOMS, steps=30):
        if step.step == 12:
            break
    pace = (time.process_time() - start) / 12
    steps = int(budget / pace * 0.85)
    start = time.process_time()
    atoms = np.empty(0)
    for step in learn(stream, ATOMS, steps=steps):
        atoms = step.dictionary.atoms
        if time.process_time() - start > budget:
            break
    return atoms, time.process_time() - start


def theirs(stream: PatchStream, alpha: float, budget: float) -> list[tuple[float, np.ndarray]]:
    """Learn scikit-learn's atoms at some moments; holes are zeros, as it takes none."""
    model = MiniBatchDictionaryLearning(
        n_components=ATOMS, alpha=alpha, batch_size=512, fit_algorithm="lars", random_state=0, n_jobs=1
    )
    marks = [budget / 10, budget / 2, budget]
    found: list[tuple[float, np.ndarray]] = []
    spent, step = 0.0, 0
    while spent < budget:
        patches = np.nan_to_num(stream(step).patches)
        start = time.process_time()
        model.partial_fit(patches)
        spent, step = spent + time.process_time() - start, step + 1
        if spent >= marks[len(found)]:
            found.append((spent, model.components_ / np.linalg.norm(model.components_, axis=1, keepdims=True)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", type=float, default=200.0, help="CPU seconds for scikit-learn; ours gets a tenth")
    parser.add_argument("--output", type=Path, default=Path("docs/results/learning.md"))
    options = parser.parse_args()
    warnings.filterwarnings("ignore")  # scikit-learn's convergence warnings
    stream, held, source = streams()

    def score(atoms: np.ndarray) -> str:
        return f"{infer(held, atoms.astype(np.float32), Jeffreys()).energy.mean():.1f}"

    rows = []
    with threadpool_limits(1):
        atoms, spent = ours(stream, options.budget / 10)
        rows.append(["**ours**, default schedule", f"{spent:.0f}", score(atoms)])
        for alpha in (0.1, 1.0):
            for spent, atoms in theirs(stream, alpha, options.budget):
                rows.append(
                    [f"scikit-learn MiniBatchDictionaryLearning, alpha {alpha:g}", f"{spent:.0f}", score(atoms)]
                )
    made = write_made_part(
        options.output,
        "Speed of learning",
        "make bench",
        [
            f"16x16 patches, 256 atoms, batches of 512. {source}. Mean held-out energy (Eq. 6, floor 0.01, sparsity 1; "
            f"lower is better) after some CPU seconds, coding of the held-out patches not counted. {machine()}",
            table(["learner", "CPU seconds", "held-out energy"], rows),
        ],
    )
    print(made)


if __name__ == "__main__":
    main()
