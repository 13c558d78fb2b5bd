"""Run the application behind a socket."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Callable
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from sparsedepth.serve.app import make_app
from sparsedepth.serve.guard import LOOPBACK
from sparsedepth.serve.limits import Limits
from sparsedepth.vocabulary import InputError

MAX_CONNECTIONS = 1000
KEEP_ALIVE_SECONDS = 30
"""Longer than that of clients, often 5 seconds: a server that closes first may lose a request."""


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def listen(host: str, port: int) -> socket.socket:
    """Return a bound socket; port 0 is any free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # asyncio turns Nagle off where this is said
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        raise InputError(f"cannot listen at {host}:{port}: {error.strerror}; choose another --port or --host") from None
    return bound


def address(bound: socket.socket) -> str:
    """Return the address of the page."""
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


class Server(uvicorn.Server):
    """A uvicorn server that calls ``ready`` when it accepts requests."""

    def __init__(self, bound: socket.socket, limits: Limits, token: str | None, ready: Callable[[], None]) -> None:
        host = bound.getsockname()[0]
        hosts = LOOPBACK | {host} if is_loopback(host) else None
        protocol = type("IdleClosing", (_IdleClosingProtocol,), {"idle_seconds": limits.idle_seconds})
        super().__init__(
            uvicorn.Config(
                make_app(limits, token=token, hosts=hosts),
                http=protocol,
                ws="none",
                lifespan="on",
                log_level="error",
                access_log=False,
                server_header=False,
                limit_concurrency=MAX_CONNECTIONS,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=2,
            )
        )
        self._bound, self._ready = bound, ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and call ``ready``."""
        await super().startup(sockets)
        if self.started:
            self._ready()

    def work(self) -> None:
        """Serve until stopped."""
        self.run(sockets=[self._bound])


class _IdleClosingProtocol(H11Protocol):
    """A protocol that closes connections on which nothing was answered for some seconds."""

    idle_seconds = 10.0

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._answered = self._seen = 0
        self._check = self.loop.call_later(self.idle_seconds, self._check_again)

    def connection_lost(self, exc: Exception | None) -> None:
        self._check.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        self._answered += 1
        super().on_response_complete()

    def _check_again(self) -> None:
        """Close the connection if nothing was answered since the last check; a refused client may still be sending."""
        busy = self.cycle is not None and not self.cycle.response_complete
        if not busy and self._answered == self._seen:
            self.transport.close()
            return
        self._seen = self._answered
        self._check = self.loop.call_later(self.idle_seconds, self._check_again)


def run(host: str, port: int, limits: Limits, token: str | None, ready: Callable[[str], Any]) -> None:
    """Serve until stopped; ``ready`` is called with the page's address."""
    if not is_loopback(host) and not token:
        raise InputError(f"{host} can be reached from other machines; give a --token that they must know")
    bound = listen(host, port)
    Server(bound, limits, token, lambda: ready(address(bound))).work()
