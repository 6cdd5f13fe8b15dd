"""A peer that can send anything: the real handshake and the real messages, or what only looks like them.

An `Attacker` is one role's knowledge and all its connections; each connection is a `HostilePeer`. What a victim says is
read all the time, unless the attack is not to read.
"""

import math
import secrets
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Self, TypeVar

import trio

from node.authoring.drafting import Target
from node.wire.transport import SecureStream, TransportError, dial
from protocol.crypto.hashing import announced_topic, blind_topic
from protocol.crypto.keys import AgreementSecret, NodeSeed, UserSeed
from protocol.ids import BlindTopic, BranchId, CommitId, Digest, ShortId, TopicKey
from protocol.limits.network import CONNECTIONS_MAX
from protocol.session.messages import (
    Announce,
    Goodbye,
    Message,
    Publications,
    Receipt,
    Summary,
    decode_message,
    encode_message,
)
from tests.hostile.commits import Feed, Forged
from tests.hostile.stage import Stage

_NOTHING = Digest(bytes(32))

Heard = TypeVar("Heard", bound=Message)
OpenWire = Callable[[], Awaitable[trio.abc.Stream]]
_KEPT_COUNT_MAX: Final = 1000


class Parted(Exception):
    """The victim has ended the connection."""


@dataclass(slots=True)
class Effort:
    """How hard an attack tries: `rounds` of `size` times what one small round is, or as many as fit before `until`."""

    rounds: int = 3
    size: int = 1
    until: float = math.inf  # by time.monotonic()

    @property
    def is_over(self) -> bool:
        """Whether the time is up."""
        return time.monotonic() >= self.until


class Rounds:
    """Rounds of an attack, until the effort is spent. (No generator: attacks stop in the middle.)"""

    def __init__(self, effort: Effort) -> None:
        self._effort = effort
        self._count = 0

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> int:
        await trio.lowlevel.checkpoint()
        effort = self._effort
        if effort.is_over or (self._count >= effort.rounds and effort.until == math.inf):
            raise StopAsyncIteration
        self._count += 1
        return self._count - 1


class HostilePeer:
    """One connection to the victim."""

    def __init__(self, attacker: "Attacker", wire: trio.abc.Stream, secure: SecureStream) -> None:
        self._attacker = attacker
        self.wire = wire
        self.secure = secure
        self.session_id = secure.session_id
        self._heard: deque[Message] = deque(maxlen=_KEPT_COUNT_MAX)
        self._news = trio.Event()
        self.ended = trio.Event()

    async def say(self, *messages: Message) -> None:
        """Send messages in as few writes as possible. Raises Parted."""
        await self.say_frames(*(encode_message(message) for message in messages))

    async def say_frames(self, *frames: bytes) -> None:
        """The same of frames that may be no messages."""
        self._attacker.sent["frames"] += len(frames)
        self._attacker.sent["bytes"] += sum(map(len, frames))
        try:
            await self.secure.send_frames(frames)
        except TransportError:
            raise Parted from None
        await trio.lowlevel.checkpoint()

    async def put(self, data: bytes) -> None:
        """Write bytes beside the frames. Raises Parted."""
        self._attacker.sent["bytes"] += len(data)
        try:
            await self.wire.send_all(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            raise Parted from None

    def encrypt_frame(self, frame: bytes) -> bytes:
        """A frame as it travels."""
        return self.encrypt_length(len(frame)) + self.secure._sending._cipher.encrypt(frame)

    def encrypt_length(self, size: int) -> bytes:
        """The beginning of a frame that is said to be of this size."""
        return self.secure._sending._cipher.encrypt(size.to_bytes(4, "big"))

    def blind(self, topic: TopicKey) -> BlindTopic:
        """How a topic is called on this connection."""
        return blind_topic(topic, self.session_id)

    def announcement(self, *topics: TopicKey) -> Announce:
        """What a dialer that knows these topics announces."""
        return Announce(tuple(announced_topic(one, self.session_id, by_dialer=True) for one in topics))

    async def join(
        self,
        target: Target,
        count: int = 0,
        heads: Sequence[ShortId] = (),
        digest: Digest = _NOTHING,
    ) -> BlindTopic:
        """Join a topic, saying to hold so many commits; the topic as it is called here. Raises Parted."""
        topic = self.blind(target.topic)
        await self.say(self.announcement(target.topic), Summary(topic, 0, tuple(heads), count, digest))
        while (await self.hear(Summary)).topic != topic:
            pass
        return topic

    async def join_alike(self, target: Target) -> BlindTopic:
        """Join a topic, saying to hold just what the victim holds, so that nothing is sent. Raises Parted."""
        topic = self.blind(target.topic)
        await self.say(self.announcement(target.topic))
        while (said := await self.hear(Summary)).topic != topic:
            pass
        await self.say(said)
        return topic

    async def publish(self, topic: BlindTopic, forged: Sequence[Forged]) -> None:
        """Send a batch, and wait for its receipt. Raises Parted."""
        self._attacker.sent["publications"] += len(forged)
        await self.say(Publications(topic, tuple(one.encoded for one in forged)))
        await self.hear(Receipt)

    async def hear(self, kind: type[Heard]) -> Heard:
        """The next message of a kind, others before it are passed over. Raises Parted."""
        while True:
            message = await self.hear_any()
            if isinstance(message, kind):
                return message

    async def hear_any(self) -> Message:
        """The next message. Raises Parted."""
        while not self._heard:
            if self.ended.is_set():
                raise Parted
            await self._news.wait()
        return self._heard.popleft()

    async def read(self) -> None:
        """Take what the victim says, until it ends."""
        try:
            while (frame := await self.secure.receive_frame()) is not None:
                message = decode_message(frame)
                if isinstance(message, Goodbye):
                    self._attacker.reasons[message.reason] += 1
                self._attacker.heard[type(message).__name__] += 1
                self._heard.append(message)
                self._wake()
        except TransportError:
            pass
        self.ended.set()
        self._wake()

    async def wait_ended(self) -> None:
        """Return when the victim has ended the connection."""
        await self.ended.wait()

    def _wake(self) -> None:
        self._news.set()
        self._news = trio.Event()


@dataclass(eq=False)
class Attacker:
    """One role: what it knows, what it has sent, and all its connections, which last as long as the nursery."""

    stage: Stage
    open_wire: OpenWire
    nursery: trio.Nursery
    effort: Effort = field(default_factory=Effort)
    sent: Counter[str] = field(default_factory=Counter)
    heard: Counter[str] = field(default_factory=Counter)  # messages by kind
    reasons: Counter[str] = field(default_factory=Counter)  # of goodbyes
    feeds: dict[tuple[TopicKey, BranchId, UserSeed], Feed] = field(default_factory=dict)
    kept: dict[str, list[Forged]] = field(default_factory=dict)
    """What an attack makes once and sends again, also on the next connection."""
    places: int = CONNECTIONS_MAX
    """Connections that the victim accepts at a time."""
    open_api: OpenWire | None = None
    """A connection to the victim's local API, where there is one."""
    open_web: OpenWire | None = None
    """A connection to where the victim listens by WebSocket, where it does."""
    wires: list[trio.abc.Stream] = field(default_factory=list)

    @property
    def size(self) -> int:
        """How many times a small round one round is."""
        return self.effort.size

    def rounds(self) -> "Rounds":
        """Numbers of rounds, until the effort is spent."""
        return Rounds(self.effort)

    async def connect(self) -> trio.abc.Stream:
        """A connection without a handshake. Raises Parted."""
        try:
            wire = await self.open_wire()
        except OSError:
            raise Parted from None
        self.wires.append(wire)
        return wire

    async def meet(self, *, seed: NodeSeed | None = None, reads: bool = True) -> HostilePeer:
        """A connection with a real handshake, by a node key of `seed` or a fresh one. Raises Parted."""
        wire = await self.connect()
        try:
            secure = await dial(
                wire,
                seed or NodeSeed(secrets.token_bytes(32)),
                self.stage.victim,
                AgreementSecret(secrets.token_bytes(32)),
            )
        except TransportError:
            raise Parted from None
        peer = HostilePeer(self, wire, secure)
        if reads:
            self.nursery.start_soon(peer.read)
        return peer

    async def leave(self) -> None:
        """Close all connections without a word."""
        for wire in self.wires:
            await trio.aclose_forcefully(wire)
        self.wires.clear()

    def feed(self, target: Target, seed: UserSeed, seen: tuple[CommitId, ...] | None = None) -> Feed:
        """A user's feed in a branch, which goes on over connections."""
        key = (target.topic, target.facts.branch_id, seed)
        if key not in self.feeds:
            self.feeds[key] = self.new_feed(target, seed, seen)
        return self.feeds[key]

    def new_feed(self, target: Target, seed: UserSeed, seen: tuple[CommitId, ...] | None = None) -> Feed:
        """The same from its beginning."""
        return Feed(target, seed, self.stage.seen if seen is None else seen, self.stage.ranks)
