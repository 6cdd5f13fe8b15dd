"""Makes files, names and folders durable: syncs them, and the parent folder, so that they survive a power cut."""

import os
from pathlib import Path


def make_folder(path: Path) -> None:
    """Make a folder for its owner alone, and those above it that are missing; all their names are durable. Raises OSError.

    The parent of one that is there already is synced too: who made it may have been killed before doing so.
    """
    missing = [path]
    while not missing[-1].exists() and not missing[-1].parent.exists():
        missing.append(missing[-1].parent)
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)
        sync_folder(folder.absolute().parent)


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
