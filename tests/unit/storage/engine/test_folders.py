"""Names survive a power cut: whatever makes a folder or moves a file syncs the folder that holds the name, afterwards."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from node.care.backup import create_backup
from node.home.home import create_home, lock_home
from protocol.crypto.keys import ConvergenceSecret
from protocol.formats.block import encrypt_block
from storage.blobs.packs import Packs
from storage.engine.database import Database
from storage.engine.folders import make_folder, open_new, open_or_create
from storage.export.destinations import LocalFolder

pytestmark = pytest.mark.sqlite


class _Recorder:
    """Folders that hold a name that was made, and is not durable yet."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made = 0
        self.unsynced: set[Path] = set()
        make, move, replace, sync = os.mkdir, os.rename, os.replace, os.fsync

        def note(path: Path) -> None:
            self.made += 1
            self.unsynced.add(path.absolute().parent)

        def mkdir(path: Path, *args: int) -> None:
            make(path, *args)
            note(Path(path))

        def fsync(handle: int) -> None:
            sync(handle)
            self.unsynced.discard(Path(os.readlink(f"/proc/self/fd/{handle}")))

        def moving(do: Callable[[Path, Path], None]) -> Callable[[Path, Path], None]:
            def moved(source: Path, target: Path) -> None:
                do(source, target)
                note(Path(target))
                # What was synced by its old name is so by its new one.
                self.unsynced.discard(Path(source))

            return moved

        monkeypatch.setattr(os, "mkdir", mkdir)
        monkeypatch.setattr(os, "fsync", fsync)
        monkeypatch.setattr(os, "rename", moving(move))
        monkeypatch.setattr(os, "replace", moving(replace))


def _add_pack(folder: Path) -> None:
    database = Database(folder)
    with Packs(database).draft() as draft:
        draft.put(encrypt_block(bytes(300_000), ConvergenceSecret(b"c" * 32))[0])
        draft.finish()
        with database.write() as connection:
            draft.keep(connection)
        draft.is_kept = True
    (folder / "packs" / "left").write_bytes(b"by a process that was killed")
    Packs(database).sweep()
    database.close()


def _export(folder: Path) -> None:
    destination = LocalFolder(folder / "a" / "b")
    with destination.scratch() as scratch:
        (scratch / "part").write_bytes(b"rows")
        destination.put("table/part", scratch / "part")


def _back_up(folder: Path) -> None:
    create_home(folder / "a" / "home", storage="")
    _add_pack(folder / "a" / "home")
    create_backup(folder / "a" / "home", folder / "b" / "backup", 1)


STEPS: dict[str, Callable[[Path], object]] = {
    "folder": lambda folder: make_folder(folder / "a" / "b" / "c"),
    "pack": _add_pack,
    "home": lambda folder: create_home(folder / "a" / "b", storage=""),
    "export": _export,
    "backup": _back_up,
}


@pytest.mark.parametrize("step", STEPS)
def test_every_name_that_is_made_is_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    recorder = _Recorder(monkeypatch)
    STEPS[step](tmp_path)
    assert recorder.made > 0
    # A scratch folder is emptied at the next start, whether its name came through or not.
    assert {path for path in recorder.unsynced if path.exists()} == set()


def test_what_root_makes_in_a_users_folder_is_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, tuple[int, int]] = {}
    stat = Path.stat

    def of_a_user(path: Path, **options: bool) -> os.stat_result:
        fields = list(stat(path, **options))
        fields[4:6] = [1234, 5678]
        return os.stat_result(fields)

    def give(handle: int, user: int, group: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{handle}"))
        given[str(path.relative_to(tmp_path))] = (user, group)

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "fchown", give)
    monkeypatch.setattr(Path, "stat", of_a_user)
    create_home(tmp_path / "home", storage="")
    _add_pack(tmp_path / "home")
    create_backup(tmp_path / "home", tmp_path / "backup", 1)
    with lock_home(tmp_path / "home"):
        pass
    assert set(given.values()) == {(1234, 5678)}
    begun = re.compile(r"\.[0-9a-f]{16}\.new$|^\.|\.part$|packs/[0-9a-f]+$")
    made = {begun.sub("", path) for path in given}
    wanted = {"config.toml", "api-token", "keys.json", "lock", "content.lock", "ravel.sqlite", "packs"}
    assert {"home", *(f"home/{name}" for name in wanted), "home/ravel.sqlite-last"} <= made
    assert {"backup", "backup/.part/database.map", "backup/.part/manifest.json", "backup/pages"} <= made


def test_nothing_is_given_away_without_need(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "fchown", lambda *_: pytest.fail("given away"))
    monkeypatch.setattr(os, "geteuid", lambda: 1234)
    os.close(open_new(tmp_path / "a user's"))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    os.close(open_or_create(tmp_path / "a user's", os.O_RDONLY))
    monkeypatch.setattr(os, "fchown", refuse)
    os.close(open_new(tmp_path / "in a namespace without that user"))


def test_a_folder_that_a_killed_process_made_is_synced_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "packs").mkdir()
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.readlink(f"/proc/self/fd/{handle}")))
    make_folder(tmp_path / "packs")
    assert synced == [str(tmp_path)]
