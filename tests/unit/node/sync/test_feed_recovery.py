"""After a loss, a peer settles own feeds where it follows both topics on which the repo is written."""

from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from node.sync.feed_recovery import FeedRecovery
from protocol.ids import TopicKey
from storage.engine.losses import Loss, write_loss
from tests.support.machine import fail_after
from tests.support.nodes import open_nodes
from tests.support.sources import Source


class _Follower(Source):
    """A peer that follows some topics, and has nothing of them that is not here."""

    def __init__(self, *topics: TopicKey | None) -> None:
        self._topics = topics

    def has_joined(self, topic: TopicKey) -> bool:
        return topic in self._topics


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
            nursery.start_soon(FeedRecovery(alice.hub).recover)
            await trio.sleep(60)
            assert alice.replica.own_feeds.uncertain == {alice.repo().repo_id}
            alice.hub.sources[:] = [_Follower(*both)]
            await trio.sleep(60)
            assert not alice.replica.own_feeds.uncertain
