"""Endpoints of the table, bound to the methods of the service that answer them.

An entry names its method by a dotted text, since the table stands below every service. The daemon compares each method's
parameters and answer with its entry: what does not fit stops the node at its start, not at the first request.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterable
from functools import partial, reduce
from operator import attrgetter, or_
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from starlette.requests import Request
from starlette.responses import Response

from node.api.access import Access, keep_readable
from node.api.callers import caller_of
from node.api.repeats import Repeats, fingerprint_of, refuse_key
from node.api.requests import Handler, json_response, parse_json, read_content, read_query
from node.api.service import NodeService
from node.contract.table import AnyEndpoint

Method = Callable[..., Awaitable[Any]]


class WrongBinding(Exception):
    """An entry of the table and the method that it names do not fit: a defect, which says how."""


def bind(endpoint: AnyEndpoint, service: NodeService, access: Access, repeats: Repeats) -> Handler:
    """A handler that reads path, query and body, calls the method with all of them by name, and answers with JSON.

    `admitted` has admitted the caller to what the path names. A write that comes again by its key is done once: `repeats`.
    Raises WrongBinding where there is no such method.
    """
    method = find_method(endpoint, service)
    is_list = any(need.about in ("repos", "branches") for need in endpoint.needs)

    async def handle(request: Request) -> Response:
        caller = caller_of(request)
        arguments: dict[str, Any] = {**request.path_params, **read_query(request, endpoint.query)}
        content = b""
        if endpoint.request is not None:
            content = await read_content(request)
            body = await parse_json(content, endpoint.request, service.run_blocking)
            arguments |= {name: getattr(body, field.name) for name, field in endpoint.body_fields.items()}
            await access.admit(endpoint, caller, arguments, of_body=True)
        if endpoint.takes_key:
            find_fingerprint = partial(fingerprint_of, endpoint, request, content)
            act: Callable[[], Awaitable[Any]] = partial(method, **arguments)
            if endpoint.makes is not None:
                act = partial(service.revoking.make, endpoint.makes, caller, arguments, act)
            return await repeats.answer(caller, request, find_fingerprint, act)
        answer = await method(**arguments)
        return json_response(keep_readable(caller, answer) if is_list else answer)

    return handle


def admitted(endpoint: AnyEndpoint, handler: Handler, access: Access) -> Handler:
    """The handler, for callers who may call the endpoint for what the path names."""

    async def handle(request: Request) -> Response:
        await access.admit(endpoint, caller_of(request), request.path_params)
        if endpoint.takes_bytes:
            refuse_key(request)
        return await handler(request)

    return handle


def check_bindings(endpoints: Iterable[AnyEndpoint], service: NodeService) -> None:
    """Raise WrongBinding for the first of these entries whose method takes or answers anything else."""
    for endpoint in endpoints:
        faults = find_faults(endpoint, find_method(endpoint, service)) if endpoint.service else []
        if faults:
            raise WrongBinding(f"{endpoint.name} and NodeService.{endpoint.service}: {'; '.join(faults)}")


def find_method(endpoint: AnyEndpoint, service: NodeService) -> Method:
    """The method that an entry names, or its function with the part of the service that it names. Raises WrongBinding."""
    try:
        named: Any = attrgetter(endpoint.service)(service)
    except AttributeError as error:
        raise WrongBinding(f"{endpoint.name} names NodeService.{endpoint.service}: {error}") from None
    method: Method = named if endpoint.function is None else partial(endpoint.function, named)
    return method


def find_faults(endpoint: AnyEndpoint, method: Method) -> list[str]:
    """What of a method does not fit an entry: names and types of parameters, or the type of the answer.

    Of a function also the part of the service that it gets.
    """
    signature = inspect.signature(method)
    given = argument_types(endpoint)
    wanted = signature.parameters
    faults = [f"it does not take {name!r}" for name in given if name not in wanted]
    faults += [
        f"it also needs {name!r}"
        for name, parameter in wanted.items()
        if name not in given and parameter.default is parameter.empty
    ]
    faults += [
        f"{name!r} is {given[name]}, and the method takes {parameter.annotation}"
        for name, parameter in wanted.items()
        if name in given and not accepts(parameter.annotation, given[name])
    ]
    if signature.return_annotation != endpoint.answer:
        faults.append(f"it answers {signature.return_annotation}, and not {endpoint.answer}")
    if isinstance(method, partial):
        part = next(iter(inspect.signature(method.func).parameters.values())).annotation
        faults += [] if isinstance(method.args[0], part) else [f"it is not {part}"]
    return faults


def argument_types(endpoint: AnyEndpoint) -> dict[str, Any]:
    """Name and type of each argument that a request of an endpoint makes: path, then query, then body."""
    found: dict[str, Any] = {one.name: str for one in endpoint.path_parameters}
    for one in endpoint.query:
        found[one.name] = one.type | None if one.default is None else one.type
    for name, field in endpoint.body_fields.items():
        found[name] = _bare(field.type)
    return found


def accepts(wanted: Any, given: Any) -> bool:  # noqa: ANN401  # annotations have no type of their own
    """Whether a parameter takes values of a type: the same, or an abstract one of the same items."""
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
    """A type without the bounds that are annotated in it."""
    if get_origin(kind) is Annotated:
        return _bare(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return reduce(or_, map(_bare, get_args(kind)))
    if get_args(kind):
        return get_origin(kind)[tuple(map(_bare, get_args(kind)))]
    return kind
