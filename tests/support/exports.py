"""Exports from short descriptions: real Parquet files with a real manifest, and whatever lies in them that a test wants.

    write_export(folder, [Row("a"), Row("b", acks=("a",))])

Ids are hashes of names, so that a test can speak of names. A row's rank and position are what a sound export would
state, unless given (positions leave voids and checkpoints out of account).
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from blake3 import blake3

from ravel.exports.schema import (
    COMMITS,
    EXPORT_FORMAT,
    MANIFEST_NAME,
    SCHEMA_VERSION,
    TABLES,
    TIME_END,
    VOIDS,
)
from storage.engine.database import Database
from storage.export.destinations import LocalFolder
from storage.export.export import ExportPlan, ExportSummary, export_store

_NO_MORE: Final[Mapping[str, Sequence[Mapping[str, object]]]] = MappingProxyType({})
DAY_MS: Final = 86_400_000
T0_MS: Final = 1_700_000_000_000 - 1_700_000_000_000 % DAY_MS


def id_of(name: str) -> bytes:
    """The id that a name stands for."""
    return sha256(name.encode()).digest()


@dataclass(frozen=True, slots=True)
class Row:
    """One commit of an export."""

    name: str
    acks: tuple[str, ...] = ()
    branch: str = "main"
    author: str = "ada"
    time: int = T0_MS
    size: int = 100
    rank: int | None = None
    kind: str = "post"
    received: int | None = None  # when it was written, by default
    arrived: int | None = None  # of what waited for causes
    position: int | None = None
    feed: int = 1
    repo: str = "repo"
    source: str | None = None  # the author where an imported commit came from
    called: str | None = None  # the branch's name, if that is not `branch`
    is_repo_named: bool = True  # whether the export tells the repo's name
    arrival: int | None = None  # its turn to come, if not its own number
    file_bytes: int = 0  # of one file


@dataclass(frozen=True, slots=True)
class RelayedCommit:
    """One commit that a relay took, of a topic."""

    name: str
    acks: tuple[str, ...] = ()
    topic: str = "t"
    blocks: int = 2
    size: int = 300
    received: int = T0_MS


def write_export(
    folder: Path,
    *parts: Sequence[Row],
    node: str = "node",
    voids: Sequence[str] = (),
    pseudonyms: str = "",
    tables: Mapping[str, Sequence[Mapping[str, object]]] = _NO_MORE,
    quotas: Mapping[str, int] | None = None,
    blocks_from: int | None = None,
) -> Path:
    """Write an export of these parts; gives its folder. `voids` are names of commits, `tables` rows of further tables.

    With `blocks_from` it says that it has blocks, of all that was relayed after this number.
    """
    (folder / "commits").mkdir(parents=True)
    ranks: dict[tuple[str, str], int] = {}
    shown = shown_times(row for rows in parts for row in rows)
    listed: list[dict[str, Any]] = []
    sequence = 0
    for number, rows in enumerate(parts, 1):
        columns = [
            _values(row, sequence + index, ranks, shown[row.branch, row.name])
            for index, row in enumerate(rows, 1)
        ]
        sequence += len(rows)
        for values in columns:
            values["position_at"] = sequence
        _place(rows, columns, ranks)
        table = pa.Table.from_pylist(columns, schema=COMMITS)
        path = folder / "commits" / f"part-{number:08d}.parquet"
        pq.write_table(table, path)
        listed.append(listing(path, len(rows)))
    void = []
    if voids:
        (folder / "voids").mkdir()
        path = folder / "voids" / "part-00000001.parquet"
        pq.write_table(pa.table({"commit_id": [id_of(name) for name in voids]}, schema=VOIDS), path)
        void = [listing(path, len(voids))]
    more = {name: _write_table(folder, name, rows) for name, rows in tables.items()}
    manifest = {
        "format": EXPORT_FORMAT,
        "schema_version": SCHEMA_VERSION,
        "node": node,
        "created_at": T0_MS // 1000,
        "watermark": sequence,
        "pseudonyms": pseudonyms,
        "has_blocks": blocks_from is not None,
        "relay_blocks_from": blocks_from or 0,
        "quotas": quotas,
        "tables": {"commits": listed, "voids": void, **more},
    }
    (folder / MANIFEST_NAME).write_text(json.dumps(manifest), encoding="utf-8")
    return folder


def export_node(database: Database, folder: Path, node: str, created_at: int, **plan: Any) -> ExportSummary:  # noqa: ANN401  # fields of ExportPlan
    """Export a store into a folder, in the name of a node, as its daemon would."""
    return export_store(database.read, LocalFolder(folder), replace(ExportPlan(node, created_at), **plan))


def change_manifest(folder: Path, **changes: Any) -> None:  # noqa: ANN401  # JSON of any kind
    """Put other values in a manifest, as somebody would who alters an export: the checksum goes."""
    path = folder / MANIFEST_NAME
    manifest = json.loads(path.read_bytes()) | changes
    manifest.pop("checksum", None)
    path.write_text(json.dumps(manifest), encoding="utf-8")


def change_rows(folder: Path, table: str, change: Callable[[list[dict[str, Any]]], object]) -> None:
    """Change the rows of a table in place, and have the manifest say that they were always so."""
    manifest = json.loads((folder / MANIFEST_NAME).read_bytes())
    (part,) = manifest["tables"][table]
    path = folder / part["path"]
    rows = pq.read_table(path).to_pylist()
    change(rows)
    pq.write_table(pa.Table.from_pylist(rows, schema=TABLES[table]), path)
    change_manifest(folder, tables=manifest["tables"] | {table: [listing(path, len(rows))]})


def relayed(*rows: RelayedCommit) -> list[dict[str, object]]:
    """Rows of `relay_commits`."""
    return [
        {
            "sequence": sequence,
            "topic": id_of(row.topic),
            "commit_id": id_of(row.name),
            "acks": [id_of(ack) for ack in row.acks],
            "blocks": row.blocks,
            "size": row.size,
            "received_at": row.received,
        }
        for sequence, row in enumerate(rows, 1)
    ]


def stated_places(*places: tuple[str, str, str, tuple[str, ...]]) -> list[dict[str, object]]:
    """Rows of `tangles`: kind, root, commit and what this follows there."""
    return [
        {
            "sequence": sequence,
            "commit_id": id_of(name),
            "kind": kind,
            "root": id_of(root),
            "previous": [id_of(one) for one in previous],
        }
        for sequence, (kind, root, name, previous) in enumerate(places, 1)
    ]


def _write_table(folder: Path, name: str, rows: Sequence[Mapping[str, object]]) -> list[dict[str, Any]]:
    (folder / name).mkdir()
    path = folder / name / "part-00000001.parquet"
    pq.write_table(pa.Table.from_pylist([dict(row) for row in rows], schema=TABLES[name]), path)
    return [listing(path, len(rows))]


def listing(path: Path, rows: int) -> dict[str, Any]:
    """A manifest's entry for a part."""
    content = path.read_bytes()
    return {
        "path": f"{path.parent.name}/{path.name}",
        "rows": rows,
        "bytes": len(content),
        "blake3": blake3(content).hexdigest(),
    }


def naive_order(rows: Iterable[Row]) -> dict[str, list[str]]:
    """Names of each branch in order, by the definition and nothing clever."""
    branches: dict[str, dict[str, Row]] = {}
    for row in rows:
        branches.setdefault(row.branch, {})[row.name] = row
    orders = {}
    for branch, named in branches.items():
        ranks: dict[str, int] = {}
        while len(ranks) < len(named):
            for name, row in named.items():
                if name not in ranks and all(ack in ranks for ack in row.acks):
                    ranks[name] = 1 + max((ranks[ack] for ack in row.acks), default=-1)
        orders[branch] = sorted(ranks, key=lambda name: (ranks[name], id_of(name)))
    return orders


def received_of(row: Row) -> int:
    """When a row says that its commit was accepted."""
    if row.received is not None:
        return row.received
    return row.time if T0_MS <= row.time < TIME_END else T0_MS


def shown_times(rows: Iterable[Row]) -> dict[tuple[str, str], int]:
    """Return the time at which a node shows each commit, by branch and name. Later rows are no causes yet."""
    shown: dict[tuple[str, str], int] = {}
    for row in rows:
        causes = [shown[row.branch, ack] for ack in row.acks if (row.branch, ack) in shown]
        shown[row.branch, row.name] = max([min(row.time, received_of(row)), *causes])
    return shown


def _values(row: Row, sequence: int, ranks: dict[tuple[str, str], int], shown: int) -> dict[str, Any]:
    sound = 1 + max((ranks.get((row.branch, ack), -1) for ack in row.acks), default=-1)
    ranks[row.branch, row.name] = sound
    return {
        "sequence": sequence,
        "commit_id": id_of(row.name),
        "topic": id_of("topic of " + row.branch),
        "repo_id": id_of(row.repo),
        "branch_id": id_of(row.branch),
        "repo_name": row.repo if row.is_repo_named else None,
        "branch_name": row.called or row.branch,
        "author": id_of(row.author),
        "source_author": None if row.source is None else id_of(row.source),
        "acks": [id_of(ack) for ack in row.acks],
        "rank": sound if row.rank is None else row.rank,
        "position": row.position,
        "body_kind": row.kind,
        "size": row.size,
        "time": row.time,
        "received_at": received_of(row),
        "shown_at": shown,
        "arrived_at": row.arrived,
        "arrival": sequence if row.arrival is None else row.arrival,
        "feed_sequence": row.feed,
        "blocks": 2,
        "files": int(row.file_bytes > 0),
        "file_bytes": row.file_bytes,
    }


def _place(rows: Sequence[Row], columns: Sequence[dict[str, Any]], ranks: dict[tuple[str, str], int]) -> None:
    """State the positions that rows have once this part is accepted."""
    ordered = sorted(ranks, key=lambda key: (key[0], ranks[key], id_of(key[1])))
    first = {branch: index for index, (branch, _) in reversed(list(enumerate(ordered)))}
    places = {key: index - first[key[0]] for index, key in enumerate(ordered)}
    for row, values in zip(rows, columns, strict=True):
        if row.position is None:
            values["position"] = places[row.branch, row.name]
