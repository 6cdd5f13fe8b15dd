"""File beside the SQLite database that counts durable transactions, to detect acknowledged writes that were lost.

A database that counts fewer transactions than this file has lost some that were acknowledged: its log was damaged, or an
older file was put in its place. A cut of the power leaves the file behind the database or level with it, never ahead.
Two slots are written in turn, so that a write which is torn leaves the older one.

The file is also held (flock) by anyone who has the database open to write, so that others see that its log is in use.
"""

import fcntl
import os
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from blake3 import blake3

from storage.engine.folders import open_or_create, sync_folder

LAST_WRITE_NAME: Final = "ravel.sqlite-last"
_SLOT_SIZE: Final = 4096
"""Bytes from one slot to the other: no device writes both at once."""
_CONTENT: Final = struct.Struct(">8sQI")
_HASH_SIZE: Final = 16
_FORMAT: Final = b"ravel-lw"
_COUNT_BITS: Final = 32
_COUNT_MASK: Final = (1 << _COUNT_BITS) - 1


def count_lost(here: int, acknowledged: int) -> int:
    """Count the acknowledged transactions that a database lacks. Counts wrap around at 32 bits."""
    ahead = acknowledged - here & _COUNT_MASK
    return ahead if ahead < 1 << _COUNT_BITS - 1 else 0


def next_count(count: int) -> int:
    """Return the count after one more transaction, in 32 bits."""
    return count + 1 & _COUNT_MASK


def read_last_write(folder: Path) -> int | None:
    """Return the count that was last acknowledged in a folder's store, or None. Raises OSError."""
    try:
        handle = os.open(folder / LAST_WRITE_NAME, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        newest = _newest(handle)
    finally:
        os.close(handle)
    return None if newest is None else newest[1]


@contextmanager
def lock_if_unused(folder: Path) -> Iterator[bool]:
    """Yield True if nobody has the folder's store open to write, and keep it so for the block. Raises OSError.

    Of a store without the file, nothing tells that: False.
    """
    try:
        handle = os.open(folder / LAST_WRITE_NAME, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        yield False
        return
    try:
        yield _try_lock(handle)
    finally:
        os.close(handle)


class LastWrite:
    """The file of an open store. Thread-safe: those who wait to be acknowledged together share one sync."""

    def __init__(self, folder: Path) -> None:
        """Open the file, or create it. Raises OSError."""
        self._path = folder / LAST_WRITE_NAME
        self._lock = threading.Lock()
        is_new = not self._path.exists()
        self._handle = open_or_create(self._path, os.O_RDWR)
        try:
            if os.fstat(self._handle).st_size < 2 * _SLOT_SIZE:
                os.posix_fallocate(self._handle, 0, 2 * _SLOT_SIZE)  # a full disk is met here and not later
                os.fsync(self._handle)
            if is_new:
                sync_folder(folder)
            self.is_alone = _try_lock(self._handle)
            """True if nobody else had the store open when it was opened here."""
            fcntl.flock(self._handle, fcntl.LOCK_SH)
            newest = _newest(self._handle)
        except BaseException:
            os.close(self._handle)
            raise
        self._number = 0 if newest is None else newest[0]
        self.count = None if newest is None else newest[1]
        """Count that was last acknowledged, or None."""

    def close(self) -> None:
        """Close the file."""
        os.close(self._handle)

    def acknowledge(self, read_count: Callable[[], int]) -> None:
        """Keep how many transactions are durable, of which there may be more by the time it is written. Raises OSError."""
        wanted = read_count()
        with self._lock:
            if self.count is None or count_lost(self.count, wanted):
                self.replace(read_count())

    def replace(self, count: int) -> None:
        """Set the count of transactions after a loss that is recorded elsewhere. Raises OSError."""
        content = _CONTENT.pack(_FORMAT, self._number + 1, count)
        os.pwrite(self._handle, content + _hash(content), (self._number + 1) % 2 * _SLOT_SIZE)
        os.fdatasync(self._handle)
        self._number += 1
        self.count = count


def _newest(handle: int) -> tuple[int, int] | None:
    """Number and count of the newer of the slots that are whole."""
    found = []
    for slot in (0, 1):
        kept = os.pread(handle, _CONTENT.size + _HASH_SIZE, slot * _SLOT_SIZE)
        content = kept[: _CONTENT.size]
        if len(kept) == _CONTENT.size + _HASH_SIZE and kept[_CONTENT.size :] == _hash(content):
            format_, number, count = _CONTENT.unpack(content)
            if format_ == _FORMAT:
                found.append((number, count))
    return max(found, default=None)


def _hash(content: bytes) -> bytes:
    return blake3(content).digest(_HASH_SIZE)


def _try_lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
