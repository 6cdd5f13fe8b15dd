"""Remembers which blocks of files were sent to peers that asked for them, to tell what other nodes have fetched.

What a peer asked for was sent to it; whether it stores that for long is not known. Kept in memory: what a daemon that ends
had sent of a file, and not all of it, is forgotten, and then the file counts as not fetched.

A peer that keeps posts of some days gives old files up, and asks who keeps them to show them before (`node.care.giving_up`).
What it got of an old file counts for nothing; and the file counts as not fetched again, for that peer may be the one that
had fetched it.
"""

from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from typing import Final

from node.ingest.replica import Replica
from protocol.codec import DecodeError
from protocol.ids import BlockId, ObjectId, UserId
from protocol.limits.formats import INNER_CHILD_COUNT_MAX, LEAF_SIZE
from protocol.limits.peers import FETCHED_COUNT_MAX, GIVEN_BLOCKS_MAX, GIVEN_FILES_MAX
from storage.blobs.unfetched import UnfetchedRoot, find_unfetched, note_files_asked, note_files_fetched
from storage.commits.blocks import DamagedBlock

_Sent = tuple[int, BlockId]  # number of the repo
_Root = tuple[int, ObjectId]
_NEVER: Final = 1 << 62
"""A time (unix ms) that no commit has: of a block that was not sent."""


class GivenBlocks:
    """Blocks that were sent. `note` and `lose` run in trio's thread; `settle` in one other, no two at a time."""

    def __init__(self, count_max: int = GIVEN_BLOCKS_MAX) -> None:
        self._count_max = count_max
        # In the order in which they were sent, with the time (unix ms) from which on the peer keeps posts; 0: of any age.
        self._given: dict[_Sent, int] = {}
        self._new: dict[_Sent, int] = {}
        self._last: dict[Hashable, deque[_Sent]] = {}  # by connection
        self._roots: dict[_Root, UnfetchedRoot] = {}
        """Files of which some was sent, and not all."""

    def note(self, connection: Hashable, repo_num: int, block_id: BlockId, kept_from: int = 0) -> None:
        """Note that a block was handed to a connection, to be sent to a peer that keeps posts from a time (unix ms) on."""
        sent = (repo_num, block_id)
        for table in (self._given, self._new):
            table.pop(sent, None)  # the latest stand at the end
            table[sent] = kept_from
        self._last.setdefault(connection, deque(maxlen=FETCHED_COUNT_MAX)).append(sent)
        for table in (self._given, self._new):
            if len(table) > self._count_max:
                del table[next(iter(table))]

    def lose(self, connection: Hashable, *, is_cut: bool) -> None:
        """Forget a connection that has ended. What it was to send last did not arrive, where it was cut."""
        for sent in self._last.pop(connection, ()):
            if is_cut:
                self._given.pop(sent, None)
                self._new.pop(sent, None)

    def take_new(self) -> dict[_Sent, int]:
        """Return what was noted since the last call, with the time from which on the peer keeps posts."""
        new, self._new = self._new, {}
        return new

    def note_again(self, new: Mapping[_Sent, int]) -> None:
        """Note for the next call of `take_new` what could not be stored."""
        self._new = {**new, **self._new}
        while len(self._new) > self._count_max:
            del self._new[next(iter(self._new))]

    def settle(self, replica: Replica, new: Mapping[_Sent, int]) -> list[_Root]:
        """Return the files of which peers have now fetched all blocks. Raises StorageError."""
        by_repo: dict[int, list[BlockId]] = {}
        for repo_num, block_id in new:
            by_repo.setdefault(repo_num, []).append(block_id)
        with replica.database.read() as connection:
            for repo_num, ids in by_repo.items():
                for root in find_unfetched(connection, repo_num, ids):
                    self._roots[repo_num, root.object_id] = root
        while len(self._roots) > GIVEN_FILES_MAX:
            del self._roots[next(iter(self._roots))]
        whole = [
            (num, root.object_id)
            for (num, _), root in self._roots.items()
            if self._is_whole(replica, num, root)
        ]
        for one in whole:
            del self._roots[one]
        return whole

    def _is_whole(self, replica: Replica, repo_num: int, root: UnfetchedRoot) -> bool:
        level: list[BlockId] = [root.object_id]
        for below in range(_height(root.size or 0), -1, -1):
            if any(self._given.get((repo_num, one), _NEVER) > root.display_time for one in level):
                return False
            if below:
                try:
                    level = _children(replica, level)
                except (DamagedBlock, DecodeError):
                    return False
        return True


def keep_fetched(replica: Replica, whole: Sequence[_Root], new: Mapping[_Sent, int], user: UserId) -> None:
    """Record files that peers fetched, and this user's old files that were asked for by peers that give up such files.

    Raises StorageError.
    """
    asked: dict[int, dict[BlockId, int]] = {}
    for (repo_num, block_id), kept_from in new.items():
        if kept_from:
            asked.setdefault(repo_num, {})[block_id] = kept_from
    with replica.database.write() as connection:
        for repo_num, object_id in whole:
            note_files_fetched(connection, repo_num, object_id)
        for repo_num, roots in asked.items():
            note_files_asked(connection, repo_num, roots, user)


def _height(size: int) -> int:
    """Levels of a file's tree below its root."""
    leaves, height = max(1, -(-size // LEAF_SIZE)), 0
    while leaves > 1:
        leaves, height = -(-leaves // INNER_CHILD_COUNT_MAX), height + 1
    return height


def _children(replica: Replica, ids: Sequence[BlockId]) -> list[BlockId]:
    found: list[BlockId] = []
    with replica.database.read() as connection:
        for one in ids:
            block = replica.packs.find(connection, one)
            if block is None:
                raise DamagedBlock(f"block {one.hex()} has gone")
            found += block.child_ids
    return found
