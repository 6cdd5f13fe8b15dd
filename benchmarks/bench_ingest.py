"""Validated ingest of small commits into SQLite: the whole way in, durable, against bare libsodium verification.

Every publication is decoded, its block ids computed, opened, its author's signature checked, judged and stored (a
writer makes the topic's signature again when it sends: Ed25519 is deterministic). The next batches are read while one is
stored, as in a daemon. With `--storage-url` and an empty PostgreSQL database, the same into that, held against SQLite in
the same run.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
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
from node.home.config_sections import WORKERS_DEFAULT
from node.ingest.native_reading import Reader, make_reader
from node.ingest.replica import Replica
from node.runtime.blocking import threads, tune_interpreter
from node.sync.hub import Hub
from storage.repos.epochs import Topic
from storage.repos.repos import Branch, Repo

_UNDER_WAY = 4


class Measured(NamedTuple):
    """Result of one ingest run."""

    rate: float  # commits per second
    cpu: float  # processor seconds for each commit


async def _ingest(replica: Replica, topic: Topic, made: list[list[bytes]], reader: Reader) -> None:
    hub = Hub(replica, threads(), clock_ms, reader)
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
    workers: int = WORKERS_DEFAULT,
    url: str = "",
    write: Callable[[Path, int], tuple[Replica, Repo, Branch]] = write_history,
) -> Measured:
    """Validated ingest into SQLite or the PostgreSQL database of a URL; with no workers all is read by Python."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source, repo, branch = write(folder / "source", commit_count)
        topic = writers_topic(source, repo)
        root_made = batches(source, topic, source.root_branch(repo))
        made = batches(source, topic, branch)
        replica = follow(folder / "target", source, repo, url)
        reader = make_reader(workers)
        target = replica.by_topic[topic.topic]
        trio.run(_ingest, replica, target, root_made, reader)
        before = time.process_time()
        seconds = timed(lambda: trio.run(_ingest, replica, target, made, reader))
        cpu = time.process_time() - before
        counts = [one.commit_count for one in replica.read_tables().branches.values()]
        assert commit_count + 1 in counts
        source.close()
        replica.close()
    return Measured(commit_count / seconds, cpu / commit_count)


def main() -> None:
    """Print the figures."""
    tune_interpreter()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", nargs="?", type=int, default=20_000, help="commits")
    parser.add_argument("--workers", type=int, default=WORKERS_DEFAULT, help="as in the configuration")
    parser.add_argument("--storage-url", default="", help="an empty PostgreSQL database")
    given = parser.parse_args()
    count = given.count
    limit = libsodium_verifications_per_second()
    note(f"bare libsodium: {limit:.0f} verifications/s, one thread")
    found = measure(count, given.workers)
    rate = found.rate
    figure("ingest", rate, "commits/s", commits=count)
    figure("ingest_to_bare_verification", rate / limit, "ratio", goal=0.8)
    figure("ingest_cpu", found.cpu * 1e6, "us")
    if given.storage_url:
        other = measure(count, given.workers, given.storage_url).rate
        figure("ingest_postgresql", other, "commits/s", commits=count)
        figure("ingest_postgresql_to_sqlite", other / rate, "ratio")


if __name__ == "__main__":
    main()
