"""Fuzz targets for what a peer says on a connection: the handshake, the frames, and the session's messages.

See `targets` for what a target is.
"""

from functools import cache
from typing import Final

import trio

from node.wire.transport import SecureStream, TransportError
from protocol.crypto import node_identity
from protocol.crypto.keys import CipherKey
from protocol.crypto.noise import CipherState, Handshake, HandshakeError
from protocol.crypto.signing import public_key
from protocol.ids import PeerId, SessionId
from protocol.limits.peers import FRAME_SIZE_MAX
from tests.support.streams import (
    ACCEPTOR_EPHEMERAL,
    ACCEPTOR_SEED,
    DIALER_EPHEMERAL,
    DIALER_SEED,
    FRAMES,
    ScriptedStream,
    replay,
)

_FRAME_KEY: Final = CipherKey(b"f" * 32)


def take_acceptor(data: bytes) -> str:
    """What a stranger says to an acceptor: message 1, message 3, or what an honest Noise encrypts into message 3."""
    kind, data = data[:1], data[1:]
    acceptor = node_identity.AcceptorHandshake(ACCEPTOR_SEED, ACCEPTOR_EPHEMERAL)
    honest, third, payload = honest_messages()
    try:
        if kind == b"1":
            acceptor.read_first(data)
            assert data == honest[0]
        elif kind == b"3":
            acceptor.read_first(honest[0])
            session = acceptor.read_third(data)
            assert (data, session.peer_key) == (third, public_key(DIALER_SEED))
        else:
            acceptor.read_first(honest[0])
            noise = _noise_dialer()
            noise.write_message(b"")
            noise.read_message(honest[1])
            session = acceptor.read_third(noise.write_message(data))
            assert (data, session.peer_key) == (payload, public_key(DIALER_SEED))
    except HandshakeError as error:
        return error.reason
    return ""


def take_dialer(data: bytes) -> str:
    """What a dialer is told: message 2, what an honest Noise encrypts into message 2, or the key that it shall dial."""
    kind, data = data[:1], PeerId(data[1:])
    honest, _, _ = honest_messages()
    try:
        if kind == b"k":
            if len(data) != 32:
                return "no key"
            node_identity.DialerHandshake(DIALER_SEED, data, DIALER_EPHEMERAL)
            return ""
        dialer = node_identity.DialerHandshake(DIALER_SEED, public_key(ACCEPTOR_SEED), DIALER_EPHEMERAL)
        assert dialer.first_message() == honest[0]
        if kind == b"2":
            dialer.read_second(data)
            assert data == honest[1]
        else:
            static = node_identity.static_private_key(ACCEPTOR_SEED)
            noise = Handshake.responder(node_identity.PROLOGUE, static, ACCEPTOR_EPHEMERAL)
            noise.read_message(honest[0])
            second = noise.write_message(data)
            dialer.read_second(second)
            assert second == honest[1]
    except HandshakeError as error:
        return error.reason
    return ""


def take_wire(data: bytes) -> str:
    """All that comes over a connection, to an acceptor with the keys of the recorded session."""
    frames, end = trio.run(replay, ScriptedStream(data))
    assert frames == FRAMES[: len(frames)], "nothing comes out that the peer did not say"
    return "" if end == "end" else end


def take_frames(data: bytes) -> str:
    """What a peer encrypts: lengths of four bytes and bodies, of the length that was said if there is so much."""
    cipher, wire, bodies = CipherState(_FRAME_KEY), bytearray(), list[bytes]()
    while data:
        length, data = data[:4], data[4:]
        size = int.from_bytes(length, "big")
        wire += cipher.encrypt(length.rjust(4, b"\0"))
        if not 0 < size <= FRAME_SIZE_MAX:
            break
        body, data = data[:size], data[size:]
        wire += cipher.encrypt(body)
        if len(body) == size:
            bodies.append(body)
    frames, end = trio.run(_receive_all, bytes(wire))
    assert frames == bodies[: len(frames)]
    return end


@cache
def honest_messages() -> tuple[list[bytes], bytes, bytes]:
    """Messages 1 and 2 of the fixed nodes, message 3, and the payload inside it."""
    dialer = node_identity.DialerHandshake(DIALER_SEED, public_key(ACCEPTOR_SEED), DIALER_EPHEMERAL)
    first = dialer.first_message()
    second = node_identity.AcceptorHandshake(ACCEPTOR_SEED, ACCEPTOR_EPHEMERAL).read_first(first)
    third, _ = dialer.read_second(second)
    static = node_identity.static_private_key(ACCEPTOR_SEED)
    noise = Handshake.responder(node_identity.PROLOGUE, static, ACCEPTOR_EPHEMERAL)
    noise.read_message(first)
    # The acceptor's own payload, so that its Noise stands where the node's stood.
    noise_dialer = _noise_dialer()
    noise_dialer.write_message(b"")
    noise.write_message(noise_dialer.read_message(second))
    return [first, second], third, noise.read_message(third)


def _noise_dialer() -> Handshake:
    static = node_identity.static_private_key(DIALER_SEED)
    peer = node_identity.static_public_key(public_key(ACCEPTOR_SEED))
    return Handshake.initiator(node_identity.PROLOGUE, static, DIALER_EPHEMERAL, peer)


async def _receive_all(wire: bytes) -> tuple[list[bytes], str]:
    session = node_identity.HandshakeResult(
        CipherState(_FRAME_KEY), CipherState(_FRAME_KEY), PeerId(bytes(32)), SessionId(bytes(32))
    )
    stream = SecureStream(ScriptedStream(wire, step=50), session, is_dialer=True)
    frames: list[bytes] = []
    try:
        while (frame := await stream.receive_frame()) is not None:
            frames.append(frame)
    except TransportError as error:
        return frames, error.reason
    return frames, ""
