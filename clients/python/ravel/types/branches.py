"""Types of answers: branches. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TypedDict


class BranchList(TypedDict):
    """The branches of a repo, the main branch first, without its root branch."""

    branches: list[BranchView]


class BranchView(TypedDict):
    """A branch."""

    branch: str
    name: str
    repo: str
    archived: bool
    main: bool
    """True if the name `main` means this branch."""
    commits: int
    heads: list[str]
    """At most 128."""
    head_count: int
    pending: int
    """Commits that wait for their causes."""
    unread: int
    """Commits of a format version that this node does not know."""
    void: int
    rejected: int


class BranchMerge(TypedDict):
    """Commits that a merge of two branches wrote."""

    branch: str
    """The branch that was merged into."""
    commit: str | None
    """The merge. Null: there was nothing new."""
    carried: int
    """Count of commits that were written again."""
    left: int
    """Count of commits that were too large, or could not be read."""
    files_left: list[str]
    """Names of files that were not carried."""
    merged: str
    """The branch that was taken from."""


class CompactionResult(TypedDict):
    """Content that a compaction releases."""

    branch: str
    commits: list[str]
    """The commits that were written."""
    bodies: int
    """How many bodies may be erased on this node."""
    size: int
    """Their bytes."""
    erased: int
    """How many bodies are erased already."""
    dry_run: bool


class MergeResult(TypedDict):
    """Commits that a merge wrote."""

    branch: str
    """The branch that was merged into."""
    commit: str | None
    """The merge. Null: there was nothing new."""
    carried: int
    """Count of commits that were written again."""
    left: int
    """Count of commits that were too large, or could not be read."""
    files_left: list[str]
    """Names of files that were not carried."""
