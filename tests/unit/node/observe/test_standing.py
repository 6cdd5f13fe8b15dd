"""How a repo stands with others: one sentence that is true."""

from dataclasses import replace
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from node.authoring.drafting import Draft
from node.authoring.write_group import WriteRequest
from node.observe.standing import (
    NO_OUTLOOK,
    UNHELD_COUNTED_MAX,
    Facts,
    Link,
    Outlook,
    Standings,
    describe_standing,
    without_peers,
)
from node.sync.addresses import AddressSource
from node.sync.connection import Connection
from node.sync.network import Network
from node.sync.peer_state import PeerState
from protocol.content import Post
from protocol.ids import PeerId
from protocol.text import id_text
from tests.support.machine import fail_after
from tests.support.nodes import Node, connected, meet, members_of, open_nodes, share, until_equal

PEER = PeerId(bytes([1]) * 32)
SHORT = id_text(PEER)[:12]
MEMBER = Facts(
    is_member=True, was_member=True, is_joining=False, is_damaged=False, is_behind=False, has_members=True
)
READER = replace(MEMBER, is_member=False, was_member=False)
LINK = Link(PEER, is_relay=False, is_level=False, behind=0, unsent=0, refused="")


def _with(link: Link) -> Outlook:
    return Outlook((link,), 1, {}, None)


UNKNOWN = "whether what you wrote is elsewhere is not known"
TWO = "2 of your commits are on this node alone, as far as known"
SINCE = "since 1970-01-01 00:00 UTC"
LEVEL = Outlook((LINK,), 1, {PEER: 0}, 0)
CASES: dict[str, tuple[Facts, Outlook, int | None, str, str]] = {
    "level": (MEMBER, LEVEL, 0, "in_sync", f"in sync with peer {SHORT} {SINCE}"),
    "reader": (
        READER,
        Outlook((replace(LINK, is_relay=True),), 1, {PEER: 0}, 0),
        0,
        "in_sync",
        f"reading the repo without being a member; in sync with relay {SHORT} {SINCE}",
    ),
    "nothing_known": (MEMBER, NO_OUTLOOK, None, "alone", f"no peer is connected; {UNKNOWN}"),
    "all_held": (MEMBER, NO_OUTLOOK, 0, "alone", "no peer is connected"),
    "two_unheld": (MEMBER, NO_OUTLOOK, 2, "alone", f"no peer is connected; {TWO}"),
    "one_unheld": (
        MEMBER,
        NO_OUTLOOK,
        1,
        "alone",
        "no peer is connected; 1 of your commits is on this node alone, as far as known",
    ),
    "more_unheld_than_are_counted": (
        MEMBER,
        NO_OUTLOOK,
        UNHELD_COUNTED_MAX,
        "alone",
        "no peer is connected; at least 1000 of your commits are on this node alone, as far as known",
    ),
    "not_shared": (
        MEMBER,
        Outlook((), 2, {}, 0),
        2,
        "not_shared",
        f"2 peers are connected, and none follows this repo; {TWO}",
    ),
    "behind": (
        MEMBER,
        _with(replace(LINK, behind=7)),
        0,
        "syncing",
        f"behind by 7 commits, to come from peer {SHORT}",
    ),
    "sending": (MEMBER, _with(replace(LINK, unsent=4)), 0, "syncing", f"sending 4 commits to peer {SHORT}"),
    "follows_an_earlier_epoch": (
        MEMBER,
        _with(LINK),
        2,
        "not_shared",
        f"peer {SHORT} follows parts of it, or the repo as it was before an exclusion; {TWO}",
    ),
    "comparing": (MEMBER, _with(replace(LINK, unsent=None)), 0, "syncing", f"comparing with peer {SHORT}"),
    "relay_full": (
        MEMBER,
        _with(replace(LINK, is_relay=True, refused="topic_full")),
        2,
        "syncing",
        f"relay {SHORT} takes no more of it: topic_full; {TWO}",
    ),
    "waiting": (
        replace(MEMBER, is_behind=True),
        NO_OUTLOOK,
        0,
        "waiting",
        "waiting for secrets: members have gone on to new ones, "
        "and no member has handed them to this node yet; no peer is connected",
    ),
    "excluded": (
        replace(MEMBER, is_member=False, is_behind=True),
        LEVEL,
        0,
        "cut_off",
        "cut off: you are no member any more, and what members write since is not for this node",
    ),
    "asks": (
        replace(READER, asking="asked Ann to be let in, and waiting for an answer"),
        LEVEL,
        0,
        "joining",
        "asked Ann to be let in, and waiting for an answer",
    ),
    "asks_unheard": (
        replace(READER, asking="asked Ann to be let in, and waiting for an answer"),
        NO_OUTLOOK,
        0,
        "joining",
        "asked Ann to be let in, and waiting for an answer; no peer is connected",
    ),
    "excluded_at": (
        replace(MEMBER, is_member=False, is_behind=True, newest_epoch_at=1_700_000_000),
        LEVEL,
        0,
        "cut_off",
        "cut off since 2023-11-14 22:13 UTC: you are no member any more, and what members write since is not for this node",
    ),
    "at_an_absurd_time": (
        replace(MEMBER, is_behind=True, newest_epoch_at=2**52),
        NO_OUTLOOK,
        0,
        "waiting",
        "waiting for secrets since 9999-12-31 23:59 UTC: members have gone on to new ones, "
        "and no member has handed them to this node yet; no peer is connected",
    ),
    "former": (
        replace(MEMBER, is_member=False),
        LEVEL,
        0,
        "former",
        "you are no member any more, and read what was shared with you",
    ),
    "reader_cut_off": (
        replace(READER, is_behind=True),
        LEVEL,
        0,
        "cut_off",
        "cut off: the repo got new secrets by an exclusion or a renewal, "
        "and your link opens nothing newer; ask a member for a new one",
    ),
    "refused": (
        replace(READER, refused="it has been used up"),
        NO_OUTLOOK,
        0,
        "alone",
        "your invitation was refused (it has been used up); "
        "reading the repo without being a member; no peer is connected",
    ),
    "single_branches": (
        replace(READER, has_members=False),
        NO_OUTLOOK,
        0,
        "alone",
        "reading single branches without being a member; no peer is connected",
    ),
    "joining": (
        replace(READER, is_joining=True),
        NO_OUTLOOK,
        0,
        "joining",
        "joining: the membership has not come yet; no peer is connected",
    ),
    "damaged": (
        replace(MEMBER, is_damaged=True),
        LEVEL,
        0,
        "damaged",
        "who is a member cannot be told: commits of the membership are damaged here",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_each_state_has_its_sentence(name: str) -> None:
    facts, outlook, unheld, state, sentence = CASES[name]
    said = describe_standing(facts, outlook, unheld)
    assert (said["state"], said["sentence"], said["unheld"]) == (state, sentence, unheld)


@pytest.mark.parametrize("name", CASES)
def test_a_caller_without_the_right_to_see_peers_sees_none(name: str) -> None:
    facts, outlook, unheld, state, _ = CASES[name]
    shown = without_peers(describe_standing(facts, outlook, unheld))
    assert (shown["state"], shown["in_sync_with"]) == (state, [])
    assert SHORT not in shown["sentence"]
    assert shown["sentence"]


def _seen(node: Node, connection: Connection | None) -> Standings:
    """A node's standings, its network being this connection."""
    network = Network(node.hub, node.seed, lambda: 0.0)
    if connection is not None:
        state = PeerState(connection.peer, "", "in", "connected", 0, AddressSource.INCOMING, None)
        state.connection = connection
        network._inbound.append(state)
    return Standings(node.hub, network)


def _unheld(standings: Standings, node: Node, outlook: Outlook) -> int | None:
    return standings.count_unheld(node.author.user, {node.repo().num: outlook})[node.repo().num]


@pytest.mark.slow
async def test_what_others_hold_is_known_as_long_as_one_is_there_and_counted_after(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with fail_after(60), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await share(alice, bob)
        alone = _seen(alice, None)
        outlook = alone.outlooks()[alice.repo().num]
        assert (outlook.links, outlook.held_at) == ((), None)
        assert _unheld(alone, alice, outlook) is None
        async with connected(bob, alice) as (_, side):
            await until_equal(alice, bob)
            standings = _seen(alice, side)
            while not (outlook := standings.outlooks()[alice.repo().num]).level_since:
                await alice.hub.run_blocking(lambda: None)
            assert list(outlook.level_since) == [bob.key]
            assert _unheld(standings, alice, outlook) == 0
        standings._network._inbound.clear()
        alice.write(alice.branch(), "nobody has this")
        outlook = standings.outlooks()[alice.repo().num]
        assert outlook.held_at is not None
        assert _unheld(standings, alice, outlook) == 1
        alice.author.write_group(
            [WriteRequest(alice.branch(), [Draft(Post(f"{number}")) for number in range(UNHELD_COUNTED_MAX)])]
        )
        assert _unheld(standings, alice, outlook) == UNHELD_COUNTED_MAX, "no further ones are counted"


@pytest.mark.slow
async def test_a_reader_is_cut_off_by_a_renewal_and_an_excluded_member_by_the_exclusion(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with fail_after(60), open_nodes(tmp_path, "alice", "bob", "carol") as (alice, bob, carol):
        await share(alice, bob)
        await carol.joiner.follow(alice.capability())
        async with connected(carol, alice):
            await until_equal(alice, carol)
        assert not carol.repo().is_behind
        await members_of(alice).remove("repo", id_text(bob.author.user), "")
        await meet(alice, bob, carol)
        assert bob.repo().is_behind
        assert carol.repo().is_behind
        async with connected(bob, alice) as (ours, side):
            await trio.sleep(10)
            excluded = _seen(alice, side).outlooks()[alice.repo().num]
            assert not excluded.level_since, "who is excluded holds nothing newer, however level the past is"
            assert [link.unsent for link in excluded.links] == [0]
            assert _seen(bob, ours).outlooks()[bob.repo().num].level_since, "bob has what he may have"
        assert bob.replica.was_member(bob.repo(), bob.author.user)
        assert not carol.replica.was_member(carol.repo(), carol.author.user)
