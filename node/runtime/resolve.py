"""Resolves user input to a repo, branch or other item: by name, full id, or unique id prefix."""

import difflib
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from typing import Final, TypeVar

from node.runtime.errors import ServiceError
from protocol.ids import Id
from protocol.text import id_text

PREFIX_SIZE_MIN: Final = 4
"""Characters of an id prefix: 20 bits, so that a prefix is not a guess."""
_CANDIDATES_SHOWN_MAX: Final = 8
_ID_SHOWN_SIZE: Final = 12

preferred_repo: Final = ContextVar("preferred_repo", default="")
"""Id of the repo whose names of branches go first in what is asked now; empty: none."""

_LISTS: Final = {
    "repo": "ravel repo list",
    "branch": "ravel branch list REPO",
    "peer": "ravel peer list",
    "member": "ravel member list REPO",
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
"""What is resolved -> the command that lists it."""

_NONE_YET: Final = (
    "there is none yet: `ravel repo create NAME` makes one, with a branch called main; or `ravel repo join -`"
)
_FIRST: Final = {"repo": _NONE_YET, "branch": _NONE_YET}
"""What a new user can do where there is nothing to be resolved."""

T = TypeVar("T")


def resolve(
    what: str, text: str, candidates: Iterable[tuple[Id, str, T]], label: Callable[[T], str] | None = None
) -> T:
    """The one candidate (id, name, value) that `text` names.

    `label` is what to type for a candidate where its name alone is not enough. Raises ServiceError `not_found`, with the
    nearest name, and `ambiguous`, with the candidates.
    """
    known: list[tuple[Id, str, T]] = []
    named: list[tuple[Id, str, T]] = []
    prefixed: list[tuple[Id, str, T]] = []
    for candidate in candidates:
        raw, name, value = candidate
        if id_text(raw) == text:
            return value
        known.append(candidate)
        if name == text:
            named.append(candidate)
        elif len(text) >= PREFIX_SIZE_MIN and id_text(raw).startswith(text):
            prefixed.append(candidate)
    found = named or prefixed
    if not found:
        names = {name for _, name, _ in known if name} | {label(value) for _, _, value in known if label}
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


def did_you_mean(text: str, names: Sequence[str]) -> str:
    """The end of a sentence on a name that is none: the nearest one, if any is near."""
    near = difflib.get_close_matches(text, names, 1)
    return f"; did you mean {near[0]!r}?" if near else ""
