"""Reader and writer of Yjs updates (format v1): bounded, without recursion, without native code.

An update has *structs* and *deletions*. A struct says what stands at some clocks of one client: a piece of text, an entry
of a map, or that the clocks are used up. A deletion names clocks of any client. What passes here is safe to hand to a
library: every length is checked, values nest at most DEPTH_MAX deep, and strings and JSON are what other readers take.

`read_update` costs O(bytes), and so do `write_update` and `cut_structs`.
"""

import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Final, NamedTuple

import msgspec

DEPTH_MAX: Final = 64
"""Lists and maps inside each other in one value: libraries recurse, and end at some thousand."""
VALUE_COUNT_MAX: Final = 100_000
"""Structs of one update, and values inside these. A text of 384 KiB in single letters has 40,000."""
CLOCK_MAX: Final = 1 << 31
"""Clocks of one client: libraries disagree on more."""
NUMBER_MAX: Final = (1 << 53) - 1
"""Client ids and all other numbers: JavaScript has no whole ones above."""
_NUMBER_SIZE_MAX: Final = 8

_GC, _DELETED, _JSON, _BINARY, _STRING, _EMBED, _FORMAT, _TYPE, _ANY, _SKIP = 0, 1, 2, 3, 4, 5, 6, 7, 8, 10
_TYPE_MAX: Final = 6
_NAMED_TYPES: Final = (3, 5)
_HAS_ORIGIN, _HAS_RIGHT, _HAS_KEY, _KIND = 0x80, 0x40, 0x20, 0x1F

_GONE_ROOT: Final = b"ravel-gone"

ItemId = tuple[int, int]
"""A client id and one of its clocks."""
Span = tuple[int, int]
"""Clocks from the first one to before the second one."""
NOTHING: Final = b"\0\0"
"""The update that says nothing."""


class BadUpdate(Exception):
    """The bytes are no update, or one past the bounds."""


class Struct(NamedTuple):
    """Part of an update: what it says at the clocks [clock, end) of one client, with its places in the bytes.

    It begins at `start`, what it holds begins at `content`, and `stop` is behind it. It stands behind the item `left` and
    before `right`; if it names neither, in `parent`, which is a root or an item, and under `key` if that is a map.
    """

    clock: int
    end: int
    info: int
    start: int
    content: int
    stop: int
    left: ItemId | None = None
    right: ItemId | None = None
    parent: str | ItemId | None = None
    key: str | None = None

    @property
    def is_type(self) -> bool:
        """True if other items may stand in it."""
        return self.info & _KIND == _TYPE

    @property
    def is_gone(self) -> bool:
        """True if it holds nothing that could be shown."""
        return self.info & _KIND in (_GC, _DELETED)

    @property
    def is_filler(self) -> bool:
        """True if it says that clocks are used up, and nothing else."""
        return self.info == _GC


class WrittenStructs(NamedTuple):
    """The bytes of some structs, one behind another, at the clocks [clock, end) of a client."""

    clock: int
    end: int
    struct_count: int
    encoded: bytes

    @property
    def is_filler(self) -> bool:
        """True if it is one filler."""
        return self.encoded[0] == _GC


@dataclass(frozen=True, slots=True)
class ReadUpdate:
    """An update, taken apart: structs and deleted clocks by client. Structs of a client are in the order of their clocks."""

    data: bytes
    structs: Mapping[int, Sequence[Struct]]
    deletes: Mapping[int, Sequence[Span]]

    def runs(self) -> Iterator[tuple[int, int, int]]:
        """Yield (client, from, to) of all clocks that structs stand at; neighbours are one run."""
        for client, structs in self.structs.items():
            start = stop = structs[0].clock
            for one in structs:
                if one.clock != stop:
                    yield client, start, stop
                    start = one.clock
                stop = one.end
            yield client, start, stop


def read_update(data: bytes) -> ReadUpdate:
    """Take an update apart.

    Args:
        data: the update, of any length.

    Raises:
        BadUpdate: it is no update of format v1, or past the bounds of this module.
    """
    cursor = _Cursor(data)
    try:
        structs: dict[int, list[Struct]] = {}
        for _ in range(cursor.number()):
            count, client, clock = cursor.number(), cursor.number(), cursor.number()
            if client in structs:
                raise BadUpdate("a client twice")
            found = _read_structs(cursor, client, count, clock)
            if found:
                structs[client] = found
        deletes: dict[int, list[Span]] = {}
        for _ in range(cursor.number()):
            client = cursor.number()
            spans = deletes.setdefault(client, [])
            for _ in range(cursor.number()):
                start = cursor.number()
                spans.append((start, _end_of(start, cursor.number())))
    except IndexError:
        raise BadUpdate("it ends too early") from None
    if cursor.place != len(data):
        raise BadUpdate("something follows it")
    return ReadUpdate(
        data, structs, {client: join_spans(spans) for client, spans in deletes.items() if spans}
    )


def _read_structs(cursor: "_Cursor", client: int, count: int, clock: int) -> list[Struct]:
    found = []
    for _ in range(count):
        start = cursor.place
        info = cursor.byte()
        kind = info & _KIND
        cursor.count(1)
        if kind in (_GC, _SKIP):
            if info & ~_KIND:
                raise BadUpdate("a filler with flags")
            content = cursor.place
            end = _end_of(clock, cursor.number())
            if kind == _GC:
                found.append(Struct(clock, end, info, start, content, cursor.place))
        else:
            head = _read_head(cursor, info, client, clock)
            content = cursor.place
            end = _end_of(clock, _skip_content(cursor, kind))
            found.append(Struct(clock, end, info, start, content, cursor.place, *head))
        clock = end
    return found


def _end_of(start: int, length: int) -> int:
    if not length or start + length > CLOCK_MAX:
        raise BadUpdate("clocks out of bounds")
    return start + length


def _read_head(
    cursor: "_Cursor", info: int, client: int, clock: int
) -> tuple[ItemId | None, ItemId | None, str | ItemId | None, str | None]:
    """Return where an item stands: the items left and right of it, or its parent and key."""
    left = _read_item(cursor, client, clock) if info & _HAS_ORIGIN else None
    right = _read_item(cursor, client, clock) if info & _HAS_RIGHT else None
    if left is not None or right is not None:
        return left, right, None, None
    named = cursor.number()
    if named > 1:
        raise BadUpdate("a parent that is neither a name nor an item")
    parent = cursor.text() if named else _read_item(cursor, client, clock)
    return None, None, parent, cursor.text() if info & _HAS_KEY else None


def _read_item(cursor: "_Cursor", client: int, clock: int) -> ItemId:
    """Return the name of another item: of the same client, it must be an earlier one, or Yjs fails."""
    of, at = cursor.number(), cursor.number()
    if at >= CLOCK_MAX or (of == client and at >= clock):
        raise BadUpdate("an item beside one that comes after it")
    return of, at


def _skip_content(cursor: "_Cursor", kind: int) -> int:
    """Pass over what an item holds; return its length in clocks."""
    match kind:
        case 1:  # _DELETED
            return cursor.number()
        case 2:  # _JSON
            count = cursor.number()
            for _ in range(count):
                cursor.json(is_undefined_fine=True)
            return count
        case 3:  # _BINARY
            cursor.skip(cursor.number())
        case 4:  # _STRING
            return _units(cursor.text())
        case 5:  # _EMBED
            cursor.json()
        case 6:  # _FORMAT
            cursor.text()
            cursor.json()
        case 7:  # _TYPE
            named = cursor.number()
            if named > _TYPE_MAX:
                raise BadUpdate("a type that not all libraries know")
            if named in _NAMED_TYPES:
                cursor.text()
        case 8:  # _ANY
            count = cursor.number()
            cursor.values(count)
            return count
        case _:  # subdocuments, and what other libraries add
            raise BadUpdate("content that not all libraries take")
    return 1


def _units(text: str) -> int:
    """Length in UTF-16, which is what clocks of a text count."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2


class _Cursor:
    """A place in the bytes of an update. Reading past the end raises IndexError or BadUpdate."""

    __slots__ = ("_data", "_left", "place")

    def __init__(self, data: bytes, place: int = 0) -> None:
        self._data = data
        self._left = VALUE_COUNT_MAX
        self.place = place

    def count(self, more: int) -> None:
        """Note so many structs or values more."""
        self._left -= more
        if self._left < 0:
            raise BadUpdate("too many values")

    def byte(self) -> int:
        found = self._data[self.place]
        self.place += 1
        return found

    def number(self) -> int:
        data, place = self._data, self.place
        byte = data[place]
        place += 1
        number, shift = byte & 127, 7
        while byte > 127:
            if shift == 7 * _NUMBER_SIZE_MAX:
                raise BadUpdate("a number too large")
            byte = data[place]
            place += 1
            number |= (byte & 127) << shift
            shift += 7
        if number > NUMBER_MAX:
            raise BadUpdate("a number too large")
        self.place = place
        return number

    def skip(self, length: int) -> bytes:
        """Pass over so many bytes and return them."""
        start = self.place
        if length > len(self._data) - start:
            raise BadUpdate("it ends too early")
        self.place = start + length
        return self._data[start : start + length]

    def text(self) -> str:
        try:
            return self.skip(self.number()).decode()
        except UnicodeDecodeError:
            raise BadUpdate("a text that is not UTF-8") from None

    def json(self, *, is_undefined_fine: bool = False) -> None:
        """Pass over a value that stands as JSON in a text."""
        said = self.text()
        self.count(1)
        if is_undefined_fine and said == "undefined":
            return
        try:
            value: object = msgspec.json.decode(said)
        except (msgspec.DecodeError, RecursionError):
            raise BadUpdate("a value that is not JSON") from None
        ahead = [(value, 1)]
        while ahead:
            one, depth = ahead.pop()
            inside = one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
            if inside and depth > DEPTH_MAX:
                raise BadUpdate("values nested too deep")
            self.count(len(inside))
            ahead += [(below, depth + 1) for below in inside]

    def values(self, count: int) -> None:
        """Pass over so many values, and all that is inside them: on a stack of how many are still to be read."""
        self.count(count)
        stack = [(count, False)]
        while stack:
            count, has_keys = stack.pop()
            if not count:
                continue
            if len(stack) >= DEPTH_MAX:
                raise BadUpdate("values nested too deep")
            stack.append((count - 1, has_keys))
            if has_keys:
                self.text()
            kind = self.byte()
            match kind:
                case 127 | 126 | 121 | 120:  # undefined, null, true, false
                    pass
                case 125:
                    self._signed()
                case 124:
                    self.skip(4)
                case 123 | 122:
                    self.skip(8)
                case 119:
                    self.text()
                case 116:
                    self.skip(self.number())
                case 118 | 117:  # map, list
                    inside = self.number()
                    self.count(inside)
                    stack.append((inside, kind == 118))
                case _:
                    raise BadUpdate("a value of no known kind")

    def value(self) -> object:
        """Return one value that was read before; values nest at most DEPTH_MAX deep."""
        kind = self.byte()
        match kind:
            case 125:
                return float(self._signed())
            case 124:
                return struct.unpack(">f", self.skip(4))[0]
            case 123:
                return struct.unpack(">d", self.skip(8))[0]
            case 122:
                return kind, self.skip(8)
            case 119:
                return self.text()
            case 116:
                return self.skip(self.number())
            case 118:
                return {self.text(): self.value() for _ in range(self.number())}
            case 117:
                return [self.value() for _ in range(self.number())]
            case _:
                return kind, b""

    def _signed(self) -> int:
        first = self.byte()
        byte = first
        number, shift = byte & 63, 6
        while byte > 127:
            if shift > 7 * _NUMBER_SIZE_MAX:
                raise BadUpdate("a number too large")
            byte = self.byte()
            number |= (byte & 127) << shift
            shift += 7
        if number > NUMBER_MAX:
            raise BadUpdate("a number too large")
        return -number if first & 64 else number


def join_spans(spans: Iterable[Span]) -> list[Span]:
    """Return the same clocks in order, with neighbours and overlaps as one."""
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def overlap_spans(spans: Sequence[Span], others: Sequence[Span]) -> list[Span]:
    """Return what two rows of sorted spans have in common; costs the shorter row, and what it meets in the other."""
    if len(others) < len(spans):
        spans, others = others, spans
    found: list[Span] = []
    for start, end in spans:
        for place in range(_place_of(start, others), len(others)):
            first, last = others[place]
            if first >= end:
                break
            if start < last:
                found.append((max(start, first), min(end, last)))
    return found


def subtract_spans(spans: Sequence[Span], others: Sequence[Span]) -> Iterator[Span]:
    """Yield what sorted spans have and others, which do not touch, have not."""
    for begin, end in spans:
        start = begin
        for place in range(_place_of(start, others), len(others)):
            first, last = others[place]
            if first >= end:
                break
            if start < first:
                yield start, first
            start = max(start, last)
        if start < end:
            yield start, end


def _place_of(clock: int, spans: Sequence[Span]) -> int:
    """Return the place of the last of sorted spans that begins at a clock or before, or 0."""
    return max(bisect_right(spans, clock, key=itemgetter(0)) - 1, 0)


# --- writing ---


def write_update(
    structs: Mapping[int, Sequence[WrittenStructs]], deletes: Mapping[int, Sequence[Span]]
) -> bytes:
    """Return the update of these structs and deletions; what lies between structs of a client is skipped.

    Clients stand in falling order, as libraries write them.
    """
    parts: list[bytes] = [_number(len(structs))]
    for client in sorted(structs, reverse=True):
        said = structs[client]
        begun, clock, count = len(parts), said[0].clock, 0
        for one in said:
            if one.clock > clock:
                parts.append(bytes([_SKIP]) + _number(one.clock - clock))
                count += 1
            parts.append(one.encoded)
            count += one.struct_count
            clock = one.end
        parts.insert(begun, _number(count) + _number(client) + _number(said[0].clock))
    parts.append(_number(len(deletes)))
    for client in sorted(deletes, reverse=True):
        parts.append(_number(client) + _number(len(deletes[client])))
        parts += [_number(start) + _number(end - start) for start, end in deletes[client]]
    return b"".join(parts)


def whole_runs(update: ReadUpdate) -> Iterator[tuple[int, WrittenStructs]]:
    """Yield (client, bytes) of each run of clocks that an update says."""
    for client, structs in update.structs.items():
        first = 0
        for place in range(1, len(structs) + 1):
            if place == len(structs) or structs[place].clock != structs[place - 1].end:
                begin, end = structs[first], structs[place - 1]
                encoded = update.data[begin.start : end.stop]
                yield client, WrittenStructs(begin.clock, end.end, place - first, encoded)
                first = place


def cut_structs(update: ReadUpdate, client: int, wanted: Sequence[Span]) -> list[WrittenStructs]:
    """Return what an update says at these clocks of a client; spans are in order and do not overlap.

    A struct that is cut begins behind its own last clock that is left out, as Yjs splits items.
    """
    found: list[WrittenStructs] = []
    structs = update.structs.get(client, ())
    place = 0
    for start, end in wanted:
        while place < len(structs) and structs[place].end <= start:
            place += 1
        for one in structs[place:]:
            if one.clock >= end:
                break
            found.append(_slice(update.data, client, one, max(start, one.clock), min(end, one.end)))
    return found


def _slice(data: bytes, client: int, one: Struct, start: int, end: int) -> WrittenStructs:
    if (start, end) == (one.clock, one.end):
        return WrittenStructs(start, end, 1, data[one.start : one.stop])
    kind = one.info & _KIND
    if kind == _GC:
        return WrittenStructs(start, end, 1, bytes([_GC]) + _number(end - start))
    right = one.right
    head = data[one.start + 1 : one.content]
    info = one.info
    if start > one.clock:
        info = kind | _HAS_ORIGIN | (one.info & _HAS_RIGHT)
        head = (
            _number(client) + _number(start - 1) + (_number(right[0]) + _number(right[1]) if right else b"")
        )
    content = _slice_content(data, one, start - one.clock, end - one.clock)
    return WrittenStructs(start, end, 1, bytes([info]) + head + content)


def _slice_content(data: bytes, one: Struct, start: int, end: int) -> bytes:
    match one.info & _KIND:
        case 1:  # _DELETED
            return _number(end - start)
        case 4:  # _STRING
            encoded = _string_units(data, one)[2 * start : 2 * end].decode("utf-16-le", "surrogatepass")
            # Half of a pair is no character; Yjs puts this one in its place.
            said = "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in encoded).encode()
            return _number(len(said)) + said
        case _:  # _JSON and _ANY: all others have one clock
            parts = _value_parts(data, one)[start:end]
            return _number(len(parts)) + b"".join(parts)


def _string_units(data: bytes, one: Struct) -> bytes:
    return _Cursor(data, one.content).text().encode("utf-16-le")


def _value_parts(data: bytes, one: Struct) -> list[bytes]:
    """Bytes of each value that an item of several values holds."""
    cursor = _Cursor(data, one.content)
    parts = []
    for _ in range(cursor.number()):
        start = cursor.place
        if one.info & _KIND == _JSON:
            cursor.text()
        else:
            cursor.values(1)
        parts.append(data[start : cursor.place])
    return parts


def _number(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def read_vector(encoded: bytes) -> dict[int, int]:
    """Return the clock behind what is there of each client, from a Yjs state vector that a library has made."""
    cursor = _Cursor(encoded)
    return {cursor.number(): cursor.number() for _ in range(cursor.number())}


def write_gone(clock: int, end: int) -> WrittenStructs:
    """Return an item that stands for a filler: deleted, and in a root of its own.

    Beside a filler Yjs hides other items, and pycrdt 0.14 shows them. Beside a deleted item both show them.
    """
    head = bytes([_DELETED, 1]) + _number(len(_GONE_ROOT)) + _GONE_ROOT
    return WrittenStructs(clock, end, 1, head + _number(end - clock))


# --- comparing ---


def say_same(client: int, one: tuple[bytes, Struct], other: tuple[bytes, Struct], span: Span) -> bool:
    """Return True if two structs of a client, each in its update, say the same at clocks that both have.

    Structs that hold nothing say nothing else than another: what they held was deleted.
    """
    (data, mine), (their_data, theirs) = one, other
    if mine.info & _KIND != theirs.info & _KIND:
        return False
    start, _ = span
    if mine.right != theirs.right:
        return False
    if start == mine.clock and start == theirs.clock:
        if (mine.left, mine.parent, mine.key) != (theirs.left, theirs.parent, theirs.key):
            return False
    else:
        inner = (client, start - 1)
        if (mine.left if start == mine.clock else inner) != (theirs.left if start == theirs.clock else inner):
            return False
    return _content_of(data, mine, span) == _content_of(their_data, theirs, span)


def _content_of(data: bytes, one: Struct, span: Span) -> object:
    """Return what stands at these clocks, so that it can be compared: libraries write maps in any order."""
    start, end = span[0] - one.clock, span[1] - one.clock
    match one.info & _KIND:
        case 4:  # _STRING
            return _string_units(data, one)[2 * start : 2 * end]
        case 2:  # _JSON
            return _value_parts(data, one)[start:end]
        case 8:  # _ANY
            return [_Cursor(part).value() for part in _value_parts(data, one)[start:end]]
        case 5:  # _EMBED
            return msgspec.json.decode(_Cursor(data, one.content).text())
        case 6:  # _FORMAT
            cursor = _Cursor(data, one.content)
            return cursor.text(), msgspec.json.decode(cursor.text())
        case _:
            return data[one.content : one.stop]
