"""Table of files whose content this node has given up (`node.care.giving_up`): garbage collection deletes it.

A file leaves it when its content is fetched again, which is then given up anew or not at all.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, delete, func, insert, select

from protocol.ids import BlockId, CommitId, ObjectId
from storage.blobs.files import IS_REMOVED, IS_SPARED
from storage.blobs.packs import Packs
from storage.blobs.relayed_files import look_at_block
from storage.commits.absent_bodies import OldPosts
from storage.engine.id_keys import chunks
from storage.schema.schema import commits, files, spared_files

_COUNTED_AT_ONCE: Final = 1000
COMMITTED: Final = files.join(commits, commits.c.num == files.c.commit_num)
"""Files with the commits that have added them."""


class OldFile(NamedTuple):
    """File of an old commit: the commit, its display time (unix ms), the topic by which it came, and the stated
    bytes of the file."""

    num: int
    object_id: ObjectId
    commit_id: CommitId
    topic_num: int
    time: int
    size: int


def load_old_files(connection: Connection, old: OldPosts, after: int, limit: int) -> list[OldFile]:
    """Load the first of the files of old commits after a number, by number, whose content was not given up.

    Without removed ones, and those of void commits. Costs O(files of the branch that are passed over).
    """
    columns = (files.c.num, files.c.object_id, commits.c.commit_id, commits.c.topic_num)
    size = func.coalesce(files.c.size, 0)
    query = select(*columns, commits.c.display_time, size).select_from(COMMITTED)
    query = query.where(_is_old(old), ~commits.c.is_void, ~IS_REMOVED, ~IS_SPARED, files.c.num > after)
    return [OldFile(*row) for row in connection.execute(query.order_by(files.c.num).limit(limit))]


def load_new_files(
    connection: Connection, branch_num: int, posts_from: int, after: int, limit: int
) -> list[tuple[int, ObjectId]]:
    """Load (number, content) of the first files after a number that commits from a time (unix ms) on have added.

    Without removed ones, and those of void commits. Costs O(files of the branch that are passed over).
    """
    query = select(files.c.num, files.c.object_id).select_from(COMMITTED)
    is_new = (files.c.branch_num == branch_num) & (commits.c.display_time >= posts_from)
    query = query.where(is_new, ~commits.c.is_void, ~IS_REMOVED, files.c.num > after)
    return [
        (num, object_id) for num, object_id in connection.execute(query.order_by(files.c.num).limit(limit))
    ]


def spare_files(connection: Connection, old: OldPosts, object_id: ObjectId) -> int:
    """Give up the content of the old files that have it; return how many these are. Costs O(files of this content)."""
    query = select(files.c.num).select_from(COMMITTED)
    query = query.where(_is_old(old), files.c.object_id == object_id, ~IS_SPARED)
    rows = [{"file_num": num, "branch_num": old.branch_num} for num in connection.execute(query).scalars()]
    if rows:
        connection.execute(insert(spared_files), rows)
    return len(rows)


def keep_files(connection: Connection, branch_num: int, object_ids: Sequence[ObjectId]) -> None:
    """Unmark given-up contents of a branch: they are fetched, or added here. Costs O(files of these contents)."""
    for part in chunks(object_ids):
        of_branch = (files.c.branch_num == branch_num) & files.c.object_id.in_(part)
        same = select(files.c.num).where(of_branch)
        connection.execute(delete(spared_files).where(spared_files.c.file_num.in_(same)))


def keep_recent_files(connection: Connection, branch_num: int, posts_from: int) -> None:
    """Unmark given-up contents that commits of a branch have added from a time (unix ms) on. Costs O(files given up
    there)."""
    recent = select(files.c.num).select_from(COMMITTED)
    recent = recent.where(files.c.branch_num == branch_num, commits.c.display_time >= posts_from)
    of_branch = spared_files.c.branch_num == branch_num
    connection.execute(delete(spared_files).where(of_branch, spared_files.c.file_num.in_(recent)))


def count_old_files(connection: Connection, blobs: Packs, old: OldPosts) -> tuple[int, int]:
    """Count old files of a branch: whose contents are here, if only in part, and whose were given up.

    Costs O(files of the branch).
    """
    here, after = 0, 0
    while found := load_old_files(connection, old, after, _COUNTED_AT_ONCE):
        ids = [one.object_id for one in found]
        held = blobs.find_held(connection, ids)
        here, after = here + sum(one in held for one in ids), found[-1].num
    away = select(func.count()).where(spared_files.c.branch_num == old.branch_num)
    return here, int(connection.execute(away).scalar_one())


class HeldBlocks:
    """The blocks of a file that are here, each once, a parent before its children."""

    def __init__(self, object_id: ObjectId) -> None:
        self.size = 0
        """Bytes of those that were returned, about."""
        self._ahead: list[BlockId] = [object_id]
        self._inner: set[BlockId] = set()

    def take(self, connection: Connection, folder: Path, blobs: Packs, limit: int) -> Sequence[BlockId]:
        """Return the next ones; none at the end. A leaf may be returned once for each parent. Raises StorageError.

        Costs O(those), and what is absent.
        """
        found: list[BlockId] = []
        while self._ahead and len(found) < limit:
            block_id = self._ahead.pop()
            if block_id in self._inner:
                continue
            seen = look_at_block(connection, folder, blobs, block_id)
            if seen is None:
                continue
            found.append(block_id)
            self.size += seen[0]
            if seen[1]:
                self._inner.add(block_id)
                self._ahead += dict.fromkeys(seen[1])
        return found


def _is_old(old: OldPosts) -> ColumnElement[bool]:
    found = (files.c.branch_num == old.branch_num) & (commits.c.display_time < old.before)
    return found if old.but_author_num is None else found & (commits.c.author_num != old.but_author_num)
