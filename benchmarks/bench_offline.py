"""Two members write without each other, and meet: what it costs until both have the same timeline.

python benchmarks/bench_offline.py [commits of each ...]

Each writes a chain of so many commits on the same commit; then they are connected (real stores, sessions and encryption,
in one process, whose signatures nobody else checks), and both timelines are read. The figure is the processor's time of both
sides for each commit of either, and `to_smallest` its ratio to that of the first count: 1 where the cost is linear.
"""

import shutil
import sys
import tempfile
import time
from pathlib import Path

import trio

from benchmarks.common import figure
from benchmarks.meeting import ALICE, BOB, Side, build, meet
from node.runtime.blocking import tune_interpreter
from storage.commits.commits import digest_timeline

_DELAY_SECONDS = 0.001


def _timeline(side: Side) -> tuple[str, int]:
    with side.replica.database.read() as connection:
        return digest_timeline(connection, side.branch.num)


def _measure(folder: Path, count: int) -> tuple[float, float]:
    """Seconds of the processor and of the clock."""
    build(folder / "base", 1)
    for name in ("alice", "bob"):
        shutil.copytree(folder / "base" / "store", folder / name)
    alice, bob = Side(folder / "alice", ALICE), Side(folder / "bob", BOB)
    trio.run(meet, alice, bob, _DELAY_SECONDS)
    for side in (alice, bob):
        side.write_tail(count)
    cpu, clock = time.process_time(), time.perf_counter()
    trio.run(meet, alice, bob, _DELAY_SECONDS)
    digest, length = _timeline(alice)
    assert (digest, length) == _timeline(bob)
    assert length >= 2 * count
    taken = time.process_time() - cpu, time.perf_counter() - clock
    for side in (alice, bob):
        side.replica.close()
    return taken


def main() -> None:
    """Print the figures."""
    tune_interpreter()
    smallest = 0.0
    for count in map(int, sys.argv[1:] or ("1000", "10000", "100000")):
        with tempfile.TemporaryDirectory() as name:
            cpu, clock = _measure(Path(name), count)
        each = cpu / (2 * count)
        smallest = smallest or each
        figure(
            "offline_joined",
            each * 1e6,
            "us/commit",
            commits_of_each=count,
            seconds=round(clock, 2),
            to_smallest=round(each / smallest, 2),
            goal=1.5,
        )


if __name__ == "__main__":
    main()
