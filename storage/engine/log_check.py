"""Checks SQLite's write-ahead log after a crash: did it end normally, or is it damaged?

SQLite takes frames until the first whose checksum is wrong, and says nothing of what stands behind. A cut of the power may
leave such a frame in the last transaction, which was not acknowledged. Two transactions behind it, or fewer transactions
than were acknowledged (`last_write`), are damage. The format: https://www.sqlite.org/fileformat2.html#walformat
"""

import os
import sqlite3
import struct
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_HEADER: Final = struct.Struct(">8I")
_FRAME: Final = struct.Struct(">6I")
_MAGIC: Final = 0x377F0682
"""With the lowest bit set, checksums are of big-endian words."""
_PAGE_SIZES: Final = frozenset(1 << bits for bits in range(9, 17))
_INDEX_FRAME: Final = struct.Struct("=I")
_INDEX_FRAME_OFFSET: Final = 16
"""Offset in the log's index of the last frame that SQLite takes (`mxFrame`)."""
_MASK: Final = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class LogState:
    """State of a database and its log, as SQLite will take them."""

    count: int
    """Transactions that the database counts then (`user_version`)."""
    frames: int
    """Frames that SQLite takes, counted from the first one."""
    lost_count: int
    """Transactions in later frames, which SQLite ignores."""


def examine_log(database: Path) -> LogState | None:
    """Look at the log of a database that nobody has open, and change nothing; None where SQLite cannot open it.

    Costs O(frames of the log).

    Raises OSError.
    """
    log = database.with_name(f"{database.name}-wal")
    try:
        # Read-only, so that the log is neither written back nor removed when the connection is closed.
        with closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)) as reader:
            (count,) = reader.execute("PRAGMA user_version").fetchone()
            frames = _frames_taken(database.with_name(f"{database.name}-shm"))
    except (sqlite3.Error, UnicodeError):
        return None
    return LogState(count & _MASK, frames, _count_ends_behind(log, frames))


def _frames_taken(index: Path) -> int:
    try:
        with index.open("rb") as file:
            file.seek(_INDEX_FRAME_OFFSET)
            found = file.read(_INDEX_FRAME.size)
    except FileNotFoundError:
        return 0
    return int(_INDEX_FRAME.unpack(found)[0]) if len(found) == _INDEX_FRAME.size else 0


def _count_ends_behind(log: Path, frames: int) -> int:
    """Count the transactions of the log's present round that end behind so many frames."""
    try:
        handle = os.open(log, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return 0
    try:
        header = os.pread(handle, _HEADER.size, 0)
        if len(header) < _HEADER.size:
            return 0
        magic, _, page_size, _, salt, other_salt, *checksum = _HEADER.unpack(header)
        if magic & ~1 != _MAGIC or page_size not in _PAGE_SIZES or checksum != _checksum(magic, header[:24]):
            return 0  # SQLite takes nothing of it, and nothing tells its frames from those of earlier rounds
        count = 0
        place = _HEADER.size + frames * (_FRAME.size + page_size)
        while len(found := os.pread(handle, _FRAME.size, place)) == _FRAME.size:
            _, size_after, *salts, _, _ = _FRAME.unpack(found)
            count += size_after > 0 and salts == [salt, other_salt]
            place += _FRAME.size + page_size
        return count
    finally:
        os.close(handle)


def _checksum(magic: int, content: bytes) -> list[int]:
    words = struct.unpack(f"{'>' if magic & 1 else '<'}{len(content) // 4}I", content)
    first = second = 0
    for one, other in zip(words[::2], words[1::2], strict=True):
        first = first + one + second & _MASK
        second = second + other + first & _MASK
    return [first, second]
