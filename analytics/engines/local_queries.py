"""A database of DuckDB in this process: named queries, and the order of its commits.

Branches are ordered by the same code as in Spark's tasks, some at a time: as many as fit LOCAL_ORDER_COMMITS, a larger one
alone.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa

from analytics.engines.duckdb_tables import fetch
from analytics.engines.engine import PLACES_CARRIED, places
from analytics.order import kernel
from analytics.order.branch_tasks import (
    CARRIED,
    LargeBranchRefused,
    linearize_batches,
    placed_schema,
)
from analytics.order.shapes import TIMES
from analytics.reading.export_reader import SPARK_SCHEMAS
from analytics.reading.limits import LOCAL_BRANCH_COMMITS_MAX, LOCAL_MEMORY_MAX, LOCAL_ORDER_COMMITS
from analytics.tables.functions import DUCKDB

_BATCH_ROWS: Final = 100_000


class LocalQueries(ABC):
    """Part of an engine. Methods raise duckdb.Error; `order` also LargeBranchRefused."""

    with_every_tangle = False

    def __init__(
        self,
        scratch: Path,
        *,
        is_small: bool,
        carried: Sequence[str] = CARRIED,
        with_digests: bool = True,
    ) -> None:
        """Open the database. It spills to the folder `scratch`, and keeps tables there that are not small.

        `carried` goes with the order, and the branches' digests if they are wanted.
        """
        self._carried = carried
        self._with_digests = with_digests
        self._database = duckdb.connect(
            ":memory:" if is_small else str(scratch / "tables.duckdb"),
            config={
                "autoinstall_known_extensions": "false",  # nothing is fetched from elsewhere
                "memory_limit": f"{LOCAL_MEMORY_MAX >> 20}MiB",
                "temp_directory": str(scratch),
                "preserve_insertion_order": "false",  # would hold more in memory; tables have no order
            },
        )
        for statement in DUCKDB:
            self._database.execute(statement)
        self._named: set[str] = set()

    @property
    def rows_elsewhere(self) -> Mapping[str, int]:
        """See Engine."""
        return {}

    @abstractmethod
    def define_source(self, name: str) -> None:
        """See Engine."""

    def need_source(self, name: str) -> None:
        """Bring a source unless it is there."""
        if name not in self._named:
            self.define_source(name)

    def order(self, giant_from: int | None) -> None:
        """See Engine. A branch is ordered in one piece, whatever `giant_from` says."""
        self.need_source("commits")
        self._order_all("commits", "placed", self._carried, with_digests=self._with_digests)
        self.define("ordered", "SELECT * FROM placed WHERE fault IS NULL", is_kept=False)

    def order_tangles(self) -> None:
        """Order the tangles that commits state, as `tangled`. Raises LargeBranchRefused."""
        for source in ("commits", "tangles_by_node", "memberships_by_export"):
            self.need_source(source)
        self.define("stated_places", places(with_every_tangle=self.with_every_tangle), is_kept=True)
        self._order_all("stated_places", "tangled", PLACES_CARRIED, with_digests=False)
        self._named.add("tangled")

    def _order_all(self, stated: str, ordered: str, carried: Sequence[str], *, with_digests: bool) -> None:
        """Order the branches of a relation, as a table."""
        for group in range(self._group_branches(stated)):
            batches = self._order_group(stated, group, carried, with_digests=with_digests)
            self._database.register("ordered_batches", batches)
            what = f"INSERT INTO {ordered}" if group else f"CREATE OR REPLACE TABLE {ordered} AS"
            self._database.execute(f"{what} FROM ordered_batches")
            self._database.unregister("ordered_batches")

    def define(self, name: str, query: str, *, is_kept: bool) -> None:
        """See Engine."""
        what = "TABLE" if is_kept else "VIEW"
        self._database.execute(f"CREATE OR REPLACE {what} {name} AS {query}")
        self._named.add(name)

    def rows(self, query: str) -> list[dict[str, Any]]:
        """See Engine."""
        return fetch(self._database, query)

    def define_void_ids(self, stated: str) -> None:
        """Name the ids of void commits `void_ids`, from a relation that states them."""
        self.define("void_ids", f"SELECT DISTINCT commit_id, true AS is_void FROM {stated}", is_kept=False)

    def define_distinct(self, name: str, stated: str, *, has_authors: bool, may_differ: bool) -> None:
        """Name each commit of a relation once, marked by `void_ids`. With `may_differ` all ids are likely to differ."""
        (found,) = self.rows(
            f"SELECT count(*) = count(DISTINCT hash(commit_id)) AS differ FROM {stated}"
            if may_differ
            else "SELECT false AS differ"
        )
        do_differ = bool(found["differ"])  # as many different hashes as rows prove as many ids
        alone = f"SELECT *, false AS is_disputed FROM {stated}"
        told = alone if do_differ else _one_row_per_id(stated, has_authors)
        query = f"""
            SELECT told.*, coalesce(is_void, false) AS is_void
            FROM ({told}) AS told LEFT JOIN void_ids USING (commit_id)
        """
        # Where all differ, rows are where they came from, which is read as fast as a copy of them.
        self.define(name, query, is_kept=not do_differ)

    def _group_branches(self, stated: str) -> int:
        """Number the branches by groups that are ordered at once, as the table `branch_groups`; gives how many there are."""
        sizes = self._database.execute(
            f"SELECT branch_id, count(*) AS size FROM {stated} GROUP BY branch_id ORDER BY size DESC, branch_id"
        ).fetchall()
        if sizes and sizes[0][1] > LOCAL_BRANCH_COMMITS_MAX:
            raise LargeBranchRefused(
                f"branch {sizes[0][0].hex()[:16]} has {sizes[0][1]:,} commits, and the local engine orders at most "
                f"{LOCAL_BRANCH_COMMITS_MAX:,} of one branch. Spark orders it in many tasks: leave out --engine local, "
                "or give analytics.frames a DataFrame of Spark"
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

    def _order_group(
        self, stated: str, group: int, carried: Sequence[str], *, with_digests: bool
    ) -> pa.RecordBatchReader:
        """Order the branches of a group."""
        names = dict.fromkeys(("branch_id", "commit_id", "acks", "sequence", *TIMES, *carried))
        cells = ", ".join("rank AS exported_rank" if name == "exported_rank" else name for name in names)
        reader = self._database.sql(
            f"""
            SELECT {cells},
                CAST(CASE
                    WHEN is_void THEN {kernel.MARKED_VOID}
                    WHEN body_kind = 'checkpoint' THEN {kernel.MARKED_CHECKPOINT}
                    ELSE {kernel.UNMARKED}
                END AS TINYINT) AS mark
            FROM {stated}
            SEMI JOIN (SELECT branch_id FROM branch_groups WHERE branch_group = {group}) AS chosen USING (branch_id)
            """
        ).to_arrow_reader(_BATCH_ROWS)
        # All are read before: the database then has no other query under way as it takes what comes.
        ordered = linearize_batches(iter([*reader]), carried, with_shapes=True, with_digests=with_digests)
        return pa.RecordBatchReader.from_batches(placed_schema(carried, with_digests=with_digests), ordered)


def _one_row_per_id(stated: str, has_authors: bool) -> str:
    """Return a query for the rows of a relation, as `one_row_per_id` of `analytics.reading.export_reader` has them.

    Copies are told apart by hashes, and the few that differ are sorted: to sort all of them takes twelve times as long.
    """
    columns = sql_columns("commits")
    # What every node computes alike. Names, times of receipt and sequences may differ between nodes.
    alike = ", ".join(["branch_id", "acks", "rank"] + ["author"] * has_authors)
    told = ", ".join("first_shown AS shown_at" if name == "shown_at" else name for name in columns)
    order = ", ".join(f"{name} NULLS FIRST" for name in columns)
    return f"""
        WITH firsts AS (
            SELECT commit_id, min(sequence) AS sequence, min(shown_at) AS first_shown FROM {stated} GROUP BY commit_id
        ), candidates AS (
            SELECT DISTINCT {told} FROM {stated} JOIN firsts USING (commit_id, sequence)
        ), contents AS (
            SELECT DISTINCT commit_id, {alike} FROM {stated}
        ), disputed AS (
            SELECT commit_id, true AS is_disputed FROM contents GROUP BY commit_id HAVING count(*) > 1
        )
        SELECT {", ".join(columns)}, coalesce(is_disputed, false) AS is_disputed
        FROM candidates LEFT JOIN disputed USING (commit_id)
        QUALIFY row_number() OVER (PARTITION BY commit_id ORDER BY {order}) = 1
    """


def sql_columns(table: str) -> dict[str, str]:
    """Columns of a table of exports with their types in SQL."""
    return dict(
        column.split() for column in SPARK_SCHEMAS[table].replace("array<binary>", "BINARY[]").split(",")
    )
