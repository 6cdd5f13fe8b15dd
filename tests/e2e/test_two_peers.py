"""Two real daemons: the main job without Spark, refusals at the door, and SIGKILL at any moment."""

import json
import signal
import socket
import stat
import subprocess
from functools import partial
from pathlib import Path

import httpx
import pytest

from node.home.identity import open_keys
from node.runtime.errors import ERROR_KINDS, ServiceError
from ravel.home import read_token
from tests.e2e.cluster import Peer, digest, join, peers, run_ravel, until, until_equal
from tests.support.keys import no_passphrase
from tests.support.machine import patience
from tests.support.processes import RAVEL
from tests.support.tiers import in_tiers

pytestmark = pytest.mark.slow


def test_offline_writing_merges_and_heads_go_from_two_to_one(tmp_path: Path) -> None:
    with peers(tmp_path, "alice", "bob", introduces=False) as (alice, bob):
        repo, branch = join(alice, bob)
        until_equal(alice, bob, branch)
        until(lambda: bool(bob.client.list_repos()["repos"][0]["permission"] == "write"), "bob is a member")
        node = alice.client.show_status()["node"]
        bob.client.remove_peer(node)
        for peer in (alice, bob):
            peer.client.write_post(branch, f"offline {peer.home.name}")
        assert digest(alice, branch)["digest"] != digest(bob, branch)["digest"]
        bob.client.add_peer(alice.listen, node)
        until_equal(alice, bob, branch)
        two = digest(bob, branch)
        assert (len(two["heads"]), two["head_count"]) == (2, 2)
        bob.client.write_post(branch, "seen both")
        merged = until_equal(alice, bob, branch)
        assert len(merged["heads"]) == 1
        members = alice.client.list_members(repo)["members"]
        assert sorted(member["permission"] for member in members) == ["owner", "write"]


def _import(peer: Peer, branch: str, count: int) -> None:
    items = [
        {
            "id": str(number),
            "parents": [str(number - 1)] if number else [],
            "author": "a",
            "time": number,
            "text": f"text {number}",
        }
        for number in range(count)
    ]
    for start in range(0, count, 100):
        peer.client.import_commits(branch, items[start : start + 100], "jsonl")


def _has(peer: Peer, branch: str, count: int) -> bool:
    return int(digest(peer, branch)["commits"]) >= count


@pytest.mark.extended
@pytest.mark.parametrize("victim", in_tiers(["alice", "bob"], quick=1))
def test_sigkill_during_replication_loses_nothing(tmp_path: Path, victim: str) -> None:
    with peers(tmp_path, "alice", "bob") as (alice, bob):
        _, branch = join(alice, bob)
        _import(alice, branch, 1500)
        killed = {"alice": alice, "bob": bob}[victim]
        for threshold in (100, 700):
            until(partial(_has, bob, branch, threshold), "some have arrived")
            before = digest(killed, branch)["commits"]
            killed.kill()
            killed.start()
            assert digest(killed, branch)["commits"] >= before, "what was there is there"
        assert until_equal(alice, bob, branch)["commits"] == 1501


@pytest.mark.extended
def test_sigkill_during_an_import_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    with peers(tmp_path, "alice") as (alice,):
        repo = alice.client.create_repo("shared")["repo"]
        branch = alice.client.list_branches(repo)["branches"][0]["branch"]
        _import(alice, branch, 300)
        path = tmp_path / "items.jsonl"
        with path.open("w") as file:
            for number in range(300):
                item = {"id": str(number), "parents": [], "author": "a", "time": 1, "text": "x"}
                file.write(json.dumps(item) + "\n")
        command = subprocess.Popen(
            [*RAVEL, "--home", str(alice.home), "import", "jsonl", str(path), "--branch", branch],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        alice.kill()
        command.wait(patience(30))
        alice.start()
        assert digest(alice, branch)["commits"] >= 301
        run_ravel(alice, "import", "jsonl", str(path), "--branch", branch)
        once = digest(alice, branch)
        run_ravel(alice, "import", "jsonl", str(path), "--branch", branch)
        assert digest(alice, branch) == once


def test_a_wrong_peer_key_is_refused_and_said(tmp_path: Path) -> None:
    with peers(tmp_path, "alice", "bob") as (alice, bob):
        other = bob.client.show_status()["user"]
        bob.client.add_peer(alice.listen, other)
        until(
            lambda: "wrong_peer_key" in (bob.client.list_peers()["peers"][0]["last_error"] or ""),
            "the refusal shows in status",
        )


def test_garbage_on_the_port_changes_nothing(standing: Peer) -> None:
    host, port = standing.listen.split(":")
    before = standing.client.list_repos()["repos"]
    for garbage in (b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 5000, b"\x00\x00", b""):
        with socket.create_connection((host, int(port)), timeout=patience(5)) as connection:
            connection.sendall(garbage)
    assert standing.client.list_repos()["repos"] == before


def test_the_api_is_closed_to_strangers_and_web_pages(standing: Peer) -> None:
    base = standing.client.url
    token = (standing.home / "api-token").read_text().strip()
    good = {"Authorization": f"Bearer {token}"}
    url = f"{base}/api/v1/status"
    assert httpx.get(url, headers=good).status_code == 200
    assert httpx.get(url).status_code == 401
    assert httpx.get(url, params={"token": token}).status_code == 401
    assert httpx.get(url, headers={"Authorization": "Bearer " + "0" * 64}).status_code == 401
    assert httpx.get(url, headers=good | {"Host": "evil.example"}).status_code == 403
    assert httpx.get(url, headers=good | {"Origin": "https://evil.example"}).status_code == 403
    assert httpx.get(f"{base}/healthz").json() == {"status": "ok"}


def test_a_folder_belongs_to_one_daemon_and_is_private(standing: Peer) -> None:
    done = run_ravel(standing, "run", code=ERROR_KINDS["already_running"].exit_code)
    assert str(standing.pid) in done.stderr
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in standing.home.iterdir()}
    for name in ("keys.json", "api-token", "ravel.sqlite", "run.json"):
        assert modes[name] == 0o600, name
    assert stat.S_IMODE(standing.home.stat().st_mode) == 0o700


@pytest.mark.extended
def test_a_daemon_can_be_stopped_as_soon_as_it_is_seen_to_run(tmp_path: Path) -> None:
    alice = Peer(tmp_path / "alice")
    process = subprocess.Popen([*RAVEL, "--home", str(alice.home), "run"], stdout=subprocess.PIPE)
    try:
        until((alice.home / "run.json").exists, "it says where it answers")
        process.send_signal(signal.SIGTERM)
        assert process.wait(patience(30)) == 0
    finally:
        process.kill()
        process.communicate()


def test_a_daemon_stops_cleanly_and_quickly(tmp_path: Path) -> None:
    with peers(tmp_path, "alice") as (alice,):
        assert alice.stop(signal.SIGTERM) == 0
        assert not (alice.home / "run.json").exists()
        with pytest.raises(ServiceError) as caught:
            alice.client.show_status()
        assert caught.value.code == "not_running"


def test_a_bad_link_is_refused_with_advice(tmp_path: Path) -> None:
    with peers(tmp_path, "alice", "bob") as (alice, bob):
        repo = alice.client.create_repo("shared")["repo"]
        link = alice.client.create_invitation(repo, permission="write", expires_seconds=3600)["invitation"]
        typo = link[:-10] + ("a" if link[-10] != "a" else "b") + link[-9:]
        for bad in (typo, link[:-1], "hello", "ravel:repo:abc"):
            run_ravel(bob, "repo", "join", bad, code=ERROR_KINDS["bad_link"].exit_code)
        assert bob.client.list_repos()["repos"] == []
        run_ravel(bob, "repo", "join", "-", stdin=f"{link}\n")
        assert bob.client.list_repos()["repos"][0]["repo"] == repo


@pytest.mark.extended
def test_a_repo_is_followed_by_its_read_capability(tmp_path: Path) -> None:
    with peers(tmp_path, "alice", "bob") as (alice, bob):
        repo = alice.client.create_repo("shared")["repo"]
        alice.client.write_post("main", "hello")
        link = run_ravel(alice, "repo", "capability", "--local", "shared").stdout.strip()
        run_ravel(bob, "repo", "join", link, code=ERROR_KINDS["bad_link"].exit_code)
        shown = json.loads(run_ravel(bob, "repo", "follow", "-", "--json", stdin=f"{link}\n").stdout)
        assert (shown["repo"], shown["name"], shown["permission"]) == (repo, "shared", "read")
        until(lambda: digest(bob, "main")["digest"] == digest(alice, "main")["digest"], "bob reads it")
        done = run_ravel(bob, "write", "main", "mine", code=ERROR_KINDS["not_permitted"].exit_code)
        assert "you are no member there" in done.stderr
        members = alice.client.list_members("shared")["members"]
        assert [member["permission"] for member in members] == ["owner"]
        for peer in (alice, bob):
            assert "ravel:read" not in (peer.home / "daemon.log").read_text()


def test_a_daemon_that_cannot_start_says_why_in_a_line(tmp_path: Path) -> None:
    with peers(tmp_path, "alice") as (alice,):
        free = 'listen = "127.0.0.1:0"'
        taken = alice.client.url.removeprefix("http://")
        bob = Peer(tmp_path / "bob")
        config = bob.home / "config.toml"
        good = config.read_text()
        token = bob.home / "api-token"
        for text, mode, code in (
            (f'listen = "{taken}"'.join(good.rsplit(free, 1)), 0o600, "bad_config"),  # the API
            (good.replace(free, f'listen = "{alice.listen}"', 1), 0o600, "bad_config"),
            (good, 0o644, "bad_config"),
        ):
            config.write_text(text)
            token.chmod(mode)
            done = run_ravel(bob, "run", code=ERROR_KINDS[code].exit_code)
            assert "Traceback" not in done.stderr
            assert "next:" in done.stderr
            assert not (bob.home / "run.json").exists()


def test_arguments_and_terminals_of_other_encodings_are_clear_errors_or_shown_escaped(standing: Peer) -> None:
    standing.client.create_repo("é")
    ascii_only = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    assert "\\xe9" in run_ravel(standing, "repo", "list", environment=ascii_only, forks=False).stdout
    done = run_ravel(
        standing, "repo", "create", b"\xff", code=ERROR_KINDS["bad_request"].exit_code, forks=False
    )
    assert "UTF-8" in done.stderr


def test_no_secret_is_logged(tmp_path: Path) -> None:
    with peers(tmp_path, "alice", "bob") as (alice, bob):
        _, branch = join(alice, bob)
        until_equal(alice, bob, branch)
        for peer in (alice, bob):
            log = (peer.home / "daemon.log").read_text()
            keys = open_keys(peer.home, no_passphrase)
            for secret in (
                keys.node_seed.hex(),
                keys.user_seed.hex(),
                keys.store_key.hex(),
                read_token(peer.home),
            ):
                assert secret not in log
            assert "ravel:invite" not in log


@pytest.mark.extended
def test_repo_sync_returns_when_all_is_here_and_says_what_is_missing_else(tmp_path: Path) -> None:
    with peers(tmp_path, "alice", "bob") as (alice, bob):
        alice.client.create_repo("notes")
        for number in range(5):
            alice.client.write_post("main", f"post {number}")
        assert (
            " repo invite notes`"
            in run_ravel(alice, "repo", "sync", "notes", "--timeout", "0", code=24).stderr
        )
        bob.client.join_repo(
            alice.client.create_invitation("notes", permission="write", expires_seconds=3600, uses=1)[
                "invitation"
            ]
        )
        assert (
            json.loads(run_ravel(bob, "repo", "sync", "notes", "--json").stdout)["commits"]
            == bob.client.list_repos()["repos"][0]["commits"]
        )
        assert _texts(bob) == _texts(alice)


@pytest.mark.extended
def test_a_banned_peer_is_neither_served_nor_dialed_until_it_is_unbanned(tmp_path: Path) -> None:
    with peers(tmp_path, "alice", "bob") as (alice, bob):
        alice.client.create_repo("notes")
        bob.client.join_repo(
            alice.client.create_invitation("notes", permission="write", expires_seconds=3600, uses=1)[
                "invitation"
            ]
        )
        until(lambda: _speaks(alice), "they are connected")
        bob_id = str(bob.client.show_status()["node"])
        run_ravel(alice, "peer", "ban", bob_id[:8])
        until(lambda: not _speaks(alice), "bob is gone")
        assert f"banned  {bob_id}" in run_ravel(alice, "peer", "list").stdout
        alice.stop()
        alice.start()
        bob.client.write_post("main", "nobody hears this")
        log = alice.home / "daemon.log"
        until(lambda: "banned" in log.read_text(), "bob is turned away")
        assert not _speaks(alice)
        assert "peer unban" in run_ravel(alice, "peer", "add", bob.listen, bob_id, code=7).stderr
        run_ravel(alice, "peer", "unban", bob_id[:8])
        until(lambda: _speaks(alice), "bob is let in again")
        until(lambda: _texts(alice) == _texts(bob), "and heard")


def _speaks(peer: Peer) -> bool:
    return any(one["state"] == "connected" for one in peer.client.list_peers()["peers"])


def _texts(peer: Peer) -> list[str | None]:
    return [item["text"] for item in peer.client.show_timeline("main", after_position=-1, limit=100)["items"]]
