"""State of this node alone: how far its user has seen each branch, and session numbers of its editors of texts.

A mark is a number of `commits.num`, which grows in the order of acceptance: what comes late and stands far up in the
timeline is new all the same.

A session number is the free part of a Yjs client id. One that was given is written down before its editor learns it, so that
no restart gives it to a second one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Select, delete, func, insert, select, update

from protocol.ids import UserId
from storage.schema.schema import authors, branches, commits, seen_marks, text_sessions

SEEN_KINDS: Final = ("post", "files", "imported", "carried")
"""Kinds of bodies that people write to each other, or may: only an opened body tells what a merge has carried. Documents
change with each letter that is typed."""
_CHANGES: Final = ("edit", "delete")


@dataclass(frozen=True, slots=True)
class Unseen:
    """Commit that is new to the user, by number, author and kind."""

    num: int
    author: UserId
    kind: str


def load_marks(connection: Connection) -> Mapping[int, int]:
    """Load, by branch number, the number of the last commit that was seen; none for branches never looked at.

    Costs O(marks).
    """
    return {row[0]: row[1] for row in connection.execute(select(seen_marks.c.branch_num, seen_marks.c.num))}


def load_mark(connection: Connection, branch_num: int) -> int | None:
    """Return the number of a branch's last commit that was seen; None if it was never looked at."""
    return connection.execute(select(seen_marks.c.num).where(seen_marks.c.branch_num == branch_num)).scalar()


def load_unseen(
    connection: Connection, branch_num: int, mark: int, limit: int
) -> tuple[list[Unseen], int, bool]:
    """Load what people wrote behind a mark, newest first; the last commit's number; True if `limit` cut it.

    At most `limit` commits are looked at.
    """
    newest = connection.execute(_behind(branch_num, mark, limit)).all()
    is_cut = len(newest) == limit
    last = newest[0][0] if newest else mark
    unseen = [
        Unseen(num, UserId(user), kind)
        for num, user, kind, relation, is_void in newest
        if kind in SEEN_KINDS and relation not in _CHANGES and not is_void
    ]
    return unseen, last, is_cut


def put_mark(connection: Connection, branch_num: int, num: int, now: int) -> None:
    """Mark a branch as seen up to a commit (time in unix ms). A mark never goes back, nor beyond what is here."""
    latest = select(func.max(commits.c.num)).where(commits.c.branch_num == branch_num)
    num = min(num, connection.execute(latest).scalar() or 0)
    changed = connection.execute(
        update(seen_marks)
        .where(seen_marks.c.branch_num == branch_num)
        .where(seen_marks.c.num < num)
        .values(num=num, seen_at=now)
    )
    if changed.rowcount:
        return
    known = select(seen_marks.c.num).where(seen_marks.c.branch_num == branch_num)
    here = select(branches.c.num).where(branches.c.num == branch_num)
    if connection.execute(known).scalar() is None and connection.execute(here).scalar() is not None:
        connection.execute(insert(seen_marks).values(branch_num=branch_num, num=num, seen_at=now))


def _behind(branch_num: int, mark: int, limit: int) -> Select[Any]:
    return (
        select(commits.c.num, authors.c.user, commits.c.body_kind, commits.c.relation, commits.c.is_void)
        .join(authors, authors.c.num == commits.c.author_num)
        .where(commits.c.branch_num == branch_num, commits.c.num > mark)
        .order_by(commits.c.num.desc())
        .limit(limit)
    )


def load_sessions(connection: Connection, branch_num: int) -> dict[int, int]:
    """Load when each session number of a branch was last given, in unix milliseconds."""
    query = select(text_sessions.c.session, text_sessions.c.given_at).where(
        text_sessions.c.branch_num == branch_num
    )
    return {row[0]: row[1] for row in connection.execute(query)}


def put_session(connection: Connection, branch_num: int, session: int, now: int) -> None:
    """Note that a session number of a branch is given now, in unix milliseconds."""
    connection.execute(
        delete(text_sessions).where(
            text_sessions.c.branch_num == branch_num, text_sessions.c.session == session
        )
    )
    connection.execute(insert(text_sessions).values(branch_num=branch_num, session=session, given_at=now))
