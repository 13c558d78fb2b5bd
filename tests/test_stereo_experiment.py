"""The stereo experiment: its short version runs anywhere, and its arms are what the page says."""

from __future__ import annotations

import json

import numpy as np
import pytest

import sparsedepth_experiments as experiments
from outputs import versions
from sparsedepth.data.middlebury import StereoScene
from sparsedepth.vocabulary import InputError, StereoPair
from sparsedepth_experiments import _matchers, _variants, stereo


@pytest.fixture
def without_data(monkeypatch):
    monkeypatch.delenv("SPARSEDEPTH_DATA", raising=False)


@pytest.mark.slow
@pytest.mark.usefixtures("without_data")
def test_stereo_in_short(tmp_path):
    steps = []
    facts = experiments.load("stereo").run(tmp_path, lambda _, done, total: steps.append((done, total)), quick=True)
    facts = json.loads(json.dumps(facts, allow_nan=False))
    page = (tmp_path / "stereo.md").read_text()
    assert "stands in for the scenes" in page
    scene = facts["bad"]["Motorcycle"]
    assert set(scene) == set(stereo.DATA)
    for data, parts in scene.items():
        picture = f"stereo-motorcycle-{data.lower()}.png"
        assert f"({picture})" in page
        assert (tmp_path / picture).read_bytes().startswith(b"\x89PNG")
        assert set(parts) == {*stereo.PARTS, "any"}
        for errors in parts.values():
            assert set(errors) == {stereo.PLAIN, *stereo.FEEDBACK, stereo.FILTERED}
            assert all(0 <= error <= 100 for each in errors.values() for error in each)
        assert np.all(np.array(parts["any"][stereo.BOTH]) >= parts["all"][stereo.BOTH])
    assert (tmp_path / "stereo-match-motorcycle.png").read_bytes().startswith(b"\x89PNG")
    assert f"| sparsedepth match | {facts['match']['Motorcycle']['all']:.2f} |" in page
    assert len(facts["verdicts"]) == 3 * len(stereo.DATA) + 3
    assert page.count("**no**") == list(facts["verdicts"].values()).count(False)
    assert steps[-1] == (3, 3)


@pytest.mark.usefixtures("without_data")
def test_a_whole_run_asks_for_its_data(tmp_path):
    with pytest.raises(InputError, match="SPARSEDEPTH_DATA"):
        stereo.run(tmp_path, lambda *_: None)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.usefixtures("without_data")
def test_maps_are_cached_where_a_folder_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("SPARSEDEPTH_CACHE", str(tmp_path))
    scene = stereo._quick_plan().scenes[0]
    made = _variants.cuts(scene, "squared", 0, "phi1", 16).done().shown
    before = versions(tmp_path)
    found = _variants.cuts(scene, "squared", 0, "phi1", 16).done().shown
    assert versions(tmp_path) == before, "what is cached is not made again"
    assert list(found) == list(made)
    for name, disparity in made.items():
        np.testing.assert_array_equal(found[name], disparity)
    _variants.cuts(scene, "squared", 1, "phi1", 16).done()
    assert len(versions(tmp_path)) == 2 * len(before), "another seed is another entry"


def test_what_is_asked_of_match_is_judged_by_its_numbers():
    truth = np.tile(np.arange(40.0), (30, 1)) % 7
    masks = [np.ones(truth.shape, bool)] * 3
    scene = stereo.Scene("Venus", StereoScene(StereoPair(np.eye(30, 40), np.eye(30, 40), 9), truth, *masks))
    ours, theirs = truth.copy(), truth.copy()
    ours[0, :10], theirs[0, :20] = 99, 99
    sure = np.where(ours > 9, 50.0, 1.0)
    maps = {_matchers.OURS: ours, _matchers.SMOOTHED: theirs, _matchers.VARIANCE: sure}
    found = _matchers.verdicts([_matchers.Matched(scene, maps)])
    assert [bar.met for bar in found] == [True] * 4
    worse = _matchers.verdicts(
        [_matchers.Matched(scene, maps | {_matchers.OURS: theirs, _matchers.VARIANCE: 1 / sure})]
    )
    assert not any(bar.met for bar in worse)


@pytest.mark.slow
@pytest.mark.usefixtures("without_data")
def test_a_job_gives_the_same_maps_again_and_starts_differ():
    scene = stereo._quick_plan().scenes[0]
    jobs = [_variants.cuts(scene, "squared", start, "phi1", 16) for start in (0, 0, 1)]
    first, again, other = (job.run() for job in jobs)
    for name, disparity in first.items():
        np.testing.assert_array_equal(disparity, again[name])
    assert (first[stereo.PLAIN] != other[stereo.PLAIN]).any()


def test_white_is_fixed_and_black_is_broken():
    truth = np.array([[2.0, 2.0, 2.0, np.nan]])
    maps = {stereo.PLAIN: np.array([[5.0, 2.0, 2.0, 0.0]]), stereo.BOTH: np.array([[2.0, 5.0, 2.0, 7.0]])}
    panel = stereo._changed(stereo.BOTH, maps, truth)
    np.testing.assert_array_equal(panel.values, [[1, -1, 0, 0]])
    assert "33.33% fixed" in panel.title


@pytest.mark.usefixtures("real_data")
def test_the_whole_plan_is_the_papers_scene_and_three_more():
    plan = stereo._plan()
    assert [scene.name for scene in plan.scenes] == ["Tsukuba", "Venus", "Teddy", "Cones"]
    assert plan.scenes[0].move == "swap"
    assert plan.scenes[0].rounds == 3
    assert [scene.name for scene in plan.chosen_on] == ["Art", "Books", "Dolls", "Laundry", "Moebius", "Reindeer"]
    assert len(plan.jobs()) == 4 * 2 * stereo.STARTS + 6 * 2 + 4 + 6
