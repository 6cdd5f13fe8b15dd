"""Rows of single commits, as a check compares them and a repair writes them again.

A repair keeps the numbers of rows, which others name. Each function belongs to one transaction.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, delete, func, insert, select, update

from protocol.formats.commit import Commit
from protocol.ids import CommitId
from storage.engine.column_encryption import cipher_of, file_place
from storage.engine.id_keys import PackedIds, chunks, id_key
from storage.schema.schema import (
    authors,
    checkpoints,
    commits,
    erasures,
    file_removals,
    files,
    group_places,
    pending,
    spared_files,
    topic_inits,
)
from storage.schema.search_schema import search_queue

_ON_TOPIC: Final = 200
"""Commits of a topic that are read at a time."""


class CheckpointRow(NamedTuple):
    """The row of a checkpoint, beside the number of its commit."""

    branch_num: int
    proposal: CommitId
    merged: PackedIds


def load_nums_on(connection: Connection, topic_num: int) -> Iterator[tuple[int, list[int]]]:
    """Yield the commits of one topic by their numbers: a branch's number, with at most _ON_TOPIC of its commits."""
    query = select(commits.c.branch_num, commits.c.num).where(commits.c.topic_num == topic_num)
    rows = connection.execute(query.order_by(commits.c.branch_num, commits.c.num)).all()
    for branch_num, group in groupby(rows, key=lambda row: int(row[0])):
        for part in chunks([num for _, num in group], _ON_TOPIC):
            yield branch_num, list(part)


def load_commit_id(connection: Connection, num: int) -> CommitId:
    """Return the id of a commit that is there."""
    found: CommitId = connection.execute(select(commits.c.commit_id).where(commits.c.num == num)).scalar_one()
    return found


def load_void_marks(connection: Connection, branch_num: int) -> list[tuple[int, CommitId, bool]]:
    """List a branch's commits: number, id, and whether each is kept as void."""
    query = select(commits.c.num, commits.c.commit_id, commits.c.is_void)
    return [tuple(row) for row in connection.execute(query.where(commits.c.branch_num == branch_num))]


def find_erased(connection: Connection, nums: Sequence[int]) -> set[int]:
    """Return the given commits that are kept as erased, or as released to be."""
    query = select(erasures.c.commit_num).where(erasures.c.commit_num.in_(nums))
    return set(connection.execute(query).scalars())


def drop_erasure(connection: Connection, num: int) -> None:
    """Keep a commit as not released."""
    connection.execute(delete(erasures).where(erasures.c.commit_num == num))


def rewrite_commit(connection: Connection, num: int, values: Mapping[str, object]) -> None:
    """Write some columns of a commit's row again."""
    connection.execute(update(commits).where(commits.c.num == num).values(dict(values)))


def rewrite_second_places(connection: Connection, num: int, topic_nums: set[int]) -> None:
    """Keep the topics on which a commit stands beside its own."""
    connection.execute(delete(topic_inits).where(topic_inits.c.commit_num == num))
    for topic_num in topic_nums:
        connection.execute(insert(topic_inits).values(topic_num=topic_num, commit_num=num))


def rewrite_checkpoint(connection: Connection, num: int, wanted: CheckpointRow | None) -> bool:
    """Keep a commit as this checkpoint, or as none. Return False if it was kept so."""
    here = checkpoints.c.commit_num == num
    columns = (checkpoints.c.branch_num, checkpoints.c.proposal, checkpoints.c.merged)
    kept = connection.execute(select(*columns).where(here)).first()
    if (None if kept is None else tuple(kept)) == wanted:
        return False
    connection.execute(delete(checkpoints).where(here))
    if wanted is not None:
        connection.execute(insert(checkpoints).values(commit_num=num, **wanted._asdict()))
    return True


def drop_files(connection: Connection, file_nums: Sequence[int]) -> None:
    """Keep no files of these numbers, nor that they were removed or given up."""
    for table in (file_removals, spared_files):
        connection.execute(delete(table).where(table.c.file_num.in_(file_nums)))
    connection.execute(delete(files).where(files.c.num.in_(file_nums)))


def write_file(connection: Connection, file_num: int, values: Mapping[str, object], *, is_new: bool) -> None:
    """Write the row of a file, or its columns again. It may name another content then, which was not given up."""
    connection.execute(delete(spared_files).where(spared_files.c.file_num == file_num))
    if is_new:
        connection.execute(insert(files).values(num=file_num, **values))
    else:
        connection.execute(update(files).where(files.c.num == file_num).values(dict(values)))


def rewrite_removals(connection: Connection, num: int, file_nums: set[int]) -> None:
    """Keep that a commit removes these files."""
    connection.execute(delete(file_removals).where(file_removals.c.commit_num == num))
    if file_nums:
        rows = [{"file_num": file_num, "commit_num": num} for file_num in sorted(file_nums)]
        connection.execute(insert(file_removals), rows)


def count_kept_pending(connection: Connection) -> int:
    """Count all commits that wait, whatever for."""
    return int(connection.execute(select(func.count()).select_from(pending)).scalar_one())


def find_indexed(connection: Connection, nums: Sequence[int], body_kind: str) -> list[int]:
    """Return the given commits that are of a kind, and that the search index does not still have to read."""
    wanted = commits.c.num.in_(nums) & (commits.c.body_kind == body_kind)
    query = select(commits.c.num).where(wanted, commits.c.num.not_in(select(search_queue.c.commit_num)))
    return list(connection.execute(query).scalars())


_ROW: Final = (
    select(
        commits.c.num,
        commits.c.commit_id,
        authors.c.user,
        commits.c.feed_sequence,
        commits.c.feed_link,
        commits.c.rank,
        commits.c.acks,
        commits.c.commit_key,
        commits.c.body_kind,
        commits.c.timestamp,
        commits.c.size,
        commits.c.is_void,
        commits.c.relation,
        commits.c.about,
        commits.c.document,
        commits.c.is_proven,
        commits.c.topic_num,
        commits.c.epoch_num,
        group_places.c.ids.label("seen"),
    )
    .outerjoin(authors, authors.c.num == commits.c.author_num)
    .outerjoin(group_places, group_places.c.num == commits.c.place_num)
    .order_by(commits.c.num)
)
KeptFile = tuple[object, ...]
"""Object id, key, name and size."""


def load_kept_rows(connection: Connection, nums: Sequence[int]) -> list[dict[str, Any]]:
    """Load columns of commits that follow from their blocks, and more, in the order of the commits' numbers."""
    return [dict(row._mapping) for row in connection.execute(_ROW.where(commits.c.num.in_(nums)))]


def load_second_places(connection: Connection, nums: Sequence[int]) -> Mapping[int, set[int]]:
    """Load the numbers of the topics on which commits stand beside their own, by the commits' numbers."""
    found: dict[int, set[int]] = {}
    query = select(topic_inits.c.commit_num, topic_inits.c.topic_num)
    for num, topic_num in connection.execute(query.where(topic_inits.c.commit_num.in_(nums))):
        found.setdefault(num, set()).add(topic_num)
    return found


def load_kept_files(connection: Connection, nums: Sequence[int]) -> Mapping[int, list[tuple[int, KeptFile]]]:
    """Load the files that commits add, each with its number, by the commits' numbers."""
    cipher = cipher_of(connection)
    columns = (files.c.commit_num, files.c.num, files.c.object_id, files.c.object_key)
    query = select(*columns, files.c.name, files.c.size).where(files.c.commit_num.in_(nums))
    found: dict[int, list[tuple[int, KeptFile]]] = {}
    for commit_num, num, object_id, kept, *rest in connection.execute(query.order_by(files.c.num)):
        key = cipher.mask(file_place(num, object_id), kept)
        found.setdefault(commit_num, []).append((num, (object_id, key, *rest)))
    return found


def load_kept_removals(connection: Connection, nums: Sequence[int]) -> Mapping[int, set[int]]:
    """Load the numbers of the files that commits remove, by the commits' numbers."""
    found: dict[int, set[int]] = {}
    query = select(file_removals.c.commit_num, file_removals.c.file_num)
    for num, file_num in connection.execute(query.where(file_removals.c.commit_num.in_(nums))):
        found.setdefault(num, set()).add(file_num)
    return found


def find_removed_files(connection: Connection, branch_num: int, commit: Commit) -> set[int]:
    """Find the files that a commit removes: of objects that it names, those that commits it depends on added."""
    if not commit.links.nfiles:
        return set()
    query = (
        select(files.c.num, commits.c.commit_id)
        .join(commits, commits.c.num == files.c.commit_num)
        .where(
            files.c.branch_num == branch_num,
            files.c.object_id.in_(commit.links.nfiles),
            commits.c.id_key.in_([id_key(dep) for dep in commit.links.deps]),
        )
    )
    return {num for num, adder in connection.execute(query) if adder in commit.links.deps}
