"""A daemon whose store is in a real PostgreSQL: beside one with a file, while its server is away, and its care of data."""

import json
import tarfile
from pathlib import Path

import pytest

from node.runtime.errors import ERROR_KINDS, ServiceError
from tests.e2e.cluster import Peer, digest, join, run_ravel, until, until_equal
from tests.support.postgresql import PostgresqlServer

pytestmark = [pytest.mark.slow, pytest.mark.postgresql]

PASSWORD = "a-word-nobody-may-see"


def _url(server: PostgresqlServer) -> str:
    return server.make_database().replace("ravel@", f"ravel:{PASSWORD}@")


def _add_large(peer: Peer, branch: str) -> None:
    peer.client.add_file(branch, (bytes([number]) * (1 << 20) for number in range(3)), name="large")


def test_a_store_in_postgresql_and_one_in_a_file_show_the_same(
    tmp_path: Path, postgresql_server: PostgresqlServer
) -> None:
    alice, bob = Peer(tmp_path / "alice", storage_url=_url(postgresql_server)), Peer(tmp_path / "bob")
    try:
        for peer in (alice, bob):
            peer.start()
        _, branch = join(alice, bob)
        for number in range(20):
            alice.client.write_post(branch, f"post {number}")
        _add_large(alice, branch)
        until_equal(alice, bob, branch)
        bob.client.write_post(branch, "from a file")
        assert until_equal(alice, bob, branch)["commits"] == 23
        assert not (alice.home / "ravel.sqlite").exists()
        postgresql_server.stop()
        try:
            with pytest.raises(ServiceError) as caught:
                alice.client.write_post(branch, "while the server is away")
            assert caught.value.code == "storage_failed"
            bob.client.write_post(branch, "meanwhile")
        finally:
            postgresql_server.start()
        alice.client.write_post(branch, "the server is back")
        until(
            lambda: digest(alice, branch)["commits"] == digest(bob, branch)["commits"] == 25, "both have all"
        )
        until_equal(alice, bob, branch)
        assert alice.stop() == 0
        assert PASSWORD not in (alice.home / "daemon.log").read_text()
    finally:
        alice.close()
        bob.close()


def test_a_store_in_postgresql_is_cared_for_and_moves(
    tmp_path: Path, postgresql_server: PostgresqlServer
) -> None:
    alice = Peer(tmp_path / "alice", storage_url=_url(postgresql_server))
    backup = str(tmp_path / "backup")
    try:
        alice.start("--set", "export.bodies=true")
        repo = str(alice.client.create_repo("notes")["repo"])
        branch = str(alice.client.list_branches(repo)["branches"][0]["branch"])
        _add_large(alice, branch)
        before = digest(alice, branch)
        run_ravel(alice, "backup", backup)  # beside the daemon
        for one in ("doctor", "config show"):
            assert PASSWORD not in run_ravel(alice, *one.split()).stdout
        run_ravel(alice, "debug", "bundle", str(tmp_path / "bundle"))
        with tarfile.open(tmp_path / "bundle") as bundle:
            texts = [bundle.extractfile(member).read().decode() for member in bundle]  # type: ignore[union-attr]  # files
        assert not [text for text in texts if PASSWORD in text]
        assert any('"database": "postgresql' in text for text in texts)
        exported = alice.client.export_store()  # by a process of its own, which opens bodies
        assert exported["added"] == exported["commits"] > before["commits"]
        assert list((alice.home / "exports" / "bodies").iterdir())
        assert "ravel_store_bytes" in alice.client.page("/metrics")
        alice.stop()
        assert json.loads(run_ravel(alice, "gc", "--json").stdout)["blocks"] == 0
        alice.home.rename(tmp_path / "gone")
        taken = run_ravel(alice, "restore", backup, code=ERROR_KINDS["storage_failed"].exit_code)
        assert "has a store already" in taken.stderr
        assert PASSWORD not in taken.stderr
        assert not alice.home.exists()
        for url in (_url(postgresql_server), ""):  # to another database, and to a file
            run_ravel(alice, "restore", backup, "--storage-url", url)
            alice.keep_rows_in(url)
            assert json.loads(run_ravel(alice, "fsck", "--json").stdout)["problems"] == 0
            alice.start()
            assert digest(alice, branch) == before
            with alice.client.get_file(branch, "large") as download:
                assert sum(map(len, download.pieces)) == 3 << 20
            alice.stop()
            alice.home.rename(tmp_path / f"restored-{url != ''}")
    finally:
        alice.close()


def test_two_daemons_do_not_share_a_database(tmp_path: Path, postgresql_server: PostgresqlServer) -> None:
    url = _url(postgresql_server)
    first, second = Peer(tmp_path / "first"), Peer(tmp_path / "second")
    try:
        first.start("--storage-url", url)
        refused = run_ravel(second, "run", "--storage-url", url, code=ERROR_KINDS["storage_failed"].exit_code)
        assert "another Ravel uses it" in refused.stderr
        first.kill()
        first.start("--storage-url", url)
        first.stop()
        refused = run_ravel(second, "run", "--storage-url", url, code=ERROR_KINDS["storage_failed"].exit_code)
        assert "another folder" in refused.stderr
        wrong = run_ravel(
            second, "run", "--storage-url", "mysql://x/y", code=ERROR_KINDS["bad_config"].exit_code
        )
        assert "begins with postgresql://" in wrong.stderr
    finally:
        first.close()
        second.close()
