"""Finds the handler of a request among some three hundred routes, without trying the pattern of each.

A `/` that belongs to a name is escaped as `%2F`, and then a path can be read in one way alone. Where people leave it as it
is, the patterns of the routes tell what may be meant, in the order of their precedence.
"""

from collections.abc import Callable, Iterable
from functools import cache
from operator import itemgetter
from typing import Final
from urllib.parse import unquote

from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from node.contract.endpoint import PREFIX

_API: Final = f"{PREFIX}/"
_ANY: Final = "{"
"""In the place of a part of a path: whatever it is."""


class Routes:
    """Routes in the order of their precedence, found without trying them all.

    Starlette tries one pattern after the other, at half a microsecond or more each. So a path is first followed part by
    part. If a name in it has a `/` that is not escaped, the path's group of routes is tried: those of one method, one
    first part below the API's prefix, and one last part unless that is a parameter; outside of the API, those of the
    whole path. Endpoints are functions of a request and are called without Starlette's router, which wraps each in
    handlers of errors that do not occur. `otherwise` answers if no route fits, `refuse_method` if only routes of other
    methods do.
    """

    def __init__(
        self, routes: Iterable[Route], otherwise: ASGIApp, refuse_method: Callable[[list[str]], ASGIApp]
    ) -> None:
        self._tree = _Tree()
        together: dict[tuple[str, str], list[Route]] = {}
        for place, route in enumerate(routes):
            self._tree.add(place, route)
            for method in route.methods or ():
                together.setdefault((method, _group_of(route.path)), []).append(route)
        self._groups: dict[tuple[str, str, str], list[Route]] = {}
        for (method, group), members in together.items():
            ends = [_fixed_end(route) for route in members]
            for last in {_ANY, *ends}:
                self._groups[method, group, last] = [
                    route for route, end in zip(members, ends, strict=True) if end in (last, _ANY)
                ]
        self._methods = {method for method, _ in together}
        self._otherwise = otherwise
        self._refuse_method = refuse_method

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one HTTP request."""
        method, path = scope["method"], scope["path"]
        parts = scope.get("raw_path", path.encode()).decode("latin-1").split("/")
        leaves = self._tree.find(parts)
        exact = [leaf[method] for leaf in leaves if method in leaf]
        if exact:
            _, route = min(exact, key=itemgetter(0))
            scope["path_params"] = {name: unquote(parts[place]) for place, name in _named_parts(route.path)}
            await _answer(route, scope, receive, send)
            return
        found = self._match(method, path)
        if found is not None:
            route, scope["path_params"] = found
            await _answer(route, scope, receive, send)
            return
        others = sorted(
            {other for leaf in leaves for other in leaf}
            or {
                other
                for other in self._methods
                if (match := self._match(other, path)) is not None and not _fits_anything(match[0])
            }
        )
        otherwise = self._refuse_method(others) if others else self._otherwise
        await otherwise(scope, receive, send)

    def _match(self, method: str, path: str) -> tuple[Route, dict[str, str]] | None:
        """Return the first route whose pattern fits a path with unescaped slashes, and the path's parameters."""
        group, end = _group_of(path), path.rpartition("/")[2]
        for route in self._groups.get((method, group, end)) or self._groups.get((method, group, _ANY)) or ():
            found = route.path_regex.match(path)
            if found is not None:
                return route, found.groupdict()
        return None


class _Tree:
    """Routes by the parts of their paths."""

    def __init__(self) -> None:
        self._next: dict[str, _Tree] = {}
        self.routes: dict[str, tuple[int, Route]] = {}
        """Method -> the place in the order, and the route that ends here."""

    def add(self, place: int, route: Route) -> None:
        """Add a route. Of two with one method and path, the first stays."""
        tree = self
        for part in route.path.split("/"):
            key = _ANY if part.startswith(_ANY) else part
            if key not in tree._next:
                tree._next[key] = _Tree()
            tree = tree._next[key]
        for method in route.methods or ():
            tree.routes.setdefault(method, (place, route))

    def find(self, parts: list[str]) -> list[dict[str, tuple[int, Route]]]:
        """Return the routes that match these parts. A nonempty part also matches a parameter."""
        trees = [self]
        for part in parts:
            keys = {part, _ANY} if part else {part}
            trees = [tree._next[key] for tree in trees for key in keys if key in tree._next]
            if not trees:
                break
        return [tree.routes for tree in trees]


async def _answer(route: Route, scope: Scope, receive: Receive, send: Send) -> None:
    response = await route.endpoint(Request(scope, receive, send))
    await response(scope, receive, send)


@cache
def _named_parts(path: str) -> list[tuple[int, str]]:
    """Return place and name of each parameter of a route's path."""
    parts = enumerate(path.split("/"))
    return [(place, part.strip("{}").partition(":")[0]) for place, part in parts if part.startswith(_ANY)]


def _group_of(path: str) -> str:
    return path[len(_API) :].partition("/")[0] if path.startswith(_API) else path


def _fits_anything(route: Route) -> bool:
    """Return True for `/repos/{repo:path}` and the like: a mistyped path fits it, too."""
    return len(_named_parts(route.path)) == 1 and route.path.count("/") == _API.count("/") + 1


def _fixed_end(route: Route) -> str:
    """Return the last part of a route's path; `_ANY` for a parameter."""
    end: str = route.path.rpartition("/")[2]
    return _ANY if end.startswith("{") else end
