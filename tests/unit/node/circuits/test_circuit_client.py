"""Circuits at their ends: the ordinary handshake and session run on them, and a relay that lies ends these alone."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import pytest
import trio
import trio.testing

from node.circuits.client import CircuitStream
from node.wire.transport import SecureStream, TransportError, accept, dial
from protocol.crypto.keys import AgreementSecret
from protocol.ids import PeerId, TopicKey
from protocol.limits.network import (
    CIRCUIT_WINDOW_SIZE,
    CIRCUITS_INCOMING_MAX,
    NODES_MET_MAX,
    WIDE_CIRCUIT_WINDOW_SIZE,
    WIDE_CIRCUITS_OF_NODE_MAX,
)
from protocol.session.messages import CircuitClose, CircuitData, CircuitOpen, Message
from tests.support.circuits import Recorder, Side, Star, Wire, key_of, seed_of
from tests.support.machine import fail_after


@dataclass
class Meeting:
    """Alice and Bob, or another, at one relay: they serve what comes."""

    star: Star
    name: str = "bob"
    served: list[SecureStream] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    is_served: trio.Event = field(default_factory=trio.Event)

    async def serve(self, stream: CircuitStream, _relay: PeerId) -> None:
        """Take a circuit as a node does, until it ends."""
        try:
            secure = await accept(stream, seed_of(self.name), AgreementSecret(b"b" * 32))
            self.served.append(secure)
            self.is_served.set()
            await trio.sleep_forever()
        except TransportError as error:
            self.failed.append(error.reason)

    async def open(self) -> CircuitStream:
        """Alice's circuit to Bob."""
        return await self.star.clients["alice"].open(self.star.relay_key, key_of(self.name))

    async def meet(self) -> tuple[SecureStream, SecureStream]:
        """A session over a circuit: Alice's end and Bob's."""
        self.is_served = trio.Event()
        ours = await dial(await self.open(), seed_of("alice"), key_of(self.name), AgreementSecret(b"a" * 32))
        await self.is_served.wait()
        return ours, self.served[-1]


@asynccontextmanager
async def _meeting() -> AsyncIterator[Meeting]:
    meeting = Meeting(Star())
    meeting.star.add_client("alice")
    bob = meeting.star.add_client("bob", meeting.serve)
    with fail_after(10):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(bob.run)
            await trio.testing.wait_all_tasks_blocked()
            yield meeting
            nursery.cancel_scope.cancel()


async def test_a_session_runs_over_a_circuit_and_ends_as_any_other() -> None:
    async with _meeting() as meeting:
        ours, theirs = await meeting.meet()
        assert (ours.peer_key, theirs.peer_key) == (key_of("bob"), key_of("alice"))
        await ours.send_frame(b"to bob")
        await theirs.send_frame(b"to alice")
        assert (await theirs.receive_frame(), await ours.receive_frame()) == (b"to bob", b"to alice")
        await ours.aclose()
        assert await theirs.receive_frame() is None, "what was sent before the end arrives"
        await trio.testing.wait_all_tasks_blocked()
        assert meeting.star.switch.count == 0


async def test_much_more_than_a_window_passes_and_little_is_held() -> None:
    async with _meeting() as meeting:
        ours, theirs = await meeting.meet()
        frames = [bytes([number]) * 700_000 for number in range(8)]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ours.send_frames, frames)
            await trio.testing.wait_all_tasks_blocked()
            passed = meeting.star.switch.totals.bytes_passed
            assert passed <= 2 * CIRCUIT_WINDOW_SIZE, "no more than was granted while nobody reads"
            assert [await theirs.receive_frame() for _ in frames] == frames


async def test_a_relay_cannot_read_what_passes() -> None:
    async with _meeting() as meeting:
        ours, theirs = await meeting.meet()
        await ours.send_frame(b"a secret of theirs")
        assert await theirs.receive_frame() == b"a secret of theirs"
        said = [one for sides in meeting.star.sides.values() for side in sides for one in side.said]
        assert sum(isinstance(one, CircuitData) for one in said) >= 8, (
            "the handshake, and a frame, on two sessions"
        )
        assert not [one for one in said if isinstance(one, CircuitData) and b"secret" in one.data]


def _swapped(data: bytes) -> list[bytes]:
    return [bytes([data[0] ^ 1]) + data[1:]]


def _dropped(_data: bytes) -> list[bytes]:
    return []


def _repeated(data: bytes) -> list[bytes]:
    return [data, data]


@pytest.mark.parametrize("change", [_swapped, _dropped, _repeated], ids=lambda one: one.__name__)
async def test_what_a_relay_changes_ends_the_session_and_nothing_else(
    change: Callable[[bytes], list[bytes]],
) -> None:
    async with _meeting() as meeting:
        ours, theirs = await meeting.meet()
        again, others = await meeting.meet()
        number = 2  # of the first circuit, on the relay's session with Bob
        lies = [True]

        def lie(message: Message) -> list[Message]:
            if not (isinstance(message, CircuitData) and message.circuit == number and lies):
                return [message]
            lies.clear()
            return [CircuitData(number, data) for data in change(message.data)]

        meeting.star.sides["bob"][1].change = lie
        await ours.send_frame(b"changed on its way")
        await ours.send_frame(b"the next")
        with pytest.raises(TransportError, match="not authentic"):
            for _ in range(3):
                await theirs.receive_frame()
        await again.send_frame(b"as before")
        assert await others.receive_frame() == b"as before"
        assert [side.closed for sides in meeting.star.sides.values() for side in sides] == [""] * 4


async def test_a_relay_that_leads_to_another_node_is_found_out_by_the_handshake() -> None:
    async with _meeting() as meeting:

        async def serve(stream: CircuitStream, _relay: PeerId) -> None:
            with suppress(TransportError):
                await accept(stream, seed_of("mallory"), AgreementSecret(b"m" * 32))

        def mislead(message: Message) -> list[Message]:
            if isinstance(message, CircuitOpen):
                return [CircuitOpen(message.circuit, meeting.star.address("mallory"))]
            return [message]

        mallory = meeting.star.add_client("mallory", serve)
        meeting.star.sides["alice"][0].change = mislead
        async with trio.open_nursery() as nursery:
            nursery.start_soon(mallory.run)
            await trio.testing.wait_all_tasks_blocked()
            with pytest.raises(TransportError) as caught:
                await meeting.meet()
            assert caught.value.reason == "wrong_peer_key"
            nursery.cancel_scope.cancel()


async def test_a_circuit_that_is_refused_says_why() -> None:
    async with _meeting() as meeting:
        alice = meeting.star.clients["alice"]
        with pytest.raises(TransportError, match="not_here") as caught:
            await alice.open(meeting.star.relay_key, key_of("nobody"))
        assert caught.value.reason == "circuit_refused"
        with pytest.raises(TransportError, match="not connected"):
            await alice.open(key_of("no relay"), key_of("bob"))


async def test_a_node_takes_no_circuit_that_is_for_another() -> None:
    async with _meeting() as meeting:
        meeting.star.sides["bob"][1].is_deaf = True
        meeting.star.sides["bob"][1].say(CircuitOpen(2, meeting.star.address("carol")))
        await trio.testing.wait_all_tasks_blocked()
        assert [one for one in meeting.star.sides["bob"][0].said if isinstance(one, CircuitClose)] == [
            CircuitClose(2, "not_taken")
        ]
        assert meeting.failed == []


async def test_a_relay_may_have_so_many_circuits_open_to_a_node_and_not_one_more() -> None:
    async with _meeting() as meeting:
        node, relay = meeting.star.sides["bob"]
        relay.is_deaf = True
        for number in range(1, CIRCUITS_INCOMING_MAX + 2):
            relay.say(CircuitOpen(2 * number, meeting.star.address("bob")))
        await trio.testing.wait_all_tasks_blocked()
        refused = [one for one in node.said if isinstance(one, CircuitClose)]
        assert refused == [CircuitClose(2 * CIRCUITS_INCOMING_MAX + 2, "not_taken")]


async def test_streams_end_with_the_connection_to_the_relay() -> None:
    async with _meeting() as meeting:
        ours, theirs = await meeting.meet()
        meeting.star.sides["alice"][0].cut()
        for secure in (ours, theirs):
            with pytest.raises(TransportError):
                await secure.receive_frame()
        with pytest.raises(TransportError):
            await ours.send_frame(b"too late")
        assert meeting.star.clients["alice"].relays == []


async def test_a_cancelled_circuit_is_closed() -> None:
    star = Star()
    client = star.add_client("alice")
    star.add("bob", Recorder())  # who does not answer
    with trio.move_on_after(0.01):
        await client.open(star.relay_key, key_of("bob"))
    assert star.switch.count == 0


async def test_a_relay_that_is_not_chosen_is_not_used() -> None:
    star = Star()
    client = star.add_client("alice")
    client._may_use = lambda _: False
    star.add("alice", client)
    assert star.sides["alice"][0].said == []


async def test_the_latest_named_nodes_are_remembered_and_all_go_with_the_relay() -> None:
    star = Star()
    client = star.add_client("alice")
    port = star.sides["alice"][0].port
    topic = TopicKey(b"t" * 32)
    nodes = tuple(PeerId(number.to_bytes(32, "big")) for number in range(NODES_MET_MAX))
    client.nodes_learned(port, topic, (key_of("alice"),))
    assert client.named_nodes == {}, "it is this node itself"
    client.nodes_learned(port, topic, nodes)
    client.nodes_learned(port, topic, nodes[:1])  # it comes again
    client.nodes_learned(port, topic, (key_of("bob"),))
    assert list(client.named_nodes) == [*nodes[2:], nodes[0], key_of("bob")]
    assert client.relays_to(nodes[0]) == [star.relay_key]
    star.sides["alice"][0].cut()
    assert client.named_nodes == {}


async def test_no_relay_has_what_another_named_forgotten() -> None:
    client = Star().add_client("alice")
    topic = TopicKey(b"t" * 32)
    flooding, other = (
        Side(Wire(), key_of(name), client, is_dialer=True).port for name in ("flooding", "other")
    )
    client.nodes_learned(other, topic, (key_of("bob"),))
    for number in range(2 * NODES_MET_MAX):
        client.nodes_learned(flooding, topic, (PeerId(number.to_bytes(32, "big")),))
    assert len(client.named_nodes) == NODES_MET_MAX
    assert client.relays_to(key_of("bob")) == [key_of("other")]


async def test_where_much_has_come_more_is_held_on_so_many_circuits() -> None:
    async with _meeting() as meeting:
        frames = [bytes([number]) * 700_000 for number in range(8)]
        sessions = [await meeting.meet() for _ in range(WIDE_CIRCUITS_OF_NODE_MAX + 1)]
        for ours, theirs in sessions:
            await _pass_on(ours, theirs, frames)
        held = [await _hold(meeting, ours, frames) for ours, _ in sessions]
        assert all(WIDE_CIRCUIT_WINDOW_SIZE // 2 < size <= WIDE_CIRCUIT_WINDOW_SIZE for size in held[:-1])
        assert held[-1] <= CIRCUIT_WINDOW_SIZE


async def test_all_passes_both_ways() -> None:
    async with _meeting() as meeting:
        ours, theirs = await meeting.meet()
        frames = [bytes([number]) * 700_000 for number in range(4)]
        await _pass_on(ours, theirs, frames)
        await _pass_on(theirs, ours, frames)


async def test_where_the_relay_has_no_room_for_another_wide_circuit_all_passes() -> None:
    async with _meeting() as meeting:
        carol = Meeting(meeting.star, "carol")
        client = meeting.star.add_client("carol", carol.serve)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.run)
            await trio.testing.wait_all_tasks_blocked()
            frames = [bytes([number]) * 700_000 for number in range(8)]
            for _ in range(WIDE_CIRCUITS_OF_NODE_MAX):
                await _pass_on(*await meeting.meet(), frames)
            ours, theirs = await carol.meet()
            await _pass_on(ours, theirs, frames)
            assert await _hold(meeting, ours, frames) <= CIRCUIT_WINDOW_SIZE
            nursery.cancel_scope.cancel()


async def test_a_reader_of_a_circuit_gives_other_tasks_a_turn_at_each_read() -> None:
    async with _meeting() as meeting:
        stream = await meeting.open()
        stream.note_received(b"first")
        stream.note_received(b"second")
        with trio.testing.assert_checkpoints():
            assert await stream.receive_some(5) == b"first"
        assert await stream.receive_some(3) == b"sec"
        assert await stream.receive_some() == b"ond"


async def test_what_came_in_parts_is_read_together_up_to_what_is_asked_for() -> None:
    async with _meeting() as meeting:
        stream = await meeting.open()
        for part in (b"ab", b"cd", b"efg"):
            stream.note_received(part)
        assert await stream.receive_some(5) == b"abcd"
        assert await stream.receive_some(2) == b"ef"
        assert await stream.receive_some(2) == b"g"


async def _pass_on(ours: SecureStream, theirs: SecureStream, frames: list[bytes]) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ours.send_frames, frames)
        assert [await theirs.receive_frame() for _ in frames] == frames


async def _hold(meeting: Meeting, ours: SecureStream, frames: list[bytes]) -> int:
    """Bytes that pass while nobody reads."""
    before = meeting.star.switch.totals.bytes_passed
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ours.send_frames, frames)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    return meeting.star.switch.totals.bytes_passed - before
