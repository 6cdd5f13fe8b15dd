"""However a connection ends, the peer reads the reason before it does; and what is only unknown ends none."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest
import trio
from trio.testing import MockClock, memory_stream_pair

from node.network.network import Network
from node.network.peer_state import PeerState
from node.sync.addresses import AddressSource
from node.sync.block_requests import NotFetched
from node.sync.connection import Connection, Ended
from node.wire.transport import SecureStream, accept, dial
from protocol.codec import DecodeError, encode
from protocol.crypto.keys import AgreementSecret, NodeSeed
from protocol.crypto.signing import public_key
from protocol.ids import BlockId
from protocol.limits.network import STRANGER_IDLE_SECONDS
from protocol.limits.peers import OUTGOING_COUNT_MAX
from protocol.session.messages import Fetch, Goodbye, KeepAlive, Message, Publications, decode_message
from protocol.session.outputs import Close
from protocol.session.session import Session
from storage.engine.database import StorageError
from storage.repos.deletion import forget_repo
from tests.support.builders import writing_topic
from tests.support.machine import fail_after
from tests.support.nodes import Node, open_nodes
from tests.support.strangers import Stranger, met

SEED: Final = NodeSeed(b"s" * 32)


def _connection(node: Node) -> Connection:
    (found,) = node.hub.sources
    assert isinstance(found, Connection)
    return found


async def _topic_forgotten(node: Node, stranger: Stranger) -> None:
    """A topic that both follow is here no more."""
    repo, _ = node.create_repo()
    node.hub.topics_changed()
    await stranger.compare(node.epoch().topic)
    await trio.sleep(1)
    with node.replica.change() as change:
        forget_repo(change.connection, repo.num)
        node.replica.forget_membership(repo.repo_id)
    node.hub.topics_changed()


async def _defect(node: Node, _: Stranger) -> None:
    """The hub could not tell the connection of something."""
    _connection(node).missed()


def _network(node: Node, stranger: Stranger) -> tuple[Network, PeerState]:
    """The node's connection as one of a network."""
    network = Network(node.hub, node.seed, lambda: 0.0)
    state = network.new_state(
        stranger.stream.peer_key, "127.0.0.1:9", "in", "connected", AddressSource.INCOMING
    )
    state.connection = _connection(node)
    network.inbound.append(state)
    return network, state


async def _slept(node: Node, stranger: Stranger) -> None:
    """The machine has slept longer than peers wait."""
    network, _ = _network(node, stranger)
    network._wake()


async def _moved(node: Node, stranger: Stranger) -> None:
    """The machine has lost the address of the connection, and not others."""
    network, state = _network(node, stranger)
    state.local_host = "10.0.0.1"
    network._move({"10.0.0.2"})
    assert state.connection is not None
    assert not state.connection.is_ending()
    network._move({"10.0.0.1"})


async def _storage_failed(node: Node, stranger: Stranger) -> None:
    """What the peer asks for cannot be read."""
    node.create_repo()
    node.hub.topics_changed()
    topic = await stranger.compare(node.epoch().topic)
    await trio.sleep(1)

    async def fail(*_: object) -> None:
        raise StorageError("disk full")

    node.hub.look = fail  # type: ignore[method-assign,assignment]  # as a full disk would
    await stranger.say(Fetch(topic, (BlockId(b"b" * 32),)))


async def _peer_does_not_answer(node: Node, stranger: Stranger) -> None:
    """It was asked for a block, and says only that it is alive."""
    node.create_repo()
    node.hub.topics_changed()
    await stranger.compare(node.epoch().topic)
    await trio.sleep(1)
    connection = _connection(node)

    async def ask() -> None:
        with pytest.raises(NotFetched):
            await connection.fetch(node.epoch().topic, BlockId(b"w" * 32))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        while not connection.is_ending():
            await trio.sleep(20)
            await stranger.say(KeepAlive())


async def _peer_does_not_read(node: Node, _: Stranger) -> None:
    """More waits to be sent than may."""
    connection = _connection(node)
    connection.outgoing.count = OUTGOING_COUNT_MAX
    connection.say(KeepAlive())


async def _no_common_topic(__: Node, stranger: Stranger) -> None:
    """A stranger that says nothing but that it is alive."""
    for _ in range(int(STRANGER_IDLE_SECONDS) // 20):
        await trio.sleep(20)
        await stranger.say(KeepAlive())


async def _over_budget(node: Node, _: Stranger) -> None:
    _connection(node).charge(10_000)


async def _too_many_unknown_messages(_: Node, stranger: Stranger) -> None:
    await stranger.stream.send_frames([encode(("hello1", 7))] * 5)


async def _closed(_: Node, stranger: Stranger) -> None:
    """The peer ends its direction without a word."""
    await stranger.stream._sending.end()


async def _frame_too_large(_: Node, stranger: Stranger) -> None:
    sending = stranger.stream._sending
    await sending._stream.send_all(sending._cipher.encrypt((2**31).to_bytes(4, "big")))


async def _bad_frame(_: Node, stranger: Stranger) -> None:
    """Somebody changes what is on the line."""
    await stranger.stream._sending._stream.send_all(bytes(20))


async def _bad_message(_: Node, stranger: Stranger) -> None:
    await stranger.stream.send_frame(b"\xff")


async def _idle(_: Node, __: Stranger) -> None:
    """Nothing comes."""


async def _duplicate(node: Node, _: Stranger) -> None:
    _connection(node).part("duplicate")


ENDS: Final[dict[str, Callable[[Node, Stranger], Awaitable[None]]]] = {
    "topic_forgotten": _topic_forgotten,
    "defect": _defect,
    "slept": _slept,
    "moved": _moved,
    "storage_failed": _storage_failed,
    "peer_does_not_answer": _peer_does_not_answer,
    "peer_does_not_read": _peer_does_not_read,
    "no_common_topic": _no_common_topic,
    "over_budget": _over_budget,
    "too_many_unknown_messages": _too_many_unknown_messages,
    "closed": _closed,
    "frame_too_large": _frame_too_large,
    "bad_frame": _bad_frame,
    "bad_message:unknown_message": _bad_message,
    "idle": _idle,
    "duplicate": _duplicate,
}


@pytest.mark.parametrize("reason", ENDS)
async def test_the_peer_reads_the_reason_before_the_end(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    monkeypatch.setattr("node.sync.connection.UNKNOWN_MESSAGES_AT_ONCE_MAX", 4)
    heard: list[str] = []
    with open_nodes(tmp_path, "alice") as (alice,):
        async with met(alice) as stranger:
            await trio.testing.wait_all_tasks_blocked()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(ENDS[reason], alice, stranger)
                with fail_after(600):
                    heard.append((await stranger.hear(Goodbye)).reason)
                assert await stranger.stream.receive_frame() is None, "the end comes after it"
                nursery.cancel_scope.cancel()
    assert heard == [reason]
    assert stranger.ended == Ended(reason)


@pytest.mark.parametrize("reason", ["unasked_summary", "too_many_frames", "late_relay"])
async def test_what_the_session_ends_for_is_said(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        async with met(alice) as stranger:
            await trio.testing.wait_all_tasks_blocked()
            monkeypatch.setattr(Session, "handle", lambda *_: [Close(reason)])
            await stranger.say(KeepAlive())
            assert await stranger.hear(Goodbye) == Goodbye(reason)
            assert await stranger.stream.receive_frame() is None
    assert stranger.ended == Ended(reason)


@asynccontextmanager
async def _running(node: Node) -> AsyncIterator[tuple[SecureStream, trio.CancelScope]]:
    """A peer's stream to a node, whose side the scope cancels."""
    ours, theirs = memory_stream_pair()
    made: list[SecureStream] = []

    async def dial_it() -> None:
        made.append(await dial(ours, SEED, node.key, AgreementSecret(b"d" * 32)))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(dial_it)
        accepted = await accept(theirs, node.seed, AgreementSecret(b"a" * 32))
    scope = trio.CancelScope()

    async def run() -> None:
        with scope:
            await Connection(node.hub, accepted).run()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        await trio.testing.wait_all_tasks_blocked()
        yield made[0], scope


async def _hear_goodbye(stream: SecureStream) -> str:
    while True:
        frame = await stream.receive_frame()
        assert frame is not None, "it ended without a reason"
        message = decode_message(frame)
        if isinstance(message, Goodbye):
            assert await stream.receive_frame() is None
            return message.reason


async def test_a_node_that_stops_says_so(tmp_path: Path, autojump_clock: MockClock) -> None:
    with fail_after(60), open_nodes(tmp_path, "alice") as (alice,):
        async with _running(alice) as (stream, scope):
            scope.cancel()
            assert await _hear_goodbye(stream) == "stopping"


async def test_a_connection_that_fails_says_so(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    heard: list[str] = []
    with fail_after(60), open_nodes(tmp_path, "alice") as (alice,), pytest.raises(ExceptionGroup):
        async with _running(alice) as (stream, _):
            monkeypatch.setattr(Session, "handle", fail)
            await stream.send_frame(encode(KeepAlive()))
            with trio.CancelScope(shield=True):
                heard.append(await _hear_goodbye(stream))
    assert heard == ["defect"]


@pytest.mark.parametrize("reason", ["banned", "too_many_connections"])
async def test_a_peer_that_is_not_let_in_is_told_why(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    with fail_after(60), open_nodes(tmp_path, "alice") as (alice,):
        monkeypatch.setattr("node.network.network.CONNECTIONS_MAX", 0)
        network = Network(alice.hub, alice.seed, lambda: 0.0)
        if reason == "banned":
            network.banned = {public_key(SEED)}
        ours, theirs = memory_stream_pair()
        async with trio.open_nursery() as nursery:

            async def serve() -> None:
                secure = await accept(theirs, alice.seed, AgreementSecret(b"a" * 32))
                await network._serve_proven(secure, "10.0.0.1:9")

            nursery.start_soon(serve)
            stream = await dial(ours, SEED, alice.key, AgreementSecret(b"d" * 32))
            assert await _hear_goodbye(stream) == reason


UNKNOWN: Final[dict[str, bytes]] = {
    "a new kind": encode(("hello1", 7)),
    "a new version of a kind": encode(("receipt2", b"t" * 32)),
    "a new kind of any content": b"\x92\xa6hello1\xc1",
    "a new field": encode(("alive1", "since when")),
    "many new fields": encode(("alive1", *range(14))),
}


@pytest.mark.parametrize("what", UNKNOWN)
async def test_what_a_newer_version_says_is_passed_over(
    tmp_path: Path, autojump_clock: MockClock, what: str
) -> None:
    with fail_after(600), open_nodes(tmp_path, "alice") as (alice,):
        _, branch = alice.create_repo()
        async with met(alice) as stranger:
            await stranger.stream.send_frame(UNKNOWN[what])
            await stranger.join(writing_topic(alice.replica, branch).topic)
            await stranger.stream.send_frames([UNKNOWN[what]] * 3)
            alice.write(branch, "after it")
            await stranger.hear(Publications)
            await stranger.say(Goodbye("bye"))
    assert stranger.ended == Ended("peer_left")


async def test_a_field_behind_the_known_ones_changes_nothing_of_them(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with fail_after(600), open_nodes(tmp_path, "alice") as (alice,):
        async with met(alice) as stranger:
            await stranger.stream.send_frame(encode(("goodbye1", "bye", 7)))
            assert await stranger.hear(Goodbye) == Goodbye("peer_left")


async def test_unknown_messages_are_signs_of_life_and_few_a_second_are_passed_over_for_ever(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("node.sync.connection.UNKNOWN_MESSAGES_AT_ONCE_MAX", 4)
    with fail_after(6000), open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        async with met(alice) as stranger:
            await stranger.join(alice.epoch().topic)
            for _ in range(100):
                await stranger.stream.send_frame(encode(("hello1", 7)))
                await trio.sleep(60)
            assert stranger.ended is None
            assert not _connection(alice).is_ending()
            await stranger.say(Goodbye("bye"))
    assert stranger.ended == Ended("peer_left")


def test_surplus_is_taken_behind_the_fields_alone() -> None:
    known: Message = Goodbye("bye")
    assert decode_message(encode(("goodbye1", "bye", [1, {}], b"x"))) == known
    for wrong in (
        encode(("goodbye1", "bye", 7)) + b"\x00",  # behind the array
        encode(("goodbye1", "bye", 7))[:-1],  # cut
        b"\x93\xa8goodbye1\xd9\x03bye\x07",  # a known field in another form
        encode(("goodbye1",)),
    ):
        with pytest.raises(DecodeError):
            decode_message(wrong)
