"""Graph of commits being written in one batch, used to drop redundant parents before they are made."""

from collections.abc import Iterable, Sequence

from sqlalchemy import Connection

from protocol.ids import CommitId
from storage.commits.commits import load_places


class DraftGraph:
    """Grows on top of the store's graph, draft by draft: drafts are named by their places in the batch."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._acks: list[frozenset[CommitId | int]] = []

    def add(self, parents: Sequence[CommitId | int]) -> tuple[CommitId | int, ...]:
        """Return what the next draft acks of its parents (commit ids, and places of earlier drafts; at least one).

        A parent that another one acks is left out (V10). Costs O(parents and what they ack).
        """
        acks = tuple(dict.fromkeys(parents))
        if len(acks) > 1:
            implied = {ack for one in self._acks_of(acks) for ack in one}
            acks = tuple(ack for ack in acks if ack not in implied)
        self._acks.append(frozenset(acks))
        return acks

    def _acks_of(self, parents: Iterable[CommitId | int]) -> Iterable[Iterable[CommitId | int]]:
        yield from (self._acks[one] for one in parents if isinstance(one, int))
        stored = [one for one in parents if not isinstance(one, int)]
        if stored:
            yield from (place.acks for place in load_places(self._connection, stored).values())
