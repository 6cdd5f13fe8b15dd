"""Places of accepted commits, as walks down a branch need them: remembered, and read ahead along chains.

A walk asks for the causes of one rank after the other. Of a chain that is one commit at a time, and a statement for each
took ten times as long as the walk. What is remembered are facts of content-addressed commits, so it stays true if a
transaction is undone.
"""

from collections.abc import Iterable
from typing import Final

from sqlalchemy import Connection, bindparam, select

from protocol.ids import CommitId
from storage.commits.commits import load_places
from storage.engine.bulk import select_rows
from storage.engine.id_keys import id_key, unpack_ids
from storage.schema.schema import commits
from verifier.ancestry import GraphNode

_WEIGHT_MAX: Final = 60_000
"""Commits and parents that are remembered, all together: about 15 MB. A walk looks at 10,000 commits at most."""
_AHEAD_MIN: Final = 16
_AHEAD_MAX: Final = 512
"""Commits that one statement reads ahead: about 2 ms of work."""
_ARRIVAL: Final = select(commits.c.topic_num, commits.c.num, commits.c.commit_id).where(
    commits.c.id_key == bindparam("key")
)
_BEFORE: Final = (
    select(commits.c.commit_id, commits.c.rank, commits.c.acks)
    .where(commits.c.topic_num == bindparam("topic"), commits.c.num < bindparam("num"))
    .order_by(commits.c.num.desc())
    .limit(bindparam("count"))
)


class AncestorCache:
    """Loads places of accepted commits. Used by one transaction at a time."""

    def __init__(self) -> None:
        self._places: dict[CommitId, GraphNode] = {}
        self._weight = 0
        self._ahead = _AHEAD_MIN
        self._unused: set[CommitId] = set()  # of those that were read ahead
        self._misses = 0  # in a row without reading ahead

    def load(self, connection: Connection, ids: Iterable[CommitId]) -> dict[CommitId, GraphNode]:
        """Places of these commits, all of which are accepted."""
        found: dict[CommitId, GraphNode] = {}
        absent: list[CommitId] = []
        for raw in ids:
            if (place := self._places.get(raw)) is not None:
                found[raw] = place
            else:
                absent.append(raw)
        self._unused.difference_update(found)
        if absent:
            loaded = load_places(connection, absent)
            found |= loaded
            self._remember(loaded)
            if len(absent) == 1 and self._may_read_ahead():
                self._read_ahead(connection, absent[0])
        return found

    def _may_read_ahead(self) -> bool:
        """Whether what was read ahead before was asked for; other graphs are tried again after some statements."""
        if self._ahead and len(self._unused) > self._ahead // 2:
            self._ahead = self._ahead // 2 if self._ahead > _AHEAD_MIN else 0
        elif self._ahead:
            self._ahead = min(2 * self._ahead, _AHEAD_MAX)
        else:
            self._misses += 1
            if self._misses > 4 * _AHEAD_MIN:
                self._ahead, self._misses = _AHEAD_MIN, 0
        self._unused.clear()
        return self._ahead > 0

    def _read_ahead(self, connection: Connection, commit_id: CommitId) -> None:
        """Read what came before a commit by its topic: causes are accepted before effects."""
        for topic_num, num, raw in select_rows(connection, _ARRIVAL, key=id_key(commit_id)):
            if raw == commit_id:
                before = {"topic": topic_num, "num": num, "count": self._ahead}
                fresh = {
                    earlier: GraphNode(rank, unpack_ids(acks))
                    for earlier, rank, acks in connection.execute(_BEFORE, before)
                    if earlier not in self._places
                }
                self._remember(fresh)
                self._unused.update(fresh)
                return

    def _remember(self, found: dict[CommitId, GraphNode]) -> None:
        weight = sum(1 + len(place.acks) for place in found.values())
        if self._weight + weight > _WEIGHT_MAX:
            self._places, self._weight = {}, 0
            self._unused.clear()
        self._places.update(found)
        self._weight += weight
