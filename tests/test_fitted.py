"""Fitted coefficients: what is written is read, and no file hides where it comes from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sparsedepth
from sparsedepth import InputError
from sparsedepth.dictionary import DICTIONARY_KIND
from sparsedepth.fitted import FITTED_KIND, PROVENANCE, load_fitted, read_fitted, save_fitted, shipped_path
from sparsedepth.stereo.variance import FEATURES
from sparsedepth.tensor_files import encode_tensors

ABOUT = {key: f"the {key}" for key in PROVENANCE}
ARRAYS = {"weights": np.array([0.1, -2.5, 1 / 3]), "offset": np.array([7], np.float32)}


def test_read_what_was_written(tmp_path):
    save_fitted(tmp_path / "some.safetensors", ARRAYS, {**ABOUT, "features": "a, b, c"})
    found = read_fitted(tmp_path / "some.safetensors")
    assert found.about == {**ABOUT, "features": "a, b, c"}
    assert found.arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(found.arrays[name], array)
        assert found.arrays[name].dtype == array.dtype


def test_nobody_changes_them(tmp_path):
    save_fitted(tmp_path / "some.safetensors", ARRAYS, ABOUT)
    found = read_fitted(tmp_path / "some.safetensors")
    with pytest.raises(ValueError, match="read-only"):
        found.arrays["weights"][0] = 1


@pytest.mark.parametrize("key", PROVENANCE)
def test_every_file_says_how_it_was_made(tmp_path, key):
    path = tmp_path / "some.safetensors"
    incomplete = {name: text for name, text in ABOUT.items() if name != key}
    with pytest.raises(InputError, match=f"does not say {key}"):
        save_fitted(path, ARRAYS, incomplete)
    assert not path.exists()
    path.write_bytes(encode_tensors(ARRAYS, {**incomplete, "kind": FITTED_KIND}))
    with pytest.raises(InputError, match=f"some.safetensors: .* does not say {key}"):
        read_fitted(path)


def test_other_files_are_refused(tmp_path):
    (tmp_path / "some.safetensors").write_bytes(encode_tensors(ARRAYS, {**ABOUT, "kind": DICTIONARY_KIND}))
    with pytest.raises(InputError, match="no sparsedepth fitted coefficients"):
        read_fitted(tmp_path / "some.safetensors")


def test_shipped_coefficients_are_loaded_once():
    fitted = load_fitted("stereo_variance")
    assert fitted is load_fitted("stereo_variance")
    assert fitted.arrays["weights"].shape == (2, len(FEATURES))
    assert shipped_path("stereo_variance").parent == Path(sparsedepth.__file__).parent / "models"
