"""Positions in very long timelines: what a look costs, what further commits cost, and how much memory it takes.

Stores are filled with rows alone (ids at random, eight commits of each rank): making ten million signed commits takes
hours and changes nothing of where they stand. Around them everything is real: commits taken in before and after go the
whole way in, with their signatures checked in this process. Looks are of one snapshot, at random positions. Costs are
processor time, of which a crowded machine takes as much; the waits of single looks are given beside.

    python -m benchmarks.bench_positions 100000 1000000 10000000
    python -m benchmarks.bench_positions --flood 1000000
"""

import os
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sqlalchemy import Connection, insert, select, text, update

from benchmarks.common import (
    batches,
    clock_ms,
    figure,
    follow,
    note,
    percentile,
    write_history,
    write_posts,
    writers_topic,
)
from benchmarks.memory import peak_growth
from node.authoring.author import Author
from node.authoring.drafting import Draft
from node.ingest.publication_parsing import open_batch
from node.ingest.replica import Replica
from protocol.crypto.keys import UserSeed
from protocol.formats.content import Post
from protocol.ids import BlockId, CommitId
from storage.commits.commits import COMMIT_COLUMNS, load_position, load_rows, load_timeline
from storage.commits.display import load_display_window
from storage.commits.edits import Cursor, load_edits, load_last_change
from storage.commits.position_index import OrderKey, count_changes
from storage.engine.bulk import insert_rows
from storage.engine.id_keys import PackedIds, id_key, pack_ids
from storage.repos.epochs import Topic
from storage.repos.repos import Branch, Repo
from storage.schema.schema import FEED_LINK_SIZE, branches, commits, heads, topics
from tests.support.batches import accept_whole

_WIDTH = 8
_CHUNK = 20_000
_LOOKS = 2000
_FURTHER = 20_000
_LATE = 20_000
_LATE_BATCH = 1000


@dataclass(frozen=True)
class Source:
    """A node with real history, to be taken in by others."""

    replica: Replica
    repo: Repo
    root: list[list[bytes]]
    chain: list[list[bytes]]
    """The branch's first commit, then those that follow it: of ranks behind those of all that is filled in."""
    flood: list[list[bytes]]
    """The same, but for what follows: commits that all ack the first."""
    rank: int
    branch: Branch
    flooded: Branch

    @classmethod
    def make(cls, folder: Path, rank: int) -> "Source":
        """Write it, the chain behind a rank."""
        replica, repo, branch = write_history(folder, 0)
        author = Author(replica, UserSeed(b"b" * 32), clock_ms)
        _raise_head(replica, branch, rank)
        write_posts(author, branch, _FURTHER)
        flooded, _ = author.founding.create_branch(repo, "flooded")
        for start in range(0, _FURTHER, 1000):
            texts = [f"post number {number}" for number in range(start, start + 1000)]
            drafts = [Draft(Post(one), (flooded.facts.root_id,)) for one in texts]
            author.write_many(flooded, partial(_same, drafts))
        topic = writers_topic(replica, repo)
        root = batches(replica, topic, replica.root_branch(repo))
        chain, flood = (
            [made[0][:1], made[0][1:], *made[1:]]
            for made in (batches(replica, topic, one) for one in (branch, flooded))
        )
        return cls(replica, repo, root, chain, flood, rank, branch, flooded)


def _same(drafts: Sequence[Draft], _connection: Connection) -> Sequence[Draft]:
    return drafts


def _take(replica: Replica, topic: Topic, made: Sequence[list[bytes]]) -> int:
    count = 0
    for items in made:
        ingested = accept_whole(replica, topic, open_batch(topic, items), clock_ms())
        count += len(ingested.accepted[topic.topic])
    return count


@dataclass(frozen=True)
class _Target:
    """A node that takes a branch of a topic in."""

    replica: Replica
    topic: Topic
    branch: Branch

    @classmethod
    def begin(cls, folder: Path, source: Source, of: Branch, first: list[bytes]) -> "_Target":
        """Return a node that has the repo's root branch, and the branch's first commit."""
        replica = follow(folder, source.replica, source.repo)
        topic = writers_topic(replica, replica.repos[source.repo.num])
        _take(replica, topic, [*source.root, first])
        (branch,) = (one for one in replica.branches.values() if one.branch_id == of.branch_id)
        return cls(replica, topic, branch)

    def take(self, made: Sequence[list[bytes]]) -> int:
        """Take batches in; gives how many commits were accepted."""
        return _take(self.replica, self.topic, made)


def _raise_head(replica: Replica, branch: Branch, rank: int) -> None:
    """Let what follows the branch's one head stand behind all that is filled in."""
    with replica.database.write() as connection:
        head = connection.execute(
            select(heads.c.commit_id, heads.c.rank).where(heads.c.branch_num == branch.num)
        )
        ((commit_id, old),) = head.all()
        of_head = commits.c.id_key == id_key(commit_id)
        connection.execute(update(commits).where(of_head).values(rank=rank))
        connection.execute(update(heads).where(heads.c.branch_num == branch.num).values(rank=rank))
        count_changes(connection, branch.num, [((0, old, commit_id), -1, -1), ((0, rank, commit_id), 1, 1)])


def _fill(target: _Target, source: Source, count: int, *, is_flood: bool) -> None:
    """Add rows of commits: eight of each rank, before the ones that will come; or all of rank 1, and heads."""
    replica, branch = target.replica, target.branch
    if not is_flood:
        _raise_head(replica, branch, source.rank)
    with replica.database.write() as connection:
        connection.execute(text("DROP INDEX commits_id_key"))  # built at once in the end: a tenth of the time
    done = 0
    while done < count:
        size = min(_CHUNK, count - done)
        with replica.database.write() as connection:
            _put_rows(target, connection, range(done, done + size), is_flood=is_flood)
        done += size
        if done % 1_000_000 == 0:
            note(f"{done} rows")
    with replica.change() as change:
        connection = change.connection
        connection.execute(text("CREATE INDEX commits_id_key ON commits (id_key)"))
        for table, num in ((branches, branch.num), (topics, target.topic.num)):
            more = table.c.commit_count + count
            connection.execute(update(table).where(table.c.num == num).values(commit_count=more))


def _put_rows(target: _Target, connection: Connection, numbers: range, *, is_flood: bool) -> None:
    branch = target.branch
    nums = target.replica.database.next_nums(connection, commits, len(numbers))
    now = clock_ms()
    keys: list[OrderKey] = [
        (0, 1 if is_flood else number // _WIDTH, CommitId(BlockId(os.urandom(32)))) for number in numbers
    ]
    acks = pack_ids([branch.facts.root_id])
    rows = [_row(num, target, key, acks, now) for num, key in zip(nums, keys, strict=True)]
    insert_rows(connection, commits, COMMIT_COLUMNS, rows)
    count_changes(connection, branch.num, [(key, 1, 1) for key in keys])
    if is_flood:
        of = {"topic_num": target.topic.num, "branch_num": branch.num, "rank": 1, "is_acked": False}
        connection.execute(insert(heads), [{"commit_id": key[2], **of} for key in keys])


def _row(num: int, target: _Target, key: OrderKey, acks: PackedIds, now: int) -> tuple[object, ...]:
    values = {
        "num": num,
        "id_key": id_key(key[2]),
        "commit_id": key[2],
        "branch_num": target.branch.num,
        "topic_num": target.topic.num,
        "epoch_num": target.topic.writers_of[0].num,
        "place_num": 1,
        "author_num": 1,
        "feed_sequence": 1_000_000 + num,
        "feed_link": bytes(FEED_LINK_SIZE),
        "rank": key[1],
        "acks": acks,
        "commit_key": bytes(32),
        "signature": bytes(64),
        "block_nums": bytes(16),
        "body_kind": "post",
        "size": 400,
        "timestamp": now,
        "received_at": now,
        "is_void": False,
        "passed": key[0],
        "display_time": now,
        "arrived_at": None,
        "arrival": None,
        "relation": "",
        "about": None,
        "document": "",
        "is_proven": False,
    }
    return tuple(values[name] for name in COMMIT_COLUMNS)


def _look(name: str, count: int, look: Callable[[], object]) -> dict[str, float]:
    """Print the waits of looks; gives the wait of the middle one, of the 99th in a hundred, and processor time, in ms."""
    waits = []
    began = time.process_time()
    for _ in range(_LOOKS):
        at = time.perf_counter()
        look()
        waits.append(1000 * (time.perf_counter() - at))
    found = {
        "p50": percentile(waits, 0.5),
        "p99": percentile(waits, 0.99),
        "cpu": 1000 * (time.process_time() - began) / _LOOKS,
    }
    for share, value in found.items():
        figure(f"{name}_{share}", value, "ms", commits=count)
    return found


def _look_around(
    replica: Replica, branch: Branch, count: int, dice: random.Random
) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    with replica.database.read() as connection:
        total = count + 1
        ids = [
            load_timeline(connection, branch.num, dice.randrange(total), 1)[0].commit_id
            for _ in range(_LOOKS)
        ]
        last = load_last_change(connection, branch.num)
        some = iter(ids)

        def position() -> None:
            commit_id = next(some)
            assert load_position(connection, load_rows(connection, [commit_id])[commit_id]) is not None

        def at() -> None:
            assert len(load_timeline(connection, branch.num, dice.randrange(total), 1)) == 1

        def window() -> None:
            assert len(load_timeline(connection, branch.num, dice.randrange(total - 100), 100)) == 100

        def by_time() -> None:
            load_display_window(connection, branch.num, 100, after=dice.choice(ids), before=None)

        def edits() -> None:
            since = Cursor(last - dice.randrange(100, total))
            assert len(load_edits(connection, branch.num, since, 100).edits) == 100

        looks = {
            "position": position,
            "at": at,
            "window_100": window,
            "by_time_100": by_time,
            "edits_100": edits,
        }
        for name, look in looks.items():
            found[name] = _look(name, count, look)
    return found


def _late(target: _Target, count: int, dice: random.Random) -> float:
    """Microseconds of processor time for each commit that comes in the middle, as a row."""
    began = time.process_time()
    for _ in range(_LATE // _LATE_BATCH):
        with target.replica.database.write() as connection:
            numbers = range(*sorted((first := dice.randrange(count), first + _LATE_BATCH)))
            _put_rows(target, connection, numbers, is_flood=False)
    return 1e6 * (time.process_time() - began) / _LATE


def measure(folder: Path, source: Source, count: int) -> dict[str, float]:
    """Print the figures of a store with so many commits; gives those that are compared."""
    dice = random.Random(count)  # noqa: S311  # the same places in every run
    target = _Target.begin(folder, source, source.branch, source.chain[0])
    replica, branch = target.replica, target.branch
    _fill(target, source, count, is_flood=False)
    found: dict[str, float] = {}
    for name, values in _look_around(replica, branch, count, dice).items():
        found.update({f"{name}_{share}": value for share, value in values.items()})
    with peak_growth() as grown:
        began, at = time.process_time(), time.perf_counter()
        taken = target.take(source.chain[1:])
        seconds, wait = time.process_time() - began, time.perf_counter() - at
    found["further"] = 1e6 * seconds / taken
    figure("further_commits", taken / seconds, "commits/s of processor time", commits=count, goal=5000)
    figure("further_commits_waited", taken / wait, "commits/s", commits=count)
    figure("further_commits_memory", grown[0], "MiB", commits=count)
    found["late"] = _late(target, count, dice)
    figure("late_rows", found["late"], "us of processor time each", commits=count)
    replica.close()
    figure("store_size", replica.database.path.stat().st_size / 1e9, "GB", commits=count)
    return found


def measure_flood(folder: Path, source: Source, count: int) -> None:
    """One commit that `count` others ack, all of them heads, and then more: beside a chain as long."""
    costs: dict[bool, float] = {}
    for is_flood in (False, True):
        of, made = (source.flooded, source.flood) if is_flood else (source.branch, source.chain)
        target = _Target.begin(folder / str(is_flood), source, of, made[0])
        _fill(target, source, count, is_flood=is_flood)
        with peak_growth() as grown:
            began = time.process_time()
            taken = target.take(made[1:])
            costs[is_flood] = (time.process_time() - began) / taken
        name = "flood" if is_flood else "chain"
        figure(f"{name}_ingest", 1 / costs[is_flood], "commits/s of processor time", commits=count)
        figure(f"{name}_ingest_memory", grown[0], "MiB", commits=count)
        target.replica.close()
    figure("flood_to_chain", costs[True] / costs[False], "ratio", commits=count)


def main() -> None:
    """Print the figures."""
    arguments = sys.argv[1:]
    is_flood = arguments[:1] == ["--flood"]
    counts = [int(one) for one in arguments[is_flood:]] or [1_000_000 if is_flood else 100_000]
    with tempfile.TemporaryDirectory() as name:
        source = Source.make(Path(name) / "source", max(counts) // _WIDTH + 1)
        found: list[dict[str, float]] = []
        for count in counts:
            folder = Path(name) / str(count)
            if is_flood:
                measure_flood(folder, source, count)
                continue
            found.append(measure(folder, source, count))
            for key in found[0] if len(found) > 1 else ():
                ratio = found[-1][key] / found[0][key]
                goal = {"goal": 2} if key == "further" else {}
                figure(f"{key}_growth", ratio, "ratio", commits=count, **goal)
        source.replica.close()
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    figure("memory_most", most, "MiB", goal=300)


if __name__ == "__main__":
    main()
