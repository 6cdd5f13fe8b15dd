"""A store's file that holds little is written anew, where there is room, and never lost on the way."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from sqlalchemy import delete, func, insert, select, text

from storage.engine import vacuum as shrinking
from storage.engine.database import Database
from storage.engine.sqlite import DATABASE_NAME
from storage.engine.vacuum import (
    UNUSED_SIZE_MIN,
    estimate_vacuum,
    measure_unused,
    temporary_folder,
    vacuum_store,
)
from storage.schema.schema import blocks

_BLOCK = 100_000


class _Usage(NamedTuple):
    """Disk usage, like shutil's."""

    total: int
    used: int
    free: int


def _store(folder: Path, count: int, kept: int) -> int:
    """Make a store that had `count` blocks and has the first `kept`; return how much of its file was unused before."""
    database = Database(folder)
    try:
        with database.write() as connection:
            rows = [
                {"num": num, "id_key": num, "is_shared": False, "encoded": os.urandom(_BLOCK)}
                for num in range(count)
            ]
            connection.execute(insert(blocks), rows)
        before = database.measure_file()
        unused = before.unused if before else 0
        with database.write() as connection:
            connection.execute(delete(blocks).where(blocks.c.num >= kept))
    finally:
        database.close()
    return unused


def _hold(folder: Path) -> int:
    """Return how many blocks there are, in a store whose pages are as they must be."""
    database = Database(folder)
    try:
        with database.read() as connection:
            assert connection.execute(text("PRAGMA integrity_check")).scalar_one() == "ok"
            size = select(func.count()).where(func.length(blocks.c.encoded) == _BLOCK)
            return int(connection.execute(size).scalar_one())
    finally:
        database.close()


@pytest.mark.sqlite
def test_what_is_not_used_is_given_back(tmp_path: Path) -> None:
    _store(tmp_path, 60, 10)
    size = (tmp_path / DATABASE_NAME).stat().st_size
    expected = estimate_vacuum(tmp_path, "", 0)
    assert (tmp_path / DATABASE_NAME).stat().st_size == size, "an estimate changes nothing"
    shrunk = vacuum_store(tmp_path, "")
    assert shrunk.because == ""
    assert shrunk.size == size - (tmp_path / DATABASE_NAME).stat().st_size
    assert abs(shrunk.size - expected.size) < 100_000
    assert shrunk.size > 45 * _BLOCK
    assert _hold(tmp_path) == 10
    assert vacuum_store(tmp_path, "").size == 0, "and no more"


@pytest.mark.sqlite
def test_little_is_kept_for_what_comes(tmp_path: Path) -> None:
    _store(tmp_path, 60, 50)
    shrunk = vacuum_store(tmp_path, "")
    assert shrunk.size == 0
    assert "too little" in shrunk.because
    few = UNUSED_SIZE_MIN // _BLOCK - 1
    (tmp_path / "small").mkdir()
    _store(tmp_path / "small", few, 0)
    assert "too little" in vacuum_store(tmp_path / "small", "").because


@pytest.mark.sqlite
def test_rows_that_left_pages_half_empty_count(tmp_path: Path) -> None:
    before = _store(tmp_path, 60, 50)  # ten were deleted: too little, were it not for what follows
    shrunk = vacuum_store(tmp_path, "", before + 20 * _BLOCK)
    assert shrunk.size > 9 * _BLOCK
    assert _hold(tmp_path) == 50


@pytest.mark.sqlite
@pytest.mark.parametrize("place", ["store", "temporary"])
def test_without_room_it_stays_and_says_so(
    tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, temporary = tmp_path / "home", tmp_path / "temporary"
    for folder in (home, temporary):
        folder.mkdir()
    _store(home, 60, 10)
    size = (home / DATABASE_NAME).stat().st_size
    monkeypatch.setenv("SQLITE_TMPDIR", str(temporary))
    full = home if place == "store" else temporary
    roomy = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(
        shutil, "disk_usage", lambda path: _Usage(roomy.total, 0, 1000 if path == full else roomy.total)
    )
    monkeypatch.setattr(shrinking, "_filesystem_of", str)  # as if they were two disks
    shrunk = vacuum_store(home, "")
    assert shrunk.size == 0
    assert f"in {full}, and 1000 are free" in shrunk.because
    assert (home / DATABASE_NAME).stat().st_size == size


@pytest.mark.slow
@pytest.mark.sqlite
def test_a_disk_that_fills_up_on_the_way_leaves_the_store_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _store(tmp_path, 60, 10)
    code = (
        "import resource, sys, pathlib; from storage.engine.vacuum import vacuum_store;"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (300_000,) * 2);"
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "print(vacuum_store(pathlib.Path(sys.argv[1]), ''))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert "left as it is" in done.stdout
    assert _hold(tmp_path) == 10
    assert vacuum_store(tmp_path, "").size > 0


@pytest.mark.extended
@pytest.mark.slow
@pytest.mark.sqlite
def test_sigkill_at_any_moment_leaves_a_whole_store(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib; from storage.engine.vacuum import vacuum_store;"
        "vacuum_store(pathlib.Path(sys.argv[1]), '')"
    )
    _store(tmp_path, 600, 200)
    size, log = (tmp_path / DATABASE_NAME).stat().st_size, tmp_path / f"{DATABASE_NAME}-wal"
    struck = 0
    for share in (0.01, 0.3, 0.9, 1.0):  # of what is written to the log; then the file is made of it
        folder = tmp_path / str(share)
        folder.mkdir()
        shutil.copyfile(tmp_path / DATABASE_NAME, folder / DATABASE_NAME)
        log = folder / f"{DATABASE_NAME}-wal"
        process = subprocess.Popen([sys.executable, "-c", code, str(folder)])
        while process.poll() is None and not (log.exists() and log.stat().st_size >= share * 200 * _BLOCK):
            pass
        process.send_signal(signal.SIGKILL)
        struck += process.wait() == -signal.SIGKILL
        assert _hold(folder) == 200
        vacuum_store(folder, "")
        assert (folder / DATABASE_NAME).stat().st_size < size / 2
        assert _hold(folder) == 200
    assert struck, "none was killed on its way"


def test_rows_of_a_server_are_its_own_to_care_for(tmp_path: Path) -> None:
    _store(tmp_path, 30, 1)
    if (tmp_path / DATABASE_NAME).exists():
        return
    assert measure_unused(tmp_path, "") == 0
    assert "autovacuum" in estimate_vacuum(tmp_path, "", 10 * UNUSED_SIZE_MIN).because
    shrunk = vacuum_store(tmp_path, "")
    assert shrunk.size == 0
    assert "autovacuum" in shrunk.because


def test_temporary_files_go_where_sqlite_puts_them(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    assert temporary_folder({"SQLITE_TMPDIR": str(first), "TMPDIR": str(second)}) == first
    assert temporary_folder({"SQLITE_TMPDIR": str(tmp_path / "no"), "TMPDIR": str(second)}) == second
    assert temporary_folder({}).is_absolute()
