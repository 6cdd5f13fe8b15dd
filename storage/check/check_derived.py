"""Store check, part 2: recomputes what follows from other rows (ranks, heads, counts, pending causes, index), and compares.

Ranks are checked from acks to commits: where each is one more than the highest of its acks' and acks come first, all are
right. Memory is two bits a commit, the heads, and, where a branch has checkpoints, its frontier. Whether the search index
has the words of posts is `node.care.fsck`'s to say, which opens some.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, case, func, select, tuple_

from protocol.codec import DecodeError
from protocol.crypto.hashing import symbol_key
from protocol.formats.publication import decode_publication
from protocol.ids import CommitId, ItemId, TopicKey
from protocol.session.reconciliation.riblt import Prefix
from protocol.session.reconciliation.set_digest import SetDigest
from storage.check.check_integrity import CheckFindings
from storage.commits.pending import CAUSES
from storage.commits.position_index import CANONICAL_ORDER, FIRST, OrderKey
from storage.commits.search_index import (
    PLACE_SIZE,
    RULES_UNREADABLE,
    find_index_fault,
    load_state,
)
from storage.commits.search_texts import load_content
from storage.engine.database import StorageError
from storage.engine.id_keys import chunks, id_key, unpack_ids
from storage.engine.queries import stream_rows, sum_of
from storage.relay.relay import RELAY
from storage.repos.epochs import Topic
from storage.schema.schema import (
    branches,
    checkpoints,
    commits,
    feed_forks,
    heads,
    order_spans,
    pending,
    pending_causes,
    pending_publications,
    sketches,
    topic_inits,
    topics,
)
from storage.schema.search_schema import search_parts, search_texts, search_words
from storage.topics.difference import LINKED, REPLICA
from storage.topics.topic_sets import TopicSet, iterate_ids

_BATCH: Final = 500
_ACKED_IN_TOPIC: Final = 1
_ACKED_ELSEWHERE: Final = 2


@dataclass(frozen=True, slots=True)
class Marks:
    """Marks of commits that something acks: bits by number, and second topics of inits on which nothing does yet."""

    bits: bytearray
    second: Mapping[int, set[int]]


class GraphRow(NamedTuple):
    """Row of a commit, with its place in the graph."""

    num: int
    branch_num: int
    topic_num: int
    commit_id: CommitId
    id_key: int
    rank: int
    timestamp: int
    received_at: int
    display_time: int
    acks: tuple[CommitId, ...]


_COLUMNS: Final = [commits.c[name] for name in GraphRow._fields]


def check_graph(connection: Connection, findings: CheckFindings) -> None:
    """Check acks and ranks of all commits, then heads. Costs O(commits); memory is two bits a commit."""
    marks = make_marks(connection)
    for part in all_commits(connection):
        places = find_rows(connection, [ack for row in part for ack in row.acks])
        for row in part:
            findings.checked["commits"] += 1
            _check_place(row, places, marks, findings)
    _check_heads(connection, marks, findings)


def _check_place(
    row: GraphRow, places: dict[CommitId, GraphRow], marks: Marks, findings: CheckFindings
) -> None:
    name = row.commit_id.hex()
    if id_key(row.commit_id) != row.id_key:
        findings.add("commit", name, "it is kept under another key than its own")
    for ack in row.acks:
        found = places.get(ack)
        if found is None or found.branch_num != row.branch_num:
            findings.add("ack", name, f"acks {ack.hex()}, which is not accepted in its branch")
        elif found.num >= row.num:
            findings.add("ack", name, f"acks {ack.hex()}, which was accepted after it")
    mark_acked(row, places, marks)
    rank, display_time = place_of(row, places)
    if row.rank != rank:
        findings.add("rank", name, f"has rank {row.rank}, and its acks give {rank}")
    if row.display_time != display_time:
        findings.add("time", name, f"is shown as of {row.display_time}, and should be of {display_time}")


def make_marks(connection: Connection) -> Marks:
    """Make the marks of commits that nothing acks yet."""
    last = connection.execute(select(func.coalesce(func.max(commits.c.num), 0))).scalar_one()
    second: dict[int, set[int]] = {}
    for num, topic_num in connection.execute(select(topic_inits.c.commit_num, topic_inits.c.topic_num)):
        second.setdefault(num, set()).add(topic_num)
    return Marks(bytearray(last + 1), second)


def mark_acked(row: GraphRow, places: dict[CommitId, GraphRow], marks: Marks) -> None:
    """Mark what a commit acks. `places` has its acks, as far as they are here."""
    for ack in row.acks:
        found = places.get(ack)
        if found is not None and found.branch_num == row.branch_num:
            marks.bits[found.num] |= _ACKED_IN_TOPIC if found.topic_num == row.topic_num else _ACKED_ELSEWHERE
            if found.num in marks.second:
                marks.second[found.num].discard(row.topic_num)


def place_of(row: GraphRow, places: dict[CommitId, GraphRow]) -> tuple[int, int]:
    """Compute rank and display time as a commit's acks give them."""
    rank = 0
    display_time = min(row.timestamp, row.received_at)
    for ack in row.acks:
        found = places.get(ack)
        if found is not None and found.branch_num == row.branch_num:
            rank = max(rank, found.rank + 1)
            display_time = max(display_time, found.display_time)
    return rank, display_time


def _check_heads(connection: Connection, marks: Marks, findings: CheckFindings) -> None:
    for (_, commit_id), wanted in find_wrong_heads(connection, marks):
        said = (
            "is kept as a head, and is none"
            if wanted is None
            else "nothing of its topic acks it, and it is not kept as that"
        )
        findings.add("head", commit_id.hex(), said)


def find_wrong_heads(
    connection: Connection, marks: Marks
) -> Iterator[tuple[tuple[int, CommitId], tuple[int, int, bool] | None]]:
    """Yield ((topic's number, id), wanted row) of heads that are not kept so.

    The row is (branch's number, rank, is acked); None: the commit is no head.
    """
    kept = {
        (topic_num, commit_id): (branch_num, rank, is_acked)
        for topic_num, commit_id, branch_num, rank, is_acked in connection.execute(select(heads))
    }
    for part in all_commits(connection):
        for row in part:
            bits = marks.bits[row.num]
            places = dict.fromkeys(marks.second.get(row.num, ()), True)
            if not bits & _ACKED_IN_TOPIC:
                places[row.topic_num] = bool(bits & _ACKED_ELSEWHERE)
            for topic_num, is_acked in places.items():
                wanted = (row.branch_num, row.rank, is_acked)
                if kept.pop((topic_num, row.commit_id), None) != wanted:
                    yield (topic_num, row.commit_id), wanted
    for key in kept:
        yield key, None


def check_sums(connection: Connection, findings: CheckFindings) -> None:
    """Check the counts of each branch's commits and void ones, and of each topic's commits. Costs O(commits)."""
    findings.checked["branches"] += int(
        connection.execute(select(func.count()).select_from(branches)).scalar_one()
    )
    for _, name, said, found in find_wrong_branch_counts(connection):
        findings.add("count", f"branch {name!r}", f"says {said} commits and void ones, has {found}")
    for _, topic, count, counted in find_wrong_topic_counts(connection):
        findings.add("count", f"topic {topic.hex()}", f"says {count} commits, has {counted}")


def find_wrong_branch_counts(
    connection: Connection,
) -> Iterator[tuple[int, str, tuple[int, int], tuple[int, int]]]:
    """Yield (number, name, said, found) of branches whose counts of commits and of void ones are wrong."""
    by_branch = select(commits.c.branch_num, func.count(), func.count().filter(commits.c.is_void))
    counted = {
        row[0]: (row[1], row[2]) for row in connection.execute(by_branch.group_by(commits.c.branch_num))
    }
    kept = select(branches.c.num, branches.c.name, branches.c.commit_count, branches.c.void_count)
    for num, name, *said in connection.execute(kept).all():
        found = counted.get(num, (0, 0))
        if tuple(said) != found:
            yield num, name, (said[0], said[1]), found


def find_wrong_topic_counts(connection: Connection) -> Iterator[tuple[int, TopicKey, int, int]]:
    """Yield (number, topic, said, found) of topics whose counts of commits are wrong."""
    counted: Counter[int] = Counter()
    for column in (commits.c.topic_num, topic_inits.c.topic_num):
        rows = connection.execute(select(column, func.count()).group_by(column))
        counted.update({row[0]: row[1] for row in rows})
    kept = select(topics.c.num, topics.c.topic, topics.c.commit_count)
    for num, topic, count in connection.execute(kept).all():
        if counted[num] != count:
            yield num, topic, count, counted[num]


def check_sketches(connection: Connection, opened: Mapping[TopicKey, Topic], findings: CheckFindings) -> None:
    """Check the set digest and the symbols of each sketch by making them anew. Costs O(commits of those topics).

    `opened` are the topics that can be opened: those of the others are looked at as far as that needs no keys.
    """
    for topic, _, fault in compare_sketches(connection, opened):
        findings.checked["sketches"] += 1
        if fault:
            findings.add("sketch", f"sketch of {topic.hex()}", fault)


def compare_sketches(
    connection: Connection, opened: Mapping[TopicKey, Topic]
) -> Iterator[tuple[TopicKey, str, str]]:
    """Yield (topic, place, what is wrong with it or "") of all sketches."""
    columns = sketches.c
    query = select(
        columns.topic, columns.place, columns.upto, columns.digest, columns.prefix_upto, columns.prefix
    )
    for topic, place, upto, digest, prefix_upto, prefix in connection.execute(query).all():
        try:
            kept = Prefix.from_bytes(symbol_key(topic), prefix)
        except (DecodeError, ValueError, AssertionError) as error:
            yield topic, place, f"cannot be read: {error!r}"
            continue
        set_digest, made = SetDigest(), Prefix(symbol_key(topic), len(kept))
        try:
            for ids in _ids_of(connection, opened.get(topic), topic, place, upto):
                set_digest.add(ids)
            for ids in _ids_of(connection, opened.get(topic), topic, place, prefix_upto):
                made.add(ids)
        except StorageError as error:  # blocks that are not here, which are found by themselves
            yield topic, place, f"cannot be made anew: {error}"
            continue
        is_right = set_digest.to_bytes() == digest and made.to_bytes() == prefix
        yield topic, place, "" if is_right else "is not that of the topic's commits"


def _ids_of(
    connection: Connection, opened: Topic | None, topic: TopicKey, place: str, upto: int
) -> Iterator[list[ItemId]]:
    """Yield the ids of the set that a sketch is of; none if no set is called so. Raises StorageError."""
    for tables in (REPLICA, LINKED, RELAY):
        num = connection.execute(select(tables.topics.c.num).where(tables.topics.c.topic == topic)).scalar()
        for of_publications in (False, True):
            kept = TopicSet(tables, num or 0, topic, of_publications, opened)
            if kept.place == place:
                if of_publications and not tables.has_variants and opened is None:
                    raise StorageError("the topic cannot be opened")
                yield from (ids for _, ids in iterate_ids(connection, kept, upto=upto))


def check_forks(connection: Connection, findings: CheckFindings) -> None:
    """Check that the evidence of forked feeds is whole, and only of places used more than once."""
    for key in find_wrong_forks(connection):
        findings.add(
            "feed",
            f"branch {key[0]}, author {key[1]}, sequence {key[2]}",
            "its evidence of a fork is not whole",
        )


def find_wrong_forks(connection: Connection) -> list[tuple[int, int, int]]:
    """Return (branch, author, sequence) of places whose stored evidence does not fit the commits there."""
    place = (commits.c.branch_num, commits.c.author_num, commits.c.feed_sequence)
    used: dict[tuple[int, int, int], int] = {
        (row[0], row[1], row[2]): row[3]
        for row in connection.execute(select(*place, func.count()).group_by(*place).having(func.count() > 1))
    }
    kept_place = (feed_forks.c.branch_num, feed_forks.c.author_num, feed_forks.c.feed_sequence)
    kept: dict[tuple[int, int, int], int] = {
        (row[0], row[1], row[2]): row[3]
        for row in connection.execute(select(*kept_place, func.count()).group_by(*kept_place))
    }
    return [
        key
        for key in sorted(used.keys() | kept.keys())
        if not used.get(key, 1) - 1 <= kept.get(key, 0) <= used.get(key, 0)
    ]


def check_passed(connection: Connection, findings: CheckFindings) -> None:
    """Check how many checkpoints each commit has passed; those that merge the same heads count once."""
    for num, passed in find_wrong_passed(connection):
        findings.add(
            "passed", f"commit {num}", f"is said to have passed {passed[0]} checkpoints, and has {passed[1]}"
        )


def find_wrong_passed(connection: Connection) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield (number, (said, found)) of commits that have passed other checkpoints than their rows say."""
    query = select(
        checkpoints.c.branch_num, checkpoints.c.merged, checkpoints.c.commit_num, commits.c.is_void
    ).join(commits, commits.c.num == checkpoints.c.commit_num)
    bits: dict[int, dict[CommitId, int]] = {}
    alike: list[tuple[int, CommitId, int]] = []
    for branch_num, merged, num, is_void in connection.execute(query):
        alike.append((branch_num, merged, num))
        of_branch = bits.setdefault(branch_num, {})
        if not is_void and merged not in of_branch:
            of_branch[merged] = 1 << len(of_branch)
    counting: dict[int, dict[int, int]] = {branch_num: {} for branch_num in bits}
    for branch_num, merged, num in alike:  # void ones too: they merge the same
        counting[branch_num][num] = bits[branch_num].get(merged, 0)
    yield from _find_passed(connection, counting)


def _find_passed(
    connection: Connection, counting: dict[int, dict[int, int]]
) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield (number, (said, found)) of commits where they differ.

    What checkpoints merge is one bit, handed from commits to what they ack; effects have larger numbers than their causes.
    """
    without = select(commits.c.num, commits.c.passed).where(
        commits.c.branch_num.not_in(list(counting)), commits.c.passed != 0
    )
    for num, said in connection.execute(without):
        yield num, (said, 0)
    for branch_num, bit_of in counting.items():
        inside: dict[CommitId, int] = {}
        total = len(set(bit_of.values()) - {0})
        query = (
            select(commits.c.num, commits.c.commit_id, commits.c.acks, commits.c.passed)
            .where(commits.c.branch_num == branch_num)
            .order_by(commits.c.num.desc())
        )
        for num, commit_id, acks, said in stream_rows(connection, query, _BATCH):
            bits = inside.pop(commit_id, 0) | bit_of.get(num, 0)
            found = total - bits.bit_count()
            if said != found:
                yield num, (said, found)
            if bits:
                for ack in unpack_ids(acks):
                    inside[ack] = inside.get(ack, 0) | bits


def check_order(connection: Connection, findings: CheckFindings) -> None:
    """Check each span of each branch's order, by commits and then by the spans below. Costs O(commits)."""
    for branch_num, name in connection.execute(select(branches.c.num, branches.c.name)).all():
        check_order_of(connection, branch_num, f"branch {name!r}", findings)


def check_order_of(connection: Connection, branch_num: int, about: str, findings: CheckFindings) -> None:
    """Check each span of one branch's order."""
    key = (order_spans.c.passed, order_spans.c.rank, order_spans.c.commit_id)
    here = order_spans.c.branch_num == branch_num
    height = connection.execute(select(func.max(order_spans.c.level)).where(here)).scalar()
    if height is None:
        if connection.execute(select(commits.c.num).where(commits.c.branch_num == branch_num)).first():
            findings.add("order", about, "its order is not counted")
        return
    below: set[OrderKey] = set()
    for level in range(height + 1):
        of_level = here & (order_spans.c.level == level)
        query = select(*key, order_spans.c.size, order_spans.c.shown).where(of_level).order_by(*key)
        spans = connection.execute(query).all()
        begins: list[OrderKey] = [(passed, rank, raw) for passed, rank, raw, *_ in spans]
        if begins[:1] != [FIRST] or (level == height and len(begins) > 1):
            findings.add("order", about, f"level {level} of its counts does not begin or end as it must")
        if level and not below.issuperset(begins):
            findings.add("order", about, f"level {level} of its counts is cut where the one below is not")
        below = set(begins)
        for place, (*_, size, shown) in enumerate(spans):
            findings.checked["order_spans"] += 1
            end = begins[place + 1] if place + 1 < len(begins) else None
            found = _count_span(connection, branch_num, level, begins[place], end)
            if (size, shown) != found:
                findings.add(
                    "order",
                    about,
                    f"span {place} of level {level} says {(size, shown)} in it and shown, has {found}",
                )


def _count_span(
    connection: Connection, branch_num: int, level: int, begin: OrderKey, end: OrderKey | None
) -> tuple[int, int]:
    """Count a span's commits, and those of them that are shown."""
    key: Sequence[ColumnElement[Any]] = CANONICAL_ORDER
    here = commits.c.branch_num == branch_num
    shown: ColumnElement[int] = case((commits.c.is_void, 0), else_=1)
    if level:
        key = (order_spans.c.passed, order_spans.c.rank, order_spans.c.commit_id)
        here = (order_spans.c.branch_num == branch_num) & (order_spans.c.level == level - 1)
        shown = order_spans.c.shown
    query = select(func.count(), sum_of(shown)).where(here, tuple_(*key) >= tuple_(*begin))
    if end is not None:
        query = query.where(tuple_(*key) < tuple_(*end))
    size, count = connection.execute(query).one()
    return size, count


def all_commits(connection: Connection) -> Iterator[list[GraphRow]]:
    """Yield all commits in order of acceptance, some at a time."""
    last = 0
    while True:
        query = select(*_COLUMNS).where(commits.c.num > last).order_by(commits.c.num).limit(_BATCH)
        rows = [_row(row) for row in connection.execute(query)]
        if not rows:
            return
        yield rows
        last = rows[-1].num


def find_rows(connection: Connection, ids: Sequence[CommitId]) -> dict[CommitId, GraphRow]:
    """Return the given commits that are stored."""
    wanted = set(ids)
    found: dict[CommitId, GraphRow] = {}
    for part in chunks([id_key(raw) for raw in wanted]):
        for row in map(_row, connection.execute(select(*_COLUMNS).where(commits.c.id_key.in_(part)))):
            if row.commit_id in wanted:
                found[row.commit_id] = row
    return found


def _row(row: Sequence[Any]) -> GraphRow:
    *plain, acks = row
    return GraphRow._make([*plain, unpack_ids(acks)])


def find_wrong_pending(connection: Connection) -> Iterator[tuple[int, CommitId, str]]:
    """Yield (number, commit id, what is wrong) of pending commits that are not as they must be."""
    counts = _count_causes(connection)
    accepted = _find_accepted(connection)
    query = select(pending, pending_publications.c.publication).outerjoin(
        pending_publications, pending_publications.c.pending_num == pending.c.num
    )
    for row in stream_rows(connection, query.order_by(pending.c.num), _BATCH):
        fault = _find_fault(row.commit_id, row.publication)
        if not fault and (row.id_key != id_key(row.commit_id) or row.size != len(row.publication)):
            fault = "has a wrong key or size"
        if not fault and row.num in accepted:
            fault = "is accepted already"
        if not fault and (row.lacking != counts[row.num] or (row.reason == CAUSES and not row.lacking)):
            fault = f"lacks {counts[row.num]} causes, and its row says {row.lacking}"
        if fault:
            yield row.num, row.commit_id, fault


def _find_fault(commit_id: CommitId, publication: bytes | None) -> str:
    if publication is None:
        return "has no publication"
    try:
        found = decode_publication(publication).commit_id
    except DecodeError as error:
        return str(error)
    return "" if found == commit_id else f"is the publication of {found.hex()}"


def _count_causes(connection: Connection) -> "Counter[int]":
    query = select(pending_causes.c.pending_num, func.count()).group_by(pending_causes.c.pending_num)
    return Counter({row[0]: row[1] for row in stream_rows(connection, query, _BATCH)})


def _find_accepted(connection: Connection) -> set[int]:
    ids = {row[0]: row[1] for row in connection.execute(select(pending.c.num, pending.c.commit_id))}
    found: set[CommitId] = set()
    for part in chunks([id_key(raw) for raw in ids.values()]):
        found.update(
            connection.execute(select(commits.c.commit_id).where(commits.c.id_key.in_(part))).scalars()
        )
    return {num for num, commit_id in ids.items() if commit_id in found}


def inspect_search(connection: Connection, findings: CheckFindings) -> None:
    """Compare parts of the index with their words; report what is sealed and cannot be read."""
    state = load_state(connection)
    if state is None:  # there is none, or its removal was interrupted, which the daemon ends
        return
    if state.rules == RULES_UNREADABLE:
        findings.add("search", "the index", "its key cannot be read")
    fault = find_index_fault(connection)
    if fault:
        findings.add("search", "the index", fault)
    size = sum_of(func.length(search_words.c.places))
    by_part = select(search_words.c.part_num, size).group_by(search_words.c.part_num)
    sizes: dict[int, int] = dict(map(tuple, connection.execute(by_part)))
    here = set(connection.execute(select(branches.c.num)).scalars())
    parts = select(search_parts.c.num, search_parts.c.branch_num, search_parts.c.size)
    for num, branch_num, said in connection.execute(parts):
        findings.checked["search_parts"] += 1
        found = sizes.pop(num, 0)
        if found != said * PLACE_SIZE:
            detail = f"says that it has {said} entries, and has {found // PLACE_SIZE}"
            findings.add("search", f"part {num}", detail)
        if branch_num not in here or (num < 0 and num != -branch_num):
            findings.add("search", f"part {num}", "is that of a branch that is not here")
    for num in sizes:
        findings.add("search", f"part {num}", "has words, and is not there")
    for (branch_num,) in connection.execute(
        select(search_texts.c.branch_num).where(search_texts.c.content.is_not(None))
    ).all():
        findings.checked["search_texts"] += 1
        if branch_num not in here or load_content(connection, branch_num) is None:
            findings.add(
                "search", f"text of branch {branch_num}", "cannot be read, or its branch is not here"
            )
