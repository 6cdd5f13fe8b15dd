"""`open_export`: the tables of one or more exports, for whatever a notebook works with.

Every part is checked against the manifest before anything is read. Tables of several exports are put one after the other,
each row with the node that exported it.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from ravel.exports.checking import BODY_TABLES, Export, ExportError
from ravel.exports.fetching import read_source, refuse_repeated
from ravel.exports.schema import BLOCK_TABLES, TABLES, text_id

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["ExportError", "OpenExport", "Table", "open_export"]

NODE: Final = "node"
"""The column that each table gets."""
_BATCH_ROWS: Final = 100_000
"""Rows of a stream in memory at once: some MB."""


def open_export(
    source: str | Path | Sequence[str | Path],
    *,
    with_blocks: bool = False,
    with_bodies: bool = True,
    strict: bool = True,
    progress: Callable[[str], None] | None = None,
) -> "OpenExport":
    """Open an export, or several as one: folders, or URLs for which fsspec has a driver.

    The manifest and every part are checked, of blocks `with_blocks` alone; `progress` reports long checks. Parts from a URL
    are kept in the user's cache; `with_bodies=False` leaves out what people wrote, where an export has that. Unless
    `strict`, a bad export among several is left out and listed in `set_aside`. Two exports of one node are refused: give
    the newer one. Raises ExportError, OSError.
    """
    sources = [str(one) for one in ([source] if isinstance(source, str | Path) else source)]
    if not sources:
        raise ExportError("no export is named")
    refuse_repeated(sources)
    opened = OpenExport(with_blocks=with_blocks, with_bodies=with_bodies)
    found: list[Export] = []
    for one in sources:
        try:
            found.append(
                read_source(one, with_blocks=with_blocks, with_bodies=with_bodies, progress=progress)
            )
        except ExportError as error:
            opened.set_aside[one] = str(error)
            if strict or len(opened.set_aside) == len(sources):
                raise
    opened.exports = tuple(found)
    nodes: dict[str, str] = {}
    for export in found:
        if export.node in nodes:
            raise ExportError(
                f"{nodes[export.node]} and {export.source} are both of node {export.node}, whose rows would count twice: "
                "give the newer one"
            )
        nodes[export.node] = export.source
    return opened


class OpenExport:
    """One or more exports that were checked."""

    def __init__(self, *, with_blocks: bool, with_bodies: bool) -> None:
        self.exports: tuple[Export, ...] = ()
        self.set_aside: dict[str, str] = {}
        """Exports that were not read, and why."""
        self._with_blocks = with_blocks
        self._with_bodies = with_bodies

    def __repr__(self) -> str:
        told = [
            f"node {one.node}, {one.rows:,} commits, "
            f"made at {datetime.fromtimestamp(one.created_at, UTC):%Y-%m-%d %H:%M} UTC"
            for one in self.exports
        ]
        return f"<export of {'; of '.join(told)}; tables: {', '.join(self.tables)}>"

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables that can be read: `bodies` where an export has them, blocks where they were asked for."""
        left_out = {*(() if self._with_blocks else BLOCK_TABLES), *(() if self._has_bodies else BODY_TABLES)}
        return tuple(name for name in TABLES if name not in left_out)

    @property
    def _has_bodies(self) -> bool:
        return self._with_bodies and any(export.has_bodies for export in self.exports)

    def table(self, name: str, *, columns: Sequence[str] | None = None, text_ids: bool = False) -> "Table":
        """Return a table of all exports, with some of its `columns` or all. Raises KeyError for a name that is none.

        With `text_ids` ids are not bytes but texts, as `ravel` writes them; not for Spark. Timelines sort ids by their
        bytes, and texts sort otherwise.
        """
        if name not in self.tables:
            why = f"no table {name!r}"
            if name in BODY_TABLES and self._with_bodies:
                why = "no bodies in this export: the node exports them with `[export] bodies = true`"
            elif name in BODY_TABLES:
                why = "bodies were left out by open_export(with_bodies=False)"
            elif name in BLOCK_TABLES:
                why = f"{name} are read after open_export(..., with_blocks=True)"
            raise KeyError(f"{why}; there are {', '.join(self.tables)}")
        return Table(name, self.exports, columns=columns, text_ids=text_ids)


class Table:
    """A table of all exports, with the column `node`. What an older export's schema lacks is null there."""

    def __init__(
        self,
        name: str,
        exports: tuple[Export, ...],
        *,
        columns: Sequence[str] | None = None,
        text_ids: bool = False,
    ) -> None:
        self.name: Final = name
        whole = plain_schema(name)
        if unknown := {*(columns or ())} - {*whole.names}:
            raise KeyError(f"no column {', '.join(sorted(unknown))}; {name} has {', '.join(whole.names)}")
        self._plain = whole
        if columns is not None:
            described: Any = whole.metadata
            self._plain = pa.schema([whole.field(one) for one in columns], described)
        self._text_ids = text_ids
        self._exports = exports

    def __repr__(self) -> str:
        rows = sum(part.rows for export in self._exports for part in export.tables[self.name])
        return f"<table {self.name}: {rows:,} rows of {', '.join(self.schema().names)}>"

    def schema(self) -> pa.Schema:
        """Columns with their descriptions and units as metadata. Ids are of variable length, which all readers take."""
        schema = self._plain
        for place in self._id_places() if self._text_ids else ():
            kind = pa.list_(pa.string()) if pa.types.is_list(schema.types[place]) else pa.string()
            schema = schema.set(place, schema.field(place).with_type(kind))
        return schema

    def batches(self) -> pa.RecordBatchReader:
        """Open the rows as a stream, read once, of which some MB are in memory: DuckDB and polars take it.

        A part that an export replaced meanwhile is an ExportError.
        """
        return pa.RecordBatchReader.from_batches(self.schema(), self._read())

    def arrow(self) -> pa.Table:
        """Read the rows as a table of Arrow, in memory. Raises as `batches`."""
        return self.batches().read_all()

    def _read(self) -> Iterator[pa.RecordBatch]:
        for export in self._exports:
            for part in export.tables[self.name]:
                try:
                    file = pq.ParquetFile(part.path)
                except FileNotFoundError:
                    raise ExportError(f"{part.path} is gone: open the export again") from None
                with file:
                    there = file.schema_arrow.names
                    wanted = [name for name in self._plain.names if name in there] or there[:1]
                    for batch in file.iter_batches(_BATCH_ROWS, columns=wanted):
                        rows = fit_rows(pa.Table.from_batches([batch]), self._plain, export.node)
                        yield from self._with_texts(rows).cast(self.schema()).to_batches()

    def _with_texts(self, rows: pa.Table) -> pa.Table:
        kinds: Any = self.schema().types
        for place in self._id_places() if self._text_ids else ():
            chunks = [_as_texts(chunk) for chunk in rows.column(place).chunks]
            texts: Any = pa.chunked_array(chunks, kinds[place])
            rows = rows.set_column(place, rows.schema.names[place], texts)
        return rows

    def _id_places(self) -> list[int]:
        """Return the columns that hold ids, or lists of them."""
        kinds = TABLES[self.name]
        return [
            place
            for place, name in enumerate(self._plain.names)
            if name != NODE
            and (
                pa.types.is_fixed_size_binary(kinds.field(name).type)
                or pa.types.is_list(kinds.field(name).type)
            )
        ]

    def pandas(self) -> "pd.DataFrame":
        """Read the rows as a DataFrame of pandas."""
        return self.arrow().to_pandas()

    def polars(self) -> "pl.DataFrame":
        """Read the rows as a DataFrame of polars."""
        import polars

        return polars.DataFrame(self.arrow())

    def duckdb(self, connection: "duckdb.DuckDBPyConnection | None" = None) -> "duckdb.DuckDBPyRelation":
        """Open the rows as a relation of DuckDB, of this connection or the one of the module."""
        import duckdb

        return (duckdb if connection is None else connection).from_arrow(self.arrow())

    def spark(self, session: "SparkSession") -> "DataFrame":
        """Open the rows as a DataFrame of Spark, which reads the parts itself: its workers must see the files.

        Raises ValueError for ids as texts: `hex(commit_id)` shows them in SQL.
        """
        from pyspark.sql import functions
        from pyspark.sql.pandas.types import from_arrow_schema

        if self._text_ids:
            raise ValueError("Spark reads ids as bytes: leave out text_ids, and show them by hex()")
        columns = [field.name for field in self.schema() if field.name != NODE]
        # By its types, since Spark Connect looks for them in rows.
        empty = session.createDataFrame([], from_arrow_schema(self.schema()))
        found = [empty]
        for export in self._exports:
            # Spark takes a path for a pattern; one that is escaped stands for itself.
            paths = [_escaped(str(part.path.absolute())) for part in export.tables[self.name]]
            if paths:
                rows = session.read.schema(empty.drop(NODE).schema).parquet(*paths).select(*columns)
                found.append(rows.withColumn(NODE, functions.lit(export.node)))
        united = found[0] if len(found) == 1 else found[1]
        for frame in found[2:]:
            united = united.unionByName(frame)
        return united.select(*self.schema().names)


def plain_schema(table: str) -> pa.Schema:
    """Return the columns of a table, and NODE, of types that all readers take."""
    fields = [field.with_type(_plain(field.type)).with_nullable(True) for field in TABLES[table]]
    described: dict[bytes | str, bytes | str] = dict(list((TABLES[table].metadata or {}).items()))
    return pa.schema([*fields, pa.field(NODE, pa.string())], metadata=described)


def _plain(kind: pa.DataType) -> pa.DataType:
    return pa.binary() if pa.types.is_fixed_size_binary(kind) else kind


def fit_rows(rows: pa.Table, schema: pa.Schema, node: str) -> pa.Table:
    """Rows of one part, with all columns of this version, in its types."""
    columns = []
    for field in schema:
        if field.name == NODE:
            columns.append(pa.chunked_array([pa.repeat(pa.scalar(node, pa.string()), len(rows))]))
        elif field.name in rows.column_names:
            columns.append(rows[field.name].cast(field.type))
        else:
            columns.append(pa.chunked_array([pa.nulls(len(rows), field.type)]))
    return pa.Table.from_arrays(columns, schema=schema)


def _as_texts(ids: Any) -> Any:  # noqa: ANN401  # arrays of ids, or of lists of them
    if pa.types.is_list(ids.type):
        return pa.ListArray.from_arrays(ids.offsets, _as_texts(ids.values))
    found = ids.dictionary_encode()  # most stand many times
    texts = [text_id(raw) for raw in found.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(found.indices)


def _escaped(path: str) -> str:
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", path)
