"""Sealed keys from the command line: made, opened by every way that is not an argument, changed, carried elsewhere."""

import json
import re
from pathlib import Path

import pytest

from node.errors import ERROR_KINDS
from tests.e2e.cluster import Peer, digest, join, run_ravel, until_equal

pytestmark = pytest.mark.slow
FIRST, SECOND, THIRD = "four random words", "neither stored nor said", "of the exported file"


def _code(name: str) -> int:
    return ERROR_KINDS[name].exit_code


def _file(path: Path, passphrase: str) -> str:
    path.parent.mkdir(exist_ok=True)
    path.write_text(passphrase + "\n")
    path.chmod(0o600)
    return str(path)


def _everything_in(folder: Path) -> bytes:
    return b"\0".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def test_a_sealed_node_starts_with_its_passphrase_alone(tmp_path: Path) -> None:
    first = _file(tmp_path / "first", FIRST)
    second = _file(tmp_path / "credentials" / "ravel-passphrase", SECOND)
    alice = Peer(tmp_path / "alice", keys=(), environment={"RAVEL_PASSPHRASE_FILE": first})
    try:
        assert json.loads(run_ravel(alice, "key", "show", "--json").stdout)["protection"] == "passphrase"
        refused = run_ravel(alice, "run", code=_code("locked"))
        assert "--passphrase-file" in refused.stderr
        wrong = run_ravel(
            alice, "--passphrase-file", "-", "run", stdin=SECOND, code=_code("wrong_passphrase")
        )
        assert SECOND not in wrong.stdout + wrong.stderr
        alice.start()
        alice.client.create_repo("notes")
        run_ravel(alice, "write", "main", "hello")
        again = run_ravel(alice, "--passphrase-file", "/dev/null", "run", code=_code("already_running"))
        assert str(alice.pid) in again.stderr, "before any passphrase is asked for"
        assert (
            "all is as it must be" in run_ravel(alice, "--passphrase-file", "-", "fsck", stdin=FIRST).stdout
        )
        run_ravel(alice, "fsck", code=_code("locked"))
        run_ravel(
            alice, "--passphrase-file", first, "key", "change-passphrase", "--new-passphrase-file", second
        )
        run_ravel(alice, "write", "main", "a running daemon goes on")
        alice.stop()
        run_ravel(alice, "--passphrase-file", first, "run", code=_code("wrong_passphrase"))
        alice.environment = {"CREDENTIALS_DIRECTORY": str(tmp_path / "credentials")}
        alice.start()
        assert digest(alice, "main")["commits"] == 2
        alice.stop()
        assert not any(word.encode() in _everything_in(alice.home) for word in (FIRST, SECOND))

        unsealed = run_ravel(alice, "key", "unseal", environment=alice.environment)
        assert "in the clear" in unsealed.stderr
        run_ravel(alice, "key", "change-passphrase", code=_code("bad_request"))
        alice.environment = {}
        alice.start()
        assert digest(alice, "main")["commits"] == 2
    finally:
        alice.close()


def test_a_user_is_carried_to_another_node_by_words_or_by_a_file(tmp_path: Path) -> None:
    third = _file(tmp_path / "third", THIRD)
    alice = Peer(tmp_path / "alice")
    bob = Peer(tmp_path / "bob")
    by_words: Peer | None = None
    try:
        alice.start()
        bob.start()
        _, branch = join(alice, bob)
        run_ravel(bob, "write", branch, "before")
        until_equal(alice, bob, branch)
        user = json.loads(run_ravel(bob, "id", "--json").stdout)["user"]
        listed = run_ravel(bob, "key", "words").stdout
        words = re.findall(r"[a-z]+", listed)
        assert words == json.loads(run_ravel(bob, "key", "words", "--json").stdout)["words"]
        run_ravel(bob, "key", "export", str(tmp_path / "bob.key"), "--new-passphrase-file", third)
        run_ravel(
            bob, "key", "export", str(tmp_path / "bob.key"), "--new-passphrase-file", third,
            code=_code("already_exists"),
        )  # fmt: skip
        bob.kill()

        swapped = [words[1], words[0], *words[2:]]
        lost = Peer.__new__(Peer)
        lost.home = tmp_path / "nothing"
        for typed in (" ".join(swapped), " ".join(words[:23]), "nonsense " * 24):
            run_ravel(lost, "init", "--clear", "--words", stdin=typed, code=_code("bad_input"))
        assert not lost.home.exists(), "nothing is made of a slip"
        by_words = Peer(
            tmp_path / "again", keys=("--clear", "--words"), stdin="  ".join(words).upper() + "\n"
        )
        run_ravel(by_words, "init", "--words", stdin=" ".join(words), code=_code("already_exists"))
        ids = json.loads(run_ravel(by_words, "id", "--json").stdout)
        assert ids["user"] == user
        assert ids["node"] != json.loads(run_ravel(bob, "id", "--json").stdout)["node"]
        by_words.start()
        link = run_ravel(alice, "repo", "invite", "shared", "--permission", "write").stdout
        run_ravel(by_words, "repo", "join", "-", stdin=link)
        run_ravel(by_words, "repo", "sync", "shared")
        run_ravel(by_words, "write", "main", "after")
        assert until_equal(alice, by_words, branch)["commits"] == 2
        run_ravel(alice, "feed", "check", "main")
        members = alice.client.members.list_all("shared")["members"]
        assert [one["permission"] for one in members if one["user"] == user] == ["write"]

        take = ("init", "--clear", "--from-file", str(tmp_path / "bob.key"), "--from-passphrase-file")
        wrong = _file(tmp_path / "wrong", FIRST)
        run_ravel(lost, *take, wrong, code=_code("wrong_passphrase"))
        run_ravel(lost, *take, third)
        assert json.loads(run_ravel(lost, "id", "--json").stdout)["user"] == user
    finally:
        for peer in (alice, bob, *([by_words] if by_words else [])):
            peer.close()


def test_how_keys_are_kept_must_be_said_where_nobody_can_be_asked(tmp_path: Path) -> None:
    nobody = Peer.__new__(Peer)
    nobody.home = tmp_path / "home"
    refused = run_ravel(nobody, "init", code=_code("bad_request"))
    assert "--clear" in refused.stderr
    run_ravel(nobody, "init", "--clear", "--keyring", code=_code("bad_request"))
    short = _file(tmp_path / "short", "seven77")
    run_ravel(nobody, "--passphrase-file", short, "init", code=_code("bad_request"))
    assert not nobody.home.exists()
    made = run_ravel(nobody, "init", "--clear")
    assert "in the clear" in made.stderr
    assert run_ravel(nobody, "init").stderr == "", "what is there stays as it is, and nothing is asked"
