"""A relay with many peers and topics: its memory for each, and how fast it passes on what is published.

python benchmarks/bench_relay.py [peers] [topics]

The relay is a daemon in a process of its own; all peers are connections of this process, so that the figures of passing
on include what this process needs to decrypt them on the other core.
"""

import secrets
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import trio

from benchmarks.common import figure, note, percentile
from benchmarks.daemons import resident_megabytes, running
from node.wire.transport import SecureStream, dial
from protocol.crypto.hashing import announced_topic, blind_topic
from protocol.crypto.keys import AgreementSecret, ConvergenceSecret, NodeSeed, ReadKey, TopicSeed
from protocol.crypto.signing import public_key
from protocol.formats.block import encrypt_block
from protocol.formats.publication import create_publication, encode_publication
from protocol.formats.text import parse_id
from protocol.ids import PeerId, TopicKey
from protocol.limits.peers import IDLE_TIMEOUT_SECONDS
from protocol.session.messages import (
    Announce,
    Deposit,
    Goodbye,
    KeepAlive,
    Message,
    Publications,
    Receipt,
    Relay,
    Summary,
    decode_message,
    encode_message,
)
from tests.e2e.cluster import Peer

_SUBSCRIBERS = 100
_ROUNDS = 200
_DIALED_AT_ONCE = 16


class _Member:
    """A peer that follows some topics and takes whatever comes."""

    def __init__(self, stream: SecureStream, topics: Sequence[TopicKey]) -> None:
        self.stream = stream
        self.blind = {blind_topic(topic, stream.session_id): topic for topic in topics}
        self.joined = 0
        self.arrivals: list[float] = []
        self.news = trio.Event()

    async def say(self, *messages: Message) -> None:
        await self.stream.send_frames([encode_message(message) for message in messages])

    async def begin(self) -> None:
        announced = [
            announced_topic(topic, self.stream.session_id, by_dialer=True) for topic in self.blind.values()
        ]
        await self.say(Announce(tuple(announced)))

    async def live(self) -> None:
        """Say now and then that it is there: all of them joining takes longer than silence is borne."""
        while True:
            await trio.sleep(IDLE_TIMEOUT_SECONDS / 3)
            await self.say(KeepAlive())

    async def run(self) -> None:
        while True:
            frame = await self.stream.receive_frame()
            assert frame is not None, "the relay hung up"
            match decode_message(frame):
                case Relay():
                    await self.say(Deposit(tuple(self.blind.values())))
                case Summary() as said:  # it holds the same
                    await self.say(said)
                    self.joined += 1
                case Publications(topic, items):
                    now = time.perf_counter()
                    self.arrivals += [now] * len(items)
                    await self.say(Receipt(topic))
                    self.news.set()
                case Receipt():
                    self.news.set()
                case Goodbye(reason):
                    raise RuntimeError(f"the relay hung up: {reason}")
                case _:
                    pass


def _publication(seed: TopicSeed, number: int) -> bytes:
    block, key = encrypt_block(b"post %d" % number, ConvergenceSecret(b"c" * 32))
    made = create_publication(seed, ReadKey(b"r" * 32), key, (block,))
    return encode_publication(
        made.topic, made.hidden_key, tuple(one.encoded for one in made.blocks), made.signature
    )


async def _measure(relay: Peer, peer_count: int, topic_count: int) -> None:
    host, _, port = relay.listen.rpartition(":")
    key = parse_id(str(relay.client.show_status()["node"]))
    empty = resident_megabytes(relay.pid)
    seeds = [secrets.token_bytes(32) for _ in range(topic_count)]
    topics = [public_key(TopicSeed(seed)) for seed in seeds]
    each = topic_count // peer_count
    members: list[_Member] = []
    dialing = trio.CapacityLimiter(_DIALED_AT_ONCE)

    async def join(number: int, nursery: trio.Nursery) -> None:
        async with dialing:
            stream = await trio.open_tcp_stream(host, int(port))
            secure = await dial(
                stream,
                NodeSeed(secrets.token_bytes(32)),
                PeerId(key),
                AgreementSecret(secrets.token_bytes(32)),
            )
            own = topics[number * each : (number + 1) * each]
            member = _Member(secure, own if number >= _SUBSCRIBERS else [topics[0], *own[1:]])
            members.append(member)
            nursery.start_soon(member.run)
            nursery.start_soon(member.live)
            await member.begin()

    async with trio.open_nursery() as nursery:
        began = time.perf_counter()
        async with trio.open_nursery() as joining:
            for number in range(peer_count):
                joining.start_soon(join, number, nursery)
        while True:
            if sum(member.joined for member in members) == peer_count * each:
                break
            await trio.sleep(0.1)
        note(f"{peer_count} peers with {each} topics each joined in {time.perf_counter() - began:.1f} s")
        full = resident_megabytes(relay.pid)
        figure("relay_memory_of_a_peer", (full - empty) * 1000 / peer_count, "KB", topics=each)
        subscribers = [one for one in members if topics[0] in one.blind.values()]
        await _fan_out(subscribers, topics[0], TopicSeed(seeds[0]))
        nursery.cancel_scope.cancel()
    for one in members:
        await one.stream.aclose()


async def _fan_out(subscribers: list[_Member], topic: TopicKey, seed: TopicSeed) -> None:
    """One of the subscribers publishes, the others receive."""
    publisher, *others = subscribers
    blind = blind_topic(topic, publisher.stream.session_id)
    latencies: list[float] = []
    began = time.perf_counter()
    for number in range(_ROUNDS):
        said = time.perf_counter()
        await publisher.say(Publications(blind, (_publication(seed, number),)))
        while True:
            if min(len(one.arrivals) for one in others) > number:
                break
            await trio.sleep(0.001)
        latencies += [one.arrivals[number] - said for one in others]
    seconds = time.perf_counter() - began
    count = _ROUNDS * len(others)
    figure("relay_fan_out", count / seconds, "publications/s", subscribers=len(others))
    for share in (0.5, 0.99):
        figure(f"relay_latency_p{share * 100:.0f}", percentile(latencies, share) * 1000, "ms")


def main() -> None:
    """Print the figures."""
    peer_count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    topic_count = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
    with tempfile.TemporaryDirectory() as name:
        relay = Peer(Path(name) / "relay")
        config = relay.home / "config.toml"
        config.write_text(config.read_text().replace("enabled = false", "enabled = true"))
        with running(relay):
            trio.run(_measure, relay, peer_count, topic_count)


if __name__ == "__main__":
    main()
