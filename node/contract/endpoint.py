"""`Endpoint`: a frozen value from which routing, validation, reference pages and client calls follow.

Paths stand below `/api/v1`. A `{name}` in a path is one of `PATH_PARAMETERS`. Query values and body fields reach the
method that answers under their own names, so that an entry needs no code that takes a request apart.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Generic, Literal, TypeVar

from msgspec import structs

from node.contract.access import TokenScope
from node.contract.made import Makes
from node.contract.values import Request

A = TypeVar("A")
Method = Literal["GET", "POST", "PUT", "DELETE"]
Stability = Literal["stable", "may change"]

PREFIX: Final = "/api/v1"
REPO_HEADER: Final = "Ravel-Repo"
"""Of a request: the id of the repo whose branches are meant first where a branch is given by its name alone."""
KEY_HEADER: Final = "Idempotency-Key"
"""Of a request that writes: one that comes again with the same key is done once."""
LINES_TYPE: Final = "application/x-ndjson"
"""Content type of lines of JSON."""
RUN_HEADER: Final = "Ravel-Run"
"""Of every answer: the run of the daemon, another after each start. Of a request with a key: it is for that run alone."""
_NAMED: Final = re.compile(r"\{(\w+)\}")
_ID_OR_PREFIX: Final = "^[a-z2-7]{4,52}$"
_SETTING: Final = r"^[a-z_]+\.[a-z_]+$"
_GENERAL_ERRORS: Final = (
    "unauthorized",
    "token_expired",
    "insufficient_scope",
    "forbidden_host",
    "forbidden_origin",
    "storage_failed",
    "damaged",
    "internal",
)
"""Codes with which any request may be refused."""
KEY_ERRORS: Final = ("key_reused", "answer_lost")
"""Codes of every endpoint that takes an idempotency key."""
_BODY_ERRORS: Final = ("bad_request", "too_large", "interrupted")
WRITE_ERRORS: Final = ("bad_request", "already_exists", "not_permitted", "incomplete", "feed_uncertain")
"""Codes of every endpoint that writes commits."""
LONG_WRITE_SECONDS: Final = 3600.0
"""Seconds for which a client waits while many commits are written. A daemon that ends closes the connection at once; one
that is slow, on a disk that others use, makes progress and is not to be given up."""
LINK_ERRORS: Final = ("bad_config", "too_large")
"""Codes of every endpoint that makes a link."""


@dataclass(frozen=True, slots=True)
class PathParameter:
    """A `{name}` of paths.

    `takes_slashes`: its value may hold `/`, escaped as `%2F` or not. `errors`: codes that a value which fits nothing, or
    more than one, is refused with. `pattern`: the form of the values that can fit; `values`: all that there are.
    """

    name: str
    description: str
    takes_slashes: bool = False
    errors: tuple[str, ...] = ("not_found", "ambiguous")
    pattern: str = ""
    values: tuple[str, ...] = ()


PATH_PARAMETERS: Final = {
    one.name: one
    for one in (
        PathParameter("account", "An account at this relay: its name.", True),
        PathParameter("repo", "A repo: its id, a unique prefix of 4 or more characters, or its name.", True),
        PathParameter("branch", "A branch: its id, a unique prefix, its name, or `REPO:NAME`.", True),
        PathParameter("browser", "A paired browser: its name.", True, errors=("not_found",)),
        PathParameter("commit", "A commit: its id or a unique prefix."),
        PathParameter("device", "A device: the id of its user, a unique prefix, or its name."),
        PathParameter("file", "A file: its name, its id, or a unique prefix.", True),
        PathParameter(
            "invitation", "An invitation: the id of its commit, or a unique prefix.", pattern=_ID_OR_PREFIX
        ),
        PathParameter(
            "kind",
            "A kind of tangle: `branch`, `feed`, `group`, `members`, `epoch` or `thread`.",
            errors=("not_found", "ambiguous", "bad_request"),
            values=("branch", "feed", "group", "members", "epoch", "thread"),
        ),
        PathParameter(
            "lobby",
            "A link by which users ask: the id of its lobby, or a unique prefix.",
            pattern=_ID_OR_PREFIX,
        ),
        PathParameter("name", "The name of a tag.", True),
        PathParameter("comment", "A comment: the whole id of its commit.", pattern=_ID_OR_PREFIX),
        PathParameter("offer", "An offer: the id of its commit, or a unique prefix.", pattern=_ID_OR_PREFIX),
        PathParameter(
            "peer", "A peer: its id; where the node knows it, a unique prefix or its petname is enough."
        ),
        PathParameter(
            "proposal", "A proposal: the id of its commit, or a unique prefix.", pattern=_ID_OR_PREFIX
        ),
        PathParameter(
            "request",
            "A request to join: the id of its commit, a unique prefix, or the name of who asks; one of this user's "
            "own by the id or name of the repo.",
        ),
        PathParameter(
            "setting",
            "A setting: `SECTION.KEY` of the configuration.",
            errors=("bad_request",),
            pattern=_SETTING,
        ),
        PathParameter("token", "A token: its name.", errors=("not_found",)),
        PathParameter("topic", "A relayed topic: its id or a unique prefix.", pattern=_ID_OR_PREFIX),
    )
}
"""All names that paths may use. One name means the same in every path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryParameter:
    """A value of the query.

    `type` is that of the service's argument: `int` within `minimum` to `maximum`, `str`, or `bool`, which is 0 or 1. A
    `default` of None makes the argument optional for the service, too.
    """

    name: str
    type: type[int] | type[str] | type[bool]
    description: str
    default: int | str | None = None
    minimum: int = 0
    maximum: int = 2**53


def limit_parameter(maximum: int, default: int = 100) -> QueryParameter:
    """Return the `limit` parameter of a window: 1 to `maximum`."""
    return QueryParameter(
        name="limit", type=int, description="At most so many.", default=default, minimum=1, maximum=maximum
    )


@dataclass(frozen=True, slots=True)
class HeaderParameter:
    """A header that the endpoint heeds. `pattern`: the form of its value."""

    name: str
    description: str
    pattern: str = ""


@dataclass(frozen=True, slots=True)
class StreamedEvent:
    """An event of a stream: its name, the type of its data (a TypedDict), and when it is sent."""

    name: str
    data: Any  # a TypedDict class: there is no type for these
    description: str


@cache
def _fields_of(request: type[Request]) -> Mapping[str, structs.FieldInfo]:
    return {field.encode_name: field for field in structs.fields(request)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint(Generic[A]):
    """One endpoint.

    - `name`: unique, an order in snake case; the OpenAPI operation id.
    - `path`: below `/api/v1`.
    - `stability`: what is stable loses no field, no error code and no type of a field. What may change, may.
    - `scopes`: what a token must have, all of them.
    - `makes`: what outlives the token with which it was made. The node writes it down with the token.
    - `summary`: one sentence, imperative.
    - `answer`: the type of the JSON answer, a TypedDict; `bytes` where the answer is a file's content.
    - `is_keyless`: a write that takes no idempotency key, since each request shall be done.
    - `takes_bytes`: the body is content of any length, streamed, and not JSON.
    - `entry`: of such a body: it is many contents, each after a line of JSON of this type, which says its `size`.
    - `line`: of such a body: it is lines of JSON of this type, and the answer has a line of `answer` for each.
    - `events`: what is sent instead of the answer to requests that accept `text/event-stream`.
    - `errors`: codes beside those that follow from path, query and body.
    - `seconds_max`: how long an answer may take, in seconds.
    """

    name: str
    method: Method
    path: str
    stability: Stability = "may change"
    scopes: tuple[TokenScope, ...]
    summary: str
    answer: type[A]
    makes: Makes | None = None
    query: tuple[QueryParameter, ...] = ()
    headers: tuple[HeaderParameter, ...] = ()
    request: type[Request] | None = None
    takes_bytes: bool = False
    is_keyless: bool = False
    entry: type[Request] | None = None
    line: type[Request] | None = None
    events: tuple[StreamedEvent, ...] = ()
    errors: tuple[str, ...] = ()
    details: str = ""
    seconds_max: float = 60.0

    @property
    def path_parameters(self) -> tuple[PathParameter, ...]:
        """The parts of the path, in order."""
        return tuple(PATH_PARAMETERS[name] for name in _NAMED.findall(self.path))

    @property
    def body_fields(self) -> Mapping[str, structs.FieldInfo]:
        """Fields of the JSON body, by their name in JSON; none if there is no such body."""
        return {} if self.request is None else _fields_of(self.request)

    @property
    def is_download(self) -> bool:
        """Return True if the answer is content and not JSON."""
        return self.answer is bytes

    @property
    def takes_key(self) -> bool:
        """Return True if a request may carry an idempotency key: it writes, and its body is kept meanwhile."""
        return self.method != "GET" and not self.takes_bytes and not self.is_keyless

    @property
    def error_codes(self) -> tuple[str, ...]:
        """All codes with which a request may be refused, each once."""
        found = [*self.errors]
        found += [code for part in self.path_parameters for code in part.errors]
        found += ["bad_request"] if self.query else []
        found += ("bad_request", *KEY_ERRORS) if self.takes_key else ()
        found += _BODY_ERRORS if self.request is not None or self.takes_bytes else ()
        return tuple(dict.fromkeys([*found, *_GENERAL_ERRORS]))

    def fill_path(self, parts: Mapping[str, str]) -> str:
        """Return the path with these parts in the places of their names, which must be quoted. Raises KeyError."""
        return _NAMED.sub(lambda found: parts[found[1]], self.path)
