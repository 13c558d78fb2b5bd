"""The same input, version and options give the same bytes, whatever the process, its threads, jobs and bands."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from in_bands import denoise_in_bands
from sparsedepth import denoise
from sparsedepth.cli.batch import journal
from sparsedepth.files import write_array

ROUNDING = 1e-6
"""Standard deviations of the map: what sums taken in another order may change, where bands of patches overlap."""


def scene(seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:44, :52]
    depth = 1500 + 4 * x + 2 * y + 600.0 * (x + 0.4 * y > 30 + seed)
    depth += np.where(rng.random(depth.shape) < 0.03, rng.normal(0, 300, depth.shape), 0)
    depth[rng.random(depth.shape) < 0.04] = 0
    return np.clip(np.rint(depth), 0, 65535).astype(np.uint16)


@pytest.mark.slow
def test_processes_with_other_threads_and_seeds_write_the_same_bytes(tmp_path):
    (tmp_path / "in").mkdir()
    for seed in range(3):
        write_array(tmp_path / f"in/{seed}.png", scene(seed))
    found = []
    for threads, jobs in ((1, 1), (3, 2)):
        env = {**os.environ, "PYTHONHASHSEED": str(threads)}
        env |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(threads))
        out = tmp_path / f"out{threads}"
        maps = ("denoise", tmp_path / "in", "--profile", "mm", "--quality", "fast", "--npz", "--jobs", jobs, "-o", out)
        atoms = ("learn", tmp_path / "in/0.png", "--patch", 6, "--atoms", 40, "--steps", 12, "--threads", threads)
        for words in (maps, (*atoms, "--batch", 300, "-o", out / "atoms.safetensors")):
            subprocess.run([sys.executable, "-m", "sparsedepth", *map(str, words)], env=env, check=True, timeout=120)
        found.append({path.name: path.read_bytes() for path in out.iterdir() if path.name != journal.NAME})
    assert len(found[0]) == 4
    assert found[0] == found[1]


@pytest.mark.parametrize("method", ["calibrated", "paper"])
def test_bands_change_no_more_than_rounding(method):
    depth = scene().astype(np.float32)
    depth[depth == 0] = np.nan
    sensor = None if method == "paper" else "clean"
    whole = denoise(depth, method=method, quality="fast", threads=1, sensor=sensor)
    banded = denoise_in_bands(depth, 20, method=method, quality="fast", threads=2)
    deviation = float(np.nanstd(depth))
    np.testing.assert_allclose(banded.depth, whole.depth, rtol=0, atol=ROUNDING * deviation)
    np.testing.assert_allclose(np.sqrt(banded.variance), np.sqrt(whole.variance), rtol=0, atol=ROUNDING * deviation)
    np.testing.assert_array_equal(banded.origin, whole.origin)
