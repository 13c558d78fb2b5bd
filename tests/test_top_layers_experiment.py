"""The experiment on top layers: its short version runs anywhere, and no scene teaches what it is judged by."""

from __future__ import annotations

import importlib.util
import json

import numpy as np
import pytest

import sparsedepth_experiments as experiments
from sparsedepth.vocabulary import InputError
from sparsedepth_experiments import _refiner, _top_layers, _top_layers_jobs, top_layers
from sparsedepth_experiments._scenes import cut_out, small_scene
from sparsedepth_experiments._top_layers import Sample

pytestmark = pytest.mark.skipif(importlib.util.find_spec("cv2") is None, reason="OpenCV is not installed")


def sample(name: str = "a", left: int = 0) -> Sample:
    scene = cut_out(small_scene(), 0, left, (40, 40))
    rng = np.random.default_rng(left)
    given = np.nan_to_num(scene.disparity, nan=2.0) + np.where(rng.random((40, 40)) < 0.1, 3, 0)
    return Sample(name, scene, np.clip(given, 0, scene.pair.max_disparity).astype(np.float32))


@pytest.mark.slow
def test_top_layers_in_short(tmp_path, monkeypatch):
    monkeypatch.delenv("SPARSEDEPTH_DATA", raising=False)
    steps = []
    experiment = experiments.load("top_layers")
    facts = experiment.run(tmp_path, lambda _, done, total: steps.append((done, total)), quick=True)
    facts = json.loads(json.dumps(facts, allow_nan=False))
    page = (tmp_path / "top_layers.md").read_text()
    assert "stand in for the scenes" in page
    assert set(facts["bad"]) == set(_top_layers_jobs.methods())
    assert all(len(of) == 3 and 0 <= error <= 100 for of in facts["bad"].values() for error in of.values())
    assert page.count("**no**") == list(facts["verdicts"].values()).count(False)
    assert page.count(".png)") == len(list(tmp_path.glob("top-layers-*.png"))) > 0
    assert steps[-1][0] == steps[-1][1]


def test_a_whole_run_asks_for_its_data(tmp_path, monkeypatch):
    monkeypatch.delenv("SPARSEDEPTH_DATA", raising=False)
    with pytest.raises(InputError, match="SPARSEDEPTH_DATA"):
        top_layers.run(tmp_path, lambda *_: None)
    assert not list(tmp_path.iterdir())


def test_folds_hold_whole_families_and_every_scene_once():
    names = ["Aloe", "Baby1", "Baby2", "Baby3", "Cloth1", "Cloth2", "Wood1"]
    scene = sample()
    folds = _top_layers_jobs.folds_of([Sample(name, scene.scene, scene.plain) for name in names], 3)
    held = [{each.name for each in fold} for fold in folds]
    assert sorted(name for fold in held for name in fold) == names
    assert {"Baby1", "Baby2", "Baby3"} in held
    assert any({"Cloth1", "Cloth2"} <= fold for fold in held)
    assert min(map(len, held)) >= 2


@pytest.mark.slow
def test_the_network_learns_what_is_plainly_so():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(4096, 5)).astype(np.float32)
    right = (rows[:, 0] > 0) ^ (rows[:, 1] > 0)
    layers = _refiner._trained(np.tile(rows, (8, 1)), np.tile(right, 8), np.random.default_rng(0))
    refiner = _refiner.Refiner(frozenset(), np.zeros(5, np.float32), np.ones(5, np.float32), layers)
    assert ((refiner.scores(rows) > 0) == right).mean() > 0.95


def test_gradients_are_those_of_the_cross_entropy():
    rng = np.random.default_rng(1)
    rows, right = rng.normal(size=(30, 4)), rng.random(30) < 0.5
    shapes = [(4, 3), (3,), (3, 2), (2,), (2, 1), (1,)]
    values = [rng.normal(size=shape) for shape in shapes]

    def loss() -> float:
        hidden = np.maximum(np.maximum(rows @ values[0] + values[1], 0) @ values[2] + values[3], 0)
        odds = (hidden @ values[4] + values[5])[:, 0]
        return float(np.mean(np.logaddexp(0, odds) - right * odds))

    for value, gradient in zip(values, _refiner._gradients(values, rows, right), strict=True):
        for at in np.ndindex(value.shape):
            was = value[at]
            value[at] = was + 1e-5
            more = loss()
            value[at] = was - 1e-5
            slope = (more - loss()) / 2e-5
            value[at] = was
            assert gradient[at] == pytest.approx(slope, abs=1e-5)


def test_the_refiner_changes_disputed_pixels_only_and_takes_candidates():
    one = sample()
    rows_of = _refiner.TrainingRows(frozenset({_refiner.PICTURE}))
    refiner = _refiner.train_refiner([one], rows_of)
    maps = np.stack(_refiner.candidates(one, rows_of.knows))
    open_, found = _refiner.disputed(maps), refiner(one)
    np.testing.assert_array_equal(found[~open_], one.filled[~open_])
    assert (found == maps).any(axis=0).all()


def test_a_choice_is_the_best_of_the_training_scenes():
    one = sample()
    found = _top_layers.chosen({"true": lambda each: each.truth, "filled": _top_layers.filled}, [one])
    assert found[0] == "true"
    assert _top_layers.mean_bad(found[1], [one]) == 0
