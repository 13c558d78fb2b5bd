"""Maps in tiles."""

from __future__ import annotations

import tracemalloc

import numpy as np

from sparsedepth.tiling import TiledMap, TilingSettings


def test_the_centre_and_scale_of_a_map_need_little_memory():
    depth = np.random.default_rng(0).random((2000, 500), dtype=np.float32)
    tracemalloc.start()
    try:
        TiledMap.from_array(depth, None, (8, 8), None, TilingSettings(statistics_pixels=10_000))
        assert tracemalloc.get_traced_memory()[1] < depth.nbytes / 2
    finally:
        tracemalloc.stop()
