"""Relay administration: list kept topics, pin or unpin them, allow or deny peers."""

from collections.abc import Sequence

from node.relay.relay import RelayService
from node.runtime.errors import ServiceError
from node.runtime.resolve import resolve
from node.sync.hub import Hub
from protocol.codec import DecodeError
from protocol.formats.text import id_text, parse_id
from protocol.ids import PeerId, TopicKey
from ravel.types.peers import RelayAllowance, RelayedTopic, RelayedTopicList
from storage.relay.relay import KeptTopic


class Relaying:
    """Topics that are kept, and peers that are known. Raises ServiceError `bad_config` on a node that is no relay."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    async def list_all(self) -> RelayedTopicList:
        """Topics that are kept, the latest touched first, and how much room there is."""
        relay = self.find_relay()
        kept = await relay.list_all()
        topics, size = await self._hub.run_blocking(_view_topics, kept)  # of 100,000: a third of a second
        return {
            "topics": topics,
            "size": size,
            "size_max": relay.quotas.total,
            "takes_strangers": relay.quotas.takes_strangers,
            "allowed": sorted(map(id_text, relay.allowed)),
        }

    async def pin(self, topic: str) -> RelayedTopic:
        """Never forget a topic to make room; a full id may be of one that is not kept yet."""
        relay = self.find_relay()
        try:
            topic_id = TopicKey(parse_id(topic))
        except DecodeError:
            topic_id = self._find(relay, topic)
        return await self._pin(relay, topic_id, is_pinned=True)

    async def unpin(self, topic: str) -> RelayedTopic:
        """Let a topic be forgotten to make room, like others."""
        relay = self.find_relay()
        return await self._pin(relay, self._find(relay, topic), is_pinned=False)

    async def allow(self, peer: str) -> RelayAllowance:
        """Know a peer, of a full id, from its next connection on; what it brought before counts as a known peer's."""
        relay = self.find_relay()
        try:
            key = PeerId(parse_id(peer))
        except DecodeError:
            raise ServiceError(
                "bad_request", f"{peer!r} is not a peer id", "`ravel id` on the other node prints it"
            ) from None
        await relay.allow(key, is_allowed=True)
        return {"peer": id_text(key), "allowed": True}

    async def deny(self, peer: str) -> RelayAllowance:
        """Know a peer no more."""
        relay = self.find_relay()
        key = resolve("allowed peer", peer, [(one, "", one) for one in relay.allowed])
        await relay.allow(key, is_allowed=False)
        return {"peer": id_text(key), "allowed": False}

    async def _pin(self, relay: RelayService, topic: TopicKey, *, is_pinned: bool) -> RelayedTopic:
        await relay.pin(topic, is_pinned=is_pinned)
        self._hub.relay_forgot()
        if topic not in relay.topics:
            raise ServiceError("too_large", "this relay keeps as many topics as it may")
        return _topic_view(relay.topics[topic])

    def _find(self, relay: RelayService, text: str) -> TopicKey:
        return resolve("relayed topic", text, [(topic, "", topic) for topic in relay.topics])

    def find_relay(self) -> RelayService:
        """Return the service of this relay."""
        if self._hub.relay is None:
            raise ServiceError(
                "bad_config",
                "this node keeps nothing for others",
                "ravel config set relay.enabled true, then `ravel down` and `ravel up`",
            )
        return self._hub.relay


def _view_topics(kept: Sequence[KeptTopic]) -> tuple[list[RelayedTopic], int]:
    """Topics as the API shows them, and their bytes."""
    return [_topic_view(one) for one in kept], sum(one.size + one.file_size for one in kept)


def _topic_view(one: KeptTopic) -> RelayedTopic:
    return {
        "topic": id_text(one.topic),
        "commits": one.commit_count,
        "size": one.size + one.file_size,
        "file_size": one.file_size,
        "pinned": one.is_pinned,
        "touched_at": one.touched_at // 1000,
        "brought_by": id_text(one.brought_by) if one.brought_by is not None else None,
        "known": one.is_known,
        "shared": one.is_shared,
    }
