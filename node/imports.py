"""Import of another system's commits, one bounded batch at a time: a commit per item, acks = its parents, less
those that its other parents imply (a git merge without fast-forward names its branch point again).

Which commit each item became is kept in the same transaction as the commits, so an import that was cut anywhere goes on
where it stopped, and a second run adds nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from node.drafting import Draft, Written
from node.errors import ServiceError
from node.inbound import Intake
from node.outbound import Author
from protocol.body import Imported
from protocol.limits import ACK_COUNT_MAX, IMPLIED_ACK_VISITS_MAX, IMPORT_BATCH_COUNT_MAX
from storage.commits import count_heads, load_places
from storage.imports import keep_imported, load_imported
from storage.repos import Branch
from verifier.ancestry import Place, find_implied


@dataclass(frozen=True, slots=True)
class ImportItem:
    """One commit of another system: its own id and its parents' (earlier items), author, unix seconds, text."""

    id: str
    parents: Sequence[str]
    author: str
    time: int
    text: str


@dataclass(frozen=True, slots=True)
class ImportSummary:
    """What became of a batch."""

    imported: int
    already: int
    heads: int


def import_items(
    author: Author, branch: Branch, source: str, items: Sequence[ImportItem]
) -> tuple[ImportSummary, Intake]:
    """Import a batch in which parents stand before children.

    Raises ServiceError: `too_large` above the bounds, `unknown_parent` for a parent that is in no earlier item.
    """
    if len(items) > IMPORT_BATCH_COUNT_MAX:
        raise ServiceError("too_large", f"{len(items)} items, at most {IMPORT_BATCH_COUNT_MAX} in a batch")
    fresh: list[ImportItem] = []

    def plan(connection: Connection) -> list[Draft]:
        known = _known(connection, branch, source, items)
        seen: set[str] = set()
        for item in items:
            if item.id not in known and item.id not in seen:
                seen.add(item.id)
                fresh.append(item)
        graph = _Graph(connection, branch, known, fresh)
        return [_draft(item, graph.add(item, index)) for index, item in enumerate(fresh)]

    def after(connection: Connection, written: Sequence[Written]) -> None:
        ids = {item.id: commit.commit_id for item, commit in zip(fresh, written, strict=True)}
        keep_imported(author.database, connection, branch.num, source, ids)

    written, intake = author.write_many(branch, plan, after)
    with author.database.read() as connection:
        heads = count_heads(connection, branch.num)
    return ImportSummary(len(written), len(items) - len(written), heads), intake


def _known(
    connection: Connection, branch: Branch, source: str, items: Sequence[ImportItem]
) -> dict[str, bytes]:
    named = {item.id for item in items}.union(*(item.parents for item in items))
    known: dict[str, bytes] = {}
    ordered = sorted(named)
    for start in range(0, len(ordered), 500):
        known.update(load_imported(connection, branch.num, source, ordered[start : start + 500]))
    return known


class _Graph:
    """The batch's graph on top of the store's: what would become an implied ack is found before it is written.

    New items have keys of four bytes, their places in the batch; what is stored has commit ids.
    """

    def __init__(
        self, connection: Connection, branch: Branch, known: dict[str, bytes], fresh: Sequence[ImportItem]
    ) -> None:
        self._connection = connection
        self._root = branch.facts.root_id
        self._known = known
        self._order = {item.id: index for index, item in enumerate(fresh)}
        self._places: dict[bytes, Place] = {}

    def add(self, item: ImportItem, index: int) -> tuple[bytes | int, ...]:
        """What the item's commit acks: its parents, less those that others of them imply."""
        parents = tuple(dict.fromkeys(self._parent(item, parent, index) for parent in item.parents))
        # A root of the other system follows the branch's own root.
        acks = parents or (self._root,)
        if len(acks) > 1:
            implied = find_implied(acks, self._load, visits_max=2 * IMPLIED_ACK_VISITS_MAX)
            acks = tuple(ack for ack in acks if ack not in implied)
        if len(acks) > ACK_COUNT_MAX:
            raise ServiceError(
                "too_large", f"item {item.id!r} has {len(acks)} parents, at most {ACK_COUNT_MAX}"
            )
        rank = 1 + max(place.rank for place in self._load(acks).values())
        self._places[index.to_bytes(4, "big")] = Place(rank, acks)
        return tuple(int.from_bytes(ack, "big") if len(ack) == 4 else ack for ack in acks)

    def _parent(self, item: ImportItem, parent: str, index: int) -> bytes:
        place = self._order.get(parent)
        if parent in self._known:
            return self._known[parent]
        if place is not None and place < index:
            return place.to_bytes(4, "big")
        raise ServiceError(
            "unknown_parent",
            f"item {item.id!r} names the parent {parent!r}, which was not imported before it",
            "import its history from the start, parents before children",
        )

    def _load(self, ids: Iterable[bytes]) -> Mapping[bytes, Place]:
        wanted = list(ids)
        self._places.update(load_places(self._connection, [raw for raw in wanted if raw not in self._places]))
        return {raw: self._places[raw] for raw in wanted}


def _draft(item: ImportItem, acks: tuple[bytes | int, ...]) -> Draft:
    body = Imported(item.id, item.author, item.time * 1000, item.text)
    # The commit states the item's own time, so that statistics of a history are not those of the minute in which it was
    # imported; before 1970 there is no timestamp.
    return Draft(body, acks, max(body.time, 0))
