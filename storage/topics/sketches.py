"""Stored comparison data per topic (set digest and coded symbols), so that comparing does not read all ids.

Both follow from the set of the topic's commits, which only grows, and are brought up to date when they are asked for:
commits since then are added, so taking in commits costs nothing more. Each comparison asks for the digest; for symbols,
which cost twice as much, only one where both sides have what the other lacks. They are written now and then, each with the
number of the last commit that it contains; what came after it is added again when they are read.
"""

import threading
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, bindparam, delete, insert, select

from protocol.crypto.hashing import symbol_key
from protocol.ids import Digest, TopicKey
from protocol.session.reconciliation.riblt import Prefix, prefix_length
from protocol.session.reconciliation.set_digest import SetDigest
from storage.engine.bulk import select_rows
from storage.engine.database import Database
from storage.schema.schema import sketches
from storage.topics.topic_sets import TopicSet, count_ids, first_ids, has_later, iterate_ids

_WRITTEN_AFTER: Final = 20_000
"""Commits that are added before a sketch is written again: a fifth of a second of adding, for 1.5 MB of writing."""
_WRITTEN_FIRST: Final = 1000
"""Commits up to which a sketch is written again when it has doubled: a start then adds half at most."""
_WRITTEN_LEAVING: Final = 100
"""New commits from which a sketch is written when it leaves memory: else they are added again at each return, 10 us
each."""
_KEPT_SIZE_MAX: Final = 128 << 20
"""Bytes of sketches in memory, about: 11,000 topics of some hundred commits, or 25 of the largest."""
_SMALL_COUNT: Final = 32
"""Commits of a topic up to which its digest alone is kept: what is made of so few is sooner made than remembered."""
_SMALL_SIZE: Final = 400
"""Bytes of a small sketch in memory, about."""
_SKETCH_SIZE: Final = 10_000
_WRITTEN = select(sketches.c.upto, sketches.c.digest, sketches.c.prefix, sketches.c.prefix_upto).where(
    sketches.c.topic == bindparam("topic"), sketches.c.place == bindparam("place")
)
_SYMBOL_SIZE: Final = 80
"""Bytes of one in memory, and of each of its symbols beside (measured)."""


@dataclass(frozen=True, slots=True)
class _Small:
    """Digest of a topic of few commits. A node may follow ten thousand such."""

    upto: int
    digest: Digest


@dataclass(slots=True)
class _Sketch:
    kept: TopicSet
    digest: SetDigest
    upto: int  # number of the last commit in the digest
    prefix: Prefix
    prefix_upto: int
    written: int  # commits in it when it was last written, at least so many
    grown: int = 0  # commits added since then: to the digest or to the symbols, whichever are more

    @property
    def size(self) -> int:
        """Return the bytes in memory, about."""
        return _SKETCH_SIZE + _SYMBOL_SIZE * len(self.prefix)

    @property
    def is_due(self) -> bool:
        """Return True if it has grown enough to be written while it stays in memory."""
        return self.grown >= min(_WRITTEN_AFTER, max(_WRITTEN_FIRST, self.written))

    def update_digest(self, connection: Connection) -> None:
        """Add what came since to the digest."""
        for last, ids in iterate_ids(connection, self.kept, self.upto):
            self.digest.add(ids)
            self.grown += len(ids)
            self.upto = last

    def update_prefix(self, connection: Connection) -> None:
        """Add what came up to where the digest is to the symbols; or all, where there shall be more symbols."""
        if self.prefix_upto == self.upto:
            return
        new = count_ids(connection, self.kept, self.prefix_upto, self.upto)
        length = prefix_length(self.prefix.id_count + new)
        if length > len(self.prefix):
            self.prefix, self.prefix_upto = Prefix(symbol_key(self.kept.topic), length), 0
        before = self.prefix.id_count
        for last, ids in iterate_ids(connection, self.kept, self.prefix_upto, self.upto):
            self.prefix.add(ids)
            self.prefix_upto = last  # not `upto`: an older snapshot does not show all up to there
        self.grown = max(self.grown, self.prefix.id_count - before)


class Sketches:
    """Sketches of a store's topics: recently used ones in memory, others as they were written. Thread-safe."""

    def __init__(self, database: Database, size_max: int = _KEPT_SIZE_MAX) -> None:
        """Keep about `size_max` bytes in memory, one sketch at least."""
        self._database = database
        self._size_max = size_max
        self._lock = threading.Lock()
        self._kept: OrderedDict[TopicSet, _Sketch] = OrderedDict()
        self._size = 0
        self._small: OrderedDict[TopicSet, _Small] = OrderedDict()
        self._due: set[TopicSet] = set()
        """Sketches in memory that have grown enough to be written. A store has far too many to look at each for that."""
        self._leaving: dict[TopicSet, _Sketch] = {}
        """Sketches that have left memory and are soon written."""
        self._forgotten = 0  # how often, changed inside transactions only

    def digest(self, connection: Connection, kept: TopicSet) -> Digest:
        """Return a topic's set digest (`set_digest`) of all that `connection` sees. Costs O(commits since last asked)."""
        with self._lock:
            small = self._find_small(connection, kept)
            return small.digest if small is not None else self._current(connection, kept).digest.digest()

    def symbols(self, connection: Connection, kept: TopicSet) -> tuple[int, ...]:
        """Return a topic's symbols (`riblt`), up to date. Costs O(commits since last asked)."""
        with self._lock:
            return self._current(connection, kept, with_symbols=True).prefix.symbols()

    def has_due(self) -> bool:
        """Return True if `write` has anything to write. Takes no lock: the next look sees what comes meanwhile."""
        return bool(self._due or self._leaving)

    def write(self) -> None:
        """Write sketches that have grown enough, or left memory. Costs O(those). Raises StorageError.

        The lock is not held while another writer is waited for: who compares topics meanwhile would wait too.
        """
        with self._lock:
            grown = [self._kept[kept] for kept in self._due]
            grown += self._leaving.values()
            rows = [_row_of(sketch) for sketch in grown]
            counts = [sketch.grown for sketch in grown]
            forgotten = self._forgotten
        if not grown:
            return
        with self._database.write() as connection:
            if self._forgotten != forgotten:
                return  # one of these may be of a set that is another one now; they are written next time
            for sketch, row in zip(grown, rows, strict=True):
                _write(connection, sketch.kept, row)
        with self._lock:
            for sketch, count in zip(grown, counts, strict=True):
                sketch.written += count
                sketch.grown -= count
                if not sketch.is_due:
                    self._due.discard(sketch.kept)
                if self._leaving.get(sketch.kept) is sketch:
                    del self._leaving[sketch.kept]

    def forget(self, topic: TopicKey) -> None:
        """Forget a topic's sketches, since its set is another one; they are made again. Raises StorageError."""
        with self._database.write() as connection:
            self.drop({topic})
            connection.execute(delete(sketches).where(sketches.c.topic == topic))

    def drop(self, topics: Collection[TopicKey]) -> None:
        """Forget topics' sketches in memory, inside the transaction that forgets those in the store.

        Costs O(sketches in memory).
        """
        if not topics:
            return
        with self._lock:
            self._forgotten += 1
            for kept in [one for one in self._kept if one.topic in topics]:
                self._size -= self._kept.pop(kept).size
                self._due.discard(kept)
            for kept in [one for one in self._leaving if one.topic in topics]:
                del self._leaving[kept]
            for kept in [one for one in self._small if one.topic in topics]:
                del self._small[kept]

    def _find_small(self, connection: Connection, kept: TopicSet) -> _Small | None:
        """Return the digest of a topic of few commits, up to date; None of others."""
        if kept in self._kept or kept in self._leaving:
            return None
        known = self._small.pop(kept, None)
        if known is None or has_later(connection, kept, known.upto):
            found = first_ids(connection, kept, _SMALL_COUNT + 1)
            if len(found) > _SMALL_COUNT:
                return None
            digest = SetDigest()
            digest.add(raw for _, raw in found)
            known = _Small(found[-1][0] if found else 0, digest.digest())
        self._small[kept] = known
        while len(self._small) * _SMALL_SIZE > self._size_max:
            self._small.popitem(last=False)
        return known

    def _current(self, connection: Connection, kept: TopicSet, *, with_symbols: bool = False) -> _Sketch:
        sketch = self._kept.pop(kept, None)
        if sketch is None:
            sketch = self._leaving.pop(kept, None) or _load(connection, kept)
        else:
            self._size -= sketch.size
        sketch.update_digest(connection)
        if with_symbols:
            sketch.update_prefix(connection)
        self._kept[kept] = sketch
        self._size += sketch.size
        if sketch.is_due:
            self._due.add(kept)
        self._make_room()
        return sketch

    def _make_room(self) -> None:
        """Let go of the least recently used, never of the one in use."""
        while self._size > self._size_max and len(self._kept) > 1:
            leaving, sketch = self._kept.popitem(last=False)
            self._size -= sketch.size
            self._due.discard(leaving)
            if sketch.grown >= _WRITTEN_LEAVING:
                self._leaving[leaving] = sketch


def _row_of(sketch: _Sketch) -> dict[str, object]:
    return {
        "topic": sketch.kept.topic,
        "place": sketch.kept.place,
        "upto": sketch.upto,
        "digest": sketch.digest.to_bytes(),
        "prefix": sketch.prefix.to_bytes(),
        "prefix_upto": sketch.prefix_upto,
    }


def _write(connection: Connection, kept: TopicSet, row: dict[str, object]) -> None:
    here = (sketches.c.topic == kept.topic) & (sketches.c.place == kept.place)
    connection.execute(delete(sketches).where(here))
    of_topics = kept.tables.topics.c
    followed = select(of_topics.num).where(of_topics.num == kept.num, of_topics.topic == kept.topic)
    if connection.execute(followed).first() is not None:  # else it was forgotten meanwhile
        connection.execute(insert(sketches).values(row))


def _load(connection: Connection, kept: TopicSet) -> _Sketch:
    key = symbol_key(kept.topic)
    row = select_rows(connection, _WRITTEN, topic=kept.topic, place=kept.place).first()
    if row is None:
        return _Sketch(kept, SetDigest(), 0, Prefix(key, prefix_length(0)), 0, 0)
    upto, digest, encoded, prefix_upto = row
    prefix = Prefix.from_bytes(key, encoded)
    return _Sketch(kept, SetDigest.from_bytes(digest), upto, prefix, prefix_upto, prefix.id_count)
