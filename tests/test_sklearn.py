"""The scikit-learn adapter keeps scikit-learn's rules, and the model's laws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from conftest import edge_patches
from sparsedepth import InputError, denoise
from sparsedepth.sklearn import DepthDictionary, DepthRestorer

pytestmark = pytest.mark.slow

SMALL = DepthDictionary(n_atoms=6, steps=3, batch_size=32)
CHECKS = 46
"""How many checks scikit-learn 1.9 has for such a transformer; a later one may have more."""


@parametrize_with_checks([SMALL])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def test_no_check_was_left_out():
    assert len(list(estimator_checks_generator(SMALL))) >= CHECKS


@pytest.fixture(scope="module")
def patches():
    return 3 + 2 * edge_patches(400, 8, missing=0.05, outliers=0.0)


@pytest.fixture(scope="module")
def coder(patches):
    return DepthDictionary(48, steps=60, random_state=0).fit(patches[:300])


def test_what_comes_back_is_in_the_unit_it_came_in(coder, patches):
    fresh = patches[300:]
    restored = coder.inverse_transform(coder.transform(fresh))
    assert restored.shape == fresh.shape
    assert not np.isnan(restored).any()
    off = np.sqrt(np.nanmean((restored - fresh) ** 2))
    assert off < 0.35 * np.nanstd(fresh - np.nanmean(fresh, axis=1, keepdims=True))


def test_the_unit_of_the_data_does_not_matter(patches):
    metres, millimetres = patches[:60], 1000 * patches[:60]
    one, other = (DepthDictionary(12, steps=5, random_state=0).fit(X) for X in (metres, millimetres))
    np.testing.assert_allclose(other.transform(millimetres), 1000 * one.transform(metres), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(other.variance_, 1e6 * one.variance_, rtol=1e-6)


def test_an_outlier_is_not_coded_but_told_by_its_variance(coder, patches):
    clean = np.nan_to_num(patches[300:340], nan=3.0)
    noisy = clean.copy()
    noisy[:, 20] += 20
    coder.transform(noisy)
    assert (coder.variance_.argmax(axis=1) == 20).mean() > 0.9
    assert np.isinf(coder.infer(patches[300:]).variance[np.isnan(patches[300:])]).all()


def test_learning_goes_on_with_every_part(coder, patches):
    parts = DepthDictionary(48, steps=60, random_state=0)
    for part in np.array_split(patches[:300], 3):
        parts.partial_fit(part)
    early = parts.infer(patches[300:]).energy.mean()
    for _ in range(19):
        for part in np.array_split(patches[:300], 3):
            parts.partial_fit(part)
    assert parts.n_steps_ == coder.n_steps_ == 60
    assert parts.infer(patches[300:]).energy.mean() < early - 10


def test_a_transform_leaves_the_estimator_as_it_was(coder, patches):
    fresh = DepthDictionary(**(coder.get_params() | {"steps": 2})).fit(patches[:40])
    with pytest.raises(AttributeError, match="nothing was transformed"):
        _ = fresh.variance_
    pipeline = make_pipeline(FunctionTransformer(), fresh)
    codes = pipeline.transform(patches[:40])
    np.testing.assert_array_equal(codes, fresh.infer(patches[:40]).codes)
    assert fresh.variance_.shape == patches[:40].shape


def test_the_dictionary_restores_maps(coder):
    depth = np.add.outer(np.zeros(24), np.linspace(1.0, 2.0, 24))
    depth[3, 4] = np.nan
    result = denoise(depth, dictionary=coder.dictionary_)
    assert abs(result.depth[3, 4] - depth[2, 4]) < 0.05
    assert coder.dictionary_.patch_shape == (8, 8)
    assert coder.dictionary_.n_atoms == coder.n_atoms


@pytest.mark.parametrize("wrong", [{"n_atoms": 0}, {"steps": 0}, {"floor": 0.0}])
def test_settings_that_cannot_be_are_refused(wrong, patches):
    with pytest.raises(InputError, match=r"must be|at least"):
        DepthDictionary(**({"steps": 2} | wrong)).fit(patches[:10])


# --- a transformer of maps ------------------------------------------------------------------------------------------


def maps() -> np.ndarray:
    y, x = np.mgrid[:24, :32]
    found = np.stack([1 + 0.02 * x + 0.01 * n * y + (x > 16) for n in range(3)])
    found[1, 4:6, 7], found[2, 9, 9] = np.nan, 30.0
    return found


def test_maps_are_restored_as_denoise_does_it():
    restorer = DepthRestorer(quality="fast", sensor="clean").fit(maps())
    clean = restorer.transform(maps())
    for number, depth in enumerate(maps()):
        expected = denoise(depth, quality="fast", sensor="clean")
        np.testing.assert_array_equal(clean[number], expected.depth)
        np.testing.assert_array_equal(restorer.variance_[number], expected.variance)
        np.testing.assert_array_equal(restorer.origin_[number], expected.origin)


def test_maps_go_through_a_pipeline():
    steps = make_pipeline(DepthRestorer(quality="fast", correct=False), FunctionTransformer(lambda x: x.reshape(3, -1)))
    assert steps.fit_transform(maps()).shape == (3, 24 * 32)
    copy: Any = clone(steps[0])
    assert copy.get_params() == steps[0].get_params()
    assert copy.set_params(quality="balanced").quality == "balanced"


def test_a_transformer_of_maps_refuses_what_it_cannot_do():
    with pytest.raises(NotFittedError):
        DepthRestorer().transform(maps())
    with pytest.raises(InputError, match="one size"):
        DepthRestorer(quality="fast").fit().transform([np.ones((4, 4)), np.ones((4, 5))])
    with pytest.raises(InputError, match="quality"):
        DepthRestorer(quality="none").fit()
    with pytest.raises(AttributeError, match="nothing was transformed"):
        _ = DepthRestorer().variance_
