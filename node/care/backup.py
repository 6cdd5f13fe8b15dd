"""Makes, restores and checks backups: in one folder a snapshot of the store for each, packs, keys and configuration.

A backup is made beside a running daemon, which never waits for it, or of a stopped node. What the folder has already is not
written again. A backup gets its name when everything is durable: under a name there is a whole backup or none, and those
before it are not touched. Its manifest holds every file's size and hash, and a restore believes nothing else. Keys are in
it as they lie in the node's folder: sealed, or in the clear.
"""

import fcntl
import os
import re
import secrets
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from blake3 import blake3

from node.care.backup_folder import (
    FILE_NAME,
    FORMAT,
    MANIFEST_NAME,
    PAGES_NAME,
    Backup,
    Entry,
    Manifest,
    bad_backup,
    find_backup,
    finish_backup,
    list_backups,
    lock_folder,
    map_hash_of,
    next_number,
    open_folder,
    remove_older,
    remove_unnamed,
)
from node.care.backup_pages import (
    HASH_KEY_SIZE,
    MAP_NAME,
    NONE,
    BadPages,
    Last,
    PageReader,
    read_pages,
    usable_files,
    write_pages,
)
from node.home.config import CONFIG_NAME
from node.home.folder_mark import MARK_NAME, check_store_stayed, write_mark
from node.home.home import OWN_CERTIFICATE_NAME, hold_content, open_home
from node.home.identity import read_keys
from node.home.private_files import KEYS_NAME, sweep_drafts
from node.home.tokens import TOKENS_NAME
from node.observe.watching import store_sizes
from node.runtime.errors import UNKNOWN_SCHEMA_ADVICE, ServiceError, storage_failed
from node.runtime.version import VERSION
from protocol.limits.files import BACKUP_FILE_COUNT_MAX, FSCK_PROBLEMS_SHOWN_MAX
from protocol.limits.users import DISK_FREE_MIN
from ravel.home import LOCK_NAME, RUN_NAME
from storage.engine.backup_rows import load_database, save_database
from storage.engine.bulk import UNREADABLE
from storage.engine.database import DATABASE_NAME, NewerSchema, NoStore, OlderSchema, StorageError
from storage.engine.folders import make_folder, open_file, open_new, sync_folder
from storage.engine.losses import LOSS_NAME, Loss, write_loss
from storage.engine.store_identity import PACKS_NAME, STORE_ID_NAME

_CHUNK_SIZE: Final = 1 << 20
_NAME_PART_LENGTH: Final = 50
"""Characters of a home's name that its draft has: at most 200 of the 255 bytes that names may have."""
_NOT_KEPT: Final = re.compile(
    "|".join(
        map(re.escape, (LOCK_NAME, RUN_NAME, STORE_ID_NAME, TOKENS_NAME, OWN_CERTIFICATE_NAME, MARK_NAME))
    )
    + rf"|{MANIFEST_NAME}|{MAP_NAME}|.*\.(?:new|part|lock|log)|{re.escape(DATABASE_NAME)}.*|.*\.sqlite"
)
"""Files of a node's folder that are of the moment, and what is of the database, which is copied in its own way.

Tokens of apps are of the moment too: a restore would bring back those that were revoked since. A node makes its
certificate again, so that a backup cannot pose as the page.
"""
Progress = Callable[[int], object]
"""Function that is called with the bytes that were read so far."""


def _ignore(_done: int) -> None:
    """Show no progress."""


@dataclass(frozen=True, slots=True)
class BackupSummary:
    """A backup or a restored node: where, and how much it is."""

    path: Path
    files: int
    size: int  # bytes
    created_at: int  # unix seconds, of the backup
    written: int | None = None
    """Bytes that were not in the folder before; None of a restored node."""

    def as_json(self) -> dict[str, Any]:
        """Return the manifest as answers have it."""
        answer: dict[str, Any] = {
            "path": str(self.path),
            "files": self.files,
            "size": self.size,
            "created_at": self.created_at,
        }
        return answer if self.written is None else {**answer, "written": self.written}


@dataclass(frozen=True, slots=True)
class CheckedBackup:
    """A backup that was read as a whole, and what is wrong with it."""

    path: Path
    created_at: int | None  # unix seconds; None where its manifest cannot be read
    problems: list[str]


def create_backup(
    home: Path, folder: Path, now: int, *, keep: int | None = None, progress: Progress = _ignore
) -> BackupSummary:
    """Write a backup of the node in `home` into the folder of its backups; `now` is unix seconds.

    With `keep`, only so many stay, the newest. Reads all of the database, and packs that the folder has not; writes what is
    new, and MAP_ENTRY_SIZE bytes for each page.
    Raises ServiceError `bad_request` (a folder in `home`), `already_exists`, `already_running` (while data is collected),
    `storage_failed`, `newer_schema`, `too_large`, and those of `open_home`.
    """
    url = open_home(home).storage_url
    node = read_keys(home).node
    if folder.resolve().is_relative_to(home.resolve()):
        raise ServiceError(
            "bad_request",
            f"{folder} is in the node's own folder, and is lost with it",
            "name a folder elsewhere, best on another disk",
        )
    with _explained(folder), hold_content(home, alone=False), open_folder(folder, node) as draft:
        writing = _Writing(home, folder, draft, progress)
        check_store_stayed(home)
        loss = _read_loss_file(home)
        with _passing_copy(home, url, draft) as (copy, schema, packs):
            _copy_small_files(writing, home, draft, loss)
            writing.check_count(len(packs))
            # What is removed first makes room. Packs of a run that was cut are gone on with.
            remove_unnamed(folder, {f"{PACKS_NAME}/{name}" for name in packs})
            writing.write_database(copy)
        # The copy names packs that were whole before it was made, and none is changed or removed while this is held.
        for name in packs:
            writing.add_pack(name)
        made = writing.finish(schema, now)
        if keep is not None:
            remove_older(folder, keep)
        remove_unnamed(folder, set())
    return made


def _is_kept(name: str) -> bool:
    return not _NOT_KEPT.fullmatch(name) and re.fullmatch(FILE_NAME, name) is not None


def _read_loss_file(home: Path) -> Entry | None:
    with suppress(FileNotFoundError):
        return hash_file(home / LOSS_NAME)
    return None


def _copy_small_files(writing: "_Writing", home: Path, draft: Path, loss: Entry | None) -> None:
    """Copy files of the node beside its store, whose copy was begun when the record of a loss was as given.

    A comparison with a peer ends the record when the own commits that were absent are here. Those may not be in the copy,
    and the restored node would use their places again. Raises OSError, ServiceError `already_running`.
    """
    entries = [
        copy_file(home / name, draft / name, name)
        for name in sorted(path.name for path in home.iterdir() if path.is_file() and _is_kept(path.name))
    ]
    if loss is not None and loss not in entries:
        raise ServiceError("already_running", "own commits are just being compared with a peer", "try again")
    for entry in entries:
        writing.add(entry)


@contextmanager
def _passing_copy(home: Path, url: str, draft: Path) -> Iterator[tuple[int, str, list[str]]]:
    """Provide a descriptor of a copy of the rows, with its schema and the names of its packs; delete the copy
    afterwards.

    It lies in the node's folder, or else in that of the backups, where it may have to travel over a network.
    """
    # Copies of processes that were killed. A daemon is at work on other drafts, which it locks a moment later.
    sweep_drafts(home, f"{DATABASE_NAME}.")
    sizes = store_sizes(home)
    free = shutil.disk_usage(home).free - DISK_FREE_MIN
    place = draft if url or free < sizes["database"] + sizes["log"] else home
    path = place / f"{DATABASE_NAME}.{secrets.token_hex(8)}.new"
    handle = open_new(path)
    try:
        if place == home:  # A start would sweep it. On network drives, this lock would shut SQLite out.
            fcntl.flock(handle, fcntl.LOCK_EX)
        save_database(home, url, path)
        schema, packs = _read_schema_and_packs(path)
        copy = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    finally:
        path.unlink(missing_ok=True)
        os.close(handle)
    try:
        yield copy, schema, packs
    finally:
        os.close(copy)


class _Writing:
    """Backup that is being written, and the last one in the same folder."""

    def __init__(self, home: Path, folder: Path, draft: Path, progress: Progress) -> None:
        self._home = home
        self._folder = folder
        self._draft = draft
        self._progress = progress
        self._number = next_number(folder)
        self._page_key = secrets.token_bytes(HASH_KEY_SIZE)
        self._last = NONE
        self._known: dict[str, Entry] = {}
        self._entries: list[Entry] = []
        self._pages: dict[int, int] = {}
        self._read = self._written = self._database_size = 0
        backups = list_backups(folder)
        self._beside = [backup.number for backup in backups]
        for backup in backups[-1:]:
            self._go_on_with(backup)

    def _go_on_with(self, backup: Backup) -> None:
        """Take what the last backup has, where it can be read: else all is written."""
        try:
            manifest = backup.read_manifest()
            if hash_file(backup.path / MAP_NAME).blake3 != map_hash_of(manifest):
                return
        except (ServiceError, OSError):
            return
        self._page_key = bytes.fromhex(manifest.page_key)
        self._last = Last(backup.path / MAP_NAME, usable_files(self._folder / PAGES_NAME, manifest.pages))
        self._known = {entry.path: entry for entry in manifest.files if "/" in entry.path}

    def write_database(self, copy: int) -> None:
        """Write pages that are new, and the list of all. Raises OSError."""
        self._pages = write_pages(copy, self._draft, self._number, self._page_key, self._last, self._progress)
        self._database_size = self._read = os.fstat(copy).st_size
        self.add(hash_file(self._draft / MAP_NAME))
        new = self._draft / PAGES_NAME
        self._written += new.stat().st_size
        if self._number not in self._pages:
            new.unlink()

    def check_count(self, pack_count: int) -> None:
        """Refuse to begin with more files than a manifest names. Raises ServiceError `too_large`."""
        count = len(self._entries) + pack_count + 1
        if count > BACKUP_FILE_COUNT_MAX:
            raise ServiceError(
                "too_large",
                f"the node has {count:,} files, and a backup names {BACKUP_FILE_COUNT_MAX:,} at most",
                "stop the daemon and copy its folder",
            )

    def add(self, entry: Entry) -> None:
        """Count a file that was written."""
        self._entries.append(entry)
        self._written += entry.size

    def add_pack(self, name: str) -> None:
        """Copy a pack of the node, unless the folder has it. Raises OSError."""
        path = f"{PACKS_NAME}/{name}"
        there = self._folder / path
        size = there.stat().st_size if there.is_file() and not there.is_symlink() else -1
        entry = self._known.get(path)
        if entry is None and size == (self._home / path).stat().st_size:  # of a run that was cut
            found = hash_file(there, path)
            entry = found if found == hash_file(self._home / path, path) else None
        if entry is None or entry.size != size:
            entry = copy_file(self._home / path, self._draft / name, path)
            (self._draft / name).rename(there)
            self._written += entry.size
        self._entries.append(entry)
        self._read += entry.size
        self._progress(self._read)

    def finish(self, schema: str, now: int) -> BackupSummary:
        """Give the backup its name. Raises OSError."""
        manifest = Manifest(
            FORMAT,
            VERSION,
            schema,
            now,
            self._database_size,
            self._page_key.hex(),
            self._pages,
            self._beside,
            self._entries,
        )
        backup = finish_backup(self._draft, self._number, manifest)
        return BackupSummary(backup.path, *_amount(manifest), now, self._written)


def _amount(manifest: Manifest) -> tuple[int, int]:
    """Return the number and bytes of the files that a backup becomes."""
    sizes = [entry.size for entry in manifest.files if entry.path != MAP_NAME]
    return len(sizes) + 1, sum(sizes) + manifest.database_size


def restore_backup(
    backup: Path, home: Path, storage_url: str | None = None, *, is_latest: bool = False
) -> BackupSummary:
    """Make a node of a backup, or of the newest in a folder, in `home`, which must not be there or be empty.

    Every file is checked first.

    The rows go into the database that the backup's configuration names, or `storage_url` (empty: a file). Unless the backup
    `is_latest` (nothing was written since), the node asks a peer of each repo before it writes there: a place of a feed that
    was used since would be used twice.
    Raises ServiceError `bad_input` for what is no whole backup, `already_exists`, `already_running`, `storage_failed`,
    `newer_schema`, `bad_config`.
    """
    found = find_backup(backup)
    with _explained(home), lock_folder(found.folder, fcntl.LOCK_SH):
        manifest = _read_whole_manifest(found)
        if home.exists() and any(home.iterdir()):
            raise ServiceError("already_exists", f"there is something in {home}", "choose another --home")
        with _new_folder(home) as draft:
            if any("/" in entry.path for entry in manifest.files):
                (draft / PACKS_NAME).mkdir(mode=0o700)
            for entry in manifest.files:
                _restore_file(found, entry, draft)
            _restore_database(found, manifest, draft / DATABASE_NAME)
            if (draft / PACKS_NAME).exists():
                sync_folder(draft / PACKS_NAME)
            given = () if storage_url is None else (f"storage.url={storage_url}",)
            url = open_home(draft, given).storage_url
            if url:
                load_database(draft, url)
            write_mark(draft)
            if not is_latest:
                write_loss(draft, Loss(None, None, restored_from=manifest.created_at, cause="restored"))
    return BackupSummary(home, *_amount(manifest), manifest.created_at)


def _restore_file(backup: Backup, entry: Entry, draft: Path) -> None:
    try:
        if entry.path == MAP_NAME:
            copied = hash_file(backup.place_of(entry))
        else:
            copied = copy_file(backup.place_of(entry), draft / entry.path, entry.path, os.O_NOFOLLOW)
    except FileNotFoundError:
        raise bad_backup(backup.path, f"{entry.path} is not there") from None
    if copied != entry:
        raise bad_backup(backup.path, f"{entry.path} is not what it was when the backup was made")


def _restore_database(backup: Backup, manifest: Manifest, path: Path) -> None:
    handle = open_new(path)
    try:
        pages = backup.folder / PAGES_NAME
        size = read_pages(pages, backup.path / MAP_NAME, bytes.fromhex(manifest.page_key), handle)
        os.fsync(handle)
    except BadPages as error:
        raise bad_backup(backup.path, str(error)) from None
    finally:
        os.close(handle)
    if size != manifest.database_size:
        raise bad_backup(backup.path, f"its database has {size} bytes, not {manifest.database_size}")
    _check_database(path, backup.path)
    _keep_all_files(path, backup.path)


def check_backups(folder: Path, progress: Progress = _ignore) -> list[CheckedBackup]:
    """Read all that the backups of a folder name, each thing once, and return what is wrong. Costs O(bytes there).

    Raises ServiceError `bad_input` where there is none, `already_running`, `storage_failed`.
    """
    newest = find_backup(folder)
    with (
        _explained(folder),
        lock_folder(newest.folder, fcntl.LOCK_SH),
        PageReader(newest.folder / PAGES_NAME) as reader,
    ):
        checking = _Checking(reader, progress)
        backups = [newest] if newest.path == folder.absolute() else list_backups(newest.folder)
        return [checking.check(backup) for backup in backups]


@dataclass
class _Checking:
    """Packs and pages that were read already, for backups share them."""

    reader: PageReader
    progress: Progress
    packs: dict[Path, Entry] = field(default_factory=dict)
    done: int = 0

    def check(self, backup: Backup) -> CheckedBackup:
        try:
            manifest = _read_whole_manifest(backup)
        except ServiceError as error:
            return CheckedBackup(backup.path, None, [error.message])
        problems = [problem for entry in manifest.files if (problem := self._check_file(backup, entry))]
        try:
            self.reader.check(backup.path / MAP_NAME, bytes.fromhex(manifest.page_key))
        except (BadPages, OSError) as error:
            problems.append(str(error))
        self.done += manifest.database_size
        self.progress(self.done)
        return CheckedBackup(backup.path, manifest.created_at, problems[:FSCK_PROBLEMS_SHOWN_MAX])

    def _check_file(self, backup: Backup, entry: Entry) -> str:
        path = backup.place_of(entry)
        try:
            found = self.packs.get(path) or hash_file(path, entry.path)
        except OSError as error:
            return f"{entry.path} cannot be read: {error}"
        if "/" in entry.path and path not in self.packs:
            self.packs[path] = found
            self.done += found.size
            self.progress(self.done)
        return "" if found == entry else f"{entry.path} is not what it was when the backup was made"


def _read_whole_manifest(backup: Backup) -> Manifest:
    manifest = backup.read_manifest()
    paths = {entry.path for entry in manifest.files}
    needed = {MAP_NAME, CONFIG_NAME, KEYS_NAME}
    if len(paths) != len(manifest.files) or not (needed <= paths) or DATABASE_NAME in paths:
        raise bad_backup(backup.path, "its manifest names a file twice, or not all that a node has")
    return manifest


def _check_database(path: Path, backup: Path) -> None:
    try:
        with closing(sqlite3.connect(path)) as connection:
            answer = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    except UNREADABLE as error:
        raise bad_backup(backup, f"its database cannot be read: {error}") from None
    if answer != "ok":
        raise bad_backup(backup, f"its database is damaged: {answer}")


def _keep_all_files(path: Path, backup: Path) -> None:
    """Unmark files that were given up because others had them when the backup was made: the backup may be the last
    copy now."""
    try:
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("DELETE FROM spared_files")
    except UNREADABLE as error:
        raise bad_backup(backup, f"its database cannot be read: {error}") from None


def _read_schema_and_packs(database: Path) -> tuple[str, list[str]]:
    """Return the schema of a database, older where the node has not run since an upgrade, and the names of its packs."""
    with closing(sqlite3.connect(database)) as connection:
        (schema,) = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        return schema, [row[0] for row in connection.execute("SELECT name FROM packs ORDER BY num")]


def home_draft(home: Path) -> Path:
    """Return the folder that a restore writes, and then renames. Its name is shorter where that of `home` is very long."""
    return home.absolute().with_name(f".{home.name[:_NAME_PART_LENGTH]}.part")


@contextmanager
def _new_folder(home: Path) -> Iterator[Path]:
    """Provide a folder to write into; rename it to `home` if the block succeeds, else remove it.

    What a killed process left of the same name is removed first; its lock tells it from one that is at work.
    """
    draft = home_draft(home)
    make_folder(draft)
    with lock_folder(draft, fcntl.LOCK_EX):
        _empty(draft)
        try:
            yield draft
            sync_folder(draft)
            draft.rename(home)
        except BaseException:  # an interrupt too: nothing half is left
            shutil.rmtree(draft, ignore_errors=True)
            raise
    sync_folder(home.absolute().parent)


@contextmanager
def _explained(out: Path) -> Iterator[None]:
    """Make a ServiceError of what fails."""
    try:
        yield
    except StorageError as error:
        raise _failed(error) from error
    except (OSError, *UNREADABLE) as error:
        raise ServiceError(
            "storage_failed", f"{out} could not be written: {error}", "check space and permissions there"
        ) from error


def _failed(error: StorageError) -> ServiceError:
    if isinstance(error, NewerSchema):
        return ServiceError("newer_schema", str(error), UNKNOWN_SCHEMA_ADVICE)
    if isinstance(error, OlderSchema | NoStore):
        return ServiceError("storage_failed", str(error), "start the node once with this Ravel: `ravel run`")
    return storage_failed(error, "look at [storage] url, and whether that server is up")


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def copy_file(source: Path, target: Path, path: str, links: int = 0) -> Entry:
    """Copy one file and make it durable, readable by its owner alone; return its entry. Raises OSError.

    `links` is O_NOFOLLOW where a symbolic link could lead out of the folder.
    """
    with open_file(source, links) as file, os.fdopen(open_new(target), "wb", buffering=0) as copy:
        hasher = blake3()
        size = 0
        while chunk := file.read(_CHUNK_SIZE):
            hasher.update(chunk)
            size += len(chunk)
            rest = memoryview(chunk)
            while rest:  # a disk that fills up writes a part
                rest = rest[copy.write(rest) :]
        os.fsync(copy.fileno())
    return Entry(path, size, hasher.hexdigest())


def hash_file(source: Path, path: str = "") -> Entry:
    """Return the entry of a file, which is no link; its path is its name unless another is given. Raises OSError."""
    with open_file(source, os.O_NOFOLLOW) as file:
        hasher = blake3()
        size = 0
        while chunk := file.read(_CHUNK_SIZE):
            hasher.update(chunk)
            size += len(chunk)
    return Entry(path or source.name, size, hasher.hexdigest())
