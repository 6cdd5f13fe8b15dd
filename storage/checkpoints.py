"""Checkpoints: which commits of a branch are, and how many of them each commit has passed.

A commit has *passed* a checkpoint that counts and does not have it in its past; canonical order goes by that number
first. Commits arrive causes first, so what comes after a checkpoint has passed it, and when one comes only those have to
be counted up that it does not merge: few, as it merges the heads.
"""

from collections.abc import Iterable, Sequence
from functools import partial

from sqlalchemy import Connection, insert, select, update

from protocol.body import Checkpoint
from storage.changes import record_changes
from storage.commits import CANONICAL_ORDER, NewCommit, load_places
from storage.database import Database
from storage.id_keys import chunks, id_key
from storage.schema import checkpoints, commits, heads
from verifier.ancestry import find_outside


def keep_checkpoints(
    database: Database,
    connection: Connection,
    branch_num: int,
    nums: Sequence[int],
    new: Sequence[NewCommit],
) -> None:
    """Note the checkpoints among commits of a branch that were just accepted, as these numbers."""
    for num, commit in zip(nums, new, strict=True):
        body = commit.verified.body
        if isinstance(body, Checkpoint):
            connection.execute(
                insert(checkpoints).values(commit_num=num, branch_num=branch_num, proposal=body.proposal)
            )
            passed = _find_passed(connection, branch_num, commit.verified.commit.commit_id)
            # What was accepted later has it counted already.
            _count_up(database, connection, branch_num, [one for one in passed if one < num], 1)


def recount_checkpoints(
    database: Database, connection: Connection, branch_num: int, nums: Sequence[int], *, is_void: bool
) -> None:
    """Count those of these commits of a branch that are checkpoints no more (`is_void`), or again."""
    for part in chunks(nums):
        query = (
            select(commits.c.commit_id)
            .join(checkpoints, checkpoints.c.commit_num == commits.c.num)
            .where(checkpoints.c.commit_num.in_(part))
        )
        for commit_id in list(connection.execute(query).scalars()):
            passed = _find_passed(connection, branch_num, commit_id)
            _count_up(database, connection, branch_num, sorted(passed), -1 if is_void else 1)


def load_checkpoint_ids(connection: Connection, branch_num: int) -> list[bytes]:
    """All checkpoints of a branch, void ones too, in the order of acceptance."""
    query = (
        select(commits.c.commit_id)
        .join(checkpoints, checkpoints.c.commit_num == commits.c.num)
        .where(checkpoints.c.branch_num == branch_num)
        .order_by(commits.c.num)
    )
    return list(connection.execute(query).scalars())


def load_checkpoint_proposals(connection: Connection, branch_nums: Sequence[int]) -> set[bytes]:
    """Proposals of which checkpoints that count were made, in some branches."""
    found: set[bytes] = set()
    for part in chunks(branch_nums):
        query = (
            select(checkpoints.c.proposal)
            .join(commits, commits.c.num == checkpoints.c.commit_num)
            .where(checkpoints.c.branch_num.in_(part), ~commits.c.is_void)
        )
        found.update(connection.execute(query).scalars())
    return found


def _find_passed(connection: Connection, branch_num: int, checkpoint: bytes) -> Iterable[int]:
    """Numbers of the branch's commits that the checkpoint does not have in its past."""
    query = select(heads.c.commit_id).where(heads.c.branch_num == branch_num, ~heads.c.is_acked)
    ends = list(connection.execute(query).scalars())
    outside = find_outside(ends, [checkpoint], partial(load_places, connection))
    for part in chunks([id_key(raw) for raw in outside]):
        rows = connection.execute(
            select(commits.c.num, commits.c.commit_id).where(commits.c.id_key.in_(part))
        )
        yield from (num for num, commit_id in rows.all() if commit_id in outside)


def _count_up(
    database: Database, connection: Connection, branch_num: int, nums: Sequence[int], by: int
) -> None:
    """Let commits have passed `by` checkpoints more: they move. Effects move back first, or forth last, so that none
    stands before its cause on the way."""
    shown: list[tuple[int, int, bytes, int]] = []
    for part in chunks(nums):
        query = select(*CANONICAL_ORDER, commits.c.num).where(commits.c.num.in_(part), ~commits.c.is_void)
        shown += [(passed, rank, raw, num) for passed, rank, raw, num in connection.execute(query)]
        more = commits.c.passed + by
        connection.execute(update(commits).where(commits.c.num.in_(part)).values(passed=more))
    moved = [(num, passed, passed + by) for passed, _, _, num in sorted(shown, reverse=by > 0)]
    record_changes(database, connection, branch_num, moved)
