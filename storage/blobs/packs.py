"""Pack files: large blocks of files, appended to plain files beside the database, which stores their offsets.

A database copies what it stores twice (into its log and out of it); a pack is written once, in order, made durable, and
only then named by rows, in the transaction of the commit that needs it. A pack that no row names is what an interrupted
add left behind, or all that is left of rows that were lost: `sweep` moves it to quarantine at start. What an add brings in
all fits in a few rows' worth goes into the `blocks` table instead, so that small files do not make small packs.

`pack_moves` writes what is needed of a pack into a new one. A *mark* beside a pack, a file of its name and `.spare`, says
that nothing is lost with it if no row names it: then `sweep` deletes both.
"""

import os
import secrets
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from sqlalchemy import Connection, bindparam, insert, select

from protocol.codec import DecodeError
from protocol.formats.block import Block, decode_block
from protocol.ids import BlockId
from storage.commits.blocks import (
    DamagedBlock,
    find_shared_block,
    find_shared_blocks,
    put_shared_blocks,
)
from storage.engine.bulk import insert_rows, select_in, select_rows
from storage.engine.database import Database, StorageError
from storage.engine.folders import make_folder, open_new, sync_folder
from storage.engine.id_keys import chunks, id_key, id_keys
from storage.engine.quarantine import restore_packs, set_packs_aside
from storage.engine.store_identity import PACKS_NAME
from storage.schema.schema import pack_blocks, packs

_SMALL_SIZE: Final = 256 * 1024
"""Bytes up to which an add's blocks are rows: above, a pack and its two fsyncs cost less than the log."""
_FLUSH_SIZE: Final = 4 << 20
"""Bytes gathered before they are looked up and written together."""
_COLUMNS: Final = ("num", "id_key", "block_id", "pack_num", "offset", "size")
_WRITE_SIZE: Final = 1 << 20
"""Bytes of one write: larger ones have the kernel look for larger pages, which took a virtual machine four times as long."""
_WRITE_COUNT_MAX: Final = 1024
"""Buffers that one call takes."""
MARK_SUFFIX: Final = ".spare"
"""End of the name of a mark."""
_BY_KEY: Final = (
    select(pack_blocks.c.block_id, packs.c.name, pack_blocks.c.offset, pack_blocks.c.size)
    .join(packs, packs.c.num == pack_blocks.c.pack_num)
    .where(pack_blocks.c.id_key == bindparam("key"))
)
"""Runs once for each block that is read."""
_KNOWN: Final = select(pack_blocks.c.block_id).where(
    pack_blocks.c.id_key.in_(bindparam("keys", expanding=True))
)


class Packs:
    """Pack files of one store. Thread-safe."""

    def __init__(self, database: Database) -> None:
        """Use the folder beside the database, which is made when it is first needed."""
        self._database = database
        self._folder = database.folder / PACKS_NAME
        self._has_durable_folder = False
        self._known = _KnownBlocks()

    def sweep(self) -> int:
        """Move packs that no row names to quarantine, and those back that rows name; return how many no row named.

        Costs O(packs).

        Nothing is deleted without a mark: rows may be gone that were acknowledged. To be called while nobody adds. Raises
        StorageError.
        """
        with self._database.read() as connection:
            named = set(connection.execute(select(packs.c.name)).scalars())
        try:
            restore_packs(self._database.folder, named)
            if not self._folder.exists():
                return 0
            there = {path.name for path in self._folder.iterdir()}
            marked = {name.removesuffix(MARK_SUFFIX) for name in there if name.endswith(MARK_SUFFIX)}
            for name in marked:
                if name not in named:
                    (self._folder / name).unlink(missing_ok=True)
                (self._folder / f"{name}{MARK_SUFFIX}").unlink()
            left = [name for name in there - named - marked if not name.endswith(MARK_SUFFIX)]
            return set_packs_aside(self._database.folder, left)
        except OSError as error:
            raise StorageError(f"{self._folder}: {error}") from error

    def draft(self) -> "PackDraft":
        """Begin to add blocks. A context manager; nothing of it lasts unless it is kept."""
        return PackDraft(self._database, self._folder, self._make_folder, self._known)

    def hold_drafts(self) -> AbstractContextManager[Callable[[Collection[int]], bool]]:
        """Keep drafts from looking up stored blocks while the block runs.

        The block gets a function of keys (`id_key`): True if an open draft leaves out a block of any of them, which it
        was told is here.
        """
        return self._known.hold()

    def _make_folder(self) -> None:
        """See to it that the folder's name is durable: once for each process is enough. Raises OSError."""
        if not self._has_durable_folder:
            make_folder(self._folder)
            self._has_durable_folder = True

    def find(self, connection: Connection, block_id: BlockId) -> Block | None:
        """Find a block of a file by its id, in packs or rows, and hash it again. Costs O(block), and O(log n).

        Raises DamagedBlock, StorageError.
        """
        for packed, name, offset, size in select_rows(connection, _BY_KEY, key=id_key(block_id)):
            if packed == block_id:
                return _checked(block_id, self._read(name, offset, size))
        return find_shared_block(connection, block_id)

    def find_held(self, connection: Connection, ids: Sequence[BlockId]) -> set[BlockId]:
        """Return the given blocks that are held. Costs O(ids)."""
        return _known_blocks(connection, ids) | find_shared_blocks(connection, ids).keys()

    def _read(self, name: str, offset: int, size: int) -> bytes:
        try:
            handle = os.open(f"{self._folder}/{name}", os.O_RDONLY | os.O_CLOEXEC)
            try:
                return os.pread(handle, size, offset)
            finally:
                os.close(handle)
        except OSError as error:
            raise StorageError(f"{self._folder / name}: {error}") from error


class _KnownBlocks:
    """Keys of blocks that were here when open drafts looked, and which they leave out. Thread-safe."""

    def __init__(self) -> None:
        self.lock: Final = threading.Lock()
        self._of_drafts: dict[int, set[int]] = {}  # by the set's own id

    def open(self) -> set[int]:
        """Begin a draft's set, which it adds to while it holds the lock. Does not wait for the lock."""
        known = set[int]()
        self._of_drafts[id(known)] = known
        return known

    def close(self, known: set[int]) -> None:
        """End a draft's set. Does not wait for the lock."""
        self._of_drafts.pop(id(known), None)

    @contextmanager
    def hold(self) -> Iterator[Callable[[Collection[int]], bool]]:
        """Hold the lock; yield a function that returns True if any of some keys is in a set."""
        with self.lock:
            yield lambda keys: not all(one.isdisjoint(keys) for one in list(self._of_drafts.values()))


class PackDraft:
    """Draft of a pack: `put` each block, `finish`, `keep` in the transaction, then set `is_kept` once it has committed."""

    def __init__(
        self,
        database: Database,
        folder: Path,
        make_pack_folder: Callable[[], None],
        known_blocks: _KnownBlocks,
    ) -> None:
        self._known_blocks = known_blocks
        self._known: set[int] = set()
        self._database = database
        self._folder = folder
        self._make_folder = make_pack_folder
        self._name = secrets.token_hex(16)
        self._handle: int | None = None
        self._is_made = False
        self._waiting: dict[BlockId, Block] = {}
        self._waiting_size = 0
        self._places: dict[BlockId, tuple[int, int]] = {}  # block id -> offset, size
        self._trees: list[BlockId] = []  # blocks that name others
        self._size = 0
        self._is_named = False
        self.is_kept = False

    def __enter__(self) -> Self:
        """Return the draft. The pack is made when there is something to write."""
        self._known = self._known_blocks.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave nothing behind unless it was kept."""
        self._close()
        self._known_blocks.close(self._known)
        # Also where nothing of it was written whole: a disk that is full must get its room back.
        if self._is_made and not (self.is_kept and self._is_named):
            if self._is_named and may_be_named(self._database, self._name):
                return
            with suppress(OSError):  # what stays is swept at the next start
                (self._folder / self._name).unlink(missing_ok=True)

    def put(self, block: Block) -> None:
        """Add a block; one that is here already costs no space. Costs O(block). Raises StorageError."""
        if block.block_id in self._places or block.block_id in self._waiting:
            return
        self._waiting[block.block_id] = block
        if block.child_ids:
            self._trees.append(block.block_id)
        self._waiting_size += len(block.encoded)
        if self._waiting_size >= _FLUSH_SIZE:
            self._flush()

    def finish(self) -> None:
        """Make the blocks durable, but for the small ones, which `keep` puts into rows. Raises StorageError."""
        if self._places or self._waiting_size > _SMALL_SIZE:
            self._flush()
        if self._handle is None:
            return
        try:
            os.fsync(self._handle)
            sync_folder(self._folder)  # the file's name too
        except OSError as error:
            raise StorageError(f"{self._folder / self._name}: {error}") from error
        finally:
            self._close()

    def keep(self, connection: Connection) -> None:
        """Record the blocks, inside the write transaction that needs them."""
        if self._database.named_trees is not None:
            self._database.named_trees.update(self._trees)
        put_shared_blocks(self._database, connection, self._waiting.values())
        known = _known_blocks(connection, self._places)
        new = {block_id: place for block_id, place in self._places.items() if block_id not in known}
        self._is_named = bool(new)
        if not new:  # others have brought the same in the meantime
            return
        pack_num = self._database.next_nums(connection, packs, 1)[0]
        connection.execute(insert(packs).values(num=pack_num, name=self._name, size=self._size))
        nums = self._database.next_nums(connection, pack_blocks, len(new))
        rows = [
            (num, id_key(block_id), block_id, pack_num, offset, size)
            for num, (block_id, (offset, size)) in zip(nums, new.items(), strict=True)
        ]
        insert_rows(connection, pack_blocks, _COLUMNS, rows)

    def _flush(self) -> None:
        with self._known_blocks.lock, self._database.read() as connection:
            known = _known_blocks(connection, self._waiting)
            known |= find_shared_blocks(connection, self._waiting).keys()
            self._known.update(id_keys(known))
        new = [block for block in self._waiting.values() if block.block_id not in known]
        self._waiting.clear()
        self._waiting_size = 0
        if not new:
            return
        try:
            handle = self._handle if self._handle is not None else self._open()
            write_encoded(handle, [block.encoded for block in new])
        except OSError as error:
            raise StorageError(f"{self._folder / self._name}: {error}") from error
        for block in new:
            self._places[block.block_id] = (self._size, len(block.encoded))
            self._size += len(block.encoded)

    def _open(self) -> int:
        self._make_folder()
        self._handle = open_new(self._folder / self._name)
        self._is_made = True
        return self._handle

    def _close(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def may_be_named(database: Database, name: str) -> bool:
    """Return True if rows may refer to a pack's file: a transaction may have committed although it raised."""
    if database.is_undecided:
        return True
    try:
        with database.read() as connection:
            query = select(packs.c.num).where(packs.c.name == name)
            return connection.execute(query).first() is not None
    except StorageError:
        return True


def write_encoded(handle: int, blocks: Iterable[bytes]) -> None:
    """Append encoded blocks to a pack. Raises OSError."""
    for part in _parts(blocks):
        _write_all(handle, part)


def _known_blocks(connection: Connection, ids: Iterable[BlockId]) -> set[BlockId]:
    found: set[BlockId] = set()
    for part in chunks([id_key(block_id) for block_id in ids]):
        found.update(select_in(connection, _KNOWN, part).scalars())
    return found


def _parts(blocks: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield groups of encoded blocks for one write call each, bounded by number of buffers and by bytes."""
    part: list[bytes] = []
    size = 0
    for encoded in blocks:
        if part and (size + len(encoded) > _WRITE_SIZE or len(part) == _WRITE_COUNT_MAX):
            yield part
            part, size = [], 0
        part.append(encoded)
        size += len(encoded)
    if part:
        yield part


def _write_all(handle: int, buffers: list[bytes]) -> None:
    written = os.writev(handle, buffers)
    if written < sum(map(len, buffers)):  # a disk that fills up writes a part
        rest = memoryview(b"".join(buffers))[written:]
        while rest:
            rest = rest[os.write(handle, rest) :]


def _checked(block_id: BlockId, encoded: bytes) -> Block:
    try:
        block = decode_block(encoded)
    except DecodeError as error:
        raise DamagedBlock(f"block {block_id.hex()}: {error}") from error
    if block.block_id != block_id:
        raise DamagedBlock(f"block {block_id.hex()} is not what its id says")
    return block
