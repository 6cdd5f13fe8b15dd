"""Rateless invertible Bloom lookup tables: coded symbols that reveal how two sets of commit ids differ.

Rateless invertible Bloom lookup tables (Yang, Gilad, Alizadeh, "Practical Rateless Set Reconciliation", SIGCOMM 2024).
Symbol i of a set is a sum (exclusive or) over the ids that fall into it; every id falls into symbol 0 and into symbol i
with a probability of about 2 / (i + 2). Where both sets' symbols are added, common ids vanish, and a symbol with one id
left gives it away; taking this id out of its other symbols uncovers more. From 1.35 (large differences) to 1.8 symbols
(small ones) for each id that differs are enough, however large the sets are.

What is summed is 24 bytes for each id: its *short id*, the first 16 bytes, and a check of 8. Whole ids would cost half
as much again (56 KB for 1,000 differences, not 33), and are learnt anyway with the commits: they are asked for by short
id, which storage finds by its index of prefixes. There is no count of ids as in the paper: the check tells a lone id by
itself, and on whose side it is, each side sees by looking it up.

An id's symbols and its check follow from a key of the topic, not of the session: symbols could not be kept otherwise,
and reading a million ids to answer one peer is what a prefix is kept to avoid. So a *writer* of the topic can choose ids
that share their first symbols (some hundred tries for 64 of them, some thousand for 256) or, with 2^64 steps, their
first 16 bytes. No result is wrong for that. Symbols that cannot be told apart end in `Unreconciled`, and ranges under
a session's own key find the difference; ids that hide each other are seen by the set digest, with the same end. Nor
does it last: once both sides hold such ids, they vanish from the sum like all others. Who does not know the topic can do
nothing.

    prefix = Prefix(symbol_key(topic), prefix_length(0))
    prefix.add(ids)                                    # 4 to 10 us each
    peeler = Peeler(key, prefix.symbols())
    peeler.add_symbols(symbols_of_the_other_side[:64])        # ... until
    peeler.is_done                                     # then peeler.differences has the short ids on one side only
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from math import isqrt
from struct import Struct
from typing import Final, Self

from protocol.codec import DecodeError
from protocol.crypto.hashing import symbol_bits
from protocol.crypto.keys import HashKey
from protocol.ids import SHORT_ID_SIZE, ItemId, ShortId
from protocol.limits.peers import SYMBOL_PREFIX_LENGTH_MAX, SYMBOL_PREFIX_LENGTH_MIN

"""Bytes of a short id: as many of the id's first."""
SYMBOL_SIZE: Final = SHORT_ID_SIZE + 8
"""Bytes of a symbol: the sum of short ids and that of their checks."""

_CHECK_SIZE: Final = SYMBOL_SIZE - SHORT_ID_SIZE
_CHECK_BITS: Final = 8 * _CHECK_SIZE
_CHECK: Final = (1 << _CHECK_BITS) - 1
# An id falls into at most this many symbols: 28 of 65,536 is less than one id in twenty would do.
_draws: Final = Struct(f"<{_CHECK_SIZE}x28H")
_count: Final = Struct(">Q")

_GROWTH: Final = 4
_IDS_PER_SYMBOL: Final = 8


class Unreconciled(Exception):
    """The sets were not reconciled this way; `reason` is a stable code. What was found before it may still be used.

    - `too_many_differences`: more than the kept prefix or the limits can tell: compare by ranges, or send everything;
    - `bad_symbols`: the coded symbols are no sum of ids: a lie, or a collision. Compare by ranges;
    - `out_of_turn`: a frame that nobody asked for;
    - `bad_ids`: a range names an id twice;
    - `too_many_frames`, `too_many_ranges`: it does not come to an end.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def prefix_length(id_count: int) -> int:
    """Symbols worth keeping of a set: 64 times a power of 4, and one for each eight ids at least, within bounds.

    A longer prefix is made of all ids anew, which powers of 4 keep to a third of a reading for each id. A prefix decodes a
    difference of 9 % of the set at least, beyond which the commits themselves cost far more than finding them.
    """
    length = SYMBOL_PREFIX_LENGTH_MIN
    while length < SYMBOL_PREFIX_LENGTH_MAX and length * _IDS_PER_SYMBOL < id_count:
        length *= _GROWTH
    return length


def is_prefix_length(length: int) -> bool:
    """Return True if `prefix_length` gives this for any set."""
    return length in _lengths()


class Prefix:
    """The first symbols of a topic's set, kept as it grows: `add` changes it. More symbols of a set are another prefix.

    Ids are only ever added, each once. A store that keeps `to_bytes` together with the place of the last id added can
    write it seldom: ids after that place are added again when it is read.
    """

    __slots__ = ("_key", "_symbols", "id_count")

    def __init__(self, key: HashKey, length: int) -> None:
        assert is_prefix_length(length)
        self._key = key
        self._symbols = [0] * length
        self.id_count = 0

    def __len__(self) -> int:
        return len(self._symbols)

    def add(self, ids: Iterable[ItemId]) -> None:
        """Ids of 32 bytes that are not in the set yet."""
        # The loop of `_places`, written out: half the time.
        symbols, length, key, jumps = self._symbols, len(self._symbols), self._key, _jumps()
        count = 0
        for commit_id in ids:
            short_id = commit_id[:SHORT_ID_SIZE]
            bits = symbol_bits(key, short_id)
            value = int.from_bytes(short_id + bits[:_CHECK_SIZE])
            place = 0
            for draw in _draws.unpack(bits):
                symbols[place] ^= value
                place += 1 + ((place + place + 3) * jumps[draw] >> 25)
                if place >= length:
                    break
            count += 1
        self.id_count += count

    def symbols(self) -> tuple[int, ...]:
        """Return the symbols as they are now: what a session goes on with while the prefix changes."""
        return tuple(self._symbols)

    def to_bytes(self) -> bytes:
        """Return the prefix for storage: 8 bytes for the number of ids, big-endian, and SYMBOL_SIZE for each symbol."""
        return _count.pack(self.id_count) + pack_symbols(self._symbols)

    @classmethod
    def from_bytes(cls, key: HashKey, kept: bytes) -> Self:
        """Return the prefix that was kept. Raises DecodeError."""
        length, rest = divmod(len(kept) - _count.size, SYMBOL_SIZE)
        if rest or not is_prefix_length(length):
            raise DecodeError("bad_shape", f"{len(kept)} bytes are no prefix")
        made = cls(key, length)
        (made.id_count,) = _count.unpack_from(kept)
        made._symbols = unpack_symbols(kept[_count.size :])
        return made


class Peeler:
    """Tells the difference of two sets from the symbols of both; those of the other side come piece by piece."""

    __slots__ = ("_key", "_left", "_peeled", "_received", "_remaining")

    def __init__(self, key: HashKey, own: Sequence[int]) -> None:
        self._key = key
        self._left = list(own)  # own symbols, then sums of both sides', less what was peeled
        self._received = 0
        self._remaining = 0  # received symbols that are not empty
        self._peeled: dict[ShortId, None] = {}

    @property
    def received(self) -> int:
        """Symbols taken."""
        return self._received

    @property
    def is_done(self) -> bool:
        """True if what was peeled explains every symbol that was received."""
        return self._received > 0 and self._remaining == 0

    @property
    def differences(self) -> tuple[ShortId, ...]:
        """Short ids that only one side holds, in the order in which they were found."""
        return tuple(self._peeled)

    def add_symbols(self, symbols: Sequence[int]) -> None:
        """Take the other side's next symbols. Raises Unreconciled."""
        start, self._received = self._received, self._received + len(symbols)
        if self._received > len(self._left):
            raise Unreconciled("too_many_differences")
        left = self._left
        for place, symbol in enumerate(symbols, start):
            left[place] ^= symbol
            self._remaining += left[place] != 0
        waiting = list(range(start, self._received))
        while waiting:
            self._peel(waiting.pop(), waiting)

    def _peel(self, place: int, waiting: list[int]) -> None:
        """Take out the id that is alone in this symbol, if one is."""
        value = self._left[place]
        if not value:
            return
        short_id = ShortId((value >> _CHECK_BITS).to_bytes(SHORT_ID_SIZE))
        bits = symbol_bits(self._key, short_id)
        if int.from_bytes(bits[:_CHECK_SIZE]) != value & _CHECK:
            return
        places = list(_places(bits, len(self._left)))
        # Sums of ids never do the following; anyone who makes up symbols could otherwise have us peel for ever.
        if place not in places or short_id in self._peeled or len(self._peeled) >= self._received:
            raise Unreconciled("bad_symbols")
        self._peeled[short_id] = None
        for other in places:
            before = self._left[other]
            self._left[other] = before ^ value
            if other < self._received:
                self._remaining += (before == 0) - (before == value)
                waiting.append(other)


def pack_symbols(symbols: Iterable[int]) -> bytes:
    """Symbols as bytes, SYMBOL_SIZE each, big-endian."""
    return b"".join([symbol.to_bytes(SYMBOL_SIZE) for symbol in symbols])


def unpack_symbols(packed: bytes) -> list[int]:
    """Symbols from bytes, whose number is a multiple of SYMBOL_SIZE."""
    return [
        int.from_bytes(packed[start : start + SYMBOL_SIZE]) for start in range(0, len(packed), SYMBOL_SIZE)
    ]


def _places(bits: bytes, length: int) -> Iterator[int]:
    """Yield the symbols, of so many, into which an id falls."""
    jumps = _jumps()
    place = 0
    for draw in _draws.unpack(bits):
        yield place
        place += 1 + ((place + place + 3) * jumps[draw] >> 25)
        if place >= length:
            return


@cache
def _jumps() -> "array[int]":
    """Return for each draw u of 2^16 (1 / sqrt((u + 1) / 2^16) - 1) in units of 2^-24, rounded down.

    (i + 1.5) times this, rounded down, is how many symbols an id that is in symbol i skips: the paper's distribution.
    """
    return array("L", [isqrt((1 << 64) // (draw + 1)) - (1 << 24) for draw in range(1 << 16)])


@cache
def _lengths() -> frozenset[int]:
    lengths = {SYMBOL_PREFIX_LENGTH_MIN}
    while max(lengths) < SYMBOL_PREFIX_LENGTH_MAX:
        lengths.add(max(lengths) * _GROWTH)
    return frozenset(lengths)
