"""Tables of damaged commits and file blocks that were removed and that the node requests from peers.

A commit's row stays where it is: what follows from its place (order, heads, ranks) is as it was, and only its blocks are
not here. A publication of it that opens puts them back, no matter who sends it: the commit's id is the hash of its block,
and that names its body.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, delete, func, insert, select, update

from protocol.formats.body import Body, UnknownBody, body_kind
from protocol.formats.commit import Commit
from protocol.formats.declared_kind import document_name
from protocol.formats.publication import Publication
from protocol.ids import BlockId, CommitId
from storage.commits.absent_bodies import await_missing_bodies
from storage.commits.blocks import find_blocks_in, put_commit_blocks
from storage.commits.commits import feed_link, number_places, relation_columns
from storage.commits.document_making import add_stale_documents
from storage.commits.documents import mark_stale_of
from storage.commits.edits import record_contents
from storage.commits.kept_texts import drop_kept_texts
from storage.commits.search_index import queue_for_index
from storage.engine.column_encryption import cipher_of, commit_key_context
from storage.engine.database import Database
from storage.engine.id_keys import chunks, id_key, pack_ids, pack_nums, unpack_nums
from storage.schema.schema import branches, commits, damaged_blocks, damaged_commits, erasures
from verifier.posts import find_relation


@dataclass(frozen=True, slots=True)
class DamagedCount:
    """Numbers of damaged commits, and of damaged blocks of files."""

    commits: int
    blocks: int  # of files


@dataclass(frozen=True, slots=True)
class DamagedCommit:
    """Commit whose blocks are not here."""

    num: int
    topic_num: int
    branch_num: int
    commit_id: CommitId


_COMMITS = select(
    damaged_commits.c.commit_num, damaged_commits.c.topic_num, commits.c.branch_num, commits.c.commit_id
).join(commits, commits.c.num == damaged_commits.c.commit_num)


def count_damaged_in(connection: Connection) -> dict[int, int]:
    """Count the commits that are damaged here, by number of the repo. Costs O(such commits)."""
    query = (
        select(branches.c.repo_num, func.count())
        .join(commits, commits.c.branch_num == branches.c.num)
        .join(damaged_commits, damaged_commits.c.commit_num == commits.c.num)
        .group_by(branches.c.repo_num)
    )
    return {row[0]: row[1] for row in connection.execute(query)}


def mark_commits_damaged(connection: Connection, nums: Iterable[int]) -> int:
    """Ask for these commits from now on; return how many are new. Costs O(nums)."""
    count = 0
    for part in chunks(sorted(set(nums))):
        known = select(damaged_commits.c.commit_num)
        new = select(commits.c.num, commits.c.topic_num).where(
            commits.c.num.in_(part), commits.c.num.not_in(known)
        )
        rows = [{"commit_num": num, "topic_num": topic_num} for num, topic_num in connection.execute(new)]
        count += len(rows)
        if rows:
            connection.execute(insert(damaged_commits), rows)
    return count


def mark_blocks_damaged(connection: Connection, ids: Iterable[BlockId]) -> int:
    """Ask for these blocks of files from now on; return how many are new. Costs O(ids)."""
    count = 0
    for part in chunks(sorted(set(ids))):
        here = select(damaged_blocks.c.block_id).where(damaged_blocks.c.block_id.in_(part))
        known = set(connection.execute(here).scalars())
        rows = [{"block_id": raw} for raw in part if raw not in known]
        count += len(rows)
        if rows:
            connection.execute(insert(damaged_blocks), rows)
    return count


def count_damaged(connection: Connection) -> DamagedCount:
    """Count what is damaged here. Costs O(that)."""
    return DamagedCount(
        *(
            int(connection.execute(select(func.count()).select_from(table)).scalar_one())
            for table in (damaged_commits, damaged_blocks)
        )
    )


def load_damaged_commits(connection: Connection, after: int, limit: int) -> list[DamagedCommit]:
    """Load the first damaged commits whose numbers are above `after`."""
    query = _COMMITS.where(damaged_commits.c.commit_num > after)
    rows = connection.execute(query.order_by(damaged_commits.c.commit_num).limit(limit))
    return [DamagedCommit(*row) for row in rows]


def load_damaged_blocks(connection: Connection, after: BlockId, limit: int) -> list[BlockId]:
    """Load the first damaged blocks whose ids are above `after`."""
    query = select(damaged_blocks.c.block_id).where(damaged_blocks.c.block_id > after)
    return list(connection.execute(query.order_by(damaged_blocks.c.block_id).limit(limit)).scalars())


def find_damaged(connection: Connection, ids: Sequence[CommitId]) -> dict[CommitId, DamagedCommit]:
    """Find the given commits that are damaged, by id. Costs O(ids)."""
    wanted = set(ids)
    found: dict[CommitId, DamagedCommit] = {}
    for part in chunks([id_key(raw) for raw in wanted]):
        for row in connection.execute(_COMMITS.where(commits.c.id_key.in_(part))):
            one = DamagedCommit(*row)
            if one.commit_id in wanted:
                found[one.commit_id] = one
    return found


def find_damaged_in(connection: Connection, branch_num: int) -> CommitId | None:
    """Find the first damaged commit of a branch. Costs O(damaged commits)."""
    query = _COMMITS.where(commits.c.branch_num == branch_num).order_by(damaged_commits.c.commit_num).limit(1)
    row = connection.execute(query).first()
    return None if row is None else CommitId(row.commit_id)


def restore_commit(
    database: Database,
    connection: Connection,
    damaged: DamagedCommit,
    commit: Commit,
    publication: Publication,
    body: Body | UnknownBody,
    now_ms: int,
    *,
    epoch_num: int,
    seen: tuple[CommitId, ...],
    is_root_branch: bool,
    is_proven: bool,
) -> None:
    """Store a damaged commit's blocks again, as a publication of its topic has them that opened and is signed.

    Of a bare one the commit's own; its body stays absent, as that of any commit which came without (`absent_bodies`).
    `epoch_num` and `seen` are as in `commits.NewCommit` and its verified commit.
    """
    blocks = publication.blocks
    kept = connection.execute(select(commits.c.block_nums).where(commits.c.num == damaged.num)).scalar_one()
    nums = find_blocks_in(connection, unpack_nums(kept))  # of what is not damaged, no second copy
    lacking = [block for block in blocks if block.block_id not in nums]
    nums |= put_commit_blocks(database, connection, lacking)
    relation, about = relation_columns(find_relation(commit, is_root_branch=is_root_branch))
    values = {
        "block_nums": pack_nums([nums[block.block_id] for block in blocks]),
        "commit_key": cipher_of(connection).mask(commit_key_context(commit.commit_id), commit.key),
        "signature": publication.signature if is_proven else b"",
        "is_proven": is_proven,
        # Of what a repair knows by indexes alone, this is not here either.
        "acks": pack_ids(commit.acks),
        "epoch_num": epoch_num,
        "place_num": number_places(database, connection, {seen})[seen],
        "feed_sequence": commit.content.feed_sequence,
        "feed_link": feed_link(commit),
        "timestamp": commit.content.timestamp,
        "size": sum(len(block.encoded) for block in blocks),
        "relation": relation,
        "about": about,
        "document": document_name(commit, is_root_branch=is_root_branch),
    }
    connection.execute(update(commits).where(commits.c.num == damaged.num).values(values))
    is_unknown = (commits.c.num == damaged.num) & (commits.c.body_kind == "")
    connection.execute(update(commits).where(is_unknown).values(body_kind=body_kind(body)))
    connection.execute(delete(erasures).where(erasures.c.commit_num == damaged.num))
    await_missing_bodies(
        connection, damaged.branch_num, [(damaged.num, damaged.topic_num, publication)], now_ms
    )
    connection.execute(delete(damaged_commits).where(damaged_commits.c.commit_num == damaged.num))
    queue_for_index(connection, [damaged.num])
    drop_kept_texts(connection, [damaged.num])
    add_stale_documents(database, connection, [damaged.num])
    mark_stale_of(connection, [damaged.num])
    record_contents(database, connection, [damaged.num])


def clear_damaged_blocks(connection: Connection, ids: Iterable[BlockId]) -> None:
    """Note that these blocks are here again."""
    for part in chunks(sorted(set(ids))):
        connection.execute(delete(damaged_blocks).where(damaged_blocks.c.block_id.in_(part)))
