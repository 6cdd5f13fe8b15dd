"""Relays keep commits whose bodies were erased, and ask members for the bodies: nobody can keep these away from others."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import trio
from sqlalchemy import func, select
from trio.testing import MockClock

from node.care.fsck import check_store
from node.sync.body_fetching import BodyFetcher
from node.sync.connection import Connection
from node.timelines.views import timeline_items
from protocol.crypto.keys import ConvergenceSecret
from protocol.crypto.signing import topic_key_pair
from protocol.formats.block import encrypt_block
from protocol.formats.publication import create_publication, decode_publication, encode_bare, sign_publication
from protocol.ids import BlockId, ItemId, ObjectId, TopicKey
from protocol.limits.peers import BODIES_LOOK_SECONDS, BODIES_PASS_SECONDS, WANT_COUNT_MAX
from storage.commits.commits import load_timeline
from storage.relay.quotas import Visitor
from storage.relay.relay import KeptTopic, load_kept_topics, store_publications
from storage.schema.relay_schema import relay_bare
from storage.topics.difference import summarise
from tests.support.builders import STORE_KEY, give, publications_of, writing_topic
from tests.support.forging import bare_of
from tests.support.machine import fail_after
from tests.support.nodes import Node, connected, ids, open_nodes, share
from tests.support.relays import PLENTY, is_settled, open_relay, until, visit
from tests.support.sources import Source

pytestmark = pytest.mark.slow


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[list[Node]]:
    with open_nodes(tmp_path, "alice", "bob", "carol") as opened:
        yield opened


@pytest.fixture
def relay(tmp_path: Path) -> Iterator[Node]:
    with open_relay(tmp_path / "r") as opened:
        yield opened


@asynccontextmanager
async def _fetching(*nodes: Node) -> AsyncIterator[None]:
    async with trio.open_nursery() as nursery:
        for node in nodes:
            nursery.start_soon(BodyFetcher(node.hub).run)
        yield
        nursery.cancel_scope.cancel()


def _texts(node: Node) -> list[object]:
    with node.replica.database.read() as connection:
        rows = load_timeline(connection, node.branch().num, 1, 1000)
        return [item["text"] for item in timeline_items(connection, node.replica, rows, 1)]


def _publications(node: Node) -> list[bytes]:
    """Of all posts."""
    return publications_of(node.replica, node.branch())[1:]


def _topic(node: Node) -> TopicKey:
    """The topic of the posts."""
    return writing_topic(node.replica, node.branch()).topic


async def _strip(alice: Node, bob: Node, count: int = 3) -> None:
    """Alice has written posts of which bob has the commits alone."""
    await share(alice, bob)
    for number in range(count):
        alice.write(alice.branch(), f"post {number}")
    give(bob.replica, [bare_of(item) for item in _publications(alice)])
    assert _texts(bob) == [None] * count


def _kept(relay: Node, topic: bytes) -> KeptTopic:
    with relay.replica.database.read() as connection:
        return next(one for one in load_kept_topics(connection).values() if one.topic == topic)


def _lacking(relay: Node, topic: bytes) -> int:
    with relay.replica.database.read() as connection:
        here = relay_bare.c.topic_num == _kept(relay, topic).num
        return int(connection.execute(select(func.count()).where(here)).scalar_one())


async def test_bodies_come_to_a_relay_from_who_has_them_and_from_there_to_who_lacks_them(
    nodes: list[Node], relay: Node, tmp_path: Path, autojump_clock: MockClock
) -> None:
    alice, bob, carol = nodes
    await _strip(alice, bob)
    link = alice.invite(alice.repo())
    topic = _topic(alice)
    with fail_after(300):
        async with _fetching(alice, bob, carol, relay):
            await visit(bob, relay)
            assert _lacking(relay, topic) == 3
            count = _kept(relay, topic).commit_count
            await visit(alice, relay)
            invited = count + 1  # which bob has not heard of
            assert (_lacking(relay, topic), _kept(relay, topic).commit_count) == (0, invited)
            await visit(bob, relay)
            await carol.joiner.begin(link)
            await visit(carol, relay)
        assert _texts(bob) == _texts(carol) == ["post 0", "post 1", "post 2"]
        assert ids(alice) == ids(bob) == ids(carol)
    relay.replica.close()
    assert check_store(tmp_path / "r" / "relay", STORE_KEY).problems == []
    relay.open()


async def test_who_holds_bodies_and_who_does_not_compare_level_and_send_nothing(
    nodes: list[Node], relay: Node, autojump_clock: MockClock
) -> None:
    alice, bob, _ = nodes
    await _strip(alice, bob)
    topic = _topic(alice)
    with fail_after(300):
        for first, second in ((bob, alice), (alice, bob)):
            for member in (first, second):
                await visit(member, relay)
            async with connected(second, relay) as (connection, _):
                await trio.sleep(1)
                await until(lambda second=second: is_settled(second))  # type: ignore[misc]  # bound now: the loop changes it
                progress = next(one for one in connection.topics if one.topic == topic)
                assert progress.rounds.own is not None
                assert progress.rounds.peer is not None
                assert progress.rounds.own.digest == progress.rounds.peer.digest
                assert (progress.sent, progress.received) == (0, 0)


async def test_a_relay_that_is_asked_only_by_bare_ones_forgets_no_body(
    nodes: list[Node], relay: Node, autojump_clock: MockClock
) -> None:
    """Who holds the topic's key may send bare ones of all that is there: the relay keeps what it has."""
    alice, bob, carol = nodes
    await _strip(alice, bob)
    topic = _topic(alice)
    with fail_after(300):
        await visit(alice, relay)
        size = _kept(relay, topic).size
        service = relay.hub.relay
        assert service is not None
        items = [bare_of(item) for item in _publications(alice)]
        kept = _kept(relay, topic)
        with relay.replica.database.write() as connection:
            given = [(decode_publication(item), item) for item in items]
            where = (relay.replica.database, connection, kept.num)
            stored = store_publications(*where, Visitor(bob.key), given, service.quotas, 1)
        assert (stored.nums, _kept(relay, topic).size, _lacking(relay, topic)) == ((), size, 0)
        await carol.joiner.begin(alice.invite(alice.repo()))
        await visit(alice, relay)
        await visit(carol, relay)
        assert _texts(carol) == ["post 0", "post 1", "post 2"]


def _made_up(alice: Node, count: int) -> list[bytes]:
    """Bare publications of commits that are none, as any writer can sign."""
    topic, read_key = writing_topic(alice.replica, alice.branch()), alice.epoch().keys.read_key
    assert topic.seed is not None
    secret = topic_key_pair(topic.seed)[1]
    found = []
    for number in range(count):
        block, key = encrypt_block(number.to_bytes(4), ConvergenceSecret(b"c" * 32))
        hidden = create_publication(topic.seed, read_key, key, (block,)).hidden_key
        body_id = ObjectId(BlockId(number.to_bytes(32)))
        signature = sign_publication(secret, topic.topic, hidden, (block.encoded,), body_id)
        found.append(encode_bare(topic.topic, hidden, block.encoded, body_id, signature))
    return found


async def test_commits_that_are_made_up_keep_no_body_away(
    nodes: list[Node], relay: Node, autojump_clock: MockClock
) -> None:
    alice, bob, _ = nodes
    await _strip(alice, bob, 2)
    topic = _topic(alice)
    with fail_after(300):
        await visit(bob, relay)
        kept = _kept(relay, topic)
        many = [(decode_publication(item), item) for item in _made_up(alice, 2 * WANT_COUNT_MAX)]
        with relay.replica.database.write() as connection:
            where = (relay.replica.database, connection, kept.num)
            store_publications(*where, Visitor(bob.key), many, PLENTY, 1)
        assert _lacking(relay, topic) == 2 * WANT_COUNT_MAX + 2
        async with _fetching(relay), connected(alice, relay):
            await trio.sleep(10 * BODIES_LOOK_SECONDS)
        assert _lacking(relay, topic) == 2 * WANT_COUNT_MAX


async def test_of_a_member_of_an_older_version_bodies_are_asked_by_their_commits(
    nodes: list[Node], relay: Node, monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    alice, bob, _ = nodes
    await _strip(alice, bob)
    monkeypatch.setattr(Connection, "answers_bodies", False)
    topic = _topic(alice)
    with fail_after(300):
        await visit(bob, relay)
        async with _fetching(relay):
            await visit(alice, relay)
        assert _lacking(relay, topic) == 0


async def test_a_full_relay_asks_for_no_bodies_and_takes_new_commits_on(
    nodes: list[Node], relay: Node, autojump_clock: MockClock
) -> None:
    alice, bob, _ = nodes
    await _strip(alice, bob, 20)
    topic = _topic(alice)
    service = relay.hub.relay
    assert service is not None
    with fail_after(300):
        await visit(bob, relay)
        service.quotas = replace(PLENTY, topic=_kept(relay, topic).size * 8 // 7)
        async with _fetching(relay), connected(alice, relay) as (_, of_relay):
            await trio.sleep(10)
            progress = next(one for one in of_relay.topics if one.topic == topic)
            assert (progress.bodies_unanswered, progress.bodies_found) == (0, None)
            alice.write(alice.branch(), "new")
            await trio.sleep(10)
            assert is_settled(alice)
            assert not any(one.state.startswith("refused") for one in of_relay.topics)
        assert _lacking(relay, topic) == 20
        with alice.replica.database.read() as connection:
            held = summarise(connection, alice.replica.by_topic[topic].num)
        assert _kept(relay, topic).commit_count == held.count


async def test_two_relays_complete_each_other(
    nodes: list[Node], relay: Node, tmp_path: Path, autojump_clock: MockClock
) -> None:
    alice, bob, _ = nodes
    await _strip(alice, bob)
    topic = _topic(alice)
    with fail_after(300), open_relay(tmp_path / "s", name="second") as second:
        await visit(bob, relay)
        await visit(alice, second)
        for one in (relay, second):
            assert one.hub.relay is not None
            one.hub.relay.is_partner = lambda _: True
        async with _fetching(relay, second), connected(relay, second):
            await until(lambda: _lacking(relay, topic) == 0)
        assert _kept(relay, topic).size == _kept(second, topic).size


async def test_who_joins_by_a_relay_gets_bodies_that_come_there_later(
    nodes: list[Node], relay: Node, autojump_clock: MockClock
) -> None:
    alice, bob, _ = nodes
    await _strip(alice, bob)
    with fail_after(2 * BODIES_PASS_SECONDS):
        async with _fetching(bob, relay):
            await visit(bob, relay)
            async with connected(bob, relay):
                await trio.sleep(10)
                async with connected(alice, relay):
                    await until(lambda: _lacking(relay, _topic(alice)) == 0)
                await trio.sleep(BODIES_PASS_SECONDS)
                assert _texts(bob) == ["post 0", "post 1", "post 2"]


class _Leaver(Source):
    """A peer that leaves while what it is to be asked for is read. After that nothing knows what it was."""

    answers_bodies = True

    asked = False

    def want_bodies(self, _topic: TopicKey, _ids: tuple[ItemId, ...]) -> bool:
        self.asked = True
        return True


async def test_a_peer_that_leaves_while_it_is_to_be_asked_ends_nothing(
    nodes: list[Node], relay: Node, monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    alice, bob, _ = nodes
    await _strip(alice, bob)
    await visit(bob, relay)
    leaver, hub = _Leaver(), relay.hub
    hub.sources.append(leaver)
    run_blocking = hub.run_blocking

    async def leave_before_reading(work: Callable[..., object], *given: object) -> object:
        if work.__name__ == "_load" and leaver in hub.sources:
            hub.sources.remove(leaver)
        return await run_blocking(work, *given)

    monkeypatch.setattr(hub, "run_blocking", leave_before_reading)
    async with _fetching(relay):
        await trio.sleep(2 * BODIES_LOOK_SECONDS)
    assert leaver not in hub.sources
    assert not leaver.asked
