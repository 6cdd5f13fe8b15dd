"""Types of answers: bundles. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TypedDict


class BundleReading(TypedDict):
    """Result of reading a bundle. What it took is durable, and announced to peers."""

    commits: int
    """Commits that the bundle carries."""
    taken: int
    """Commits that came to be here."""
    already: int
    """Commits that were here."""
    refused: int
    """Publications that break a rule. The log says which."""
    waiting: int
    """Commits of these repos that wait for causes or keys now. Peers may have brought some of them."""
    unopened: int
    """Publications of epochs, or repos, whose keys this node does not hold."""
    missing: int
    """Commits from before `since` that it stands on, of those it names, and are not here."""
    left_out: int
    """Commits that were damaged where the bundle was written."""
    since: int | None
    """From when on it carries. Null: from the beginning."""
