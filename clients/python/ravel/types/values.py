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


class ErrorDetail(TypedDict):
    """Code, message and advice of an error."""

    code: str
    message: str
    next: str


class SyncProgress(TypedDict):
    """Progress of a transfer of commits, as far as this node knows."""

    direction: str
    """`receiving`: from a peer to this node. `sending`: to it."""
    done: int
    """`receiving`: commits that are here. `sending`: of those, the ones that the peer has confirmed or had before.
    After a cut it goes on from there.
    """
    total: int | None
    """`sending`: commits that are here. `receiving`: those, and what the peer states to have beyond them. It is at
    least that much, and grows while others write. Null: the peer states more than is believed.
    """
    rate: int | None
    """Commits in a second, of the last seconds, rounded up. 0: none comes any more. Null: not known yet."""
    seconds_left: int | None
    """If it goes on at that rate. Null: nothing tells."""
