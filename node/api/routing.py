"""Finds the handler of a request among some three hundred routes, without trying the pattern of each."""

from collections.abc import Iterable
from typing import Final

from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from node.contract.endpoint import PREFIX

_API: Final = f"{PREFIX}/"


class Routes:
    """Routes in the order of their precedence, of which a request is compared with a few.

    Starlette tries one pattern after the other, a few microseconds each: half of what a small request takes. So routes are
    grouped by their method and the part of their path that follows the API's prefix; outside of the API, by the whole path.
    `otherwise` answers what no route is for.
    """

    def __init__(self, routes: Iterable[Route], otherwise: ASGIApp) -> None:
        groups: dict[tuple[str, str], list[Route]] = {}
        for route in routes:
            for method in route.methods or ():
                groups.setdefault((method, _group_of(route.path)), []).append(route)
        self._routers = {key: Router(group, default=otherwise) for key, group in groups.items()}
        self._otherwise = otherwise

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one HTTP request."""
        router = self._routers.get((scope["method"], _group_of(scope["path"])), self._otherwise)
        await router(scope, receive, send)


def _group_of(path: str) -> str:
    return path[len(_API) :].partition("/")[0] if path.startswith(_API) else path
