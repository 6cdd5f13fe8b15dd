"""Copies of a timeline that are kept right by nothing but its edits: a list, and a table."""

import sqlite3
from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from protocol.ids import CommitId
from storage.commits.edits import Edit, StoredEdits

Place = tuple[int, int, CommitId]


class Copy(Protocol):
    """What follows edits. What an edit changes must be there, and what it inserts must not."""

    def reset(self) -> None:
        """Forget all."""
        ...

    def apply(self, edit: Edit) -> None:
        """Follow one edit."""
        ...

    def ids(self) -> list[CommitId]:
        """The timeline."""
        ...


class ListCopy:
    """A sorted list of places."""

    def __init__(self) -> None:
        self._places: list[Place] = []
        self._of: dict[CommitId, Place] = {}

    def reset(self) -> None:
        """Forget all."""
        self._places.clear()
        self._of.clear()

    def apply(self, edit: Edit) -> None:
        """Follow one edit."""
        old = self._of.pop(edit.commit_id, None)
        assert (old is None) == (edit.kind == "insert"), edit
        if old is not None:
            del self._places[bisect_left(self._places, old)]
        if edit.kind != "remove":
            new = (edit.passed, edit.rank, edit.commit_id)
            assert new != old, "a move moves"
            insort(self._places, new)
            self._of[edit.commit_id] = new

    def ids(self) -> list[CommitId]:
        """The timeline."""
        return [commit_id for _, _, commit_id in self._places]


class TableCopy:
    """A table of another database, sorted by its index."""

    def __init__(self) -> None:
        self._database: Final = sqlite3.connect(":memory:")
        self._database.execute("CREATE TABLE timeline (passed, rank, id, PRIMARY KEY (passed, rank, id))")

    def reset(self) -> None:
        """Forget all."""
        self._database.execute("DELETE FROM timeline")

    def apply(self, edit: Edit) -> None:
        """Follow one edit."""
        place = (edit.passed, edit.rank, edit.commit_id)
        if edit.kind == "insert":
            self._database.execute("INSERT INTO timeline VALUES (?, ?, ?)", place)
            return
        statement = (
            "UPDATE timeline SET passed = ?, rank = ? WHERE id = ?"
            if edit.kind == "move"
            else "DELETE FROM timeline WHERE passed = ? AND rank = ? AND id = ?"
        )
        assert self._database.execute(statement, place).rowcount == 1, edit

    def ids(self) -> list[CommitId]:
        """The timeline."""
        return [row[0] for row in self._database.execute("SELECT id FROM timeline ORDER BY passed, rank, id")]

    def close(self) -> None:
        """Give up the table."""
        self._database.close()


def follow(copies: Sequence[Copy], window: StoredEdits, acks: Mapping[CommitId, Sequence[CommitId]]) -> None:
    """Apply a window's edits, and see after each that no commit stands before what it acks."""
    if window.is_reset:
        for copy in copies:
            copy.reset()
    for edit in window.edits:
        for copy in copies:
            copy.apply(edit)
        position = {commit_id: index for index, commit_id in enumerate(copies[0].ids())}
        for commit_id, index in position.items():
            assert all(position.get(ack, -1) < index for ack in acks.get(commit_id, ())), edit
