"""Resolves user input to a repo, branch or other item: by name, full id, or unique id prefix."""

from collections.abc import Iterable
from typing import Final, TypeVar

from node.runtime.errors import ServiceError
from protocol.ids import Id
from protocol.text import id_text

PREFIX_SIZE_MIN: Final = 4
"""Characters of an id prefix: 20 bits, so that a prefix is not a guess."""

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
    "relayed topic": "ravel relay list",
    "allowed peer": "ravel relay list",
    "proposal": "ravel quorum show REPO",
}
"""What is resolved -> the command that lists it."""

T = TypeVar("T")


def resolve(what: str, text: str, candidates: Iterable[tuple[Id, str, T]]) -> T:
    """The one candidate (id, name, value) that `text` names. Raises ServiceError `not_found` or `ambiguous`."""
    named: list[T] = []
    prefixed: list[T] = []
    for raw, name, value in candidates:
        if id_text(raw) == text:
            return value
        if name == text:
            named.append(value)
        elif len(text) >= PREFIX_SIZE_MIN and id_text(raw).startswith(text):
            prefixed.append(value)
    found = named or prefixed
    if not found:
        raise ServiceError(
            "not_found", f"no {what} is called {text!r}", f"`{_LISTS[what]}` shows what there is"
        )
    if len(found) > 1:
        advice = "give an id, or more of it" if what != "branch" else "say REPO:NAME, or give an id"
        raise ServiceError("ambiguous", f"more than one {what} fits {text!r}: {len(found)}", advice)
    return found[0]
