"""Subprocess that writes one export: reads a JSON request, then writes an answer or an error.

A process of its own, beside the daemon: it neither takes the interpreter from who writes nor leaves Arrow and drivers of
object stores (a third of a daemon's memory) behind, and can be ended at any moment, with whatever hangs in it. It reads
the store by a connection of its own, and holds a lock, so that one which outlives its daemon is not met by another.

The request is a line of JSON on standard input, for it may hold keys and credentials.
"""

import fcntl
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa
from sqlalchemy import Connection

from node.exports.export_headers import open_headers
from node.exports.export_rights import open_rights
from node.home.home import hold_content
from node.ingest.replica import load_blocks_of, open_stored_commit
from node.ingest.stored_commits import UNREADABLE
from node.ingest.tables import Tables, load_tables
from node.runtime.errors import ServiceError
from protocol.crypto.keys import HashKey, StoreKey
from protocol.formats.body import Body, UnknownBody
from protocol.formats.content import Imported
from protocol.limits.users import EXPORT_SECONDS_MAX
from ravel.exports.schema import BODIES
from storage.commits.commits import TimelineRow, iterate_between, load_numbered
from storage.engine.database import StorageError, read_store
from storage.engine.folders import open_or_create
from storage.export.destinations import open_destination, remove_scratch
from storage.export.export import ExportPlan, ExportSummary, export_store
from storage.export.manifest import Quotas
from storage.export.parts import BODIES_PER_GROUP, ExportRow, batch_rows
from storage.export.space_accounting import count_holdings

LOCK_NAME: Final = "export.lock"
SCRATCH_NAME: Final = ".export-scratch"
"""In the node's folder, of who holds the lock: parts that are written for other machines, bodies in the clear among them."""
_NICENESS: Final = 10
"""Writers of the store go first."""
_PATIENCE_SECONDS: Final = 30.0
"""How long one waits for an export of an earlier daemon that was killed: long enough for what is new in minutes."""
_LOOK_SECONDS: Final = 0.1


_Opened = tuple[TimelineRow, Body | UnknownBody, bytes]
"""Commit with its decoded and its encoded body."""


class ExportRequest(msgspec.Struct, frozen=True):
    """Order of an export: its store and its destination."""

    home: str
    destination: str
    options: dict[str, Any]
    node: str
    created_at: int  # unix seconds
    keep_seconds: int
    parts_max: int
    has_bodies: bool
    has_blocks: bool
    pseudonym_key: str  # hex; empty: authors stand for themselves
    storage_url: str  # empty: rows are in a file of the folder
    store_key: str  # hex; opens root branches, and bodies where they are asked for
    quotas: Quotas | None
    delta: bool = False


class ExportAnswer(msgspec.Struct, frozen=True):
    """Result of an export: a summary, or an error for people."""

    summary: ExportSummary | None = None
    error: str = ""


def write_export(request: ExportRequest, patience: float = _PATIENCE_SECONDS) -> ExportSummary:
    """Do what is asked for, after at most `patience` seconds of waiting for another. Raises StorageError."""
    home = Path(request.home)
    with _alone(home, patience), _hold_content(home):
        remove_scratch(home / SCRATCH_NAME)  # of one that was killed, wherever this one goes
        plan = ExportPlan(
            node=request.node,
            created_at=request.created_at,
            keep_seconds=request.keep_seconds,
            parts_max=request.parts_max,
            pseudonym_key=HashKey(bytes.fromhex(request.pseudonym_key)) or None,
            bodies=_open_bodies if request.has_bodies else None,
            headers=open_headers,
            source_authors=_open_source_authors,
            blocks=request.has_blocks,
            rights=open_rights,
            holdings=partial(count_holdings, folder=home),
            quotas=request.quotas,
            delta=request.delta,
        )
        store_key = StoreKey(bytes.fromhex(request.store_key)) or None
        destination = open_destination(request.destination, request.options, home / SCRATCH_NAME)
        return export_store(partial(read_store, home, store_key, request.storage_url), destination, plan)


@contextmanager
def _hold_content(home: Path) -> Iterator[None]:
    try:
        with hold_content(home, alone=False):
            yield
    except ServiceError as error:
        raise StorageError(str(error)) from error


@contextmanager
def _alone(home: Path, patience: float) -> Iterator[None]:
    try:
        handle = open_or_create(home / LOCK_NAME, os.O_RDWR)
    except OSError as error:
        raise StorageError(f"{home} cannot be used: {error}") from error
    try:
        until = time.monotonic() + patience
        while not _try_lock(handle):
            if time.monotonic() >= until:
                raise StorageError("an export of an earlier daemon is still being written")
            time.sleep(_LOOK_SECONDS)  # a process of its own: nothing else waits for it
        yield
    finally:
        os.close(handle)


def _try_lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _open_bodies(connection: Connection, first: int, last: int) -> Iterator[pa.RecordBatch]:
    """Load readable bodies of the commits of these numbers, but for root branches: these say secrets and rights."""
    tables = load_tables(connection)
    rows: list[TimelineRow] = []
    for row in iterate_between(connection, first, last):
        if not (row.is_erased or tables.branches[row.branch_num].facts.is_root_branch):
            rows.append(row)
        if len(rows) == BODIES_PER_GROUP:
            yield from batch_rows(BODIES, _body_rows(connection, tables, rows))
            rows = []
    if rows:
        yield from batch_rows(BODIES, _body_rows(connection, tables, rows))


def _open_source_authors(connection: Connection, nums: Sequence[int]) -> dict[int, str]:
    """Load the authors' names of those imported commits that can be read and name one."""
    tables = load_tables(connection)
    names: dict[int, str] = {}
    for start in range(0, len(nums), BODIES_PER_GROUP):
        rows = load_numbered(connection, nums[start : start + BODIES_PER_GROUP])
        for row, body, _ in _open_rows(connection, tables, [row for row in rows if not row.is_erased]):
            if isinstance(body, Imported) and body.author:
                names[row.num] = body.author
    return names


def _body_rows(connection: Connection, tables: Tables, rows: list[TimelineRow]) -> list[ExportRow]:
    return [
        (row.num, row.commit_id, row.body_kind, row.document, encoded)
        for row, _, encoded in _open_rows(connection, tables, rows)
    ]


def _open_rows(connection: Connection, tables: Tables, rows: list[TimelineRow]) -> list[_Opened]:
    """Yield the commits that can be read. Damage is found one by one."""
    try:
        blocks = load_blocks_of(connection, rows)
        return [
            (row, body, encoded)
            for row in rows
            for _, body, encoded in [open_stored_commit(tables, row, blocks[row.num])]
            if encoded
        ]
    except UNREADABLE:  # `ravel fsck` names it; nobody misses an export for it
        if len(rows) == 1:
            return []
    return [found for row in rows for found in _open_rows(connection, tables, [row])]


def _give_way() -> None:
    """Let other processes compute first.

    Linux may share the processor out by sessions before it looks at niceness (sched(7), autogroups), and the daemon starts
    this process in a session of its own: so that gives way as a whole.
    """
    os.nice(_NICENESS)
    if os.getsid(0) == os.getpid():
        with suppress(OSError):  # no Linux, or none that does so
            Path("/proc/self/autogroup").write_text(f"{_NICENESS}\n", encoding="ascii")


def main() -> None:
    """Answer the one request."""
    _give_way()
    signal.alarm(EXPORT_SECONDS_MAX)  # its daemon sees to that, unless it was killed
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=ExportRequest)
    try:
        answer = ExportAnswer(write_export(request))
    except StorageError as error:
        answer = ExportAnswer(error=str(error))
    sys.stdout.buffer.write(msgspec.json.encode(answer))


if __name__ == "__main__":
    main()
