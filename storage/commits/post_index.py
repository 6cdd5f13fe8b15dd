"""Finds what posts say of other posts: the edit and the deletion that count, versions of a post, threads.

Edits and deletions count that stand in the post's branch, are not void, and whose author is the post's, or another device of
the same person. The last edit in canonical order says what the post says; a deletion is final. Each answer is read off an
index, so that it costs the same whether a post was edited once or ten thousand times, and whatever others state of it.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from sqlalchemy import Connection, ScalarSelect, bindparam, select, tuple_

from protocol.ids import CommitId, UserId
from storage.commits.commits import ROWS, TimelineRow, load_numbered, timeline_row
from storage.commits.position_index import CANONICAL_ORDER
from storage.engine.bulk import select_in
from storage.engine.column_encryption import cipher_of
from storage.engine.id_keys import chunks
from storage.engine.queries import stream_rows
from storage.schema.schema import authors, commits
from verifier.posts import CHANGED_KINDS, CHANGES, Relation, devices_of

_POST: Final = commits.alias("post")
_STREAMED_COUNT: Final = 256
"""Rows of posts in memory at a time."""


@dataclass(frozen=True, slots=True)
class PostChange:
    """Changes that count for a post: the last edit, and whether its author has deleted it."""

    edit: TimelineRow | None = None
    is_deleted: bool = False


NO_CHANGE: Final = PostChange()


def can_be_changed(row: TimelineRow) -> bool:
    """Return True if edits and deletions of a stored commit may count."""
    return row.body_kind in CHANGED_KINDS and row.relation not in CHANGES


def place_of(row: TimelineRow) -> tuple[int, int, CommitId]:
    """Return a commit's key in the canonical order."""
    return row.passed, row.rank, row.commit_id


def load_changes(
    connection: Connection, rows: Iterable[TimelineRow], persons: Mapping[UserId, UserId]
) -> dict[int, PostChange]:
    """Load, by number, the changes that count for these posts of one repo. Costs O(rows and devices).

    `persons` are the repo's devices, with whom they belong to.
    """
    posts = {row.num: row for row in rows if can_be_changed(row)}
    edits: dict[int, list[int]] = {}
    deleted: set[int] = set()
    for part in chunks(sorted(posts)):
        _collect(select_in(connection, _BY_AUTHOR, part), edits, deleted)
    for device, nums in _of_other_devices(connection, list(posts.values()), persons).items():
        for part in chunks(nums):
            _collect(select_in(connection, _BY_DEVICE, part, device=device), edits, deleted)
    candidates = sorted(set(chain.from_iterable(edits.values())))
    loaded = dict(zip(candidates, load_numbered(connection, candidates), strict=True))
    return {
        num: PostChange(
            max((loaded[one] for one in edits.get(num, ())), key=place_of, default=None), num in deleted
        )
        for num in edits.keys() | deleted
    }


def measure_posts(connection: Connection, rows: Iterable[TimelineRow]) -> dict[int, int]:
    """Sum, by number, the bytes that are read to show a commit: its own, and its author's last edit's.

    Edits by other devices of a person are left out: each is one more look into an index.
    """
    found: dict[int, int] = {}
    for part in chunks(sorted(row.num for row in rows)):
        edited: dict[int, int] = {}
        for num, size, edit in select_in(connection, _SIZES, part):
            found[num] = size
            if edit is not None:
                edited[edit] = num
        query = select(commits.c.num, commits.c.size).where(commits.c.num.in_(list(edited)))
        for edit, size in connection.execute(query) if edited else ():
            found[edited[edit]] += size
    return found


def load_versions(
    connection: Connection,
    post: TimelineRow,
    persons: Mapping[UserId, UserId],
    limit: int,
    before: TimelineRow | None = None,
) -> list[TimelineRow]:
    """Load the last edits and deletions that count for a post, in canonical order, before one of them.

    Costs O(limit and devices).
    """
    if not can_be_changed(post):
        return []
    cipher = cipher_of(connection)
    found: list[TimelineRow] = []
    numbers = _number_users(connection, devices_of(persons, [post.author])[post.author])
    for author_num in numbers.values():
        for relation in CHANGES:
            query = ROWS.where(
                commits.c.branch_num == post.branch_num,
                commits.c.about == post.commit_id,
                commits.c.relation == relation.value,
                commits.c.author_num == author_num,
                ~commits.c.is_void,
            )
            if before is not None:
                query = query.where(tuple_(*CANONICAL_ORDER) < tuple_(*place_of(before)))
            query = query.order_by(*(column.desc() for column in CANONICAL_ORDER)).limit(limit)
            found += [timeline_row(cipher, row) for row in connection.execute(query)]
    return sorted(found, key=place_of)[-limit:]


def load_replies(
    connection: Connection, branch_num: int, first: CommitId, limit: int, after: TimelineRow | None = None
) -> list[TimelineRow]:
    """Load replies of the thread that begins with a commit, in canonical order, after one of them."""
    query = ROWS.where(
        commits.c.branch_num == branch_num,
        commits.c.about == first,
        commits.c.relation == Relation.REPLY.value,
        ~commits.c.is_void,
    )
    if after is not None:
        query = query.where(tuple_(*CANONICAL_ORDER) > tuple_(*place_of(after)))
    cipher = cipher_of(connection)
    ordered = query.order_by(*CANONICAL_ORDER).limit(limit)
    return [timeline_row(cipher, row) for row in connection.execute(ordered)]


def iterate_posts(
    connection: Connection, branch_num: int, users: Collection[UserId], after: int
) -> Iterator[TimelineRow]:
    """Yield posts of a branch by some users that are not void, and came after the commit with number `after`.

    Edits and deletions are none. Costs O(commits of these users in the branch).
    """
    cipher = cipher_of(connection)
    query = ROWS.where(
        commits.c.branch_num == branch_num,
        commits.c.author_num.in_(list(_number_users(connection, users).values())),
        commits.c.num > after,
        commits.c.body_kind.in_(CHANGED_KINDS),
        ~commits.c.is_void,
    )
    rows = (timeline_row(cipher, row) for row in stream_rows(connection, query, _STREAMED_COUNT))
    return (row for row in rows if can_be_changed(row))


# --- steps ---


def _other(relation: Relation, author: Any) -> ScalarSelect[Any]:  # noqa: ANN401  # a column or a parameter
    """Build the query for the last commit by an author that states a relation to `_POST`. One look into an index."""
    return (
        select(commits.c.num)
        .where(
            commits.c.branch_num == _POST.c.branch_num,
            commits.c.about == _POST.c.commit_id,
            commits.c.relation == relation.value,
            commits.c.author_num == author,
            ~commits.c.is_void,
        )
        .order_by(*(column.desc() for column in CANONICAL_ORDER))
        .limit(1)
        .correlate(_POST)
        .scalar_subquery()
    )


def _changes_query(author: Any) -> Any:  # noqa: ANN401  # as above; SQLAlchemy's type names all columns
    return select(_POST.c.num, _other(Relation.EDIT, author), _other(Relation.DELETE, author)).where(
        _POST.c.num.in_(bindparam("keys", expanding=True))
    )


_BY_AUTHOR: Final = _changes_query(_POST.c.author_num)
_BY_DEVICE: Final = _changes_query(bindparam("device"))
_SIZES: Final = select(_POST.c.num, _POST.c.size, _other(Relation.EDIT, _POST.c.author_num)).where(
    _POST.c.num.in_(bindparam("keys", expanding=True))
)


def _collect(rows: Iterable[Any], edits: dict[int, list[int]], deleted: set[int]) -> None:
    for num, edit, deletion in rows:
        if edit is not None:
            edits.setdefault(num, []).append(edit)
        if deletion is not None:
            deleted.add(num)


def _of_other_devices(
    connection: Connection, posts: Sequence[TimelineRow], persons: Mapping[UserId, UserId]
) -> dict[int, list[int]]:
    """Return, by device's number, the posts of its person that it has not written."""
    if not persons:
        return {}
    devices = devices_of(persons, {post.author for post in posts})
    shared = {user: group for user, group in devices.items() if len(group) > 1}
    numbers = _number_users(connection, {user for group in shared.values() for user in group})
    found: dict[int, list[int]] = {}
    for post in posts:
        for user in shared.get(post.author, ()):
            if user != post.author and user in numbers:
                found.setdefault(numbers[user], []).append(post.num)
    return found


def _number_users(connection: Connection, users: Collection[UserId]) -> dict[UserId, int]:
    """Return the numbers of the given users who have written anything."""
    found: dict[UserId, int] = {}
    for part in chunks(sorted(users)):
        rows = connection.execute(select(authors.c.user, authors.c.num).where(authors.c.user.in_(part)))
        found.update((row[0], row[1]) for row in rows)
    return found
