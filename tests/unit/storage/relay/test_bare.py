"""Commits of a relay whose bodies were erased, and how bodies come to it: never in exchange for anything."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Connection, select

from protocol.crypto.keys import BlockKey, ConvergenceSecret, ReadKey, TopicSeed
from protocol.crypto.signing import public_key
from protocol.formats.block import encrypt_block
from protocol.formats.publication import (
    Publication,
    create_publication,
    decode_publication,
)
from protocol.ids import CommitId, ObjectId, PeerId
from protocol.limits.formats import MARK_SIZE
from protocol.limits.peers import RELAY_FILES_SHARE
from storage.engine.database import Database
from storage.relay.bare import find_bare, find_lacking_topics, load_lacking
from storage.relay.quotas import RelayQuotas, Visitor, find_body_room
from storage.relay.relay import (
    RELAY,
    KeptTopic,
    StoreResult,
    load_kept_publications,
    load_kept_topics,
    open_topics,
    store_publications,
)
from storage.schema.relay_schema import relay_bare, relay_shares
from storage.topics.topic_sets import TopicSet, find_whole, load_set
from tests.support.forging import bare_of
from tests.support.relays import PLENTY

SEEDS = [TopicSeed(bytes([number]) * 32) for number in (1, 2)]
TOPICS = [public_key(seed) for seed in SEEDS]
ALICE, BOB = Visitor(PeerId(b"A" * 32), "10.0.0.0/24"), Visitor(PeerId(b"B" * 32), "10.0.1.0/24")
FRIEND = Visitor(PeerId(b"F" * 32), is_known=True)
Item = tuple[Publication, bytes]


class Store:
    """A relay's store with two topics."""

    def __init__(self, folder: Path) -> None:
        self.database = Database(folder)
        with self.database.write() as connection:
            open_topics(self.database, connection, TOPICS, ALICE, PLENTY, 1)

    def kept(self, number: int = 0) -> KeptTopic:
        with self.database.read() as connection:
            return load_kept_topics(connection)[TOPICS[number]]

    def store(
        self, *items: Item, by: Visitor = ALICE, quotas: RelayQuotas = PLENTY, topic: int = 0
    ) -> StoreResult:
        num = self.kept(topic).num
        with self.database.write() as connection:
            return store_publications(self.database, connection, num, by, items, quotas, 2)

    def given(self, *nums: int) -> list[bytes]:
        with self.database.read() as connection:
            return load_kept_publications(connection, self.kept().num, nums, 1 << 20)

    def bare(self) -> list[int]:
        with self.database.read() as connection:
            return [num for num, _ in self.lacking(connection)]

    def lacking(self, connection: Connection, *, alone: bool = False) -> list[tuple[int, CommitId]]:
        return load_lacking(connection, self.kept().num, 1 << 62, 0, 100, alone=alone)

    def share(self, visitor: Visitor) -> int:
        with self.database.read() as connection:
            found = select(relay_shares.c.size).where(relay_shares.c.peer == visitor.peer)
            return int(connection.execute(found).scalar() or 0)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path)
    yield store
    store.database.close()


def _whole(
    name: str, *acks: Publication, size: int = 500, topic: int = 0, other_key: BlockKey | None = None
) -> Item:
    secret = ConvergenceSecret(b"c" * 32)
    mark = bytes(MARK_SIZE)
    own, key = encrypt_block(name.encode(), secret, acks=tuple(one.commit_id for one in acks), mark=mark)
    body = encrypt_block(name.encode() + bytes(size), secret)[0]
    made = create_publication(SEEDS[topic], ReadKey(b"r" * 32), other_key or key, (own, body))
    return made, made.encoded


def _bare(whole: Item) -> Item:
    encoded = bare_of(whole[1])
    return decode_publication(encoded), encoded


def test_a_bare_one_is_kept_and_compared_like_the_whole_one_which_takes_its_place(store: Store) -> None:
    first = _whole("first")
    second = _whole("second", first[0])
    stored = store.store(_bare(first), _bare(second))
    assert (len(stored.nums), stored.has_bare, stored.completed) == (2, True, 0)
    assert store.given(*stored.nums) == [_bare(first)[1], _bare(second)[1]]
    with store.database.read() as connection:
        kept = TopicSet(RELAY, store.kept().num, TOPICS[0], of_publications=True)
        assert load_set(connection, kept)[1] == [first[0].publication_id, second[0].publication_id]
        assert find_lacking_topics(connection) == {store.kept().num: stored.nums[1]}
        assert find_whole(connection, kept, [first[0].publication_id]) == []
    sizes = store.kept().size, store.share(ALICE)
    assert sizes == (len(_bare(first)[1]) + len(_bare(second)[1]),) * 2
    assert store.store(first, by=BOB) == StoreResult((), "", completed=1)
    assert store.given(*stored.nums) == [first[1], _bare(second)[1]], "under the same number"
    grown = len(first[1]) - len(_bare(first)[1])
    assert (store.kept().size, store.share(ALICE), store.share(BOB)) == (sizes[0] + grown, sizes[1], grown)
    assert store.kept().commit_count == 2
    with store.database.read() as connection:
        assert find_whole(connection, kept, [first[0].publication_id, second[0].publication_id]) == [
            stored.nums[0]
        ]
    assert store.bare() == [stored.nums[1]]


def test_a_whole_one_is_never_replaced(store: Store) -> None:
    whole = _whole("first")
    nums = store.store(whole).nums
    assert store.store(_bare(whole), by=BOB) == StoreResult((), "")
    assert (store.given(*nums), store.bare()) == ([whole[1]], [])
    both = _whole("second")
    for order in ((_bare(both), both), (both, _bare(both))):
        stored = store.store(*order)
        assert (store.bare(), stored.has_bare) == ([], False)
    other = _whole("third")
    bare = store.store(_bare(other)).nums
    assert store.store(_bare(other), other, _bare(other)).completed == 1
    assert (store.given(*bare), store.bare()) == ([other[1]], [])


def test_a_body_that_has_no_room_stays_away_and_refuses_and_forgets_nothing(store: Store) -> None:
    other = _whole("of another topic", topic=1)
    store.store(other, topic=1)
    large, small = _whole("large", size=9_000), _whole("small", size=10)
    nums = store.store(_bare(large), _bare(small)).nums
    now = store.kept().size + store.kept(1).size
    for quotas in (
        replace(PLENTY, topic=int(5_000 / RELAY_FILES_SHARE)),
        replace(PLENTY, peer=int(5_000 / RELAY_FILES_SHARE)),
        replace(PLENTY, total=int((now + 5_000) / RELAY_FILES_SHARE)),
    ):
        for visitor in (ALICE, FRIEND):
            assert store.store(large, by=visitor, quotas=quotas) == StoreResult((), "")
    with store.database.read() as connection:
        assert find_bare(connection, store.kept().num, nums) == set(nums)
        full = replace(PLENTY, topic=store.kept().size)
        assert find_body_room(connection, store.kept().num, ALICE, full) == 0
        assert find_body_room(connection, 99, ALICE, PLENTY) == 0, "a topic that was forgotten"
    assert store.kept(1).commit_count == 1
    stored = store.store(large, small, _whole("new"), quotas=quotas)
    assert (stored.completed, stored.refused, len(stored.nums)) == (1, "", 1), (
        "what is small, and what is new"
    )
    assert store.bare() == [nums[0]]


def test_of_commits_that_are_here_in_another_form_older_members_are_not_asked(store: Store) -> None:
    good, alone = _whole("first"), _whole("second")
    bad = _whole("first", other_key=BlockKey(b"k" * 32))
    assert bad[0].commit_id == good[0].commit_id
    nums = store.store(_bare(bad), good, _bare(alone)).nums
    with store.database.read() as connection:
        assert [num for num, _ in store.lacking(connection)] == [nums[2], nums[0]], "the latest first"
        assert store.lacking(connection, alone=True) == [(nums[2], alone[0].commit_id)]


def test_what_is_lacking_is_forgotten_with_its_topic(store: Store) -> None:
    store.store(_bare(_whole("first")), by=FRIEND)
    other = _whole("of another topic", topic=1, size=2_000)
    size = store.kept().size
    stored = store.store(other, topic=1, by=FRIEND, quotas=replace(PLENTY, total=size + 2_200))
    assert stored.has_forgotten
    with store.database.read() as connection:
        assert find_lacking_topics(connection) == {}
        assert connection.execute(select(relay_bare)).all() == []


def test_a_body_of_another_commit_completes_nothing(store: Store) -> None:
    whole = _whole("first")
    store.store(_bare(whole))
    own, _ = whole[0].blocks
    body = encrypt_block(b"another body", ConvergenceSecret(b"c" * 32))[0]
    forged = create_publication(SEEDS[0], ReadKey(b"r" * 32), BlockKey(b"k" * 32), (own, body))
    stored = store.store((forged, forged.encoded))
    assert (stored.completed, len(stored.nums)) == (0, 1), "it is a publication of its own"
    assert len(store.bare()) == 1
    assert decode_publication(store.given(*store.bare())[0]).body_id == ObjectId(whole[0].blocks[1].block_id)
