"""`ravel up --service` has systemd run the daemon, and `ravel uninstall` takes all of it away again."""

import json
import signal
from pathlib import Path

import pytest

from node.home.service import service_of
from node.runtime.errors import EXIT_RESTART
from ravel import RavelError
from ravel.home import is_locked
from tests.e2e.cluster import peers
from tests.support.processes import run_command
from tests.support.systemctl import fake_systemctl


def _run(home: Path, *words: str, code: int = 0) -> str:
    done = run_command(("--home", str(home), *words), forks=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout if "--json" in words else done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.extended
def test_a_service_takes_over_the_daemon_and_is_removed_with_all_that_it_ran(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    calls = fake_systemctl(tmp_path, monkeypatch, starts=True)
    home = tmp_path / "a 100% home"
    ports = ("--listen", "127.0.0.1:0", "--api", "127.0.0.1:0")
    first = json.loads(_run(home, "up", "--clear", *ports, "--json"))
    assert first["service"] is None
    said = _run(home, "up", "--service")
    assert str(service_of(home).path) in said
    assert "lingering" in said
    assert "uninstall` removes the service" in said
    second = json.loads(_run(home, "up", "--service", "--json"))
    assert (second["started"], second["service"]) == (False, str(service_of(home).path))
    assert second["pid"] != first["pid"], "the daemon of before was stopped"
    assert sum("enable" in one for one in calls()) == 1
    _run(home, "repo", "create", "garden")
    assert "garden: nobody else is connected" in _run(home, "uninstall")
    assert "Removed" in _run(home, "uninstall", "--yes", "service", "--yes", "home")
    assert not is_locked(home)
    assert not home.exists()
    assert not service_of(home).path.exists()


@pytest.mark.slow
def test_a_daemon_ends_for_a_restart_only_where_something_starts_it_again(tmp_path: Path) -> None:
    with peers(tmp_path, "alice") as (alice,):
        assert not alice.client.list_settings()["restarts"]
        with pytest.raises(RavelError, match="nothing starts this daemon again"):
            alice.client.restart_node()
        assert alice.stop(signal.SIGHUP) == EXIT_RESTART


@pytest.mark.slow
@pytest.mark.extended
def test_sealed_keys_need_a_file_that_systemd_can_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    fake_systemctl(tmp_path, monkeypatch)
    home, file = tmp_path / "home", tmp_path / "secret"
    file.write_text("four random words\n")
    file.chmod(0o600)
    done = run_command(
        ("--home", str(home), "--passphrase-file", "-", "up", "--service"),
        stdin="four random words",
        forks=False,
    )
    assert done.returncode == 3
    assert "nobody is there to type a passphrase" in done.stderr
    assert not home.exists()
    run_command(("--home", str(home), "--passphrase-file", str(file), "init"), forks=False)
    # The unit is written; this systemctl starts nothing, so the command waits in vain.
    options = ("--home", str(home), "--passphrase-file", str(file))
    run_command((*options, "up", "--service", "--timeout", "0"), forks=False)
    assert f"LoadCredential=ravel-passphrase:{file}" in service_of(home).path.read_text()
