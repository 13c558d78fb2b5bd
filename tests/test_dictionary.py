"""Dictionary files: what is written is read, what is not a dictionary is refused with a sentence that helps."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from conftest import unit_atoms
from sparsedepth import Dictionary, InputError
from sparsedepth.atomic_files import write_atomically
from sparsedepth.dictionary import DICTIONARY_KIND
from sparsedepth.tensor_files import encode_tensors


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_read_what_was_written(tmp_path, dtype):
    about = {"seed": "7", "noise": "Jeffreys(floor=0.01)", "unit": "px"}
    written = Dictionary(unit_atoms(9, 12, dtype=dtype), (3, 4), about)
    written.save(tmp_path / "d.safetensors")
    read = Dictionary.load(tmp_path / "d.safetensors")
    np.testing.assert_array_equal(read.atoms, written.atoms)
    assert read.atoms.dtype == dtype
    assert read.patch_shape == (3, 4)
    assert read.about == about
    assert os.listdir(tmp_path) == ["d.safetensors"]


def test_half_a_file_holds_the_atoms_to_three_digits(tmp_path):
    written = Dictionary(unit_atoms(40, 36).astype(np.float32), (6, 6), {"unit": "px"})
    written.save(tmp_path / "whole.safetensors")
    written.save(tmp_path / "half.safetensors", half=True)
    read = Dictionary.load(tmp_path / "half.safetensors")
    assert read.atoms.dtype == np.float32
    assert read.about == written.about
    np.testing.assert_allclose(read.atoms, written.atoms, rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(read.atoms, axis=1), 1, atol=1e-6)
    sizes = [(tmp_path / name).stat().st_size for name in ("half.safetensors", "whole.safetensors")]
    assert sizes[1] - sizes[0] == written.atoms.nbytes // 2
    read.save(tmp_path / "again.safetensors", half=True)
    assert np.abs(Dictionary.load(tmp_path / "again.safetensors").atoms - read.atoms).max() < 1e-3


@pytest.mark.parametrize(("factor", "words"), [(5.0, "norm 5"), (np.inf, "infinite"), (0.0, "zero")])
def test_16_bits_do_not_hide_atoms_of_another_norm(tmp_path, factor, words):
    atoms = unit_atoms(9, 12).astype(np.float16)
    with np.errstate(invalid="ignore"):
        atoms[3] *= np.float16(factor)
    header = {"kind": DICTIONARY_KIND, "patch_shape": "[3, 4]"}
    (tmp_path / "d.safetensors").write_bytes(encode_tensors({"atoms": atoms}, header))
    with pytest.raises(InputError, match=words):
        Dictionary.load(tmp_path / "d.safetensors")


def _with(change):
    atoms = unit_atoms(9, 12)
    change(atoms)
    return atoms


BAD_ATOMS = {
    "NaN": (_with(lambda a: a.__setitem__((2, 3), np.nan)), "NaN or infinite"),
    "infinite": (_with(lambda a: a.__setitem__((2, 3), np.inf)), "NaN or infinite"),
    "zero": (_with(lambda a: a.__setitem__(4, 0)), "atom 4 is zero"),
    "not unit": (_with(lambda a: a.__setitem__(5, 3 * a[5])), "atom 5 has norm 3"),
    "wrong shape": (unit_atoms(9, 10), "do not fit"),
    "no atoms": (np.empty((0, 12)), "do not fit"),
    "integers": (np.eye(12, dtype=int), "float32 or float64"),
}


@pytest.mark.parametrize("name", BAD_ATOMS)
def test_bad_atoms_are_refused(name, tmp_path):
    atoms, message = BAD_ATOMS[name]
    with pytest.raises(InputError, match=message):
        Dictionary(atoms, (3, 4))
    save_file({"atoms": atoms}, tmp_path / "bad.safetensors", {"kind": DICTIONARY_KIND, "patch_shape": "[3, 4]"})
    with pytest.raises(InputError, match=f"bad.safetensors.*{message}"):
        Dictionary.load(tmp_path / "bad.safetensors")


def test_foreign_files_are_refused(tmp_path):
    path = tmp_path / "foreign.safetensors"
    with pytest.raises(InputError, match="no file"):
        Dictionary.load(path)
    for content in (b"", b"hello", b"\x80\x04pickle", os.urandom(4096), b"\xff" * 64):
        path.write_bytes(content)
        with pytest.raises(InputError, match="is no sparsedepth dictionary"):
            Dictionary.load(path)
    save_file({"weights": np.ones(3)}, path)
    with pytest.raises(InputError, match="but no sparsedepth dictionary"):
        Dictionary.load(path)
    for header in (
        {"kind": DICTIONARY_KIND},
        {"kind": DICTIONARY_KIND, "patch_shape": "big"},
        {"kind": DICTIONARY_KIND, "patch_shape": "[1]"},
    ):
        save_file({"atoms": unit_atoms(9, 12)}, path, header)
        with pytest.raises(InputError, match="patch shape"):
            Dictionary.load(path)
    save_file({"weights": np.ones(3)}, path, {"kind": DICTIONARY_KIND, "patch_shape": "[3, 4]"})
    with pytest.raises(InputError, match="lacks its atoms"):
        Dictionary.load(path)


def test_a_folder_is_no_dictionary(tmp_path):
    with pytest.raises(InputError):
        Dictionary.load(tmp_path)


def test_writing_is_all_or_nothing(tmp_path, monkeypatch):
    path = tmp_path / "d.safetensors"
    write_atomically(path, b"old")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(InputError, match="No space left"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["d.safetensors"]


def test_writing_into_no_folder_is_said(tmp_path):
    with pytest.raises(InputError, match="cannot write"):
        Dictionary(unit_atoms(9, 12), (3, 4)).save(tmp_path / "nowhere" / "d.safetensors")


def test_mosaic_shows_every_atom_once():
    dictionary = Dictionary(unit_atoms(7, 12), (3, 4))
    mosaic = dictionary.mosaic(gap=1)
    assert np.nanmax(np.abs(mosaic)) == 1
    assert np.isfinite(mosaic).sum() == 7 * 12
    first = dictionary.atoms[0].reshape(3, 4)
    np.testing.assert_allclose(mosaic[1:4, 1:5], first / np.abs(first).max())


SHIPPED = {
    "phi1": (16, 256),
    "phi2": (16, 256),
    "phi3": (16, 256),
    "phi1_annealed": (16, 256),
    "phi1_32": (32, 1024),
    "default": (None, None),
}
AS_IN_PAPER = ("phi1", "phi2", "phi3")
"""From random atoms and without renewal: rarely used atoms stay noise, and repeated ones stay."""


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_dictionaries(name):
    dictionary = Dictionary.builtin(name)
    side, n_atoms = SHIPPED[name]
    if side is not None:
        assert dictionary.patch_shape == (side, side)
        assert dictionary.n_atoms == n_atoms
    else:
        assert dictionary.n_atoms > dictionary.atoms.shape[1]
    for fact in ("unit", "normalisation", "noise", "trained_on", "seed", "version", "command"):
        assert dictionary.about[fact]


@pytest.mark.parametrize("name", [name for name in SHIPPED if name not in AS_IN_PAPER])
def test_no_atom_is_repeated_or_noise(name):
    dictionary = Dictionary.builtin(name)
    coherence = np.abs(dictionary.atoms @ dictionary.atoms.T) - np.eye(dictionary.n_atoms)
    assert coherence.max() < 0.99, "a repeated atom"
    kurtosis = ((dictionary.atoms / dictionary.atoms.std(axis=1, keepdims=True)) ** 4).mean(axis=1)
    assert np.median(kurtosis) > 4, "noise-like atoms (Gaussian noise has 3)"


@pytest.mark.parametrize("name", AS_IN_PAPER)
def test_the_papers_dictionaries_learned_shapes_from_noise(name):
    """Neighbouring pixels of the most used atoms are alike; in noise they are uncorrelated, within 0.06."""
    dictionary = Dictionary.builtin(name)
    assert dictionary.about["start"] == "random"
    pixels = dictionary.atoms[:16].reshape(16, 16, 16)
    alike = pixels[:, :, 1:] * pixels[:, :, :-1] + pixels.swapaxes(1, 2)[:, :, 1:] * pixels.swapaxes(1, 2)[:, :, :-1]
    assert (alike.sum(axis=(1, 2)) / 2 > 0.3).all()


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(InputError, match=r"phi1.*phi3"):
        Dictionary.builtin("phi9")


def test_the_package_stays_small():
    import sparsedepth

    folder = Path(sparsedepth.__file__).parent
    assert sum(f.stat().st_size for f in folder.rglob("*") if "__pycache__" not in f.parts) < 15e6
