"""Repos and branches by what people type: a name, a full id, or a unique prefix of one."""

from collections.abc import Iterable
from typing import Final, TypeVar

from node.errors import ServiceError
from protocol.text import id_text

PREFIX_SIZE_MIN: Final = 4
"""Characters of an id prefix: 20 bits, so that a prefix is not a guess."""

T = TypeVar("T")


def resolve(what: str, text: str, candidates: Iterable[tuple[bytes, str, T]]) -> T:
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
            "not_found", f"no {what} is called {text!r}", f"`ravel {what} list` shows names and ids"
        )
    if len(found) > 1:
        raise ServiceError("ambiguous", f"{len(found)} {what}s fit {text!r}", "give more of the id")
    return found[0]
