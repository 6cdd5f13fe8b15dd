"""Writes all statistics tables, and collects the few rows that the report shows."""

from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from analytics.order import kernel
from analytics.order.linearize import FAULTS, VOID
from analytics.reading.export_reader import Export
from analytics.report.drawing import COMMITS_MAX, Drawing, DrawnCommit
from analytics.report.member_findings import store_lines, write_members
from analytics.report.page import text_id
from analytics.report.pictures import WidthBin
from analytics.report.report import (
    AuthorLine,
    BranchLine,
    BranchShape,
    Growth,
    MergeLine,
    OrderVerdict,
    RelayLine,
    ReplicationLine,
    Report,
)
from analytics.tables import concurrency, feed_forks, relays, statistics, stores
from analytics.tables.statistics import Period
from analytics.tables.tables import TableWriter

_BRANCH_LINES_MAX: Final = 100
_AUTHOR_LINES_MAX: Final = 20
_MERGE_LINES_MAX: Final = 20
_REPLICATION_LINES_MAX: Final = 40
_RELAY_LINES_MAX: Final = 40
_SHAPES_MAX: Final = 4
"""What a page can show and a person take in; the tables hold all."""
_WIDTH_BINS_MAX: Final = 240

_NO_HEADS: Final = "branch_id binary, bucket_start bigint, heads bigint"
_NO_GROWTH: Final = "branch_id binary, bucket_start bigint, commits bigint"
_NO_ACTIVITY: Final = "author binary, bucket_start bigint, commits bigint"
_NO_GROWTH_OF_NODES: Final = (
    "node string, bucket_start bigint, commits bigint, bytes bigint, bytes_in_all bigint"
)


class NoSuchBranch(Exception):
    """The branch to draw is not in the export; the message says what was looked for."""


def find_branch(commits: DataFrame, wanted: str) -> bytes:
    """The branch of this name, or whose id begins so (base32 or hex); of several the largest. Raises NoSuchBranch."""
    rows = (
        commits.groupBy("branch_id")
        .agg(
            F.max_by("branch_name", F.struct("sequence", "branch_name")).alias("branch_name"),
            F.count("*").alias("commits"),
        )
        .orderBy(F.desc("commits"), "branch_id")
        .collect()
    )
    text = wanted.lower()
    for row in rows:
        if row["branch_name"] == wanted:
            return bytes(row["branch_id"])
    for row in rows:
        if text and (
            text_id(bytes(row["branch_id"])).startswith(text)
            or bytes(row["branch_id"]).hex().startswith(text)
        ):
            return bytes(row["branch_id"])
    raise NoSuchBranch(f"the export holds no branch that is called {wanted!r}, or whose id begins so")


class Findings:
    """All that is found in one run: `commits` as loaded, their linearization, and those with a place in the order."""

    def __init__(
        self,
        tables: TableWriter,
        exports: Sequence[Export],
        commits: DataFrame,
        order: DataFrame,
        ordered: DataFrame,
    ) -> None:
        self._tables = tables
        self._exports = exports
        self._commits = commits
        self._order = order
        self._ordered = ordered

    def report(
        self, receipts: DataFrame, verdict: OrderVerdict, drawn: bytes | None, *, is_alone: bool
    ) -> Report:
        """Write the tables, and say what goes on the page; `drawn` is the branch to draw. Raises OSError.

        `is_alone` says that `receipts` are of one export.
        """
        write = self._tables.write
        period = statistics.find_period(self._ordered)
        written = self._tables.write_all(
            {
                "widths": statistics.count_widths(self._ordered),
                "feeds": statistics.count_feeds(self._ordered),
                "merges": concurrency.count_merges(self._ordered),
                "kinds": statistics.count_kinds(self._ordered),
                "faults": statistics.count_faults(
                    self._order, self._commits, is_complete=FAULTS[kernel.MISSING_CAUSE] not in verdict.faults
                ),
                **self._over_time(period),
                "edits": relays.count_delivered(self._commits.sparkSession, self._exports, receipts),
                "feed_forks": feed_forks.count_feed_forks(self._commits),
                **self._stores(receipts, is_alone),
            }
        )
        widths, merges, heads = written["widths"], written["merges"], written["heads"]
        members = write_members(self._tables, self._exports, self._ordered, period)
        branches = write("branches", statistics.count_branches(self._ordered, written["feeds"], widths))
        authors = write("authors", statistics.count_authors(written["feeds"]))

        total = branches.agg(
            F.sum("commits").alias("commits"),
            F.count("*").alias("branches"),
            F.count_distinct("repo_id").alias("repos"),
            F.sum("bytes").alias("bytes"),
            F.sum("merges").alias("merges"),
        ).collect()[0]
        largest = branches.orderBy(F.desc("commits"), "branch_id").limit(_BRANCH_LINES_MAX).collect()
        busiest = authors.orderBy(F.desc("commits"), "author").limit(_AUTHOR_LINES_MAX).collect()
        forks = _feed_forks(written["feed_forks"], [bytes(row["author"]) for row in busiest])
        names = branches.select("branch_id", "branch_name")
        merged = merges.join(names, "branch_id").orderBy(F.desc("merges"), "branch_id")
        return Report(
            nodes=tuple(dict.fromkeys(export.node for export in self._exports)),
            exported_at=max(export.created_at for export in self._exports),
            commits=total["commits"] or 0,
            branches=total["branches"],
            repos=total["repos"],
            authors=authors.count(),
            merges=total["merges"] or 0,
            size=total["bytes"] or 0,
            verdict=verdict,
            branch_lines=tuple(_branch_line(row) for row in largest),
            author_lines=tuple(
                AuthorLine(
                    bytes(row["author"]),
                    row["commits"],
                    row["branches"],
                    forks.get(bytes(row["author"]), 0),
                    row["last_time"],
                )
                for row in busiest
            ),
            merge_lines=tuple(_merge_line(row) for row in merged.limit(_MERGE_LINES_MAX).collect()),
            replication_lines=() if is_alone else _replication_lines(written["replication"], names),
            relay_lines=self._relays(),
            store_lines=store_lines(written["stores"]),
            members=members,
            growth=_growth(written["growth"], period),
            shapes=_shapes(widths, heads, period, largest[:_SHAPES_MAX]),
            drawing=self._drawing(branches, drawn),
        )

    def _over_time(self, period: Period | None) -> dict[str, DataFrame]:
        if period is None:
            nothing = {"heads": _NO_HEADS, "growth": _NO_GROWTH, "activity": _NO_ACTIVITY}
            return {name: self._no_rows(schema) for name, schema in nothing.items()}
        return {
            "heads": concurrency.count_heads(self._ordered, period),
            "growth": statistics.count_growth(self._ordered, period),
            "activity": statistics.count_activity(self._ordered, period),
        }

    def _stores(self, receipts: DataFrame, is_alone: bool) -> dict[str, DataFrame]:
        received = statistics.find_period(receipts.withColumnRenamed("received_at", "time"))
        return {
            "stores": stores.add_holdings(stores.count_stores(receipts), self._exports),
            "store_growth": stores.count_store_growth(receipts, received.bucket)
            if received
            else self._no_rows(_NO_GROWTH_OF_NODES),
            "replication": stores.count_replication(receipts, is_alone=is_alone),
        }

    def _no_rows(self, schema: str) -> DataFrame:
        return self._commits.sparkSession.createDataFrame([], schema)

    def _relays(self) -> tuple[RelayLine, ...]:
        """Write what relays tell; gives a line for each."""
        if not any(
            export.tables["relay_commits"] or export.tables["relay_topics"] for export in self._exports
        ):
            for (
                name,
                schema,
            ) in relays.NOTHING.items():  # most exports: nothing to count, and no wait for that
                self._tables.write_empty(name, schema)
            return ()
        spark = self._commits.sparkSession
        taken = relays.load_relayed(spark, self._exports).persist()
        try:
            topics = self._tables.write("relay_topics", relays.count_topics(spark, self._exports, taken))
            table = self._tables.write("relays", relays.count_relays(spark, self._exports, topics))
            received = statistics.find_period(taken.withColumnRenamed("received_at", "time"))
            if received is None:
                self._tables.write_empty("relay_growth", _NO_GROWTH_OF_NODES)
            else:
                self._tables.write("relay_growth", relays.count_growth(taken, received.bucket))
        finally:
            taken.unpersist()
        return tuple(
            RelayLine(
                row["node"],
                row["topics"],
                row["kept_topics"],
                row["commits"],
                row["bytes"],
                row["kept_bytes"],
                row["quota_use"],
            )
            for row in table.orderBy("node").limit(_RELAY_LINES_MAX).collect()
        )

    def _drawing(self, branches: DataFrame, drawn: bytes | None) -> Drawing | None:
        """The branch asked for, or the most branched of those that can be drawn whole, or the end of the largest."""
        if drawn is None:
            is_small = F.col("commits") <= COMMITS_MAX
            branching = F.when(is_small, F.col("forks") + F.col("merges")).otherwise(0)
            row = branches.orderBy(F.desc(branching), F.desc("commits"), "branch_id").first()
            if row is None:
                return None
            drawn = bytes(row["branch_id"])
        placed = self._order.where(F.col("fault").isNull() | (F.col("fault") == VOID)).select(
            "branch_id", "commit_id", "fault", F.col("rank").alias("computed_rank")
        )
        # What is void has no place, but a rank as the export states it, at which it is drawn.
        rows = (
            self._commits.where(F.col("branch_id") == F.lit(drawn))
            .join(placed, on=["branch_id", "commit_id"], how="inner")
            .select(
                "commit_id",
                "author",
                "acks",
                "branch_name",
                "fault",
                "body_kind",
                F.coalesce("computed_rank", "rank").alias("rank"),
            )
        )
        last = rows.orderBy(F.desc("rank"), "commit_id").limit(COMMITS_MAX).collect()
        if not last:
            return None
        commits = tuple(
            DrawnCommit(
                commit_id=bytes(row["commit_id"]),
                author=bytes(row["author"]),
                rank=row["rank"],
                acks=tuple(dict.fromkeys(bytes(ack) for ack in row["acks"])),
                is_void=row["fault"] == VOID,
                is_checkpoint=row["body_kind"] == "checkpoint",
            )
            for row in reversed(last)
        )
        return Drawing(last[0]["branch_name"], drawn, commits, rows.count())


def _replication_lines(replication: DataFrame, names: DataFrame) -> tuple[ReplicationLine, ...]:
    rows = (
        replication.join(names, "branch_id")
        .orderBy(F.desc(F.col("commits") + F.col("lacking")), "branch_id", "node")
        .limit(_REPLICATION_LINES_MAX)
    )
    return tuple(
        ReplicationLine(
            row["branch_name"],
            bytes(row["branch_id"]),
            row["node"],
            row["commits"],
            row["lacking"],
            row["first_here"],
            row["delay_p50"],
            row["delay_p90"],
            row["delay_max"],
        )
        for row in rows.collect()
    )


def _feed_forks(forked: DataFrame, authors: Sequence[bytes]) -> dict[bytes, int]:
    """How many places of their feeds these authors have used more than once, over all branches."""
    rows = forked.where(F.col("author").isin(*authors)).groupBy("author").agg(F.sum("places").alias("places"))
    return {bytes(row["author"]): row["places"] for row in rows.collect()}


def _branch_line(row: Row) -> BranchLine:
    return BranchLine(
        branch_id=bytes(row["branch_id"]),
        name=row["branch_name"],
        commits=row["commits"],
        authors=row["authors"],
        depth=row["depth"],
        heads=row["heads"],
        forks=row["forks"],
        merges=row["merges"],
        width_max=row["width_max"],
        width_mean=row["width_mean"],
        concurrency=row["concurrency"],
        size=row["bytes"],
        first_time=row["first_time"],
        last_time=row["last_time"],
    )


def _merge_line(row: Row) -> MergeLine:
    return MergeLine(
        name=row["branch_name"],
        branch_id=bytes(row["branch_id"]),
        merges=row["merges"],
        backdated=row["backdated"],
        waited_p50=row["waited_p50"],
        waited_p90=row["waited_p90"],
        waited_max=row["waited_max"],
        apart_p50=row["apart_p50"],
        apart_p90=row["apart_p90"],
    )


def _growth(table: DataFrame, period: Period | None) -> Growth | None:
    if period is None:
        return None
    shown = table.where(F.col("bucket_start").isNotNull())
    points = shown.groupBy("bucket_start").agg(F.sum("commits").alias("commits")).orderBy("bucket_start")
    rows = tuple((row["bucket_start"], row["commits"]) for row in points.collect())
    return Growth(rows, period.bucket, period.left_out)


def _shapes(
    widths: DataFrame, heads: DataFrame, period: Period | None, branches: Sequence[Row]
) -> tuple[BranchShape, ...]:
    """How these branches look: of all in two jobs."""
    ids = [bytes(branch["branch_id"]) for branch in branches]
    steps = [-(-(branch["depth"] + 1) // _WIDTH_BINS_MAX) for branch in branches]
    is_one = F.col("branch_id").isin([F.lit(raw) for raw in ids])
    chosen = widths.sparkSession.createDataFrame(
        [(bytearray(raw), step) for raw, step in zip(ids, steps, strict=True)],
        "branch_id binary, step bigint",
    )
    rows = (
        widths.where(is_one)
        .join(F.broadcast(chosen), "branch_id")
        .groupBy("branch_id", (F.col("rank") - F.col("rank") % F.col("step")).alias("rank"))
        .agg(F.max("width").alias("widest"), F.avg("width").alias("mean"))
        .orderBy("rank")
    )
    bins: dict[bytes, list[WidthBin]] = {raw: [] for raw in ids}
    for row in rows.collect():
        bins[bytes(row["branch_id"])].append(WidthBin(row["rank"], row["widest"], row["mean"]))
    points: dict[bytes, list[tuple[int, int]]] = {raw: [] for raw in ids}
    for row in heads.where(is_one).orderBy("bucket_start").collect():
        points[bytes(row["branch_id"])].append((row["bucket_start"], row["heads"]))
    return tuple(
        BranchShape(
            branch["branch_name"],
            branch["depth"] + 1,
            tuple(bins[raw]),
            branch["concurrency"],
            tuple(points[raw]),
            period.bucket if period else 0,
        )
        for raw, branch in zip(ids, branches, strict=True)
    )
