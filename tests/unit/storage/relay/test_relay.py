"""Publications of a relay: each once, within every quota, the longest untouched topic going first."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import insert

from protocol.crypto.keys import BlockKey, ConvergenceSecret, ReadKey, TopicSeed
from protocol.crypto.signing import public_key
from protocol.formats.block import encrypt_block
from protocol.formats.publication import Publication, create_publication
from protocol.ids import ItemId, PeerId, ShortId, TopicKey
from protocol.limits.formats import MARK_SIZE
from protocol.limits.peers import VARIANTS_WANTED_MAX
from storage.engine.database import Database
from storage.relay.quotas import Account, RelayQuotas, Room, Visitor, add_share
from storage.relay.relay import (
    RELAY,
    KeptTopic,
    StoreResult,
    allow_peer,
    deny_peer,
    load_allowed,
    load_kept_publications,
    load_kept_topics,
    open_topics,
    pin_topic,
    store_publications,
    unpin_topic,
)
from storage.schema.relay_schema import relay_account_nodes, relay_accounts
from storage.topics.difference import find_nums, plan_sending, summarise
from storage.topics.topic_sets import TopicSet, find_by_short_ids, load_set
from tests.support.relays import PLENTY
from tests.support.rows import counted_steps

SEEDS = {name: TopicSeed(name.encode() * 32) for name in "abcd"}
TOPICS = {name: public_key(seed) for name, seed in SEEDS.items()}
ALICE, BOB = Visitor(PeerId(b"A" * 32), "10.0.0.0/24"), Visitor(PeerId(b"B" * 32), "10.0.0.0/24")
FRIEND = Visitor(PeerId(b"F" * 32), is_known=True)
WIDE = replace(PLENTY, topic_count=1 << 20, peer_topic_count=1 << 20)


class Store:
    """A relay's store, whose clock counts calls."""

    def __init__(self, folder: Path) -> None:
        self.database = Database(folder)
        self.now = 0

    def open(self, *names: str, by: Visitor = ALICE, quotas: RelayQuotas = PLENTY) -> Room:
        self.now += 1
        topics = [TOPICS[name] for name in names]
        with self.database.write() as connection:
            return open_topics(self.database, connection, topics, by, quotas, self.now)[0]

    def kept(self) -> dict[str, KeptTopic]:
        names = {topic: name for name, topic in TOPICS.items()}
        with self.database.read() as connection:
            return {names[topic]: one for topic, one in load_kept_topics(connection).items()}

    def store(
        self, name: str, *new: tuple[Publication, bytes], by: Visitor = ALICE, quotas: RelayQuotas = PLENTY
    ) -> StoreResult:
        self.now += 1
        num = self.kept()[name].num
        with self.database.write() as connection:
            return store_publications(self.database, connection, num, by, new, quotas, self.now)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path)
    yield store
    store.database.close()


def _publish(name: str, text: str, *acks: Publication, size: int = 0) -> tuple[Publication, bytes]:
    block, key = encrypt_block(
        text.encode() + bytes(size),
        ConvergenceSecret(b"c" * 32),
        acks=tuple(one.commit_id for one in acks),
        mark=bytes(MARK_SIZE),
    )
    made = create_publication(SEEDS[name], ReadKey(b"r" * 32), key, (block,))
    return made, made.encoded


def test_publications_are_kept_once_and_given_as_they_came(store: Store) -> None:
    store.open("a", "b")
    first = _publish("a", "first")
    second = _publish("a", "second", first[0])
    assert store.store("a", first, second, first).refused == ""
    assert store.store("a", second, by=BOB) == StoreResult((), "")
    kept = store.kept()["a"]
    assert (kept.commit_count, kept.size) == (2, len(first[1]) + len(second[1]))
    with store.database.read() as connection:
        summary = summarise(connection, kept.num, RELAY)
        assert (summary.heads, summary.count) == ((second[0].commit_id,), 2)
        everything = plan_sending(connection, kept.num, (), RELAY)
        rest = plan_sending(connection, kept.num, (first[0].commit_id,), RELAY)
        assert load_kept_publications(connection, kept.num, everything.nums, 1 << 20) == [first[1], second[1]]
        assert load_kept_publications(connection, kept.num, everything.nums, 1) == [first[1]]
        assert load_kept_publications(connection, kept.num, rest.nums, 1 << 20) == [second[1]]


def _variant(made: Publication, number: int, seed: TopicSeed = SEEDS["a"]) -> tuple[Publication, bytes]:
    """Make the same commit with another key than its own."""
    key = BlockKey(number.to_bytes(32, "big"))
    other = create_publication(seed, ReadKey(b"r" * 32), key, made.blocks)
    return other, other.encoded


def test_publications_of_one_commit_are_kept_and_given_each_for_itself(store: Store) -> None:
    store.open("a")
    first = _publish("a", "first")
    second = _publish("a", "second", first[0])
    bad = _variant(first[0], 1)
    assert len(store.store("a", bad, second).nums) == 2
    assert len(store.store("a", bad, first, first).nums) == 1, "the good one, once"
    assert store.store("a", bad, first, second) == StoreResult((), "")
    kept = store.kept()["a"]
    assert kept.commit_count == 3
    with store.database.read() as connection:
        assert summarise(connection, kept.num, RELAY).heads == (second[0].commit_id,)

        def given(nums: Sequence[int]) -> list[bytes]:
            return load_kept_publications(connection, kept.num, nums, 1 << 20)

        assert given(plan_sending(connection, kept.num, (), RELAY).nums) == [bad[1], second[1], first[1]]
        assert given(plan_sending(connection, kept.num, (first[0].commit_id,), RELAY).nums) == [second[1]]
        assert given(find_nums(connection, kept.num, [first[0].commit_id], RELAY)) == [bad[1], first[1]]
        names: dict[ItemId, bytes] = {one.publication_id: encoded for one, encoded in (first, second, bad)}
        whole = TopicSet(RELAY, kept.num, kept.topic, of_publications=True)
        nums, ids = load_set(connection, whole)
        assert [names[raw] for raw in ids] == given(nums)
        for raw in names:
            assert given(list(find_by_short_ids(connection, whole, [ShortId(raw[:16])]).values())) == [
                names[raw]
            ]
        assert find_by_short_ids(connection, whole, [ShortId(first[0].commit_id[:16])]) == {}


def test_who_wants_a_commit_of_many_publications_gets_the_first_and_the_latest(store: Store) -> None:
    store.open("a", "b")
    first = _publish("a", "first")
    others = [_variant(first[0], number) for number in range(VARIANTS_WANTED_MAX + 1)]
    nums = store.store("a", first, *others).nums
    assert len(nums) == VARIANTS_WANTED_MAX + 2
    with store.database.read() as connection:
        num = store.kept()["a"].num
        assert find_nums(connection, num, [first[0].commit_id], RELAY) == [nums[0], *nums[2:]], "one over"
        assert list(plan_sending(connection, num, (), RELAY).nums) == list(nums)
        assert find_nums(connection, store.kept()["b"].num, [first[0].commit_id], RELAY) == []


def test_an_effect_that_comes_before_its_cause_is_kept_and_both_are_given(store: Store) -> None:
    store.open("a")
    first = _publish("a", "first")
    second = _publish("a", "second", first[0])
    third = _publish("a", "third", second[0])
    store.store("a", third)
    store.store("a", first, second)
    with store.database.read() as connection:
        num = store.kept()["a"].num
        for held, missing in (
            ((), {first[1], second[1], third[1]}),
            ((first[0].commit_id,), {second[1], third[1]}),
        ):
            plan = plan_sending(connection, num, held, RELAY)
            assert missing <= set(load_kept_publications(connection, num, plan.nums, 1 << 20))


@pytest.mark.parametrize("quota", ["topic", "peer", "subnet", "total"])
def test_what_is_over_a_quota_is_refused_and_what_fits_is_kept(store: Store, quota: str) -> None:
    store.open("a")
    items = [_publish("a", str(number), size=1000) for number in range(3)]
    room = len(items[0][1]) + len(items[1][1])
    exact = {
        "topic": replace(PLENTY, topic=room),
        "peer": replace(PLENTY, peer=room),
        "subnet": replace(PLENTY, subnet=room),
        "total": replace(PLENTY, total=room),
    }[quota]
    taken = store.store("a", *items, quotas=exact)
    assert len(taken.nums) == 2
    assert taken.refused == {"total": "relay_full"}.get(quota, f"{quota}_full")
    assert store.kept()["a"].size == room
    if quota == "peer":
        assert store.store("a", items[2], by=BOB, quotas=exact).refused == "", (
            "another peer has room of its own"
        )
    if quota == "subnet":
        assert store.store("a", items[2], by=BOB, quotas=exact).refused == "subnet_full", (
            "from the same place"
        )
        elsewhere = replace(BOB, subnet="10.0.1.0/24")
        assert store.store("a", items[2], by=elsewhere, quotas=exact).refused == ""
        assert store.store("a", _publish("a", "more", size=1000), by=FRIEND, quotas=exact).refused == ""


def test_the_longest_untouched_topic_makes_room_unless_it_is_pinned(store: Store) -> None:
    store.open("a", "b", "c")
    items = {name: _publish(name, name, size=1000) for name in "abc"}
    room = replace(PLENTY, total=sum(len(items[name][1]) for name in "ab"))
    for name in "ab":
        store.store(name, items[name], quotas=room)
    store.open("a")  # asked for, so b is untouched the longest
    taken = store.store("c", items["c"], quotas=room)
    assert (taken.refused, taken.has_forgotten) == ("", True)
    assert set(store.kept()) == {"a", "c"}
    store.open("b")
    with store.database.write() as connection:
        for name in "ac":
            pin_topic(store.database, connection, TOPICS[name], PLENTY, 9)
    assert store.store("b", items["b"], quotas=room) == StoreResult((), "relay_full")
    assert {name: one.commit_count for name, one in store.kept().items()} == {"a": 1, "b": 0, "c": 1}


def test_there_are_as_many_topics_as_may_be_and_empty_ones_make_room(store: Store) -> None:
    two = replace(PLENTY, topic_count=2)
    store.open("a", "b", quotas=two)
    store.store("a", _publish("a", "a"))
    assert store.open("c", quotas=two) == Room(1, "", has_forgotten=True)
    assert set(store.kept()) == {"a", "c"}
    store.store("c", _publish("c", "c"))
    assert store.open("b", quotas=two) == Room(0, "relay_full"), "one over: none is empty"
    assert set(store.kept()) == {"a", "c"}
    assert store.open("b", by=FRIEND, quotas=two) == Room(1, "", has_forgotten=True, has_lost=True)
    assert set(store.kept()) == {"b", "c"}, (
        "for a known peer, of strangers' topics the longest untouched goes"
    )
    assert store.open("a", quotas=two) == Room(0, "relay_full"), (
        "and for strangers none of a known peer, be it empty"
    )


@pytest.mark.parametrize("bound", ["peer", "subnet"])
def test_one_peer_and_one_subnet_add_as_many_topics_as_may_be(store: Store, bound: str) -> None:
    two = replace(PLENTY, peer_topic_count=2) if bound == "peer" else replace(PLENTY, subnet_topic_count=2)
    assert store.open("a", "b", quotas=two) == Room(2)
    assert store.open("c", "a", quotas=two) == Room(0, f"{bound}_full"), "one over"
    assert store.open("a", by=BOB, quotas=two) == Room(0), "what is kept is served"
    assert store.open("c", by=BOB, quotas=two).count == (1 if bound == "peer" else 0)
    assert store.open("c", by=replace(BOB, subnet="10.0.1.0/24"), quotas=two).refused == ""
    assert set(store.kept()) == {"a", "b", "c"}


def test_an_operator_pins_topics_however_many_peers_have_brought(store: Store) -> None:
    one = replace(PLENTY, peer_topic_count=1)
    assert store.open("a", quotas=one) == store.open("b", by=BOB, quotas=one) == Room(1)
    with store.database.write() as connection:
        assert pin_topic(store.database, connection, TOPICS["c"], one, 9) == Room(1)


def test_only_known_peers_add_topics_where_strangers_may_not_and_strangers_may_use_them(store: Store) -> None:
    closed = replace(PLENTY, takes_strangers=False)
    assert store.open("a", quotas=closed) == Room(0, "not_known")
    assert store.open("a", by=FRIEND, quotas=closed) == Room(1)
    assert store.open("b", "a", quotas=closed) == Room(0, "not_known")
    assert store.store("a", _publish("a", "a"), quotas=closed).refused == ""
    with store.database.write() as connection:
        assert pin_topic(store.database, connection, TOPICS["b"], closed, 9) == Room(1)
    assert store.kept()["b"].is_pinned


def test_of_topics_that_make_room_those_of_one_stranger_go_first_and_those_of_known_peers_last(
    store: Store,
) -> None:
    store.open("a", by=FRIEND)
    store.open("b", "c")
    for name in "abc":
        store.store(name, _publish(name, name, size=1000))
    store.open("b", by=BOB)
    store.open("c")  # the latest touched
    assert {name: (one.is_known, one.is_shared) for name, one in store.kept().items()} == {
        "a": (True, False),
        "b": (False, True),
        "c": (False, False),
    }
    tight = replace(PLENTY, total=sum(one.size for one in store.kept().values()))
    store.open("d")
    assert store.store("d", _publish("d", "d", size=500), quotas=tight).has_forgotten
    assert set(store.kept()) == {"a", "b", "d"}
    store.store("d", _publish("d", "e", size=1000), quotas=tight)
    assert store.store("d", _publish("d", "f", size=1000), quotas=tight) == StoreResult((), "relay_full")
    assert set(store.kept()) == {"a", "d"}, "a known peer's stays, whatever a stranger publishes"
    assert store.store("d", _publish("d", "f", size=1000), by=FRIEND, quotas=tight).has_forgotten
    assert set(store.kept()) == {"d"}


def test_who_is_allowed_is_known_with_what_it_brought_and_no_more_when_it_is_denied(store: Store) -> None:
    store.open("a", "b")
    with store.database.write() as connection:
        allow_peer(connection, ALICE.peer)
        allow_peer(connection, ALICE.peer)
        assert load_allowed(connection) == {ALICE.peer}
    one = replace(PLENTY, subnet_topic_count=1)
    assert store.kept()["a"].is_known
    assert store.open("c", by=BOB, quotas=one) == Room(1), "the subnet's room is for strangers"
    with store.database.write() as connection:
        deny_peer(connection, ALICE.peer)
        assert load_allowed(connection) == set()
    assert not store.kept()["a"].is_known


def test_a_topic_of_nobody_is_of_the_first_who_asks_and_a_pinned_one_of_the_operator(store: Store) -> None:
    with store.database.write() as connection:
        for name in "ab":
            pin_topic(store.database, connection, TOPICS[name], PLENTY, 1)
        unpin_topic(connection, TOPICS["a"])
    store.open("a", "b")
    assert {name: one.brought_by for name, one in store.kept().items()} == {"a": ALICE.peer, "b": None}


def test_numbers_of_forgotten_topics_and_commits_are_not_given_again(store: Store) -> None:
    store.open("a")
    before = store.kept()["a"].num
    (num,) = store.store("a", _publish("a", "a")).nums
    store.open("b")
    tight = replace(PLENTY, total=len(_publish("b", "b")[1]))
    assert store.store("b", _publish("b", "b"), quotas=tight).nums > (num,)
    assert set(store.kept()) == {"b"}
    folder = store.database.folder
    store.database.close()
    store.database = Database(folder)
    store.open("a")
    assert store.kept()["a"].num > before


def test_false_ranks_make_no_walk_long(store: Store) -> None:
    # Descendants that come before their causes have the rank that others give them: here causes have the higher ones.
    store.open("a")
    layers = 24
    chain = [_publish("a", "0")]
    for number in range(1, 3 * layers):
        chain.append(_publish("a", str(number), chain[-1][0]))
    store.store("a", *chain)
    layer: list[tuple[Publication, bytes]] = []
    made: list[list[tuple[Publication, bytes]]] = []
    for depth in reversed(range(layers)):  # causes are made first, and come last
        causes = [one for one, _ in layer]
        layer = [_publish("a", f"{depth} {two}", *causes, chain[2 * depth + two][0]) for two in range(2)]
        made.append(layer)
    for layer in reversed(made):
        store.store("a", *layer)
    apart = _publish("a", "apart")
    store.store("a", apart)
    with store.database.read() as connection:
        plan = plan_sending(connection, store.kept()["a"].num, (apart[0].commit_id,), RELAY)
    assert len(plan.nums) == 5 * layers, (
        "all but the one that is known; a walk again from each parent would never end"
    )


def test_what_others_use_too_stays_known_when_who_brought_it_is_denied(store: Store) -> None:
    with store.database.write() as connection:
        allow_peer(connection, ALICE.peer)
    store.open("a", "b", by=replace(ALICE, is_known=True))
    store.open("a", by=FRIEND)
    with store.database.write() as connection:
        deny_peer(connection, ALICE.peer)
    assert {name: one.is_known for name, one in store.kept().items()} == {"a": True, "b": False}


def _steps_of_a_message(folder: Path, topics: int, by: Visitor) -> list[int]:
    """Steps to open one more topic and to keep a publication, where one peer has brought so many topics before."""
    folder.mkdir()
    database = Database(folder)
    with database.write() as connection:
        if by.account is not None:
            values = {"num": 1, "name": "ann", "quota": 1 << 40, "created_at": 0}
            connection.execute(insert(relay_accounts).values(values))
            connection.execute(insert(relay_account_nodes).values(peer=by.peer, account_num=1))
        old = [TopicKey(number.to_bytes(32, "big")) for number in range(topics)]
        open_topics(database, connection, old, by, WIDE, 0)
        for kept in load_kept_topics(connection).values():
            add_share(connection, kept.num, by, 10)
    found = []
    with database.write() as connection, counted_steps(connection) as steps:
        open_topics(database, connection, [TOPICS["a"]], by, WIDE, 1)
    found += steps
    with database.write() as connection:
        num = load_kept_topics(connection)[TOPICS["a"]].num
        with counted_steps(connection) as steps:
            store_publications(database, connection, num, by, [_publish("a", "post")], WIDE, 2)
    database.close()
    return found + steps


@pytest.mark.sqlite
@pytest.mark.parametrize("by", [FRIEND, replace(FRIEND, account=Account(1, "ann", 1 << 40))])
def test_a_message_costs_as_much_however_many_topics_a_peer_has_brought(tmp_path: Path, by: Visitor) -> None:
    few, many = (_steps_of_a_message(tmp_path / str(topics), topics, by) for topics in (20, 200))
    assert all(more <= 1.2 * less + 100 for less, more in zip(few, many, strict=True)), (few, many)
