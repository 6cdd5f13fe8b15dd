"""Turns of topics that a relay has its partner keep."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from node.relay.relay import RelayService
from node.sync.kept_turns import KeptTurns
from protocol.ids import PeerId, TopicKey
from storage.relay.quotas import Account
from storage.relay.relay import KeptTopic
from tests.support.relays import open_relay

ALICE, PHONE, BOB, STRANGER, OTHER = (PeerId(bytes([number]) * 32) for number in range(5))
_NUMBERS = count()


@pytest.fixture
def relay(tmp_path: Path) -> Iterator[RelayService]:
    with open_relay(tmp_path) as node:
        assert node.hub.relay is not None
        account = Account(1, "alice", 1 << 30)
        node.hub.relay.accounts = {ALICE: account, PHONE: account}
        yield node.hub.relay


def _kept(peer: PeerId, *, is_known: bool = True) -> KeptTopic:
    number = next(_NUMBERS)
    return KeptTopic(number, TopicKey(number.to_bytes(32, "big")), False, 0, 0, 0, 0, is_known, False, peer)


def _order(turns: KeptTurns, kept: list[KeptTopic]) -> list[PeerId | None]:
    brought = {one.topic: one.brought_by for one in kept}
    return [brought[turns.pop()] for _ in range(len(turns))]


def test_a_new_topic_is_served_soon_and_not_after_thousands(relay: RelayService) -> None:
    turns = KeptTurns()
    old = [_kept(BOB) for _ in range(10_000)]
    turns.add(old, relay, are_new=False)
    first, last = _kept(BOB), _kept(BOB)
    turns.add([first, last], relay, are_new=True)
    served = [turns.pop() for _ in range(3)]
    assert served == [first.topic, old[0].topic, last.topic]
    assert len(turns) == 9_999


def test_accounts_and_known_peers_take_turns_and_all_strangers_have_one(relay: RelayService) -> None:
    kept = [_kept(peer) for peer in (ALICE, ALICE, PHONE, BOB, BOB)]
    kept += [_kept(peer, is_known=False) for peer in (STRANGER, OTHER)]
    for are_new in (False, True):
        turns = KeptTurns()
        turns.add(kept, relay, are_new=are_new)
        assert _order(turns, kept) == [ALICE, BOB, STRANGER, ALICE, BOB, OTHER, PHONE]
        assert len(turns) == 0


def test_what_the_relay_has_forgotten_waits_no_more_and_nothing_waits_twice(relay: RelayService) -> None:
    turns = KeptTurns()
    kept = [_kept(peer) for peer in (ALICE, BOB, BOB)]
    for are_new in (False, True):
        turns.add([*kept, *kept], relay, are_new=are_new)
    assert len(turns) == 2 * len(kept)
    turns.drop([kept[0].topic, kept[1].topic, _kept(BOB).topic])
    assert len(turns) == 2
    assert [turns.pop(), turns.pop()] == [kept[2].topic] * 2
