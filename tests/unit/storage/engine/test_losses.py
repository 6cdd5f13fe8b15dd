"""Acknowledged writes that a damaged log has lost: found before SQLite takes what is left, written down, and kept aside."""

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import insert, select, text

from protocol.ids import RepoId
from storage.engine.backup_rows import save_database
from storage.engine.database import Database, StorageError, read_store
from storage.engine.last_write import LAST_WRITE_NAME, LastWrite, count_lost, next_count, read_last_write
from storage.engine.log_check import examine_log
from storage.engine.losses import LOSS_NAME, Loss, read_loss, settle_loss, write_loss
from storage.schema.peer_schema import peers

pytestmark = pytest.mark.sqlite

WRITES = 6
BEFORE = 3
"""Writes that are in the database's file: its making is the first."""


def _write(database: Database, number: int) -> None:
    with database.write() as connection:
        connection.execute(insert(peers), [{"peer": number.to_bytes(32), "address": str(number)}])


def _crashed(folder: Path) -> Path:
    """Make a store as SIGKILL leaves it, with all of its rows in the log."""
    made = folder / "running"
    made.mkdir()
    database = Database(made)
    _write(database, WRITES)
    with database.write() as connection:
        connection.execute(text("DELETE FROM peers"))
    with closing(sqlite3.connect(made / "ravel.sqlite")) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for number in range(WRITES):
        _write(database, number)
    crashed = folder / "crashed"
    shutil.copytree(made, crashed)
    database.close()
    return crashed


def _count(folder: Path) -> int:
    database = Database(folder)
    with database.read() as connection:
        count = len(connection.execute(select(peers)).all())
    database.close()
    return count


def _flip(place: float) -> Callable[[Path], None]:
    def flip(path: Path) -> None:
        content = bytearray(path.read_bytes())
        content[int(place * (len(content) - 1))] ^= 1
        path.write_bytes(content)

    return flip


DAMAGE: dict[str, Callable[[Path], None]] = {
    "header": _flip(0.0),
    "salt": lambda path: _flip(18 / path.stat().st_size)(path),
    "first frame": lambda path: _flip(100 / path.stat().st_size)(path),
    "middle": _flip(0.5),
    "near the end": _flip(0.97),
    "last byte": _flip(1.0),
    "cut": lambda path: os.truncate(path, path.stat().st_size // 2),
    "cut by one byte": lambda path: os.truncate(path, path.stat().st_size - 1),
    "emptied": lambda path: os.truncate(path, 0),
    "gone": lambda path: path.unlink(),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_log_that_lost_acknowledged_writes_is_told_from_one_that_ends(tmp_path: Path, damage: str) -> None:
    folder = _crashed(tmp_path)
    log = folder / "ravel.sqlite-wal"
    DAMAGE[damage](log)
    harmed = log.read_bytes() if log.exists() else b""
    left = _count(folder)
    assert left < WRITES
    loss = read_loss(folder)
    assert loss is not None
    assert loss.acknowledged == BEFORE + WRITES
    assert loss.found == BEFORE + left
    if harmed:
        kept = Path(loss.kept)
        assert (kept / "ravel.sqlite-wal").read_bytes() == harmed, "before SQLite took it"
        assert (kept / "ravel.sqlite").exists()
    settle_loss(folder, ())
    assert _count(folder) == left
    assert read_loss(folder) == Loss(None, None, repos=[]), "it is said once"


def test_a_log_that_ends_is_no_damage(tmp_path: Path) -> None:
    folder = _crashed(tmp_path)
    assert _count(folder) == WRITES
    assert read_loss(folder) is None
    assert not (folder / "quarantine").exists()


def test_a_write_that_was_not_acknowledged_may_be_cut_anywhere(tmp_path: Path) -> None:
    # As by a cut of the power in the middle of it: the count beside the database is behind.
    folder = _crashed(tmp_path)
    with closing(LastWrite(folder)) as kept:
        kept.replace(BEFORE + WRITES - 1)
    log = folder / "ravel.sqlite-wal"
    DAMAGE["near the end"](log)
    assert _count(folder) == WRITES - 1
    assert read_loss(folder) is None


def test_damage_is_seen_without_a_count_where_writes_follow_it(tmp_path: Path) -> None:
    # A store of an older Ravel: two ends of transactions behind the bad frame tell it.
    folder = _crashed(tmp_path)
    (folder / LAST_WRITE_NAME).unlink()
    DAMAGE["middle"](folder / "ravel.sqlite-wal")
    left = _count(folder)
    loss = read_loss(folder)
    assert loss is not None
    assert (loss.acknowledged, loss.found) == (None, BEFORE + left)
    assert read_last_write(folder) == BEFORE + left, "counted from now on"


@pytest.mark.parametrize("reader", ["read_store", "backup"])
def test_who_only_reads_a_stopped_store_keeps_its_damaged_log_too(tmp_path: Path, reader: str) -> None:
    folder = _crashed(tmp_path)
    log = folder / "ravel.sqlite-wal"
    DAMAGE["middle"](log)
    harmed = log.read_bytes()
    if reader == "backup":
        save_database(folder, "", tmp_path / "copy")
    else:
        with read_store(folder):
            pass
    loss = read_loss(folder)
    assert loss is not None
    assert (Path(loss.kept) / "ravel.sqlite-wal").read_bytes() == harmed
    _count(folder)
    assert read_loss(folder) == loss


def test_a_reader_beside_a_writer_leaves_the_log_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Database(tmp_path)
    _write(database, 1)
    looked: list[Path] = []
    monkeypatch.setattr("storage.engine.losses.examine_log", looked.append)
    with read_store(tmp_path):
        pass
    assert looked == []
    assert read_loss(tmp_path) is None
    database.close()


def test_an_older_file_in_the_place_of_the_database_is_noticed(tmp_path: Path) -> None:
    database = Database(tmp_path)
    copy = database.copy_aside("before")
    _write(database, 1)
    database.close()
    copy.replace(tmp_path / "ravel.sqlite")
    assert _count(tmp_path) == 0
    loss = read_loss(tmp_path)
    assert loss is not None
    assert (loss.acknowledged, loss.found) == (2, 1)


def test_a_log_that_cannot_be_kept_is_not_used(tmp_path: Path) -> None:
    folder = _crashed(tmp_path)
    DAMAGE["middle"](folder / "ravel.sqlite-wal")
    harmed = (folder / "ravel.sqlite-wal").read_bytes()
    (folder / "quarantine").write_bytes(b"a file where the folder belongs")
    with pytest.raises(StorageError, match="could not be copied"):
        Database(folder)
    assert (folder / "ravel.sqlite-wal").read_bytes() == harmed


def test_looking_at_a_log_changes_nothing(tmp_path: Path) -> None:
    folder = _crashed(tmp_path)
    before = {name: (folder / name).read_bytes() for name in ("ravel.sqlite", "ravel.sqlite-wal")}
    state = examine_log(folder / "ravel.sqlite")
    assert state is not None
    assert (state.count, state.lost_count) == (BEFORE + WRITES, 0)
    assert {name: (folder / name).read_bytes() for name in before} == before


def test_what_is_acknowledged_is_never_ahead_and_synced_before_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Database(tmp_path)
    synced: list[tuple[int, int | None]] = []
    sync = os.fdatasync

    def fdatasync(handle: int) -> None:
        sync(handle)
        with closing(sqlite3.connect(tmp_path / "ravel.sqlite")) as other:
            (here,) = other.execute("PRAGMA user_version").fetchone()
        synced.append((here, read_last_write(tmp_path)))

    monkeypatch.setattr(os, "fdatasync", fdatasync)
    _write(database, 1)
    assert synced == [(2, 2)], "committed, then written and synced, then said"
    with database.write() as connection:
        connection.execute(select(peers))
    assert synced == [(2, 2)], "nothing changed"
    with pytest.raises(ZeroDivisionError), database.write() as connection:
        connection.execute(text("DELETE FROM peers"))
        raise ZeroDivisionError
    _write(database, 2)
    assert synced == [(2, 2), (3, 3)]
    database.close()


def test_a_count_that_cannot_be_written_does_not_undo_the_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Database(tmp_path)

    def fail(_handle: int) -> None:
        raise OSError("the disk is gone")

    monkeypatch.setattr(os, "fdatasync", fail)
    _write(database, 1)
    assert "the disk is gone" in database.fault
    monkeypatch.undo()
    _write(database, 2)
    assert database.fault == ""
    assert read_last_write(tmp_path) == 3
    database.close()


@pytest.mark.parametrize("slot", [0, 1])
def test_a_torn_write_of_the_count_leaves_the_older_one(tmp_path: Path, slot: int) -> None:
    with closing(LastWrite(tmp_path)) as kept:
        for count in range(1, 8 + slot):
            kept.replace(count)
    path = tmp_path / LAST_WRITE_NAME
    newest = read_last_write(tmp_path)
    assert newest == 7 + slot
    content = bytearray(path.read_bytes())
    content[newest % 2 * 4096 + 12] ^= 1
    path.write_bytes(content)
    assert read_last_write(tmp_path) == newest - 1
    path.write_bytes(b"junk")
    assert read_last_write(tmp_path) is None


@pytest.mark.parametrize(
    "here, acknowledged, lost",
    [(5, 5, 0), (5, 9, 4), (9, 5, 0), (2**32 - 2, 1, 3), (1, 2**32 - 2, 0), (0, 2**31 - 1, 2**31 - 1)],
)
def test_counts_begin_again(here: int, acknowledged: int, lost: int) -> None:
    assert count_lost(here, acknowledged) == lost
    assert next_count(2**32 - 1) == 0


def test_counts_in_the_database_begin_again_too(tmp_path: Path) -> None:
    database = Database(tmp_path)
    with database.write() as connection:
        connection.execute(text("PRAGMA user_version = -2"))
    for number in range(3):
        _write(database, number)
    with database.read() as connection:
        assert connection.execute(text("PRAGMA user_version")).scalar_one() == 1
    assert read_last_write(tmp_path) == 1
    database.close()


def test_what_is_written_down_and_cannot_be_read_makes_everything_uncertain(tmp_path: Path) -> None:
    write_loss(tmp_path, Loss(5, 3, ["ab" * 32]))
    settle_loss(tmp_path, [RepoId(b"\xab" * 32)])
    assert read_loss(tmp_path) == Loss(5, 3, ["ab" * 32])
    (tmp_path / LOSS_NAME).write_bytes(b'{"repos": [7')
    assert read_loss(tmp_path) == Loss(None, None)
