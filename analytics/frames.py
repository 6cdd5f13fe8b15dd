"""Every figure of an analysis as a function of DataFrames, for notebooks and jobs of your own.

    import analytics.frames as figures

    commits = ravel.open_export(url).table("commits").pandas()
    order = figures.order(commits)              # the canonical order, from parents alone
    figures.widths(order).to_pandas()           # each table of docs/research/tables.md but `digests` has a function
    figures.merges(order)

Functions take tables of exports, however they were read: `ravel.open_export(...)`, `spark.read.format("ravel")`, Parquet
readers; of one node or of several. More columns are ignored. Nothing is checked here but columns, and what the order finds.
Rows of results have no order. There are two kinds of tables:

- Any object with Arrow's PyCapsule interface (`__arrow_c_stream__`: pyarrow, pandas, polars, DuckDB, Ibis). Figures are
  counted at once in this process, without Java. The result is a `pyarrow.Table`: `.to_pandas()`, `polars.from_arrow(...)`.
- DataFrames of Spark, classic or Connect. The result is a DataFrame of the same session, at any size. Nothing is computed
  before rows are asked for, but for tables over time, which look for the period that they cover.

Functions raise TypeError for an argument that is no such table, for both kinds in one call, and for a column of another
type; ValueError for one that lacks a column or has values that no export has; LargeBranchRefused for a branch that is too
large for the engine. The message says what to do.
"""

from collections.abc import Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, cast

from analytics.engines.frame_kinds import ArrowStream, is_of_spark
from analytics.engines.given_tables import FURTHER, ORDERED, GivenCatalog, closure_of, reads_order
from analytics.tables.definitions import TABLES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from analytics.engines.local_frames import LocalFrames
    from analytics.engines.spark_frames import SparkFrames

    GivenFrame: TypeAlias = ArrowStream | DataFrame
    """A table that functions take. They return a `pyarrow.Table`, or a DataFrame of Spark where these are given."""


FIGURES: Final = tuple(name for name in TABLES if name != "digests")
"""Tables that there is a function for: all but digests, which tasks find only where rows are written."""


class Figure(Protocol):
    """A function for one table of an analysis."""

    def __call__(
        self, commits: "GivenFrame", *, with_every_tangle: bool = False, **further: "GivenFrame"
    ) -> Any:  # noqa: ANN401  # as `order`
        """Return the table of this name, as `table` does."""
        ...


def order(commits: "GivenFrame", voids: "GivenFrame | None" = None, *, giant_from: int | None = None) -> Any:  # noqa: ANN401  # callers know which kind they gave
    """Return the commits in their order: `passed`, `rank`, `position` and `fault`, which says why one has no place.

    A commit that several nodes exported stands once. The rank that exports state is `exported_rank`, `is_disputed` says that
    copies contradict each other, `is_void` that `voids` name it. `acks_count`, `acked_count`, `acked_from`, `causes_from`
    and `causes_until` are what other functions count by. Spark orders branches of `giant_from` commits and more by many
    tasks: commits are counted at once to find them. Elsewhere a branch is ordered in one piece. Raises as the module says.
    """
    given = {"commits": commits} if voids is None else {"commits": commits, "voids": voids}
    with closing(_start(given)) as engine:
        if engine.is_ordered:
            raise ValueError(f"commits are ordered already: they have the column {ORDERED}")
        engine.order(giant_from)
        return engine.result("placed")


def table(
    name: str, commits: "GivenFrame", *, with_every_tangle: bool = False, **further: "GivenFrame"
) -> Any:  # noqa: ANN401  # callers know which kind they gave
    """Return a table by its name, computed from commits as exported or as ordered by `order`.

    `further` are tables of FURTHER that it also needs. Tables of what each node has (`stores`, `replication`, `edits`, ...)
    take commits as exported, with the column `node`. `with_every_tangle` adds feeds and groups to figures of tangles, at
    twice the cost of all branches. Raises KeyError for an unknown name, TypeError for an unknown further table, ValueError
    if ordered commits are given in place of exported ones; else as the module says.
    """
    if name not in FIGURES:
        raise KeyError(name)
    needed = closure_of(name)
    unknown = further.keys() - set(FURTHER)
    if unknown:
        raise TypeError(
            f"{name}() takes no table {', '.join(sorted(unknown))}; there are {', '.join(FURTHER)}"
        )
    given = {"commits": commits, **further}
    with closing(_start(given)) as engine:
        engine.with_every_tangle = with_every_tangle
        if reads_order(needed):
            engine.order(None)
        GivenCatalog(engine, further).write(needed)
        return engine.result(name)


def _start(given: Mapping[str, "GivenFrame"]) -> "LocalFrames | SparkFrames":
    of_spark = {name for name, frame in given.items() if is_of_spark(frame)}
    if not of_spark:
        from analytics.engines.local_frames import LocalFrames

        return LocalFrames(given)
    if len(of_spark) < len(given):
        raise TypeError(
            f"{', '.join(sorted(of_spark))}: of Spark, and the other tables are not: give all as one kind"
        )
    from analytics.engines.spark_frames import SparkFrames

    return SparkFrames(cast("Mapping[str, DataFrame]", given))


def __getattr__(name: str) -> Figure:
    """Return the function for a table."""
    if name not in FIGURES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    definition = TABLES[name]

    def figure(commits: "GivenFrame", *, with_every_tangle: bool = False, **further: "GivenFrame") -> Any:  # noqa: ANN401  # callers know which kind they gave
        return table(name, commits, with_every_tangle=with_every_tangle, **further)

    figure.__name__ = figure.__qualname__ = name
    figure.__doc__ = definition.meaning
    return figure


def __dir__() -> list[str]:
    return ["order", "table", *FIGURES]
