"""A damaged store with real daemons: one command, and what was lost comes back from the peer; SIGKILL costs nothing."""

import json
import os
import signal
import sqlite3
import subprocess
from contextlib import closing, suppress
from pathlib import Path

import pytest

from node.runtime.errors import ERROR_KINDS, ServiceError
from tests.e2e.cluster import digest, join, peers, run_ravel, until, until_equal
from tests.e2e.damage import harm
from tests.support.processes import RAVEL

pytestmark = pytest.mark.slow
DAMAGED = ERROR_KINDS["damaged"].exit_code


@pytest.mark.extended
def test_a_damaged_store_is_repaired_and_the_peer_brings_what_was_lost(tmp_path: Path) -> None:
    with peers(tmp_path, "alice", "bob") as (alice, bob):
        _, branch = join(alice, bob)
        for number in range(5):
            alice.client.write_post(branch, f"post {number}")
        content = os.urandom(3 << 20)
        alice.client.add_file(branch, iter([content]), name="large")
        until_equal(alice, bob, branch)
        with bob.client.get_file(branch, "large") as download:
            assert b"".join(download.pieces) == content
        before = digest(bob, branch)
        alice.stop()
        bob.stop()
        harm(bob.home / "ravel.sqlite")
        for pack in (bob.home / "packs").iterdir():
            pack.unlink()

        found = json.loads(run_ravel(bob, "fsck", "--json", code=DAMAGED).stdout)
        assert "repair" not in found
        foreseen = json.loads(run_ravel(bob, "fsck", "--repair", "--dry-run", "--json", code=DAMAGED).stdout)
        assert not (bob.home / "ravel-before-repair.sqlite").exists()
        done = json.loads(run_ravel(bob, "fsck", "--repair", "--json", code=DAMAGED).stdout)
        assert done["repair"]["changed"] == foreseen["repair"]["changed"]
        assert done["repair"]["found"] == found["kinds"]
        assert done["kinds"] == {"damaged": sum(done["repair"]["damaged"].values())}
        assert done["repair"]["damaged"]["commits"] == 2
        assert done["repair"]["damaged"]["blocks"] >= 3
        assert Path(done["repair"]["copy"]).exists()

        bob.start()
        assert bob.client.show_status()["damaged"] == done["repair"]["damaged"]
        assert "asked of peers" in run_ravel(bob, "doctor").stdout
        assert bob.client.list_repos()["repos"][0]["permission"] == "damaged"
        shown = bob.client.show_timeline(branch, after_position=-1, limit=100)["items"]
        assert sum(item.get("damaged", False) for item in shown) == 1
        assert run_ravel(bob, "log", branch).stdout.count("damaged)") == 1
        with pytest.raises(ServiceError) as caught:
            bob.client.write_post(branch, "by whose right?")
        assert caught.value.code == "damaged"
        assert digest(bob, branch) == before, "places are known"

        alice.start()
        until(lambda: bob.client.show_status()["damaged"] == {"commits": 0, "blocks": 0}, "all is back", 60)
        alice.stop()
        assert bob.client.list_repos()["repos"][0]["permission"] == "write"
        bob.client.write_post(branch, "goes on")
        with bob.client.get_file(branch, "large") as download:
            assert b"".join(download.pieces) == content, "without a peer"
        bob.stop()
        assert run_ravel(bob, "fsck").stdout.endswith("all is as it must be\n")
        assert "there is nothing to repair" in run_ravel(bob, "fsck", "--repair").stdout


@pytest.mark.extended
def test_a_killed_repair_is_finished_by_the_next(tmp_path: Path) -> None:
    with peers(tmp_path, "alice") as (alice,):
        repo = str(alice.client.create_repo("notes")["repo"])
        branch = str(alice.client.list_branches(repo)["branches"][0]["branch"])
        for number in range(5):
            alice.client.write_post(branch, f"post {number}")
        before = digest(alice, branch)
        alice.stop()
        with closing(sqlite3.connect(alice.home / "ravel.sqlite", isolation_level=None)) as connection:
            connection.execute("DELETE FROM heads")
            connection.execute("UPDATE commits SET rank = 7, passed = 3")
        copy = alice.home / "ravel-before-repair.sqlite"
        process = subprocess.Popen([*RAVEL, "--home", str(alice.home), "fsck", "--repair"])
        part = copy.with_name(copy.name + ".part")
        with suppress(ProcessLookupError):
            while not part.exists() and not copy.exists() and process.poll() is None:
                pass  # everything is done by then, and nothing of it is durable
            process.send_signal(signal.SIGKILL)
        process.wait()
        assert run_ravel(alice, "fsck", "--repair").stdout.endswith("all is as it must be\n")
        assert not part.exists()
        alice.start()
        assert digest(alice, branch) == before
