"""Types of answers: people. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TypedDict


class OwnName(TypedDict):
    """Name that this user states."""

    user: str
    name: str | None
    """Null: nothing."""
    color: int | None
    """The number of a color. Null: none was chosen."""
    repos: list[OwnRepo]


class PetnameList(TypedDict):
    """All petnames."""

    petnames: list[Petname]
    """Of users."""
    peers: list[Petname]
    """Of nodes."""


class Petname(TypedDict):
    """A petname: the name that this user gives to another user or a node."""

    user: str
    """The user, or the node."""
    name: str
    """Empty: nothing any more."""


class OwnRepo(TypedDict):
    """State of a repo."""

    repo: str
    name: str
    state: str
    """`stated`: the repo says what this user calls itself. `due`: it will, within a minute or when the node can
    write there. `not_permitted`: this user may not write there.
    """
