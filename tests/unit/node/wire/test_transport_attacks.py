"""The secure stream against anyone who holds the wire: cuts, flips, repeats, oversize. Never a partial frame."""

import pytest

from node.wire.transport import TransportError, accept
from protocol.crypto.node_identity import DialerHandshake, static_private_key, static_public_key
from protocol.crypto.noise import Handshake
from protocol.crypto.signing import public_key
from protocol.limits.peers import FRAME_SIZE_MAX, HANDSHAKE_MESSAGE_SIZE_MAX
from tests.support.streams import (
    ACCEPTOR_EPHEMERAL,
    ACCEPTOR_SEED,
    DIALER_EPHEMERAL,
    DIALER_SEED,
    FRAMES,
    HANDSHAKE_WIRE_SIZE,
    WIRE_SIZE,
    ScriptedStream,
    connected,
    recorded_session,
    replay,
)


async def test_dialer_with_a_false_proof_is_refused() -> None:
    noise = Handshake.initiator(
        b"ravel/1",
        static_private_key(DIALER_SEED),
        DIALER_EPHEMERAL,
        static_public_key(public_key(ACCEPTOR_SEED)),
    )
    first = noise.write_message(b"")
    probe = ScriptedStream(len(first).to_bytes(2, "big") + first)
    with pytest.raises(TransportError):
        await accept(probe, ACCEPTOR_SEED, ACCEPTOR_EPHEMERAL)
    noise.read_message(bytes(probe.sent[2:]))
    third = noise.write_message(public_key(DIALER_SEED) + bytes(64))
    script = b"".join(len(message).to_bytes(2, "big") + message for message in (first, third))
    assert await replay(ScriptedStream(script)) == ([], "handshake_failed")


@pytest.mark.slow
async def test_session_cut_at_every_byte() -> None:
    wire = await recorded_session()
    assert len(wire) == WIRE_SIZE
    boundaries = [HANDSHAKE_WIRE_SIZE]
    for frame in FRAMES:
        boundaries.append(boundaries[-1] + 36 + len(frame))
    for size in range(len(wire)):
        stream = ScriptedStream(wire[:size])
        frames, reason = await replay(stream)
        whole = sum(boundary <= size for boundary in boundaries[1:])
        assert frames == FRAMES[:whole]
        inside_a_frame = size > HANDSHAKE_WIRE_SIZE and size not in boundaries
        assert reason == ("truncated" if inside_a_frame else "closed")
        assert stream.is_closed or size >= HANDSHAKE_WIRE_SIZE
    assert await replay(ScriptedStream(wire)) == (FRAMES, "end")


@pytest.mark.slow
async def test_every_byte_flipped() -> None:
    wire = await recorded_session()
    for position in range(len(wire)):
        altered = bytearray(wire)
        altered[position] ^= 1 << (position % 8)
        frames, reason = await replay(ScriptedStream(bytes(altered)))
        assert frames == FRAMES[: len(frames)]
        if position < HANDSHAKE_WIRE_SIZE:
            assert (frames, reason) in (([], "handshake_failed"), ([], "closed"))  # closed: a length grew
        else:
            assert reason == "bad_frame"
            assert len(frames) < len(FRAMES) or position >= len(wire) - 20


async def test_big_frame_flipped_at_samples_gives_nothing() -> None:
    wire = bytearray()
    dialer, _ = await connected(wire=wire)
    await dialer.send_frame(bytes(FRAME_SIZE_MAX))
    for position in range(HANDSHAKE_WIRE_SIZE, len(wire), 150_001):
        wire[position] ^= 1
        assert await replay(ScriptedStream(bytes(wire))) == ([], "bad_frame")
        wire[position] ^= 1
    frames, reason = await replay(ScriptedStream(bytes(wire)))
    assert (frames, reason) == ([bytes(FRAME_SIZE_MAX)], "closed")


async def test_repeated_and_swapped_frames_are_refused() -> None:
    wire = await recorded_session()
    start = HANDSHAKE_WIRE_SIZE
    first = wire[start : start + 36 + len(FRAMES[0])]
    rest = wire[start + len(first) :]
    assert await replay(ScriptedStream(wire[:start] + first + first + rest)) == (FRAMES[:1], "bad_frame")
    assert await replay(ScriptedStream(wire[:start] + rest)) == ([], "bad_frame")


async def test_oversized_length_is_refused_before_its_body_is_read() -> None:
    for size, reason in (
        (FRAME_SIZE_MAX, "closed"),
        (FRAME_SIZE_MAX + 1, "frame_too_large"),
        (2**32 - 1, "frame_too_large"),
    ):
        probe = ScriptedStream(b"")
        handshake = DialerHandshake(DIALER_SEED, public_key(ACCEPTOR_SEED), DIALER_EPHEMERAL)
        first = handshake.first_message()
        probe.script = len(first).to_bytes(2, "big") + first
        with pytest.raises(TransportError):
            await accept(probe, ACCEPTOR_SEED, ACCEPTOR_EPHEMERAL)
        third, session = handshake.read_second(bytes(probe.sent[2:]))
        script = probe.script + len(third).to_bytes(2, "big") + third
        script += session.send.encrypt(size.to_bytes(4, "big"))
        header_end = len(script)
        stream = ScriptedStream(script + bytes(10_000), step=20)
        secure = await accept(stream, ACCEPTOR_SEED, ACCEPTOR_EPHEMERAL)
        if reason == "frame_too_large":
            for _ in range(2):  # the fault stays
                with pytest.raises(TransportError) as error:
                    await secure.receive_frame()
                assert error.value.reason == reason
            assert stream.position == header_end
        else:
            with pytest.raises(TransportError) as error:
                await secure.receive_frame()
            assert error.value.reason == "truncated"


async def test_handshake_message_over_its_bound_is_not_read() -> None:
    stream = ScriptedStream((HANDSHAKE_MESSAGE_SIZE_MAX + 1).to_bytes(2, "big") + bytes(5000))
    assert await replay(stream) == ([], "handshake_failed")
    assert stream.position == 2
