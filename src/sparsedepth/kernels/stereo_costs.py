"""Costs of matching by AD-census: what stereo_costs.c computes."""

from __future__ import annotations

import ctypes

import numpy as np

from sparsedepth.kernels.library import ADDRESS, INT, array, kernel

_BYTES, _WORDS, _F = array(np.uint8), array(np.uint64), array(np.float32)
_ROOM = array(np.uint16)

to_bytes = kernel("stereo_bytes", INT, INT, INT, _F, _BYTES)
"""Round views to bytes: (height, width, n_channels, view, bytes)."""

census = kernel("stereo_census", INT, INT, _ROOM, _WORDS, _ROOM)
"""Compute census words: (height, width, grey, words, bits)."""

ad_census = kernel("stereo_ad_census", *(INT,) * 5, *(ADDRESS,) * 6, ctypes.c_int16, ADDRESS, ADDRESS)
"""Compute costs at whole disparities: (height, width, n_channels, n, stride, and addresses of left, right, words,
others, colour_price, census_price, then beyond, and addresses of colour, costs)."""

ad_census_at = kernel("stereo_ad_census_at", *(INT,) * 3, _F, _BYTES, _BYTES, _WORDS, _WORDS, _F, _F, _F)
"""Compute the costs of a map: (height, width, n_channels, disparity, left, right, words, others, colour_price,
census_price, costs)."""
