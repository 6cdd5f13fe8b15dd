"""Incremental hash of a set of commit ids (LtHash): adding or removing one id costs the same for any set size.

LtHash (Lewi, Kim, Maykov, Weis, "Securing Update Propagation with Homomorphic Hashing", 2019) in its published size of
1024 lanes of 16 bits: each id is expanded to 2048 bytes, which are added lane by lane; the digest is a hash of the sums.

What it resists: anyone who chooses ids freely, all of both sets, and knows everything there is to know (there is no key)
must find two sets of equal sums, which is a short vector in a lattice of 1024 dimensions, or a generalised birthday in
16,384 bits: some 2^200 steps by its authors' estimate. A sum of 256 bits would fall to the latter. What it does not:
an id counts as often as it is added, so the caller adds each once; and a peer can claim any digest.

    digest = SetDigest()
    digest.add(ids)
    digest.digest()          # 32 bytes; to_bytes() gives the 2048 that a store keeps
"""

from collections.abc import Iterable
from typing import Final, Self

from protocol.codec import DecodeError
from protocol.crypto.hashing import set_digest, set_lanes
from protocol.ids import Digest, ItemId

LANES_SIZE: Final = 2048
"""Bytes of all lanes: 1024 numbers of 16 bits, little-endian."""

_EVEN: Final = int.from_bytes(b"\xff\xff\x00\x00" * (LANES_SIZE // 4), "little")
_ABOVE: Final = int.from_bytes(b"\0\0\1\0" * (LANES_SIZE // 4), "little")
_BATCH: Final = 1 << 15
"""Ids whose lanes are added before they are reduced: a lane's sum then stays within the 32 bits of two lanes."""


class SetDigest:
    """Sums of the lanes of a set's ids. Not a value: `add` and `remove` change it."""

    __slots__ = ("_even", "_odd")

    def __init__(self) -> None:
        self._even = 0  # lanes 0, 2, 4, ... of 16 bits, each with 16 bits of room above it
        self._odd = 0

    def add(self, ids: Iterable[ItemId]) -> None:
        """Ids of 32 bytes that were not in the set."""
        for even, odd in _sums(ids):
            self._even = (self._even + even) & _EVEN
            self._odd = (self._odd + odd) & _EVEN

    def remove(self, ids: Iterable[ItemId]) -> None:
        """Take out ids that were in the set."""
        for even, odd in _sums(ids):
            # With a bit above each lane, no lane borrows from the next.
            self._even = (self._even | _ABOVE) - (even & _EVEN) & _EVEN
            self._odd = (self._odd | _ABOVE) - (odd & _EVEN) & _EVEN

    def digest(self) -> Digest:
        """Return the digest, 32 bytes."""
        return set_digest(self.to_bytes())

    def to_bytes(self) -> bytes:
        """Return the lanes, LANES_SIZE bytes."""
        return (self._even | self._odd << 16).to_bytes(LANES_SIZE, "little")

    @classmethod
    def from_bytes(cls, lanes: bytes) -> Self:
        """Return the digest whose lanes were kept. Raises DecodeError."""
        if len(lanes) != LANES_SIZE:
            raise DecodeError("bad_shape", f"{len(lanes)} bytes of lanes, not {LANES_SIZE}")
        value = int.from_bytes(lanes, "little")
        made = cls()
        made._even, made._odd = value & _EVEN, value >> 16 & _EVEN
        return made


def _sums(ids: Iterable[ItemId]) -> Iterable[tuple[int, int]]:
    """Sums of even and of odd lanes, for each batch. The latter are what is left of the total: one operation less."""
    total = even = count = 0
    for commit_id in ids:
        lanes = int.from_bytes(set_lanes(commit_id), "little")
        total += lanes
        even += lanes & _EVEN
        count += 1
        if count == _BATCH:
            yield even, total - even >> 16
            total = even = count = 0
    yield even, total - even >> 16
