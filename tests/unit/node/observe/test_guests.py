"""Connected readers who are no members: who reads on by a link is counted, who was shut out is not."""

from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from node.membership.sharing import Sharing
from node.network.network import Network
from node.network.own_addresses import OwnAddresses
from node.network.peer_state import PeerState
from node.network.peers import Peers
from node.observe.standing import Standings
from node.observe.standing_view import Link, Outlook, RepoFacts, Unheld, describe_standing
from node.sync.addresses import AddressSource
from protocol.formats.links import BranchCapability, parse_branch_capability
from protocol.formats.text import id_text
from protocol.ids import PeerId
from ravel.types.peers import CalledPeer
from tests.support.machine import fail_after
from tests.support.nodes import Node, connected, meet, members_of, open_nodes, renewing_of, share


def _nobody(_peer: PeerId) -> CalledPeer:
    return {"name": "", "owner": None}


def _count(outlook: Outlook, members: int) -> int:
    facts = RepoFacts(
        True, True, is_joining=False, is_damaged=False, is_behind=False, has_members=True, members=members
    )
    return describe_standing(facts, outlook, Unheld(), _nobody)["guests"]


async def _guests(node: Node, other: Node) -> int:
    """Count the guests of a node that has no other member and one peer."""
    async with connected(other, node) as (_, side):
        await trio.sleep(10)
        state = PeerState(side.peer, "", "in", "connected", 0, AddressSource.INCOMING, None)
        state.connection = side
        network = Network(node.hub, node.seed, lambda: 0.0)
        network.inbound.append(state)
        outlook = Standings(node.hub, network).outlook(node.repo())
        assert [link.is_joined for link in outlook.links] == [True]
        return _count(outlook, 0)


async def _branch_link(node: Node) -> BranchCapability:
    network = Network(node.hub, node.seed, lambda: 0.0)
    peers, addresses = Peers(node.hub, network, node.key), OwnAddresses("host:7474")
    sharing = Sharing(
        node.hub, network, peers, node.author, node.joiner, addresses=addresses, clock=lambda: 0.0
    )
    return parse_branch_capability((await sharing.branch_capability(node.branch()))["capability"])


def test_who_follows_earlier_epochs_alone_is_no_reader() -> None:
    def link(number: int, *, reads_on: bool) -> Link:
        peer = PeerId(bytes([number]) * 32)
        return Link(peer, is_relay=False, is_level=False, behind=0, unsent=0, refused="", reads_on=reads_on)

    gone = [link(number, reads_on=False) for number in range(3)]
    assert _count(Outlook(tuple(gone), 3, {}, None), 1) == 0
    assert _count(Outlook((*gone, link(8, reads_on=True)), 4, {}, None), 1) == 0
    assert _count(Outlook((*gone, link(8, reads_on=True), link(9, reads_on=True)), 5, {}, None), 1) == 1


@pytest.mark.slow
async def test_an_excluded_member_is_no_reader_and_one_by_a_link_is_until_it_is_renewed(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with fail_after(120), open_nodes(tmp_path, "alice", "bob", "carol") as (alice, bob, carol):
        await share(alice, bob)
        await members_of(alice).remove("repo", id_text(bob.author.user), "")
        await meet(alice, bob)
        assert await _guests(alice, bob) == 0
        await carol.joiner.follow(alice.capability())
        assert await _guests(alice, carol) == 1
        await renewing_of(alice).renew("")
        assert await _guests(alice, carol) == 0


@pytest.mark.slow
async def test_who_follows_a_branch_by_its_link_is_a_reader_until_it_is_renewed(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with fail_after(120), open_nodes(tmp_path, "alice", "bob", "carol") as (alice, bob, carol):
        await share(alice, bob)
        await carol.joiner.follow_branch(await _branch_link(alice))
        assert await _guests(alice, carol) == 1
        await renewing_of(alice).renew("")
        assert await _guests(alice, carol) == 0
