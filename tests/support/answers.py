"""Checks what the API answers against the table: each answer by the type of its endpoint, each error by its codes."""

import http.client
import json
import re
from typing import Any, Final
from urllib.parse import unquote

import httpx
import msgspec
from starlette.routing import compile_path

from node.api.api import route_path
from node.contract.table import ENDPOINTS, ROUTED, AnyEndpoint
from ravel.exchange import Answer
from ravel.transport import HttpClient

_PATTERNS: Final[tuple[tuple[re.Pattern[str], AnyEndpoint], ...]] = tuple(
    (compile_path(route_path(endpoint))[0], endpoint) for endpoint in ROUTED
)
_EVENTS: Final = {event.name: event.data for endpoint in ENDPOINTS for event in endpoint.events}


def find_endpoint(method: str, path: str) -> AnyEndpoint | None:
    """The endpoint that serves a request, if any does. `path`: with `/api/v1`, unquoted."""
    for pattern, endpoint in _PATTERNS:
        if endpoint.method == method and pattern.match(path):
            return endpoint
    return None


def check_value(value: object, kind: Any) -> None:  # noqa: ANN401  # a TypedDict class has no type
    """Fail where a value from JSON is not of a type, or has a key that the type does not name."""
    known = msgspec.convert(value, kind, strict=True)  # leaves out keys that are not known
    assert msgspec.to_builtins(known) == value, f"a key of {value} is not in {kind}"


def check_event(name: str, data: object) -> None:
    """The same of an event that the table names."""
    if name in _EVENTS:
        check_value(data, _EVENTS[name])


async def check_answer(response: httpx.Response) -> None:
    """Fail where an answer is not what the table promises. For `event_hooks` of an asynchronous httpx client."""
    if (endpoint := _promised(response)) is not None:
        await response.aread()
        _check(endpoint, response)


class CheckedHttpClient(HttpClient):
    """The product's client, whose whole answers are all checked."""

    def request(
        self,
        method: str,
        path: str,
        **options: Any,  # noqa: ANN401  # as HttpClient has them
    ) -> Answer:
        """As of HttpClient."""
        answer = super().request(method, path, **options)
        endpoint = find_endpoint(method, unquote(path))
        if endpoint is not None and endpoint.answer is not None and answer.content[:1] == b"{":
            is_success = answer.status < http.client.BAD_REQUEST
            has_lines = is_success and endpoint.line is not None
            for part in answer.content.splitlines() if has_lines else [answer.content]:
                _check_json(endpoint, json.loads(part), is_success=is_success)
        return answer


def _promised(response: httpx.Response) -> AnyEndpoint | None:
    """The endpoint that answered, where the answer is JSON that it promises."""
    is_json = response.headers.get("content-type", "").startswith("application/json")
    return find_endpoint(response.request.method, response.url.path) if is_json else None


def _check(endpoint: AnyEndpoint, response: httpx.Response) -> None:
    _check_json(endpoint, response.json(), is_success=response.is_success)


def _check_json(endpoint: AnyEndpoint, answer: Any, *, is_success: bool) -> None:  # noqa: ANN401  # any JSON
    if is_success:
        check_value(answer, endpoint.answer)
    else:
        code = answer["error"]["code"]
        assert code in endpoint.error_codes, f"{endpoint.name} does not list {code}"


CHECKED: Final = {"response": [check_answer]}
"""The `event_hooks` of a client whose answers are all checked."""
