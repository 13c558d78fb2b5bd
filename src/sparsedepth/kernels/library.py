"""The compiled library of kernels: the best one for this processor, loaded when a kernel is first called."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsedepth.kernels.checksum import sources_checksum

FOLDER = Path(__file__).parent / "compiled"
SUFFIX = ".dll" if sys.platform == "win32" else ".so"

INT, FLOAT, DOUBLE = ctypes.c_int64, ctypes.c_float, ctypes.c_double
"""Numbers that kernels take."""
ADDRESS = ctypes.c_void_p
"""Of an array that is checked once, by `address`: for kernels that are called hundreds of times."""


def array(kind: Any) -> Any:
    """Return the type of an argument: a contiguous array of a dtype, which is not copied."""
    return np.ctypeslib.ndpointer(np.dtype(kind), flags="C_CONTIGUOUS")


def address(values: NDArray[Any], kind: Any) -> int:
    """Check an array for a kernel that takes an `ADDRESS`, and return where it begins.

    Parameters
    ----------
    values
        A contiguous array. It must live as long as the kernel works.
    kind
        Its dtype.
    """
    if values.dtype != np.dtype(kind) or not values.flags.c_contiguous:
        raise TypeError(f"a kernel got an array of {values.dtype}, contiguous: {values.flags.c_contiguous}")
    return values.ctypes.data


@cache
def load(level: str = "") -> ctypes.CDLL:
    """Load the library.

    Parameters
    ----------
    level
        Instruction set, "baseline" or "avx2"; "" = the best that the processor has.
    """
    path = FOLDER / f"{level or 'baseline'}{SUFFIX}"
    if not path.is_file():
        raise ImportError(f"the compiled kernels are missing ({path}); install the package: pip install .")
    library = ctypes.CDLL(str(path))
    require_same_sources(library, Path(__file__).parent)
    if not level and library.processor_has_avx2() and (FOLDER / f"avx2{SUFFIX}").is_file():
        return load("avx2")
    return library


def require_same_sources(library: ctypes.CDLL, folder: Path) -> None:
    """Refuse a library of other sources than those in a folder: its functions may take other arguments, and crash."""
    expected = sources_checksum(folder)
    library.kernel_sources.restype = ctypes.c_uint32
    if expected not in (0, library.kernel_sources()):
        raise ImportError("the kernels changed since they were compiled; compile them: pip install --editable .")


def kernel(name: str, *arguments: Any, result: Any = None) -> Callable[..., Any]:
    """Return a function that calls a kernel; it releases the interpreter's lock.

    Parameters
    ----------
    name
        Name of the C function.
    arguments
        Types of its arguments: `array(dtype)`, `INT`, `FLOAT`, `DOUBLE`.
    result
        Type of its result; None = none.
    """

    @cache
    def found() -> Any:
        function = getattr(load(), name)
        function.argtypes, function.restype = arguments, result
        return function

    return lambda *given: found()(*given)
