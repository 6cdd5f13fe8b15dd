"""What fails between two steps costs neither of them: writes are told, tasks go on, and no wake-up is lost."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest
import trio
from sqlalchemy import Connection as SqlConnection
from trio.testing import MockClock, wait_all_tasks_blocked

from node.authoring import feed_writer as feed_writer_module
from node.authoring import preparing as preparing_module
from node.authoring.drafting import Draft
from node.authoring.epoch_starts import EpochStarting, make_init
from node.content.compacting import Compacting
from node.content.documents import Documents
from node.content.texts import Texts
from node.ingest.acceptance import accept_own
from node.ingest.ingest_result import IngestResult
from node.ingest.replica import Replica
from node.membership.epoch_duties import EpochDuties
from node.membership.sharing import Sharing
from node.network.network import Network
from node.network.own_addresses import OwnAddresses
from node.network.peers import Peers
from node.runtime.errors import ServiceError
from node.sync import block_repair as mending
from node.sync.block_repair import BlockRepairer
from protocol.formats.body import Grant, Permission, Remove
from protocol.formats.content import Post
from protocol.ids import TopicKey, UserId
from protocol.session.events import CommitsAccepted, Event
from protocol.session.outputs import Output
from storage.commits.damaged import DamagedCount
from storage.engine.database import StorageError
from storage.repos.repos import Repo
from tests.support.builders import count_accepted, writing_topic
from tests.support.machine import fail_after, patience
from tests.support.nodes import Node, connected, open_nodes, share

T = TypeVar("T")


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[list[Node]]:
    with open_nodes(tmp_path, "alice", "bob") as opened:
        yield opened


class _Told:
    """A listener that notes what it is told, and may fail."""

    def __init__(self, *, fails: bool = False) -> None:
        self._fails = fails
        self.topics: list[TopicKey] = []
        self.changes = 0
        self.missed_count = 0

    def commits_accepted(self, topic: TopicKey, nums: tuple[int, ...]) -> None:
        assert nums
        self.topics.append(topic)
        if self._fails:
            raise RuntimeError("a defect")

    def topics_changed(self) -> None:
        self.changes += 1
        if self._fails:
            raise RuntimeError("a defect")

    def missed(self) -> None:
        self.missed_count += 1


def _full(*_args: object, **_options: object) -> None:
    raise StorageError("the disk is full")


def _said(node: Node) -> tuple[int, int]:
    """How many epochs were started, and how often the one that is written in was handed over."""
    with node.replica.membership_lock:
        operations = node.replica.membership(node.repo().repo_id).operations
        return len(operations.epochs), len(operations.hands_of(node.epoch().epoch_id))


def _exclude(alice: Node, bob: Node) -> Repo:
    """Alice's repo, whose next write starts an epoch."""
    repo, _ = alice.create_repo()
    root = alice.replica.root_branch(repo)
    alice.author.write(root, Grant(bob.author.user, Permission.WRITE))
    alice.author.write(root, Remove(bob.author.user, None, ()))
    return repo


# --- epochs ---


def test_an_epoch_that_could_not_be_handed_over_is_handed_over_later(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, bob = nodes
    repo, _ = alice.create_repo()
    alice.author.write(alice.replica.root_branch(repo), Grant(bob.author.user, Permission.WRITE))
    duties = EpochDuties(alice.replica, alice.author)
    with monkeypatch.context() as patch:
        patch.setattr(feed_writer_module, "accept_own", _full)
        with pytest.raises(StorageError):
            duties.perform(repo, 0.0, IngestResult())
    assert _said(alice) == (1, 0)
    stored = IngestResult()
    duties.perform(repo, 0.0, stored)
    assert stored.accepted
    assert _said(alice) == (1, 1)


def test_an_epoch_that_was_started_is_told_of_though_the_write_that_needed_it_failed(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, bob = nodes
    _exclude(alice, bob)
    took: list[Callable[..., IngestResult | None]] = [accept_own, _full]
    with monkeypatch.context() as patch:
        patch.setattr(feed_writer_module, "accept_own", lambda *args, **named: took.pop(0)(*args, **named))
        stored = IngestResult()
        with pytest.raises(StorageError):
            alice.author.write_many(alice.branch(), [Draft(Post("after the exclusion"))], stored=stored)
    assert _said(alice) == (2, 0)
    assert count_accepted(stored) == 1


class _Contended:
    """A lock that says when somebody waits for it."""

    def __init__(self, noticed: threading.Event) -> None:
        self._lock = threading.RLock()
        self._noticed = noticed

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            self._noticed.set()
            self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def test_an_epoch_is_started_once_though_duties_are_looked_after_meanwhile(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, bob = nodes
    repo = _exclude(alice, bob)
    duties = EpochDuties(alice.replica, alice.author)
    assert duties.perform(repo, 0.0, IngestResult()), "it is due, and an admin waits a little"
    met = threading.Event()
    monkeypatch.setattr(alice.author, "lock", contended := _Contended(met))
    monkeypatch.setattr(alice.author.writer, "lock", contended)

    def look() -> None:
        duties.perform(repo, 1000.0, IngestResult())
        met.set()

    looking = threading.Thread(target=look)

    def make(*args: Any) -> EpochStarting:  # noqa: ANN401  # as the real one
        looking.start()
        assert met.wait(patience(10))
        return make_init(*args)

    monkeypatch.setattr(preparing_module, "make_init", make)
    alice.write(alice.branch(), "after the exclusion")
    looking.join(patience(10))
    assert _said(alice) == (2, 0)


@pytest.mark.parametrize("write", ["create_branch", "start_epoch"])
def test_no_snapshot_is_held_while_a_commit_is_stored(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch, write: str
) -> None:
    alice = nodes[0]
    repo, _ = alice.create_repo()
    database = alice.replica.database
    read, held, seen = database.read, list[int](), list[int]()

    @contextmanager
    def counted() -> Iterator[SqlConnection]:
        held.append(1)
        try:
            with read() as connection:
                yield connection
        finally:
            held.pop()

    def watched(*args: Any, **options: Any) -> IngestResult:  # noqa: ANN401  # as the real one
        seen.append(len(held))
        return accept_own(*args, **options)

    monkeypatch.setattr(database, "read", counted)
    monkeypatch.setattr(feed_writer_module, "accept_own", watched)
    if write == "create_branch":
        alice.author.founding.create_branch(repo, "side")
    else:
        alice.author.start_epoch(repo)
    assert seen
    assert not any(seen)


# --- tasks ---


async def test_asking_for_what_was_damaged_goes_on_after_a_storage_failure(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    alice = nodes[0]
    answers: list[Callable[..., DamagedCount | None]] = [_full, lambda _: DamagedCount(0, 0)]
    monkeypatch.setattr(mending, "count_damaged", lambda connection: answers.pop(0)(connection))
    alice.replica.has_damaged = True
    with fail_after(600):
        await BlockRepairer(alice.hub).run()
    assert not alice.replica.has_damaged


async def test_a_join_is_told_of_though_its_link_could_not_be_forgotten(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    alice, bob = nodes
    told = _Told()
    with fail_after(120):
        repo, _ = alice.create_repo()
        await bob.joiner.begin(alice.invite(repo))
        bob.hub.add(told)
        monkeypatch.setattr(bob.replica, "forget_invitation", _full)
        async with connected(bob, alice):
            while alice.replica.permission(repo, bob.author.user) is None:
                await alice.hub.changes.wait(alice.hub.changes.count)
    writers = [topic for topic in told.topics if topic == bob.epoch().writers_topic]
    assert len(writers) == 2  # what alice had sent, and the join


async def test_a_repo_whose_epoch_could_not_be_kept_is_told_of(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, bob = nodes
    told = _Told()
    bob.hub.add(told)
    repo, _ = alice.create_repo()
    monkeypatch.setattr(bob.joiner._keys, "keep", _full)
    with pytest.raises(StorageError):
        await bob.joiner.begin(alice.invite(repo))
    assert bob.replica.by_topic
    assert told.changes == 1


async def test_a_defect_in_what_is_done_for_devices_ends_no_task(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = nodes[0]
    rounds = list[int]()

    def fail() -> None:
        rounds.append(1)
        raise ServiceError("not_permitted", "a surprise")

    monkeypatch.setattr(alice.joiner._devices, "find_unfollowed", fail)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(alice.joiner.run)
        while not rounds:
            await trio.lowlevel.checkpoint()
        await wait_all_tasks_blocked()
        alice.hub.topics_changed()
        while len(rounds) < 2:
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()


async def test_compacting_asks_for_the_right_in_a_thread(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = nodes[0]
    alice.create_repo()
    is_working, run, permission = list[bool](), alice.hub.run_blocking, Replica.permission

    async def watched(work: Callable[..., T], *args: Any) -> T:  # noqa: ANN401  # as the real one
        def noted() -> T:
            is_working.append(True)
            try:
                return work(*args)
            finally:
                is_working.pop()

        return await run(noted)

    def ask(replica: Replica, repo: Repo, user: UserId) -> Permission | None:
        assert is_working, "the membership lock may be held for as long as a transaction"
        return permission(replica, repo, user)

    monkeypatch.setattr(alice.hub, "run_blocking", watched)
    monkeypatch.setattr(Replica, "permission", ask)
    documents = Documents(alice.hub, alice.author, alice.branch)
    texts = Texts(alice.hub, alice.author, alice.branch)
    made = await Compacting(alice.hub, alice.author, documents, texts, alice.branch).compact(
        "main", dry_run=False
    )
    assert made["commits"] == []


# --- being told ---


async def test_a_change_during_a_look_is_not_slept_through(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    bob = nodes[1]
    network = Network(bob.hub, bob.seed, lambda: 0.0)
    sharing = Sharing(
        bob.hub,
        network,
        Peers(bob.hub, network, bob.key),
        bob.author,
        bob.joiner,
        addresses=OwnAddresses("host:7474"),
        clock=lambda: 0.0,
    )
    looks = list[int]()

    def look() -> bool:
        looks.append(1)
        bob.hub.topics_changed()  # by another task, just after the store was read
        return len(looks) > 2

    began = trio.current_time()
    await sharing._until(look)
    assert trio.current_time() == began
    assert bob.hub.changes.count == 3


@pytest.mark.slow
async def test_a_listener_that_fails_silences_no_other_and_learns_that_it_missed_something(
    nodes: list[Node],
) -> None:
    alice = nodes[0]
    bad, good = _Told(fails=True), _Told()
    alice.hub.add(bad)
    alice.hub.add(good)
    _, branch = alice.create_repo()
    before = alice.hub.changes.count
    alice.write(branch, "one")
    assert good.topics[-1] == bad.topics[-1] == writing_topic(alice.replica, branch).topic
    assert bad.missed_count == len(bad.topics) + bad.changes
    assert good.missed_count == 0
    assert alice.hub.changes.count == before + 1


@pytest.mark.slow
async def test_a_connection_that_fails_when_it_is_told_ends(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    alice, bob = nodes
    with fail_after(60):
        await share(alice, bob)
        async with connected(alice, bob) as (ours, _):
            handle = ours.session.handle

            def fail(event: Event) -> list[Output]:
                if isinstance(event, CommitsAccepted):
                    raise RuntimeError("a defect")
                return handle(event)

            monkeypatch.setattr(ours.session, "handle", fail)
            await trio.sleep(1)  # by the mock clock: it has begun
            alice.write(alice.branch(), "one")
            await trio.sleep(1)
            assert ours not in alice.hub.sources
    assert ours.reason == "defect"
