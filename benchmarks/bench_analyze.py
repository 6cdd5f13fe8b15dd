"""`ravel analyze` by both engines on the same export, in the same run; their tables are held to be equal.

python benchmarks/bench_analyze.py [sizes, 10000 by default] [engines, local,spark by default] [nodes]

Commits stand in tangles of Zipf sizes (a fiftieth of their number), written by a hundredth as many authors, as an export
with a manifest. With `nodes` each size is that of one of so many exports, nine tenths of which all have; the measure is
then one export of as many rows. The engine `bare` is the least that the same order and nine of the tables cost without
Ravel's frame: DuckDB and the kernel, in a process of its own; `nine` is the local engine on these tables alone, likewise.
`again` is the local engine into the folder of an analysis of the same exports before the last hundredth of all rows came,
which is of a few branches: of many nodes that is what the last tenth of them has alone. Timed is the whole command, in a
process of its own: start, check of the export, order, comparison with the stated ranks, all tables, the page. Processor
time is of all its processes. Memory is the largest sum of their resident memory, sampled.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from blake3 import blake3

from analytics.engines.engine import FIRST, Catalog
from analytics.engines.local_engine import LocalEngine
from analytics.order.branch_tasks import linearize_batches
from analytics.reading.times import bucket_for
from analytics.tables.definitions import TABLES
from benchmarks import statistics_sql
from benchmarks.common import figure, note, timed
from benchmarks.export_rows import Graph, write_commits, zipf_graph
from benchmarks.memory import peak_of_all, processor_time_of_all
from ravel.exports.schema import COMMITS, EXPORT_FORMAT, MANIFEST_NAME, SCHEMA_VERSION
from tests.support.read_exports import read_export

_RECEIVED: int = 1_750_000_000_000
_HEAVY = 100_000
"""Commits above which rows are not compared: Python would hold all of them."""


_COMMON_SHARE = 0.9
_NEW_SHARE = 0.01


def write_export(folder: Path, count: int, graph: Graph = zipf_graph) -> Path:
    """Return an export of so many commits; what statistics do not read is the same in each row."""
    write_commits(folder / "commits", count, graph)
    return write_manifest(folder, count, "benchmark")


def own_rows(count: int) -> int:
    """Return how many of a node's commits no other node has."""
    return count - int(count * _COMMON_SHARE)


def write_nodes(folder: Path, count: int, nodes: int) -> list[Path]:
    """Exports of so many commits of each of so many nodes."""
    own = own_rows(count)
    common = count - own
    for name, size in (("common", common), ("own", own * nodes)):
        write_commits(folder / name, size)
    shared, others = pq.read_table(folder / "common"), pq.read_table(folder / "own")
    exports = []
    for number in range(nodes):
        export = folder / f"node-{number}"
        (export / "commits").mkdir(parents=True)
        rows = pa.concat_tables([shared, others.slice(number * own, own)])
        rows = rows.set_column(0, "sequence", pa.array(range(1, count + 1), pa.int64()))
        pq.write_table(rows, export / "commits" / "part-0.parquet")
        exports.append(write_manifest(export, count, f"node {number}"))
    return exports


def write_manifest(folder: Path, count: int, node: str) -> Path:
    """Fill up the columns of the parts that are there, and list them."""
    listed = []
    for part in sorted((folder / "commits").iterdir()):
        rows = pq.read_table(part)
        same: dict[str, Any] = {
            "position": 0,
            "arrival": 0,
            "files": 0,
            "file_bytes": 0,
            "received_at": _RECEIVED,
            "shown_at": _RECEIVED,
            "feed_sequence": 0,
            "blocks": 2,
            "position_at": count,
        }
        arrays = [
            rows[field.name].cast(field.type)
            if field.name in rows.column_names
            else pa.array([same.get(field.name)] * len(rows), field.type)
            for field in COMMITS
        ]
        pq.write_table(pa.Table.from_arrays(arrays, schema=COMMITS), part, compression="zstd")
        content = part.read_bytes()
        digest = blake3(content).hexdigest()
        listed.append(
            {"path": f"commits/{part.name}", "rows": len(rows), "bytes": len(content), "blake3": digest}
        )
    manifest = {
        "format": EXPORT_FORMAT,
        "schema_version": SCHEMA_VERSION,
        "node": node,
        "created_at": _RECEIVED // 1000,
        "watermark": count,
        "tables": {"commits": listed, "voids": []},
    }
    (folder / MANIFEST_NAME).write_text(json.dumps(manifest), encoding="utf-8")
    return folder


def write_before(folder: Path, export: Path, count: int, new: int) -> Path:
    """Make two parts of the last one of an export; gives the export as it was without the `new` rows of the second."""
    folder.mkdir(parents=True)
    node = json.loads((export / MANIFEST_NAME).read_bytes())["node"]
    *_, last = sorted((export / "commits").iterdir())
    rows = pq.read_table(last)
    old = len(rows) - new
    pq.write_table(rows.slice(0, old), last)
    shutil.copytree(export / "commits", folder / "commits")
    pq.write_table(rows.slice(old), last.with_name(f"{last.stem}-new.parquet"))
    write_manifest(export, count, node)
    return write_manifest(folder, count, node)  # the same bytes, of the same rows


def analyze(exports: Sequence[Path], out: Path, engine: str) -> None:
    """Run the command; fail where it finds anything wrong."""
    if engine in ("bare", "nine"):
        command = [sys.executable, str(Path(__file__)), f"--{engine}", str(exports[0]), str(out)]
    else:
        command = [sys.executable, "-P", "-m", "analytics", *map(str, exports), "--out", str(out)]
        command += ["--engine", engine]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def count_bare(export: Path, out: Path) -> None:
    """Compute the order and nine tables by DuckDB and the kernel."""
    out.mkdir(parents=True)
    with duckdb.connect(str(out / "tables.duckdb")) as database:
        database.execute("SET preserve_insertion_order = false")
        database.execute(f"CREATE VIEW commits AS FROM read_parquet('{export}/commits/*.parquet')")
        read = database.sql(
            "SELECT branch_id, commit_id, acks, sequence, CAST(0 AS TINYINT) AS mark FROM commits"
        ).to_arrow_reader(100_000)
        ordered = pa.Table.from_batches(linearize_batches(read, (), with_shapes=False, with_digests=False))
        pq.write_table(ordered, out / "linearization.parquet")
        del ordered
        ((first, last),) = database.sql("SELECT min(time), max(time) FROM commits").fetchall()
        bucket = bucket_for(first, last)
        database.execute(f"CREATE MACRO in_period(t) AS t BETWEEN {first} AND {last}")
        database.execute(f"CREATE MACRO bucket_of(t) AS t - t % {bucket}")
        for statement in statistics_sql.SETUP:
            database.execute(statement)
        for name, query in statistics_sql.TABLES.items():
            database.execute(f"COPY ({query}) TO '{out}/{name}.parquet' (FORMAT parquet, COMPRESSION snappy)")


def count_nine(export: Path, out: Path) -> None:
    """Compute the order and the tables by the local engine."""
    exports = [read_export(export)]
    engine = LocalEngine(exports, out)
    try:
        catalog = Catalog(engine, exports)
        catalog.need("commits")
        engine.order(None)
        catalog.is_complete = True
        catalog.write([*FIRST, *statistics_sql.TABLES])
    finally:
        engine.close()


def compare(one: Path, other: Path) -> None:
    """Fail unless both say the same in every row of every table, and in every digest."""
    assert (one / "digests.json").read_bytes() == (other / "digests.json").read_bytes()
    for name in TABLES:
        rows = [sorted(map(repr, pq.read_table(out / "tables" / name).to_pylist())) for out in (one, other)]
        assert rows[0] == rows[1], f"{name} differs"


def main() -> None:
    """Print the figures."""
    if len(sys.argv) > 1 and sys.argv[1] in ("--bare", "--nine"):
        count = count_bare if sys.argv[1] == "--bare" else count_nine
        count(Path(sys.argv[2]), Path(sys.argv[3]))
        return
    sizes = [int(text) for text in sys.argv[1].split(",")] if len(sys.argv) > 1 else [10_000]
    engines = sys.argv[2].split(",") if len(sys.argv) > 2 else ["local", "spark"]
    nodes = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    with tempfile.TemporaryDirectory(prefix="ravel-bench-") as name:
        for size in sizes:
            measure(Path(name) / str(size), size, engines, nodes)


def measure(folder: Path, size: int, engines: Sequence[str], nodes: int) -> None:
    """Print the figures of one size."""
    rows = size * nodes
    note(f"write {rows:,} commits")
    given = {"": [write_export(folder / "one", rows)]}
    if nodes > 1:
        given["_of_nodes"] = write_nodes(folder / "nodes", size, nodes)
    seconds = {}
    if "again" in engines:
        for kind, exports in given.items():
            before, count = [*exports], rows // len(exports)
            new = own_rows(count) if kind else max(1, int(count * _NEW_SHARE))
            # The last rows of all: what another node has alone stands on nothing of them.
            for at in range(len(exports) - max(1, len(exports) // 10), len(exports)):
                before[at] = write_before(folder / f"before{kind}" / str(at), exports[at], count, new)
            analyze(before, folder / f"out-again{kind}", "local")
    for engine in engines:
        for kind, exports in given.items():
            note(f"{engine}, {rows:,} commits in {len(exports)} exports")
            run = "local" if engine == "again" else engine
            with peak_of_all() as peak, processor_time_of_all() as processor:
                taken = timed(partial(analyze, exports, folder / f"out-{engine}{kind}", run))
            seconds[engine + kind] = taken
            figure(f"analyze_{engine}{kind}", taken, "s", commits=rows)
            figure(f"analyze_{engine}{kind}_processor", processor[0], "s", commits=rows)
            figure(f"analyze_{engine}{kind}_memory", peak[0], "MiB", commits=rows)
        if nodes > 1 and engine != "again":
            ratio = seconds[f"{engine}_of_nodes"] / seconds[engine]
            figure(f"analyze_{engine}_nodes_to_one", ratio, "ratio", nodes=nodes, limit=2.0)
    for one, other in (("spark", "local"), ("nine", "bare"), ("again", "local")):
        for kind in given:
            if {one + kind, other + kind} <= seconds.keys():
                ratio = seconds[one + kind] / seconds[other + kind]
                figure(f"analyze_{one}_to_{other}{kind}", ratio, "ratio", commits=rows)
    for other in ("spark", "again"):
        for kind in given:
            if {other, "local"} <= seconds.keys() and rows <= _HEAVY:
                compare(folder / f"out-{other}{kind}", folder / f"out-local{kind}")


if __name__ == "__main__":
    main()
