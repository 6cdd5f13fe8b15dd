"""Detects acknowledged writes that a store lost, records the loss, and keeps what is left of them.

Until peers have been asked, nobody can tell which places of the user's own feeds were used. That is written down in the
folder before anything else is written, so that it is known however often the node is started.
"""

import os
import shutil
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

import msgspec
from blake3 import blake3

from protocol.ids import RepoId
from storage.engine.errors import StorageError
from storage.engine.folders import make_folder, sync_file, sync_folder
from storage.engine.last_write import count_lost, hold_unused, read_last_write
from storage.engine.log_check import examine_log
from storage.engine.quarantine import QUARANTINE_NAME

LOSS_NAME: Final = "lost-writes.json"
_FILE_SIZE_MAX: Final = 1 << 20
"""Bytes of the file: some 15,000 repos."""
_LOST_ENOUGH: Final = 2
"""Transactions behind the log's end that show damage: one alone may be of a write that the power was cut in."""
_CHUNK_SIZE: Final = 1 << 20


_RepoHex = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]


class Loss(msgspec.Struct, frozen=True):
    """What was lost, as it is written down."""

    acknowledged: int | None  # transactions by the last count; none where nothing said so
    found: int | None  # those that were there; none where the database did not open
    repos: list[_RepoHex] | None = None
    """Ids of repos whose own feeds are uncertain; none stands for all that are here."""
    kept: str = ""
    """Where the database and its log were copied to, if the log was damaged."""
    restored_from: int | None = None
    """Unix seconds of the backup that the store was restored from: what was written since is not here."""
    deleted: list[_RepoHex] = []
    """Ids of repos that were deleted here: should one come back, its own feeds go on behind what others hold."""

    @property
    def is_lost(self) -> bool:
        """Whether writes were lost; else repos were deleted, and nothing is wrong."""
        return self.repos is None or bool(self.repos)

    @property
    def detail(self) -> str:
        """In a sentence."""
        if self.restored_from is not None:
            made_at = datetime.fromtimestamp(self.restored_from, UTC).isoformat(" ", "minutes")
            return f"restored from a backup of {made_at}; what was written since is not here"
        if not self.is_lost:
            return "the repo was deleted here once"
        said = "acknowledged writes were lost"
        if self.acknowledged is not None and self.found is not None:
            lost = count_lost(self.found, self.acknowledged)
            said = f"{lost} acknowledged writes were lost" if lost else "the log is damaged"
        return f"{said}; as it was: {self.kept}" if self.kept else said


def read_loss(folder: Path) -> Loss | None:
    """What is written down; a file that cannot be read says that everything is uncertain. Raises OSError."""
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
    """Write it down, durably. Raises OSError."""
    begun = folder / f"{LOSS_NAME}.new"
    begun.unlink(missing_ok=True)
    handle = os.open(begun, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(msgspec.json.encode(loss))
    sync_file(begun)
    begun.rename(folder / LOSS_NAME)
    sync_folder(folder)


def note_loss(folder: Path, loss: Loss) -> None:
    """Write a loss down, unless it is. What an earlier one left uncertain stays so. Raises OSError."""
    known = read_loss(folder)
    if known is None or (known.acknowledged, known.found) != (loss.acknowledged, loss.found):
        deleted = [] if known is None else known.deleted
        write_loss(folder, msgspec.structs.replace(loss, deleted=deleted))


def note_deletion(folder: Path, repo_id: RepoId) -> Loss:
    """Before a repo is deleted here: its own feeds are uncertain should it come back. Raises OSError."""
    known = read_loss(folder) or Loss(None, None, repos=[])
    noted = msgspec.structs.replace(known, deleted=sorted({*known.deleted, repo_id.hex()}))
    write_loss(folder, noted)
    return noted


def settle_loss(folder: Path, left: Iterable[RepoId]) -> None:
    """The own feeds of all repos but these are certain again. Raises OSError."""
    known = read_loss(folder)
    if known is None:
        return
    uncertain = {raw.hex() for raw in left}
    deleted = sorted(uncertain & set(known.deleted))
    if uncertain:
        repos = sorted(uncertain - set(deleted))
        write_loss(folder, msgspec.structs.replace(known, repos=repos, deleted=deleted))
    else:
        (folder / LOSS_NAME).unlink(missing_ok=True)
        sync_folder(folder)


def guard_log(folder: Path, database: Path, acknowledged: int | None) -> Loss | None:
    """Before SQLite opens a store that nobody has open: see whether its log is damaged; if so, copy both and write it down.

    Raises OSError, StorageError.
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
        kept = keep_files(folder, "log", [log, database])
    except OSError as error:
        raise StorageError(
            f"{log} is damaged, and could not be copied before it is used ({error}); make room there, and try again"
        ) from error
    loss = Loss(acknowledged, None if state is None else state.count, kept=str(kept))
    note_loss(folder, loss)
    return loss


def guard_unused(folder: Path, database: Path) -> None:
    """The same for a reader; nothing while somebody has the store open to write. Raises OSError, StorageError."""
    with hold_unused(folder) as is_unused:
        if is_unused:
            guard_log(folder, database, read_last_write(folder))


def check_count(folder: Path, here: int, acknowledged: int | None) -> Loss | None:
    """Compare what a database counts with what was acknowledged; write down what it lost. Raises OSError."""
    if acknowledged is None or not count_lost(here, acknowledged):
        return None
    known = read_loss(folder)
    loss = Loss(acknowledged, here, kept="" if known is None else known.kept)
    note_loss(folder, loss)
    return loss


def keep_files(folder: Path, label: str, files: list[Path]) -> Path:
    """Copy files into a folder of quarantine that is named by the first one's content: a second start copies nothing."""
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
        handle = os.open(draft / path.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with path.open("rb") as source, os.fdopen(handle, "wb") as target:
            shutil.copyfileobj(source, target, _CHUNK_SIZE)
        sync_file(draft / path.name)
    sync_folder(draft)
    draft.rename(kept)
    sync_folder(kept.parent)
    return kept
