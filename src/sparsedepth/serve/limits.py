"""The limits of the service, and the error that it answers with."""

from __future__ import annotations

from dataclasses import dataclass, fields

from sparsedepth.vocabulary import InputError


@dataclass(frozen=True)
class Limits:
    """Bytes of an upload, pixels of a map, frames of a stream, jobs that wait, seconds of a job, results that stay."""

    bytes: int = 64 << 20
    pixels: int = 1 << 23
    frames: int = 300
    """Of a stream."""
    stream_pixels: int = 1 << 25
    """Of all frames of a stream: 109 of 640 x 480."""
    queue: int = 16
    job_seconds: float = 300.0
    decode_seconds: float = 30.0
    """Of decoding an upload or encoding a result."""
    upload_seconds: float = 60.0
    idle_seconds: float = 10.0
    """Between two pieces of an upload, or until the head of a request is complete."""
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

    def of_maps(self) -> dict[str, int]:
        """Return the limits of what is decoded."""
        return {"pixels": self.pixels, "frames": self.frames, "stream_pixels": self.stream_pixels}


class HTTPError(Exception):
    """An error answer: a status of HTTP, a sentence, and headers."""

    def __init__(self, status: int, sentence: str, **headers: str) -> None:
        super().__init__(sentence)
        self.status, self.sentence = status, sentence
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


def size(n_bytes: float) -> str:
    """Format a number of bytes for people."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if n_bytes >= factor:
            return f"{n_bytes / factor:.4g} {unit}"
    return f"{n_bytes:.0f} bytes"
