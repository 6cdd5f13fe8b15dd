"""Reads checked exports with Spark: one DataFrame with each commit once.

Exports of several nodes can be read together: a commit that more than one holds is taken once. Copies that contradict
each other in what every node must agree on are marked (`is_disputed`), and never silently chosen between.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from analytics.reading.limits import SMALL_ROWS_MAX
from ravel.exports.checking import Export, ExportPart, authors_agree
from ravel.exports.schema import COMMITS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SPARK_SCHEMA: Final = """
    sequence bigint, commit_id binary, topic binary, repo_id binary, branch_id binary, repo_name string, branch_name string,
    author binary, source_author binary, acks array<binary>, rank bigint, position bigint, body_kind string, size bigint,
    time bigint, received_at bigint, shown_at bigint, arrived_at bigint, arrival bigint, feed_sequence bigint,
    blocks bigint, position_at bigint, files bigint, file_bytes bigint
"""
"""`ravel.exports.schema.COMMITS` in Spark's words, but for timestamps, which say again what others say. What an older
version lacks is null."""

_BLOCKS: Final = """
    sequence bigint, commit_id binary, block_id binary, size bigint, child_ids array<binary>, content binary
"""

SPARK_SCHEMAS: Final[Mapping[str, str]] = {
    "commits": SPARK_SCHEMA,
    "voids": "commit_id binary",
    "edits": """
        sequence bigint, branch_id binary, commit_id binary, kind string, passed_before bigint, passed_after bigint
    """,
    "relay_commits": """
        sequence bigint, topic binary, commit_id binary, acks array<binary>, blocks bigint, size bigint,
        received_at bigint
    """,
    "relay_topics": "topic binary, is_pinned boolean, commits bigint, size bigint, touched_at bigint",
    "blocks": _BLOCKS,
    "relay_blocks": _BLOCKS,
    "memberships": """
        sequence bigint, commit_id binary, repo_id binary, operation string, member binary, permission string, epoch binary,
        reason string, sealed_to bigint, counts boolean, kind string, root binary, previous array<binary>
    """,
    "members": "repo_id binary, member binary, permission string, person binary",
    "topics": "topic binary, repo_id binary, kind string, branch_id binary, epoch binary",
    "names": "repo_id binary, branch_id binary, repo_name string, branch_name string",
    "tangles": "sequence bigint, commit_id binary, kind string, root binary, previous array<binary>",
    "dependencies": "sequence bigint, commit_id binary, deps array<binary>, negative_deps array<binary>",
    "files": "sequence bigint, commit_id binary, object_id binary, name string, size bigint",
    "pending": """
        commit_id binary, topic binary, branch_id binary, reason string, lacking bigint, size bigint, arrived_at bigint,
        arrival bigint
    """,
    "rejections": "commit_id binary, branch_id binary, code string",
}
"""The tables that are read: all but bodies, since no figure is of what people wrote. A test holds them together with
`ravel.exports.schema`."""


def are_small(exports: Sequence[Export]) -> bool:
    """Return True if all their rows together are at most SMALL_ROWS_MAX."""
    return count_rows(exports) <= SMALL_ROWS_MAX


def count_rows(exports: Sequence[Export]) -> int:
    """Return the rows of all their tables."""
    return sum(export.rows_in_all for export in exports)


def load_commits(spark: "SparkSession", *exports: Export) -> "DataFrame":
    """Return the commits of one or more exports, one row per commit id, with the columns `is_disputed` and `is_void` added.

    Of several copies the one of the smallest sequence stays, which is the same on every run, at the least `shown_at` of all:
    a parent's then is no later than its child's, whose copies stay. What one export calls void is void: the others may not
    have heard of it. Authors are compared where they are called alike.
    """
    from pyspark.sql import functions as F

    rows = read_table(spark, exports, "commits")
    voids = read_table(spark, exports, "voids")
    # Of several exports most commits have copies, so nobody looks whether none has.
    # Few are grouped sooner than a job looks.
    if len(exports) == 1 and not are_small(exports) and _ids_differ(rows):
        found = rows.withColumn("is_disputed", F.lit(False))  # a column's value
    else:
        found = one_row_per_id(rows, authors_agree(exports))
    marked = voids.distinct().withColumn("is_void", F.lit(True))  # as above
    return found.join(marked, on="commit_id", how="left").fillna(False, ["is_void"])  # as above


def _ids_differ(rows: "DataFrame") -> bool:
    """Return True if hashes prove that no id stands twice: there are as many different hashes as rows."""
    from pyspark.sql import functions as F

    # Rows are counted as they are read, in the same job: what a manifest or a footer states proves nothing of them.
    counted = rows.agg(F.count("*"), F.count_distinct(F.xxhash64("commit_id"))).collect()[0]
    return bool(counted[0] == counted[1])


def one_row_per_id(rows: "DataFrame", has_authors: bool) -> "DataFrame":
    """One row per commit id, with `is_disputed`; whether copies must agree in their author, too."""
    from pyspark.sql import functions as F

    names = [name for name in COMMITS.names if name in rows.columns]
    kept = [name for name in names if name != "shown_at"]
    # What every node computes alike. Names, times of receipt and sequences may differ between nodes.
    names_alike = ["branch_id", "acks", "rank", *(["author"] if has_authors else [])]
    # Compared as they are: who chooses their bytes can find others of the same 64-bit hash.
    agreed = F.struct(*names_alike)
    grouped = (
        rows.select("commit_id", "shown_at", F.struct(*kept).alias("row"), agreed.alias("agreed"))
        .groupBy("commit_id")
        .agg(
            F.min("row").alias("row"),
            F.min("shown_at").alias("shown_at"),
            (~F.min("agreed").eqNullSafe(F.max("agreed"))).alias("is_disputed"),
        )
    )
    found = [F.col(f"row.{name}" if name in kept else name).alias(name) for name in names]
    return grouped.select(*found, F.col("is_disputed"))


def read_table(spark: "SparkSession", exports: Sequence[Export], table: str) -> "DataFrame":
    """Return all rows of a table of SPARK_SCHEMAS as they stand in the files."""
    return gather(_read_files(spark, exports, table), exports)


def gather(rows: "DataFrame", exports: Sequence[Export]) -> "DataFrame":
    """Return the rows in one partition if their exports are small: one task then counts them, without a shuffle,
    whose stages take longer than the work.
    """
    return rows.coalesce(1) if are_small(exports) else rows


def local_rows(spark: "SparkSession", schema: str, rows: Sequence[tuple[object, ...]] = ()) -> "DataFrame":
    """Few rows as a table. Spark plans with them, and leaves out what follows from none.

    A list that is given to Spark becomes a table of Python's: to read that takes workers of its own.
    """
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType
    from pyspark.sql.utils import is_remote

    kinds: Any = StructType.fromDDL(schema)
    if not rows and is_remote():  # Spark Connect looks for types in rows of Arrow's
        return spark.createDataFrame([], kinds)
    names = kinds.names
    told = [dict(zip(names, row, strict=True)) for row in rows]
    return spark.createDataFrame(pa.Table.from_pylist(told, schema=to_arrow_schema(kinds)))


def _read_files(spark: "SparkSession", exports: Sequence[Export], table: str) -> "DataFrame":
    return _read(spark, SPARK_SCHEMAS[table], [part for export in exports for part in export.tables[table]])


def read_by_export(spark: "SparkSession", exports: Sequence[Export], table: str) -> "DataFrame":
    """Read a table of all exports with `node`, `source` (the number of the export) and `created_at`.

    What several exports of a node tell stands there several times. All are read at once: a plan with a read of each takes
    Spark longer than the reads.
    """
    from pyspark.sql import functions as F

    having = [(number, one) for number, one in enumerate(exports) if one.tables[table]]
    if len(having) > 1:
        told = {
            part: (export.node, number, export.created_at)
            for number, export in having
            for part in export.tables[table]
        }
        rows = read_parts(spark, exports, table).drop("row")
        return gather(mark_files(rows, told, "node string, source int, created_at bigint"), exports)
    number, export = having[0] if having else (0, exports[0])
    cells = {"node": export.node, "source": number, "created_at": export.created_at}
    told_rows = read_table(spark, [export], table)
    return told_rows.withColumns({name: F.lit(cell) for name, cell in cells.items()})


def mark_files(read: "DataFrame", told: Mapping[ExportPart, tuple[object, ...]], schema: str) -> "DataFrame":
    """Replace `file_path` of rows of `read_parts` by columns that describe the part."""
    from pyspark.sql import functions as F

    by_path = {str(part.path.absolute()): cells for part, cells in told.items() if part.is_here}
    # Spark says a file's address in a spelling of its own: the paths that it stands for are found here.
    addresses = [address.removeprefix("file:").lstrip("/") for address in read.inputFiles()]
    rows = [(f"file:/{address}", True, *by_path[f"/{unquote(address)}"]) for address in addresses]
    rows += [(part.place, True, *cells) for part, cells in told.items() if not part.is_here]
    known = local_rows(read.sparkSession, f"file_path string, is_known boolean, {schema}", rows)
    marked = read.join(F.broadcast(known), on="file_path", how="left")
    unknown = F.raise_error(F.concat(F.lit("a row is of no file that is read: "), "file_path"))
    return marked.where(F.coalesce("is_known", unknown.cast("boolean"))).drop("file_path", "is_known")


def read_parts(
    spark: "SparkSession", exports: Sequence[Export], table: str, timestamps: Sequence[str] = ()
) -> "DataFrame":
    """Read a table with `file_path` (as `mark_files` knows it) and `row`, from 0, and with these timestamps.

    The two are missing where there is no file to read.
    """
    schema = ", ".join([SPARK_SCHEMAS[table], *(f"{name} timestamp" for name in timestamps)])
    return _read(spark, schema, [part for export in exports for part in export.tables[table]], with_rows=True)


def _read(
    spark: "SparkSession", schema: str, parts: Sequence[ExportPart], *, with_rows: bool = False
) -> "DataFrame":
    from pyspark.sql import functions as F

    found = []
    if paths := [as_path(part.path) for part in parts if part.is_here]:
        rows = spark.read.schema(schema).parquet(*paths)
        if with_rows:
            rows = rows.select("*", F.col("_metadata.file_path"), F.col("_metadata.row_index").alias("row"))
        found.append(rows)
    if elsewhere := [part for part in parts if not part.is_here]:
        from analytics.reading.part_tasks import PARTS_SCHEMA, part_rows, read_elsewhere

        listed = local_rows(spark, PARTS_SCHEMA, part_rows(elsewhere))
        found.append(read_elsewhere(listed, schema, with_rows=with_rows))
    if not found:
        return local_rows(spark, schema)
    return found[0] if len(found) == 1 else found[0].unionByName(found[1])


def as_path(path: Path) -> str:
    """Return a path escaped for Spark, which takes paths for patterns."""
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", str(path.absolute()))
