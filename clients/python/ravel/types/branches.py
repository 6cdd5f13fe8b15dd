"""Types of answers: branches."""

from typing import Annotated, TypedDict

from ravel.types.values import ByteCount, Count, Id, means


class BranchView(TypedDict):
    """A branch."""

    branch: Id
    name: str
    repo: Id
    archived: bool
    main: Annotated[bool, means("True if the name `main` means this branch.")]
    kept: Annotated[
        bool, means("False: its contents are not kept on this node, and come when they are opened.")
    ]
    commits: Count
    latest_at: Annotated[
        int | None, means("Unix seconds of its last commit as timelines by time show it. Null: it has none.")
    ]
    heads: Annotated[list[Id], means("At most 128.")]
    head_count: Count
    pending: Annotated[int, means("Commits that wait for their causes.", ge=0)]
    unread: Annotated[int, means("Commits of a format version that this node does not know.", ge=0)]
    void: Count
    rejected: Count


class BranchList(TypedDict):
    """The branches of a repo, the main branch first, without its root branch."""

    branches: list[BranchView]


class MergeResult(TypedDict):
    """Commits that a merge wrote."""

    branch: Annotated[Id, means("The branch that was merged into.")]
    commit: Annotated[Id | None, means("The merge. Null: there was nothing new.")]
    carried: Annotated[int, means("Count of commits that were written again.", ge=0)]
    left: Annotated[int, means("Count of commits that were too large, or could not be read.", ge=0)]
    files_left: Annotated[list[str], means("Names of files that were not carried.")]


class BranchMerge(MergeResult):
    """Commits that a merge of two branches wrote."""

    merged: Annotated[Id, means("The branch that was taken from.")]


class CompactionResult(TypedDict):
    """Content that a compaction releases."""

    branch: Id
    commits: Annotated[list[Id], means("The commits that were written.")]
    bodies: Annotated[int, means("How many bodies may be erased on this node.", ge=0)]
    size: Annotated[ByteCount, means("Their bytes.")]
    erased: Annotated[int, means("How many bodies are erased already.", ge=0)]
    dry_run: bool
