"""Makes files and folders for their owner alone, and has them and their names survive a power cut.

What root makes gets the owner of the folder that it lies in, as SQLite does for its log: a command that was run by sudo must
leave nothing in a user's folder that the user's own daemon cannot open.
"""

import fcntl
import os
import secrets
import stat
from collections.abc import Callable
from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from typing import Final

_NAME_PART_LENGTH: Final = 50
"""Characters of a file's name that its draft has: at most 200 of the 255 bytes that names may have."""
_FILE_MODE: Final = 0o600
_FOLDER_MODE: Final = 0o700


def open_new(path: Path) -> int:
    """Create a file and open it to write; its descriptor. Raises FileExistsError, OSError."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _FILE_MODE)
    _give_owner(handle, path.parent)
    return handle


def open_file(path: Path, links: int = 0) -> BufferedReader:
    """Open a file to read. A pipe, which could wait, or a device is not opened at all. Raises OSError.

    `links` is O_NOFOLLOW where a symbolic link could lead out of a folder.
    """
    _check_file(path, path.stat(follow_symlinks=not links))
    file = os.fdopen(os.open(path, os.O_RDONLY | links | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    try:
        _check_file(path, os.fstat(file.fileno()))  # and not another one that was put in its place meanwhile
    except OSError:
        file.close()
        raise
    return file


def _check_file(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise OSError(f"{path} is not a file")


def write_beside(path: Path, content: Callable[[int], bytes], put: Callable[[Path], object]) -> None:
    """Write a draft beside a file, and have `put` put it in its place. Durable when it returns. Raises OSError.

    `content` is asked with the draft's descriptor. Commands that write one file at a time have a draft each. A draft is
    locked while it is written: `node.home.private_files` sweeps those that are not.
    """
    beside = path.with_name(f"{path.name[:_NAME_PART_LENGTH]}.{secrets.token_hex(8)}.new")
    handle = open_new(beside)
    try:
        with os.fdopen(handle, "wb") as file:
            fcntl.flock(handle, fcntl.LOCK_EX)  # before there is anything in it
            file.write(content(handle))
            file.flush()
            os.fsync(handle)
            put(beside)
    finally:
        beside.unlink(missing_ok=True)
    sync_folder(path.parent)


def open_or_create(path: Path, flags: int) -> int:
    """Open a file, or create it; return its descriptor. Raises OSError."""
    with suppress(FileExistsError):
        handle = os.open(path, flags | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _FILE_MODE)
        _give_owner(handle, path.parent)
        return handle
    # Its owner stays: it may be a link, which its user has put there, to a file that is not the user's.
    return os.open(path, flags | os.O_CREAT | os.O_CLOEXEC, _FILE_MODE)


def _give_owner(handle: int, folder: Path) -> None:
    """Change the owner of a new file to that of its folder, if root created it and may do so."""
    if os.geteuid() != 0:
        return
    with suppress(
        OSError
    ):  # a namespace without that user, or a network drive: it works for root, as without this
        found = folder.stat()
        if found.st_uid != 0:
            os.fchown(handle, found.st_uid, found.st_gid)


def make_folder(path: Path) -> None:
    """Make a folder for its owner alone, with missing parents; make all their names durable. Raises OSError.

    An existing folder's parent is synced too: its maker may have been killed before that.
    """
    missing = [path]
    while not missing[-1].exists() and not missing[-1].parent.exists():
        missing.append(missing[-1].parent)
    for folder in reversed(missing):
        _make_one(folder)
        sync_folder(folder.absolute().parent)


def _make_one(folder: Path) -> None:
    try:
        folder.mkdir(mode=_FOLDER_MODE)
    except FileExistsError:
        if not folder.is_dir():
            raise
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if not os.listdir(handle):  # and not another one that was put in its place meanwhile
            _give_owner(handle, folder.absolute().parent)
    finally:
        os.close(handle)


def move_file(source: Path, target: Path) -> None:
    """Move a file within one file system; both names are durable. Raises OSError."""
    source.rename(target)
    sync_folder(target.parent)
    sync_folder(source.parent)


def sync_file(path: Path) -> None:
    """Make a file's content durable. Raises OSError."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable. Raises OSError."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
