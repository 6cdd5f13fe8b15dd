"""Routes: each request reaches the handler of its own endpoint, and few patterns are tried for it."""

import re
from collections.abc import Mapping
from typing import cast
from urllib.parse import quote, unquote

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Message

from node.api.api import route_path
from node.api.requests import Handler
from node.api.routing import Routes
from node.contract.endpoint import PREFIX
from node.contract.table import ROUTED, AnyEndpoint

_OTHERWISE = PlainTextResponse("otherwise", status_code=404)


class _Counted:
    """A route's pattern that counts how often paths were compared with any."""

    compared = 0

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._pattern = pattern

    def match(self, path: str) -> re.Match[str] | None:
        _Counted.compared += 1
        return self._pattern.match(path)


def _say(text: str) -> Handler:
    async def handler(_request: Request) -> Response:
        return PlainTextResponse(text)

    return handler


def _route(endpoint: AnyEndpoint) -> Route:
    route = Route(route_path(endpoint), _say(endpoint.name), methods=[endpoint.method])
    route.path_regex = cast("re.Pattern[str]", _Counted(route.path_regex))
    return route


def _refuse_method(allowed: list[str]) -> Response:
    return PlainTextResponse(", ".join(allowed), status_code=405)


async def _ask(routes: Routes, method: str, path: str) -> str:
    said: list[Message] = []

    async def receive() -> Message:
        raise AssertionError("nothing is read")

    async def send(message: Message) -> None:
        said.append(message)

    scope = {
        "type": "http",
        "method": method,
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [],
    }
    await routes(scope, receive, send)
    body: bytes = said[-1]["body"]
    return body.decode()


async def test_each_endpoint_is_found_among_few() -> None:
    routes = Routes([_route(endpoint) for endpoint in ROUTED], _OTHERWISE, _refuse_method)
    for endpoint in ROUTED:
        path = route_path(endpoint).replace(":path}", "}")
        for parameter in endpoint.path_parameters:
            path = path.replace(f"{{{parameter.name}}}", "x")
        _Counted.compared = 0
        assert await _ask(routes, endpoint.method, path) == endpoint.name
        assert _Counted.compared <= 9, endpoint.name


@pytest.mark.parametrize("name", ["release/1.0", "quorum", "text", "files", "tags/x", "members", "a/tags/b"])
async def test_a_name_may_be_any_word_of_a_path_where_its_slashes_are_escaped(name: str) -> None:
    said: list[Mapping[str, str]] = []

    async def keep(request: Request) -> Response:
        said.append(request.path_params)
        return PlainTextResponse(request.scope["path"])

    routes = Routes(
        [Route(route_path(one), keep, methods=[one.method]) for one in ROUTED], _OTHERWISE, _refuse_method
    )
    for endpoint in ROUTED:
        wanted = {part.name: name if part.takes_slashes else "x" for part in endpoint.path_parameters}
        parts = {part: quote(text, safe="") for part, text in wanted.items()}
        said.clear()
        await _ask(routes, endpoint.method, PREFIX + endpoint.fill_path(parts))
        assert said == [wanted], endpoint.name


async def test_a_slash_that_is_not_escaped_is_the_last_names() -> None:
    routes = Routes([_route(endpoint) for endpoint in ROUTED], _OTHERWISE, _refuse_method)
    for method, name in (("PUT", "set_tag"), ("DELETE", "remove_tag")):
        assert await _ask(routes, method, "/api/v1/repos/demo/tags/release/1.0") == name
    assert await _ask(routes, "DELETE", "/api/v1/repos/a/b") == "forget_repo"
    assert await _ask(routes, "POST", "/api/v1/repos/demo/tags/release/1.0") == "DELETE, PUT"
    assert await _ask(routes, "GET", "/api/v1/repos/demo/mistyped") == "otherwise"


async def test_a_parameter_that_says_the_end_of_another_path_is_one() -> None:
    routes = Routes(
        [
            Route(f"/api/v1/{path}", _say(path))
            for path in ("files/{name}", "files/{name}/history", "files/all/{name}")
        ],
        _OTHERWISE,
        _refuse_method,
    )
    assert await _ask(routes, "GET", "/api/v1/files/history") == "files/{name}"
    assert await _ask(routes, "GET", "/api/v1/files/all/history") == "files/{name}/history"
    assert await _ask(routes, "GET", "/api/v1/files/all/x") == "files/all/{name}"
    assert await _ask(routes, "GET", "/api/v1/files/{") == "files/{name}"


@pytest.mark.parametrize(
    "method, path, said",
    [
        ("GET", "/page.js", "page"),
        ("HEAD", "/page.js", "page"),
        ("POST", "/page.js", "GET, HEAD"),
        ("GET", "/page.js/more", "otherwise"),
        ("GET", "/api/v1", "otherwise"),
        ("GET", "/api/v1/", "otherwise"),
        ("GET", "/api/v1/unknown", "otherwise"),
        ("DELETE", "/api/v1/status", "GET, HEAD"),
        ("GET", "//api/v1/status", "otherwise"),
        ("GET", "/api/v1/status/more", "otherwise"),
    ],
)
async def test_what_no_route_is_for_is_answered_otherwise(method: str, path: str, said: str) -> None:
    known = [Route("/page.js", _say("page")), Route("/api/v1/status", _say("status"))]
    routes = Routes(known, _OTHERWISE, _refuse_method)
    assert await _ask(routes, method, path) == said
