"""Sealed keys and a real daemon: it starts with its passphrase alone, by every way that is not an argument."""

from pathlib import Path

import pytest

from node.runtime.errors import ERROR_KINDS
from tests.e2e.cluster import Peer, digest, join, run_ravel, until, until_equal

pytestmark = pytest.mark.slow
FIRST, SECOND = "four random words", "neither stored nor said"


def _code(name: str) -> int:
    return ERROR_KINDS[name].exit_code


def _file(path: Path, passphrase: str) -> str:
    path.parent.mkdir(exist_ok=True)
    path.write_text(passphrase + "\n")
    path.chmod(0o600)
    return str(path)


def _everything_in(folder: Path) -> bytes:
    return b"\0".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def _commits(peer: Peer) -> int:
    """Count the commits of its one repo."""
    return int(peer.client.list_repos()["repos"][0]["commits"])


@pytest.mark.extended
def test_a_sealed_node_starts_with_its_passphrase_alone(tmp_path: Path) -> None:
    first = _file(tmp_path / "first", FIRST)
    second = _file(tmp_path / "credentials" / "ravel-passphrase", SECOND)
    alice = Peer(tmp_path / "alice", keys=(), environment={"RAVEL_PASSPHRASE_FILE": first})
    try:
        assert "--passphrase-file" in run_ravel(alice, "run", code=_code("locked")).stderr
        wrong = run_ravel(
            alice, "--passphrase-file", "-", "run", stdin=SECOND, code=_code("wrong_passphrase")
        )
        assert SECOND not in wrong.stdout + wrong.stderr
        alice.start()
        alice.client.create_repo("notes")
        alice.client.write_post("main", "hello")
        again = run_ravel(alice, "run", code=_code("already_running"))
        assert str(alice.pid) in again.stderr, "before any passphrase is asked for"
        run_ravel(alice, "--passphrase-file", "-", "fsck", stdin=FIRST)
        change = ("key", "change-passphrase", "--new-passphrase-file", second)
        run_ravel(alice, "--passphrase-file", first, *change)
        alice.client.write_post("main", "a running daemon goes on")
        alice.stop()
        alice.environment = {"CREDENTIALS_DIRECTORY": str(tmp_path / "credentials")}
        alice.start()
        assert digest(alice, "main")["commits"] == 3
        assert not any(word.encode() in _everything_in(alice.home) for word in (FIRST, SECOND))
    finally:
        alice.close()


@pytest.mark.extended
def test_who_lost_a_disk_comes_back_by_words_and_an_invitation(tmp_path: Path) -> None:
    alice, bob = Peer(tmp_path / "alice"), Peer(tmp_path / "bob")
    again: Peer | None = None
    try:
        alice.start()
        bob.start()
        repo, branch = join(alice, bob)
        until(lambda: bool(digest(bob, branch)["commits"]), "the branch has come to bob")
        bob.client.write_post(branch, "before")
        until_equal(alice, bob, branch)
        assert "in use once an admin renews the repo" in run_ravel(bob, "key", "refresh").stdout
        until(lambda: _commits(alice) == _commits(bob), "alice has heard of the fresh key")
        assert "in use\n" in run_ravel(alice, "key", "refresh").stdout
        bob.client.write_post(branch, "in the next epoch")
        until_equal(alice, bob, branch)
        user = bob.client.show_status()["user"]
        words = run_ravel(bob, "key", "words").stdout
        bob.kill()

        typed = " ".join(word for word in words.split() if word.isalpha())
        again = Peer(tmp_path / "again")
        again.start()
        assert "a member's link brings a repo back" in run_ravel(again, "up", "--words", stdin=typed).stdout
        assert again.client.show_status()["user"] == user
        again.client.join_repo(
            alice.client.create_invitation(repo, permission="write", expires_seconds=3600)["invitation"]
        )
        run_ravel(again, "repo", "sync", repo)
        again.client.write_post(branch, "after")
        assert until_equal(alice, again, branch)["commits"] == 4
        run_ravel(again, "key", "refresh")
        until(lambda: _commits(alice) == _commits(again), "the lost fresh key was replaced")
        alice.client.start_epoch(repo)
        again.client.write_post(branch, "in a later epoch")
        assert until_equal(alice, again, branch)["commits"] == 5
        run_ravel(alice, "feed", "check", branch)
        members = alice.client.list_members(repo)["members"]
        assert [one["permission"] for one in members if one["user"] == user] == ["write"]
    finally:
        for peer in (alice, bob, *([again] if again else [])):
            peer.close()
