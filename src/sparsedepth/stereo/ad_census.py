"""The AD-census cost of a pair: prepared once, then computed by kernels at any map, or in whole numbers for all labels.

Colours are rounded to bytes; census words compare the mean of all channels to 1/256 of that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from sparsedepth.kernels import stereo_costs
from sparsedepth.kernels.library import address
from sparsedepth.stereo.rows import Bytes, byte_rows, reversed_rows
from sparsedepth.stereo.team import at_once, in_bands
from sparsedepth.vocabulary import DepthMap, Floats, StereoPair

CENSUS_SHAPE_PX = (7, 9)
"""Height and width of the window whose pixels are compared with its centre: 62 bits."""
PRICE_STEPS = 1024
"""Steps of a cost of 1: solvers in whole numbers lose nothing."""
GREY_LEVELS = 256
"""Grey values between two bytes that census words tell apart."""

LABELS_AT_ONCE = 16
"""Labels are padded to a multiple of this number, BLOCK in kernels.h: one register of the processor."""

Words = NDArray[np.uint64]
Volume = NDArray[np.int16]
RowCosts = Callable[[slice, Volume], None]
"""Writes the costs of some rows, in whole numbers, into an array (rows, width, labels)."""


@dataclass(frozen=True, eq=False)
class AdCensus:
    """A cost of matching: a function from a disparity map to costs from 0 to 2."""

    left: Bytes
    """(height, channels, width), as the others."""
    right: Bytes
    words: Words
    """Census words of the left view, (height, width)."""
    other_words: Words
    colour_price: Floats
    """By the sum of differences over channels."""
    census_price: Floats
    """By the number of different bits."""

    max_cost = 2.0

    @classmethod
    def of(cls, pair: StereoPair, colour_scale: float = 30.0, census_scale: float = 15.0, threads: int = 1) -> AdCensus:
        """Prepare the cost of a pair."""
        n_channels = pair.left.shape[2]
        colour = 1 - np.exp(-np.arange(255 * n_channels + 1) / (n_channels * colour_scale))
        census = 1 - np.exp(-np.arange(65) / census_scale)
        colour_price, census_price = (
            (np.rint(PRICE_STEPS * price) / PRICE_STEPS).astype(np.float32) for price in (colour, census)
        )
        views = at_once([partial(_prepared, view) for view in (pair.left, pair.right)], threads)
        (left, words), (right, other_words) = views
        return cls(left, right, words, other_words, colour_price, census_price)

    def mirrored(self, threads: int = 1) -> AdCensus:
        """Return the cost of the pair in a mirror; the bits of its words are in another order, but of both views."""
        exchanged = self.other_words, self.words, self.right, self.left
        tasks = [partial(np.ascontiguousarray, each[..., ::-1]) for each in exchanged]
        words, other_words, left, right = at_once(tasks, threads)
        return replace(self, left=left, right=right, words=words, other_words=other_words)

    def __call__(self, disparity: DepthMap, threads: int = 1) -> Floats:
        """Compute the cost of each pixel's disparity; the right view's edge goes on."""
        height, n_channels, width = self.left.shape
        costs = np.empty((height, width), np.float32)
        given = np.ascontiguousarray(disparity, np.float32)
        prices = self.colour_price, self.census_price

        def work(begin: int, end: int) -> None:
            maps = given, self.left, self.right, self.words, self.other_words
            parts = (each[begin:end] for each in maps)
            stereo_costs.ad_census_at(end - begin, width, n_channels, *parts, *prices, costs[begin:end])

        in_bands(work, height, threads)
        return costs

    def paired(self, rows: NDArray[np.intp], others: NDArray[np.intp]) -> AdCensus:
        """Pair rows of the left view with rows of the right one, whether they are those of one line or not."""
        left, right = np.ascontiguousarray(self.left[rows]), np.ascontiguousarray(self.right[others])
        return replace(self, left=left, right=right, words=self.words[rows], other_words=self.other_words[others])

    def in_whole_numbers(self, n: int, scale: float, beyond: int) -> RowCosts:
        """Return what computes the costs at disparities from 0 to n - 1 in units of 1 / scale.

        ``beyond`` is the cost of the labels behind, up to `padded` (n).
        """
        repeated = padded(n) - 1
        views = self.left, reversed_rows(self.right, repeated)
        words = self.words, reversed_rows(self.other_words, repeated)
        prices = [np.rint(scale * price).astype(np.int16) for price in (self.colour_price, self.census_price)]
        return _WholeCosts(n, beyond, (*views, *words), (prices[0], prices[1]))


@dataclass(frozen=True, eq=False)
class _WholeCosts:
    """Writes the costs of some rows in whole numbers."""

    n: int
    beyond: int
    views: tuple[Bytes, Bytes, Words, Words]
    """Left and right view and their words, the right ones reversed."""
    prices: tuple[Volume, Volume]

    @cached_property
    def _places(self) -> tuple[list[tuple[int, int]], list[int]]:
        """Addresses and bytes a row of the views, and addresses of the prices."""
        kinds = np.uint8, np.uint8, np.uint64, np.uint64
        rows = [(address(each, kind), each.strides[0]) for each, kind in zip(self.views, kinds, strict=True)]
        return rows, [address(price, np.int16) for price in self.prices]

    def __call__(self, rows: slice, costs: Volume) -> None:
        (height, n_channels, width), stride = self.views[0].shape, padded(self.n)
        (begin, end, _), (places, prices) = rows.indices(height), self._places
        sizes, room = (end - begin, width, n_channels, self.n, stride), np.empty(stride, np.uint16)
        given = (first + begin * pitch for first, pitch in places)
        into = address(room, np.uint16), address(costs, np.int16)
        stereo_costs.ad_census(*sizes, *given, *prices, self.beyond, *into)


def padded(n: int) -> int:
    """Return the number of labels that n of them take in a volume."""
    return -(-n // LABELS_AT_ONCE) * LABELS_AT_ONCE


def _prepared(view: Floats) -> tuple[Bytes, Words]:
    return byte_rows(view), census_words(view)


def census_words(view: Floats) -> Words:
    """Compute a word for each pixel with one bit for each darker neighbour; the picture's edge is repeated."""
    total = sum(view[..., channel] for channel in range(view.shape[2]))
    grey = np.rint(np.clip(np.float32(GREY_LEVELS / view.shape[2]) * total, 0, 255 * GREY_LEVELS)).astype(np.uint16)
    up, aside = (side // 2 for side in CENSUS_SHAPE_PX)
    padded = np.pad(grey, ((up, up), (aside, aside)), mode="edge")
    words = np.empty(grey.shape, np.uint64)
    stereo_costs.census(*grey.shape, padded, words, np.empty(CENSUS_SHAPE_PX[0] * grey.shape[1], np.uint16))
    return words
