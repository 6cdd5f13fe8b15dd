"""Backups: whole or not there, the same node again, and nothing in them is believed before it was checked."""

import json
import os
import stat
from pathlib import Path

import pytest
from sqlalchemy import insert, select

from node.care.backup import check_backups, create_backup, home_draft, restore_backup
from node.care.backup_folder import MANIFEST_NAME
from node.home.home import create_home, hold_content, lock_home, open_home
from node.home.identity import read_keys
from node.runtime.errors import ServiceError
from protocol.crypto.keys import ConvergenceSecret
from protocol.formats.block import encrypt_block
from protocol.limits.files import BACKUP_MANIFEST_SIZE_MAX
from storage.engine.backup_rows import save_database
from storage.engine.database import Database, NewerSchema, NoStore, OlderSchema, StorageError
from storage.engine.losses import LOSS_NAME, Loss, write_loss
from storage.schema.schema import spared_files
from tests.support.nodes import Node
from tests.support.older_stores import OLDER, make_older_store, older_is_known

NOW = 1_700_000_000
NAME = "1-2023-11-14"
"""Name of the first backup in a folder, made at that time."""


def _node(folder: Path) -> Node:
    """A home with a store that has a branch of three posts and a pack."""
    create_home(folder)
    node = Node(folder, "alice")
    _, branch = node.create_repo()
    for text in "abc":
        node.write(branch, text)
    block, _ = encrypt_block(b"x" * 500_000, ConvergenceSecret(b"c" * 32))
    with node.replica.packs.draft() as draft:
        draft.put(block)
        draft.finish()
        with node.replica.database.write() as connection:
            draft.keep(connection)
        draft.is_kept = True
    return node


def test_what_is_restored_is_given_up_for_nobody_who_had_it_then(tmp_path: Path) -> None:
    node = _node(tmp_path / "home")
    with node.replica.database.write() as connection:
        connection.execute(insert(spared_files).values(file_num=1, branch_num=node.branch().num))
    node.replica.close()
    create_backup(tmp_path / "home", tmp_path / "backup", NOW)
    for folder, count in (("home", 1), ("again", 0)):
        if not count:
            restore_backup(tmp_path / "backup", tmp_path / folder)
        one = Node(tmp_path / folder, "alice")
        with one.replica.database.read() as connection:
            assert len(connection.execute(select(spared_files)).all()) == count
        one.replica.close()


def test_a_backup_beside_a_running_node_is_the_node_as_it_was(tmp_path: Path) -> None:
    os.umask(0)
    node = _node(tmp_path / "home")
    with lock_home(tmp_path / "home"):
        made = create_backup(tmp_path / "home", tmp_path / "backup", NOW)
    before = node.digest(node.branch())
    node.write(node.branch(), "after it")
    node.replica.close()
    os.umask(0o022)
    entries = json.loads((tmp_path / "backup" / NAME / MANIFEST_NAME).read_text())["files"]
    assert made.files == len(entries) == 5  # pages for a database, pack, configuration, keys, token
    assert made.path == tmp_path / "backup" / NAME
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "backup").rglob("*")}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    restored = restore_backup(tmp_path / "backup", tmp_path / "again")
    assert restored.created_at == NOW
    assert stat.S_IMODE((tmp_path / "again").stat().st_mode) == 0o700
    assert read_keys(open_home(tmp_path / "again").path) == read_keys(tmp_path / "home")
    again = Node(tmp_path / "again", "alice")
    assert again.digest(again.branch()) == before
    block, _ = encrypt_block(b"x" * 500_000, ConvergenceSecret(b"c" * 32))
    with again.replica.database.read() as connection:
        assert again.replica.packs.find(connection, block.block_id) == block
    again.replica.close()


@pytest.mark.slow
@pytest.mark.sqlite  # rows of an older schema in PostgreSQL are refused
def test_a_backup_of_an_older_store_says_its_schema(tmp_path: Path) -> None:
    create_home(tmp_path / "home")
    with older_is_known():
        make_older_store(tmp_path / "home")
        create_backup(tmp_path / "home", tmp_path / "backup", NOW)
        assert json.loads((tmp_path / "backup" / NAME / MANIFEST_NAME).read_text())["schema"] == OLDER
        restore_backup(tmp_path / "backup", tmp_path / "again")
        Database(tmp_path / "again").close()


@pytest.mark.parametrize(
    "error, code, next_step",
    [
        (NewerSchema("newer"), "newer_schema", "before 0.1"),
        (OlderSchema("older"), "storage_failed", "ravel run"),
        (NoStore("none"), "storage_failed", "ravel run"),
        (StorageError("gone"), "storage_failed", "[storage] url"),
    ],
)
def test_a_store_that_cannot_be_copied_is_answered_by_what_helps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: StorageError, code: str, next_step: str
) -> None:
    create_home(tmp_path / "home")

    def fail(_home: Path, _url: str, _path: Path) -> None:
        raise error

    monkeypatch.setattr("node.care.backup.save_database", fail)
    with pytest.raises(ServiceError) as caught:
        create_backup(tmp_path / "home", tmp_path / "backup", NOW)
    assert (caught.value.code, caught.value.message) == (code, str(error))
    assert next_step in caught.value.advice
    assert {path.name for path in tmp_path.iterdir()} == {"home"}


def test_a_node_without_a_store_is_not_backed_up_and_none_is_made(tmp_path: Path) -> None:
    create_home(tmp_path / "home")
    before = {path.name for path in (tmp_path / "home").iterdir()}
    with pytest.raises(ServiceError, match="no store yet"):
        create_backup(tmp_path / "home", tmp_path / "backup", NOW)
    assert {path.name for path in (tmp_path / "home").iterdir()} - {"content.lock"} == before


@pytest.mark.parametrize("is_removed", [True, False])
def test_a_record_of_lost_writes_that_ends_while_the_store_is_copied_makes_no_backup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_removed: bool
) -> None:
    _node(tmp_path / "home").replica.close()
    path = tmp_path / "home" / LOSS_NAME
    write_loss(path.parent, Loss(None, None))
    assert create_backup(tmp_path / "home", tmp_path / "first", NOW).files == 6

    def copy(home: Path, url: str, target: Path) -> None:
        save_database(home, url, target)
        if is_removed:
            path.unlink()
        else:
            write_loss(home, Loss(None, None, repos=[]))

    monkeypatch.setattr("node.care.backup.save_database", copy)
    with pytest.raises(ServiceError, match="compared with a peer") as caught:
        create_backup(tmp_path / "home", tmp_path / "backup", NOW)
    assert caught.value.code == "already_running"
    assert not (tmp_path / "backup").exists()


def test_what_is_of_the_moment_is_left_out(tmp_path: Path) -> None:
    node = _node(tmp_path / "home")
    for name in (
        "run.json",
        "ravel-of-r0001.sqlite",
        "config.toml.new",
        "keys.json.0011223344556677.new",
        "daemon.log",
        "tokens.json",
        "api-tls.pem",
    ):
        (tmp_path / "home" / name).write_text("x")
    with lock_home(tmp_path / "home"):
        create_backup(tmp_path / "home", tmp_path / "backup", NOW)
    node.replica.close()
    assert {path.name for path in (tmp_path / "backup").iterdir()} == {"backups.json", "packs", "pages", NAME}
    assert {path.name for path in (tmp_path / "backup" / NAME).iterdir()} == {
        "manifest.json",
        "database.map",
        "config.toml",
        "keys.json",
        "api-token",
    }


def test_no_folder_of_something_else_is_written_into(tmp_path: Path) -> None:
    _node(tmp_path / "home").replica.close()
    _node(tmp_path / "other").replica.close()
    (tmp_path / "file").write_text("x")
    create_backup(tmp_path / "other", tmp_path / "backup", NOW)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for folder, why in (("other", "other files"), ("file", "other files"), ("backup", "another node")):
        with pytest.raises(ServiceError, match=why) as caught:
            create_backup(tmp_path / "home", tmp_path / folder, NOW)
        assert caught.value.code == "already_exists"
    assert (
        before.items() <= {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}.items()
    )
    (tmp_path / "empty").mkdir()
    create_backup(tmp_path / "home", tmp_path / "empty", NOW)
    with pytest.raises(ServiceError) as caught:
        restore_backup(tmp_path / "empty", tmp_path / "home")
    assert caught.value.code == "already_exists"
    (tmp_path / "new").mkdir()
    restore_backup(tmp_path / "empty", tmp_path / "new")


def test_a_backup_in_the_folder_that_it_is_of_is_refused(tmp_path: Path) -> None:
    _node(tmp_path / "home").replica.close()
    (tmp_path / "link").symlink_to(tmp_path / "home")
    for folder in ("home/backups", "home", "link/backups", "home/../home/backups"):
        with pytest.raises(ServiceError, match="in the node's own folder") as caught:
            create_backup(tmp_path / "home", tmp_path / folder, NOW)
        assert caught.value.code == "bad_request"
    assert not (tmp_path / "home/backups").exists()
    create_backup(tmp_path / "home", tmp_path / "home-backups", NOW)


def test_a_folder_of_backups_that_is_not_there_is_said_to_be_absent(tmp_path: Path) -> None:
    for act in (check_backups, lambda path: restore_backup(path, tmp_path / "new")):
        with pytest.raises(ServiceError, match=f"there is no folder {tmp_path}/nwoehre") as caught:
            act(tmp_path / "nwoehre")
        assert caught.value.code == "bad_input"


def test_what_a_killed_restore_left_is_removed(tmp_path: Path) -> None:
    _node(tmp_path / "home").replica.close()
    create_backup(tmp_path / "home", tmp_path / "backup", NOW)
    part = home_draft(tmp_path / "again")
    (part / "packs").mkdir(parents=True)
    (part / "ravel.sqlite").write_text("half")
    restore_backup(tmp_path / "backup", tmp_path / "again")
    assert not part.exists()


def test_the_longest_name_is_taken(tmp_path: Path) -> None:
    _node(tmp_path / "home").replica.close()
    for name in ("c" * 255, "ü" * 127):
        create_backup(tmp_path / "home", tmp_path / name, NOW)
        restore_backup(tmp_path / name, tmp_path / "restored" / name)
    with pytest.raises(ServiceError, match="could not be written"):
        restore_backup(tmp_path / ("c" * 255), tmp_path / "no" / ("c" * 256))


def test_a_backup_that_fails_leaves_nothing(tmp_path: Path) -> None:
    _node(tmp_path / "home").replica.close()
    (pack,) = (tmp_path / "home" / "packs").iterdir()
    pack.unlink()
    with pytest.raises(ServiceError) as caught:
        create_backup(tmp_path / "home", tmp_path / "backup", NOW)
    assert caught.value.code == "storage_failed"
    assert pack.name in caught.value.message
    assert {path.name for path in tmp_path.iterdir()} == {"home"}


def test_no_backup_is_made_while_content_is_collected(tmp_path: Path) -> None:
    _node(tmp_path / "home").replica.close()
    with hold_content(tmp_path / "home", alone=True), pytest.raises(ServiceError) as caught:
        create_backup(tmp_path / "home", tmp_path / "backup", NOW)
    assert caught.value.code == "already_running"
    with (
        hold_content(tmp_path / "home", alone=False),
        pytest.raises(ServiceError),
        hold_content(tmp_path / "home", alone=True),
    ):
        raise AssertionError("held")


@pytest.mark.parametrize("name", ["pages", f"{NAME}/database.map", f"{NAME}/keys.json", "packs"])
def test_a_flipped_bit_is_found_before_anything_is_restored(tmp_path: Path, name: str) -> None:
    _node(tmp_path / "home").replica.close()
    create_backup(tmp_path / "home", tmp_path / "backup", NOW)
    path = tmp_path / "backup" / name
    (path,) = path.iterdir() if path.is_dir() else (path,)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    _refused(tmp_path, "is not what it was")


def _refused(tmp_path: Path, why: str) -> None:
    with pytest.raises(ServiceError) as caught:
        restore_backup(tmp_path / "backup", tmp_path / "again")
    assert caught.value.code == "bad_input"
    assert why in caught.value.message
    assert not (tmp_path / "again").exists()
    assert not (tmp_path / ".again.part").exists()


MANIFESTS: dict[str, tuple[str, str, str]] = {
    "leaves_the_folder": ('"path": "keys.json"', '"path": "../node.key"', "expected form"),
    "leaves_it_below": ('"path": "keys.json"', '"path": "packs/../../x"', "expected form"),
    "absolute": ('"path": "keys.json"', '"path": "/etc/passwd"', "expected form"),
    "hidden": ('"path": "keys.json"', '"path": ".bashrc"', "expected form"),
    "no_key": ('"path": "keys.json"', '"path": "other.key"', "not all that a node has"),
    "twice": ('"path": "api-token"', '"path": "keys.json"', "twice"),
    "other_format": ("ravel-backup2", "ravel-backup1", "its format"),
    "no_pages": ('"path": "database.map"', '"path": "other.map"', "not all that a node has"),
    "a_database": ('"path": "api-token"', '"path": "ravel.sqlite"', "not all that a node has"),
    "longer": ('"database_size": ', '"database_size": 1', "bytes, not"),
    "not_json": ("{", "{{", "expected form"),
    "missing": ('"path": "api-token"', '"path": "gone.key"', "is not there"),
}


@pytest.mark.parametrize("defect", MANIFESTS)
def test_a_manifest_is_not_believed(tmp_path: Path, defect: str) -> None:
    old, new, why = MANIFESTS[defect]
    _node(tmp_path / "home").replica.close()
    create_backup(tmp_path / "home", tmp_path / "backup", NOW)
    path = tmp_path / "backup" / NAME / MANIFEST_NAME
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    _refused(tmp_path, why)


def test_a_manifest_has_a_bound(tmp_path: Path) -> None:
    (tmp_path / "backup" / NAME).mkdir(parents=True)
    with (tmp_path / "backup" / NAME / MANIFEST_NAME).open("wb") as file:
        file.truncate(BACKUP_MANIFEST_SIZE_MAX + 1)
    _refused(tmp_path, "bytes")


def test_a_link_in_a_backup_leads_nowhere(tmp_path: Path) -> None:
    _node(tmp_path / "home").replica.close()
    create_backup(tmp_path / "home", tmp_path / "backup", NOW)
    key = tmp_path / "backup" / NAME / "keys.json"
    key.rename(tmp_path / "elsewhere")
    key.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ServiceError):
        restore_backup(tmp_path / "backup", tmp_path / "again")
    assert not (tmp_path / "again").exists()
