"""No row of a product depends on the others, however rows lie in memory."""

from __future__ import annotations

import numpy as np
import pytest

from conftest import edge_patches, unit_atoms
from sparsedepth.coding import matmul
from sparsedepth.coding.admm import EnergyAtRest, Factors
from sparsedepth.coding.infer import infer, solve_in_blocks
from sparsedepth.coding.noise import Jeffreys
from sparsedepth.parallel import one_blas_thread

LAYOUTS = {"plain": matmul.PLAIN_LAYOUT, "across": matmul.ACROSS, "short": matmul.Layout("F", idle=3, max_rows=40)}


@pytest.fixture(params=LAYOUTS, ids=str)
def layout(request):
    return LAYOUTS[request.param]


def test_the_layout_of_this_machine_is_fair():
    with one_blas_thread:
        assert matmul.is_row_stable(matmul.layout())


def test_a_row_is_multiplied_as_if_it_were_alone():
    rng = np.random.default_rng(0)
    some, matrix = rng.standard_normal((700, 48), np.float32), rng.standard_normal((48, 80), np.float32)
    with one_blas_thread:
        whole = matmul.row_stable_matmul(some, matrix)
        for part in (slice(0, 1), slice(5, 38), slice(290, 650)):
            np.testing.assert_array_equal(matmul.row_stable_matmul(some[part], matrix), whole[part])


def test_products_are_those_of_numpy(layout):
    rng = np.random.default_rng(0)
    for n in (0, 1, 31, 100):
        some, matrix = rng.standard_normal((n, 7)), rng.standard_normal((7, 5))
        np.testing.assert_allclose(matmul.row_stable_matmul(some, matrix, layout), some @ matrix, rtol=0, atol=1e-13)


def test_rows_are_chosen_from_those_that_are_looked_at(layout):
    whole = layout.full(layout.length(9), 4, -1, np.float32)
    whole[layout.place(9)] = np.arange(9)[:, None]
    for chosen in ([], [4], [8, 0, 3]):
        kept = layout.select(whole, np.array(chosen, np.intp))
        assert len(kept) == layout.length(len(chosen))
        np.testing.assert_array_equal(kept[layout.place(len(chosen))], np.array(chosen)[:, None] * np.ones(4))
    assert layout.column(np.arange(3.0))[layout.place(3), 0].tolist() == [0, 1, 2]


def test_codes_are_the_same_in_every_layout(layout):
    patches, atoms = edge_patches(90, 6).astype(np.float64), unit_atoms(50, 36)
    expected = infer(patches, atoms, Jeffreys(), threads=1)
    factors, at_rest = Factors(atoms, rows=layout), EnergyAtRest(2e-3)
    found = solve_in_blocks(patches, Jeffreys(), 1.0, factors, at_rest, max_rounds=300, block=1024, threads=1)
    reconstruction = factors.reconstruct(found.codes)
    np.testing.assert_allclose(reconstruction, expected.codes @ atoms, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.codes, expected.codes, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(found.rounds, expected.rounds)
