"""Mark in a node's folder that no copy of the folder has: the mark names the inode that it lies in.

A folder that was copied, or brought back from a copy of its files, is the same user at an earlier moment, perhaps
beside the first. So its start treats it as a restored backup: it writes to a repo once a peer was compared. A rename, a
mount elsewhere and a container that is given the folder keep inodes, and are no copies. A snapshot of a whole disk that
is put back keeps them too, and is not noticed here. Nor is a copy on a file system that numbers its files anew at each
mount, such as a USB stick's: a user without peers could write there no more.

The mark also says whether a store was made here: one that is gone with its count of writes is no new node's. And it gives
the store a name (`store_name`), since it is written anew wherever the store's numbers may come to mean something else.
"""

import fcntl
import os
import struct
from pathlib import Path
from typing import Final

from blake3 import blake3

from storage.engine.errors import LostStore
from storage.engine.folders import write_beside
from storage.engine.last_write import LAST_WRITE_NAME
from storage.engine.losses import note_cause
from storage.engine.sqlite import DATABASE_NAME
from storage.engine.store_identity import STORE_ID_NAME

MARK_NAME: Final = "folder-mark"
_SIZE_MAX: Final = 100
"""Bytes that are read of a folder's mark: two numbers of 20 digits, and a word."""
_NAME_SIZE: Final = 4
"""Bytes of a store's name."""
_HAS_STORE: Final = b"store"
"""Word of a folder in which a store was made."""
_STORE_NAMES: Final = (DATABASE_NAME, LAST_WRITE_NAME, STORE_ID_NAME)
_MOUNTS: Final = Path("/proc/self/mountinfo")
_RENUMBERING: Final = frozenset(("msdos", "vfat", "exfat", "ntfs", "ntfs3", "9p", "cifs", "smb3"))
"""Types of file systems that number files anew at each mount; all that begin with `fuse` may."""
_GET_GENERATION: Final = 0x80087601
"""FS_IOC_GETVERSION of Linux: which file it is that has an inode's number, which is given again."""


def write_mark(path: Path, *, has_store: bool = False) -> None:
    """Say that the folder is no copy, and whether a store was made in it, durably. Raises OSError."""
    word = b" " + _HAS_STORE if has_store else b""
    write_beside(
        path / MARK_NAME,
        lambda handle: "{} {}".format(*_inode_of(handle)).encode("ascii") + word + b"\n",
        lambda beside: beside.replace(path / MARK_NAME),
    )


def mark_store(path: Path) -> None:
    """Note that a store was made in the folder, once. Raises OSError."""
    if not _has_word(path):
        write_mark(path, has_store=True)


def check_store_stayed(path: Path) -> None:
    """Raise LostStore if a store was made in the folder, and neither it nor its count of writes is there. Raises OSError."""
    if is_copy(path) is False and _has_word(path) and not _has_store(path):
        raise LostStore(f"{path / DATABASE_NAME} is gone: the store of this node is lost")


def _has_word(path: Path) -> bool:
    return _HAS_STORE in (path / MARK_NAME).read_bytes()[:_SIZE_MAX].split()[2:]


def _has_store(path: Path) -> bool:
    return any((path / name).exists() for name in _STORE_NAMES)


def store_name(path: Path) -> str:
    """Return a name of the store in a folder, of 8 characters: another once it is made anew, restored or copied.

    A folder without a mark has the name of nothing. Raises OSError.
    """
    try:
        handle = os.open(path / MARK_NAME, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return blake3().hexdigest(length=_NAME_SIZE)
    try:
        # Where file systems give a number again and tell no generation, the time tells two marks apart.
        said = b"%d %s" % (os.fstat(handle).st_mtime_ns, os.read(handle, _SIZE_MAX))
    finally:
        os.close(handle)
    return blake3(said).hexdigest(length=_NAME_SIZE)


def is_copy(path: Path) -> bool | None:
    """Return True if the mark in a folder lies in another inode than it names, None without a mark. Raises OSError."""
    try:
        handle = os.open(path / MARK_NAME, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        named = os.read(handle, _SIZE_MAX).split()
        inode, generation = _inode_of(handle)
        if _renumbers(os.fstat(handle).st_dev):
            return False
    finally:
        os.close(handle)
    # A file system may begin to tell generations, or cease to, with another kernel.
    known = {b"%d" % generation, *([] if generation else named[1:])} | {b"0"}
    return len(named) < 2 or named[0] != b"%d" % inode or named[1] not in known  # its two numbers


def note_copy(path: Path) -> None:
    """Treat a copied folder as a restored backup, before a daemon opens the store in it. Raises OSError.

    A folder with keys, and with neither store nor mark, got the keys of another: its user is older than it. One with a
    store and no mark was made before there were marks. Raises LostStore where a store was made and none is left.
    """
    check_store_stayed(path)
    found = is_copy(path)
    if found is None and not _has_store(path):
        note_cause(path, "recovered")
    elif found:
        note_cause(path, "copied")
    if found is not False:
        write_mark(path)  # after that: killed between, it is noted again


def _renumbers(device: int) -> bool:
    """Return True if the mounted file system of a device number numbers its files anew at each mount."""
    try:
        lines = _MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # no Linux
        return False
    number = f"{os.major(device)}:{os.minor(device)}"
    kinds = [fields[fields.index("-") + 1] for fields in map(str.split, lines) if fields[2] == number]
    return any(kind in _RENUMBERING or kind.startswith("fuse") for kind in kinds)


def _inode_of(handle: int) -> tuple[int, int]:
    """Return a file's inode number and its generation; the latter is 0 on a file system that tells none."""
    try:
        (generation,) = struct.unpack("l", fcntl.ioctl(handle, _GET_GENERATION, bytes(struct.calcsize("l"))))
    except OSError:
        generation = 0
    return os.fstat(handle).st_ino, generation & 0xFFFFFFFF
