"""Every figure of an analysis as a function of DataFrames, for notebooks and jobs of your own.

    import analytics.frames as figures

    commits = ravel.open_export(url).table("commits").pandas()
    order = figures.order(commits)              # the canonical order, from parents alone
    figures.widths(order)                       # each table of docs/reference/analysis-tables.md has a function
    figures.merges(order)

Functions take DataFrames of pandas, polars or Spark, tables of pyarrow, or relations of DuckDB, all arguments of one kind,
and give that kind. What they take are tables of exports, however they were read: `ravel.open_export(...)`,
`spark.read.format("ravel")`, Parquet readers; of one node or of several. More columns are ignored. Nothing is checked here
but columns, and what the order finds. Rows of results have no order.

Spark counts what it is given, at any size; nothing is computed before rows are asked for, but for tables over time, which
look for the period that they cover. Sessions of Spark Connect are as good as others, but for branches of `giant_from`
commits. All else is counted at once in this process, by the same definitions, without Java.

Functions raise TypeError for an argument that is no such frame, is of another kind than `commits`, or has a column of
another type; ValueError for one that lacks a column or has values that no export has; LargeBranchRefused for a branch that
is too large for the engine. The message says what to do.
"""

from collections.abc import Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

import pyarrow as pa

from analytics.engines.frame_kinds import SPARK, AnyFrame, kind_of, names_of
from analytics.engines.given_tables import FURTHER, ORDERED, GivenCatalog, closure_of, reads_order
from analytics.tables.definitions import TABLES

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl
    from pyspark.sql import DataFrame

    from analytics.engines.local_frames import LocalFrames
    from analytics.engines.spark_frames import SparkFrames


Frame = TypeVar("Frame", pa.Table, "duckdb.DuckDBPyRelation", "pd.DataFrame", "pl.DataFrame", "DataFrame")
"""What functions take and give back."""


class Figure(Protocol):
    """A function for a table."""

    def __call__(self, commits: Frame, **further: Frame) -> Frame:
        """As `table` of its name."""
        ...


def order(commits: Frame, voids: Frame | None = None, *, giant_from: int | None = None) -> Frame:
    """The commits in their order: `passed`, `rank`, `position` and `fault`, which says why one has no place.

    A commit that several nodes exported stands once. The rank that exports state is `exported_rank`, `is_disputed` says that
    copies contradict each other, `is_void` that `voids` name it. `acks_count`, `acked_at`, `causes_from` and `causes_until`
    are what other functions count by. Spark orders branches of `giant_from` commits and more by many tasks: commits are
    counted at once to find them. Elsewhere a branch is ordered in one piece. Raises as the module says.
    """
    given: dict[str, AnyFrame] = (
        {"commits": commits} if voids is None else {"commits": commits, "voids": voids}
    )
    kind = kind_of(given)
    if ORDERED in names_of(commits):
        raise ValueError(f"commits are ordered already: they have the column {ORDERED}")
    found: Frame = _order(kind, given, giant_from)
    return found


def _order(kind: str, given: Mapping[str, AnyFrame], giant_from: int | None) -> AnyFrame:
    if kind == SPARK:
        from analytics.engines.spark_frames import order_commits

        return order_commits(given["commits"], given.get("voids"), giant_from)
    from analytics.engines.local_frames import LocalFrames

    with closing(LocalFrames(kind, given)) as engine:
        engine.order(giant_from)
        return engine.result("placed")


def table(name: str, commits: Frame, **further: Frame) -> Frame:
    """The table of this name, of commits as exported or as `order` gives them.

    `further` are the tables of FURTHER that it is counted from. Tables of what each node has (`stores`, `replication`,
    `edits`, ...) take commits as exported, with the column `node`. Raises KeyError for a name that is none, TypeError for a
    further table that FURTHER does not name, ValueError where commits are ordered that must be as exported; else as the
    module says.
    """
    needed = closure_of(name)
    unknown = further.keys() - set(FURTHER)
    if unknown:
        raise TypeError(
            f"{name}() takes no table {', '.join(sorted(unknown))}; there are {', '.join(FURTHER)}"
        )
    given = {"commits": commits, **further}
    with closing(_start(given)) as engine:
        if reads_order(needed):
            engine.order(None)
        GivenCatalog(engine, further).write(needed)
        return cast(Frame, engine.result(name))  # of the kind that was given


def _start(given: Mapping[str, AnyFrame]) -> "LocalFrames | SparkFrames":
    kind = kind_of(given)
    if kind == SPARK:
        from analytics.engines.spark_frames import SparkFrames

        return SparkFrames(given)
    from analytics.engines.local_frames import LocalFrames

    return LocalFrames(kind, given)


def __getattr__(name: str) -> Figure:
    """A function for each table."""
    if name not in TABLES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    definition = TABLES[name]

    def figure(commits: Frame, **further: Frame) -> Frame:
        return table(name, commits, **further)

    figure.__name__ = figure.__qualname__ = name
    figure.__doc__ = definition.meaning
    return figure


def __dir__() -> list[str]:
    return ["order", "table", *TABLES]
