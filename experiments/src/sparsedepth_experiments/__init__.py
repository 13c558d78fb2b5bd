"""Experiments, one file for each claim: ``run(output, progress, quick=False) -> dict`` writes tables and pictures.

They are a package of their own, beside sparsedepth. `sparsedepth reproduce NAME` runs them.

What experiments share lies in `harness` and in files whose names begin with an underscore.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module, resources
from typing import Any

from sparsedepth.extras import needed_for
from sparsedepth.vocabulary import InputError

Progress = Callable[[str, int, int], None]
"""(what is being done, steps done, steps in all)."""
HARNESS = "harness"


def names() -> list[str]:
    """List the experiments that `reproduce` can run."""
    files = (entry.name for entry in resources.files(__name__).iterdir())
    modules = {name[:-3] for name in files if name.endswith(".py") and not name.startswith("_")}
    return sorted(modules - {HARNESS})


def load(name: str) -> Any:
    """Import an experiment by its name."""
    if name not in names():
        raise InputError(f"there is no experiment {name!r}; choose one of {', '.join(names())}, or 'all'")
    with needed_for(f"the experiment {name}", "reproduce"):
        return import_module(f"{__name__}.{name}")
