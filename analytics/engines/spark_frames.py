"""Counts figures of Spark's DataFrames, in their session. Nothing is computed before rows are asked for."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.utils import is_remote

from analytics.engines.given_tables import CARRIED_ON, ORDERED, columns_of, source_of
from analytics.engines.spark_engine import SparkQueries
from analytics.order.linearize import linearize
from analytics.reading.export_reader import local_rows, one_row_per_id


def _order(commits: DataFrame, voids: DataFrame | None, giant_from: int | None) -> DataFrame:
    found = one_row_per_id(commits, has_authors=True)
    if voids is None:
        marked = found.withColumn("is_void", F.lit(False))  # a column's value
    else:
        void = voids.select("commit_id").distinct().withColumn("is_void", F.lit(True))  # as above
        marked = found.join(void, on="commit_id", how="left").fillna(False, ["is_void"])  # as above
    stated = marked.withColumn(ORDERED, F.col("rank"))
    return linearize(stated, giant_from, carried=CARRIED_ON, with_shapes=True)


class SparkFrames(SparkQueries):
    """An engine of Spark's DataFrames. Methods raise PySparkException; `order` also LargeBranchRefused."""

    def __init__(self, given: Mapping[str, DataFrame]) -> None:
        """`given` are frames by the names of their tables, `commits` among them. Raises ValueError, TypeError."""
        commits = given["commits"]
        self.is_ordered = ORDERED in commits.columns
        self._has_node = "node" in commits.columns and not self.is_ordered
        self._given = {
            name: _fit(name, frame, is_ordered=self.is_ordered and name == "commits")
            for name, frame in given.items()
        }
        super().__init__(commits.sparkSession)

    def define_source(self, name: str) -> None:
        """See Engine."""
        if name == "tangled":
            self.name(name, self.order_tangles())
            return
        source = source_of(name, is_ordered=self.is_ordered, has_node=self._has_node)
        if source.table is not None:
            self._name_given(source.table)
        self.define(name, source.query, is_kept=False)

    def order(self, giant_from: int | None) -> None:
        """See Engine."""
        placed = self._given["commits"]
        if not self.is_ordered:
            placed = _order(placed, self._given.get("voids"), giant_from)
        self.name("placed", placed)
        self.name("ordered", placed.where(F.col("fault").isNull()))

    def define(self, name: str, query: str, *, is_kept: bool) -> None:
        """See Engine. Nothing is kept, whatever `is_kept` is."""
        self.name(name, self.frame(query))

    def write(self, queries: Mapping[str, str]) -> None:
        """Define the tables without writing them."""
        for name, query in queries.items():
            self.define(name, query, is_kept=False)

    def result(self, name: str) -> DataFrame:
        """Return the rows of a relation."""
        return self.frame(f"SELECT * FROM {name}")

    def close(self) -> None:
        """See Engine."""
        # Spark Connect looks names up when rows are asked for. Views hold none, and go with the session.
        if not is_remote():
            self.drop_views()

    def _name_given(self, table: str) -> None:
        given = self._given.get(table)
        if given is None:
            kinds = columns_of(table).kinds
            given = local_rows(self._spark, ", ".join(f"{column} {kind}" for column, kind in kinds.items()))
        self.name(f"given_{table}", given)


def _fit(name: str, frame: DataFrame, *, is_ordered: bool = False) -> DataFrame:
    """Return the columns of a frame, in their types. Raises ValueError, TypeError."""
    wanted = columns_of(name, is_ordered=is_ordered)
    found = dict(frame.dtypes)
    wanted.check(name, found)
    cells: list[Any] = []
    for column, kind in wanted.kinds.items():
        if found.get(column) == kind:
            cells.append(F.col(column))
        else:
            cell = F.col(column) if column in found else F.lit(None)
            cells.append(cell.cast(kind).alias(column))
    return frame.select(*cells)
