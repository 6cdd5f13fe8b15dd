"""Shrinks the SQLite file: returns pages of deleted rows to the disk (VACUUM), when that is worth it.

VACUUM writes all that is there to a temporary file, and from that over the store, as one transaction through the log: who is
killed in it, or finds the disk full, has the store as it was. It needs room for two copies of what is there, one beside the
store and one where SQLite puts temporary files, so it is done when it gives back a good share, and where there is room.
(VACUUM INTO and a rename would need one copy; but a file that others may have open must not be renamed over. Incremental
vacuum has to be chosen before the first table is made, and makes each write a little larger.)
"""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from storage.engine.backends import FileUse
from storage.engine.database import Database, StorageError, measure_file
from storage.engine.sqlite import DATABASE_NAME

UNUSED_SHARE_MIN: Final = 4
"""One part in so many, a quarter, has to be unused; less is soon used again, and all the rest would be written twice."""
UNUSED_SIZE_MIN: Final = 1 << 20
"""Bytes that have to be unused: less than this is nothing to a disk."""
_RESERVE_SIZE: Final = 64 << 20
"""Bytes that stay free beside the copies."""


@dataclass(frozen=True, slots=True)
class VacuumResult:
    """Result of a vacuum: bytes that were given back (or would be, about), and if none, why."""

    size: int
    because: str = ""


def estimate_vacuum(folder: Path, url: str, taken_size: int) -> VacuumResult:
    """Estimate the bytes that `vacuum_store` would free if `taken_size` bytes of rows went. Raises StorageError."""
    use = measure_file(folder, url)
    return _plan(folder, use, use.unused + taken_size if use else 0)


def measure_unused(folder: Path, url: str) -> int:
    """Return the bytes that the file does not use now; nobody else may write to it. Raises StorageError."""
    database = Database(folder, url=url)
    try:
        use = database.measure_file()
    finally:
        database.close()
    return use.unused if use else 0


def vacuum_store(folder: Path, url: str, expected: int = 0) -> VacuumResult:
    """Rewrite the store's file if that frees enough. Nobody else may write to it meanwhile. Costs O(file).

    `expected` is how many bytes deletions should have freed: pages that they left half empty do not count as unused.
    Raises StorageError if the store cannot be opened.
    """
    database = Database(folder, url=url)
    try:
        use = database.measure_file()
        planned = _plan(folder, use, max(use.unused, expected) if use else 0)
        if use is None or not planned.size:
            return planned
        try:
            database.rewrite_file()
        except StorageError as error:
            return VacuumResult(0, f"it could not be written anew, and was left as it is ({error})")
    finally:
        database.close()
    return VacuumResult(max(0, use.size - (folder / DATABASE_NAME).stat().st_size))


def _plan(folder: Path, use: FileUse | None, unused: int) -> VacuumResult:
    if use is None:
        return VacuumResult(0, "the server keeps the room for new rows (its autovacuum sees to that)")
    unused = min(unused, use.size)
    if unused < UNUSED_SIZE_MIN or unused * UNUSED_SHARE_MIN < use.size:
        return VacuumResult(
            0, f"{unused} bytes of the file's {use.size} are unused, which is too little to write it anew"
        )
    needed: dict[str, tuple[Path, int]] = {}
    for place in (folder, temporary_folder(os.environ)):
        device = _filesystem_of(place)
        needed[device] = (place, needed.get(device, (place, _RESERVE_SIZE))[1] + use.size - unused)
    for place, size in needed.values():
        if (free := shutil.disk_usage(place).free) < size:
            return VacuumResult(
                0, f"writing the file anew needs {size} bytes in {place}, and {free} are free"
            )
    return VacuumResult(unused)


def _filesystem_of(place: Path) -> str:
    """Return the number of the file system of a path."""
    return str(place.stat().st_dev)


def temporary_folder(environment: Mapping[str, str]) -> Path:
    """Return SQLite's folder for temporary files: the first one it can write to (sqlite.org/tempfiles.html)."""
    named = (environment.get("SQLITE_TMPDIR"), environment.get("TMPDIR"))
    for name in (*named, "/var/tmp", "/usr/tmp", "/tmp"):  # noqa: S108  # nothing is made there by us
        if name and Path(name).is_dir() and os.access(name, os.W_OK | os.X_OK):
            return Path(name)
    return Path.cwd()
