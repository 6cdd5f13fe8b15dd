"""Bearer links whose maker wants new secrets once they are over: used up or revoked, they open nothing new."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from node.observe.absent import find_absence
from protocol.formats.body import Permission
from protocol.formats.links import InvitationLink, parse_invitation
from protocol.formats.text import id_text
from protocol.ids import EpochId
from storage.repos.repos import Repo
from tests.support.machine import fail_after
from tests.support.nodes import Node, connected, open_nodes
from tests.support.served import service_of


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[list[Node]]:
    with open_nodes(tmp_path, "alice", "bob", "carol") as made:
        yield made


async def settle(first: Node, *others: Node) -> None:
    """Connect all to the first for a while, twice."""
    with fail_after(120):
        for other in [*others, *others]:
            async with connected(other, first):
                await trio.sleep(10)


async def invite(node: Node, folder: Path, *, uses: int = 1, renews: bool = True) -> InvitationLink:
    """Return a bearer link to the node's one repo."""
    made = await service_of(node, folder).people.invite("repo", "write", 3600, uses, "machine", renews)
    return parse_invitation(made["invitation"])


async def join(node: Node, link: InvitationLink) -> None:
    """Take up a link."""
    await node.joiner.begin(link)


def epoch(node: Node, repo: Repo) -> EpochId:
    """Return the epoch in which a node writes."""
    here = next(one for one in node.replica.repos.values() if one.repo_id == repo.repo_id)
    return node.replica.writing_epoch(here).epoch_id


@pytest.mark.slow
@pytest.mark.parametrize("renews", [True, False])
async def test_a_used_up_link_opens_nothing_new_where_its_maker_wanted_that(
    autojump_clock: trio.testing.MockClock, nodes: list[Node], tmp_path: Path, renews: bool
) -> None:
    alice, bob, carol = nodes
    repo, main = alice.create_repo()
    link = await invite(alice, tmp_path, renews=renews)
    await join(bob, link)
    await settle(alice, bob)
    assert alice.replica.members(repo)[bob.author.user] is Permission.WRITE
    assert (epoch(alice, repo) != link.epoch) == renews
    assert epoch(bob, repo) == epoch(alice, repo)  # who joined by it is a member, and gets the new secrets
    renewed = epoch(alice, repo)
    alice.write(main, "after")
    await settle(alice, bob)
    assert bob.digest(bob.branch()) == alice.digest(main)
    assert epoch(alice, repo) == renewed  # once
    await join(carol, link)  # which is used up
    await settle(alice, carol)
    assert (find_absence(carol.replica, carol.repo(), carol.author.user).behind_since is not None) == renews
    assert (carol.digest(carol.branch()) == alice.digest(main)) != renews


@pytest.mark.slow
async def test_a_link_with_a_use_left_stays_until_it_is_revoked(
    autojump_clock: trio.testing.MockClock, nodes: list[Node], tmp_path: Path
) -> None:
    alice, bob, _ = nodes
    repo, _ = alice.create_repo()
    link = await invite(alice, tmp_path, uses=2)
    await join(bob, link)
    await settle(alice, bob)
    assert epoch(alice, repo) == link.epoch
    members = service_of(alice, tmp_path).people.members
    [view] = (await members.invitations("repo"))["invitations"]
    assert (view["renews"], view["revoked"]) == (True, False)
    await members.revoke_invitation("repo", id_text(link.invitation))
    await settle(alice, bob)
    assert epoch(alice, repo) == epoch(bob, repo) != link.epoch


@pytest.mark.slow
async def test_only_the_node_of_who_made_the_link_renews(
    autojump_clock: trio.testing.MockClock, nodes: list[Node], tmp_path: Path
) -> None:
    # Two who start epochs at once would leave some members with the one and some with the other.
    alice, bob, carol = nodes
    repo, _ = alice.create_repo()
    await join(bob, alice.invite(repo))
    await settle(alice, bob)
    await service_of(alice, tmp_path).people.members.grant("repo", id_text(bob.author.user), "admin")
    link = await invite(alice, tmp_path)
    await settle(alice, bob)
    await join(carol, link)
    await settle(bob, carol)  # alice is away
    assert bob.replica.members(bob.repo())[carol.author.user] is Permission.WRITE
    assert epoch(bob, repo) == link.epoch
    await settle(alice, bob, carol)
    assert epoch(alice, repo) == epoch(bob, repo) == epoch(carol, repo) != link.epoch
