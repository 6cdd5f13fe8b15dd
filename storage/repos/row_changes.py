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
    """Numbers of rows that are others now, or new, or gone."""

    repos: set[int] = field(default_factory=set)
    """Repos of which any row may be another: their own, and those of epochs, branches and topics."""
    branches: set[int] = field(default_factory=set)
    """Branches of which any row may be another: their own, and those of topics."""
    counted: set[int] = field(default_factory=set)
    """Branches of which only the counts of commits are others."""
    reduced: set[TopicKey] = field(default_factory=set)
    """Topics that have lost commits, and stay."""

    @property
    def is_structure(self) -> bool:
        """Return True if more than counts changed."""
        return bool(self.repos or self.branches)


def row_changes(connection: Connection) -> RowChanges:
    """Return what was noted on a connection since it was last forgotten."""
    found: RowChanges = connection.info.setdefault(_KEY, RowChanges())
    return found


def forget_row_changes(connection: Connection) -> None:
    """Forget the notes: memory has read what was noted, or the transaction was undone."""
    connection.info.pop(_KEY, None)
