"""Every figure of an analysis as a function of DataFrames, for notebooks and jobs of your own.

    import analytics.frames as figures

    commits = ravel.open_export(url).table("commits").spark(session)
    order = figures.order(commits)              # the canonical order, from parents alone
    figures.widths(order)                       # each table of docs/reference/analysis-tables.md has a function
    figures.merges(order)

Functions take DataFrames of Spark and give such. What they take are tables of exports, however they were read:
`ravel.open_export(...)`, `spark.read.format("ravel")`, `spark.read.parquet`, of one node or of several. Nothing is checked
here but what the order finds. Nothing is computed before the result is asked for, but for tables over time, which look for
the period that they cover. Sessions of Spark Connect are as good as others, but for branches of `giant_from` commits.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.utils import is_remote

from analytics.engines.engine import EXPORT_KINDS, EXPORTS_SCHEMA, Catalog, tables_below
from analytics.engines.spark_engine import SparkQueries
from analytics.order.branch_tasks import CARRIED, BranchDigest
from analytics.order.linearize import linearize
from analytics.reading.export_reader import SPARK_SCHEMAS, local_rows, one_row_per_id
from analytics.tables.definitions import TABLES
from ravel.exports.schema import SCHEMA_VERSION

FURTHER: Final = ("voids", "edits", "relay_commits", "relay_topics", "memberships", "members", "topics")
"""Tables of exports that functions take beside commits, by these names."""
_ORDERED: Final = "exported_rank"
"""A column that commits have once they are ordered."""
_CARRIED: Final = (*CARRIED, "acks", "feed_sequence", "is_void")
"""What figures are counted from, beside the order."""


def order(commits: DataFrame, voids: DataFrame | None = None, *, giant_from: int | None = None) -> DataFrame:
    """The commits in their order: `passed`, `rank`, `position` and `fault`, which says why one has no place.

    A commit that several nodes exported stands once. The rank that exports state is `exported_rank`, `is_disputed` says that
    copies contradict each other, `is_void` that `voids` name it. `acks_count`, `acked_at`, `causes_from` and `causes_until`
    are what other functions count by. Branches of `giant_from` commits and more are ordered by many tasks: commits are
    counted at once to find them. Raises LargeBranchRefused.
    """
    found = one_row_per_id(_told(commits, "commits"), has_authors=True)
    if voids is None:
        marked = found.withColumn("is_void", F.lit(False))  # a column's value
    else:
        void = voids.select("commit_id").distinct().withColumn("is_void", F.lit(True))  # as above
        marked = found.join(void, on="commit_id", how="left").fillna(False, ["is_void"])  # as above
    return linearize(
        marked.withColumn(_ORDERED, F.col("rank")), giant_from, carried=_CARRIED, with_shapes=True
    )


def table(name: str, commits: DataFrame, **further: DataFrame) -> DataFrame:
    """The table of this name, of commits as exported or as `order` gives them.

    `further` are the tables of FURTHER that it is counted from. Tables of what each node has (`stores`, `replication`,
    `edits`, ...) take commits as exported, with the column `node`. Raises KeyError for a name that is none, TypeError for a
    further table that FURTHER does not name, ValueError where commits are ordered that must be as exported.
    """
    needed = _closure(name)
    unknown = further.keys() - set(FURTHER)
    if unknown:
        raise TypeError(
            f"{name}() takes no table {', '.join(sorted(unknown))}; there are {', '.join(FURTHER)}"
        )
    queries = _Queries(commits, further)
    try:
        queries.order(None)
        _FrameCatalog(queries, further).write(needed)
        return queries.frame(f"SELECT * FROM {name}")  # a name of ours
    finally:
        # Spark Connect looks names up when rows are asked for. Views hold none, and go with the session.
        if not is_remote():
            queries.drop_views()


def __getattr__(name: str) -> Callable[..., DataFrame]:
    """A function for each table."""
    if name not in TABLES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    definition = TABLES[name]

    def figure(commits: DataFrame, **further: DataFrame) -> DataFrame:
        return table(name, commits, **further)

    figure.__name__ = figure.__qualname__ = name
    figure.__doc__ = definition.meaning
    return figure


def __dir__() -> list[str]:
    return ["order", "table", *TABLES]


def _closure(name: str) -> list[str]:
    """A table, and all that it is counted from."""
    found = {name: None}
    left = [name]
    while left:
        below = tables_below(TABLES[left.pop()], set()) - found.keys()
        found |= dict.fromkeys(sorted(below))
        left += below
    return [*found]


def _told(given: DataFrame, name: str, *more: Column) -> DataFrame:
    """A table of exports with the columns that it has: null where an older schema or another reader lacks one."""
    kinds = {column.split()[0]: column.split()[1] for column in SPARK_SCHEMAS[name].split(",")}
    return given.select(
        *[
            (F.col(column) if column in given.columns else F.lit(None).cast(kind)).alias(column)
            for column, kind in kinds.items()
        ],
        *more,
    )


class _FrameCatalog(Catalog):
    """Of tables that were given, which may be of several nodes."""

    def __init__(self, queries: "_Queries", given: Collection[str]) -> None:
        super().__init__(queries, ())
        self._filled = set(given)
        self._is_told_once = False  # to look would run a job before rows are asked for


class _Queries(SparkQueries):
    """An engine that names tables, and writes and keeps nothing."""

    def __init__(self, commits: DataFrame, further: Mapping[str, DataFrame]) -> None:
        super().__init__(commits.sparkSession)
        self._commits = commits
        self._further = further
        self._is_ordered = _ORDERED in commits.columns

    def define_source(self, name: str) -> None:
        """See Engine."""
        if name == "commits":
            placed = self._frames["placed"]
            stated = placed.drop("rank", "position").withColumnRenamed(_ORDERED, "rank")
            self.name(name, stated)
        elif name == "exports":
            self.name(name, self._exports())
        elif name == "commits_by_node" or name == "commits_with_node":
            self.name(name, self._by_node("commits", self._exported()))
        else:
            table = name.removesuffix("_by_node").removesuffix("_by_export")
            given = self._further.get(table)
            empty = local_rows(self._spark, SPARK_SCHEMAS[table])
            by_node = self._by_node(table, empty if given is None else given)
            # Of one node the rows are taken for one export.
            source = by_node.withColumns(
                {"source": F.xxhash64("node"), "created_at": F.lit(0).cast("bigint")}
            )
            self.name(name, source)

    def define_commits(self, name: str, within: str | None = None) -> None:
        """See Engine. Asked for where rows of an earlier analysis are kept, and here none are."""
        raise AssertionError(f"{name} within {within}: frames are read in full")

    def order(self, giant_from: int | None) -> None:
        """See Engine."""
        placed = self._commits
        if not self._is_ordered:
            placed = order(placed, self._further.get("voids"), giant_from=giant_from)
        self.name("placed", placed)
        self.name("ordered", placed.where(F.col("fault").isNull()))

    def digests(self) -> list[BranchDigest]:
        """See Engine. Not asked for here."""
        return []

    def define(self, name: str, query: str, *, is_kept: bool) -> None:
        """See Engine."""
        self.name(name, self.frame(query))

    def write(self, queries: Mapping[str, str], folder: str = "tables") -> None:
        """See Engine. Nothing is written, whatever `folder` says."""
        for name, query in queries.items():
            self.name(name, self.frame(query))

    def close(self) -> None:
        """See Engine."""
        self.drop_views()

    def _exported(self) -> DataFrame:
        if self._is_ordered:
            raise ValueError(
                "this figure is about what each node has: give commits as exported, and not as ordered"
            )
        return self._commits

    def _by_node(self, name: str, given: DataFrame) -> DataFrame:
        node = F.col("node") if "node" in given.columns else F.lit("")
        return _told(given, name, node.alias("node"))

    def _exports(self) -> DataFrame:
        """As though each node had one export, of which nothing else is known."""
        if self._is_ordered:
            return local_rows(self._spark, EXPORTS_SCHEMA)
        nodes = self._commits.select("node").distinct() if "node" in self._commits.columns else None
        known = {
            "created_at": F.lit(0),
            "schema_version": F.lit(SCHEMA_VERSION),
            "is_latest": F.lit(True),  # a column's value
        }
        rows = local_rows(self._spark, "node string", [("",)]) if nodes is None else nodes
        return rows.select(
            "node",
            *[
                known.get(name, F.lit(None)).cast(kind).alias(name)
                for name, kind in EXPORT_KINDS.items()
                if name != "node"
            ],
        )
