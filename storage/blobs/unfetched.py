"""Table of this user's files whose content no peer is known to have fetched from here, and which of them no relay keeps.

A file enters it when it is added here, and leaves it when blocks that peers asked for make it up whole. It enters it again
when a peer asks for it that gives old contents up: it may be the one that had fetched it. What relays say to keep stands in
another table (`relayed_files`): they may drop it again.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from sqlalchemy import Connection, bindparam, delete, func, insert, select

from protocol.ids import BlockId, CommitId, ObjectId, UserId
from protocol.session.deposits import short_file
from storage.blobs.files import IS_REMOVED
from storage.blobs.relayed_files import find_keeping_relays
from storage.engine.bulk import select_in, unindexed
from storage.engine.id_keys import chunks, id_key
from storage.schema.schema import authors, branches, commits, files, unfetched_files

_ADDED: Final = (
    select(files.c.num, commits.c.commit_id)
    .join(commits, commits.c.num == files.c.commit_num)
    .where(
        commits.c.id_key.in_(bindparam("keys", expanding=True)),
        unindexed(commits.c.branch_num) == bindparam("branch"),
    )
)
_BRANCHES: Final = select(branches.c.repo_num, branches.c.num).where(
    branches.c.repo_num.in_(bindparam("keys", expanding=True)),
    select(unfetched_files.c.file_num).where(unfetched_files.c.branch_num == branches.c.num).exists(),
)
_LATEST: Final = (
    select(unfetched_files.c.file_num)
    .where(unfetched_files.c.branch_num == bindparam("branch"))
    .order_by(unfetched_files.c.file_num.desc())
    .limit(bindparam("count_max"))
    .subquery()
)
_UNFETCHED: Final = (
    select(files.c.object_id)
    .select_from(_LATEST)
    .join(files, files.c.num == _LATEST.c.file_num)
    .join(commits, commits.c.num == files.c.commit_num)
    .join(authors, authors.c.num == commits.c.author_num)
    .where(~commits.c.is_void, ~IS_REMOVED, authors.c.user == bindparam("user"))
)
_OF_REPO: Final = files.c.branch_num.in_(
    select(branches.c.num).where(branches.c.repo_num == bindparam("repo"))
) & files.c.object_id.in_(bindparam("keys", expanding=True))
_ROOTS: Final = (
    select(files.c.object_id, files.c.size, func.min(commits.c.display_time))
    .join(unfetched_files, unfetched_files.c.file_num == files.c.num)
    .join(commits, commits.c.num == files.c.commit_num)
    .where(_OF_REPO)
    .group_by(files.c.object_id, files.c.size)
)
_FETCHED: Final = (
    select(files.c.object_id, files.c.num, files.c.branch_num, commits.c.display_time)
    .join(commits, commits.c.num == files.c.commit_num)
    .join(authors, authors.c.num == commits.c.author_num)
    .where(
        _OF_REPO,
        authors.c.user == bindparam("user"),
        ~select(unfetched_files.c.file_num).where(unfetched_files.c.file_num == files.c.num).exists(),
    )
)
"""Files of a user that peers have fetched."""


def note_files_added(connection: Connection, branch_num: int, commit_ids: Collection[CommitId]) -> None:
    """Record that this node wrote these commits of a branch: no other has the content of the files that they add.

    Costs O(files that they add).
    """
    nums: list[int] = []
    for part in chunks([id_key(one) for one in commit_ids]):
        rows = connection.execute(_ADDED, {"keys": part, "branch": branch_num}).all()
        nums += [num for num, commit_id in rows if commit_id in commit_ids]
    if nums:
        rows_added = [{"file_num": num, "branch_num": branch_num} for num in nums]
        connection.execute(insert(unfetched_files), rows_added)


def count_unfetched(
    connection: Connection, repo_nums: Sequence[int], user: UserId, count_max: int
) -> dict[int, int]:
    """Count the files of a user, by repo, that no other node is known to have. Costs O(such files).

    Of one branch the latest `count_max` are looked at that no peer has fetched.
    """
    found = dict.fromkeys(repo_nums, 0)
    for part in chunks(repo_nums):
        for repo_num, branch_num in list(select_in(connection, _BRANCHES, part)):
            wanted = {"branch": branch_num, "user": user, "count_max": count_max}
            ids = list(connection.execute(_UNFETCHED, wanted).scalars())
            relayed = find_keeping_relays(connection, ids)
            found[repo_num] += sum(short_file(one) not in relayed for one in ids)
    return found


class UnfetchedRoot(NamedTuple):
    """Root of unfetched files: the size that their author states, and the display time (unix ms) of the oldest."""

    object_id: ObjectId
    size: int | None
    display_time: int


def find_unfetched(connection: Connection, repo_num: int, ids: Sequence[BlockId]) -> list[UnfetchedRoot]:
    """Find the given blocks that are roots of unfetched files. Costs O(ids)."""
    return [
        UnfetchedRoot(*row)
        for part in chunks(ids)
        for row in select_in(connection, _ROOTS, part, repo=repo_num)
    ]


def note_files_asked(
    connection: Connection, repo_num: int, kept_from: Mapping[BlockId, int], user: UserId
) -> None:
    """Record anew as unfetched a user's old files with these roots: a peer asked for them that keeps those of some days.

    `kept_from` says from which time (unix ms) on it keeps them. Costs O(roots, and files of these contents).
    """
    for part in chunks([*kept_from]):
        rows = [
            {"file_num": num, "branch_num": branch_num}
            for object_id, num, branch_num, time in select_in(
                connection, _FETCHED, part, repo=repo_num, user=user
            )
            if time < kept_from[object_id]
        ]
        if rows:
            connection.execute(insert(unfetched_files), rows)


def find_unfetched_rows(connection: Connection, nums: Sequence[int]) -> set[int]:
    """Return those numbers of files that are of this node's user, and that no peer has fetched. Costs O(nums)."""
    found: set[int] = set()
    for part in chunks(nums):
        query = select(unfetched_files.c.file_num).where(unfetched_files.c.file_num.in_(part))
        found.update(connection.execute(query).scalars())
    return found


def note_files_fetched(connection: Connection, repo_num: int, object_id: ObjectId) -> None:
    """Record that other nodes have all of this content: of each file in the repo that has it.

    Costs O(files of this content).
    """
    of_repo = select(branches.c.num).where(branches.c.repo_num == repo_num)
    same = select(files.c.num).where(files.c.object_id == object_id, files.c.branch_num.in_(of_repo))
    connection.execute(delete(unfetched_files).where(unfetched_files.c.file_num.in_(same)))
