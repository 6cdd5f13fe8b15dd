"""Reader of Yjs updates (format v1): bounded, without recursion, without native code.

An update has *structs* and *deletions*. A struct says what stands at some clocks of one client: a piece of text, an entry
of a map, or that the clocks are used up. A deletion names clocks of any client. What passes here is safe to hand to a
library: every length is checked, values nest at most DEPTH_MAX deep, and strings and JSON are what other readers take.

Reading costs O(bytes). `yjs_structs` cuts, compares and writes what was read.
"""

import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple

import msgspec

from protocol.formats.clock_spans import Span, join_spans

DEPTH_MAX: Final = 64
"""Lists and maps inside each other in one value: libraries recurse, and end at some thousand."""
VALUE_COUNT_MAX: Final = 100_000
"""Structs of one update, and values inside these. A text of 384 KiB in single letters has 40,000."""
CLOCK_MAX: Final = 1 << 31
"""Clocks of one client: libraries disagree on more."""
NUMBER_MAX: Final = (1 << 53) - 1
"""Client ids and all other numbers: JavaScript has no whole ones above."""
_NUMBER_SIZE_MAX: Final = 8
_NOT_A_NUMBER: Final = (123, b"")

_TYPE_MAX: Final = 6
_NAMED_TYPES: Final = (3, 5)
HAS_LEFT: Final = 0x80
"""Flag of a struct: it names the item left of it."""
HAS_RIGHT: Final = 0x40
"""Flag of a struct: it names the item right of it."""
_HAS_KEY, _KIND = 0x20, 0x1F

ItemId = tuple[int, int]
"""A client id and one of its clocks."""
NOTHING: Final = b"\0\0"
"""The update that says nothing."""


class Kind(IntEnum):
    """Kinds of structs, by what they hold."""

    FILLER = 0
    DELETED = 1
    JSON = 2
    BINARY = 3
    STRING = 4
    EMBED = 5
    FORMAT = 6
    TYPE = 7
    ANY = 8
    SKIP = 10


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
    def kind(self) -> int:
        """One of `Kind`."""
        return self.info & _KIND

    @property
    def is_type(self) -> bool:
        """True if other items may stand in it."""
        return self.kind == Kind.TYPE

    @property
    def is_gone(self) -> bool:
        """True if it holds nothing that could be shown."""
        return self.kind in (Kind.FILLER, Kind.DELETED)

    @property
    def is_filler(self) -> bool:
        """Return True if the struct only uses up clocks."""
        return self.info == Kind.FILLER


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
    cursor = Cursor(data)
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


def _read_structs(cursor: "Cursor", client: int, count: int, clock: int) -> list[Struct]:
    found = []
    for _ in range(count):
        start = cursor.place
        info = cursor.byte()
        kind = info & _KIND
        cursor.count(1)
        if kind in (Kind.FILLER, Kind.SKIP):
            if info & ~_KIND:
                raise BadUpdate("a filler with flags")
            content = cursor.place
            end = _end_of(clock, cursor.number())
            if kind == Kind.FILLER:
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
    cursor: "Cursor", info: int, client: int, clock: int
) -> tuple[ItemId | None, ItemId | None, str | ItemId | None, str | None]:
    """Return where an item stands: the items left and right of it, or its parent and key."""
    left = _read_item(cursor, client, clock) if info & HAS_LEFT else None
    right = _read_item(cursor, client, clock) if info & HAS_RIGHT else None
    if left is not None or right is not None:
        return left, right, None, None
    named = cursor.number()
    if named > 1:
        raise BadUpdate("a parent that is neither a name nor an item")
    parent = cursor.text() if named else _read_item(cursor, client, clock)
    return None, None, parent, cursor.text() if info & _HAS_KEY else None


def _read_item(cursor: "Cursor", client: int, clock: int) -> ItemId:
    """Return the name of another item: of the same client, it must be an earlier one, or Yjs fails."""
    of, at = cursor.number(), cursor.number()
    if at >= CLOCK_MAX or (of == client and at >= clock):
        raise BadUpdate("an item beside one that comes after it")
    return of, at


def _skip_content(cursor: "Cursor", kind: int) -> int:
    """Pass over what an item holds; return its length in clocks."""
    match kind:
        case Kind.STRING:  # nearly all are
            return _units(cursor.text())
        case Kind.DELETED:
            return cursor.number()
        case Kind.JSON:
            count = cursor.number()
            for _ in range(count):
                cursor.json(is_undefined_fine=True)
            return count
        case Kind.BINARY:
            cursor.read(cursor.number())
        case Kind.EMBED:
            cursor.json()
        case Kind.FORMAT:
            cursor.text()
            cursor.json()
        case Kind.TYPE:
            named = cursor.number()
            if named > _TYPE_MAX:
                raise BadUpdate("a type that not all libraries know")
            if named in _NAMED_TYPES:
                cursor.text()
        case Kind.ANY:
            count = cursor.number()
            cursor.values(count)
            return count
        case _:  # subdocuments, and what other libraries add
            raise BadUpdate("content that not all libraries take")
    return 1


def _units(text: str) -> int:
    """Length in UTF-16, which is what clocks of a text count."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2


class Cursor:
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
        """Return the next byte."""
        found = self._data[self.place]
        self.place += 1
        return found

    def number(self) -> int:
        """Return the next number, of at most 53 bits."""
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

    def read(self, length: int) -> bytes:
        """Return this many bytes, and go on behind them."""
        start = self.place
        if length > len(self._data) - start:
            raise BadUpdate("it ends too early")
        self.place = start + length
        return self._data[start : start + length]

    def text(self) -> str:
        """Return the next text."""
        try:
            return self.read(self.number()).decode()
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
        """Skip `count` values with all nested ones. A stack holds how many are left at each depth."""
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
                    self.read(4)
                case 123 | 122:
                    self.read(8)
                case 119:
                    self.text()
                case 116:
                    self.read(self.number())
                case 118 | 117:  # map, list
                    inside = self.number()
                    self.count(inside)
                    stack.append((inside, kind == 118))
                case _:
                    raise BadUpdate("a value of no known kind")

    def value(self) -> object:
        """Return one value that was read before, to be compared; values nest at most DEPTH_MAX deep."""
        kind = self.byte()
        match kind:
            case 125:
                return float(self._signed())
            case 124:
                return _number_of(struct.unpack(">f", self.read(4))[0])
            case 123:
                return _number_of(struct.unpack(">d", self.read(8))[0])
            case 122:
                return kind, self.read(8)
            case 119:
                return self.text()
            case 116:
                return self.read(self.number())
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


def _number_of(read: float) -> object:
    """Return a number. NaN is replaced by a value that equals itself."""
    return _NOT_A_NUMBER if math.isnan(read) else read
