"""Copies a database that is in use, as one consistent snapshot; the copy appears whole or not at all.

SQLite's backup API copies all pages in one step under one read transaction: in WAL mode nobody waits for it. VACUUM INTO
would make a smaller file, and build every index anew.
"""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

from storage.engine.folders import open_new, sync_file, sync_folder


def copy_database(source: Path, target: Path) -> None:
    """Copy the SQLite database at `source` to `target`, which only its owner may read. Durable when it returns.

    Raises OSError, sqlite3.Error; a target that was begun may be left then.
    """
    os.close(open_new(target))
    there = f"{source.absolute().as_uri()}?mode=rw"  # a source that is not there is not made
    with closing(sqlite3.connect(there, uri=True)) as reader, closing(sqlite3.connect(target)) as writer:
        reader.backup(writer)
        writer.execute("PRAGMA journal_mode=DELETE")  # one file, without a log beside it
    sync_file(target)


OLDER: Final = "of-"
"""With a revision behind it, the label of a copy that was made before a migration."""


def copy_beside(path: Path, label: str, copy: Callable[[Path], None]) -> Path:
    """Have a store copied to a file beside its own, named by the label; earlier ones of that label go.

    Of copies before migrations the latest stays. Raises OSError, and what `copy` does.
    """
    target = path.with_name(f"{path.stem}-{label}{path.suffix}")
    begun = target.with_name(target.name + ".part")
    begun.unlink(missing_ok=True)
    copy(begun)
    begun.rename(target)
    sync_folder(target.parent)
    if label.startswith(OLDER):
        for older in path.parent.glob(f"{path.stem}-{OLDER}*{path.suffix}"):
            if older != target:
                older.unlink()
    return target


def drop_open_copies(folder: Path) -> list[Path]:
    """Remove copies of stores whose secrets lie in them in the clear, and what was begun of any; gives them. Raises OSError.

    A schema says nothing of that: a store is sealed when it is first opened with a key, and may be migrated before.
    """
    found = [
        path
        for path in sorted(folder.glob("*-of-r[0-9][0-9][0-9][0-9].sqlite*"))
        if path.is_file() and not (path.suffix == ".sqlite" and _is_sealed(path))
    ]
    for path in found:
        path.unlink(missing_ok=True)
    return found


def _is_sealed(path: Path) -> bool:
    """Whether a copy is of a store that was sealed, and then written anew."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as reader:
            return bool(reader.execute("SELECT is_clean FROM store_seal").fetchone() == (1,))
    except sqlite3.Error:  # of an older schema, or none of ours
        return False
