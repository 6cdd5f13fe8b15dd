"""Keeps the items of lists of JSON documents in their order, so that an edit reads what stands beside an item alone.

An operation that places an item has its *position* in its row: bytes that order the items of a list
(`verifier.json_contents.find_position`). Of an item the last in canonical order of those that stand shows. An operation
that was carried twice counts at its first place, as in `node.content.document_state`.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from sqlalchemy import Connection, Select, bindparam, delete, select

from protocol.ids import CommitId
from storage.engine.bulk import change_rows, insert_rows, select_rows
from storage.schema.document_schema import document_positions, document_sources, document_tips
from verifier.documents import OrderKey

_COLUMNS: Final = ("doc_num", "key", "position")
_LOOKED_MAX: Final = 16
"""Operations of an item that are read at once: hardly one has more that stand."""
_PLACE: Final = (
    document_tips.c.depth,
    document_tips.c.passed,
    document_tips.c.rank,
    document_tips.c.commit_id,
)
_OF_ITEM: Final = (
    select(*_PLACE, document_tips.c.name, document_tips.c.position)
    .where(
        document_tips.c.doc_num == bindparam("doc"),
        document_tips.c.key == bindparam("key"),
        document_tips.c.position.is_not(None),
    )
    .order_by(*(column.desc() for column in (*_PLACE, document_tips.c.source_num)))
    .limit(bindparam("limit"))
    .offset(bindparam("offset"))
)
_SOURCE: Final = (
    select(document_sources.c.source_num)
    .where(document_sources.c.doc_num == bindparam("doc"), document_sources.c.name == bindparam("name"))
    .limit(1)
)
_FIRST_COPY: Final = (
    select(*_PLACE)
    .where(
        document_tips.c.doc_num == bindparam("doc"),
        document_tips.c.key == bindparam("key"),
        document_tips.c.name == bindparam("name"),
        document_tips.c.position == bindparam("position"),
    )
    .order_by(*_PLACE)
    .limit(1)
)
_DROP: Final = delete(document_positions).where(
    document_positions.c.doc_num == bindparam("doc"), document_positions.c.key == bindparam("of_key")
)


def _between(*, is_backwards: bool) -> "Select[tuple[bytes]]":
    column = document_positions.c.position
    return (
        select(column)
        .where(
            document_positions.c.doc_num == bindparam("doc"),
            column > bindparam("first"),
            column < bindparam("end"),
        )
        .order_by(column.desc() if is_backwards else column)
        .limit(bindparam("limit"))
        .offset(bindparam("offset"))
    )


_FORWARDS: Final = _between(is_backwards=False)
_BACKWARDS: Final = _between(is_backwards=True)


class PlacedItem(NamedTuple):
    """Operation that stands and places an item: its key, name, place in canonical order, and position."""

    key: bytes
    name: CommitId
    place: OrderKey
    position: bytes


def find_shown(placed: Iterable[PlacedItem]) -> dict[bytes, bytes]:
    """Return the position that shows of each item, by key. Costs O(operations)."""
    first: dict[tuple[bytes, CommitId, bytes], OrderKey] = {}
    for one in placed:
        copies = (one.key, one.name, one.position)
        first[copies] = min(first.get(copies, one.place), one.place)
    last: dict[bytes, tuple[OrderKey, bytes]] = {}
    for (key, _, position), place in first.items():
        last[key] = max(last.get(key, (place, position)), (place, position))
    return {key: position for key, (_, position) in last.items()}


def keep_positions(connection: Connection, items: Iterable[tuple[int, bytes]]) -> None:
    """Store the present values of items, by document and key, whose operations were added, removed or moved.

    Costs O(log n) for each, and O(its operations) for items with carried operations.
    """
    shown = [(*item, _load_shown(connection, *item)) for item in sorted(items)]
    change_rows(connection, _DROP, [(doc_num, key) for doc_num, key, _ in shown])
    insert_positions(connection, [(doc_num, key, at) for doc_num, key, at in shown if at is not None])


def insert_positions(connection: Connection, positions: Sequence[tuple[int, bytes, bytes]]) -> None:
    """Insert positions of items that have none, by document and key."""
    insert_rows(connection, document_positions, _COLUMNS, positions)


def load_positions(
    connection: Connection,
    doc_num: int,
    first: bytes,
    end: bytes,
    *,
    offset: int,
    limit: int,
    is_backwards: bool,
) -> list[bytes]:
    """Load positions of items after one and before another, in their order or against it.

    Costs O(limit and log n). The database passes over `offset` entries of its index, some 30 ns each.
    """
    query = _BACKWARDS if is_backwards else _FORWARDS
    values = {"doc": doc_num, "first": first, "end": end, "limit": limit, "offset": offset}
    return select_rows(connection, query, **values).scalars()


def _load_shown(connection: Connection, doc_num: int, key: bytes) -> bytes | None:
    best: tuple[OrderKey, bytes] | None = None
    seen: set[tuple[CommitId, bytes]] = set()
    offset = 0
    while True:
        rows = select_rows(connection, _OF_ITEM, doc=doc_num, key=key, limit=_LOOKED_MAX, offset=offset)
        found = list(rows)
        for depth, passed, rank, commit_id, name, position in found:
            place: OrderKey = (depth, passed, rank, commit_id)
            if best is not None and place <= best[0]:  # none before it counts at a later place
                return best[1]
            if (name, position) not in seen:
                seen.add((name, position))
                at = (_first_place(connection, doc_num, key, name, position) or place, position)
                best = at if best is None else max(best, at)
        if len(found) < _LOOKED_MAX:
            return None if best is None else best[1]
        offset += len(found)


def _first_place(
    connection: Connection, doc_num: int, key: bytes, name: CommitId, position: bytes
) -> OrderKey | None:
    """Return the first place of an operation that was carried; None where it was not."""
    if select_rows(connection, _SOURCE, doc=doc_num, name=name).first() is None:
        return None
    query = select_rows(connection, _FIRST_COPY, doc=doc_num, key=key, name=name, position=position)
    depth, passed, rank, commit_id = next(iter(query))
    return depth, passed, rank, commit_id
