"""The experiments: their short versions run anywhere and write what they promise; claims are judged, not believed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from sparsedepth import experiments
from sparsedepth.data import data_folder
from sparsedepth.experiments import denoising, natural_noise
from sparsedepth.experiments._ablation import arms, filling_arms
from sparsedepth.experiments._claims import Claim, judge, table_of
from sparsedepth.experiments._keeping import kept
from sparsedepth.experiments._methods import Outcome, own_methods
from sparsedepth.restore import METHODS
from sparsedepth.vocabulary import InputError

PNG = b"\x89PNG"


@pytest.fixture
def without_data(monkeypatch):
    monkeypatch.delenv("SPARSEDEPTH_DATA", raising=False)


@pytest.fixture
def one_more_method(monkeypatch):
    """`denoise` as it will be with another method beside the paper's: the experiments must find it by themselves."""
    monkeypatch.setitem(METHODS, "another", METHODS["paper"])


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
    assert not any(name.startswith("_") or name == "demo" for name in names)
    for name in ("_claims", "__init__", "nothing"):
        with pytest.raises(InputError, match="no experiment"):
            experiments.load(name)


@pytest.mark.usefixtures("without_data", "one_more_method")
def test_denoising_in_short(tmp_path):
    (tmp_path / "denoising.md").write_text("by hand\n\n<!-- made part: begin --><!-- made part: end -->\n")
    facts, page, steps = quick("denoising", tmp_path)
    assert page.startswith("by hand")
    assert "SPARSEDEPTH_DATA names no folder" in page
    for name in ("denoising-laser.png", "denoising-disparity.png", "denoising-curves.png"):
        assert (tmp_path / name).read_bytes().startswith(PNG)
        assert f"({name})" in page
    scores = facts["psnr"]
    contestants = {"noisy", "ns-SC Φ1", "SC Φ3", "TIWF", "TV-L1", 'denoise, "another"', *denoising.PAPER}
    assert contestants <= set(scores["laser"]) == set(scores["disparity"])
    assert contestants <= rows(page)
    assert np.isfinite(numbers(scores)).all()
    assert min(numbers(scores)) > 10
    assert len(facts["claims"]) == len(denoising.claims()) == page.count(" of 1 | ")
    held = sum(claim["holds"] for claim in facts["claims"])
    assert f"{held} of {len(facts['claims'])} hold here" in page
    assert steps == [(done, steps[-1][1]) for done in range(1, len(steps) + 1)]


@pytest.mark.usefixtures("without_data", "one_more_method")
def test_natural_noise_in_short(tmp_path):
    facts, page, steps = quick("natural_noise", tmp_path)
    assert "SPARSEDEPTH_DATA names no folder" in page
    for view in facts["shown"]:
        assert (tmp_path / f"natural-noise-{view}.png").read_bytes().startswith(PNG)
        assert f"(natural-noise-{view}.png)" in page
    errors = facts["rmse"]
    contestants = {"noisy", *natural_noise.COMPETITORS, natural_noise.PAPER_METHOD, 'denoise, "another"'}
    assert contestants <= set(errors)
    assert contestants <= rows(page)
    assert np.isfinite(numbers(errors)).all()
    # A grid holds the parameter that does nothing, so that a tuned competitor cannot be worse than the noisy map.
    assert all(errors[name]["16"] <= errors["noisy"]["16"] for name in natural_noise.COMPETITORS)
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
    first, again = (next(each.jobs()) for each in (plan, denoising._plan()))
    np.testing.assert_array_equal(first.noisy, again.noisy)
    assert 0 < np.nansum(first.noisy != first.source.crop.depth) - np.isnan(first.noisy).sum() < 200


def test_only_methods_besides_the_papers_are_our_own(monkeypatch):
    before = len(own_methods())
    monkeypatch.setitem(METHODS, "another", METHODS["paper"])
    assert [each.name for each in own_methods()][before:] == ['denoise, "another"']
    assert not own_methods()[-1].tuned


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


def test_the_papers_claims_cover_both_kinds_and_name_contestants():
    names = set(denoising.PAPER)
    claims = denoising.claims()
    assert len(claims) == len(set(claims)) == 20
    assert {(claim.kind, claim.share) for claim in claims} == {(k, s) for k in denoising.KINDS for s in (0.01, 0.05)}
    assert all({claim.better, claim.worse} <= names for claim in claims)
    assert {claim.margin for claim in claims if claim.kind == "laser"} == {0.0, 2.0}
    assert {claim.margin for claim in claims if claim.kind == "disparity"} == {0.0, 1.0}


@pytest.mark.parametrize("arm", [*arms(), *filling_arms()], ids=lambda arm: arm.name)
def test_an_arm_takes_out_what_there_is_and_puts_it_back(arm):
    before = dict(vars(arm.module)) if arm.module else {}
    with arm._taken_out():
        assert all(vars(arm.module)[name] is value for name, value in arm.names.items())
    assert all(vars(arm.module)[name] is before[name] for name in arm.names)


@pytest.mark.usefixtures("without_data")
def test_restoration_in_short(tmp_path):
    facts, page, steps = quick("restoration", tmp_path)
    for name in ("reliability", "sparsification", "laser", "disparity"):
        assert (tmp_path / f"restoration-{name}.png").read_bytes().startswith(PNG)
        assert f"(restoration-{name}.png)" in page
    assert set(facts["psnr"]) == {"disparity", "laser"}
    assert {"inpaint", "inpaint, guided"} <= set(facts["psnr"]["disparity"]["50% missing"])
    assert {arm for by in facts["ablation"].values() for arm in by["5% impulses"]} <= rows(page)
    for by_row in facts["psnr"].values():
        assert {"clean", "5% impulses", "50% missing"} == set(by_row)
        assert {"noisy", "TV-L1", 'denoise, "calibrated"'} <= set(by_row["5% impulses"])
        assert {"biharmonic", "linear", "inpaint"} <= set(by_row["50% missing"])
        tuned, noisy = (np.mean(numbers(by_row["5% impulses"][name])) for name in ("TV-L1", "noisy"))
        assert tuned >= noisy, "the best parameter is not worse than to do nothing"
    met = sum(bar[2] for bar in facts["bars"])
    assert f"{met} of {len(facts['bars'])} are met" in page
    assert page.count("| **no** |") == len(facts["bars"]) - met
    assert steps == [(done, steps[-1][1]) for done in range(1, len(steps) + 1)]


def test_outcomes_are_kept_until_map_name_or_program_change(tmp_path, monkeypatch):
    made = []

    def outcome(name="a", depth=np.ones((2, 2)), rooms=("baselines",)):  # noqa: B008
        def make():
            made.append(name)
            return Outcome(depth + 1, parameter=None, origin=np.zeros((2, 2), np.uint8))

        return kept(name, rooms, [depth], make)

    outcome()
    outcome()
    assert len(made) == 2, "without a folder nothing is kept"
    monkeypatch.setenv("SPARSEDEPTH_CACHE", str(tmp_path / "kept"))
    first, again = outcome(), outcome()
    assert len(made) == 3
    np.testing.assert_array_equal(first.depth, again.depth)
    assert again.parameter is None
    assert again.variance is None
    assert again.origin is not None
    assert again.origin.dtype == np.uint8
    outcome("b")
    outcome(depth=np.zeros((2, 2)))
    outcome(rooms=("baselines", "patches.py"))
    assert len(made) == 6
    for file in (tmp_path / "kept").iterdir():
        file.write_bytes(file.read_bytes()[:100])
    outcome()
    assert len(made) == 7, "a torn file is made again"
