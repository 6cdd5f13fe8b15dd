"""Features of this version beyond the core of protocol.md: the profiles, by name, as `features1` says them.

A peer that names more is of a newer version, which this node reports to its user. One that says no `features1` is older than
that message, and may know all that was there before it.
"""

from collections.abc import Collection, Iterable
from typing import Final

BODIES: Final = "bodies"
FILES: Final = "files"
PRESENCE: Final = "presence"
PUNCHING: Final = "punching"
RELAY_ACCOUNTS: Final = "relay-accounts"
RELAY_FILES: Final = "relay-files"
WINDOWS: Final = "windows"
FEATURES: Final = (
    BODIES,
    "circuits",
    "compaction",
    "devices",
    "documents",
    FILES,
    "forks",
    "imports",
    "inbox",
    "introductions",
    "json",
    "members-checkpoint",
    "names",
    "posts",
    PRESENCE,
    PUNCHING,
    "quorum",
    "relay",
    RELAY_ACCOUNTS,
    RELAY_FILES,
    "requests",
    "single-branch",
    WINDOWS,
)
"""Sorted. A feature whose messages change in a way that older nodes cannot pass over gets a new name."""


def find_newer(said: Iterable[str]) -> list[str]:
    """Return the features that a peer has and this version lacks, sorted."""
    return sorted(set(said) - set(FEATURES))


def has_feature(said: Collection[str] | None, feature: str) -> bool:
    """Return True if a peer has a feature that this version has; None: it has said none, so it is older than `features1`."""
    return said is None or feature in said
