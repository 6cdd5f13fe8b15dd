"""Export of the store as Parquet: incremental, published atomically (see `schema` for the layout).

    read     everything new, in one read transaction, into parts in a scratch folder: one moment of the store, and writers
             are never blocked
    count    what the store holds, in another, since that takes long and no row depends on it
    put      the parts, aside; they are named by their content, so nothing that is there is written over
    publish  the manifest, in one piece: a reader sees the old export or the new one, never half
    log      for readers of Delta Lake, where they are wanted (see `delta_log`)
    arrange  the folders of tables, so that they hold what the manifest lists and nothing else; what was replaced stays
             aside for `keep_seconds`, for anyone who reads by an older manifest

Cut before the manifest it leaves the old export, and perhaps parts aside that nothing lists; cut after it, the new one, and
perhaps logs and folders of the old one. The next export begins with both.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
from blake3 import blake3
from sqlalchemy import Connection

from protocol.crypto.keys import HashKey
from protocol.ids import Digest, ObjectId, UserId
from ravel.exports.schema import (
    BLOCK_TABLES,
    HEADER_TABLES,
    MANIFEST_NAME,
    MEMBERS,
    MEMBERSHIPS,
    TABLES,
)
from storage.engine.database import StorageError
from storage.export.blocks import block_batches, relay_block_batches
from storage.export.delta_log import has_logs, remove_logs, write_logs
from storage.export.destinations import Destination
from storage.export.manifest import (
    MANIFEST_SIZE_MAX,
    UNOPENED_COUNT_MAX,
    Manifest,
    Part,
    Quotas,
    Replaced,
    decode_manifest,
    encode_manifest,
)
from storage.export.parts import (
    BODIES_PER_GROUP,
    HEAVY,
    ROWS_AT_ONCE,
    ExportRow,
    batch_rows,
    choose_merge,
    read_batches,
    write_parts,
)
from storage.export.rows import (
    Pseudonym,
    commit_batches,
    edit_batches,
    file_batches,
    find_last,
    has_grown_from,
    hash_root_branches,
    last_mark,
    name_batches,
    pending_batches,
    rejection_batches,
    relay_commit_batches,
    relay_topic_batches,
    topic_batches,
    void_batches,
)
from storage.export.space_accounting import HoldingsCount
from storage.export.views import VIEWS_NAME, VIEWS_SIZE_MAX, write_views
from storage.schema.relay_schema import relay_commits
from storage.schema.schema import changes, commits

_PSEUDONYM_TAG: Final = b"ravel export pseudonym"
_SOURCE_TAG: Final = b"ravel export source author"
_FILE_TAG: Final = b"ravel export file"
_KEY_TAG: Final = b"ravel export pseudonym key"

Bodies = Callable[[Connection, int, int], Iterator[pa.RecordBatch]]
"""Bodies of the commits of some numbers (first and last): who exports can open them, this module cannot."""


Headers = Callable[[Connection, int, int, list[int]], Iterator[tuple[str, pa.RecordBatch]]]
"""Rows of `tangles` and `dependencies` of the commits of some numbers, each batch with its table; opened elsewhere. So are
those of a list of numbers, which has afterwards the commits that could not be opened."""


SourceNames = Callable[[Connection, Sequence[int]], Mapping[int, str]]
"""Names of the authors of some imported commits, by these commits' numbers; opened elsewhere, likewise."""


class RepoRights(NamedTuple):
    """Rows of `memberships` and `members` of one repo, whose root branch was opened elsewhere."""

    memberships: Iterator[ExportRow]
    members: Iterator[ExportRow]


class Unjudged(NamedTuple):
    """Repo whose root branch cannot be opened for damage."""

    is_damaged_here: bool  # whether that was taken out, and is asked of peers


Rights = Callable[[Connection, Pseudonym | None], Iterator[RepoRights | Unjudged]]
"""Each repo that has members. One is to be read before the next is asked for, so that one membership is in memory."""


@dataclass(frozen=True, slots=True)
class ExportPlan:
    """Plan of an export: its content, its node's name, and how long replaced parts are kept."""

    node: str  # the exporting node's id
    created_at: int  # unix seconds
    keep_seconds: int = 86_400
    parts_max: int = 32  # of a table: more are merged
    pseudonym_key: HashKey | None = None  # 32 bytes
    bodies: Bodies | None = None
    headers: Headers | None = None
    source_authors: SourceNames | None = None
    blocks: bool = False
    rights: Rights | None = None
    holdings: Callable[[Connection, HoldingsCount], HoldingsCount] | None = None
    quotas: Quotas | None = None
    delta: bool = False  # whether tables have logs of Delta Lake

    @property
    def pseudonyms(self) -> str:
        """Return what tells keys of pseudonyms apart without telling anything of them."""
        if self.pseudonym_key is None:
            return ""
        return blake3(_KEY_TAG, key=self.pseudonym_key).hexdigest()[:16]

    def pseudonym(self, author: UserId) -> Digest:
        """Return the hash that stands for an author: the same wherever the key is."""
        assert self.pseudonym_key is not None, "or authors stand for themselves"
        return Digest(blake3(_PSEUDONYM_TAG + author, key=self.pseudonym_key).digest())

    def hash_file(self, object_id: ObjectId) -> Digest:
        """Hash a file's id under the key of pseudonyms: who holds the file, or its blocks, cannot look who added it."""
        assert self.pseudonym_key is not None, "or files stand for themselves"
        return Digest(blake3(_FILE_TAG + object_id, key=self.pseudonym_key).digest())

    def hash_source(self, name: str) -> Digest:
        """Hash an author's name elsewhere, under the key of pseudonyms if there is one."""
        said = _SOURCE_TAG + name.encode()
        hasher = blake3(said) if self.pseudonym_key is None else blake3(said, key=self.pseudonym_key)
        return Digest(hasher.digest())


@dataclass(frozen=True, slots=True)
class ExportSummary:
    """Summary of an export: its totals, and what this run added."""

    path: str
    commits: int
    added: int
    relayed: int  # commits that were taken for others
    parts: int  # of all tables
    watermark: int
    unjudged_repos: int  # whose members cannot be told, since their root branches are damaged


def export_store(
    read: Callable[[], AbstractContextManager[Connection]], destination: Destination, plan: ExportPlan
) -> ExportSummary:
    """Add to an export what is new since its watermark. Costs O(new rows), and O(rows) for tables that are stated whole.

    Args:
        read: Begins a read transaction.
        destination: Where the export lies; nobody else writes to it meanwhile.
        plan: What is exported.

    Raises:
        StorageError: The store or the destination failed. The export that was there stays readable.
    """
    with destination.scratch() as scratch:
        run = _Run(plan, _load(destination, plan), scratch)
        try:
            with read() as connection:
                run.read(connection)
            # Another, since this may take long, and while one is open SQLite's log only grows.
            with read() as connection:
                run.count(connection)
            run.merge(destination)
        except OSError as error:
            raise StorageError(f"cannot write an export: {error}") from error
        run.put(destination)
    manifest = run.manifest
    content = encode_manifest(manifest)
    destination.publish(MANIFEST_NAME, content)
    _arrange(destination, _decode(content, destination, plan), plan)
    return ExportSummary(
        destination.name,
        sum(part.rows for part in manifest.tables["commits"]),
        run.added,
        sum(part.rows for part in manifest.tables["relay_commits"]),
        sum(map(len, manifest.tables.values())),
        manifest.watermark,
        manifest.unjudged_repos,
    )


def _load(destination: Destination, plan: ExportPlan) -> Manifest:
    content = destination.read(MANIFEST_NAME, MANIFEST_SIZE_MAX)
    if content is None:
        return Manifest(plan.node, pseudonyms=plan.pseudonyms, has_bodies=plan.bodies is not None)
    manifest = _decode(content, destination, plan)
    # Here too, for readers without the manifest: an export that was killed left it undone, and this one may fail.
    _arrange(destination, manifest, plan)
    return manifest


def _decode(content: bytes, destination: Destination, plan: ExportPlan) -> Manifest:
    return decode_manifest(content, f"{destination.name}/{MANIFEST_NAME}", plan.node)


def _arrange(destination: Destination, manifest: Manifest, plan: ExportPlan) -> None:
    listed, replaced = set(manifest.listed()), {one.path for one in manifest.replaced}
    if not plan.delta:
        remove_logs(destination)
    else:
        if not has_logs(destination):  # parts may not be where the log will say
            destination.arrange(listed, replaced, all_aside=True)
        write_logs(destination, manifest, plan.keep_seconds)
    destination.arrange(listed, replaced, all_aside=plan.delta)
    filled = [table for table, parts in manifest.tables.items() if parts]
    views = write_views(filled).encode()
    if plan.delta and filled and not destination.find(filled[0]):  # parts are aside alone
        destination.delete(VIEWS_NAME)
    elif destination.read(VIEWS_NAME, VIEWS_SIZE_MAX) != views:
        destination.publish(VIEWS_NAME, views)


class _Run:
    """Run of one export, from the last manifest to the next one."""

    def __init__(self, plan: ExportPlan, before: Manifest, scratch: Path) -> None:
        self._plan = plan
        self._scratch = scratch
        self._there = {*before.listed(), *(one.path for one in before.replaced)}
        self._made: dict[str, Path] = {}  # parts in the scratch folder, by their names in the export
        self.manifest = before
        self.added = 0

    def read(self, connection: Connection) -> None:
        """Write all that is new into the scratch folder."""
        plan = self._plan
        if not self._can_go_on(connection):
            self._begin_anew()
        manifest = self.manifest
        if plan.blocks and not manifest.has_blocks:
            manifest.blocks_from, manifest.relay_blocks_from = manifest.watermark, manifest.relay_watermark
        manifest.quotas, manifest.created_at = plan.quotas, plan.created_at
        pseudonym = None if plan.pseudonym_key is None else plan.pseudonym
        self._state("voids", void_batches(connection))
        self._state("relay_topics", relay_topic_batches(connection))
        self._state("topics", topic_batches(connection))
        self._state("names", name_batches(connection, has_pseudonyms=pseudonym is not None))
        self._state("pending", pending_batches(connection))
        self._state("rejections", rejection_batches(connection))
        self._state_rights(connection, pseudonym)
        first, last = manifest.watermark + 1, find_last(connection, commits.c.num, changes.c.num)
        if first <= last:
            self.added = self._add(
                "commits", commit_batches(connection, first, last, pseudonym, self._source_authors)
            )
            self._add("edits", edit_batches(connection, first, last))
            hidden = None if pseudonym is None else plan.hash_file
            self._add(
                "files", file_batches(connection, first, last, hidden, with_names=plan.bodies is not None)
            )
            if plan.bodies is not None:
                self._add("bodies", plan.bodies(connection, first, last))
        if plan.headers is not None:
            self._read_headers(connection, plan.headers, first, last)
        manifest.watermark = max(manifest.watermark, last)
        first, last = manifest.relay_watermark + 1, find_last(connection, relay_commits.c.num)
        if first <= last:
            self._add("relay_commits", relay_commit_batches(connection, first, last))
            manifest.relay_watermark = last
        self._read_blocks(connection)
        for table, upto in ((commits, manifest.watermark), (relay_commits, manifest.relay_watermark)):
            if (mark := last_mark(connection, table, upto)) is not None:
                manifest.marks[table.name] = mark

    def _read_headers(self, connection: Connection, headers: Headers, first: int, last: int) -> None:
        """Export what headers state. All anew once a damaged commit is repaired: rows ascend, and its are between others."""
        manifest = self.manifest
        unopened = [*manifest.unopened]
        if unopened and any(True for _ in headers(connection, 1, 0, unopened)):
            first, unopened = 1, []
            for table in HEADER_TABLES:
                self._replace(manifest.tables[table], self._plan.created_at)
                manifest.tables[table] = []
        if first <= last:
            self._add_all(headers(connection, first, last, unopened))
        manifest.unopened = unopened[:UNOPENED_COUNT_MAX]

    def _source_authors(self, connection: Connection, nums: Sequence[int]) -> dict[int, Digest]:
        names = {} if self._plan.source_authors is None else self._plan.source_authors(connection, nums)
        hashes = {name: self._plan.hash_source(name) for name in {*names.values()}}
        return {num: hashes[name] for num, name in names.items()}

    def count(self, connection: Connection) -> None:
        """Count what the store holds, now."""
        manifest, count = self.manifest, self._plan.holdings
        before = HoldingsCount(manifest.holdings, manifest.holdings_of)
        after = HoldingsCount(None, "") if count is None else count(connection, before)
        manifest.holdings, manifest.holdings_of = after

    def _read_blocks(self, connection: Connection) -> None:
        """Export blocks up to the watermarks. They have watermarks of their own, so that later wishes catch up.

        No other table says anything of them, so nothing else has to begin anew. No longer wanted, they go at once.
        """
        manifest, plan = self.manifest, self._plan
        manifest.has_blocks = plan.blocks
        if not plan.blocks:
            at = plan.created_at - plan.keep_seconds
            for table in BLOCK_TABLES:
                self._replace(manifest.tables[table], at)
                manifest.tables[table] = []
            manifest.replaced = [
                Replaced(one.path, at) if one.path.partition("/")[0] in BLOCK_TABLES else one
                for one in manifest.replaced
            ]
            manifest.blocks_watermark = manifest.relay_blocks_watermark = 0
            manifest.blocks_from = manifest.relay_blocks_from = 0
            return
        first, last = manifest.blocks_watermark + 1, manifest.watermark
        if first <= last:
            self._add("blocks", block_batches(connection, first, last))
            manifest.blocks_watermark = last
        first, last = manifest.relay_blocks_watermark + 1, manifest.relay_watermark
        if first <= last:
            self._add("relay_blocks", relay_block_batches(connection, first, last))
            manifest.relay_blocks_watermark = last

    def merge(self, destination: Destination) -> None:
        """Make one part of many, in the tables that grow."""
        for table, schema in TABLES.items():
            parts = self.manifest.tables[table]
            start = choose_merge([part.rows for part in parts], self._plan.parts_max)
            if start is None:
                continue
            merged = parts[start:]
            sources = [
                (part, self._made.get(part.path) or destination.fetch(part.path, self._scratch))
                for part in merged
            ]
            del parts[start:]
            batches = read_batches(sources, schema, BODIES_PER_GROUP if table in HEAVY else ROWS_AT_ONCE)
            self._add(table, batches)
            self._replace(merged, self._plan.created_at)

    def put(self, destination: Destination) -> None:
        """Put the parts that are new; what was replaced and is listed again stays listed."""
        listed = set(self.manifest.listed())
        for path in sorted(listed - self._there):
            destination.put(path, self._made[path])
        now, keep = self._plan.created_at, self._plan.keep_seconds
        self.manifest.replaced = [
            one for one in self.manifest.replaced if one.path not in listed and one.at + keep > now
        ]

    def _can_go_on(self, connection: Connection) -> bool:
        before = self.manifest
        is_known = {table.name: before.marks.get(table.name) for table in (commits, relay_commits)}
        return (
            self._is_told_alike
            and has_grown_from(connection, commits, is_known["commits"], before.watermark)
            and has_grown_from(connection, relay_commits, is_known["relay_commits"], before.relay_watermark)
        )

    @property
    def _is_told_alike(self) -> bool:
        told = (self._plan.pseudonyms, self._plan.bodies is not None)
        return (self.manifest.pseudonyms, self.manifest.has_bodies) == told

    def _begin_anew(self) -> None:
        """Replace everything. What told authors or bodies otherwise than is wanted now is not kept for anyone."""
        before, plan = self.manifest, self._plan
        at = plan.created_at
        if not self._is_told_alike:
            at -= plan.keep_seconds
            before.replaced = [Replaced(one.path, at) for one in before.replaced]
        self.manifest = Manifest(
            plan.node,
            pseudonyms=plan.pseudonyms,
            has_bodies=plan.bodies is not None,
            replaced=before.replaced,
        )
        self._replace([part for parts in before.tables.values() for part in parts], at)

    def _state(self, table: str, batches: Iterator[pa.RecordBatch]) -> None:
        """Export a table anew, in place of its parts."""
        before = self.manifest.tables[table]
        self.manifest.tables[table] = []
        self._add(table, batches)
        listed = self.manifest.tables[table]
        self._replace([part for part in before if part not in listed], self._plan.created_at)

    def _state_rights(self, connection: Connection, pseudonym: Pseudonym | None) -> None:
        """Export who may do what, unless all root branches are as before: judging takes a millisecond a commit."""
        state, rights = hash_root_branches(connection), self._plan.rights
        if self.manifest.roots == state and rights is not None:
            return
        members: list[pa.RecordBatch] = []
        unjudged: list[Unjudged] = []

        def read_memberships() -> Iterator[ExportRow]:
            for repo in () if rights is None else rights(connection, pseudonym):
                if isinstance(repo, Unjudged):
                    unjudged.append(repo)
                else:
                    yield from repo.memberships
                    members.extend(batch_rows(MEMBERS, repo.members))

        self._state("memberships", batch_rows(MEMBERSHIPS, read_memberships()))
        self._state("members", iter(members))
        self.manifest.unjudged_repos = len(unjudged)
        is_known = rights is not None and all(repo.is_damaged_here for repo in unjudged)
        self.manifest.roots = state if is_known else ""

    def _add(self, table: str, batches: Iterator[pa.RecordBatch]) -> int:
        """Write more parts of a table; return their rows."""
        return self._add_all((table, batch) for batch in batches)

    def _add_all(self, batches: Iterator[tuple[str, pa.RecordBatch]]) -> int:
        """Write more parts of the tables that batches are of; return their rows."""
        rows = 0
        for table, written in write_parts(self._scratch, batches):
            self._made[written.part.path] = written.path
            self.manifest.tables[table].append(written.part)
            rows += written.part.rows
        return rows

    def _replace(self, parts: Sequence[Part], at: int) -> None:
        """Unlist parts that others may be reading; parts that never were published are just forgotten."""
        self.manifest.replaced += [Replaced(part.path, at) for part in parts if part.path in self._there]
