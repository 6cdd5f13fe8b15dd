"""Writes, cuts and compares the structs of Yjs updates. Costs O(bytes)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from protocol.formats.clock_spans import Span
from protocol.formats.yjs_updates import HAS_LEFT, HAS_RIGHT, Cursor, Kind, ReadUpdate, Struct

_GONE_ROOT: Final = b"ravel-gone"


class WrittenStructs(NamedTuple):
    """The bytes of some structs, one behind another, at the clocks [clock, end) of a client."""

    clock: int
    end: int
    struct_count: int
    encoded: bytes

    @property
    def is_filler(self) -> bool:
        """Return True if the struct is a single filler."""
        return self.encoded[0] == Kind.FILLER


def encode_update(
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
                parts.append(bytes([Kind.SKIP]) + _number(one.clock - clock))
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
    if one.is_filler:
        return WrittenStructs(start, end, 1, bytes([Kind.FILLER]) + _number(end - start))
    right = one.right
    head = data[one.start + 1 : one.content]
    info = one.info
    if start > one.clock:
        info = one.kind | HAS_LEFT | (one.info & HAS_RIGHT)
        head = (
            _number(client) + _number(start - 1) + (_number(right[0]) + _number(right[1]) if right else b"")
        )
    content = _slice_content(data, one, start - one.clock, end - one.clock)
    return WrittenStructs(start, end, 1, bytes([info]) + head + content)


def _slice_content(data: bytes, one: Struct, start: int, end: int) -> bytes:
    match one.kind:
        case Kind.DELETED:
            return _number(end - start)
        case Kind.STRING:
            encoded = _string_units(data, one)[2 * start : 2 * end].decode("utf-16-le", "surrogatepass")
            # Half of a pair is no character; Yjs puts this one in its place.
            said = "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in encoded).encode()
            return _number(len(said)) + said
        case _:  # JSON and any values: all others have one clock
            parts = _value_parts(data, one)[start:end]
            return _number(len(parts)) + b"".join(parts)


def _string_units(data: bytes, one: Struct) -> bytes:
    return Cursor(data, one.content).text().encode("utf-16-le")


def _value_parts(data: bytes, one: Struct) -> list[bytes]:
    """Bytes of each value that an item of several values holds."""
    cursor = Cursor(data, one.content)
    parts = []
    for _ in range(cursor.number()):
        start = cursor.place
        if one.kind == Kind.JSON:
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


def write_gone(clock: int, end: int) -> WrittenStructs:
    """Return an item that stands for a filler: deleted, and in a root of its own.

    Beside a filler Yjs hides other items, and pycrdt 0.14 shows them. Beside a deleted item both show them.
    """
    head = bytes([Kind.DELETED, 1]) + _number(len(_GONE_ROOT)) + _GONE_ROOT
    return WrittenStructs(clock, end, 1, head + _number(end - clock))


def say_same(
    client: int, one: tuple[ReadUpdate, Struct], other: tuple[ReadUpdate, Struct], span: Span
) -> bool:
    """Return True if two structs of a client, each in its update, have the same content at their common clocks.

    Deleted content cannot be compared: ask what has deleted it.
    """
    (update, mine), (their_update, theirs) = one, other
    if mine.kind != theirs.kind:
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
    return _content_of(update.data, mine, span) == _content_of(their_update.data, theirs, span)


def _content_of(data: bytes, one: Struct, span: Span) -> object:
    """Return the content at these clocks in a form to compare: libraries write maps in any order."""
    start, end = span[0] - one.clock, span[1] - one.clock
    match one.kind:
        case Kind.STRING:
            return _string_units(data, one)[2 * start : 2 * end]
        case Kind.JSON:
            return _value_parts(data, one)[start:end]
        case Kind.ANY:
            return [Cursor(part).value() for part in _value_parts(data, one)[start:end]]
        case Kind.EMBED:
            return _distinct(msgspec.json.decode(Cursor(data, one.content).text()))
        case Kind.FORMAT:
            cursor = Cursor(data, one.content)
            return cursor.text(), _distinct(msgspec.json.decode(cursor.text()))
        case _:
            return data[one.content : one.stop]


def _distinct(value: object) -> object:
    """Return a JSON value in which true and false do not equal 1 and 0, as they do in Python."""
    match value:
        case bool():
            return (value,)
        case list():
            return [_distinct(one) for one in value]
        case dict():
            return {key: _distinct(one) for key, one in value.items()}
        case _:
            return value
