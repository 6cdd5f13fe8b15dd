"""`ravel watch` beside a real daemon: it follows, says when the daemon stops, and goes on from its cursor."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.e2e.cluster import RAVEL, Peer, peers, run_ravel

pytestmark = pytest.mark.slow


def _watch(peer: Peer, *options: str) -> "subprocess.Popen[str]":
    command = [*RAVEL, "--home", str(peer.home), "watch", "main", *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _ended(watching: "subprocess.Popen[str]") -> int:
    watching.communicate(timeout=10)
    return watching.returncode


def test_watching_goes_on_over_a_restart_of_the_daemon(tmp_path: Path) -> None:
    with peers(tmp_path, "alice") as (alice,):
        alice.client.create_repo("notes")
        alice.client.write("main", "one")
        watching = _watch(alice, "--from", "start", "--json")
        assert watching.stdout is not None
        lines = [json.loads(watching.stdout.readline()) for _ in range(3)]
        assert [line["event"] for line in lines] == ["reset", "edit", "edit"]
        assert lines[2]["item"]["text"] == "one"
        alice.client.write("main", "two")
        two = json.loads(watching.stdout.readline())
        assert two["item"]["text"] == "two"
        assert alice.stop() == 0
        error = json.loads(watching.stdout.read())["error"]
        assert _ended(watching) == 25
        assert error["code"] == "interrupted"
        assert error["next"].endswith(f"ravel watch main --from {two['cursor']}")
        alice.start()
        alice.client.write("main", "three")
        watching = _watch(alice, "--from", two["cursor"])
        assert watching.stdout is not None
        assert watching.stdout.readline().endswith(" three\n")
        watching.terminate()
        _ended(watching)
        assert run_ravel(alice, "watch", "main", "--from", "x", code=3).stderr.startswith("error: 'x' is not")
