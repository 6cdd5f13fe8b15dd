"""Records why a store may lack commits of its own user, and keeps what is left of a damaged one.

Writes were lost, the folder was restored or copied, or its user came by words or a file. Until peers have been asked,
nobody can tell which places of the user's own feeds were used. That is written down in the folder before anything else
is written, so that it is known however often the node is started.
"""

import os
import shutil
import sqlite3
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
from blake3 import blake3

from protocol.ids import RepoId
from storage.engine.errors import LostStore, StorageError
from storage.engine.folders import make_folder, open_new, sync_file, sync_folder, write_beside
from storage.engine.last_write import LAST_WRITE_NAME, count_lost, lock_if_unused, read_last_write
from storage.engine.log_check import examine_log
from storage.engine.quarantine import QUARANTINE_NAME

LOSS_NAME: Final = "lost-writes.json"
_FILE_SIZE_MAX: Final = 1 << 20
"""Bytes of the file: some 15,000 repos."""
_LOST_ENOUGH: Final = 2
"""Transactions behind the log's end that show damage: one alone may be of a write that the power was cut in."""
_CHUNK_SIZE: Final = 1 << 20
_HEADER_SIZE: Final = 100
"""Bytes of an SQLite file's header: a shorter file holds nothing."""


_RepoHex = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]
Cause = Literal["lost", "restored", "copied", "recovered", "elsewhere"]
"""Cause of absent own commits: acknowledged writes were lost, the folder was made from a backup, the folder is a copy, its
user came by words or a file, or peers have own commits that are not of this store."""


class Loss(msgspec.Struct, frozen=True):
    """Record of why own commits may be absent."""

    acknowledged: int | None  # transactions by the last count; none where nothing said so
    found: int | None  # those that were there; none where the database did not open
    repos: list[_RepoHex] | None = None
    """Ids of repos whose own feeds are uncertain; none stands for all that are here."""
    kept: str = ""
    """Folder where the database and its log were copied to, if the log was damaged."""
    restored_from: int | None = None
    """Unix seconds of the backup that the store was restored from: what was written since is not here."""
    deleted: list[_RepoHex] = []
    """Ids of repos that were deleted here: should one come back, its own feeds go on behind what others hold."""
    returned: list[_RepoHex] = []
    """Ids of repos that came here since, by links, and whose own feeds no peer was compared for yet."""
    cause: Cause = "lost"
    has_past: bool = True
    """True if the user may have written to repos that this store never knew: each that comes by a link is uncertain."""

    @property
    def is_lost(self) -> bool:
        """Return True while an own feed of a repo that was here is uncertain."""
        return self.repos is None or bool(self.repos)

    @property
    def is_damage(self) -> bool:
        """Return True if the store lost writes, and False if it is whole but older than its user."""
        return self.is_lost and self.cause == "lost" and self.restored_from is None

    @property
    def detail(self) -> str:
        """Return the loss as a sentence."""
        if self.restored_from is not None:
            made_at = f"{datetime.fromtimestamp(self.restored_from, UTC):%Y-%m-%d %H:%M} UTC"
            return f"restored from a backup of {made_at}; what was written since is not here"
        if self.cause == "copied":
            return "this folder is a copy; what was written at the original since is not here"
        if self.cause == "recovered":
            return "your key is older than this node; what you wrote elsewhere may not be here"
        if self.cause == "elsewhere":
            return "a peer had commits of yours that were not here: this node was set back, or another one uses your key"
        if not self.is_lost:
            return (
                "you may have written to it before acknowledged writes were lost here"
                if self.returned
                else "the repo was deleted here once"
            )
        said = "acknowledged writes were lost"
        if self.acknowledged is not None and self.found is not None:
            lost = count_lost(self.found, self.acknowledged)
            said = f"{lost} acknowledged writes were lost" if lost else "the log is damaged"
        return f"{said}; as it was: {self.kept}" if self.kept else said


def read_loss(folder: Path) -> Loss | None:
    """Read the folder's record, or None. A file that cannot be read means that all is uncertain. Raises OSError."""
    try:
        with (folder / LOSS_NAME).open("rb") as file:
            content = file.read(_FILE_SIZE_MAX + 1)
    except FileNotFoundError:
        return None
    try:
        return msgspec.json.decode(content[:_FILE_SIZE_MAX], type=Loss)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Loss(None, None)


def write_loss(folder: Path, loss: Loss) -> None:
    """Write the folder's record, durably. Raises OSError."""
    target = folder / LOSS_NAME
    write_beside(target, lambda _: msgspec.json.encode(loss), lambda beside: beside.replace(target))


def note_loss(folder: Path, loss: Loss) -> None:
    """Record a loss, unless it is recorded. Repos that an earlier one left uncertain stay so. Raises OSError."""
    known = read_loss(folder)
    if known is None:
        write_loss(folder, loss)
    elif not known.is_lost or (known.acknowledged, known.found) != (loss.acknowledged, loss.found):
        write_loss(folder, msgspec.structs.replace(loss, deleted=known.deleted, returned=known.returned))


def note_cause(folder: Path, cause: Cause) -> None:
    """Record, before an older or copied store is used, that it may lack what its user wrote elsewhere. Raises OSError.

    What is written down of lost writes stays: it says more.
    """
    known = read_loss(folder)
    if known is None or not known.is_lost:
        note_loss(folder, Loss(None, None, cause=cause))


def note_deletion(folder: Path, repo_id: RepoId) -> Loss:
    """Record, before a repo is deleted, that its own feeds are uncertain should it come back. Raises OSError."""
    known = read_loss(folder) or Loss(None, None, repos=[], has_past=False)
    noted = msgspec.structs.replace(known, deleted=sorted({*known.deleted, repo_id.hex()}))
    write_loss(folder, noted)
    return noted


def note_return(folder: Path, repo_id: RepoId) -> Loss:
    """Record, before a repo comes by a link, that its own feeds are uncertain: its user has a past. Raises OSError."""
    known = read_loss(folder) or Loss(None, None, repos=[])
    noted = msgspec.structs.replace(known, returned=sorted({*known.returned, repo_id.hex()}))
    write_loss(folder, noted)
    return noted


def note_elsewhere(folder: Path, repo_id: RepoId) -> Loss:
    """Record that own commits of a repo came which the store had not: there may be more. Raises OSError."""
    known = read_loss(folder)
    if known is None or not (known.is_lost or known.returned):
        deleted = [] if known is None else known.deleted
        write_loss(folder, Loss(None, None, repos=[], deleted=deleted, cause="elsewhere"))
    return note_return(folder, repo_id)


def settle_loss(folder: Path, left: Iterable[RepoId]) -> None:
    """Record that own feeds are certain again, of all repos but these. Raises OSError.

    That the user has a past stays written down: a further repo may come by a link at any time.
    """
    known = read_loss(folder)
    if known is None:
        return
    uncertain = {raw.hex() for raw in left}
    deleted, returned = (sorted(uncertain & set(one)) for one in (known.deleted, known.returned))
    repos = sorted(uncertain - {*deleted, *returned})
    if not uncertain and not known.has_past:
        (folder / LOSS_NAME).unlink(missing_ok=True)
        sync_folder(folder)
        return
    settled = msgspec.structs.replace(known, repos=repos, deleted=deleted, returned=returned)
    if not repos:  # the same counts may come about again, by another loss
        settled = msgspec.structs.replace(settled, acknowledged=None, found=None, kept="")
    if settled != known:
        write_loss(folder, settled)


def check_not_lost(folder: Path, database: Path, acknowledged: int | None) -> None:
    """Raise LostStore if writes were acknowledged of which the database file has nothing left. Raises OSError."""
    if not acknowledged:
        return
    try:
        size = database.stat().st_size
    except FileNotFoundError:
        raise _lost(database, "is gone", acknowledged) from None
    if size < _HEADER_SIZE:
        raise _lost(database, f"has {size} bytes", acknowledged)


def check_has_rows(connection: sqlite3.Connection, database: Path, acknowledged: int | None) -> None:
    """Raise LostStore if writes were acknowledged in what is an empty database. Raises sqlite3.Error."""
    if acknowledged and not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise _lost(database, "is an empty database", acknowledged)


def _lost(database: Path, state: str, acknowledged: int) -> LostStore:
    return LostStore(
        f"{database} {state}, and {acknowledged} writes in it were acknowledged: the store of this node is lost"
    )


def discard_lost_store(folder: Path, database: Path) -> None:
    """Make way for an empty store in the place of a lost one, whose log is kept. Raises OSError.

    Own feeds stay uncertain of all repos that come back.
    """
    log = database.with_name(f"{database.name}-wal")
    if log.exists() and log.stat().st_size:
        copy_to_quarantine(folder, "log", [one for one in (log, database) if one.exists()])
    write_loss(folder, Loss(read_last_write(folder), 0))
    for left in (database, log, database.with_name(f"{database.name}-shm"), folder / LAST_WRITE_NAME):
        left.unlink(missing_ok=True)
    sync_folder(folder)


def check_log(folder: Path, database: Path, acknowledged: int | None) -> Loss | None:
    """Check the log of a store that nobody has open, before SQLite opens it; copy and record a damaged one.

    Returns:
        What was recorded, or None for a sound log.

    Raises:
        OSError: The folder cannot be read or written.
        StorageError: The log is damaged, and there is no room to copy it.
    """
    log = database.with_name(f"{database.name}-wal")
    if not log.exists() or log.stat().st_size == 0 or not database.exists():
        return None
    # SQLite removes the log of an empty file.
    state = examine_log(database) if database.stat().st_size else None
    lost = 0 if state is None or acknowledged is None else count_lost(state.count, acknowledged)
    if state is not None and not lost and state.lost_count < _LOST_ENOUGH:
        return None
    try:
        kept = copy_to_quarantine(folder, "log", [log, database])
    except OSError as error:
        raise StorageError(
            f"{log} is damaged, and could not be copied before it is used ({error}); make room there, and try again"
        ) from error
    loss = Loss(acknowledged, None if state is None else state.count, kept=str(kept))
    note_loss(folder, loss)
    return loss


def check_unused_log(folder: Path, database: Path) -> None:
    """Check the log of a store as `check_log` does, unless somebody has it open to write. Raises OSError, StorageError."""
    with lock_if_unused(folder) as is_unused:
        if is_unused:
            check_log(folder, database, read_last_write(folder))


def check_count(folder: Path, here: int, acknowledged: int | None) -> Loss | None:
    """Compare a database's count with the acknowledged one; record what it lost. Raises OSError."""
    if acknowledged is None or not count_lost(here, acknowledged):
        return None
    known = read_loss(folder)
    loss = Loss(acknowledged, here, kept="" if known is None else known.kept)
    note_loss(folder, loss)
    return loss


def copy_to_quarantine(folder: Path, label: str, files: list[Path]) -> Path:
    """Copy files to quarantine. The first file's hash names the folder, so a second start finds it and copies nothing.

    Costs O(bytes).
    """
    digest = blake3()
    with files[0].open("rb") as file:
        while chunk := file.read(_CHUNK_SIZE):
            digest.update(chunk)
    kept = folder / QUARANTINE_NAME / f"{label}-{digest.hexdigest()[:16]}"
    if kept.exists():
        return kept
    draft = kept.with_name(f"{kept.name}.part")
    shutil.rmtree(draft, ignore_errors=True)
    make_folder(draft)
    for path in files:
        with path.open("rb") as source, os.fdopen(open_new(draft / path.name), "wb") as target:
            shutil.copyfileobj(source, target, _CHUNK_SIZE)
        sync_file(draft / path.name)
    sync_folder(draft)
    draft.rename(kept)
    sync_folder(kept.parent)
    return kept
