"""Graph of commits being written in one batch, used to drop redundant parents before they are made."""

from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import Connection

from protocol.ids import BlockId, CommitId
from protocol.limits.formats import IMPLIED_ACK_VISITS_MAX
from storage.commits.ancestor_cache import AncestorCache
from verifier.ancestry import AckWalks, GraphNode


class DraftGraph:
    """Grows on top of the store's graph, draft by draft.

    Drafts have keys of four bytes, their places in the batch; what is stored has commit ids.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._places: dict[CommitId, GraphNode] = {}
        self._acked: set[CommitId] = set()
        self._count = 0
        self._stored = AncestorCache()
        self._walks = AckWalks(2 * IMPLIED_ACK_VISITS_MAX)

    def add(self, parents: Sequence[CommitId | int]) -> tuple[CommitId | int, ...]:
        """What the next draft acks of its parents (commit ids, and places of earlier drafts; at least one)."""
        acks = tuple(dict.fromkeys(one if isinstance(one, bytes) else _key(one) for one in parents))
        places = self._load(acks)
        # What no draft acks is an ancestor of none, so most merges are made without looking at the graph.
        suspects = [places[ack].rank for ack in acks if len(ack) == 32 or ack in self._acked]
        if len(acks) > 1 and suspects:
            implied = self._walks.find_implied(_key(self._count), acks, self._load, floor=min(suspects))
            acks = tuple(ack for ack in acks if ack not in implied)
        self._acked.update(acks)
        rank = 1 + max(place.rank for place in places.values())
        self._places[_key(self._count)] = GraphNode(rank, acks)
        self._count += 1
        return tuple(int.from_bytes(ack, "big") if len(ack) == 4 else ack for ack in acks)

    def _load(self, ids: Iterable[CommitId]) -> Mapping[CommitId, GraphNode]:
        wanted = list(ids)
        stored = self._stored.load(self._connection, [raw for raw in wanted if raw not in self._places])
        return stored | {raw: place for raw in wanted if (place := self._places.get(raw)) is not None}


def _key(place: int) -> CommitId:
    """What stands for the id of a draft."""
    return CommitId(BlockId(place.to_bytes(4, "big")))
