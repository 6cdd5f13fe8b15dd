"""Handlers of requests for endpoints that one method answers."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from node.api.access import Access, keep_readable
from node.api.answers import Answer
from node.api.callers import caller_of
from node.api.repeats import Repeats, fingerprint_of, refuse_key
from node.api.requests import Handler, encode_in_pieces, parse_json, read_content, read_query
from node.api.revoking import Revoking
from node.contract.table import AnyEndpoint
from node.ingest.people import knows_other_repos


def bind(answer: Answer, access: Access, repeats: Repeats, revoking: Revoking) -> Handler:
    """Return a handler that calls a method with path, query and body by name, and answers with JSON.

    `admitted` has admitted the caller to what the path names. `repeats` does a write with a repeated key once.
    """
    endpoint, method = answer.endpoint, answer.method
    is_list = any(scope.target in ("repos", "branches") for scope in endpoint.scopes)

    async def handle(request: Request) -> Response:
        caller = caller_of(request)
        arguments: dict[str, Any] = {**request.path_params, **read_query(request, endpoint.query)}
        content = b""
        if endpoint.request is not None:
            content = await read_content(request)
            body = await parse_json(content, endpoint.request, access.run_blocking)
            arguments |= {name: getattr(body, field.name) for name, field in endpoint.body_fields.items()}
            await access.admit(endpoint, caller, arguments, of_body=True)
        if endpoint.takes_key:
            find_fingerprint = partial(fingerprint_of, endpoint, request, content)
            act: Callable[[], Awaitable[Any]] = partial(method, **arguments)
            if endpoint.makes is not None:
                act = partial(revoking.make, endpoint.makes, caller, arguments, act)
            return await repeats.answer(caller, request, find_fingerprint, act)
        found = await method(**arguments)
        encoded = await encode_in_pieces(keep_readable(caller, found) if is_list else found)
        return Response(encoded, media_type="application/json")

    return handle


def admitted(endpoint: AnyEndpoint, handler: Handler, access: Access) -> Handler:
    """Return the handler behind a check that the caller may call the endpoint for what the path names.

    `state.branch` of the request keeps a branch's name as it was given: another branch may have it later. A caller for some
    repos is shown no names of people that they state in others.
    """

    async def handle(request: Request) -> Response:
        request.state.branch = request.path_params.get("branch", "")
        caller = caller_of(request)
        knows_other_repos.set(not caller.is_limited)  # for this request: it is set anew for each
        await access.admit(endpoint, caller, request.path_params)
        if endpoint.takes_bytes:
            refuse_key(request)
        return await handler(request)

    return handle
