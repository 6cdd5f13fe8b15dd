"""Ends a connection with a word: why."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import trio

from node.sync.transport import SecureStream, TransportError
from protocol.messages import Goodbye, encode_message

LAST_WORDS_SECONDS: Final = 1.0
"""Seconds that what is queued may take to be written once the connection is ending."""


@dataclass(frozen=True, slots=True)
class Ended:
    """Why a connection ended: a stable reason."""

    reason: str


async def say_goodbye(stream: SecureStream, reason: str) -> None:
    """End a stream that nothing else writes to: say why, if that can be said in a moment, and close it."""
    with trio.move_on_after(LAST_WORDS_SECONDS, shield=True):
        try:
            with suppress(TransportError):
                await stream.send_frame(encode_message(Goodbye(reason)))
        finally:  # a peer that reads nothing uses up the moment, and nothing else closes the stream
            await stream.aclose()
