"""Import of a history with many merges of four parents, beside a linear one of the same length.

python benchmarks/bench_merges.py [merges] [depth]

Each merge takes in two branches of two commits that left the trunk up to `depth` trunk commits before. One of their heads
has been continued by then, so that only a walk down the graph tells whether another parent implies it: what a history has
in which topics are merged and go on. Items are imported in batches as the API takes them; the figure is wall time, and the
processor's time stands beside it, which says the same on a busy machine.
"""

import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from benchmarks.common import clock_ms, figure
from node.authoring.author import Author
from node.contract.files import ImportItem
from node.importers.imports import import_items
from node.ingest.ingest_result import IngestResult
from node.ingest.replica import Replica
from protocol.crypto.keys import StoreKey, UserSeed
from protocol.limits.users import IMPORT_BATCH_COUNT_MAX

_SEED: Final = 18
_TIME: Final = 1_500_000_000


class _History:
    """Items of another system, parents before children."""

    def __init__(self) -> None:
        self.items: list[ImportItem] = []

    def add(self, *parents: str) -> str:
        """One more item."""
        number = len(self.items)
        self.items.append(ImportItem(f"item {number}", parents, "somebody", _TIME + number, "a few words"))
        return self.items[-1].id


def merged(merges: int, depth: int) -> list[ImportItem]:
    """Return a history with so many merges of four parents."""
    history, choice = _History(), random.Random(_SEED)  # noqa: S311  # the same history each time
    trunk = [history.add()]
    continued = ""
    for _ in range(merges):
        trunk.append(history.add(trunk[-1]))
        heads = []
        for _ in range(2):
            first = history.add(trunk[-1 - choice.randrange(min(depth, len(trunk)))])
            heads.append(history.add(first))
        parents = [trunk[-1], *heads, *([continued] if continued else [])]
        continued = history.add(heads[1])
        trunk.append(history.add(*parents))
    return history.items


def linear(count: int) -> list[ImportItem]:
    """Return a chain of so many items."""
    history = _History()
    last = history.add()
    for _ in range(count - 1):
        last = history.add(last)
    return history.items


def _import(folder: Path, items: list[ImportItem]) -> tuple[float, float, float]:
    """Seconds for all of it, those of the processor, and those for the slowest batch."""
    folder.mkdir()
    replica = Replica(folder, StoreKey(b"k" * 32))
    try:
        author = Author(replica, UserSeed(b"u" * 32), clock_ms)
        repo, _ = author.founding.create_repo("bench")
        branch, _ = author.founding.create_branch(repo, "main")
        slowest, began, cpu_began = 0.0, time.perf_counter(), time.process_time()
        for start in range(0, len(items), IMPORT_BATCH_COUNT_MAX):
            batch_began = time.perf_counter()
            import_items(
                author, branch, "bench", items[start : start + IMPORT_BATCH_COUNT_MAX], IngestResult()
            )
            slowest = max(slowest, time.perf_counter() - batch_began)
        return time.perf_counter() - began, time.process_time() - cpu_began, slowest
    finally:
        replica.close()


def main() -> None:
    """Print the figures."""
    merges = int(sys.argv[1]) if len(sys.argv) > 1 else 2694
    depth = int(sys.argv[2]) if len(sys.argv) > 2 else 3000
    with tempfile.TemporaryDirectory() as name:
        count = len(merged(merges, depth))
        made: dict[str, Callable[[], list[ImportItem]]] = {
            "linear": lambda: linear(count),
            "merges": lambda: merged(merges, depth),
        }
        took: dict[str, tuple[float, float, float]] = {}
        for kind, make in made.items():
            seconds, cpu_seconds, slowest = took[kind] = _import(Path(name) / kind, make())
            figure(
                f"import_{kind}",
                count / seconds,
                "commits/s",
                commits=count,
                cpu_seconds=round(cpu_seconds, 2),
                slowest_batch_s=round(slowest, 2),
            )
        wall, cpu = (took["merges"][place] / took["linear"][place] for place in (0, 1))
        figure("import_merges_to_linear", wall, "times", merges=merges, cpu_times=round(cpu, 2), goal=1.5)


if __name__ == "__main__":
    main()
