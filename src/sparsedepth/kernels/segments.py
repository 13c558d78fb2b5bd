"""Segmentation of pictures: what segments.c computes."""

from __future__ import annotations

import numpy as np

from sparsedepth.kernels.library import FLOAT, INT, array, kernel

_F, _I = array(np.float32), array(np.int32)

segments_of = kernel(
    "segments_of", *(INT, INT, INT, _F, FLOAT, INT, array(np.uint64), array(np.int64), _I, _F, _I), result=INT
)
"""Segment a picture: (height, width, channels, picture, scale, min_size, edges, place, size, within, labels) -> the
number of segments."""
