"""Validated ingest of small commits into SQLite: the whole way in, durable, against bare libsodium verification.

Every publication is decoded, its block ids computed, opened, its author's signature checked, judged and stored (a
writer makes the topic's signature again when it sends: Ed25519 is deterministic). Worker processes read the next batches and
check signatures while one is stored, and this process where it has nothing to store, as in a daemon. With
`--storage-url` and an empty PostgreSQL database, the same into that, held against SQLite in the same run.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import trio

from benchmarks.common import (
    batches,
    clock_ms,
    figure,
    follow,
    libsodium_verifications_per_second,
    note,
    timed,
    write_history,
    writers_topic,
)
from benchmarks.memory import processor_seconds
from node.home.config_sections import WORKERS_DEFAULT
from node.ingest.publication_reading import OpeningKeys
from node.ingest.reading_worker import WorkerReading
from node.ingest.reading_workers import ReadingWorkers
from node.ingest.reading_workers import worker_count as count_workers
from node.ingest.replica import Replica
from node.runtime.blocking import threads, tune_interpreter
from node.sync.hub import Hub
from storage.repos.epochs import Topic

_UNDER_WAY = 4


class _Patient(ReadingWorkers):
    """Workers that read all there is to read, as they do where there are cores enough."""

    def read(
        self, keys: OpeningKeys, items: Sequence[bytes], *, wait_while: Callable[[], bool] = lambda: True
    ) -> WorkerReading | None:
        return super().read(keys, items, wait_while=lambda: True)


class Measured(NamedTuple):
    """Result of one ingest run."""

    rate: float  # commits per second
    here: float  # processor seconds of this process for each commit
    workers: float  # the same of all workers together


async def _ingest(replica: Replica, topic: Topic, made: list[list[bytes]], workers: ReadingWorkers) -> None:
    hub = Hub(replica, threads(), clock_ms, workers)
    slots = trio.Semaphore(_UNDER_WAY)
    turn = trio.Event()
    turn.set()

    async def take(items: list[bytes], previous: trio.Event, done: trio.Event) -> None:
        ingested = await hub.intake.ingest(topic, items, previous, None)
        assert ingested.accepted or ingested.already, "the history is legal"
        done.set()
        slots.release()

    async with trio.open_nursery() as nursery:
        for items in made:
            await slots.acquire()
            previous, turn = turn, trio.Event()
            nursery.start_soon(take, items, previous, turn)


def measure(
    commit_count: int,
    worker_count: int | None = None,
    url: str = "",
    make_workers: Callable[[int], ReadingWorkers] = ReadingWorkers,
) -> Measured:
    """Validated ingest into SQLite or the PostgreSQL database of a URL."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source, repo, branch = write_history(folder / "source", commit_count)
        topic = writers_topic(source, repo)
        root_made = batches(source, topic, source.root_branch(repo))
        made = batches(source, topic, branch)
        replica = follow(folder / "target", source, repo, url)
        workers = make_workers(count_workers(WORKERS_DEFAULT) if worker_count is None else worker_count)
        workers.start_all()
        target = replica.by_topic[topic.topic]
        trio.run(_ingest, replica, target, root_made, workers)
        before = time.process_time(), processor_seconds(workers.pids())
        seconds = timed(lambda: trio.run(_ingest, replica, target, made, workers))
        here, there = time.process_time() - before[0], processor_seconds(workers.pids()) - before[1]
        counts = [one.commit_count for one in replica.read_tables().branches.values()]
        assert commit_count + 1 in counts
        workers.close()
        source.close()
        replica.close()
    return Measured(commit_count / seconds, here / commit_count, there / commit_count)


def main() -> None:
    """Print the figures."""
    tune_interpreter()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", nargs="?", type=int, default=20_000, help="commits")
    parser.add_argument("--workers", type=int, help="reading workers (by default as many as a daemon has)")
    parser.add_argument("--storage-url", default="", help="an empty PostgreSQL database")
    given = parser.parse_args()
    count = given.count
    limit = libsodium_verifications_per_second()
    note(f"bare libsodium: {limit:.0f} verifications/s, one thread")
    found = measure(count, given.workers)
    rate = found.rate
    figure("ingest", rate, "commits/s", commits=count)
    figure("ingest_to_bare_verification", rate / limit, "ratio", goal=0.75)
    figure("ingest_cpu_of_daemon", found.here * 1e6, "us")
    figure("ingest_cpu_of_workers", found.workers * 1e6, "us")
    if found.workers:
        # What this process can judge and store, had it as many cores and workers as it can keep busy.
        here = measure(count, given.workers, make_workers=_Patient).here
        figure("ingest_cpu_of_daemon_that_reads_nothing", here * 1e6, "us")
        figure("ingest_with_cores_enough_to_bare_verification", 1 / here / limit, "ratio", goal=1.3)
    if given.storage_url:
        other = measure(count, given.workers, given.storage_url).rate
        figure("ingest_postgresql", other, "commits/s", commits=count)
        figure("ingest_postgresql_to_sqlite", other / rate, "ratio")


if __name__ == "__main__":
    main()
