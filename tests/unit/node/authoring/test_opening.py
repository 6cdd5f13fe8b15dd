"""Long batches of own commits are opened by worker processes, in parts, and pass the same checks as without."""

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace
from sqlalchemy import Connection

from node.authoring import opening as opening_module
from node.authoring.author import Author
from node.authoring.drafting import Draft
from node.authoring.opening import PART_COUNT, OwnBatchReader
from node.authoring.write_queue import WriteRequest
from node.ingest.publication_reading import OpeningKeys, gather_claims, read_batch
from node.ingest.reading_worker import WorkerReading
from node.ingest.reading_workers import ReadingWorkers, UnreadableBatch
from node.runtime.errors import ServiceError
from protocol.crypto.keys import UserSeed
from protocol.crypto.signing import check_claims
from protocol.formats.content import Post
from protocol.limits.formats import TEXT_SIZE_MAX
from storage.commits.commits import count_commits
from tests.support.builders import NOW_MS, World

_MORE = 20
"""Commits of a last part that are still worth a trip to a worker."""


class _Workers(ReadingWorkers):
    """Reads in the thread that asks, and notes how many publications came each time, and how many threads asked."""

    def __init__(self, count: int = 1) -> None:
        super().__init__(count)
        self.read_counts: list[int] = []
        self.gate = threading.Semaphore(1000)
        """What each reading waits for."""
        self.threads = set[threading.Thread]()
        self.answer: Callable[[WorkerReading], WorkerReading | None] = lambda reading: reading

    def read(self, keys: OpeningKeys, items: Sequence[bytes], **_how: object) -> WorkerReading | None:
        """Read as a worker does."""
        self.threads.add(threading.current_thread())
        self.gate.acquire()
        self.read_counts.append(len(items))
        batch = read_batch(keys, items)
        return self.answer(WorkerReading(batch, list(check_claims(gather_claims(batch))), 0.0))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


@pytest.fixture
def workers(world: World) -> _Workers:
    """Workers of the world's author."""
    made = _Workers()
    world.author = Author(world.replica, UserSeed(b"w" * 32), lambda: NOW_MS, made)
    return made


def _posts(count: int) -> list[Draft]:
    return [Draft(Post(f"post {number}")) for number in range(count)]


def _encoded(world: World, count: int) -> list[bytes]:
    written, _ = world.author.write_many(world.branch, _posts(count))
    return [one.encoded for one in written]


def _count(world: World) -> int:
    with world.replica.database.read() as connection:
        return count_commits(connection, world.branch.num)


def test_a_long_batch_is_opened_in_parts(world: World, workers: _Workers) -> None:
    count = 2 * PART_COUNT + _MORE
    written, _ = world.author.write_many(world.branch, _posts(count))
    assert sorted(workers.read_counts) == [_MORE, PART_COUNT, PART_COUNT]
    assert [one.rank for one in written] == list(range(1, count + 1))
    assert _count(world) == count + 1


def test_a_few_commits_are_opened_where_they_were_made(world: World, workers: _Workers) -> None:
    world.author.write(world.branch, Post("one"))
    world.author.write_many(world.branch, _posts(3))
    assert workers.read_counts == []


def test_small_requests_of_a_group_are_opened_together_and_in_order(world: World, workers: _Workers) -> None:
    long = WriteRequest(world.branch, _posts(PART_COUNT + 1))
    small = [WriteRequest(world.branch, [Draft(Post(f"small {number}"))]) for number in range(_MORE)]
    outcomes, _ = world.author.write_group([*small, long, *small])
    assert sorted(workers.read_counts) == [_MORE, _MORE + 1, PART_COUNT]
    ranks = [one.rank for outcome in outcomes if isinstance(outcome, list) for one in outcome]
    assert ranks == list(range(1, 2 * _MORE + PART_COUNT + 2)), "each acks the one before it"


def test_what_no_worker_takes_is_opened_here(world: World, workers: _Workers) -> None:
    workers.answer = lambda _: None
    world.author.write_many(world.branch, _posts(PART_COUNT + _MORE))
    assert _count(world) == PART_COUNT + _MORE + 1


def test_a_signature_that_a_worker_finds_wrong_refuses_the_batch(world: World, workers: _Workers) -> None:
    def deny(reading: WorkerReading) -> WorkerReading:
        return replace(reading, claims_hold=[*reading.claims_hold[:-1], False])

    workers.answer = deny
    with pytest.raises(ServiceError, match="not a legal one"):
        world.author.write_many(world.branch, _posts(PART_COUNT + _MORE))
    assert _count(world) == 1


def test_a_batch_that_workers_die_of_is_refused_alone(world: World, workers: _Workers) -> None:
    def die(reading: WorkerReading) -> WorkerReading:
        if len(reading.claims_hold) == PART_COUNT:
            raise UnreadableBatch("two workers died")
        return reading

    workers.answer = die
    requests = [WriteRequest(world.branch, _posts(PART_COUNT)), WriteRequest(world.branch, _posts(2))]
    (first, second), _ = world.author.write_group(requests)
    assert isinstance(first, ServiceError)
    assert first.code == "internal"
    assert isinstance(second, list)
    assert _count(world) == 3


def test_a_request_that_cannot_be_encoded_leaves_nothing_of_its_parts(
    world: World, workers: _Workers
) -> None:
    workers.gate = threading.Semaphore(0)

    def plan(_connection: Connection) -> list[Draft]:
        return [*_posts(3 * PART_COUNT), Draft(Post("long" * TEXT_SIZE_MAX))]

    with pytest.raises(ServiceError):
        world.author.write_many(world.branch, plan)
    assert _count(world) == 1
    workers.gate.release(3)
    for thread in threading.enumerate():
        if thread.name == "own batch":
            thread.join()
    assert len(workers.read_counts) <= 1, "nobody waits for the others"
    world.author.write_many(world.branch, _posts(1))
    assert _count(world) == 2


def test_a_request_with_an_illegal_commit_leaves_nothing_of_its_parts(
    world: World, workers: _Workers
) -> None:
    def plan(_connection: Connection) -> list[Draft]:
        return [*_posts(PART_COUNT), Draft(Post("acks nothing that is here"), acks=())]

    with pytest.raises(ServiceError):
        world.author.write_many(world.branch, plan)
    assert _count(world) == 1
    world.author.write_many(world.branch, _posts(1))
    assert _count(world) == 2


@pytest.mark.parametrize("count", [1, 3])
def test_no_more_threads_ask_than_there_are_workers(world: World, count: int) -> None:
    workers = _Workers(count)
    workers.gate = threading.Semaphore(0)
    reader = OwnBatchReader(workers)
    items = _encoded(world, _MORE)
    openings = [reader.begin(world.topic(), items) for _ in range(20)]
    workers.gate.release(20)
    assert {len(opening.wait().opened) for opening in openings} == {_MORE}
    assert len(workers.read_counts) == 20
    assert len(workers.threads) <= count


def test_parts_that_are_dropped_are_not_read(world: World) -> None:
    workers = _Workers()
    workers.gate = threading.Semaphore(0)
    reader = OwnBatchReader(workers)
    items = _encoded(world, _MORE)
    first, *dropped, last = [reader.begin(world.topic(), items) for _ in range(5)]
    for opening in dropped:
        opening.drop()
    workers.gate.release(2)
    for opening in (first, last):
        opening.wait()
    assert len(workers.read_counts) == 2


def test_parts_behind_one_that_no_worker_takes_do_not_wait_as_long_again(world: World) -> None:
    workers = _Workers()
    workers.answer = lambda _: None
    workers.gate = threading.Semaphore(0)
    reader = OwnBatchReader(workers)
    items = _encoded(world, _MORE)
    openings = [reader.begin(world.topic(), items) for _ in range(5)]
    workers.gate.release()
    assert {len(opening.wait().opened) for opening in openings} == {_MORE}
    assert len(workers.read_counts) == 1


def test_nobody_waits_long_for_a_worker_that_hangs(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    # A part is waited for while the store is being written: others could write nothing for half a minute.
    monkeypatch.setattr(opening_module, "_WAIT_SECONDS", 0.01)
    workers = _Workers()
    workers.gate = threading.Semaphore(0)
    reader = OwnBatchReader(workers)
    items = _encoded(world, _MORE)
    openings = [reader.begin(world.topic(), items) for _ in range(5)]
    try:
        assert {len(opening.wait().opened) for opening in openings} == {_MORE}
        assert workers.read_counts == []
    finally:
        workers.gate.release(5)


def test_a_system_without_threads_opens_parts_where_they_were_made(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    items = _encoded(world, _MORE)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    workers = _Workers()
    reader = OwnBatchReader(workers)
    openings = [reader.begin(world.topic(), items) for _ in range(3)]
    assert {len(opening.wait().opened) for opening in openings} == {_MORE}
    assert workers.read_counts == []
