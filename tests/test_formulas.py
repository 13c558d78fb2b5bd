"""Laws of single formulas that a noisy result would hide: each is checked beside its definition."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from conftest import edge_patches, unit_atoms
from sparsedepth import Belief, InputError, Jeffreys, infer
from sparsedepth.coding.accumulate import Statistics
from sparsedepth.coding.inputs import block_and_threads
from sparsedepth.files import read
from sparsedepth.restore.flying import Candidates, FlyingPixels
from sparsedepth.restore.settings import FlyingSettings
from sparsedepth.sensors import Correlation
from sparsedepth.stereo.costs import birchfield_tomasi
from sparsedepth.stereo.prior import Feedback, data_weight
from sparsedepth.streams.belief import Updater
from sparsedepth.streams.settings import StreamSettings
from sparsedepth.streams.young import PairSmoother
from sparsedepth.vocabulary import StereoPair

WHITE = Correlation()


def test_statistics_of_a_batch_are_the_sums_over_its_parts():
    patches, atoms, noise = edge_patches(40, 4), unit_atoms(20, 16), Jeffreys()

    def statistics(some: np.ndarray) -> Statistics:
        return Statistics.of(some, atoms, infer(some, atoms, noise), noise)

    whole, parts = statistics(patches), statistics(patches[:15]) + statistics(patches[15:])
    for name in ("count", "products", "descent", "least_variance", "usage", "energy", "excess"):
        assert_allclose(getattr(parts, name), getattr(whole, name), rtol=1e-9, atol=1e-9, err_msg=name)


@pytest.mark.parametrize(("given", "expected"), [(np.float32, np.float32), (np.float64, np.float64), (int, np.float64)])
def test_codes_have_the_precision_of_the_patches(given, expected):
    code = infer(np.arange(32).reshape(2, 16).astype(given), unit_atoms(20, 16))
    assert code.codes.dtype == code.variance.dtype == expected


@pytest.mark.parametrize(("n", "threads", "expected"), [(1000, 2, 500), (1001, 2, 501), (10, 2, 128), (10**6, 2, 1024)])
def test_blocks_occupy_every_thread(n, threads, expected):
    assert block_and_threads(n, 1024, threads, 1) == (expected, threads)


def dissimilarity(left: np.ndarray, right: np.ndarray, truncation: float) -> float:
    """Birchfield and Tomasi's measure of two triples of samples: before, at and behind a pixel."""

    def beyond(value: float, row: np.ndarray) -> float:
        around = [(row[0] + row[1]) / 2, row[1], (row[1] + row[2]) / 2]
        return max(0.0, value - max(around), min(around) - value)

    return min(beyond(left[1], right), beyond(right[1], left), truncation) ** 2


def test_birchfield_tomasi_is_the_definition():
    left, right = np.random.default_rng(0).uniform(0, 60, (2, 5, 24)).astype(np.float32)
    for d in (0, 3):
        cost = birchfield_tomasi(StereoPair(left, right, 8))(np.full(left.shape, d, np.float32))
        for y, x in np.ndindex(left.shape):
            if d < x < 23:
                expected = dissimilarity(left[y, x - 1 : x + 2], right[y, x - d - 1 : x - d + 2], 20.0)
                assert cost[y, x] == pytest.approx(expected, rel=1e-4, abs=1e-3)


def test_data_that_vary_more_than_usual_weigh_less_in_proportion():
    spread = np.array([[1.0, 2.0, 4.0, 8.0, 16.0]], np.float32)
    belief = Belief(np.zeros((1, 5)), np.ones((1, 5)))
    weight = data_weight(lambda disparity: spread * np.abs(disparity), belief, Feedback(least_weight=0.3))
    assert_allclose(weight, [[1, 1, 1, 0.5, 0.3]], rtol=1e-5)


@pytest.mark.parametrize("largest", [0, 65536])
def test_a_pgm_whose_largest_value_is_none_is_refused(tmp_path, largest):
    (tmp_path / "x.pgm").write_bytes(b"P5 1 1 %d\n\0\0" % largest)
    with pytest.raises(InputError, match="1 to 65535"):
        read(tmp_path / "x.pgm", "m")


def candidate(position: float) -> Candidates:
    """One pixel with as many neighbours on both sides."""
    one = np.array([1.0])
    near = np.array([[True, False]])
    return Candidates(np.array([0]), 0 * one, one, 0 * one, near[:, 0], position * one, near, ~near)


def test_the_nearer_side_is_the_likelier_one():
    settings, alike = FlyingSettings(), np.ones(2)
    low, middle, high = (candidate(at).high_probability(settings, alike)[0] for at in (0.2, 0.5, 0.8))
    assert low < middle == 0.5 < high
    assert low == pytest.approx(1 - high)


def steps(noise: float) -> np.ndarray:
    """Stripes of two depths, with mixtures at some of their borders."""
    rng = np.random.default_rng(2)
    depth = 1000 + 400 * ((np.arange(96) // 16)[:, None] % 2) + noise * rng.standard_normal((96, 96))
    for row in range(16, 96, 16):
        depth[row, rng.choice(96, 40, replace=False)] = 1000 + rng.uniform(60, 340, 40)
    return depth.astype(np.float32)


def test_variance_within_sides_is_that_of_their_noise():
    found = FlyingPixels(100.0, 20.0, FlyingSettings()).candidates(steps(noise=2.0))
    assert found.side_variance.size > 50
    assert 2 < found.side_variance.mean() < 4.5


@pytest.mark.parametrize("temporal", [0.0, 0.5])
def test_running_means_of_innovations_have_the_standard_deviation_of_an_autoregression(temporal):
    settings = StreamSettings()
    memory = settings.run_memory
    lags = np.abs(np.subtract.outer(np.arange(400), np.arange(400)))
    weights = (1 - memory) * memory ** np.arange(400)
    exact = np.sqrt(weights @ (temporal**lags) @ weights)
    assert Updater((8, 8), temporal, WHITE, settings).run_std == pytest.approx(exact, rel=1e-6)


def test_smoothing_over_pairs_leaves_the_variance_of_the_mean_of_white_noise():
    smoother = PairSmoother.of(WHITE, StreamSettings())
    pairs = len(smoother.offsets)
    assert smoother.left == pytest.approx((1 + pairs / 2) / (1 + pairs) ** 2)


def test_smoothing_over_pairs_commutes_with_flips_and_transposition():
    value = 100 + np.random.default_rng(0).standard_normal((20, 24)).astype(np.float32)
    smoother = PairSmoother.of(WHITE, StreamSettings())

    def smooth(some: np.ndarray) -> np.ndarray:
        return smoother.smooth(np.ascontiguousarray(some), np.ones(some.shape, np.float32))[0]

    expected = smooth(value)
    for flip in (np.flipud, np.fliplr, np.transpose):
        assert_allclose(smooth(flip(value)), flip(expected), atol=1e-4)
    assert_array_equal(smooth(np.full((20, 24), 100, np.float32)), 100)


def test_patches_that_are_noise_free_have_no_energy_beyond_their_floor(rng):
    """Idle atoms restart from patches of the largest excess, so it must not count what every patch has."""
    atoms, noise = unit_atoms(24, 16), Jeffreys(floor=0.01)
    patches = np.zeros((6, 16))
    patches[1:, 3] = np.linspace(0.5, 4, 5)  # an outlier each, of growing height
    patches[4, :8] = np.nan
    found = Statistics.of(patches, atoms, infer(patches, atoms, noise), noise).excess
    assert found[0] == pytest.approx(0, abs=1e-9)
    assert (np.diff(found[[0, 1, 2, 3, 5]]) > 0).all()
