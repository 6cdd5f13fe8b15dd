"""What a relay keeps: each publication once, within every quota, the longest untouched topic going first."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from protocol.block import seal_block
from protocol.limits import VARIANTS_WANTED_MAX
from protocol.publication import Publication, encode_publication, seal_publication
from protocol.signing import public_key
from storage.database import Database
from storage.difference import find_nums, plan_sending, summarise
from storage.relay import (
    RELAY,
    KeptTopic,
    RelayQuotas,
    Taken,
    load_kept,
    load_kept_publications,
    open_topics,
    pin_topic,
    take_publications,
)
from storage.topic_sets import TopicSet, find_by_short_ids, load_set

SEEDS = {name: name.encode() * 32 for name in "abc"}
TOPICS = {name: public_key(seed) for name, seed in SEEDS.items()}
ALICE, BOB = b"A" * 32, b"B" * 32
PLENTY = RelayQuotas(total=1 << 30, topic=1 << 30, peer=1 << 30, topic_count=10)


class Store:
    """A relay's store, whose clock counts calls."""

    def __init__(self, folder: Path) -> None:
        self.database = Database(folder)
        self.now = 0

    def open(self, *names: str, count_max: int = 10) -> None:
        self.now += 1
        with self.database.write() as connection:
            open_topics(self.database, connection, [TOPICS[name] for name in names], count_max, self.now)

    def kept(self) -> dict[str, KeptTopic]:
        names = {topic: name for name, topic in TOPICS.items()}
        with self.database.read() as connection:
            return {names[topic]: one for topic, one in load_kept(connection).items()}

    def take(
        self, name: str, *new: tuple[Publication, bytes], peer: bytes = ALICE, quotas: RelayQuotas = PLENTY
    ) -> Taken:
        self.now += 1
        num = self.kept()[name].num
        with self.database.write() as connection:
            return take_publications(self.database, connection, num, peer, new, quotas, self.now)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path)
    yield store
    store.database.close()


def _publish(name: str, text: str, *acks: Publication, size: int = 0) -> tuple[Publication, bytes]:
    block, key = seal_block(text.encode() + bytes(size), b"c" * 32, acks=tuple(one.commit_id for one in acks))
    made = seal_publication(SEEDS[name], b"r" * 32, key, (block,), b"n" * 24)
    encoded = tuple(one.encoded for one in made.blocks)
    return made, encode_publication(made.topic, made.sealed_key, encoded, made.signature)


def test_publications_are_kept_once_and_given_as_they_came(store: Store) -> None:
    store.open("a", "b")
    first = _publish("a", "first")
    second = _publish("a", "second", first[0])
    assert store.take("a", first, second, first).refused == ""
    assert store.take("a", second, peer=BOB) == Taken((), "")
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


def _variant(made: Publication, number: int, seed: bytes = SEEDS["a"]) -> tuple[Publication, bytes]:
    """The same commit, sealed with a key of its own."""
    nonce = number.to_bytes(24, "big")
    sealed = seal_publication(seed, b"r" * 32, b"k" * 32, made.blocks, nonce)
    blocks = tuple(one.encoded for one in sealed.blocks)
    return sealed, encode_publication(sealed.topic, sealed.sealed_key, blocks, sealed.signature)


def test_publications_of_one_commit_are_kept_and_given_each_for_itself(store: Store) -> None:
    store.open("a")
    first = _publish("a", "first")
    second = _publish("a", "second", first[0])
    bad = _variant(first[0], 1)
    assert len(store.take("a", bad, second).nums) == 2
    assert len(store.take("a", bad, first, first).nums) == 1, "the good one, once"
    assert store.take("a", bad, first, second) == Taken((), "")
    kept = store.kept()["a"]
    assert kept.commit_count == 3
    with store.database.read() as connection:
        assert summarise(connection, kept.num, RELAY).heads == (second[0].commit_id,)

        def given(nums: Sequence[int]) -> list[bytes]:
            return load_kept_publications(connection, kept.num, nums, 1 << 20)

        assert given(plan_sending(connection, kept.num, (), RELAY).nums) == [bad[1], second[1], first[1]]
        assert given(plan_sending(connection, kept.num, (first[0].commit_id,), RELAY).nums) == [second[1]]
        assert given(find_nums(connection, kept.num, [first[0].commit_id], RELAY)) == [bad[1], first[1]]
        names = {one.publication_id: encoded for one, encoded in (first, second, bad)}
        whole = TopicSet(RELAY, kept.num, kept.topic, of_publications=True)
        nums, ids = load_set(connection, whole)
        assert [names[raw] for raw in ids] == given(nums)
        for raw in names:
            assert given(list(find_by_short_ids(connection, whole, [raw[:16]]).values())) == [names[raw]]
        assert find_by_short_ids(connection, whole, [first[0].commit_id[:16]]) == {}


def test_who_wants_a_commit_of_many_publications_gets_the_first_and_the_latest(store: Store) -> None:
    store.open("a", "b")
    first = _publish("a", "first")
    others = [_variant(first[0], number) for number in range(VARIANTS_WANTED_MAX + 1)]
    nums = store.take("a", first, *others).nums
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
    store.take("a", third)
    store.take("a", first, second)
    with store.database.read() as connection:
        num = store.kept()["a"].num
        for held, missing in (
            ((), {first[1], second[1], third[1]}),
            ((first[0].commit_id,), {second[1], third[1]}),
        ):
            plan = plan_sending(connection, num, held, RELAY)
            assert missing <= set(load_kept_publications(connection, num, plan.nums, 1 << 20))


@pytest.mark.parametrize("quota", ["topic", "peer", "total"])
def test_what_is_over_a_quota_is_refused_and_what_fits_is_kept(store: Store, quota: str) -> None:
    store.open("a")
    items = [_publish("a", str(number), size=1000) for number in range(3)]
    room = len(items[0][1]) + len(items[1][1])
    limits = {"total": 1 << 30, "topic": 1 << 30, "peer": 1 << 30}
    exact = RelayQuotas(**{**limits, quota: room}, topic_count=10)
    taken = store.take("a", *items, quotas=exact)
    assert len(taken.nums) == 2
    assert taken.refused == {"topic": "topic_full", "peer": "peer_full", "total": "relay_full"}[quota]
    assert store.kept()["a"].size == room
    if quota == "peer":
        assert store.take("a", items[2], peer=BOB, quotas=exact).refused == "", (
            "another peer has room of its own"
        )


def test_the_longest_untouched_topic_makes_room_unless_it_is_pinned(store: Store) -> None:
    store.open("a", "b", "c")
    items = {name: _publish(name, name, size=1000) for name in "abc"}
    room = RelayQuotas(
        total=sum(len(items[name][1]) for name in "ab"), topic=1 << 30, peer=1 << 30, topic_count=10
    )
    for name in "ab":
        store.take(name, items[name], quotas=room)
    store.open("a")  # asked for, so b is untouched the longest
    taken = store.take("c", items["c"], quotas=room)
    assert (taken.refused, taken.has_forgotten) == ("", True)
    assert set(store.kept()) == {"a", "c"}
    store.open("b")
    with store.database.write() as connection:
        for name in "ac":
            pin_topic(connection, TOPICS[name], is_pinned=True)
    assert store.take("b", items["b"], quotas=room) == Taken((), "relay_full")
    assert {name: one.commit_count for name, one in store.kept().items()} == {"a": 1, "b": 0, "c": 1}


def test_there_are_as_many_topics_as_may_be_and_empty_ones_make_room(store: Store) -> None:
    store.open("a", "b", count_max=2)
    store.take("a", _publish("a", "a"))
    store.open("c", count_max=2)
    assert set(store.kept()) == {"a", "c"}
    store.take("c", _publish("c", "c"))
    store.open("b", count_max=2)
    assert set(store.kept()) == {"a", "c"}, "one over: none is empty"


def test_numbers_of_forgotten_topics_and_commits_are_not_given_again(store: Store) -> None:
    store.open("a")
    before = store.kept()["a"].num
    (num,) = store.take("a", _publish("a", "a")).nums
    store.open("b")
    tight = RelayQuotas(total=len(_publish("b", "b")[1]), topic=1 << 30, peer=1 << 30, topic_count=10)
    assert store.take("b", _publish("b", "b"), quotas=tight).nums > (num,)
    assert set(store.kept()) == {"b"}
    folder = store.database.path.parent
    store.database.close()
    store.database = Database(folder)
    store.open("a")
    assert store.kept()["a"].num > before
