"""Two whole replicas of one topic for benchmarks, and a connection between them on which everything is counted.

Real stores, real sessions, real handshakes and encryption; between them a memory stream on which every byte takes a
fixed time, as on a long line. Both replicas live in one process.
"""

import math
import os
import random
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import trio
import trio.testing
from sqlalchemy import select

from benchmarks.common import STORE_KEY, clock_ms, note, write_history, writers_topic
from node.authoring.author import Author
from node.authoring.drafting import Draft
from node.ingest.replica import Replica
from node.runtime.blocking import threads
from node.sync.connection import Connection
from node.sync.hub import Hub
from node.sync.session_queries import topic_set
from node.wire.transport import SecureStream, accept, dial
from protocol.crypto.hashing import blind_topic
from protocol.crypto.keys import AgreementSecret, NodeSeed, UserSeed
from protocol.crypto.signing import public_key
from protocol.formats.body import Grant, Permission
from protocol.formats.content import Post
from protocol.ids import BlindTopic
from protocol.session.messages import Message, Publications, Reconcile, Summary, encode_message
from storage.commits.heads import load_heads
from storage.repos.epochs import Topic
from storage.repos.repos import Branch
from storage.schema.schema import commits

_NOT_JOINED = BlindTopic(b"")

ALICE: Final = UserSeed(b"a" * 32)
BOB: Final = UserSeed(b"b" * 32)
FRAME_OVERHEAD: Final = 36
"""Bytes that encryption adds to a frame: an encrypted length, and a tag."""
_WRITTEN_AT_ONCE: Final = 1000
_LOOK_SECONDS: Final = 0.005


class Side:
    """One replica with an author of its own."""

    def __init__(self, folder: Path, seed: UserSeed) -> None:
        self.seed = seed
        self.replica = Replica(folder, STORE_KEY)
        self.author = Author(self.replica, seed, clock_ms)
        self.hub = Hub(self.replica, threads(), clock_ms)

    @property
    def branch(self) -> Branch:
        """The branch called main."""
        return next(one for one in self.replica.branches.values() if one.name == "main")

    @property
    def topic(self) -> Topic:
        """The topic on which both write."""
        return writers_topic(self.replica, self.replica.repos[self.branch.repo_num])

    def digest(self) -> bytes:
        """Return the set digest of its topic."""
        with self.replica.database.read() as connection:
            return self.replica.sketches.digest(connection, topic_set(self.topic, of_publications=False))

    def write_tail(self, count: int) -> None:
        """Write a chain on the branch's heads."""
        for start in range(0, count, _WRITTEN_AT_ONCE):
            drafts = [
                Draft(Post(f"late {number}")) for number in range(start, min(start + _WRITTEN_AT_ONCE, count))
            ]
            self._write(drafts)

    def write_spread(self, count: int, chance: random.Random, upto: int) -> None:
        """Write commits that each ack one of the first `upto` of the branch, so that each is a head of its own."""
        with self.replica.database.read() as connection:
            query = select(commits.c.commit_id).where(commits.c.branch_num == self.branch.num)
            old = list(connection.execute(query.order_by(commits.c.num).limit(upto)).scalars())
        drafts = [
            Draft(Post(f"apart {number}"), (ack,)) for number, ack in enumerate(chance.sample(old, count))
        ]
        for start in range(0, count, _WRITTEN_AT_ONCE):
            self._write(drafts[start : start + _WRITTEN_AT_ONCE])

    def merge(self) -> None:
        """Write until the branch has one head."""
        while True:
            self._write([Draft(Post("merge"))])
            with self.replica.database.read() as connection:
                if len(load_heads(connection, self.branch.num, 2)) == 1:
                    return

    def _write(self, drafts: Sequence[Draft]) -> None:
        _, ingested = self.author.write_many(self.branch, lambda _: drafts)
        self.hub.announce(ingested)


def build(folder: Path, commit_count: int) -> None:
    """Make a store with a branch of so many commits, of which alice and bob are members, unless it is there already."""
    if (folder / "complete").exists():
        return
    began = time.perf_counter()
    shutil.rmtree(folder, ignore_errors=True)
    replica, repo, _ = write_history(folder / "store", commit_count, ALICE)
    author = Author(replica, ALICE, clock_ms)
    author.write(replica.root_branch(repo), Grant(public_key(BOB), Permission.WRITE))
    replica.close()
    (folder / "complete").touch()
    note(f"a store of {commit_count} commits made in {time.perf_counter() - began:.0f} s")


@dataclass(slots=True)
class Said:
    """One message: who said it, when (seconds since the connection was there), and what it was."""

    by: str
    at: float
    message: Message
    size: int


@dataclass(slots=True)
class Meeting:
    """Traffic of one connection, and processor time until the first publication and until the end."""

    said: list[Said] = field(default_factory=list)
    cpu_began: float = 0.0
    cpu_compared: float = 0.0
    seconds: float = 0.0
    cpu_seconds: float = 0.0

    blind: BlindTopic = _NOT_JOINED
    """The topic as it is named on this connection."""

    def comparing(self) -> list[Said]:
        """Return what compared the topic."""
        return [
            one
            for one in self.said
            if isinstance(one.message, Summary | Reconcile) and one.message.topic == self.blind
        ]


class _CountedConnection(Connection):
    """A connection that notes what it says."""

    def count(self, by: str, meeting: Meeting) -> None:
        """Start to count from now on."""
        self._by, self._meeting = by, meeting

    def say(self, message: Message) -> None:
        meeting = self._meeting
        is_payload = isinstance(message, Publications)
        if is_payload and not meeting.cpu_compared:
            meeting.cpu_compared = time.process_time()
        meeting.said.append(
            Said(self._by, trio.current_time(), message, 0 if is_payload else len(encode_message(message)))
        )
        super().say(message)


class _LongStream(trio.abc.Stream):
    """A stream on which what is sent takes its time to arrive."""

    def __init__(self, stream: trio.abc.Stream, delay: float, nursery: trio.Nursery) -> None:
        self._stream = stream
        self._delay = delay
        self._send, receive = trio.open_memory_channel[tuple[float, bytes]](math.inf)
        nursery.start_soon(self._carry, receive)

    async def _carry(self, receive: trio.MemoryReceiveChannel[tuple[float, bytes]]) -> None:
        async for due, data in receive:
            await trio.sleep_until(due)
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                await self._stream.send_all(data)

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._send.send((trio.current_time() + self._delay, bytes(data)))

    async def wait_send_all_might_not_block(self) -> None:
        await trio.lowlevel.checkpoint()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        return await self._stream.receive_some(max_bytes)

    async def aclose(self) -> None:
        await self._stream.aclose()


async def meet(alice: Side, bob: Side, delay: float) -> Meeting:
    """Let two sides converse until they hold the same and all is said; messages take `delay` seconds."""
    meeting = Meeting()
    async with trio.open_nursery() as nursery:
        near, far = (_LongStream(one, delay, nursery) for one in trio.testing.memory_stream_pair())
        streams: dict[str, SecureStream] = {}

        async def open_side(name: str) -> None:
            if name == "bob":
                streams[name] = await dial(
                    near,
                    NodeSeed(bob.seed),
                    public_key(NodeSeed(alice.seed)),
                    AgreementSecret(os.urandom(32)),
                )
            else:
                streams[name] = await accept(far, NodeSeed(alice.seed), AgreementSecret(os.urandom(32)))

        async with trio.open_nursery() as opening:
            for name in ("alice", "bob"):
                opening.start_soon(open_side, name)
        began = trio.current_time()
        meeting.blind = blind_topic(alice.topic.topic, streams["alice"].session_id)
        meeting.cpu_began = time.process_time()
        connections = [
            _CountedConnection(side.hub, streams[name]) for name, side in (("alice", alice), ("bob", bob))
        ]
        for connection, name in zip(connections, ("alice", "bob"), strict=True):
            connection.count(name, meeting)
        for connection in connections:
            nursery.start_soon(connection.run)
        while not _are_done(connections):  # noqa: ASYNC110  # what is asked has no event
            await trio.sleep(max(delay / 10, _LOOK_SECONDS))
        meeting.seconds = trio.current_time() - began
        meeting.cpu_seconds = time.process_time() - meeting.cpu_began
        for one in meeting.said:
            one.at -= began
        nursery.cancel_scope.cancel()
    assert alice.digest() == bob.digest(), "they agree"
    return meeting


def _are_done(connections: Sequence[Connection]) -> bool:
    topics = [progress for connection in connections for progress in connection.topics]
    return bool(topics) and all(one.state == "in sync" for one in topics)
