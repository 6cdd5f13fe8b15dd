"""Snapshots of memberships in the store: a start takes them up, and judges only what has come since.

A snapshot says nothing but what follows from the commits that it names, in the order in which it names them. So it is of use
where all of these are here, in whatever order they lie, and another store's would say nothing else. What is altered, cut, of
another version or of commits that are gone is left aside, and what it said is judged again.
"""

from collections.abc import Iterable
from typing import Final

import structlog
from sqlalchemy import Connection, select

from protocol.ids import CommitId, RepoId
from storage.commits.commits import TimelineRow, iterate_arrivals, load_rows
from storage.repos.membership_parts import add_part, drop_parts, load_parts
from storage.schema.schema import commits
from verifier.membership import Membership
from verifier.membership_snapshots import OtherSnapshot, encode_parts, restore

log = structlog.get_logger()

SAVED_FROM: Final = 256
"""Operations that have come since: so many are judged again after a crash, some 0.1 s."""
SAVED_AT_STOP_FROM: Final = 16
"""Likewise at a stop: fewer are judged sooner than they are written."""


def unsaved(membership: Membership) -> int:
    """Count the operations that the snapshot does not have."""
    return len(membership.operations) - membership.saved_count


def save_membership(connection: Connection, root_num: int, repo_id: RepoId, membership: Membership) -> None:
    """Append to a snapshot what it does not have, in a write transaction. Costs O(that)."""
    if not membership.saved_count:
        drop_parts(connection, root_num)
    for first, content in encode_parts(membership, repo_id, membership.saved_count):
        add_part(connection, root_num, first, content)


def restore_membership(
    connection: Connection, root_num: int, repo_id: RepoId
) -> tuple[Membership, Iterable[TimelineRow]]:
    """Load what a snapshot has of a membership, and the commits that are to be judged after that, in order of arrival."""
    membership = Membership(repo_id)
    try:
        for part in load_parts(connection, root_num):
            restore(membership, repo_id, part)
    except OtherSnapshot as error:
        log.info("a membership is judged again", repo=repo_id.hex(), reason=str(error))
        membership = Membership(repo_id)
    if not len(membership.operations):
        return membership, iterate_arrivals(connection, [root_num])
    operations, fresh = membership.operations, list[CommitId]()
    is_here = bytearray(len(operations))  # a set of a million ids took 100 MiB
    query = select(commits.c.commit_id).where(commits.c.branch_num == root_num)
    for commit_id in connection.execute(query).scalars():
        known = operations.find(commit_id)
        if known is None:
            fresh.append(commit_id)
        else:
            is_here[known.num] = True
    if not all(is_here):
        gone = is_here.count(False)
        log.warning("commits of a membership's snapshot are gone", repo=repo_id.hex(), count=gone)
        return Membership(repo_id), iterate_arrivals(connection, [root_num])
    membership.saved_count = len(operations)
    return membership, sorted(load_rows(connection, fresh).values(), key=lambda row: row.num)
