"""Questions before what no command gives back: they name it, and without a terminal the command is refused."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer
from typer.main import get_command

from node.cli.main import app
from node.runtime.errors import ERROR_KINDS
from tests.unit.node.cli.conftest import run_command

_FINAL: tuple[tuple[str, ...], ...] = (
    ("browser", "revoke", "phone"),
    ("file", "rm", "main", "a.txt"),
    ("inbox", "delete", "main", "k3x2abcd"),
    ("member", "exclude", "notes", "ben"),
    ("member", "revoke", "notes", "ben"),
    ("member", "uninvite", "notes", "k3x2abcd"),
    ("repo", "renew", "notes"),
    ("requests", "cancel", "notes"),
    ("requests", "close", "notes", "k3x2abcd"),
    ("token", "revoke", "chat"),
    ("repo", "forget", "notes"),
    ("repo", "leave", "notes"),
    ("delete", "k3x2abcd"),
    ("branch", "compact", "main"),
    ("device", "remove", "phone"),
    ("recovery", "friends", "ben"),
    ("recovery", "sign", "ben", "k3x2abcd"),
    ("relay", "revoke", "ann"),
)


@pytest.mark.parametrize("words", _FINAL, ids=" ".join)
def test_what_cannot_be_undone_is_refused_where_nobody_can_be_asked(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
) -> None:
    monkeypatch.setenv("RAVEL_HOME", str(tmp_path / "home"))
    assert run_command(monkeypatch, *words) == ERROR_KINDS["bad_request"].exit_code
    assert "--yes" in capsys.readouterr().err
    run_command(monkeypatch, *words, "--json")
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "bad_request"
    assert run_command(monkeypatch, *words, "--yes") == ERROR_KINDS["not_initialised"].exit_code, (
        "the daemon is asked"
    )


def test_nobody_is_asked_whether_to_exclude_somebody_who_is_not_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ben = {"user": "q" * 52, "person": "q" * 52, "name": "Ben", "stated_name": "Benjamin", "petname": None}
    silent = {**ben, "user": "s" * 52, "name": "Ben", "stated_name": None}
    desk = {**silent, "user": "t" * 52, "stated_name": "Desk"}
    dan = {"kind": "left", "time": 0, "author": "d" * 52, "author_name": "Dan"}
    api = SimpleNamespace(
        list_members=lambda _repo: {
            "members": [
                ben,
                silent,
                desk,
                {**ben, "user": "m" * 52, "person": "m" * 52, "name": "Me", "stated_name": None},
            ]
        },
        list_member_changes=lambda _repo, limit: {"changes": [dan]},
        show_status=lambda: {"user": "m" * 52},
    )
    asked: list[str] = []

    def prompt(text: str, **_: object) -> str:
        asked.append(text)
        return "n"

    monkeypatch.setattr("node.cli.answers.client", lambda _context: api)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(typer, "prompt", prompt)
    assert run_command(monkeypatch, "member", "exclude", "notes", "Bem") == ERROR_KINDS["not_found"].exit_code
    assert "no member is called 'Bem'; did you mean 'Ben'?" in capsys.readouterr().err
    assert asked == []
    for called in ("Ben", "Benjamin", "qqqq"):
        assert run_command(monkeypatch, "member", "exclude", "notes", called) == 2
        assert "Exclude Ben from notes?" in asked[-1]
        assert "2 devices of the same person will go along: ssssssssssss, Desk." in asked.pop()
    assert run_command(monkeypatch, "member", "exclude", "notes", "Dan") == 2
    assert asked.pop().startswith(
        "Dan left on 1970-01-01 00:00 UTC. From now on nothing counts in notes that this key writes beside its leave. "
    )
    assert run_command(monkeypatch, "member", "exclude", "notes", "Ben", "--alone") == 2
    assert "go along" not in asked.pop()
    capsys.readouterr()
    assert (
        run_command(monkeypatch, "member", "exclude", "notes", "Me") == ERROR_KINDS["bad_request"].exit_code
    )
    assert "that is this computer" in (said := capsys.readouterr().err)
    assert "`ravel repo leave notes`" in said
    assert asked == [], "who names oneself is not asked"


@pytest.mark.parametrize("is_first", [True, False])
def test_who_leaves_a_repo_is_told_which_devices_go_along(
    monkeypatch: pytest.MonkeyPatch, *, is_first: bool
) -> None:
    repos = [{"repo": "r" * 52, "name": "notes", "permission": "write"}]
    first = {"user": "q" * 52, "name": "Ben", "first": True, "this": is_first, "repos": []}
    desk = {"user": "s" * 52, "name": "Desk", "first": False, "this": not is_first, "repos": repos}
    elsewhere = {**desk, "name": "Lap", "this": False, "repos": [{**repos[0], "permission": None}]}
    api = SimpleNamespace(
        list_branches=lambda _: {}, list_devices=lambda: {"devices": [first, desk, elsewhere]}
    )
    asked: list[str] = []

    def prompt(text: str, **_: object) -> str:
        asked.append(text)
        return "n"

    monkeypatch.setattr("node.cli.answers.client", lambda _context: api)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(typer, "prompt", prompt)
    assert run_command(monkeypatch, "repo", "leave", "notes") == 2
    assert ("1 other device of yours will go along: Desk." in asked[0]) is is_first


def test_nobody_is_asked_whether_to_remove_a_device_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    phone = {"user": "q" * 51 + "a", "name": "phone"}
    api = SimpleNamespace(list_devices=lambda: {"devices": [phone]})
    monkeypatch.setattr("node.cli.answers.client", lambda _context: api)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    assert run_command(monkeypatch, "device", "remove", "fone") == ERROR_KINDS["not_found"].exit_code
    assert "no device is called 'fone'" in capsys.readouterr().err


def test_who_removes_a_device_is_told_that_edits_between_devices_are_undone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    phone = {"user": "q" * 51 + "a", "name": "phone", "this": False}
    tablet = {"user": "r" * 51 + "a", "name": "tablet", "this": True}
    asked = list[str]()

    def prompt(text: str, **_: object) -> str:
        asked.append(text)
        return "n"

    api = SimpleNamespace(list_devices=lambda: {"devices": [phone, tablet]})
    monkeypatch.setattr("node.cli.answers.client", lambda _context: api)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(typer, "prompt", prompt)
    run_command(monkeypatch, "device", "remove", "phone")
    assert (
        "of your other devices' posts, or they of its posts, are undone. Remove the device phone?" in asked[0]
    )
    run_command(monkeypatch, "device", "remove", "tablet")
    assert "This computer stays a member of your repos" in asked[1]


_TAKING = frozenset(
    {
        *(
            "archive",
            "ban",
            "cancel",
            "close",
            "compact",
            "delete",
            "deny",
            "erase",
            "exclude",
            "forget",
            "hide",
            "leave",
        ),
        *("refuse", "remove", "renew", "revoke", "rm", "uninvite", "unpin", "unseal"),
    }
)
"""Verbs of commands that take something away."""
_GIVEN_BACK = {
    "branch archive": "branch archive --undo",
    "dict rm": "dict put",
    "document rm": "set add",
    "inbox refuse": "inbox accept",
    "json rm": "json put",
    "key unseal": "key seal",
    "peer ban": "peer unban",
    "peer remove": "peer add",
    "post hide": "post unhide",
    "relay deny": "relay allow",
    "relay unpin": "relay pin",
    "requests refuse": "requests accept",
    "set rm": "set add",
    "tag rm": "tag set",
}
"""Command that takes something away without asking -> command that gives it back."""
_ASKED_ELSEWHERE = frozenset({"uninstall", "repo keep", "device promote"})
"""Commands that ask only for some of what they do, or after a look at who is there: their own tests hold them."""


def _paths(command: Any, path: str = "") -> dict[str, Any]:  # noqa: ANN401  # of a class that typer does not export
    if not (children := getattr(command, "commands", {})):
        return {path: command}
    return {
        name: one
        for child in children
        for name, one in _paths(children[child], f"{path} {child}".strip()).items()
    }


@pytest.mark.slow
def test_every_command_that_takes_something_away_asks_or_has_one_that_gives_it_back() -> None:
    commands = _paths(get_command(app))
    asking = {name for name, one in commands.items() if any("--yes" in option.opts for option in one.params)}
    final = {" ".join(words[:2]) if words[0] != "delete" else "delete" for words in _FINAL}
    assert asking == final | _ASKED_ELSEWHERE
    taking = {name for name in commands if name.split()[-1] in _TAKING}
    assert taking == (asking | _GIVEN_BACK.keys()) & taking
    assert _GIVEN_BACK.keys() <= taking
    assert {one.partition(" --")[0] for one in _GIVEN_BACK.values()} <= commands.keys()


def test_nobody_is_asked_about_a_token_or_a_file_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    api = SimpleNamespace(
        list_tokens=lambda: {"tokens": [{"name": "chat"}]},
        list_files=lambda *_, **__: {"files": [{"name": "a.txt", "file": "f" * 52}], "next": None},
    )
    monkeypatch.setattr("node.cli.answers.client", lambda _context: api)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    for words, said in (
        (("token", "revoke", "chta"), "no token is called 'chta'; did you mean 'chat'?"),
        (("file", "rm", "main", "b.txt"), "no file is called 'b.txt'"),
    ):
        assert run_command(monkeypatch, *words) == ERROR_KINDS["not_found"].exit_code
        assert said in capsys.readouterr().err
