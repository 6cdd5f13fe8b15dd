"""Reads a branch's timeline as a stream of edits (insert, move, remove) after a given change number.

An edit names a commit and its *place*: (checkpoints passed, rank, commit id), the key of the canonical order. Anyone who
keeps commits sorted by place needs no positions, which every insert in front would shift. Read from where one stopped,
the edits lead through exactly the timelines that the store had: each commit is shown as it stood when the edit was
made, though its row says how it stands now.

An insert costs no row: the commit's own is its record. Other changes are logged in `changes`, with numbers of the same
sequence, of which the newest are kept; contents that come later as a move to where their commit stands. Positions in a
plain list (`find_edit_positions`) are not stored: they are counted back from now, so a follower too far behind gets none.

Who begins, or comes back after changes that are not kept any more, gets a *snapshot* first: what stood in the timeline
at one change number, in windows, whatever happens meanwhile.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from sqlalchemy import Connection, bindparam, delete, func, select, update

from protocol.ids import CommitId
from protocol.limits.users import CHANGES_KEPT_MAX, EDIT_POSITIONS_MAX, EDIT_WINDOW_MAX
from storage.commits.position_index import OrderKey, find_position
from storage.engine.bulk import insert_rows, select_in, select_rows
from storage.engine.database import Database, reserve_numbers_to
from storage.engine.id_keys import chunks
from storage.schema.schema import branches, changes, commits

EditKind = Literal["insert", "move", "remove"]

_LAST: Final = select(func.max(changes.c.num)).where(changes.c.branch_num == bindparam("branch"))
_KEPT_FROM: Final = select(branches.c.changes_from).where(branches.c.num == bindparam("branch"))
_NEWEST: Final = select(func.max(commits.c.num)).where(commits.c.branch_num == bindparam("branch"))
_CHANGED: Final = (
    select(changes.c.num, changes.c.commit_num, changes.c.passed_before, changes.c.passed_after)
    .where(changes.c.branch_num == bindparam("branch"), changes.c.num > bindparam("after"))
    .order_by(changes.c.num)
    .limit(bindparam("count"))
)
_NUMS: Final = (
    select(commits.c.num)
    .where(
        commits.c.branch_num == bindparam("branch"),
        commits.c.num > bindparam("after"),
        commits.c.num <= bindparam("last"),
    )
    .order_by(commits.c.num)
    .limit(bindparam("count"))
)
_ROWS: Final = select(
    commits.c.num, commits.c.commit_id, commits.c.rank, commits.c.passed, commits.c.is_void
).where(commits.c.num.in_(bindparam("keys", expanding=True)))
_STANDING: Final = select(commits.c.branch_num, commits.c.num, commits.c.passed).where(
    commits.c.num.in_(bindparam("keys", expanding=True)), ~commits.c.is_void
)
_BEFORE: Final = (
    select(changes.c.commit_num, changes.c.passed_before)
    .where(changes.c.commit_num.in_(bindparam("keys", expanding=True)), changes.c.num > bindparam("after"))
    .order_by(changes.c.num.desc())
)


@dataclass(frozen=True, slots=True)
class Cursor:
    """Position in a branch's edits: all up to `change` were read; `snapshot_read` while its snapshot is read."""

    change: int
    snapshot_read: int | None = None  # its commits up to this number


@dataclass(frozen=True, slots=True)
class Edit:
    """One change of a timeline. `passed` and `rank` say where the commit stands now; of a remove, where it stood.

    Anyone who has followed it goes on from `cursor`.
    """

    cursor: Cursor
    kind: EditKind
    commit_id: CommitId
    passed: int
    rank: int
    passed_before: int | None = None  # None where it did not stand in the timeline

    @property
    def shows_commit(self) -> bool:
        """Return True if it brings a commit, or contents of one that had been absent: a move to where it stands."""
        return self.kind == "insert" or (self.kind == "move" and self.passed == self.passed_before)


@dataclass(frozen=True, slots=True)
class StoredEdits:
    """Some edits in order, and where the next begin."""

    edits: tuple[Edit, ...]
    next: Cursor
    is_reset: bool
    """True if a snapshot begins: what was known before is to be forgotten."""
    has_more: bool


@dataclass(frozen=True, slots=True)
class _Row:
    commit_id: CommitId
    rank: int
    passed: int | None  # now; None where it does not stand in the timeline


START: Final = Cursor(-1)
"""Cursor of a follower without state."""


def load_last_change(connection: Connection, branch_num: int) -> int:
    """Return the change number up to which a branch's edits go. Costs O(1)."""
    return _Ends(connection, branch_num).last


def load_edits(connection: Connection, branch_num: int, since: Cursor, limit: int) -> StoredEdits:
    """Load edits of a branch after a cursor, or a snapshot if those are gone. Costs O(limit).

    Args:
        connection: Of one read transaction.
        branch_num: Number of the branch's row.
        since: START for a follower without state, else the `next` of what was read last.
        limit: Edits at most.
    """
    ends = _Ends(connection, branch_num)
    last = ends.last
    if not ends.kept_from <= since.change <= last:
        return _load_snapshot(connection, ends, Cursor(last, 0), limit, is_reset=True)
    if since.snapshot_read is not None:
        return _load_snapshot(connection, ends, since, limit, is_reset=False)
    inserted = ends.load_nums(since.change, last, limit + 1)
    found = select_rows(connection, _CHANGED, branch=branch_num, after=since.change, count=limit + 1)
    changed = {num: change for num, *change in found}
    nums = sorted([*inserted, *changed])
    taken = nums[:limit]
    rows = _load_rows(connection, {changed[num][0] if num in changed else num for num in taken})
    before = _load_before(connection, [num for num in taken if num not in changed], since.change)
    edits: list[Edit] = []
    for num in taken:
        change = changed.get(num)
        if change is None:
            row = rows[num]
            passed = before.get(num, row.passed)
            assert passed is not None, "what is accepted stands in the timeline at first"
            edits.append(Edit(Cursor(num), "insert", row.commit_id, passed, row.rank))
        else:
            commit_num, passed_before, passed_after = change
            edits.append(_edit_of(num, rows[commit_num], passed_before, passed_after))
    next_change = taken[-1] if len(nums) > limit else last
    return StoredEdits(tuple(edits), Cursor(next_change), is_reset=False, has_more=len(nums) > limit)


def _edit_of(num: int, row: _Row, before: int | None, after: int | None) -> Edit:
    if after is None:
        assert before is not None, "what does not stand there cannot leave"
        return Edit(Cursor(num), "remove", row.commit_id, before, row.rank, before)
    kind: EditKind = "insert" if before is None else "move"
    return Edit(Cursor(num), kind, row.commit_id, after, row.rank, before)


def _load_snapshot(
    connection: Connection, ends: "_Ends", cursor: Cursor, limit: int, *, is_reset: bool
) -> StoredEdits:
    """Load commits as they stood at the cursor's change, in order of acceptance: causes before effects."""
    assert cursor.snapshot_read is not None, "or there is no snapshot"
    nums = ends.load_nums(cursor.snapshot_read, cursor.change, limit + 1)
    taken = nums[:limit]
    rows = _load_rows(connection, taken)
    before = _load_before(connection, taken, cursor.change)
    edits: list[Edit] = []
    for num in taken:
        row = rows[num]
        passed = before.get(num, row.passed)
        if passed is not None:
            edits.append(Edit(Cursor(cursor.change, num), "insert", row.commit_id, passed, row.rank))
    has_more = len(nums) > limit
    following = Cursor(cursor.change, taken[-1] if has_more else None)
    if not has_more:  # there may be changes since
        has_more = ends.last > cursor.change
    return StoredEdits(tuple(edits), following, is_reset=is_reset, has_more=has_more)


class _Ends:
    """First and last change of a branch, read once."""

    def __init__(self, connection: Connection, branch_num: int) -> None:
        self._connection = connection
        self._branch_num = branch_num
        kept = select_rows(connection, _KEPT_FROM, branch=branch_num).first()
        self.kept_from: int = (kept and kept[0]) or 0
        """The first change that is kept."""
        found: list[int | None] = select_rows(connection, _LAST, branch=branch_num).scalars()
        found += select_rows(connection, _NEWEST, branch=branch_num).scalars()
        self.last = max(self.kept_from, *(num or 0 for num in found))
        """The change up to which they go."""

    def load_nums(self, after: int, last: int, limit: int) -> list[int]:
        """Load the first numbers of commits after `after` and up to `last`."""
        given = {"branch": self._branch_num, "after": after, "last": last, "count": limit}
        return select_rows(self._connection, _NUMS, **given).scalars()


def _load_rows(connection: Connection, nums: Iterable[int]) -> dict[int, _Row]:
    found: dict[int, _Row] = {}
    for part in chunks(sorted(nums)):
        for num, commit_id, rank, passed, is_void in select_in(connection, _ROWS, part):
            found[num] = _Row(commit_id, rank, None if is_void else passed)
    return found


def _load_before(connection: Connection, nums: Sequence[int], change: int) -> dict[int, int | None]:
    """Load how many checkpoints commits had passed at `change`, of the given ones that changed later."""
    found: dict[int, int | None] = {}
    for part in chunks(nums):
        found.update((row[0], row[1]) for row in select_in(connection, _BEFORE, part, after=change))
    return found


_COLUMNS: Final = ("num", "branch_num", "commit_num", "passed_before", "passed_after")

Change = tuple[int, int | None, int | None]
"""A commit's number, and the checkpoints it had passed before and has now; None where it does not stand there."""


def record_changes(
    database: Database, connection: Connection, branch_num: int, new: Sequence[Change]
) -> None:
    """Log what has changed in a branch's timeline, in this order, in the transaction that changes it.

    Costs O(`new`, and the changes that are kept of the branch: all are counted, up to CHANGES_KEPT_MAX).
    """
    if not new:
        return
    nums = database.next_nums(connection, commits, len(new))
    insert_rows(
        connection,
        changes,
        _COLUMNS,
        [(num, branch_num, *change) for num, change in zip(nums, new, strict=True)],
    )
    reserve_numbers_to(connection, commits, nums[-1])
    query = (
        select(changes.c.num)
        .where(changes.c.branch_num == branch_num)
        .order_by(changes.c.num.desc())
        .offset(CHANGES_KEPT_MAX)
        .limit(1)
    )
    last_gone = connection.execute(query).scalar()
    if last_gone is not None:
        connection.execute(
            delete(changes).where(changes.c.branch_num == branch_num, changes.c.num <= last_gone)
        )
        connection.execute(
            update(branches).where(branches.c.num == branch_num).values(changes_from=last_gone)
        )


def record_contents(database: Database, connection: Connection, nums: Sequence[int]) -> None:
    """Log contents of commits that had been absent, as moves to where these stand.

    Costs O(nums), and for each of their branches as `record_changes`.
    """
    moves: dict[int, list[Change]] = {}
    for part in chunks(nums):
        for branch_num, num, passed in select_in(connection, _STANDING, part):
            moves.setdefault(branch_num, []).append((num, passed, passed))
    for branch_num, changed in moves.items():
        record_changes(database, connection, branch_num, changed)


@dataclass(frozen=True, slots=True)
class EditPosition:
    """Positions of a commit before and after an edit; None where it did not or does not stand there."""

    before: int | None
    after: int | None


def find_edit_positions(
    connection: Connection, branch_num: int, window: StoredEdits
) -> list[EditPosition] | None:
    """Find positions of a window's edits, applied in turn to a list that had all before them.

    Costs O(edits from the window's begin to now).

    None where more than `EDIT_POSITIONS_MAX` edits lead from the window's begin to now.
    """
    edits = list(window.edits)
    last = window
    while last.has_more:
        if len(edits) > EDIT_POSITIONS_MAX:
            return None
        last = load_edits(connection, branch_num, last.next, EDIT_WINDOW_MAX)
        edits += last.edits
    if len(edits) > EDIT_POSITIONS_MAX:
        return None
    inserted: list[OrderKey] = []
    removed: list[OrderKey] = []

    def count_back(key: OrderKey) -> int:
        now = find_position(connection, branch_num, key)
        return now - bisect_left(inserted, key) + bisect_left(removed, key)

    found: list[EditPosition] = []
    for number, edit in reversed(list(enumerate(edits))):
        is_wanted = number < len(window.edits)
        old, new = _keys(edit)
        after = count_back(new) if is_wanted and new else None
        if new:
            insort(inserted, new)
        if old:
            insort(removed, old)
        before = count_back(old) if is_wanted and old else None
        if is_wanted:
            found.append(EditPosition(before, after))
    return found[::-1]


def _keys(edit: Edit) -> tuple[OrderKey | None, OrderKey | None]:
    """Return the keys where the commit stood before the edit, and stands after it."""
    key = (edit.passed, edit.rank, edit.commit_id)
    if edit.kind == "insert":
        return None, key
    assert edit.passed_before is not None, "it stood somewhere"
    return (edit.passed_before, edit.rank, edit.commit_id), None if edit.kind == "remove" else key
