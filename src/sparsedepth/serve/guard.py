"""Check hosts, origins, the token and the number of requests at the same time; add headers to every answer."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from urllib.parse import urlsplit

from fastapi.responses import JSONResponse
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sparsedepth.serve.limits import HTTPError

LOOPBACK = frozenset(("localhost", "127.0.0.1", "::1"))
OPEN = ("/", "/healthz", "/openapi.json")
"""Paths that need no token, besides those of the page: they show nobody's maps."""
HEADERS = {
    "content-security-policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "worker-src 'self' blob:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}


def error_response(error: HTTPError) -> JSONResponse:
    """Return the answer for an error."""
    return JSONResponse({"error": error.sentence}, error.status, error.headers)


class Guard:
    """ASGI middleware that refuses requests before the application sees them."""

    def __init__(self, app: ASGIApp, *, token: str | None, hosts: Collection[str] | None, requests: int) -> None:
        self._app, self._token, self._hosts, self._most = app, token, hosts, requests
        self._inside = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            self._check(scope)
        except HTTPError as error:
            await error_response(error)(scope, receive, send_guarded)
            return
        self._inside += 1
        try:
            await self._app(scope, receive, send_guarded)
        finally:
            self._inside -= 1

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        if self._inside >= self._most:
            raise HTTPError(503, "too many requests at the same time; come back in a few seconds", retry_after="5")
        host = headers.get("host", "")
        if self._hosts is not None and _name(host) not in self._hosts:  # a foreign name that points here
            raise HTTPError(403, "this service answers to its own address only")
        origin = headers.get("origin")
        if origin is not None and scope["method"] not in ("GET", "HEAD") and urlsplit(origin).netloc != host:
            raise HTTPError(403, "another site's page may not ask this service for anything")
        path = scope["path"]
        if self._token is not None and path not in OPEN and not path.startswith("/page/"):
            given = headers.get("authorization", "")
            if not secrets.compare_digest(given.encode(), f"Bearer {self._token}".encode()):
                raise HTTPError(401, "give the service's token: Authorization: Bearer TOKEN", www_authenticate="Bearer")


def _name(host: str) -> str:
    """Return a Host header without its port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
