"""Features of suspects, and the probability that they are outliers."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sparsedepth import Origin, denoise
from sparsedepth.chosen_pixels import BoxCounts
from sparsedepth.data.synthetic import corrupted
from sparsedepth.patches import SYMMETRIES, turned
from sparsedepth.restore import outliers
from sparsedepth.restore.noise_model import ImpulseNoise
from sparsedepth.restore.outliers import OutlierModel, Posterior, shipped_classifier
from sparsedepth.restore.pipeline import patch_coder
from sparsedepth.restore.scores import PixelScores, score_pixels
from sparsedepth.restore.settings import Settings
from sparsedepth.tiling import Tile
from sparsedepth.vocabulary import DepthMap, Floats

NOISE = ImpulseNoise(fraction=0.05, amplitude=1.0, score_threshold=9.0)
CHOSEN = Settings().outliers


def model_of(noise: ImpulseNoise = NOISE, enabled: bool = True) -> OutlierModel:
    """Return the model of a continuous map."""
    return OutlierModel(noise, 0.0, enabled, Settings(), shipped_classifier())


def noisy_step(seed: int = 0, shape: tuple[int, int] = (40, 40)) -> DepthMap:
    rng = np.random.default_rng(seed)
    rows, columns = np.indices(shape)
    depth = np.where(columns > shape[1] // 2, 1.0, -1.0) + 0.01 * rows
    depth[rng.random(shape) < 0.05] += rng.standard_normal()
    depth[rng.random(shape) < 0.1] = np.nan
    return depth.astype(np.float32)


def scored(depth: DepthMap) -> tuple[Tile, PixelScores]:
    tile = Tile.full(depth)
    return tile, score_pixels(tile, patch_coder(None, "balanced", Settings()), 0.0, Settings().scores, 1)


def probabilities(depth: DepthMap, noise: ImpulseNoise = NOISE) -> Floats:
    return model_of(noise)(*scored(depth)).probability


def bump(height: float, side: int = 1, at: tuple[int, int] = (20, 20)) -> DepthMap:
    rows, columns = np.indices((40, 40))
    depth = (0.05 * rows - 0.03 * columns).astype(np.float32)
    depth[at[0] : at[0] + side, at[1] : at[1] + side] += height
    return depth


@pytest.mark.parametrize("symmetry", range(SYMMETRIES))
def test_features_turn_with_the_map(symmetry):
    depth = noisy_step()
    tile, scores = scored(depth)
    suspect = scores.score > CHOSEN.min_score
    images = PixelScores(*(turned(getattr(scores, part.name), symmetry) for part in fields(scores)))
    number = np.full(depth.shape, -1)
    number[suspect] = np.arange(suspect.sum())
    number = turned(number, symmetry)
    again = model_of().features(Tile.full(turned(depth, symmetry)), images, number >= 0)
    assert suspect.sum() > 50
    assert_allclose(again, model_of().features(tile, scores, suspect)[number[number >= 0]], atol=1e-4)


@pytest.mark.parametrize("side", [3, 5, 9, 21])
def test_counts_are_those_of_the_windows_as_far_as_they_lie_within_the_map(side):
    rng = np.random.default_rng(side)
    values, where = rng.integers(-1, 2, (2, 17, 25)).astype(np.int8), rng.random((2, 17, 25)) < 0.3
    counts, radius = BoxCounts.of(values, where, max(outliers.SUSPECT_WINDOWS_PX)), side // 2
    for all_of_it, others, (which, row, column) in zip(
        counts.within(side), counts.around(side), np.argwhere(where), strict=True
    ):
        rows, columns = (slice(max(at - radius, 0), at + radius + 1) for at in (row, column))
        assert all_of_it == values[which, rows, columns].sum()
        assert others == all_of_it - values[which, row, column]


def test_asymmetry_is_the_same_if_near_and_far_are_exchanged():
    _, scores = scored(noisy_step())
    where = np.nonzero(scores.score > CHOSEN.min_score)
    suspects = BoxCounts.of(scores.score > outliers.COUNTED_SCORE, where, max(outliers.SUSPECT_WINDOWS_PX))
    mirrored = replace(scores, value=-scores.value, residual=-scores.residual)
    ours, theirs = (
        np.array(model_of(replace(NOISE, asymmetry=asymmetry))._asymmetry(each, suspects, where))
        for each, asymmetry in ((scores, 0.3), (mirrored, -0.3))
    )
    assert_allclose(theirs, ours, atol=1e-5)
    assert np.abs(ours).max(axis=1).min() > 0.2


@pytest.mark.parametrize("asymmetry", [-1.0, -0.4, 0.4, 1.0])
def test_an_isolated_pixel_is_an_outlier_on_whichever_side_the_others_lie(asymmetry):
    assert probabilities(bump(2.0), replace(NOISE, asymmetry=asymmetry))[20, 20] > 0.9


def test_maps_of_a_stack_are_independent():
    stack = np.stack([noisy_step(seed) for seed in range(3)])
    together = model_of().features(*scored(stack), np.isfinite(stack))
    alone = [model_of().features(*scored(depth), np.isfinite(depth)) for depth in stack]
    assert_allclose(together, np.concatenate(alone), atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_single_deviating_pixel_is_an_outlier_and_a_block_as_high_is_not(seed):
    assert probabilities(bump(1.0))[20, 20] > 0.9
    for side in (3, 5):
        structure = np.pad(bump(1.0, side), 20, mode="reflect", reflect_type="odd")
        result = denoise(corrupted(structure, 0.01, np.random.default_rng(seed)))
        block = (slice(40, 40 + side), slice(40, 40 + side))
        assert (result.origin[block] == Origin.MEASURED).all()
        assert_allclose(result.depth[block], structure[block], atol=0.25)
        assert (result.origin == Origin.CORRECTED).sum() > 20


def scores_of(residual: Floats, local_residual: float = 0.0, near_border: bool = False) -> PixelScores:
    zero = np.zeros(residual.shape)
    return PixelScores(zero, zero, residual, zero, zero + local_residual, zero, np.full(zero.shape, near_border))


def test_uniform_blocks_are_structure():
    """Also in a stack, and whatever the classifier says."""
    maps = np.stack([bump(1.0, side) for side in (1, 2, 3)])
    tile, model, zero = Tile.full(maps), model_of(), np.zeros(maps.shape)
    deviating = scores_of(zero + 0.5)
    found = model.in_uniform_block(tile, deviating)
    assert [found[which, 20 : 20 + side, 20 : 20 + side].all() for which, side in enumerate((1, 2, 3))] == [
        False,
        True,
        True,
    ]
    where = np.zeros(maps.shape, bool)
    where[:, 20, 20] = True
    assert_array_equal(model.penalties(tile, deviating, where), [0, -CHOSEN.max_penalty, -CHOSEN.max_penalty])
    assert not model.in_uniform_block(tile, scores_of(zero + 0.001))[:, 20, 20].any()


def test_pixels_are_judged_alike_alone_and_together():
    tile, scores = scored(noisy_step())
    suspects = np.flatnonzero(scores.score > CHOSEN.min_score)
    whole = model_of().log_odds(tile, scores, scores.score > CHOSEN.min_score)
    for begin in range(0, len(suspects), 7):
        some = np.zeros(scores.score.shape, bool)
        some.ravel()[suspects[begin : begin + 7]] = True
        assert_allclose(model_of().log_odds(tile, scores, some), whole[begin : begin + 7], atol=1e-6)


@pytest.mark.slow
def test_batches_of_pixels_do_not_matter():
    """A map has more suspects than a batch: the whole is as its halves."""
    small, scores = scored(noisy_step())
    times = int(np.sqrt(1.1 * outliers.PIXELS_PER_BATCH / small.depth.size)) + 1
    tile = Tile.full(np.tile(small.depth, (times, times)))
    many = PixelScores(*(np.tile(getattr(scores, part.name), (times, times)) for part in fields(scores)))
    top = np.zeros(tile.depth.shape, bool)
    top[: len(top) // 2] = True
    assert top.sum() < outliers.PIXELS_PER_BATCH < top.size
    whole = model_of().log_odds(tile, many, np.ones(top.shape, bool))
    halves = [model_of().log_odds(tile, many, half) for half in (top, ~top)]
    assert_allclose(np.concatenate(halves), whole, atol=1e-6)


def test_missing_pixels_are_no_outliers():
    depth = noisy_step()
    assert_array_equal(probabilities(depth)[np.isnan(depth)], 0)


def test_within_texture_the_same_pixel_is_less_likely_an_outlier():
    texture = 0.5 * np.random.default_rng(1).standard_normal((40, 40)).astype(np.float32)
    texture[20, 20] = 0
    assert probabilities(bump(1.0) + texture)[20, 20] < probabilities(bump(1.0))[20, 20]


def test_probabilities_grow_with_the_fraction_of_outliers():
    depth = noisy_step(2)
    rare, usual, frequent = (
        probabilities(depth, ImpulseNoise(fraction, 1.0, 9.0)).sum() for fraction in (0.003, 0.03, 0.2)
    )
    assert rare < usual < frequent


def test_residuals_beyond_the_amplitude_are_structure_unless_isolated():
    residual = np.array([1.0, 2.9, 4.0, 10.0, -10.0])

    def penalty(local_residual: float, near_border: bool) -> Floats:
        return model_of().amplitude_penalty(scores_of(residual, local_residual, near_border))

    assert_array_equal(penalty(0.001, False), 0)
    for penalised in (penalty(0.1, False), penalty(0.001, True)):
        assert_array_equal(penalised[:2], 0)
        assert penalised[2] == pytest.approx(-3.5)
        assert_array_equal(penalised[3:], -CHOSEN.max_penalty)


def test_an_uncertain_measurement_follows_the_codes_unless_they_have_failed():
    """Less weight goes to patches that disagree, and hardly any if they differ by more than both variances allow."""
    depth = np.zeros((1, 5), np.float32)
    patch_variance, residual = np.array([[0, 0, 0.1, 0, 0]]), np.array([[0.1, 0.5, 0.1, 3.0, 0.1]])
    sensor = np.array([[0.25, 0.25, 0.25, 0.25, 0]], np.float32)
    scores = replace(
        scores_of(residual), patch_variance=patch_variance, local_residual=patch_variance, weight=patch_variance
    )
    weight = model_of(enabled=False)(Tile.full(depth, sensor), scores).weight[0]
    assert (weight[:2] > 0.95).all()
    assert 0.2 < weight[2] < 0.8
    assert weight[3] < 0.05
    assert weight[4] == 0


def test_what_a_sensor_knows_never_makes_an_outlier_more_credible():
    """The codes count at least as much as an outlier is probable, and not more where the sensor is exact."""
    tile, scores = scored(noisy_step())
    alone = model_of()(tile, scores)
    assert (alone.weight[tile.valid] > 0.5).any()
    for variance in (0.0, 1e-3, 0.1):
        known = replace(tile, variance=np.full(tile.depth.shape, variance, np.float32))
        together = model_of()(known, scores)
        assert (together.weight >= together.probability - 1e-6).all()
        if variance == 0:
            assert_allclose(together.weight, alone.weight, atol=1e-6)


def test_a_map_that_is_not_corrected_still_has_probabilities():
    tile, scores = scored(bump(1.0))
    posterior: Posterior = model_of(enabled=False)(tile, scores)
    assert posterior.probability[20, 20] > 0.9
    assert_array_equal(posterior.weight, 0)
