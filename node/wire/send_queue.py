"""Send queue of a connection: bounded in messages and bytes, batched writes, a deadline for each step of one."""

import math
from typing import Final

import trio

from node.wire.transport import SecureStream, TransportError
from protocol.limits.peers import (
    BATCH_SIZE_TARGET,
    OUTGOING_COUNT_MAX,
    OUTGOING_SIZE_MAX,
    SEND_TIMEOUT_SECONDS,
)
from protocol.session.messages import Message, encode_message

_COALESCED_COUNT_MAX: Final = 64


class SendQueue:
    """Messages of one connection that wait to be written."""

    def __init__(self) -> None:
        # The bounds are `put`'s: what is being written counts too.
        self._send, self._receive = trio.open_memory_channel[bytes](math.inf)
        self.size = 0
        """Count of bytes that wait or are being written."""
        self.count = 0
        """Count of messages that wait or are being written."""

    def put(self, message: Message, *, is_last: bool = False) -> bool:
        """Queue a message; whether there was room for it. There always is for the last one (why a peer is left that does
        not read). Raises trio.ClosedResourceError after `close`.
        """
        frame = encode_message(message)
        is_full = self.count == OUTGOING_COUNT_MAX or self.size + len(frame) > OUTGOING_SIZE_MAX
        if is_full and not is_last:
            return False
        self._send.send_nowait(frame)
        self.size += len(frame)
        self.count += 1
        return True

    def close(self) -> None:
        """End the queue: nothing more comes."""
        self._send.close()

    async def write(self, stream: SecureStream) -> str:
        """Write until it is closed; why it could not go on, or an empty text."""
        # One scope whose deadline moves: to enter one for each write is a tenth of what a busy relay does.
        with self._receive, trio.CancelScope() as scope:

            def go_on() -> None:
                scope.deadline = trio.current_time() + SEND_TIMEOUT_SECONDS

            while frames := await self._next_frames():
                go_on()
                try:
                    await stream.send_frames(frames, go_on)
                except TransportError as error:
                    return error.reason
                scope.deadline = math.inf
                self.size -= sum(map(len, frames))
                self.count -= len(frames)
        return "peer_does_not_read" if scope.cancelled_caught else ""

    async def _next_frames(self) -> list[bytes]:
        """Return frames for one write: all that wait, up to a bound; none once the queue is closed. Waits for the first."""
        frames: list[bytes] = []
        size = 0
        try:
            while len(frames) < _COALESCED_COUNT_MAX and size < BATCH_SIZE_TARGET:
                try:
                    frame = self._receive.receive_nowait()
                except trio.WouldBlock:
                    if frames:
                        break
                    frame = await self._receive.receive()
                frames.append(frame)
                size += len(frame)
        except trio.EndOfChannel:
            pass
        return frames
