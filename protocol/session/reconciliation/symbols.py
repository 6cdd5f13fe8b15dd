"""Message exchange for reconciliation by coded symbols: one side sends, the other decodes
(`protocol.session.reconciliation.riblt`).

    answerer                                       asker
    symbols1: the first 48, and marks   ->         peels; done for up to some 28 differences, else counts them by marks
                                        <-         ask-symbols1: as many as these deserve
    symbols1, symbols1, ...             ->         done
                                        <-         lacks1: short ids that it does not hold (it sends what it alone holds)

When set digests differ, the answerer sends its opening unasked. With it the asker knows a small difference, one round
trip later a large one.

*Marks* are the last four bits of 64 symbols in each power of two of the rest of the prefix. Far out, few of the ids that
differ are in a symbol, and how many symbols are equal on both sides says how many ids differ, to some 9 %: 320 bytes
spare the round trips, or the surplus, of doubling.

The answerer keeps the symbols as they were when it sent its opening, and nothing else. The asker's `Unreconciled` names
why it gave up; what both do then is to compare by ranges.
"""

from collections.abc import Iterator, Sequence
from math import ceil, sqrt
from typing import Annotated, Final

from msgspec import Meta

from protocol.codec import DecodeError, Wire, decode, encode
from protocol.crypto.keys import HashKey
from protocol.ids import SHORT_ID_SIZE, ShortId
from protocol.limits.peers import SHORT_ID_FRAME_COUNT_MAX, SYMBOL_FRAME_COUNT_MAX, SYMBOL_PREFIX_LENGTH_MAX
from protocol.session.reconciliation.riblt import (
    SYMBOL_SIZE,
    Peeler,
    Unreconciled,
    is_prefix_length,
    pack_symbols,
    unpack_symbols,
)

OPENING_COUNT: Final = 48
"""Symbols sent unasked: 98 of 100 differences of 20 ids are told by them, in 1.2 KB."""

_MARKS_PER_OCTAVE: Final = 64
_MARKS_START: Final = 64
_MARKS_SIZE_MAX: Final = _MARKS_PER_OCTAVE // 2 * (SYMBOL_PREFIX_LENGTH_MAX // _MARKS_START).bit_length()
_FRAME_ROOM: Final = 512  # bytes of a frame beside its symbols or ids: marks, numbers, tag

_DOUBT: Final = 1.15
"""How much larger than estimated a difference may be without another round: in a few cases of a hundred it is."""
_STEP: Final = 4
"""Anyone who asks again asks for a quarter of what it has, at least: so it ends in few rounds whatever the estimate."""


class Symbols(Wire, frozen=True, tag="symbols1"):
    """Symbols from `start` on, of `length` that there are. Marks come with the first."""

    length: Annotated[int, Meta(ge=1, le=SYMBOL_PREFIX_LENGTH_MAX)]
    start: Annotated[int, Meta(ge=0, lt=SYMBOL_PREFIX_LENGTH_MAX)]
    symbols: Annotated[bytes, Meta(min_length=SYMBOL_SIZE, max_length=SYMBOL_SIZE * SYMBOL_FRAME_COUNT_MAX)]
    marks: Annotated[bytes, Meta(max_length=_MARKS_SIZE_MAX)]


class AskSymbols(Wire, frozen=True, tag="ask-symbols1"):
    """Asks for symbols; they come in as many frames as they need."""

    start: Annotated[int, Meta(ge=1, lt=SYMBOL_PREFIX_LENGTH_MAX)]
    count: Annotated[int, Meta(ge=1, le=SYMBOL_PREFIX_LENGTH_MAX)]


class Lacks(Wire, frozen=True, tag="lacks1"):
    """Short ids, one after another, of commits that the sender asks for."""

    short_ids: Annotated[
        bytes, Meta(min_length=SHORT_ID_SIZE, max_length=SHORT_ID_SIZE * SHORT_ID_FRAME_COUNT_MAX)
    ]


def decode_symbols(frame: bytes) -> Symbols:
    """Return the symbols in a frame. Raises DecodeError."""
    made = decode(Symbols, frame, size_max=SYMBOL_SIZE * SYMBOL_FRAME_COUNT_MAX + _FRAME_ROOM)
    count, rest = divmod(len(made.symbols), SYMBOL_SIZE)
    if rest or not is_prefix_length(made.length) or made.start + count > made.length:
        raise DecodeError("bad_shape", "symbols of no prefix")
    if 2 * len(made.marks) != (0 if made.start else len(_mark_places(made.length))):
        raise DecodeError("bad_shape", f"{len(made.marks)} marks")
    return made


def decode_ask(frame: bytes) -> AskSymbols:
    """Return the question in a frame. Raises DecodeError."""
    return decode(AskSymbols, frame, size_max=_FRAME_ROOM)


def encode_lacks(short_ids: Sequence[ShortId]) -> list[bytes]:
    """Frames that ask for these commits."""
    step = SHORT_ID_FRAME_COUNT_MAX
    return [
        encode(Lacks(b"".join(short_ids[start : start + step]))) for start in range(0, len(short_ids), step)
    ]


def decode_lacks(frame: bytes) -> list[ShortId]:
    """Return the short ids in a frame. Raises DecodeError."""
    packed = decode(Lacks, frame, size_max=SHORT_ID_SIZE * SHORT_ID_FRAME_COUNT_MAX + _FRAME_ROOM).short_ids
    if len(packed) % SHORT_ID_SIZE:
        raise DecodeError("bad_shape", f"{len(packed)} bytes of short ids")
    found = [ShortId(packed[start : start + SHORT_ID_SIZE]) for start in range(0, len(packed), SHORT_ID_SIZE)]
    if len(set(found)) < len(found):
        raise DecodeError("duplicate_ids")
    return found


def opening(symbols: Sequence[int]) -> bytes:
    """Return the answerer's first frame."""
    return encode(Symbols(len(symbols), 0, pack_symbols(symbols[:OPENING_COUNT]), _marks(symbols)))


def answer(symbols: Sequence[int], frame: bytes) -> Iterator[bytes]:
    """Return the answerer's frames for one question. Raises DecodeError, also for symbols that there are not."""
    asked = decode_ask(frame)
    end = asked.start + asked.count
    if end > len(symbols):
        raise DecodeError("bad_shape", f"{end} symbols of {len(symbols)}")
    return (
        encode(
            Symbols(
                len(symbols),
                start,
                pack_symbols(symbols[start : min(start + SYMBOL_FRAME_COUNT_MAX, end)]),
                b"",
            )
        )
        for start in range(asked.start, end, SYMBOL_FRAME_COUNT_MAX)
    )


class SymbolsAsker:
    """State machine of the side that peels symbols. `handle_frame` is its only input."""

    __slots__ = ("_asked", "_heard", "_key", "_length", "_marks_equal", "_own", "_peeler", "estimate")

    def __init__(self, key: HashKey, own: Sequence[int]) -> None:
        self._key = key
        self._own = own
        self._peeler: Peeler | None = None
        self._length = 0  # of the other side's prefix
        self._heard = 0  # symbols
        self._asked = OPENING_COUNT
        self._marks_equal: list[bool] = []
        self.estimate = 0
        """Ids that differ, by the marks; 0 while that is not needed."""

    @property
    def is_done(self) -> bool:
        """True once the difference is known."""
        return self._peeler is not None and self._peeler.is_done

    @property
    def has_all(self) -> bool:
        """True if all symbols came that were asked for: more are often asked for than turn out to be needed."""
        return self._heard >= self._asked

    @property
    def differences(self) -> tuple[ShortId, ...]:
        """Short ids that only one side holds; complete once `is_done`. A look-up tells which side."""
        return self._peeler.differences if self._peeler is not None else ()

    def handle_frame(self, frame: bytes) -> bytes | None:
        """Return a frame of the answerer; what to ask, or None while it is still sending, and at the end.

        Raises DecodeError and Unreconciled; after either this machine has ended.
        """
        said = decode_symbols(frame)
        symbols = unpack_symbols(said.symbols)
        if self._peeler is None:
            self._begin(said, len(symbols))
        assert self._peeler is not None
        if said.start != self._heard or said.length != self._length:
            raise Unreconciled("out_of_turn")
        self._heard += len(symbols)
        if self._heard > self._asked:
            raise Unreconciled("out_of_turn")
        if self.is_done:
            return None  # asked for before the end was known
        self._peeler.add_symbols(symbols)
        return None if self.is_done or self._heard < self._asked else self._ask_more()

    def _begin(self, said: Symbols, count: int) -> None:
        if said.start or count != OPENING_COUNT:
            raise Unreconciled("out_of_turn")
        self._length = said.length
        self._peeler = Peeler(self._key, self._own)
        different = [own ^ theirs for own, theirs in zip(_marks(self._own), said.marks, strict=False)]
        self._marks_equal = [mark & part == 0 for mark in different for part in (15, 240)]

    def _ask_more(self) -> bytes:
        limit, received = min(self._length, len(self._own)), self._heard
        if not self.estimate:
            self.estimate = _estimate(_mark_places(limit), self._marks_equal, limit)
        if received >= limit or self.estimate > limit:
            raise Unreconciled("too_many_differences")
        likely = _symbols_needed(self.estimate * _DOUBT)
        self._asked = min(limit, max(likely, received + received // _STEP))
        return encode(AskSymbols(received, self._asked - received))


def _mark_places(length: int) -> list[int]:
    """Symbols whose last bytes are marks: those of a shorter prefix are the first of a longer one's."""
    places: list[int] = []
    octave = _MARKS_START
    while octave < length:
        places += range(octave, 2 * octave, octave // _MARKS_PER_OCTAVE)
        octave *= 2
    return places


def _marks(symbols: Sequence[int]) -> bytes:
    """Return two marks in a byte, the first one in its lower half."""
    marks = [symbols[place] & 15 for place in _mark_places(len(symbols))]
    return bytes([low | high << 4 for low, high in zip(marks[::2], marks[1::2], strict=True)])


def _symbols_needed(difference: float) -> int:
    """Return how many symbols suffice for 99 of 100 differences of this size; fitted to measurements for 10 to 30,000."""
    return ceil(1.37 * difference + 3.5 * sqrt(difference))


def _estimate(places: Sequence[int], equal: Sequence[bool], limit: int) -> int:
    """Return the most likely number of ids that differ, if these symbols' marks are equal or not; at most twice the limit.

    Each id that differs is in symbol i with a probability of 2 / (i + 2), and one in 16 marks is equal by chance. The
    likelihood has one maximum; where its slope changes sign is found by halving.
    """
    low, high = 0, 2 * limit
    while high - low > 1:
        middle = (low + high) // 2
        slope = 0.0
        for place, is_equal in zip(places, equal, strict=True):
            empty = (place / (place + 2)) ** middle  # the chance that the symbol is equal
            falling = empty * 15 / (place + 1)  # of the mark's chance below, times 16, by the difference
            slope += -falling / (1 + 15 * empty) if is_equal else falling / (15 * (1 - empty) + 1e-9)
        low, high = (middle, high) if slope > 0 else (low, middle)
    return high
