"""The secure stream over memory streams and loopback TCP: order, closing, deadlines, cancellation."""

from contextlib import suppress
from functools import partial

import pytest
import trio
import trio.testing

from node.wire.transport import SecureStream, TransportError, accept, dial
from protocol.crypto.keys import UserSeed
from protocol.crypto.signing import public_key
from protocol.ids import PeerId
from protocol.limits.formats import KIB
from protocol.limits.peers import FRAME_SIZE_MAX, FRAMES_WITHOUT_YIELD_MAX, HANDSHAKE_TIMEOUT_SECONDS
from tests.support.machine import fail_after
from tests.support.streams import (
    ACCEPTOR_EPHEMERAL,
    ACCEPTOR_SEED,
    DIALER_EPHEMERAL,
    DIALER_SEED,
    FRAMES,
    HANDSHAKE_WIRE_SIZE,
    PassingStream,
    Recording,
    ScriptedStream,
    connected,
    replay,
)

DEADLINE_SECONDS = 20


async def test_frames_pass_in_order_both_ways_and_end_cleanly() -> None:
    with fail_after(DEADLINE_SECONDS):
        dialer, acceptor = await connected()
        assert dialer.peer_key == public_key(ACCEPTOR_SEED)
        assert acceptor.peer_key == public_key(DIALER_SEED)
        assert dialer.session_id == acceptor.session_id
        await dialer.send_frames(FRAMES)
        await dialer.send_frames([])
        await dialer.send_frame(b"last")
        await acceptor.send_frame(b"back")
        assert [await acceptor.receive_frame() for _ in range(4)] == [*FRAMES, b"last"]
        assert await dialer.receive_frame() == b"back"
        await dialer.aclose()
        assert await acceptor.receive_frame() is None
        assert await acceptor.receive_frame() is None
        await acceptor.aclose()


async def test_loopback_tcp() -> None:
    received: list[bytes | None] = []
    big = bytes(range(256)) * (FRAME_SIZE_MAX // 256)

    async def serve(stream: trio.SocketStream) -> None:
        secure = await accept(stream, ACCEPTOR_SEED, ACCEPTOR_EPHEMERAL)
        while (frame := await secure.receive_frame()) is not None:
            received.append(frame)
            await secure.send_frame(frame)
        await secure.aclose()

    with fail_after(DEADLINE_SECONDS):
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(trio.serve_listeners, serve, listeners))
            stream = await trio.testing.open_stream_to_socket_listener(listeners[0])
            secure = await dial(stream, DIALER_SEED, public_key(ACCEPTOR_SEED), DIALER_EPHEMERAL)
            for frame in (b"small", big):
                await secure.send_frame(frame)
                assert await secure.receive_frame() == frame
            await secure.aclose()
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
    assert received == [b"small", big]


OTHER_KEY, OUR_KEY = public_key(UserSeed(b"\x77" * 32)), public_key(ACCEPTOR_SEED)
MIRRORED_KEY = OUR_KEY[:31] + bytes([OUR_KEY[31] ^ 0x80])


@pytest.mark.parametrize(
    "key, told", [(OTHER_KEY, "handshake_failed"), (MIRRORED_KEY, "closed")], ids=["other", "mirrored"]
)
async def test_wrong_peer_key_is_told_to_both_sides(key: bytes, told: str) -> None:
    ours, theirs = trio.testing.memory_stream_pair()
    reasons: dict[str, str] = {}

    async def run_accept() -> None:
        with pytest.raises(TransportError) as error:
            await accept(theirs, ACCEPTOR_SEED, ACCEPTOR_EPHEMERAL)
        reasons["acceptor"] = error.value.reason

    with fail_after(DEADLINE_SECONDS):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run_accept)
            with pytest.raises(TransportError) as error:
                await dial(ours, DIALER_SEED, PeerId(key), DIALER_EPHEMERAL)
    assert error.value.reason == "wrong_peer_key"
    assert reasons["acceptor"] == told


@pytest.mark.parametrize("peer_key", [bytes(32), b"", b"\xff" * 32])
async def test_impossible_peer_key_is_refused_before_a_byte_is_sent(peer_key: PeerId) -> None:
    stream = ScriptedStream(b"")
    with pytest.raises(TransportError) as error:
        await dial(stream, DIALER_SEED, peer_key, DIALER_EPHEMERAL)
    assert error.value.reason == "wrong_peer_key"
    assert stream.is_closed
    assert not stream.sent


async def test_unfit_frames_are_the_callers_fault_and_nothing_is_sent() -> None:
    wire = bytearray()
    dialer, acceptor = await connected(wire=wire)
    before = len(wire)
    for frames in ([b""], [b"ok", b""], [b"ok", bytes(FRAME_SIZE_MAX + 1)]):
        with pytest.raises(ValueError, match="a frame has 1 to"):
            await dialer.send_frames(frames)
    assert len(wire) == before
    await dialer.send_frame(b"still usable")
    assert await acceptor.receive_frame() == b"still usable"


async def test_coalesced_frames_are_one_write() -> None:
    wire = bytearray()
    writes: list[int] = []

    class Counting(Recording):
        async def send_all(self, data: bytes | bytearray | memoryview) -> None:
            writes.append(len(data))
            await super().send_all(data)

    def make() -> tuple[trio.abc.Stream, trio.abc.Stream]:
        ours, theirs = trio.testing.memory_stream_pair()
        return Counting(ours, wire), theirs

    dialer, acceptor = await connected(make)
    writes.clear()
    await dialer.send_frames([b"x" * 64] * 1000)
    assert writes == [100 * 1000]
    assert [await acceptor.receive_frame() for _ in range(1000)] == [b"x" * 64] * 1000


async def test_two_big_frames_both_ways_at_once() -> None:
    dialer, acceptor = await connected(trio.testing.lockstep_stream_pair)
    frames = [bytes([number]) * FRAME_SIZE_MAX for number in range(2)]
    received: dict[str, list[bytes | None]] = {"dialer": [], "acceptor": []}

    async def receive(name: str, secure: SecureStream) -> None:
        for _ in frames:
            received[name].append(await secure.receive_frame())

    with fail_after(DEADLINE_SECONDS):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(dialer.send_frames, frames)
            nursery.start_soon(acceptor.send_frames, frames)
            nursery.start_soon(receive, "dialer", dialer)
            nursery.start_soon(receive, "acceptor", acceptor)
    assert received == {"dialer": frames, "acceptor": frames}


async def test_many_tasks_may_send() -> None:
    dialer, acceptor = await connected(trio.testing.lockstep_stream_pair)
    received: set[bytes | None] = set()
    with fail_after(DEADLINE_SECONDS):
        async with trio.open_nursery() as nursery:
            for number in range(20):
                nursery.start_soon(dialer.send_frames, [bytes([number]) * 100])
            for _ in range(20):
                received.add(await acceptor.receive_frame())
    assert received == {bytes([number]) * 100 for number in range(20)}


@pytest.mark.parametrize("side", ["dial", "accept"])
async def test_silent_peer_times_out(side: str, autojump_clock: trio.testing.MockClock) -> None:
    ours, _theirs = trio.testing.memory_stream_pair()
    started = trio.current_time()
    with pytest.raises(TransportError) as error:
        if side == "dial":
            await dial(ours, DIALER_SEED, public_key(ACCEPTOR_SEED), DIALER_EPHEMERAL)
        else:
            await accept(ours, ACCEPTOR_SEED, ACCEPTOR_EPHEMERAL)
    assert error.value.reason == "timeout"
    assert trio.current_time() - started == pytest.approx(HANDSHAKE_TIMEOUT_SECONDS)
    with pytest.raises(trio.ClosedResourceError):
        await ours.send_all(b"x")


async def test_trickling_peer_gains_no_time(autojump_clock: trio.testing.MockClock) -> None:
    ours, theirs = trio.testing.memory_stream_pair()

    async def trickle() -> None:
        with suppress(trio.BrokenResourceError):
            for byte in b"\x00\x30" + bytes(48):
                await theirs.send_all(bytes([byte]))
                await trio.sleep(1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(trickle)
        with pytest.raises(TransportError) as error:
            await accept(ours, ACCEPTOR_SEED, ACCEPTOR_EPHEMERAL)
        nursery.cancel_scope.cancel()
    assert error.value.reason == "timeout"


async def test_cancelled_handshake_closes_the_stream(autojump_clock: trio.testing.MockClock) -> None:
    ours, _theirs = trio.testing.memory_stream_pair()
    with trio.move_on_after(1) as scope:
        await accept(ours, ACCEPTOR_SEED, ACCEPTOR_EPHEMERAL)
    assert scope.cancelled_caught
    with pytest.raises(trio.ClosedResourceError):
        await ours.send_all(b"x")


async def test_cancelled_receive_loses_nothing(autojump_clock: trio.testing.MockClock) -> None:
    wire = bytearray()
    dialer, _ = await connected(wire=wire)
    await dialer.send_frames(FRAMES)
    ours, theirs = trio.testing.memory_stream_pair()
    await theirs.send_all(wire[:HANDSHAKE_WIRE_SIZE])
    secure = await accept(ours, ACCEPTOR_SEED, ACCEPTOR_EPHEMERAL)
    frames: list[bytes | None] = []
    for byte in wire[HANDSHAKE_WIRE_SIZE:]:
        await theirs.send_all(bytes([byte]))
        with trio.move_on_after(1):
            frames.append(await secure.receive_frame())
    assert frames == FRAMES


async def test_cancelled_send_is_the_last(autojump_clock: trio.testing.MockClock) -> None:
    dialer, acceptor = await connected(trio.testing.lockstep_stream_pair)
    with trio.move_on_after(1) as scope:
        await dialer.send_frame(b"nobody reads this")
    assert scope.cancelled_caught
    with pytest.raises(TransportError) as error:
        await dialer.send_frame(b"nor this")
    assert error.value.reason == "closed"
    await dialer.aclose()
    # Whatever part of the frame the stream had taken arrives, but never a clean end.
    with pytest.raises(TransportError) as error:
        while await acceptor.receive_frame() is not None:
            continue
        pytest.fail("a clean end after a cancelled send")
    assert error.value.reason in ("closed", "truncated")


async def test_close_does_not_wait_for_a_peer_that_does_not_read(
    autojump_clock: trio.testing.MockClock,
) -> None:
    dialer, _acceptor = await connected(trio.testing.lockstep_stream_pair)
    reasons = []

    async def send() -> None:
        with pytest.raises(TransportError) as error:
            await dialer.send_frame(b"stuck")
        reasons.append(error.value.reason)

    started = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(send)
        await trio.testing.wait_all_tasks_blocked()
        await dialer.aclose()
    assert reasons == ["closed"]
    assert trio.current_time() - started <= 1.01


async def test_close_ends_cleanly_even_when_cancelled() -> None:
    dialer, acceptor = await connected()
    with trio.CancelScope() as scope:
        scope.cancel()
        await dialer.aclose()
    assert await acceptor.receive_frame() is None


async def test_use_after_close_and_broken_streams_are_transport_errors() -> None:
    dialer, acceptor = await connected()
    await dialer.aclose()
    await dialer.aclose()
    with pytest.raises(TransportError) as error:
        await dialer.send_frame(b"late")
    assert error.value.reason == "closed"
    with pytest.raises(TransportError) as error:
        await dialer.receive_frame()
    assert error.value.reason == "closed"
    with pytest.raises(TransportError) as error:
        await acceptor.send_frame(b"to nobody")
    assert error.value.reason == "closed"


async def test_other_tasks_get_turns_while_one_read_brings_many_frames() -> None:
    with fail_after(DEADLINE_SECONDS):
        dialer, acceptor = await connected()
        count = 10 * FRAMES_WITHOUT_YIELD_MAX
        await dialer.send_frames([b"k"] * count)
        turns, received = 0, 0

        async def look_on() -> None:
            nonlocal turns
            while received < count:
                turns += 1
                await trio.lowlevel.checkpoint()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(look_on)
            for _ in range(count):
                assert await acceptor.receive_frame() == b"k"
                received += 1
        assert turns >= 9


async def test_frames_of_one_read_are_taken_without_waiting() -> None:
    with fail_after(DEADLINE_SECONDS):
        dialer, acceptor = await connected()
        assert acceptor.take_frame() is None
        await dialer.send_frames([b"k"] * (FRAMES_WITHOUT_YIELD_MAX + 1))
        await dialer.aclose()
        assert acceptor.take_frame() is None  # nothing has been read
        assert await acceptor.receive_frame() == b"k"
        taken = [acceptor.take_frame() for _ in range(FRAMES_WITHOUT_YIELD_MAX)]
        assert taken == [b"k"] * (FRAMES_WITHOUT_YIELD_MAX - 1) + [None]  # other tasks are due
        assert await acceptor.receive_frame() == b"k"
        assert await acceptor.receive_frame() is None
        assert acceptor.take_frame() is None


async def test_a_fault_of_the_peer_shows_also_where_nothing_is_awaited() -> None:
    with fail_after(DEADLINE_SECONDS):
        ours, theirs = trio.testing.memory_stream_pair()
        dialer, acceptor = await connected(lambda: (ours, theirs))
        await dialer.send_frame(b"first")
        await ours.send_all(b"x" * 20)
        assert await acceptor.receive_frame() == b"first"
        for _ in range(2):
            with pytest.raises(TransportError, match="not authentic"):
                acceptor.take_frame()


async def test_more_is_read_at_a_time_while_more_waits() -> None:
    asked: list[int | None] = []

    class Noting(PassingStream):
        async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
            asked.append(max_bytes)
            return await super().receive_some(max_bytes)

    with fail_after(DEADLINE_SECONDS):
        ours, theirs = trio.testing.memory_stream_pair()
        dialer, acceptor = await connected(lambda: (ours, Noting(theirs)))
        asked.clear()
        for size in (400 * KIB, 1, 1):
            await dialer.send_frame(bytes(size))
            await acceptor.receive_frame()
        assert asked == [size * KIB for size in (64, 256, 256, 256, 64)]


async def test_a_frame_that_comes_in_small_pieces_is_held_in_few_parts() -> None:
    with fail_after(DEADLINE_SECONDS):
        ours, theirs = trio.testing.memory_stream_pair()
        _, acceptor = await connected(lambda: (ours, theirs))
        receiving = acceptor._receiving
        for size in (5000, 10_000, *[2] * 10_000):
            receiving._hold(bytes(size))
        assert receiving._held == sum(map(len, receiving._parts)) == 35_000
        assert len(receiving._parts) <= 2 + 20_000 // (4 * KIB) + 1


@pytest.mark.parametrize("step", [1, 2, 7, 19, 20, 21, 64, 4096, 100_000])
async def test_frames_come_whole_however_they_are_cut(step: int) -> None:
    frames = [b"first", bytes(range(256)) * 40, b"\0", b"x" * 30_000, b"last"]
    with fail_after(DEADLINE_SECONDS):
        wire = bytearray()
        dialer, _ = await connected(wire=wire)
        await dialer.send_frames(frames)
        await dialer.aclose()
        assert await replay(ScriptedStream(bytes(wire), step)) == (frames, "end")
