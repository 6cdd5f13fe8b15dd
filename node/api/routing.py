"""Finds the handler of a request among some three hundred routes, without trying the pattern of each."""

from collections.abc import Iterable
from typing import Final

from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from node.contract.endpoint import PREFIX

_API: Final = f"{PREFIX}/"
_ANY: Final = "{"
"""In the place of a path's last part: whatever it is. No part of a request's path with it alone is taken for it."""


class Routes:
    """Routes in the order of their precedence, of which a request is compared with a few.

    Starlette tries one pattern after the other, half a microsecond each and more. So routes are grouped by their method, the
    part of their path that follows the API's prefix, and its last part unless that is a parameter; outside of the API, by
    the whole path. Their endpoints are functions of a request, and called without Starlette's router, which wraps each in
    handlers of errors that there are none of. `otherwise` answers what no route is for.
    """

    def __init__(self, routes: Iterable[Route], otherwise: ASGIApp) -> None:
        together: dict[tuple[str, str], list[Route]] = {}
        for route in routes:
            for method in route.methods or ():
                together.setdefault((method, _group_of(route.path)), []).append(route)
        self._groups: dict[tuple[str, str, str], list[Route]] = {}
        for (method, group), members in together.items():
            for last in {_ANY, *(_fixed_end(route) for route in members)}:
                self._groups[method, group, last] = [
                    route for route in members if _fixed_end(route) in (last, _ANY)
                ]
        self._otherwise = otherwise

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one HTTP request."""
        method, path = scope["method"], scope["path"]
        group, end = _group_of(path), path.rpartition("/")[2]
        for route in self._groups.get((method, group, end)) or self._groups.get((method, group, _ANY)) or ():
            found = route.path_regex.match(path)
            if found is not None:
                scope["path_params"] = found.groupdict()
                response = await route.endpoint(Request(scope, receive, send))
                await response(scope, receive, send)
                return
        await self._otherwise(scope, receive, send)


def _group_of(path: str) -> str:
    return path[len(_API) :].partition("/")[0] if path.startswith(_API) else path


def _fixed_end(route: Route) -> str:
    """The last part of a route's path; `_ANY` where that is a parameter."""
    end: str = route.path.rpartition("/")[2]
    return _ANY if end.startswith("{") else end
