"""Finds the handler of a request among some three hundred routes, without trying the pattern of each."""

from collections.abc import Iterable
from typing import Final

from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from node.contract.endpoint import PREFIX

_API: Final = f"{PREFIX}/"


class Routes:
    """Routes in the order of their precedence, of which a request is compared with a few.

    Starlette tries one pattern after the other, a few microseconds each: half of what a small request takes. So routes are
    grouped by their method and the part of their path that follows the API's prefix; outside of the API, by the whole path.
    Their endpoints are functions of a request, and called without Starlette's router, which wraps each in handlers of errors
    that there are none of. `otherwise` answers what no route is for.
    """

    def __init__(self, routes: Iterable[Route], otherwise: ASGIApp) -> None:
        self._groups: dict[tuple[str, str], list[Route]] = {}
        for route in routes:
            for method in route.methods or ():
                self._groups.setdefault((method, _group_of(route.path)), []).append(route)
        self._otherwise = otherwise

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one HTTP request."""
        path = scope["path"]
        for route in self._groups.get((scope["method"], _group_of(path)), ()):
            found = route.path_regex.match(path)
            if found is not None:
                scope["path_params"] = found.groupdict()
                response = await route.endpoint(Request(scope, receive, send))
                await response(scope, receive, send)
                return
        await self._otherwise(scope, receive, send)


def _group_of(path: str) -> str:
    return path[len(_API) :].partition("/")[0] if path.startswith(_API) else path
