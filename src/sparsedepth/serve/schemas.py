"""The answers of the service, as OpenAPI describes them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import BaseModel

from sparsedepth.serve.queue import State


class Facts(BaseModel):
    """Facts of a map; shares are of all its pixels."""

    shape: tuple[int, int]
    unit: str
    kind: str
    input: Literal["map", "photo", "stream"]
    assumed: str
    source: str = ""
    known: float
    frames: int = 1
    intrinsics: list[float] | None = None
    state: str | None = None
    measured: float | None = None
    corrected: float | None = None
    filled: float | None = None
    refused: float | None = None
    smoothed: float | None = None
    remembered: float | None = None
    warnings: list[str] = []


class JobAnswer(BaseModel):
    """The state of a job."""

    id: str
    task: str
    state: State
    stage: str
    position: int | None
    seconds: float
    expected_seconds: float | None
    expires_in: float | None
    error: str | None
    facts: Facts | None
    links: dict[str, str]


class ErrorAnswer(BaseModel):
    """An error, in a sentence."""

    error: str


class Health(BaseModel):
    """The load of the service."""

    status: Literal["ok"]
    waiting: int
    running: int
    jobs: int


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describe error answers of these statuses."""
    return {status: {"model": ErrorAnswer} for status in statuses}


FILE = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
MAP_FILE = FILE | {"image/tiff": {"schema": {"type": "string", "format": "binary"}}}
PRODUCT_FILE = MAP_FILE | {
    media: {"schema": {"type": "string", "format": "binary"}} for media in ("image/png", "image/gif")
}
TASK_ERRORS = errors(400, 401, 403, 404, 408, 413, 415, 422, 429, 500, 503)
FrameNumber = Annotated[
    int | None, Query(description="Number of a frame of a stream, from 0; without it, all of them.", ge=0, lt=1 << 20)
]
Answer = Annotated[
    Literal["links", "npz", "tiff"],
    Query(description="links: a job to ask about, at once (202); npz or tiff: the result, when it is there (200)."),
]
