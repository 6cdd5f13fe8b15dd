"""Attacks by who knows a node's key and address, and nothing else: on connections, frames and the shape of messages."""

import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import trio

from protocol.codec import encode
from protocol.crypto.keys import AgreementSecret, NodeSeed
from protocol.crypto.node_identity import DialerHandshake
from protocol.formats.links import PeerAddress
from protocol.ids import AnnouncedTopic, BlindTopic, Digest, TopicKey
from protocol.limits.peers import FRAME_SIZE_MAX, TOPIC_COUNT_MAX, UNKNOWN_MESSAGES_AT_ONCE_MAX
from protocol.session.messages import (
    Announce,
    Blocks,
    Deposit,
    Features,
    Fetch,
    Goodbye,
    Introduce,
    Introductions,
    KeepAlive,
    Message,
    Publications,
    Receipt,
    Reconcile,
    Refused,
    Relay,
    Seen,
    Summary,
    Want,
    encode_message,
)
from tests.hostile.peer import Attacker, Parted
from tests.hostile.table import Role, attack

_SOME = 300
_MORE_THAN_UNKNOWN = 2 * UNKNOWN_MESSAGES_AT_ONCE_MAX
_RETRY_SECONDS = 0.02


@attack(Role.STRANGER)
async def keep_alives(mallory: Attacker) -> None:
    """Tiny frames are taken a few at a time, so that others have their turns between them (H3)."""
    peer = await mallory.meet()
    async for _ in mallory.rounds():
        await peer.say(*[KeepAlive()] * _SOME * mallory.size)


@attack(Role.STRANGER)
async def empty_announcements(mallory: Attacker) -> None:
    """Announcements without a topic cost no more than keep-alives do (H3)."""
    peer = await mallory.meet()
    async for _ in mallory.rounds():
        await peer.say(*[Announce(())] * _SOME * mallory.size)


async def _take_each_place(mallory: Attacker, take: Callable[[], Awaitable[object]]) -> None:
    """Take every place that there is, and again whenever one is left."""
    while not mallory.effort.is_over:
        with suppress(Parted):
            await take()
        await trio.sleep(_RETRY_SECONDS)


@attack(Role.STRANGER, ends=("too_many_connections", ""))
async def idle_strangers(mallory: Attacker) -> None:
    """Strangers who take every place and say nothing do not keep out a peer that the node knows (M3)."""
    for _ in range(mallory.places):
        with suppress(Parted):
            await mallory.meet()
    mallory.nursery.start_soon(_take_each_place, mallory, mallory.meet)
    async for _ in mallory.rounds():
        await trio.sleep(1)


@attack(Role.STRANGER, ends=("timeout", "too_many_connections", ""))
async def half_open_connections(mallory: Attacker) -> None:
    """Connections without a handshake, renewed as they are dropped, keep out nobody whom the node knows (M3)."""
    for _ in range(mallory.places):
        await mallory.connect()
    mallory.nursery.start_soon(_take_each_place, mallory, mallory.connect)
    async for _ in mallory.rounds():
        await trio.sleep(1)


@attack(Role.STRANGER, ends=("duplicate", ""))
async def one_key_many_times(mallory: Attacker) -> None:
    """One key on several connections is served on each, and costs no more than several keys."""
    for _ in range(8):
        peer = await mallory.meet(seed=NodeSeed(b"one key".ljust(32, b"-")))
        await peer.say(KeepAlive())
    async for _ in mallory.rounds():
        await peer.say(*[KeepAlive()] * 10 * mallory.size)


@attack(Role.STRANGER, ends=("handshake_failed",))
async def garbage_handshakes(mallory: Attacker) -> None:
    """What is no handshake is refused at its first message."""
    async for _ in mallory.rounds():
        wire = await mallory.connect()
        await wire.send_all(b"\0\x30" + secrets.token_bytes(48))
        await wire.receive_some()


@attack(Role.STRANGER, ends=("handshake_failed",))
async def handshakes_too_long(mallory: Attacker) -> None:
    """A handshake message over its bound is refused by its length."""
    async for _ in mallory.rounds():
        wire = await mallory.connect()
        await wire.send_all(b"\xff\xff")
        await wire.receive_some()


async def _by_many(mallory: Attacker, work: Callable[[], Awaitable[object]]) -> None:
    """Do this again and again, many at a time; as often as the rounds say where time does not end it."""

    async def go_on() -> None:
        async for _ in mallory.rounds():
            with suppress(Parted):
                await work()
            await trio.sleep(_RETRY_SECONDS)

    async with trio.open_nursery() as nursery:
        for _ in range(mallory.size):
            nursery.start_soon(go_on)


@attack(Role.STRANGER, ends=("handshake_failed", "closed"))
async def first_messages_again(mallory: Attacker) -> None:
    """A first message that was recorded once costs its sender nothing to repeat: others get their turn between two."""
    ephemeral = AgreementSecret(secrets.token_bytes(32))
    handshake = DialerHandshake(NodeSeed(bytes(32)), mallory.stage.victim, ephemeral)
    first = handshake.first_message()

    async def say() -> None:
        wire = await mallory.connect()
        try:
            await wire.send_all(len(first).to_bytes(2, "big") + first)
            await wire.receive_some()
        except trio.BrokenResourceError:
            raise Parted from None
        finally:
            mallory.wires.remove(wire)
            await trio.aclose_forcefully(wire)

    await _by_many(mallory, say)


@attack(Role.STRANGER, ends=("truncated", "closed", "too_many_connections", ""))
async def handshakes_for_nothing(mallory: Attacker) -> None:
    """Who proves key after key and says nothing takes turns with others, and does not fill the log."""

    async def meet() -> None:
        peer = await mallory.meet()
        mallory.wires.remove(peer.wire)
        await trio.aclose_forcefully(peer.wire)

    await _by_many(mallory, meet)


@attack(Role.STRANGER, ends=("timeout",))
async def slow_handshakes(mallory: Attacker) -> None:
    """A handshake byte by byte is given up after 10 seconds."""
    wire = await mallory.connect()
    try:
        for _ in range(20):
            await wire.send_all(b"\0")
            await trio.sleep(1)
    except trio.BrokenResourceError:
        raise Parted from None


@attack(Role.STRANGER, ends=("peer_left",))
async def more_after_a_goodbye(mallory: Attacker) -> None:
    """Nothing is taken after a goodbye."""
    peer = await mallory.meet()
    await peer.say(Goodbye("bye"), *[Announce((AnnouncedTopic(secrets.token_bytes(32)),))] * 50)
    await peer.wait_ended()


@attack(Role.STRANGER, ends=("closed",))
async def more_after_the_end(mallory: Attacker) -> None:
    """Nothing is taken after a frame of length 0, which ends the stream."""
    peer = await mallory.meet()
    await peer.put(peer.encrypt_length(0) + peer.encrypt_frame(encode_message(Relay())) * 2)
    await peer.wait_ended()


@attack(Role.STRANGER, ends=("too_many_unknown_messages", "over_budget", "peer_left"))
async def unknown_messages(mallory: Attacker) -> None:
    """Messages of no known kind are passed over, whatever their size; too many of them end the connection."""
    for size in (0, 1000, FRAME_SIZE_MAX - 100):
        peer = await mallory.meet()
        await peer.say_frames(encode(("nonsense1", bytes(size))))
        await peer.say(Goodbye("bye"))
        await peer.wait_ended()
    peer = await mallory.meet()
    for _ in range(_MORE_THAN_UNKNOWN // _SOME + 1):
        await peer.say_frames(*[encode(("nonsense1", 7))] * _SOME)
    await peer.wait_ended()


@attack(
    Role.STRANGER, ends=("bad_message:bad_shape", "bad_message:not_canonical", "bad_message:unknown_message")
)
async def malformed_messages(mallory: Attacker) -> None:
    """What is not the one encoding of a message ends the connection."""
    receipt = encode_message(Receipt(BlindTopic(bytes(32))))
    longer = receipt.replace(b"\xc4\x20", b"\xc5\x00\x20")
    for frame in (encode(("receipt1", b"x")), receipt + b"x", receipt[:-1], longer, b"\xc1", b"\0", b"\x90"):
        peer = await mallory.meet()
        await peer.say_frames(frame)
        await peer.wait_ended()


@attack(Role.STRANGER, ends=("frame_too_large",))
async def lengths_too_large(mallory: Attacker) -> None:
    """A frame that is too long is refused before its first byte is awaited."""
    for size in (FRAME_SIZE_MAX + 1, 2**32 - 1):
        peer = await mallory.meet()
        await peer.put(peer.encrypt_length(size))
        await peer.wait_ended()


@attack(Role.STRANGER, ends=("truncated",))
async def torn_frames(mallory: Attacker) -> None:
    """Half a frame is never taken for a whole one."""
    async for number in mallory.rounds():
        peer = await mallory.meet()
        await peer.put(peer.encrypt_frame(encode_message(KeepAlive()))[: 10 + number % 30])
        await trio.aclose_forcefully(peer.wire)
        await peer.wait_ended()


@attack(Role.STRANGER, ends=("bad_frame",))
async def wrong_tags(mallory: Attacker) -> None:
    """A frame that does not open ends the connection."""
    async for number in mallory.rounds():
        peer = await mallory.meet()
        frame = bytearray(peer.encrypt_frame(encode_message(KeepAlive())))
        frame[number * 7 % len(frame)] ^= 1
        await peer.put(bytes(frame))
        await peer.wait_ended()


@attack(Role.STRANGER)
async def dripping_frames(mallory: Attacker) -> None:
    """A frame that comes byte by byte costs reads, and holds nobody up."""
    peer = await mallory.meet()
    async for _ in mallory.rounds():
        for byte in peer.encrypt_frame(encode_message(KeepAlive())):
            await peer.put(bytes((byte,)))


@attack(Role.STRANGER, ends=("idle",))
async def half_a_batch_then_silence(mallory: Attacker) -> None:
    """Who stops within a frame is left after 90 seconds."""
    peer = await mallory.meet()
    whole = peer.encrypt_frame(encode_message(Publications(BlindTopic(bytes(32)), (bytes(100_000),))))
    await peer.put(whole[:50_000])
    await peer.wait_ended()


@attack(Role.STRANGER, ends=("too_many_topics",))
async def announce_floods(mallory: Attacker) -> None:
    """A billion topics are heard up to their bound."""
    peer = await mallory.meet()
    while True:
        await peer.say(
            Announce(tuple(AnnouncedTopic(secrets.token_bytes(32)) for _ in range(TOPIC_COUNT_MAX)))
        )


@attack(Role.STRANGER)
async def the_same_announcement(mallory: Attacker) -> None:
    """A topic that is announced again and again is heard once."""
    peer = await mallory.meet()
    names = tuple(AnnouncedTopic(secrets.token_bytes(32)) for _ in range(100))
    async for _ in mallory.rounds():
        await peer.say(*[Announce(names)] * 20 * mallory.size)


@attack(Role.STRANGER, ends=("unknown_topic",))
async def reflected_announcements(mallory: Attacker) -> None:
    """Who sends back what it heard has joined nothing."""
    peer = await mallory.meet()
    heard = await peer.hear(Announce)
    await peer.say(heard, Summary(BlindTopic(heard.topics[0]), 0, (), 0, Digest(bytes(32))))
    await peer.wait_ended()


@attack(Role.STRANGER, ends=("unknown_topic",))
async def messages_of_unknown_topics(mallory: Attacker) -> None:
    """Every message of a topic that was not joined ends the connection."""
    topic = BlindTopic(secrets.token_bytes(32))
    raw: Any = secrets.token_bytes(32)
    about: list[Message] = [
        Summary(topic, 0, (), 0, raw),
        Reconcile(topic, 0, b""),
        Publications(topic, (raw,)),
        Receipt(topic),
        Want(topic, (raw,)),
        Fetch(topic, (raw,)),
        Blocks(topic, (raw,)),
        Refused(topic, "x"),
        Introduce(topic, (PeerAddress("127.0.0.1:1", raw),)),
    ]
    for message in about:
        peer = await mallory.meet()
        await peer.say(message)
        await peer.wait_ended()


@attack(Role.STRANGER, ends=("second_introductions",))
async def introductions_twice(mallory: Attacker) -> None:
    """That one takes part in introductions is said once."""
    peer = await mallory.meet()
    await peer.say(Introductions(), Introductions())
    await peer.wait_ended()


@attack(Role.STRANGER, ends=("second_features",))
async def features_twice(mallory: Attacker) -> None:
    """What a side knows is said once."""
    peer = await mallory.meet()
    await peer.say(Features(("files",)), Features(()))


@attack(Role.STRANGER, ends=("peer_left",))
async def addresses_that_nobody_asked_about(mallory: Attacker) -> None:
    """Who has come by itself says where this node is seen, over and over: it is not believed, and dialed nowhere."""
    peer = await mallory.meet()
    for number in range(200):
        await peer.say(Seen(f"203.0.113.{number}:7474"), Seen("no address at all"))
    await peer.say(Goodbye("bye"))
    await peer.wait_ended()


@attack(Role.STRANGER, ends=("second_relay",))
async def a_relay_twice(mallory: Attacker) -> None:
    """That one is a relay is said once."""
    peer = await mallory.meet()
    await peer.say(Relay(), Relay())
    await peer.wait_ended()


@attack(Role.STRANGER)
async def a_false_relay(mallory: Attacker) -> None:
    """Who claims to be a relay is told of no topic."""
    peer = await mallory.meet()
    await peer.say(Relay())
    async for _ in mallory.rounds():
        await trio.sleep(1)
        await peer.say(KeepAlive())
    assert mallory.heard["Deposit"] == 0


@attack(Role.STRANGER, ends=("no_relay",))
async def deposits_at_no_relay(mallory: Attacker) -> None:
    """A node that is no relay keeps no topic for others."""
    peer = await mallory.meet()
    await peer.say(Deposit(tuple(TopicKey(secrets.token_bytes(32)) for _ in range(TOPIC_COUNT_MAX))))
    await peer.wait_ended()
