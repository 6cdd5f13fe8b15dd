"""What a relay's connections look at when its topics change: what has room, and what was forgotten, alone."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, cast

import pytest
import trio
from sqlalchemy import update
from trio.testing import MockClock, wait_all_tasks_blocked

from node.api.relay_admin import Relaying
from node.sync.connection import Connection
from node.sync.followed_topics import FollowedTopics
from node.sync.hub import Hub
from node.sync.relay_port import RelayPort
from node.sync.session_queries import topic_place
from protocol.formats.text import id_text
from protocol.ids import PeerId, TopicKey
from protocol.session.messages import Deposit, Refused
from protocol.session.outputs import Output
from storage.relay.quotas import Account, Visitor
from storage.relay.relay import KeptTopic
from storage.schema.relay_schema import relay_topics
from storage.topics.difference import TopicTables
from tests.support.relays import PLENTY, open_relay
from tests.support.strangers import met
from tests.support.turns import Steps


class CountedTopic(bytes):
    """A topic's key that counts how often it is looked up."""

    lookups = 0

    def __hash__(self) -> int:
        CountedTopic.lookups += 1
        return super().__hash__()


class Topics(dict[TopicKey, KeptTopic]):
    """Kept topics that count how many of them are looked at."""

    looked_at = 0

    def values(self) -> Any:  # noqa: ANN401  # as of a dict
        for one in super().values():
            self.looked_at += 1
            yield one


class Owner:
    """A connection with its followed topics, as far as a relay's port needs them."""

    has_ended = False
    was_kept_again = False
    nursery: trio.Nursery | None = None

    def __init__(self) -> None:
        self.peer = PeerId(b"p" * 32)
        self.places: dict[TopicKey, tuple[TopicTables, int]] = {}
        self.waiting: list[TopicKey] = []
        self.slices: list[int] = []
        self.refused: list[TopicKey] = []
        self.reason = ""

    def topics_changed(self) -> None:
        pass  # nothing is announced

    def start(self, work: Callable[..., Awaitable[None]], *args: object) -> None:
        assert self.nursery is not None
        self.nursery.start_soon(work, *args)

    def entrust(self, kept: Sequence[KeptTopic], *, are_new: bool) -> None:
        self.waiting += [one.topic for one in kept]
        self.slices.append(len(kept))

    def forget_kept(self, forgotten: object) -> None:
        pass  # nothing waits

    def are_refused(self, kept: Sequence[KeptTopic]) -> bool:
        return bool(kept) and bool(self.refused)

    def note_kept_again(self) -> None:
        self.was_kept_again = True

    def announce(self) -> list[Output]:
        return []

    def follow_kept(self, kept: Sequence[KeptTopic]) -> None:
        self.places.update((one.topic, topic_place(one)) for one in kept)

    def answer_deposit(self, kept: Sequence[KeptTopic], *_: object) -> list[Output]:
        self.follow_kept(kept)
        return []

    def refuse_forgotten(self, topic: TopicKey) -> list[Output]:
        self.refused.append(topic)
        return []

    def perform(self, outputs: Sequence[Output]) -> None:
        assert outputs == []

    def part(self, reason: str) -> None:
        self.reason = reason


def _port(hub: Hub, owner: Owner) -> RelayPort:
    port = RelayPort(cast(Any, owner), cast(Any, owner), hub, owner.note_kept_again)
    hub._when_kept_changed.append(port.kept_changed)
    return port


def _topics(count: int) -> Iterator[KeptTopic]:
    for number in range(count):
        topic = TopicKey(number.to_bytes(32, "big"))
        yield KeptTopic(number, topic, False, 0, 0, 0, number % 7, True, False, None)


async def test_a_partner_is_entrusted_with_all_topics_once_the_oldest_first_a_slice_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many thousands would keep everybody else waiting."""
    monkeypatch.setattr("node.sync.relay_port._ENTRUSTED_AT_ONCE", 100)
    with open_relay(tmp_path) as relay:
        service = relay.hub.relay
        assert service is not None
        topics = service.topics = Topics((one.topic, one) for one in _topics(300))
        service.is_partner = lambda _: False
        peer = Owner()
        _port(relay.hub, peer).entrust_all()
        assert (peer.waiting, topics.looked_at) == ([], 0), "other peers say themselves what they follow"
        service.is_partner = lambda _: True
        partner = Owner()
        port = _port(relay.hub, partner)
        async with trio.open_nursery() as nursery:
            partner.nursery = nursery
            for _ in range(1000):
                port.entrust_all()
        assert partner.slices == [100, 100, 100]
        assert (len(partner.waiting), topics.looked_at) == (300, 300), "no more than once"
        assert partner.waiting == sorted(partner.waiting, key=lambda one: topics[one].num)


async def test_a_topic_that_is_forgotten_before_its_slice_waits_for_no_turn(tmp_path: Path) -> None:
    """On a connection that takes no more it would wait for good."""
    with open_relay(tmp_path) as relay:
        service = relay.hub.relay
        assert service is not None
        service.topics = {one.topic: one for one in _topics(3)}
        service.is_partner = lambda _: True
        partner = Owner()
        port = _port(relay.hub, partner)
        async with trio.open_nursery() as nursery:
            partner.nursery = nursery
            port.entrust_all()
            gone, _ = service.topics.popitem()
        assert (len(partner.waiting), gone in partner.waiting) == (2, False)


def _counted(numbers: range) -> list[KeptTopic]:
    kept = list(_topics(numbers.stop))[numbers.start :]
    return [replace(one, topic=TopicKey(CountedTopic(one.topic))) for one in kept]


def test_what_a_relay_has_forgotten_is_looked_for_and_nothing_else(tmp_path: Path) -> None:
    with open_relay(tmp_path) as relay:
        service = relay.hub.relay
        assert service is not None
        kept = _counted(range(50))
        owners = [Owner() for _ in range(1000)]
        for owner in owners:
            owner.follow_kept(kept[1:])
            _port(relay.hub, owner)
        owners[7].follow_kept(kept)
        for forgotten, most in (
            ({kept[0].topic}, 1000),
            ({one.topic for one in _counted(range(50, 5000))}, 49_000),
        ):
            service._forgotten.append(forgotten)
            CountedTopic.lookups = 0
            relay.hub.relay_forgot()
            assert [owner.reason for owner in owners if owner.reason] == ["topic_forgotten"]
            assert CountedTopic.lookups <= most + 5010, (
                "a look-up for each of the smaller set, and the set is made once"
            )
        assert owners[7].reason
        CountedTopic.lookups = 0
        relay.hub.relay_forgot()
        assert CountedTopic.lookups == 0, "each is told once"


def test_a_topic_that_was_opened_again_is_followed_on_by_its_new_number(tmp_path: Path) -> None:
    with open_relay(tmp_path) as relay:
        service = relay.hub.relay
        assert service is not None
        (old,) = _topics(1)
        new = replace(old, num=9)
        service.topics = {new.topic: new}
        owners = [Owner(), Owner()]
        for owner, kept in zip(owners, (old, new), strict=True):
            owner.follow_kept([kept])
            _port(relay.hub, owner)
        service._forgotten.append({old.topic})
        relay.hub.relay_forgot()
        assert [owner.reason for owner in owners] == ["topic_forgotten", ""]


def test_a_partner_is_told_what_a_full_relay_forgets_and_stays(tmp_path: Path) -> None:
    with open_relay(tmp_path) as relay:
        service = relay.hub.relay
        assert service is not None
        service.is_partner = lambda _: True
        (kept,) = _topics(1)
        partner = Owner()
        partner.follow_kept([kept])
        _port(relay.hub, partner)
        service._forgotten.append({kept.topic})
        relay.hub.relay_forgot()
        assert (partner.reason, partner.refused) == ("", [kept.topic])


def test_who_was_told_that_a_topic_is_not_kept_begins_anew_when_it_is(tmp_path: Path) -> None:
    """A partner does so after a while: a relay may forget for it with each message."""
    with open_relay(tmp_path) as relay:
        service = relay.hub.relay
        assert service is not None
        (kept,) = _topics(1)
        partner, member, other = Owner(), Owner(), Owner()
        for owner in (partner, member, other):
            _port(relay.hub, owner)
        for owner in (partner, member):
            owner.follow_kept([kept])
            owner.refused.append(kept.topic)
        service.is_partner = lambda peer: peer is partner.peer
        partner.peer = PeerId(b"q" * 32)
        relay.hub.relay_opened([kept])
        assert [one.reason for one in (partner, member, other)] == ["", "topic_forgotten", ""]
        assert [one.was_kept_again for one in (partner, member, other)] == [True, False, False]


async def test_empty_topics_that_make_room_for_one_another_leave_no_trace(tmp_path: Path) -> None:
    """Strangers of many subnets can have a relay forget empty topics as often as they like."""
    with open_relay(tmp_path, replace(PLENTY, topic_count=4)) as relay:
        service = relay.hub.relay
        assert service is not None
        owner = Owner()
        _port(relay.hub, owner)
        topics = [one.topic for one in _topics(80)]
        for first in range(0, 80, 4):
            stranger = Visitor(PeerId(first.to_bytes(32, "big")), f"10.0.{first}.0/24")
            opened = await service.open(topics[first : first + 4], stranger)
            owner.follow_kept(opened.kept)
            assert (len(opened.kept), opened.has_lost, len(service._forgotten)) == (4, False, 0)
        with relay.replica.database.write() as connection:
            connection.execute(update(relay_topics).values(commit_count=1))
        await Relaying(relay.hub).pin(id_text(topics[0]))
        assert owner.reason == "topic_forgotten", "one of the last four, which had something"
        assert not service._forgotten


async def test_a_connection_takes_as_many_topics_as_one_peer_may_bring_whoever_brought_them(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """A topic that holds nothing settles at once, and makes room for another deposit."""
    with open_relay(tmp_path, replace(PLENTY, peer_topic_count=2)) as relay:
        service = relay.hub.relay
        assert service is not None
        topics = [one.topic for one in _topics(4)]
        for first in (0, 2):
            other = Visitor(PeerId(first.to_bytes(32, "big")), f"10.0.{first}.0/24")
            assert len((await service.open(topics[first : first + 2], other)).kept) == 2
        async with met(relay) as stranger:
            await stranger.say(Deposit(tuple(topics[:3])))
            assert (await stranger.hear(Refused)).reason == "peer_full"
            await stranger.say(Deposit(tuple(topics[3:])))
            assert (await stranger.hear(Refused)).reason == "peer_full"
            await wait_all_tasks_blocked()
            (connection,) = relay.hub.sources
            assert {one.topic for one in connection.topics} == set(topics[:2])
            assert [one.count for one in service.refusals.counts.values()] == [2]


async def test_a_deposit_is_answered_a_slice_at_a_time_at_the_cost_of_its_peer(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To follow a topic takes 25 us, and a connection may entrust thousands by one message."""
    monkeypatch.setattr("node.sync.relay_port._ANSWERED_AT_ONCE", 10)
    with open_relay(tmp_path, replace(PLENTY, peer_topic_count=20)) as relay:
        service = relay.hub.relay
        assert service is not None
        topics = [one.topic for one in _topics(45)]
        relay.hub.cpu_clock = count(0.0, 0.5).__next__
        steps, turns = Steps(), list[tuple[int, int, int]]()
        answer_deposit = FollowedTopics.answer_deposit

        def answer(
            followed: FollowedTopics, kept: Sequence[KeptTopic], refused: tuple[TopicKey, ...], reason: str
        ) -> list[Output]:
            if kept and topics[19] in service.topics:
                del service.topics[topics[19]]  # another made a full relay forget it
            turns.append((steps.count, len(kept), len(refused)))
            return answer_deposit(followed, kept, refused, reason)

        monkeypatch.setattr(FollowedTopics, "answer_deposit", answer)
        trio.lowlevel.add_instrument(steps)
        async with met(relay) as stranger:
            await stranger.say(Deposit(tuple(topics)))
            for _ in range(26):
                await stranger.hear(Refused)
            await wait_all_tasks_blocked()
            (connection,) = relay.hub.sources
            assert [turn[1:] for turn in turns] == [(0, 10), (0, 10), (0, 5), (10, 0), (9, 1)]
            assert len({turn[0] for turn in turns}) == 5, "others have their turn between"
            assert {one.topic for one in connection.topics} == set(topics[:19])
            assert isinstance(connection, Connection)
            assert connection.account.used >= 5 * 0.5
            await stranger.say(Deposit(tuple(topics[40:])))  # what was refused may be asked again
            assert (await stranger.hear(Refused)).reason == "peer_full"
        trio.lowlevel.remove_instrument(steps)


async def test_of_a_node_of_an_account_a_connection_takes_what_the_accounts_bytes_allow(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with open_relay(tmp_path, replace(PLENTY, peer_topic_count=2)) as relay:
        service = relay.hub.relay
        assert service is not None
        topics = [one.topic for one in _topics(6)]
        async with met(relay) as stranger:
            await wait_all_tasks_blocked()
            (connection,) = relay.hub.sources
            assert isinstance(connection, Connection)
            service.accounts = {connection.peer: Account(1, "alice", 1 << 20)}
            await stranger.say(Deposit(tuple(topics)))
            await wait_all_tasks_blocked()
            assert {one.topic for one in connection.topics} == set(topics)
