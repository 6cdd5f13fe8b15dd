"""Table of commits whose body is not stored: erased by this node, or absent since it never arrived.

Rows and headers are here.

What rows of erased ones named becomes garbage (`garbage_collection`). Which may go is `node.content.erasing`'s to find, and
they do not come back: only what is missing is taken when it comes.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, bindparam, delete, func, insert, select, update

from protocol.formats.block import Block
from protocol.formats.declared_kind import POST_KINDS
from protocol.formats.publication import Publication
from protocol.ids import CommitId, ObjectId
from storage.commits.blocks import put_commit_blocks
from storage.commits.commits import ROWS, TimelineRow, timeline_row
from storage.commits.document_rows import forget_operations
from storage.commits.documents import mark_stale_of
from storage.commits.edits import record_contents
from storage.commits.kept_texts import drop_kept_texts
from storage.commits.search_index import queue_for_index
from storage.engine.column_encryption import cipher_of
from storage.engine.database import Database
from storage.engine.id_keys import BLOCK_NUM_SIZE, PackedNums, chunks, id_key, pack_nums, unpack_nums
from storage.engine.queries import sum_of
from storage.schema.schema import blocks, commits, erasures

_MISSING = (
    select(commits.c.num, commits.c.commit_id, commits.c.block_nums, commits.c.branch_num)
    .join(erasures, erasures.c.commit_num == commits.c.num)
    .where(erasures.c.is_missing, commits.c.id_key.in_(bindparam("keys", expanding=True)))
)


class Erasure(NamedTuple):
    """Body to be erased: its commit's number and topic, the block numbers of its row, and the id of the body's block."""

    num: int
    topic_num: int
    block_nums: PackedNums
    body_id: ObjectId


def load_ids_of_kind(connection: Connection, branch_num: int, kind: str, before_ms: int) -> list[CommitId]:
    """Load the ids of a branch's commits of a kind that are not void and came before a time (unix ms).

    Costs O(commits of the branch).
    """
    query = select(commits.c.commit_id).where(
        commits.c.branch_num == branch_num,
        ~commits.c.is_void,
        commits.c.body_kind == kind,
        commits.c.received_at < before_ms,
    )
    return list(connection.execute(query).scalars())


def load_with_bodies(connection: Connection, branch_num: int, kinds: Collection[str]) -> list[TimelineRow]:
    """Load commits of a branch whose bodies are of these kinds and here, without void ones. Costs O(commits)."""
    query = ROWS.where(
        commits.c.branch_num == branch_num,
        ~commits.c.is_void,
        commits.c.body_kind.in_(sorted(kinds)),
        is_body_here(),
    )
    cipher = cipher_of(connection)
    return [timeline_row(cipher, row) for row in connection.execute(query.order_by(commits.c.num))]


def measure_bodies(connection: Connection, rows: Sequence[TimelineRow]) -> int:
    """Sum the bytes of the blocks of these commits' bodies, each block once. Other commits may need some.

    Costs O(blocks).
    """
    wanted = {num for row in rows for num in unpack_nums(row.block_nums)[1:]}
    size = sum_of(func.length(blocks.c.encoded))
    return sum(
        int(connection.execute(select(size).where(blocks.c.num.in_(part))).scalar_one())
        for part in chunks(sorted(wanted))
    )


def erase_bodies(
    connection: Connection,
    branch_num: int,
    erased: Sequence[Erasure],
    now_ms: int,
    *,
    is_spared: bool = False,
) -> None:
    """Erase bodies of commits of a branch; garbage collection deletes the blocks. Costs O(change).

    `is_spared`: they come again when they are opened (`await_opened`).
    """
    for one in erased:
        own = pack_nums(unpack_nums(one.block_nums)[:1])
        connection.execute(update(commits).where(commits.c.num == one.num).values(block_nums=own))
    rows = [
        {
            "commit_num": one.num,
            "branch_num": branch_num,
            "topic_num": one.topic_num,
            "body_id": one.body_id,
            "erased_at": now_ms,
            "is_spared": is_spared,
        }
        for one in erased
    ]
    if rows:
        connection.execute(insert(erasures), rows)
    queue_for_index(connection, [one.num for one in erased], is_gone=True)
    drop_kept_texts(connection, [one.num for one in erased])
    forget_operations(connection, [one.num for one in erased])


def await_missing_bodies(
    connection: Connection,
    branch_num: int,
    came: Iterable[tuple[int, int, Publication]],
    now_ms: int,
    *,
    is_kept: bool = True,
    posts_from: int = 0,
) -> bool:
    """Note the bodies of those of some commits that came without; return True if any is awaited now.

    `came` are commits' numbers, those of their topics, and publications. Of a branch that is not kept, and of posts from
    before a time (unix ms), they are awaited once they are opened (`await_opened`).
    """
    absent = [(num, topic_num, one.body_id) for num, topic_num, one in came if one.body_id is not None]
    if not absent:  # as in most transactions: the statements below take longer to make than a commit to store
        return False
    old = _find_old_posts(connection, [num for num, _, _ in absent], posts_from) if is_kept else set()
    rows = [
        {
            "commit_num": num,
            "branch_num": branch_num,
            "topic_num": topic_num,
            "body_id": body_id,
            "erased_at": now_ms,
            "is_missing": is_kept and num not in old,
            "is_spared": not is_kept or num in old,
        }
        for num, topic_num, body_id in absent
    ]
    connection.execute(insert(erasures), rows)
    return is_kept and len(rows) > len(old)


def _find_old_posts(connection: Connection, nums: Sequence[int], before: int) -> set[int]:
    """Find the posts among these commits that are from before a time (unix ms). Costs O(nums); O(1) for time 0."""
    query = select(commits.c.num).where(commits.c.body_kind.in_(POST_KINDS), commits.c.display_time < before)
    parts = chunks(nums) if before else ()
    return {
        num for part in parts for num in connection.execute(query.where(commits.c.num.in_(part))).scalars()
    }


def await_opened(connection: Connection, ids: Collection[CommitId]) -> dict[int, int]:
    """Await the spared bodies of these commits from now on; return numbers of topics by the commits'. Costs O(ids).

    What was erased here does not come back.
    """
    found: dict[int, int] = {}
    for part in chunks(sorted(ids)):
        query = select(commits.c.num, erasures.c.topic_num).join(
            erasures, erasures.c.commit_num == commits.c.num
        )
        named = commits.c.id_key.in_([id_key(raw) for raw in part]) & commits.c.commit_id.in_(part)
        found.update((row[0], row[1]) for row in connection.execute(query.where(named, erasures.c.is_spared)))
    for nums in chunks(list(found)):
        chosen = update(erasures).where(erasures.c.commit_num.in_(nums))
        connection.execute(chosen.values(is_missing=True, is_spared=False))
    return found


def load_spared(
    connection: Connection, branch_nums: Sequence[int], kinds: Collection[str], document: str | None
) -> list[CommitId]:
    """Load the commits of some branches whose bodies are spared: of these kinds, and of one document or (None) all.

    No kinds: of any. Costs O(absent bodies of these branches).
    """
    query = select(commits.c.commit_id).join(erasures, erasures.c.commit_num == commits.c.num)
    query = query.where(erasures.c.branch_num.in_(branch_nums), erasures.c.is_spared)
    if kinds:
        query = query.where(commits.c.body_kind.in_(sorted(kinds)))
    if document is not None:
        query = query.where(commits.c.document == document)
    return list(connection.execute(query).scalars())


def await_branch(connection: Connection, branch_num: int, posts_from: int | None) -> None:
    """Await the absent bodies of a branch from now on, of posts those from a time (unix ms) on, or (None) spare them all.

    Costs O(those). What was erased here for everybody does not come back.
    """
    of_branch = (erasures.c.branch_num == branch_num) & (erasures.c.is_missing | erasures.c.is_spared)
    is_kept = posts_from is not None
    connection.execute(update(erasures).where(of_branch).values(is_missing=is_kept, is_spared=not is_kept))
    if posts_from:
        old = select(commits.c.num).where(
            commits.c.num == erasures.c.commit_num,
            commits.c.body_kind.in_(POST_KINDS),
            commits.c.display_time < posts_from,
        )
        spared = update(erasures).where(of_branch, old.exists())
        connection.execute(spared.values(is_missing=False, is_spared=True))


class OldPosts(NamedTuple):
    """Posts of others in a branch, whose bodies may be given up: of all but one author, from before a time (unix ms)."""

    branch_num: int
    but_author_num: int | None
    before: int


def load_old_posts(
    connection: Connection,
    old: OldPosts,
    after: int,
    limit: int,
    ids: Collection[CommitId] | None = None,
) -> list[TimelineRow]:
    """Load the first of old posts after a number whose bodies are here, by number; of these ids alone, where some are given.

    Without void ones. Costs O(commits of the branch that are passed over).
    """
    query = ROWS.where(is_old_post(old), ~commits.c.is_void, is_body_here(), commits.c.num > after)
    if ids is not None:
        query = query.where(commits.c.id_key.in_([id_key(raw) for raw in ids]), commits.c.commit_id.in_(ids))
    cipher = cipher_of(connection)
    rows = connection.execute(query.order_by(commits.c.num).limit(limit))
    return [timeline_row(cipher, row) for row in rows]


def count_old_posts(connection: Connection, old: OldPosts) -> tuple[int, int]:
    """Count a branch's old posts whose bodies are here, and those whose bodies were given up. Costs O(its commits)."""
    is_counted = is_old_post(old) & ~commits.c.is_void & is_body_here()
    here = select(func.count()).select_from(commits).where(is_counted)
    spared = select(func.count()).select_from(commits.join(erasures, erasures.c.commit_num == commits.c.num))
    away = spared.where(is_old_post(old), erasures.c.is_spared)
    return int(connection.execute(here).scalar_one()), int(connection.execute(away).scalar_one())


def is_body_here() -> ColumnElement[bool]:
    """Return the condition that a commit's body is here."""
    return func.length(commits.c.block_nums) > BLOCK_NUM_SIZE


def is_old_post(old: OldPosts) -> ColumnElement[bool]:
    """Return the condition that a commit is one of old posts."""
    found = (
        (commits.c.branch_num == old.branch_num)
        & (commits.c.display_time < old.before)
        & commits.c.body_kind.in_(POST_KINDS)
    )
    return found if old.but_author_num is None else found & (commits.c.author_num != old.but_author_num)


def fill_bodies(
    database: Database, connection: Connection, bodies: Mapping[CommitId, Block]
) -> dict[CommitId, int]:
    """Store bodies, each one block, for the given commits that lack them; return those commits with their branches."""
    if not bodies:  # as in most transactions
        return {}
    found: dict[CommitId, tuple[int, PackedNums, int]] = {}
    for part in chunks([id_key(raw) for raw in bodies]):
        rows = connection.execute(_MISSING, {"keys": part})
        found.update((commit_id, (num, *rest)) for num, commit_id, *rest in rows if commit_id in bodies)
    block_nums = put_commit_blocks(database, connection, [bodies[commit_id] for commit_id in found])
    header_sizes = _load_sizes(connection, [unpack_nums(own)[0] for _, own, _ in found.values()])
    for commit_id, (num, own, _) in found.items():
        block = bodies[commit_id]
        whole = own + pack_nums([block_nums[block.block_id]])
        # Of one that was given up, the row still counts the body; of one that came bare it does not.
        size = header_sizes[unpack_nums(own)[0]] + len(block.encoded)
        connection.execute(update(commits).where(commits.c.num == num).values(block_nums=whole, size=size))
        connection.execute(delete(erasures).where(erasures.c.commit_num == num))
    nums = [num for num, _, _ in found.values()]
    queue_for_index(connection, nums)
    drop_kept_texts(connection, nums)
    mark_stale_of(connection, nums)
    record_contents(database, connection, nums)
    return {commit_id: branch_num for commit_id, (_, _, branch_num) in found.items()}


def _load_sizes(connection: Connection, block_nums: Sequence[int]) -> dict[int, int]:
    found: dict[int, int] = {}
    for part in chunks(block_nums):
        query = select(blocks.c.num, func.length(blocks.c.encoded)).where(blocks.c.num.in_(part))
        found.update((row[0], row[1]) for row in connection.execute(query))
    return found


def find_topics_missing_bodies(connection: Connection) -> dict[int, int]:
    """Find topics with missing bodies, by number, each with its newest such commit's. Costs O(those topics)."""
    found: dict[int, int] = {}
    missing, last = erasures.c, -1
    while True:
        query = select(missing.topic_num).where(missing.is_missing, missing.topic_num > last)
        row = connection.execute(query.order_by(missing.topic_num).limit(1)).first()
        if row is None:
            return found
        last = row[0]
        newest = select(func.max(missing.commit_num)).where(missing.is_missing, missing.topic_num == last)
        found[last] = connection.execute(newest).scalar_one()


def load_commits_missing_bodies(
    connection: Connection, topic_num: int, before: int, after: int, limit: int
) -> list[tuple[int, CommitId]]:
    """Load (number, id) of a topic's commits whose bodies are missing, between two numbers, the latest first."""
    query = (
        select(commits.c.num, commits.c.commit_id)
        .join(erasures, erasures.c.commit_num == commits.c.num)
        .where(
            erasures.c.is_missing,
            erasures.c.topic_num == topic_num,
            erasures.c.commit_num < before,
            erasures.c.commit_num > after,
        )
        .order_by(erasures.c.commit_num.desc())
        .limit(limit)
    )
    return [(row[0], row[1]) for row in connection.execute(query)]


def count_bodies_missing(connection: Connection, nums: Sequence[int]) -> int:
    """Count how many of these commits still lack their body. Costs O(nums)."""
    query = select(func.count()).select_from(erasures).where(erasures.c.is_missing)
    return sum(
        int(connection.execute(query.where(erasures.c.commit_num.in_(part))).scalar_one())
        for part in chunks(nums)
    )


def load_body_ids(connection: Connection, nums: Sequence[int]) -> dict[int, ObjectId]:
    """Load the ids of absent bodies of the given commits, by number. Costs O(nums)."""
    found: dict[int, ObjectId] = {}
    for part in chunks(nums):
        query = select(erasures.c.commit_num, erasures.c.body_id).where(erasures.c.commit_num.in_(part))
        found.update((row[0], row[1]) for row in connection.execute(query))
    return found


def count_erased(connection: Connection, branch_num: int) -> int:
    """Count the bodies of a branch that are absent. Costs O(those)."""
    query = select(func.count()).where(erasures.c.branch_num == branch_num)
    return int(connection.execute(query).scalar_one())


def sum_absent(connection: Connection, branch_num: int) -> tuple[int, int]:
    """Return the count and the sum of the numbers of a branch's commits whose bodies are absent. Costs O(those).

    One that came while another went leaves the count as it was.
    """
    columns = erasures.c
    query = select(func.count(), sum_of(columns.commit_num)).where(columns.branch_num == branch_num)
    count, total = connection.execute(query).one()
    return count, int(total)
