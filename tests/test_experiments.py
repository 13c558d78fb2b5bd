"""The experiments: their short versions run anywhere and write what they promise; claims are judged, not believed."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import sparsedepth_experiments as experiments
from sparsedepth import Dictionary, baselines, restore, stereo
from sparsedepth.data import data_folder
from sparsedepth.data.sensor_frames import SENSORS
from sparsedepth.data.simulated_streams import STREAM_SENSORS, StreamScene
from sparsedepth.restore import METHODS
from sparsedepth.vocabulary import InputError
from sparsedepth_experiments import (
    _cache,
    _denoising_jobs,
    _natural_jobs,
    _restoration_jobs,
    _sensors_methods,
    _streams_methods,
    _streams_runs,
    _streams_scores,
    ablation,
    denoising,
    paper,
)
from sparsedepth_experiments import _denoising_page as denoising_page
from sparsedepth_experiments import _zoo as zoo
from sparsedepth_experiments._cache import ARRAYS, OUTCOMES, Stored, cached
from sparsedepth_experiments._claims import Claim, judge, table_of
from sparsedepth_experiments._methods import Outcome, own_methods
from sparsedepth_experiments.harness import Job, run_jobs

pytestmark = pytest.mark.slow

PNG = b"\x89PNG"
OWN = {f'denoise, "{method}"' for method in METHODS if method != "paper"}
"""Every method besides the paper's: the experiments find them by themselves."""


@pytest.fixture
def without_data(monkeypatch):
    monkeypatch.delenv("SPARSEDEPTH_DATA", raising=False)


def quick(name: str, output: Path) -> tuple[dict, str, list[tuple[int, int]]]:
    """What a short run returns after a trip through JSON, the page it wrote, and its progress."""
    steps = []
    facts = experiments.load(name).run(output, lambda _, done, total: steps.append((done, total)), quick=True)
    return json.loads(json.dumps(facts, allow_nan=False)), (output / f"{name}.md").read_text(), steps


def numbers(nested) -> list[float]:
    if isinstance(nested, dict):
        return [number for value in nested.values() for number in numbers(value)]
    return [number for value in nested for number in numbers(value)] if isinstance(nested, list) else [nested]


def rows(page: str) -> set[str]:
    """The first cells of all tables."""
    return {line.split("|")[1].strip() for line in page.splitlines() if line.startswith("|")}


def test_the_experiments_are_the_files_without_an_underscore():
    names = experiments.names()
    assert {"dictionaries", "denoising", "natural_noise"} <= set(names)
    assert not any(name.startswith("_") for name in names)
    for name in ("_claims", "__init__", "harness", "nothing"):
        with pytest.raises(InputError, match="no experiment"):
            experiments.load(name)


@pytest.mark.usefixtures("without_data")
def test_denoising_in_short(tmp_path):
    (tmp_path / "denoising.md").write_text("by hand\n\n<!-- made part: begin --><!-- made part: end -->\n")
    facts, page, steps = quick("denoising", tmp_path)
    assert page.startswith("by hand")
    assert "SPARSEDEPTH_DATA names no folder" in page
    for name in ("denoising-laser.png", "denoising-disparity.png", "denoising-curves.png"):
        assert (tmp_path / name).read_bytes().startswith(PNG)
        assert f"({name})" in page
    scores = facts["psnr"]
    methods = {"ns-SC, annealed Φ1", "TV-L1", *OWN, *denoising_page.PAPER}
    assert methods <= set(scores["laser"]) == set(scores["disparity"])
    assert methods <= rows(page)
    assert np.isfinite(numbers(scores)).all()
    assert min(numbers(scores)) > 10
    tables = [facts[name] for name in ("claims", "further claims", "claims at the milder noise")]
    assert [len(each) for each in tables] == [20, 20, 20]
    assert sum(map(len, tables)) == page.count(" of 1 | ")
    held = sum(claim["holds"] for claim in facts["claims"])
    assert f"{held} of {len(facts['claims'])} hold here" in page
    assert steps == [(done, steps[-1][1]) for done in range(len(steps))]


def test_the_page_of_the_paper_collects_the_pages_of_its_experiments(tmp_path):
    (tmp_path / "stereo.md").write_text(
        "# Stereo\n\n<!-- made part: begin -->\n\nMade at commit `abc` by `sparsedepth reproduce stereo`.\n\n"
        "## Beside the paper\n\n| Tsukuba |\n\n## More\n\nunasked\n<!-- made part: end -->\n\n## By hand\n"
    )
    paper.collect(tmp_path)
    page = (tmp_path / "paper.md").read_text()
    titles = [line[3:] for line in page.splitlines() if line.startswith("## ")]
    assert titles == [item.title for item in paper.ITEMS]
    assert "Made at commit `abc`" in page
    assert "### Beside the paper\n\n| Tsukuba |" in page
    assert "unasked" not in page
    unmeasured = [item for item in paper.ITEMS if item.page not in ("", "stereo")]
    assert page.count("Not measured yet") == len(unmeasured)


def test_the_page_of_the_paper_runs_what_was_not_made_at_this_commit(tmp_path):
    ran = []

    class Experiment:
        def __init__(self, name):
            self.name = name

        def run(self, output, progress, quick):
            ran.append((self.name, quick))
            progress("x", 1, 1)

    (tmp_path / "stereo.md").write_text("Made at commit `abc` by `sparsedepth reproduce stereo --quick`.")
    (tmp_path / "denoising.md").write_text("Made at commit `abc` by `sparsedepth reproduce denoising`.")
    paper.run(tmp_path, lambda *_: None, quick=True, experiment=Experiment, at_commit=lambda: "abc")
    assert ran == [(name, True) for name in paper.EXPERIMENTS if name != "stereo"]


@pytest.mark.usefixtures("without_data")
def test_natural_noise_in_short(tmp_path):
    facts, page, steps = quick("natural_noise", tmp_path)
    assert "SPARSEDEPTH_DATA names no folder" in page
    for view in facts["shown"]:
        assert (tmp_path / f"natural-noise-{view}.png").read_bytes().startswith(PNG)
        assert f"(natural-noise-{view}.png)" in page
    errors = facts["rmse"]
    methods = {"noisy", *_natural_jobs.COMPETITORS, _natural_jobs.PAPER_METHOD, *OWN}
    assert methods <= set(errors)
    assert methods <= rows(page)
    assert np.isfinite(numbers(errors)).all()
    # A grid holds the parameter that does nothing, so that a tuned competitor cannot be worse than the noisy map.
    assert all(errors[name]["16"] <= errors["noisy"]["16"] for name in _natural_jobs.COMPETITORS)
    assert steps[-1][0] == steps[-1][1]


@pytest.mark.usefixtures("without_data")
@pytest.mark.parametrize("name", ["denoising", "natural_noise"])
def test_a_whole_run_asks_for_its_data(name, tmp_path):
    with pytest.raises(InputError, match="SPARSEDEPTH_DATA"):
        experiments.load(name).run(tmp_path, lambda *_: None)
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("real_data")
def test_the_maps_are_the_same_for_everyone():
    plan = denoising._plan()
    assert data_folder()
    assert [len(plan.of_kind(kind)) for kind in denoising.KINDS] == [5, 5]
    assert all(source.crop.depth.shape == (100, 100) for source in plan.sources)
    noisy, again = (_denoising_jobs.noisy_map(each.sources[0], each.parts[0], 0) for each in (plan, denoising._plan()))
    np.testing.assert_array_equal(noisy, again)
    assert 0 < np.nansum(noisy != plan.sources[0].crop.depth) - np.isnan(noisy).sum() < 200


def test_only_methods_besides_the_papers_are_our_own():
    assert {each.name for each in own_methods()} == OWN
    more = own_methods([*METHODS, "another"])
    assert [each.name for each in more][len(OWN) :] == ['denoise, "another"']
    assert not more[-1].tuned


MADE_UP = {
    "laser": {
        "a": {0.01: [30.0, 34.0, 35.0]},
        "b": {0.01: [31.0, 31.0, 31.0]},
        "c": {0.01: [30.0, 34.0, 35.0]},
    }
}


@pytest.mark.parametrize(
    ("claim", "difference", "agreeing", "holds"),
    [
        (Claim("a", "b", "laser", 0.01), 2.0, 2, True),
        (Claim("b", "a", "laser", 0.01), -2.0, 1, False),
        (Claim("a", "b", "laser", 0.01, margin=2.0, ties=True), 2.0, 2, True),
        (Claim("a", "b", "laser", 0.01, margin=2.0), 2.0, 2, False),
        (Claim("a", "b", "laser", 0.01, margin=2.5, ties=True), 2.0, 2, False),
        (Claim("a", "c", "laser", 0.01), 0.0, 0, False),
        (Claim("a", "c", "laser", 0.01, ties=True), 0.0, 3, True),
    ],
    ids=str,
)
def test_a_claim_holds_by_the_numbers(claim, difference, agreeing, holds):
    verdict = judge(claim, MADE_UP)
    assert (verdict.difference, verdict.agreeing, verdict.maps, verdict.holds) == (difference, agreeing, 3, holds)
    cells = [cell.strip() for cell in table_of({claim: verdict}).splitlines()[-1].split("|")]
    assert ("**no**" in cells, "yes" in cells) == (not holds, holds)
    assert f"{agreeing} of 3" in cells


def test_the_standard_error_of_a_difference():
    verdict = judge(Claim("a", "b", "laser", 0.01), MADE_UP)
    assert verdict.error == pytest.approx(np.std([-1, 3, 4], ddof=1) / np.sqrt(3))
    alone = {"laser": {"a": {0.01: [2.0]}, "b": {0.01: [1.0]}}}
    assert judge(Claim("a", "b", "laser", 0.01), alone).error is None


def test_the_papers_claims_cover_both_kinds_and_name_methods():
    names = set(denoising_page.PAPER)
    claims = denoising.claims()
    assert len(claims) == len(set(claims)) == 20
    assert {(claim.kind, claim.share) for claim in claims} == {(k, s) for k in denoising.KINDS for s in (0.01, 0.05)}
    assert all({claim.better, claim.worse} <= names for claim in claims)
    assert {claim.margin for claim in claims if claim.kind == "laser"} == {0.0, 2.0}
    assert {claim.margin for claim in claims if claim.kind == "disparity"} == {0.0, 1.0}


@pytest.mark.usefixtures("without_data")
def test_ablation_in_short(tmp_path):
    facts, page, steps = quick("ablation", tmp_path)
    names = {variant.name for variant in ablation.variants()[1:3]}
    assert names <= rows(page)
    assert names | {"the default"} == {name for name, *_ in facts["changes"]}
    assert all(
        change == error == score == 0 for name, _, _, change, error, score in facts["changes"] if name == "the default"
    )
    assert steps[-1][0] == steps[-1][1] == len(steps) - 1


@pytest.mark.parametrize("variant", ablation.variants()[1:], ids=lambda variant: variant.name)
def test_a_variant_differs_from_the_default_in_one_part_and_has_a_row(variant):
    default, known = restore.Settings(), {row.name for row in ablation.rows()}
    changed = [
        part.name for part in fields(default) if getattr(default, part.name) != getattr(variant.settings, part.name)
    ]
    assert len(changed) == 1
    assert variant.own_row in known


@pytest.mark.usefixtures("without_data")
def test_restoration_in_short(tmp_path):
    facts, page, steps = quick("restoration", tmp_path)
    for name in ("reliability", "sparsification", "laser", "disparity"):
        assert (tmp_path / f"restoration-{name}.png").read_bytes().startswith(PNG)
        assert f"(restoration-{name}.png)" in page
    assert set(facts["psnr"]) == {"disparity", "laser"}
    assert {"inpaint", "inpaint, guided"} <= set(facts["psnr"]["disparity"]["50% missing"])
    for by_row in facts["psnr"].values():
        assert {"clean", "5% impulses", "50% missing"} == set(by_row)
        assert {"noisy", "TV-L1", 'denoise, "calibrated"'} <= set(by_row["5% impulses"])
        assert {"biharmonic", "linear", "inpaint"} <= set(by_row["50% missing"])
        tuned, noisy = (np.mean(numbers(by_row["5% impulses"][name])) for name in ("TV-L1", "noisy"))
        assert tuned >= noisy, "the best parameter is not worse than to do nothing"
    met = sum(bar[2] for bar in facts["bars"])
    assert f"{met} of {len(facts['bars'])} are met" in page
    assert page.count("| **no** |") == len(facts["bars"]) - met
    assert steps == [(done, steps[-1][1]) for done in range(len(steps))]


def test_outcomes_are_cached_until_map_name_or_version_change(tmp_path, monkeypatch):
    made = []

    def outcome(name="a", depth=np.ones((2, 2)), version="baselines 1"):  # noqa: B008
        def make():
            made.append(name)
            return Outcome(depth + 1, parameter=None, origin=np.zeros((2, 2), np.uint8))

        return cached(Stored(name, version, [depth], OUTCOMES), make)

    outcome()
    outcome()
    assert len(made) == 2, "without a folder nothing is cached"
    monkeypatch.setenv("SPARSEDEPTH_CACHE", str(tmp_path / "cache"))
    first, again = outcome(), outcome()
    assert len(made) == 3
    np.testing.assert_array_equal(first.depth, again.depth)
    assert again.parameter is None
    assert again.variance is None
    assert again.origin is not None
    assert again.origin.dtype == np.uint8
    outcome("b")
    outcome(depth=np.zeros((2, 2)))
    outcome(version="baselines 2")
    assert len(made) == 6
    for file in (tmp_path / "cache").iterdir():
        file.write_bytes(file.read_bytes()[:100])
    outcome()
    assert len(made) == 7, "a torn file is made again"


@pytest.mark.parametrize("parallel", ["no", "threads"])
def test_a_run_that_was_stopped_goes_on_where_it_was(parallel, tmp_path, monkeypatch):
    monkeypatch.setenv("SPARSEDEPTH_CACHE", str(tmp_path))
    ran, works = [], {0, 1, 3}

    def job(n: int) -> Job:
        def run() -> dict:
            ran.append(n)
            if n not in works:
                raise RuntimeError("stopped")
            return {"square": np.array(n**2)}

        return Job({"n": n}, run, lambda made: int(made["square"]), lambda: Stored("n", str(n), [], ARRAYS))

    jobs = [job(n) for n in range(4)]
    with pytest.raises(RuntimeError, match="stopped"):
        run_jobs(jobs, lambda *_: None, parallel=parallel)
    works.add(2)
    records = run_jobs(jobs, lambda *_: None, parallel=parallel)
    assert records.scores == [0, 1, 4, 9]
    assert [key["n"] for key, _ in records] == [0, 1, 2, 3]
    assert sorted(ran) == [0, 1, 2, 2, 3], "only what failed is run again"


def test_a_version_names_its_room_and_its_number():
    versions = {restore: _cache.restoration_version, stereo: _cache.stereo_version, baselines: _cache.baselines_version}
    names = [version() for version in versions.values()]
    assert len(set(names)) == len(names)
    assert all(f" {room.METHOD_VERSION}" in version() for room, version in versions.items())


def test_the_version_of_restoration_tells_dictionaries_apart():
    names = Dictionary.builtins()
    assert len({_cache.restoration_version(name) for name in names}) == len(names)
    assert _cache.restoration_version() == _cache.restoration_version("default")


@pytest.mark.usefixtures("without_data")
def test_sensors_in_short(tmp_path):
    facts, page, steps = quick("sensors", tmp_path)
    assert "Every map here is a development map" in page
    assert "a quick run" in page.lower()
    for camera, raw in facts["raw"].items():
        picture = f"sensors-{camera.replace('_', '-')}.png"
        assert (tmp_path / picture).read_bytes().startswith(PNG)
        assert f"({picture})" in page
        errors = facts["filters"][camera]
        assert set(_sensors_methods.FILTERS) == set(errors) <= rows(page)
        for mode in ("blind", "preset"):
            found = facts["modes"][camera][mode]
            assert found["error"]["pooled"] < raw["pooled"]
            assert 0.7 < found["within"] <= 1
            assert found["filled"] + found["refused"] == pytest.approx(1)
            assert len(found["deciles"]) == 10
    met = sum(bar[2] for bar in facts["bars"])
    assert f"{met} of {len(facts['bars'])} are met" in page
    assert page.count("| **no** |") == len(facts["bars"]) - met
    assert steps[-1][0] == steps[-1][1]


@pytest.mark.usefixtures("without_data")
def test_sensors_ask_for_their_data(tmp_path):
    with pytest.raises(InputError, match="SPARSEDEPTH_DATA"):
        experiments.load("sensors").run(tmp_path, lambda *_: None)
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("without_data")
def test_streams_in_short(tmp_path):
    facts, page, steps = quick("streams", tmp_path)
    assert "a quick run" in page.lower()
    for name in ("error", "honesty", "object", "maps"):
        assert (tmp_path / f"streams-{name}.png").read_bytes().startswith(PNG)
        assert f"(streams-{name}.png)" in page
    assert 1000 < (tmp_path / "streams-object.webp").stat().st_size < 2_000_000
    for by in facts["ages"].values():
        last = {method: scores["5"]["left"][0] for method, scores in by.items()}
        assert last[_streams_methods.OURS] < last[_streams_methods.EXPONENTIAL] <= 1.1 * last[_streams_methods.RAW]
        assert set(by) <= {row.split(",")[0] for row in rows(page)} | rows(page) | {_streams_methods.MEAN}
    met = sum(bar[2] for bar in facts["bars"])
    assert f"{met} of {len(facts['bars'])} are met" in page
    assert page.count("| **no** |") == len(facts["bars"]) - met
    assert steps == [(done, steps[-1][1]) for done in range(len(steps))]


def still_run(frames: int = 12) -> _streams_runs.Run:
    scene = StreamScene(STREAM_SENSORS["time of flight"], (5, 1), (24, 32))
    return _streams_runs.simulated_run(scene, scene.static(frames))


def test_filters_over_time_are_what_their_names_say():
    run = still_run()
    stack = np.stack(run.frames)
    for window in (2, 5, 1000):
        mean, count = list(_streams_methods.running_mean(run, window))[-1], np.isfinite(stack[-window:]).sum(0)
        np.testing.assert_allclose((mean * count)[count > 0], np.nansum(stack[-window:], 0)[count > 0], rtol=1e-9)
        np.testing.assert_array_equal(np.isnan(mean), count == 0)
    new = list(_streams_methods.exponential(run, 1.0, 8.0))[-1]
    known = np.isfinite(stack[-1])
    np.testing.assert_array_equal(new[known], stack[-1][known])
    kept = list(_streams_methods.exponential(run, 0.2, 0.0))[-1]
    np.testing.assert_allclose(kept[known], stack[-1][known], rtol=1e-12)


def test_the_limit_of_a_static_camera_is_the_mean_of_its_frames_without_outliers():
    run = still_run()
    truth, std = run.details[-1].truth, run.details[-1].std
    near = np.where(np.abs(np.stack(run.frames) - truth) <= 4 * std, np.stack(run.frames), np.nan)
    limit = _streams_methods.warped_means(run, [11])[11].depth
    np.testing.assert_allclose(limit, np.nanmean(near, 0), rtol=1e-9)


def test_an_exact_result_is_without_error_and_without_ghosts():
    scene = StreamScene(STREAM_SENSORS["time of flight"], (5, 1), (48, 64))
    run = _streams_runs.simulated_run(scene, scene.passing_object())
    exact = {k: _streams_methods.Step(frame.truth) for k, frame in enumerate(run.details)}
    assert max(np.abs(_streams_scores._uncovered(run, exact))) == 0
    given, wrong = _streams_scores._shadow(run, exact)
    assert given > 0
    assert wrong == 0
    stale = {k: _streams_methods.Step(run.details[0].truth) for k in exact}
    raw = {k: _streams_methods.Step(frame) for k, frame in enumerate(run.frames)}
    assert _streams_scores._shadow(run, raw) == (0, 0), "the camera does not measure the shadow"
    assert _streams_scores._shadow(run, stale)[1] == 0, "what was there before is behind the shadow"


def test_the_two_errors_agree_on_one_frame_and_ignore_one_pixel_in_a_hundred():
    errors = np.r_[np.ones(99), 1000.0]
    assert _sensors_methods.pooled_error([errors]) == _sensors_methods.mean_error([errors]) == pytest.approx(1.0)
    assert _sensors_methods.pooled_error([errors, 3 * errors]) == pytest.approx(np.sqrt(5), rel=0.02)
    assert _sensors_methods.mean_error([errors, 3 * errors]) == pytest.approx(2.0)


@pytest.mark.usefixtures("real_data")
def test_calibrations_use_frames_that_they_do_not_judge():
    zense = _sensors_methods._real_camera(SENSORS[-1])
    numbers = [frame.number for frame in zense.frames]
    assert set(zense.calibrated) == set(numbers)
    first, second = zense.calibrated[numbers[0]], zense.calibrated[numbers[1]]
    assert first != second
    assert all(zense.calibrated[number] == (first, second)[place % 2] for place, number in enumerate(numbers))


def test_simulated_sensors_are_the_last_rows_and_hide_nothing_but_their_holes():
    every = zoo.rows()
    last = every[-12:]
    assert [row.name for row in last] == [row.name for row in zoo.simulated_sensor_rows()]
    assert not any(row.sensor for row in every[:-12])
    source = next(source for source in zoo.stand_ins(64) if source.kind == "disparity")
    for row in last:
        assert row.kinds == ("disparity",)
        spoilt, again = row.done(source, 0), row.done(source, 0)
        np.testing.assert_array_equal(spoilt.depth, again.depth)
        np.testing.assert_array_equal(np.isnan(spoilt.depth), np.isnan(spoilt.truth))
        error = np.abs(spoilt.depth - spoilt.truth)[np.isfinite(spoilt.depth)]
        assert 0.0005 < np.median(error) / np.nanmedian(spoilt.truth) < 0.05
        assert spoilt.depth.dtype == source.crop.depth.dtype


@pytest.mark.usefixtures("without_data")
def test_restoration_runs_on_rows_of_one_kind():
    row = next(row for row in zoo.simulated_sensor_rows() if row.name == "kinect_v1 + 5%")
    jobs = _restoration_jobs.Plan(zoo.stand_ins(), [row]).jobs()
    assert jobs
    assert {job.key["kind"] for job in jobs} == {"disparity"}
    ours = [job for job in jobs if job.key["method"] == _restoration_jobs.DENOISE.name][:1]
    result = _restoration_jobs.Results(run_jobs(ours, lambda *_: None))
    assert np.isfinite(result.of("disparity", row.name, _restoration_jobs.DENOISE.name)).all()
