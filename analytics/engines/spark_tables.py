"""Writes result tables as Parquet.

The driver writes the tables of a small analysis, and answers queries of them. Spark's own way takes two jobs and some ten
processes for each table: its file system calls `chmod` for each file and folder. Tables that do not need one another are
computed in one job: to plan and start one is most of what a table of few rows costs.
"""

import shutil
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from analytics.tables.functions import DUCKDB

if TYPE_CHECKING:
    import duckdb

_WRITERS: Final = 4
"""Tables that are written at the same time: while one is planned or ends, tasks of another run. Tasks take turns for cores,
so this needs no memory for each."""
_TOGETHER: Final = "ravel_together_"
"""Views of tables while they are collected; a number follows, as runs in one session may collect at the same time."""
_collections: Final = count(1)
_PART: Final = "part-00000.parquet"


class TableWriter:
    """Writes tables below one folder. Methods raise OSError."""

    def __init__(self, spark: SparkSession, out: Path, *, is_small: bool = False) -> None:
        self._spark = spark
        self._out = out.absolute()
        self._is_small = is_small
        self._here: dict[str, Path] = {}
        """Tables that the driver wrote, and their files."""
        self._database: duckdb.DuckDBPyConnection | None = None

    def write(self, name: str, table: DataFrame) -> DataFrame:
        """Write a table and read it back, so that what follows says what the table says, and nothing is computed twice."""
        return self.write_all({name: table})[name]

    def write_all(self, tables: Mapping[str, DataFrame], folder: str = "tables") -> dict[str, DataFrame]:
        """Write tables that do not need one another below a folder of the results, and read them back."""
        folders = {name: self._out / folder / name for name in tables}
        if self._is_small:
            for name, rows in collect_together(self._spark, tables).items():
                self._write_here(name, rows, folders[name])
        else:
            with ThreadPoolExecutor(_WRITERS) as pool:
                [*pool.map(_write_there, tables.values(), folders.values())]
        return {
            name: self._spark.read.schema(table.schema).parquet(str(folders[name]))
            for name, table in tables.items()
        }

    def rows(self, query: str, tables: Collection[str]) -> list[dict[str, Any]] | None:
        """The rows of a query that reads these tables, or None if the driver did not write all of them."""
        if not tables or not self._here.keys() >= set(tables):
            return None
        from analytics.engines.duckdb_tables import fetch

        return fetch(self._open(tables), query)

    def close(self) -> None:
        """Let go of the database that queries were answered from."""
        if self._database is not None:
            self._database.close()
            self._database = None

    def _write_here(self, name: str, rows: pa.Table, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self._here[name] = folder / _PART
        pq.write_table(rows, self._here[name])

    def _open(self, tables: Collection[str]) -> "duckdb.DuckDBPyConnection":
        """A database with views of these tables, which the driver wrote."""
        import duckdb

        from analytics.engines.duckdb_tables import read_files

        if self._database is None:
            self._database = duckdb.connect(config={"autoinstall_known_extensions": "false"})
            for statement in DUCKDB:
                self._database.execute(statement)
        for name in tables:
            query = read_files([self._here[name]])
            self._database.execute(f'CREATE OR REPLACE VIEW "{name}" AS {query}')
        return self._database


def _write_there(table: DataFrame, folder: Path) -> None:
    table.write.mode("overwrite").parquet(str(folder))


def collect_together(spark: SparkSession, tables: Mapping[str, DataFrame]) -> dict[str, pa.Table]:
    """The rows of several small tables, by one job: each a struct in a column of its own."""
    prefix = f"{_TOGETHER}{next(_collections)}_"
    # Columns that cannot be null are so beside rows of other tables, and Arrow refuses that.
    kinds = [
        StructType([StructField(field.name, field.dataType) for field in table.schema]).simpleString()
        for table in tables.values()
    ]
    # As a text, which is looked through once: each union of DataFrames looks through all before it.
    selects = [
        f"SELECT {place} AS place, "
        + ", ".join(
            f"{'struct(*)' if place == other else f'CAST(NULL AS {kind})'} AS table_{other}"
            for other, kind in enumerate(kinds)
        )
        + f" FROM {prefix}{place}"
        for place in range(len(kinds))
    ]
    for place, table in enumerate(tables.values()):
        table.createOrReplaceTempView(f"{prefix}{place}")
    try:
        found: Any = pa.table(spark.sql(" UNION ALL ".join(selects)).toArrow())
    finally:
        for place in range(len(kinds)):
            spark.catalog.dropTempView(f"{prefix}{place}")
    return {
        name: pa.Table.from_struct_array(found.filter(pc.field("place") == place)[f"table_{place}"])
        for place, name in enumerate(tables)
    }
