"""A node that may have lost its user's commits writes where it has asked a peer, and nowhere else."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from node.care.backup import create_backup, restore_backup
from node.care.doctor import PROBLEM, examine
from node.care.fsck import check_store
from node.care.repair import accept_loss
from node.home.home import create_home, lock_home
from node.runtime.errors import ServiceError
from node.sync.feed_recovery import FeedRecovery
from protocol.ids import CommitId, TopicKey
from storage.commits.feeds import load_feeds
from storage.engine.losses import Loss, read_loss, write_loss
from tests.support.builders import STORE_KEY
from tests.support.machine import fail_after
from tests.support.nodes import Node, connected, open_nodes, share, together, until_equal
from tests.support.sources import Source


def _damage_log(folder: Path, place: float) -> None:
    log = folder / "ravel.sqlite-wal"
    content = bytearray(log.read_bytes())
    content[int(place * len(content))] ^= 1
    log.write_bytes(content)


def _to_file(node: Node) -> None:
    """Move what was written until now into the database's file, out of its log."""
    with closing(sqlite3.connect(node.replica.database.path)) as other:
        assert other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0


def _forks(node: Node) -> int:
    with node.replica.database.read() as connection:
        return sum(feed.forks for feed in load_feeds(connection, node.branch().num))


def _refused(node: Node) -> bool:
    try:
        node.write(node.branch(), "written after the loss")
    except ServiceError as error:
        return error.code == "feed_uncertain"
    return False


@pytest.mark.slow
async def test_a_node_whose_log_was_damaged_asks_a_peer_before_it_writes(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with fail_after(300), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await share(alice, bob)
        _to_file(alice)
        for number in range(8):
            alice.write(alice.branch(), f"post {number}")
        await together(alice, bob)
        whole = alice.digest(alice.branch())
        crashed = tmp_path / "crashed"
        shutil.copytree(tmp_path / "alice", crashed)
        _damage_log(crashed, 0.3)
        again = Node(crashed, "alice")
        assert again.digest(again.branch())[1] < whole[1], "commits are gone that bob has"
        repo_id = again.branch().facts.repo_id
        assert again.replica.own_feeds.uncertain == {repo_id}
        assert _refused(again)
        assert check_store(crashed, STORE_KEY).kinds == {"log": 1}
        again.replica.close()
        again.open()
        assert _refused(again), "a restart does not change that"
        _, fresh = again.create_repo("another")
        again.write(fresh, "of a feed that is new")
        async with connected(again, bob):
            await FeedRecovery(again.hub).settle_all()
            assert again.digest(again.branch()) == whole
            assert not _refused(again)
            await until_equal(again, bob)
        assert _forks(bob) == _forks(again) == 0
        settled = read_loss(crashed)
        assert settled is not None
        assert not settled.is_lost
        assert check_store(crashed, STORE_KEY).kinds == {}
        again.replica.close()


async def test_a_peer_that_is_not_level_yet_settles_nothing(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    class Ahead(Source):
        """A peer that follows everything, and has more."""

        is_behind = True

        def is_level(self, topic: TopicKey) -> bool:
            return not self.is_behind

        def want(self, topic: TopicKey, ids: tuple[CommitId, ...]) -> None:
            raise AssertionError("nothing is asked for")

    with fail_after(300), open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        write_loss(tmp_path / "alice", Loss(9, 3))
        alice.replica.own_feeds.load(repo.repo_id for repo in alice.replica.repos.values())
        source = Ahead()
        alice.hub.sources.append(source)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(FeedRecovery(alice.hub).settle_all)
            await trio.sleep(60)
            assert _refused(alice)
            source.is_behind = False
            await trio.sleep(60)
            assert not _refused(alice)


def test_a_loss_is_accepted_on_request_with_the_daemon_stopped(tmp_path: Path) -> None:
    node = Node(tmp_path, "alice")
    node.create_repo()
    node.replica.close()
    write_loss(tmp_path, Loss(9, 3))
    with lock_home(tmp_path), pytest.raises(ServiceError, match="uses"):
        accept_loss(tmp_path)
    assert accept_loss(tmp_path) == Loss(9, 3)
    left = read_loss(tmp_path)
    assert left is not None
    assert not left.is_lost, "but what comes by a link is compared first"
    node.open()
    assert not _refused(node)
    node.replica.close()


def test_a_node_without_repos_has_nothing_to_be_uncertain_of(tmp_path: Path) -> None:
    write_loss(tmp_path, Loss(9, 3))
    node = Node(tmp_path, "alice")
    assert node.replica.own_feeds.uncertain == set()
    assert read_loss(tmp_path) == Loss(None, None, repos=[])
    node.replica.close()


def test_doctor_says_it_and_what_to_do(tmp_path: Path) -> None:
    home = tmp_path / "home"
    create_home(home, listen="127.0.0.1:0", api="127.0.0.1:0")
    assert [one for one in examine(home) if one.name in ("own feeds", "quarantine")] == []
    write_loss(home, Loss(9, 3))
    (check,) = [one for one in examine(home) if one.name == "own feeds"]
    assert check.state == PROBLEM
    assert "6 acknowledged writes were lost" in check.detail
    assert "--accept-loss" in check.advice


@pytest.mark.slow
async def test_a_restored_node_asks_a_peer_before_it_writes_unless_the_backup_is_the_latest(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with fail_after(300), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        create_home(tmp_path / "home")
        for name in ("config.toml", "keys.json", "api-token"):
            shutil.copy(tmp_path / "home" / name, tmp_path / "alice" / name)
        await share(alice, bob)
        create_backup(tmp_path / "alice", tmp_path / "backup", 1_700_000_000)
        alice.write(alice.branch(), "since the backup")
        await together(alice, bob)
        whole = alice.digest(alice.branch())
        for is_latest in (True, False):
            restored = tmp_path / f"restored-{is_latest}"
            restore_backup(tmp_path / "backup", restored, is_latest=is_latest)
            again = Node(restored, "alice")
            assert _refused(again) is not is_latest
            assert check_store(restored, STORE_KEY).problems == []
            if not is_latest:
                assert "from a backup of 2023-11-14 22:13 UTC" in again.replica.own_feeds.detail
                async with connected(again, bob):
                    await FeedRecovery(again.hub).settle_all()
                    assert again.digest(again.branch()) == whole
                    assert not _refused(again)
                    await until_equal(again, bob)
                assert _forks(bob) == 0
            again.replica.close()
