"""`ravel up` and `ravel down`, and the lines of README, as a shell runs them."""

import json
import os
import re
import shlex
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.machine import patience
from tests.support.processes import RAVEL, run_command

README = Path(__file__).parents[2] / "README.md"
ANY = ("--clear", "--listen", "127.0.0.1:0", "--api", "127.0.0.1:0")
pytestmark = pytest.mark.slow


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A folder whose daemon does not outlive the test."""
    yield tmp_path / "node"
    run_command(("--home", str(tmp_path / "node"), "down"))


def _json(home: Path, *arguments: str, code: int = 0, stdin: str = "") -> dict[str, Any]:
    done = run_command(("--home", str(home), *arguments, "--json"), stdin=stdin)
    assert done.returncode == code, done.stderr + done.stdout
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def test_up_makes_starts_and_waits_and_down_stops(home: Path) -> None:
    first = _json(home, "up", *ANY)
    assert first["created"]
    assert first["started"]
    assert _json(home, "repo", "create", "notes")["name"] == "notes"
    again = _json(home, "up", *ANY)
    assert not again["created"]
    assert not again["started"]
    assert again["pid"] == first["pid"]
    refused = _json(home, "up", "--listen", "127.0.0.1:1", code=6)["error"]
    assert "config set network.listen 127.0.0.1:1 && " in refused["next"]
    assert _json(home, "down") == {"stopped": True, "pid": first["pid"]}
    assert _json(home, "down") == {"stopped": False, "pid": None}
    assert "ravel --home" in _json(home, "status", code=13)["error"]["next"]
    assert _json(home, "up")["started"]
    assert [one["name"] for one in _json(home, "repo", "list")["repos"]] == ["notes"]
    assert (home / "daemon.log").stat().st_mode & 0o077 == 0


@pytest.mark.extended
def test_several_at_once_make_one_node_and_leave_the_folder_they_were_typed_in(
    home: Path, tmp_path: Path
) -> None:
    typed_in = tmp_path / "typed in"
    typed_in.mkdir()
    commands = [
        subprocess.Popen(
            [*RAVEL, "--home", str(home), "up", *ANY, "--json"],
            cwd=typed_in,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for _ in range(3)
    ]
    answers = [command.communicate(timeout=patience(60)) for command in commands]
    assert [command.returncode for command in commands] == [0, 0, 0], answers
    assert len({(one["node"], one["pid"]) for one in (json.loads(out) for out, _ in answers)}) == 1
    [pid] = {json.loads(out)["pid"] for out, _ in answers}
    assert os.readlink(f"/proc/{pid}/cwd") == str(home)


@pytest.mark.extended
def test_a_chosen_repo_gives_names_of_branches_their_meaning(home: Path) -> None:
    _json(home, "up", *ANY)
    repos = [_json(home, "repo", "create", name)["repo"] for name in ("notes", "work")]
    assert "notes:main" in _json(home, "write", "main", "x", code=5)["error"]["message"]
    assert _json(home, "use", "work") == {"repo": repos[1], "name": "work"}
    _json(home, "write", "main", "for work")
    texts = [one["text"] for one in _json(home, "log", "work:main")["items"]]
    assert texts == [None, "for work"]
    assert _json(home, "use") == {"repo": repos[1], "name": "work"}
    assert "did you mean 'work'" in _json(home, "use", "wrok", code=4)["error"]["message"]
    assert _json(home, "use", "--none") == {"repo": None, "name": None}
    _json(home, "write", "main", "x", code=5)


def test_a_setting_is_changed_and_read_and_says_when_it_holds(home: Path) -> None:
    _json(home, "config", "set", "log.level", "debug", code=11)
    _json(home, "up", *ANY)
    changed = _json(home, "config", "set", "log.level", "debug")
    assert changed | {"config": ""} == {
        "config": "",
        "key": "log.level",
        "before": "info",
        "value": "debug",
        "restart": True,
        "overridden_by": None,
    }
    assert not _json(home, "config", "set", "log.level", "debug")["restart"]
    assert _json(home, "config", "get", "log.level")["value"] == "debug"
    assert (
        _json(home, "config", "set", "network.advertise", "-", stdin="a.example:1\n")["value"]
        == "a.example:1"
    )
    assert "did you mean 'level'" in _json(home, "config", "get", "log.levle", code=10)["error"]["message"]
    assert _json(home, "config", "unset", "log.level")["value"] == "info"
    _json(home, "down")
    assert not _json(home, "config", "set", "log.level", "info")["restart"]


def test_what_a_changed_setting_allows_needs_a_restart_and_not_the_setting_again(home: Path) -> None:
    _json(home, "up", *ANY)
    invite = ("relay", "invite", "--name", "club", "--quota", "1GiB")
    assert "config set relay.enabled true" in _json(home, *invite, code=10)["error"]["next"]
    assert _json(home, "config", "set", "relay.enabled", "true")["restart"]
    refused = _json(home, *invite, code=10)["error"]
    assert "started before relay.enabled was changed" in refused["message"]
    assert refused["next"] == f"start the daemon again: ravel --home {home} down && ravel --home {home} up"


def test_the_shell_is_offered_names_of_the_running_daemon(home: Path) -> None:
    _json(home, "up", *ANY)
    _json(home, "repo", "create", "notes")
    told = {"RAVEL_HOME": str(home), "_RAVEL_COMPLETE": "complete_bash", "COMP_CWORD": "2"}
    for line, offered in (
        ("ravel log ma", "main"),
        ("ravel log notes:", "notes:main"),
        ("ravel use n", "notes"),
    ):
        done = run_command((), environment={**told, "COMP_WORDS": line})
        assert (done.stdout.split(), done.stderr) == ([offered], "")


def test_mistakes_get_a_message_for_people(home: Path) -> None:
    _json(home, "up", *ANY)
    _json(home, "repo", "create", "notes")
    peer = "a" * 52
    for words, code, said in (
        (("repo", "create", ""), 3, "name is empty"),
        (("repo", "join", "foo"), 8, "this is not an invitation: a link starts with ravel:"),
        (("repo", "join", "ravel:invite:abc1"), 8, "a part of the link is missing or altered"),
        (("repo", "follow", "ravel:invite:abc1"), 8, "this is not a read capability: a bearer link"),
        (("peer", "add", "127.0.0.1:80000", peer), 3, "ports go to 65535"),
        (("peer", "add", "127.0.0.1", peer), 3, "say HOST:PORT"),
        (("peer", "add", "0.0.0.0:1", peer), 3, "stands for every interface"),
        (("log", "mian"), 4, "did you mean 'main'?"),
        (("log", "nosuch:main"), 4, "no repo is called 'nosuch'"),
    ):
        assert said in _json(home, *words, code=code)["error"]["message"], words
    done = run_command(("--home", str(home), "repo", "sync", "notes", "--timeout", "0"))
    assert done.returncode == 24
    assert "waiting: no peer is connected, and this node dials none" in done.stderr
    assert "synced" not in done.stderr
    asked = run_command(("--home", str(home), "peer", "add", "--relay", "127.0.0.1:9", peer)).stdout
    assert "to be asked" in asked


@pytest.mark.extended
def test_a_daemon_that_cannot_start_says_why_and_who_has_its_port(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = f"127.0.0.1:{server.getsockname()[1]}"
        refused = _json(home, "up", "--clear", "--listen", taken, "--api", "127.0.0.1:0", code=10)["error"]
    assert f"cannot listen on {taken}" in refused["message"]
    assert f"process {os.getpid()} (" in refused["message"]
    assert re.search(r" up --listen 127\.0\.0\.1:[0-9]+$", refused["next"]), "a free port, in one command"


@pytest.mark.extended
def test_two_taken_ports_are_said_at_once_and_one_command_that_is_pasted_helps(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as first, socket.create_server(("127.0.0.1", 0)) as second:
        listen, api = (f"127.0.0.1:{one.getsockname()[1]}" for one in (first, second))
        refused = _json(home, "up", "--clear", "--listen", listen, "--api", api, code=10)["error"]
        assert f"cannot listen on {api} and {listen}" in refused["message"]
        words = shlex.split(refused["next"].partition(": ravel ")[2])
        assert json.loads(run_command((*words, "--json")).stdout)["started"]


@pytest.mark.extended
def test_sealed_keys_are_opened_before_and_by_a_pipe(home: Path) -> None:
    at = ("--passphrase-file", "-", "up")
    assert _json(home, *at, "--listen", "127.0.0.1:0", "--api", "127.0.0.1:0", stdin="eight words")["started"]
    _json(home, "down")
    assert _json(home, *at, code=28, stdin="nine words")["error"]["code"] == "wrong_passphrase"
    assert _json(home, *at, stdin="eight words")["started"]


@pytest.mark.extended
def test_readme_can_be_pasted_on_two_machines(tmp_path: Path) -> None:
    part = README.read_text(encoding="utf-8").partition("## Five minutes by hand")[2].partition("\n## ")[0]
    blocks = re.findall(r"```console\n(.*?)```", part, re.DOTALL)
    at_alice, at_bob = ("\n".join(line.removeprefix("$ ") for line in one.splitlines()) for one in blocks)
    assert not re.search(r"[0-9]\.[0-9]|:[0-9]", at_alice + at_bob), "nobody needs to know an address"
    # No port that something else may have, and none that others on the network can dial: so the link works on this machine
    # only.
    assert "repo invite notes" in at_alice
    at_alice = at_alice.replace("repo invite notes", "repo invite --local notes")
    any_port = "127.0.0.1:0"
    listening = {"RAVEL_NETWORK_LISTEN": any_port, "RAVEL_API_LISTEN": any_port}
    tool = tmp_path / "bin" / "ravel"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\nexec {" ".join(RAVEL)} "$@"\n')
    tool.chmod(0o755)
    environment = {**os.environ, **listening, "PATH": f"{tool.parent}:{os.environ['PATH']}"}

    def paste(script: str, name: str, typed: str) -> str:
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", script],
            input=typed,
            env={**environment, "RAVEL_HOME": str(tmp_path / name)},
            capture_output=True,
            text=True,
            timeout=patience(60),
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    try:
        shown = paste(at_alice, "alice", "")
        (link,) = re.findall(r"^ravel:invite:\S+$", shown, re.MULTILINE)
        shown = paste(at_bob, "bob", link)
        assert "hello, alice" in shown
        digests = [
            _json(tmp_path / name, "log", "main", "--digest", code=0)["digest"] for name in ("alice", "bob")
        ]
        assert digests[1] in shown
    finally:
        for name in ("alice", "bob"):
            run_command(("--home", str(tmp_path / name), "down"))
