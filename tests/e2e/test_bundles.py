"""Bundles by real commands: from one daemon to another that never meets it."""

import json
import os
import random
import resource
import subprocess
from pathlib import Path

import pytest

from node.runtime.errors import ERROR_KINDS
from tests.e2e.cluster import JsonObject, digest, peers, run_ravel, until
from tests.support.machine import patience
from tests.support.processes import RAVEL

pytestmark = pytest.mark.slow


def _code(name: str) -> int:
    return ERROR_KINDS[name].exit_code


def test_a_repo_goes_by_a_file_to_a_member_who_never_met_its_author(tmp_path: Path) -> None:
    """Cut in the middle, read again, and passed over when it is read once more; each mistake has its answer."""
    with peers(tmp_path, "alice", "bob") as (alice, bob):
        alice.client.create_repo("notes")
        for number in range(40):
            alice.client.write_post("main", text=f"{number} {random.Random(number).randbytes(20_000).hex()}")
        link = alice.client.create_invitation("notes", permission="write", expires_seconds=3600)["invitation"]
        whole, part, folder = tmp_path / "notes.bundle", tmp_path / "part", tmp_path / "folder"
        written: JsonObject = json.loads(
            run_ravel(alice, "bundle", "write", "notes", "--to", str(whole), "--json").stdout
        )
        expected = digest(alice, "main")
        alice.stop()
        assert (written["size"], written["left_out"]) == (whole.stat().st_size, 0)

        done = run_ravel(bob, "bundle", "read", str(whole), code=_code("not_found"))
        assert "repo join LINK" in done.stderr
        joining = subprocess.Popen(
            [*RAVEL, "--home", str(bob.home), "repo", "join", link], stdout=subprocess.DEVNULL
        )
        until(
            lambda: bool(bob.client.list_repos()["repos"]), "the repo is here, and its members are waited for"
        )
        part.write_bytes(whole.read_bytes()[: written["size"] * 2 // 3])
        done = run_ravel(bob, "bundle", "read", str(part), code=_code("interrupted"))
        assert "came to be here" in done.stderr
        read: JsonObject = json.loads(run_ravel(bob, "bundle", "read", str(whole), "--json").stdout)
        assert 0 < read["taken"] < read["commits"] == written["commits"]
        assert digest(bob, "main") == expected
        assert joining.wait(patience(30)) == 0
        assert "Took 0 new commits" in run_ravel(bob, "bundle", "read", str(whole)).stdout

        pipe, folder = tmp_path / "pipe", tmp_path / "folder"
        os.mkfifo(pipe)
        folder.mkdir()
        (tmp_path / "photo.jpg").write_bytes(b"\xff\xd8\xff\xe0\x00\x10JFIF" + os.urandom(20_000_000))
        for name in ("pipe", "folder", "photo.jpg", "none", "/dev/zero"):
            done = run_ravel(bob, "bundle", "read", str(tmp_path / name), code=_code("bad_input"))
            assert "next:" in done.stderr, name
        for target, code in (
            (whole, "already_exists"),
            (folder, "already_exists"),
            (pipe, "bad_input"),
            (Path("/dev/full"), "bad_input"),
            (tmp_path / "no" / "folder", "storage_failed"),
        ):
            run_ravel(bob, "bundle", "write", "notes", "--to", str(target), code=_code(code))
        before = sorted(tmp_path.iterdir())
        full = subprocess.run(
            [*RAVEL, "--home", str(bob.home), "bundle", "write", "notes", "--to", str(tmp_path / "x")],
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)),
            capture_output=True,
            check=False,
        )
        assert full.returncode == _code("storage_failed"), full.stderr
        assert sorted(tmp_path.iterdir()) == before
