"""Care of data with real processes: backups under SIGKILL and beside a daemon, and a disk that fills up."""

import signal
import subprocess
import time
from pathlib import Path

import pytest

from node.backup import restore_backup
from node.home import open_home
from tests.e2e.cluster import RAVEL, Peer, digest, peers, run_ravel

pytestmark = pytest.mark.slow


def _fill(peer: Peer) -> str:
    """A branch with posts and a file that is large enough for a pack; gives its id."""
    repo = str(peer.client.create_repo("notes")["repo"])
    branch = str(peer.client.list_branches(repo)["branches"][0]["branch"])
    for number in range(5):
        peer.client.write(branch, f"post {number}")
    peer.client.add_file(branch, "large", (bytes([number]) * (1 << 20) for number in range(20)))
    return branch


def test_a_backup_beside_a_daemon_becomes_the_same_node(tmp_path: Path) -> None:
    with peers(tmp_path, "alice") as (alice,):
        branch = _fill(alice)
        run_ravel(alice, "backup", str(tmp_path / "backup"))
        before = digest(alice, branch)
        alice.stop()
        alice.home.rename(tmp_path / "gone")
        run_ravel(alice, "restore", str(tmp_path / "backup"))
        alice.start()
        assert digest(alice, branch) == before
        with alice.client.get_file(branch, "large") as download:
            assert sum(map(len, download.pieces)) == 20 << 20


def test_a_killed_backup_is_whole_or_not_there(tmp_path: Path) -> None:
    with peers(tmp_path, "alice") as (alice,):
        _fill(alice)
        out = tmp_path / "backup"
        finished = 0
        for round_number in range(6):
            process = subprocess.Popen([*RAVEL, "--home", str(alice.home), "backup", str(out)])
            deadline = time.monotonic() + 10
            # As soon as anything is there, and a little later each time: the rest of it takes some hundredths.
            part = tmp_path / ".backup.part"
            while not part.exists() and not out.exists() and time.monotonic() < deadline:
                pass
            wanted = ("ravel.sqlite", "config.toml", "node.key", "packs", "manifest.json")
            name = wanted[round_number % len(wanted)]
            while not (part / name).exists() and not out.exists() and time.monotonic() < deadline:
                pass
            process.send_signal(signal.SIGKILL)
            process.wait()
            if out.exists():
                finished += 1
                restore_backup(out, tmp_path / f"restored-{round_number}")
                out.rename(tmp_path / f"kept-{round_number}")
        assert finished < 6, "none was killed on its way"
        run_ravel(alice, "backup", str(out))
        assert open_home(alice.home).node_seed.hex() in (out / "node.key").read_text()
        assert not (tmp_path / ".backup.part").exists()
