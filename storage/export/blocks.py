"""Blocks of commits as Arrow batches, so that an auditor can recompute commit ids.

No key is exported. A commit's own block comes with its encoding, other blocks with id and size, and all with their
children's ids, which stand in clear. What a commit names and the node knows to lack (bodies that were erased or never came,
damaged commits that were taken out, children that nobody sent) has a row that says so: then a reader can tell it from what
an export lost. Damage that nobody knows of yet says nothing of itself: a commit's own block keeps its bytes as they are, a
body's block has no row.

All is read in the caller's one read transaction. Blocks are read for at most SIZE_AT_ONCE bytes of commits at once.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa
from sqlalchemy import Connection, Row, bindparam, select

from protocol.codec import DecodeError
from protocol.crypto.hashing import block_id
from protocol.formats.block import decode_block, has_children
from protocol.formats.publication import decode_publication
from protocol.ids import BlockId, CommitId
from ravel.exports.schema import BLOCKS
from storage.engine.id_keys import chunks, id_key, unpack_nums
from storage.engine.queries import stream_parts
from storage.export.parts import batch_rows
from storage.schema.relay_schema import relay_commits
from storage.schema.schema import blocks, commits, damaged_commits, erasures

_COMMITS_AT_ONCE: Final = 500
_PUBLICATIONS_AT_ONCE: Final = 8
"""Publications may have a MiB each."""
SIZE_AT_ONCE: Final = 8 << 20
"""Bytes of commits' blocks that are read together: one commit may have a MiB, which may name 30,000 children."""

_COMMITS: Final = (
    select(
        commits.c.num,
        commits.c.commit_id,
        commits.c.block_nums,
        commits.c.size,
        erasures.c.body_id,
        damaged_commits.c.commit_num.label("damaged"),
    )
    .outerjoin(erasures, erasures.c.commit_num == commits.c.num)
    .outerjoin(damaged_commits, damaged_commits.c.commit_num == commits.c.num)
)
_BLOCKS: Final = select(blocks.c.num, blocks.c.id_key, blocks.c.encoded).where(
    blocks.c.num.in_(bindparam("nums", expanding=True))
)


class _BlockRow(NamedTuple):
    """A row of the tables, in the order of their columns."""

    sequence: int
    commit_id: CommitId
    block_id: BlockId
    size: int | None
    child_ids: Sequence[BlockId]
    content: bytes | None


def block_batches(connection: Connection, first: int, last: int) -> Iterator[pa.RecordBatch]:
    """Yield batches of blocks of the commits of these numbers, in order; some hundred commits at once."""
    query = _COMMITS.where(commits.c.num.between(first, last)).order_by(commits.c.num)
    for part in stream_parts(connection, query, _COMMITS_AT_ONCE):
        for some in _cut(part):
            yield from batch_rows(BLOCKS, _rows_of(connection, some))


def relay_block_batches(connection: Connection, first: int, last: int) -> Iterator[pa.RecordBatch]:
    """Yield batches of blocks taken for others of these numbers, in order; some publications at once."""
    columns = relay_commits.c
    query = select(columns.num, columns.commit_id, columns.publication).where(
        columns.num.between(first, last)
    )
    for part in stream_parts(connection, query.order_by(columns.num), _PUBLICATIONS_AT_ONCE):
        yield from batch_rows(BLOCKS, [row for taken in part for row in _rows_of_publication(*taken)])


def _cut(rows: Sequence[Row[Any]]) -> Iterator[Sequence[Row[Any]]]:
    """Yield rows of commits in pieces of SIZE_AT_ONCE bytes or little more."""
    start = size = 0
    for at, row in enumerate(rows, 1):
        size += row.size
        if size >= SIZE_AT_ONCE or at == len(rows):
            yield rows[start:at]
            start, size = at, 0


def _rows_of(connection: Connection, rows: Sequence[Row[Any]]) -> list[_BlockRow]:
    # What is left of a damaged commit may be anything.
    nums = {row.num: unpack_nums(row.block_nums) if row.damaged is None else () for row in rows}
    found: dict[int, tuple[int, bytes]] = {}
    for part in chunks([num for block_nums in nums.values() for num in block_nums]):
        found.update(
            (num, (key, encoded)) for num, key, encoded in connection.execute(_BLOCKS, {"nums": part})
        )
    result: list[_BlockRow] = []
    for row in rows:
        own, *body = nums[row.num] or (0,)  # no block has the number 0
        encoded = found[own][1] if own in found else None
        size = None if encoded is None else len(encoded)
        result.append(_BlockRow(row.num, row.commit_id, row.commit_id, size, (), encoded))
        held: dict[BlockId, tuple[int, Sequence[BlockId]]] = {}
        for num in body:
            if num in found:
                held.update(_read(*found[num]))
        if row.body_id is not None and row.body_id not in held:
            result.append(_BlockRow(row.num, row.commit_id, row.body_id, None, (), None))
        result += _rows_of_rest(row.num, row.commit_id, held)
    return result


def _read(key: int, encoded: bytes) -> Mapping[BlockId, tuple[int, Sequence[BlockId]]]:
    """Return a body's block by id, with size and children; nothing for a damaged one, since its id is unknown."""
    found = block_id(encoded)
    if id_key(found) != key:
        return {}
    if not has_children(encoded):
        return {found: (len(encoded), ())}
    try:
        return {found: (len(encoded), decode_block(encoded).child_ids)}
    except DecodeError:
        return {}  # the parser accepts no such block: damage that took the key's column, too


def _rows_of_publication(num: int, commit_id: CommitId, encoded: bytes) -> Iterator[_BlockRow]:
    try:
        publication = decode_publication(encoded)
    except DecodeError:  # damage, by which nothing of it is here
        yield _BlockRow(num, commit_id, commit_id, None, (), None)
        return
    own, *others = publication.blocks
    yield _BlockRow(num, commit_id, commit_id, len(own.encoded), own.child_ids, own.encoded)
    if publication.body_id is not None:  # it came bare
        yield _BlockRow(num, commit_id, publication.body_id, None, (), None)
    held = {block.block_id: (len(block.encoded), block.child_ids) for block in others}
    held.pop(commit_id, None)
    yield from _rows_of_rest(num, commit_id, held, own.child_ids)


def _rows_of_rest(
    num: int,
    commit_id: CommitId,
    held: Mapping[BlockId, tuple[int, Sequence[BlockId]]],
    named: Sequence[BlockId] = (),
) -> Iterator[_BlockRow]:
    """Yield rows of a commit's other blocks that are held, and of what these, or `named`, name beyond."""
    for raw, (size, child_ids) in held.items():
        yield _BlockRow(num, commit_id, raw, size, child_ids, None)
    children = [child for _, child_ids in held.values() for child in child_ids]
    for raw in dict.fromkeys([*named, *children]):
        if raw not in held and raw != commit_id:
            yield _BlockRow(num, commit_id, raw, None, (), None)
