"""Streams: a frame's result is that of `denoise`, whatever came before it and however many are done at once."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import numpy as np
import pytest

from sparsedepth import InputError, Restorer, denoise, inpaint


def frames(n: int | None = None):
    """A step that moves through a slant, with outliers and holes."""
    for number in itertools.count() if n is None else range(n):
        rng = np.random.default_rng(number)
        depth = np.add.outer(0.01 * np.arange(26), 0.02 * np.arange(30)) + (np.arange(30) > 8 + number % 12)
        depth += np.where(rng.random(depth.shape) < 0.03, rng.normal(0, 1, depth.shape), 0)
        depth[rng.random(depth.shape) < 0.04] = np.nan
        yield depth.astype(np.float32)


def same(one, other):
    for name in ("depth", "variance", "origin"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


@pytest.mark.parametrize("method", ["calibrated", "paper"])
def test_a_stream_gives_what_each_frame_would_give_alone(method):
    restorer = Restorer(quality="fast", method=method)
    for threads in (1, 2):
        results = list(restorer.each(frames(5), threads=threads))
        assert len(results) == 5
        for frame, result in zip(frames(5), results, strict=True):
            same(result, denoise(frame, quality="fast", method=method, threads=1))


def test_wishes_hold_for_every_frame():
    frame = next(frames())
    same(Restorer("default", "fast", correct=False)(frame), inpaint(frame, quality="fast"))
    variance = np.full(frame.shape, 0.01)
    same(Restorer(quality="fast")(frame, variance=variance), denoise(frame, quality="fast", variance=variance))


def test_a_stream_without_end_is_taken_as_it_is_needed():
    taken = []
    endless = (taken.append(0) or frame for frame in frames())
    results = Restorer(quality="fast", method="paper").each(endless, threads=2)
    for number in range(1, 4):
        next(results)
        assert len(taken) <= number + 4


def test_a_restorer_travels():
    restorer = Restorer(quality="fast", method="paper")
    frame = next(frames())
    same(pickle.loads(pickle.dumps(restorer))(frame), restorer(frame))


def test_wishes_that_cannot_be_met_are_refused_before_the_first_frame():
    impossible: list[dict[str, Any]] = [{"quality": "quick"}, {"method": "magic"}, {"dictionary": "none such"}]
    impossible.append({"dictionary": 3})
    for wishes in impossible:
        with pytest.raises(InputError):
            Restorer(**wishes)
