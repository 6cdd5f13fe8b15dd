"""Range-based set reconciliation (Meyer 2023): compares fingerprints of id ranges and splits those that differ.

After Meyer, "Range-Based Set Reconciliation" (2023), and Negentropy: fingerprints of ranges are compared, those that
differ are divided, and small ones are spelt out. The *asker* holds all state: it says fingerprints of its ranges and
learns of the answerer's; the *answerer* looks up and forgets.

    asker: says of a range                     answerer: says of the same range
    fingerprint                                equal, or fingerprints of 16 parts, or its ids where there are few
    list it (there are few here)               its ids, as many as fit
                                               anything: *later*, when the frame is full
    Fingerprints of parts are compared by the asker; those that differ are divided again, or asked to be listed.

A frame is a list of ranges in ascending order, each beginning where the last one ended; what a frame leaves out at its
end is as if it said nothing of it. Only the answerer spells out ids, whole ones: the asker then knows both sides'
differences, and a range is settled exactly.

Fingerprints are BLAKE3 of a range's ids under a key of topic and session, cut to 16 bytes: nobody knows the key when ids
are made, so no id can be ground to hide in one. They are not kept: an answerer reads all ids of a range for each
fingerprint, all of a topic's for the first frame, which is why coded symbols come first. A lie can cost what the limits
allow and no more; what was found before a machine gave up may be used, since ids that do not exist are merely asked for.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Final

from msgspec import Meta

from protocol.codec import DecodeError, Wire, decode, encode
from protocol.crypto.keys import HashKey
from protocol.ids import AnyId, ItemId
from protocol.limits.peers import (
    RANGE_DIFFERENCE_COUNT_MAX,
    RANGE_FRAME_COUNT_MAX,
    RANGE_FRAME_SIZE_MAX,
    RANGE_PENDING_COUNT_MAX,
)
from protocol.session.reconciliation.range_items import (
    DEPTH_MAX,
    END,
    START,
    Bound,
    RangeLookup,
    bound_between,
)
from protocol.session.reconciliation.riblt import Unreconciled

PARTS: Final = 16
"""Parts of a range that differs: fewer would cost round trips, more would cost bytes."""
LISTED_MAX: Final = 16
"""Items of a range that is listed and not divided: about what 16 fingerprints and their bounds cost, twice."""

ID_SIZE: Final = 32
FINGERPRINT_SIZE: Final = 16

# Kinds of content.
NOTHING: Final = 0  # asker: not compared now; answerer: equal, or not asked
PRINT: Final = 1
LIST: Final = 2  # asker: list yours; answerer: ids
LATER: Final = 3  # answerer: ask again
DIFFERS: Final = 4  # never said

_RANGE_SIZE_MAX: Final = ID_SIZE + 18  # bytes of an encoded range beside its content: bound, kind, lengths
_HEAD_SIZE: Final = 16  # bytes of a frame beside its ranges


class Range(Wire, frozen=True):
    """A range that ends before the bound (depth, prefix)."""

    depth: Annotated[int, Meta(ge=0, le=DEPTH_MAX)]
    prefix: Annotated[bytes, Meta(max_length=ID_SIZE)]
    kind: Annotated[int, Meta(ge=NOTHING, le=LATER)]
    content: Annotated[bytes, Meta(max_length=RANGE_FRAME_SIZE_MAX)]

    @property
    def end(self) -> Bound:
        """The bound."""
        return (self.depth, self.prefix)


class Ranges(Wire, frozen=True, tag="ranges1"):
    """One frame."""

    ranges: Annotated[tuple[Range, ...], Meta(max_length=RANGE_FRAME_SIZE_MAX // 4)]


@dataclass(frozen=True, slots=True)
class _Question:
    """Question of the asker about a range; DIFFERS while it is undecided."""

    low: Bound
    high: Bound
    kind: int


class _Writer:
    """A frame that is being written, and how much room is left in it."""

    __slots__ = ("_end", "_ranges", "room")

    def __init__(self) -> None:
        self._ranges: list[Range] = []
        self._end: Bound = START
        self.room = RANGE_FRAME_SIZE_MAX - _HEAD_SIZE

    def say(self, low: Bound, high: Bound, kind: int, content: bytes = b"") -> None:
        """Write a statement about a range. The gap since the last range is skipped."""
        assert self._end <= low < high
        if low > self._end:
            self._append(low, NOTHING, b"")
        self._append(high, kind, content)

    def _append(self, end: Bound, kind: int, content: bytes) -> None:
        self._ranges.append(Range(*end, kind, content))
        self.room -= _RANGE_SIZE_MAX - ID_SIZE + len(end[1]) + len(content)
        self._end = end

    def frame(self) -> bytes:
        """Return the frame."""
        return encode(Ranges(tuple(self._ranges)))


def decode_ranges(frame: bytes) -> list[tuple[Bound, Range]]:
    """Return the ranges of a frame, each with where it begins. Raises DecodeError."""
    ranges = decode(Ranges, frame, size_max=RANGE_FRAME_SIZE_MAX).ranges
    found: list[tuple[Bound, Range]] = []
    low = START
    for said in ranges:
        if said.end <= low or said.end > END:
            raise DecodeError("bad_shape", "ranges are not in ascending order")
        size = len(said.content)
        if size % ID_SIZE if said.kind == LIST else size != FINGERPRINT_SIZE * (said.kind == PRINT):
            raise DecodeError("bad_shape", f"{size} bytes for content {said.kind}")
        found.append((low, said))
        low = said.end
    return found


def answer_ranges(lookup: RangeLookup, key: HashKey, frame: bytes) -> bytes:
    """Return the answerer's frame for one of the asker's. Raises DecodeError."""
    writer = _Writer()
    for low, said in decode_ranges(frame):
        if said.kind == LATER or (said.kind == LIST and said.content):
            raise DecodeError("bad_shape", "only an answerer says this")
        # Room for the parts of this range, or more ids than LISTED_MAX, the gap before them and the last word.
        if writer.room < (PARTS + 3) * (_RANGE_SIZE_MAX + FINGERPRINT_SIZE):
            writer.say(low, END, LATER)
            break
        if said.kind == LIST or (
            said.kind == PRINT and lookup.fingerprint(low, said.end, key) != said.content
        ):
            _explain(lookup, key, writer, low, said)
    return writer.frame()


def _explain(lookup: RangeLookup, key: HashKey, writer: _Writer, low: Bound, said: Range) -> None:
    """Say what is in a range: its ids, as many as fit, or fingerprints of its parts."""
    count = lookup.count(low, said.end)
    if said.kind == PRINT and count > LISTED_MAX:
        for start, end in _divide(lookup, low, said.end, count):
            writer.say(start, end, PRINT, lookup.fingerprint(start, end, key))
        return
    fitting = (writer.room - 3 * _RANGE_SIZE_MAX) // ID_SIZE
    items = lookup.items(low, said.end, fitting + 1)
    end = said.end if len(items) <= fitting else bound_between(items[-2], items[-1])
    writer.say(low, end, LIST, b"".join([commit_id for _, commit_id in items[:fitting]]))
    if end < said.end:
        writer.say(end, said.end, LATER)


def _divide(lookup: RangeLookup, low: Bound, high: Bound, count: int) -> Iterator[tuple[Bound, Bound]]:
    """Parts of a range of so many items, PARTS at least, as equal in number as can be."""
    assert count >= PARTS
    offsets = [count * part // PARTS for part in range(1, PARTS)]
    for before, after in lookup.neighbours(low, high, offsets):
        bound = bound_between(before, after)
        yield low, bound
        low = bound
    yield low, high


class RangesAsker:
    """The machine of who asks. `start` gives its first frame, `handle_frame` all further ones."""

    __slots__ = ("_asked", "_frame_count", "_key", "_lookup", "_pending", "here", "there")

    def __init__(self, lookup: RangeLookup, key: HashKey) -> None:
        self._lookup = lookup
        self._key = key
        # What is still to be compared, the next one last: in this order few wait at a time. They never overlap.
        self._pending = [_Question(START, END, DIFFERS)]
        self._asked: list[_Question] = []
        self._frame_count = 0
        self.here: set[ItemId] = set()
        """Ids that only this side holds, as far as told."""
        self.there: set[ItemId] = set()
        """Ids that only the other side holds, as far as told. Whether they exist is its word."""

    @property
    def is_done(self) -> bool:
        """True if everything was compared."""
        return not self._pending and not self._asked

    def start(self) -> bytes:
        """Return the first frame."""
        return self._ask()

    def handle_frame(self, frame: bytes) -> bytes | None:
        """Return the answer to the last frame; the next one, or None at the end.

        Raises DecodeError and Unreconciled; after either this machine has ended, and `here` and `there` may be used.
        """
        if not self._asked:
            raise Unreconciled("out_of_turn")
        asked, self._asked = self._asked, []
        again: list[_Question] = []
        for low, said in decode_ranges(frame):
            again += self._compare(low, said, asked)
        self._pending += reversed(again)
        if len(self._pending) > RANGE_PENDING_COUNT_MAX:
            raise Unreconciled("too_many_ranges")
        if not self._pending:
            return None
        if self._frame_count >= RANGE_FRAME_COUNT_MAX:
            raise Unreconciled("too_many_frames")
        return self._ask()

    def _compare(self, low: Bound, said: Range, asked: Sequence[_Question]) -> list[_Question]:
        """Return what must be asked further of a range that was answered."""
        first = bisect_right(asked, low, key=_low) - 1
        if said.kind == NOTHING:
            return []
        if said.kind == LATER:
            last = bisect_left(asked, said.end, key=_low)
            cut = [
                _Question(max(question.low, low), min(question.high, said.end), question.kind)
                for question in asked[max(first, 0) : last]
            ]
            return [question for question in cut if question.low < question.high]
        if first < 0 or said.end > asked[first].high:
            raise Unreconciled("out_of_turn")
        if said.kind == PRINT:
            is_equal = said.content == self._lookup.fingerprint(low, said.end, self._key)
            return [] if is_equal else [_Question(low, said.end, DIFFERS)]
        self._settle(low, said)
        return []

    def _settle(self, low: Bound, said: Range) -> None:
        content = said.content
        theirs: list[ItemId] = [
            AnyId(content[start : start + ID_SIZE]) for start in range(0, len(content), ID_SIZE)
        ]
        there = set(theirs)
        if len(there) < len(theirs):
            raise Unreconciled("bad_ids")
        # All that are in the range, or enough to know that they are too many.
        room = RANGE_DIFFERENCE_COUNT_MAX - len(self.here) - len(self.there)
        ours = {commit_id for _, commit_id in self._lookup.items(low, said.end, room + len(there) + 1)}
        self.here |= ours - there
        self.there |= there - ours
        if len(self.here) + len(self.there) > RANGE_DIFFERENCE_COUNT_MAX:
            raise Unreconciled("too_many_differences")

    def _ask(self) -> bytes:
        """Return a frame with the next questions."""
        self._frame_count += 1
        # Each range may have a gap before it.
        room = (RANGE_FRAME_SIZE_MAX - _HEAD_SIZE) // (2 * _RANGE_SIZE_MAX + FINGERPRINT_SIZE)
        chosen: list[_Question] = []
        while self._pending and len(chosen) + PARTS <= room:
            chosen += self._refine(self._pending.pop())
        self._asked = sorted(chosen, key=_low)
        writer = _Writer()
        for question in self._asked:
            low, high = question.low, question.high
            is_print = question.kind == PRINT
            content = self._lookup.fingerprint(low, high, self._key) if is_print else b""
            writer.say(low, high, question.kind, content)
        return writer.frame()

    def _refine(self, question: _Question) -> list[_Question]:
        """Return how to go on with a range that differs: list it if few items are here, else compare its parts."""
        low, high = question.low, question.high
        if question.kind != DIFFERS:
            return [question]
        count = self._lookup.count(low, high)
        if count <= LISTED_MAX:
            return [_Question(low, high, LIST)]
        return [_Question(start, end, PRINT) for start, end in _divide(self._lookup, low, high, count)]


def _low(question: _Question) -> Bound:
    return question.low
