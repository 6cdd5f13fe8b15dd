"""MessagePack as section 1 of protocol.md has it: one encoding for each value, and the shapes of values."""

import struct


class Refused(Exception):
    """Bytes that are refused, with a reason code of section 1."""


_BYTES = [bytes((0xC4, size)) for size in range(0x100)]
_SMALL = [bytes((size,)) for size in range(0x80)]


def encode(value):
    """Encode a value of None, bool, int, str, bytes, list and tuple in its one form."""
    parts = []
    _put(parts.append, value)
    return b"".join(parts)


def _put(put, value):
    kind = type(value)
    if kind is list or kind is tuple:
        size = len(value)
        if size < 16:
            put(_SMALL_ARRAYS[size])
        else:
            put(struct.pack(">BH", 0xDC, size) if size < 0x10000 else struct.pack(">BI", 0xDD, size))
        for item in value:
            if type(item) is bytes and len(item) < 0x100:
                put(_BYTES[len(item)])
                put(item)
            else:
                _put(put, item)
    elif kind is bytes:
        size = len(value)
        if size < 0x100:
            put(_BYTES[size])
        else:
            put(struct.pack(">BH", 0xC5, size) if size < 0x10000 else struct.pack(">BI", 0xC6, size))
        put(value)
    elif kind is int:
        put(_SMALL[value] if 0 <= value < 0x80 else _number(value))
    elif kind is str:
        text = value.encode()
        size = len(text)
        if size < 32:
            put(bytes((0xA0 | size,)))
        elif size < 0x100:
            put(bytes((0xD9, size)))
        else:
            put(struct.pack(">BH", 0xDA, size) if size < 0x10000 else struct.pack(">BI", 0xDB, size))
        put(text)
    elif value is None:
        put(b"\xc0")
    elif kind is bool:
        put(b"\xc3" if value else b"\xc2")
    elif kind is Raw:
        put(value.data)
    else:
        raise TypeError(kind)


_SMALL_ARRAYS = [bytes((0x90 | size,)) for size in range(16)]


class Raw:
    """Bytes that stand in an encoding as they are: for encodings that are to be refused."""

    def __init__(self, data):
        self.data = data


def _number(value):
    if value >= 0:
        if value < 0x100:
            return bytes((0xCC, value))
        if value < 0x10000:
            return struct.pack(">BH", 0xCD, value)
        if value < 0x100000000:
            return struct.pack(">BI", 0xCE, value)
        return struct.pack(">BQ", 0xCF, value)
    if value >= -32:
        return struct.pack(">b", value)
    if value >= -0x80:
        return struct.pack(">Bb", 0xD0, value)
    if value >= -0x8000:
        return struct.pack(">Bh", 0xD1, value)
    if value >= -0x80000000:
        return struct.pack(">Bi", 0xD2, value)
    return struct.pack(">Bq", 0xD3, value)


def decode(data):
    """Decode one value; refuse what is no value, has something behind it, or another encoding."""
    try:
        value, end = _take(data, 0)
    except (IndexError, struct.error, UnicodeDecodeError, RecursionError):
        raise Refused("bad_shape") from None
    if end != len(data):
        raise Refused("bad_shape")
    return value


_UNSIGNED = {0xCC: (1, 0x80), 0xCD: (2, 0x100), 0xCE: (4, 0x10000), 0xCF: (8, 0x100000000)}
_SIGNED = {0xD0: (1, -32), 0xD1: (2, -0x80), 0xD2: (4, -0x8000), 0xD3: (8, -0x80000000)}
_SIZES = {
    0xC4: (1, 0),
    0xC5: (2, 0x100),
    0xC6: (4, 0x10000),
    0xD9: (1, 32),
    0xDA: (2, 0x100),
    0xDB: (4, 0x10000),
    0xDC: (2, 16),
    0xDD: (4, 0x10000),
}


def _take(data, at):
    """Take the value that begins at a position; refuse headers that are longer than needed."""
    head = data[at]
    at += 1
    if head < 0x80:
        return head, at
    if 0x90 <= head < 0xA0:
        size = head & 15
    elif head == 0xC4:
        size = data[at]
        at += 1
        end = at + size
        if end > len(data):
            raise Refused("bad_shape")
        return data[at:end], end
    elif 0xA0 <= head < 0xC0:
        end = at + (head & 31)
        if end > len(data):
            raise Refused("bad_shape")
        return data[at:end].decode(), end
    elif head == 0xC0:
        return None, at
    elif head == 0xC2 or head == 0xC3:
        return head == 0xC3, at
    elif head >= 0xE0:
        return head - 0x100, at
    elif head in _UNSIGNED or head in _SIGNED:
        return _long_number(data, at, head)
    elif head in _SIZES:
        width, least = _SIZES[head]
        end = at + width
        if end > len(data):
            raise Refused("bad_shape")
        size = int.from_bytes(data[at:end], "big")
        if size < least:
            raise Refused("not_canonical")
        at = end
        if head < 0xDC:
            end = at + size
            if end > len(data):
                raise Refused("bad_shape")
            return (data[at:end] if head < 0xD0 else data[at:end].decode()), end
    else:
        raise Refused("bad_shape")
    if size > len(data) - at:
        raise Refused("bad_shape")
    items = []
    for _ in range(size):
        head = data[at]
        if head == 0xC4:
            start = at + 2
            at = start + data[at + 1]
            if at > len(data):
                raise Refused("bad_shape")
            items.append(data[start:at])
        elif head < 0x80:
            items.append(head)
            at += 1
        else:
            item, at = _take(data, at)
            items.append(item)
    return items, at


def _long_number(data, at, head):
    """Take a number behind its header."""
    signed = head in _SIGNED
    width, bound = (_SIGNED if signed else _UNSIGNED)[head]
    end = at + width
    if end > len(data):
        raise Refused("bad_shape")
    value = int.from_bytes(data[at:end], "big", signed=signed)
    if value >= bound if signed else value < bound:
        raise Refused("not_canonical")
    return value, end


# Shapes: a shape is a function that refuses a value or returns nothing.

MOST = 2**53 - 1


def number(low=0, high=MOST):
    """The shape of a whole number from low to high."""

    def check(value):
        if type(value) is not int or not low <= value <= high:
            raise Refused("bad_shape")

    return check


def raw(low, high=None):
    """The shape of bytes, as many as low or from low to high."""
    top = low if high is None else high

    def check(value):
        if type(value) is not bytes or not low <= len(value) <= top:
            raise Refused("bad_shape")

    return check


def text(low, high):
    """The shape of a text, counted in code points."""

    def check(value):
        if type(value) is not str or not low <= len(value) <= high:
            raise Refused("bad_shape")

    return check


def flag(value):
    """The shape of true and false."""
    if type(value) is not bool:
        raise Refused("bad_shape")


def maybe(shape):
    """The shape of nil or something else."""

    def check(value):
        if value is not None:
            shape(value)

    return check


def listed(shape, low, high):
    """The shape of a list of equal things."""

    def check(value):
        if type(value) is not list or not low <= len(value) <= high:
            raise Refused("bad_shape")
        for item in value:
            shape(item)

    return check


def fields(*shapes):
    """The shape of an array with these things in it, one after another."""

    def check(value):
        if type(value) is not list or len(value) != len(shapes):
            raise Refused("bad_shape")
        for item, shape in zip(value, shapes, strict=False):
            shape(item)

    return check


identity = raw(32)
