"""The id set that peers compare for a topic: commit ids, or publication ids if one side is a relay.

A commit's id does not say how its key is sealed, nor whether its body is there. A relay cannot see either, so a bad
publication of a commit must not pass for the commit: there the two sides compare what they hold by publications, whose
ids say all of it. What a node keeps of a commit that it accepted is one publication, whose id is made when it is needed.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from sqlalchemy import Column, Connection, Select, bindparam, func, select

from protocol.ids import ItemId, ShortId, TopicKey
from protocol.publication import PUBLICATION_ID_COMMIT_SIZE, publication_id
from storage.commits.absent_bodies import load_body_ids
from storage.commits.blocks import read_blocks
from storage.engine.bulk import beside_keys, select_rows
from storage.engine.id_keys import BLOCK_NUM_SIZE, LOOKUP_COUNT_MAX, chunks, id_key, unpack_nums
from storage.engine.streaming import stream_parts
from storage.schema.relay_schema import relay_bare
from storage.schema.schema import damaged_commits
from storage.topics.difference import TopicTables

_READ_AT_ONCE: Final = 10_000
NUMBER_MAX: Final = 2**63 - 1
"""Above every number of a row."""
_BLOCKS_READ_AT_ONCE: Final = 64
"""Commits whose blocks are read together: 37 MB at most."""


@dataclass(frozen=True, slots=True)
class TopicSet:
    """A topic of this node as a set: in which tables, under which number, and whether of publications or of commits."""

    tables: TopicTables
    num: int
    topic: TopicKey
    of_publications: bool = False

    @property
    def place(self) -> str:
        """What no other set is called. A topic that was forgotten and is kept again is another: nothing of it is here."""
        name = f"{self.tables.topics.name} {self.num}"
        return f"{name} publications" if self.of_publications else name


def iterate_ids(
    connection: Connection, kept: TopicSet, after: int = 0, upto: int | None = None
) -> Iterator[tuple[int, list[ItemId]]]:
    """The ids of what has a number above `after`, in the order of numbers, some at a time with the last one's number."""
    size = _read_at_once(kept)
    query = _part(kept.tables, of_publications=kept.of_publications)
    last = NUMBER_MAX if upto is None else upto
    # A query for each part: most often there are few, and to open a cursor would cost more.
    while rows := list(select_rows(connection, query, topic=kept.num, after=after, upto=last, many=size)):
        after = rows[-1][0]
        yield after, _ids(connection, kept, rows)
        if len(rows) < size:
            return


def count_ids(connection: Connection, kept: TopicSet, after: int, upto: int) -> int:
    """How many have numbers above `after`, up to `upto`; about, as damaged ones are counted too."""
    columns = kept.tables.commits.c
    query = select(func.count()).where(
        columns.topic_num == kept.num, columns.num > after, columns.num <= upto
    )
    return int(connection.execute(query).scalar_one())


def first_ids(connection: Connection, kept: TopicSet, count: int) -> list[tuple[int, ItemId]]:
    """Numbers and ids of the first so many."""
    query = _part(kept.tables, of_publications=kept.of_publications)
    rows = list(select_rows(connection, query, topic=kept.num, after=0, upto=NUMBER_MAX, many=count))
    return [(row[0], raw) for row, raw in zip(rows, _ids(connection, kept, rows), strict=True)]


def has_later(connection: Connection, kept: TopicSet, after: int) -> bool:
    """Whether there is any with a number above `after`."""
    query = _part(kept.tables, of_publications=kept.of_publications)
    found = select_rows(connection, query, topic=kept.num, after=after, upto=NUMBER_MAX, many=1)
    return found.first() is not None


def find_by_short_ids(
    connection: Connection, kept: TopicSet, short_ids: Sequence[ShortId]
) -> dict[ShortId, int]:
    """Numbers of those that are in the set, by the first bytes of their ids (16, or all)."""
    wanted = set(short_ids)
    size = max(map(len, wanted), default=0)
    columns = kept.tables.commits.c
    by_key, keys = _keys(kept, wanted)
    found: dict[ShortId, int] = {}
    of_topic = beside_keys(columns.topic_num) == kept.num
    for part in chunks(keys, min(LOOKUP_COUNT_MAX, _read_at_once(kept))):
        rows = connection.execute(_select(kept).where(by_key.in_(part), of_topic)).all()
        for row, raw in zip(rows, _ids(connection, kept, rows), strict=True):
            short_id = ShortId(raw[:size])
            if short_id in wanted:
                found[short_id] = row[0]
    return found


def find_whole(connection: Connection, kept: TopicSet, ids: Sequence[ItemId]) -> list[int]:
    """Numbers of those of the set that have these ids and are here with their bodies, in order."""
    wanted = set(ids)
    columns = kept.tables.commits.c
    by_key, keys = _keys(kept, wanted)
    if kept.tables.has_variants:
        is_bare = (relay_bare.c.topic_num == columns.topic_num) & (relay_bare.c.commit_num == columns.num)
        is_whole = ~select(relay_bare.c.commit_num).where(is_bare).exists()
    else:  # before blocks are read: what was erased is asked for most often
        is_whole = func.length(columns.block_nums) > BLOCK_NUM_SIZE
    found: list[int] = []
    for part in chunks(keys, min(LOOKUP_COUNT_MAX, _read_at_once(kept))):
        here = by_key.in_(part) & (beside_keys(columns.topic_num) == kept.num)
        rows = connection.execute(_select(kept).where(here, is_whole)).all()
        own = _ids(connection, kept, rows)
        found += [row[0] for row, raw in zip(rows, own, strict=True) if raw in wanted]
    return sorted(found)


def load_ids(connection: Connection, kept: TopicSet, nums: Sequence[int]) -> list[ItemId]:
    """Ids of those of the set that have these numbers and are not damaged, in no order."""
    found: list[ItemId] = []
    for part in chunks(nums, min(LOOKUP_COUNT_MAX, _read_at_once(kept))):
        rows = connection.execute(_select(kept).where(kept.tables.commits.c.num.in_(part))).all()
        found += _ids(connection, kept, rows)
    return found


def load_set(connection: Connection, kept: TopicSet) -> tuple["array[int]", list[ItemId]]:
    """Numbers and ids of all, causes before effects."""
    columns = kept.tables.commits.c
    query = _select(kept).where(columns.topic_num == kept.num).order_by(columns.num)
    nums, ids = array("q"), list[ItemId]()
    for rows in stream_parts(connection, query, _read_at_once(kept)):
        nums.extend(row[0] for row in rows)
        ids += _ids(connection, kept, rows)
    return nums, ids


def _keys(kept: TopicSet, ids: Iterable[bytes]) -> "tuple[Column[int], list[int]]":
    """The column that finds these ids, or what they begin with, and what stands in it."""
    columns = kept.tables.commits.c
    if kept.of_publications and kept.tables.has_variants:  # many may be of one commit
        return columns.publication_key, [id_key(raw[PUBLICATION_ID_COMMIT_SIZE:]) for raw in ids]
    return columns.id_key, [id_key(raw) for raw in ids]


def _read_at_once(kept: TopicSet) -> int:
    return _BLOCKS_READ_AT_ONCE if _is_made_anew(kept) else _READ_AT_ONCE


def _is_made_anew(kept: TopicSet) -> bool:
    return kept.of_publications and not kept.tables.has_variants


@cache
def _part(tables: TopicTables, *, of_publications: bool) -> "Select[Any]":
    """What `_select` gives of a `topic` with numbers above `after` and not above `upto`, in order, the first so `many`."""
    num = tables.commits.c.num
    query = _select(TopicSet(tables, 0, TopicKey(b""), of_publications))
    query = query.where(tables.commits.c.topic_num == bindparam("topic"))
    query = query.where(num > bindparam("after"), num <= bindparam("upto"))
    return query.order_by(num).limit(bindparam("many"))


def _select(kept: TopicSet) -> "Select[Any]":
    """A number, and what `_ids` needs."""
    columns = kept.tables.commits.c
    if _is_made_anew(kept):
        # Of what is damaged nobody can say here what its publication was: it counts as not here.
        is_damaged_here = select(damaged_commits.c.commit_num).where(
            damaged_commits.c.commit_num == columns.num
        )
        return select(columns.num, columns.sealed_key, columns.block_nums).where(~is_damaged_here.exists())
    return select(columns.num, columns.publication_id if kept.of_publications else columns.commit_id)


def _ids(connection: Connection, kept: TopicSet, rows: Sequence[Any]) -> list[ItemId]:
    if not _is_made_anew(kept):
        return [row[1] for row in rows]
    nums = [unpack_nums(row[2]) for row in rows]
    blocks = read_blocks(connection, {num: None for block_nums in nums for num in block_nums})
    erased = load_body_ids(connection, [row[0] for row, own in zip(rows, nums, strict=True) if len(own) == 1])
    return [
        publication_id(kept.topic, row[1], tuple(blocks[num] for num in block_nums), erased.get(row[0]))
        for row, block_nums in zip(rows, nums, strict=True)
    ]
