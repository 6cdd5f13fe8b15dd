"""What was just written goes to connected peers without being read again, and is what would be read."""

from collections.abc import Sequence
from pathlib import Path

import pytest
import trio
from sqlalchemy import Connection
from trio.testing import MockClock

from node.sync import recent_publications as recent_module
from node.sync import session_queries
from node.sync.recent_publications import RecentPublications
from protocol.ids import TopicKey
from protocol.limits.peers import BATCH_SIZE_TARGET
from storage.repos.epochs import Topic
from storage.topics.publishing import MadeSignatures, load_publications
from tests.support.builders import writing_topic
from tests.support.machine import fail_after
from tests.support.nodes import connected, ids, open_nodes, share, until_equal

_TOPIC = TopicKey(b"t" * 32)


def test_only_the_latest_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent_module, "_SIZE_MAX", 10)
    recent = RecentPublications()
    recent.note(_TOPIC, [(2, b"bbbb"), (1, b"aaaa")])
    assert recent.find(_TOPIC, (1, 2), 100) == [b"aaaa", b"bbbb"]
    recent.note(_TOPIC, [(3, b"cccc")])
    assert recent.find(_TOPIC, (1,), 100) is None
    assert recent.find(_TOPIC, (2, 3), 100) == [b"bbbb", b"cccc"]
    recent.note(_TOPIC, [(4, b"d" * 11)])
    assert recent.find(_TOPIC, (4,), 100) is None, "one that is too large is not kept"
    recent.note(_TOPIC, [(7, b"gggg"), (6, b"ffff"), (5, b"eeee")])
    assert recent.find(_TOPIC, (5,), 100) is None
    assert recent.find(_TOPIC, (6, 7), 100) == [b"ffff", b"gggg"]


def test_one_that_is_noted_again_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent_module, "_SIZE_MAX", 10)
    recent = RecentPublications()
    for _ in range(5):
        recent.note(_TOPIC, [(2, b"bbbb"), (1, b"aaaa")])
    assert recent.find(_TOPIC, (1, 2), 100) == [b"aaaa", b"bbbb"]
    recent.note(_TOPIC, [(1, b"aaaa"), (3, b"cc")])
    assert recent.find(_TOPIC, (2, 3, 1), 100) == [b"bbbb", b"cc", b"aaaa"]
    recent.note(_TOPIC, [(4, b"dd")])
    assert recent.find(_TOPIC, (2,), 100) is None, "it was noted the longest ago"
    assert recent.find(_TOPIC, (1, 3, 4), 100) == [b"aaaa", b"cc", b"dd"]


def test_as_many_are_given_as_a_batch_holds() -> None:
    recent = RecentPublications()
    recent.note(_TOPIC, [(3, b"cccc"), (2, b"bbbb"), (1, b"aaaa")])
    assert recent.find(_TOPIC, (1, 2, 3), 8) == [b"aaaa", b"bbbb"]
    assert recent.find(_TOPIC, (1, 2, 3), 0) == [b"aaaa"]
    assert recent.find(_TOPIC, (1, 2, 9), 8) == [b"aaaa", b"bbbb"]
    assert recent.find(_TOPIC, (1, 2, 9), 9) is None
    assert recent.find(TopicKey(b"o" * 32), (1,), 8) is None


@pytest.mark.slow
async def test_what_was_written_is_sent_as_it_would_be_read_and_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    with fail_after(60), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await share(alice, bob)
        branch = alice.branch()
        topic = writing_topic(alice.replica, branch)
        async with connected(bob, alice):
            await trio.sleep(10)

            def read_others(
                connection: Connection,
                other: Topic,
                nums: Sequence[int],
                size: int,
                signatures: MadeSignatures,
            ) -> list[bytes]:
                assert other.topic != topic.topic, "it was just written"
                return load_publications(connection, other, nums, size, signatures)

            monkeypatch.setattr(session_queries, "load_publications", read_others)
            nums = []
            for number in range(5):
                nums += alice.write(branch, str(number)).accepted[topic.topic]
                await until_equal(alice, bob)
            assert ids(alice) == ids(bob)
            with alice.replica.database.read() as connection:
                read = load_publications(connection, topic, nums, BATCH_SIZE_TARGET)
            assert alice.hub.recent.find(topic.topic, nums, BATCH_SIZE_TARGET) == read


async def test_without_peers_nothing_is_kept(tmp_path: Path) -> None:
    with fail_after(60), open_nodes(tmp_path, "alice") as (alice,):
        _, branch = alice.create_repo()
        topic = writing_topic(alice.replica, branch).topic
        nums = alice.write(branch, "alone").accepted[topic]
        assert alice.hub.recent.find(topic, nums, BATCH_SIZE_TARGET) is None
