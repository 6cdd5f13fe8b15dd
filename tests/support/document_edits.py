"""Edits of documents as tests write them: what replaces is named for all operations at once."""

from collections.abc import Sequence

from protocol.formats.document_kinds import Replaced
from protocol.ids import CommitId


def naming(names: Sequence[CommitId], operations: int) -> tuple[Replaced, ...]:
    """Return what says that each of so many operations replaces those of all these commits."""
    return tuple(Replaced(name, tuple(range(operations))) for name in names)
