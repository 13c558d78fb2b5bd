"""Simulated noise, and the estimate of a map's impulse noise."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sparsedepth.data.synthetic import corrupted
from sparsedepth.patches import SYMMETRIES, turned
from sparsedepth.restore import noise_model, pipeline
from sparsedepth.restore.noise_model import ImpulseNoise, Simulation, simulate
from sparsedepth.restore.settings import NoiseModelSettings, Settings, SimulationSettings
from sparsedepth.tiling import Tile
from sparsedepth.vocabulary import DepthMap


def plane(shape=(40, 50)):
    y, x = np.mgrid[: shape[0], : shape[1]]
    return 0.3 * x - 0.1 * y + 2


def stairs(side=128):
    """Planes and steps, of unit standard deviation."""
    down, right = np.indices((side, side)) / side
    depth = 2 * right + np.where(down > 0.6, 1.5, 0) + np.where(right > 0.7, -1.0, 0.5 * down)
    return ((depth - depth.mean()) / depth.std()).astype(np.float32)


def noise_of(depth: DepthMap) -> ImpulseNoise:
    """Estimate the impulse noise of a continuous map of unit standard deviation."""
    survey = pipeline.Survey.of(Tile.full(depth), pipeline.patch_coder(None, "fast", Settings()), Settings(), 1)
    assert survey.step == 0
    return survey.noise


def count_and_amplitude(depth: DepthMap) -> tuple[float, float]:
    found = noise_of(depth)
    return found.fraction * np.isfinite(depth).sum(), found.amplitude


def simulated(depth: DepthMap, rng: np.random.Generator) -> Simulation:
    return simulate(Tile.full(depth), 1.0, rng, SimulationSettings())


@pytest.mark.parametrize("fraction", [0.01, 0.05, 0.2])
def test_the_fraction_of_outliers_is_bounded_tightly(fraction):
    rng = np.random.default_rng(3)
    noisy, clean = (lambda n: rng.lognormal(4, 2, n)), (lambda n: rng.lognormal(-3, 1, n))
    scores = np.sort(np.concatenate([noisy(int(20_000 * fraction)), clean(int(20_000 * (1 - fraction)))]))
    equally, chosen = np.full(800, 1 / 800), NoiseModelSettings()
    found, threshold = noise_model._bound_fraction(scores, len(scores), noisy(800), equally, chosen)
    assert found == pytest.approx(fraction, rel=0.25)
    assert (scores > threshold).mean() <= 1.5 * fraction
    none = noise_model._bound_fraction(np.sort(clean(20_000)), 20_000, noisy(800), equally, chosen)[0]
    assert none * 20_000 < 3


def test_the_density_of_noise_integrates_to_one():
    at = np.linspace(0, 40, 400_001)
    for amplitude in (0.25, 1.0, 4.0):
        density = noise_model.magnitude_density(at, amplitude)
        assert density.min() >= 0
        assert np.trapezoid(density, at) == pytest.approx(1, abs=1e-4)
        assert np.trapezoid(density * at**2, at) == pytest.approx(amplitude**2 / 2, rel=1e-3)


@pytest.mark.parametrize(("fraction", "amplitude"), [(0.02, 0.5), (0.02, 1.0), (0.1, 1.0), (0.05, 2.0)])
def test_fraction_and_amplitude_are_estimated(fraction, amplitude):
    noisy = corrupted(stairs(), fraction, np.random.default_rng(1), amplitude)
    count, found = count_and_amplitude(noisy)
    assert count == pytest.approx(fraction * noisy.size, rel=0.25)
    assert found == pytest.approx(amplitude, rel=0.3)


def test_noise_on_both_sides_is_symmetric_and_on_one_side_it_is_not():
    clean = stairs()
    noise = corrupted(clean, 0.03, np.random.default_rng(1)) - clean
    assert abs(noise_of(clean + noise).asymmetry) < 0.25
    above, below = (noise_of(clean + side * np.abs(noise)).asymmetry for side in (1, -1))
    assert above > 0.8
    assert below < -0.8


@pytest.mark.slow
def test_the_amplitude_of_much_noise_is_not_underestimated():
    """Simulated noise on top of noise is larger than what was added; counted, it would lower the amplitude."""
    clean = stairs()
    ratios = []
    for seed, amplitude in product(range(4), (0.5, 1.0, 2.0)):
        noisy = corrupted(clean, 0.2, np.random.default_rng(seed), amplitude)
        true = np.sqrt(2 * np.square((noisy - clean)[noisy != clean]).mean())
        ratios.append(count_and_amplitude(noisy)[1] / true)
    assert 0.97 < np.mean(ratios) < 1.15


def test_texture_in_a_part_of_a_map_is_not_noise():
    clean = stairs()
    clean[:50, :50] += 0.3 * np.random.default_rng(2).standard_normal((50, 50)).astype(np.float32)
    assert count_and_amplitude(stairs())[0] < 3
    assert count_and_amplitude(clean)[0] < 10


def test_simulated_noise_is_as_symmetric_as_a_square():
    depth = plane((30, 44))
    noise = simulated(depth, np.random.default_rng(0)).noise[0]
    assert 0.02 < (noise != 0).mean() < 0.06
    for symmetry in range(SYMMETRIES):
        other = simulated(turned(depth, symmetry), np.random.default_rng(0)).noise[0]
        assert_array_equal(turned(noise, symmetry), other)


def test_large_maps_are_simulated_on_parts_and_small_ones_repeatedly():
    rng = np.random.default_rng(0)
    large = simulated(plane((600, 500)), rng)
    assert large.depth.size <= 20_000
    assert_array_equal(large.sample(plane((600, 500))), large.truth)
    assert len(simulated(plane((20, 20)), rng).depth) == 16
    sparse = np.where(rng.random((600, 500)) < 0.05, plane((600, 500)), np.nan)
    sparse[:200] = np.nan
    simulation = simulated(sparse, rng)
    assert len(simulation.depth) == len(large.depth)
    assert (np.isfinite(simulation.truth).mean(axis=(1, 2)) > 0.02).all()
