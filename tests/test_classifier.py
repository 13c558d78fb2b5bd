"""Signs of noise, and the chance that they tell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sparsedepth.restore.classifier import FLOCK, _sides, _Sums, in_squares, signs_of, too_large, vetoes

from sparsedepth import Origin, denoise
from sparsedepth.data.synthetic import corrupted
from sparsedepth.patches import SYMMETRIES, turned
from sparsedepth.restore import classifier, pipeline, posterior
from sparsedepth.restore.noise_model import Law
from sparsedepth.restore.scores import Evidence, gather
from sparsedepth.restore.tiling import Part
from sparsedepth.vocabulary import DepthMap, Floats

LAW = Law(share=0.05, size=1.0, limit=9.0)


def noisy_step(seed: int = 0, shape: tuple[int, int] = (40, 40)) -> DepthMap:
    rng = np.random.default_rng(seed)
    rows, columns = np.indices(shape)
    depth = np.where(columns > shape[1] // 2, 1.0, -1.0) + 0.01 * rows
    depth[rng.random(shape) < 0.05] += rng.standard_normal()
    depth[rng.random(shape) < 0.1] = np.nan
    return depth.astype(np.float32)


def seen(depth: DepthMap) -> tuple[Part, Evidence]:
    part = Part.of_all(depth, None)
    return part, gather(part, pipeline.coding(None, "balanced"), 0.0, 1)


def chances(depth: DepthMap, law: Law = LAW) -> Floats:
    return posterior.Weighing(law, 0.0, True)(*seen(depth)).chance


def bump(height: float, side: int = 1, at: tuple[int, int] = (20, 20)) -> DepthMap:
    rows, columns = np.indices((40, 40))
    depth = (0.05 * rows - 0.03 * columns).astype(np.float32)
    depth[at[0] : at[0] + side, at[1] : at[1] + side] += height
    return depth


@pytest.mark.parametrize("symmetry", range(SYMMETRIES))
def test_signs_turn_with_the_map(symmetry):
    depth = noisy_step()
    part, evidence = seen(depth)
    where = evidence.score > posterior.DOUBTFUL
    images = Evidence(*(turned(getattr(evidence, name), symmetry) for name in evidence.__dataclass_fields__))
    number = np.full(depth.shape, -1)
    number[where] = np.arange(where.sum())
    number = turned(number, symmetry)
    again = signs_of(Part.of_all(turned(depth, symmetry), None), images, LAW, 0.0, number >= 0)
    assert where.sum() > 50
    assert_allclose(again, signs_of(part, evidence, LAW, 0.0, where)[number[number >= 0]], atol=1e-4)


@pytest.mark.parametrize("side", [3, 5, 9, 21])
def test_sums_are_those_of_the_squares_as_far_as_they_lie_within_the_map(side):
    rng = np.random.default_rng(side)
    values, where = rng.integers(-1, 2, (2, 17, 25)).astype(np.int8), rng.random((2, 17, 25)) < 0.3
    sums, far = _Sums.of(values, where), side // 2
    for told, others, (which, row, column) in zip(sums.within(side), sums.about(side), np.argwhere(where), strict=True):
        rows, columns = (slice(max(at - far, 0), at + far + 1) for at in (row, column))
        assert told == values[which, rows, columns].sum()
        assert others == told - values[which, row, column]


def test_sides_do_not_ask_which_way_is_near():
    _, evidence = seen(noisy_step())
    where = evidence.score > posterior.DOUBTFUL
    suspects = _Sums.of(evidence.score > FLOCK, where)
    upside_down = replace(evidence, value=-evidence.value, residual=-evidence.residual)
    ours, theirs = (
        _sides(each, replace(LAW, lean=lean), suspects, where) for each, lean in ((evidence, 0.3), (upside_down, -0.3))
    )
    assert_allclose(theirs, ours, atol=1e-5)
    assert np.abs(ours).max(axis=1).min() > 0.2


@pytest.mark.parametrize("lean", [-1.0, -0.4, 0.4, 1.0])
def test_what_lies_clear_is_noise_on_whichever_side_the_others_lie(lean):
    assert chances(bump(2.0), replace(LAW, lean=lean))[20, 20] > 0.9


def test_maps_of_a_stack_do_not_see_each_other():
    stack = np.stack([noisy_step(seed) for seed in range(3)])
    together = signs_of(*seen(stack), LAW, 0.0, np.isfinite(stack))
    alone = [signs_of(*seen(depth), LAW, 0.0, np.isfinite(depth)) for depth in stack]
    assert_allclose(together, np.concatenate(alone), atol=1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_a_pixel_far_from_everything_is_noise_and_a_thing_of_its_size_is_not(seed):
    assert chances(bump(1.0))[20, 20] > 0.9
    for side in (3, 5):
        thing = np.pad(bump(1.0, side), 20, mode="reflect", reflect_type="odd")
        result = denoise(corrupted(thing, 0.01, np.random.default_rng(seed)))
        there = (slice(40, 40 + side), slice(40, 40 + side))
        assert (result.origin[there] == Origin.MEASURED).all()
        assert_allclose(result.depth[there], thing[there], atol=0.25)
        assert (result.origin == Origin.CORRECTED).sum() > 20


def test_what_makes_a_square_with_others_alike_is_a_thing():
    """Also in a stack, and whatever the network would say."""
    maps = np.stack([bump(1.0, side) for side in (1, 2, 3)])
    part = Part.of_all(maps, None)
    zero = np.zeros(maps.shape)
    off = Evidence(zero, zero, zero + 0.5, zero, zero, zero, zero > 0)
    found = in_squares(part, off, 0.0)
    assert [found[which, 20 : 20 + side, 20 : 20 + side].all() for which, side in enumerate((1, 2, 3))] == [
        False,
        True,
        True,
    ]
    where = np.zeros(maps.shape, bool)
    where[:, 20, 20] = True
    assert_array_equal(vetoes(part, off, LAW, 0.0, where), [0, -classifier.IMPOSSIBLE, -classifier.IMPOSSIBLE])
    assert not in_squares(part, Evidence(zero, zero, zero + 0.001, zero, zero, zero, zero > 0), 0.0)[:, 20, 20].any()


def test_blocks_do_not_matter(monkeypatch):
    depth = noisy_step()
    whole = chances(depth)
    monkeypatch.setattr(classifier, "BLOCK", 7)
    assert_allclose(chances(depth), whole, atol=1e-6)


def test_what_is_unknown_is_not_noisy():
    depth = noisy_step()
    assert_array_equal(chances(depth)[np.isnan(depth)], 0)


def test_amid_texture_the_same_pixel_is_less_suspicious():
    texture = 0.5 * np.random.default_rng(1).standard_normal((40, 40)).astype(np.float32)
    texture[20, 20] = 0
    assert chances(bump(1.0) + texture)[20, 20] < chances(bump(1.0))[20, 20]


def test_where_there_is_more_noise_suspicion_grows():
    depth = noisy_step(2)
    rare, usual, frequent = (chances(depth, Law(share, 1.0, 9.0)).sum() for share in (0.003, 0.03, 0.2))
    assert rare < usual < frequent


def test_noise_larger_than_any_is_a_thing_unless_it_lies_clear():
    zero = np.zeros(5)
    residual = np.array([1.0, 2.9, 4.0, 10.0, -10.0])

    def lost(texture: float, rim: bool) -> Floats:
        return too_large(Evidence(zero, zero, residual, zero, zero + texture, zero, np.full(5, rim)), LAW)

    assert_array_equal(lost(0.001, False), 0)
    for doubtful in (lost(0.1, False), lost(0.001, True)):
        assert_array_equal(doubtful[:2], 0)
        assert doubtful[2] == pytest.approx(-3.5)
        assert_array_equal(doubtful[3:], -classifier.IMPOSSIBLE)


def test_of_a_doubtful_measurement_the_codes_are_believed_unless_both_cannot_be():
    """Less is taken of codes that disagree, and hardly anything if they are off by more than both variances allow."""
    depth = np.zeros((1, 5), np.float32)
    spread, residual = np.array([[0, 0, 0.1, 0, 0]]), np.array([[0.1, 0.5, 0.1, 3.0, 0.1]])
    given = np.array([[0.25, 0.25, 0.25, 0.25, 0]], np.float32)
    evidence = Evidence(depth, spread, residual, 0 * spread, spread, spread, spread > 1)
    weight = posterior.Weighing(LAW, 0.0, False)(Part.of_all(depth, given), evidence).weight[0]
    assert (weight[:2] > 0.95).all()
    assert 0.2 < weight[2] < 0.8
    assert weight[3] < 0.05
    assert weight[4] == 0


def test_a_map_that_is_not_to_be_corrected_still_tells_its_chances():
    part, evidence = seen(bump(1.0))
    weighed = posterior.Weighing.of(LAW, 1600, 0.0, correct=False)(part, evidence)
    assert weighed.chance[20, 20] > 0.9
    assert_array_equal(weighed.weight, 0)
