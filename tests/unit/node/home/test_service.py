"""A unit says what systemd must run, whatever the folder is called; only a unit that Ravel made is replaced or removed."""

import os
import shlex
from pathlib import Path

import pytest

from node.home.home import create_home, open_home
from node.home.service import (
    Service,
    check_settings,
    check_systemd,
    is_started_again,
    lingers,
    service_of,
    unit_text,
)
from node.runtime.errors import ServiceError
from tests.support.systemctl import fake_systemctl

HOME = Path("/srv/a node")


def test_a_unit_runs_the_daemon_of_its_folder() -> None:
    text = unit_text(HOME, None, python="/venv/bin/python")
    lines = text.splitlines()
    assert lines[0].startswith("# Made by `ravel up --service`")
    assert 'ExecStart="/venv/bin/python" "-P" "-m" "node.cli.main" "--home" "/srv/a node" "run"' in lines
    assert "Type=notify" in lines
    assert "WantedBy=default.target" in lines
    assert "LoadCredential" not in text


def test_a_passphrase_comes_by_systemd_and_is_in_no_unit(tmp_path: Path) -> None:
    file = tmp_path / "50% secret"
    file.write_text("a very secret passphrase")
    text = unit_text(HOME, file)
    assert f"LoadCredential=ravel-passphrase:{tmp_path}/50%% secret" in text.splitlines()
    assert "a very secret passphrase" not in text


def test_what_systemd_would_read_as_more_than_a_name_is_escaped() -> None:
    text = unit_text(Path('/srv/%h/$HOME/"a"\\b'), None)
    assert '"/srv/%%h/$$HOME/\\"a\\"\\\\b"' in text
    with pytest.raises(ServiceError):
        unit_text(Path("/srv/a\nExecStartPre=/bin/sh"), None)


def test_a_passphrase_file_is_named_as_systemd_takes_paths(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    text = unit_text(HOME, tmp_path / "x" / ".." / "secret")
    assert f"LoadCredential=ravel-passphrase:{tmp_path}/secret" in text.splitlines()
    for name in ("secret\\", "secret ", "a\nb"):  # a line that goes on, or loses its end
        with pytest.raises(ServiceError):
            unit_text(HOME, tmp_path / name)


def test_a_program_has_its_dollars_once_and_arguments_twice() -> None:
    text = unit_text(Path("/srv/$b"), None, python="/opt/$a/python")
    assert 'ExecStart="/opt/$a/python" "-P"' in text
    assert '"/srv/$$b"' in text


def test_settings_of_a_shell_are_refused_since_a_service_has_none_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_home(tmp_path / "home", listen="127.0.0.1:0", api="127.0.0.1:0")
    check_settings(open_home(tmp_path / "home").settings)
    monkeypatch.setenv("RAVEL_STORAGE_URL", "postgresql://ann:secret@localhost/other")
    with pytest.raises(ServiceError) as caught:
        check_settings(open_home(tmp_path / "home").settings)
    assert "RAVEL_STORAGE_URL" in caught.value.message
    assert "secret" not in caught.value.message + caught.value.advice


def test_each_folder_has_a_unit_of_its_own(tmp_path: Path) -> None:
    environment = {"XDG_CONFIG_HOME": str(tmp_path)}
    first = service_of(tmp_path / "a", environment)
    assert first.path.parent == tmp_path / "systemd/user"
    assert first == service_of(tmp_path / "a", environment)
    assert first.name != service_of(tmp_path / "b", environment).name


def test_the_default_folder_has_the_plain_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert service_of(tmp_path / "ravel").name == "ravel.service"


def test_a_process_that_systemd_runs_by_our_unit_is_started_again(tmp_path: Path) -> None:
    environment = {"XDG_CONFIG_HOME": str(tmp_path), "SYSTEMD_EXEC_PID": str(os.getpid())}
    unit = service_of(HOME, environment)
    assert not is_started_again(HOME, environment), "somebody else's unit may leave it ended"
    unit.path.parent.mkdir(parents=True)
    unit.path.write_text(unit_text(HOME, None))
    assert is_started_again(HOME, environment)
    assert not is_started_again(HOME, {**environment, "SYSTEMD_EXEC_PID": "1"}), "a shell in a service"


def test_a_unit_that_somebody_else_wrote_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = fake_systemctl(tmp_path, monkeypatch)
    unit = Service("ravel.service", tmp_path / "ravel.service")
    unit.path.write_text("[Unit]\n")
    assert not unit.is_installed
    with pytest.raises(ServiceError) as caught:
        unit.install(unit_text(HOME, None))
    assert caught.value.code == "already_exists"
    assert unit.path.read_text() == "[Unit]\n"
    assert calls() == []


def test_a_unit_is_written_started_and_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = fake_systemctl(tmp_path, monkeypatch)
    unit = Service("ravel.service", tmp_path / "units" / "ravel.service")
    unit.install(unit_text(HOME, None))
    assert unit.is_installed
    unit.remove()
    assert not unit.path.exists()
    assert calls() == [
        "--user daemon-reload",
        "--user enable --now ravel.service",
        "--user disable --now ravel.service",
        "--user daemon-reload",
    ]


def test_a_unit_for_the_next_login_leaves_what_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = fake_systemctl(tmp_path, monkeypatch)
    unit = Service("ravel.service", tmp_path / "units" / "ravel.service")
    unit.start_with_login(unit_text(HOME, None))
    assert unit.is_installed
    unit.remove(stop=False)
    assert not unit.path.exists()
    assert [one for one in calls() if "able" in one] == [
        "--user enable ravel.service",
        "--user disable ravel.service",
    ]


def test_a_unit_that_systemd_does_not_enable_is_not_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_systemctl(tmp_path, monkeypatch, fails="enable", says="no")
    unit = Service("ravel.service", tmp_path / "ravel.service")
    with pytest.raises(ServiceError):
        unit.start_with_login(unit_text(HOME, None))
    assert not unit.is_installed, "else it is said to start with the login, and is not tried again"


def test_a_start_that_fails_says_where_the_reason_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_systemctl(tmp_path, monkeypatch, fails="enable", says="Job for ravel.service failed.")
    unit = Service("ravel.service", tmp_path / "ravel.service")
    with pytest.raises(ServiceError) as caught:
        unit.install(unit_text(HOME, None))
    assert "Job for ravel.service failed." in caught.value.message
    assert "journalctl --user -u ravel.service" in caught.value.advice


@pytest.mark.parametrize("has_program, said", [(False, "no systemd here"), (True, "No medium found")])
def test_a_machine_without_systemd_is_told_what_to_do_instead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_program: bool, said: str
) -> None:
    if has_program:
        fake_systemctl(tmp_path, monkeypatch, fails="show-environment", says=f"Failed: {said}")
    else:
        monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ServiceError) as caught:
        check_systemd(HOME)
    assert caught.value.code == "bad_config"
    assert said in caught.value.message
    assert f"ravel --home {shlex.quote(str(HOME))} up" in caught.value.advice


def test_a_user_lingers_whom_systemd_names_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "ann")
    assert not lingers(tmp_path)
    (tmp_path / "ann").touch()
    assert lingers(tmp_path)
