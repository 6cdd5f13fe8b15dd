"""Deletes blocks that no commit and no file needs: single rows, and packs in which nothing is needed.

A pack of which a quarter or more is not needed is written anew without that (`pack_moves`), and many small ones become few.
All goes in steps, each a short transaction, so that `ravel gc` and a daemon (`node.care.freeing`) have the same way, and one
that is killed goes on later.

**Beside a daemon** others write while a collection is under way. So it takes no more than blocks of posts and files whose
content was given up, and rows that one commit alone can name; nothing while a block is damaged, which may hide others.
Before each deletion, in its transaction, it looks what has come to need a block since the marks were made:

- files that were added are marked too, and what blocks name that have come: who fetches a file leaves out what is here;
- a file of those that is given up no more ends the collection, and so does damage;
- rows that writes named once more stay (`Database.reused_rows`);
- nothing that an open draft was told to be here goes (`Packs.hold_drafts`).
"""

import shutil
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from sqlalchemy import Connection, Table, delete, func, select

from protocol.formats.block import LEAF_START_SIZE, has_children
from protocol.ids import ObjectId
from storage.blobs.files import IS_SPARED
from storage.blobs.pack_moves import DamagedPack, mark_pack, move_blocks, remove_packs
from storage.blobs.packs import Packs
from storage.blobs.reachability import ReachedRows, Walk, mark_reached, nothing_reached
from storage.commits.damaged import DamagedCount, count_damaged
from storage.engine.database import Database, read_store
from storage.engine.id_keys import chunks, id_key
from storage.engine.queries import stream_parts, stream_rows
from storage.engine.store_identity import PACKS_NAME
from storage.schema.schema import blocks, erasures, files, pack_blocks, packs, spared_files

_BATCH: Final = 1000
_STEP_SIZE: Final = 32 << 20
"""Bytes that one step moves or deletes: a second on a slow disk."""
_STEP_ROWS: Final = 1000
"""Rows that one step moves or deletes: some 20 ms of the one writer."""
_SCANNED_ROWS: Final = 100_000
"""Numbers of rows that are looked at together: what is not needed of them is in memory, some 20 MB."""
_MOVED_SHARE: Final = 4
"""A pack is written anew if one in so many of its bytes is not needed."""
_TINY_SIZE: Final = 4 << 20
"""Bytes of a pack below which it is joined with others though all of it is needed: photos would be a file each for ever."""
_TINY_COUNT_MIN: Final = 8
"""Such packs of which fewer stay as they are: so what is joined is written anew two or three times in all its life."""
_ADDED_MAX: Final = 1000
"""Files added meanwhile, or blocks with children that came, that a step marks. After more a collection ends: later anew."""
_SPARED: Final = select(func.count(), func.sum(spared_files.c.file_num))
"""Query that shows whether a file was given up since: nothing else may be while garbage is collected."""
_ROOM_MIN: Final = 64 << 20
"""Bytes of the disk that stay free beside what a pack's move needs."""


@dataclass(frozen=True, slots=True)
class Garbage:
    """Blocks that are not needed: rows and bytes, packs that go or are written anew and the bytes that this frees, and dead
    bytes in packs that stay."""

    blocks: int
    block_size: int
    packs: tuple[str, ...]
    pack_size: int
    dead_size: int


class Outdated(Exception):
    """The store has changed so much that a collection has to be begun anew."""


@dataclass(slots=True)
class _Pack:
    """Pack with row numbers of its blocks, and the bytes of those that are needed."""

    num: int
    name: str
    size: int
    live_size: int = 0
    moved_size: int = 0
    live: "array[int]" = field(default_factory=lambda: array("q"))
    dead: "array[int]" = field(default_factory=lambda: array("q"))

    @property
    def dead_size(self) -> int:
        return self.size - self.live_size - self.moved_size

    @property
    def is_tiny(self) -> bool:
        return bool(self.live) and not self.dead and self.size < _TINY_SIZE

    @property
    def is_worth_it(self) -> bool:
        return not self.live or self.dead_size * _MOVED_SHARE >= self.size


class _Row(NamedTuple):
    """Row that is not needed, and its bytes."""

    num: int
    size: int
    is_inner: bool
    """The block names others."""


@dataclass(slots=True)
class _DeadRows:
    """Rows that are not needed, of which a slice is in memory: first those that name no others, then the rest."""

    reached: ReachedRows
    given_up: ReachedRows | None
    """Marks beside which no more goes than they have, of what is found by its id; None: all goes that is not reached."""
    found: list[_Row] = field(default_factory=list)
    after: int = 0
    is_inner: bool = False
    has_inner: bool = False

    def load(self, database: Database) -> bool:
        """Load some into `found`, which is empty; return False where there are no more of this kind."""
        while not self.found and self.after < len(self.reached.rows) - 1:
            upto = self.after + _SCANNED_ROWS
            with database.read() as connection:
                for row in self.scan(connection, self.after, upto):
                    self.has_inner |= row.is_inner
                    if row.is_inner == self.is_inner:
                        self.found.append(row)
            self.after = upto
        return bool(self.found)

    def go_on_with_inner(self) -> bool:
        """Go on with rows that name others; return False if there are none, or they had their turn."""
        if self.is_inner or not self.has_inner:
            return False
        self.is_inner, self.after = True, 0
        return True

    def scan(self, connection: Connection, after: int, upto: int) -> Iterator[_Row]:
        """Yield those between two numbers. Of rows that are newer than the marks none is."""
        start = func.substr(blocks.c.encoded, 1, LEAF_START_SIZE)
        query = select(blocks.c.num, func.length(blocks.c.encoded), blocks.c.is_shared, start)
        query = query.where(blocks.c.num > after, blocks.c.num <= min(upto, len(self.reached.rows) - 1))
        for num, size, is_shared, began in stream_rows(connection, query.order_by(blocks.c.num), _BATCH):
            if self.reached.rows[num]:
                continue
            if self.given_up is None or not is_shared or self.given_up.rows[num]:
                yield _Row(num, size, bool(is_shared and has_children(began)))


def find_garbage(folder: Path, url: str = "", *, keep_removed: bool) -> Garbage:
    """Find what `collect_garbage` would delete; change nothing. Costs O(blocks). Raises StorageError."""
    with read_store(folder, url=url) as connection:
        reached = mark_reached(connection, folder, with_removed=keep_removed)
        rows = _DeadRows(reached, None)
        return _weigh(connection, rows, _find_packs(connection, reached, None))


def collect_garbage(folder: Path, url: str = "", *, keep_removed: bool) -> Garbage:
    """Delete what is not needed; nobody else may have the store open. Costs O(blocks). Raises StorageError."""
    database = Database(folder, url=url)
    try:
        collection = Collection(database, Packs(database))
        collection.mark_all(keep_removed=keep_removed)
        garbage = collection.found()
        while collection.step():
            pass
    finally:
        database.close()
    remove_packs(folder, collection.retired)
    return garbage


class Collection:
    """Garbage of one moment, to be deleted in steps: marks once, then steps, then the end. One thread at a time uses it."""

    def __init__(self, database: Database, blobs: Packs) -> None:
        self.retired: Final[list[str]] = []
        """Packs that no row names any more: `remove_packs` deletes their files once nobody reads an older moment."""
        self.size = 0
        """Bytes that were freed, or are once the retired packs are deleted."""
        self.is_held_up = False
        """True if something has stayed that an open draft leaves out."""
        self._database = database
        self._blobs = blobs
        self._folder = database.folder
        self._reached = ReachedRows(bytearray(), bytearray())
        self._rows = _DeadRows(self._reached, None)
        self._packs: list[_Pack] = []
        self._is_some_left = False
        self._spared: list[int] = []
        self._spared_sum = (
            0,
            0,
        )  # of `_SPARED`: looking each up took the one writer 0.1 s a step for 100,000
        self._last_file = 0
        self._is_beside_others = False

    def mark_all(self, *, keep_removed: bool) -> None:
        """Find all that is not needed; nobody else has the store open. Costs O(blocks). Raises StorageError."""
        with self._database.read() as connection:
            self._reached = mark_reached(connection, self._folder, with_removed=keep_removed)
            self._last_file = _last_file(connection)
            self._rows = _DeadRows(self._reached, None)
            self._packs = _find_packs(connection, self._reached, None)

    def mark_given_up(self) -> None:
        """Find what was given up and is not needed. Costs O(blocks).

        Raises StorageError, and Outdated while a block is damaged.
        """
        self._is_beside_others = True
        with self._database.write():  # no write is under way that does not note what it names once more
            self._database.reused_rows, self._database.named_trees = set(), set()
        with self._database.read() as connection:
            if count_damaged(connection) != DamagedCount(0, 0):
                raise Outdated
            given_up = self._mark_spared(connection)
            self._reached = mark_reached(connection, self._folder)
            self._last_file = _last_file(connection)
            self._rows = _DeadRows(self._reached, given_up)
            self._packs = _find_packs(connection, self._reached, given_up)

    def found(self) -> Garbage:
        """Return what is to be deleted, before the first step. Costs O(rows)."""
        with self._database.read() as connection:
            return _weigh(connection, self._rows, self._packs)

    def end(self) -> None:
        """Stop recording the trees that writes name."""
        self._database.reused_rows = self._database.named_trees = None

    def step(self) -> bool:
        """Delete or move some; return False where nothing is left. Raises StorageError, Outdated.

        Blocks that name others go last, and beside a daemon stay while such others do: nothing else tells what these are.
        """
        if self._is_beside_others:
            with self._database.read() as connection:  # most of it, not to have writers wait for it
                self._mark_come(connection)
        while self._packs:
            if few := self._take_small_packs():
                if self._delete_packs(few):
                    return True
                continue
            if self._move_small_packs():
                return True
            pack = self._packs[-1]
            is_shrunk = pack.is_worth_it and self._shrink(pack)
            if not is_shrunk or not (pack.live or pack.dead):
                self._packs.pop()
                self._is_some_left |= bool(pack.dead)
            if is_shrunk:
                return True
        while not self._rows.load(self._database):
            if (self._is_beside_others and self._is_some_left) or not self._rows.go_on_with_inner():
                return False
        self._take_rows({row.num: row.size for row in _take(self._rows.found)})
        return True

    def _take_small_packs(self) -> list[_Pack]:
        """Take packs of which nothing is needed from the end of the list, as many as go in one step."""
        few, count = list[_Pack](), 0
        while self._packs and not self._packs[-1].live and count + len(self._packs[-1].dead) <= _STEP_ROWS:
            few.append(self._packs.pop())
            count += max(1, len(few[-1].dead))
        return few

    def _delete_packs(self, few: Sequence[_Pack]) -> bool:
        """Delete packs of which nothing is needed, also since they were listed. Return False if none can be deleted."""
        with self._blobs.hold_drafts() as is_known, self._database.write(is_patient=True) as connection:
            self._catch_up(connection)
            gone = [pack for pack in few if not any(self._reached.packed[num] for num in pack.dead)]
            if is_known(_keys_of(connection, pack_blocks, [num for pack in gone for num in pack.dead])):
                self.is_held_up = True
                gone = [pack for pack in gone if not is_known(_keys_of(connection, pack_blocks, pack.dead))]
            _delete(connection, pack_blocks, [num for pack in gone for num in pack.dead])
            _delete(connection, packs, [pack.num for pack in gone])
        self._is_some_left |= len(gone) < len(few)
        for pack in gone:
            self._retire(pack)
        return bool(gone)

    def _retire(self, pack: _Pack) -> None:
        """Note that no row names a pack any more."""
        with suppress(OSError):  # then the next start moves it to quarantine, if it is here by then
            mark_pack(self._folder / PACKS_NAME, pack.name)
        self.retired.append(pack.name)
        self.size += pack.dead_size

    def _take_rows(self, some: Mapping[int, int]) -> None:
        with self._blobs.hold_drafts() as is_known, self._database.write(is_patient=True) as connection:
            self._catch_up(connection)
            reused = self._database.reused_rows or set()
            gone = [num for num in some if not self._reached.rows[num] and num not in reused]
            if is_known(_keys_of(connection, blocks, gone)):
                self._is_some_left = self.is_held_up = True
                return
            _delete(connection, blocks, gone)
        self.size += sum(some[num] for num in gone)

    def _shrink(self, pack: _Pack) -> bool:
        """Move or delete some of a pack's blocks; return False if that cannot be now."""
        if pack.live:
            return self._move_some(pack)
        some = pack.dead[-_STEP_ROWS:]
        is_last = len(some) == len(pack.dead)
        with self._blobs.hold_drafts() as is_known, self._database.write(is_patient=True) as connection:
            self._catch_up(connection)
            if any(self._reached.packed[num] for num in some):
                return False
            if is_known(_keys_of(connection, pack_blocks, some)):
                self.is_held_up = True
                return False
            _delete(connection, pack_blocks, some)
            if is_last:
                connection.execute(delete(packs).where(packs.c.num == pack.num))
        del pack.dead[-_STEP_ROWS:]
        if is_last:
            self._retire(pack)
        return True

    def _move_small_packs(self) -> bool:
        """Move the needed blocks of several packs into one; return False if it cannot be done, or there are fewer
        than two packs."""
        few, count, size = list[_Pack](), 0, 0
        for pack in reversed(self._packs):
            count, size = count + len(pack.live), size + pack.live_size
            is_moved = bool(pack.live) and (pack.is_worth_it or pack.is_tiny)
            if not (is_moved and count <= _STEP_ROWS and size <= _STEP_SIZE):
                break
            few.append(pack)
        if len(few) < 2 or not self._has_room(_STEP_SIZE):
            return False
        try:
            move_blocks(self._database, [num for pack in few for num in pack.live])
        except DamagedPack:  # each alone, then
            return False
        for pack in few:
            pack.live, pack.moved_size, pack.live_size = array("q"), pack.moved_size + pack.live_size, 0
        return True

    def _has_room(self, size: int) -> bool:
        return shutil.disk_usage(self._folder).free >= size + _ROOM_MIN

    def _move_some(self, pack: _Pack) -> bool:
        """Move some of the blocks that are needed out of a pack; return False if that cannot be."""
        if not self._has_room(pack.live_size):
            return False
        with self._database.read() as connection:
            some = {row.num: row.size for row in _take([*_sizes_of(connection, pack.live[-_STEP_ROWS:])])}
        try:
            move_blocks(self._database, [*some])
        except DamagedPack:
            return False
        pack.live = array("q", (num for num in pack.live if num not in some))
        pack.live_size -= sum(some.values())
        pack.moved_size += sum(some.values())
        return True

    def _mark_spared(self, connection: Connection) -> ReachedRows:
        """Mark the blocks of files and bodies that were given up; remember the files of which blocks are still here."""
        marks = nothing_reached(connection)
        self._spared_sum = tuple(connection.execute(_SPARED).one())
        walk = Walk(connection, self._folder / PACKS_NAME, marks)
        query = select(files.c.num, files.c.object_id)
        query = query.join(spared_files, spared_files.c.file_num == files.c.num)
        for part in stream_parts(connection, query, _BATCH):
            held = self._blobs.find_held(connection, [object_id for _, object_id in part])
            for num, object_id in part:
                if object_id in held:
                    walk.mark(object_id)
                    self._spared.append(num)
        bodies = select(erasures.c.body_id).where(erasures.c.is_spared)
        for part in stream_parts(connection, bodies, _BATCH):
            for keys in chunks([id_key(body_id) for (body_id,) in part]):
                rows = select(blocks.c.num).where(blocks.c.is_shared, blocks.c.id_key.in_(keys))
                for num in connection.execute(rows).scalars():
                    marks.rows[num] = 1
        return marks

    def _catch_up(self, connection: Connection) -> None:
        """Mark what has come to be needed, as the transaction sees it that deletes. Raises Outdated."""
        if not self._is_beside_others:
            return
        if count_damaged(connection) != DamagedCount(0, 0):
            raise Outdated
        spared_sum = tuple(connection.execute(_SPARED).one())
        for part in chunks(self._spared) if spared_sum != self._spared_sum else ():
            here = spared_files.c.file_num.in_(part)
            query = select(func.count()).select_from(spared_files).where(here)
            if connection.execute(query).scalar_one() != len(part):
                raise Outdated
        self._spared_sum = spared_sum
        self._mark_come(connection)

    def _mark_come(self, connection: Connection) -> None:
        """Mark the blocks of files that were added meanwhile, and blocks that came meanwhile. Raises Outdated."""
        query = select(files.c.num, files.c.object_id).where(files.c.num > self._last_file, ~IS_SPARED)
        added = connection.execute(query.order_by(files.c.num).limit(_ADDED_MAX + 1)).all()
        trees = self._database.named_trees or set()
        if max(len(added), len(trees)) > _ADDED_MAX:
            raise Outdated
        walk = Walk(connection, self._folder / PACKS_NAME, self._reached)
        for row in added:
            walk.mark(row.object_id)
            self._last_file = row.num
        come = self._blobs.find_held(connection, list(trees))  # others are of a write that is under way
        for block_id in come:
            walk.mark(ObjectId(block_id))
        trees -= come


def _weigh(connection: Connection, rows: _DeadRows, found: Sequence[_Pack]) -> Garbage:
    count = size = 0
    for row in rows.scan(connection, 0, len(rows.reached.rows)):
        count, size = count + 1, size + row.size
    gone = [pack for pack in found if pack.is_worth_it]
    return Garbage(
        count,
        size,
        tuple(pack.name for pack in gone),
        sum(pack.dead_size for pack in gone),
        sum(pack.dead_size for pack in found if not pack.is_worth_it),
    )


def _find_packs(connection: Connection, reached: ReachedRows, given_up: ReachedRows | None) -> list[_Pack]:
    """Find packs with blocks that are not needed; where marks are given, no more than they mark. Also many tiny ones.

    Those of which nothing is needed stand last, before them those that are written anew, and before these the tiny ones.
    """
    there = select(packs.c.num, packs.c.name, packs.c.size).order_by(packs.c.num)
    found = {num: _Pack(num, name, size) for num, name, size in connection.execute(there)}
    packed = select(pack_blocks.c.num, pack_blocks.c.pack_num, pack_blocks.c.size)
    for num, pack_num, size in stream_rows(connection, packed, _BATCH):
        pack = found.get(pack_num)
        if pack is None:
            continue
        if reached.packed[num] or (given_up is not None and not given_up.packed[num]):
            pack.live.append(num)
            pack.live_size += size
        else:
            pack.dead.append(num)
    tiny = [pack for pack in found.values() if pack.is_tiny]
    some = [pack for pack in found.values() if not pack.is_tiny and (pack.dead_size or not pack.live)]
    some += tiny if len(tiny) >= _TINY_COUNT_MIN else ()
    return sorted(some, key=lambda pack: (not pack.live, pack.is_worth_it, pack.is_tiny))


def _take(rows: list[_Row]) -> list[_Row]:
    """Take rows of one step from the end of a list."""
    taken, size = list[_Row](), 0
    while rows and len(taken) < _STEP_ROWS and size < _STEP_SIZE:
        taken.append(rows.pop())
        size += taken[-1].size
    return taken


def _sizes_of(connection: Connection, nums: Sequence[int]) -> Iterator[_Row]:
    for part in chunks(nums):
        query = select(pack_blocks.c.num, pack_blocks.c.size).where(pack_blocks.c.num.in_(part))
        for row in connection.execute(query):
            yield _Row(row[0], row[1], is_inner=False)


def _keys_of(connection: Connection, table: Table, nums: Sequence[int]) -> list[int]:
    keys = list[int]()
    for part in chunks(nums):
        keys += connection.execute(select(table.c.id_key).where(table.c.num.in_(part))).scalars()
    return keys


def _delete(connection: Connection, table: Table, nums: Sequence[int]) -> None:
    for part in chunks(nums):
        connection.execute(delete(table).where(table.c.num.in_(part)))


def _last_file(connection: Connection) -> int:
    return int(connection.execute(select(func.coalesce(func.max(files.c.num), 0))).scalar_one())
