"""Training scripts: a quick run of each writes coefficients of the shipped shapes that say how they were made."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sparsedepth.fitted import load_fitted, read_fitted, shipped_path
from sparsedepth.restore.flying import SQUARED_DISTANCE
from sparsedepth.restore.outliers import OutlierClassifier

pytestmark = pytest.mark.slow

TRAINING = Path(__file__).parent.parent / "training"
SCRIPTS = ("outlier_classifier", "variance_measured", "variance_filled", "flying_pixels")


def run(name: str, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run a training script in a folder; no quick run needs the data sets."""
    command = [sys.executable, str(TRAINING / f"{name}.py"), "--quick", *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def quick_runs(tmp_path_factory) -> dict[str, Path]:
    """The files of quick runs, by the names of their scripts."""
    folder = tmp_path_factory.mktemp("training")
    for name in SCRIPTS:
        done = run(name, folder, "--output", f"{name}.safetensors")
        assert done.returncode == 0, done.stderr
        assert "held out" in done.stdout
    return {name: folder / f"{name}.safetensors" for name in SCRIPTS}


@pytest.mark.parametrize("name", SCRIPTS)
def test_quick_run_writes_arrays_of_the_shipped_names_and_shapes(quick_runs, name):
    found, shipped = read_fitted(quick_runs[name]).arrays, load_fitted(name).arrays
    assert {key: array.shape for key, array in found.items()} == {key: array.shape for key, array in shipped.items()}
    assert all(np.isfinite(array).all() for array in found.values())


@pytest.mark.parametrize("name", SCRIPTS)
def test_header_names_script_and_seed(quick_runs, name):
    about = read_fitted(quick_runs[name]).about
    assert about["script"] == f"training/{name}.py"
    assert about["seed"] == "0"
    assert "for tests only" in about["data"]


def test_held_out_classifiers_are_kept_for_the_variance(quick_runs):
    folder = quick_runs["outlier_classifier"].parent / "out" / "outlier_classifier"
    paths = sorted(folder.glob("*.safetensors"))
    assert len(paths) == 3
    for path in paths:
        classifier = OutlierClassifier.from_arrays(read_fitted(path).arrays)
        assert np.isfinite(classifier(np.zeros((1, len(classifier.mean)), np.float32))).all()


def test_flying_pixels_depend_on_distance_alone(quick_runs):
    log_odds = read_fitted(quick_runs["flying_pixels"]).arrays["side_log_odds"]
    for distance in np.unique(SQUARED_DISTANCE):
        assert len(set(log_odds[distance == SQUARED_DISTANCE])) == 1


@pytest.mark.parametrize("name", SCRIPTS)
def test_quick_run_never_replaces_the_shipped_file(tmp_path, name):
    before = shipped_path(name).read_bytes()
    done = run(name, tmp_path)
    assert done.returncode != 0
    assert "--output" in done.stderr
    assert shipped_path(name).read_bytes() == before
