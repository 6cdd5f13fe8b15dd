"""Short integer index keys (8 bytes) for 32-byte ids, and packing of id and number lists into one column."""

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeVar

LOOKUP_COUNT_MAX: Final = 500
"""Values of one IN list: far below every database's limit on parameters."""

T = TypeVar("T")


def id_key(raw: bytes) -> int:
    """The first eight bytes of an id as a signed integer: what its rows are indexed by, never what it is known by."""
    return int.from_bytes(raw[:8], "big", signed=True)


def pack_ids(ids: Iterable[bytes]) -> bytes:
    """32-byte ids, one after another."""
    return b"".join(ids)


def unpack_ids(packed: bytes) -> tuple[bytes, ...]:
    """The ids that `pack_ids` packed."""
    return tuple(packed[start : start + 32] for start in range(0, len(packed), 32))


BLOCK_NUM_SIZE: Final = 8
"""Bytes of one number of `pack_nums`."""


def pack_nums(nums: Sequence[int]) -> bytes:
    """Row numbers, 8 bytes each."""
    return struct.pack(f"<{len(nums)}q", *nums)


def unpack_nums(packed: bytes) -> tuple[int, ...]:
    """The numbers that `pack_nums` packed."""
    count = len(packed) // BLOCK_NUM_SIZE  # what damage left of another number is none
    return struct.unpack_from(f"<{count}q", packed)


def chunks(values: Sequence[T], size: int = LOOKUP_COUNT_MAX) -> Iterator[Sequence[T]]:
    """`values` in pieces of at most `size`."""
    for start in range(0, len(values), size):
        yield values[start : start + size]
