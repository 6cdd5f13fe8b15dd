"""State of the bound on the store's size: what it is now, what has to go, and whether anything can."""

from dataclasses import dataclass
from typing import Final, Literal

from node.ingest.replica import Replica
from storage.blobs.old_sizes import measure_store

BoundState = Literal["under", "giving_up", "alone", "stuck"]
"""`alone`: over the bound, and nobody is connected who could show anything. `stuck`: over it, and nothing more can go."""
_GOAL_EIGHTHS: Final = 7
_GROWING_EIGHTHS: Final = 6


@dataclass(slots=True)
class StoreBound:
    """Bound on the store's size in bytes; `size_max` 0: none.

    Above it contents are given up until seven eighths are left, and it is six eighths below which more days are kept again.
    Files that nobody has opened come only below the seven. So nothing comes and goes in turn.
    """

    size_max: int = 0
    size: int = 0
    """Bytes when it was measured last, without those that were given up and are not freed yet."""
    excess: int = 0
    """Bytes that have to be given up."""
    pending: int = 0
    """Bytes that were given up and are not freed yet."""
    state: BoundState = "under"
    counts_rows: bool = True
    """False while rows are in a database elsewhere: files alone make room here, and posts none."""

    @property
    def goal(self) -> int:
        """The bytes that are left when enough was given up."""
        return self.size_max * _GOAL_EIGHTHS // 8

    @property
    def growing_max(self) -> int:
        """The bytes up to which more days may be kept."""
        return self.size_max * _GROWING_EIGHTHS // 8

    def measure(self, replica: Replica) -> None:
        """Measure the store, and find what has to go. Costs O(packs). Raises StorageError."""
        with replica.database.read() as connection:
            self.size = max(0, measure_store(replica.database, connection) - self.pending)
            self.counts_rows = replica.database.measure_pages(connection) is not None
        self.excess = self.size - self.goal if self.size > self.size_max else 0

    def note(self, size: int) -> None:
        """Note that so many bytes were given up."""
        self.pending += size
        self.excess = max(0, self.excess - size)

    def has_room(self, replica: Replica) -> bool:
        """Return True while files may come that nobody has opened. Costs O(packs). Raises StorageError."""
        if not self.size_max:
            return True
        with replica.database.read() as connection:
            return measure_store(replica.database, connection) < self.goal
