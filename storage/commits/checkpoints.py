"""Tracks checkpoints of a branch, and how many of them each commit has passed (first part of the sort key).

Checkpoints that merge the same heads count once: anyone who may write can make a second one of what was approved. A commit
has *passed* them when one of them counts, it is none of them, and it is not among the heads or in their past. Canonical
order goes by the number of those passed first. Commits arrive causes first, so what comes after a checkpoint has passed
it, and when the first comes only those have to be counted up that it does not merge: few, as it merges the heads.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Final

from sqlalchemy import Connection, bindparam, insert, select, update

from protocol.ids import CommitId
from storage.commits.commits import NewCommit, load_places
from storage.commits.document_rows import move_operations
from storage.commits.edits import record_changes
from storage.commits.kept_texts import drop_kept_texts
from storage.commits.position_index import CANONICAL_ORDER, Gain, count_changes
from storage.engine.bulk import select_rows
from storage.engine.database import Database
from storage.engine.id_keys import PackedIds, chunks, id_key, pack_ids, unpack_ids
from storage.repos.repos import Branch
from storage.schema.schema import checkpoints, commits, heads
from verifier.ancestry import GraphNode, find_outside
from verifier.verify import find_checkpoint

_PLACE: Final = select(commits.c.commit_id, commits.c.rank, commits.c.acks).where(
    commits.c.id_key == bindparam("key")
)


def keep_checkpoints(
    database: Database,
    connection: Connection,
    branch: Branch,
    nums: Sequence[int],
    new: Sequence[NewCommit],
) -> set[CommitId]:
    """Store the checkpoints among commits of a branch that were just accepted, and return their ids.

    Costs O(commits they count up).
    """
    made = set[CommitId]()
    for num, commit in zip(nums, new, strict=True):
        body = find_checkpoint(commit.verified.body, branch.facts)
        if body is None:
            continue
        made.add(commit.verified.commit.commit_id)
        merged = pack_ids(sorted(commit.verified.commit.acks))
        is_first = not _load_alike(connection, branch.num, merged, counting=True)
        values = {
            "commit_num": num,
            "branch_num": branch.num,
            "proposal": body.proposal,
            "merged": merged,
        }
        connection.execute(insert(checkpoints).values(values))
        if is_first:
            passed = _find_passed(connection, branch.num, merged)
            # What was accepted later has it counted already.
            _count_up(database, connection, branch.num, [one for one in passed if one < num], 1)
    return made


def recount_checkpoints(
    database: Database, connection: Connection, branch_num: int, nums: Sequence[int], *, is_void: bool
) -> None:
    """Count checkpoints among these commits of a branch no more (`is_void`), or again.

    Costs O(commits that they count up or down).
    """
    changed: Counter[PackedIds] = Counter()
    for part in chunks(nums):
        query = select(checkpoints.c.merged).where(checkpoints.c.commit_num.in_(part))
        changed.update(connection.execute(query).scalars())
    for merged, count in changed.items():
        left = len(_load_alike(connection, branch_num, merged, counting=True))
        if left == (0 if is_void else count):  # the last one of them, or the first
            passed = sorted(_find_passed(connection, branch_num, merged))
            _count_up(database, connection, branch_num, passed, -1 if is_void else 1)


def load_checkpoint_ids(connection: Connection, branch_num: int) -> list[CommitId]:
    """Load the ids of a branch's checkpoints, void ones too, in order of acceptance. Costs O(checkpoints)."""
    query = (
        select(commits.c.commit_id)
        .join(checkpoints, checkpoints.c.commit_num == commits.c.num)
        .where(checkpoints.c.branch_num == branch_num)
        .order_by(commits.c.num)
    )
    return list(connection.execute(query).scalars())


def load_made_checkpoints(connection: Connection, branch_nums: Sequence[int]) -> dict[CommitId, CommitId]:
    """Map proposals to their checkpoints that count in some branches, the one accepted last. Costs O(checkpoints)."""
    found: dict[CommitId, CommitId] = {}
    for part in chunks(branch_nums):
        query = (
            select(checkpoints.c.proposal, commits.c.commit_id)
            .join(commits, commits.c.num == checkpoints.c.commit_num)
            .where(checkpoints.c.branch_num.in_(part), ~commits.c.is_void)
            .order_by(commits.c.num)
        )
        found.update((proposal, made) for proposal, made in connection.execute(query))
    return found


def _load_alike(connection: Connection, branch_num: int, merged: PackedIds, *, counting: bool) -> set[int]:
    """Load the numbers of the branch's checkpoints that merge these heads: all, or those that count."""
    query = select(checkpoints.c.commit_num).where(
        checkpoints.c.branch_num == branch_num, checkpoints.c.merged == merged
    )
    if counting:
        query = query.join(commits, commits.c.num == checkpoints.c.commit_num).where(~commits.c.is_void)
    return set(connection.execute(query).scalars())


def _find_passed(connection: Connection, branch_num: int, merged: PackedIds) -> Iterator[int]:
    """Yield the numbers of commits that are not among the heads or in their past, nor a checkpoint of them."""
    query = select(heads.c.commit_id).where(heads.c.branch_num == branch_num, ~heads.c.is_acked)
    ends = list(connection.execute(query).scalars())
    outside = find_outside(ends, unpack_ids(merged), partial(_load_places, connection))
    alike = _load_alike(connection, branch_num, merged, counting=False)
    for part in chunks([id_key(raw) for raw in outside]):
        rows = connection.execute(
            select(commits.c.num, commits.c.commit_id).where(commits.c.id_key.in_(part))
        )
        yield from (num for num, raw in rows.all() if raw in outside and num not in alike)


def _load_places(connection: Connection, ids: Iterable[CommitId]) -> dict[CommitId, GraphNode]:
    """Load places like `load_places`, but quickly for one id: most walks are along chains."""
    wanted = list(ids)
    if len(wanted) != 1:
        return load_places(connection, wanted)
    rows = select_rows(connection, _PLACE, key=id_key(wanted[0]))
    return {raw: GraphNode(rank, unpack_ids(acks)) for raw, rank, acks in rows if raw == wanted[0]}


def _count_up(
    database: Database, connection: Connection, branch_num: int, nums: Sequence[int], by: int
) -> None:
    """Let commits have passed `by` checkpoints more.

    Effects move back first, or forth last, so that none stands before its cause on the way.
    """
    shown: list[tuple[int, int, CommitId, int]] = []
    gains: list[Gain] = []
    places: dict[int, tuple[int, int, CommitId]] = {}
    for part in chunks(nums):
        query = select(*CANONICAL_ORDER, commits.c.num, commits.c.is_void).where(commits.c.num.in_(part))
        for passed, rank, raw, num, is_void in connection.execute(query):
            places[num] = passed, rank, raw
            gains += [((passed, rank, raw), -1, is_void - 1), ((passed + by, rank, raw), 1, 1 - is_void)]
            if not is_void:
                shown.append((passed, rank, raw, num))
        more = commits.c.passed + by
        connection.execute(update(commits).where(commits.c.num.in_(part)).values(passed=more))
    count_changes(connection, branch_num, gains)
    move_operations(database, connection, places, by)
    moved = [(num, passed, passed + by) for passed, _, _, num in sorted(shown, reverse=by > 0)]
    record_changes(database, connection, branch_num, moved)
    drop_kept_texts(connection, nums)
