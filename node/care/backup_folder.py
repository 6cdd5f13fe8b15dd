"""Folder of backups of one node: what lies where in it, manifests, and removal of what no backup names.

    backups.json       whose backups these are
    packs/NAME         packs, under the names that the node gave them, each once for all backups
    pages/NUMBER       pages of the database that were new in the backup of that number
    NUMBER-DATE/       a backup: its manifest, the list of its pages, and a copy of each small file
    .part/             a backup that is being written, or was cut
    .gone/             a backup that is being removed

A backup names all that it needs, and needs no other backup. Any of them may be removed: the next run deletes the packs and
files of pages that none names then, and overwrites single pages with zeros.
"""

import fcntl
import json
import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from time import gmtime, strftime
from typing import Annotated, Final, Literal

import msgspec

from node.care.backup_pages import MAP_NAME, PAGES_FILE, erase_unnamed
from node.runtime.errors import ServiceError
from protocol.limits.files import (
    BACKUP_FILE_COUNT_MAX,
    BACKUP_MANIFEST_SIZE_MAX,
    BACKUP_PAGES_COUNT_MAX,
    KEY_FILE_SIZE_MAX,
)
from storage.engine.folders import make_folder, open_file, open_new, sync_file, sync_folder
from storage.engine.store_identity import PACKS_NAME

MANIFEST_NAME: Final = "manifest.json"
FORMAT: Final = "ravel-backup2"
PAGES_NAME: Final = "pages"
DRAFT_NAME: Final = ".part"
FILE_NAME: Final = rf"(?:{PACKS_NAME}/)?[A-Za-z0-9][A-Za-z0-9._-]{{0,127}}"
_OWNER_NAME: Final = "backups.json"
_GONE_NAME: Final = ".gone"
_BACKUP_NAME: Final = re.compile(r"([1-9][0-9]{0,8})-[0-9]{4}-[0-9]{2}-[0-9]{2}")
_PACK_FILE: Final = re.compile(r"[0-9a-f]{32}")
_Hash = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]
_Count = Annotated[int, msgspec.Meta(ge=0)]
_Number = Annotated[int, msgspec.Meta(ge=1, lt=10**9)]


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """File of a backup: its path in the node's folder, bytes and hash."""

    path: Annotated[str, msgspec.Meta(pattern=rf"\A{FILE_NAME}\Z")]
    size: _Count
    blake3: _Hash


class Manifest(msgspec.Struct, frozen=True):
    """All that a backup consists of. A restore believes nothing else."""

    format: str
    version: str
    schema: str  # of the store that is in it
    created_at: int
    database_size: _Count
    page_key: _Hash  # under which pages are hashed
    pages: Annotated[dict[_Number, _Count], msgspec.Meta(max_length=BACKUP_PAGES_COUNT_MAX)]
    """Number of a file of pages, and how many of its pages are in this backup."""
    beside: list[_Number]
    """Numbers of the other backups that were in the folder."""
    files: Annotated[list[Entry], msgspec.Meta(max_length=BACKUP_FILE_COUNT_MAX)]


class _Owner(msgspec.Struct, frozen=True):
    format: Literal["ravel-backup2"]
    node: Annotated[str, msgspec.Meta(max_length=100)]


@dataclass(frozen=True, slots=True)
class Backup:
    """One backup of a folder."""

    folder: Path
    """The folder of all backups."""
    name: str

    @property
    def path(self) -> Path:
        """Return the folder of the backup's own files."""
        return self.folder / self.name

    @property
    def number(self) -> int:
        """Return its number: later ones have higher ones, whatever a clock says."""
        return int(self.name.partition("-")[0])

    def place_of(self, entry: Entry) -> Path:
        """Return where a file of it lies: packs are shared with other backups."""
        return (self.folder if "/" in entry.path else self.path) / entry.path

    def read_manifest(self) -> Manifest:
        """Read the manifest. Raises ServiceError `bad_input`."""
        try:
            with open_file(self.path / MANIFEST_NAME, os.O_NOFOLLOW) as file:
                content = file.read(BACKUP_MANIFEST_SIZE_MAX + 1)
            if len(content) > BACKUP_MANIFEST_SIZE_MAX:
                raise bad_backup(self.path, f"its manifest has more than {BACKUP_MANIFEST_SIZE_MAX} bytes")
            manifest = msgspec.json.decode(content, type=Manifest)
        except OSError as error:
            raise bad_backup(self.path, f"no manifest can be read: {error}") from None
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise bad_backup(self.path, f"its manifest is not of the expected form: {error}") from None
        if manifest.format != FORMAT:
            problem = f"its format is {manifest.format[:40]!r}, and this Ravel reads {FORMAT}"
            raise bad_backup(self.path, problem)
        return manifest


def bad_backup(path: Path, problem: str) -> ServiceError:
    """Return the refusal of what is no whole backup."""
    return ServiceError("bad_input", f"{path} is not a whole backup: {problem}", "use another backup")


def list_backups(folder: Path) -> list[Backup]:
    """List the backups of a folder, the oldest first. Raises OSError."""
    found = [Backup(folder, one.name) for one in folder.iterdir() if _BACKUP_NAME.fullmatch(one.name)]
    return sorted(found, key=lambda one: (one.number, one.name))


def find_backup(path: Path) -> Backup:
    """Return the backup at a path, or the newest of a folder of them. Raises ServiceError `bad_input`."""
    path = path.absolute()
    if (path / MANIFEST_NAME).exists():
        return Backup(path.parent, path.name)
    try:
        found = list_backups(path)
    except FileNotFoundError:
        raise ServiceError(
            "bad_input", f"there is no folder {path}", "check its name, and that its disk is there"
        ) from None
    except OSError as error:
        raise bad_backup(path, f"no manifest can be read: {error}") from None
    if not found:
        raise bad_backup(path, "there is none in it")
    return found[-1]


def may_hold_backups(folder: Path, node: str) -> bool:
    """Return True if backups of a node may go into a folder: it is absent or empty, or has some. Raises OSError."""
    try:
        with open_file(folder / _OWNER_NAME, os.O_NOFOLLOW) as file:
            content = file.read(KEY_FILE_SIZE_MAX)
    except FileNotFoundError:
        return not folder.exists() or (folder.is_dir() and _is_begun(folder))
    except NotADirectoryError:
        return False
    try:
        return msgspec.json.decode(content, type=_Owner).node == node
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False


def _is_begun(folder: Path) -> bool:
    """Return True if nothing is in a folder but what a first run leaves that was killed at once."""
    names = {one.name for one in folder.iterdir()}
    return not names or (
        names == {DRAFT_NAME} and {one.name for one in (folder / DRAFT_NAME).iterdir()} <= {_OWNER_NAME}
    )


def check_folder(folder: Path, node: str) -> None:
    """Refuse a folder for backups of a node that holds others' or something else. Raises OSError, ServiceError."""
    if not may_hold_backups(folder, node):
        whose = "backups of another node" if (folder / _OWNER_NAME).exists() else "other files"
        raise ServiceError("already_exists", f"{folder} holds {whose}", "name a new or empty folder")


@contextmanager
def open_folder(folder: Path, node: str) -> Iterator[Path]:
    """Hold a folder to write a backup of a node into its draft, which is given. A failure leaves no draft.

    Packs that are whole by then stay, and the next run goes on with them.
    Raises OSError, ServiceError `already_exists`, `already_running`.
    """
    check_folder(folder, node)
    is_made = not folder.exists()
    make_folder(folder)
    with lock_folder(folder, fcntl.LOCK_EX):
        check_folder(folder, node)  # another node may have begun meanwhile
        with suppress(
            OSError
        ):  # it is somebody else's, or a drive without modes; all in it is for its owner alone
            folder.chmod(stat.S_IMODE(folder.stat().st_mode) & 0o700)
        try:
            _begin(folder, node)
            yield folder / DRAFT_NAME
        finally:  # after an interrupt too
            shutil.rmtree(folder / DRAFT_NAME, ignore_errors=True)
            if not list_backups(folder):
                _remove_empty(folder, with_itself=is_made)


@contextmanager
def lock_folder(folder: Path, kind: int) -> Iterator[None]:
    """Hold a folder of backups: alone, or with others who read. Raises OSError, ServiceError `already_running`."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(handle, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ServiceError(
                "already_running", f"another process uses {folder}", "wait for it, or choose another folder"
            ) from None
        yield
    finally:
        os.close(handle)


def _begin(folder: Path, node: str) -> None:
    for name in (DRAFT_NAME, _GONE_NAME):  # of a process that was killed
        if (folder / name).exists():
            shutil.rmtree(folder / name)
    if not (folder / _OWNER_NAME).exists():
        (folder / DRAFT_NAME).mkdir(mode=0o700)
        owner = msgspec.json.encode(_Owner(FORMAT, node))
        write_file(folder / DRAFT_NAME / _OWNER_NAME, owner)
        (folder / DRAFT_NAME / _OWNER_NAME).rename(folder / _OWNER_NAME)
    for name in (DRAFT_NAME, PACKS_NAME, PAGES_NAME):
        make_folder(folder / name)
        if (folder / name).is_symlink():  # what none names is removed in it
            raise OSError(f"{folder / name} is a link")


def _remove_empty(folder: Path, *, with_itself: bool) -> None:
    """Remove what was made for the first backup, which failed, unless packs of it are there."""
    with suppress(OSError):
        for name in (PACKS_NAME, PAGES_NAME):
            (folder / name).rmdir()
        (folder / _OWNER_NAME).unlink()
        if with_itself:
            folder.rmdir()


def next_number(folder: Path) -> int:
    """Return the number for a backup: above all that are or were in use. Raises OSError."""
    names = [one.name for one in (folder / PAGES_NAME).iterdir() if PAGES_FILE.fullmatch(one.name)]
    return 1 + max([one.number for one in list_backups(folder)] + [int(name) for name in names], default=0)


def finish_backup(draft: Path, number: int, manifest: Manifest) -> Backup:
    """Rename a draft to its final name once all that it lists is durable; return the backup. Raises OSError."""
    folder = draft.parent
    if (draft / PAGES_NAME).exists():
        (draft / PAGES_NAME).rename(folder / PAGES_NAME / str(number))
    for name in (PACKS_NAME, PAGES_NAME):
        sync_folder(folder / name)
    write_file(draft / MANIFEST_NAME, json.dumps(msgspec.to_builtins(manifest), indent=1).encode())
    sync_folder(draft)
    made = Backup(folder, f"{number}-{strftime('%Y-%m-%d', gmtime(manifest.created_at))}")
    draft.rename(made.path)
    sync_folder(folder)
    return made


def remove_older(folder: Path, keep: int) -> None:
    """Remove all backups but the newest. Raises OSError."""
    for backup in list_backups(folder)[:-keep]:
        backup.path.rename(folder / _GONE_NAME)  # whole or gone
        sync_folder(folder)
        shutil.rmtree(folder / _GONE_NAME)


def remove_unnamed(folder: Path, packs: set[str]) -> None:
    """Remove from a folder what no backup names, but for these packs. Costs O(files), or O(pages) where backups are gone.

    Nothing is removed where a backup cannot be read: it may name anything. Those that were given another name count too.
    Raises OSError.
    """
    backups = list_backups(folder)
    gone: set[int] = set()
    named, numbers, maps = set(packs), set[int](), dict[Path, str]()
    try:
        for backup in _renamed_backups(folder) + backups:
            manifest = backup.read_manifest()  # one at a time: a large one is of 64 MiB
            named.update(entry.path for entry in manifest.files if "/" in entry.path)
            numbers.update(manifest.pages)
            maps[backup.path / MAP_NAME] = map_hash_of(manifest)
            gone = set(manifest.beside)
    except ServiceError:
        return
    for path in (folder / PACKS_NAME).iterdir():
        if _PACK_FILE.fullmatch(path.name) and f"{PACKS_NAME}/{path.name}" not in named:
            path.unlink()
    for path in (folder / PAGES_NAME).iterdir():
        if PAGES_FILE.fullmatch(path.name) and int(path.name) not in numbers:
            path.unlink()
    gone.difference_update(backup.number for backup in backups)
    if gone and all(path.is_file() for path in maps):
        erase_unnamed(folder / PAGES_NAME, maps)


def _renamed_backups(folder: Path) -> list[Backup]:
    return [
        Backup(folder, path.parent.name)
        for path in folder.glob(f"*/{MANIFEST_NAME}")
        if not _BACKUP_NAME.fullmatch(path.parent.name)
    ]


def map_hash_of(manifest: Manifest) -> str:
    """Return the hash that a manifest states for its list of pages, or ""."""
    return next((entry.blake3 for entry in manifest.files if entry.path == MAP_NAME), "")


def write_file(path: Path, content: bytes) -> None:
    """Create a file, durably. Raises OSError."""
    with os.fdopen(open_new(path), "wb") as file:
        file.write(content)
    sync_file(path)
