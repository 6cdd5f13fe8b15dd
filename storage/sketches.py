"""What is kept of each topic to compare it with others at a cost that does not follow its length: digest and symbols.

Both follow from the set of the topic's commits, which only grows, and are brought up to date when they are asked for:
commits since then are added, so taking in commits costs nothing more. They are written now and then, with the number of
the last commit that they contain; what came after it is added again when they are read.
"""

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, delete, insert, select

from protocol.hashing import symbol_key
from protocol.riblt import Prefix, prefix_length
from protocol.set_digest import SetDigest
from storage.database import Database
from storage.schema import sketches
from storage.topic_sets import TopicSet, iterate_ids

_WRITTEN_AFTER: Final = 20_000
"""Commits that are added before a sketch is written again: a fifth of a second of adding, for 1.5 MB of writing."""
_KEPT_MAX: Final = 1024
"""Sketches in memory: of small topics 10 KB each, of the largest 5 MB."""


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

    def digest(self, connection: Connection, kept: TopicSet) -> bytes:
        """The set digest of a topic (`set_digest`), of all that `connection` sees of it."""
        with self._lock:
            return self._current(connection, kept).digest.digest()

    def symbols(self, connection: Connection, kept: TopicSet) -> tuple[int, ...]:
        """Its symbols (`riblt`), as they are now."""
        with self._lock:
            return self._current(connection, kept).prefix.symbols()

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
                    old = (sketches.c.topic == topic) & (sketches.c.place == place)
                    connection.execute(delete(sketches).where(old))
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

    def _current(self, connection: Connection, kept: TopicSet) -> _Sketch:
        name = (kept.topic, kept.place)
        sketch = self._kept.get(name)
        if sketch is None:
            sketch = self._kept[name] = _load(connection, *name)
            if len(self._kept) > _KEPT_MAX:
                self._kept.popitem(last=False)
        self._kept.move_to_end(name)
        for last, ids in iterate_ids(connection, kept, sketch.upto):
            sketch.digest.add(ids)
            sketch.prefix.add(ids)
            sketch.upto = last
        length = prefix_length(sketch.prefix.id_count)
        if length > len(sketch.prefix):
            everything = (raw for _, ids in iterate_ids(connection, kept) for raw in ids)
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
