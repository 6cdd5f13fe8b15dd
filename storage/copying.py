"""Copies of the database while it is in use, each one moment of the store, whole or not there at all.

SQLite's backup API copies all pages in one step under one read transaction: in WAL mode nobody waits for it. VACUUM INTO
would make a smaller file, and build every index anew.
"""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

_FIRST_SEALED: Final = "r0017"
"""The first schema whose stores are sealed when they are opened with a key."""


def copy_database(source: Path, target: Path) -> None:
    """Copy the SQLite database at `source` to `target`, which only its owner may read. Durable when it returns.

    Raises OSError, sqlite3.Error; a target that was begun may be left then.
    """
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    there = f"{source.absolute().as_uri()}?mode=rw"  # a source that is not there is not made
    with closing(sqlite3.connect(there, uri=True)) as reader, closing(sqlite3.connect(target)) as writer:
        reader.backup(writer)
        writer.execute("PRAGMA journal_mode=DELETE")  # one file, without a log beside it
    sync_file(target)


def take_place(path: Path, revision: str, copy: Callable[[Path], None]) -> Path:
    """Have a store of an older revision copied to a file beside its own; copies of earlier times go.

    Raises OSError, and what `copy` does.
    """
    target = path.with_name(f"{path.stem}-of-{revision}{path.suffix}")
    begun = target.with_name(target.name + ".part")
    begun.unlink(missing_ok=True)
    copy(begun)
    begun.rename(target)
    sync_folder(target.parent)
    for older in path.parent.glob(f"{path.stem}-of-*{path.suffix}"):
        if older != target:
            older.unlink()
    return target


def drop_open_copies(folder: Path) -> list[Path]:
    """Remove copies of stores whose secrets lay in the clear; gives them. Raises OSError."""
    found = [
        path
        for path in sorted(folder.glob("*-of-r[0-9][0-9][0-9][0-9].sqlite"))
        if path.stem.rpartition("-of-")[2] < _FIRST_SEALED
    ]
    for path in found:
        path.unlink(missing_ok=True)
    return found


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
