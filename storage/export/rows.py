"""Converts database rows to Arrow batches, with one generator per export table.

Columns go from the database's cursor into Arrow's buffers as a whole: ids of a batch are joined into one run of bytes, and
what many rows share (topics, branches, authors) is looked up in Arrow by its number. No row becomes objects of ours.
All is read in the caller's one read transaction.
"""

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from blake3 import blake3
from sqlalchemy import Column, Connection, Select, exists, func, select

from protocol.codec import DecodeError
from protocol.formats.body import kind_name
from protocol.formats.content import Imported
from protocol.formats.publication import decode_publication
from protocol.ids import Digest, ObjectId, UserId
from ravel.exports.schema import (
    COMMITS,
    EDITS,
    FILES,
    NAMES,
    PENDING,
    REJECTIONS,
    RELAY_COMMITS,
    RELAY_TOPICS,
    TOPICS,
    VOIDS,
)
from storage.commits.position_index import CANONICAL_ORDER
from storage.engine.queries import stream_parts, sum_of
from storage.export.manifest import Mark
from storage.export.parts import ROWS_AT_ONCE, batch_rows, make_batch
from storage.schema.relay_schema import relay_commits, relay_topics
from storage.schema.schema import (
    authors,
    branches,
    changes,
    commits,
    damaged_commits,
    epochs,
    files,
    pending,
    rejections,
    repos,
    sequences,
    topics,
)

_ID_SIZE: Final = 32
_NUM_SIZE: Final = 8
_IMPORTED: Final = kind_name(Imported)
_PUBLICATIONS_AT_ONCE: Final = 16
"""Publications may have some MiB each."""

Pseudonym = Callable[[UserId], UserId | Digest]
"""Function that returns what stands for an author."""
SourceAuthors = Callable[[Connection, Sequence[int]], Mapping[int, Digest]]
"""Function that returns what stands for the authors of imported commits in the system they came from, if any."""


def find_last(connection: Connection, *columns: Column[int]) -> int:
    """Return the largest number that any row has in these columns, or 0."""
    return max(
        int(connection.execute(select(func.coalesce(func.max(column), 0))).scalar_one()) for column in columns
    )


def last_mark(connection: Connection, table: Any, last: int) -> Mark | None:  # noqa: ANN401  # a Table
    """Return the last row up to a number of a table of commits, or None."""
    query = select(table.c.num, table.c.commit_id).where(table.c.num <= last).order_by(table.c.num.desc())
    row = connection.execute(query.limit(1)).first()
    return None if row is None else Mark(row.num, row.commit_id.hex())


def has_grown_from(connection: Connection, table: Any, mark: Mark | None, watermark: int) -> bool:  # noqa: ANN401  # a Table
    """Return True if the store has grown from the one exported up to there, and is no older copy of it."""
    if mark is not None:
        found = connection.execute(select(table.c.commit_id).where(table.c.num == mark.num)).scalar()
        if found is not None:
            return bool(found.hex() == mark.commit_id)
    given = connection.execute(select(sequences.c.last).where(sequences.c.name == table.name)).scalar() or 0
    others = [changes.c.num] if table is commits else []
    return max(find_last(connection, table.c.num, *others), given) >= watermark


def hash_root_branches(connection: Connection) -> str:
    """Hash the state of all root branches: equal while nothing came to any, was taken out or came back. Costs O(repos).

    Branches only grow, so their counts, and which commits are damaged, tell.
    """
    query = (
        select(repos.c.num, repos.c.repo_id, branches.c.commit_count)
        .join(branches, (branches.c.repo_num == repos.c.num) & (branches.c.branch_id == repos.c.repo_id))
        .order_by(repos.c.num)
    )
    hasher = blake3()
    damaged = (
        select(damaged_commits.c.commit_num)
        .join(commits, commits.c.num == damaged_commits.c.commit_num)
        .join(branches, branches.c.num == commits.c.branch_num)
        .join(repos, (repos.c.num == branches.c.repo_num) & (repos.c.repo_id == branches.c.branch_id))
        .order_by(damaged_commits.c.commit_num)
    )
    for rows in (query, damaged):
        for row in connection.execute(rows):
            hasher.update(repr(tuple(row)).encode())
    return hasher.hexdigest()


def commit_batches(
    connection: Connection,
    first: int,
    last: int,
    pseudonym: Pseudonym | None,
    source_authors: SourceAuthors | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield batches of the commits of these numbers, in order. Costs O(those), and O(n) of branches that grew."""
    positions = _Positions(connection, first, last)
    by_topic = _Shared(connection, select(topics.c.num, topics.c.topic))
    by_author = _Shared(connection, select(authors.c.num, authors.c.user), pseudonym)
    by_branch = [
        _Shared(connection, select(branches.c.num, column).join(repos, repos.c.num == branches.c.repo_num))
        for column in (repos.c.repo_id, branches.c.branch_id, repos.c.name, branches.c.name)
    ]
    query = (
        select(
            commits.c.num,
            commits.c.commit_id,
            commits.c.topic_num,
            commits.c.branch_num,
            commits.c.author_num,
            commits.c.acks,
            commits.c.rank,
            commits.c.body_kind,
            commits.c.size,
            commits.c.timestamp,
            commits.c.received_at,
            commits.c.display_time,
            commits.c.arrived_at,
            func.coalesce(commits.c.arrival, commits.c.num),
            commits.c.feed_sequence,
            func.length(commits.c.block_nums),
        )
        .where(commits.c.num.between(first, last))
        .order_by(commits.c.num)
    )
    for columns in _columns(connection, query):
        nums, ids, topic, branch, author, acks, rank, kind, size, *times, feed, lengths = columns
        imported = [num for num, one in zip(nums, kind, strict=True) if one == _IMPORTED]
        sources = source_authors(connection, imported) if imported and source_authors else {}
        repo_id, branch_id, repo_name, name = (shared.look_up(branch) for shared in by_branch)
        added = _count_files(connection, nums[0], nums[-1])
        yield make_batch(
            COMMITS,
            [
                nums,
                _ids(ids),
                by_topic.look_up(topic),
                repo_id,
                branch_id,
                # What a node calls a repo may name people, as nothing else does beside pseudonyms.
                repo_name if pseudonym is None else pa.nulls(len(nums), pa.string()),
                name,
                by_author.look_up(author),
                [sources.get(num) for num in nums] if sources else pa.nulls(len(nums), pa.binary(_ID_SIZE)),
                _id_lists(acks),
                rank,
                [positions[num] for num in nums],
                kind,
                size,
                *times,
                feed,
                [length // _NUM_SIZE for length in lengths],
                pa.repeat(pa.scalar(last, pa.int64()), len(nums)),
                *([added.get(num, (0, 0))[place] for num in nums] for place in range(2)),
            ],
        )


def _count_files(connection: Connection, first: int, last: int) -> dict[int, tuple[int, int]]:
    """Count the files that commits of these numbers add, and sum their sizes."""
    query = select(files.c.commit_num, func.count(), sum_of(files.c.size))
    rows = connection.execute(
        query.where(files.c.commit_num.between(first, last)).group_by(files.c.commit_num)
    )
    return {num: (count, size) for num, count, size in rows}


def file_batches(
    connection: Connection,
    first: int,
    last: int,
    hidden: Callable[[ObjectId], Digest] | None,
    *,
    with_names: bool,
) -> Iterator[pa.RecordBatch]:
    """Yield batches of the files that these commits add, in order. `hidden` replaces an id by its pseudonym."""
    query = (
        select(files.c.commit_num, commits.c.commit_id, files.c.object_id, files.c.name, files.c.size)
        .join(commits, commits.c.num == files.c.commit_num)
        .where(files.c.commit_num.between(first, last))
        .order_by(files.c.commit_num, files.c.num)
    )
    for nums, ids, objects, names, sizes in _columns(connection, query):
        told = [name or None for name in names] if with_names else [None] * len(nums)
        shown = objects if hidden is None else [hidden(one) for one in objects]
        yield make_batch(FILES, [nums, _ids(ids), _ids(shown), told, sizes])


def name_batches(connection: Connection, *, has_pseudonyms: bool) -> Iterator[pa.RecordBatch]:
    """Yield batches of the present names of repos and branches."""
    query = select(repos.c.repo_id, branches.c.branch_id, repos.c.name, branches.c.name.label("branch_name"))
    query = query.join(branches, branches.c.repo_num == repos.c.num).order_by(branches.c.num)
    rows = connection.execute(query)
    yield from batch_rows(
        NAMES,
        ((repo, branch, None if has_pseudonyms else called, name) for repo, branch, called, name in rows),
    )


def pending_batches(connection: Connection) -> Iterator[pa.RecordBatch]:
    """Yield batches of the commits that wait now. Costs O(those)."""
    query = (
        select(
            pending.c.commit_id,
            topics.c.topic,
            branches.c.branch_id,
            pending.c.reason,
            pending.c.lacking,
            pending.c.size,
            func.nullif(pending.c.arrived_at, 0),
            pending.c.arrival,
        )
        .join(topics, topics.c.num == pending.c.topic_num)
        .outerjoin(branches, branches.c.num == pending.c.branch_num)
        .order_by(pending.c.num)
    )
    for ids, topic_ids, *columns in _columns(connection, query):
        yield make_batch(PENDING, [_ids(ids), _ids(topic_ids), *columns])


def rejection_batches(connection: Connection) -> Iterator[pa.RecordBatch]:
    """Yield batches of the commits that were refused and are still known. Costs O(those)."""
    query = (
        select(rejections.c.commit_id, branches.c.branch_id, rejections.c.code)
        .join(branches, branches.c.num == rejections.c.branch_num)
        .order_by(rejections.c.num)
    )
    for ids, branch_ids, codes in _columns(connection, query):
        yield make_batch(REJECTIONS, [_ids(ids), _ids(branch_ids), codes])


def void_batches(connection: Connection) -> Iterator[pa.RecordBatch]:
    """Yield batches of the commits that are void now. Costs O(commits)."""
    query = select(commits.c.commit_id).where(commits.c.is_void).order_by(commits.c.num)
    for (ids,) in _columns(connection, query):
        yield make_batch(VOIDS, [_ids(ids)])


def edit_batches(connection: Connection, first: int, last: int) -> Iterator[pa.RecordBatch]:
    """Yield batches of changes of these numbers: what became of commits in timelines after their insert.

    Contents that came later are none of them.
    """
    query = (
        select(
            changes.c.num,
            branches.c.branch_id,
            commits.c.commit_id,
            changes.c.passed_before,
            changes.c.passed_after,
        )
        .join(commits, commits.c.num == changes.c.commit_num)
        .join(branches, branches.c.num == changes.c.branch_num)
        .where(
            changes.c.num.between(first, last),
            changes.c.passed_before.is_distinct_from(changes.c.passed_after),
        )
        .order_by(changes.c.num)
    )
    for nums, branch_ids, ids, before, after in _columns(connection, query):
        kinds = [
            "insert" if old is None else "remove" if new is None else "move"
            for old, new in zip(before, after, strict=True)
        ]
        yield make_batch(EDITS, [nums, _ids(branch_ids), _ids(ids), kinds, before, after])


def relay_commit_batches(connection: Connection, first: int, last: int) -> Iterator[pa.RecordBatch]:
    """Yield batches of publications with these numbers that were taken for others, in order.

    Each publication is read to count its blocks; a damaged one counts 0.
    """
    by_topic = _Shared(connection, select(relay_topics.c.num, relay_topics.c.topic))
    query = (
        select(
            relay_commits.c.num,
            relay_commits.c.topic_num,
            relay_commits.c.commit_id,
            relay_commits.c.acks,
            relay_commits.c.publication,
            relay_commits.c.received_at,
        )
        .where(relay_commits.c.num.between(first, last))
        .order_by(relay_commits.c.num)
    )
    rows: list[tuple[Any, ...]] = []
    for nums, topic, ids, acks, encoded, received in _columns(connection, query, _PUBLICATIONS_AT_ONCE):
        blocks = map(_count_blocks, encoded)
        rows += zip(nums, topic, ids, acks, blocks, map(len, encoded), received, strict=True)
        if len(rows) >= ROWS_AT_ONCE:
            yield _relay_batch(rows, by_topic)
            rows = []
    if rows:
        yield _relay_batch(rows, by_topic)


def _count_blocks(publication: bytes) -> int:
    try:
        return len(decode_publication(publication).blocks)
    except DecodeError:  # `ravel fsck` names it
        return 0


def relay_topic_batches(connection: Connection) -> Iterator[pa.RecordBatch]:
    """Yield batches of the topics that are kept for others now."""
    query = select(
        relay_topics.c.topic,
        relay_topics.c.is_pinned,
        relay_topics.c.commit_count,
        relay_topics.c.size,
        relay_topics.c.touched_at,
    ).order_by(relay_topics.c.num)
    for ids, *columns in _columns(connection, query):
        yield make_batch(RELAY_TOPICS, [_ids(ids), *columns])


def topic_batches(connection: Connection) -> Iterator[pa.RecordBatch]:
    """Yield batches of the topics that are followed now."""
    named = select(topics.c.num, topics.c.topic, repos.c.repo_id)
    links = (
        named.add_columns(branches.c.branch_id, epochs.c.epoch_id)
        .join(branches, branches.c.num == topics.c.branch_num)
        .join(repos, repos.c.num == branches.c.repo_num)
        .outerjoin(epochs, epochs.c.num == topics.c.epoch_num)
    )
    rows = [(num, "branch", *rest) for num, *rest in connection.execute(links)]
    for kind, column in (("epoch", epochs.c.topic_num), ("writers", epochs.c.writers_topic_num)):
        query = (
            named.add_columns(epochs.c.epoch_id)
            .join(epochs, column == topics.c.num)
            .join(repos, repos.c.num == epochs.c.repo_num)
        )
        rows += [
            (num, kind, topic, repo_id, None, epoch)
            for num, topic, repo_id, epoch in connection.execute(query)
        ]
    ordered = sorted(rows, key=lambda row: (row[0], row[1], row[5]))
    yield from batch_rows(TOPICS, ((topic, repo, kind, *rest) for _, kind, topic, repo, *rest in ordered))


def _relay_batch(rows: Sequence[tuple[Any, ...]], by_topic: "_Shared") -> pa.RecordBatch:
    nums, topic, ids, acks, *counts = zip(*rows, strict=True)
    return make_batch(RELAY_COMMITS, [nums, by_topic.look_up(topic), _ids(ids), _id_lists(acks), *counts])


def _columns(
    connection: Connection, query: Select[Any], rows_max: int = 0
) -> Iterator[tuple[Sequence[Any], ...]]:
    for rows in stream_parts(connection, query, rows_max or ROWS_AT_ONCE):
        yield tuple(zip(*rows, strict=True))


def _ids(values: Sequence[bytes]) -> Any:  # noqa: ANN401  # an array of 32-byte values
    joined = b"".join(values)
    assert len(joined) == _ID_SIZE * len(values), "ids have 32 bytes"
    buffers: list[Any] = [None, pa.py_buffer(joined)]
    return pa.Array.from_buffers(pa.binary(_ID_SIZE), len(values), buffers)


def _id_lists(packed: Sequence[bytes]) -> Any:  # noqa: ANN401  # an array of lists of 32-byte values
    offsets = array("i", [0])
    total = 0
    for one in packed:
        total += len(one) // _ID_SIZE
        offsets.append(total)
    starts = pa.py_buffer(array("i", range(0, _ID_SIZE * (total + 1), _ID_SIZE)).tobytes())
    flat = pa.Array.from_buffers(pa.binary(), total, [None, starts, pa.py_buffer(b"".join(packed))])
    kind = COMMITS.field("acks").type
    buffers: list[Any] = [None, pa.py_buffer(offsets.tobytes())]
    return pa.Array.from_buffers(kind, len(packed), buffers, children=[flat])


class _Shared:
    """Values of a table by number, which many rows share."""

    def __init__(self, connection: Connection, query: Select[Any], change: Pseudonym | None = None) -> None:
        rows = connection.execute(query).all()
        self._nums = pa.array([row[0] for row in rows], pa.int64())
        values = [row[1] if change is None else change(row[1]) for row in rows]
        is_text = bool(values) and isinstance(values[0], str)
        self._values: Any = pa.array(values, pa.string() if is_text else pa.binary(_ID_SIZE))

    def look_up(self, nums: Sequence[int]) -> Any:  # noqa: ANN401  # an array
        """Return the values of these numbers."""
        places = pc.index_in(pa.array(nums, pa.int64()), self._nums)
        assert places.null_count == 0, "what a row names is there: fsck holds that"
        return self._values.take(places)


class _Positions:
    """Present positions of commits in their branches' timelines, -1 for void ones.

    One pass over the order's index of the branches that have such commits. Holds 8 bytes for each number.
    """

    def __init__(self, connection: Connection, first: int, last: int) -> None:
        self._first = first
        self._by_num = array("q", [-1]) * (last - first + 1)
        here = (commits.c.branch_num == branches.c.num) & commits.c.num.between(first, last)
        grown = select(branches.c.num).where(exists().where(here))  # by the index of branches
        for branch_num in connection.execute(grown).scalars().all():
            query = (
                select(commits.c.num)
                .where(commits.c.branch_num == branch_num, ~commits.c.is_void)
                .order_by(*CANONICAL_ORDER)
            )
            before = 0
            for (nums,) in _columns(connection, query):
                for position, num in enumerate(nums, before):
                    if first <= num <= last:
                        self._by_num[num - first] = position
                before += len(nums)

    def __getitem__(self, num: int) -> int:
        return self._by_num[num - self._first]
