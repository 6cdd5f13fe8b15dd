"""A peer that says whatever a test wants to a real node."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

import trio
from trio.testing import memory_stream_pair

from node.sync.connection import Connection, Ended
from node.wire.transport import SecureStream, accept, dial
from protocol.crypto.hashing import announced_topic, blind_topic
from protocol.crypto.keys import AgreementSecret, NodeSeed
from protocol.ids import BlindTopic, Digest, ShortId, TopicKey
from protocol.limits.peers import IDLE_TIMEOUT_SECONDS
from protocol.session.messages import Announce, Message, Publications, Summary, decode_message, encode_message
from tests.support.machine import fail_after
from tests.support.nodes import Node
from tests.support.streams import StreamPair

_NOTHING = Digest(bytes(32))

Heard = TypeVar("Heard", bound=Message)


class Stranger:
    """A peer that says whatever the test wants."""

    def __init__(self, stream: SecureStream, wire: trio.abc.Stream) -> None:
        """`wire` carries the encrypted stream."""
        self.stream, self.wire = stream, wire
        self.ended: Ended | None = None
        """What the node said of the end, when it has come."""

    async def say(self, *messages: Message) -> None:
        """Send messages."""
        await self.stream.send_frames([encode_message(message) for message in messages])

    def announcement(self, topic: TopicKey) -> Announce:
        """What a dialer that knows a topic announces."""
        return Announce((announced_topic(topic, self.stream.session_id, by_dialer=True),))

    async def compare(
        self,
        topic: TopicKey,
        count: int = 0,
        heads: tuple[ShortId, ...] = (),
        digest: Digest = _NOTHING,
    ) -> BlindTopic:
        """Join a topic, saying to hold so many commits; the topic as it is said here."""
        said = blind_topic(topic, self.stream.session_id)
        await self.say(self.announcement(topic), Summary(said, 0, heads, count, digest))
        return said

    async def join(self, topic: TopicKey, count: int = 0) -> BlindTopic:
        """The same, and hear what there is."""
        said = await self.compare(topic, count)
        await self.hear(Publications)
        return said

    async def hear(self, kind: type[Heard]) -> Heard:
        """The next message of a kind; others are passed over."""
        while True:
            frame = await self.stream.receive_frame()
            assert frame is not None, f"the connection ended before {kind.__name__}"
            message = decode_message(frame)
            if isinstance(message, kind):
                return message


@asynccontextmanager
async def met(node: Node, make: StreamPair = memory_stream_pair) -> AsyncIterator[Stranger]:
    """A stranger connected to a node, until that has ended the connection."""
    ours, theirs = make()
    streams: dict[str, SecureStream] = {}

    async def dial_it() -> None:
        streams["ours"] = await dial(ours, NodeSeed(b"s" * 32), node.key, AgreementSecret(b"d" * 32))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(dial_it)
        accepted = await accept(theirs, node.seed, AgreementSecret(b"a" * 32))

    stranger, done = Stranger(streams["ours"], ours), trio.Event()

    async def converse() -> None:
        stranger.ended = await Connection(node.hub, accepted).run()
        done.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(converse)
        yield stranger
        with fail_after(IDLE_TIMEOUT_SECONDS * 2):
            await done.wait()
        await streams["ours"].aclose()
