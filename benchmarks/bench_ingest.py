"""Validated ingest of small commits into SQLite: the whole way in, durable, against bare libsodium verification.

Every publication is decoded, its block ids computed, opened, its author's signature checked, judged and stored (a
writer makes the topic's signature itself when it sends, as decision 10 says). Signatures are checked in a process of
their own and the next batches opened while one is stored, as a daemon does. With `--storage-url` and an empty PostgreSQL
database, the same into that, held against SQLite in the same run.
"""

import argparse
import tempfile
from pathlib import Path

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
)
from node.ingest.replica import Replica
from node.runtime.blocking import threads, tune_interpreter
from node.sync.hub import Hub
from node.sync.signature_pool import SignaturePool
from protocol.ids import Digest, Signature, UserId
from protocol.signing import Claim
from storage.repos.repos import Branch

_UNDER_WAY = 4


async def _ingest(replica: Replica, branch: Branch, made: list[list[bytes]], pool: SignaturePool) -> None:
    hub = Hub(replica, threads(), clock_ms, pool.check)
    slots = trio.Semaphore(_UNDER_WAY)
    turn = trio.Event()
    turn.set()

    async def take(items: list[bytes], previous: trio.Event, done: trio.Event) -> None:
        ingested = await hub.ingest(branch, items, previous, None)
        assert ingested.accepted or ingested.already, "the history is legal"
        done.set()
        slots.release()

    async with trio.open_nursery() as nursery:
        for items in made:
            await slots.acquire()
            previous, turn = turn, trio.Event()
            nursery.start_soon(take, items, previous, turn)


def measure(commit_count: int, url: str = "") -> float:
    """Commits per second of validated ingest, into SQLite or the PostgreSQL database of a URL."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source, repo, branch = write_history(folder / "source", commit_count)
        made = batches(source, branch)
        root = source.root_branch(repo)
        root_made = batches(source, root)
        replica = follow(folder / "target", source, repo, url)
        pool = SignaturePool()
        claim = Claim(UserId(bytes(32)), Digest(bytes(32)), Signature(bytes(64)))
        pool.check([claim] * 100)  # the workers have started
        trio.run(_ingest, replica, replica.by_topic[root.topic], root_made, pool)
        target = replica.by_topic[branch.topic]
        seconds = timed(lambda: trio.run(_ingest, replica, target, made, pool))
        with replica.change():
            pass  # reads the counts
        assert replica.branches[target.num].commit_count == commit_count + 1
        pool.close()
        source.close()
        replica.close()
    return commit_count / seconds


def main() -> None:
    """Print the figures."""
    tune_interpreter()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", nargs="?", type=int, default=20_000, help="commits")
    parser.add_argument("--storage-url", default="", help="an empty PostgreSQL database")
    given = parser.parse_args()
    count = given.count
    limit = libsodium_verifications_per_second()
    note(f"bare libsodium: {limit:.0f} verifications/s, one thread")
    rate = measure(count)
    figure("ingest", rate, "commits/s", commits=count)
    figure("ingest_to_bare_verification", rate / limit, "ratio", goal=0.5)
    if given.storage_url:
        other = measure(count, given.storage_url)
        figure("ingest_postgresql", other, "commits/s", commits=count)
        figure("ingest_postgresql_to_sqlite", other / rate, "ratio")


if __name__ == "__main__":
    main()
