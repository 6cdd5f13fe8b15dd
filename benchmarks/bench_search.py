"""Search: what an index costs ingest, what it takes on the disk, how long it takes to make, and how long a search takes.

Posts have 12 words of a made-up vocabulary of 50,000, by Zipf's law. *Ingest* is that of `bench_ingest`, of the first 20,000
posts, with the indexer of a daemon at work beside it and without one, in turns; the best of three each. *Making* is the
whole index at once, without the pauses that a daemon makes. A *search* is the service's answer of 20 hits, with the posts
opened and compared, 50 times each with another word: frequent ones, rare ones, two together, a beginning, a phrase, and
a pair that no post has; by the clock, and in processor time, which other work on the machine changes less.
"""

import argparse
import random
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Final

import trio

from benchmarks.common import (
    batches,
    clock_ms,
    figure,
    follow,
    note,
    percentile,
    timed,
    write_history,
    writers_topic,
)
from node.content.search import Question, Search
from node.content.search_indexer import SearchIndexer
from node.content.search_words import parse_query
from node.home.config_sections import WORKERS_DEFAULT
from node.ingest.native_reading import Reader, make_reader
from node.ingest.replica import Replica
from node.runtime.blocking import threads, tune_interpreter
from node.sync.hub import Hub
from storage.repos.epochs import Topic
from storage.repos.repos import Branch, Repo

_INGESTED: Final = 20_000
_ROUNDS: Final = 3
_SEARCHES: Final = 50
_UNDER_WAY: Final = 4
_WORDS: Final = 12


class _Texts:
    """Posts that look like people's, as far as an index can tell."""

    def __init__(self) -> None:
        self._random = random.Random(1)  # noqa: S311  # the same posts in every run
        syllables = [
            first + second for first in "bcdfghklmnprstvw" for second in ("a", "e", "i", "o", "u", "an")
        ]
        self.words = [
            "".join(self._random.choices(syllables, k=self._random.randint(1, 4))) + format(number, "x")
            for number in range(50_000)
        ]
        self._weights = list(accumulate(1 / (place + 3) for place in range(len(self.words))))

    def post(self, _number: int) -> str:
        """Return a text."""
        return " ".join(self._random.choices(self.words, cum_weights=self._weights, k=_WORDS))


async def _ingest(
    replica: Replica, topic: Topic, made: list[list[bytes]], reader: Reader, *, has_index: bool
) -> float:
    """Seconds that a branch's publications take."""
    hub = Hub(replica, threads(), clock_ms, reader)
    slots, turn = trio.Semaphore(_UNDER_WAY), trio.Event()
    turn.set()

    async def take(items: list[bytes], previous: trio.Event, done: trio.Event) -> None:
        await hub.intake.ingest(topic, items, previous, None)
        done.set()
        slots.release()

    async with trio.open_nursery() as around:
        if has_index:
            around.start_soon(SearchIndexer(hub, is_enabled=True).run)
        began = time.perf_counter()
        async with trio.open_nursery() as nursery:
            for items in made:
                await slots.acquire()
                previous, turn = turn, trio.Event()
                nursery.start_soon(take, items, previous, turn)
        seconds = time.perf_counter() - began
        around.cancel_scope.cancel()
    return seconds


def _measure_ingest(source: Replica, repo: Repo, branch: Branch, folder: Path, *, has_index: bool) -> float:
    """Posts per second."""
    replica = follow(folder, source, repo)
    topic = writers_topic(source, repo)
    target = replica.by_topic[topic.topic]
    reader = make_reader(WORKERS_DEFAULT)
    trio.run(
        partial(_ingest, has_index=False),
        replica,
        target,
        batches(source, topic, source.root_branch(repo)),
        reader,
    )
    made = batches(source, topic, branch)
    count = sum(map(len, made))
    seconds = trio.run(partial(_ingest, has_index=has_index), replica, target, made, reader)
    replica.close()
    return count / seconds


def _compare_ingest(count: int, folder: Path, texts: _Texts) -> None:
    source, repo, branch = write_history(folder / "source", count, text=texts.post)
    rates: dict[bool, list[float]] = {False: [], True: []}
    for number in range(_ROUNDS):
        for has_index, found in rates.items():
            found.append(
                _measure_ingest(source, repo, branch, folder / f"{number}{has_index}", has_index=has_index)
            )
    source.close()
    without, beside = max(rates[False]), max(rates[True])
    figure("ingest_without_an_index", without, "commits/s", commits=count)
    figure("ingest_beside_the_indexer", beside, "commits/s", commits=count)
    figure("ingest_beside_the_indexer_to_without", beside / without, "ratio", goal=0.85)


def _make(replica: Replica, hub: Hub, count: int) -> None:
    def size() -> int:
        with replica.database.read() as connection:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
            return int(pages) * int(connection.exec_driver_sql("PRAGMA page_size").scalar_one())

    indexer, before, slices = SearchIndexer(hub, is_enabled=True), size(), [0.0]
    began = time.process_time()

    def run() -> None:
        is_more = True
        while is_more:
            at = time.perf_counter()
            is_more = indexer.work()
            slices.append(time.perf_counter() - at)

    seconds = timed(run)
    figure("making_the_index", count / seconds, "posts/s", posts=count)
    figure("making_the_index_cpu", (time.process_time() - began) / count * 1e6, "us/post")
    figure("slice_median", percentile(slices, 0.5) * 1e3, "ms")
    figure("slice_longest", max(slices) * 1e3, "ms")
    figure(
        "index_size", (size() - before) / count, "bytes/post", of_store=round((size() - before) / before, 3)
    )


def _search(hub: Hub, branch: Branch, texts: _Texts) -> None:
    search = Search(hub, is_enabled=True)
    words = texts.words

    async def run(queries: list[str]) -> tuple[list[float], list[float], int, int]:
        taken, used, hits, cut = [], [], 0, 0
        for query in queries:
            question = Question(parse_query(query), [branch], 20)
            began, spent = time.perf_counter(), time.process_time()
            found = await search.find(question)
            taken.append(time.perf_counter() - began)
            used.append(time.process_time() - spent)
            hits += len(found.hits)
            cut += found.cursor is not None and len(found.hits) < 20
        return taken, used, hits, cut

    kinds: dict[str, Callable[[int], str]] = {
        "frequent": lambda number: words[number],
        "rare": lambda number: words[-1 - number],
        "two_frequent": lambda number: f"{words[number]} {words[number + 1]}",
        "frequent_and_rare": lambda number: f"{words[number]} {words[-1 - number]}",
        "beginning": lambda number: f"{words[1000 + number][:4]}*",
        "phrase": lambda number: f'"{words[number]} {words[number + 1]}"',
        "none": lambda number: f"absent{number} {words[number]}",
    }
    for name, make in kinds.items():
        taken, used, hits, cut = trio.run(run, [make(number) for number in range(_SEARCHES)])
        figure(
            f"search_{name}",
            percentile(taken, 0.5) * 1e3,
            "ms",
            p95=round(percentile(taken, 0.95) * 1e3, 1),
            cpu=round(percentile(used, 0.5) * 1e3, 1),
            cpu_p95=round(percentile(used, 0.95) * 1e3, 1),
            hits=hits / _SEARCHES,
            cut=cut,
            goal=100,
        )


def main() -> None:
    """Print the figures."""
    tune_interpreter()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", nargs="?", type=int, default=100_000, help="posts that are searched")
    given = parser.parse_args()
    texts = _Texts()
    with tempfile.TemporaryDirectory() as name:
        _compare_ingest(min(given.count, _INGESTED), Path(name), texts)
    with tempfile.TemporaryDirectory() as name:
        seconds = time.perf_counter()
        replica, _, branch = write_history(Path(name) / "node", given.count, text=texts.post)
        note(f"{given.count} posts were written in {time.perf_counter() - seconds:.0f} s")
        hub = Hub(replica, threads(), clock_ms)
        _make(replica, hub, given.count)
        _search(hub, branch, texts)
        replica.close()


if __name__ == "__main__":
    main()
