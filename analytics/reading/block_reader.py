"""Parses the unencrypted part of a block (child ids and parents), independently of the node's parser.

A reader of its own, written from docs/protocol.md and nothing else: an auditor that used the node's own would repeat its
mistakes, and executors of a cluster have neither that nor a MessagePack library. It takes exactly what the node's takes,
the one encoding of each block; what opens the ciphertext is not here.

A block is a MessagePack array of four: the text "block1", child ids, acks (arrays of 32 bytes each), ciphertext (bytes).
"""

import struct
from typing import Final, NamedTuple

from analytics.reading.limits import (
    BLOCK_ACK_COUNT_MAX,
    BLOCK_CHILD_COUNT_MAX,
    BLOCK_CIPHERTEXT_SIZE_MAX,
    BLOCK_SIZE_MAX,
)

_START: Final = b"\x94\xa6block1"
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
"""Mark, form of the length, and the least length that is written so: shorter ones have a shorter form."""


class NotABlock(Exception):
    """The bytes are not the encoding of a block; the message says why."""


class Clear(NamedTuple):
    """What anyone who stores a block can read of it."""

    child_ids: list[bytes]
    acks: list[bytes]


def read_clear(encoded: bytes) -> Clear:
    """Child ids and acks of an encoded block. Raises NotABlock, and nothing else for any bytes."""
    if len(encoded) > BLOCK_SIZE_MAX:
        raise NotABlock(f"{len(encoded)} bytes, at most {BLOCK_SIZE_MAX}")
    if not encoded.startswith(_START):
        raise NotABlock("it begins like no block of version 1")
    try:
        child_ids, at = _read_ids(encoded, len(_START), BLOCK_CHILD_COUNT_MAX)
        acks, at = _read_ids(encoded, at, BLOCK_ACK_COUNT_MAX)
        _check_ciphertext(encoded, at)
    except (struct.error, IndexError):
        raise NotABlock("it is cut off") from None
    return Clear(child_ids, acks)


def _read_ids(encoded: bytes, at: int, count_max: int) -> tuple[list[bytes], int]:
    """The ids of an array that begins at a byte, and where it ends."""
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


def _check_ciphertext(encoded: bytes, at: int) -> None:
    """See that bytes in their shortest form begin there, and end with the block."""
    for mark, form, least in _BYTES:
        if encoded[at] != mark:
            continue
        (size,) = struct.unpack_from(form, encoded, at + 1)
        if not least <= size <= BLOCK_CIPHERTEXT_SIZE_MAX:
            raise NotABlock("the ciphertext is too long, or its length not in its shortest form")
        if at + 1 + struct.calcsize(form) + size != len(encoded):
            raise NotABlock("it does not end where its ciphertext does")
        return
    raise NotABlock("there is no ciphertext where it belongs")
