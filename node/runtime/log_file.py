"""The file of a daemon's log: written as far as the disk takes it, and put aside when it is large.

Apart from what makes the lines: a command that starts a daemon puts its log aside too, and does not wait for structlog.
"""

import io
import os
from contextlib import suppress
from pathlib import Path
from typing import Final, TextIO

from protocol.limits.users import LOG_FILE_SIZE_MAX
from storage.engine.folders import open_or_create

_STANDARD: Final = (1, 2)
"""File descriptors of standard output and standard error."""


class UnfailingFile(io.TextIOBase):
    """Log file that never fails: a full disk must not stop a node that could go on reading."""

    def __init__(self, file: TextIO, path: Path | None) -> None:
        """`path`: where the file is if it is this program's own, which is put aside when it is large."""
        self._file = file
        self._path = path
        self._written = 0

    def write(self, text: str) -> int:
        """Write, or lose it."""
        with suppress(OSError):
            self._written += self._file.write(text)
            if self._path is not None and self._written > LOG_FILE_SIZE_MAX // 4:
                self._written = 0
                put_aside_if_large(self._path, self._file)
        return len(text)

    def flush(self) -> None:
        """Flush, or lose it."""
        with suppress(OSError):
            self._file.flush()


def put_aside_if_large(path: Path, file: TextIO | None = None) -> None:
    """Rename a log of more than LOG_FILE_SIZE_MAX, over the one that was put aside before. Raises OSError.

    `file` is what this process writes to: it and standard output go on in a new file if they are the one at `path`. Where
    that cannot be made, the log stays where it is.
    """
    with suppress(FileNotFoundError):
        found = path.stat()
        if found.st_size <= LOG_FILE_SIZE_MAX:
            return
        aside = path.with_name(f"{path.name}.1")
        if file is None:
            path.replace(aside)
            return
        own = [one for one in _STANDARD if os.path.samestat(os.fstat(one), found)]
        if not own:
            return  # standard error goes elsewhere, and this is another process's
        handle = _begin_anew(path, aside)
        with suppress(OSError):  # what the disk does not take now begins the new file
            file.flush()
        for one in own:
            os.dup2(handle, one)
        os.close(handle)


def _begin_anew(path: Path, aside: Path) -> int:
    """Put the log aside, and a new file in its place; the new one's descriptor. Raises OSError, and then changes nothing."""
    fresh = path.with_name(f"{path.name}.new")
    # Opened before the log is renamed: without a file at `path` this process would never again see how large its log is.
    handle = open_or_create(fresh, os.O_WRONLY | os.O_APPEND)
    try:
        path.replace(aside)
        try:
            fresh.replace(path)
        except OSError:
            aside.replace(path)
            raise
    except OSError:
        os.close(handle)
        fresh.unlink(missing_ok=True)
        raise
    return handle
