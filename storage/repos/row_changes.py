"""Notes what a transaction changes of repos and branches, so that memory reads those rows again, and no others.

What writes such rows notes them here; `node.ingest.replica` takes the notes before the transaction is committed.
"""

from dataclasses import dataclass, field
from typing import Final

from sqlalchemy import Connection

from protocol.ids import TopicKey

_KEY: Final = "ravel row changes"


@dataclass(slots=True)
class RowChanges:
    """Numbers of rows that were changed, added or deleted."""

    repos: set[int] = field(default_factory=set)
    """Repos of which any row may have changed: their own, and those of epochs, branches and topics."""
    repo_rows: set[int] = field(default_factory=set)
    """Repos whose own row may have changed. Of their epochs, branches and topics only the noted ones may have."""
    epochs: set[int] = field(default_factory=set)
    """Epochs whose row may have changed."""
    topics: set[int] = field(default_factory=set)
    """Topics whose row may have changed, or which have become an epoch's."""
    branches: set[int] = field(default_factory=set)
    """Branches of which any row may have changed: their own, and those of topics."""
    counted: set[int] = field(default_factory=set)
    """Branches of which only the counts of commits have changed."""
    reduced: set[TopicKey] = field(default_factory=set)
    """Topics that have lost commits, and stay."""

    @property
    def is_structure(self) -> bool:
        """Return True if more than counts changed."""
        return bool(self.repos or self.repo_rows or self.branches)

    def note_epoch(self, repo_num: int, epoch_num: int) -> None:
        """Note that the row of an epoch may be another. A repo may have had hundreds: the others are not read again."""
        self.repo_rows.add(repo_num)
        self.epochs.add(epoch_num)


def row_changes(connection: Connection) -> RowChanges:
    """Return what was noted on a connection since it was last forgotten."""
    found: RowChanges = connection.info.setdefault(_KEY, RowChanges())
    return found


def forget_row_changes(connection: Connection) -> None:
    """Forget the noted changes: memory has read them, or the transaction was undone."""
    connection.info.pop(_KEY, None)
