"""Maps in tiles."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
from numpy.testing import assert_allclose

from sparsedepth import Origin, denoise
from sparsedepth.restore import Restorer, Settings
from sparsedepth.tiling import TiledMap, TilingSettings


def test_the_centre_and_scale_of_a_map_need_little_memory():
    depth = np.random.default_rng(0).random((2000, 500), dtype=np.float32)
    tracemalloc.start()
    try:
        TiledMap.from_array(depth, None, (8, 8), None, TilingSettings(statistics_pixels=10_000))
        assert tracemalloc.get_traced_memory()[1] < depth.nbytes / 2
    finally:
        tracemalloc.stop()


def test_tiles_do_not_matter_where_noise_is_at_every_pixel():
    """Outliers are found again before the map is smoothed, so a pixel depends on pixels that lie farther away."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:150, :170]
    clean = 2 + 0.01 * x + 0.004 * y + 0.8 * (x + 0.4 * y > 100) + 0.2 * np.sin(x / 9) * np.sin(y / 7)
    depth = clean + 0.06 * clean.std() * rng.standard_normal(clean.shape)
    depth[rng.random(clean.shape) < 0.03] += 0.6
    whole = denoise(depth, threads=1)
    assert (whole.origin == Origin.SMOOTHED).mean() > 0.9
    assert (whole.origin == Origin.CORRECTED).any()
    settings = replace(Settings(), tiling=TilingSettings(max_untiled_pixels=1000, tile_px=40))
    tiled = Restorer(settings=settings)(depth, threads=2)
    assert_allclose(tiled.depth, whole.depth, rtol=0, atol=5e-4 * clean.std())
    assert_allclose(tiled.variance, whole.variance, rtol=0.01)
