"""Authentication of the HTTP API: checks Host, Origin and token of every request, and formats its refusals.

Anyone who holds a token, from this machine or, over TLS, by the listener for others (`remote`); `callers` tells whose it
is, and `access` what it may. A page in a browser does not: it cannot send the header to another origin without being asked
about (and is refused, unless a token was made for its origin), and a name that was rebound to an address of this node is
refused by the Host check. A token in a URL is never accepted, since URLs end up in logs.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from node.api.callers import CALLER, Callers
from node.api.requests import json_response
from node.contract.endpoint import PREFIX
from node.http.remote import REMOTE, Remote
from node.http.server import TRUSTED
from node.runtime.errors import ServiceError, kind_of

_RETRY_SECONDS: Final = 5
_LOOPBACK_NAMES: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})
"""Names of this machine that nobody else can give an address."""
_HEALTH_PATH: Final = "/healthz"
_PROBES: Final = frozenset({_HEALTH_PATH, "/readyz"})
"""What says no more than that the node runs, and whether it can work. Without a token on this machine alone."""
_PREFLIGHT_SECONDS: Final = 600
"""How long a browser need not ask again."""
_SHARED_HEADERS: Final = (
    "authorization, content-type, idempotency-key, if-range, last-event-id, range, ravel-repo, ravel-run"
)
_SHOWN_HEADERS: Final = b"content-range, etag, ravel-run, retry-after"

_Headers = Mapping[bytes, Sequence[bytes]]


class Gate:
    """In front of everything: the Host must be a name of this node, a foreign Origin is refused, and the token must be there
    for all but the open paths. What comes of other machines without a token is counted."""

    def __init__(self, application: ASGIApp, callers: Callers, open_paths: frozenset[str]) -> None:
        self._application = application
        self._open_paths = open_paths
        self._callers = callers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve or refuse one request."""
        if scope["type"] != "http":
            return  # no WebSockets here; the server refuses what nothing accepts
        remote = remote_of(scope)
        try:
            if remote is not None and scope["path"] in self._open_paths:
                remote.limits.take_request(remote.subnet_of(scope))
            headers = _headers_of(scope)
            origin = self._check_place(scope, headers)
            if origin:
                send = _shared(send, origin)
                if scope["method"] == "OPTIONS" and b"access-control-request-method" in headers:
                    await _permission(headers)(scope, receive, send)
                    return
            self._check_token(scope, headers, origin)
        except ServiceError as error:
            await error_response(_count_refused(scope, remote, error))(scope, receive, send)
            return
        if CALLER in scope:
            scope.get("extensions", {}).get(TRUSTED, lambda: None)()
        await self._application(scope, receive, send)

    def _check_place(self, scope: Scope, headers: _Headers) -> str:
        """Return the foreign origin that a request may come from, or an empty text. Raises ServiceError."""
        hosts = headers.get(b"host", ())
        host = hosts[0].decode("latin-1") if len(hosts) == 1 else ""
        remote = remote_of(scope)
        if remote is None and _host_name(host) not in _LOOPBACK_NAMES:
            raise ServiceError("forbidden_host", f"this API answers on loopback names, not as {host[:100]!r}")
        if remote is not None and not remote.has_name(_host_name(host)):
            raise ServiceError(
                "forbidden_host",
                f"this node does not answer as {host[:100]!r}",
                "if that is its name, add it to [api] tls_names",
            )
        own = f"{'http' if remote is None else 'https'}://{host}".lower()  # browsers write names so
        foreign = [
            origin.decode("latin-1")
            for origin in headers.get(b"origin", ())
            if origin.decode("latin-1") != own
        ]
        if not foreign:
            return ""
        # Not the web page's files and codes: they are for its own origin.
        is_api = scope["path"].startswith(f"{PREFIX}/") or scope["path"] == _HEALTH_PATH
        if len(foreign) > 1 or remote is not None or not is_api or not self._callers.may_share(foreign[0]):
            raise ServiceError(
                "forbidden_origin",
                "this API does not answer pages of other origins",
                "`ravel token create --origin ORIGIN` makes a token for pages of an origin",
            )
        return foreign[0]

    def _check_token(self, scope: Scope, headers: _Headers, origin: str) -> None:
        """Refuse a request, or note in its scope who calls. Raises ServiceError."""
        remote = remote_of(scope)
        if scope["path"] in self._open_paths or (remote is None and scope["path"] in _PROBES):
            return
        caller = self._callers.identify(headers.get(b"authorization", ()))
        # Both have a person's rights: where one leaks, it is to be of no use from elsewhere.
        if remote is not None and (caller.is_home or caller.is_page):
            raise ServiceError(
                "unauthorized",
                "the node's own token and those of its pages are good on the node's machine alone",
                "`ravel open --remote` pairs a browser; `ravel token create` makes a token for an app",
            )
        if origin and (caller.token is None or origin not in caller.token.origins):
            raise ServiceError(
                "forbidden_origin",
                f"the API token {caller.name!r} is not for pages of {origin}",
                f"`ravel token create --origin {origin}` makes one",
            )
        scope[CALLER] = caller


def remote_of(scope: Scope) -> Remote | None:
    """Return the listener for other machines if the request came by it."""
    found: Remote | None = scope.get("extensions", {}).get(REMOTE)
    return found


def _count_refused(scope: Scope, remote: Remote | None, error: ServiceError) -> ServiceError:
    """Count a refused request of another machine. Gives the error to answer with: another for one too many."""
    if remote is not None and error.code != "busy":
        try:
            remote.limits.take_request(remote.subnet_of(scope))
        except ServiceError as busy:
            return busy
    return error


def _headers_of(scope: Scope) -> _Headers:
    headers: dict[bytes, list[bytes]] = {}
    for name, value in scope["headers"]:
        headers.setdefault(name, []).append(value)
    return headers


def _permission(headers: _Headers) -> Response:
    """Return the answer to a browser's preflight request, which allows the origin."""
    permission = Response(
        status_code=204,
        headers={
            "Access-Control-Allow-Methods": "GET, POST, PUT, PATCH, DELETE",
            "Access-Control-Allow-Headers": _SHARED_HEADERS,
            "Access-Control-Max-Age": str(_PREFLIGHT_SECONDS),
        },
    )
    if b"access-control-request-private-network" in headers:
        permission.headers["Access-Control-Allow-Private-Network"] = "true"
    return permission


def _shared(send: Send, origin: str) -> Send:
    """Let pages of an origin read the answer."""

    async def share(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [
                *message.get("headers", ()),
                (b"access-control-allow-origin", origin.encode("latin-1")),
                (b"access-control-expose-headers", _SHOWN_HEADERS),
                (b"vary", b"Origin"),
            ]
        await send(message)

    return share


def _host_name(host: str) -> str:
    """Return the name in a Host header in lower case, without the port, which must be a number."""
    name, colon, port = host.lower().rpartition(":")
    if colon and not port.endswith("]"):
        return name if port.isascii() and port.isdigit() else ""
    return host.lower()


def error_response(error: ServiceError) -> Response:
    """Return the JSON form of an error. `busy` also closes the connection, to leave it to others."""
    headers = {"Retry-After": str(_RETRY_SECONDS), "Connection": "close"} if error.code == "busy" else None
    return json_response(error.as_json(), kind_of(error).http_status, headers)
