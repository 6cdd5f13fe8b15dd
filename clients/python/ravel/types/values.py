"""Types of answers: values. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TypedDict


class Empty(TypedDict):
    """No fields: the action is done."""


class Capability(TypedDict):
    """A read capability: a secret that does not expire."""

    capability: str
    """The link. Anyone who has it can read what it opens."""
    addresses: list[str]
    """Addresses (`host:port`) that the link names."""
    reach: str
    """From where the link's addresses can be dialed, at the farthest."""


class RootCommit(TypedDict):
    """A commit that was written to a repo's root branch."""

    commit: str
    repo: str
