"""Secure streams between two fixed nodes, a recorded session of theirs, and a peer that plays it back."""

from collections.abc import Callable
from dataclasses import dataclass, field

import trio
import trio.testing

from node.wire.transport import SecureStream, TransportError, accept, dial
from protocol.crypto.keys import AgreementSecret, NodeSeed
from protocol.crypto.signing import public_key

DIALER_SEED = NodeSeed(bytes(range(32)))
ACCEPTOR_SEED = NodeSeed(bytes(range(100, 132)))
DIALER_EPHEMERAL = AgreementSecret(b"\x21" * 32)
ACCEPTOR_EPHEMERAL = AgreementSecret(b"\x43" * 32)
FRAMES = [b"first", b"x" * 300, b"\0"]

# What the dialer puts on the wire for FRAMES: two handshake messages behind their lengths, frames, the end.
HANDSHAKE_WIRE_SIZE = 2 + 48 + 2 + 160
WIRE_SIZE = HANDSHAKE_WIRE_SIZE + sum(36 + len(frame) for frame in FRAMES) + 20


@dataclass(eq=False)
class ScriptedStream(trio.abc.Stream):
    """A peer that says `script`, `step` bytes a time, then cuts the connection; what it is told is kept."""

    script: bytes
    step: int = 65536
    position: int = 0
    sent: bytearray = field(default_factory=bytearray)
    is_closed: bool = False

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        await trio.lowlevel.checkpoint()
        size = min(self.step, max_bytes or self.step)
        some = self.script[self.position : self.position + size]
        self.position += len(some)
        return some

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await trio.lowlevel.checkpoint()
        self.sent += data

    async def wait_send_all_might_not_block(self) -> None:
        await trio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        self.is_closed = True
        await trio.lowlevel.checkpoint()


class PassingStream(trio.abc.Stream):
    """A stream that passes everything on to another one. Subclasses change some of it."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self._stream = stream

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        return await self._stream.receive_some(max_bytes)

    async def aclose(self) -> None:
        await self._stream.aclose()


StreamPair = Callable[[], tuple[trio.abc.Stream, trio.abc.Stream]]


async def connected(
    make: StreamPair = trio.testing.memory_stream_pair, wire: bytearray | None = None
) -> tuple[SecureStream, SecureStream]:
    """A dialer's and an acceptor's secure stream; `wire` records what the dialer writes."""
    ours, theirs = make()
    if wire is not None:
        ours = Recording(ours, wire)
    sides: dict[str, SecureStream] = {}

    async def run_dial() -> None:
        sides["dialer"] = await dial(ours, DIALER_SEED, public_key(ACCEPTOR_SEED), DIALER_EPHEMERAL)

    async def run_accept() -> None:
        sides["acceptor"] = await accept(theirs, ACCEPTOR_SEED, ACCEPTOR_EPHEMERAL)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run_dial)
        nursery.start_soon(run_accept)
    return sides["dialer"], sides["acceptor"]


class Recording(PassingStream):
    """A stream that notes all that is written to it."""

    def __init__(self, stream: trio.abc.Stream, wire: bytearray) -> None:
        super().__init__(stream)
        self.wire = wire

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        self.wire += data
        await super().send_all(data)


async def recorded_session() -> bytes:
    """All that a dialer writes in a session that sends FRAMES and ends."""
    wire = bytearray()
    dialer, acceptor = await connected(wire=wire)
    await dialer.send_frames(FRAMES)
    await dialer.aclose()
    await acceptor.aclose()
    return bytes(wire)


async def replay(stream: ScriptedStream) -> tuple[list[bytes], str]:
    """Accept with the keys of the recorded session: what comes out, and how it ends ("end" or a reason)."""
    frames: list[bytes] = []
    try:
        secure = await accept(stream, ACCEPTOR_SEED, ACCEPTOR_EPHEMERAL)
        while (frame := await secure.receive_frame()) is not None:
            frames.append(frame)
    except TransportError as error:
        return frames, error.reason
    return frames, "end"
