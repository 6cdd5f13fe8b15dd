"""Worker processes answer as the functions do; a dead one costs time, and a batch that kills them is refused."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest

from node.authoring.drafting import Draft
from node.authoring.write_queue import WriteRequest
from node.ingest import reading_workers, worker_process
from node.ingest.publication_parsing import opening_keys
from node.ingest.publication_reading import DecodedCommit, OpeningKeys, Unread, gather_claims, read_batch
from node.ingest.reading_worker import (
    CHECK,
    READY,
    REQUEST_HEADER,
    WorkerReading,
    pack_claims,
    serve,
    unpack_reading,
)
from node.ingest.reading_workers import ReadingWorkers, UnreadableBatch
from node.ingest.worker_process import ASKED_MAX, Worker, start_worker
from node.runtime.blocking import inline, threads
from node.sync.hub import Hub
from protocol.codec import encode
from protocol.crypto.keys import UserSeed
from protocol.crypto.signing import Claim, check_claims, key_pair, sign
from protocol.formats.body import (
    BranchAdd,
    Carried,
    Checkpoint,
    ErasedBody,
    Grant,
    RepoInit,
    UnknownBody,
    UnopenedBody,
)
from protocol.formats.content import Files, Post
from protocol.formats.epochs import EpochInit
from protocol.formats.publication import decode_publication
from protocol.ids import Digest, Signature
from protocol.limits.peers import UNREADABLE_SECONDS
from tests.support.builders import World, count_accepted, timeline, writing_topic
from tests.support.forging import BAD_BODIES, Forger, bare_of, later_version
from tests.support.machine import fail_after
from verifier.verify import Rejected

COUNT = 40


@pytest.fixture(scope="module")
def items(tmp_path_factory: pytest.TempPathFactory) -> tuple[OpeningKeys, list[bytes]]:
    """Publications of a branch, some of which are damaged or of another topic, and what opens them."""
    world = _world(tmp_path_factory.mktemp("world") / "node")
    keys, encoded = opening_keys(world.topic()), world.publications(world.branch)
    other = world.publications(world.replica.root_branch(world.repo))[0]
    world.close()
    encoded[3] = encoded[3].replace(decode_publication(encoded[3]).signature, bytes(64))
    return keys._replace(holds_topic_key=False), [*encoded, encoded[5][:40], other]


def _world(folder: Path) -> World:
    world = World(folder)
    posts = [Draft(Post(f"post {number}")) for number in range(COUNT)]
    world.author.queue.write_group([WriteRequest(world.branch, posts)])
    return world


@pytest.fixture
def workers() -> Iterator[ReadingWorkers]:
    workers = ReadingWorkers(1)
    workers.start_all()
    yield workers
    workers.close()


def _claims(count: int) -> list[Claim]:
    key, secret = key_pair(UserSeed(b"k" * 32))
    digests = [number.to_bytes(32, "big") for number in range(count)]
    claims = [Claim(key, Digest(digest), sign(secret, digest)) for digest in digests]
    return [
        claim if number % 3 else Claim(key, claim.digest, Signature(bytes(64)))
        for number, claim in enumerate(claims)
    ]


def _kill(workers: ReadingWorkers, number: int = signal.SIGKILL) -> int:
    (pid,) = workers.pids()
    os.kill(pid, number)
    return pid


@pytest.mark.slow
@pytest.mark.parametrize("count", [0, 1, 15, 16, 1024])
def test_a_worker_checks_as_the_function_does(workers: ReadingWorkers, count: int) -> None:
    claims = _claims(count)
    assert list(workers.check(claims)) == check_claims(claims)


@pytest.mark.slow
def test_a_worker_reads_as_the_function_does(
    workers: ReadingWorkers, items: tuple[OpeningKeys, list[bytes]]
) -> None:
    expected = read_batch(*items)
    assert expected.dropped == {"bad_publication:bad_shape": 1, "other_topic": 1}
    reading = workers.read(*items)
    assert reading is not None
    assert reading.batch == expected
    assert reading.claims_hold == check_claims(gather_claims(expected))
    assert reading.claims_hold.count(False) == 1, "one topic signature is forged"


def test_what_a_worker_has_read_arrives_as_it_was(tmp_path: Path) -> None:
    """Bodies of the root branch, those that no kind is said of, faults, and commits of a later format."""
    world = _world(tmp_path / "node")
    root = world.replica.root_branch(world.repo)
    forger = Forger(world)
    forged = [forger.write(body, metadata) for body in BAD_BODIES.values() for metadata in (b"", None)]
    world.author.start_epoch(world.repo)
    found = set[type]()
    written = [*world.publications(root), *world.publications(world.branch)]
    written += [*forged, later_version(world), bare_of(forged[0])]
    for topic in world.replica.topics.values():
        encoded = [item for item in written if decode_publication(item).topic == topic.topic]
        for with_bare in (False, True):
            batch = read_batch(opening_keys(topic), encoded, with_bare=with_bare)
            holds = [number % 2 == 0 for number in range(len(gather_claims(batch)))]
            reading = WorkerReading(batch, holds, 0.5)
            assert unpack_reading(encode(reading)) == reading
            found.update(type(one.found) for one in batch.candidates)
            found.update(
                type(one.found.body) for one in batch.candidates if isinstance(one.found, DecodedCommit)
            )
    assert found >= {
        DecodedCommit,
        Unread,
        Rejected,
        RepoInit,
        EpochInit,
        BranchAdd,
        Grant,
        Checkpoint,
        Files,
        Carried,
    }
    assert found >= {UnknownBody, ErasedBody, UnopenedBody}
    assert Post not in found, "no verdict rests on it, so it is not opened"
    world.close()


def test_small_batches_and_those_without_workers_are_left_to_the_caller(
    items: tuple[OpeningKeys, list[bytes]],
) -> None:
    keys, encoded = items
    none, claims = ReadingWorkers(0), _claims(100)
    assert none.read(keys, encoded, wait_while=lambda: True) is None
    assert list(none.check(claims)) == check_claims(claims)
    one = ReadingWorkers(1)
    assert one.read(keys, encoded[: reading_workers.WORTH_A_TRIP - 1]) is None
    assert one.pids() == [], "no worker is started before there is work for it"
    one.close()


@pytest.mark.slow
def test_workers_start_when_there_is_work_and_serve_once_they_are_ready(
    items: tuple[OpeningKeys, list[bytes]],
) -> None:
    workers = ReadingWorkers(2)
    assert workers.read(*items) is None, "it does not wait for the start"
    assert len(workers.pids()) == 1
    workers.start_all()
    assert len(workers.pids()) == 2
    assert workers.read(*items) is not None
    workers.close()
    assert workers.read(*items) is None
    assert workers.pids() == []


@pytest.mark.slow
def test_a_worker_that_ended_for_want_of_work_is_replaced_without_an_error(
    workers: ReadingWorkers, items: tuple[OpeningKeys, list[bytes]]
) -> None:
    (worker,) = workers._ready
    worker._requests.close()  # as if the time was over
    worker._process.wait()
    assert workers.read(*items) is None
    workers.start_all()
    assert workers.read(*items) is not None
    assert not workers._died


def test_a_worker_ends_when_nothing_is_asked_for() -> None:
    read, write = os.pipe()
    with os.fdopen(read, "rb", buffering=0) as requests, os.fdopen(write, "wb") as other_end:
        answers = BytesIO()
        claims = pack_claims(_claims(3))
        other_end.write((REQUEST_HEADER.pack(CHECK, len(claims)) + claims) * 2)
        other_end.flush()
        serve(requests, answers, idle_seconds=0)
        assert answers.getvalue() == READY + bytes([0, 1, 1]) * 2, "the second came before the first was read"


@pytest.mark.slow
def test_a_worker_that_dies_is_replaced(workers: ReadingWorkers) -> None:
    claims = _claims(100)
    first = _kill(workers)
    assert list(workers.check(claims)) == check_claims(claims)
    workers.start_all()
    (second,) = workers.pids()
    assert second != first
    assert list(workers.check(claims)) == check_claims(claims)
    assert workers.pids() == [second]


DEADLY = "import sys; sys.stdout.write('+'); sys.stdout.flush(); sys.stdin.buffer.read(1)"


def _start_deadly() -> Worker:
    """Make a worker that says that it is ready, and dies of the first request."""
    return _start_with(DEADLY)


def _start_with(program: str) -> Worker:
    command = [sys.executable, "-S", "-c", program]
    return Worker(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE))


@pytest.mark.slow
def test_a_batch_that_a_worker_died_of_is_read_by_another(
    items: tuple[OpeningKeys, list[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    started = iter([_start_deadly, start_worker])
    monkeypatch.setattr(reading_workers, "start_worker", lambda: next(started)())
    workers = ReadingWorkers(1)
    workers.start_all()
    reading = workers.read(*items)
    assert reading is not None
    assert reading.batch == read_batch(*items)
    workers.close()


@pytest.mark.slow
def test_a_batch_is_refused_where_no_other_worker_gets_ready(
    items: tuple[OpeningKeys, list[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = iter([DEADLY, "import sys; sys.stdin.buffer.read()"])
    monkeypatch.setattr(reading_workers, "start_worker", lambda: _start_with(next(programs)))
    workers = ReadingWorkers(1)
    workers.start_all()
    monkeypatch.setattr(reading_workers, "ANSWER_SECONDS", 0.05)
    with pytest.raises(UnreadableBatch, match="no other has started in time"):
        workers.read(*items)
    workers.close()


@pytest.mark.slow
async def test_a_batch_that_kills_two_workers_is_refused_with_a_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(reading_workers, "start_worker", _start_deadly)
    world, workers = _world(tmp_path / "node"), ReadingWorkers(1)
    encoded = world.publications(world.branch)
    workers.start_all()
    with pytest.raises(UnreadableBatch, match="two workers died"):
        workers.read(opening_keys(world.topic()), encoded)
    workers.start_all()
    hub = Hub(world.replica, inline(), lambda: 0, workers)
    ingested = await hub.intake.ingest(world.topic(), encoded, Done(), None)
    assert ingested.dropped == {"unreadable_batch": len(encoded)}
    assert hub.account.used >= UNREADABLE_SECONDS
    workers.close()
    world.close()


class Done:
    """Work before, of which nothing is left to wait for."""

    async def wait(self) -> None:
        """Return at once."""


def test_workers_that_die_one_after_the_other_are_started_again_now_and_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started, now = list[int](), [0.0]

    def start() -> Worker:
        process = subprocess.Popen(["false"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        started.append(process.wait())
        return Worker(process)

    monkeypatch.setattr(reading_workers, "start_worker", start)
    workers, claims = ReadingWorkers(1, clock=lambda: now[0]), _claims(16)
    for _ in range(3 * reading_workers._RESTARTS_MAX):
        assert list(workers.check(claims)) == check_claims(claims)
    assert len(started) == reading_workers._RESTARTS_MAX
    now[0] += reading_workers._RESTARTS_SECONDS
    workers.check(claims)
    assert len(started) == 1 + reading_workers._RESTARTS_MAX
    workers.close()


@pytest.mark.slow
def test_a_worker_that_does_not_answer_is_given_up(
    workers: ReadingWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    claims = _claims(2000)  # more than a pipe holds
    monkeypatch.setattr(worker_process, "ANSWER_SECONDS", 0.01)
    _kill(workers, signal.SIGSTOP)
    assert list(workers.check(claims)) == check_claims(claims)


@pytest.mark.slow
def test_nobody_waits_for_a_worker_that_died_under_another(workers: ReadingWorkers) -> None:
    claims = _claims(100)
    pid = _kill(workers, signal.SIGSTOP)
    answers: list[list[bool]] = []
    threads = [threading.Thread(target=lambda: answers.append(list(workers.check(claims)))) for _ in range(3)]
    for thread in threads:
        thread.start()
    os.kill(pid, signal.SIGKILL)
    for thread in threads:
        thread.join(10)
    assert answers == [check_claims(claims)] * 3


def test_who_waits_for_a_busy_worker_reads_itself_once_nobody_stores(
    workers: ReadingWorkers, items: tuple[OpeningKeys, list[bytes]]
) -> None:
    busy = [workers._take(lambda: False) for _ in range(ASKED_MAX)]
    looks, stores, found = threading.Semaphore(0), [True], list[object]()

    def is_storing() -> bool:
        looks.release()
        return stores[0]

    waiting = threading.Thread(target=lambda: found.append(workers.read(*items, wait_while=is_storing)))
    waiting.start()
    assert looks.acquire(timeout=10)
    stores[0] = False
    workers.look_again()
    waiting.join(10)
    assert found == [None]
    for one in busy:
        assert one is not None
        workers._give_back(one)


@pytest.mark.slow
async def test_a_batch_is_read_in_pieces_and_kept_in_its_order(
    workers: ReadingWorkers, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("node.sync.intake._PIECE_COUNT", reading_workers.WORTH_A_TRIP)
    world = _world(tmp_path / "node")
    replica, branch = world.copy()
    encoded = world.publications(world.branch)
    hub = Hub(replica, threads(), lambda: 0, workers)
    assert len(encoded) > 2 * reading_workers.WORTH_A_TRIP
    with fail_after(30):
        ingested = await hub.intake.ingest(writing_topic(replica, branch), encoded, Done(), None)
    assert count_accepted(ingested) == len(encoded) - 1
    assert (ingested.waited, ingested.already) == (set(), 1), (
        "causes came before effects, and the root was here"
    )
    assert timeline(replica, branch) == timeline(world.replica, world.branch)
    world.close()


def test_keys_show_no_secret(items: tuple[OpeningKeys, list[bytes]]) -> None:
    keys, _ = items
    assert all(one.hex() in repr(keys.openings) for one in keys.openings[0].epoch_ids)
    for opening in keys.openings:
        for secret in (opening.read_key, opening.convergence_secret, opening.key):
            for shown in (repr(keys), repr(opening)):
                assert secret is not None
                assert secret.hex() not in shown
                assert repr(secret) not in shown
