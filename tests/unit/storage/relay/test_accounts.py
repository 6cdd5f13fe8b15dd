"""Accounts of a relay: links are good once, quotas go by account, and who is revoked is a stranger again."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from protocol.crypto.keys import AccountToken, TopicSeed
from protocol.crypto.signing import public_key
from protocol.ids import PeerId, TopicKey
from protocol.limits.peers import (
    ACCOUNT_INVITATIONS_MAX,
    ACCOUNT_NODES_MAX,
    RELAY_FILES_SHARE,
    RELAYED_TOPIC_SIZE,
)
from storage.engine.database import Database
from storage.relay.accounts import (
    AccountRow,
    AccountsFull,
    JoinedAccount,
    change_quota,
    invite_to_account,
    join_account,
    list_accounts,
    load_accounts,
    revoke_account,
)
from storage.relay.quotas import Visitor, add_share, forget_topics, make_file_room
from storage.relay.relay import load_kept_topics, open_topics
from tests.support.relays import PLENTY

TOPIC: Final = public_key(TopicSeed(b"t" * 32))


def _peer(number: int) -> PeerId:
    return PeerId(number.to_bytes(32, "big"))


def _token(number: int) -> AccountToken:
    return AccountToken(number.to_bytes(32, "big"))


class Store:
    """Store of a relay, with a clock that the test sets."""

    def __init__(self, folder: Path) -> None:
        self.database = Database(folder)
        self.now = 100

    def invite(self, name: str, token: int, quota: int = 1000) -> None:
        with self.database.write() as connection:
            where = (self.database, connection, name, quota)
            invite_to_account(*where, _token(token), self.now + 10, self.now)

    def join(self, token: int, peer: int) -> JoinedAccount:
        with self.database.write() as connection:
            return join_account(connection, _token(token), _peer(peer), self.now)

    def accounts(self) -> dict[str, AccountRow]:
        with self.database.read() as connection:
            return {row.account.name: row for row in list_accounts(connection, self.now)}

    def visitor(self, peer: int) -> Visitor:
        with self.database.read() as connection:
            account = load_accounts(connection).get(_peer(peer))
        return Visitor(_peer(peer), "" if account else "10.0.0.0/24", account is not None, account=account)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path)
    yield store
    store.database.close()


def test_a_link_gives_one_node_an_account_and_a_replay_gives_none(store: Store) -> None:
    store.invite("ann", 1)
    assert store.accounts()["ann"].links == 1
    assert store.join(1, 7) == JoinedAccount("", 1000, 0)
    assert store.join(1, 7) == JoinedAccount("", 1000, 0), "its answer may have been lost"
    assert store.join(1, 8) == JoinedAccount("used_link")
    assert store.join(2, 8) == JoinedAccount("unknown_link")
    store.invite("ann", 2)
    store.now += 10
    assert store.join(2, 8) == JoinedAccount("expired_link")
    assert store.accounts()["ann"].nodes == (_peer(7),)


def test_an_account_has_so_many_nodes_and_unused_links(store: Store) -> None:
    for number in range(ACCOUNT_INVITATIONS_MAX):
        store.invite("ann", number)
    with pytest.raises(AccountsFull):
        store.invite("ann", 99)
    for number in range(ACCOUNT_NODES_MAX):
        assert not store.join(number, number).refusal
    store.invite("ann", 99)
    assert store.join(99, 99) == JoinedAccount("account_full")
    assert store.join(0, 0) == JoinedAccount("", 1000, 0)


def test_what_the_nodes_of_an_account_bring_is_added_up_whatever_one_peer_may(store: Store) -> None:
    quota = 8000 + RELAYED_TOPIC_SIZE
    store.invite("ann", 1, quota)
    store.invite("ann", 2, quota)
    store.join(1, 7)
    store.join(2, 8)
    first, second, stranger = store.visitor(7), store.visitor(8), store.visitor(9)
    tight = replace(PLENTY, peer=100, subnet=100)
    with store.database.write() as connection:
        open_topics(store.database, connection, [TOPIC], first, tight, 0)
        num = load_kept_topics(connection)[TOPIC].num
        add_share(connection, num, first, 4000)
        room = int(quota * RELAY_FILES_SHARE) - 4000 - RELAYED_TOPIC_SIZE
        assert make_file_room(connection, num, second, room, tight).count == 1
        assert make_file_room(connection, num, second, room + 1, tight).refused == "account_full"
        assert make_file_room(connection, num, stranger, 3000, tight).refused == "file_too_large"
        assert change_quota(connection, "ann", 2 * quota)
        assert not change_quota(connection, "bob", 16_000)
    with store.database.read() as connection:
        assert make_file_room(connection, num, store.visitor(8), room + 1, tight).count == 1
    assert store.accounts()["ann"].used == 4000 + RELAYED_TOPIC_SIZE


def test_an_account_brings_any_number_of_topics_within_its_bytes_and_what_is_forgotten_counts_no_more(
    store: Store,
) -> None:
    store.invite("ann", 1, 3 * RELAYED_TOPIC_SIZE + 100)
    store.join(1, 7)
    visitor, one = store.visitor(7), replace(PLENTY, peer_topic_count=1)
    topics = [TopicKey(bytes([number]) * 32) for number in range(5)]
    with store.database.write() as connection:
        room, kept = open_topics(store.database, connection, topics, visitor, one, 0)
        assert (room.count, room.refused, len(kept)) == (3, "account_full", 3)
        assert open_topics(store.database, connection, topics[3:], visitor, one, 0)[0].count == 0
        forget_topics(connection, [kept[0].num])
        assert open_topics(store.database, connection, topics[3:], visitor, one, 0)[0].count == 1
    assert store.accounts()["ann"].used == 3 * RELAYED_TOPIC_SIZE


def test_who_is_revoked_is_a_stranger_again_and_its_topics_too(store: Store) -> None:
    store.invite("ann", 1)
    store.invite("ann", 2)
    with store.database.write() as connection:
        open_topics(store.database, connection, [TOPIC], store.visitor(7), PLENTY, 0)
        assert not load_kept_topics(connection)[TOPIC].is_known
    store.join(1, 7)
    with store.database.read() as connection:
        assert load_kept_topics(connection)[TOPIC].is_known
    with store.database.write() as connection:
        assert revoke_account(connection, "ann")
        assert not revoke_account(connection, "ann")
        assert not load_kept_topics(connection)[TOPIC].is_known
    assert not store.visitor(7).is_known
    assert store.join(2, 8) == JoinedAccount("unknown_link")
    assert store.accounts() == {}
