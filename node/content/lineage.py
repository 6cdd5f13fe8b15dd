"""The chain of branches from which a branch was forked, with the commits of all of them.

The *state* of a branch is what it continues up to where it forked, and its own commits. It is what merges compare, what
`ravel log --whole` shows, and what documents are reduced from.
"""

from collections.abc import Collection, Sequence
from typing import Final

from sqlalchemy import Connection

from node.ingest.replica import Replica, load_blocks_of, open_stored
from node.ingest.tables import Tables
from node.runtime.errors import ServiceError
from node.timelines.commit_history import load_past
from protocol.formats.body import BranchFork, kind_name
from protocol.ids import CommitId, root_branch
from protocol.limits.users import FORK_DEPTH_MAX, STATE_COUNT_MAX
from storage.commits.commits import TimelineRow, load_first_of_kinds, load_rows, load_timeline
from storage.repos.repos import Branch

_FORK: Final = kind_name(BranchFork)


def lineage(
    replica: Replica | Tables, connection: Connection, branch: Branch
) -> list[tuple[Branch, tuple[CommitId, ...]]]:
    """List the branch (all of it: no commits are named) and what it continues, each up to these commits."""
    found: list[tuple[Branch, tuple[CommitId, ...]]] = [(branch, ())]
    while len(found) <= FORK_DEPTH_MAX:
        root_id = found[-1][0].facts.root_id
        row = load_rows(connection, [root_id]).get(root_id)
        if row is None or row.body_kind != _FORK:  # most continue nothing, and are not opened
            break
        _, body = open_stored(replica, row, load_blocks_of(connection, [row])[row.num])
        if not isinstance(body, BranchFork):
            break
        if body.origin == root_branch(branch.facts.repo_id):  # it has no documents
            break
        by_id = {one.branch_id: one for one in replica.branches_in(branch.repo_num)}
        if body.origin not in by_id:
            raise ServiceError("incomplete", "the branch that this one continues is not here")
        found.append((by_id[body.origin], body.commits))
    return found


def lineage_nums(replica: Replica | Tables, connection: Connection, branch: Branch) -> list[int]:
    """List the numbers of the branch and of the branches that it continues."""
    return [part.num for part, _ in lineage(replica, connection, branch)]


def load_state_nums(replica: Replica, connection: Connection, branch: Branch) -> set[int]:
    """Load the numbers of all branches whose news may change a branch's state: its lineage, and the root branch.

    The root branch says what counts. What is not known here yet is left out: the first commit of a branch is news of that
    branch, and a branch that comes is news of the root branch. Costs O(the forks that led to it).
    """
    nums = replica.tables.with_root(branch)
    try:
        return nums.union(lineage_nums(replica, connection, branch))
    except ServiceError as error:
        if error.code != "incomplete":
            raise
        return nums


def whole_lineage(
    replica: Replica | Tables, connection: Connection, branch: Branch
) -> list[tuple[Branch, tuple[CommitId, ...]]]:
    """List a branch and the branches that it continues, if all of them are held. Raises ServiceError `incomplete`.

    A fork may be here before the commits that it continues: they are no causes of its own. A branch may be known before
    its first commit, which says whether it is a fork.
    """
    parts = lineage(replica, connection, branch)
    if not _are_whole(connection, parts):
        raise ServiceError(
            "incomplete",
            f"what {branch.name!r} continues has not come here whole",
            "merge when this node is in sync",
        )
    return parts


def is_whole(replica: Replica | Tables, connection: Connection, branch: Branch) -> bool:
    """Return True if a branch's first commit and all that it continues is here."""
    return _are_whole(connection, lineage(replica, connection, branch))


def _are_whole(connection: Connection, parts: Sequence[tuple[Branch, tuple[CommitId, ...]]]) -> bool:
    for part, commits in parts:
        needed = (part.facts.root_id, *commits)
        rows = load_rows(connection, needed)
        if any(raw not in rows or rows[raw].branch_num != part.num for raw in needed):
            return False
    return True


def load_state(
    replica: Replica | Tables,
    connection: Connection,
    branch: Branch,
    *,
    kinds: Collection[str] = (),
    document: str | None = None,
) -> list[TimelineRow]:
    """Load the commits of a branch's state, causes first: what it continues, then its own.

    Only of `kinds`, and of these only of the `document`, where given.

    Raises ServiceError `too_large`, `incomplete`.
    """
    rows: list[TimelineRow] = []
    for part, commits in reversed(lineage(replica, connection, branch)):
        if commits:
            found = load_past(connection, part, commits, STATE_COUNT_MAX + 1)
        elif kinds:
            found = load_first_of_kinds(connection, part.num, kinds, STATE_COUNT_MAX + 1, document)
        else:
            found = load_timeline(connection, part.num, 0, STATE_COUNT_MAX + 1)
        rows += [
            row for row in found if (not kinds or row.body_kind in kinds) and document in (None, row.document)
        ]
        if max(len(found), len(rows)) > STATE_COUNT_MAX:
            raise ServiceError(
                "too_large", f"the branch and what it continues have over {STATE_COUNT_MAX} commits"
            )
    return rows
