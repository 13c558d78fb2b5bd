"""The compiled library: found, typed, the same bits on every processor."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from sparsedepth.kernels.library import INT, array, kernel, load


def test_the_best_library_of_the_processor_is_loaded():
    has_avx2 = load("baseline").processor_has_avx2()
    assert has_avx2 in (0, 1)
    assert (load()._name == load("avx2")._name) if has_avx2 else (load()._name == load("baseline")._name)


def test_a_missing_library_says_what_to_do():
    with pytest.raises(ImportError, match="pip install"):
        load("unheard-of")


def test_arrays_of_another_kind_are_refused():
    add = kernel("processor_has_avx2", array(np.float32), INT)
    for wrong in (np.zeros(3), np.zeros((3, 4), np.float32)[:, ::2]):
        with pytest.raises(ctypes.ArgumentError):
            add(wrong, 3)
