"""Give results back as what came: xarray keeps coordinates and attributes, torch its device. Neither is imported."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar, get_args

import numpy as np

from sparsedepth.vocabulary import Belief, Match, Origin, Restoration, Unit

Result = TypeVar("Result", Restoration, Match, Belief)
Wrap = Callable[[Any], Any]
"""A function that puts the arrays of a result into containers."""
MAPS = ("depth", "disparity", "mean")
"""What results call their maps."""


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
    labelled = all(hasattr(depth, name) for name in ("dims", "coords", "attrs", "values", "copy"))
    if labelled and not hasattr(depth, "data_vars"):
        return depth.values, lambda result: _as_xarray(result, depth), _unit(depth.attrs)
    if hasattr(depth, "__dlpack__") and hasattr(depth, "detach"):
        return _numbers(depth), lambda result: _as_tensors(result, depth), ""
    return depth, None, ""


def unpack_view(view: Any) -> tuple[Any, Wrap | None]:
    """Take the left view of a pair out of its container; the function labels disparities.

    Parameters
    ----------
    view
        (height, width) or (height, width, channels), as for `unpack`.

    Returns
    -------
    The array, and a function that wraps a match; None for an array of NumPy.
    """
    array, wrap, _ = unpack(view)
    if wrap is None or not hasattr(view, "dims") or len(view.dims) > 3:
        return array, wrap
    plane = view.isel(dict.fromkeys(view.dims[2:], 0), drop=True).rename("disparity")
    plane.attrs = {"long_name": "disparity of the left view", "units": "px"}
    return array, lambda found: _as_xarray(found, plane)


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


def _as_xarray(result: Result, like: Any) -> Result:
    """Return the result with labelled arrays; those of variance and origin say what they hold."""
    name, units = like.name or "depth", like.attrs.get("units")
    labelled = {key: like.copy(data=array) for key, array in _arrays(result).items()}
    variance = labelled["variance"]
    variance.name = f"{name}_variance"
    variance.attrs = {"long_name": f"variance of {name}"} | ({} if units is None else {"units": f"({units})2"})
    if (origin := labelled.get("origin")) is not None:
        origin.name, origin.attrs = f"{name}_origin", _origin_attributes(name)
    return replace(result, **labelled)


def _origin_attributes(name: str) -> dict[str, Any]:
    """Return what the numbers of origins mean, after the CF conventions."""
    return {
        "long_name": f"origin of {name}",
        "flag_values": [int(value) for value in Origin],
        "flag_meanings": " ".join(value.name.lower() for value in Origin),
    }


def _as_tensors(result: Result, like: Any) -> Result:
    """Return the result with tensors on the device of the map."""
    library = sys.modules[type(like).__module__.partition(".")[0]]
    arrays = _arrays(result).items()
    made = {name: library.from_dlpack(np.ascontiguousarray(array)).to(like.device) for name, array in arrays}
    return replace(result, **made)


def _arrays(result: Restoration | Match | Belief) -> dict[str, Any]:
    """Return the arrays of a result by their names."""
    return {name: getattr(result, name) for name in (*MAPS, "variance", "origin") if hasattr(result, name)}
