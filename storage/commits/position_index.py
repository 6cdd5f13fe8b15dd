"""CANONICAL_ORDER, the order of a timeline, and its position index: commit to position and back by a tree of counts.

The order itself is the index (branch, checkpoints passed, rank, commit id). The author states the rank, which rule V6
checks; `storage.commits.checkpoints` computes the checkpoints passed. Beside it stands a tree of counts: level 0
cuts the order into *spans* of some hundred commits, each level above cuts the one below into spans of its spans, and the
highest level is one span. A row says where a span begins, what it has (`size`), and how many commits that are not void
stand in it (`shown`). It ends where the next one of its level begins, and the first one of each level begins at `FIRST`,
so any key lies in exactly one span of each level.

What changes the order calls `count_changes` in the same transaction, after the rows of `commits` are as they shall be.
A batch at the end, which is nearly every batch, is one look and one update for each level. A span that grows too long is
cut at half its greatest length. Spans that run empty stay: a look reads as much of one as it once had at most.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Select,
    and_,
    bindparam,
    func,
    select,
    tuple_,
    update,
)

from protocol.ids import NO_COMMIT, CommitId
from storage.engine.bulk import change_rows, insert_rows, select_rows
from storage.engine.queries import sum_of
from storage.schema.columns import Bytes
from storage.schema.schema import commits, order_spans

OrderKey = tuple[int, int, CommitId]
"""Checkpoints passed, rank and id of a commit: by this the commits of a branch are ordered."""

CANONICAL_ORDER: Final = (commits.c.passed, commits.c.rank, commits.c.commit_id)
"""Canonical order of the commits of one branch."""
FIRST: Final[OrderKey] = (0, 0, NO_COMMIT)

Gain = tuple[OrderKey, int, int]
"""At a key, how many commits came into the order, and how many of these are not void; less than 0 where they left it."""

COMMITS_PER_SPAN_MAX: Final = 1024
SPANS_PER_SPAN_MAX: Final = 256

_SPAN_KEY: Final = (order_spans.c.passed, order_spans.c.rank, order_spans.c.commit_id)
_LEVEL: Final = and_(
    order_spans.c.branch_num == bindparam("branch"), order_spans.c.level == bindparam("level")
)
_GIVEN: Final = tuple_(
    bindparam("passed", type_=BigInteger), bindparam("rank", type_=BigInteger), bindparam("id", type_=Bytes)
)
_UNTIL: Final = tuple_(
    bindparam("passed_until", type_=BigInteger),
    bindparam("rank_until", type_=BigInteger),
    bindparam("id_until", type_=Bytes),
)
_SPANS: Final = select(*_SPAN_KEY, order_spans.c.size, order_spans.c.shown).where(_LEVEL)
_SPANS_FROM: Final = _SPANS.where(tuple_(*_SPAN_KEY) >= _GIVEN).order_by(*_SPAN_KEY).limit(bindparam("limit"))
_SPAN_OF: Final = (
    _SPANS.where(tuple_(*_SPAN_KEY) <= _GIVEN).order_by(*(column.desc() for column in _SPAN_KEY)).limit(1)
)
_HEIGHT: Final = select(func.max(order_spans.c.level)).where(order_spans.c.branch_num == bindparam("branch"))
_SHOWN_BETWEEN: Final = select(sum_of(order_spans.c.shown)).where(
    _LEVEL, tuple_(*_SPAN_KEY) >= _GIVEN, tuple_(*_SPAN_KEY) < _UNTIL
)
_LEVEL_SUMS: Final = select(func.count(), sum_of(order_spans.c.shown)).where(_LEVEL)
_COMMITS_BETWEEN: Final = select(func.count()).where(
    commits.c.branch_num == bindparam("branch"),
    ~commits.c.is_void,
    tuple_(*CANONICAL_ORDER) >= _GIVEN,
    tuple_(*CANONICAL_ORDER) < _UNTIL,
)
_UPDATE: Final = (
    update(order_spans)
    .where(
        order_spans.c.branch_num == bindparam("of_branch"),
        order_spans.c.level == bindparam("of_level"),
        order_spans.c.passed == bindparam("of_passed"),
        order_spans.c.rank == bindparam("of_rank"),
        order_spans.c.commit_id == bindparam("of_id"),
    )
    .values(size=bindparam("new_size"), shown=bindparam("new_shown"))
)
_COLUMNS: Final = ("branch_num", "level", "passed", "rank", "commit_id", "size", "shown")


def _steps(key: Sequence[ColumnElement[Any]], of_source: ColumnElement[bool]) -> Select[Any]:
    """Build the query for the key of the entry that is `offset` entries after the given one."""
    return (
        select(*key)
        .where(of_source, tuple_(*key) >= _GIVEN)
        .order_by(*key)
        .offset(bindparam("offset"))
        .limit(1)
    )


_OF_BRANCH: Final = commits.c.branch_num == bindparam("branch")
_COMMIT_AFTER: Final = _steps(CANONICAL_ORDER, _OF_BRANCH)
_SPAN_AFTER: Final = _steps(_SPAN_KEY, _LEVEL)
_SHOWN_COMMITS: Final = select(func.count()).where(
    ~select(commits.c.is_void)
    .where(_OF_BRANCH, tuple_(*CANONICAL_ORDER) >= _GIVEN)
    .order_by(*CANONICAL_ORDER)
    .limit(bindparam("limit"))
    .subquery()
    .c.is_void
)
_SHOWN_SPANS: Final = select(
    sum_of(
        select(order_spans.c.shown)
        .where(_LEVEL, tuple_(*_SPAN_KEY) >= _GIVEN)
        .order_by(*_SPAN_KEY)
        .limit(bindparam("limit"))
        .subquery()
        .c.shown
    )
)


@dataclass(frozen=True, slots=True)
class OrderSpan:
    """Stretch of the order, from a key up to where the next one of its level begins."""

    first: OrderKey
    size: int  # commits, void ones too; above level 0: spans of the level below
    shown: int  # commits that are not void


def count_changes(connection: Connection, branch_num: int, gains: Iterable[Gain]) -> None:
    """Count what came into a branch's order, left it, or is shown no more; `commits` is so already.

    Costs O(change), and O(log n) in the branch's commits.
    """
    left = sorted(gains, reverse=True)
    is_higher = False  # whether there have come to be several spans where one was the highest
    for level in count():
        if not left:
            return
        grown = _find_grown(connection, branch_num, level, left)
        if not grown:  # there is no such level
            if level and not is_higher:
                return
            grown = [_begin_level(connection, branch_num, level, left)]
        changed: list[OrderSpan] = []
        new: list[OrderSpan] = []
        above: list[Gain] = []
        for old, span in grown:
            assert span.size >= 0, "nothing leaves that did not come"
            pieces = _cut(connection, branch_num, level, span)
            new += pieces[1:]
            if pieces[0] != old:
                changed.append(pieces[0])
            if pieces[1:] or span.shown != old.shown:
                above.append((span.first, len(pieces) - 1, span.shown - old.shown))
        _store(connection, branch_num, level, changed, new)
        left, is_higher = above, bool(new)


def find_position(connection: Connection, branch_num: int, key: OrderKey) -> int:
    """Return how many commits of a branch's timeline stand before a key. Costs O(log n)."""
    height = connection.execute(_HEIGHT, {"branch": branch_num}).scalar()
    if height is None:
        return 0
    before, begin = 0, FIRST
    for level in range(height, -1, -1):
        span = _load_span_of(connection, branch_num, level, key)
        assert span is not None, "each level begins at FIRST"
        if span.first != begin:
            values = _at(branch_num, begin, level) | _until(span.first)
            before += connection.execute(_SHOWN_BETWEEN, values).scalar_one()
            begin = span.first
    values = _at(branch_num, begin) | _until(key)
    return int(before + connection.execute(_COMMITS_BETWEEN, values).scalar_one())


def find_start(connection: Connection, branch_num: int, position: int) -> tuple[OrderKey, int] | None:
    """Return a key, and how many commits of the timeline to skip from it to a position. Costs O(log n).

    None beyond the end.
    """
    height = connection.execute(_HEIGHT, {"branch": branch_num}).scalar()
    if height is None:
        return None
    spans, left = _load_spans(connection, branch_num, height, FIRST, 1), position
    for level in range(height, -1, -1):
        for span in spans:
            if left < span.shown:
                break
            left -= span.shown
        else:
            assert level == height, "a span shows what those in it show"
            return None
        if level:
            spans = _load_spans(connection, branch_num, level - 1, span.first, span.size)
    return span.first, left


def _load_spans(
    connection: Connection, branch_num: int, level: int, first: OrderKey, limit: int
) -> list[OrderSpan]:
    values = _at(branch_num, first, level) | {"limit": limit}
    return [_span(row) for row in connection.execute(_SPANS_FROM, values)]


def _load_span_of(connection: Connection, branch_num: int, level: int, key: OrderKey) -> OrderSpan | None:
    row = select_rows(connection, _SPAN_OF, **_at(branch_num, key, level)).first()
    return None if row is None else _span(row)


def _find_grown(
    connection: Connection, branch_num: int, level: int, gains: Sequence[Gain]
) -> list[tuple[OrderSpan, OrderSpan]]:
    """Return spans of a level before and after a change; [] without such a level. `gains` has the last key first."""
    grown: list[tuple[OrderSpan, OrderSpan]] = []
    done = 0
    while done < len(gains):
        old = _load_span_of(connection, branch_num, level, gains[done][0])
        if old is None:
            return []
        size, shown = old.size, old.shown
        while done < len(gains) and gains[done][0] >= old.first:
            size += gains[done][1]
            shown += gains[done][2]
            done += 1
        grown.append((old, OrderSpan(old.first, size, shown)))
    return grown


def _begin_level(
    connection: Connection, branch_num: int, level: int, gains: Sequence[Gain]
) -> tuple[OrderSpan, OrderSpan]:
    """Store a new level with one span; return the level without and with its counts."""
    nothing = OrderSpan(FIRST, 0, 0)
    _store(connection, branch_num, level, [], [nothing])
    if not level:
        return nothing, OrderSpan(FIRST, sum(gain[1] for gain in gains), sum(gain[2] for gain in gains))
    values = {"branch": branch_num, "level": level - 1}
    size, shown = connection.execute(_LEVEL_SUMS, values).one()
    return nothing, OrderSpan(FIRST, size, shown)


def _cut(connection: Connection, branch_num: int, level: int, span: OrderSpan) -> list[OrderSpan]:
    """Split a span into pieces of half the greatest length, if it is longer than that."""
    size_max = SPANS_PER_SPAN_MAX if level else COMMITS_PER_SPAN_MAX
    after, shown_in = (_SPAN_AFTER, _SHOWN_SPANS) if level else (_COMMIT_AFTER, _SHOWN_COMMITS)
    pieces: list[OrderSpan] = []
    while span.size > size_max:
        size = size_max // 2
        values = _at(branch_num, span.first, level - 1 if level else None)
        following = connection.execute(after, values | {"offset": size}).one()
        shown = size
        if level or span.shown < span.size:  # else nothing of it is void
            shown = connection.execute(shown_in, values | {"limit": size}).scalar_one()
        pieces.append(OrderSpan(span.first, size, shown))
        span = OrderSpan((following[0], following[1], following[2]), span.size - size, span.shown - shown)
    return [*pieces, span]


def _store(
    connection: Connection,
    branch_num: int,
    level: int,
    changed: Sequence[OrderSpan],
    new: Sequence[OrderSpan],
) -> None:
    updates = [(span.size, span.shown, branch_num, level, *span.first) for span in changed]
    change_rows(connection, _UPDATE, updates)
    rows = [(branch_num, level, *span.first, span.size, span.shown) for span in new]
    insert_rows(connection, order_spans, _COLUMNS, rows)


def _at(branch_num: int, key: OrderKey, level: int | None = None) -> dict[str, object]:
    values: dict[str, object] = {"branch": branch_num, "passed": key[0], "rank": key[1], "id": key[2]}
    return values if level is None else values | {"level": level}


def _until(key: OrderKey) -> dict[str, object]:
    return {"passed_until": key[0], "rank_until": key[1], "id_until": key[2]}


def _span(row: Sequence[Any]) -> OrderSpan:
    passed, rank, commit_id, size, shown = row
    return OrderSpan((passed, rank, commit_id), size, shown)
