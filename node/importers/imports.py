"""Imports items as commits in bounded batches: each item's parents become acks, redundant ones dropped.

A git merge without fast-forward names its branch point again: that parent is redundant.

Which commit each item became is kept in the same transaction as the commits, so an import that was cut anywhere goes on
where it stopped, and a second run adds nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from node.authoring.author import Author
from node.authoring.drafting import Draft, WrittenCommit
from node.authoring.feed_encoder import DraftGraph
from node.authoring.writing import write_job
from node.contract.files import ImportItem
from node.ingest.ingest_result import IngestResult
from node.runtime.errors import ServiceError
from node.sync.hub import Hub
from protocol.formats.content import Imported
from protocol.ids import CommitId
from protocol.limits.formats import ACK_COUNT_MAX
from protocol.limits.users import IMPORT_BATCH_COUNT_MAX
from ravel.types.files import ImportedWindow, ImportResult
from storage.commits.heads import count_heads
from storage.commits.lookup import keep_imported, load_imported, load_source_ids
from storage.repos.repos import Branch


@dataclass(frozen=True, slots=True)
class ImportSummary:
    """Counts of an imported batch."""

    imported: int
    already: int
    heads: int


class Imports:
    """Imports into branches, which are named as `find_branch` takes them, and lists what was imported."""

    def __init__(self, hub: Hub, author: Author, find_branch: Callable[[str], Branch]) -> None:
        self._hub = hub
        self._author = author
        self._find_branch = find_branch

    async def add(self, branch: str, items: list[ImportItem], source: str) -> ImportResult:
        """Import one bounded batch of another system's commits."""
        target = self._find_branch(branch)
        summary = await write_job(
            self._hub, lambda stored: import_items(self._author, target, source, items, stored)
        )
        return {"imported": summary.imported, "already": summary.already, "heads": summary.heads}

    async def window(self, branch: str, source: str, after: int, limit: int) -> ImportedWindow:
        """Return a window of the ids that were imported into a branch."""
        target = self._find_branch(branch)
        return await self._hub.run_blocking(list_imported, self._author, target, source, after, limit)


def import_items(
    author: Author, branch: Branch, source: str, items: Sequence[ImportItem], stored: IngestResult
) -> ImportSummary:
    """Import a batch in which parents stand before children; `stored` gets what was written.

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
        parents, graph = _Parents(branch, known, fresh), DraftGraph(connection)
        return [_draft(item, graph.add(parents.of(item, index))) for index, item in enumerate(fresh)]

    def after(connection: Connection, written: Sequence[WrittenCommit]) -> None:
        ids = {item.id: commit.commit_id for item, commit in zip(fresh, written, strict=True)}
        keep_imported(author.database, connection, branch.num, source, ids)

    written, _ = author.write_many(branch, plan, after, stored=stored)
    with author.database.read() as connection:
        heads = count_heads(connection, branch.num)
    return ImportSummary(len(written), len(items) - len(written), heads)


def list_imported(author: Author, branch: Branch, source: str, after: int, limit: int) -> ImportedWindow:
    """Return a window of the ids that were imported from `source`, in the order of their import."""
    with author.database.read() as connection:
        rows = load_source_ids(connection, branch.num, source, after, limit)
    return {
        "items": [source_id for _, source_id in rows],
        "next": rows[-1][0] if len(rows) == limit else None,
    }


def _known(
    connection: Connection, branch: Branch, source: str, items: Sequence[ImportItem]
) -> dict[str, CommitId]:
    named = {item.id for item in items}.union(*(item.parents for item in items))
    known: dict[str, CommitId] = {}
    ordered = sorted(named)
    for start in range(0, len(ordered), 500):
        known.update(load_imported(connection, branch.num, source, ordered[start : start + 500]))
    return known


class _Parents:
    """Map an item's parents to their commits, or to earlier items of the batch."""

    def __init__(self, branch: Branch, known: dict[str, CommitId], fresh: Sequence[ImportItem]) -> None:
        self._root = branch.facts.root_id
        self._known = known
        self._order = {item.id: index for index, item in enumerate(fresh)}

    def of(self, item: ImportItem, index: int) -> list[CommitId | int]:
        """Make a root of the other system follow the branch's own root."""
        return [self._find(item, parent, index) for parent in item.parents] or [self._root]

    def _find(self, item: ImportItem, parent: str, index: int) -> CommitId | int:
        place = self._order.get(parent)
        if parent in self._known:
            return self._known[parent]
        if place is not None and place < index:
            return place
        raise ServiceError(
            "unknown_parent",
            f"item {item.id!r} names the parent {parent!r}, which was not imported before it",
            "import its history from the start, parents before children",
        )


def _draft(item: ImportItem, acks: tuple[CommitId | int, ...]) -> Draft:
    if len(acks) > ACK_COUNT_MAX:
        raise ServiceError("too_large", f"item {item.id!r} has {len(acks)} parents, at most {ACK_COUNT_MAX}")
    body = Imported(item.id, item.author, item.time * 1000, item.text)
    # The commit states the item's own time, so that statistics of a history are not those of the minute in which it was
    # imported; before 1970 there is no timestamp.
    return Draft(body, acks, max(body.time, 0))
