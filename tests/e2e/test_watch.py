"""`ravel watch` beside a real daemon: it follows, says when the daemon stops, and goes on from its cursor."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.e2e.cluster import Peer, peers, run_ravel, until
from tests.support.machine import patience
from tests.support.processes import RAVEL

pytestmark = pytest.mark.slow


def _watch(peer: Peer, *options: str) -> "subprocess.Popen[str]":
    command = [*RAVEL, "--home", str(peer.home), "watch", "main", *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _ended(watching: "subprocess.Popen[str]") -> int:
    watching.communicate(timeout=patience(10))
    return watching.returncode


@pytest.mark.extended
def test_watching_goes_on_over_a_restart_of_the_daemon(tmp_path: Path) -> None:
    with peers(tmp_path, "alice") as (alice,):
        alice.client.create_repo("notes")
        alice.client.write_post("main", "one")
        watching = _watch(alice, "--from", "start", "--json")
        assert watching.stdout is not None
        lines = [json.loads(watching.stdout.readline()) for _ in range(3)]
        assert [line["event"] for line in lines] == ["reset", "edit", "edit"]
        assert lines[2]["item"]["text"] == "one"
        alice.client.write_post("main", "two")
        two = json.loads(watching.stdout.readline())
        assert two["item"]["text"] == "two"
        assert alice.stop() == 0
        error = json.loads(watching.stdout.read())["error"]
        assert _ended(watching) == 25
        assert error["code"] == "interrupted"
        assert error["next"].endswith(f"ravel watch main --from {two['cursor']}")
        alice.start()
        alice.client.write_post("main", "three")
        watching = _watch(alice, "--from", two["cursor"])
        assert watching.stdout is not None
        assert watching.stdout.readline().endswith(" three\n")
        watching.terminate()
        _ended(watching)
        assert run_ravel(alice, "watch", "main", "--from", "x", code=3).stderr.startswith("error: 'x' is not")


def test_a_command_runs_for_each_event_and_a_failed_one_comes_again(tmp_path: Path) -> None:
    notes, cursor = tmp_path / "notes", tmp_path / "cursor"
    script = tmp_path / "hook"
    script.write_text('#!/bin/sh\necho "$RAVEL_EVENT $RAVEL_EDIT $(cat)" >> "$1"\n')
    script.chmod(0o700)
    options = ("--exec", f"'{script}' '{notes}'", "--cursor-file", str(cursor))

    def seen() -> list[str]:
        return notes.read_text().splitlines() if notes.exists() else []

    with peers(tmp_path, "alice") as (alice,):
        alice.client.create_repo("notes")
        alice.client.write_post("main", "one")
        watching = _watch(alice, "--from", "start", *options)
        until(lambda: len(seen()) == 3, "reset, root and one")
        until(lambda: f'"cursor": "{cursor.read_text().strip()}"' in seen()[2], "its cursor is kept")
        watching.terminate()
        _ended(watching)
        assert [line.split()[0] for line in seen()] == ["reset", "edit", "edit"]
        assert '"text": "one"' in seen()[2]
        script.write_text("#!/bin/sh\nexit 3\n")
        alice.client.write_post("main", "two")
        failed = run_ravel(alice, "watch", "main", *options, code=25).stderr
        assert "ended with 3" in failed
        assert f"--cursor-file {cursor}" in failed
        script.write_text('#!/bin/sh\necho "$RAVEL_EVENT $RAVEL_EDIT $(cat)" >> "$1"\n')
        watching = _watch(alice, *options)
        until(lambda: len(seen()) == 4, "the one that failed comes again")
        watching.terminate()
        _ended(watching)
        assert '"text": "two"' in seen()[3]


@pytest.mark.extended
def test_a_timeline_is_shown_by_position_and_by_time(tmp_path: Path) -> None:
    with peers(tmp_path, "alice") as (alice,):
        alice.client.create_repo("notes")
        for number in range(1, 6):
            alice.client.write_post("main", str(number))

        def shown(*options: str) -> list[str | None]:
            answer = json.loads(run_ravel(alice, "log", "main", "--json", *options).stdout)
            return [item["text"] for item in answer["items"]]

        assert shown("--from", "2", "--to", "4") == ["2", "3"]
        assert shown("--from", "4") == ["4", "5"]
        assert shown("--to", "3", "--limit", "2") == ["1", "2"]
        assert shown("--limit", "2") == ["4", "5"]
        assert shown("--by-time") == [None, "1", "2", "3", "4", "5"]
        commit = alice.client.show_timeline("main", after_position=2, limit=1)["items"][0]["commit"]
        assert shown("--by-time", "--before", commit, "--limit", "1") == ["2"]
        assert shown("--by-time", "--after", commit[:12]) == ["4", "5"]
        assert shown("--since", "1h", "--limit", "2") == [None, "1"]
        assert json.loads(run_ravel(alice, "show", commit, "--json").stdout)["position"] == 3
        assert (
            "give a larger --to" in run_ravel(alice, "log", "main", "--from", "3", "--to", "3", code=3).stderr
        )
        run_ravel(alice, "log", "main", "--after", commit, code=3)
        since = alice.client.show_timeline("main", after_position=-1, limit=1)["cursor"]
        alice.client.write_post("main", "6")
        (edit,) = alice.client.follow_edits("main", since=since, positions=True)["edits"]
        assert (edit["position_before"], edit["position"]) == (None, 6)
