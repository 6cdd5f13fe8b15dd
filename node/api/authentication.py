"""Authentication of the HTTP API: checks Host, Origin and token of every request, and formats its refusals.

Anyone who holds a token, from this machine; `callers` tells whose it is, and `access` what it may. A page in a browser
does not: it cannot send the header to another origin without being asked about (and is refused), and a name that was
rebound to 127.0.0.1 is refused by the Host check. A token in a URL is never accepted, since URLs end up in logs.
"""

from typing import Final

from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from node.api.callers import CALLER, Callers
from node.runtime.errors import ServiceError, kind_of

TRUSTED: Final = "ravel.trusted"
"""In a request's extensions: what to call when it has shown the token. Servers that bound strangers have it."""
_RETRY_SECONDS: Final = 5
_LOOPBACK_NAMES: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})
"""What says no more than that the node runs, and whether it can work."""


class Gate:
    """In front of everything: the Host must be a loopback name, a foreign Origin is refused, and the token must be there
    for all but the open paths."""

    def __init__(self, application: ASGIApp, callers: Callers, open_paths: frozenset[str]) -> None:
        self._application = application
        self._open_paths = open_paths
        self._callers = callers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve or refuse one request."""
        if scope["type"] == "http":
            try:
                self._check(scope)
            except ServiceError as error:
                await error_response(error)(scope, receive, send)
                return
            if scope["path"] not in self._open_paths:
                scope.get("extensions", {}).get(TRUSTED, lambda: None)()
        elif scope["type"] != "lifespan":
            return  # no WebSockets here; the server refuses what nothing accepts
        await self._application(scope, receive, send)

    def _check(self, scope: Scope) -> None:
        """Refuse a request, or note in its scope who calls. Raises ServiceError."""
        headers: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name, []).append(value)
        hosts = headers.get(b"host", [])
        host = hosts[0].decode("latin-1") if len(hosts) == 1 else ""
        if _host_name(host) not in _LOOPBACK_NAMES:
            raise ServiceError("forbidden_host", f"this API answers on loopback names, not as {host[:100]!r}")
        origins = headers.get(b"origin", [])
        if any(origin.decode("latin-1") != f"http://{host}" for origin in origins):
            raise ServiceError("forbidden_origin", "this API does not answer pages of other origins")
        if scope["path"] not in self._open_paths:
            scope[CALLER] = self._callers.identify(headers.get(b"authorization", []))


def _host_name(host: str) -> str:
    """The name in a Host header: without the port, which must be one."""
    name, colon, port = host.rpartition(":")
    if colon and not port.endswith("]"):
        return name if port.isascii() and port.isdigit() else ""
    return host


def error_response(error: ServiceError) -> Response:
    """The one JSON form of an error. Who is one too many leaves the connection to others."""
    headers = {"Retry-After": str(_RETRY_SECONDS), "Connection": "close"} if error.code == "busy" else None
    return JSONResponse(error.as_json(), kind_of(error).http_status, headers)
