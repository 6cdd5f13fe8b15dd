"""Bytes that an analysis on Spark shuffles for each commit of one giant, and how evenly tasks get large branches.

python benchmarks/bench_shuffled.py [commits, 1000000 by default] [cores, 2 by default]

The export is one branch of 64 feeds. It is cut into ten ranges, as a branch of 10,000,000 is. Bytes, and what was spilled to
disk, are those of all tasks in Spark's event log. `packed` is of 300 branches of a million commits, for the cores that its
name has: commits of the largest task to the median, by the plan alone.
"""

import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any, Final

from analytics.order.packing import pack
from analytics.reading.limits import TASK_COMMITS
from benchmarks.bench_analyze import write_export
from benchmarks.common import figure, note, timed
from benchmarks.tangle_tables import large_tangle

_RANGES: Final = 5
_BRANCHES: Final = 300
_BRANCH_COMMITS: Final = 1_000_000


def measure_giant(folder: Path, count: int, cores: int) -> None:
    """Print what an analysis of one giant shuffles and spills."""
    note(f"write {count:,} commits")
    export = write_export(folder / "export", count, large_tangle)
    log = folder / "log"
    log.mkdir()
    settings = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": log.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
    }
    command = [sys.executable, "-P", "-m", "analytics", str(export), "--out", str(folder / "out")]
    command += ["--master", f"local[{cores}]", "--giant-from", str(max(1, count // _RANGES))]
    command += [f"--conf={key}={value}" for key, value in settings.items()]
    note(f"analyze {count:,} commits of one branch")
    seconds = timed(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))
    (events,) = log.glob("local-*")
    tasks = _tasks(events)
    shuffled = sum(task["Shuffle Write Metrics"]["Shuffle Bytes Written"] for task in tasks)
    figure("analyze_giant", seconds, "s", commits=count, tasks=len(tasks))
    figure("analyze_giant_shuffled", shuffled / count, "bytes", commits=count, limit=250)
    figure("analyze_giant_spilled", sum(task["Disk Bytes Spilled"] for task in tasks) / count, "bytes")


def _tasks(events: Path) -> list[dict[str, Any]]:
    """Return the metrics of all tasks in an event log; failed ones have none."""
    with events.open(encoding="utf-8") as lines:
        told = (json.loads(line) for line in lines if "SparkListenerTaskEnd" in line)
        return [one["Task Metrics"] for one in told if "Task Metrics" in one]


def measure_packing() -> None:
    """Print how evenly branches of a million commits are packed."""
    sizes = {number.to_bytes(2): _BRANCH_COMMITS for number in range(_BRANCHES)}
    for cores in (2, 16, 200, 400):
        loads = Counter(pack(sizes, 0, cores, TASK_COMMITS).large.values())
        figure(f"packed_{cores}", max(loads.values()) / median(loads.values()), "ratio", limit=2.0)


def main() -> None:
    """Print the figures."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    cores = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    measure_packing()
    with tempfile.TemporaryDirectory(prefix="ravel-bench-") as name:
        measure_giant(Path(name), count, cores)


if __name__ == "__main__":
    main()
