"""Exports what commits' headers state beside their acks: places in further tangles, and dependencies.

Each new commit is opened once for both tables, without its body, in some 0.2 ms. A commit whose block is damaged has
no rows until it is repaired, and `ravel fsck` names it.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, islice
from typing import Final

import pyarrow as pa
from sqlalchemy import Connection

from node.ingest.replica import load_blocks_of
from node.ingest.stored_commits import UNREADABLE
from node.ingest.tables import Tables, load_tables
from protocol.formats.block import decode_block
from protocol.formats.commit import Commit, open_commit
from ravel.exports.schema import DEPENDENCIES, TANGLES
from storage.commits.commits import TimelineRow, iterate_between
from storage.engine.id_keys import BLOCK_NUM_SIZE, PackedNums
from storage.export.parts import ExportRow, batch_rows

_OPENED_AT_ONCE: Final = 500

_Opened = tuple[int, Commit]
"""A commit, and its number."""


def open_headers(
    connection: Connection, first: int, last: int, unopened: list[int]
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield batches of `tangles` and `dependencies` of the commits of these numbers, and of those `unopened` so far.

    That list has afterwards the commits that cannot be opened. Costs O(commits).
    """
    tables = load_tables(connection)
    # One by one: a commit that is gone is left out.
    before = [row for num in unopened for row in iterate_between(connection, num, num)]
    unopened.clear()
    rows = chain(before, iterate_between(connection, first, last))
    while some := list(islice(rows, _OPENED_AT_ONCE)):
        opened = _open_some(connection, tables, some)
        unopened += sorted({row.num for row in some} - {num for num, _ in opened})
        for table, schema, told in (
            ("tangles", TANGLES, _tangle_rows(opened)),
            ("dependencies", DEPENDENCIES, _dependency_rows(opened)),
        ):
            yield from ((table, batch) for batch in batch_rows(schema, told))


def _tangle_rows(opened: list[_Opened]) -> Iterator[ExportRow]:
    for num, commit in opened:
        for place in commit.content.tangles:
            yield num, commit.commit_id, place.kind, place.root, place.previous


def _dependency_rows(opened: list[_Opened]) -> Iterator[ExportRow]:
    for num, commit in opened:
        if commit.links.deps or commit.links.ndeps:
            yield num, commit.commit_id, commit.links.deps, commit.links.ndeps


def _open_some(connection: Connection, tables: Tables, rows: list[TimelineRow]) -> list[_Opened]:
    """Open the commits that can be opened. Damage is found one by one."""
    try:
        # The first block is the commit's own.
        own = [replace(row, block_nums=PackedNums(row.block_nums[:BLOCK_NUM_SIZE])) for row in rows]
        blocks = load_blocks_of(connection, own)
        return [
            (
                row.num,
                open_commit(decode_block(blocks[row.num][0]), row.commit_key, tables.convergence_secret(row)),
            )
            for row in rows
        ]
    except UNREADABLE:
        if len(rows) == 1:
            return []
    return [one for row in rows for one in _open_some(connection, tables, [row])]
