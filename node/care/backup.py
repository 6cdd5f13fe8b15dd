"""Creates and restores backups: one folder with a store snapshot, packs, keys and configuration.

A backup is made beside a running daemon, which never waits for it, or of a stopped node. It is written into a folder
with another name and renamed when everything is durable: under the name that was asked for there is a whole backup or
none. Its manifest holds every file's size and hash, and a restore believes nothing else. Keys are in it as they lie in
the node's folder: sealed, or in the clear.
"""

import fcntl
import json
import os
import re
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
from blake3 import blake3

from node.home.config import CONFIG_NAME
from node.home.folder_mark import MARK_NAME, check_store_stayed, write_mark
from node.home.home import OWN_CERTIFICATE_NAME, hold_content, open_home
from node.home.private_files import KEYS_NAME
from node.home.tokens import TOKENS_NAME
from node.runtime.errors import UNKNOWN_SCHEMA_ADVICE, ServiceError, storage_failed
from node.runtime.version import VERSION
from protocol.limits.files import BACKUP_FILE_COUNT_MAX, BACKUP_MANIFEST_SIZE_MAX
from ravel.home import LOCK_NAME, RUN_NAME
from storage.engine.backup_rows import load_database, save_database
from storage.engine.bulk import UNREADABLE
from storage.engine.database import DATABASE_NAME, NewerSchema, NoStore, OlderSchema, StorageError
from storage.engine.folders import make_folder, open_new, sync_file, sync_folder
from storage.engine.losses import Loss, write_loss
from storage.engine.store_identity import PACKS_NAME, STORE_ID_NAME

MANIFEST_NAME: Final = "manifest.json"
_FORMAT: Final = "ravel-backup1"
_CHUNK_SIZE: Final = 1 << 20
_NAME_PART_LENGTH: Final = 50
"""Characters of a backup's name that its draft has: at most 200 of the 255 bytes that names may have."""
_FILE_NAME: Final = rf"(?:{PACKS_NAME}/)?[A-Za-z0-9][A-Za-z0-9._-]{{0,127}}"
_NOT_KEPT: Final = re.compile(
    rf"{re.escape(LOCK_NAME)}|{re.escape(RUN_NAME)}|{re.escape(STORE_ID_NAME)}|{re.escape(TOKENS_NAME)}|{re.escape(OWN_CERTIFICATE_NAME)}|{re.escape(MARK_NAME)}|.*\.(?:new|part|lock|log)|"
    rf"{re.escape(DATABASE_NAME)}.*|.*\.sqlite"
)
"""Files of a node's folder that are of the moment, and what is of the database, which is copied in its own way.

Tokens of apps are of the moment too: a restore would bring back those that were revoked since. A node makes its
certificate again, so that a backup cannot pose as the page.
"""


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    path: Annotated[str, msgspec.Meta(pattern=rf"\A{_FILE_NAME}\Z")]
    size: Annotated[int, msgspec.Meta(ge=0)]
    blake3: Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]


class _Manifest(msgspec.Struct, frozen=True):
    format: str
    version: str
    schema: str  # of the store that is in it
    created_at: int
    files: Annotated[list[_Entry], msgspec.Meta(max_length=BACKUP_FILE_COUNT_MAX)]


@dataclass(frozen=True, slots=True)
class BackupSummary:
    """A backup or a restored node: where, and how much it is."""

    path: Path
    files: int
    size: int  # bytes
    created_at: int  # unix seconds, of the backup

    def as_json(self) -> dict[str, Any]:
        """Return the manifest as answers have it."""
        return {
            "path": str(self.path),
            "files": self.files,
            "size": self.size,
            "created_at": self.created_at,
        }


def create_backup(home: Path, out: Path, now: int) -> BackupSummary:
    """Write a backup of the node in `home` as the new folder `out`; `now` is unix seconds.

    Raises ServiceError `already_exists`, `already_running` (while data is collected), `storage_failed`, `newer_schema`,
    and those of `open_home`.
    """
    url = open_home(home).storage_url
    with hold_content(home, alone=False), _new_folder(out) as draft:
        names = sorted(
            path.name
            for path in home.iterdir()
            if path.is_file() and not _NOT_KEPT.fullmatch(path.name) and re.fullmatch(_FILE_NAME, path.name)
        )
        check_store_stayed(home)
        save_database(home, url, draft / DATABASE_NAME)
        entries = [_entry_of(draft, DATABASE_NAME)]
        entries += [_copy(home, draft, name) for name in names]
        schema, packs = _read_schema_and_packs(draft / DATABASE_NAME)
        if packs:
            (draft / PACKS_NAME).mkdir(mode=0o700)
        # The copy names packs that were whole before it was made, and none is changed or removed while this is held.
        entries += [_copy(home, draft, f"{PACKS_NAME}/{name}") for name in packs]
        manifest = _Manifest(_FORMAT, VERSION, schema, now, entries)
        _write(draft / MANIFEST_NAME, json.dumps(msgspec.to_builtins(manifest), indent=1).encode())
        if packs:
            sync_folder(draft / PACKS_NAME)
    return BackupSummary(out, len(entries), sum(entry.size for entry in entries), now)


def restore_backup(
    backup: Path, home: Path, storage_url: str | None = None, *, is_latest: bool = False
) -> BackupSummary:
    """Make a node of a backup in `home`, which must not be there or be empty; every file is checked first.

    The rows go into the database that the backup's configuration names, or `storage_url` (empty: a file). Unless the backup
    `is_latest` (nothing was written since), the node asks a peer of each repo before it writes there: a place of a feed that
    was used since would be used twice.
    Raises ServiceError `bad_input` for what is no whole backup, `already_exists`, `storage_failed`, `newer_schema`,
    `bad_config`.
    """
    manifest = _read_manifest(backup)
    if home.exists() and any(home.iterdir()):
        raise ServiceError("already_exists", f"there is something in {home}", "choose another --home")
    with _new_folder(home, replaces_empty=True) as draft:
        if any("/" in entry.path for entry in manifest.files):
            (draft / PACKS_NAME).mkdir(mode=0o700)
        for entry in manifest.files:
            try:
                copied = _copy(backup, draft, entry.path, os.O_NOFOLLOW)
            except FileNotFoundError:
                raise _bad(backup, f"{entry.path} is not there") from None
            if copied != entry:
                raise _bad(backup, f"{entry.path} is not what it was when the backup was made")
        _check_database(draft / DATABASE_NAME, backup)
        _keep_all_files(draft / DATABASE_NAME, backup)
        if (draft / PACKS_NAME).exists():
            sync_folder(draft / PACKS_NAME)
        given = () if storage_url is None else (f"storage.url={storage_url}",)
        url = open_home(draft, given).storage_url
        if url:
            load_database(draft, url)
        write_mark(draft)
        if not is_latest:
            write_loss(draft, Loss(None, None, restored_from=manifest.created_at, cause="restored"))
    size = sum(entry.size for entry in manifest.files)
    return BackupSummary(home, len(manifest.files), size, manifest.created_at)


def _read_manifest(backup: Path) -> _Manifest:
    path = backup / MANIFEST_NAME
    try:
        with path.open("rb") as file:
            content = file.read(BACKUP_MANIFEST_SIZE_MAX + 1)
        if len(content) > BACKUP_MANIFEST_SIZE_MAX:
            raise _bad(backup, f"its manifest has more than {BACKUP_MANIFEST_SIZE_MAX} bytes")
        manifest = msgspec.json.decode(content, type=_Manifest)
    except OSError as error:
        raise _bad(backup, f"no manifest can be read: {error}") from None
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise _bad(backup, f"its manifest is not of the expected form: {error}") from None
    paths = {entry.path for entry in manifest.files}
    if manifest.format != _FORMAT:
        raise _bad(backup, f"its format is {manifest.format[:40]!r}, and this Ravel reads {_FORMAT}")
    if len(paths) != len(manifest.files) or not ({DATABASE_NAME, CONFIG_NAME, KEYS_NAME} <= paths):
        raise _bad(backup, "its manifest names a file twice, or not all that a node has")
    return manifest


def _check_database(path: Path, backup: Path) -> None:
    try:
        with closing(sqlite3.connect(path)) as connection:
            answer = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    except UNREADABLE as error:
        raise _bad(backup, f"its database cannot be read: {error}") from None
    if answer != "ok":
        raise _bad(backup, f"its database is damaged: {answer}")


def _keep_all_files(path: Path, backup: Path) -> None:
    """Give no files up for the sake of who had them when the backup was made: it may be the last copy now."""
    try:
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("DELETE FROM spared_files")
    except UNREADABLE as error:
        raise _bad(backup, f"its database cannot be read: {error}") from None


def _read_schema_and_packs(database: Path) -> tuple[str, list[str]]:
    """Return the schema of a database, older where the node has not run since an upgrade, and the names of its packs."""
    with closing(sqlite3.connect(database)) as connection:
        (schema,) = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        return schema, [row[0] for row in connection.execute("SELECT name FROM packs ORDER BY num")]


def draft_of(out: Path) -> Path:
    """Return the folder that is written, and then renamed. Its name is shorter where that of `out` is as long as can be."""
    return out.absolute().with_name(f".{out.name[:_NAME_PART_LENGTH]}.part")


@contextmanager
def _new_folder(out: Path, *, replaces_empty: bool = False) -> Iterator[Path]:
    """Give a folder to write into; name it `out` when the block ends well, and remove it otherwise.

    What a killed process left of the same name is removed first; its lock tells it from one that is at work.
    """
    if out.exists() and not replaces_empty:
        raise ServiceError("already_exists", f"{out} is there already", "choose another name")
    draft = draft_of(out)
    try:
        make_folder(draft)
        handle = os.open(draft, os.O_RDONLY | os.O_DIRECTORY)
        try:
            _lock_draft(handle, out)
            _empty(draft)
            try:
                yield draft
                os.fsync(handle)
                draft.rename(out)
            except BaseException:  # an interrupt too: nothing half is left
                shutil.rmtree(draft, ignore_errors=True)
                raise
        finally:
            os.close(handle)
        sync_folder(out.absolute().parent)
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


def _lock_draft(handle: int, out: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ServiceError(
            "already_running", f"another process is writing {out}", "wait for it, or choose another name"
        ) from None


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def _copy(source: Path, target: Path, name: str, links: int = 0) -> _Entry:
    """Copy one file and make it durable, readable by its owner alone; return its entry. Raises OSError.

    `links` is O_NOFOLLOW where a symbolic link could lead out of the folder.
    """
    reading = os.open(source / name, os.O_RDONLY | links | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(reading, "rb", buffering=0) as file:
        if not stat.S_ISREG(os.fstat(reading).st_mode):
            raise OSError(f"{source / name} is not a file")
        hasher = blake3()
        size = 0
        writing = open_new(target / name)
        with os.fdopen(writing, "wb", buffering=0) as copy:
            while chunk := file.read(_CHUNK_SIZE):
                hasher.update(chunk)
                size += len(chunk)
                rest = memoryview(chunk)
                while rest:  # a disk that fills up writes a part
                    rest = rest[copy.write(rest) :]
            os.fsync(writing)
    return _Entry(name, size, hasher.hexdigest())


def _entry_of(folder: Path, name: str) -> _Entry:
    path = folder / name
    hasher = blake3()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_SIZE):
            hasher.update(chunk)
    return _Entry(name, path.stat().st_size, hasher.hexdigest())


def _write(path: Path, content: bytes) -> None:
    with os.fdopen(open_new(path), "wb") as file:
        file.write(content)
    sync_file(path)


def _bad(backup: Path, problem: str) -> ServiceError:
    return ServiceError("bad_input", f"{backup} is not a whole backup: {problem}", "use another backup")
