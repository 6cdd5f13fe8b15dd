"""Computes list positions of timeline edits, for clients that keep a plain list and cannot sort by key.

An edit's position is that in the timeline of its moment, which is not stored. It is counted back from now: a key stands
where it would stand today, less what later edits inserted before it, and more what they removed. So all edits up to now
have to be looked at, and a follower too far behind is told none.
"""

from bisect import bisect_left, insort
from dataclasses import dataclass

from sqlalchemy import Connection

from protocol.limits.users import EDIT_POSITIONS_MAX, EDIT_WINDOW_MAX
from storage.commits.canonical_order import OrderKey
from storage.commits.edits import Edit, StoredEdits, load_edits
from storage.commits.position_index import find_position


@dataclass(frozen=True, slots=True)
class EditPosition:
    """Where a commit stood before an edit, and where it stands after it; None where it did not, or does not."""

    before: int | None
    after: int | None


def find_edit_positions(
    connection: Connection, branch_num: int, window: StoredEdits
) -> list[EditPosition] | None:
    """Positions of a window's edits, applied one after the other to a list that had all before them.

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
    """Where the commit stood before the edit, and where it stands after it."""
    key = (edit.passed, edit.rank, edit.commit_id)
    if edit.kind == "insert":
        return None, key
    assert edit.passed_before is not None, "it stood somewhere"
    return (edit.passed_before, edit.rank, edit.commit_id), None if edit.kind == "remove" else key
