"""The web page: its files, security headers, and one-time codes that give it a token of its own.

The files hold no secret, so anybody who reaches the port may have them. The token is never in an address: `ravel open`
makes a *code*, good once and for a minute, and puts it behind the # of the page's address, which browsers keep to
themselves. The page gives the code for a token, and keeps that in its tab's session storage.
"""

import hashlib
import json
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import trio
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from node.api.codes import OneTimeCodes
from node.api.requests import Handler, read_json
from node.contract.node import PageCodeRequest
from protocol.limits.users import PAGE_CODE_BODY_SIZE_MAX, PAGE_CODE_SECONDS, PAGE_CODES_MAX
from ravel.types.node import PageCode

_FOLDER: Final = Path(__file__).parents[1] / "web"
_KINDS: Final = {
    ".css": "text/css",
    ".js": "text/javascript",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
    ".webmanifest": "application/manifest+json",
}
"""Suffix of each file that is served -> its type."""
_WORKER: Final = "service-worker.js"
_FILES: Final = {
    "/": ("index.html", "text/html"),
    **{
        f"/web/{path.relative_to(_FOLDER).as_posix()}": (str(path.relative_to(_FOLDER)), _KINDS[path.suffix])
        for path in sorted(_FOLDER.rglob("*"))
        if path.suffix in _KINDS and path.name != _WORKER
    },
    # At the top: a service worker serves what stands below its own path.
    f"/{_WORKER}": (_WORKER, _KINDS[".js"]),
}
SHELL_PATH: Final = "/web/shell.json"
"""What a browser keeps of the page to open it while the node is away: all files, and the version that they are together."""
CODE_PATH: Final = "/open"
REPORT_PATH: Final = "/report"
EXPORT_PATH: Final = "/export"
CODE_QUERY: Final = "code"
OPEN_PATHS: Final = frozenset({*_FILES, SHELL_PATH, CODE_PATH, REPORT_PATH, EXPORT_PATH})
"""What is served without the token."""
_HEADERS: Final = {
    # Nothing of others, nothing inline, no frames: text that others wrote can become nothing but text. `blob:` shows
    # pictures of files, which a script fetched with the token; as pictures they run nothing.
    # A frame shows the node's own report, which is served with a policy of its own.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' blob:; "
        "frame-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types ravel"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
}


_REPORT_HEADERS: Final = {
    **_HEADERS,
    # The report has no scripts, and styles of its own. In a sandbox it is of no origin: whatever stood in it could ask
    # nothing of this node, nor of anybody else.
    "Content-Security-Policy": (
        "sandbox; default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
    ),
    "Cache-Control": "no-store",
}


class PageCodes(OneTimeCodes):
    """Codes that were made for pages on this machine, and not used.

    `clock` counts seconds; `address` comes before the code in a path.
    """

    def __init__(
        self, clock: Callable[[], float] = trio.current_time, address: str = f"/#{CODE_QUERY}="
    ) -> None:
        super().__init__(
            lambda: secrets.token_urlsafe(24),
            seconds=PAGE_CODE_SECONDS,
            count_max=PAGE_CODES_MAX,
            tries_max=None,  # nobody guesses 192 bits
            advice="`ravel open` makes another",
            clock=clock,
        )
        self._address = address

    async def answer(self) -> PageCode:
        """Make a code, and the path that uses it."""
        code = self.make()
        return {"code": code, "path": f"{self._address}{code}", "expires_seconds": PAGE_CODE_SECONDS}


def page_routes(give_token: Handler, show_report: Handler, send_export: Handler) -> list[Route]:
    """Return routes of the page's files, and of those that give a token, the report or an export for a one-time code."""
    contents = {path: (_FOLDER / name).read_bytes() for path, (name, _) in _FILES.items()}
    files = [Route(path, _serve(contents[path], kind)) for path, (_, kind) in _FILES.items()]
    files.append(Route(SHELL_PATH, _serve(_list_shell(contents), "application/json")))
    given = [_route_once(REPORT_PATH, show_report), _route_once(EXPORT_PATH, send_export)]
    return [*files, Route(CODE_PATH, give_token, methods=["POST"]), *given]


def _route_once(path: str, handler: Handler) -> Route:
    """Return a route that refuses HEAD: a code works once, and HEAD would use it up without giving the export."""

    async def serve(request: Request) -> Response:
        if request.method == "HEAD":  # starlette adds it to GET
            await trio.lowlevel.checkpoint()
            return Response(status_code=405, headers={**_HEADERS, "Allow": "GET"})
        return await handler(request)

    return Route(path, serve, methods=["GET"])


def report_response(content: bytes) -> Response:
    """Return the node's report for a frame of the page."""
    return Response(content, media_type="text/html", headers=_REPORT_HEADERS)


async def read_code(request: Request) -> PageCodeRequest:
    """Read the code of a request, and the name that a paired browser gives itself. Raises ServiceError."""
    return await read_json(request, PageCodeRequest, PAGE_CODE_BODY_SIZE_MAX)


def _list_shell(contents: Mapping[str, bytes]) -> bytes:
    kept = sorted(path for path in contents if path != f"/{_WORKER}")
    hasher = hashlib.sha256()
    for path in kept:
        hasher.update(hashlib.sha256(path.encode()).digest() + hashlib.sha256(contents[path]).digest())
    return json.dumps({"version": hasher.hexdigest()[:32], "files": kept}).encode()


def _serve(content: bytes, kind: str) -> Handler:
    tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    headers = {**_HEADERS, "ETag": tag}

    async def serve(request: Request) -> Response:
        await trio.lowlevel.checkpoint()
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=kind, headers=headers)

    return serve
