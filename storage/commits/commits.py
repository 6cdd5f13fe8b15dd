"""Table of accepted commits: inserts verified commits in one transaction, and reads timelines in canonical order.

The timeline is the index (branch, checkpoints passed, rank, commit id): reading it in order is the canonical order, and
memory does not grow with it. `position_index` counts it, so that reading may begin at any position.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Select, bindparam, func, insert, select, tuple_, update

from protocol.codec import Value
from protocol.crypto.hashing import block_id, timeline_digest
from protocol.crypto.keys import BlockKey
from protocol.formats.body import body_kind
from protocol.formats.commit import Commit
from protocol.formats.declared_kind import document_name
from protocol.formats.publication import Publication
from protocol.ids import CommitId, UserId
from storage.commits.blocks import put_commit_blocks
from storage.commits.display import find_display_times
from storage.commits.feeds import FeedPlace, keep_feed_forks
from storage.commits.heads import NewHead, advance_heads
from storage.commits.pending import NONE_WAITED, Arrival
from storage.commits.position_index import CANONICAL_ORDER, Gain, count_changes, find_position, find_start
from storage.engine.bulk import change_rows, insert_rows, select_by_ids, select_in, select_rows
from storage.engine.column_encryption import ColumnCipher, cipher_of, commit_key_context
from storage.engine.database import Database
from storage.engine.id_keys import (
    BLOCK_NUM_SIZE,
    PackedIds,
    PackedNums,
    chunks,
    id_key,
    id_keys,
    pack_ids,
    pack_nums,
    unpack_ids,
)
from storage.engine.queries import stream_parts, stream_rows
from storage.repos.repos import Branch
from storage.repos.row_changes import row_changes
from storage.schema.schema import (
    FEED_LINK_SIZE,
    authors,
    branches,
    checkpoints,
    commits,
    group_places,
    topic_inits,
    topics,
)
from verifier.ancestry import GraphNode
from verifier.facts import CommitFacts
from verifier.posts import PostRelation, find_relation
from verifier.verify import VerifiedCommit, find_checkpoint

_FACTS = (
    select(
        commits.c.commit_id,
        branches.c.branch_id,
        authors.c.user,
        commits.c.rank,
        commits.c.acks,
        group_places.c.ids,
    )
    .join(branches, branches.c.num == commits.c.branch_num)
    .join(authors, authors.c.num == commits.c.author_num)
    .outerjoin(group_places, group_places.c.num == commits.c.place_num)
    .where(commits.c.id_key.in_(bindparam("keys", expanding=True)))
)
_PLACES = select(commits.c.commit_id, commits.c.rank, commits.c.acks).where(
    commits.c.id_key.in_(bindparam("keys", expanding=True))
)
_MERGED = (
    select(checkpoints.c.merged)
    .join(commits, commits.c.num == checkpoints.c.commit_num)
    .where(checkpoints.c.branch_num == bindparam("branch"), ~commits.c.is_void)
)
_AUTHORS = select(authors.c.user, authors.c.num).where(authors.c.user.in_(bindparam("keys", expanding=True)))
_PLACE_NUMS = select(group_places.c.ids, group_places.c.num).where(
    group_places.c.key.in_(bindparam("keys", expanding=True))
)
_MORE_IN_BRANCH, _MORE_ON_TOPIC = (
    update(table)
    .where(table.c.num == bindparam("number"))
    .values(commit_count=table.c.commit_count + bindparam("more"))
    for table in (branches, topics)
)
ROWS: Final = select(
    commits.c.num,
    commits.c.branch_num,
    commits.c.topic_num,
    commits.c.epoch_num,
    commits.c.commit_id,
    commits.c.rank,
    authors.c.user,
    commits.c.acks,
    commits.c.commit_key,
    commits.c.block_nums,
    commits.c.body_kind,
    commits.c.timestamp,
    commits.c.is_void,
    commits.c.passed,
    commits.c.relation,
    commits.c.about,
    commits.c.document,
).join(authors, authors.c.num == commits.c.author_num)
"""Query whose rows `timeline_row` takes."""
_ROWS_OF: Final = ROWS.where(commits.c.id_key.in_(bindparam("keys", expanding=True)))
_NUMBERED: Final = ROWS.where(commits.c.num.in_(bindparam("keys", expanding=True)))
_NUMS: Final = select(commits.c.commit_id, commits.c.num).where(
    commits.c.id_key.in_(bindparam("keys", expanding=True))
)
_SIZES: Final = select(commits.c.commit_id, commits.c.size).where(
    commits.c.id_key.in_(bindparam("keys", expanding=True))
)
COMMIT_COLUMNS: Final = tuple(commits.c.keys())
"""Columns that `accept_commits` inserts: all, in the order of the table."""
_READ_AT_ONCE: Final = 10_000
"""Rows of a reading without a bound."""
_BODIES_AT_ONCE: Final = 500
"""Rows of a reading that opens each row's body."""


class NewCommit(Value, frozen=True):
    """Accepted commit to be stored: verified, with the publication that brought it, which may be bare."""

    verified: VerifiedCommit
    publication: Publication
    topic_num: int
    """The topic that the commit says, whichever brought it."""
    epoch_num: int
    is_proven: bool
    """True if the publication is of that topic, and its signature was checked or made here."""
    starts_on: tuple[int, ...] = ()
    """Topics of the epoch that an init starts, on which it stands too (E6)."""


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """Accepted commit, as stored."""

    num: int
    branch_num: int
    topic_num: int
    epoch_num: int
    commit_id: CommitId
    rank: int
    author: UserId
    acks: tuple[CommitId, ...]
    commit_key: BlockKey
    block_nums: PackedNums
    body_kind: str
    timestamp: int
    is_void: bool
    passed: int  # checkpoints
    relation: str | None  # to another post; see `schema`
    about: CommitId | None
    document: str  # name of the document that it is of

    @property
    def is_erased(self) -> bool:
        """Return True if its body is absent: erased, or never come."""
        return len(self.block_nums) == BLOCK_NUM_SIZE


def load_facts(connection: Connection, ids: Iterable[CommitId]) -> dict[CommitId, CommitFacts]:
    """Load the facts of the given commits that are accepted here. Costs O(ids)."""
    found: dict[CommitId, CommitFacts] = {}
    for commit_id, branch_id, user, rank, acks, seen in select_by_ids(connection, _FACTS, ids):
        place = () if seen is None else unpack_ids(seen)
        found[commit_id] = CommitFacts(branch_id, user, rank, unpack_ids(acks), place)
    return found


def load_places(connection: Connection, ids: Iterable[CommitId]) -> dict[CommitId, GraphNode]:
    """Load rank and acks of the given commits that are accepted here. Costs O(ids)."""
    rows = select_by_ids(connection, _PLACES, ids)
    return {commit_id: GraphNode(rank, unpack_ids(acks)) for commit_id, rank, acks in rows}


def feed_link(commit: Commit) -> bytes:
    """Return the row's link to the commit that is stated to precede it in its author's feed."""
    return (commit.content.feed_previous or b"")[:FEED_LINK_SIZE]


def accept_commits(
    database: Database,
    connection: Connection,
    branch: Branch,
    new: Sequence[NewCommit],
    received_at: int,
    arrivals: Mapping[CommitId, Arrival] = NONE_WAITED,
) -> list[int]:
    """Store accepted commits of one branch: blocks, rows, heads and counts.

    Costs O(change), and for each commit O(log n): a place in the order, and one index entry at a random place.

    Args:
        database: Gives row numbers.
        connection: Of its write transaction.
        branch: The branch of all these commits.
        new: Verified commits, causes before effects.
        received_at: Time of acceptance, unix milliseconds.
        arrivals: Arrivals of those that came earlier and waited for causes.

    Returns:
        Row numbers, which rise in the order of acceptance.
    """
    if not new:
        return []
    block_nums = put_commit_blocks(
        database, connection, [block for commit in new for block in commit.publication.blocks]
    )
    stored = [commit.verified.commit for commit in new]
    ids = [commit.commit_id for commit in stored]
    author_nums = number_authors(database, connection, {commit.content.author for commit in stored})
    place_nums = number_places(database, connection, {item.verified.seen for item in new})
    nums = database.next_nums(connection, commits, len(new))
    rows = []
    gains: list[Gain] = []
    places: list[FeedPlace] = []
    counting = load_checkpoint_heads(connection, branch.num)
    cipher = cipher_of(connection)
    before = {ack for commit in stored for ack in commit.acks}.difference(ids)
    times = find_display_times(connection, stored, before, received_at)
    for num, commit_id, key, item, display_time in zip(nums, ids, id_keys(ids), new, times, strict=True):
        verified, publication = item.verified, item.publication
        commit, content = verified.commit, verified.commit.content
        passed = len(counting)
        if find_checkpoint(verified.body, branch.facts) is not None:
            merged = pack_ids(sorted(commit.acks))
            passed -= merged in counting  # by another one: it is not behind itself
            counting.add(merged)
        relation, about = relation_columns(find_relation(commit, is_root_branch=branch.facts.is_root_branch))
        rows.append(
            (  # as COMMIT_COLUMNS
                num,
                key,
                commit_id,
                branch.num,
                item.topic_num,
                item.epoch_num,
                place_nums[verified.seen],
                author_nums[content.author],
                content.feed_sequence,
                feed_link(commit),
                commit.rank,
                pack_ids(commit.acks),
                cipher.mask(commit_key_context(commit_id), commit.key),
                publication.signature if item.is_proven else b"",
                pack_nums([block_nums[block.block_id] for block in publication.blocks]),
                body_kind(verified.body),
                sum([len(block.encoded) for block in publication.blocks]),
                content.timestamp,
                received_at,
                False,
                passed,
                display_time,
                (arrival.at or None) if (arrival := arrivals.get(commit_id)) else None,
                arrival.number if arrival else None,
                relation,
                about,
                document_name(commit, is_root_branch=branch.facts.is_root_branch),
                item.is_proven,
            )
        )
        gains.append(((passed, commit.rank, commit_id), 1, 1))
        places.append(FeedPlace(author_nums[content.author], content.feed_sequence, commit_id))
    insert_rows(connection, commits, COMMIT_COLUMNS, rows)
    count_changes(connection, branch.num, gains)
    advance_heads(connection, branch.num, [_head_of(item) for item in new], before)
    keep_feed_forks(connection, branch.num, places)
    row_changes(connection).counted.add(branch.num)
    started = [(num, topic) for num, item in zip(nums, new, strict=True) for topic in item.starts_on]
    insert_rows(connection, topic_inits, ("commit_num", "topic_num"), started)
    more = Counter([item.topic_num for item in new]) + Counter(topic for _, topic in started)
    change_rows(connection, _MORE_IN_BRANCH, [(len(new), branch.num)])
    change_rows(connection, _MORE_ON_TOPIC, [(count, num) for num, count in sorted(more.items())])
    return list(nums)


def _head_of(item: NewCommit) -> NewHead:
    commit = item.verified.commit
    return NewHead(commit.commit_id, commit.rank, commit.acks, item.topic_num, item.starts_on)


def number_places(
    database: Database, connection: Connection, places: set[tuple[CommitId, ...]]
) -> dict[tuple[CommitId, ...], int]:
    """Return the numbers of places in the group tangle, new ones included; 0 for none."""
    packed = {pack_ids(place): place for place in places if place}
    found: dict[tuple[CommitId, ...], int] = {(): 0}
    keys = {ids: id_key(block_id(ids)) for ids in packed}
    for part in chunks(sorted(keys.values())):
        for ids, num in select_in(connection, _PLACE_NUMS, part):
            if ids in packed:
                found[packed[ids]] = num
    new = sorted(ids for ids, place in packed.items() if place not in found)
    nums = database.next_nums(connection, group_places, len(new)) if new else ()
    rows = [(num, keys[ids], ids) for num, ids in zip(nums, new, strict=True)]
    insert_rows(connection, group_places, ("num", "key", "ids"), rows)
    found.update((packed[ids], num) for num, _, ids in rows)
    return found


def load_timeline(connection: Connection, branch_num: int, position: int, limit: int) -> list[TimelineRow]:
    """Load a window of a branch's timeline in canonical order. Costs O(limit + log n).

    Args:
        connection: Of one read transaction.
        branch_num: Number of the branch's row.
        position: Position of the first one, from 0; void commits have none.
        limit: Commits at most.

    Returns:
        Nothing beyond the end.
    """
    start = find_start(connection, branch_num, position)
    if start is None:
        return []
    key, offset = start
    query = (
        ROWS.where(
            commits.c.branch_num == branch_num, ~commits.c.is_void, tuple_(*CANONICAL_ORDER) >= tuple_(*key)
        )
        .order_by(*CANONICAL_ORDER)
        .offset(offset)
        .limit(limit)
    )
    cipher = cipher_of(connection)
    return [timeline_row(cipher, row) for row in connection.execute(query)]


def load_first_of_kinds(
    connection: Connection, branch_num: int, kinds: Collection[str], limit: int, document: str | None = None
) -> list[TimelineRow]:
    """Load the timeline's first commits with such bodies, in canonical order, only of one document if its name is given.

    Costs O(commits before the last one found).
    """
    query = _of_kinds(branch_num, kinds).order_by(*CANONICAL_ORDER).limit(limit)
    if document is not None:
        query = query.where(commits.c.document == document)
    cipher = cipher_of(connection)
    return [timeline_row(cipher, row) for row in connection.execute(query)]


def load_last_of_kinds(
    connection: Connection, branch_num: int, kinds: Collection[str], limit: int
) -> list[TimelineRow]:
    """Load the timeline's last commits with such bodies, the last one first. Costs O(commits behind the last one found)."""
    query = _of_kinds(branch_num, kinds).order_by(*(column.desc() for column in CANONICAL_ORDER)).limit(limit)
    cipher = cipher_of(connection)
    return [timeline_row(cipher, row) for row in connection.execute(query)]


def load_document_names(connection: Connection, branch_nums: Sequence[int]) -> list[str]:
    """Load the names of documents that commits of these branches are of, sorted. Costs O(commits of the branches)."""
    query = select(commits.c.document).where(commits.c.branch_num.in_(branch_nums)).distinct()
    return sorted(connection.execute(query).scalars())


def load_arrived_of_kinds(
    connection: Connection, branch_num: int, kinds: Collection[str], after: int, limit: int
) -> list[TimelineRow]:
    """Load the first commits above a number with such bodies that are not void, as they came. Costs O(commits above it)."""
    query = _of_kinds(branch_num, kinds).where(commits.c.num > after).order_by(commits.c.num).limit(limit)
    cipher = cipher_of(connection)
    return [timeline_row(cipher, row) for row in connection.execute(query)]


def load_void_of_kinds(connection: Connection, branch_num: int, kinds: Collection[str]) -> list[TimelineRow]:
    """Load the void commits of a branch with such bodies, in canonical order. Costs O(commits of the branch)."""
    query = _of_kinds(branch_num, kinds, is_void=True).order_by(*CANONICAL_ORDER)
    cipher = cipher_of(connection)
    return [timeline_row(cipher, row) for row in connection.execute(query)]


def _of_kinds(branch_num: int, kinds: Collection[str], *, is_void: bool = False) -> Select[Any]:
    marked = commits.c.is_void if is_void else ~commits.c.is_void
    return ROWS.where(commits.c.branch_num == branch_num, marked, commits.c.body_kind.in_(sorted(kinds)))


def load_numbered(connection: Connection, nums: Sequence[int]) -> list[TimelineRow]:
    """Load the commits of these numbers, in the order given. Costs O(nums)."""
    found: dict[int, TimelineRow] = {}
    cipher = cipher_of(connection)
    for part in chunks(nums):
        rows = (timeline_row(cipher, row) for row in select_in(connection, _NUMBERED, part))
        found.update((row.num, row) for row in rows)
    return [found[num] for num in nums]


def load_position(connection: Connection, row: TimelineRow) -> int | None:
    """Return a commit's position in its branch's timeline; None if it is void. Costs O(log n)."""
    if row.is_void:
        return None
    return find_position(connection, row.branch_num, (row.passed, row.rank, row.commit_id))


def iterate_arrivals(connection: Connection, branch_nums: Sequence[int]) -> Iterator[TimelineRow]:
    """Yield every accepted commit of some branches, void ones too, in order of acceptance. Costs O(n)."""
    query = ROWS.where(commits.c.branch_num.in_(branch_nums)).order_by(commits.c.num)
    cipher = cipher_of(connection)
    for row in stream_rows(connection, query, _READ_AT_ONCE):
        yield timeline_row(cipher, row)


def load_graph(connection: Connection, branch_num: int) -> Iterator[tuple[CommitId, tuple[CommitId, ...]]]:
    """Yield the id and acks of every accepted commit of a branch, void ones too, effects first. Costs O(n)."""
    query = select(commits.c.commit_id, commits.c.acks).where(commits.c.branch_num == branch_num)
    for commit_id, acks in stream_rows(connection, query.order_by(commits.c.rank.desc()), _READ_AT_ONCE):
        yield commit_id, unpack_ids(acks)


def iterate_between(connection: Connection, first: int, last: int) -> Iterator[TimelineRow]:
    """Yield every accepted commit of these numbers, void ones too, in order of acceptance."""
    query = ROWS.where(commits.c.num.between(first, last)).order_by(commits.c.num)
    cipher = cipher_of(connection)
    for row in stream_rows(connection, query, _BODIES_AT_ONCE):
        yield timeline_row(cipher, row)


def load_rows(connection: Connection, ids: Iterable[CommitId]) -> dict[CommitId, TimelineRow]:
    """Load the given commits that are accepted here, void ones too. Costs O(ids)."""
    wanted = set(ids)
    found: dict[CommitId, TimelineRow] = {}
    cipher = cipher_of(connection)
    for part in chunks(id_keys(wanted)):
        rows = (timeline_row(cipher, row) for row in select_in(connection, _ROWS_OF, part))
        found.update((row.commit_id, row) for row in rows if row.commit_id in wanted)
    return found


def load_sizes(connection: Connection, ids: Iterable[CommitId]) -> dict[CommitId, int]:
    """Load the bytes of the blocks of the given commits that are accepted here. Costs O(ids)."""
    return dict(select_by_ids(connection, _SIZES, ids))


def load_nums(connection: Connection, ids: Iterable[CommitId]) -> dict[CommitId, int]:
    """Load the numbers of the given commits that are accepted here. Costs O(ids)."""
    return dict(select_by_ids(connection, _NUMS, ids))


def digest_timeline(connection: Connection, branch_num: int) -> tuple[str, int]:
    """Hash the timeline's ids in canonical order; return BLAKE3 (hex) and their count. Costs O(n)."""
    query = (
        select(commits.c.commit_id)
        .where(commits.c.branch_num == branch_num, ~commits.c.is_void)
        .order_by(*CANONICAL_ORDER)
    )
    hasher = timeline_digest()
    count = 0
    for part in stream_parts(connection, query, _READ_AT_ONCE):
        hasher.update(b"".join(row[0] for row in part))
        count += len(part)
    return hasher.hexdigest(), count


def count_commits(connection: Connection, branch_num: int) -> int:
    """Count the commits in a branch's timeline: accepted and not void. Costs O(1)."""
    shown = branches.c.commit_count - branches.c.void_count
    return int(connection.execute(select(shown).where(branches.c.num == branch_num)).scalar_one())


def timeline_row(cipher: ColumnCipher, row: Sequence[Any]) -> TimelineRow:
    """Convert a row of ROWS."""
    num, branch, topic, epoch, commit_id, rank, user, acks, kept, nums, kind, timestamp, is_void, *rest = row
    key = cipher.mask(commit_key_context(commit_id), kept)
    # SQLite has no truth values, and its driver gives numbers.
    return TimelineRow(
        num,
        branch,
        topic,
        epoch,
        commit_id,
        rank,
        user,
        unpack_ids(acks),
        key,
        nums,
        kind,
        timestamp,
        bool(is_void),
        *rest,
    )


def relation_columns(stated: PostRelation | None) -> tuple[str, CommitId | None]:
    """Return the columns `relation` and `about` for a commit's relation to another post."""
    return ("", None) if stated is None else (stated.relation.value, stated.about)


def load_checkpoint_heads(connection: Connection, branch_num: int) -> set[PackedIds]:
    """Load the heads that a branch's counting checkpoints merge (`checkpoints.merged`). Costs O(checkpoints)."""
    return set(select_rows(connection, _MERGED, branch=branch_num).scalars())


def number_authors(database: Database, connection: Connection, users: set[UserId]) -> dict[UserId, int]:
    """Return the numbers of authors, new ones included. Costs O(users)."""
    found: dict[UserId, int] = {}
    for part in chunks(sorted(users)):
        rows: Iterable[Any] = select_in(connection, _AUTHORS, part)
        found.update((row[0], row[1]) for row in rows)
    new = sorted(users - found.keys())
    if new:
        nums = database.next_nums(connection, authors, len(new))
        connection.execute(
            insert(authors), [{"num": num, "user": user} for num, user in zip(nums, new, strict=True)]
        )
        found.update(zip(new, nums, strict=True))
    return found


def load_newest_whole(connection: Connection, topic_num: int, limit: int) -> list[CommitId]:
    """Load the ids of a topic's commits that were accepted last, of such as are two blocks, with their bodies.

    Costs O(limit), and the others that are passed over.
    """
    is_whole = func.length(commits.c.block_nums) == 2 * BLOCK_NUM_SIZE
    query = select(commits.c.commit_id).where(commits.c.topic_num == topic_num, is_whole)
    return list(connection.execute(query.order_by(commits.c.num.desc()).limit(limit)).scalars())


def has_newer(connection: Connection, branch_nums: Sequence[int], upto: int) -> bool:
    """Return True if a commit of these branches came after the one of that number. Costs O(branches)."""
    for part in chunks(branch_nums):
        query = select(commits.c.num).where(commits.c.branch_num.in_(part), commits.c.num > upto).limit(1)
        if connection.execute(query).first() is not None:
            return True
    return False
