"""The experiment on second-order stereo: its short version runs anywhere, and its arms are what the page says."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import replace

import pytest

import sparsedepth_experiments as experiments
from outputs import versions
from sparsedepth.stereo import solvers
from sparsedepth.stereo.prior import NO_FEEDBACK
from sparsedepth.vocabulary import InputError
from sparsedepth_experiments import second_order
from sparsedepth_experiments._scenes import small_scene
from sparsedepth_experiments._second_order_jobs import AGAIN, VARIANTS, WITH, WITHOUT

pytestmark = pytest.mark.skipif(importlib.util.find_spec("cv2") is None, reason="OpenCV is not installed")


@pytest.mark.slow
def test_second_order_stereo_in_short(tmp_path, monkeypatch):
    monkeypatch.delenv("SPARSEDEPTH_DATA", raising=False)
    monkeypatch.setenv("SPARSEDEPTH_CACHE", str(tmp_path / "cache"))
    steps = []
    experiment = experiments.load("second_order")
    facts = experiment.run(tmp_path, lambda _, done, total: steps.append((done, total)), quick=True)
    facts = json.loads(json.dumps(facts, allow_nan=False))
    page = (tmp_path / "second_order.md").read_text()
    assert "stands in for the scenes" in page
    assert "(second-order-motorcycle.png)" in page
    assert (tmp_path / "second-order-motorcycle.png").read_bytes().startswith(b"\x89PNG")
    assert set(facts["bad"]) == {"confirming", "test", *second_order.OTHERS}
    for group in facts["bad"].values():
        for errors in group.values():
            assert set(errors) == set(second_order.SHORT)
            assert all(0 <= error <= 100 for each in errors.values() for error in each)
    assert page.count("**no**") == list(facts["verdicts"].values()).count(False)
    assert steps[-1] == (4 * len(second_order.SHORT) + 2, 4 * len(second_order.SHORT) + 2)
    before = versions(tmp_path / "cache")
    again = experiment.run(tmp_path, lambda *_: None, quick=True)
    assert len(before) > 0
    assert versions(tmp_path / "cache") == before, "what is cached is not made again"
    assert again["bad"] == facts["bad"]


def test_a_whole_run_asks_for_its_data(tmp_path, monkeypatch):
    monkeypatch.delenv("SPARSEDEPTH_DATA", raising=False)
    with pytest.raises(InputError, match="SPARSEDEPTH_DATA"):
        second_order.run(tmp_path, lambda *_: None)
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("real_data")
def test_the_whole_plan_confirms_before_it_tests_the_papers_scenes():
    plan = second_order._plan()
    assert list(plan.test.scenes) == ["Teddy", "Cones"]
    assert len(plan.confirming.scenes) == 21
    assert not plan.test.scenes.keys() & plan.confirming.scenes.keys()
    assert set(plan.test.seeds.values()) == {5}
    keys = [job.key for job in plan.jobs()]
    groups = [key["group"] for key in keys]
    assert groups.index("test") == groups.count("confirming")
    assert len({tuple(key.values()) for key in keys}) == len(keys)
    assert plan.test.scenes["Teddy"].pair.shape == (375, 450)


def test_most_seeds_come_first_seed_by_seed():
    group = second_order.Group({"a": small_scene(), "b": small_scene()}, {"x": 2, "y": 1})
    arms = [(arm.name, arm.variant, arm.seed) for arm in group.arms("phi1", 8)]
    assert arms == [("a", "x", 0), ("b", "x", 0), ("a", "x", 1), ("b", "x", 1), ("a", "y", 0), ("b", "y", 0)]


def test_only_the_strengths_that_act_become_those_of_the_other_solver():
    for solver in second_order.OTHERS:
        own = solvers.load(solver)
        again, without, with_ = (VARIANTS[name].scaled_for(solver) for name in (AGAIN, WITHOUT, WITH))
        assert again == VARIANTS[AGAIN]
        assert (without.hidden, without.feedback) == (own.hidden_feedback, NO_FEEDBACK)
        assert (with_.hidden, with_.feedback) == (own.hidden_feedback, replace(own.feedback, least_weight=1.0))
