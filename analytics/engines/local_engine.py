"""Runs definitions with DuckDB inside this process: without Java, for previews, answers in seconds.

Branches are ordered by the same code as in Spark's tasks, some at a time: as many as fit LOCAL_ORDER_COMMITS, a larger one
alone. What does not fit memory DuckDB keeps in a file beside the results, which is deleted in the end.
"""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa

from analytics.engines.duckdb_tables import fetch, quoted, read_files
from analytics.engines.engine import DIGESTS, EXPORT_KINDS, EXPORTS_SCHEMA, export_rows
from analytics.order import kernel
from analytics.order.branch_tasks import (
    CARRIED,
    BranchDigest,
    LargeBranchRefused,
    linearize_batches,
    placed_schema,
)
from analytics.reading.export_reader import SPARK_SCHEMAS, are_small
from analytics.reading.limits import LOCAL_BRANCH_COMMITS_MAX, LOCAL_MEMORY_MAX, LOCAL_ORDER_COMMITS
from analytics.tables.functions import DUCKDB
from ravel.exports.checking import Export, ExportPart, authors_agree, latest_exports
from ravel.exports.schema import columns_of

_FOLDER: Final = "local-engine"
_BATCH_ROWS: Final = 100_000
_PATH: Final = "path of the row's file"
_EXPORT_CELLS: Final[Mapping[str, pa.DataType]] = {
    "string": pa.string(),
    "bigint": pa.int64(),
    "boolean": pa.bool_(),
}
_ORDER_COLUMNS: Final = tuple(dict.fromkeys(("branch_id", "commit_id", "acks", "sequence", "time", *CARRIED)))


class LocalEngine:
    """An engine in this process. Methods raise duckdb.Error; `order` also LargeBranchRefused."""

    def __init__(self, exports: Sequence[Export], out: Path) -> None:
        self._exports = exports
        self._out = out.absolute()
        self._scratch = self._out / _FOLDER
        shutil.rmtree(self._scratch, ignore_errors=True)  # of a run that was killed
        self._scratch.mkdir(parents=True)
        file = ":memory:" if are_small(exports) else str(self._scratch / "tables.duckdb")
        self._database = duckdb.connect(
            file,
            config={
                "autoinstall_known_extensions": "false",  # nothing is fetched from elsewhere
                "memory_limit": f"{LOCAL_MEMORY_MAX >> 20}MiB",
                "temp_directory": str(self._scratch),
                "preserve_insertion_order": "false",  # would hold more in memory; tables have no order
            },
        )
        for statement in DUCKDB:
            self._database.execute(statement)
        self._named: set[str] = set()

    def define_source(self, name: str) -> None:
        """See Engine."""
        if name == "exports":
            self._name_exports()
        elif name == "all_commits" and len(self._exports) == 1:
            self._name_all_commits()
        elif name in ("commits", "all_commits"):
            self.define_commits(name)
        elif name.endswith("commits_with_node"):
            commits = name.removesuffix("_with_node")
            self._need(commits)
            node = quoted(self._exports[0].node)
            self.define(name, f"SELECT *, {node} AS node FROM {commits}", is_kept=False)
        elif name == "relay_topics_by_node":
            self._name_tables(name, "relay_topics", latest_exports(self._exports))
        else:
            self._name_tables(name, name.removeprefix("all_").partition("_by_")[0], self._exports)

    def name_files(self, name: str, paths: Sequence[Path]) -> None:
        """See Engine."""
        self.define(name, read_files([path.absolute() for path in paths]), is_kept=False)

    def order(self, giant_from: int | None) -> None:
        """See Engine. A branch is ordered in one piece, whatever `giant_from` says."""
        self._need("commits")
        groups = self._group_branches()
        for group in range(groups):
            self._order_group(group, is_first=group == 0)
        self.define("ordered", "SELECT * FROM placed WHERE fault IS NULL", is_kept=False)

    def digests(self) -> list[BranchDigest]:
        """See Engine."""
        return [BranchDigest(**row) for row in self.rows(DIGESTS)]

    def define(self, name: str, query: str, *, is_kept: bool) -> None:
        """See Engine."""
        what = "TABLE" if is_kept else "VIEW"
        self._database.execute(f"CREATE OR REPLACE {what} {name} AS {query}")
        self._named.add(name)

    def write(self, queries: Mapping[str, str], folder: str = "tables") -> None:
        """See Engine."""
        for name, query in queries.items():
            of_table = self._out / folder / name
            shutil.rmtree(of_table, ignore_errors=True)
            of_table.mkdir(parents=True)
            part = of_table / "part-00000.parquet"
            self._database.execute(
                f"COPY ({query}) TO {quoted(str(part))} (FORMAT parquet, COMPRESSION snappy)"
            )
            self.define(name, read_files([part]), is_kept=False)

    def rows(self, query: str) -> list[dict[str, Any]]:
        """See Engine."""
        return fetch(self._database, query)

    def close(self) -> None:
        """See Engine."""
        self._database.close()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def _need(self, name: str) -> None:
        if name not in self._named:
            self.define_source(name)

    def _name_stated(self) -> None:
        self._name_tables("stated_commits", "commits", self._exports)
        self._name_tables("stated_voids", "voids", self._exports)
        self.define("void_ids", "SELECT DISTINCT commit_id, true AS is_void FROM stated_voids", is_kept=False)

    def _name_all_commits(self) -> None:
        self._name_stated()
        if any(export.tables["voids"] for export in self._exports):
            told, is_void = "stated_commits LEFT JOIN void_ids USING (commit_id)", "coalesce(is_void, false)"
        else:  # ids are most of a commit's bytes, and so not read
            told, is_void = "stated_commits", "false"
        columns = ", ".join(_columns("commits"))
        query = f"SELECT {columns}, false AS is_disputed, {is_void} AS is_void FROM {told}"
        self.define("all_commits", query, is_kept=False)

    def define_commits(self, name: str, within: str | None = None) -> None:
        """See Engine. As `load_commits` of `analytics.reading.export_reader` has them, row by row."""
        self._name_stated()
        stated = "stated_commits"
        if within is not None:
            stated = f"stated_{name}_within"
            of_branches = f"SELECT * FROM stated_commits SEMI JOIN {within} USING (branch_id)"
            self.define(stated, of_branches, is_kept=False)
        (found,) = self.rows(
            f"SELECT count(*) = count(DISTINCT hash(commit_id)) AS differ FROM {stated}"
            if len(self._exports) == 1
            else "SELECT false AS differ"
        )
        if found["differ"]:  # as many different hashes as rows prove as many ids
            told = f"SELECT *, false AS is_disputed FROM {stated}"
        else:
            told = _one_row_per_id(stated, authors_agree(self._exports))
        query = f"""
            SELECT told.*, coalesce(is_void, false) AS is_void
            FROM ({told}) AS told LEFT JOIN void_ids USING (commit_id)
        """
        # Of one export rows are the files', which are read as fast as a copy of them.
        self.define(name, query, is_kept=not found["differ"])

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
        """The rows of a table as they stand in the files, with `node`, `source` and `created_at`."""
        columns = _columns(table)
        alike: dict[tuple[str, ...], list[tuple[int, Export]]] = {}
        """Exports that have the same columns, which are read at once."""
        for number, export in enumerate(exports):
            if export.tables[table]:
                alike.setdefault(tuple(columns_of(table, export.schema_version).names), []).append(
                    (number, export)
                )
        told = []
        for there, having in alike.items():
            cells = [
                column if column in there else f"CAST(NULL AS {kind}) AS {column}"
                for column, kind in columns.items()
            ]
            if len(having) == 1:
                ((number, export),) = having
                cells += [f"{quoted(export.node)} AS node", f"{number} AS source"]
                cells += [f"{export.created_at} AS created_at"]
                told.append(f"SELECT {', '.join(cells)} FROM ({_read_parts(export.tables[table])})")
            else:
                files = f"{name}_files_{len(told)}"
                paths = self._name_files_of(files, table, having)
                cells += ["node", "coalesce(source, error('a row is of no file that is read')) AS source"]
                cells += ["created_at"]
                read = read_files(paths, _PATH)
                told.append(f'SELECT {", ".join(cells)} FROM ({read}) LEFT JOIN {files} USING ("{_PATH}")')
        if not told:
            cells = [f"CAST(NULL AS {kind}) AS {column}" for column, kind in columns.items()]
            cells += ["'' AS node", "0 AS source", "0 AS created_at"]
            told = [f"SELECT {', '.join(cells)} WHERE false"]
        self.define(name, " UNION ALL ".join(told), is_kept=False)

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

    def _group_branches(self) -> int:
        """Number the branches by groups that are ordered at once, as the table `branch_groups`; gives how many there are."""
        sizes = self._database.execute(
            "SELECT branch_id, count(*) AS size FROM commits GROUP BY branch_id ORDER BY size DESC, branch_id"
        ).fetchall()
        if sizes and sizes[0][1] > LOCAL_BRANCH_COMMITS_MAX:
            raise LargeBranchRefused(
                f"branch {sizes[0][0].hex()[:16]} has {sizes[0][1]:,} commits, and the local engine orders at most "
                f"{LOCAL_BRANCH_COMMITS_MAX:,} of one branch. Leave out --engine local: Spark orders it in many tasks"
            )
        groups, group, free = [], -1, 0
        for _, size in sizes:
            if size > free:
                group, free = group + 1, max(LOCAL_ORDER_COMMITS, size)
            free -= size
            groups.append(group)
        numbered = pa.table(
            {
                "branch_id": pa.array([row[0] for row in sizes], pa.binary()),
                "branch_group": pa.array(groups, pa.int64()),
            }
        )
        self._database.register("numbered_branches", numbered)
        self._database.execute("CREATE OR REPLACE TABLE branch_groups AS FROM numbered_branches")
        self._database.unregister("numbered_branches")
        return max(group + 1, 1)

    def _order_group(self, group: int, *, is_first: bool) -> None:
        """Order the branches of a group, and add their commits to `placed`."""
        cells = ", ".join(
            "rank AS exported_rank" if name == "exported_rank" else name for name in _ORDER_COLUMNS
        )
        reader = self._database.sql(
            f"""
            SELECT {cells},
                CAST(CASE
                    WHEN is_void THEN {kernel.MARKED_VOID}
                    WHEN body_kind = 'checkpoint' THEN {kernel.MARKED_CHECKPOINT}
                    ELSE {kernel.UNMARKED}
                END AS TINYINT) AS mark
            FROM commits
            SEMI JOIN (SELECT branch_id FROM branch_groups WHERE branch_group = {group}) AS chosen USING (branch_id)
            """
        ).to_arrow_reader(_BATCH_ROWS)
        # All are read before: the database then has no other query under way as it takes what comes.
        ordered = linearize_batches(iter([*reader]), CARRIED, with_shapes=True, with_digests=True)
        batches = pa.RecordBatchReader.from_batches(placed_schema(), ordered)
        self._database.register("ordered_batches", batches)
        what = "CREATE OR REPLACE TABLE placed AS" if is_first else "INSERT INTO placed"
        self._database.execute(f"{what} FROM ordered_batches")
        self._database.unregister("ordered_batches")


def _one_row_per_id(stated: str, has_authors: bool) -> str:
    """A query for the rows of a relation, as `one_row_per_id` of `analytics.reading.export_reader` has them.

    Copies are told apart by hashes, and the few that differ are sorted: to sort all of them takes twelve times as long.
    """
    columns = _columns("commits")
    # What every node computes alike. Names, times of receipt and sequences may differ between nodes.
    alike = ", ".join(["branch_id", "acks", "rank"] + ["author"] * has_authors)
    order = ", ".join(f"{name} NULLS FIRST" for name in columns)
    return f"""
        WITH firsts AS (
            SELECT commit_id, min(sequence) AS sequence FROM {stated} GROUP BY commit_id
        ), candidates AS (
            SELECT DISTINCT {", ".join(columns)} FROM {stated} SEMI JOIN firsts USING (commit_id, sequence)
        ), contents AS (
            SELECT DISTINCT commit_id, {alike} FROM {stated}
        ), disputed AS (
            SELECT commit_id, true AS is_disputed FROM contents GROUP BY commit_id HAVING count(*) > 1
        )
        SELECT {", ".join(columns)}, coalesce(is_disputed, false) AS is_disputed
        FROM candidates LEFT JOIN disputed USING (commit_id)
        QUALIFY row_number() OVER (PARTITION BY commit_id ORDER BY {order}) = 1
    """


def _columns(table: str) -> dict[str, str]:
    """Columns of a table of exports with their types in SQL."""
    return dict(
        column.split() for column in SPARK_SCHEMAS[table].replace("array<binary>", "BINARY[]").split(",")
    )


def _read_parts(parts: Sequence[ExportPart]) -> str:
    return read_files([part.path.absolute() for part in parts])
