"""Cost of sealed keys and of a sealed store: opening the keys, sealing an older store, and reading and writing rows.

python benchmarks/bench_sealing.py [commits]
"""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.common import STORE_KEY, figure, note, write_history
from node.home.key_file import COST, fresh_keys, open_node_keys, seal_node_keys
from storage.commits.commits import iterate_arrivals
from storage.engine.database import Database


def _best_of(count: int, run: Callable[[], object]) -> float:
    """Processor seconds of the fastest run: other programs of the machine are not in it."""
    best = float("inf")
    for _ in range(count):
        began = time.process_time()
        run()
        best = min(best, time.process_time() - began)
    return best


def _read(database: Database) -> int:
    with database.read() as connection:
        return sum(1 for _ in iterate_arrivals(connection, [1, 2]))


def main() -> None:
    """Print the figures."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    file = seal_node_keys(fresh_keys(), "passphrase", b"four random words")
    seconds = _best_of(3, lambda: open_node_keys(file, "keys.json", b"four random words"))
    figure("keys_opened", seconds, "s", memory=COST.memory, passes=COST.passes)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        note(f"an older store of {count} commits")
        replica, _, _ = write_history(folder, count, store_key=None)
        open_read = _best_of(5, lambda: _read(replica.database))
        replica.close()
        began = time.perf_counter()
        database = Database(folder, STORE_KEY)
        figure("store_sealed", time.perf_counter() - began, "s", commits=count)
        sealed_read = _best_of(5, lambda: _read(database))
        database.close()
    figure("rows_read_sealed", sealed_read / count * 1e6, "us", commits=count)
    figure("rows_read_sealed_to_open", sealed_read / open_read, "ratio", goal=1.5, commits=count)


if __name__ == "__main__":
    main()
