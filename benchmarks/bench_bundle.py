"""A bundle of small commits, written and read, each beside ingest of the same number in the same run.

python -m benchmarks.bench_bundle [commits] [--workers N]

The reader has the repo's epoch and nothing of its branch. What is written is held in memory, so that the disk of the file
does not count. Also the rate of reading the same bundle once more, and the processor time of each commit.
"""

import argparse
import tempfile
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Final

import trio

from benchmarks.bench_ingest import measure
from benchmarks.common import clock_ms, figure, follow, write_history
from node.authoring.author import Author
from node.care.bundle_reading import read_bundle
from node.care.bundle_writing import write_bundle
from node.home.config_sections import WORKERS_DEFAULT
from node.ingest.native_reading import Reader, make_reader
from node.ingest.replica import Replica
from node.membership.joining import Joiner
from node.runtime.blocking import threads, tune_interpreter
from node.sync.hub import Hub
from protocol.crypto.keys import UserSeed
from ravel.types.bundles import BundleReading
from storage.repos.repos import Branch, Repo

_CHUNK_SIZE: Final = 1 << 16


async def _write(source: Replica, repo: Repo, branch: Branch) -> bytes:
    return b"".join([some async for some in write_bundle(source, repo, [branch], None, threads())])


async def _read(replica: Replica, content: bytes, reader: Reader) -> BundleReading:
    hub = Hub(replica, threads(), clock_ms, reader)
    joiner = Joiner(hub, Author(replica, UserSeed(b"reader".ljust(32)), clock_ms))

    async def chunks() -> AsyncGenerator[bytes]:
        for start in range(0, len(content), _CHUNK_SIZE):
            yield content[start : start + _CHUNK_SIZE]

    return await read_bundle(hub, joiner, chunks())


def main() -> None:
    """Print the figures."""
    tune_interpreter()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", nargs="?", type=int, default=20_000, help="commits")
    parser.add_argument("--workers", type=int, default=WORKERS_DEFAULT, help="as in the configuration")
    given = parser.parse_args()
    count = given.count
    ingest = measure(count, given.workers).rate
    figure("ingest", ingest, "commits/s", commits=count)
    with tempfile.TemporaryDirectory() as name:
        source, repo, branch = write_history(Path(name) / "source", count)
        began, used = time.perf_counter(), time.process_time()
        content = trio.run(_write, source, repo, branch)
        rate = count / (time.perf_counter() - began)
        figure("bundle_write", rate, "commits/s", commits=count, megabytes=round(len(content) / 1e6, 1))
        figure("bundle_write_to_ingest", rate / ingest, "ratio", goal=0.9)
        figure("bundle_write_cpu", (time.process_time() - used) / count * 1e6, "us")
        replica = follow(Path(name) / "target", source, repo)
        reader = make_reader(given.workers)
        for what in ("bundle_read", "bundle_read_again"):
            began, used = time.perf_counter(), time.process_time()
            found = trio.run(_read, replica, content, reader)
            rate = count / (time.perf_counter() - began)
            figure(what, rate, "commits/s", commits=count)
            figure(f"{what}_to_ingest", rate / ingest, "ratio", goal=0.9)
            figure(f"{what}_cpu_of_daemon", (time.process_time() - used) / count * 1e6, "us")
        assert (found["taken"], found["waiting"], found["unopened"]) == (0, 0, 0)
        source.close()
        replica.close()


if __name__ == "__main__":
    main()
