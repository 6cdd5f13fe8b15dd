"""Costs of pending commits: each is opened once when it comes and once when it is judged, in short slices."""

import typing
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count, permutations

import pytest
from sqlalchemy import func, select

from node.ingest import acceptance, acceptance_transaction, publication_parsing
from node.ingest.acceptance import accept_batch, accept_own, release_more, retry_kept
from node.ingest.ingest_result import IngestResult
from node.ingest.publication_parsing import open_batch, open_kept_back
from node.ingest.release import Budget
from node.ingest.replica import Replica
from node.runtime.scheduling import WorkAccount, WorkBill
from node.sync import intake
from node.sync.conversation import Conversation
from node.sync.hub import Hub
from node.sync.intake import PendingSenders
from protocol.crypto.keys import UserSeed
from protocol.formats.body import encode_body
from protocol.formats.content import Post
from protocol.formats.publication import (
    decode_publication,
    encode_bare,
    encode_publication,
)
from protocol.ids import CommitId, Signature, TopicKey
from protocol.limits.peers import SLICE_SECONDS
from storage.check.check_derived import find_wrong_pending
from storage.commits import pending as waiting_module
from storage.commits.pending import UNREAD, count_pending, count_rejections, find_unread, load_unread
from storage.engine.errors import StorageError
from storage.repos.epochs import Topic
from storage.schema.schema import pending, pending_causes, pending_publications
from tests.support.batches import accept_whole
from tests.support.blocking import inline
from tests.support.builders import (
    NOW_MS,
    STORE_KEY,
    World,
    count_accepted,
    give,
    timeline,
    writing_topic,
)
from tests.support.forging import Forger, bare_of, later_version
from tests.support.ids import as_commit_id

BODY = encode_body(Post("words"))


def _state(replica: Replica) -> tuple[int, int, int]:
    """Return how many commits wait, how many publications are kept of them, and how many causes."""
    with replica.database.read() as connection:
        assert list(find_wrong_pending(connection)) == []
        counts = [
            connection.execute(select(func.count()).select_from(table)).scalar_one()
            for table in (pending, pending_publications, pending_causes)
        ]
    return counts[0], counts[1], counts[2]


def _id(item: bytes) -> CommitId:
    return decode_publication(item).commit_id


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Ids of the waiting commits that were opened again, as they are; none of their signatures is checked."""
    ids: list[bytes] = []

    def count(topic: Topic, items: list[bytes]) -> object:
        ids.extend(map(_id, items))
        with monkeypatch.context() as patched:
            patched.setattr(publication_parsing, "check_claims", None)
            return open_kept_back(topic, items)

    monkeypatch.setattr(acceptance_transaction, "open_kept_back", count)
    return ids


def test_what_waits_is_opened_again_when_its_last_cause_has_come_and_only_then(
    world: World, opened: list[bytes]
) -> None:
    forgers = [Forger(world, UserSeed(bytes([number]) * 32)) for number in range(1, 6)]
    causes = world.write("a, b, c")
    acks = [world.commits[name].commit_id for name in "abc"]
    items = [forger.write(BODY, acks=acks) for forger in forgers]
    replica, _ = world.copy()
    assert give(replica, items).waiting == 5
    assert _state(replica) == (5, 5, 15)
    for number, cause in enumerate(causes[:2]):
        give(replica, [cause])
        assert opened == []
        assert _state(replica) == (5, 5, 10 - 5 * number)
    assert count_accepted(give(replica, causes[2:])) == 6
    assert sorted(opened) == sorted(map(_id, items))
    assert _state(replica) == (0, 0, 0)


def _small(
    monkeypatch: pytest.MonkeyPatch, *, commits: int = 64, size: int = 1 << 20, causes: int = 1000
) -> None:
    monkeypatch.setattr(acceptance, "Budget", lambda: Budget(commits, size, causes))


@pytest.mark.slow
@pytest.mark.parametrize("budget", [{"commits": 3}, {"causes": 2}, {"size": 1}])
@pytest.mark.parametrize("is_chain", [True, False])
def test_what_is_released_is_judged_in_short_transactions_and_a_crash_between_them_loses_none(
    world: World, monkeypatch: pytest.MonkeyPatch, opened: list[bytes], budget: dict[str, int], is_chain: bool
) -> None:
    _small(monkeypatch, **budget)
    if is_chain:
        items = world.write("a, a <- b, b <- c, c <- d, d <- e, e <- f, f <- g, g <- h")
    else:
        forgers = [Forger(world, UserSeed(bytes([number]) * 32)) for number in range(1, 8)]
        items = world.write("a")
        items += [forger.write(BODY, acks=[_id(items[0])]) for forger in forgers]
    replica, branch = world.copy()
    give(replica, items[:0:-1])
    topic = writing_topic(replica, branch)
    ingested = accept_batch(replica, topic, open_batch(topic, items[:1]), NOW_MS)
    assert ingested.is_unfinished
    done = [count_accepted(ingested)]
    while ingested.is_unfinished and len(done) < 3:
        ingested = release_more(replica, NOW_MS)
        done.append(count_accepted(ingested))
    assert all(count <= 4 for count in done), "the first transaction has what came, too"
    replica.close()
    again = Replica(replica.database.folder, STORE_KEY)
    try:
        retry_kept(again, NOW_MS)
        assert _state(again) == (0, 0, 0)
        assert len(timeline(again, branch)) == 9
    finally:
        again.close()
    assert sorted(opened) == sorted(map(_id, items[1:])), "each once"


async def test_a_release_that_fails_is_told_of_and_taken_up_by_the_next(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    forger = Forger(world)
    items = world.write("a, a <- b, b <- c, c <- d")
    replica, branch = world.copy()
    hub, topic = Hub(replica, inline(), lambda: NOW_MS), writing_topic(replica, branch)
    give(replica, items[:0:-1])
    _small(monkeypatch, commits=1)

    def fail(*_arguments: object, **_options: object) -> IngestResult:
        raise StorageError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(intake, "release_more", fail)
        assert count_accepted(await hub.intake.ingest(topic, items[:1], _Now(), None)) == 2
    assert count_accepted(await hub.intake.ingest(topic, [forger.write(BODY)], _Now(), None)) == 3
    assert _state(replica) == (0, 0, 0)


async def test_each_slice_of_a_release_takes_its_turn_and_is_paid_for(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = world.write("a, a <- b, b <- c, c <- d, d <- e, f")
    replica, branch = world.copy()
    give(replica, items[4:0:-1])
    _small(monkeypatch, commits=1)
    bill, held = WorkBill(WorkAccount(lambda: 0.0)), list[WorkBill]()
    ticks = count()
    hub = Hub(replica, inline(), lambda: NOW_MS, cpu_clock=lambda: next(ticks) * SLICE_SECONDS)

    @asynccontextmanager
    async def hold(one: WorkBill, _count: int = 1) -> AsyncIterator[None]:
        held.append(one)
        yield

    monkeypatch.setattr(hub.intake._storing, "held", hold)
    ingested = await hub.intake.ingest(
        writing_topic(replica, branch), [items[0], items[5]], _Now(), None, bill
    )
    assert count_accepted(ingested) == 6
    assert _state(replica) == (0, 0, 0)
    assert (replica.unreleased, replica.has_ready) == ({}, False)
    assert len(held) >= 5
    assert set(map(id, held)) == {id(bill)}
    assert bill.total >= len(held) * SLICE_SECONDS


def test_what_was_left_ready_is_not_forgotten_by_a_later_slice(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    forgers = [Forger(world, UserSeed(bytes([number]) * 32)) for number in range(1, 5)]
    items = world.write("a")
    waiting = [forger.write(BODY, acks=[_id(items[0])]) for forger in forgers]
    other = Forger(world, UserSeed(b"o" * 32)).write(BODY)
    replica, branch = world.copy()
    give(replica, waiting)
    _small(monkeypatch, commits=1)
    topic = writing_topic(replica, branch)
    accept_batch(replica, topic, open_batch(topic, items), NOW_MS)
    ingested = accept_batch(replica, topic, open_batch(topic, [other]), NOW_MS)
    assert ingested.is_unfinished
    own = accept_own(replica, lambda _: [], NOW_MS)
    assert own.is_unfinished, "a user's write does not wait for what peers have left"
    assert not accept_whole(replica, topic, open_batch(topic, []), NOW_MS).is_unfinished
    assert _state(replica) == (0, 0, 0)


def test_a_chain_is_released_in_one_round_of_verdicts(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    items = world.write("a, a <- b, b <- c, c <- d, d <- e")
    replica, _ = world.copy()
    give(replica, items[:0:-1])
    rounds: list[int] = []

    def count(topic: Topic, kept: list[bytes]) -> object:
        rounds.append(len(kept))
        return open_kept_back(topic, kept)

    monkeypatch.setattr(acceptance_transaction, "open_kept_back", count)
    give(replica, items[:1])
    assert rounds == [4]


def test_what_follows_a_rejected_commit_is_rejected_at_once_whatever_else_it_lacks(world: World) -> None:
    forger = Forger(world)
    (absent,) = world.write("a")
    bad = Forger(world, UserSeed(b"g" * 32)).write(b"\xc1", metadata=b"")
    after = forger.write(BODY, acks=[_id(bad), _id(absent)])
    later = forger.write(BODY, acks=[_id(after), _id(absent)])
    replica, _ = world.copy()
    assert give(replica, [later, after]).waiting == 2
    assert [one.code for one in give(replica, [bad]).rejected] == [
        "bad_body",
        "rejected_cause",
        "rejected_cause",
    ]
    assert _state(replica) == (0, 0, 0)


@pytest.mark.parametrize("order", list(permutations(("cause", "bad", "after"))), ids="-".join)
def test_what_lacks_a_cause_and_follows_a_rejected_one_is_rejected_in_any_order(
    world: World, order: tuple[str, ...]
) -> None:
    first, cause, absent = world.write("a, a <- b, c")
    bad = Forger(world, UserSeed(b"g" * 32)).write(BODY, acks=[_id(first), _id(cause)])  # one acks the other
    after = Forger(world).write(BODY, acks=[_id(bad), _id(absent)])
    items = {"cause": cause, "bad": bad, "after": after}
    replica, _ = world.copy()
    give(replica, [first])
    codes = [one.code for name in order for one in give(replica, [items[name]]).rejected]
    assert codes == ["implied_ack", "rejected_cause"]
    assert _state(replica) == (0, 0, 0)


def test_a_crash_after_a_rejection_leaves_nothing_waiting_for_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = Forger(world).write(b"\xc1", metadata=b"")
    after = Forger(world, UserSeed(b"g" * 32)).write(BODY, acks=[_id(bad)])
    replica, branch = world.copy()
    give(replica, [after])
    _small(monkeypatch, causes=0)
    topic = writing_topic(replica, branch)
    assert accept_batch(replica, topic, open_batch(topic, [bad]), NOW_MS).is_unfinished
    monkeypatch.undo()
    replica.unreleased = {}
    assert [one.code for one in retry_kept(replica, NOW_MS).rejected] == ["rejected_cause"]
    assert _state(replica) == (0, 0, 0)


def test_causes_whose_keys_are_equal_wake_too_early_and_harm_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Two ids that begin alike can be made; what waits for either is judged by whole ids.
    for module in (
        "node.ingest.acceptance_transaction",
        "storage.commits.pending_release",
        "storage.commits.pending",
    ):
        monkeypatch.setattr(f"{module}.id_key", lambda _raw: 7)
    monkeypatch.setattr("node.ingest.acceptance_transaction.id_keys", lambda ids: (7,) * len(ids))
    items = world.write("a, b, a b <- c")
    replica, branch = world.copy()
    assert give(replica, items[2:]).waiting == 1
    assert count_accepted(give(replica, items[:1])) == 1
    assert count_accepted(give(replica, items[1:2])) == 2
    assert timeline(replica, branch) == timeline(world.replica, world.branch)


_ROOMS: dict[str, Callable[[bytes], int]] = {
    "PENDING_COUNT_MAX": lambda _kept: 1,
    "PENDING_SIZE_MAX": len,
    "PENDING_CAUSE_COUNT_MAX": lambda _kept: 2,
}


@pytest.mark.parametrize("name", _ROOMS)
def test_one_author_fills_half_of_a_topics_room_and_all_its_authors_the_whole(
    world: World, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    forgers = [Forger(world, UserSeed(bytes([number]) * 32)) for number in range(1, 4)]
    causes = world.write("a, b")
    acks = [world.commits[one].commit_id for one in "ab"]
    first, second = [forgers[0].write(BODY, acks=acks) for _ in range(2)]
    # Their feeds begin here as far as others can tell: a third cause would be what they follow.
    items = [first, *(forger.write(BODY, acks=acks) for forger in forgers[1:])]
    monkeypatch.setattr(waiting_module, name, 2 * _ROOMS[name](first))
    replica, branch = world.copy()
    ingested = give(replica, [first, second])
    assert (ingested.waiting, ingested.dropped) == (1, {"pending_full": 1}), "one over an author's"
    ingested = give(replica, items[1:])
    assert (ingested.waiting, ingested.dropped) == (1, {"pending_full": 1}), "one over the topic's"
    assert _state(replica)[0] == 2
    give(replica, causes)
    for item in [second, *items]:  # what was dropped comes again when topics are compared
        give(replica, [item])
    assert len(timeline(replica, branch)) == 7


def _with_bad_topic_signature(item: bytes) -> bytes:
    one = decode_publication(item)
    blocks = tuple(block.encoded for block in one.blocks)
    if one.body_id is not None:
        return encode_bare(one.topic, one.hidden_key, blocks[0], one.body_id, Signature(bytes(63) + b"\x01"))
    return encode_publication(one.topic, one.hidden_key, blocks, Signature(bytes(63) + b"\x01"))


def _kept(replica: Replica) -> tuple[int, int, int]:
    with replica.database.read() as connection:
        return (
            count_pending(connection),
            count_pending(connection, reason=UNREAD),
            sum(count_rejections(connection, num) for num in replica.branches),
        )


@pytest.mark.parametrize(
    "kind, expected",
    [
        ("pending", (1, 0, 0)),
        ("bare_pending", (1, 0, 0)),
        ("unread", (0, 1, 0)),
        ("refused_by_a_rule", (0, 0, 1)),
        ("not_its_authors", (0, 0, 1)),
        ("bad_body", (0, 0, 1)),
        ("accepted", (0, 0, 0)),
    ],
)
@pytest.mark.parametrize("is_writer", [True, False])
def test_what_is_kept_without_being_accepted_was_signed_by_the_topics_key(
    world: World, kind: str, expected: tuple[int, int, int], is_writer: bool
) -> None:
    """Else who can only read would fill the rooms of writers' nodes, and these sign what they send on."""
    forger = Forger(world)
    stranger = Forger(world, UserSeed(b"s" * 32))
    if kind == "refused_by_a_rule":  # nobody has seen its grant
        stranger.place = (world.repo.init_id,)
    waits = world.write("a, a <- b")[1]
    make: dict[str, Callable[[], bytes]] = {
        "pending": lambda: waits,
        "bare_pending": lambda: bare_of(waits),
        "unread": lambda: later_version(world),
        "refused_by_a_rule": lambda: stranger.write(BODY),
        "not_its_authors": lambda: _signed_by_nobody(world),
        "bad_body": lambda: forger.write(b"\xc1", metadata=b""),
        "accepted": lambda: forger.write(BODY),
    }
    item = make[kind]()
    replica, _ = world.copy(is_writer=is_writer)
    ingested = give(replica, [_with_bad_topic_signature(item)])
    if kind == "accepted" and is_writer:
        assert ingested.accepted
    else:
        assert ingested.dropped == {"bad_topic_signature": 1}
        assert not ingested.accepted
    assert _kept(replica) == (0, 0, 0)
    give(replica, [item])
    assert _kept(replica) == expected


def _signed_by_nobody(world: World) -> bytes:
    forger = Forger(world, UserSeed(b"n" * 32))
    forger.secret = Forger(world, UserSeed(b"m" * 32)).secret
    return forger.write(BODY)


def test_an_unread_commit_is_passed_on_under_the_signature_that_was_checked(world: World) -> None:
    item = later_version(world)
    replica, branch = world.copy()
    give(replica, [item])
    with replica.database.read() as connection:
        assert load_unread(connection, find_unread(connection, writing_topic(replica, branch).num), 1) == [
            item
        ]


def test_what_is_missing_is_asked_for_on_all_topics_that_may_have_it(world: World) -> None:
    """Commits of the epoch of what waits, and of those that it follows, may stand on either of an epoch's topics."""
    replica, branch = world.copy()
    forger = Forger(world)  # whose grant the copy has not got
    (absent,) = world.write("a")
    ingested = give(replica, [forger.write(BODY, acks=[_id(absent)])])
    epoch = replica.writing_epoch(replica.repos[branch.repo_num])
    assert ingested.wanted.keys() == {epoch.topic, epoch.writers_topic}
    assert _wanted(ingested) == [_id(absent), forger.grant]


def _wanted(ingested: IngestResult) -> list[CommitId]:
    """Return what is asked for, on each topic the same."""
    (ids,) = {tuple(ids) for ids in ingested.wanted.values()}
    return list(ids)


def test_what_waits_itself_is_not_asked_for(world: World) -> None:
    items = world.write("a, a <- b, b <- c")
    replica, _ = world.copy()
    assert _wanted(give(replica, items[2:])) == [_id(items[1])]
    assert _wanted(give(replica, items[1:])) == [_id(items[0])]


class _Ear(Conversation):
    """Listener that notes its calls."""

    def __init__(self) -> None:
        self.told: list[int] = []
        self.released = 0

    def commits_accepted(self, _topic: TopicKey, nums: tuple[int, ...]) -> None:
        self.told += nums

    def commits_released(self, _topic: TopicKey, count: int) -> None:
        self.released += count

    def topics_changed(self) -> None:
        pass

    def missed(self) -> None:
        raise AssertionError("it never fails")


class _Now:
    async def wait(self) -> None:
        pass


async def test_a_commit_that_waited_is_not_sent_back_to_who_sent_it(world: World) -> None:
    first, second, third = world.write("a, a <- b, b <- c")
    replica, branch = world.copy()

    hub = Hub(replica, inline(), lambda: NOW_MS)
    peers = [_Ear(), _Ear(), _Ear()]
    for peer in peers:
        hub.add(peer)
    for item, peer in ((third, peers[0]), (second, peers[1]), (third, peers[1]), (first, peers[2])):
        await hub.intake.ingest(writing_topic(replica, branch), [item], _Now(), peer)
    with replica.database.read() as connection:
        assert count_pending(connection) == 0
    told = [len(peer.told) for peer in peers]
    assert told == [2, 1, 2], "a and b; a; b and c"
    assert [peer.released for peer in peers] == [1, 2, 0], "c; b and c"


async def test_who_left_while_its_commit_was_stored_is_not_remembered(world: World) -> None:
    # It was forgotten before: noted again, it would stay, and with it all that its connection remembers.
    _, second = world.write("a, a <- b")
    replica, branch = world.copy()
    peer = _Ear()
    left = weakref.ref(peer)

    async def run_and_leave(function: Callable[..., object], *args: object) -> object:
        leaving = left()
        assert leaving is not None
        hub.remove(leaving)
        return function(*args)

    hub = Hub(replica, run_and_leave, lambda: NOW_MS)  # type: ignore[arg-type]  # all in this thread
    hub.add(peer)
    assert (await hub.intake.ingest(writing_topic(replica, branch), [second], _Now(), peer)).waited
    del peer
    assert left() is None


def test_senders_are_remembered_within_a_bound_and_while_they_are_there() -> None:
    senders: typing.Any = PendingSenders(count_max=2)
    senders.note([as_commit_id(b"a"), as_commit_id(b"b"), as_commit_id(b"c")], "one")
    assert len(senders) == 2, "the oldest is forgotten"
    senders.note([as_commit_id(b"c")], "two")
    assert senders.pop({1: as_commit_id(b"a"), 3: as_commit_id(b"c")}) == {"one": {3}, "two": {3}}
    senders.forget("one")
    assert len(senders) == 0
