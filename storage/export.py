"""Export of the store as Parquet: incremental, published atomically (see `export_schema` for the layout).

Parts are written beside and renamed into place, the manifest last: a reader sees the old export or the new one, never
half. The rows come from one read transaction, so they are one moment of the store, and writers are never blocked.
"""

import json
import os
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from blake3 import blake3
from sqlalchemy import Connection, func, select

from storage.database import Database, StorageError
from storage.export_schema import COMMITS, EXPORT_FORMAT, MANIFEST_NAME, SCHEMA_VERSION, VOIDS
from storage.id_keys import unpack_ids
from storage.order import CANONICAL_ORDER
from storage.schema import authors, branches, commits, repos, topics

_ROWS_PER_GROUP: Final = 20_000
_HASH_CHUNK_SIZE: Final = 1 << 20
JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ExportSummary:
    """What an export holds now, and how many commits this run added."""

    path: Path
    commits: int
    added: int
    parts: int
    watermark: int


def export_store(database: Database, folder: Path, node: str, created_at: int) -> ExportSummary:
    """Add to the export in `folder` what was accepted since its watermark. Raises StorageError.

    `node` is the exporting node's id as text, `created_at` unix seconds.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        manifest = _load_manifest(folder / MANIFEST_NAME, node)
        with database.read() as connection:
            part = _write_part(connection, folder, manifest)
            voids = _write_voids(connection, folder, manifest)
        if part is not None:
            manifest["tables"]["commits"].append(part)
        older = manifest["tables"].get("voids", [])
        manifest["tables"]["voids"] = voids
        manifest["schema_version"] = SCHEMA_VERSION
        manifest["created_at"] = created_at
        _publish(folder / MANIFEST_NAME, json.dumps(manifest, indent=1).encode())
        _forget_voids(folder, [row["path"] for row in [*older, *voids]])
    except OSError as error:
        raise StorageError(f"cannot export to {folder}: {error}") from error
    parts = manifest["tables"]["commits"]
    return ExportSummary(
        folder,
        sum(row["rows"] for row in parts),
        part["rows"] if part else 0,
        len(parts),
        manifest["watermark"],
    )


def _load_manifest(path: Path, node: str) -> JsonObject:
    if not path.exists():
        return {
            "format": EXPORT_FORMAT,
            "schema_version": SCHEMA_VERSION,
            "node": node,
            "created_at": 0,
            "watermark": 0,
            "tables": {"commits": [], "voids": []},
        }
    try:
        manifest: JsonObject = json.loads(path.read_bytes())
        is_ours = (manifest["format"], manifest["node"]) == (EXPORT_FORMAT, node)
        is_ours = is_ours and 1 <= int(manifest["schema_version"]) <= SCHEMA_VERSION
        int(manifest["watermark"]), list(manifest["tables"]["commits"])
        [str(row["path"]) for row in manifest["tables"].get("voids", [])]
    except (ValueError, KeyError, TypeError) as error:
        raise StorageError(
            f"{path} is not a manifest ({error}); move the folder away and export again"
        ) from None
    if not is_ours:
        raise StorageError(f"{path} is another node's export, or of another schema; choose another folder")
    return manifest


def _write_part(connection: Connection, folder: Path, manifest: JsonObject) -> JsonObject | None:
    first = manifest["watermark"] + 1
    last = connection.execute(select(func.coalesce(func.max(commits.c.num), 0))).scalar_one()
    if last < first:
        return None
    positions = _Positions(connection, last)
    name = f"commits/part-{len(manifest['tables']['commits']) + 1:08d}.parquet"
    part = _write(folder, name, COMMITS, _batches(connection, first, last, positions))
    manifest["watermark"] = last
    return part


def _write_voids(connection: Connection, folder: Path, manifest: JsonObject) -> list[JsonObject]:
    """The void commits of this moment, in a part beside the one that the last export lists: somebody may be reading it."""
    numbers = [int(Path(row["path"]).stem.rpartition("-")[2]) for row in manifest["tables"].get("voids", [])]
    name = f"voids/part-{max(numbers, default=0) + 1:08d}.parquet"
    query = select(commits.c.commit_id).where(commits.c.is_void).order_by(commits.c.num)
    parts = connection.execute(query).scalars().partitions(_ROWS_PER_GROUP)
    rows = (
        pa.RecordBatch.from_arrays([pa.array(list(part), VOIDS.field(0).type)], schema=VOIDS)
        for part in parts
    )
    written = _write(folder, name, VOIDS, rows)
    return [written] if written["rows"] else []


def _forget_voids(folder: Path, kept: list[str]) -> None:
    for path in (folder / "voids").glob("*.parquet"):
        if f"voids/{path.name}" not in kept:
            path.unlink()


def _write(folder: Path, name: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> JsonObject:
    """Write a part, durable and whole or not there, and say what the manifest has to list."""
    target = folder / name
    target.parent.mkdir(mode=0o700, exist_ok=True)
    beside = target.with_suffix(".tmp")
    rows = 0
    with pq.ParquetWriter(beside, schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch)
            rows += batch.num_rows
    _sync(beside)
    size, checksum = _measure(beside)
    beside.replace(target)
    _sync(target.parent)
    return {"path": name, "rows": rows, "bytes": size, "blake3": checksum}


class _Positions:
    """Position of every commit in its branch's timeline at this moment, -1 for void ones: one pass over the order's index.

    Held as 8 bytes a commit: an export is the one place that needs all positions at once.
    """

    def __init__(self, connection: Connection, last: int) -> None:
        self._by_num = array("q", [-1]) * (last + 1)
        query = (
            select(commits.c.branch_num, commits.c.num)
            .where(~commits.c.is_void)
            .order_by(commits.c.branch_num, *CANONICAL_ORDER)
        )
        branch, position = None, 0
        for branch_num, num in connection.execute(query):
            position = 0 if branch_num != branch else position + 1
            branch = branch_num
            self._by_num[num] = position

    def __getitem__(self, num: int) -> int:
        return self._by_num[num]


def _batches(
    connection: Connection, first: int, last: int, positions: _Positions
) -> Iterator[pa.RecordBatch]:
    query = (
        select(
            commits.c.num,
            commits.c.commit_id,
            topics.c.topic,
            repos.c.repo_id,
            branches.c.branch_id,
            branches.c.name,
            authors.c.user,
            commits.c.acks,
            commits.c.rank,
            commits.c.body_kind,
            commits.c.size,
            commits.c.timestamp,
            commits.c.received_at,
        )
        .join(topics, topics.c.num == commits.c.topic_num)
        .join(branches, branches.c.num == commits.c.branch_num)
        .join(repos, repos.c.num == branches.c.repo_num)
        .join(authors, authors.c.num == commits.c.author_num)
        .where(commits.c.num.between(first, last))
        .order_by(commits.c.num)
    )
    for rows in connection.execute(query).partitions(_ROWS_PER_GROUP):
        num, commit_id, topic, repo_id, branch_id, name, user, acks, rank, kind, size, time, received = zip(
            *rows, strict=True
        )
        columns = [
            num,
            commit_id,
            topic,
            repo_id,
            branch_id,
            name,
            user,
            [list(unpack_ids(packed)) for packed in acks],
            rank,
            [positions[value] for value in num],
            kind,
            size,
            time,
            received,
        ]
        arrays = [pa.array(list(values), field.type) for values, field in zip(columns, COMMITS, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=COMMITS)


def _publish(path: Path, content: bytes) -> None:
    beside = path.with_suffix(".tmp")
    beside.write_bytes(content)
    _sync(beside)
    beside.replace(path)
    _sync(path.parent)


def _measure(path: Path) -> tuple[int, str]:
    hasher = blake3()
    size = 0
    with path.open("rb") as file:
        while chunk := file.read(_HASH_CHUNK_SIZE):
            hasher.update(chunk)
            size += len(chunk)
    return size, hasher.hexdigest()


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
