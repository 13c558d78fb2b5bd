"""Compare inference with other solvers: the same patches, dictionary and alternation, interleaved in one process.

Each peer solves the weighted lasso of one patch; the alternation around it (exact codes, closed-form variances, from
variance 1, until the energy falls by less than 1e-4 of its excess) is the same for all. Writes docs/results/speed.md.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from sparsedepth import Dictionary, Jeffreys, Known, energy, infer, weighted_lasso
from sparsedepth.data.motorcycle import motorcycle_disparity
from sparsedepth.data.synthetic import corrupted
from sparsedepth.markdown import machine, table, write_made_part
from sparsedepth.patches import PatchStream

NOISE, SPARSITY = Jeffreys(floor=0.01), 1.0
Peer = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""(design (pixels, atoms), target (pixels,)) -> codes, for sparsity 1."""


def peers() -> dict[str, tuple[Peer, int]]:
    """List the other solvers, and on how many patches each is timed."""
    import spams
    from celer import Lasso as Celer
    from sklearn.linear_model import Lasso, lars_path_gram

    def spams_lars(design: np.ndarray, target: np.ndarray) -> np.ndarray:
        columns = np.asfortranarray(design, np.float32), np.asfortranarray(target[:, None], np.float32)
        return spams.lasso(columns[1], columns[0], mode=2, lambda1=SPARSITY, numThreads=1).toarray()[:, 0]

    def gram(tolerance: float) -> Peer:
        def solve(design: np.ndarray, target: np.ndarray) -> np.ndarray:
            model = Lasso(SPARSITY / len(target), fit_intercept=False, precompute=design.T @ design, tol=tolerance)
            return model.fit(design, target).coef_

        return solve

    def lars(design: np.ndarray, target: np.ndarray) -> np.ndarray:
        path = lars_path_gram(
            design.T @ target,
            design.T @ design,
            n_samples=len(target),
            alpha_min=SPARSITY / len(target),
            method="lasso",
            return_path=False,
        )
        return path[2]

    def celer(design: np.ndarray, target: np.ndarray) -> np.ndarray:
        return Celer(SPARSITY / len(target), fit_intercept=False, tol=1e-4).fit(np.asfortranarray(design), target).coef_

    return {
        "SPAMS lasso (LARS), float32": (spams_lars, 128),
        "scikit-learn Lasso, Gram, tol 1e-3": (gram(1e-3), 48),
        "scikit-learn Lasso, Gram, tol 1e-4": (gram(1e-4), 48),
        "scikit-learn LARS, Gram": (lars, 24),
        "celer, tol 1e-4": (celer, 24),
    }


def designed(patch: np.ndarray, atoms: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scale rows by the roots of the precisions, without missing pixels."""
    known = np.isfinite(patch) & np.isfinite(variance)
    root = 1 / np.sqrt(variance[known])
    return atoms[:, known].T * root[:, None], patch[known] * root


def alternation(peer: Peer, patch: np.ndarray, atoms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    variance = NOISE.initial_variance(patch[None])
    lowest, offset = np.inf, NOISE.cost(NOISE.floor_variance(patch[None]))[0]
    codes = np.zeros(len(atoms))
    for _ in range(20):
        codes = peer(*designed(patch, atoms, variance[0]))
        variance = NOISE.best_variance(patch[None] - codes @ atoms)
        now = energy(patch[None], atoms, codes[None], variance)[0]
        if lowest - now < 1e-4 * (now - offset):
            break
        lowest = now
    return codes, variance[0]


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def benchmark_patches(n: int) -> np.ndarray:
    noisy = corrupted(motorcycle_disparity(), 0.02, np.random.default_rng(0))
    return PatchStream([noisy], (16, 16), batch=n, seed=7)(0).patches


def whole_inference(patches: np.ndarray, atoms: np.ndarray, repeats: int) -> tuple[list[list[str]], float]:
    """Measure the rows of the table, and our time over that of the best other solver."""
    all_peers = peers()
    seconds: dict[str, list[float]] = {name: [] for name in ("ours", *all_peers)}
    energies: dict[str, np.ndarray] = {}
    ours = np.empty(0)
    for _ in range(repeats):
        spent, code = timed(lambda: infer(patches, atoms, NOISE, SPARSITY, threads=1))
        seconds["ours"].append(spent / len(patches))
        ours = code.energy
        for name, (peer, n) in all_peers.items():
            some = patches[:n].astype(np.float64)
            spent, found = timed(
                lambda p=peer, s=some: [alternation(p, patch, atoms.astype(np.float64)) for patch in s]
            )
            seconds[name].append(spent / n)
            codes, variance = map(np.array, zip(*found, strict=True))
            energies[name] = energy(some, atoms, codes, variance)
    base = median(seconds["ours"])
    rows = [["**ours**, one thread", f"{base * 1e6:.0f}", "1", f"{ours.mean():.2f}", f"all {len(patches)}"]]
    best = np.inf
    for name, (_, n) in all_peers.items():
        ratio = median(seconds[name]) / base
        best = min(best, ratio)
        pair = f"{energies[name].mean():.2f} (ours {ours[:n].mean():.2f})"
        rows.append([name, f"{median(seconds[name]) * 1e6:.0f}", f"{ratio:.0f}", pair, f"first {n}"])
    return rows, best


def inner_lasso(patches: np.ndarray, atoms: np.ndarray, repeats: int) -> tuple[list[list[str]], dict[str, float]]:
    """Measure the weighted lasso alone, at the variances that inference ends with."""
    n = 512
    some = patches[:n]
    variance = infer(some, atoms, NOISE, SPARSITY).variance
    exact = weighted_lasso(
        some.astype(np.float64), atoms, variance.astype(np.float64), SPARSITY, tolerance=1e-7, max_rounds=5000
    )
    fixed = Known(np.where(np.isfinite(variance), variance, 1))

    def objective(codes: np.ndarray, rows: slice) -> np.ndarray:
        floor = fixed.take(rows).floor_variance(some[rows])
        return energy(some[rows], atoms, codes, floor, SPARSITY) - fixed.cost(floor)

    def suboptimality(codes: np.ndarray, rows: slice) -> float:
        best = objective(exact[rows], rows)
        return float(((objective(codes, rows) - best) / best).mean())

    contenders: dict[str, tuple[Callable[[], np.ndarray], int]] = {
        f"**ours**, gap {tolerance:g}, one thread": (
            lambda t=tolerance: weighted_lasso(some, atoms, variance, SPARSITY, tolerance=t, threads=1),
            n,
        )
        for tolerance in (5e-3, 1e-3)
    }
    for tolerance in (1e-4, 5e-5):
        contenders[f"**ours**, energy at rest {tolerance:g}, one thread"] = (
            lambda t=tolerance: infer(some, atoms, fixed, SPARSITY, tolerance=t, max_rounds=2000, threads=1).codes,
            n,
        )
    wide = atoms.astype(np.float64)
    for name, (peer, count) in peers().items():
        contenders[name] = (
            lambda p=peer, c=count: np.array(
                [p(*designed(some[i].astype(np.float64), wide, variance[i].astype(np.float64))) for i in range(c)]
            ),
            count,
        )
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    accuracy: dict[str, float] = {}
    for _ in range(repeats):
        for name, (work, count) in contenders.items():
            spent, codes = timed(work)
            seconds[name].append(spent / count)
            accuracy[name] = suboptimality(codes, slice(0, count))
    base = min(median(seconds[name]) for name in contenders if "ours" in name and accuracy[name] <= 1e-4)
    ratios = {name: median(seconds[name]) / base for name in contenders}
    rows = [
        [name, f"{median(seconds[name]) * 1e6:.0f}", f"{accuracy[name]:.1e}", f"{ratios[name]:.1f}"]
        for name in contenders
    ]
    return rows, {name: ratios[name] for name in contenders if accuracy[name] <= 1e-4}


def products_per_iteration(atoms: np.ndarray) -> float:
    """Count the floating-point operations of the products of one iteration of one patch."""
    n_atoms, n_pixels = atoms.shape
    return 2 * (n_atoms * n_pixels * (2 + 1 / 8) + n_pixels**2)


def machine_use(patches: np.ndarray, atoms: np.ndarray, repeats: int) -> list[list[str]]:
    many = np.concatenate([patches] * 4)
    left, right = many[:1024].copy(), np.random.default_rng(0).standard_normal((atoms.shape[1], 512)).astype(np.float32)
    left[np.isnan(left)] = 0
    product = np.empty((1024, 512), np.float32)
    gemm, one, two, rounds = [], [], [], 0
    for _ in range(repeats):
        with threadpool_limits(1):
            gemm.append(timed(lambda: [np.dot(left, right, out=product) for _ in range(200)])[0])
        spent, code = timed(lambda: infer(many, atoms, NOISE, SPARSITY, threads=1))
        one.append(spent)
        rounds = int(code.rounds.sum())
        two.append(timed(lambda: infer(many, atoms, NOISE, SPARSITY, threads=2))[0])
    limit = 200 * 2 * 1024 * 512 * atoms.shape[1] / median(gemm)
    rate = products_per_iteration(atoms) * rounds / median(one)
    return [
        ["float32 GEMM of this machine, one thread", f"{limit / 1e9:.0f} GFLOP/s"],
        ["inference, one thread, its products only", f"{rate / 1e9:.0f} GFLOP/s"],
        ["share of the GEMM rate", f"{rate / limit:.0%}"],
        ["two threads against one", f"{median(one) / median(two):.2f}x"],
        ["iterations a patch", f"{rounds / len(many):.0f}"],
        ["time a patch, two threads", f"{median(two) / len(many) * 1e6:.0f} µs"],
    ]


def peak_memory() -> str:
    """Measure the peak memory of 300,000 patches with 512 atoms, beyond its input and output arrays."""
    script = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import speed; speed.memory_worker()"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def memory_worker() -> None:
    n, n_pixels, n_atoms = 300_000, 256, 512
    rng = np.random.default_rng(0)
    atoms = rng.standard_normal((n_atoms, n_pixels)).astype(np.float32)
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    infer(rng.standard_normal((2048, n_pixels)).astype(np.float32), atoms, NOISE, SPARSITY, max_rounds=16)
    patches = rng.standard_normal((n, n_pixels), dtype=np.float32)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    code = infer(patches, atoms, NOISE, SPARSITY, max_rounds=16)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    outputs = sum(values.nbytes for values in vars(code).values())
    print(f"{max(after - before - outputs, 0) / 1e9:.2f} GB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--output", type=Path, default=Path("docs/results/speed.md"))
    options = parser.parse_args()
    warnings.filterwarnings("ignore")  # the peers' convergence warnings: their energy is in the table
    threadpool_limits(1)
    patches = benchmark_patches(2048)
    atoms = Dictionary.builtin("phi1").atoms
    whole, best = whole_inference(patches, atoms, options.repeats)
    inner, ratios = inner_lasso(patches, atoms, options.repeats)
    use = machine_use(patches, atoms, options.repeats)
    others = {name: ratio for name, ratio in ratios.items() if "ours" not in name}
    slowest = ", ".join(f"{name}: {ratio:.1f}x" for name, ratio in others.items())
    made = write_made_part(
        options.output,
        "Speed of inference",
        "make bench",
        [
            "Patches of 16x16 pixels of the Motorcycle disparities (2 % of them corrupted), the "
            "shipped `phi1` (256 atoms), floor 0.01, sparsity 1. Medians over interleaved repeats; one thread. "
            + machine(),
            "## Whole inference",
            table(
                ["solver inside the alternation", "µs a patch", "times ours", "mean energy (Eq. 6)", "patches"], whole
            ),
            f"The best peer takes {best:.0f} times as long as ours.",
            "## The weighted lasso alone, fixed variances",
            table(["solver", "µs a patch", "mean relative suboptimality", "times ours at 1e-4"], inner),
            f"Among those that reach 1e-4: {slowest}.",
            "## Use of the machine",
            table(["", ""], use),
            "## Memory",
            f"Peak beyond the input and output arrays, 300,000 patches of 16x16 pixels, 512 atoms: {peak_memory()}.",
        ],
    )
    print(made)


if __name__ == "__main__":
    main()
