"""Types of answers: branches."""

from typing import Annotated, TypedDict

from msgspec import Meta

from ravel.types.values import ByteCount, Count, Id


class BranchView(TypedDict):
    """A branch."""

    branch: Id
    name: str
    repo: Id
    archived: bool
    main: Annotated[bool, Meta(description="True if the name `main` means this branch.")]
    commits: Count
    heads: Annotated[list[Id], Meta(description="At most 128.")]
    head_count: Count
    pending: Annotated[int, Meta(ge=0, description="Commits that wait for their causes.")]
    unread: Annotated[
        int, Meta(ge=0, description="Commits of a format version that this node does not know.")
    ]
    void: Count
    rejected: Count


class BranchList(TypedDict):
    """The branches of a repo, the main branch first, without its root branch."""

    branches: list[BranchView]


class MergeResult(TypedDict):
    """Commits that a merge wrote."""

    branch: Annotated[Id, Meta(description="The branch that was merged into.")]
    commit: Annotated[Id | None, Meta(description="The merge. Null: there was nothing new.")]
    carried: Annotated[int, Meta(ge=0, description="Count of commits that were written again.")]
    left: Annotated[
        int, Meta(ge=0, description="Count of commits that were too large, or could not be read.")
    ]
    files_left: Annotated[list[str], Meta(description="Names of files that were not carried.")]


class BranchMerge(MergeResult):
    """Commits that a merge of two branches wrote."""

    merged: Annotated[Id, Meta(description="The branch that was taken from.")]


class CompactionResult(TypedDict):
    """Content that a compaction releases."""

    branch: Id
    commits: Annotated[list[Id], Meta(description="The commits that were written.")]
    bodies: Annotated[int, Meta(ge=0, description="How many bodies may be erased on this node.")]
    size: Annotated[ByteCount, Meta(description="Their bytes.")]
    erased: Annotated[int, Meta(ge=0, description="How many bodies are erased already.")]
    dry_run: bool
