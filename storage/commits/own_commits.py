"""The commits of one author in each branch, by their numbers: which came after others, without a look at all of them."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from sqlalchemy import Connection, bindparam, func, select

from protocol.formats.declared_kind import POST_KINDS
from protocol.ids import TopicKey, UserId
from storage.engine.bulk import select_in
from storage.engine.id_keys import chunks
from storage.schema.schema import authors, branches, commits, topics

_AUTHOR: Final = select(authors.c.num).where(authors.c.user == bindparam("user"))
_LATEST: Final = (
    select(commits.c.num)
    .where(commits.c.branch_num == branches.c.num, commits.c.author_num == bindparam("author"))
    .order_by(commits.c.feed_sequence.desc())
    .limit(1)
    .scalar_subquery()
)
"""The number of an author's latest commit in a branch: the end of the index of feeds, however many there are."""
_LATEST_IN: Final = select(branches.c.repo_num, branches.c.num, _LATEST.label("latest")).where(
    branches.c.repo_num.in_(bindparam("keys", expanding=True)), _LATEST.is_not(None)
)


class LatestOwn(NamedTuple):
    """The latest commit of an author in one branch."""

    repo_num: int
    branch_num: int
    num: int


def load_last_num(connection: Connection) -> int:
    """Return the number of the commit that was accepted last; 0 where there is none."""
    return connection.execute(select(func.max(commits.c.num))).scalar() or 0


def load_author_num(connection: Connection, user: UserId) -> int | None:
    """Return the number of a user as an author; None where nothing of the user is here."""
    return connection.execute(_AUTHOR, {"user": user}).scalar()


def load_latest(connection: Connection, repo_nums: Sequence[int], author_num: int) -> list[LatestOwn]:
    """List an author's latest commit in each branch of some repos, where there is one."""
    return [
        LatestOwn(*row)
        for part in chunks(repo_nums)
        for row in select_in(connection, _LATEST_IN, part, author=author_num)
    ]


class OwnCommit(NamedTuple):
    """A commit of an author: its number and topic, and the display time (unix ms) of a post; None: it is no post."""

    num: int
    topic: TopicKey
    posted_at: int | None


def load_since(
    connection: Connection, branch_num: int, author_num: int, upto: int, count_max: int
) -> list[OwnCommit]:
    """List an author's commits in a branch that came after one, `count_max` of the latest at most."""
    latest = (
        select(commits.c.num, topics.c.topic, commits.c.display_time, commits.c.body_kind)
        .join(topics, topics.c.num == commits.c.topic_num)
        .where(commits.c.branch_num == branch_num, commits.c.author_num == author_num)
        .order_by(commits.c.feed_sequence.desc())
        .limit(count_max)
        .subquery()
    )
    return [
        OwnCommit(num, topic, display_time if kind in POST_KINDS else None)
        for num, topic, display_time, kind in connection.execute(select(latest).where(latest.c.num > upto))
    ]
