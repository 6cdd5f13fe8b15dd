"""Runs definitions with DuckDB inside this process: without Java, for previews, answers in seconds.

What does not fit memory DuckDB keeps in a file beside the results, which is deleted in the end.
"""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from analytics.engines.duckdb_tables import quoted, read_files
from analytics.engines.engine import EXPORT_KINDS, EXPORTS_SCHEMA, OF_LATEST, export_rows
from analytics.engines.local_queries import LocalQueries, sql_columns
from analytics.reading.export_reader import are_small
from ravel.exports.checking import Export, ExportPart, authors_agree, latest_exports

_FOLDER: Final = "local-engine"
_PATH: Final = "path of the row's file"
_UNCOPIED_FILES_MAX: Final = 64
"""Files of a table up to which each query reads the files. Of more files, one copy of their rows is faster."""
_EXPORT_CELLS: Final[Mapping[str, pa.DataType]] = {
    "string": pa.string(),
    "bigint": pa.int64(),
    "boolean": pa.bool_(),
}


class LocalEngine(LocalQueries):
    """An engine in this process. Methods raise duckdb.Error; `order` also LargeBranchRefused."""

    def __init__(self, exports: Sequence[Export], out: Path) -> None:
        self._exports = exports
        self._out = out.absolute()
        self._scratch = self._out / _FOLDER
        shutil.rmtree(self._scratch, ignore_errors=True)  # of a run that was killed
        self._scratch.mkdir(parents=True)
        super().__init__(self._scratch, is_small=are_small(exports))

    def define_source(self, name: str) -> None:
        """See Engine."""
        if name == "exports":
            self._name_exports()
        elif name == "tangled":
            self.order_tangles()
        elif name == "commits":
            self._name_commits()
        elif name == "commits_with_node":
            self.need_source("commits")
            node = quoted(self._exports[0].node)
            self.define(name, f"SELECT *, {node} AS node FROM commits", is_kept=False)
        else:
            told = latest_exports(self._exports) if name in OF_LATEST else self._exports
            self._name_tables(name, name.partition("_by_")[0], told)

    def write(self, queries: Mapping[str, str]) -> None:
        """See Engine."""
        for name, query in queries.items():
            of_table = self._out / "tables" / name
            shutil.rmtree(of_table, ignore_errors=True)
            of_table.mkdir(parents=True)
            part = of_table / "part-00000.parquet"
            self._database.execute(
                f"COPY ({query}) TO {quoted(str(part))} (FORMAT parquet, COMPRESSION snappy)"
            )
            self.define(name, read_files([part]), is_kept=False)

    def close(self) -> None:
        """See Engine."""
        self._database.close()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def _name_commits(self) -> None:
        """Name each commit once, row by row as `load_commits` of `analytics.reading.export_reader` has them."""
        self.need_source("commits_by_node")
        self.need_source("voids_by_node")
        self.define_void_ids("voids_by_node")
        self.define_distinct(
            "commits",
            "commits_by_node",
            has_authors=authors_agree(self._exports),
            may_differ=len(self._exports) == 1,
        )

    def _name_exports(self) -> None:
        self._database.execute(f"CREATE OR REPLACE TABLE exports ({EXPORTS_SCHEMA})")
        rows = [dict(zip(EXPORT_KINDS, row, strict=True)) for row in export_rows(self._exports)]
        schema = pa.schema([(name, _EXPORT_CELLS[kind]) for name, kind in EXPORT_KINDS.items()])
        self._insert("exports", pa.Table.from_pylist(rows, schema=schema))

    def _insert(self, table: str, rows: pa.Table) -> None:
        self._database.register("told_rows", rows)
        self._database.execute(f"INSERT INTO {table} FROM told_rows")
        self._database.unregister("told_rows")

    def _name_tables(self, name: str, table: str, exports: Sequence[Export]) -> None:
        """Name the rows of a table as they stand in the files, with `node`, `source` and `created_at`."""
        columns = sql_columns(table)
        having = [(number, export) for number, export in enumerate(exports) if export.tables[table]]
        cells = [*columns]
        if len(having) == 1:
            ((number, export),) = having
            cells += [f"{quoted(export.node)} AS node", f"{number} AS source"]
            cells += [f"{export.created_at} AS created_at"]
            told = f"SELECT {', '.join(cells)} FROM ({_read_parts(export.tables[table])})"
        elif having:
            paths = self._name_files_of(f"{name}_files", table, having)
            cells += ["node", "coalesce(source, error('a row is of no file that is read')) AS source"]
            cells += ["created_at"]
            read = read_files(paths, _PATH)
            told = f'SELECT {", ".join(cells)} FROM ({read}) LEFT JOIN {name}_files USING ("{_PATH}")'
        else:
            cells = [f"CAST(NULL AS {kind}) AS {column}" for column, kind in columns.items()]
            cells += ["'' AS node", "0 AS source", "0 AS created_at"]
            told = f"SELECT {', '.join(cells)} WHERE false"
        parts = sum(len(export.tables[table]) for _, export in having)
        self.define(name, told, is_kept=parts > _UNCOPIED_FILES_MAX)

    def _name_files_of(self, name: str, table: str, exports: Sequence[tuple[int, Export]]) -> Sequence[Path]:
        """Make a table of the files of some exports, and give their paths. A query for each takes longer than to read it."""
        files = [
            (part.path.absolute(), number, export)
            for number, export in exports
            for part in export.tables[table]
        ]
        self._database.execute(
            f'CREATE OR REPLACE TABLE {name} ("{_PATH}" VARCHAR, node VARCHAR, source BIGINT, created_at BIGINT)'
        )
        cells: list[pa.Array[Any]] = [
            pa.array([str(path) for path, _, _ in files], pa.string()),
            pa.array([export.node for _, _, export in files], pa.string()),
            pa.array([number for _, number, _ in files], pa.int64()),
            pa.array([export.created_at for _, _, export in files], pa.int64()),
        ]
        self._insert(name, pa.table(cells, names=["path", "node", "source", "created_at"]))
        return [path for path, _, _ in files]


def _read_parts(parts: Sequence[ExportPart]) -> str:
    return read_files([part.path.absolute() for part in parts])
