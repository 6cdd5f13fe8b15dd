"""Integrity audit of one or more exports: runs all checks and collects their findings.

Every row of every export is looked at, with the node that states it. Each finding has a kind, and names branch, commit and
nodes where there are such. An honest node's exports have none; those of honest nodes together neither.

Ids are hashes of blocks, which an export holds where it was told to: of others ids are not recomputed, and the result counts
them. Signatures lie inside of blocks' ciphertext: a node checks them whenever it takes a commit in, and nothing here does.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from analytics.audit import blocks as audit_blocks
from analytics.audit import findings, statements
from analytics.audit.blocks import BlockCounts
from analytics.audit.findings import FINDINGS_SCHEMA
from analytics.command import Progress
from analytics.engines.spark_tables import TableWriter
from analytics.order.kept_rows import pin
from analytics.order.linearize import digest_orders, linearize
from analytics.reading.export_reader import (
    are_small,
    count_rows,
    load_commits,
    mark_files,
    read_parts,
    read_table,
)
from analytics.reading.given_exports import GivenExports, SetAside
from analytics.session import runs_here, start_session, stop_session
from ravel.exports.checking import Export, authors_agree
from ravel.exports.schema import BLOCK_TABLES

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
    """Findings, and counts of the rows that were examined."""

    exports: int
    rows: int
    commits: int
    branches: int
    blocks: BlockCounts
    without_blocks: tuple[str, ...]  # nodes whose exports have commits and no blocks, whatever they say
    set_aside: tuple[SetAside, ...]  # exports that were not read
    findings: Mapping[str, int]  # kind -> how many
    examples: tuple[Example, ...]
    tables: Path
    seconds: float


def run(
    sources: Sequence[str | Path],
    out_dir: Path,
    *,
    master: str | None = None,
    progress: Progress,
    giant_from: int | None = None,
    spark: SparkSession | None = None,
    given: GivenExports | None = None,
    conf: Mapping[str, str] | None = None,
    out_url: str = "",
) -> AuditResult:
    """Audit exports, folders or URLs, into `out_dir`/tables.

    Raises ExportError, JavaMissing, MasterRefused, LargeBranchRefused, ResultsRefused, OSError.

    Branches of `giant_from` commits and more are ordered by many tasks. A session given as `spark` is used instead of a
    new one, and left running; `conf` are settings of a new one. `given` says whether a bad export stops the audit, as it
    does by default, and has those set aside.
    """
    started = time.monotonic()
    is_here = runs_here(master, spark, conf or {})
    progress("1/4 check the exports" if is_here else "1/4 read the manifests")
    given = given or GivenExports(progress, strict=True)
    exports = given.read(sources, with_blocks=True, is_here=is_here)
    out_dir.mkdir(parents=True, exist_ok=True)
    progress("2/4 start Spark" if is_here else "2/4 start Spark, and check the parts")
    session = spark or start_session(
        master,
        rows=count_rows(exports),
        log_path=out_dir / "spark.log",
        shared=None if out_url else out_dir,
        conf=conf or {},
    )
    try:
        exports = exports if is_here else given.check(session, exports)
        tables = TableWriter(session, out_dir, is_small=are_small(exports), url="" if is_here else out_url)
        without_blocks = tuple(
            label for label, export in zip(_labels(exports), exports, strict=True) if _lacks_blocks(export)
        )
        progress("3/4 look at every row, and order every branch")
        if not authors_agree(exports):
            progress("    authors are hidden under different keys: not compared")
        if without_blocks:
            progress(f"    no blocks in {len(without_blocks)} of {len(exports)} exports: ids not recomputed")
        commits = load_commits(session, *exports).persist()
        judged = judge_rows(session, exports, linearize(commits, giant_from)).persist()
        by_node = findings.count_copies(judged).persist()
        try:
            digests = tables.write("digests", digest_common(by_node))
            voids = _with_source(read_parts(session, exports, "voids"), exports)
            beside = {
                name: _with_source(read_parts(session, exports, name), exports) for name in statements.TABLES
            }
            found = find_all(judged, by_node, commits, voids, digests).unionByName(
                statements.find_all(beside, judged)
            )
            in_blocks, blocks = compare_with_blocks(session, exports, by_node)
            table = tables.write("findings", found.unionByName(in_blocks))
            progress("4/4 count")
            counts = {row["kind"]: row["count"] for row in table.groupBy("kind").count().collect()}
            return AuditResult(
                exports=len(exports),
                rows=judged.count(),
                commits=commits.count(),
                branches=commits.select("branch_id").distinct().count(),
                blocks=blocks,
                without_blocks=without_blocks,
                set_aside=tuple(given.set_aside),
                findings=dict(sorted(counts.items())),
                examples=tuple(example for kind in sorted(counts) for example in _examples(table, kind)),
                tables=out_dir / "tables",
                seconds=time.monotonic() - started,
            )
        finally:
            for frame in (commits, judged, by_node):
                frame.unpersist()
    finally:
        if spark is None:
            stop_session(session, out_dir)


def judge_rows(spark: SparkSession, exports: Sequence[Export], order: DataFrame) -> DataFrame:
    """Return every row of every export with `node`, `file` and `row`, and with what the order of all of them says of it.

    A number is added to the name of a node that has several exports. `order` is what `linearize` gives. Authors are null
    where the exports hide them under different keys.
    """
    rows = _with_source(read_parts(spark, exports, "commits", [*findings.TIMESTAMPS]), exports)
    if not authors_agree(exports):  # pseudonyms of several keys tell nothing of each other
        for name in ("author", "source_author"):
            rows = rows.withColumn(name, F.lit(None).cast("binary"))
    given = order.withColumnsRenamed({"rank": "given_rank", "position": "given_position"})
    return rows.join(given, on=["branch_id", "commit_id"], how="left")


def find_all(
    judged: DataFrame, by_node: DataFrame, commits: DataFrame, voids: DataFrame, digests: DataFrame
) -> DataFrame:
    """Return all findings: `kind`, `branch_id`, `commit_id`, `nodes`, `detail`."""
    found = [
        findings.duplicates(by_node),
        findings.disagreements(by_node),
        findings.row_findings(judged),
        findings.missing_causes(judged, commits),
        findings.wrong_positions(judged),
        findings.strange_roots(judged),
        findings.strange_repos(judged),
        findings.wrong_sequences(judged),
        findings.dangling_voids(voids, commits),
        findings.divergences(digests),
    ]
    every = found[0]
    for one in found[1:]:
        every = every.unionByName(one)
    return every


def compare_with_blocks(
    spark: SparkSession, exports: Sequence[Export], by_node: DataFrame
) -> tuple[DataFrame, BlockCounts]:
    """Check the commits against their blocks; return findings and counts. Both are empty if no export has blocks."""
    told = [
        (is_relayed, label, export.relay_blocks_from if is_relayed else export.blocks_from)
        for label, export in zip(_labels(exports), exports, strict=True)
        if export.has_blocks
        for is_relayed in (False, True)
    ]
    if not told and not any(export.tables[table] for export in exports for table in BLOCK_TABLES):
        ids = by_node.select("commit_id").union(
            read_table(spark, exports, "relay_commits").select("commit_id")
        )
        return spark.createDataFrame([], FINDINGS_SCHEMA), BlockCounts(ids=ids.distinct().count())
    own, relayed, taken = (
        _with_source(read_parts(spark, exports, table), exports)
        for table in ("blocks", "relay_blocks", "relay_commits")
    )
    rows = audit_blocks.label_rows(own, is_relayed=False).unionByName(
        audit_blocks.label_rows(relayed, is_relayed=True)
    )
    read = audit_blocks.read_contents(rows).persist()
    try:
        stated = audit_blocks.state_commits(by_node, taken)
        due = spark.createDataFrame(told, audit_blocks.DUE_SCHEMA)
        found = pin(audit_blocks.find_all(rows, read, stated, by_node, due))
        return found, audit_blocks.count_rows(rows, read, stated)
    finally:
        read.unpersist()


def digest_common(by_node: DataFrame) -> DataFrame:
    """Return for each branch that several nodes have the `digest` of what all of these have, in each `node`'s own order.

    A node's order is by the ranks that it states, after the checkpoints passed. Commits without a place are left out.
    """
    holders = by_node.groupBy("branch_id").agg(F.collect_set("node").alias("holders"))
    shared = holders.where(F.size("holders") > 1)
    common = (
        by_node.where("is_placed")
        .groupBy("branch_id", "commit_id", "passed")
        .agg(F.collect_list(F.struct("node", "rank")).alias("copies"))
        .join(shared, on="branch_id", how="inner")
        .where(F.size("copies") == F.size("holders"))
        .select("branch_id", "commit_id", "passed", F.explode("copies").alias("copy"))
    )
    # `digest_orders` tells branches apart by 32 bytes: here those of a branch at a node.
    views = common.select(
        _view(F.col("copy.node")).alias("branch_id"),
        F.struct("passed", "copy.rank", "commit_id").alias("position"),
        "commit_id",
        F.lit(None).alias("fault"),
    )
    named = shared.select("branch_id", F.explode("holders").alias("node"))
    digested = digest_orders(views).withColumnRenamed("branch_id", "view")
    return named.withColumn("view", _view(F.col("node"))).join(digested, on="view", how="inner").drop("view")


def _view(node: Column) -> Column:
    return F.unhex(F.sha2(F.concat(F.col("branch_id"), node.cast("binary")), 256))


def _with_source(read: DataFrame, exports: Sequence[Export]) -> DataFrame:
    if "file_path" not in read.columns:  # nothing was to be read
        nothing = [F.lit("").alias(name) for name in ("node", "file")]
        return read.select("*", *nothing, F.lit(0).cast("bigint").alias("row"))
    told = {
        part: (label, f"{Path(export.source).name}/{part.name}")
        for export, label in zip(exports, _labels(exports), strict=True)
        for parts in export.tables.values()
        for part in parts
    }
    return mark_files(read, told, "node string, file string")


def _labels(exports: Sequence[Export]) -> list[str]:
    labels: list[str] = []
    for export in exports:
        same = sum(other.node == export.node for other in exports[: len(labels)])
        labels.append(export.node if same == 0 else f"{export.node} ({same + 1})")
    return labels


def _lacks_blocks(export: Export) -> bool:
    """Return True if an export has commits, own or relayed, and no block of any."""
    rows = {name: sum(part.rows for part in parts) for name, parts in export.tables.items()}
    return rows["commits"] + rows["relay_commits"] > 0 == sum(rows[name] for name in BLOCK_TABLES)


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
