"""The keys of a folder: made, opened, sealed in another way, taken over from an older Ravel; nothing lost on the way."""

import fcntl
import os
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from node.care.doctor import OK, PROBLEM, WARNING, examine
from node.home.home import create_home, lock_home
from node.home.identity import (
    change_protection,
    create_keys,
    open_keys,
    read_keys,
)
from node.home.key_file import Keys, Protection, fresh_keys
from node.home.private_files import sweep_drafts
from node.runtime.errors import ServiceError
from tests.support.keys import CHEAP, no_passphrase


def _typed(passphrase: bytes) -> Callable[[], bytes]:
    return lambda: passphrase


def _sealed_home(tmp_path: Path, passphrase: bytes = b"four random words") -> tuple[Path, Keys]:
    home, keys = tmp_path / "home", fresh_keys()
    home.mkdir()
    create_keys(home, keys, "passphrase", passphrase, CHEAP)
    return home, keys


def test_sealed_keys_open_with_their_passphrase_alone(tmp_path: Path) -> None:
    os.umask(0)
    home, keys = _sealed_home(tmp_path)
    os.umask(0o022)
    assert {stat.S_IMODE(path.stat().st_mode) for path in home.iterdir()} == {0o600}
    assert open_keys(home, _typed(b"four random words")) == keys
    with pytest.raises(ServiceError) as caught:
        open_keys(home, _typed(b"four random word"))
    assert caught.value.code == "wrong_passphrase"


def test_keys_are_never_written_over(tmp_path: Path) -> None:
    home, keys = _sealed_home(tmp_path)
    with pytest.raises(FileExistsError):
        create_keys(home, fresh_keys(), "none")
    assert open_keys(home, _typed(b"four random words")) == keys
    assert [path.name for path in home.iterdir()] == ["keys.json"]


def test_how_keys_are_kept_can_change_and_the_keys_do_not(tmp_path: Path) -> None:
    home, keys = _sealed_home(tmp_path)
    assert change_protection(home, keys, "passphrase", b"another one", CHEAP) == []
    with pytest.raises(ServiceError):
        open_keys(home, _typed(b"four random words"))
    assert open_keys(home, _typed(b"another one")) == keys
    change_protection(home, keys, "none")
    assert open_keys(home, no_passphrase) == keys
    change_protection(home, keys, "passphrase", b"sealed again", CHEAP)
    assert keys.user_seed.hex() not in (home / "keys.json").read_text()
    assert [path.name for path in home.iterdir()] == ["keys.json"]


def test_sealing_removes_copies_of_the_store_that_lie_open(tmp_path: Path) -> None:
    home, keys = _sealed_home(tmp_path)
    begun = ["ravel-of-r0009.sqlite.part", "ravel-of-r0009.sqlite.part-journal"]
    for name in ("ravel-of-r0009.sqlite", "ravel.sqlite", *begun):  # the first: before there were marks
        (home / name).touch()
    marks = {"r0018": (), "r0019": ((0,),), "r0020": ((1,),)}  # never sealed, sealed and not swept, sealed
    for revision, rows in marks.items():
        with closing(sqlite3.connect(home / f"ravel-of-{revision}.sqlite")) as store:
            store.execute("CREATE TABLE store_seal (is_clean BOOLEAN NOT NULL)")
            store.executemany("INSERT INTO store_seal VALUES (?)", rows)
            store.commit()
    assert change_protection(home, keys, "none") == []
    removed = change_protection(home, keys, "passphrase", b"sealed again", CHEAP)
    open_ones = ["ravel-of-r0018.sqlite", "ravel-of-r0019.sqlite"]
    assert removed == [home / name for name in ("ravel-of-r0009.sqlite", *begun, *open_ones)]
    names = {path.name for path in home.iterdir()}
    assert names == {"keys.json", "ravel-of-r0020.sqlite", "ravel.sqlite"}


def test_a_change_that_fails_leaves_the_keys_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, keys = _sealed_home(tmp_path)

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            change_protection(home, keys, "none")
    assert open_keys(home, _typed(b"four random words")) == keys
    assert [path.name for path in home.iterdir()] == ["keys.json"]


def test_what_a_killed_change_left_goes_with_the_next(tmp_path: Path) -> None:
    home, keys = _sealed_home(tmp_path)
    (home / "keys.json.0011223344556677.new").write_text("keys in the clear, say")
    change_protection(home, keys, "passphrase", b"another one", CHEAP)
    assert [path.name for path in home.iterdir()] == ["keys.json"]


def test_the_doctor_says_when_keys_lie_in_the_clear(tmp_path: Path) -> None:
    home = create_home(tmp_path / "home", listen="127.0.0.1:0", api="127.0.0.1:0").path
    assert next(check for check in examine(home) if check.name == "keys").state == WARNING
    change_protection(home, open_keys(home, no_passphrase), "passphrase", b"four random words", CHEAP)
    found = next(check for check in examine(home) if check.name == "keys")
    assert (found.state, "passphrase" in found.detail) == (OK, True)
    assert read_keys(home).protection == "passphrase"


class _Cut(BaseException):
    """The power goes, or SIGKILL comes."""


class _Killer:
    """Cuts at the n-th of what changes a folder; nothing that the process would still do is done."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, after: int) -> None:
        self._left = after
        for name in ("open", "fsync", "replace", "rename", "link", "unlink"):
            monkeypatch.setattr(os, name, self._wrap(getattr(os, name)))

    def _wrap(self, real: Callable[..., object]) -> Callable[..., object]:
        def call(*given: object, **named: object) -> object:
            if self._left <= 0:
                raise _Cut
            self._left -= 1
            return real(*given, **named)

        return call


def _lies_open(home: Path, keys: Keys) -> bool:
    """Whether any file of the folder has a key in the clear."""
    return any(keys.user_seed.hex() in path.read_text() for path in home.glob("keys.json*"))


def _change_cut(home: Path, keys: Keys, protection: Protection, after: int) -> bool:
    """Whether it was cut."""
    with pytest.MonkeyPatch.context() as patch:
        _Killer(patch, after)
        try:
            change_protection(home, keys, protection, b"four random words", CHEAP)
        except _Cut:
            return True
    return False


def test_unsealing_that_is_cut_anywhere_leaves_no_keys_that_a_start_does_not_sweep(tmp_path: Path) -> None:
    cuts = 0
    for after in range(50):
        (tmp_path / str(after)).mkdir()
        home, keys = _sealed_home(tmp_path / str(after))
        if not _change_cut(home, keys, "none", after):
            break
        cuts += _lies_open(home, keys)
        with lock_home(home):
            assert _lies_open(home, keys) == (read_keys(home).protection == "none")
        assert open_keys(home, _typed(b"four random words")) == keys
    assert cuts > 1, "some cuts leave keys in the clear until the next start"


def test_once_keys_are_sealed_none_lie_in_the_clear_wherever_sealing_was_cut(tmp_path: Path) -> None:
    cuts = 0
    for after in range(50):
        home, keys = tmp_path / str(after), fresh_keys()
        home.mkdir()
        create_keys(home, keys, "none")
        (home / "keys.json.0011223344556677.new").write_bytes((home / "keys.json").read_bytes())
        was_cut = _change_cut(home, keys, "passphrase", after)
        assert _lies_open(home, keys) == (read_keys(home).protection == "none")
        if not was_cut:
            break
        cuts += 1
    assert cuts > 5


def test_what_another_process_is_writing_is_not_swept(tmp_path: Path) -> None:
    begun = tmp_path / "keys.json.0011223344556677.new"
    with begun.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert sweep_drafts(tmp_path) == []
    (tmp_path / "notes.new").write_text("somebody's own")
    assert sweep_drafts(tmp_path) == [begun]
    assert [path.name for path in tmp_path.iterdir()] == ["notes.new"]


def test_the_doctor_names_what_a_killed_command_left(tmp_path: Path) -> None:
    home = tmp_path / "home"
    create_home(home, listen="127.0.0.1:0", api="127.0.0.1:0")
    left = home / "keys.json.0011223344556677.new"
    left.write_text("keys in the clear, say")
    left.chmod(0o600)
    (check,) = [one for one in examine(home) if left.name in one.detail]
    assert (check.name, check.state) == ("keys", PROBLEM)
    with lock_home(home):
        pass
    assert [one for one in examine(home) if left.name in one.detail] == []
