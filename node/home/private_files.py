"""Atomic and durable reading and writing of owner-only files; files that others can read are refused.

Files are written beside their place first. A draft of a killed process may hold secrets in the clear, so it is swept; its
lock tells it from one that a process is at work on.
"""

import errno
import fcntl
import os
import re
from pathlib import Path
from typing import Final

from storage.engine.folders import open_new, sync_folder, write_beside

SECRET_SIZE: Final = 32
"""Bytes of a seed, a store's key or a token."""
KEYS_NAME: Final = "keys.json"

_NO_LINKS: Final = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS)
"""Errors of file systems without hard links, such as FAT on a stick."""
_DRAFT_NAME: Final = re.compile(r".+\.[0-9a-f]{16}\.new")


def replace_file(path: Path, content: bytes) -> None:
    """Write a file whole or not at all, over the one that is there. Durable when it returns. Raises OSError."""
    write_beside(path, lambda _: content, lambda beside: beside.replace(path))


def create_file(path: Path, content: bytes) -> None:
    """Write a file whole or not at all where none is. Raises FileExistsError, OSError; two at a time make one file."""
    write_beside(path, lambda _: content, lambda beside: _put_new(beside, path))


def _put_new(draft: Path, path: Path) -> None:
    try:
        os.link(draft, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        os.close(open_new(path))  # the name is this process's alone from here on
        draft.replace(path)


def find_drafts(folder: Path) -> list[Path]:
    """List drafts of files in a folder that nobody is at work on. Raises OSError."""
    return [
        path
        for path in sorted(folder.iterdir())
        if _DRAFT_NAME.fullmatch(path.name) and not _is_at_work(path)
    ]


def sweep_drafts(folder: Path, start: str = "") -> list[Path]:
    """Remove abandoned drafts of files, and return their paths. Raises OSError.

    Only those whose names begin with `start`, if given.
    """
    found = [path for path in find_drafts(folder) if path.name.startswith(start)]
    for path in found:
        path.unlink(missing_ok=True)
    if found:
        sync_folder(folder)
    return found


def _is_at_work(path: Path) -> bool:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:  # gone meanwhile, or nothing of ours
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(handle)


def has_keys(home: Path) -> bool:
    """Return True if a folder has keys."""
    return (home / KEYS_NAME).exists()
