"""Encrypted, authenticated frames over any trio stream: `dial`, `accept`, `SecureStream`.

    stream = await trio.open_tcp_stream(host, port)
    secure = await dial(stream, seed, peer_key, secrets.token_bytes(32))
    await secure.send_frame(b"hello")
    frame = await secure.receive_frame()      # None: the peer said that it is done

The handshake is `protocol.crypto.node_identity`'s; each of its messages travels behind its length (2 bytes, big-endian). An
acceptor that cannot open message 1 answers with length 0 before it closes, so that the dialer can be told that another
key (or version) lives there. Anyone on the path could say so too, as it could cut the connection: nothing lasting may
follow from it.

After it, as in Lightning's BOLT 8, each frame is two AEAD messages of the sender's cipher:

    encrypted length 4 bytes, big-endian, and a tag of 16
    encrypted body   as many bytes as that, and a tag of 16

The length is thus authentic, and compared with FRAME_SIZE_MAX before any byte of the body is awaited. A length of 0,
without a body, is the end: what stops without it was cut, by an attacker or a crash, and is an error. Bodies are handed
out whole or not at all.

Left to the caller: what frames mean, which peers are welcome, idle and send deadlines (cancel and close). Receiving may
be cancelled and resumed. A cancelled send leaves a torn frame: nothing can be sent after it.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final

import trio

from protocol.crypto.keys import AgreementSecret, NodeSeed
from protocol.crypto.node_identity import AcceptorHandshake, DialerHandshake, HandshakeResult
from protocol.crypto.noise import TAG_SIZE, CipherState, HandshakeError
from protocol.ids import PeerId
from protocol.limits.formats import KIB
from protocol.limits.peers import (
    FRAME_SIZE_MAX,
    FRAMES_WITHOUT_YIELD_MAX,
    HANDSHAKE_MESSAGE_SIZE_MAX,
    HANDSHAKE_TIMEOUT_SECONDS,
)
from protocol.session.messages import Goodbye, encode_message

_LENGTH_SIZE: Final = 4
_ENCRYPTED_LENGTH_SIZE: Final = _LENGTH_SIZE + TAG_SIZE
_HANDSHAKE_LENGTH_SIZE: Final = 2
_REFUSED: Final = b"\0\0"
_READ_SIZE: Final = 64 * KIB
"""Bytes asked of the stream at a time, while it has less."""
_READ_SIZE_MAX: Final = 256 * KIB
"""Bytes asked of a stream that had as many as were asked for; with one frame under way, all that a peer can make this hold.
Each read costs a turn of the other tasks, and of a relay each wave of frames one write."""
_PART_SIZE_MIN: Final = 4 * KIB
"""Bytes below which two parts of a frame are joined as they come: a peer that sends pieces of 2 bytes would otherwise make
this hold 20 times the frame's size."""
_WRITE_SIZE_TARGET: Final = 256 * KIB
"""Bytes of encrypted frames after which they are written, before more are encrypted."""
_WRITE_STEP: Final = 128 * KIB
"""Bytes of encrypted frames that the stream is given at a time: a line that takes 4 KB/s takes as much in
SEND_TIMEOUT_SECONDS."""
LAST_WORDS_SECONDS: Final = 1.0
"""Seconds that what is queued may take to be written once the connection is ending."""
CLOSE_TIMEOUT_SECONDS: Final = 1.0
"""Seconds that closing may spend on saying so to a peer that does not read."""


class TransportError(Exception):
    """The connection cannot be used (any more); `reason` is one of the stable words in docs/specification/protocol.md."""

    def __init__(self, reason: str, message: str) -> None:
        """`message` is a sentence for logs and people."""
        super().__init__(message)
        self.reason = reason
        self.message = message


async def dial(
    stream: trio.abc.Stream, seed: NodeSeed, peer_key: PeerId, ephemeral: AgreementSecret
) -> "SecureStream":
    """Prove this node's key (of `seed`) to the peer that holds `peer_key`, and have it prove its own.

    `ephemeral` is 32 fresh random bytes. The stream is owned from here on: it is closed when this fails. That
    a peer refuses message 3 shows on the first receive.
    """

    async def converse() -> HandshakeResult:
        try:
            handshake = DialerHandshake(seed, peer_key, ephemeral)
        except HandshakeError:
            raise TransportError("wrong_peer_key", "the expected peer id is no valid key") from None
        await _send_message(stream, handshake.first_message())
        second = await _receive_message(stream)
        if not second:
            raise TransportError("wrong_peer_key", "that node has another key or speaks another version")
        try:
            third, session = handshake.read_second(second)
        except HandshakeError as error:
            if error.reason == "wrong_key":
                raise TransportError("wrong_peer_key", "that node does not hold the key") from error
            raise
        await _send_message(stream, third)
        return session

    return await _establish(stream, converse, is_dialer=True)


async def accept(stream: trio.abc.Stream, seed: NodeSeed, ephemeral: AgreementSecret) -> "SecureStream":
    """Accept a connection: prove this node's key and learn the peer's, which may be anyone's."""

    async def converse() -> HandshakeResult:
        handshake = AcceptorHandshake(seed, ephemeral)
        first = await _receive_message(stream)
        try:
            second = handshake.read_first(first)
        except HandshakeError:
            with suppress(trio.BrokenResourceError):
                await stream.send_all(_REFUSED)
            raise
        await _send_message(stream, second)
        return handshake.read_third(await _receive_message(stream))

    return await _establish(stream, converse, is_dialer=False)


class SecureStream:
    """Frames to and from one proven peer. Any number of tasks may send; one at a time may receive."""

    def __init__(self, stream: trio.abc.Stream, session: HandshakeResult, *, is_dialer: bool) -> None:
        """Use `dial` or `accept`."""
        self.is_dialer = is_dialer
        self.peer_key = session.peer_key
        self.session_id = session.session_id
        self._stream = stream
        self._sending = _Sending(stream, session.send)
        self._receiving = _Receiving(stream, session.receive)

    async def send_frame(self, frame: bytes) -> None:
        """Send one frame of 1 to FRAME_SIZE_MAX bytes (else ValueError); return when the stream has it."""
        await self.send_frames((frame,))

    async def send_frames(
        self, frames: Sequence[bytes], has_moved: Callable[[], None] = lambda: None
    ) -> None:
        """Send frames in order with as few writes as their size allows; nothing is sent if one is unfit.

        `has_moved` is called whenever the stream has taken some of them, _WRITE_STEP bytes at most.
        """
        await self._sending.send(frames, has_moved)

    async def receive_frame(self) -> bytes | None:
        """Receive the next frame, or None (ever after) once the peer has ended its side.

        Yields to other tasks when it must read, and after FRAMES_WITHOUT_YIELD_MAX frames of one read.
        """
        return await self._receiving.receive()

    def take_frame(self) -> bytes | None:
        """Return the next frame, if all of it has been read already and other tasks are not waiting; never waits."""
        return self._receiving.take()

    async def aclose(self) -> None:
        """Tell the peer that this is the end, if it can be told within CLOSE_TIMEOUT_SECONDS, and close."""
        try:
            with trio.move_on_after(CLOSE_TIMEOUT_SECONDS, shield=True), suppress(TransportError):
                await self._sending.end()
        finally:
            await self._stream.aclose()


class _Sending:
    """Encrypting and writing, one task at a time."""

    def __init__(self, stream: trio.abc.Stream, cipher: CipherState) -> None:
        self._stream = stream
        self._cipher = cipher
        self._lock = trio.Lock()
        self._is_usable = True

    async def send(self, frames: Sequence[bytes], has_moved: Callable[[], None]) -> None:
        for frame in frames:
            if not 1 <= len(frame) <= FRAME_SIZE_MAX:
                raise ValueError(f"a frame has 1 to {FRAME_SIZE_MAX} bytes, not {len(frame)}")
        await self._begin()
        try:
            start = 0
            while start < len(frames):
                count, size = _cut_write(frames, start)
                with memoryview(self._encrypt_frames(frames[start : start + count], size)) as ciphertext:
                    for step in range(0, size, _WRITE_STEP):
                        await self._write(ciphertext[step : step + _WRITE_STEP])
                        has_moved()
                start += count
            self._is_usable = True
        finally:
            self._lock.release()

    async def end(self) -> None:
        await self._begin()
        try:
            await self._write(self._cipher.encrypt(bytes(_LENGTH_SIZE)))
        except HandshakeError as error:
            raise _exhausted() from error
        finally:
            self._lock.release()

    def _encrypt_frames(self, frames: Sequence[bytes], size: int) -> bytearray:
        """Frames as they are written, `size` bytes together: each is encrypted into its place, so none is copied."""
        ciphertext = bytearray(size)
        end = 0
        with memoryview(ciphertext) as places:
            for frame in frames:
                for part in (len(frame).to_bytes(_LENGTH_SIZE, "big"), frame):
                    start, end = end, end + len(part) + TAG_SIZE
                    try:
                        self._cipher.encrypt_into(part, places[start:end])
                    except HandshakeError as error:
                        raise _exhausted() from error
        return ciphertext

    async def _write(self, ciphertext: bytes | memoryview) -> None:
        try:
            await self._stream.send_all(ciphertext)
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise _as_ours(error) from error

    async def _begin(self) -> None:
        """Take the lock, which is free as a rule: to acquire it by trio's own way gives all other tasks a turn."""
        try:
            self._lock.acquire_nowait()
        except trio.WouldBlock:
            await self._lock.acquire()
        if not self._is_usable:
            self._lock.release()
            raise TransportError("closed", "nothing more can be sent on this connection")
        # Usable again only when all is written: a write that fails or is cancelled leaves a torn frame.
        self._is_usable = False


class _Receiving:
    """Reading and decrypting. State changes only between awaits, so that a cancelled receive loses nothing."""

    def __init__(self, stream: trio.abc.Stream, cipher: CipherState) -> None:
        self._stream = stream
        self._cipher = cipher
        self._block = b""
        self._start = 0
        """Where in the block the bytes begin that no frame has been made of."""
        self._parts: list[bytes] = []
        """What was read behind the block: joined once, when a frame needs it, and not at each read of a large one."""
        self._held = 0
        """Bytes of both that no frame has been made of."""
        self._body_size = 0
        """Of the frame whose length was opened; 0 while a length comes next."""
        self._is_ended = False
        self._fault: TransportError | None = None
        self._unyielded = 0
        """Frames handed out since other tasks had their turn."""
        self._read_size = _READ_SIZE

    async def receive(self) -> bytes | None:
        while True:
            frame = self.take()
            if frame is not None:
                return frame
            if self._is_ended:
                return None
            if self._unyielded >= FRAMES_WITHOUT_YIELD_MAX:
                self._unyielded = 0
                await trio.lowlevel.checkpoint()
                continue
            try:
                await self._read_more()
            except TransportError as error:
                self._fault = TransportError(
                    error.reason, error.message
                )  # without the frames that it came through
                raise

    def take(self) -> bytes | None:
        if self._fault is not None:
            raise TransportError(self._fault.reason, self._fault.message)
        if self._is_ended or self._unyielded >= FRAMES_WITHOUT_YIELD_MAX:
            return None
        try:
            frame = self._next_frame()
        except TransportError as error:
            self._fault = TransportError(
                error.reason, error.message
            )  # without the frames that it came through
            raise
        if frame is not None:
            self._unyielded += 1
        return frame

    def _next_frame(self) -> bytes | None:
        """Return the next frame if all of it is here."""
        if self._body_size == 0:
            if self._held < _ENCRYPTED_LENGTH_SIZE:
                return None
            size = int.from_bytes(self._decrypt(_ENCRYPTED_LENGTH_SIZE), "big")
            if size > FRAME_SIZE_MAX:
                raise TransportError("frame_too_large", f"the peer announced a frame of {size} bytes")
            self._body_size = size
            self._is_ended = size == 0
        if self._is_ended or self._held < self._body_size + TAG_SIZE:
            return None
        frame = self._decrypt(self._body_size + TAG_SIZE)
        self._body_size = 0
        return frame

    def _decrypt(self, size: int) -> bytes:
        """Open the next `size` bytes. Views, since a slice would copy each frame once more."""
        if len(self._block) - self._start < size:
            self._block = b"".join((memoryview(self._block)[self._start :], *self._parts))
            self._start = 0
            self._parts.clear()
        end = self._start + size
        try:
            plaintext = self._cipher.decrypt(memoryview(self._block)[self._start : end])
        except HandshakeError as error:
            raise TransportError("bad_frame", f"a frame is not authentic: {error.reason}") from error
        self._start = end
        self._held -= size
        return plaintext

    def _hold(self, received: bytes) -> None:
        """Hold what was read behind the block. Small ones are joined: each part is 40 bytes more in memory."""
        if self._parts and max(len(self._parts[-1]), len(received)) < _PART_SIZE_MIN:
            self._parts[-1] += received
        else:
            self._parts.append(received)
        self._held += len(received)

    async def _read_more(self) -> None:
        try:
            received = await self._stream.receive_some(self._read_size)
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise _as_ours(error) from error
        self._read_size = _READ_SIZE_MAX if len(received) >= _READ_SIZE else _READ_SIZE
        self._unyielded = 0
        if received and not self._held:
            self._block, self._start = bytes(received), 0
            self._held = len(received)
        elif received:
            self._hold(bytes(received))
        elif self._held or self._body_size:
            raise TransportError("truncated", "the connection was cut inside a frame")
        else:
            raise TransportError("closed", "the connection was cut without an end")


async def _establish(
    stream: trio.abc.Stream, converse: Callable[[], Awaitable[HandshakeResult]], *, is_dialer: bool
) -> SecureStream:
    """Run one side of a handshake under its deadline; close the stream unless it succeeds."""
    try:
        with trio.fail_after(HANDSHAKE_TIMEOUT_SECONDS):
            return SecureStream(stream, await converse(), is_dialer=is_dialer)
    except BaseException as error:  # Cancelled too: nothing else holds the stream, so it would stay open
        await trio.aclose_forcefully(stream)
        match error:
            case trio.BrokenResourceError() | trio.ClosedResourceError():
                raise _as_ours(error) from error
            case trio.TooSlowError():
                seconds = f"{HANDSHAKE_TIMEOUT_SECONDS:g}"
                raise TransportError("timeout", f"no handshake within {seconds} seconds") from error
            case HandshakeError():
                raise TransportError("handshake_failed", f"handshake failed: {error.reason}") from error
        raise


async def _send_message(stream: trio.abc.Stream, message: bytes) -> None:
    await stream.send_all(len(message).to_bytes(_HANDSHAKE_LENGTH_SIZE, "big") + message)


async def _receive_message(stream: trio.abc.Stream) -> bytes:
    size = int.from_bytes(await _receive_exactly(stream, _HANDSHAKE_LENGTH_SIZE), "big")
    if size > HANDSHAKE_MESSAGE_SIZE_MAX:
        raise TransportError("handshake_failed", "what was received is no handshake")
    return await _receive_exactly(stream, size)


async def _receive_exactly(stream: trio.abc.Stream, size: int) -> bytes:
    """Receive exactly `size` bytes: those after the handshake belong to frames."""
    received = bytearray()
    while len(received) < size:
        some = await stream.receive_some(size - len(received))
        if not some:
            raise TransportError("closed", "the peer closed the connection during the handshake")
        received += some
    return bytes(received)


def _cut_write(frames: Sequence[bytes], start: int) -> tuple[int, int]:
    """Count the frames from `start` on that are written together, and their bytes."""
    size = count = 0
    for frame in frames[start:]:
        count += 1
        size += _ENCRYPTED_LENGTH_SIZE + len(frame) + TAG_SIZE
        if size >= _WRITE_SIZE_TARGET:
            break
    return count, size


def _as_ours(error: trio.BrokenResourceError | trio.ClosedResourceError) -> TransportError:
    """Translate the stream's error. No context manager: one for each read and write is 5 % of what a relay does."""
    broke = isinstance(error, trio.BrokenResourceError)
    return TransportError("closed", "the connection broke" if broke else "the connection is closed")


def _exhausted() -> TransportError:
    return TransportError("exhausted", "this connection has carried all that its keys may")


async def say_goodbye(stream: SecureStream, reason: str) -> None:
    """End a stream that nothing else writes to: say why, if that can be said in a moment, and close it."""
    with trio.move_on_after(LAST_WORDS_SECONDS, shield=True):
        try:
            with suppress(TransportError):
                await stream.send_frame(encode_message(Goodbye(reason)))
        finally:  # a peer that reads nothing uses up the moment, and nothing else closes the stream
            await stream.aclose()
