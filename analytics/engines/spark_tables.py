"""Writes result tables as Parquet and CSV.

The driver writes the tables of a small analysis. Spark's own way takes two jobs and some ten processes for each table: its
file system calls `chmod` for each file and folder.

In a CSV ids are hex, and a text that a spreadsheet would take for a formula has an apostrophe before it: branch names
are chosen by anybody.
"""

import shutil
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, DataType, StringType

_WRITERS: Final = 4
"""Tables that are written at the same time: while one is planned or ends, tasks of another run. Tasks take turns for cores,
so this needs no memory for each."""


class TableWriter:
    """Writes tables below one folder. Methods raise OSError."""

    def __init__(
        self, spark: SparkSession, out: Path, *, with_csv: bool = False, is_small: bool = False
    ) -> None:
        self._spark = spark
        self._out = out
        self._with_csv = with_csv
        self._is_small = is_small

    def write(self, name: str, table: DataFrame) -> DataFrame:
        """Write a table and read it back, so that what follows says what the table says, and nothing is computed twice."""
        folder = (self._out / "tables" / name).absolute()
        path = str(folder)
        if self._is_small:
            rows = table.toArrow()
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            pq.write_table(rows, folder / "part-00000.parquet")
        else:
            table.write.mode("overwrite").parquet(path)
        written = self._spark.read.schema(table.schema).parquet(path)
        if self._with_csv:
            self._write_csv(name, written)
        return written

    def write_all(self, tables: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
        """Write tables that do not need one another, and read them back."""
        with ThreadPoolExecutor(_WRITERS) as pool:
            return dict(zip(tables, pool.map(self.write, tables, tables.values()), strict=True))

    def write_empty(self, name: str, schema: str) -> DataFrame:
        """Write a table without rows."""
        return self.write(name, self._spark.createDataFrame([], schema))

    def _write_csv(self, name: str, table: DataFrame) -> None:
        folder = self._out / "csv"
        beside = folder / f".{name}"
        plain = table.select(*[_plain(field.name, field.dataType) for field in table.schema])
        plain.coalesce(1).write.mode("overwrite").csv(str(beside.absolute()), header=True, escape='"')
        # Without rows Spark writes no part, and so no line of names.
        part = next(beside.glob("part-*.csv"), None)
        target = folder / f"{name}.csv"
        if part is None:
            target.write_text(",".join(table.columns) + "\n", encoding="utf-8")
        else:
            part.replace(target)
        shutil.rmtree(beside)


def _plain(name: str, kind: DataType) -> Column:
    column = F.col(name)
    if isinstance(kind, BinaryType):
        return F.lower(F.hex(column)).alias(name)
    if isinstance(kind, StringType):
        return F.regexp_replace(column, r"^(?=[=+\-@\t\r])", "'").alias(name)
    return column
