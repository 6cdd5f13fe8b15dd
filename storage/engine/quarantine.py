"""Quarantine folder: keeps files that a start could not account for, until a user deletes them.

    quarantine/packs/NAME         packs that no row named: of an add that was cut, or of rows that were lost
    quarantine/log-TIME/          the database and its log as they were, where the log was damaged

A pack whose rows come back goes back. What is kept here takes room until `ravel gc --quarantine` empties it.
"""

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from storage.engine.folders import make_folder, move_file
from storage.engine.store_identity import PACKS_NAME

QUARANTINE_NAME: Final = "quarantine"


@dataclass(frozen=True, slots=True)
class Quarantined:
    """Number and size of quarantined files, and since when they are there."""

    files: int
    size: int  # bytes
    oldest: float  # unix seconds; 0 where nothing is kept


def set_packs_aside(folder: Path, names: Iterable[str]) -> int:
    """Move packs into quarantine; return how many. Raises OSError."""
    count = 0
    for name in names:
        aside = folder / QUARANTINE_NAME / PACKS_NAME
        make_folder(aside)
        move_file(folder / PACKS_NAME / name, aside / name)
        count += 1
    return count


def restore_packs(folder: Path, names: Iterable[str]) -> int:
    """Move the given packs back that are in quarantine and not in their place; return how many. Raises OSError."""
    aside = folder / QUARANTINE_NAME / PACKS_NAME
    count = 0
    for name in names:
        if (aside / name).exists() and not (folder / PACKS_NAME / name).exists():
            make_folder(folder / PACKS_NAME)
            move_file(aside / name, folder / PACKS_NAME / name)
            count += 1
    return count


def measure_quarantine(folder: Path) -> Quarantined:
    """Measure the quarantine. Costs O(files in it). Raises OSError."""
    found = [path.stat() for path in (folder / QUARANTINE_NAME).rglob("*") if path.is_file()]
    # When it was moved here, and not when it was written.
    oldest = min((one.st_ctime for one in found), default=0.0)
    return Quarantined(len(found), sum(one.st_size for one in found), oldest)


def empty_quarantine(folder: Path) -> Quarantined:
    """Delete all that is in quarantine, on request; return what it was. Raises OSError."""
    found = measure_quarantine(folder)
    if found.files:
        shutil.rmtree(folder / QUARANTINE_NAME)
    return found
