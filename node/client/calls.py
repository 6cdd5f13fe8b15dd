"""Calls by the table of endpoints: an entry and its arguments make a request, whose answer has the entry's type."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar
from urllib.parse import quote

from node.contract.endpoint import Endpoint

A = TypeVar("A")


class Call(Protocol):
    """Makes a request and gives its answer. `arguments`: path, query and body, by name. Raises ServiceError."""

    def __call__(self, endpoint: Endpoint[A], /, **arguments: object) -> A:
        """Make it."""
        ...


@dataclass(frozen=True, slots=True)
class CallParts:
    """What a request is made of: its path below `/api/v1`, quoted, its query, and its JSON body or None."""

    path: str
    query: dict[str, int | str]
    body: dict[str, object] | None


def call_parts(endpoint: Endpoint[Any], arguments: Mapping[str, object]) -> CallParts:
    """The request of an endpoint with these arguments. Those of the query that are None are left out.

    Raises TypeError for an argument that the endpoint does not take, and KeyError for a part of the path that is missing.
    """
    rest = dict(arguments)
    path = endpoint.fill_path(
        {one.name: path_part(str(rest.pop(one.name))) for one in endpoint.path_parameters}
    )
    query: dict[str, int | str] = {}
    for parameter in endpoint.query:
        value = rest.pop(parameter.name, None)
        if isinstance(value, int):  # a bool among them
            query[parameter.name] = int(value)
        elif value is not None:
            query[parameter.name] = str(value)
    body = {name: rest.pop(name) for name in endpoint.body_fields if name in rest}
    if rest:
        raise TypeError(f"{endpoint.name} does not take {', '.join(rest)}")
    return CallParts(path, query, None if endpoint.request is None else body)


def path_part(text: str) -> str:
    """One segment of a path. A text of dots alone is written out: it would mean the segment above."""
    quoted = quote(text, safe="")
    return quoted.replace(".", "%2E") if text in (".", "..") else quoted
