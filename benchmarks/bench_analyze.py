"""`ravel analyze` by both engines on the same export, in the same run; their tables are held to be equal.

python benchmarks/bench_analyze.py [sizes, 10000 by default] [engines, local,spark by default]

Commits are those of `bench_statistics`, as an export with a manifest. Timed is the whole command, in a process of its own:
start, check of the export, order, comparison with the stated ranks, all tables, the page. Processor time is of all its
processes. Memory is the largest sum of their resident memory, sampled.
"""

import json
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from blake3 import blake3

from analytics.tables.definitions import TABLES
from benchmarks.bench_statistics import write_commits
from benchmarks.common import figure, note, timed
from benchmarks.memory import peak_of_all, processor_time_of_all
from ravel.exports.schema import COMMITS, EXPORT_FORMAT, MANIFEST_NAME, SCHEMA_VERSION

_RECEIVED: int = 1_750_000_000_000
_HEAVY = 100_000
"""Commits above which rows are not compared: Python would hold all of them."""


def write_export(folder: Path, count: int) -> Path:
    """An export of so many commits; what statistics do not read is the same in each row."""
    write_commits(folder / "commits", count)
    listed = []
    for part in sorted((folder / "commits").iterdir()):
        rows = pq.read_table(part)
        same: dict[str, Any] = {
            "position": 0,
            "received_at": _RECEIVED,
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
        "node": "benchmark",
        "created_at": _RECEIVED // 1000,
        "watermark": count,
        "tables": {"commits": listed, "voids": []},
    }
    (folder / MANIFEST_NAME).write_text(json.dumps(manifest), encoding="utf-8")
    return folder


def analyze(export: Path, out: Path, engine: str) -> None:
    """The command; fails where it finds anything wrong."""
    command = [sys.executable, "-P", "-m", "analytics", str(export), "--out", str(out), "--engine", engine]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def compare(one: Path, other: Path) -> None:
    """Fail unless both say the same in every row of every table, and in every digest."""
    assert (one / "digests.json").read_bytes() == (other / "digests.json").read_bytes()
    for name in TABLES:
        rows = [sorted(map(repr, pq.read_table(out / "tables" / name).to_pylist())) for out in (one, other)]
        assert rows[0] == rows[1], f"{name} differs"


def main() -> None:
    """Print the figures."""
    sizes = [int(text) for text in sys.argv[1].split(",")] if len(sys.argv) > 1 else [10_000]
    engines = sys.argv[2].split(",") if len(sys.argv) > 2 else ["local", "spark"]
    with tempfile.TemporaryDirectory(prefix="ravel-bench-") as name:
        folder = Path(name)
        for size in sizes:
            note(f"write {size:,} commits")
            export = write_export(folder / str(size), size)
            seconds = {}
            for engine in engines:
                note(f"{engine}, {size:,} commits")
                out = folder / f"{engine}-{size}"
                with peak_of_all() as peak, processor_time_of_all() as processor:
                    seconds[engine] = timed(partial(analyze, export, out, engine))
                figure(f"analyze_{engine}", seconds[engine], "s", commits=size)
                figure(f"analyze_{engine}_processor", processor[0], "s", commits=size)
                figure(f"analyze_{engine}_memory", peak[0], "MiB", commits=size)
            if len(engines) == 2:
                figure("analyze_spark_to_local", seconds["spark"] / seconds["local"], "ratio", commits=size)
                if size <= _HEAVY:
                    compare(*(folder / f"{engine}-{size}" for engine in engines))


if __name__ == "__main__":
    main()
