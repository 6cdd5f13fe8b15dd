"""Edits of a timeline: reading them from the store, writing down changes, and telling many who follow.

Ingest writes no row for an insert, so what following costs it is measured by `bench_ingest.py`: nothing. Here: windows
of a snapshot, and of the latest edits of a short and of a long history; commits that become void; and one write until
each of many event sources has it, as their streams would send it.
"""

import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import trio

from benchmarks.common import clock_ms, figure, note, percentile, timed, write_history
from node.api.edits import EditSource, SharedReads
from node.authoring.author import Author
from node.ingest.replica import Replica
from node.runtime.blocking import threads
from node.sync.hub import Hub
from protocol.crypto.keys import UserSeed
from protocol.formats.content import Post
from protocol.limits.users import EDIT_WINDOW_MAX
from storage.commits.edits import START, Cursor, load_edits, load_last_change
from storage.commits.void_marks import mark_void
from storage.repos.repos import Branch

_SOURCES = 100
_WRITES = 50
_PAUSE_SECONDS = 0.25
"""Between two writes: an event stream of many looks at the store at most five times a second."""
_LOOKS = 200


def _read_all(replica: Replica, branch: Branch) -> int:
    cursor, count, has_more = START, 0, True
    while has_more:
        with replica.database.read() as connection:
            window = load_edits(connection, branch.num, cursor, EDIT_WINDOW_MAX)
        cursor, has_more = window.next, window.has_more
        count += len(window.edits)
    return count


def _look_at_the_end(replica: Replica, branch: Branch) -> float:
    """Seconds to read the 100 latest edits."""
    with replica.database.read() as connection:
        since = Cursor(load_last_change(connection, branch.num) - 100)

    def look() -> None:
        for _ in range(_LOOKS):
            with replica.database.read() as connection:
                assert len(load_edits(connection, branch.num, since, EDIT_WINDOW_MAX).edits) == 100

    return timed(look) / _LOOKS


def _void(replica: Replica, branch: Branch, count: int) -> float:
    """Seconds until so many commits are void, durably."""
    with replica.database.read() as connection:
        last = load_last_change(connection, branch.num)
    nums = range(last - count + 1, last + 1)

    def void() -> None:
        with replica.database.write() as connection:
            mark_void(replica.database, connection, branch.num, nums, is_void=True)

    return timed(void)


async def _tell_many(replica: Replica, branch: Branch, author: Author) -> list[float]:
    """Return for each write and each source the seconds from its acknowledgement until the source has it."""
    hub = Hub(replica, threads(), clock_ms)
    with replica.database.read() as connection:
        since = Cursor(load_last_change(connection, branch.num))
    reads = SharedReads(hub)
    waits: list[float] = []
    written_at = 0.0
    all_told = trio.Event()

    async def follow(source: EditSource) -> None:
        source.start()
        while True:
            events = await source.next()
            waits.extend([time.perf_counter() - written_at] * len(events))
            if len(waits) % _SOURCES == 0:
                all_told.set()

    async with trio.open_nursery() as nursery:
        for _ in range(_SOURCES):
            nursery.start_soon(follow, EditSource(hub, reads, lambda: branch, since))
        await trio.sleep(_PAUSE_SECONDS)
        for number in range(_WRITES):
            _, ingested = await hub.run_blocking(author.write, branch, Post(f"told {number}"))
            written_at, all_told = time.perf_counter(), trio.Event()
            hub.announce(ingested)
            await all_told.wait()
            await trio.sleep(_PAUSE_SECONDS)
        nursery.cancel_scope.cancel()
    return waits


def main() -> None:
    """Print the figures."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    ends: list[float] = []
    for size in (1000, count):
        with tempfile.TemporaryDirectory() as name:
            note(f"a history of {size} commits")
            replica, _, branch = write_history(Path(name), size)
            ends.append(_look_at_the_end(replica, branch))
            if size == count:
                seconds = timed(partial(_read_all, replica, branch))
                figure("edits_snapshot", count / seconds, "edits/s", commits=count)
                waits = trio.run(_tell_many, replica, branch, Author(replica, UserSeed(b"b" * 32), clock_ms))
                for share in (0.5, 0.99):
                    wait = 1000 * percentile(waits, share)
                    figure(f"edit_told_p{share * 100:.0f}", wait, "ms", sources=_SOURCES)
                figure("void_commits", 10_000 / _void(replica, branch, 10_000), "commits/s", commits=10_000)
            replica.close()
    figure("edits_latest_100", 1000 * ends[1], "ms", commits=count)
    figure("edits_latest_100_growth", ends[1] / ends[0], "ratio", goal=2, commits=count)


if __name__ == "__main__":
    main()
