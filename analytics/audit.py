"""The integrity of exports, one or many: what contradicts itself, each other, or the rules of order.

Every row of every export is looked at, with the node that states it. Each finding has a kind, and names branch, commit and
nodes where there are such. An honest node's exports have none; those of honest nodes together neither.

What this cannot see: ids are hashes of blocks, and signatures stand in them; exports hold no blocks. A node checks both
whenever it takes a commit in.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from analytics import audit_findings as findings
from analytics.export_reader import Export, load_commits, read_export, read_parts
from analytics.failures import Progress
from analytics.linearize import digest_orders, linearize
from analytics.session import start_session

_EXAMPLES_MAX: Final = 3
"""Findings of each kind that a person is shown; the table has all."""
_DETAIL_SIZE_MAX: Final = 200


@dataclass(frozen=True, slots=True)
class Example:
    """One finding, ids in hex; empty where there is none."""

    kind: str
    branch: str
    commit: str
    nodes: tuple[str, ...]
    detail: str


@dataclass(frozen=True, slots=True)
class AuditResult:
    """What was looked at and what was found."""

    exports: int
    rows: int
    commits: int
    branches: int
    findings: Mapping[str, int]  # kind -> how many
    examples: tuple[Example, ...]
    tables: Path
    seconds: float


def run(
    folders: Sequence[Path],
    out_dir: Path,
    *,
    master: str = "local[*]",
    progress: Progress,
    spark: SparkSession | None = None,
) -> AuditResult:
    """Audit exports into `out_dir`/tables. Raises ExportError, JavaMissing, MasterRefused, GiantRefused, OSError.

    A session given as `spark` is used instead of a new one, and left running.
    """
    started = time.monotonic()
    progress("1/4 check the exports")
    exports = [read_export(folder) for folder in folders]
    out_dir.mkdir(parents=True, exist_ok=True)
    progress("2/4 start Spark")
    session = spark or start_session(master, log_path=out_dir / "spark.log")
    try:
        progress("3/4 look at every row, and order every branch")
        commits = load_commits(session, *exports).persist()
        rows = read_rows(session, exports).persist()
        order = linearize(commits).persist()
        try:
            digests = digest_common(rows, order)
            digests_path, findings_path = out_dir / "tables" / "digests", out_dir / "tables" / "findings"
            digests.write.mode("overwrite").parquet(str(digests_path.absolute()))
            written = session.read.schema(digests.schema).parquet(str(digests_path.absolute()))
            found = find_all(rows, commits, order, _voids(session, exports), written)
            found.write.mode("overwrite").parquet(str(findings_path.absolute()))
            progress("4/4 count")
            table = session.read.schema(found.schema).parquet(str(findings_path.absolute()))
            counts = {row["kind"]: row["count"] for row in table.groupBy("kind").count().collect()}
            return AuditResult(
                exports=len(exports),
                rows=rows.count(),
                commits=commits.count(),
                branches=commits.select("branch_id").distinct().count(),
                findings=dict(sorted(counts.items())),
                examples=tuple(example for kind in sorted(counts) for example in _examples(table, kind)),
                tables=out_dir / "tables",
                seconds=time.monotonic() - started,
            )
        finally:
            for frame in (commits, rows, order):
                frame.unpersist()
    finally:
        if spark is None:
            session.stop()


def read_rows(spark: SparkSession, exports: Sequence[Export]) -> DataFrame:
    """Every row of every export, with `node` (a number added where several exports are of one node), `file` and `row`."""
    return _with_source(spark, read_parts(spark, exports), exports)


def find_all(
    rows: DataFrame, commits: DataFrame, order: DataFrame, voids: DataFrame, digests: DataFrame
) -> DataFrame:
    """All findings: `kind`, `branch_id`, `commit_id`, `nodes`, `detail`."""
    found = [
        findings.duplicates(rows),
        findings.disagreements(rows),
        findings.absurd_values(rows),
        findings.wrong_ranks(rows, order),
        findings.wrong_positions(rows, order),
        findings.without_place(rows, commits, order),
        findings.strange_roots(rows, commits),
        findings.dangling_voids(voids, commits),
        findings.divergences(digests),
    ]
    every = found[0]
    for one in found[1:]:
        every = every.unionByName(one)
    return every


def digest_common(rows: DataFrame, order: DataFrame) -> DataFrame:
    """For each branch that several nodes have: `digest` of the commits that all of these have, in each `node`'s own order.

    A node's order is by the ranks that it states, after the checkpoints passed. Commits without a place are left out.
    """
    copies = rows.groupBy("branch_id", "node", "commit_id").agg(F.min("rank").alias("rank"))
    holders = copies.groupBy("branch_id").agg(F.count_distinct("node").alias("holders"))
    common = (
        copies.groupBy("branch_id", "commit_id")
        .agg(F.count("*").alias("copies"))
        .join(holders.where("holders > 1"), on="branch_id", how="inner")
        .where("copies = holders")
        .select("branch_id", "commit_id")
    )
    placed = order.where(F.col("fault").isNull()).select("branch_id", "commit_id", "passed")
    stated = copies.join(common, on=["branch_id", "commit_id"], how="inner").join(
        placed, on=["branch_id", "commit_id"], how="inner"
    )
    # `digest_orders` tells branches apart by 32 bytes: here those of a branch at a node.
    view = F.unhex(F.sha2(F.concat("branch_id", F.col("node").cast("binary")), 256))
    views = stated.select(
        "branch_id", "node", view.alias("view"), "commit_id", F.struct("passed", "rank", "commit_id").alias("position")
    )  # fmt: skip
    digested = digest_orders(
        views.select(F.col("view").alias("branch_id"), "position", "commit_id", F.lit(None).alias("fault"))
    )
    named = views.select("view", "branch_id", "node").distinct()
    return digested.withColumnRenamed("branch_id", "view").join(named, on="view", how="inner").drop("view")


def _voids(spark: SparkSession, exports: Sequence[Export]) -> DataFrame:
    return _with_source(spark, read_parts(spark, exports, voids=True), exports)


def _with_source(spark: SparkSession, read: DataFrame, exports: Sequence[Export]) -> DataFrame:
    # Spark says a file's address in a spelling of its own: the paths that it stands for are found here.
    labels = _labels(exports)
    nodes = {
        str(part.path.absolute()): (label, f"{export.folder.name}/{part.path.relative_to(export.folder)}")
        for export, label in zip(exports, labels, strict=True)
        for part in (*export.parts, *export.voids)
    }
    if "file_path" not in read.columns:  # nothing was to be read
        nothing = [F.lit("").alias(name) for name in ("node", "file")]
        return read.select("*", *nothing, F.lit(0).cast("bigint").alias("row"))
    addresses = [row["file_path"] for row in read.select("file_path").distinct().collect()]
    sources = [
        (address, *nodes["/" + unquote(address.partition(":")[2]).lstrip("/")]) for address in addresses
    ]
    known = spark.createDataFrame(sources, "file_path string, node string, file string")
    return read.join(F.broadcast(known), on="file_path", how="inner").drop("file_path")


def _labels(exports: Sequence[Export]) -> list[str]:
    labels: list[str] = []
    for export in exports:
        same = sum(other.node == export.node for other in exports[: len(labels)])
        labels.append(export.node if same == 0 else f"{export.node} ({same + 1})")
    return labels


def _examples(table: DataFrame, kind: str) -> list[Example]:
    rows = table.where(F.col("kind") == kind).orderBy("branch_id", "commit_id", "detail").limit(_EXAMPLES_MAX)
    detail: Column = F.substring("detail", 1, _DETAIL_SIZE_MAX).alias("detail")
    return [
        Example(
            row["kind"],
            bytes(row["branch_id"] or b"").hex(),
            bytes(row["commit_id"] or b"").hex(),
            tuple(row["nodes"]),
            row["detail"],
        )
        for row in rows.select("kind", "branch_id", "commit_id", "nodes", detail).collect()
    ]
