"""Keeps rows that tasks compute: in files that the tasks write themselves, or where Spark keeps tables.

Spark takes rows from Python one by one, and writes them, or keeps them in memory, one by one: that costs as much as to order
them. A task that writes its rows as Parquet gives Spark one name. The files outlast an executor and are read by columns.
The driver and all executors must see the folder. Without one, Spark keeps the rows. Final results can go to any URL that
fsspec knows.
"""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import StorageLevel, TaskContext
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from analytics.reading.export_reader import as_path
from analytics.reading.shipping import drivers_environment, ship_by_value

_FILES_SCHEMA: Final = "name string, rows bigint"
_EMPTY_NAME: Final = "000000-empty.parquet"
_sets: Final = count(1)

Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""What `mapInArrow` takes."""


@dataclass(frozen=True, slots=True)
class KeptRows:
    """Rows that are computed once."""

    frame: DataFrame
    files: tuple[Path, ...] = ()
    """What tasks wrote, in the order of their partitions; none where there was no folder, or no row."""


def keep_rows(rows: DataFrame, task: Task, schema: str, folder: Path | None) -> KeptRows:
    """Run a task on each partition now, and keep what it gives. Raises OSError, and errors of Spark."""
    if folder is None:
        return KeptRows(pin(rows.mapInArrow(task, schema)))
    kinds: Any = StructType.fromDDL(schema)
    number = next(_sets)
    attempts, kept = (folder.absolute() / f"{name}-{number:04d}" for name in ("attempts", "rows"))
    for made in (attempts, kept):
        made.mkdir(parents=True)
    write = partial(
        _write_rows, task=task, schema=to_arrow_schema(kinds), folder=str(attempts), environment={}
    )
    names = sorted(row["name"] for row in rows.mapInArrow(write, _FILES_SCHEMA).collect())
    # Moved, as a task that failed, or that another overtook, may have left a file, or be writing one still.
    files = tuple(kept / f"{name.partition('-')[0]}.parquet" for name in names)
    for name, file in zip(names, files, strict=True):
        (attempts / name).rename(file)
    # As a folder: of many paths Spark would take a job to look at each.
    return KeptRows(rows.sparkSession.read.schema(kinds).parquet(as_path(kept)), files)


def write_to_url(frame: DataFrame, url: str) -> dict[str, int]:
    """Let tasks write a table below a URL; return its files with their counts of rows. Failed attempts may leave others
    there.

    A table without rows gets a file too, by which readers know its columns.
    """
    ship_by_value(sys.modules[__name__])
    schema = to_arrow_schema(frame.schema)
    environment = drivers_environment()
    write = partial(_write_rows, task=iter, schema=schema, folder=url, environment=environment)
    written = {row["name"]: row["rows"] for row in frame.mapInArrow(write, _FILES_SCHEMA).collect()}
    if not written:
        with _open_file(f"{url}/{_EMPTY_NAME}", environment) as file:
            pq.write_table(schema.empty_table(), file)
    return written or {_EMPTY_NAME: 0}


def pin(frame: DataFrame) -> DataFrame:
    """Compute a table now and keep it: in the session's folder, or else on the executors' disks.

    Computed again it could differ: in the folder it outlasts an executor, and lost with a disk it fails the job.
    """
    if frame.sparkSession.sparkContext.getCheckpointDir() is not None:
        return frame.checkpoint(eager=True)
    return frame.localCheckpoint(eager=True, storageLevel=StorageLevel.DISK_ONLY)


# --- what runs on the executors ---


def _write_rows(
    batches: Iterator[pa.RecordBatch],
    task: Task,
    schema: pa.Schema,
    folder: str,
    environment: Mapping[str, str],
) -> Iterator[pa.RecordBatch]:
    """Write what a task gives, and say how the file is called: by its partition, so that names have their order."""
    given = (batch for batch in task(batches) if batch.num_rows)
    first = next(given, None)
    if first is None:
        return
    context = TaskContext.get()
    assert context is not None, "Spark calls this"
    # An attempt has a file of its own: another of the same task may be at work.
    name = f"{context.partitionId():06d}-{context.taskAttemptId()}.parquet"
    # Ids of commits are all different, and numbers mostly: what is named again and again is bytes and texts.
    alike: Any = [
        field.name
        for field in schema
        if field.name != "commit_id" and (pa.types.is_binary(field.type) or pa.types.is_string(field.type))
    ]
    rows = 0
    with (
        _open_file(f"{folder}/{name}", environment) as file,
        pq.ParquetWriter(file, schema, compression="snappy", use_dictionary=alike) as writer,
    ):
        for batch in (first, *given):
            writer.write_table(pa.Table.from_batches([batch]).cast(schema))
            rows += batch.num_rows
    yield pa.RecordBatch.from_pydict({"name": [name], "rows": [rows]})


def _open_file(place: str, environment: Mapping[str, str]) -> Any:  # noqa: ANN401  # fsspec has no types
    if "://" not in place:
        return open(place, "wb")
    os.environ.update(environment)
    import fsspec  # type: ignore[import-untyped]  # it has no types

    return fsspec.open(place, "wb")
