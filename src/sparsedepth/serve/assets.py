"""The files of the page."""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from fastapi import Response
from fastapi.responses import JSONResponse

from sparsedepth.serve.limits import HTTPError

TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def asset(name: str) -> Response:
    """Return a file of the page, by its name."""
    if name == "plotly.js":
        return Response(_plotly(), media_type=TYPES[".js"], headers={"cache-control": "max-age=3600"})
    if name == "colours.json":
        return JSONResponse(_colours())
    if name not in {file.name for file in _page().iterdir()}:
        raise HTTPError(404, "there is nothing at this address")
    return Response((_page() / name).read_bytes(), media_type=TYPES[Path(name).suffix])


def _page() -> Any:
    return resources.files("sparsedepth.serve") / "page"


@cache
def _plotly() -> bytes:
    return (resources.files("plotly") / "package_data" / "plotly.min.js").read_bytes()


@cache
def _colours() -> dict[str, Any]:
    """Return the colour scales of our other pictures."""
    from matplotlib import colormaps

    from sparsedepth.pictures import ORIGINS, UNKNOWN

    scales = {
        name: (colormaps[name](range(256), bytes=True)[:, :3]).tolist() for name in ("viridis", "bone", "gray", "PuOr")
    }
    return {"scales": scales, "origins": ORIGINS, "unknown": UNKNOWN}
