"""Parses the unencrypted part of a block (child ids, acks, rank and mark), independently of the node's parser.

A reader of its own, written from protocol.md and nothing else: an auditor that used the node's own would repeat its
mistakes, and executors of a cluster have neither that nor a MessagePack library. It takes exactly what the node's takes,
the one encoding of each block; what opens the ciphertext is not here.

A block is a MessagePack array of six: the text "block2", child ids, acks (arrays of 32 bytes each), rank (a number), mark
(8 bytes of a commit's, else none; then there are no acks, and the rank is 0), ciphertext (bytes).
"""

import struct
from typing import Final, NamedTuple

from analytics.reading.limits import (
    BLOCK_ACK_COUNT_MAX,
    BLOCK_CHILD_COUNT_MAX,
    BLOCK_CIPHERTEXT_SIZE_MAX,
    BLOCK_MARK_SIZE,
    BLOCK_SIZE_MAX,
    STATED_NUMBER_MAX,
)

_START: Final = b"\x96\xa6block2"
_ID_START: Final = b"\xc4\x20"
_ID_SIZE: Final = 32
_ENTRY_SIZE: Final = len(_ID_START) + _ID_SIZE
_SMALL_ARRAY: Final = 0x90  # and the count, up to 15, in the same byte
_SMALL_ARRAY_MAX: Final = 15
_ARRAY_16: Final = 0xDC  # with the count in two bytes
_BYTES: Final = (
    (0xC4, ">B", 0),
    (0xC5, ">H", 1 << 8),
    (0xC6, ">I", 1 << 16),
)
"""First byte, form of the length, and the least length that is written so: shorter ones have a shorter form."""
_SMALL_NUMBER_MAX: Final = 0x7F  # in one byte
_NUMBERS: Final = (
    (0xCC, ">B", 1 << 7),
    (0xCD, ">H", 1 << 8),
    (0xCE, ">I", 1 << 16),
    (0xCF, ">Q", 1 << 32),
)
"""The same of numbers: first byte, form, and the least number that is written so."""


class NotABlock(Exception):
    """The bytes are not the encoding of a block; the message says why."""


class Clear(NamedTuple):
    """Fields of a block that are readable without a key."""

    child_ids: list[bytes]
    acks: list[bytes]
    rank: int
    mark: bytes


def read_clear(encoded: bytes) -> Clear:
    """Read what stands in clear in an encoded block. Raises NotABlock, and nothing else for any bytes."""
    if len(encoded) > BLOCK_SIZE_MAX:
        raise NotABlock(f"{len(encoded)} bytes, at most {BLOCK_SIZE_MAX}")
    if not encoded.startswith(_START):
        raise NotABlock("it begins like no block of version 2")
    try:
        child_ids, at = _read_ids(encoded, len(_START), BLOCK_CHILD_COUNT_MAX)
        acks, at = _read_ids(encoded, at, BLOCK_ACK_COUNT_MAX)
        rank, at = _read_number(encoded, at)
        mark, at = _read_bytes(encoded, at, BLOCK_MARK_SIZE, "mark")
        _, at = _read_bytes(encoded, at, BLOCK_CIPHERTEXT_SIZE_MAX, "ciphertext")
    except (struct.error, IndexError):
        raise NotABlock("it is cut off") from None
    if at != len(encoded):
        raise NotABlock("it does not end where its ciphertext does")
    if len(mark) != BLOCK_MARK_SIZE and (mark or acks or rank):
        raise NotABlock("acks or a rank without a mark, or a mark of another length")
    return Clear(child_ids, acks, rank, mark)


def _read_ids(encoded: bytes, at: int, count_max: int) -> tuple[list[bytes], int]:
    """Return the ids of an array that begins at a byte, and where it ends."""
    mark = encoded[at]
    at += 1
    count = mark - _SMALL_ARRAY
    if mark == _ARRAY_16:
        (count,) = struct.unpack_from(">H", encoded, at)
        at += 2
        if count <= _SMALL_ARRAY_MAX:
            raise NotABlock("an array is not in its shortest form")
    elif not 0 <= count <= _SMALL_ARRAY_MAX:
        raise NotABlock("there is no array of ids where one belongs")
    if count > count_max:
        raise NotABlock(f"{count} ids, at most {count_max}")
    end = at + count * _ENTRY_SIZE
    if end > len(encoded):
        raise NotABlock("it is cut off")
    entries = [encoded[start : start + _ENTRY_SIZE] for start in range(at, end, _ENTRY_SIZE)]
    if not all(entry.startswith(_ID_START) for entry in entries):
        raise NotABlock("an id has not 32 bytes")
    return [entry[len(_ID_START) :] for entry in entries], end


def _read_number(encoded: bytes, at: int) -> tuple[int, int]:
    """Read a number in its shortest form at an offset; return it, and the offset behind it."""
    first = encoded[at]
    if first <= _SMALL_NUMBER_MAX:
        return first, at + 1
    for start, form, least in _NUMBERS:
        if first != start:
            continue
        (number,) = struct.unpack_from(form, encoded, at + 1)
        if not least <= number <= STATED_NUMBER_MAX:
            raise NotABlock("the rank is too large, or not in its shortest form")
        return number, at + 1 + struct.calcsize(form)
    raise NotABlock("there is no rank where it belongs")


def _read_bytes(encoded: bytes, at: int, size_max: int, name: str) -> tuple[bytes, int]:
    """Read bytes whose length is in its shortest form at an offset; return them, and the offset behind them."""
    for start, form, least in _BYTES:
        if encoded[at] != start:
            continue
        (size,) = struct.unpack_from(form, encoded, at + 1)
        if not least <= size <= size_max:
            raise NotABlock(f"the {name} is too long, or its length not in its shortest form")
        begin = at + 1 + struct.calcsize(form)
        if begin + size > len(encoded):
            raise NotABlock("it is cut off")
        return encoded[begin : begin + size], begin + size
    raise NotABlock(f"there is no {name} where it belongs")
