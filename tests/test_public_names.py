"""Public names: signatures say what they take, and docstrings have numpydoc's sections.

Public are the names of ``sparsedepth.__all__``, those of the modules that users import, and all of docs/reference.md.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparsedepth

REFERENCE = (Path(__file__).parent.parent / "docs" / "reference.md").read_text(encoding="utf-8")
MODULES = ("", "files", "geometry", "metrics", "cameras")
"""Their ``__all__`` is public."""


def names_of_the_reference() -> Iterator[str]:
    """Yield the names that the reference lists one by one, and those of the modules that it lists as a whole."""
    module = ""
    for kind, name in re.findall(r"^\.\. (currentmodule|auto\w+):: (\S+)", REFERENCE, re.MULTILINE):
        if kind == "currentmodule":
            module = name
        elif kind == "automodule":
            members = vars(import_module(name)).items()
            functions = {key: thing for key, thing in members if inspect.isfunction(thing) and not key.startswith("_")}
            yield from (f"{name}.{key}" for key, thing in functions.items() if thing.__module__.startswith(name))
        else:
            yield name if name.startswith("sparsedepth.") else f"{module}.{name}"


def names_of_the_modules() -> Iterator[str]:
    for module in MODULES:
        place = f"sparsedepth.{module}".rstrip(".")
        yield from (f"{place}.{name}" for name in import_module(place).__all__ if not name.isupper())


def found(name: str) -> Any:
    module, _, own = name.rpartition(".")
    return getattr(import_module(module), own)


PUBLIC = {name: found(name) for name in sorted({*names_of_the_reference(), *names_of_the_modules()})}
ALONE = {"InputError", "InputWarning", "Origin"}
"""Nothing goes into these."""
GIVES_NOTHING = {"write", "write_array", "write_normals"}
SETTINGS = {"StreamSettings"}
"""Each of their fields is described where it stands."""
NEEDS_FILES = {"describe_bag", "read_bag", "diagnose", "Diagnosis"}
"""The pages of the documentation have their examples: they need a recording, or a frame of a camera."""
EVERYWHERE = {"self", "name", "sources", "seed", "report_every", "_"}


def test_the_reference_names_all_that_is_exported():
    """And the names of this test are those: hundreds of pages would go unseen if the pattern failed."""
    assert len(PUBLIC) > 80
    listed = set(names_of_the_reference())
    assert [name for name in sparsedepth.__all__ if f"sparsedepth.{name}" not in listed] == []


def sections_of(name: str, thing: Any) -> set[str]:
    """Return the sections that a name needs."""
    own = name.rpartition(".")[2]
    takes = not (own in SETTINGS or getattr(thing, "_is_protocol", False))
    wanted = {"Parameters"} if takes and set(inspect.signature(thing).parameters) - EVERYWHERE else set()
    if inspect.isfunction(thing) and own not in GIVES_NOTHING:
        wanted.add("Yields" if inspect.isgeneratorfunction(thing) or own == "learn" else "Returns")
    return wanted if own in NEEDS_FILES | SETTINGS else wanted | {"Examples"}


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_documented_in_sections(name):
    """Parameters, what comes out, and an example that runs; the first line says all by itself."""
    thing, text = PUBLIC[name], PUBLIC[name].__doc__ or ""
    first = text.splitlines()[0]
    assert first.endswith((".", ":")), first
    if name.rpartition(".")[2] in ALONE:
        return
    wanted = sections_of(name, thing)
    missing = {each for each in wanted if not re.search(rf"^ *{each}\n *-{{{len(each)}}}$", text, re.MULTILINE)}
    assert missing == set()
    assert ">>> " in text or "Examples" not in wanted
    described = set(re.findall(r"\w+", " ".join(re.findall(r"^    ([a-z_*, ]+)(?: : .*)?$", text, re.MULTILINE))))
    taken = set(inspect.signature(thing).parameters) - EVERYWHERE if "Parameters" in wanted else set()
    assert taken <= described, taken - described


def functions_of(name: str, thing: Any) -> Iterator[tuple[str, Any]]:
    if inspect.isfunction(thing):
        yield name, thing
    elif inspect.isclass(thing):
        for member, function in inspect.getmembers(thing, inspect.isroutine):
            shown = not member.startswith("_") or member in ("__init__", "__call__")
            if shown and hasattr(function, "__annotations__"):
                yield f"{name}.{member}", function


VAGUE = {"Sensor.estimate": "options", "PointCloud.to_open3d": "return"}
"""Options that are passed on, and an object of a library that need not be there."""


@pytest.mark.parametrize("name", PUBLIC)
def test_signatures_say_what_they_take(name):
    vague = [
        f"{own}: {parameter}"
        for own, function in functions_of(name, PUBLIC[name])
        if function.__module__.startswith("sparsedepth")
        for parameter, kind in function.__annotations__.items()
        if re.search(r"(?<!\[)\bAny\b", str(kind))
        and parameter != VAGUE.get(own.removeprefix(f"{name.rpartition('.')[0]}."))
    ]
    assert vague == []


def test_lists_are_taken_where_arrays_are():
    """As the signatures say: nested lists, and integers."""
    depth = [[float(row + column) for column in range(24)] for row in range(24)]
    plain = sparsedepth.inpaint(np.asarray(depth), quality="fast")
    np.testing.assert_array_equal(sparsedepth.inpaint(depth, quality="fast").depth, plain.depth)
    points = [sparsedepth.point_cloud(each, (20, 20, 11.5, 11.5), unit="m").points for each in (depth, plain.depth)]
    np.testing.assert_array_equal(points[0], points[1])
