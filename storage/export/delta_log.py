"""Writes a log of Delta Lake for each table of an export, over the parts that lie under KEPT_NAME.

`kept/TABLE` is then a table of Delta: a version for each export, numbered alike in all tables. A version adds the parts
that its manifest lists and the one before did not, and removes the others. Parts that were removed stay for `keep_seconds`,
and so do the versions that list them.

    0000...0042.json                 what version 42 changed
    0000...0040.checkpoint.parquet   all that version 40 had, so that the files before it can go
    _last_checkpoint                 where readers begin

The manifest is published before the log, and the log is written before any part goes: a reader of the log finds the parts of
its version, wherever an export was cut off. The next export first writes what the log lacks. Files are of the protocol's
reader version 1 and writer version 2 (https://github.com/delta-io/delta/blob/master/PROTOCOL.md).

A part is listed with the least and greatest value of its columns of numbers and times, and with how often each column is
null: a reader passes over parts that hold nothing wanted. Texts have no such values here, as a log outlives its parts.
"""

import json
import re
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from blake3 import blake3

from ravel.exports.schema import KEPT_NAME, TABLES
from storage.engine.database import StorageError
from storage.export.destinations import Destination
from storage.export.manifest import Manifest, Part

LOG_NAME: Final = "_delta_log"
CHECKPOINT_VERSIONS: Final = 10
"""Versions from one checkpoint to the next: a reader opens one of them and at most as many small files."""
_LOG_FILE_SIZE_MAX: Final = 1 << 28
"""Bytes, as many as a manifest may have: a part takes some 1,000 of them."""
_LAST_CHECKPOINT: Final = "_last_checkpoint"
_VERSION: Final = re.compile(r"([0-9]{20})\.json")
_CHECKPOINT: Final = re.compile(r"([0-9]{20})\.checkpoint\.parquet")
_PROTOCOL: Final = {"minReaderVersion": 1, "minWriterVersion": 2}


def _struct(**kinds: pa.DataType) -> pa.DataType:
    return pa.struct([pa.field(name, kind) for name, kind in kinds.items()])


_TEXTS: Final = pa.map_(pa.string(), pa.string())
_INT: Final = pa.int64()
_CHECKPOINT_SCHEMA: Final = pa.schema(
    [
        pa.field("protocol", _struct(minReaderVersion=pa.int32(), minWriterVersion=pa.int32())),
        pa.field(
            "metaData",
            _struct(
                id=pa.string(),
                name=pa.string(),
                description=pa.string(),
                format=_struct(provider=pa.string(), options=_TEXTS),
                schemaString=pa.string(),
                partitionColumns=pa.list_(pa.string()),
                configuration=_TEXTS,
                createdTime=_INT,
            ),
        ),
        pa.field(
            "add",
            _struct(
                path=pa.string(),
                partitionValues=_TEXTS,
                size=_INT,
                modificationTime=_INT,
                dataChange=pa.bool_(),
                stats=pa.string(),
            ),
        ),
        pa.field("remove", _struct(path=pa.string(), deletionTimestamp=_INT, dataChange=pa.bool_())),
    ]
)
"""A row has one of these, as a line of a version has."""

Action = dict[str, Any]
"""A line of a log: its kind, and what it says."""


@dataclass(slots=True)
class _Log:
    """State of a table's log, up to its last version."""

    version: int = -1
    adds: dict[str, Action] = field(default_factory=dict)  # by name
    metadata: Action | None = None
    manifest: str = ""  # the checksum of the one that the last version is of
    checkpoint: int = 0  # the version of the last one

    def take(self, actions: Sequence[Action]) -> None:
        """Apply a version, or a checkpoint."""
        for action in actions:
            for kind, said in action.items():
                if kind == "add":
                    self.adds[said["path"]] = said
                elif kind == "remove":
                    self.adds.pop(said["path"], None)
                elif kind == "metaData":
                    self.metadata = said
                elif kind == "commitInfo":
                    self.manifest = said.get("ravelManifest", "")


def has_logs(destination: Destination) -> bool:
    """Return True if there is a log of any table. Raises StorageError."""
    return bool(_find_logs(destination))


def write_logs(destination: Destination, manifest: Manifest, keep_seconds: int) -> None:
    """Add a version to each log that has none of this published manifest. Costs O(parts). Raises StorageError.

    Every part that the manifest lists is aside when this is called.
    """
    found = _find_logs(destination)
    for table in TABLES:
        folder = f"{KEPT_NAME}/{table}/{LOG_NAME}"
        names = found.get(table, set())
        log = _read_log(destination, folder, names)
        if log.manifest != manifest.checksum:
            _write_version(destination, folder, log, manifest, table, keep_seconds)
        if (
            log.version >= log.checkpoint + CHECKPOINT_VERSIONS
        ):  # beyond where an export was cut off before it
            _write_checkpoint(destination, folder, log, manifest, table)
            _forget_versions(destination, folder, names, manifest.created_at - keep_seconds)


def remove_logs(destination: Destination) -> None:
    """Remove all logs: parts will not be where they say. Raises StorageError."""
    for table, names in _find_logs(destination).items():
        # The newest first: what is left where this is cut off is the log of an older version, which can be gone on with.
        for name in sorted(names, reverse=True):
            destination.delete(f"{KEPT_NAME}/{table}/{LOG_NAME}/{name}")


def _find_logs(destination: Destination) -> dict[str, set[str]]:
    """Return the names of the files of each log, by table."""
    found: dict[str, set[str]] = {}
    for path in destination.find(KEPT_NAME):
        match path.split("/"):
            case [_, table, folder, name] if folder == LOG_NAME and table in TABLES:
                found.setdefault(table, set()).add(name)
    return found


def _read_log(destination: Destination, folder: str, names: Collection[str]) -> _Log:
    log = _Log()
    versions = _numbers(_VERSION, names)
    checkpoints = _numbers(_CHECKPOINT, names)
    # One that was cut off before it said so is whole as well: names stand for whole files.
    start = max(checkpoints, default=-1)
    try:
        if checkpoints:
            log.take(_read_checkpoint(_read(destination, f"{folder}/{start:020}.checkpoint.parquet")))
        # Where it begins with a checkpoint, that version says of which manifest it is.
        for version in sorted(version for version in versions if version >= start):
            content = _read(destination, f"{folder}/{version:020}.json")
            log.take([json.loads(line) for line in content.splitlines()])
        log.version, log.checkpoint = max([start, *versions]), max(start, 0)
        if log.version >= 0 and log.metadata is None:
            raise ValueError("it begins with no version 0 and no checkpoint")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, pa.ArrowException) as error:
        raise StorageError(
            f"{destination.name}/{folder} is not a log that this exporter goes on with ({error}); "
            f"delete every folder {KEPT_NAME}/*/{LOG_NAME}: the next export begins the logs anew, with one number"
        ) from None
    return log


def _read(destination: Destination, name: str) -> bytes:
    content = destination.read(name, _LOG_FILE_SIZE_MAX)
    if content is None:
        raise ValueError(f"{name} is missing")
    return content


def _read_checkpoint(content: bytes) -> list[Action]:
    with pq.ParquetFile(pa.BufferReader(content)) as file:
        rows = file.read(columns=["metaData", "add"]).to_pylist(maps_as_pydicts="strict")
    return [{kind: said for kind, said in row.items() if said is not None} for row in rows]


def _write_version(
    destination: Destination, folder: str, log: _Log, manifest: Manifest, table: str, keep_seconds: int
) -> None:
    now = manifest.created_at * 1000
    listed = {_name_of(part.path): part for part in manifest.tables[table]}
    metadata = _describe(manifest, table, keep_seconds, log.metadata)
    actions: list[Action] = [
        {
            "commitInfo": {
                "timestamp": now,
                "operation": "RAVEL EXPORT",
                "operationParameters": {"watermark": str(manifest.watermark)},
                "engineInfo": "Ravel",
                "ravelManifest": manifest.checksum,
            }
        }
    ]
    if log.version < 0:
        actions.append({"protocol": _PROTOCOL})
    if metadata != log.metadata:
        actions.append({"metaData": metadata})
    actions += [
        {"remove": {"path": name, "deletionTimestamp": now, "dataChange": True}}
        for name in log.adds
        if name not in listed
    ]
    actions += [
        {"add": _add(name, part, now, destination.read_footer(f"{KEPT_NAME}/{part.path}"))}
        for name, part in listed.items()
        if name not in log.adds
    ]
    version = log.version + 1
    content = "".join(json.dumps(action, separators=(",", ":")) + "\n" for action in actions)
    destination.publish(f"{folder}/{version:020}.json", content.encode())
    log.take(actions)
    log.version = version


def _write_checkpoint(
    destination: Destination, folder: str, log: _Log, manifest: Manifest, table: str
) -> None:
    replaced = [one for one in manifest.replaced if one.path.startswith(f"{table}/")]
    rows: list[Action] = [
        {"protocol": _PROTOCOL},
        {"metaData": log.metadata},
        *({"add": said} for said in log.adds.values()),
        # A program that cleans a table by its log would delete what it does not name.
        *(
            {
                "remove": {
                    "path": _name_of(one.path),
                    "deletionTimestamp": one.at * 1000,
                    "dataChange": True,
                }
            }
            for one in replaced
        ),
    ]
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows, schema=_CHECKPOINT_SCHEMA), sink)
    destination.publish(f"{folder}/{log.version:020}.checkpoint.parquet", sink.getvalue().to_pybytes())
    last = {"version": log.version, "size": len(rows)}
    destination.publish(f"{folder}/{_LAST_CHECKPOINT}", json.dumps(last).encode())


def _forget_versions(destination: Destination, folder: str, names: Collection[str], until: int) -> None:
    """Delete what no version needs that is younger than `until` (unix s): all before the last older checkpoint."""
    start = -1
    for checkpoint in sorted(_numbers(_CHECKPOINT, names)):
        if _made_at(destination.read(f"{folder}/{checkpoint:020}.json", _LOG_FILE_SIZE_MAX)) > until * 1000:
            break
        start = checkpoint
    for kind, ending in ((_VERSION, "json"), (_CHECKPOINT, "checkpoint.parquet")):
        for number in sorted(number for number in _numbers(kind, names) if number < start):
            destination.delete(f"{folder}/{number:020}.{ending}")


def _made_at(content: bytes | None) -> int:
    """Return when a version was written, in unix milliseconds; 0 if that is not said."""
    try:
        return int(json.loads((content or b"").split(b"\n")[0])["commitInfo"]["timestamp"])
    except (ValueError, KeyError, TypeError):
        return 0


def _describe(manifest: Manifest, table: str, keep_seconds: int, before: Action | None) -> Action:
    """Describe the table's columns and settings; its id and the time of its making stay what they were."""
    begun = blake3(f"{manifest.node} {table} {manifest.checksum}".encode()).digest(16)
    keep = f"interval {keep_seconds} seconds"
    described = TABLES[table].metadata or {}
    return {
        "id": str(uuid.UUID(bytes=begun)) if before is None else before["id"],
        "name": table,
        "description": described.get(b"description", b"").decode(),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": [*_fields_of(TABLES[table])]}),
        "partitionColumns": [],
        "configuration": {
            "delta.deletedFileRetentionDuration": keep,
            "delta.logRetentionDuration": keep,
        },
        "createdTime": manifest.created_at * 1000 if before is None else before["createdTime"],
    }


def _fields_of(schema: pa.Schema) -> Iterator[Action]:
    for column in schema:
        said = {key.decode(): value.decode() for key, value in (column.metadata or {}).items()}
        unit = f" ({said['unit']})" if "unit" in said else ""
        yield {
            "name": column.name,
            "type": _type_of(column.type),
            "nullable": column.nullable,
            "metadata": {"comment": said["description"] + unit},
        }


def _type_of(kind: pa.DataType) -> str | Mapping[str, object]:
    if pa.types.is_list(kind):
        return {"type": "array", "elementType": _type_of(kind.value_type), "containsNull": False}
    if pa.types.is_timestamp(kind):
        return "timestamp"
    return {"int64": "long", "string": "string", "bool": "boolean"}.get(str(kind), "binary")


def _add(name: str, part: Part, now: int, footer: pq.FileMetaData) -> Action:
    return {
        "path": name,
        "partitionValues": {},
        "size": part.bytes,
        "modificationTime": now,
        "dataChange": True,
        "stats": json.dumps({"numRecords": part.rows, **_find_statistics(footer)}),
    }


def _find_statistics(footer: pq.FileMetaData) -> Mapping[str, Action]:
    """Combine the statistics of all row groups for columns that are no lists; leave out those that a group lacks."""
    found: dict[str, Action] = {"minValues": {}, "maxValues": {}, "nullCount": {}}
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    for number in range(footer.num_columns):
        column = footer.schema.column(number)
        told: list[tuple[int, Any]] = [(group.num_rows, group.column(number).statistics) for group in groups]
        if column.max_repetition_level or not all(one and one.has_null_count for _, one in told):
            continue
        found["nullCount"][column.name] = sum(one.null_count for _, one in told)
        filled = [one for rows, one in told if one.null_count < rows]
        if column.physical_type == "INT64" and filled and all(one.has_min_max for one in filled):
            is_time = column.logical_type.type == "TIMESTAMP"
            least, most = min(one.min_raw for one in filled), max(one.max_raw for one in filled)
            found["minValues"][column.name] = _as_time(least) if is_time else least
            found["maxValues"][column.name] = _as_time(most) if is_time else most
    return found


def _as_time(milliseconds: int) -> str:
    at = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=milliseconds)
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03}Z"


def _numbers(kind: re.Pattern[str], names: Collection[str]) -> list[int]:
    return [int(found[1]) for name in names if (found := kind.fullmatch(name))]


def _name_of(path: str) -> str:
    """Return a part's name in its table's folder."""
    return path.rpartition("/")[2]
