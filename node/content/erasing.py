"""Finds and erases bodies that a compaction covers and no document needs.

Rows, headers, keys and ids stay, so order, membership, feeds and signatures can be checked as before. A body goes when

- it is content of a kind that no verdict rests on (ERASABLE_KINDS), and its commit is not void;
- a compaction that counts has the commit in its past, and came here before the time that the policy says;
- its commit's header says its kind, so that the commit can be judged without it (`protocol.formats.declared_kind`);
- of a set or dict, snapshots say again what stands of it; of a text, a snapshot that counts names it;
- of a document, no branch here continues this one from a later commit: it may need what this one does not.

A dry run reads one moment of the store, beside the daemon or without one (`garbage_collection`).
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sqlalchemy import Connection

from node.content.document_operations import DocumentOperationReader, find_documents, find_pasts
from node.content.lineage import lineage
from node.content.text_reading import TextReader
from node.ingest.replica import Replica
from node.ingest.tables import Tables, load_tables
from node.runtime.errors import ServiceError
from protocol.crypto.keys import StoreKey
from protocol.formats.block import decode_block
from protocol.formats.body import kind_name
from protocol.formats.commit import Commit, open_commit
from protocol.formats.content import Compaction
from protocol.formats.declared_kind import ERASABLE, POST_KINDS, declared_kind
from protocol.formats.document_kinds import DOCUMENT_KINDS
from protocol.ids import CommitId
from storage.commits.absent_bodies import (
    Erasure,
    erase_bodies,
    load_ids_of_kind,
    load_with_bodies,
    measure_bodies,
)
from storage.commits.blocks import DamagedBlock, read_blocks
from storage.commits.commits import TimelineRow
from storage.engine.database import Database, read_store
from storage.engine.id_keys import chunks, unpack_nums
from storage.repos.repos import Branch
from verifier.documents import ErasedValues, find_settled

_LOADED_AT_ONCE: Final = 500
ERASABLE_KINDS: Final = tuple(map(kind_name, ERASABLE))
"""Kinds of bodies that may be erased."""
_SNAPSHOTS: Final = {
    kind_name(kind.edit): kind_name(kind.snapshot) if kind.snapshots_cover else "" for kind in DOCUMENT_KINDS
}
"""Kinds of operations, and the kind of a snapshot of them that may be erased too. Empty: snapshots never are."""


@dataclass(frozen=True, slots=True)
class Erased:
    """Count of bodies, and bytes of their blocks (other commits that say just the same may still need some)."""

    bodies: int
    size: int


def find_erasable(
    tables: Replica | Tables, connection: Connection, branch: Branch, before_ms: int
) -> list[TimelineRow]:
    """Commits whose bodies may go, by the compactions that came here before. Raises StorageError."""
    released = find_released(connection, branch, before_ms)
    if not released:
        return []
    return [row for row in find_unneeded(tables, connection, branch) if row.commit_id in released]


def find_released(connection: Connection, branch: Branch, before_ms: int) -> set[CommitId]:
    """Return the commits that compactions release which came here before. Costs O(commits of the branch)."""
    compactions = load_ids_of_kind(connection, branch.num, kind_name(Compaction), before_ms)
    return set(find_pasts(connection, [(branch, ())], dict.fromkeys(compactions, 1)))


def find_unneeded(tables: Replica | Tables, connection: Connection, branch: Branch) -> list[TimelineRow]:
    """Commits whose bodies might go if a compaction came now. Raises StorageError."""
    whole = load_with_bodies(connection, branch.num, ERASABLE_KINDS)
    if all(row.body_kind in POST_KINDS for row in whole):
        return find_declared(tables, connection, whole)
    settled = set(_find_settled(tables, connection, branch)) - _find_continued(tables, connection, branch)
    unneeded = [row for row in whole if row.body_kind in POST_KINDS or row.commit_id in settled]
    return find_declared(tables, connection, unneeded)


def find_compactable(tables: Replica | Tables, connection: Connection, branch: Branch) -> list[TimelineRow]:
    """Find the commits whose bodies could be erased if all documents were snapshotted first. Raises StorageError."""
    whole = load_with_bodies(connection, branch.num, ERASABLE_KINDS)
    settled = set(_find_settled(tables, connection, branch))
    continued = _find_continued(tables, connection, branch)
    # Kinds of bodies of which a snapshot would make some needless, and with them earlier snapshots.
    left = Counter(row.body_kind for row in whole if row.commit_id not in settled)
    fresh = {kind for kind, snapshots in _SNAPSHOTS.items() if left[kind] >= 1 + (not snapshots)}
    fresh |= {snapshots for kind, snapshots in _SNAPSHOTS.items() if kind in fresh}
    compactable = [
        row
        for row in whole
        if row.body_kind in POST_KINDS
        or (row.commit_id not in continued and (row.commit_id in settled or row.body_kind in fresh))
    ]
    return find_declared(tables, connection, compactable)


def find_declared(
    tables: Replica | Tables, connection: Connection, rows: Sequence[TimelineRow]
) -> list[TimelineRow]:
    """Return those whose headers say the bodies' kinds; damaged ones are passed over.

    The others are judged by their bodies: without these a newcomer could not take them, nor anything that follows them.
    Costs O(rows).
    """
    opened = _open_headers(tables, connection, rows)
    return [row for row, commit in opened if declared_kind(commit, is_root_branch=False) is not None]


def make_erasures(
    tables: Replica | Tables, connection: Connection, rows: Sequence[TimelineRow]
) -> Iterator[Erasure]:
    """Yield what erases the bodies of these commits; damaged headers are passed over. Costs O(rows)."""
    for row, commit in _open_headers(tables, connection, rows):
        yield Erasure(row.num, row.topic_num, row.block_nums, commit.content.body.object_id)


def _open_headers(
    tables: Replica | Tables, connection: Connection, rows: Sequence[TimelineRow]
) -> Iterator[tuple[TimelineRow, Commit]]:
    """Yield commits with their headers, if these can be read. Bodies may be damaged."""
    for part in chunks(rows, _LOADED_AT_ONCE):
        nums = {row.num: unpack_nums(row.block_nums)[0] for row in part}
        try:
            encoded = read_blocks(connection, {nums[row.num]: row.commit_id for row in part})
        except DamagedBlock:
            for half in (part[: len(part) // 2], part[len(part) // 2 :]) if len(part) > 1 else ():
                yield from _open_headers(tables, connection, half)
            continue
        for row in part:
            secret = tables.convergence_secret(row)
            yield row, open_commit(decode_block(encoded[nums[row.num]]), row.commit_key, secret)


def measure_erasable(home: Path, store_key: StoreKey, before_ms: int, url: str = "") -> Erased:
    """Count what `erase_store` would erase. Nothing is changed. Raises StorageError."""
    with read_store(home, store_key, url) as connection:
        tables = load_tables(connection)
        found = [find_erasable(tables, connection, branch, before_ms) for branch in _content_branches(tables)]
        return Erased(sum(map(len, found)), sum(measure_bodies(connection, rows) for rows in found))


def erase_store(home: Path, store_key: StoreKey, before_ms: int, now_ms: int, url: str = "") -> Erased:
    """Erase what may go, of all branches, in one transaction; nobody else may have the store open. Raises StorageError."""
    database = Database(home, store_key, url)
    try:
        with database.write() as connection:
            tables = load_tables(connection)
            bodies = size = 0
            for branch in _content_branches(tables):
                rows = find_erasable(tables, connection, branch, before_ms)
                bodies, size = bodies + len(rows), size + measure_bodies(connection, rows)
                erase_bodies(connection, branch.num, list(make_erasures(tables, connection, rows)), now_ms)
    finally:
        database.close()
    return Erased(bodies, size)


def _content_branches(tables: Tables) -> list[Branch]:
    return [branch for branch in tables.branches.values() if not branch.facts.is_root_branch]


def _find_settled(tables: Replica | Tables, connection: Connection, branch: Branch) -> Iterator[CommitId]:
    """Commits of the branch whose operations or updates others stand for."""
    reader = DocumentOperationReader(tables)
    try:
        documents = find_documents(tables, connection, branch)
    except ServiceError:  # of a branch that continues what is not here
        documents = []
    for kind, name in documents:
        try:
            settled = find_settled(one for one, _ in reader.read(connection, branch, kind, name))
        except (ServiceError, ErasedValues):  # what cannot be told is needed
            continue
        yield from (one.place[-1] for one in settled)
    yield from TextReader(tables).find_said_again(connection, branch)


def _find_continued(tables: Replica | Tables, connection: Connection, branch: Branch) -> set[CommitId]:
    """Commits of the branch that others here continue."""
    points: set[CommitId] = set()
    for other in tables.branches_in(branch.repo_num):
        if other.num == branch.num or other.facts.is_root_branch:
            continue
        try:
            parts = lineage(tables, connection, other)
        except ServiceError:  # of what is not here
            continue
        points.update(raw for part, commits in parts if part.num == branch.num for raw in commits)
    return points | find_pasts(connection, [(branch, ())], dict.fromkeys(points, 1)).keys()
