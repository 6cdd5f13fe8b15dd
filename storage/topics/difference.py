"""Computes what to send a peer on a topic: all commits that its heads do not imply.

A node that accepted a commit holds all its ancestors. So where all heads of the other are here, it holds exactly their
past, and what to send is exact. Where not, nothing is known yet (`protocol.session.reconciliation.reconciler` finds it out).

Each topic is compared for itself: paths that lead through commits of other topics are not followed, so where an author
wrote in an older epoch than others, something may be sent twice. A topic has the commits of all branches; those of each are
sent in turns.
"""

import heapq
from array import array
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, Final

from sqlalchemy import Column, ColumnElement, Connection, Select, Table, bindparam, func, select

from protocol.ids import SHORT_ID_SIZE, CommitId, ShortId
from protocol.limits.peers import SUMMARY_HEAD_COUNT_MAX, VARIANTS_WANTED_MAX
from storage.commits.pending import find_unread
from storage.engine.bulk import select_in, select_rows, unindexed
from storage.engine.id_keys import chunks, id_key, unpack_ids
from storage.schema.schema import branches, commits, epochs, heads, repos, topic_inits, topics

_TURN_COUNT: Final = 256
"""Commits of one branch that are sent before other branches have their turn: some 150 KB of posts."""


@dataclass(frozen=True, eq=False)
class TopicTables:
    """Tables that hold topics, their commits, and their heads (commits that no other of the topic acks).

    Where what is kept cannot be opened, a commit may have several publications: rows of its id, variants all but one.
    Where a topic has inits of epochs, these stand on further topics, too (`topic_inits`). Of a link topic the commits
    are those of its branch and epoch.
    """

    topics: Table
    commits: Table
    heads: Table
    is_of_links: bool = False

    @property
    def name(self) -> str:
        """Return the unique name of these tables."""
        return f"{self.topics.name} links" if self.is_of_links else self.topics.name

    @property
    def has_variants(self) -> bool:
        """Return True if a commit may have several publications."""
        return "is_variant" in self.commits.c

    @property
    def has_inits(self) -> bool:
        """Return True if inits of epochs stand on two topics."""
        return not self.has_variants and not self.is_of_links

    def is_on(self, *, beside: bool = False) -> "ColumnElement[bool]":
        """Return the condition that a row is of a `topic`, without second places of inits."""
        columns, wrap = self.commits.c, unindexed if beside else _as_it_is
        if not self.is_of_links:
            return wrap(columns.topic_num) == bindparam("topic")
        here = self.topics.c.num == bindparam("topic")
        branch = select(self.topics.c.branch_num).where(here).scalar_subquery()
        epoch = select(self.topics.c.epoch_num).where(here).scalar_subquery()
        return (wrap(columns.branch_num) == branch) & (columns.epoch_num == epoch)

    @cached_property
    def place(self) -> "Select[Any]":
        """Return the query for places of commits of a `topic` by `keys`."""
        columns, is_on = self.commits.c, self.is_on(beside=True)
        if self.has_inits:
            is_on |= starts_on(columns.num)
        query = select(columns.commit_id, columns.num, columns.rank, columns.acks)
        query = query.where(columns.id_key.in_(bindparam("keys", expanding=True)), is_on)
        return query.where(~columns.is_variant) if self.has_variants else query

    @cached_property
    def count(self) -> "Select[Any]":
        """Return the query for the count of a `topic`'s commits."""
        if self.is_of_links:
            return select(func.count()).select_from(self.commits).where(self.is_on())
        return select(self.topics.c.commit_count).where(self.topics.c.num == bindparam("topic"))

    @cached_property
    def last(self) -> "Select[Any]":
        """Return the query for the number of a `topic`'s last commit, or 0."""
        return select(func.coalesce(func.max(self.commits.c.num), 0)).where(self.is_on())

    @cached_property
    def last_init(self) -> "Select[Any]":
        """Return the query for the number of the last init that has its second place on a `topic`, or 0."""
        query = select(func.coalesce(func.max(topic_inits.c.commit_num), 0))
        return query.where(topic_inits.c.topic_num == bindparam("topic"))

    @cached_property
    def highest(self) -> "Select[Any]":
        """Return the query for heads of a `topic`, highest rank first, so `many`. Of a link topic also others."""
        columns = self.heads.c
        query = select(columns.commit_id).where(columns.topic_num == bindparam("topic"))
        if self.is_of_links:
            here = self.topics.c.num == bindparam("topic")
            branch = select(self.topics.c.branch_num).where(here).scalar_subquery()
            epoch = select(self.topics.c.epoch_num).where(here).scalar_subquery()
            own = select(epochs.c.topic_num).where(epochs.c.num == epoch)
            both = own.union_all(select(epochs.c.writers_topic_num).where(epochs.c.num == epoch))
            query = select(columns.commit_id).where(columns.branch_num == branch, columns.topic_num.in_(both))
        return query.order_by(columns.rank.desc(), columns.commit_id).limit(bindparam("many"))

    @cached_property
    def numbers(self) -> "Select[Any]":
        """Return the query for the numbers of all commits of a `topic`, with their branches."""
        columns = self.commits.c
        branch = columns.branch_num if "branch_num" in columns else columns.topic_num
        return select(columns.num, branch).where(self.is_on()).order_by(columns.num)


def _as_it_is(column: "Column[int]") -> "Column[int]":
    return column


def starts_on(num: "Column[int]") -> "ColumnElement[bool]":
    """Return the condition that a commit is an init with its second place on a `topic`."""
    of_topic = select(topic_inits.c.commit_num).where(topic_inits.c.topic_num == bindparam("topic"))
    return num.in_(of_topic)


REPLICA: Final = TopicTables(topics, commits, heads)
"""Tables of what this node can open, on the topics of epochs."""
LINKED: Final = TopicTables(topics, commits, heads, is_of_links=True)
"""Tables of what this node can open, on the link topics of single branches."""
_BRANCHES: Final = select(commits.c.num, commits.c.branch_num).where(
    commits.c.num.in_(bindparam("keys", expanding=True))
)
_ROOT_BRANCHES: Final = (
    select(branches.c.num)
    .join(repos, repos.c.num == branches.c.repo_num)
    .where(branches.c.num.in_(bindparam("keys", expanding=True)), branches.c.root_id == repos.c.init_id)
    .order_by(branches.c.num)
)
_INITS: Final = select(topic_inits.c.commit_num).where(topic_inits.c.topic_num == bindparam("topic"))


@dataclass(frozen=True, slots=True)
class TopicSummary:
    """Summary of a topic: ids that nothing of it acks, how many commits, and the last one's number."""

    heads: tuple[CommitId, ...]
    count: int
    upto: int


@dataclass(frozen=True, slots=True)
class SendPlan:
    """Numbers of commits to send, causes first, the newest number that was considered, and the unread ones.

    Where some of the other's heads are not here, it is not exact, and there are no numbers.
    """

    nums: "array[int]"
    upto: int
    unread: "array[int]"
    is_exact: bool = True


@dataclass(frozen=True, slots=True)
class _Place:
    num: int
    rank: int
    acks: tuple[CommitId, ...]


def summarise(connection: Connection, topic_num: int, tables: TopicTables = REPLICA) -> TopicSummary:
    """Summarise a topic. Costs O(heads), of a link topic O(commits)."""
    (count,) = select_rows(connection, tables.count, topic=topic_num).first() or (0,)
    heads = tuple(_load_heads(connection, tables, topic_num, SUMMARY_HEAD_COUNT_MAX))
    return TopicSummary(heads, count, _find_last(connection, tables, topic_num))


def plan_sending(
    connection: Connection, topic_num: int, held: Sequence[ShortId | CommitId], tables: TopicTables = REPLICA
) -> SendPlan:
    """Plan what to send to a peer on a topic. Costs O(commits that the peer lacks).

    Args:
        connection: Of one read transaction, which fixes what "here" is.
        topic_num: Number of the topic's row.
        held: The peer's heads: ids of 32 bytes, or their first SHORT_ID_SIZE bytes at least. None: it holds nothing.
        tables: Where the topic is kept.

    Returns:
        Numbers to send, in order. Not exact, and without numbers, if a head of the peer is not here.
    """
    upto = _find_last(connection, tables, topic_num)
    named = {ShortId(raw[:SHORT_ID_SIZE]) for raw in held}
    known = _places(connection, tables, topic_num, named, SHORT_ID_SIZE)
    unread = find_unread(connection, topic_num) if tables is REPLICA else array("q")
    if len(known) < len(named) or len(held) >= SUMMARY_HEAD_COUNT_MAX:
        return SendPlan(array("q"), upto, unread, is_exact=False)
    if not known:
        inits = _load_inits(connection, tables, topic_num)
        others = _in_turns(connection, select_rows(connection, tables.numbers, topic=topic_num))
        return SendPlan(array("q", [*inits, *others]), upto, unread)
    our_heads = _load_heads(connection, tables, topic_num, limit=1_000_000)
    if all(head in known for head in our_heads):
        return SendPlan(array("q"), upto, unread)
    nums = _not_implied(connection, tables, topic_num, our_heads, known)
    variants = _find_variants(connection, tables, topic_num, nums)
    chosen = sorted([*nums.values(), *variants])
    if not tables.has_variants and len(chosen) > _TURN_COUNT:
        rows = [row for part in chunks(chosen) for row in select_in(connection, _BRANCHES, part)]
        chosen = list(_in_turns(connection, sorted(rows)))
    return SendPlan(array("q", chosen), upto, unread)


def find_nums(
    connection: Connection, topic_num: int, ids: Sequence[CommitId], tables: TopicTables = REPLICA
) -> list[int]:
    """Return the numbers of the given commits that are on the topic: unread ones, then causes before effects.

    Of a commit with many publications the latest VARIANTS_WANTED_MAX, and the first: comparing topics finds the others.
    """
    places = _places(connection, tables, topic_num, ids)
    held = [place.num for place in places.values()]
    if tables.has_variants and _has_variants(connection, tables, topic_num):
        columns = tables.commits.c
        for commit_id in places:
            of_commit = (columns.id_key == id_key(commit_id)) & (columns.commit_id == commit_id)
            query = select(columns.num).where(of_commit, columns.is_variant, columns.topic_num == topic_num)
            latest = query.order_by(columns.num.desc()).limit(VARIANTS_WANTED_MAX)
            held += connection.execute(latest).scalars()
    return [*(find_unread(connection, topic_num, ids) if tables is REPLICA else ()), *sorted(held)]


def _has_variants(connection: Connection, tables: TopicTables, topic_num: int) -> bool:
    columns = tables.commits.c
    query = select(columns.num).where(columns.topic_num == topic_num, columns.is_variant).limit(1)
    return connection.execute(query).first() is not None


def _find_variants(
    connection: Connection, tables: TopicTables, topic_num: int, of_commits: Container[CommitId]
) -> list[int]:
    """Return the numbers of all publications of these commits but the first of each."""
    if not tables.has_variants:
        return []
    columns = tables.commits.c
    query = select(columns.num, columns.commit_id).where(columns.topic_num == topic_num, columns.is_variant)
    return [num for num, commit_id in connection.execute(query) if commit_id in of_commits]


def _find_last(connection: Connection, tables: TopicTables, topic_num: int) -> int:
    last = int(select_rows(connection, tables.last, topic=topic_num).scalars()[0])
    if tables.has_inits:
        last = max(last, int(select_rows(connection, tables.last_init, topic=topic_num).scalars()[0]))
    return last


def _load_inits(connection: Connection, tables: TopicTables, topic_num: int) -> list[int]:
    if not tables.has_inits:
        return []
    return sorted(select_rows(connection, _INITS, topic=topic_num).scalars())


def _in_turns(connection: Connection, rows: Iterable[tuple[Any, ...]]) -> Iterator[int]:
    """Order numbers, given with their branches: those of root branches first, then the others' in turns.

    All others name commits of root branches. Within a branch causes stand before effects, as they were.
    """
    by_branch: dict[int, list[int]] = {}
    for num, branch in rows:
        by_branch.setdefault(branch, []).append(num)
    if len(by_branch) < 2:
        return chain.from_iterable(by_branch.values())
    parts = chunks(sorted(by_branch))
    roots = [num for part in parts for num in select_in(connection, _ROOT_BRANCHES, part).scalars()]
    first = [by_branch.pop(branch) for branch in roots]
    return chain.from_iterable(chain(first, _take_turns([by_branch[branch] for branch in sorted(by_branch)])))


def _take_turns(queues: Sequence[Sequence[int]]) -> Iterator[Sequence[int]]:
    for start in range(0, max(map(len, queues), default=0), _TURN_COUNT):
        for queue in queues:
            yield queue[start : start + _TURN_COUNT]


def _load_heads(connection: Connection, tables: TopicTables, topic_num: int, limit: int) -> list[CommitId]:
    """Load commits of the topic that none of it acks, those of highest rank first."""
    return select_rows(connection, tables.highest, topic=topic_num, many=limit).scalars()


def _not_implied(
    connection: Connection,
    tables: TopicTables,
    topic_num: int,
    our_heads: list[CommitId],
    known: dict[CommitId, _Place],
) -> dict[CommitId, int]:
    """Walk down by rank from both sides; return, by id, the numbers that the peer is not known to hold.

    A commit's acks are of lower rank, so when it is met all its descendants have been: its mark is final. The ranks of a
    relay are what the first publisher made of them; there a mark may come too late, which sends more than it need,
    and nothing is walked twice.
    """
    places = {**_places(connection, tables, topic_num, our_heads), **known}
    theirs = set(known)
    queue = [(-place.rank, commit_id) for commit_id, place in places.items()]
    heapq.heapify(queue)
    ours_in_queue = sum(commit_id not in theirs for commit_id in places)
    result: dict[CommitId, int] = {}
    walked: set[CommitId] = set()
    while queue and ours_in_queue:
        rank = queue[0][0]
        level: list[CommitId] = []
        while queue and queue[0][0] == rank:
            level.append(heapq.heappop(queue)[1])
        wanted: set[CommitId] = set()
        for commit_id in level:
            place = places[commit_id]
            if commit_id in theirs:
                for ack in place.acks:
                    if ack not in theirs:
                        theirs.add(ack)
                        ours_in_queue -= ack in places
            else:
                result[commit_id] = place.num
                ours_in_queue -= 1
            wanted.update(ack for ack in place.acks if ack not in places and ack not in walked)
        for commit_id, place in _places(connection, tables, topic_num, list(wanted)).items():
            places[commit_id] = place
            heapq.heappush(queue, (-place.rank, commit_id))
            ours_in_queue += commit_id not in theirs
        for commit_id in level:
            del places[commit_id]
        walked.update(level)
    return result


def _places(
    connection: Connection,
    tables: TopicTables,
    topic_num: int,
    ids: Iterable[CommitId | ShortId],
    size: int | None = None,
) -> dict[CommitId, _Place]:
    """Load the places of the given commits that are on the topic; ids are whole, or their first `size` bytes."""
    wanted = set(ids)
    found: dict[CommitId, _Place] = {}
    for part in chunks([id_key(raw) for raw in wanted]):
        for commit_id, num, rank, acks in select_in(connection, tables.place, part, topic=topic_num):
            if commit_id[:size] in wanted:
                found[commit_id] = _Place(num, rank, unpack_ids(acks))
    return found
