"""Checks the chain of a Scuttlebutt feed: is a message the next one, a duplicate, or a fork?

Pure. A feed is one chain: sequences 1, 2, 3 ... without a gap, each naming the one before. So what was imported of it is a
list of ids, and a message is judged by its place in it. Of a place that is used twice the first message stays: the other is
refused as a fork, and so is whatever names it as previous, while what goes on from the first is taken.
"""

from collections.abc import Callable, Iterable
from typing import Final

from node.scuttlebutt.messages import (
    MessageRefused,
    Reason,
    SsbMessage,
    message_id_of,
    read_ssb_message,
    verify_ssb_signature,
)
from protocol.limits.files import SSB_FEED_COUNT_MAX, SSB_REFUSED_KEPT_MAX

_DIGEST_SIZE: Final = 32


class SsbFeeds:
    """The feeds of one import. `load` returns the digests of a feed's messages that were imported before, in order."""

    def __init__(self, load: Callable[[str], Iterable[bytes]], hmac_key: bytes | None = None) -> None:
        self._load = load
        self._hmac_key = hmac_key
        # By feed: the digests of its messages, one after the other. 32 bytes each, so that a log of any length fits.
        self._chains: dict[str, bytearray] = {}
        self._refused: set[str] = set()

    def add_line(self, line: bytes) -> SsbMessage | None:
        """Verify the next message of its feed; return None for one that is there already. Raises MessageRefused."""
        try:
            return self._add(read_ssb_message(line))
        except MessageRefused as refused:
            if refused.message_id and len(self._refused) < SSB_REFUSED_KEPT_MAX:
                self._refused.add(refused.message_id)
            raise

    def _add(self, message: SsbMessage) -> SsbMessage | None:
        chain = self._chain(message.author)
        length = len(chain) // _DIGEST_SIZE
        if message.sequence <= length:
            start = (message.sequence - 1) * _DIGEST_SIZE
            if chain[start : start + _DIGEST_SIZE] == message.digest:
                return None
            raise MessageRefused(
                Reason.FORK, f"sequence {message.sequence} of the feed is another message", message.id
            )
        tip = message_id_of(bytes(chain[-_DIGEST_SIZE:])) if chain else None
        if message.sequence > length + 1 or message.previous != tip:
            raise self._misplaced(message, length)
        verify_ssb_signature(message, self._hmac_key)
        if message.author not in self._chains:
            self._check_room()
            self._chains[message.author] = chain
        chain += message.digest
        # An earlier line may have had the same message under another key.
        self._refused.discard(message.id)
        return message

    def _chain(self, author: str) -> bytearray:
        """Return the state of a feed. Anybody can name feeds, so one takes room only when a message of it is signed."""
        chain = self._chains.get(author)
        if chain is None:
            chain = bytearray().join(self._load(author))
            if chain:
                self._check_room()
                self._chains[author] = chain
        return chain

    def _check_room(self) -> None:
        if len(self._chains) >= SSB_FEED_COUNT_MAX:
            raise MessageRefused(Reason.TOO_MANY_FEEDS, f"at most {SSB_FEED_COUNT_MAX} feeds in one import")

    def _misplaced(self, message: SsbMessage, length: int) -> MessageRefused:
        """Return the reason against a message that does not follow the last of its feed, which has `length`."""
        if message.previous in self._refused:
            reason, problem = Reason.FOLLOWS_REFUSED, f"it follows {message.previous}, which was refused"
        elif message.sequence > length + 1:
            reason, problem = Reason.GAP, f"sequence {message.sequence} comes after {length} of the feed"
        elif (message.previous is None) != (length == 0):
            reason, problem = Reason.BAD_PREVIOUS, "the first message of a feed, and no other, follows none"
        else:
            reason, problem = Reason.FORK, "it does not follow the last message of its feed"
        return MessageRefused(reason, problem, message.id)
