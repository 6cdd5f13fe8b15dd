"""Computes what to send a peer on a topic: all commits that its heads do not imply.

A node that accepted a commit holds all its ancestors. So where all heads of the other are here, it holds exactly their
past, and what to send is exact. Where not, nothing is known yet (`protocol.reconciliation.reconciler` finds it out).

Each topic is compared for itself: paths that lead through commits of the branch's other topics are not followed, so
where an author wrote on an older topic than others, something may be sent twice.
"""

import heapq
from array import array
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from sqlalchemy import Connection, Select, Table, bindparam, func, select

from protocol import signing
from protocol.ids import SHORT_ID_SIZE, BlockId, CommitId, ShortId, Signature
from protocol.limits.peers import SUMMARY_HEAD_COUNT_MAX, VARIANTS_WANTED_MAX
from protocol.publication import encode_bare, encode_publication, sign_publication
from storage.commits.absent_bodies import load_body_ids
from storage.commits.blocks import read_blocks
from storage.commits.pending import find_unread, load_unread
from storage.engine.bulk import select_in, select_rows
from storage.engine.id_keys import chunks, id_key, unpack_ids, unpack_nums
from storage.repos.repos import Branch
from storage.schema.schema import commits, heads, topics


@dataclass(frozen=True, eq=False)
class TopicTables:
    """Tables of one form that hold topics, their commits, and which of these no other of the same topic acks.

    Where what is kept cannot be opened, a commit may have several publications: rows of its id, variants all but one.
    """

    topics: Table
    commits: Table
    heads: Table

    @property
    def has_variants(self) -> bool:
        """Whether a commit may have several publications."""
        return "is_variant" in self.commits.c

    @cached_property
    def place(self) -> "Select[Any]":
        """Places of commits by `keys`, of each one."""
        columns = self.commits.c
        query = select(columns.commit_id, columns.num, columns.rank, columns.acks, columns.topic_num)
        query = query.where(columns.id_key.in_(bindparam("keys", expanding=True)))
        return query.where(~columns.is_variant) if self.has_variants else query

    @cached_property
    def count(self) -> "Select[Any]":
        """How many commits a `topic` has."""
        return select(self.topics.c.commit_count).where(self.topics.c.num == bindparam("topic"))

    @cached_property
    def last(self) -> "Select[Any]":
        """The number of its last commit, or 0."""
        columns = self.commits.c
        return select(func.coalesce(func.max(columns.num), 0)).where(columns.topic_num == bindparam("topic"))

    @cached_property
    def highest(self) -> "Select[Any]":
        """Commits of a `topic` that none of it acks, those of highest rank first, so `many`."""
        columns = self.heads.c
        query = select(columns.commit_id).where(columns.topic_num == bindparam("topic"))
        return query.order_by(columns.rank.desc(), columns.commit_id).limit(bindparam("many"))


REPLICA: Final = TopicTables(topics, commits, heads)
"""What this node can open."""
_PUBLISHED: Final = (
    select(
        commits.c.num,
        commits.c.commit_id,
        commits.c.sealed_key,
        commits.c.signature,
        commits.c.is_proven,
        commits.c.block_nums,
        commits.c.size,
    )
    .where(commits.c.num.in_(bindparam("keys", expanding=True)), commits.c.topic_num == bindparam("topic"))
    .order_by(commits.c.num)
)


@dataclass(frozen=True, slots=True)
class TopicSummary:
    """What came by a topic: ids that nothing of it acks, how many commits, and the last one's number."""

    heads: tuple[CommitId, ...]
    count: int
    upto: int


@dataclass(frozen=True, slots=True)
class SendPlan:
    """Numbers of the commits to send, causes before effects, the newest number that was considered, and the unread ones.

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
    """The summary of a topic."""
    (count,) = select_rows(connection, tables.count, topic=topic_num).first() or (0,)
    heads = tuple(_load_heads(connection, tables, topic_num, SUMMARY_HEAD_COUNT_MAX))
    return TopicSummary(heads, count, _find_last(connection, tables, topic_num))


def plan_sending(
    connection: Connection, topic_num: int, held: Sequence[ShortId | CommitId], tables: TopicTables = REPLICA
) -> SendPlan:
    """What to send to a peer whose heads are `held`, named by their first bytes (SHORT_ID_SIZE at least)."""
    upto = _find_last(connection, tables, topic_num)
    named = {ShortId(raw[:SHORT_ID_SIZE]) for raw in held}
    known = _places(connection, tables, topic_num, named, SHORT_ID_SIZE)
    unread = find_unread(connection, topic_num) if tables is REPLICA else array("q")
    if len(known) < len(named) or len(held) >= SUMMARY_HEAD_COUNT_MAX:
        return SendPlan(array("q"), upto, unread, is_exact=False)
    if not known:
        num = tables.commits.c.num
        query = select(num).where(tables.commits.c.topic_num == topic_num).order_by(num)
        return SendPlan(array("q", connection.execute(query).scalars()), upto, unread)
    our_heads = _load_heads(connection, tables, topic_num, limit=1_000_000)
    if all(head in known for head in our_heads):
        return SendPlan(array("q"), upto, unread)
    nums = _not_implied(connection, tables, topic_num, our_heads, known)
    variants = _find_variants(connection, tables, topic_num, nums)
    return SendPlan(array("q", sorted([*nums.values(), *variants])), upto, unread)


def load_publications(
    connection: Connection, branch: Branch, nums: Sequence[int], size_target: int
) -> list[bytes]:
    """Encoded publications of these commits in order, until `size_target` bytes are passed; one at least.

    Of a commit whose body was erased it is a bare one.

    Who holds the topic's key signs what it accepted by its author's signature alone. What it wrote itself has the topic's,
    and so has what others accepted, and of unread commits all: these pass on what they have made or checked. Numbers are all
    negative (unread commits) or all positive.
    """
    if nums and nums[0] < 0:
        return load_unread(connection, nums, size_target)
    rows: list[tuple[int, CommitId, bytes, Signature, bool, tuple[int, ...]]] = []
    size = 0
    for part in chunks(nums):
        found = select_in(connection, _PUBLISHED, part, topic=branch.topic_num)
        for num, commit_id, sealed_key, signature, is_proven, block_nums, block_size in found:
            if rows and size >= size_target:
                break
            rows.append((num, commit_id, sealed_key, signature, is_proven, unpack_nums(block_nums)))
            size += block_size + 200
    expected: dict[int, BlockId | None] = {block_num: None for row in rows for block_num in row[5]}
    expected.update((row[5][0], row[1]) for row in rows)
    blocks = read_blocks(connection, expected)
    body_ids = load_body_ids(connection, [row[0] for row in rows if len(row[5]) == 1])
    secret = signing.topic_key_pair(branch.topic_seed)[1] if branch.topic_seed is not None else None
    items: list[bytes] = []
    for num, _, sealed_key, signature, is_proven, block_nums in rows:
        encoded = tuple([blocks[block_num] for block_num in block_nums])
        body_id = body_ids.get(num)
        if secret is not None and not is_proven:
            signature = sign_publication(secret, branch.topic, sealed_key, encoded, body_id)
        items.append(
            encode_publication(branch.topic, sealed_key, encoded, signature)
            if body_id is None
            else encode_bare(branch.topic, sealed_key, encoded[0], body_id, signature)
        )
    return items


def find_nums(
    connection: Connection, topic_num: int, ids: Sequence[CommitId], tables: TopicTables = REPLICA
) -> list[int]:
    """Numbers of those of these commits that came by the topic, unread ones first, then causes before effects.

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
    """Numbers of all publications of these commits but the first of each."""
    if not tables.has_variants:
        return []
    columns = tables.commits.c
    query = select(columns.num, columns.commit_id).where(columns.topic_num == topic_num, columns.is_variant)
    return [num for num, commit_id in connection.execute(query) if commit_id in of_commits]


def _find_last(connection: Connection, tables: TopicTables, topic_num: int) -> int:
    return int(select_rows(connection, tables.last, topic=topic_num).scalars()[0])


def _load_heads(connection: Connection, tables: TopicTables, topic_num: int, limit: int) -> list[CommitId]:
    """Commits of the topic that none of it acks, those of highest rank first."""
    return select_rows(connection, tables.highest, topic=topic_num, many=limit).scalars()


def _not_implied(
    connection: Connection,
    tables: TopicTables,
    topic_num: int,
    our_heads: list[CommitId],
    known: dict[CommitId, _Place],
) -> dict[CommitId, int]:
    """Numbers by id. Walk down by rank from both sides; stop when nothing is left that the peer is not known to hold.

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
    """Places of those of these commits that came by the topic; ids are whole, or their first `size` bytes."""
    wanted = set(ids)
    found: dict[CommitId, _Place] = {}
    for part in chunks([id_key(raw) for raw in wanted]):
        for commit_id, num, rank, acks, row_topic in select_in(connection, tables.place, part):
            if commit_id[:size] in wanted and row_topic == topic_num:
                found[commit_id] = _Place(num, rank, unpack_ids(acks))
    return found
