"""After a loss, a peer settles own feeds where it follows both topics on which the repo is written."""

from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from node.sync import feed_recovery
from node.sync.feed_recovery import FeedRecovery
from protocol.ids import TopicKey
from protocol.limits.peers import DAMAGED_PAUSE_SECONDS
from storage.engine.losses import Loss, read_loss, write_loss
from storage.repos.deletion import forget_repo
from tests.support.machine import fail_after
from tests.support.nodes import Node, open_nodes
from tests.support.sources import Source


class _Follower(Source):
    """A peer that follows some topics, and has nothing of them that is not here."""

    def __init__(self, *topics: TopicKey | None) -> None:
        self._topics = topics

    def has_joined(self, topic: TopicKey) -> bool:
        return topic in self._topics


class _Ahead(_Follower):
    """A peer that follows them, and says to hold more."""

    def is_level(self, topic: TopicKey) -> bool:
        return False


@pytest.mark.parametrize("is_own", [True, False])
async def test_one_that_follows_one_topic_alone_settles_nothing(
    tmp_path: Path, autojump_clock: MockClock, is_own: bool
) -> None:
    with fail_after(300), open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        write_loss(tmp_path / "alice", Loss(9, 3))
        alice.replica.own_feeds.load([alice.repo().repo_id])
        both = alice.epoch().topic, alice.epoch().writers_topic
        alice.hub.sources.append(_Follower(both[0] if is_own else both[1]))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(FeedRecovery(alice.hub).settle_all)
            await trio.sleep(60)
            assert alice.replica.own_feeds.uncertain == {alice.repo().repo_id}
            alice.hub.sources[:] = [_Follower(*both)]
            await trio.sleep(60)
            assert not alice.replica.own_feeds.uncertain


async def test_what_another_peer_still_brings_is_awaited_and_not_for_ever(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """Own commits may be among it; but who says to hold more than ever comes keeps nobody from writing."""
    with fail_after(300), open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        topics = alice.epoch().topic, alice.epoch().writers_topic
        for gets_level in (True, False):
            write_loss(tmp_path / "alice", Loss(9, 3))
            alice.replica.own_feeds.load([alice.repo().repo_id])
            alice.hub.sources[:] = [_Follower(*topics), _Ahead(*topics)]
            async with trio.open_nursery() as nursery:
                nursery.start_soon(FeedRecovery(alice.hub).settle_all)
                await trio.sleep(60)
                assert alice.replica.own_feeds.uncertain
                if gets_level:
                    alice.hub.sources[1:] = [_Follower(*topics)]
                    await trio.sleep(2 * DAMAGED_PAUSE_SECONDS)
                    assert not alice.replica.own_feeds.uncertain
            assert not alice.replica.own_feeds.uncertain


def _forget(node: Node) -> None:
    """As `ravel repo forget` does."""
    repo = node.repo()
    with node.replica.change() as change:
        node.replica.own_feeds.note_deletion(repo.repo_id)
        forget_repo(change.connection, repo.num)
        change.changed_repos.add(repo.repo_id)
        node.replica.forget_membership(repo.repo_id)


async def test_a_repo_that_is_deleted_while_it_is_looked_at_keeps_its_mark(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else its feed would begin anew, and fork, when it comes back."""
    with fail_after(300), open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        repo_id = alice.repo().repo_id
        write_loss(tmp_path / "alice", Loss(9, 3))
        alice.replica.own_feeds.load([repo_id])
        alice.hub.sources.append(_Follower(alice.epoch().topic, alice.epoch().writers_topic))

        def has_incomplete(*_: object) -> bool:
            _forget(alice)
            return False

        monkeypatch.setattr(feed_recovery, "has_incomplete", has_incomplete)
        await FeedRecovery(alice.hub).settle_all()
        assert not alice.replica.repos
        assert alice.replica.own_feeds.uncertain == {repo_id}
        loss = read_loss(tmp_path / "alice")
        assert loss is not None
        assert loss.deleted == [repo_id.hex()]


async def test_what_is_noted_while_it_is_looked_at_is_compared_anew(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have gone and come back meanwhile."""
    with fail_after(300), open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        own_feeds, repo_id = alice.replica.own_feeds, alice.repo().repo_id
        write_loss(tmp_path / "alice", Loss(9, 3))
        own_feeds.load([repo_id])
        alice.hub.sources.append(_Follower(alice.epoch().topic, alice.epoch().writers_topic))
        looked_at = list[float]()

        def has_incomplete(*_: object) -> bool:
            looked_at.append(trio.current_time())
            if len(looked_at) == 1:
                own_feeds.note_return(repo_id)
            return False

        monkeypatch.setattr(feed_recovery, "has_incomplete", has_incomplete)
        await FeedRecovery(alice.hub).settle_all()
        assert not own_feeds.uncertain
        first, second = looked_at
        assert second - first >= 2 * DAMAGED_PAUSE_SECONDS


async def test_each_recovery_compares_a_peer_in_two_rounds(tmp_path: Path, autojump_clock: MockClock) -> None:
    with fail_after(300), open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        repo_id = alice.repo().repo_id
        alice.hub.sources.append(_Follower(alice.epoch().topic, alice.epoch().writers_topic))
        recovery = FeedRecovery(alice.hub)
        for _ in range(2):
            write_loss(tmp_path / "alice", Loss(9, 3))
            alice.replica.own_feeds.load([repo_id])
            began = trio.current_time()
            await recovery.settle_all()
            assert trio.current_time() - began >= 2 * DAMAGED_PAUSE_SECONDS
