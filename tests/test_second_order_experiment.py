"""The experiment on second-order stereo: its short version runs anywhere, and its arms are what the page says."""

from __future__ import annotations

import importlib.util
import json

import numpy as np
import pytest

import sparsedepth_experiments as experiments
from outputs import versions
from sparsedepth.vocabulary import InputError
from sparsedepth_experiments import second_order

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
    for errors in facts["bad"].values():
        assert set(errors) == set(second_order._quick_plan().seeds)
        assert all(0 <= error <= 100 for each in errors.values() for error in each)
    assert page.count("**no**") == list(facts["verdicts"].values()).count(False)
    assert steps[-1] == (5, 5)
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
def test_the_whole_plan_is_the_papers_scenes_with_the_claims_first():
    plan = second_order._plan()
    assert list(plan.scenes) == ["Teddy", "Cones"]
    assert plan.seeds[second_order.PLAIN] == plan.seeds[second_order.BOTH] == plan.seeds[second_order.AGAIN] > 0
    jobs = plan.jobs()
    assert [(job.name, job.variant, job.seed) for job in jobs[:2]] == [("Teddy", "2OP", 0), ("Cones", "2OP", 0)]
    assert len({(job.name, job.variant, job.seed) for job in jobs}) == len(jobs) == 2 * sum(plan.seeds.values())
    of_the_claims = [job.seed for job in jobs if plan.seeds[job.variant] == plan.seeds[second_order.BOTH]]
    assert [job.seed for job in jobs[: len(of_the_claims)]] == sorted(of_the_claims)
    assert np.all(plan.scenes["Teddy"].pair.shape == np.array([375, 450]))
