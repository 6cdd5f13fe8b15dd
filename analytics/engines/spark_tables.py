"""Writes result tables as Parquet.

The driver writes the tables of a small analysis, and answers queries of them. Spark's own way takes two jobs and some ten
processes for each table: its file system calls `chmod` for each file and folder. Tables that do not need one another are
computed in one job: to plan and start one is most of what a table of few rows costs.
"""

import re
import shutil
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from analytics.order.kept_rows import KeptRows, write_to_url
from analytics.reading.export_reader import as_path
from analytics.results import remove_others, write_table
from analytics.tables.functions import DUCKDB

if TYPE_CHECKING:
    import duckdb

_WRITERS: Final = 4
"""Tables that are written at the same time: while one is planned or ends, tasks of another run. Tasks take turns for cores,
so this needs no memory for each."""
_TOGETHER: Final = "ravel_together_"
"""Views of tables while they are collected; a number follows, as runs in one session may collect at the same time."""
_collections: Final = count(1)
_ROWS_IN_PLAN_MAX: Final = 1_000
"""Rows of a table that go with the plans of what reads it: some 100 KB. Each read of a file is opened, and its settings are
sent, once for each table that joins it."""
_TASKS: Final = 2
"""That collect tables: each reads the plans of all of its job first."""
_PLANNED_APART_MIN: Final = 10
"""Tables from which on two threads plan and collect a half each."""
_NOT_A_NAME: Final = re.compile(r"\W+")


JOB_DESCRIPTION: Final = "spark.job.description"


def describe(spark: SparkSession, step: str) -> None:
    """Label the next jobs of this thread in Spark's pages and logs."""
    spark.sparkContext.setJobDescription(f"ravel: {step}")


class TableWriter:
    """Writes tables below one folder; or of a cluster that sees none, small ones there and large ones below a URL.

    Methods raise OSError, ResultsRefused.
    """

    def __init__(self, spark: SparkSession, out: Path, *, is_small: bool = False, url: str = "") -> None:
        self._spark = spark
        self._out = out.absolute()
        self._is_small = is_small
        self._url = url
        self._kept: list[DataFrame] = []
        self.rows_elsewhere: dict[str, int] = {}
        """Rows of tables that were written below the URL."""
        self._here: dict[str, tuple[Sequence[Path], str]] = {}
        """Tables whose files are the driver's to read, and the condition of their rows."""
        self._database: duckdb.DuckDBPyConnection | None = None

    def write(self, name: str, table: DataFrame) -> DataFrame:
        """Write a table and read it back: later tables then agree with it, and nothing is computed twice."""
        return self.write_all({name: table})[name]

    def write_all(self, tables: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
        """Write independent tables, and read them back."""
        if self._url and not self._is_small:
            with ThreadPoolExecutor(_WRITERS) as pool:
                return dict(
                    zip(tables, pool.map(self._write_elsewhere, tables, tables.values()), strict=True)
                )
        if self._is_small:
            return {
                name: self._write_here(name, tables[name].schema, rows)
                for name, rows in self._collect(tables).items()
            }
        folders = {name: self._out / "tables" / name for name in tables}
        with ThreadPoolExecutor(_WRITERS) as pool:
            [*pool.map(_write_there, tables.values(), folders.values())]
        return {name: self._read_back(folder, tables[name].schema) for name, folder in folders.items()}

    def take(self, name: str, kept: KeptRows) -> DataFrame:
        """Make a table of files that tasks wrote below the folder of results, and read it back."""
        folder = self._out / "tables" / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for file in kept.files:
            file.rename(folder / f"part-{file.name}")
        return self._read_back(folder, kept.frame.schema)

    def files_of(self, name: str) -> list[Path]:
        """Return the files of a table that was written below the folder."""
        return sorted((self._out / "tables" / name).glob("*.parquet"))

    def know(self, name: str, files: Sequence[Path], where: str = "true") -> None:
        """Answer queries of a relation from files that tasks wrote, of the rows where a condition holds."""
        self._here[name] = files, where

    def rows(self, query: str, tables: Collection[str]) -> list[dict[str, Any]] | None:
        """Return the rows of a query that reads these tables, or None if the driver does not have all of them."""
        if not tables or not self._here.keys() >= set(tables):
            return None
        from analytics.engines.duckdb_tables import fetch

        return fetch(self._open(tables), query)

    def close(self) -> None:
        """Release cached tables, and the database that answers queries."""
        for frame in self._kept:
            frame.unpersist()
        if self._database is not None:
            self._database.close()
            self._database = None

    def _collect(self, tables: Mapping[str, DataFrame]) -> dict[str, pa.Table]:
        """Return the rows of small tables. Many are planned in two threads, as Spark plans a query in one."""
        if len(tables) < _PLANNED_APART_MIN:
            return collect_together(self._spark, tables)
        names = [*tables]

        def collect(number: int) -> dict[str, pa.Table]:
            some = {name: tables[name] for name in names[number::_TASKS]}
            describe(self._spark, f"write {', '.join(some)}")  # of this thread's jobs
            return collect_together(self._spark, some, tasks=1)

        with ThreadPoolExecutor(_TASKS) as pool:
            return {name: rows for part in pool.map(collect, range(_TASKS)) for name, rows in part.items()}

    def _write_here(self, name: str, schema: StructType, rows: pa.Table) -> DataFrame:
        file = write_table(self._out, name, rows)
        self.know(name, [file])
        is_few = 0 < rows.num_rows <= _ROWS_IN_PLAN_MAX  # Spark takes no table of Arrow's without a batch
        table = self._spark.createDataFrame(rows, schema) if is_few else self._read_back(file.parent, schema)
        return table.coalesce(1)  # what stands in one partition is counted without a shuffle

    def _read_back(self, folder: Path, schema: StructType) -> DataFrame:
        return self._spark.read.schema(schema).parquet(as_path(folder))

    def _write_elsewhere(self, name: str, table: DataFrame) -> DataFrame:
        """Let tasks write a table below the URL. Later reads use Spark's own copy."""
        describe(self._spark, f"write {name}")  # of this thread's jobs
        kept = table.persist()
        self._kept.append(kept)
        url = f"{self._url}/tables/{name}"
        written = write_to_url(kept, url)
        remove_others(url, written)
        self.rows_elsewhere[name] = sum(written.values())
        return kept

    def _open(self, tables: Collection[str]) -> "duckdb.DuckDBPyConnection":
        """Return a database with views of these tables."""
        import duckdb

        from analytics.engines.duckdb_tables import read_files

        if self._database is None:
            self._database = duckdb.connect(config={"autoinstall_known_extensions": "false"})
            for statement in DUCKDB:
                self._database.execute(statement)
        for name in tables:
            files, where = self._here[name]
            query = f"SELECT * FROM ({read_files(files)}) AS told WHERE {where}"
            self._database.execute(f'CREATE OR REPLACE VIEW "{name}" AS {query}')
        return self._database


def _write_there(table: DataFrame, folder: Path) -> None:
    describe(table.sparkSession, f"write {folder.name}")  # of this thread's jobs
    table.write.mode("overwrite").parquet(str(folder))


def collect_together(
    spark: SparkSession, tables: Mapping[str, DataFrame], *, tasks: int = _TASKS
) -> dict[str, pa.Table]:
    """Return the rows of several small tables by one job of this many tasks.

    They are collected as one table, with as many columns of each type as any of them has.
    """
    prefix = f"{_TOGETHER}{next(_collections)}_"
    kinds: dict[str, str] = {}
    """The columns of the one table, and their types: to plan with a column for each of theirs takes longer than the job."""
    places: list[dict[str, str]] = []
    """Of each table, which of these columns has which of its own."""
    for table in tables.values():
        place: dict[str, str] = {}
        found: Counter[str] = Counter()
        for field in table.schema:
            kind = field.dataType.simpleString()
            found[kind] += 1
            name = f"{_NOT_A_NAME.sub('_', kind)}_{found[kind]}"
            kinds[name] = kind
            place[name] = field.name
        places.append(place)
    # As a text, which is looked through once: each union of DataFrames looks through all before it.
    selects = [
        f"SELECT {number} AS place, "
        + ", ".join(
            f"{place[name]} AS {name}" if name in place else f"CAST(NULL AS {kind}) AS {name}"
            for name, kind in kinds.items()
        )
        + f" FROM {prefix}{number}"
        for number, place in enumerate(places)
    ]
    for number, table in enumerate(tables.values()):
        table.createOrReplaceTempView(f"{prefix}{number}")
    try:
        rows: Any = pa.table(spark.sql(" UNION ALL ".join(selects)).coalesce(tasks).toArrow())
    finally:
        for number in range(len(places)):
            spark.catalog.dropTempView(f"{prefix}{number}")
    return {
        name: rows.filter(pc.field("place") == number).select([*place]).rename_columns([*place.values()])
        for number, (name, place) in enumerate(zip(tables, places, strict=True))
    }
