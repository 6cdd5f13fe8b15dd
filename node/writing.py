"""The one task that writes a connection's messages: several in one write where they wait, each write under a deadline."""

from typing import Final

import trio

from node.transport import SecureStream, TransportError
from protocol.limits import BATCH_SIZE_TARGET, SEND_TIMEOUT_SECONDS
from protocol.messages import Message, encode_message

_COALESCED_COUNT_MAX: Final = 64


async def write_messages(outgoing: trio.MemoryReceiveChannel[Message], stream: SecureStream) -> str:
    """Write until the channel is closed; why it could not go on, or an empty text."""
    async for message in outgoing:
        frames = [encode_message(message)]
        size = len(frames[0])
        while len(frames) < _COALESCED_COUNT_MAX and size < BATCH_SIZE_TARGET:
            try:
                frames.append(encode_message(outgoing.receive_nowait()))
            except (trio.WouldBlock, trio.EndOfChannel):
                break
            size += len(frames[-1])
        try:
            with trio.fail_after(SEND_TIMEOUT_SECONDS):
                await stream.send_frames(frames)
        except trio.TooSlowError:
            return "peer_does_not_read"
        except TransportError as error:
            return error.reason
    return ""
