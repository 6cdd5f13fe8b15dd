"""Feeds: one author's numbered commits in a branch, and forks, where one number was used for several commits."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from sqlalchemy import Connection, bindparam, func, insert, select

from protocol.ids import CommitId, UserId
from storage.engine.bulk import select_in, select_rows
from storage.engine.id_keys import chunks
from storage.schema.schema import FEED_LINK_SIZE, authors, branches, commits, feed_forks

_LINKS_AT_ONCE: Final = 1000
"""Places of a feed that one statement reads: a millisecond."""

_OF_USER = (
    select(commits.c.feed_sequence, commits.c.commit_id)
    .join(authors, authors.c.num == commits.c.author_num)
    .where(commits.c.branch_num == bindparam("branch"), authors.c.user == bindparam("author"))
)
_TIP = _OF_USER.order_by(commits.c.feed_sequence.desc(), commits.c.commit_id).limit(1)
_PLACES = _OF_USER.where(commits.c.feed_sequence.in_(bindparam("keys", expanding=True))).order_by(
    commits.c.commit_id.desc()
)
_LINKS = (
    select(commits.c.feed_sequence, commits.c.commit_id, commits.c.feed_link)
    .join(authors, authors.c.num == commits.c.author_num)
    .where(
        commits.c.branch_num == bindparam("branch"),
        authors.c.user == bindparam("author"),
        commits.c.feed_sequence.between(bindparam("low"), bindparam("high")),
    )
)
_USED_TWICE_OF_AUTHOR = (
    select(commits.c.feed_sequence)
    .where(commits.c.branch_num == bindparam("branch"), commits.c.author_num == bindparam("author"))
    .group_by(commits.c.feed_sequence)
    .having(func.count() > 1)
)
_USED_TWICE_BETWEEN = _USED_TWICE_OF_AUTHOR.where(
    commits.c.feed_sequence.between(bindparam("low"), bindparam("high"))
)
_USED_TWICE = _USED_TWICE_OF_AUTHOR.where(commits.c.feed_sequence.in_(bindparam("keys", expanding=True)))


_PLACES_TWICE = (
    select(feed_forks.c.branch_num, feed_forks.c.feed_sequence)
    .join(authors, authors.c.num == feed_forks.c.author_num)
    .where(authors.c.user == bindparam("user"))
    .distinct()
    .subquery()
)
_FORKS_OF_USER = (
    select(branches.c.repo_num, func.count())
    .join(_PLACES_TWICE, _PLACES_TWICE.c.branch_num == branches.c.num)
    .group_by(branches.c.repo_num)
)


class FeedPath:
    """Path back from a commit of a feed, along what its author states to come before each commit.

    It ends at the first link that names no accepted commit of the same author and branch at the sequence before. It is
    followed as far as it is asked for: O(commits of the feed up to there).
    """

    def __init__(
        self, connection: Connection, branch_num: int, author: UserId, sequence: int, commit_id: CommitId
    ) -> None:
        """Begin at a commit, which may be absent (`is_here`).

        Args:
            connection: Of one transaction, in which the path is followed.
            branch_num: Number of the branch's row.
            author: 32 bytes.
            sequence: Place of the commit in the feed, from 1.
            commit_id: 32 bytes.
        """
        self._connection = connection
        self._feed = {"branch": branch_num, "author": author}
        self._last = sequence
        self._ids: list[CommitId] = []
        self._link: bytes = commit_id
        self._follow(sequence)

    @property
    def is_here(self) -> bool:
        """Return True if the commit that it begins at is here."""
        return bool(self._ids)

    @property
    def is_whole(self) -> bool:
        """Return True if it leads to the feed's first commit. Costs O(commits of the feed up to its beginning)."""
        self._follow(1)
        return len(self._ids) == self._last

    def passes(self, commit_id: CommitId, sequence: int) -> bool:
        """Return True if a commit of the feed is on the path."""
        self._follow(sequence)
        place = self._last - sequence
        return 0 <= place < len(self._ids) and self._ids[place] == commit_id

    def below(self, sequence: int) -> list[CommitId]:
        """Return the commits on the path that come before this place."""
        self._follow(1)
        return self._ids[self._last - sequence + 1 :]

    def _follow(self, sequence: int) -> None:
        """Follow the path down to a place, if it leads there."""
        at = self._last - len(self._ids)  # where the next one stands
        while at >= sequence and self._link:
            low = max(sequence, at - _LINKS_AT_ONCE + 1)
            here: dict[int, dict[bytes, tuple[CommitId, bytes]]] = {}
            for place, commit_id, link in select_rows(
                self._connection, _LINKS, low=low, high=at, **self._feed
            ):
                here.setdefault(place, {})[commit_id[:FEED_LINK_SIZE]] = commit_id, link
            while at >= low and self._link:
                found = here.get(at, {}).get(self._link[:FEED_LINK_SIZE])
                if found is None:
                    self._link = b""
                else:
                    self._ids.append(found[0])
                    self._link, at = found[1], at - 1


@dataclass(frozen=True, slots=True)
class FeedTip:
    """Last commit of one author's feed in one branch."""

    sequence: int
    commit_id: CommitId


@dataclass(frozen=True, slots=True)
class Feed:
    """Feed of one author in one branch: commits, the last sequence, and how many places were used more than once."""

    author: UserId
    commits: int
    last: int
    forks: int


@dataclass(frozen=True, slots=True)
class FeedFork:
    """Place of a feed with several commits, each of which its author signed: the smallest ids, and how many."""

    author: UserId
    sequence: int
    commit_ids: tuple[CommitId, ...]
    count: int


class FeedPlace(NamedTuple):
    """Place of an author's feed that a commit takes."""

    author_num: int
    sequence: int
    commit_id: CommitId


def load_feed_tip(connection: Connection, branch_num: int, author: UserId) -> FeedTip | None:
    """Return the end of an author's feed in a branch, or None; of a fork, the smallest id. Costs O(1)."""
    row = select_rows(connection, _TIP, branch=branch_num, author=author).first()
    return FeedTip(row[0], row[1]) if row else None


def load_feed_ids(
    connection: Connection, branch_num: int, author: UserId, sequences: Iterable[int]
) -> dict[int, CommitId]:
    """Load the ids at these places of an author's feed; of a fork, the smallest id. Costs O(sequences)."""
    found: dict[int, CommitId] = {}
    for part in chunks(sorted(set(sequences))):
        rows = select_in(connection, _PLACES, part, branch=branch_num, author=author)
        found.update((row[0], row[1]) for row in rows)
    return found


def load_feeds(connection: Connection, branch_num: int) -> list[Feed]:
    """Load all feeds of a branch, by author. Costs O(commits of the branch)."""
    forked = (
        select(feed_forks.c.author_num, func.count(feed_forks.c.feed_sequence.distinct()).label("count"))
        .where(feed_forks.c.branch_num == branch_num)
        .group_by(feed_forks.c.author_num)
        .subquery()
    )
    counted = (
        select(
            commits.c.author_num, func.count().label("count"), func.max(commits.c.feed_sequence).label("last")
        )
        .where(commits.c.branch_num == branch_num)
        .group_by(commits.c.author_num)
        .subquery()
    )
    query = (
        select(authors.c.user, counted.c.count, counted.c.last, func.coalesce(forked.c.count, 0))
        .join(counted, counted.c.author_num == authors.c.num)
        .join(forked, forked.c.author_num == authors.c.num, isouter=True)
        .order_by(authors.c.user)
    )
    return [Feed(row[0], row[1], row[2], row[3]) for row in connection.execute(query)]


def count_forks_of(connection: Connection, user: UserId) -> dict[int, int]:
    """Count the places that a user has used more than once, by number of the repo; repos without any are left out.

    Costs O(forked places of the user).
    """
    return {row[0]: row[1] for row in select_rows(connection, _FORKS_OF_USER, user=user)}


def load_feed_forks(
    connection: Connection, branch_num: int, *, place_limit: int, commit_limit: int
) -> list[FeedFork]:
    """Load the branch's first forked places by (author, sequence), with their smallest commit ids.

    Costs O(forked places of the branch).
    """
    places = (
        select(authors.c.user, feed_forks.c.author_num, feed_forks.c.feed_sequence)
        .join(authors, authors.c.num == feed_forks.c.author_num)
        .where(feed_forks.c.branch_num == branch_num)
        .distinct()
        .order_by(authors.c.user, feed_forks.c.feed_sequence)
        .limit(place_limit)
    )
    found: list[FeedFork] = []
    for user, author_num, sequence in connection.execute(places).all():
        at_place = (
            commits.c.branch_num == branch_num,
            commits.c.author_num == author_num,
            commits.c.feed_sequence == sequence,
        )
        ids = select(commits.c.commit_id).where(*at_place).order_by(commits.c.commit_id).limit(commit_limit)
        count = select(func.count()).select_from(commits).where(*at_place)
        found.append(
            FeedFork(
                user,
                sequence,
                tuple(connection.execute(ids).scalars()),
                int(connection.execute(count).scalar_one()),
            )
        )
    return found


def keep_feed_forks(connection: Connection, branch_num: int, new: Sequence[FeedPlace]) -> None:
    """Store, as evidence against its author, every new commit that takes a feed place again. Costs O(new).

    `new` are commits that were just stored.
    """
    by_author: dict[int, dict[int, list[CommitId]]] = {}
    for place in new:
        by_author.setdefault(place.author_num, {}).setdefault(place.sequence, []).append(place.commit_id)
    rows: list[dict[str, object]] = []
    for author_num, places in by_author.items():
        sequences = sorted(places)
        # One range where it is about as long as the batch; an author chooses its numbers.
        is_dense = sequences[-1] - sequences[0] < 2 * len(sequences)
        found: list[int] = []
        of_author = {"branch": branch_num, "author": author_num}
        if is_dense:
            used_twice = select_rows(
                connection, _USED_TWICE_BETWEEN, **of_author, low=sequences[0], high=sequences[-1]
            )
            found += used_twice.scalars()
        else:
            for part in chunks(sequences):
                found += select_in(connection, _USED_TWICE, part, **of_author).scalars()
        rows += [
            {
                "branch_num": branch_num,
                "commit_id": commit_id,
                "author_num": author_num,
                "feed_sequence": sequence,
            }
            for sequence in found
            for commit_id in places.get(sequence, ())
        ]
    if rows:
        connection.execute(insert(feed_forks), rows)
