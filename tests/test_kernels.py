"""The compiled library: found, typed, the same bits on every processor."""

from __future__ import annotations

import ctypes
import importlib.util
import platform
import shutil
import subprocess
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from sparsedepth.cli.commands import COMMANDS
from sparsedepth.kernels import patches
from sparsedepth.kernels.library import load, require_same_sources


def test_the_best_library_of_the_processor_is_loaded():
    has_avx2 = load("baseline").processor_has_avx2()
    assert has_avx2 in (0, 1)
    assert (load()._name == load("avx2")._name) if has_avx2 else (load()._name == load("baseline")._name)


def test_a_missing_library_says_what_to_do():
    with pytest.raises(ImportError, match="pip install"):
        load("unheard-of")


def test_a_library_of_other_sources_is_refused(tmp_path):
    require_same_sources(load(), tmp_path)  # an installation without sources
    (tmp_path / "changed.c").write_text("int changed;")
    with pytest.raises(ImportError, match="pip install"):
        require_same_sources(load(), tmp_path)


def test_arrays_of_another_kind_are_refused():
    places, marks = np.zeros(3, np.int64), np.zeros(3, np.uint8)
    for wrong in (np.zeros(3), np.zeros((3, 4), np.int64)[:, ::2]):
        with pytest.raises(ctypes.ArgumentError):
            patches.holding(3, wrong, 3, places, marks, marks)


@pytest.fixture(scope="module")
def build() -> ModuleType:
    """The script that compiles the kernels."""
    spec = importlib.util.spec_from_file_location("hatch_build", Path(__file__).parents[1] / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have no versions")
def test_wheels_fit_old_systems(build):
    libraries = sorted(build.COMPILED.glob("*.so"))
    assert libraries
    assert build.platform_tag(libraries) == f"manylinux_2_17_{platform.machine()}"


def test_the_newest_symbol_decides(build, tmp_path):
    path = tmp_path / "x.so"
    path.write_bytes(b"\x7fELF\0GLIBC_2.2.5\0GLIBC_2.34\0GLIBC_2.4\0")
    assert build.glibc_wanted(path) == (2, 34)


@pytest.mark.slow
def test_the_sources_give_no_warning(build):
    compiler = build.compiler()
    if compiler is None:
        pytest.skip("there is no C compiler; the installed libraries were made elsewhere")
    for flags in build.levels().values():
        options = [*build.FLAGS, *build.EXACT, *flags, "-Werror", "-fsyntax-only"]
        subprocess.run([*compiler, *options, *map(str, build.KERNELS.glob("*.c"))], check=True)


def test_the_man_page_names_every_command(build, tmp_path):
    page = build.write_man_page(tmp_path / "sparsedepth.1").read_text()
    for name, entry in COMMANDS.items():
        assert f".B {name}\n" in page
        assert entry.help.replace("--", r"\-\-") in page
    groff = shutil.which("groff")
    if groff is not None:
        made = subprocess.run([groff, "-man", "-ww", "-z"], input=page, capture_output=True, text=True, check=True)
        assert made.stderr == ""
