"""Averages of coded patches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from sparsedepth.coding.aggregate import average_patches
from sparsedepth.restore.pipeline import patch_coder
from sparsedepth.restore.settings import Settings


def test_flat_patches_need_fewer_iterations_and_others_get_all():
    coder, floor = patch_coder(None, "balanced", Settings()), Settings().coding.noise_floor
    thorough = replace(coder, flat_rounds=None)
    wavy = np.sin(np.mgrid[:40, :48].sum(axis=0) / 6).astype(np.float32)
    flat, other = 0.8 * floor * wavy, 20 * floor * wavy
    assert_allclose(average_patches(flat, coder).mean, average_patches(flat, thorough).mean, atol=0.1 * floor)
    assert (average_patches(flat, coder).mean != average_patches(flat, thorough).mean).any()
    assert_array_equal(average_patches(other, coder).mean, average_patches(other, thorough).mean)


def test_flat_patches_lie_apart_and_count_for_those_between():
    coder, floor = patch_coder(None, "best", Settings()), Settings().coding.noise_floor
    dense = replace(coder, flat_step=1)
    wavy = np.sin(np.mgrid[:40, :48].sum(axis=0) / 6).astype(np.float32)
    flat, other = 0.8 * floor * wavy, 20 * floor * wavy
    some, every = average_patches(flat, coder), average_patches(flat, dense)
    assert_allclose(some.mean, every.mean, atol=0.1 * floor)
    assert_allclose(some.weight[8:-8, 8:-8], every.weight[8:-8, 8:-8], rtol=0.02)
    assert_array_equal(average_patches(other, coder).weight, average_patches(other, dense).weight)
    assert_allclose(average_patches(flat[::-1], coder).weight[::-1], some.weight)
