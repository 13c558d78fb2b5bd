"""Serve the page and the HTTP service."""

from __future__ import annotations

import webbrowser
from typing import Annotated

import typer

from sparsedepth.cli.terminal import say
from sparsedepth.extras import needed_for


def serve_command(
    host: Annotated[str, typer.Option("--host", help="Address to listen on; any but loopback needs --token.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option("--port", help="0 takes any free one.", min=0, max=65535)] = 8765,
    token: Annotated[
        str | None,
        typer.Option(
            "--token", envvar="SPARSEDEPTH_TOKEN", help="Token that clients must send; prefer the environment variable."
        ),
    ] = None,
    max_bytes: Annotated[int, typer.Option("--max-bytes", help="Largest upload, in bytes.", min=1)] = 64 << 20,
    max_pixels: Annotated[int, typer.Option("--max-pixels", help="Largest map, in pixels.", min=1)] = 1 << 23,
    max_frames: Annotated[int, typer.Option("--max-frames", help="Largest number of frames in a stream.", min=1)] = 300,
    queue: Annotated[int, typer.Option("--queue", help="Largest number of waiting jobs.", min=1)] = 16,
    job_seconds: Annotated[
        float, typer.Option("--job-seconds", help="Time after which a job is stopped.", min=1)
    ] = 300,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Start a web page and an HTTP service that restore maps; results are kept for 15 minutes."""
    with needed_for("serving", "serve"):
        from sparsedepth.serve.limits import Limits
        from sparsedepth.serve.server import run

    def ready(address: str) -> None:
        say(f"serving at {address} (Ctrl-C stops)")
        if open_page:
            webbrowser.open(address + (f"#token={token}" if token else ""))

    given = {"bytes": max_bytes, "pixels": max_pixels, "frames": max_frames, "queue": queue}
    run(host, port, Limits(**given, job_seconds=job_seconds), token, ready)
