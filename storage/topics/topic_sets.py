"""The id set that peers compare for a topic: commit ids, or publication ids if one side is a relay.

A commit's id does not say how its key is sealed, nor whether its body is there. A relay cannot see either, so a bad
publication of a commit must not pass for the commit: there the two sides compare what they hold by publications, whose
ids say all of it. What a node keeps of a commit that it accepted is one publication, whose id is made when it is needed.
"""

from array import array
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Select, bindparam, func, select

from protocol.formats.publication import PUBLICATION_ID_COMMIT_SIZE
from protocol.ids import ItemId, ShortId, TopicKey
from storage.engine.bulk import select_in, select_rows
from storage.engine.id_keys import BLOCK_NUM_SIZE, LOOKUP_COUNT_MAX, chunks, id_keys
from storage.repos.epochs import Topic
from storage.schema.relay_schema import relay_bare, relay_commits
from storage.schema.schema import damaged_commits
from storage.topics.difference import TopicTables, starts_on
from storage.topics.publishing import NEEDED, name_publications

_READ_AT_ONCE: Final = 10_000
NUMBER_MAX: Final = 2**63 - 1
"""Above every number of a row."""
_BLOCKS_READ_AT_ONCE: Final = 64
"""Commits whose blocks are read together: 37 MB at most."""


@dataclass(frozen=True, slots=True)
class TopicSet:
    """Topic of this node as a set: in which tables, under which number, and whether of publications or of commits."""

    tables: TopicTables
    num: int
    topic: TopicKey
    of_publications: bool = False
    opened: Topic | None = field(default=None, compare=False, repr=False)
    """Topic with its keys, where publications are made when they are needed."""

    @property
    def place(self) -> str:
        """Return the unique name of the set. A topic that is forgotten and kept again is another set."""
        name = f"{self.tables.name} {self.num}"
        return f"{name} publications" if self.of_publications else name


def iterate_ids(
    connection: Connection, kept: TopicSet, after: int = 0, upto: int | None = None
) -> Iterator[tuple[int, list[ItemId]]]:
    """Yield ids with numbers above `after` in order, some at a time with the last one's number. Costs O(those)."""
    size = _read_at_once(kept)
    last = NUMBER_MAX if upto is None else upto
    # A query for each part: most often there are few, and to open a cursor would cost more.
    while rows := _load_part(connection, kept, after, last, size):
        after = rows[-1][0]
        yield after, _ids(connection, kept, rows)
        if len(rows) < size:
            return


def _load_part(connection: Connection, kept: TopicSet, after: int, upto: int, many: int) -> list[Any]:
    """Load rows of `_select` with numbers above `after` and not above `upto`, in order, the first so many."""
    bounds = {"topic": kept.num, "after": after, "upto": upto, "many": many}
    query = _part(kept.tables, of_publications=kept.of_publications, is_of_inits=False)
    rows: list[Any] = list(select_rows(connection, query, **bounds))
    if kept.tables.has_inits:
        inits = _part(kept.tables, of_publications=kept.of_publications, is_of_inits=True)
        rows = sorted([*select_rows(connection, inits, **bounds), *rows], key=lambda row: row[0])[:many]
    return rows


def count_ids(connection: Connection, kept: TopicSet, after: int, upto: int) -> int:
    """Count those with numbers above `after` and up to `upto`; damaged ones too. Costs O(those)."""
    columns = kept.tables.commits.c
    is_on = kept.tables.is_on()
    if kept.tables.has_inits:
        is_on |= starts_on(columns.num)
    query = select(func.count()).where(is_on, columns.num > after, columns.num <= upto)
    return int(connection.execute(query, {"topic": kept.num}).scalar_one())


def first_ids(connection: Connection, kept: TopicSet, count: int) -> list[tuple[int, ItemId]]:
    """Load the numbers and ids of this many first members."""
    rows = _load_part(connection, kept, 0, NUMBER_MAX, count)
    return [(row[0], raw) for row, raw in zip(rows, _ids(connection, kept, rows), strict=True)]


def has_later(connection: Connection, kept: TopicSet, after: int) -> bool:
    """Return True if there is any with a number above `after`. Costs O(1)."""
    return bool(_load_part(connection, kept, after, NUMBER_MAX, 1))


def find_by_short_ids(
    connection: Connection, kept: TopicSet, short_ids: Sequence[ShortId]
) -> dict[ShortId, int]:
    """Map short ids (the first 16 bytes of ids, or whole ids) to numbers of members of the set. Costs O(ids)."""
    wanted = set(short_ids)
    size = max(map(len, wanted), default=0)
    found: dict[ShortId, int] = {}
    for part in chunks(list(wanted), min(LOOKUP_COUNT_MAX, _read_at_once(kept))):
        rows = _find_rows(connection, kept, part)
        for row, raw in zip(rows, _ids(connection, kept, rows), strict=True):
            short_id = ShortId(raw[:size])
            if short_id in wanted:
                found[short_id] = row[0]
    return found


def find_whole(connection: Connection, kept: TopicSet, ids: Sequence[ItemId]) -> list[int]:
    """Find the numbers of those in the set that are here with their bodies, in order. Costs O(ids)."""
    wanted = set(ids)
    found: list[int] = []
    for part in chunks(list(wanted), min(LOOKUP_COUNT_MAX, _read_at_once(kept))):
        rows = _find_rows(connection, kept, part, is_whole=True)
        own = _ids(connection, kept, rows)
        found += [row[0] for row, raw in zip(rows, own, strict=True) if raw in wanted]
    return sorted(found)


def load_ids(connection: Connection, kept: TopicSet, nums: Sequence[int]) -> list[ItemId]:
    """Load the ids of those in the set with these numbers, without damaged ones, in no order. Costs O(nums)."""
    found: list[ItemId] = []
    for part in chunks(nums, min(LOOKUP_COUNT_MAX, _read_at_once(kept))):
        query = _numbered(kept.tables, of_publications=kept.of_publications)
        found += _ids(connection, kept, [*select_in(connection, query, part)])
    return found


def load_set(connection: Connection, kept: TopicSet) -> tuple["array[int]", list[ItemId]]:
    """Load numbers and ids of all, causes before effects. Costs O(commits of the topic)."""
    nums, ids, after = array("q"), list[ItemId](), 0
    while rows := _load_part(connection, kept, after, NUMBER_MAX, _read_at_once(kept)):
        after = rows[-1][0]
        nums.extend(row[0] for row in rows)
        ids += _ids(connection, kept, rows)
    return nums, ids


def _find_rows(
    connection: Connection, kept: TopicSet, ids: Sequence[ItemId | ShortId], *, is_whole: bool = False
) -> list[Any]:
    """Find rows of `_select` of a topic that have the keys of these ids, or prefixes of 16 bytes; or only the `is_whole`."""
    query = _keyed(kept.tables, of_publications=kept.of_publications, is_whole=is_whole)
    if kept.of_publications and kept.tables.has_variants:
        return list(connection.execute(query, {"topic": kept.num, **publication_keys(ids)}))
    return list(select_in(connection, query, id_keys(ids), topic=kept.num))


@cache
def _keyed(tables: TopicTables, *, of_publications: bool, is_whole: bool) -> "Select[Any]":
    """Build the query of `_find_rows`.

    Built for each look, with its keys in it, it would wait for Python's collector, which counts objects and not bytes.
    """
    query, columns = _select(TopicSet(tables, 0, TopicKey(b""), of_publications)), tables.commits.c
    if of_publications and tables.has_variants:
        query = query.where(HAS_PUBLICATION_KEYS, _is_on(tables))
    else:
        query = query.where(columns.id_key.in_(bindparam("keys", expanding=True)), _is_on(tables))
    if not is_whole:
        return query
    if tables.has_variants:
        is_bare = (relay_bare.c.topic_num == columns.topic_num) & (relay_bare.c.commit_num == columns.num)
        return query.where(~select(relay_bare.c.commit_num).where(is_bare).exists())
    # Before blocks are read: what was erased is asked for most often.
    return query.where(func.length(columns.block_nums) > BLOCK_NUM_SIZE)


@cache
def _numbered(tables: TopicTables, *, of_publications: bool) -> "Select[Any]":
    """Build the query of `load_ids`, once as that of `_find_rows`."""
    query = _select(TopicSet(tables, 0, TopicKey(b""), of_publications))
    return query.where(tables.commits.c.num.in_(bindparam("keys", expanding=True)))


HAS_PUBLICATION_KEYS: Final = (
    relay_commits.c.id_key.in_(bindparam("keys", expanding=True)) & ~relay_commits.c.is_variant
) | (relay_commits.c.publication_key.in_(bindparam("rests", expanding=True)) & relay_commits.c.is_variant)
"""Condition that a row of a relay has the `publication_keys` of one of some publications.

Most publications are their commit's only one, so they are found by the commit's key alone. Variants of one commit have a
key of their own: there may be many.
"""


def publication_keys(ids: Collection[ItemId | ShortId]) -> dict[str, tuple[int, ...]]:
    """Return the parameters of HAS_PUBLICATION_KEYS for the ids of publications, or prefixes of 16 bytes."""
    return {"keys": id_keys(ids), "rests": id_keys([raw[PUBLICATION_ID_COMMIT_SIZE:] for raw in ids])}


def _read_at_once(kept: TopicSet) -> int:
    return _BLOCKS_READ_AT_ONCE if _is_made_anew(kept) else _READ_AT_ONCE


def _is_made_anew(kept: TopicSet) -> bool:
    return kept.of_publications and not kept.tables.has_variants


def _is_on(tables: TopicTables) -> "ColumnElement[bool]":
    """Return the condition that a row that keys have found is of a `topic`."""
    is_on = tables.is_on(beside=True)
    return is_on | starts_on(tables.commits.c.num) if tables.has_inits else is_on


@cache
def _part(tables: TopicTables, *, of_publications: bool, is_of_inits: bool) -> "Select[Any]":
    """Build the query for a part of the set: `_select` between `after` and `upto`, in order, the first so `many`."""
    num = tables.commits.c.num
    query = _select(TopicSet(tables, 0, TopicKey(b""), of_publications))
    query = query.where(starts_on(tables.commits.c.num) if is_of_inits else tables.is_on())
    query = query.where(num > bindparam("after"), num <= bindparam("upto"))
    return query.order_by(num).limit(bindparam("many"))


def _select(kept: TopicSet) -> "Select[Any]":
    """Build the query for numbers and what `_ids` needs."""
    columns = kept.tables.commits.c
    if _is_made_anew(kept):
        # Of what is damaged nobody can say here what its publication was: it counts as not here.
        is_damaged_here = select(damaged_commits.c.commit_num).where(
            damaged_commits.c.commit_num == columns.num
        )
        return select(columns.num, *NEEDED).where(~is_damaged_here.exists())
    return select(columns.num, columns.publication_id if kept.of_publications else columns.commit_id)


def _ids(connection: Connection, kept: TopicSet, rows: Sequence[Any]) -> list[ItemId]:
    if not _is_made_anew(kept):
        return [row[1] for row in rows]
    assert kept.opened is not None, "it is opened where sets of publications are compared"
    return list(name_publications(connection, kept.opened, rows))
