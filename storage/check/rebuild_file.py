"""Rebuilds a damaged SQLite file: copies every row that can still be read into a new file.

Rows are read by their numbers, around pages that are not what they were; indexes are made anew. What an index still says
of a row that is gone is used too: commits, authors and topics keep their places, and a commit's blocks are asked of peers.
What the file's first bytes and its schema say is the same in every store, and is put right in a copy before it is read.
"""

import os
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from sqlalchemy import URL, Connection, Table, create_engine
from sqlalchemy.exc import DBAPIError

from protocol.codec import DecodeError
from protocol.crypto.hashing import store_mark
from protocol.crypto.keys import StoreKey
from protocol.formats.block import decode_block
from protocol.ids import CommitId
from storage.check.check_integrity import REFERENCES, ZERO_IS_NONE, CheckFindings, inspect_pages
from storage.check.schema_check import fresh_schema, migrated_schema, normalise
from storage.engine.bulk import UNREADABLE
from storage.engine.errors import LostStore, StorageError
from storage.engine.folders import make_folder, move_file, open_new, sync_file, sync_folder
from storage.engine.id_keys import PackedIds, id_key, id_keys, pack_ids, pack_nums
from storage.engine.last_write import read_last_write
from storage.engine.losses import Loss, copy_to_quarantine, note_loss
from storage.engine.revisions import create, is_revision, newest_revision
from storage.engine.sqlite import DATABASE_NAME, SqliteBackend
from storage.schema.schema import (
    authors,
    blocks,
    branches,
    commits,
    epochs,
    pack_blocks,
    repos,
    store_seal,
    topics,
)
from storage.schema.tables import metadata

_ROWID_MIN: Final = -(2**63)
_ROWID_MAX: Final = 1 << 62
_BATCH: Final = 500
_PAGE_SIZE: Final = 4096
_MAGIC: Final = b"SQLite format 3\0"
_OWN: Final = (repos, epochs, branches, topics, authors, commits)
"""Tables without rows of which nobody can tell what the user has written."""
_FORGET_PLACES: Final = """
    UPDATE commits SET place_num = 0 WHERE place_num <> 0 AND place_num NOT IN (SELECT num FROM group_places)
"""
"""Statement that forgets lost places in the group tangle: commits say them again, once they are opened."""
_DROP_UNOPENED: Final = """
    DELETE FROM repos WHERE num IN (
        SELECT repo_num FROM branches JOIN commits ON commits.branch_num = branches.num
        WHERE epoch_num <> 0 AND epoch_num NOT IN (SELECT num FROM epochs)
        UNION
        SELECT repo_num FROM branches JOIN commits ON commits.branch_num = branches.num
        JOIN topic_inits ON topic_inits.commit_num = commits.num
        WHERE topic_inits.topic_num NOT IN (SELECT topic_num FROM epochs)
    )
"""
"""Repos of which an epoch's key is gone: written in it, or started by a commit that is here. They can be joined again."""
_DROP_NAMELESS: Final = """
    DELETE FROM topics WHERE branch_num IS NULL AND num NOT IN (
        SELECT topic_num FROM epochs UNION SELECT writers_topic_num FROM epochs WHERE writers_topic_num IS NOT NULL
    )
"""
"""Statement that deletes the topics of deleted epochs."""
_NOT_HERE: Final = 0
"""Number of a commit's body that is not here: no row has this one."""
Row = tuple[Any, ...]


@dataclass(slots=True)
class RebuildResult:
    """Result of a rebuild."""

    rows: int = 0
    recalled: Counter[str] = field(default_factory=Counter)
    """Rows that indexes told of, by table."""
    gaps: Counter[str] = field(default_factory=Counter)
    """Places at which rows could not be read, by table; how many rows stood there, nothing tells."""
    dropped: int = 0
    """Rows that were nothing without others that are gone."""
    kept: Path | None = None
    """The damaged file, and its log."""


def find_damage(folder: Path) -> CheckFindings:
    """Find what is wrong with pages and schema of a folder's store, which need not open. Raises StorageError."""
    findings = CheckFindings()
    backend = SqliteBackend(folder)
    if not backend.exists() or not (folder / DATABASE_NAME).stat().st_size:
        return findings
    engine = backend.make_reader(1)
    try:
        with engine.connect() as connection:
            backend.check_has_rows(connection)
            if _is_newest(connection):
                inspect_pages(connection, findings)
    except LostStore:  # of which nothing can be rebuilt
        raise
    except (*UNREADABLE, DBAPIError, StorageError) as error:
        findings.add("database", DATABASE_NAME, str(error))
    finally:
        engine.dispose()
    return findings


def _is_newest(connection: Connection) -> bool:
    """Return True if the store has this Ravel's schema, as far as it still says so."""
    with suppress(DBAPIError, StorageError):
        found = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
        return not isinstance(found, str) or found == newest_revision() or not is_revision(found)
    return True


def rebuild_store(folder: Path, store_key: StoreKey | None) -> RebuildResult:
    """Replace a folder's damaged database by a rebuilt one; a copy stays in quarantine. Costs O(file).

    Where commits may be gone, the own feeds become uncertain. Raises StorageError.
    """
    path = folder / DATABASE_NAME
    log = path.with_name(f"{path.name}-wal")
    files = [one for one in (path, log) if one.exists()]
    draft = folder / "rebuilt.part"
    try:
        kept = copy_to_quarantine(folder, "damaged", files)
        with suppress(*UNREADABLE), closing(sqlite3.connect(path)) as connection:
            connection.execute(
                "PRAGMA wal_checkpoint(TRUNCATE)"
            )  # where it goes, the log is not needed any more
        files = [one for one in files if one.exists()]
        shutil.rmtree(draft, ignore_errors=True)
        make_folder(draft)
        for one in files:
            shutil.copyfile(one, draft / one.name.replace(path.stem, "damaged", 1))
        found = rebuild(
            draft / f"damaged{path.suffix}", draft / path.name, store_key, read_last_write(folder)
        )
        found.kept = kept
        if any(found.gaps[table.name] for table in _OWN):
            note_loss(folder, Loss(None, None, kept=str(kept)))
        # The old one's log must not be taken for the new one's.
        for left in (log, path.with_name(f"{path.name}-shm")):
            left.unlink(missing_ok=True)
        sync_folder(folder)
        move_file(draft / path.name, path)
        shutil.rmtree(draft)
    except (*UNREADABLE, DBAPIError, OSError) as error:
        raise StorageError(f"{path} could not be rebuilt, and was left as it is: {error}") from error
    return found


def rebuild(damaged: Path, path: Path, store_key: StoreKey | None, count: int | None) -> RebuildResult:
    """Write what can be read of a damaged database, which is changed meanwhile, to a new one.

    `count` is how many writes it is to count (`last_write`), if that is known. Raises OSError, sqlite3.Error, DBAPIError.
    """
    _mend_header(damaged)
    _mend_schema(damaged)
    os.close(open_new(path))
    engine = create_engine(URL.create("sqlite", database=str(path)))
    with engine.begin() as connection:
        create(connection, newest_revision())
    engine.dispose()
    found = RebuildResult()
    with closing(_open(damaged)) as old, closing(sqlite3.connect(path, isolation_level=None)) as new:
        new.execute("PRAGMA journal_mode=OFF")  # what is cut short is thrown away
        new.execute("PRAGMA synchronous=OFF")
        new.execute("BEGIN")
        for table in metadata.sorted_tables:
            _copy_rows(old, new, table, found)
        for rebuild_rows, table in (
            (_rebuild_authors, authors),
            (_rebuild_topics, topics),
            (_rebuild_commits, commits),
        ):
            rows = list(rebuild_rows(old, new))
            found.recalled[table.name] += _insert(new, table, [*table.columns.keys()], rows)
        new.execute(_FORGET_PLACES)
        found.dropped += new.execute(_DROP_UNOPENED).rowcount + _drop_orphans(new)
        if store_key is not None:  # without the mark what is sealed would be sealed again
            _insert(new, store_seal, ["num", "mark", "is_clean"], [(1, store_mark(store_key), True)])
        here = 0
        with suppress(*UNREADABLE):
            (here,) = old.execute("PRAGMA user_version").fetchone()
        wanted = here if count is None else count
        new.execute(f"PRAGMA user_version = {wanted - (1 << 32) if wanted >= 1 << 31 else wanted}")
        new.execute("COMMIT")
    sync_file(path)
    return found


def _drop_orphans(new: sqlite3.Connection) -> int:
    """Delete rows of repos, branches and topics that are gone; return how many."""
    declared = [(key.parent, key.column) for table in metadata.sorted_tables for key in table.foreign_keys]
    named = [(column, target) for column, target in REFERENCES if column.table.name != pack_blocks.name]
    count, more = 0, -1
    while more:
        more = new.execute(_DROP_NAMELESS).rowcount
        for column, target in [*declared, *named]:
            none = f'"{column.name}" <> 0' if column in ZERO_IS_NONE else f'"{column.name}" IS NOT NULL'
            more += new.execute(
                f'DELETE FROM "{column.table.name}" WHERE {none}'  # noqa: S608  # names of ours
                f' AND "{column.name}" NOT IN (SELECT "{target.name}" FROM "{target.table.name}")'
            ).rowcount
        count += more
    return count


def _open(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA writable_schema = ON")  # what of the schema is damaged hides nothing else
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    return connection


def _mend_header(path: Path) -> None:
    """Put the first 100 bytes right, in which nothing differs from store to store that cannot be told from the file."""
    with path.open("r+b") as file:
        page = bytearray(file.read(_PAGE_SIZE))
        if len(page) < _PAGE_SIZE:
            return
        page[:16] = _MAGIC
        page[16:24] = _PAGE_SIZE.to_bytes(2) + bytes(
            [page[18] if page[18] == 1 else 2, page[19] if page[19] == 1 else 2, 0, 64, 32, 32]
        )
        page[28:32] = (path.stat().st_size // _PAGE_SIZE).to_bytes(4)
        page[32:40] = bytes(8)  # no free pages are needed in what is only read
        page[44:48] = (4).to_bytes(4)
        page[52:60] = bytes(4) + (1).to_bytes(4)  # no vacuum by steps; UTF-8
        page[64:68] = bytes(4)
        page[92:96] = page[24:28]  # so that the number of pages counts
        file.seek(0)
        file.write(page)


def _mend_schema(path: Path) -> None:
    """Put statements right that are not of ours, by the names beside them, or by what they resemble most."""
    entries = {entry.name: entry for entry in fresh_schema()}
    known = {entry.statement for entry in fresh_schema() | migrated_schema()}
    with closing(_open(path)) as connection, suppress(*UNREADABLE):
        connection.execute("PRAGMA journal_mode = DELETE")
        rows = connection.execute("SELECT rowid, name, sql FROM sqlite_master").fetchall()
        taken = {name for _, name, _ in rows}
        for rowid, name, statement in rows:
            if statement is None or normalise(str(statement)) in known:
                continue
            if name not in entries:
                near = get_close_matches(str(name), sorted(entries.keys() - taken), 1)
                if not near:
                    continue
                name = near[0]
            entry = entries[name]
            connection.execute(
                "UPDATE sqlite_master SET type = ?, name = ?, tbl_name = ?, sql = ? WHERE rowid = ?",
                (entry.kind, entry.name, entry.table, entry.statement, rowid),
            )


def _copy_rows(old: sqlite3.Connection, new: sqlite3.Connection, table: Table, found: RebuildResult) -> None:
    columns = [*table.columns.keys()]
    part: list[Row] = []
    for row in _read_around(old, table, columns, found):
        part.append(row)
        if len(part) == _BATCH:
            found.rows += _insert(new, table, columns, part)
            part = []
    found.rows += _insert(new, table, columns, part)


def _read_around(
    old: sqlite3.Connection, table: Table, columns: Sequence[str], found: RebuildResult
) -> Iterator[Row]:
    """Yield rows in order of their numbers; skip those that cannot be read."""
    if not table.dialect_options["sqlite"]["with_rowid"]:
        return  # made again from others
    listed = ", ".join(f'"{name}"' for name in columns)
    query = (
        f'SELECT rowid, {listed} FROM "{table.name}" NOT INDEXED'  # noqa: S608  # names of ours
        " WHERE rowid >= ? ORDER BY rowid"
    )
    start = _ROWID_MIN
    while True:
        last = start
        try:
            for row in old.execute(query, (start,)):
                last = row[0]
                yield row[1:]
        except UNREADABLE:
            found.gaps[table.name] += 1
        else:
            return
        following = _find_readable(old, query, max(last + 1, 0))
        if following is None:
            return
        start = following


def _find_readable(old: sqlite3.Connection, query: str, base: int) -> int | None:
    """Find the first number from `base` on, or near it, from which rows can be read; None if there is none."""

    def is_readable(start: int) -> bool:
        try:
            old.execute(f"{query} LIMIT 1", (start,)).fetchone()
        except UNREADABLE:
            return False
        return True

    step = 1
    while not is_readable(base + step - 1):
        step *= 2
        if base + step > _ROWID_MAX:
            return None
    low, high = base + step // 2, base + step - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if is_readable(middle) else (middle + 1, high)
    return high


def _insert(new: sqlite3.Connection, table: Table, columns: Sequence[str], rows: Sequence[Row]) -> int:
    """Insert those that the table takes, one of each key; return how many."""
    listed, marks = ", ".join(f'"{name}"' for name in columns), ", ".join("?" * len(columns))
    statement = f'INSERT OR IGNORE INTO "{table.name}" ({listed}) VALUES ({marks})'  # noqa: S608  # names of ours
    count = 0
    for row in rows:
        with suppress(*UNREADABLE):
            count += new.execute(statement, row).rowcount
    return count


def _read_index(old: sqlite3.Connection, table: Table, index: str, columns: str) -> Iterator[Row]:
    """Yield what an index alone says of rows: from both of its ends, as far as it can be read."""
    for order in ("ASC", "DESC"):
        ordered = ", ".join(f"{name} {order}" for name in columns.split(", "))
        query = f'SELECT {columns} FROM "{table.name}" INDEXED BY {index} ORDER BY {ordered}'  # noqa: S608  # names of ours
        try:
            yield from old.execute(query)
        except UNREADABLE:
            continue
        return


def _rebuild_authors(old: sqlite3.Connection, new: sqlite3.Connection) -> Iterator[Row]:
    here = _numbers(new, authors)
    for user, num in _read_index(old, authors, "sqlite_autoindex_authors_1", "user, num"):
        if num not in here:
            yield num, user


def _rebuild_topics(old: sqlite3.Connection, new: sqlite3.Connection) -> Iterator[Row]:
    """Yield topics of epochs, and of branches in them; of one that a link gave alone, the link is gone."""
    here = _numbers(new, topics)
    names = {num: topic for topic, num in _read_index(old, topics, "sqlite_autoindex_topics_1", "topic, num")}
    places = {
        num: (branch_num, epoch_num)
        for branch_num, epoch_num, num in _read_index(
            old, topics, "topics_branch", "branch_num, epoch_num, num"
        )
    }
    for num in sorted((names.keys() & places.keys()) - here):
        branch_num, epoch_num = places[num]
        if branch_num is None or epoch_num is not None:
            yield num, names[num], 0, branch_num, epoch_num, None  # as `topics` has its columns


def _rebuild_commits(old: sqlite3.Connection, new: sqlite3.Connection) -> Iterator[Row]:
    """Yield places of commits, and what their own blocks say in the clear; the rest comes with publications."""
    here = _numbers(new, commits)

    def read(index: str, columns: str) -> dict[int, dict[str, Any]]:
        names = columns.split(", ")
        rows = (dict(zip(names, row, strict=True)) for row in _read_index(old, commits, index, columns))
        return {row["num"]: row for row in rows if row["num"] not in here}

    order = read("commits_order", "branch_num, passed, rank, commit_id, is_void, num")
    feeds = read("commits_feed", "branch_num, author_num, feed_sequence, num")
    arrivals = read("commits_arrival", "topic_num, num")
    places = read("commits_branch", "branch_num, num, epoch_num, place_num")
    times = read("commits_display", "branch_num, passed, display_time, num")
    lost = sorted(order.keys() & feeds.keys() & arrivals.keys() & places.keys())
    own = _find_own_blocks(new, [order[num]["commit_id"] for num in lost])
    for num in lost:
        commit_id = order[num]["commit_id"]
        if commit_id not in own:
            continue  # nothing of its place can be told; it comes anew
        block_num, acks = own[commit_id]
        time = times[num]["display_time"] if num in times else 0
        values = {
            **order[num],
            **feeds[num],
            **arrivals[num],
            **places[num],
            "id_key": id_key(commit_id),
            "acks": acks,
            "feed_link": b"",
            "commit_key": b"",
            "signature": b"",
            "block_nums": pack_nums([block_num, _NOT_HERE]),
            "body_kind": "",
            "size": 0,
            "timestamp": time,
            "received_at": time,
            "display_time": time,
            "arrived_at": None,
            "arrival": None,
            "relation": None,
            "about": None,
            "document": "",
            "is_proven": False,
        }
        yield tuple(values[name] for name in list(commits.columns.keys()))


def _find_own_blocks(
    new: sqlite3.Connection, ids: Sequence[CommitId]
) -> dict[CommitId, tuple[int, PackedIds]]:
    """Find row number and acks of the own blocks of commits whose rows are gone, which named them. Costs O(blocks)."""
    wanted = set(ids)
    keys = set(id_keys(wanted))
    found: dict[CommitId, tuple[int, PackedIds]] = {}
    if not wanted:
        return found
    rows = new.execute(f"SELECT num, id_key FROM {blocks.name}")  # noqa: S608  # a name of ours
    query = f"SELECT encoded FROM {blocks.name} WHERE num = ?"  # noqa: S608  # a name of ours
    for num in [num for num, key in rows if key in keys]:  # no index has those of commits
        with suppress(DecodeError):
            block = decode_block(new.execute(query, (num,)).fetchone()[0])
            if block.block_id in wanted:
                found[CommitId(block.block_id)] = num, pack_ids(block.acks)
    return found


def _numbers(new: sqlite3.Connection, table: Table) -> set[int]:
    return {num for (num,) in new.execute(f"SELECT num FROM {table.name}")}  # noqa: S608  # a name of ours
