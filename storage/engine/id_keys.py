"""Short integer index keys (8 bytes) for 32-byte ids, and packing of id and number lists into one column."""

import struct
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, NewType, TypeVar, cast

from protocol.ids import CommitId

LOOKUP_COUNT_MAX: Final = 500
"""Values of one IN list: far below every database's limit on parameters."""

T = TypeVar("T")

PackedIds = NewType("PackedIds", bytes)
"""Ids of commits, 32 bytes each, one after another."""

PackedNums = NewType("PackedNums", bytes)
"""Row numbers, 8 bytes each, one after another."""


def id_key(start: bytes) -> int:
    """Return the index key of an id: its first 8 bytes as a signed integer. Rows are found by it, never identified."""
    return int.from_bytes(start[:8], "big", signed=True)


def id_keys(starts: Collection[bytes]) -> tuple[int, ...]:
    """Return `id_key` of each id, for a fraction of its time. Each has 8 bytes or more."""
    return struct.unpack(f">{len(starts)}q", b"".join([start[:8] for start in starts]))


def pack_ids(ids: Iterable[CommitId]) -> PackedIds:
    """Join 32-byte ids."""
    return PackedIds(b"".join(ids))


def unpack_ids(packed: PackedIds) -> tuple[CommitId, ...]:
    """Split what `pack_ids` joined."""
    found = tuple(packed[start : start + 32] for start in range(0, len(packed), 32))
    return cast("tuple[CommitId, ...]", found)  # one call, not one for each id


BLOCK_NUM_SIZE: Final = 8
"""Bytes of one number of `pack_nums`."""


_TWO_NUMS: Final = struct.Struct("<2q")


def pack_nums(nums: Sequence[int]) -> PackedNums:
    """Join row numbers, 8 bytes each."""
    if len(nums) == 2:  # of nearly each commit
        return PackedNums(_TWO_NUMS.pack(*nums))
    return PackedNums(struct.pack(f"<{len(nums)}q", *nums))


def unpack_nums(packed: PackedNums) -> tuple[int, ...]:
    """Split what `pack_nums` joined."""
    count = len(packed) // BLOCK_NUM_SIZE  # what damage left of another number is none
    return struct.unpack_from(f"<{count}q", packed)


def chunks(values: Sequence[T], size: int = LOOKUP_COUNT_MAX) -> Iterator[Sequence[T]]:
    """Yield values in pieces of at most `size`."""
    for start in range(0, len(values), size):
        yield values[start : start + size]
