"""`ravel up`, and commands without a daemon, say what keeps the next command from working."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

import ravel
from node.cli.main import app
from node.cli.up_commands import up
from node.home import starting
from node.home.home import create_home, lock_home, open_home
from node.home.identity import open_keys
from node.home.mnemonic import words_of
from node.home.people_file import read_people
from node.runtime.errors import ServiceError
from node.runtime.version import VERSION
from protocol.crypto.keys import UserSeed
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


@pytest.mark.parametrize("wants_words", [True, False])
def test_a_new_person_is_asked_a_name_a_passphrase_and_once_about_the_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wants_words: bool
) -> None:
    asked: list[str] = []

    def typed(prompt: str) -> str:
        asked.append(prompt)
        return ""

    found = RunFile(Holder.this(), "127.0.0.1:1", "127.0.0.1:2", "peer", "run")
    monkeypatch.setattr("node.home.passphrases.is_terminal", lambda: True)
    monkeypatch.setattr("getpass.getpass", typed)
    monkeypatch.setattr(starting, "start_daemon", lambda *_: found)
    given = f"Carl\n{'y' if wants_words else 'n'}\n"
    result = CliRunner().invoke(app, ["--home", str(tmp_path / "home"), "up"], input=given)
    assert result.exit_code == 0, result.output
    assert "Your name, as others will see it" in result.output
    assert "Nobody can restore it: if you lose it, only the 24 words help" in result.output
    assert asked == ["Passphrase (empty: none, for a trial): "]
    assert ("13 " in result.output.partition("computer is lost?")[2]) == wants_words
    assert read_people(tmp_path / "home").me.name == "Carl"
    again = CliRunner().invoke(app, ["--home", str(tmp_path / "home"), "up"])
    assert "24 words that bring you back" not in again.output


def test_a_script_is_asked_nothing(tmp_path: Path) -> None:
    refused = CliRunner().invoke(app, ["--home", str(tmp_path / "home"), "up"])
    assert isinstance(refused.exception, ServiceError)
    assert refused.exception.code == "bad_request"
    assert "--clear" in refused.exception.advice
    assert "Your name" not in refused.output
    assert not (tmp_path / "home").exists()


class _RunningNode:
    """Client of a daemon that runs, as far as coming back asks it."""

    def __init__(self) -> None:
        self.is_unused = self.is_closed = False
        self.recovered: list[dict[str, str]] = []

    def show_keys(self) -> dict[str, bool]:
        return {"unused": self.is_unused}

    def recover_user(self, **given: str) -> None:
        self.recovered.append(given)

    def close(self) -> None:
        self.is_closed = True


def test_somebody_comes_back_by_24_words_in_one_command_where_no_used_key_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = RunFile(Holder.this(), "127.0.0.1:1", "127.0.0.1:2", "peer", "run")
    monkeypatch.setattr(starting, "start_daemon", lambda *_: found)
    seed = UserSeed(bytes(range(32)))
    home = tmp_path / "home"
    command = ["--home", str(home), "up", "--words", "--clear"]
    wrong = CliRunner().invoke(app, command, input="one two three\n")
    assert isinstance(wrong.exception, ServiceError)
    assert (wrong.exception.code, home.exists()) == ("bad_input", False)
    done = CliRunner().invoke(app, command, input=" ".join(words_of(seed)) + "\n")
    assert done.exit_code == 0, done.output
    assert open_keys(home, lambda: b"").user_seed == seed
    assert "a member's link brings a repo back" in " ".join(done.output.split())
    node = _RunningNode()
    monkeypatch.setattr("ravel.connect", lambda _: node)
    monkeypatch.setattr(starting, "wait_for_daemon", lambda *_, past_run: replace(found, run=f"{past_run} 2"))
    refused = CliRunner().invoke(app, command, input="")
    assert isinstance(refused.exception, ServiceError)
    assert refused.exception.code == "already_exists", "before a word is typed"
    node.is_unused = True
    again = CliRunner().invoke(app, command, input=" ".join(words_of(seed)) + "\n")
    assert again.exit_code == 0, again.output
    assert node.recovered == [{"words": " ".join(words_of(seed)), "passphrase": ""}]
    assert node.is_closed


def test_words_are_not_dropped_where_another_made_the_node_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"

    def quicker(*_: object) -> tuple[str, None]:
        create_home(home, listen="127.0.0.1:0", api="127.0.0.1:0")
        return "none", None

    found = RunFile(Holder.this(), "127.0.0.1:1", "127.0.0.1:2", "peer", "run")
    monkeypatch.setattr(starting, "start_daemon", lambda *_: found)
    monkeypatch.setattr("node.cli.up_commands.choose_protection", quicker)
    given = " ".join(words_of(UserSeed(bytes(range(32))))) + "\n"
    refused = CliRunner().invoke(app, ["--home", str(home), "up", "--words"], input=given)
    assert isinstance(refused.exception, ServiceError), refused.output
    assert refused.exception.code == "already_exists"
    assert "Ravel runs" not in refused.output


@pytest.mark.parametrize("created, first", [(True, "ravel repo create NAME"), (False, "ravel status")])
def test_who_has_a_node_is_not_told_to_begin(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, created: bool, first: str
) -> None:
    monkeypatch.setattr("node.cli.printing.is_terminal", lambda: True)
    printer: Any = vars(up)["printer"]
    printer({"started": True, "created": created, "notes": "", "passing": ""})
    said, command, *_ = capsys.readouterr().out.splitlines()
    assert said == "Ravel runs."
    assert command.split("  ")[1] == first
