"""Store check, part 1: the database's pages, the hash of every block, and every reference between rows.

What the rows mean (ranks, heads, rights) is looked at by `check_derived` and `node.care.fsck`; what a relay keeps for others
by `check_relay`.
"""

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Column, Connection, func, select, table
from sqlalchemy import column as named_column
from sqlalchemy.exc import DBAPIError

from protocol.codec import DecodeError
from protocol.crypto.hashing import block_id as hash_block
from protocol.formats.block import decode_block
from protocol.ids import BlockId
from protocol.limits.files import FSCK_PROBLEMS_SHOWN_MAX
from storage.blobs.packs import MARK_SUFFIX
from storage.check.schema_check import find_altered
from storage.engine.database import DATABASE_NAME, StorageError
from storage.engine.id_keys import BLOCK_NUM_SIZE, id_key
from storage.engine.last_write import LAST_WRITE_NAME
from storage.engine.losses import read_loss
from storage.engine.queries import stream_rows
from storage.engine.store_identity import PACKS_NAME
from storage.schema import relay_schema, schema
from storage.schema.schema import blocks, pack_blocks, packs
from storage.schema.tables import metadata

_BATCH: Final = 500
REFERENCES: Final[Sequence[tuple[Column[int], Column[int]]]] = (
    (schema.repos.c.epoch_num, schema.epochs.c.num),
    (schema.topics.c.branch_num, schema.branches.c.num),
    (schema.topics.c.epoch_num, schema.epochs.c.num),
    (schema.topic_inits.c.topic_num, schema.topics.c.num),
    (schema.topic_inits.c.commit_num, schema.commits.c.num),
    (schema.branches.c.repo_num, schema.repos.c.num),
    (schema.commits.c.branch_num, schema.branches.c.num),
    (schema.commits.c.topic_num, schema.topics.c.num),
    (schema.commits.c.epoch_num, schema.epochs.c.num),
    (schema.commits.c.place_num, schema.group_places.c.num),
    (schema.commits.c.author_num, schema.authors.c.num),
    (schema.heads.c.topic_num, schema.topics.c.num),
    (schema.heads.c.branch_num, schema.branches.c.num),
    (schema.checkpoints.c.commit_num, schema.commits.c.num),
    (schema.erasures.c.commit_num, schema.commits.c.num),
    (schema.damaged_commits.c.commit_num, schema.commits.c.num),
    (schema.feed_forks.c.branch_num, schema.branches.c.num),
    (schema.feed_forks.c.author_num, schema.authors.c.num),
    (schema.files.c.commit_num, schema.commits.c.num),
    (schema.file_removals.c.file_num, schema.files.c.num),
    (schema.file_removals.c.commit_num, schema.commits.c.num),
    (schema.spared_files.c.file_num, schema.files.c.num),
    (schema.awaited_adders.c.commit_num, schema.commits.c.num),
    (schema.late_removals.c.commit_num, schema.commits.c.num),
    (schema.pending.c.branch_num, schema.branches.c.num),
    (schema.pending.c.topic_num, schema.topics.c.num),
    (schema.pending_causes.c.pending_num, schema.pending.c.num),
    (schema.pending_publications.c.pending_num, schema.pending.c.num),
    (schema.rejections.c.branch_num, schema.branches.c.num),
    (schema.rejected_givers.c.branch_num, schema.branches.c.num),
    (schema.imports.c.branch_num, schema.branches.c.num),
    (schema.pack_blocks.c.pack_num, schema.packs.c.num),
    (relay_schema.relay_commits.c.topic_num, relay_schema.relay_topics.c.num),
    (relay_schema.relay_bare.c.commit_num, relay_schema.relay_commits.c.num),
    (relay_schema.relay_heads.c.topic_num, relay_schema.relay_topics.c.num),
    (relay_schema.relay_shares.c.topic_num, relay_schema.relay_topics.c.num),
    (relay_schema.relay_files.c.topic_num, relay_schema.relay_topics.c.num),
    (relay_schema.relay_file_blocks.c.file_num, relay_schema.relay_files.c.num),
    (relay_schema.relay_file_blocks.c.block_num, relay_schema.relay_blocks.c.num),
    (relay_schema.relay_account_nodes.c.account_num, relay_schema.relay_accounts.c.num),
    (relay_schema.relay_account_links.c.account_num, relay_schema.relay_accounts.c.num),
)
"""Columns that name a row of another table without the database seeing to it."""
ZERO_IS_NONE: Final = frozenset(
    {schema.repos.c.epoch_num, schema.commits.c.epoch_num, schema.commits.c.place_num}
)
"""Columns among them that name nothing with a zero; the others have no value then."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Problem found: a stable kind, what it is about, and what is wrong with it."""

    kind: str
    about: str
    detail: str


@dataclass(slots=True)
class Damage:
    """Damaged blocks that a row or a pack of this store still names."""

    rows: dict[int, int] = field(default_factory=dict)  # numbers of rows, with the keys of their ids
    packed: dict[int, BlockId] = field(default_factory=dict)  # numbers among the packed, with their ids
    sizes: dict[int, int | None] = field(
        default_factory=dict
    )  # packs of another size than is said; None: gone
    relayed: set[int] = field(default_factory=set)  # numbers of rows that are kept for others


@dataclass(slots=True)
class CheckFindings:
    """Findings of a check: numbers of problems by kind, the first problems in full, and how much was examined."""

    problems: list[Problem] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)
    checked: Counter[str] = field(default_factory=Counter)
    damage: Damage = field(default_factory=Damage)

    def add(self, kind: str, about: str, detail: str) -> None:
        """Add a problem."""
        self.kinds[kind] += 1
        if len(self.problems) < FSCK_PROBLEMS_SHOWN_MAX:
            self.problems.append(Problem(kind, about, detail))


def inspect_pages(connection: Connection, findings: CheckFindings) -> None:
    """Let SQLite check its pages, indexes and foreign keys; compare its schema with the one that Ravel makes.

    PostgreSQL's are the server's to check.
    """
    if connection.dialect.name != "sqlite":
        _inspect_declared(connection, findings)
        return
    try:
        for (line,) in connection.exec_driver_sql("PRAGMA integrity_check(100)"):
            if line != "ok":
                findings.add("database", DATABASE_NAME, str(line))
        for row in connection.exec_driver_sql("PRAGMA foreign_key_check"):
            findings.add("database", f"{row[0]} row {row[1]}", f"names a row of {row[2]} that is not there")
        for name, detail in find_altered(connection):
            findings.add("schema", name, detail)
    except DBAPIError as error:
        findings.add("database", DATABASE_NAME, str(error.orig))
    except StorageError as error:
        findings.add("database", DATABASE_NAME, str(error))


def _inspect_declared(connection: Connection, findings: CheckFindings) -> None:
    keys = [key for table in metadata.sorted_tables for key in table.foreign_keys]
    _find_dangling(connection, findings, "database", [(key.parent, key.column) for key in keys])


def inspect_losses(folder: Path, findings: CheckFindings) -> None:
    """Report what a start found to be lost, while peers have not been asked for it."""
    loss = read_loss(folder)
    if loss is not None and loss.is_damage:
        findings.add("log", LAST_WRITE_NAME, f"{loss.detail}; own feeds are uncertain until a peer was met")


def inspect_references(connection: Connection, findings: CheckFindings) -> None:
    """Report rows that another row names and that are not there. Costs O(rows)."""
    _find_dangling(connection, findings, "reference", REFERENCES)


def _find_dangling(
    connection: Connection,
    findings: CheckFindings,
    kind: str,
    references: Sequence[tuple[Column[Any], Column[Any]]],
) -> None:
    for column, target in references:
        targets = table(target.table.name, named_column("num")).alias()  # all columns would be copied
        is_there = select(targets.c.num).where(targets.c.num == column).exists()
        names_one = column != 0 if column in ZERO_IS_NONE else column.is_not(None)
        dangling = select(column).where(names_one, ~is_there).distinct().limit(_BATCH)
        for (num,) in connection.execute(dangling):
            findings.add(
                kind,
                f"{column.table.name}.{column.name}",
                f"names {target.table.name} {num}, which is not there",
            )


def inspect_erasures(connection: Connection, findings: CheckFindings) -> None:
    """Report commits without a body whose erasing is not noted, and the other way round."""
    erasures, commits = schema.erasures.c, schema.commits.c
    damaged = schema.damaged_commits.c.commit_num
    is_bare = func.length(commits.block_nums) <= BLOCK_NUM_SIZE
    is_noted = select(erasures.commit_num).where(erasures.commit_num == commits.num).exists()
    is_damaged_here = select(damaged).where(damaged == commits.num).exists()
    query = select(commits.commit_id, is_bare).where(is_bare != is_noted, ~is_damaged_here).limit(_BATCH)
    for commit_id, has_none in connection.execute(query):
        said = "has no body, and no erasing is noted" if has_none else "has a body, and is noted as erased"
        findings.add("erasure", commit_id.hex(), said)
    findings.checked["erased"] += connection.execute(
        select(func.count()).select_from(schema.erasures)
    ).scalar_one()


def inspect_damaged(connection: Connection, findings: CheckFindings) -> None:
    """Report what was damaged and taken out, and has not come back yet."""
    commits, damaged = schema.commits.c, schema.damaged_commits.c
    query = select(commits.commit_id).where(commits.num.in_(select(damaged.commit_num)))
    for (commit_id,) in stream_rows(connection, query, _BATCH):
        findings.add("damaged", commit_id.hex(), "its blocks were damaged, and are asked of peers")
    for (block_id,) in stream_rows(connection, select(schema.damaged_blocks.c.block_id), _BATCH):
        findings.add("damaged", block_id.hex(), "the block of a file was damaged, and is asked of peers")


def inspect_rows(connection: Connection, findings: CheckFindings) -> None:
    """Hash every block that is a row. Costs O(bytes)."""
    query = select(blocks.c.num, blocks.c.id_key, blocks.c.encoded).order_by(blocks.c.num)
    for num, key, encoded in stream_rows(connection, query, _BATCH):
        findings.checked["blocks"] += 1
        if id_key(hash_block(encoded)) != key:
            findings.add("block", f"row {num}", "its bytes are not what its id says")
            findings.damage.rows[num] = key
            continue
        try:
            decode_block(encoded)
        except DecodeError as error:
            findings.add("block", f"row {num}", str(error))
            findings.damage.rows[num] = key


def inspect_packs(connection: Connection, folder: Path, findings: CheckFindings) -> None:
    """Hash every block in packs; report packs that are gone or of another size. Costs O(bytes)."""
    for num, name, size in connection.execute(select(packs).order_by(packs.c.num)):
        findings.checked["packs"] += 1
        path = folder / PACKS_NAME / name
        try:
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            findings.add("pack", name, error.strerror or str(error))
            if isinstance(error, FileNotFoundError):  # what may not be read is not lost
                findings.damage.sizes[num] = None
            continue
        try:
            if os.fstat(handle).st_size != size:
                findings.add("pack", name, f"has {os.fstat(handle).st_size} bytes, and {size} were written")
                findings.damage.sizes[num] = os.fstat(handle).st_size
            _inspect_pack(connection, num, name, handle, findings)
        finally:
            os.close(handle)


def _inspect_pack(
    connection: Connection, pack_num: int, name: str, handle: int, findings: CheckFindings
) -> None:
    query = (
        select(
            pack_blocks.c.num,
            pack_blocks.c.block_id,
            pack_blocks.c.id_key,
            pack_blocks.c.offset,
            pack_blocks.c.size,
        )
        .where(pack_blocks.c.pack_num == pack_num)
        .order_by(pack_blocks.c.offset)
    )
    for num, wanted, key, offset, size in stream_rows(connection, query, _BATCH):
        findings.checked["blocks"] += 1
        try:
            encoded = os.pread(handle, size, offset)
        except OSError as error:
            findings.add("block", wanted.hex(), f"at {offset} of pack {name}: {error.strerror}")
            findings.damage.packed[num] = wanted
            continue
        if hash_block(encoded) != wanted or id_key(wanted) != key:
            findings.damage.packed[num] = wanted
            findings.add(
                "block", wanted.hex(), f"at {offset} of pack {name}: its bytes are not what its id says"
            )


def count_unnamed_packs(connection: Connection, folder: Path) -> int:
    """Count pack files that no row names: what an interrupted add left, or what lost rows named. Without marked ones."""
    named = set(connection.execute(select(packs.c.name)).scalars())
    try:
        there = {path.name for path in (folder / PACKS_NAME).iterdir()}
        return sum(
            not name.endswith(MARK_SUFFIX) and f"{name}{MARK_SUFFIX}" not in there for name in there - named
        )
    except FileNotFoundError:
        return 0


def name_server(connection: Connection) -> str:
    """Return the name and version of the database."""
    version = ".".join(map(str, connection.dialect.server_version_info or ()))
    return f"{connection.dialect.name} {version}"


def count_rows(connection: Connection) -> dict[str, int]:
    """Count the rows of each table."""
    return {
        table.name: int(connection.execute(select(func.count()).select_from(table)).scalar_one())
        for table in metadata.sorted_tables
    }
