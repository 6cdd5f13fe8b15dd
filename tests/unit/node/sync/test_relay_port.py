"""What a relay's connections look at when its topics change: what has room, and what was forgotten, alone."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from node.sync.hub import Hub
from node.sync.relay_port import RelayOwner, RelayPort
from protocol.ids import PeerId, TopicKey
from storage.relay.relay import KeptTopic
from tests.support.relays import open_relay


class Topics(dict[TopicKey, KeptTopic]):
    """Kept topics that count how many of them are looked at."""

    looked_at = 0

    def values(self) -> Any:  # noqa: ANN401  # as of a dict
        for one in super().values():
            self.looked_at += 1
            yield one


class Owner:
    """A connection, as far as topics go."""

    def __init__(self, room: int) -> None:
        self.peer = PeerId(b"p" * 32)
        self.topic_room = room
        self.followed: dict[TopicKey, KeptTopic] = {}
        self.asked = 0
        self.reason = ""

    def follows(self, topic: TopicKey) -> bool:
        self.asked += 1
        return topic in self.followed

    def follow_kept(self, kept: Sequence[KeptTopic]) -> None:
        self.followed.update((one.topic, one) for one in kept)
        self.topic_room -= len(kept)

    def part(self, reason: str) -> None:
        self.reason = reason


def _port(hub: Hub, owner: Owner) -> RelayPort:
    return RelayPort(cast(RelayOwner, owner), hub)


def _topics(count: int) -> Iterator[KeptTopic]:
    for number in range(count):
        topic = TopicKey(number.to_bytes(32, "big"))
        yield KeptTopic(number, topic, False, 0, 0, 0, number % 7, True, False, None)


def test_a_partner_is_told_of_no_more_topics_than_have_room(tmp_path: Path) -> None:
    with open_relay(tmp_path) as relay:
        service = relay.hub.relay
        assert service is not None
        topics = service.topics = Topics((one.topic, one) for one in _topics(300))
        service.is_partner = lambda _: False
        peer = Owner(100)
        _port(relay.hub, peer).follow_partners()
        assert (peer.followed, topics.looked_at) == ({}, 0), "other peers say themselves what they follow"
        service.is_partner = lambda _: True
        partner = Owner(100)
        port = _port(relay.hub, partner)
        port.follow_partners()
        assert (len(partner.followed), partner.topic_room, topics.looked_at) == (100, 0, 300)
        assert min(one.touched_at for one in partner.followed.values()) >= 4, "the latest touched"
        for _ in range(1000):
            port.follow_partners()
        assert topics.looked_at == 300, "no more where there is no room"


def test_what_a_relay_has_forgotten_is_looked_for_and_nothing_else(tmp_path: Path) -> None:
    with open_relay(tmp_path) as relay:
        service = relay.hub.relay
        assert service is not None
        kept = list(_topics(50))
        service.topics = {one.topic: one for one in kept}
        owners = [Owner(0) for _ in range(1000)]
        for owner in owners:
            owner.follow_kept(kept[1:])
            _port(relay.hub, owner)
        owners[7].follow_kept(kept)
        service._forgotten = {kept[0].topic}
        relay.hub.relay_forgot()
        assert [one.reason for one in owners if one.reason] == ["topic_forgotten"]
        assert owners[7].reason
        assert sum(one.asked for one in owners) == 1000
        relay.hub.relay_forgot()
        assert sum(one.asked for one in owners) == 1000, "each is told once"
