"""Remembers which blocks of files were sent to peers that asked for them, to tell what other nodes have fetched.

What a peer asked for was sent to it; whether it stores that for long is not known. Kept in memory: what a daemon that ends
had sent of a file, and not all of it, is forgotten, and then the file counts as not fetched.
"""

from collections import deque
from collections.abc import Hashable, Sequence

from node.ingest.replica import Replica
from protocol.codec import DecodeError
from protocol.ids import BlockId, ObjectId
from protocol.limits.formats import INNER_CHILD_COUNT_MAX, LEAF_SIZE
from protocol.limits.peers import FETCHED_COUNT_MAX, GIVEN_BLOCKS_MAX, GIVEN_FILES_MAX
from storage.blobs.unfetched import find_unfetched, note_files_fetched
from storage.commits.blocks import DamagedBlock

_Sent = tuple[int, BlockId]  # number of the repo
_Root = tuple[int, ObjectId]


class GivenBlocks:
    """Blocks that were sent. `note` and `lose` run in trio's thread; `settle` in one other, no two at a time."""

    def __init__(self, count_max: int = GIVEN_BLOCKS_MAX) -> None:
        self._count_max = count_max
        self._given: dict[_Sent, None] = {}  # in the order in which they were sent
        self._new: dict[_Sent, None] = {}
        self._last: dict[Hashable, deque[_Sent]] = {}  # by connection
        self._roots: dict[_Root, int] = {}  # files of which some was sent, and not all: levels below the root

    def note(self, connection: Hashable, repo_num: int, block_id: BlockId) -> None:
        """Note that a block was handed to a connection, to be sent."""
        sent = (repo_num, block_id)
        for table in (self._given, self._new):
            table.pop(sent, None)  # the latest stand at the end
            table[sent] = None
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

    def take_new(self) -> list[_Sent]:
        """Return what was noted since the last call."""
        new, self._new = list(self._new), {}
        return new

    def settle(self, replica: Replica, new: Sequence[_Sent]) -> list[_Root]:
        """Return the files of which peers have now fetched all blocks. Raises StorageError."""
        by_repo: dict[int, list[BlockId]] = {}
        for repo_num, block_id in new:
            by_repo.setdefault(repo_num, []).append(block_id)
        with replica.database.read() as connection:
            for repo_num, ids in by_repo.items():
                for object_id, size in find_unfetched(connection, repo_num, ids):
                    self._roots[repo_num, object_id] = _height(size or 0)
        while len(self._roots) > GIVEN_FILES_MAX:
            del self._roots[next(iter(self._roots))]
        whole = [root for root, height in self._roots.items() if self._is_whole(replica, root, height)]
        for root in whole:
            del self._roots[root]
        return whole

    def _is_whole(self, replica: Replica, root: _Root, height: int) -> bool:
        repo_num, object_id = root
        level: list[BlockId] = [BlockId(object_id)]
        for below in range(height, -1, -1):
            if any((repo_num, one) not in self._given for one in level):
                return False
            if below:
                try:
                    level = _children(replica, level)
                except (DamagedBlock, DecodeError):
                    return False
        return True


def keep_fetched(replica: Replica, whole: Sequence[_Root]) -> None:
    """Enter files that peers have fetched. Raises StorageError."""
    with replica.database.write() as connection:
        for repo_num, object_id in whole:
            note_files_fetched(connection, repo_num, object_id)


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
