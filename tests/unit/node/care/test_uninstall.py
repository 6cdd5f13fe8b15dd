"""Removal takes what Ravel made and was confirmed, and nothing else."""

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from node.care.uninstall import find_installed, remove_home
from node.cli.main import app
from node.home.home import create_home, hold_content, lock_home
from node.home.identity import change_protection, open_keys
from node.home.service import service_of, unit_text
from node.runtime.errors import ServiceError
from tests.support.nodes import Node
from tests.support.systemctl import fake_systemctl


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stopped node with a store."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    create_home(tmp_path / "home", listen="127.0.0.1:0", api="127.0.0.1:0")
    node = Node(tmp_path / "home", "alice")
    node.create_repo()
    node.replica.close()
    return tmp_path / "home"


def test_all_that_a_node_made_is_removed_with_its_folder(home: Path) -> None:
    for name in (
        "ravel.sqlite-wal",
        "ravel-of-r0020.sqlite",
        "keys.json.0123456789abcdef.new",
        "daemon.log.1",
    ):
        (home / name).write_text("x")
    (home / "exports" / "deep").mkdir(parents=True)
    found = find_installed(home)
    assert (found.others, found.service, found.running) == ((), None, False)
    assert found.size > found.store_size > 0
    assert remove_home(home)
    assert not home.exists()


def test_files_of_others_stay_and_links_are_not_followed(home: Path, tmp_path: Path) -> None:
    away = tmp_path / "away"
    away.mkdir()
    (away / "pack").write_text("elsewhere")
    (home / "packs").symlink_to(away)
    (home / "letter.txt").write_text("mine")
    assert find_installed(home).others == ("letter.txt",)
    assert not remove_home(home)
    assert os.listdir(home) == ["letter.txt"]
    assert (away / "pack").read_text() == "elsewhere"


def test_a_folder_that_is_in_use_is_not_removed(home: Path) -> None:
    with lock_home(home), pytest.raises(ServiceError) as caught:
        remove_home(home)
    assert caught.value.code == "already_running"
    assert (home / "keys.json").exists()


def test_what_a_second_removal_needs_goes_last(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone: list[str] = []
    unlink = Path.unlink

    def note(path: Path, **how: bool) -> None:
        gone.append(path.name)
        unlink(path, **how)

    monkeypatch.setattr(Path, "unlink", note)
    remove_home(home)
    assert gone[-2:] == ["keys.json", "config.toml"]


def _uninstall(home: Path, *words: str) -> str:
    done = CliRunner().invoke(app, ["--home", str(home), "uninstall", *words])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.output


def test_without_a_terminal_only_what_is_named_is_removed(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = fake_systemctl(tmp_path, monkeypatch)
    unit = service_of(home)
    unit.install(unit_text(home, None))
    said = _uninstall(home)
    assert "Nothing was removed." in said
    assert str(unit.path) in said
    assert f"ravel --home {home} key words" in said
    assert "Only a running node can tell what that is" in said
    assert unit.path.exists()
    assert (home / "keys.json").exists()

    with pytest.raises(ServiceError, match="the service starts what is in the folder"):
        _uninstall(home, "--yes", "home")
    assert (home / "keys.json").exists()

    assert "Removed the service." in _uninstall(home, "--yes", "service")
    assert "--user disable --now" in "\n".join(calls())
    assert not unit.path.exists()
    assert (home / "keys.json").exists()

    assert f"Removed {home}." in _uninstall(home, "--yes", "home")
    assert not home.exists()


def test_files_that_stay_are_named(home: Path) -> None:
    (home / "letter.txt").write_text("mine")
    assert f"Removed Ravel's files from {home}. Others stay there: letter.txt." in _uninstall(
        home, "--yes", "home"
    )


def test_an_unknown_part_is_refused(home: Path) -> None:
    assert "say service or home" in " ".join(_uninstall(home, "--yes", "all").split())
    assert (home / "keys.json").exists()


def test_a_terminal_is_asked_about_each_part(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_systemctl(tmp_path, monkeypatch)
    unit = service_of(home)
    unit.install(unit_text(home, None))
    monkeypatch.setattr("node.home.passphrases.is_terminal", lambda: True)
    asked: list[str] = []

    def confirm(question: str, **_: object) -> bool:
        asked.append(question)
        return "service" in question

    monkeypatch.setattr("node.cli.service_commands.agrees", confirm)
    _uninstall(home)
    assert len(asked) == 2
    assert not unit.path.exists()
    assert (home / "keys.json").exists()


def test_a_folder_that_was_given_by_a_link_goes_with_the_link(home: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(home)
    assert remove_home(link)
    assert not home.exists()
    assert not link.is_symlink()


def test_a_folder_that_cannot_go_is_not_said_to_be_gone(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Path) -> None:
        raise OSError(16, "Device or resource busy")

    monkeypatch.setattr(Path, "rmdir", refuse)
    said = _uninstall(home, "--yes", "home")
    assert f"Removed Ravel's files from {home}. The folder stays." in said
    assert os.listdir(home) == []


def test_the_service_of_a_folder_is_found_by_every_name_of_it(home: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(home)
    assert service_of(link) == service_of(home)


def test_content_that_a_backup_reads_is_not_removed(home: Path) -> None:
    with hold_content(home, alone=False), pytest.raises(ServiceError) as caught:
        remove_home(home)
    assert caught.value.code == "already_running"
    assert (home / "ravel.sqlite").exists()


def test_the_key_in_the_keyring_goes_with_the_keys_that_it_opens(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: dict[str, bytes] = {}
    monkeypatch.setattr("node.home.identity.put_key", kept.__setitem__)
    monkeypatch.setattr("node.home.identity.drop_key", kept.pop)
    change_protection(home, open_keys(home, lambda: b""), "keyring")
    assert len(kept) == 1
    assert remove_home(home)
    assert kept == {}


def test_exports_beside_the_folder_are_said_to_stay(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAVEL_EXPORT_DESTINATION", "../out")
    assert find_installed(home).exports == str(home.parent / "out")
