"""Ravel on this computer: what a node left where, what would be lost with it, and its removal.

Files in a node's folder that are not Ravel's stay, and so does the folder then: somebody may keep others there.
"""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from node.home.config import CONFIG_NAME
from node.home.home import hold_content, lock_home, open_home
from node.home.identity import drop_entry, read_keys
from node.home.private_files import KEYS_NAME
from node.home.service import service_of
from node.observe.watching import store_sizes
from node.runtime.errors import ServiceError
from ravel.home import is_locked

_OURS: Final = re.compile(
    r"(?:\.export-scratch|analysis|api-tls\.pem|api-token|config\.toml|content\.lock|daemon\.log(?:\.1)?|default-repo|"
    r"export\.lock|exports|folder-mark|keys\.json|lock|lost-writes\.json|packs|people\.json|pseudonym\.key|quarantine|"
    r"ravel\.sqlite(?:-last|-shm|-wal)?|ravel-(?:before-repair|of-\w+)\.sqlite(?:\.part)?|run\.json|store-id|"
    r"tokens\.json)(?:(?:\.[0-9a-f]{16})?\.new)?"
)
"""Names that Ravel gives to files and folders in a node's folder, and to drafts of them."""
_LAST: Final = (KEYS_NAME, CONFIG_NAME)
"""What the removal of the rest is asked for with: one that was cut short can be asked for again."""
_LEFT_NAMED_MAX: Final = 10
"""Names of others' files that are said; all of them stay."""


@dataclass(frozen=True, slots=True)
class Installed:
    """Parts of a node on this computer."""

    home: str
    size: int
    """Bytes of Ravel's files in the folder."""
    store_size: int
    """Bytes of these that the store takes: all that was written and came, without exports and logs."""
    protection: str
    database: str
    """The PostgreSQL database of the store, without its password; it stays. Empty: the store is a file in the folder."""
    exports: str
    """Where exports go, if that is outside of the folder; they stay. Empty: into the folder."""
    others: tuple[str, ...]
    """Names of some files in the folder that are not Ravel's. They stay."""
    service: str | None
    """The systemd unit that starts it with the login. Null: there is none."""
    running: bool


def find_installed(home: Path) -> Installed:
    """Look at a node's folder and at its service. O(files of the folder). Raises ServiceError `not_initialised`."""
    opened = open_home(home)
    others = [path.name for path in sorted(home.iterdir()) if not _is_ours(path)]
    destination, unit = opened.export_destination, service_of(home)
    if "://" not in destination:
        destination = os.path.normpath(destination)  # "../out" lies in no folder of its name
    is_outside = "://" in destination or not Path(destination).is_relative_to(home)
    database = next((one.text for one in opened.settings if one.key == "storage.url"), "")
    return Installed(
        home=str(home),
        size=sum(_size_of(path) for path in home.iterdir() if _is_ours(path)),
        store_size=sum(store_sizes(home).values()),
        protection=read_keys(home).protection,
        database=database if opened.storage_url else "",
        exports=destination if is_outside else "",
        others=tuple(others[:_LEFT_NAMED_MAX]),
        service=str(unit.path) if unit.is_installed else None,
        running=is_locked(home),
    )


def remove_home(home: Path) -> bool:
    """Delete Ravel's files of a folder, the keys at the end, and the folder if nothing is left; return True if it is gone.

    Raises ServiceError `already_running` where a process holds the folder or reads its content, `storage_failed`.
    """
    keys = read_keys(home)
    with lock_home(home), hold_content(home, alone=True):
        entries = [path for path in home.iterdir() if _is_ours(path)]
        try:
            for path in sorted(entries, key=lambda one: _LAST.index(one.name) if one.name in _LAST else -1):
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    path.unlink()
        except OSError as error:
            raise ServiceError(
                "storage_failed", f"{error.filename} cannot be deleted: {error.strerror}", "delete it by hand"
            ) from None
    drop_entry(keys)
    with suppress(OSError):  # others' files are in it, or it is a mount
        home.resolve().rmdir()
        if home.is_symlink():
            home.unlink()
    return not home.exists()


def _is_ours(path: Path) -> bool:
    return _OURS.fullmatch(path.name) is not None


def _size_of(path: Path) -> int:
    return sum(_sizes(path)) if path.is_dir() and not path.is_symlink() else path.lstat().st_size


def _sizes(folder: Path) -> Iterator[int]:
    with os.scandir(folder) as entries:
        for one in entries:
            if one.is_dir(follow_symlinks=False):
                yield from _sizes(Path(one.path))
            else:
                yield one.stat(follow_symlinks=False).st_size
