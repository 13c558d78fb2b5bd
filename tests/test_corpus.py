"""Files that once broke a reader, found by fuzzing: each is now read or refused as the laws ask."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from reading_laws import law_of, suffix_of

CORPUS = sorted((Path(__file__).parent / "corpus").iterdir())


@pytest.mark.parametrize("found", CORPUS, ids=lambda path: path.name)
def test_what_fuzzing_found_stays_mended(found, tmp_path):
    kind = found.name.split("-")[0]
    if kind == "exr" and importlib.util.find_spec("OpenEXR") is None:
        pytest.skip("EXR needs the package OpenEXR")
    path = tmp_path / f"x{suffix_of(kind)}"
    path.write_bytes(found.read_bytes())
    assert law_of(kind)(path) in ("read", "refused")
