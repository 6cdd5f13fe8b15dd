"""Handlers of requests for endpoints that one method answers."""

import inspect
from collections.abc import Awaitable, Callable, Iterable
from functools import partial, reduce
from operator import or_
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from starlette.requests import Request
from starlette.responses import Response

from node.api.access import Access, keep_readable
from node.api.answers import Answer
from node.api.callers import caller_of
from node.api.repeats import Repeats, fingerprint_of, refuse_key
from node.api.requests import Handler, encode_in_pieces, parse_json, read_content, read_query
from node.api.revoking import Revoking
from node.contract.table import AnyEndpoint


class WrongArguments(Exception):
    """A method whose parameters differ from its endpoint's arguments: a defect of Ravel."""


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
    """Return the handler behind a check that the caller may call the endpoint for what the path names."""

    async def handle(request: Request) -> Response:
        await access.admit(endpoint, caller_of(request), request.path_params)
        if endpoint.takes_bytes:
            refuse_key(request)
        return await handler(request)

    return handle


def check_arguments(answers: Iterable[Answer]) -> None:
    """Raise WrongArguments for the first method whose parameters are not its endpoint's arguments.

    The type checker cannot see this, since the arguments come from a request.
    """
    for one in answers:
        if faults := _find_faults(one):
            raise WrongArguments(f"{one.endpoint.name}: {'; '.join(faults)}")


def _find_faults(answer: Answer) -> list[str]:
    given, wanted = argument_types(answer.endpoint), inspect.signature(answer.method).parameters
    faults = [f"its method does not take {name!r}" for name in given if name not in wanted]
    faults += [
        f"its method also needs {name!r}"
        for name, parameter in wanted.items()
        if name not in given and parameter.default is parameter.empty
    ]
    return faults + [
        f"{name!r} is {given[name]}, and the method takes {parameter.annotation}"
        for name, parameter in wanted.items()
        if name in given and not accepts(parameter.annotation, given[name])
    ]


def argument_types(endpoint: AnyEndpoint) -> dict[str, Any]:
    """Return name and type of each argument that a request makes: path, then query, then body."""
    found: dict[str, Any] = {one.name: str for one in endpoint.path_parameters}
    for one in endpoint.query:
        found[one.name] = one.type | None if one.default is None else one.type
    for name, field in endpoint.body_fields.items():
        found[name] = _bare(field.type)
    return found


def accepts(wanted: Any, given: Any) -> bool:  # noqa: ANN401  # annotations have no type of their own
    """Return True if a parameter takes values of a type: its own, or a concrete type of the same items."""
    if wanted == given:
        return True
    abstract, concrete = get_origin(wanted), get_origin(given)
    return (
        isinstance(abstract, type)
        and isinstance(concrete, type)
        and issubclass(concrete, abstract)
        and get_args(wanted) == get_args(given)
    )


def _bare(kind: Any) -> Any:  # noqa: ANN401  # annotations have no type of their own
    """Return a type without its annotated bounds."""
    if get_origin(kind) is Annotated:
        return _bare(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return reduce(or_, map(_bare, get_args(kind)))
    if get_args(kind):
        return get_origin(kind)[tuple(map(_bare, get_args(kind)))]
    return kind
