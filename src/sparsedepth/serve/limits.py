"""What a service takes upon itself, and how it says no."""

from __future__ import annotations

from dataclasses import dataclass, fields

from sparsedepth.vocabulary import InputError


@dataclass(frozen=True)
class Limits:
    """Bytes of an upload, pixels of a map, jobs that wait, seconds of a job; and how long results stay."""

    bytes: int = 64 << 20
    pixels: int = 1 << 23
    queue: int = 16
    job_seconds: float = 300.0
    desk_seconds: float = 30.0
    """To decode an upload or to encode a result."""
    upload_seconds: float = 60.0
    idle_seconds: float = 10.0
    """Between two pieces of an upload, or until a request has said what it wants."""
    keep_seconds: float = 900.0
    keep_bytes: int = 1 << 30
    """Of all results; the oldest go first."""
    requests: int = 256
    """At the same time."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not value > 0:
                raise InputError(f"the limit {field.name} is {value:g}; it must be positive")


class Refusal(Exception):  # noqa: N818 (it is an answer, not an accident)
    """An answer that is not what was asked for: a status of HTTP and a sentence."""

    def __init__(self, status: int, sentence: str, **headers: str) -> None:
        super().__init__(sentence)
        self.status, self.sentence = status, sentence
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


def size(n_bytes: float) -> str:
    """A number of bytes as people say it."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if n_bytes >= factor:
            return f"{n_bytes / factor:.4g} {unit}"
    return f"{n_bytes:.0f} bytes"
