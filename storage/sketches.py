"""What is kept of each topic to compare it with others at a cost that does not follow its length: digest and symbols.

Both follow from the set of the topic's commits, which only grows, and are brought up to date when they are asked for:
commits since then are added, so taking in commits costs nothing more. They are written now and then, with the number of
the last commit that they contain; what came after it is added again when they are read.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, delete, insert, select

from protocol.hashing import symbol_key
from protocol.riblt import Prefix, prefix_length
from protocol.set_digest import SetDigest
from storage.database import Database
from storage.difference import TopicTables
from storage.schema import sketches

_WRITTEN_AFTER: Final = 20_000
"""Commits that are added before a sketch is written again: a fifth of a second of adding, for 1.5 MB of writing."""
_KEPT_MAX: Final = 1024
"""Sketches in memory: of small topics 10 KB each, of the largest 5 MB."""
_READ_AT_ONCE: Final = 10_000


@dataclass(slots=True)
class _Sketch:
    upto: int
    digest: SetDigest
    prefix: Prefix
    written: int  # commits in it when it was last written


class Sketches:
    """Sketches of the topics of a store. Thread-safe."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[bytes, str], _Sketch] = OrderedDict()

    def digest(self, connection: Connection, tables: TopicTables, num: int, topic: bytes) -> bytes:
        """The set digest of a topic (`set_digest`), of all that `connection` sees of it."""
        with self._lock:
            return self._current(connection, tables, num, topic).digest.digest()

    def symbols(self, connection: Connection, tables: TopicTables, num: int, topic: bytes) -> tuple[int, ...]:
        """Its symbols (`riblt`), as they are now."""
        with self._lock:
            return self._current(connection, tables, num, topic).prefix.symbols()

    def write(self) -> None:
        """Write those that have grown enough since they were read. Raises StorageError."""
        with self._lock:
            grown = [
                (topic, place, sketch)
                for (topic, place), sketch in self._kept.items()
                if sketch.prefix.id_count - sketch.written >= _WRITTEN_AFTER
            ]
            if not grown:
                return
            with self._database.write() as connection:
                for topic, place, sketch in grown:
                    connection.execute(delete(sketches).where(sketches.c.topic == topic))
                    values = {
                        "topic": topic,
                        "place": place,
                        "upto": sketch.upto,
                        "digest": sketch.digest.to_bytes(),
                        "prefix": sketch.prefix.to_bytes(),
                    }
                    connection.execute(insert(sketches).values(values))
            for _, _, sketch in grown:
                sketch.written = sketch.prefix.id_count

    def _current(self, connection: Connection, tables: TopicTables, num: int, topic: bytes) -> _Sketch:
        # A topic that was forgotten and is kept again is another row: nothing of it is here.
        place = f"{tables.topics.name} {num}"
        sketch = self._kept.get((topic, place))
        if sketch is None:
            sketch = self._kept[topic, place] = _load(connection, topic, place)
            if len(self._kept) > _KEPT_MAX:
                self._kept.popitem(last=False)
        self._kept.move_to_end((topic, place))
        for last, ids in _iterate(connection, tables, num, sketch.upto):
            sketch.digest.add(ids)
            sketch.prefix.add(ids)
            sketch.upto = last
        length = prefix_length(sketch.prefix.id_count)
        if length > len(sketch.prefix):
            everything = (raw for _, ids in _iterate(connection, tables, num, 0) for raw in ids)
            sketch.prefix.lengthen(length, everything)
        return sketch


def _load(connection: Connection, topic: bytes, place: str) -> _Sketch:
    key = symbol_key(topic)
    query = select(sketches).where(sketches.c.topic == topic, sketches.c.place == place)
    row = connection.execute(query).first()
    if row is None:
        return _Sketch(0, SetDigest(), Prefix(key, prefix_length(0)), 0)
    prefix = Prefix.from_bytes(key, row.prefix)
    return _Sketch(row.upto, SetDigest.from_bytes(row.digest), prefix, prefix.id_count)


def _iterate(
    connection: Connection, tables: TopicTables, topic_num: int, after: int
) -> Iterator[tuple[int, list[bytes]]]:
    """Commit ids of a topic above a number, some at a time, with the last one's number."""
    columns = tables.commits.c
    query = (
        select(columns.num, columns.commit_id)
        .where(columns.topic_num == topic_num, columns.num > after)
        .order_by(columns.num)
    )
    for rows in connection.execute(query).partitions(_READ_AT_ONCE):
        yield rows[-1][0], [row[1] for row in rows]
