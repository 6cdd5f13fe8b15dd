"""A store that is gone or empty beside keys and acknowledged writes is a loss, until a person accepts it."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from node.care.backup import create_backup
from node.care.doctor import OK, PROBLEM, examine
from node.care.fsck import check_store
from node.care.repair import accept_loss, repair_store
from node.home.folder_mark import mark_store, note_copy
from node.home.home import create_home
from node.ingest.replica import Replica
from node.runtime.errors import ServiceError
from storage.engine.database import LostStore, NoStore, StorageError
from storage.engine.last_write import read_last_write
from storage.engine.losses import read_loss
from tests.support.builders import STORE_KEY
from tests.support.nodes import Node


def _remove(path: Path) -> None:
    path.unlink()


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:99])


def _replace(path: Path) -> None:
    """By a database without tables, as `sqlite3 FILE vacuum` makes one of a missing file."""
    path.unlink()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 0")
        connection.execute("VACUUM")


LOSSES: dict[str, Callable[[Path], None]] = {
    "gone": _remove,
    "emptied": _empty,
    "truncated": _truncate,
    "replaced by an empty database": _replace,
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A stopped node with some posts, all of them in the database's file."""
    home = tmp_path / "home"
    create_home(home, listen="127.0.0.1:0", api="127.0.0.1:0")
    node = Node(home, "alice")
    _, branch = node.create_repo()
    for number in range(5):
        node.write(branch, f"post {number}")
    node.replica.close()
    return home


def _store_check(home: Path) -> tuple[str, str, str]:
    (check,) = [one for one in examine(home) if one.name == "store"]
    return check.state, check.detail, check.advice


@pytest.mark.parametrize("lose", LOSSES.values(), ids=LOSSES.keys())
def test_a_lost_store_starts_nothing_and_is_said_each_time(home: Path, lose: Callable[[Path], None]) -> None:
    assert _store_check(home)[0] == OK
    acknowledged = read_last_write(home)
    lose(home / "ravel.sqlite")
    before = {path: path.read_bytes() for path in home.iterdir() if path.is_file()}
    for _ in range(2):
        with pytest.raises(LostStore, match=f"and {acknowledged} writes in it were acknowledged"):
            Replica(home, STORE_KEY)
        with pytest.raises(LostStore):
            check_store(home, STORE_KEY)
        with pytest.raises(StorageError):
            repair_store(home, STORE_KEY)
        state, detail, advice = _store_check(home)
        assert state == PROBLEM
        assert "the store of this node is lost" in detail
        assert "--accept-loss" in advice
        assert "restore BACKUP" in advice
        with pytest.raises(ServiceError, match="lost") as caught:
            create_backup(home, home.parent / "backup", 0)
        assert "--accept-loss" in caught.value.advice
    after = {path: path.read_bytes() for path in home.iterdir() if path.is_file()}
    for path in before.keys() | after.keys():
        is_opened = (
            lose is _replace and path.name == "ravel.sqlite"
        )  # SQLite marks what it opens, and holds nothing
        if not is_opened and not path.name.endswith((".lock", "lock", "-shm")):
            assert before.get(path) == after.get(path), f"{path.name} was changed"


@pytest.mark.parametrize("lose", LOSSES.values(), ids=LOSSES.keys())
def test_an_accepted_loss_begins_anew_and_compares_repos_that_come_back(
    home: Path, lose: Callable[[Path], None]
) -> None:
    lose(home / "ravel.sqlite")
    loss = accept_loss(home)
    assert loss is not None
    assert loss.is_lost
    with pytest.raises(NoStore):
        check_store(home, STORE_KEY)
    assert _store_check(home) == (OK, "none yet", "")
    node = Node(home, "alice")
    assert not node.replica.repos
    _, branch = node.create_repo("fresh")
    node.write(branch, "at once")
    left = read_loss(home)
    assert left is not None
    assert left.has_past
    node.replica.close()


def test_the_log_of_an_emptied_store_is_kept_when_the_loss_is_accepted(home: Path) -> None:
    log = home / "ravel.sqlite-wal"
    _empty(home / "ravel.sqlite")
    log.write_bytes(b"frames that were not in the file yet")
    with pytest.raises(LostStore):
        Replica(home, STORE_KEY)
    assert log.exists(), "SQLite would have removed it"
    accept_loss(home)
    (kept,) = (home / "quarantine").iterdir()
    assert (kept / log.name).read_bytes() == b"frames that were not in the file yet"
    assert not log.exists()


def test_a_store_that_was_never_written_to_is_made_anew(tmp_path: Path) -> None:
    home = tmp_path / "home"
    create_home(home, listen="127.0.0.1:0", api="127.0.0.1:0")
    assert _store_check(home) == (OK, "none yet", "")
    (home / "ravel.sqlite").touch()  # killed between this and the first write
    Replica(home, STORE_KEY).close()


def test_a_store_that_is_gone_with_its_count_is_lost_too(home: Path) -> None:
    """State after `rm ravel.sqlite*`: keys and folder stay, and their user has written."""
    mark_store(home)
    note_copy(home)
    assert _store_check(home)[0] == OK
    for path in home.glob("ravel.sqlite*"):
        path.unlink()
    for _ in range(2):
        with pytest.raises(LostStore, match="is gone"):
            note_copy(home)
        state, detail, advice = _store_check(home)
        assert (state, "lost" in detail, "--accept-loss" in advice) == (PROBLEM, True, True)
        with pytest.raises(ServiceError, match="lost"):
            create_backup(home, home.parent / "backup", 0)
    loss = accept_loss(home)
    assert loss is not None
    assert loss.has_past, "a repo that comes back is compared first"
    note_copy(home)
    assert _store_check(home) == (OK, "none yet", "")


def test_a_new_folder_has_lost_nothing(tmp_path: Path) -> None:
    create_home(tmp_path / "home", storage="")
    note_copy(tmp_path / "home")
    assert _store_check(tmp_path / "home")[0] == OK
