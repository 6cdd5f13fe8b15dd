"""Runs definitions with Spark: at any size, on one machine or a cluster.

Relations are temporary views, and each run gives them names of its own. So a session that the caller uses too keeps the
caller's views.
"""

import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from analytics.engines.engine import (
    EXPORTS_SCHEMA,
    LINEARIZATION,
    OF_LATEST,
    PLACES_CARRIED,
    export_rows,
    places,
)
from analytics.engines.spark_tables import JOB_DESCRIPTION, TableWriter, describe
from analytics.order.branch_tasks import CARRIED
from analytics.order.linearize import OrderedBranches, keep_order, order_branches, with_digests_of_giants
from analytics.reading.export_reader import (
    are_small,
    count_rows,
    gather,
    load_commits,
    local_rows,
    read_by_export,
)
from analytics.session import runs_here, start_session, stop_session
from analytics.tables.definitions import NAMES_TABLE
from analytics.tables.functions import SPARK
from ravel.exports.checking import Export, latest_exports

_FOLDER: Final = ".spark-order"
"""Below the results, for as long as the engine runs: what tasks have ordered."""
_READ: Final = re.compile(r"\b(FROM|JOIN)(\s+)(\w+)")
_NO_GIANT: Final = 0
"""Commits of the largest tangle, as the order is told: none is looked for, and none ordered by many tasks."""
_runs: Final = count(1)


class SparkQueries(ABC):
    """Named queries in a session. Methods raise PySparkException."""

    with_every_tangle = False

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._prefix = f"ravel_{next(_runs)}_"
        self._frames: dict[str, DataFrame] = {}
        for statement in SPARK:
            self._spark.sql(statement)

    def frame(self, query: str) -> DataFrame:
        """Return a query as a DataFrame."""
        return self._spark.sql(_READ.sub(self._renamed, query))

    def rows(self, query: str) -> list[dict[str, Any]]:
        """See Engine."""
        return [
            {
                name: bytes(cell) if isinstance(cell, bytearray) else cell
                for name, cell in row.asDict().items()
            }
            for row in self.frame(query).collect()
        ]

    def name(self, name: str, frame: DataFrame) -> None:
        """Register a DataFrame under a name for later queries."""
        self._frames[name] = frame
        frame.createOrReplaceTempView(self._prefix + name)

    def need_source(self, name: str) -> None:
        """Bring a source unless it is there."""
        if name not in self._frames:
            self.define_source(name)

    @property
    def rows_elsewhere(self) -> Mapping[str, int]:
        """See Engine."""
        return {}

    @abstractmethod
    def define_source(self, name: str) -> None:
        """See Engine."""

    def order_tangles(self) -> DataFrame:
        """Return the order of the tangles that commits state. Each is ordered in one piece, but for feeds and groups."""
        for source in ("commits", "tangles_by_node", "memberships_by_export"):
            self.need_source(source)
        stated = self.frame(places(with_every_tangle=self.with_every_tangle))
        commits_max = None if self.with_every_tangle else _NO_GIANT
        return order_branches(stated, carried=PLACES_CARRIED, with_shapes=True, commits_max=commits_max).order

    def drop_views(self) -> None:
        """Let go of all names. What was made of them can still be computed."""
        for name in self._frames:
            self._spark.catalog.dropTempView(self._prefix + name)

    def _renamed(self, read: re.Match[str]) -> str:
        name = read[3]
        return f"{read[1]}{read[2]}{self._prefix}{name} AS {name}" if name in self._frames else read[0]


class SparkEngine(SparkQueries):
    """An engine in a session of Spark. Methods raise PySparkException; `order` also LargeBranchRefused."""

    def __init__(
        self,
        exports: Sequence[Export],
        out: Path,
        *,
        master: str | None = None,
        spark: SparkSession | None = None,
        conf: Mapping[str, str] | None = None,
        out_url: str = "",
    ) -> None:
        """Start Spark with settings, or take a session that is left running. Raises JavaMissing, MasterRefused.

        With `out_url` a cluster's machines need not see `out`: tasks write large tables there, and rows are kept by Spark.
        """
        self._is_small = are_small(exports)
        self._commits_max = sum(export.rows for export in exports)
        self._exports = exports
        self._is_own = spark is None
        self._out = out
        shutil.rmtree(out / _FOLDER, ignore_errors=True)  # of a run that was killed
        super().__init__(
            spark
            or start_session(
                master,
                rows=count_rows(exports),
                log_path=out / "spark.log",
                shared=None if out_url else out,
                conf=conf or {},
            )
        )
        url = "" if runs_here(master, self._spark) else out_url
        self._scratch = None if url else out / _FOLDER
        self._described = self._spark.sparkContext.getLocalProperty(JOB_DESCRIPTION)
        self._tables = TableWriter(self._spark, out, is_small=self._is_small, url=url)
        self._kept: list[DataFrame] = []
        self._ordered: OrderedBranches | None = None
        """Order that is in files, until its table is written from them."""

    def check(self, check: Callable[[SparkSession, Sequence[Export]], list[Export]]) -> list[Export]:
        """Check the exports in tasks, and read the sound ones. Raises ExportError."""
        describe(self._spark, "check the parts of the exports")
        self._exports = found = check(self._spark, self._exports)
        return found

    @property
    def rows_elsewhere(self) -> Mapping[str, int]:
        """See Engine."""
        return self._tables.rows_elsewhere

    def define_source(self, name: str) -> None:
        """See Engine."""
        describe(self._spark, f"bring {name}")
        if name == "commits":
            self._name_commits()
            return
        if name == "tangled":
            tangled = gather(self.order_tangles(), self._exports)
            self._kept.append(tangled.persist())
            self.name(name, tangled)
            return
        made: dict[str, Callable[[], DataFrame]] = {
            "exports": lambda: gather(
                local_rows(self._spark, EXPORTS_SCHEMA, export_rows(self._exports)), self._exports
            ),
            "commits_with_node": lambda: self._need("commits").withColumn(
                "node", F.lit(self._exports[0].node)
            ),
        }
        told = latest_exports(self._exports) if name in OF_LATEST else self._exports
        frame = made[name]() if name in made else read_by_export(self._spark, told, name.partition("_by_")[0])
        if name not in made and not _are_here(self._exports):
            self._kept.append(frame.persist())
        self.name(name, frame)

    def order(self, giant_from: int | None) -> None:
        """See Engine."""
        commits = self._need("commits")
        describe(self._spark, "order every branch")
        ordered = place_commits(commits, giant_from, self._commits_max, self._scratch)
        placed = gather(ordered.order, self._exports)
        if self._scratch is None:  # else all is in files, which are read by columns
            placed = placed.persist()
            self._kept.append(placed)
        elif not self._is_small:
            self._ordered = ordered
        elif ordered.files:
            self._tables.know("placed", ordered.files)
            self._tables.know("ordered", ordered.files, "fault IS NULL")
        if ordered.giants:
            describe(self._spark, "digest large branches")
            placed = with_digests_of_giants(placed, ordered)
        self.name("placed", placed)
        self.name("ordered", placed.where(F.col("fault").isNull()))

    def define(self, name: str, query: str, *, is_kept: bool) -> None:
        """See Engine."""
        frame = self.frame(query)
        if is_kept:
            self._kept.append(frame.persist())
        self.name(name, frame)

    def write(self, queries: Mapping[str, str]) -> None:
        """See Engine."""
        describe(self._spark, f"write {', '.join(queries)}")
        left = dict(queries)
        if LINEARIZATION in left and self._ordered is not None and self._scratch is not None:
            kept = keep_order(self._spark, self._ordered, self._scratch, self._tables.files_of(NAMES_TABLE))
            self._ordered = None
            if kept is not None:
                self.name(LINEARIZATION, self._tables.take(LINEARIZATION, kept))
                del left[LINEARIZATION]
        written = self._tables.write_all({name: self.frame(query) for name, query in left.items()})
        for name, frame in written.items():
            self.name(name, frame)

    def rows(self, query: str) -> list[dict[str, Any]]:
        """See Engine."""
        read = {name for _, _, name in _READ.findall(query)} & self._frames.keys()
        answered = self._tables.rows(query, read)
        if answered is not None:
            return answered
        describe(self._spark, f"read {', '.join(sorted(read))}")
        return super().rows(query)

    def close(self) -> None:
        """See Engine."""
        self._tables.close()
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)
        if self._is_own:
            stop_session(self._spark, self._out)
            return
        self._spark.sparkContext.setLocalProperty(JOB_DESCRIPTION, self._described)  # type: ignore[arg-type]  # None clears it; the stub says str
        for frame in self._kept:
            frame.unpersist()
        self.drop_views()

    def _name_commits(self) -> None:
        commits = load_commits(self._spark, *self._exports)
        # Of one large export the rows are the files', which are read as fast as what is kept of them if they are here.
        if len(self._exports) > 1 or are_small(self._exports) or not _are_here(self._exports):
            self._kept.append(commits.persist())
        self.name("commits", commits)

    def _need(self, name: str) -> DataFrame:
        self.need_source(name)
        return self._frames[name]


def _are_here(exports: Sequence[Export]) -> bool:
    return all(part.is_here for export in exports for parts in export.tables.values() for part in parts)


def place_commits(
    commits: DataFrame,
    giant_from: int | None = None,
    commits_max: int | None = None,
    folder: Path | None = None,
) -> OrderedBranches:
    """Return all commits without ids and acks, with the answers of `order_branches` and the columns to compare and count.

    The rank that the export states is `exported_rank`. Raises LargeBranchRefused, OSError.
    """
    stated = commits.withColumn("exported_rank", F.col("rank"))
    return order_branches(
        stated,
        giant_from,
        carried=CARRIED,
        with_shapes=True,
        with_digests=True,
        commits_max=commits_max,
        folder=folder,
    )
