"""Resolves user input to a repo, branch or other item: by name, full id, or unique id prefix."""

import difflib
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from typing import Final, Literal, TypeVar

from node.runtime.errors import ServiceError
from protocol.codec import DecodeError
from protocol.formats.text import id_text, parse_id_prefix
from protocol.ids import Id
from ravel.characters import composed

PREFIX_SIZE_MIN: Final = 4
"""Characters of an id prefix: 20 bits, so that a prefix is not a guess."""
_CANDIDATES_SHOWN_MAX: Final = 8
NEAR_COUNT_MAX: Final = 200
"""Candidates among which the nearest name to a mistake is looked for: 10 us each."""
_NO_RANGE: Final = (b"\xff", b"")
"""No id is between these."""
_ID_SHOWN_SIZE: Final = 12

preferred_repo: Final = ContextVar("preferred_repo", default="")
"""Id of the repo whose names of branches go first in what is asked now; empty: none."""

What = Literal[
    "repo",
    "branch",
    "peer",
    "member",
    "device",
    "invitation",
    "commit",
    "void commit",
    "epoch",
    "offer",
    "link",
    "request",
    "relayed topic",
    "allowed peer",
    "proposal",
]
"""What can be resolved."""

_LISTS: Final[dict[What, str]] = {
    "repo": "ravel repo list",
    "branch": "ravel branch list REPO",
    "peer": "ravel peer list",
    "member": "ravel member list REPO",
    "device": "ravel device list",
    "invitation": "ravel member invitations REPO",
    "commit": "ravel log BRANCH",
    "void commit": "ravel branch voids BRANCH",
    "epoch": "ravel repo epochs REPO",
    "offer": "ravel inbox list REPO",
    "link": "ravel requests links REPO",
    "request": "ravel requests list",
    "relayed topic": "ravel relay list",
    "allowed peer": "ravel relay list",
    "proposal": "ravel quorum show REPO",
}
"""Kind of name to resolve -> the command that lists such names."""

_NONE_YET: Final = (
    "there is none yet: `ravel repo create NAME` makes one, with a branch called main; or `ravel repo join -`"
)
_FIRST: Final[dict[What, str]] = {"repo": _NONE_YET, "branch": _NONE_YET}
"""What a new user can do where there is nothing to be resolved."""

T = TypeVar("T")


def resolve(
    what: What, text: str, candidates: Iterable[tuple[Id, str, T]], label: Callable[[T], str] | None = None
) -> T:
    """Return the one candidate (id, name, value) that `text` names.

    `label` is what to type for a candidate where its name alone is not enough. Raises ServiceError `not_found`, with the
    nearest name, and `ambiguous`, with the candidates.
    """
    low, high = range_of(text)
    wanted = composed(text)
    known: list[tuple[Id, str, T]] = []
    named: list[tuple[Id, str, T]] = []
    prefixed: list[tuple[Id, str, T]] = []
    for candidate in candidates:
        raw, name, value = candidate
        if raw == low == high:
            return value
        known.append(candidate)
        if composed(name) == wanted:
            named.append(candidate)
        elif low <= raw <= high:
            prefixed.append(candidate)
    found = named or prefixed
    if not found:
        near = known[:NEAR_COUNT_MAX]
        names = {name for _, name, _ in near if name} | {label(value) for _, _, value in near if label}
        raise ServiceError(
            "not_found",
            f"no {what} is called {text!r}{did_you_mean(text, sorted(names))}",
            f"`{_LISTS[what]}` shows what there is" if known or what not in _FIRST else _FIRST[what],
        )
    if len(found) > 1:
        shown = [
            f"{label(value) if label else name} ({id_text(raw)[:_ID_SHOWN_SIZE]})".lstrip()
            for raw, name, value in found[:_CANDIDATES_SHOWN_MAX]
        ]
        more = f" and {len(found) - len(shown)} more" if len(found) > len(shown) else ""
        advice = "give an id, or more of it"
        if what == "branch":
            advice = "say REPO:NAME or give an id; `ravel use REPO` lets names mean that repo's branches"
        raise ServiceError(
            "ambiguous", f"more than one {what} fits {text!r}: {', '.join(shown)}{more}", advice
        )
    return found[0][2]


def range_of(text: str) -> tuple[bytes, bytes]:
    """Return the least and greatest id that a text of at least PREFIX_SIZE_MIN characters may begin; else an empty range.

    Ids are compared as bytes: to write out each of thousands takes fifty times as long.
    """
    try:
        return parse_id_prefix(text) if len(text) >= PREFIX_SIZE_MIN else _NO_RANGE
    except DecodeError:
        return _NO_RANGE


def did_you_mean(text: str, names: Sequence[str]) -> str:
    """Return the end of a sentence on an unknown name: the nearest known one, if any is near."""
    low = text.casefold()
    begun = [name for name in names if low and name.casefold().startswith(low)]  # a first name, such as Ben
    near = begun or difflib.get_close_matches(text, names, 1)
    return f"; did you mean {near[0]!r}?" if near else ""
