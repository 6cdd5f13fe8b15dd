"""Files through a real daemon: by commands, cut anywhere, and never more of them in memory than a piece."""

import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import IO

import pytest

from node.runtime.errors import ERROR_KINDS
from tests.e2e.cluster import Peer, peers, run_ravel, until
from tests.support.machine import patience
from tests.support.processes import RAVEL

pytestmark = pytest.mark.slow

SIZE = 48_000_000


def _resident(peer: Peer) -> int:
    """The most that the daemon has had in memory, in bytes."""
    status = Path(f"/proc/{peer.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def _packs(peer: Peer) -> list[Path]:
    return sorted((peer.home / "packs").glob("*"))


def _begin_add(peer: Peer) -> tuple["subprocess.Popen[bytes]", IO[bytes]]:
    """A command that adds a file of which a part has come, and where the rest would go."""
    command = subprocess.Popen(
        [*RAVEL, "--home", str(peer.home), "file", "add", "main", "-", "--name", "cut"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    assert command.stdin is not None
    command.stdin.write(os.urandom(SIZE // 2))
    command.stdin.flush()
    until(lambda: bool(_packs(peer)), "a pack was begun")
    return command, command.stdin


@pytest.mark.extended
def test_a_large_file_goes_in_and_out_by_commands_with_flat_memory(tmp_path: Path) -> None:
    source = tmp_path / "large.bin"
    with source.open("wb") as file:
        for number in range(SIZE * 4 // 1_000_000):
            file.write(number.to_bytes(4, "big") * 250_000)
    with peers(tmp_path, "alice") as (alice,):
        alice.client.create_repo("notes")
        run_ravel(alice, "file", "add", "main", str(tmp_path / "large.bin"), "--name", "warm up")
        before = _resident(alice)
        run_ravel(alice, "file", "rm", "main", "warm up", "--yes")
        shown = run_ravel(alice, "file", "add", "main", str(source)).stderr
        assert f"read {SIZE * 4} of {SIZE * 4} bytes" in shown
        out = tmp_path / "out.bin"
        run_ravel(alice, "file", "get", "main", "large.bin", "-o", str(out))
        assert out.read_bytes() == source.read_bytes()
        assert _resident(alice) - before < 32_000_000, "a fraction of the file"
        again = run_ravel(
            alice,
            "file",
            "get",
            "main",
            "large.bin",
            "-o",
            str(out),
            code=ERROR_KINDS["already_exists"].exit_code,
        )
        assert "--force" in again.stderr
        part = run_ravel(alice, "file", "get", "main", "large.bin", "-o", "-", "--range", "999998-1000002")
        assert part.stdout.encode() == source.read_bytes()[999998:1000002]
        assert "large.bin" in run_ravel(alice, "file", "list", "main").stdout


@pytest.mark.extended
def test_a_get_that_was_cut_or_doubled_makes_no_wrong_file(tmp_path: Path) -> None:
    source, out = tmp_path / "source.bin", tmp_path / "out.bin"
    source.write_bytes(os.urandom(SIZE))
    with peers(tmp_path, "alice") as (alice,):
        alice.client.create_repo("notes")
        run_ravel(alice, "file", "add", "main", str(source))
        get = ("file", "get", "main", "source.bin", "-o", str(out))

        command = subprocess.Popen(
            [*RAVEL, "--home", str(alice.home), *get], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        until(lambda: any(one.stat().st_size for one in tmp_path.glob(".ravel-*.part")), "some has come")
        command.send_signal(signal.SIGSTOP)
        [part] = tmp_path.glob(".ravel-*.part")
        run_ravel(alice, *get, code=ERROR_KINDS["already_running"].exit_code)
        command.send_signal(signal.SIGKILL)
        command.wait(patience(10))
        assert not out.exists()
        part.write_bytes(bytes(SIZE))  # as a power cut may leave it
        run_ravel(alice, *get)
        assert out.read_bytes() == source.read_bytes()
        assert list(tmp_path.glob(".ravel-*.part")) == []


@pytest.mark.extended
def test_sigkill_during_an_add_leaves_nothing_after_the_next_start(tmp_path: Path) -> None:
    with peers(tmp_path, "alice") as (alice,):
        alice.client.create_repo("notes")
        command, sent = _begin_add(alice)
        alice.kill()
        sent.close()
        assert command.wait(patience(30)) == ERROR_KINDS["not_running"].exit_code
        assert _packs(alice)
        alice.start()
        assert _packs(alice) == []
        assert alice.client.list_files("main")["files"] == []


def test_a_client_that_leaves_during_an_add_leaves_nothing(tmp_path: Path) -> None:
    with peers(tmp_path, "alice") as (alice,):
        alice.client.create_repo("notes")
        command, sent = _begin_add(alice)
        command.kill()
        command.wait(patience(10))
        with suppress(BrokenPipeError):
            sent.close()
        until(lambda: not _packs(alice), "the pack is gone")
        assert alice.client.list_files("main")["files"] == []
        assert "Traceback" not in (alice.home / "daemon.log").read_text()


def test_a_file_is_got_from_the_peer_that_has_it(tmp_path: Path) -> None:
    source, out = tmp_path / "source.bin", tmp_path / "out.bin"
    source.write_bytes(os.urandom(SIZE))
    with peers(tmp_path, "alice", "bob") as (alice, bob):
        alice.client.create_repo("notes")
        run_ravel(alice, "file", "add", "main", str(source))
        link = alice.client.create_invitation("notes", permission="read", expires_seconds=3600, uses=1)[
            "invitation"
        ]
        bob.client.join_repo(link)
        until(lambda: "source.bin" in run_ravel(bob, "file", "list", "main").stdout, "the commit has come")
        part = run_ravel(
            bob, "file", "get", "main", "source.bin", "-o", str(tmp_path / "part"), "--range", "0-10"
        )
        assert part.returncode == 0
        assert (tmp_path / "part").read_bytes() == source.read_bytes()[:10]
        run_ravel(bob, "file", "get", "main", "source.bin", "-o", str(out))
        assert out.read_bytes() == source.read_bytes()
        assert sum(path.stat().st_size for path in _packs(bob)) > SIZE


@pytest.mark.parametrize(
    "name, local",
    [
        ("../../escaped", "escaped"),
        ("/etc/ravel-escaped", "ravel-escaped"),
        ("..\\..\\escaped", "escaped"),
        ("a/..", None),
        ("..", None),
    ],
)
def test_a_name_leads_out_of_no_folder(standing: Peer, tmp_path: Path, name: str, local: str | None) -> None:
    here = tmp_path / "one" / "two"
    here.mkdir(parents=True)
    added = standing.client.add_file("notes:main", [name.encode()], name=name)
    before = set(tmp_path.rglob("*"))
    done = subprocess.run(
        [*RAVEL, "--home", str(standing.home), "file", "get", "notes:main", str(added["file"])],
        cwd=here,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    made = here / (local or str(added["file"]))
    assert made.read_bytes() == name.encode()
    outside = {path for path in set(tmp_path.rglob("*")) - before if standing.home not in path.parents}
    assert outside == {made}
