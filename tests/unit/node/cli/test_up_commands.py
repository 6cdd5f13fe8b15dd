"""`ravel up`, and commands without a daemon, say what keeps the next command from working."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

import ravel
from node.cli.main import app
from node.home import starting
from node.home.home import create_home, lock_home, open_home
from node.runtime.errors import ServiceError
from node.runtime.version import VERSION
from ravel.holder import Holder
from ravel.home import RunFile
from tests.support.nodes import Node


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder without a daemon."""
    create_home(tmp_path / "home", listen="127.0.0.1:0", api="127.0.0.1:0")
    return tmp_path / "home"


@pytest.mark.parametrize(
    "answer, said",
    [
        ({"version": VERSION}, ""),
        (ServiceError("storage_failed", "the disk has no room"), ""),
        ({"version": "0.0.9"}, "is of version 0.0.9"),
        (
            ServiceError("incompatible", "the daemon sent what this client cannot read"),
            "is of another version",
        ),
    ],
)
def test_a_daemon_of_another_version_is_not_called_ready(
    home: Path, monkeypatch: pytest.MonkeyPatch, answer: object, said: str
) -> None:
    def show_status() -> object:
        if isinstance(answer, ServiceError):
            raise answer
        return answer

    api = SimpleNamespace(show_status=show_status, close=lambda: None)
    monkeypatch.setattr(ravel, "connect", lambda *_: api)
    found = RunFile(Holder.this(), "127.0.0.1:1", "127.0.0.1:2", "peer", "run")
    monkeypatch.setattr(starting, "wait_for_daemon", lambda *_: found)
    with lock_home(home):
        result = CliRunner().invoke(app, ["--home", str(home), "up"])
    if not said:
        assert "Ravel runs, since before." in result.output
        assert "port 2 lasts until the daemon stops" in result.output, "port 0 is another one at each start"
        return
    assert isinstance(result.exception, ServiceError)
    assert result.exception.code == "incompatible"
    assert said in result.exception.message
    assert "down" in result.exception.advice
    assert "Ravel runs" not in result.output


def test_a_command_without_a_daemon_says_that_the_store_is_lost(home: Path) -> None:
    refused = CliRunner().invoke(app, ["--home", str(home), "status"])
    assert isinstance(refused.exception, ServiceError)
    assert refused.exception.code == "not_running"
    node = Node(home, "alice")
    node.create_repo()
    node.replica.close()
    (home / "ravel.sqlite").unlink()
    for _ in range(2):
        refused = CliRunner().invoke(app, ["--home", str(home), "status"])
        assert isinstance(refused.exception, ServiceError)
        assert refused.exception.code == "storage_failed"
        assert "--accept-loss" in refused.exception.advice


_GIVEN = (
    (("--name", "Bea"), "you are called Ann", "me --name Bea"),
    (("--keyring",), "kept in the clear", "key seal --keyring"),
    (("--passphrase",), "kept in the clear", "key seal"),
)


@pytest.mark.parametrize("command", ["up", "init"])
@pytest.mark.parametrize("options, there, advice", _GIVEN)
def test_an_option_of_a_new_node_is_refused_where_another_node_is(
    tmp_path: Path, command: str, options: tuple[str, ...], there: str, advice: str
) -> None:
    folder = tmp_path / "home"
    create_home(folder, name="Ann", listen="127.0.0.1:0", api="127.0.0.1:0")
    refused = CliRunner().invoke(app, ["--home", str(folder), command, *options])
    assert isinstance(refused.exception, ServiceError)
    assert refused.exception.code == "already_exists"
    assert there in refused.exception.message
    assert refused.exception.advice.endswith(f"{folder} {advice}")


def test_init_takes_again_what_it_made_a_node_with_and_refuses_other_addresses(home: Path) -> None:
    same = ("--listen", "127.0.0.1:0", "--api", "127.0.0.1:0", "--clear")
    assert CliRunner().invoke(app, ["--home", str(home), "init", *same]).exit_code == 0
    refused = CliRunner().invoke(app, ["--home", str(home), "init", "--listen", "*:7480"])
    assert isinstance(refused.exception, ServiceError)
    assert refused.exception.advice.endswith("config set network.listen '*:7480'"), "quoted for a shell"


def test_up_gives_a_stopped_node_other_addresses_and_a_running_one_none(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = RunFile(Holder.this(), "127.0.0.1:1", "127.0.0.1:2", "peer", "run")
    monkeypatch.setattr(starting, "start_daemon", lambda *_: found)
    up = ["--home", str(home), "up", "--listen", "*:7480"]
    with lock_home(home):
        refused = CliRunner().invoke(app, up)
    assert isinstance(refused.exception, ServiceError)
    assert "its daemon runs" in refused.exception.message
    assert "config set network.listen '*:7480' && " in refused.exception.advice
    assert refused.exception.advice.endswith("up")
    done = CliRunner().invoke(app, up)
    assert done.exit_code == 0
    assert "note: network.listen is now *:7480; it was 127.0.0.1:0" in done.output
    assert open_home(home).config.network.listen == "*:7480"
    assert "note:" not in CliRunner().invoke(app, up).output, "the same again changes nothing"
