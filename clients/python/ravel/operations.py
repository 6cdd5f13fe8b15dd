"""Operations of the API, and the request that their arguments make."""

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, reduce
from importlib import import_module
from operator import or_
from types import UnionType
from typing import (
    Any,
    Final,
    Generic,
    Literal,
    NotRequired,
    TypedDict,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)
from urllib.parse import quote

from ravel.errors import RavelError, decode

A = TypeVar("A")

PREFIX: Final = "/api/v1"
REPO_HEADER: Final = "Ravel-Repo"
"""Of a request: the id of the repo whose branches are meant first where a branch is given by its name alone."""


@dataclass(frozen=True, slots=True)
class Operation(Generic[A]):
    """One operation: an endpoint as the client needs it.

    - `answer`: module and name of the answer's type in `ravel.types`; empty for any JSON object.
    - `defaults`: what the node takes for an argument that is left out. Such arguments are not sent.
    - `in_query`: arguments that the path does not name stand in the query, as those of a GET do, and not in a JSON body.
    - `takes_bytes`: the body is content, streamed.
    - `seconds_max`: how long an answer may take.
    """

    method: str
    path: str
    answer: str = ""
    defaults: Mapping[str, object] = field(default_factory=dict)
    in_query: bool = False
    takes_bytes: bool = False
    seconds_max: float = 60.0

    def read(self, content: bytes) -> A:
        """Return the answer. Raises RavelError `incompatible`."""
        answer: A = decode(content, _find_type(self.answer))
        return answer


@dataclass(frozen=True, slots=True)
class Request:
    """A request: its path below the daemon's address, its query and headers, and its JSON body as bytes.

    `key` is the request's idempotency key; empty where it has none. `has_line_keys`: each line of its body has one.
    """

    method: str
    path: str
    query: Mapping[str, int | str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    seconds_max: float = 60.0
    key: str = ""
    has_line_keys: bool = False


def request_of(operation: Operation[Any], arguments: Mapping[str, object], key: str = "") -> Request:
    """Return the request of an operation with these arguments. What is as it is by default is left out.

    Raises RavelError `bad_request` for what JSON or UTF-8 cannot say.
    """
    path, others = operation.path, {}
    for name, value in arguments.items():
        if f"{{{name}}}" in operation.path:
            path = path.replace(f"{{{name}}}", path_part(str(value)))
        else:
            others[name] = value
    given = {
        name: value
        for name, value in others.items()
        if name not in operation.defaults or value != operation.defaults[name]
    }
    query: dict[str, int | str] = {}
    body = None
    if operation.method == "GET" or operation.takes_bytes or operation.in_query:
        query = {name: _query_value(value) for name, value in given.items() if value is not None}
    elif others:
        body = encode(given)
    return Request(operation.method, PREFIX + path, query, {}, body, operation.seconds_max, key)


def encode(body: object) -> bytes:
    """Return a body as JSON, with bytes in base64. Raises RavelError `bad_request`."""
    try:
        text = json.dumps(
            body, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_encode_other
        )
        return text.encode()
    except UnicodeEncodeError:
        raise _not_text() from None
    except (TypeError, ValueError, RecursionError) as error:
        raise RavelError(
            "bad_request",
            f"the request cannot be sent as JSON: {error}",
            "send texts, finite numbers or null",
        ) from None


def path_part(text: str) -> str:
    """One segment of a path. A text of dots alone is written out: it would mean the segment above.

    Raises RavelError `bad_request` for what is not UTF-8.
    """
    try:
        quoted = quote(text, safe="")
    except UnicodeEncodeError:
        raise _not_text() from None
    return quoted.replace(".", "%2E") if text in (".", "..") else quoted


def raw_path(path: str) -> str:
    """Return a path below `/api/v1` from a text. Raises RavelError `bad_request` if it cannot be sent."""
    if not path.startswith("/") or not path.isascii() or not path.isprintable() or " " in path:
        raise RavelError("bad_request", f"{path!r} is no path", "it begins with /, and is quoted as in a URL")
    return path if path.startswith(f"{PREFIX}/") else PREFIX + path


def _not_text() -> RavelError:
    return RavelError("bad_request", "an argument is not UTF-8 text", "give it in UTF-8")


def _query_value(value: object) -> int | str:
    if isinstance(value, int):  # a bool among them
        return int(value)
    text = str(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _not_text() from None
    return text


def _encode_other(value: object) -> object:
    if isinstance(value, bytes | bytearray):
        return b64encode(value).decode()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"{type(value).__name__} is not a JSON value")


@cache
def _find_type(name: str) -> Any:  # noqa: ANN401  # types of answers have no type of their own
    """Return a type of answers, whose module is imported when it is first needed."""
    if not name:
        return dict[str, Any]
    module, _, kind = name.partition(".")
    return _without_bounds(getattr(import_module(f"ravel.types.{module}"), kind))


@cache
def _without_bounds(kind: Any) -> Any:  # noqa: ANN401  # a type has no common type, for `Annotated` is no class
    """Return a type that takes any text, number and list: a newer node may allow more than this client's types say."""
    origin, inner = get_origin(kind), get_args(kind)
    if is_typeddict(kind):
        made: Any = TypedDict  # whose fields mypy wants written out
        fields = {name: _without_bounds(hint) for name, hint in get_type_hints(kind).items()}
        optional = {
            name: NotRequired[hint] for name, hint in fields.items() if name in kind.__optional_keys__
        }
        return made(kind.__name__, fields | optional)
    if origin is Literal:
        return type(inner[0])
    if origin is UnionType or origin is Union:
        return reduce(or_, map(_without_bounds, inner))
    return origin[tuple(map(_without_bounds, inner))] if origin in (list, dict) else kind
