"""Counts of figures from a caller's Arrow tables, with DuckDB inside this process."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from analytics.engines.frame_kinds import ArrowStream, Columns, fit_arrow, read_arrow
from analytics.engines.given_tables import CARRIED_ON, ORDERED, columns_of, source_of
from analytics.engines.local_queries import LocalQueries


class LocalFrames(LocalQueries):
    """Engine of Arrow tables. Methods raise duckdb.Error; `order` also LargeBranchRefused, ValueError."""

    def __init__(self, given: Mapping[str, ArrowStream]) -> None:
        """Take tables by the names of their tables of exports, `commits` among them. Raises ValueError, TypeError."""
        read = {name: read_arrow(name, frame) for name, frame in given.items()}
        names = read["commits"].column_names
        self.is_ordered = ORDERED in names
        self._has_node = "node" in names and not self.is_ordered
        # All are looked at, also those that no figure asks for: a mistake shows where it was made.
        self._given = {name: fit_arrow(name, rows, self._wanted(name)) for name, rows in read.items()}
        self._scratch = TemporaryDirectory(prefix="ravel-frames-")
        super().__init__(Path(self._scratch.name), is_small=True, carried=CARRIED_ON, with_digests=False)

    def define_source(self, name: str) -> None:
        """See Engine."""
        if name == "tangled":
            self.order_tangles()
        elif name != "commits" or self.is_ordered:
            source = source_of(name, is_ordered=self.is_ordered, has_node=self._has_node)
            if source.table is not None:
                self._name_given(source.table)
            self.define(name, source.query, is_kept=False)
        elif name not in self._named:  # by `order`, which comes first
            self._name_given("commits")
            self._name_given("voids")
            self.define_void_ids("given_voids")
            self.define_distinct(name, "given_commits", has_authors=True, may_differ=True)

    def order(self, giant_from: int | None) -> None:
        """See Engine. Raises ValueError for ids that are none."""
        if not self.is_ordered:
            super().order(giant_from)
            return
        self._database.register("placed", self._given["commits"])
        self.define("ordered", "SELECT * FROM placed WHERE fault IS NULL", is_kept=False)

    def write(self, queries: Mapping[str, str]) -> None:
        """Define the tables without writing them."""
        for name, query in queries.items():
            self.define(name, query, is_kept=True)

    def result(self, name: str) -> pa.Table:
        """Return the rows of a relation."""
        rows: pa.Table = self._database.sql(f"SELECT * FROM {name}").to_arrow_table()
        return rows

    def close(self) -> None:
        """See Engine."""
        self._database.close()
        self._scratch.cleanup()

    def _wanted(self, name: str) -> Columns:
        return columns_of(name, is_ordered=self.is_ordered and name == "commits")

    def _name_given(self, table: str) -> None:
        rows = self._given.get(table)
        self._database.register(
            f"given_{table}", columns_of(table).schema().empty_table() if rows is None else rows
        )
