"""Give results back as what came: xarray keeps coordinates and attributes, torch its device. Neither is imported."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args

import numpy as np

from sparsedepth.vocabulary import Origin, Restoration, Unit

Wrap = Callable[[Restoration], Restoration]
"""A function that puts the arrays of a result into containers."""


def unpack(depth: Any) -> tuple[Any, Wrap | None, Unit]:
    """Take a map out of its container.

    Parameters
    ----------
    depth
        A map (height, width): an array, an `xarray.DataArray` or a `torch.Tensor`.

    Returns
    -------
    The array, a function that wraps a result in the same way, and the unit that the container names. An array of NumPy
    is returned as it is, without a function.
    """
    if isinstance(depth, np.ndarray):
        return depth, None, ""
    if all(hasattr(depth, name) for name in ("dims", "coords", "attrs", "values", "copy")):
        return depth.values, lambda result: _as_xarray(result, depth), _unit(depth.attrs)
    if hasattr(depth, "__dlpack__") and hasattr(depth, "detach"):
        return _numbers(depth), lambda result: _as_tensors(result, depth), ""
    return depth, None, ""


def _numbers(tensor: Any) -> Any:
    """Return the numbers of a tensor; those of a type that NumPy lacks, such as bfloat16, as float32."""
    here = tensor.detach().cpu()
    try:
        return np.asarray(here)
    except TypeError:
        return np.asarray(here.float())


def _unit(attributes: Any) -> Unit:
    """Return the unit that attributes name after the CF conventions, "" = none that is known."""
    found = {"metre": "m", "meter": "m", "millimeter": "mm", "millimetre": "mm"}
    text = str(attributes.get("units", ""))
    unit: Any = found.get(text, text)
    return unit if unit in get_args(Unit) else ""


def _as_xarray(result: Restoration, like: Any) -> Restoration:
    """Return the result with labelled arrays; those of variance and origin say what they hold."""
    name, units = like.name or "depth", like.attrs.get("units")
    depth = like.copy(data=result.depth)
    variance, origin = like.copy(data=result.variance), like.copy(data=result.origin)
    variance.name, origin.name = f"{name}_variance", f"{name}_origin"
    variance.attrs = {"long_name": f"variance of {name}"} | ({} if units is None else {"units": f"({units})2"})
    origin.attrs = {
        "long_name": f"origin of {name}",
        "flag_values": [int(value) for value in Origin],
        "flag_meanings": " ".join(value.name.lower() for value in Origin),
    }
    return replace(result, depth=depth, variance=variance, origin=origin)


def _as_tensors(result: Restoration, like: Any) -> Restoration:
    """Return the result with tensors on the device of the map."""
    library = sys.modules[type(like).__module__.partition(".")[0]]
    arrays = {name: getattr(result, name) for name in ("depth", "variance", "origin")}
    made = {name: library.from_dlpack(np.ascontiguousarray(array)).to(like.device) for name, array in arrays.items()}
    return replace(result, **made)
