"""Branches that are followed by themselves: a link opens one branch, and after a renewal the past alone."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import trio
from msgspec.structs import replace
from sqlalchemy import insert
from trio.testing import MockClock

from node.authoring.author import Author
from node.ingest.replica import load_blocks_of, open_stored
from node.membership.sharing import Sharing
from node.network.network import Network
from node.network.own_addresses import OwnAddresses
from node.network.peers import Peers
from node.runtime.errors import ServiceError
from node.timelines.why import explain, list_voids
from protocol.codec import DecodeError, encode
from protocol.formats.body import BranchLink, Permission
from protocol.formats.content import Post
from protocol.formats.links import BranchCapability, branch_capability_text, parse_branch_capability
from protocol.formats.text import id_text
from protocol.ids import BranchId
from storage.commits.commits import load_timeline
from storage.repos.deletion import forget_repo
from storage.schema.schema import branches, commits, files, repos, sequences
from tests.support.machine import fail_after
from tests.support.nodes import (
    Node,
    connected,
    ids,
    meet,
    members_of,
    open_nodes,
    renewing_of,
    share,
    together,
)


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[list[Node]]:
    with open_nodes(tmp_path, "alice", "bob", "carol") as opened:
        yield opened


def _sharing(node: Node) -> Sharing:
    network = Network(node.hub, node.seed, lambda: 0.0)
    peers = Peers(node.hub, network, node.key)
    addresses = OwnAddresses("host:7474")
    return Sharing(node.hub, network, peers, node.author, node.joiner, addresses=addresses, clock=lambda: 0.0)


async def _link(node: Node) -> BranchCapability:
    return parse_branch_capability((await _sharing(node).branch_capability(node.branch()))["capability"])


def _stated(node: Node) -> list[BranchId]:
    """Branches to which links were made, once for each time that this was stated."""
    root = node.replica.root_branch(node.repo())
    with node.replica.database.read() as connection:
        rows = load_timeline(connection, root.num, 0, 1000)
        blocks = load_blocks_of(connection, rows)
        bodies = [open_stored(node.replica, row, blocks[row.num])[1] for row in rows]
    return [body.branch for body in bodies if isinstance(body, BranchLink)]


@pytest.mark.slow
async def test_a_link_opens_one_branch_and_tells_nothing_of_others_or_of_members(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob, carol = nodes
    with fail_after(120):
        await share(alice, bob)
        alice.hub.announce(alice.author.founding.create_branch(alice.repo(), "private")[1])
        alice.write(alice.branch("private"), "not for carol")
        alice.write(alice.branch(), "for carol too")
        link = await _link(alice)
        assert "secret" not in repr(link)
        for secret in (alice.epoch().key, alice.epoch().writers_secret):
            assert secret is not None
            assert encode(link).find(secret) < 0
        await carol.joiner.follow_branch(link)
        await meet(alice, carol)
        assert ids(carol) == ids(alice)
        assert [branch.name for branch in carol.replica.branches.values()] == ["main"]
        assert carol.replica.members(carol.repo()) == {}
        assert list(carol.replica.tables.epochs) == []
        async with connected(carol, alice):
            alice.write(alice.branch(), "as it is written")
            bob_author = Author(alice.replica, bob.user_seed, lambda: 1_800_000_000_000)
            bob_author.write(alice.branch(), Post("by bob"))
            await trio.sleep(5)
        await meet(alice, carol)
        assert ids(carol) == ids(alice)
        assert len(ids(carol)) == 4
        verdict = explain(carol.replica, ids(carol)[1])
        assert (verdict["verdict"], verdict["rule"]) == ("accepted", "V7")
        assert list_voids(carol.replica, carol.branch()) == []
        with pytest.raises(ServiceError, match="may read it only"):
            carol.write(carol.branch(), "may I?")


@pytest.mark.slow
async def test_a_link_ends_with_the_epoch_and_members_go_on(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob, carol = nodes
    with fail_after(120):
        await share(alice, bob)
        alice.write(alice.branch(), "before")
        await carol.joiner.follow_branch(await _link(alice))
        await meet(alice, carol)
        for _ in range(2):
            await renewing_of(alice).renew("")
        alice.write(alice.branch(), "after")
        await together(alice, bob)
        bob.write(bob.branch(), "and on")
        await together(alice, bob)
        assert ids(alice) == ids(bob)
        assert len(ids(alice)) == 4
        await meet(carol, alice)
        await meet(carol, bob)
        assert len(ids(carol)) == 2, "the old link opens the past"
        await carol.joiner.follow_branch(await _link(alice))
        await meet(carol, alice)
        assert ids(carol) == ids(alice), "a new one all of it"


@pytest.mark.slow
async def test_the_first_link_states_the_topic_once_for_all_writers(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    # Whoever holds the writers' secret serves who follows by a link, and makes the same link; also of later epochs.
    alice, bob, carol = nodes
    with fail_after(120):
        await share(alice, bob)
        alice.hub.announce(alice.author.founding.create_branch(alice.repo(), "private")[1])
        assert _stated(alice) == []
        link = await _link(alice)
        assert _stated(alice) == [alice.branch().branch_id]
        await _link(alice)
        assert _stated(alice) == [alice.branch().branch_id], "once"
        await together(alice, bob)
        assert (await _link(bob)).channels == link.channels
        assert _stated(bob) == [alice.branch().branch_id]
        await renewing_of(alice).renew("")
        await together(alice, bob)
        later = await _link(bob)
        assert (later.channels[1:], len(later.channels)) == (link.channels, 2)
        assert later.channels[0].epoch == bob.epoch().epoch_id
        await carol.joiner.follow_branch(later)
        bob.write(bob.branch(), "of the second epoch")
        await meet(carol, bob)
        assert ids(carol) == ids(bob)
        topics = {one.topic for one in carol.replica.topics.values()}
        assert topics == {one.topic for one in later.channels}, "nothing else is followed"


@pytest.mark.slow
async def test_a_reader_makes_no_links_and_states_nothing(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob, _ = nodes
    with fail_after(120):
        await share(alice, bob, permission=Permission.READ)
        with pytest.raises(ServiceError) as refused:
            await _link(bob)
        assert refused.value.code == "not_permitted"
        assert _stated(bob) == []
        await _link(alice)
        await together(alice, bob)
        with pytest.raises(ServiceError, match="not make links to it"):
            await _link(bob)
        root = alice.replica.root_branch(alice.repo())
        with pytest.raises(ServiceError, match="M2"):
            alice.author.write(root, BranchLink(BranchId(b"x" * 32)))


@pytest.mark.slow
async def test_an_exclusion_ends_what_a_link_opens_too(nodes: list[Node], autojump_clock: MockClock) -> None:
    alice, bob, carol = nodes
    with fail_after(120):
        await share(alice, bob)
        await carol.joiner.follow_branch(await _link(alice))
        await members_of(alice).remove("", id_text(bob.author.user), "")
        alice.write(alice.branch(), "unseen by both")
        await meet(carol, alice)
        assert len(ids(carol)) == 1
        await carol.joiner.follow_branch(await _link(alice))
        await meet(carol, alice)
        assert ids(carol) == ids(alice)
        carol.replica.close()
        carol.open()
        assert ids(carol) == ids(alice), "all of it is opened again after a restart"


@pytest.mark.slow
async def test_the_whole_repo_takes_the_place_of_a_branch_that_was_followed_by_itself(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, _, carol = nodes
    with fail_after(120):
        alice.create_repo()
        alice.write(alice.branch(), "one")
        sharing = _sharing(alice)
        link = (await sharing.branch_capability(alice.branch()))["capability"]
        with pytest.raises(ServiceError, match="whole repo"):
            await sharing.follow(link)
        await carol.joiner.follow_branch(parse_branch_capability(link))
        await meet(carol, alice)
        assert len(ids(carol)) == 2
        await carol.joiner.begin(alice.invite(alice.repo()))
        await together(alice, carol)
        assert ids(carol) == ids(alice)
        assert carol.replica.permission(carol.repo(), carol.author.user) is Permission.WRITE


@pytest.mark.slow
async def test_a_link_that_lies_about_its_repo_stands_in_nobodys_way(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    """Mallory's links name alice's branch with another init, another repo, and her root branch."""
    alice, _, carol = nodes
    with fail_after(120):
        repo, branch = alice.create_repo()
        alice.write(branch, "one")
        link = await _link(alice)
        false = b"f" * 32
        for lie in (
            replace(link, init=false),
            replace(link, repo=false),
            replace(link, branch=repo.repo_id),
        ):
            with suppress(ServiceError):
                await carol.joiner.follow_branch(lie)
            if carol.replica.repos:
                await meet(carol, alice)
        await carol.joiner.begin(alice.invite(repo))
        await together(alice, carol)
        assert ids(carol) == ids(alice)
        with pytest.raises(DecodeError):
            parse_branch_capability(branch_capability_text(replace(link, branch=repo.repo_id)))


def test_numbers_that_were_forgotten_are_not_given_again(nodes: list[Node]) -> None:
    carol = nodes[-1]
    with carol.replica.database.write() as connection:
        connection.execute(
            insert(repos).values(num=1, repo_id=b"r", name="", init_id=b"", init_key=b"", epoch_num=0)
        )
        connection.execute(
            insert(branches).values(num=1, repo_num=1, branch_id=b"b", name="", root_id=b"", commit_count=0)
        )
        connection.execute(insert(sequences).values(name="commits", last=3))
        file = {"branch_num": 1, "commit_num": 1, "object_id": b"o" * 32, "object_key": b"", "name": ""}
        connection.execute(insert(files).values(num=7, **file))
        forget_repo(connection, 1)
    carol.replica.close()
    carol.open()
    with carol.replica.database.write() as connection:
        assert carol.replica.database.next_nums(connection, commits, 1)[0] == 4
        assert carol.replica.database.next_nums(connection, files, 1)[0] == 8, "its mask would cover two keys"
