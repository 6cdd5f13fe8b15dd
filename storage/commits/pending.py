"""Table of pending commits (bounded per topic and author) and of rejected commits (bounded per branch).

A waiting commit is kept as the publication it came in (a whole one takes the place of a bare one), with how many of its
causes are not here, and a row for each of these. Of a cause that row has only the key of its id: two causes with one key
wake what waits for either, which is then judged by whole ids and waits on. What is done when causes come is
`pending_release`'s. What this node does not know how to read (another format version) is *unread*: it waits without causes
until a newer Ravel starts, and is passed on meanwhile. Where numbers of commits are lists of what to send, unread ones are
negative.

Beyond a bound what is here stays and what comes is dropped: who sent it finds that it is lacking when topics are compared
next, by which time what waits may have been released.
"""

from array import array
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, NamedTuple, Self

from sqlalchemy import BindParameter, Connection, bindparam, delete, func, insert, select, update

from protocol.formats.publication import decode_publication, is_bare
from protocol.ids import CommitId, EpochId, ItemId, Mark, UserId
from protocol.limits.peers import (
    PENDING_AUTHOR_SHARE,
    PENDING_CAUSE_COUNT_MAX,
    PENDING_COUNT_MAX,
    PENDING_SIZE_MAX,
    REJECTION_COUNT_MAX,
    UNREAD_SENT_MAX,
)
from storage.engine.bulk import change_rows, insert_rows, select_in, select_rows
from storage.engine.database import Database, reserve_numbers_to
from storage.engine.id_keys import chunks, id_key
from storage.engine.queries import sum_of
from storage.schema.schema import (
    branches,
    commits,
    pending,
    pending_causes,
    pending_publications,
    rejections,
)
from verifier.verify import Rejected, key_mark

CAUSES: Final = "causes"
READY: Final = "ready"
UNREAD: Final = "version"
"""Reasons to wait, as stored: for causes, for a turn as these have come, or for a Ravel that knows the version."""
_ANY_REJECTION = select(rejections.c.num).limit(1)
_PUBLICATIONS = select(pending.c.commit_id, pending_publications.c.publication).join(
    pending_publications, pending_publications.c.pending_num == pending.c.num
)
_KEYS: BindParameter[list[int]] = bindparam("keys", expanding=True)
_NUMBER: BindParameter[int] = bindparam("number")
_WAITING_BY_KEY = select(pending.c.commit_id).where(pending.c.id_key.in_(_KEYS), pending.c.reason != UNREAD)
_KEPT_BY_KEY = (
    select(pending.c.commit_id, pending.c.num, pending_publications.c.publication)
    .join(pending_publications, pending_publications.c.pending_num == pending.c.num)
    .where(pending.c.id_key.in_(_KEYS), pending.c.reason != UNREAD)
)
_REPLACE = (
    update(pending_publications)
    .values(publication=bindparam("whole"))
    .where(pending_publications.c.pending_num == _NUMBER)
)
_RESIZE = update(pending).values(size=bindparam("new_size")).where(pending.c.num == _NUMBER)
_SUMS = (func.count(), sum_of(pending.c.size), sum_of(pending.c.cause_count))
_OF_TOPIC = select(*_SUMS).where(pending.c.topic_num == bindparam("topic"))
_OF_AUTHORS = (
    select(pending.c.author_key, *_SUMS)
    .where(pending.c.topic_num == bindparam("topic"), pending.c.author_key.in_(_KEYS))
    .group_by(pending.c.author_key)
)
_COLUMNS = (
    "num",
    "branch_num",
    "topic_num",
    "id_key",
    "commit_id",
    "author_key",
    "reason",
    "arrived_at",
    "arrival",
    "size",
    "cause_count",
    "lacking",
)

NO_AUTHOR: Final = UserId(b"")


class Arrival(NamedTuple):
    """Arrival of a commit that waits: unix milliseconds (0: not known), and its turn among all that came."""

    at: int
    number: int  # of the sequence of `commits.num`, which no clock moves


NONE_WAITED: Final[Mapping[CommitId, Arrival]] = MappingProxyType({})


_OF_BRANCH = pending.c.branch_num == bindparam("branch")
_UNREAD = select(func.count()).select_from(pending).where(pending.c.reason == UNREAD)
_WAITING = select(func.count()).select_from(pending).where(pending.c.reason != UNREAD)
_UNREAD_OF_TOPIC = (
    select(pending.c.num, pending.c.commit_id)
    .where(pending.c.topic_num == bindparam("topic"), pending.c.reason == UNREAD)
    .order_by(pending.c.num)
    .limit(UNREAD_SENT_MAX)
)
_UNREAD_WITH_KEYS = (
    select(pending.c.num, pending.c.commit_id)
    .where(pending.c.topic_num == bindparam("topic"), pending.c.reason == UNREAD)
    .where(pending.c.id_key.in_(bindparam("keys", expanding=True)))
    .order_by(pending.c.num)
)
_UNREAD_PUBLICATIONS = (
    select(pending_publications.c.publication)
    .where(pending_publications.c.pending_num.in_(bindparam("keys", expanding=True)))
    .order_by(pending_publications.c.pending_num)
)
_UNREAD_TOPICS = select(pending.c.topic_num).where(pending.c.reason == UNREAD).distinct()
_UNREAD_OF_BRANCH, _WAITING_OF_BRANCH = _UNREAD.where(_OF_BRANCH), _WAITING.where(_OF_BRANCH)
_LAST_REJECTED = select(func.coalesce(func.max(rejections.c.num), 0)).where(
    rejections.c.branch_num == bindparam("branch")
)
_REJECTED = select(func.count()).select_from(rejections).where(rejections.c.branch_num == bindparam("branch"))


@dataclass(frozen=True, slots=True)
class PendingPublication:
    """Pending publication with the causes that it lacked on arrival, and its other reasons to wait."""

    commit_id: CommitId
    publication: bytes
    causes: tuple[CommitId, ...]
    reason: str = CAUSES
    author: UserId = NO_AUTHOR
    """Author; empty where it cannot be read. All such commits count as one author's."""
    branch_num: int = 0
    """Number of its branch; of the root branch while the branch is not added; 0 where the commit cannot be read."""
    awaited: Mark | None = None
    """Mark of another reason to wait than a missing commit (`verifier.verify.Pending`)."""

    @property
    def keys(self) -> list[int]:
        """Return the keys of the causes that it waits for."""
        awaited = () if self.awaited is None else (self.awaited,)
        return sorted({id_key(one) for one in (*self.causes, *awaited)})


@dataclass(frozen=True, slots=True)
class KeptPending:
    """Result of keeping a batch, with the publications that waited before."""

    ids: set[CommitId] = field(default_factory=set)  # what waits for causes
    unread: tuple[int, ...] = ()  # numbers (negative) of those newly kept and unread
    count: int = 0  # of all that wait now, unread ones included
    refused: int = 0  # how many did not fit


@dataclass(slots=True)
class _Room:
    """Room that is left of a topic, or of one author on it."""

    count: int
    size: int
    causes: int

    @classmethod
    def beside(cls, count: int, size: int, causes: int, share: int) -> Self:
        """Return what is left beside what waits, of one part in `share` of each bound."""
        return cls(
            PENDING_COUNT_MAX // share - count,
            PENDING_SIZE_MAX // share - size,
            PENDING_CAUSE_COUNT_MAX // share - causes,
        )

    def fits(self, size: int, causes: int) -> bool:
        return self.count >= 1 and self.size >= size and self.causes >= causes

    def subtract(self, size: int, causes: int) -> None:
        self.count, self.size, self.causes = self.count - 1, self.size - size, self.causes - causes


def keep_pending(
    database: Database,
    connection: Connection,
    topic_num: int,
    waiting: Sequence[PendingPublication],
    arrived_at: int = 0,
    former: Mapping[CommitId, Arrival] = NONE_WAITED,
    *,
    parts: int = 1,
    unread_under: int = 0,
) -> KeptPending:
    """Store pending commits that came by one topic, as far as they fit its bounds. Costs O(batch and causes).

    Args:
        database: Gives row numbers.
        connection: Of its write transaction.
        topic_num: Number of the topic's row.
        waiting: Commits that lack causes, or whose format this Ravel does not know.
        arrived_at: Arrival, unix milliseconds; 0: not known.
        former: Arrival of those that waited before.
        parts: Use one part in so many of each bound.
        unread_under: Number of the branch for which unreadable ones are counted.

    Returns:
        What is kept, and how many found no room: of the topic, or of its author on it (PENDING_AUTHOR_SHARE).
    """
    if not waiting:
        return KeptPending()
    known = _find_known(connection, waiting)
    # Of the topic: anyone who still holds an older epoch's secrets fills that, and not the room of those that follow.
    room = _room_of_topic(connection, topic_num, parts)
    of_authors = _rooms_of_authors(connection, topic_num, parts, {item.author for item in waiting})
    ids = {item.commit_id for item in waiting if item.reason == CAUSES and item.commit_id in known}
    count, refused = len(known), 0
    new: list[PendingPublication] = []
    again: list[PendingPublication] = []
    for item in waiting:
        keys = item.keys
        of_author, size = of_authors[item.author], len(item.publication)
        if _name(item) in known:
            if item.reason == CAUSES and not is_bare(item.publication):
                again.append(item)
            continue
        if not (room.fits(size, len(keys)) and of_author.fits(size, len(keys))):
            refused += 1
            continue
        room.subtract(size, len(keys))
        of_author.subtract(size, len(keys))
        known.add(_name(item))
        new.append(item)
        if item.reason != UNREAD:
            ids.add(item.commit_id)
    nums = database.next_nums(connection, pending, len(new)) if new else ()
    numbered = list(zip(nums, new, strict=True))
    arrivals = _number_arrivals(database, connection, new, arrived_at, former)
    _insert(connection, topic_num, unread_under, numbered, arrivals)
    _complete(connection, again, room, of_authors)
    unread = tuple(-num for num, item in numbered if item.reason == UNREAD)
    return KeptPending(ids, unread, count + len(new), refused)


def _number_arrivals(
    database: Database,
    connection: Connection,
    new: Sequence[PendingPublication],
    arrived_at: int,
    former: Mapping[CommitId, Arrival],
) -> list[Arrival]:
    """Number arriving commits behind the accepted ones. Commits that are pending already keep their numbers."""
    count = sum(item.commit_id not in former for item in new)
    if not count:
        return [former[item.commit_id] for item in new]
    nums = database.next_nums(connection, commits, count)
    reserve_numbers_to(connection, commits, nums[-1])
    turns = iter(nums)
    return [former.get(item.commit_id) or Arrival(arrived_at, next(turns)) for item in new]


def _room_of_topic(connection: Connection, topic_num: int, parts: int) -> _Room:
    count, size, causes = select_rows(connection, _OF_TOPIC, topic=topic_num).first() or (0, 0, 0)
    return _Room.beside(count, size, causes, parts)


def _rooms_of_authors(
    connection: Connection, topic_num: int, parts: int, authors: Collection[UserId]
) -> dict[UserId, _Room]:
    """Return the room that is left of each author on a topic."""
    keys = {author: id_key(author) for author in authors}
    used: dict[int, tuple[int, int, int]] = {}
    for part in chunks(sorted(set(keys.values()))):
        rows = select_in(connection, _OF_AUTHORS, part, topic=topic_num)
        used.update((row[0], (row[1], row[2], row[3])) for row in rows)
    share = parts * PENDING_AUTHOR_SHARE
    return {author: _Room.beside(*used.get(key, (0, 0, 0)), share) for author, key in keys.items()}


def _insert(
    connection: Connection,
    topic_num: int,
    unread_under: int,
    numbered: Sequence[tuple[int, PendingPublication]],
    arrivals: Sequence[Arrival],
) -> None:
    rows: list[tuple[object, ...]] = []
    causes: list[tuple[int, int]] = []
    for (num, item), arrival in zip(numbered, arrivals, strict=True):
        keys, branch_num = item.keys, item.branch_num or unread_under
        named = (num, branch_num, topic_num, id_key(item.commit_id), item.commit_id, id_key(item.author))
        rows.append((*named, item.reason, *arrival, len(item.publication), len(keys), len(keys)))
        causes += [(key, num) for key in keys]
    publications = [(num, item.publication) for num, item in numbered]
    insert_rows(connection, pending, _COLUMNS, rows)
    insert_rows(connection, pending_publications, ("pending_num", "publication"), publications)
    insert_rows(connection, pending_causes, ("id_key", "pending_num"), causes)


def _complete(
    connection: Connection,
    whole: Sequence[PendingPublication],
    room: _Room,
    of_authors: Mapping[UserId, _Room],
) -> None:
    """Replace waiting bare publications by whole ones, as far as these fit: the first of the batch first."""
    bare: dict[CommitId, tuple[int, int]] = {}
    for part in chunks([id_key(item.commit_id) for item in whole]):
        for commit_id, num, kept in select_in(connection, _KEPT_BY_KEY, part):
            if is_bare(kept):
                bare[commit_id] = num, len(kept)
    replaced: list[tuple[bytes, int]] = []
    for item in whole:
        if item.commit_id not in bare:
            continue
        num, size = bare[item.commit_id]
        of_author, grown = of_authors[item.author], len(item.publication) - size
        if grown <= min(room.size, of_author.size):
            room.size, of_author.size = room.size - grown, of_author.size - grown
            replaced.append((item.publication, num))
            del bare[item.commit_id]
    change_rows(connection, _REPLACE, replaced)
    change_rows(connection, _RESIZE, [(len(publication), num) for publication, num in replaced])


def has_incomplete(connection: Connection, branch_nums: Sequence[int]) -> bool:
    """Return True if commits of some branches wait for their causes. Costs O(1)."""
    query = select(pending.c.num).where(pending.c.branch_num.in_(branch_nums), pending.c.reason == CAUSES)
    return connection.execute(query.limit(1)).first() is not None


def _name(item: PendingPublication) -> ItemId:
    """Return the id under which it is kept once. An unread commit may have several publications."""
    return decode_publication(item.publication).publication_id if item.reason == UNREAD else item.commit_id


def _find_known(connection: Connection, waiting: Sequence[PendingPublication]) -> set[ItemId]:
    """Return the names of the given publications that wait already."""
    known: set[ItemId] = set(
        find_pending(connection, [item.commit_id for item in waiting if item.reason == CAUSES])
    )
    unread = {item.commit_id for item in waiting if item.reason == UNREAD}
    for part in chunks([id_key(raw) for raw in unread]):
        query = _PUBLICATIONS.where(pending.c.id_key.in_(part), pending.c.reason == UNREAD)
        known.update(
            _name(PendingPublication(commit_id, publication, (), UNREAD))
            for commit_id, publication in connection.execute(query)
            if commit_id in unread
        )
    return known


def find_pending(connection: Connection, ids: Collection[CommitId]) -> set[CommitId]:
    """Return the given commits that wait for causes, or for their turn. Costs O(ids)."""
    wanted = set(ids)
    found: set[CommitId] = set()
    for part in chunks([id_key(raw) for raw in wanted]):
        found.update(wanted.intersection(select_in(connection, _WAITING_BY_KEY, part).scalars()))
    return found


def find_unread(
    connection: Connection, topic_num: int, ids: Sequence[CommitId] | None = None
) -> "array[int]":
    """Return numbers (negative) of a topic's unread commits, oldest first: of these ids, or the first UNREAD_SENT_MAX."""
    if ids is None:
        return array("q", (-num for num, _ in select_rows(connection, _UNREAD_OF_TOPIC, topic=topic_num)))
    wanted, found = set(ids), array("q")
    for part in chunks([id_key(raw) for raw in wanted]):
        rows = select_in(connection, _UNREAD_WITH_KEYS, part, topic=topic_num)
        found.extend(-num for num, commit_id in rows if commit_id in wanted)
    return found


def find_unread_topics(connection: Connection) -> set[int]:
    """Return numbers of the topics that have unread commits. Costs O(unread commits)."""
    return set(select_rows(connection, _UNREAD_TOPICS).scalars())


def load_unread(connection: Connection, nums: Sequence[int], size_target: int) -> list[bytes]:
    """Load publications of unread commits by (negative) number, in order, until `size_target` bytes are passed."""
    items: list[bytes] = []
    size = 0
    for part in chunks([-num for num in nums]):
        for (publication,) in select_in(connection, _UNREAD_PUBLICATIONS, part):
            if items and size >= size_target:
                return items
            items.append(publication)
            size += len(publication)
    return items


def count_pending(connection: Connection, branch_num: int | None = None, *, reason: str = CAUSES) -> int:
    """Count the commits that are unread, or that wait for causes or their turn, in one branch or in all. Costs O(those)."""
    unread, others = (_UNREAD, _WAITING) if branch_num is None else (_UNREAD_OF_BRANCH, _WAITING_OF_BRANCH)
    query = unread if reason == UNREAD else others
    return int(select_rows(connection, query, branch=branch_num).scalars()[0])


def count_unread_in(connection: Connection) -> dict[int, int]:
    """Count the commits of formats that this Ravel does not know, by number of the repo. Costs O(such commits)."""
    query = select(branches.c.repo_num, func.count()).join(pending, pending.c.branch_num == branches.c.num)
    query = query.where(pending.c.reason == UNREAD).group_by(branches.c.repo_num)
    return {row[0]: row[1] for row in connection.execute(query)}


def count_waiting(connection: Connection) -> dict[int, int]:
    """Count the commits that wait for causes, or for their turn, by the numbers of the topics that they came on.

    Costs O(commits that wait).
    """
    query = select(pending.c.topic_num, func.count()).where(pending.c.reason != UNREAD)
    return {row[0]: row[1] for row in connection.execute(query.group_by(pending.c.topic_num))}


def load_waiting_authors(connection: Connection, topic_nums: Collection[int]) -> set[int]:
    """Load the author keys (`id_key`) of commits that wait on these topics. Costs O(commits that wait)."""
    query = select(pending.c.author_key).where(pending.c.reason != UNREAD)
    found: set[int] = set()
    for part in chunks(sorted(topic_nums)):
        found.update(connection.execute(query.where(pending.c.topic_num.in_(part)).distinct()).scalars())
    return found


def load_keyless(connection: Connection, branch_num: int) -> list[tuple[int, int]]:
    """Load author key and arrival of the inits of a root branch that wait for their epoch's key alone.

    That is in unix milliseconds, or 0. Costs O(commits of the branch that wait).
    """
    query = (
        select(pending.c.commit_id, pending.c.author_key, pending.c.arrived_at, pending_causes.c.id_key)
        .join(pending_causes, pending_causes.c.pending_num == pending.c.num)
        .where(pending.c.branch_num == branch_num, pending.c.reason == CAUSES, pending.c.lacking == 1)
        .order_by(pending.c.num)
    )
    return [
        (author_key, arrived_at)
        for commit_id, author_key, arrived_at, cause in connection.execute(query)
        if cause == id_key(key_mark(EpochId(commit_id)))
    ]


def load_pending(
    connection: Connection, branch_num: int, known: Collection[CommitId]
) -> list[tuple[CommitId, int, bytes]]:
    """Load (id, topic's number, publication) of a branch's pending commits that are not `known`, in order.

    Costs O(commits of the branch that wait).
    """
    query = select(pending.c.num, pending.c.commit_id).where(
        pending.c.branch_num == branch_num, pending.c.reason != UNREAD
    )
    nums = [row[0] for row in connection.execute(query.order_by(pending.c.num)) if row[1] not in known]
    found: list[tuple[CommitId, int, bytes]] = []
    for part in chunks(nums):
        rows = connection.execute(
            _PUBLICATIONS.add_columns(pending.c.topic_num)
            .where(pending.c.num.in_(part))
            .order_by(pending.c.num)
        )
        found += [(row[0], row[2], row[1]) for row in rows]
    return found


def load_one_pending(connection: Connection, commit_id: CommitId) -> tuple[int, bytes] | None:
    """Load (topic's number, publication) of a pending commit, or None. Costs O(1)."""
    query = _PUBLICATIONS.add_columns(pending.c.topic_num).where(
        pending.c.id_key == id_key(commit_id), pending.c.commit_id == commit_id, pending.c.reason != UNREAD
    )
    row = connection.execute(query).first()
    return None if row is None else (row[2], row[1])


def keep_rejections(
    database: Database, connection: Connection, branch_num: int, rejected: Sequence[Rejected]
) -> None:
    """Store rejected commits; forget the branch's oldest beyond the bound. Costs O(change)."""
    fresh = {item.commit_id: item for item in rejected}
    for commit_id in load_rejected(connection, list(fresh)):
        del fresh[commit_id]
    if not fresh:
        return
    nums = database.next_nums(connection, rejections, len(fresh))
    connection.execute(
        insert(rejections),
        [
            {
                "num": num,
                "branch_num": branch_num,
                "commit_id": item.commit_id,
                "code": item.code,
                "detail": item.detail[:500],
            }
            for num, item in zip(nums, fresh.values(), strict=True)
        ],
    )
    kept = (
        select(rejections.c.num)
        .where(rejections.c.branch_num == branch_num)
        .order_by(rejections.c.num.desc())
        .offset(REJECTION_COUNT_MAX)
    )
    connection.execute(delete(rejections).where(rejections.c.num.in_(kept)))


def load_rejected(connection: Connection, ids: Sequence[CommitId]) -> set[CommitId]:
    """Return the given ids that were rejected. Costs O(ids), mostly O(1)."""
    found: set[CommitId] = set()
    if select_rows(connection, _ANY_REJECTION).first() is None:
        return found  # the usual case, and this stands in the way of every batch
    for part in chunks(ids):
        found.update(
            connection.execute(
                select(rejections.c.commit_id).where(rejections.c.commit_id.in_(part))
            ).scalars()
        )
    return found


def find_last_rejection(connection: Connection, branch_num: int) -> int:
    """Return the number of the last rejection that is kept under a branch, or 0. Costs O(1)."""
    return int(select_rows(connection, _LAST_REJECTED, branch=branch_num).scalars()[0])


def count_rejections(connection: Connection, branch_num: int) -> int:
    """Count the rejected commits of a branch that are remembered. Costs O(those)."""
    return int(select_rows(connection, _REJECTED, branch=branch_num).scalars()[0])
