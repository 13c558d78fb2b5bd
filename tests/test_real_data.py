"""On real maps: Middlebury 2005 and 2006 where the data is at hand, and the Motorcycle map always."""

from __future__ import annotations

import numpy as np
import pytest

from sparsedepth import Dictionary, Jeffreys, Stationary, infer, learn
from sparsedepth.coding.starts import start_from
from sparsedepth.data import data_folder
from sparsedepth.data.middlebury import disparities, disparity_files
from sparsedepth.data.motorcycle import motorcycle_disparity
from sparsedepth.patches import PatchStream
from sparsedepth_experiments import load


def last(steps):
    *_, step = steps
    return step


@pytest.fixture(scope="module")
def motorcycle_patches():
    return PatchStream([motorcycle_disparity()], (16, 16), batch=256, seed=3)(0).patches


def test_middlebury_maps_have_the_promised_encoding(real_data):
    assert data_folder() == real_data
    assert len(disparity_files(2006)) == 42
    for depth in disparities(2005):
        known = depth[np.isfinite(depth)]
        assert depth.shape[0] == 370
        assert 0.85 < known.size / depth.size < 1
        assert known.min() >= 1 / 3
        assert known.max() <= 85
        np.testing.assert_allclose(known * 3, np.round(known * 3), atol=1e-4)


@pytest.mark.slow
def test_learning_on_2006_carries_over_to_2005(real_data):
    stream = PatchStream(disparities(2006), (8, 8), batch=256, seed=1)
    held = PatchStream(disparities(2005), (8, 8), batch=256, seed=2)(0).patches
    start = start_from(stream, 128)
    step = last(learn(stream, start, Jeffreys(), steps=60, held_out=held))
    assert step.held_out is not None
    assert step.held_out < infer(held, start, Jeffreys()).energy.mean() - 3


@pytest.mark.slow
def test_inference_comes_to_rest_on_real_patches(motorcycle_patches):
    code = infer(motorcycle_patches, Dictionary.builtin("phi1"))
    assert code.converged.mean() > 0.98
    assert code.rounds.mean() < 90


@pytest.mark.slow
def test_inferred_variance_finds_the_corrupted_pixels(motorcycle_patches):
    """An added outlier gets a variance far above the floor; most other pixels stay at it."""
    rng = np.random.default_rng(0)
    hit = (rng.random(motorcycle_patches.shape) < 0.01) & np.isfinite(motorcycle_patches)
    noisy = motorcycle_patches + np.where(hit, rng.choice([-2, 2], hit.shape), 0).astype(np.float32)
    variance = infer(noisy, Dictionary.builtin("phi1"), Jeffreys()).variance
    assert (variance[hit] > 0.1).mean() > 0.9
    assert (variance[~hit & np.isfinite(variance)] <= 0.0101).mean() > 0.85


@pytest.mark.slow
def test_inferred_variances_reconstruct_better_than_constant_ones(motorcycle_patches):
    """With annealed atoms; those of the paper's learning are rougher, and a large variance smooths them."""
    rng = np.random.default_rng(0)
    hit = (rng.random(motorcycle_patches.shape) < 0.02) & np.isfinite(motorcycle_patches)
    noisy = motorcycle_patches + np.where(hit, 2 * rng.standard_normal(hit.shape), 0).astype(np.float32)
    dictionary = Dictionary.builtin("phi1_annealed")
    error = {}
    for noise in (Jeffreys(), Stationary(0.01), Stationary(0.1), Stationary(1.0)):
        fitted = infer(noisy, dictionary, noise).codes @ dictionary.atoms
        error[noise] = float(np.sqrt(np.nanmean((fitted - motorcycle_patches) ** 2)))
    assert error[Jeffreys()] < 0.9 * min(error[noise] for noise in error if isinstance(noise, Stationary))


@pytest.mark.slow
def test_the_dictionaries_page_can_be_made(tmp_path, command):
    facts = load("dictionaries").run(tmp_path, lambda *_: None, quick=True)
    assert set(facts) == {"phi1", "phi2", "phi3", "phi1_annealed", "phi1_32", "default"}
    page = (tmp_path / "dictionaries.md").read_text()
    assert page.startswith("# The shipped dictionaries")
    for name in facts:
        assert f"dictionary-{name}.png" in page
        assert (tmp_path / f"dictionary-{name}.png").stat().st_size > 10_000
    by_hand = page + "\nSeen by eye.\n"
    (tmp_path / "dictionaries.md").write_text(by_hand)
    ended = command("reproduce", "dictionaries", "--quick", "-o", tmp_path)
    assert ended.code == 0, ended.err
    assert (tmp_path / "dictionaries.md").read_text().endswith("\nSeen by eye.\n")
    assert "The shipped dictionaries" in (tmp_path / "report.html").read_text()
