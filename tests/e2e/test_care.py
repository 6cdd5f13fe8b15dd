"""Care of data with real processes: backups under SIGKILL and beside a daemon, and a disk that fills up."""

import base64
import json
import resource
import signal
import socket
import subprocess
import tarfile
import time
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from sqlalchemy import insert, select

from node.care.backup_folder import list_backups
from node.care.doctor import PROBLEM, examine
from node.home.identity import open_keys
from node.runtime.errors import ERROR_KINDS, ServiceError
from protocol.formats.text import id_text
from protocol.ids import AnyId
from ravel.home import read_token
from storage.commits.commits import iterate_arrivals
from storage.engine.database import Database, read_store
from storage.repos.epochs import load_epochs
from storage.repos.repos import load_branches, load_repos
from storage.schema.schema import files, spared_files
from tests.e2e.cluster import Peer, digest, join, peers, run_ravel, until, until_equal
from tests.support.keys import no_passphrase
from tests.support.machine import measure_slowness, patience
from tests.support.processes import RAVEL

pytestmark = pytest.mark.slow


def _fill(peer: Peer) -> str:
    """A branch with posts and a file that is large enough for a pack; gives its id."""
    repo = str(peer.client.create_repo("notes")["repo"])
    branch = str(peer.client.list_branches(repo)["branches"][0]["branch"])
    for number in range(5):
        peer.client.write_post(branch, f"post {number}")
    peer.client.add_file(branch, (bytes([number]) * (1 << 20) for number in range(20)), name="large")
    return branch


@pytest.mark.extended
def test_a_backup_beside_a_daemon_becomes_the_same_node(tmp_path: Path) -> None:
    with peers(tmp_path, "alice") as (alice,):
        branch = _fill(alice)
        run_ravel(alice, "backup", str(tmp_path / "backup"))
        alice.client.write_post(branch, "one more")
        said = run_ravel(alice, "backup", "--keep", "1", str(tmp_path / "backup")).stdout
        assert "of which" in said
        assert [one.number for one in list_backups(tmp_path / "backup")] == [2]
        before = digest(alice, branch)
        alice.stop()
        alice.home.rename(tmp_path / "gone")
        run_ravel(alice, "restore", str(tmp_path / "backup"))
        alice.start()
        assert digest(alice, branch) == before
        with alice.client.get_file(branch, "large") as download:
            assert sum(map(len, download.pieces)) == 20 << 20


@pytest.mark.extended
def test_backups_that_are_killed_harm_none_before_them(tmp_path: Path) -> None:
    with peers(tmp_path, "alice") as (alice,):
        branch = _fill(alice)
        folder = tmp_path / "backups"
        run_ravel(alice, "backup", str(folder))
        digests = {"1": digest(alice, branch)}
        for round_number in range(5):
            alice.client.write_post(branch, f"round {round_number}")
            alice.client.add_file(branch, [bytes([100 + round_number]) * (1 << 20)], name=f"{round_number}")
            before = digest(alice, branch)
            process = subprocess.Popen([*RAVEL, "--home", str(alice.home), "backup", str(folder)])
            deadline = time.monotonic() + 10
            # As soon as a part is there, each time another; the rest takes some hundredths.
            part = (
                folder / ".part" / ("", "pages", "database.map", "keys.json", "manifest.json")[round_number]
            )
            number = max(one.number for one in list_backups(folder))
            while not part.exists() and time.monotonic() < deadline:
                if max(one.number for one in list_backups(folder)) > number:
                    break
            process.send_signal(signal.SIGKILL)
            process.wait()
            newest = max(one.number for one in list_backups(folder))
            if newest > number:
                digests[str(newest)] = before
        assert len(digests) < 6, "none was killed on its way"
        made = json.loads(run_ravel(alice, "backup", str(folder), "--json").stdout)
        digests[Path(made["path"]).name.partition("-")[0]] = digest(alice, branch)
        assert made["written"] < made["size"] - (20 << 20), "the first file is there already"
        assert not (folder / ".part").exists()
        assert run_ravel(alice, "backup", "--check", str(folder)).stdout.endswith("all is as it must be\n")
        alice.stop()
        alice.home.rename(tmp_path / "gone")
        for backup in list_backups(folder):
            run_ravel(alice, "restore", str(backup.path))
            alice.start()
            assert digest(alice, branch) == digests[str(backup.number)]
            alice.stop()
            alice.home.rename(tmp_path / f"restored-{backup.number}")
        (path,) = (one for one in (folder / "pages").iterdir() if one.name == "1")
        path.unlink()
        named = run_ravel(alice, "backup", "--check", str(folder), code=ERROR_KINDS["damaged"].exit_code)
        assert "pages/1 is not there" in named.stdout


@pytest.mark.extended
def test_a_full_disk_is_said_and_survived(tmp_path: Path) -> None:
    with peers(tmp_path, "alice") as (alice,):
        branch = _fill(alice)
        base = alice.client.url
        largest = max(path.stat().st_size for path in alice.home.iterdir())
        written = int(digest(alice, branch)["commits"])
        soft, hard = resource.prlimit(alice.pid, resource.RLIMIT_FSIZE)
        # As a disk that has no room for a file to grow beyond this: the log of the database first of all.
        resource.prlimit(alice.pid, resource.RLIMIT_FSIZE, (largest + 50_000, hard))
        with pytest.raises(ServiceError) as caught:
            for _ in range(100):
                alice.client.write_post(branch, "x" * 5000)
                written += 1
        assert caught.value.code == "storage_failed"
        # What was begun can be written over: from now on not even that, nor the log that standard error goes to.
        resource.prlimit(alice.pid, resource.RLIMIT_FSIZE, (1, hard))
        assert httpx.get(f"{base}/readyz").status_code == 503
        assert "store:" in run_ravel(alice, "doctor", code=ERROR_KINDS["unhealthy"].exit_code).stdout
        assert digest(alice, branch)["commits"] == written, (
            "reading goes on, and what was acknowledged is there"
        )
        with pytest.raises(ServiceError):
            alice.client.add_file(branch, (bytes(1 << 20) for _ in range(64)), name="huge")
        resource.prlimit(alice.pid, resource.RLIMIT_FSIZE, (soft, hard))
        assert httpx.get(f"{base}/readyz").status_code == 200, "it has tried again"
        alice.client.write_post(branch, "there is room")
        alice.kill()
        alice.start()
        assert digest(alice, branch)["commits"] == written + 1
        assert run_ravel(alice, "fsck").stdout.endswith("all is as it must be\n")


_READ_ONLY = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
"""For `unshare --mount sh -c`: the folder, and the command that sees it read-only."""


@pytest.mark.extended
def test_a_read_only_folder_is_said_and_left_alone(tmp_path: Path) -> None:
    with peers(tmp_path, "alice") as (alice,):
        branch = _fill(alice)
        before = digest(alice, branch)
        alice.stop()
        alone = ["unshare", "--mount", "sh", "-c", _READ_ONLY, str(alice.home)]
        if subprocess.run([*alone, "true"], check=False, capture_output=True).returncode:
            pytest.skip("mounts are not allowed here")
        for command in ("run", "gc"):
            done = subprocess.run(
                [*alone, *RAVEL, "--home", str(alice.home), command],
                capture_output=True,
                text=True,
                check=False,
                timeout=patience(60),
            )
            assert done.returncode not in (0, 1), done.stderr
            assert "Traceback" not in done.stderr
            assert "read-only" in done.stderr.lower()
            assert "next:" in done.stderr
        alice.start()
        assert digest(alice, branch) == before


@pytest.mark.extended
def test_checks_go_beside_a_daemon_and_collecting_does_not(tmp_path: Path) -> None:
    with peers(tmp_path, "alice", "bob") as (alice, bob):
        _, branch = join(alice, bob)
        until_equal(alice, bob, branch)
        alice.client.add_file(branch, (bytes([number]) * (1 << 20) for number in range(3)), name="large")
        report = json.loads(run_ravel(alice, "fsck", "--json").stdout)
        assert (report["problems"], report["checked"]["files"]) == (0, 1)
        assert [check for check in examine(alice.home) if check.state == PROBLEM] == []
        planned = json.loads(run_ravel(alice, "gc", "--dry-run", "--json").stdout)
        assert (planned["packs"], planned["shrunk_size"]) == (0, 0)
        assert "too little" in planned["not_shrunk_because"]
        refused = run_ravel(alice, "gc", code=ERROR_KINDS["already_running"].exit_code)
        assert f"process {alice.pid}" in refused.stderr
        alice.stop()
        run_ravel(alice, "gc")
        (pack,) = (alice.home / "packs").iterdir()
        content = bytearray(pack.read_bytes())
        content[-1] ^= 1
        pack.write_bytes(content)
        report = json.loads(run_ravel(alice, "fsck", "--json", code=ERROR_KINDS["damaged"].exit_code).stdout)
        assert report["kinds"] == {"block": 1}
        alice.start()
        alice.stop()
        until(
            lambda: "no answer" in run_ravel(bob, "doctor").stdout, "bob is told that alice does not answer"
        )


@pytest.mark.extended
def test_what_was_given_up_is_freed_beside_the_daemon_and_by_a_start_after_a_kill(tmp_path: Path) -> None:
    with peers(tmp_path, "alice") as (alice,):
        _fill(alice)
        alice.stop()
        database = Database(alice.home)
        with database.write() as connection:
            given_up = select(files.c.num, files.c.branch_num)
            connection.execute(insert(spared_files).from_select(["file_num", "branch_num"], given_up))
        database.close()
        alice.start()
        packs = alice.home / "packs"
        until(lambda: bool(list(packs.glob("*.spare"))), "no row names the pack any more")
        alice.kill()
        alice.start()
        assert list(packs.iterdir()) == []
        run_ravel(alice, "fsck")


def test_a_daemon_stops_in_seconds_whoever_holds_on_to_it(tmp_path: Path) -> None:
    with peers(tmp_path, "alice") as (alice,):
        branch = _fill(alice)
        host, port = alice.client.url.removeprefix("http://").split(":")
        token = (alice.home / "api-token").read_text().strip()
        upload = f"POST /api/v1/branches/{branch}/files?name=x HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        upload += f"Authorization: Bearer {token}\r\nContent-Length: 1000000\r\n\r\nbegun"
        with socket.create_connection((host, int(port))) as slow, socket.create_connection((host, int(port))):
            slow.sendall(upload.encode())
            alice.client.show_status()
            began = time.monotonic()
            assert alice.stop() == 0
            assert time.monotonic() - began < 5 * measure_slowness()


@pytest.mark.extended
def test_nothing_secret_is_logged_or_bundled(tmp_path: Path) -> None:
    with peers(tmp_path, "alice", "bob") as (alice, bob):
        for peer in (alice, bob):
            peer.stop()
            peer.start("--log-level", "debug")
        repo, branch = join(alice, bob)
        until_equal(alice, bob, branch)
        text = "a text that nobody else may read"
        alice.client.write_post(branch, text)
        until_equal(alice, bob, branch)
        until(lambda: bool(bob.client.list_repos()["repos"][0]["permission"] == "write"), "bob is a member")
        links = [
            alice.client.create_invitation(repo, permission="write", expires_seconds=3600)["invitation"],
            alice.client.share_repo(repo)["capability"],
            alice.client.share_branch(branch)["capability"],
        ]
        for link in links:
            for call in (bob.client.join_repo, bob.client.follow_repo):
                with suppress(ServiceError):  # of another kind, known already, or mistyped
                    call(link)
                with suppress(ServiceError):
                    call(link[:-3] + "aaa")
        petnames = ["Bob from the office", "a laptop on a desk"]
        alice.client.set_petname(bob.client.show_status()["user"], petnames[0])
        alice.client.set_petname(bob.client.show_status()["node"], petnames[1], peer=True)
        alice.client.remove_member(repo, petnames[0])
        alice.client.start_epoch(repo)
        with suppress(ServiceError):
            bob.client.write_post(branch, text)
        for path in ("/status", "/branches/x/commits"):
            httpx.get(f"{alice.client.url}/api/v1{path}", headers={"Authorization": "Bearer wrong"})
            httpx.post(f"{alice.client.url}/api/v1{path}", headers={"Authorization": "Bearer wrong"})
        for peer in (alice, bob):
            run_ravel(peer, "debug", "bundle", str(tmp_path / f"{peer.home.name}.tar.gz"))
            peer.stop()
        shown = b"".join((peer.home / "daemon.log").read_bytes() for peer in (alice, bob))
        for peer in (alice, bob):
            with tarfile.open(tmp_path / f"{peer.home.name}.tar.gz") as archive:
                files = [archive.extractfile(name) for name in archive.getnames()]
                shown += b"".join(file.read() for file in files if file is not None)
        assert b"joined" in shown
        assert b"ravel_info" in shown
        secrets = [*links, text, *petnames, *(_secrets_of(alice)), *(_secrets_of(bob))]
        assert len(secrets) > 30
        assert [secret for secret in secrets if secret.encode() in shown] == []


def _secrets_of(peer: Peer) -> list[str]:
    """What must stay in the folder, in every form in which it could be written."""
    keys = open_keys(peer.home, no_passphrase)
    raw = [keys.node_seed, keys.user_seed, keys.store_key, bytes.fromhex(read_token(peer.home))]
    with read_store(peer.home, keys.store_key) as connection:
        for epoch in load_epochs(connection):
            raw += [epoch.key, *epoch.keys[:3], epoch.writers_secret or epoch.key]
        repos = load_repos(connection)
        raw += [repo.init_key for repo in repos]
        nums = [branch.num for branch in load_branches(connection, {one.num: one for one in repos})]
        raw += [row.commit_key for row in iterate_arrivals(connection, nums)]
    forms: list[str] = []
    for secret in raw:
        forms += [
            secret.hex(),
            id_text(AnyId(secret)),
            base64.b64encode(secret).decode().rstrip("="),
            repr(secret)[2:-1],
        ]
    return forms
