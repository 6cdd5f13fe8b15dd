"""Founders who together replace one of themselves, on whole nodes."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from trio.testing import MockClock

from node.membership.quorums import Quorums, _count_missing
from node.runtime.errors import ServiceError
from node.sync.addresses import AddressSource
from protocol.formats.body import Approve, DeviceGrant, Move, Permission, ProposeRemoval
from protocol.formats.text import id_text
from tests.support.machine import fail_after
from tests.support.memberships import USERS, commit_id
from tests.support.nodes import Node, connected, ids, meet, members_of, open_nodes, together, until_equal
from tests.support.served import served
from tests.unit.verifier.test_quorums import History, make_council


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[list[Node]]:
    with open_nodes(tmp_path, "alice", "bob", "carol") as opened:
        yield opened


def _quorums_of(node: Node) -> Quorums:
    return Quorums(node.hub, node.author, lambda _: node.repo(), lambda _: node.branch())


def _user(node: Node) -> str:
    return id_text(node.author.user)


async def _found(alice: Node, *others: Node) -> None:
    """Alice creates a repo that all of them found; two are the council. The others come by one link."""
    repo, _ = alice.create_repo(others=[one.author.user for one in others], council=2)
    link = alice.invite(repo)
    for other in others:
        await other.joiner.begin(link)
        async with connected(other, alice):
            await until_equal(alice, other)
            await until_equal(alice, other, "root")


@pytest.mark.slow
async def test_two_founders_exclude_the_third_who_reads_and_appoints_nobody_any_more(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob, carol = nodes
    with fail_after(120):
        await _found(alice, bob, carol)
        held = bob.replica.members(bob.repo())
        assert held == dict.fromkeys(sorted(node.author.user for node in nodes), Permission.OWNER)
        with pytest.raises(ServiceError, match="too few of the council") as refused:
            await members_of(bob).remove("", _user(alice), "")
        assert refused.value.code == "needs_quorum"
        assert "propose-removal" in refused.value.advice
        proposed = await _quorums_of(bob).propose_removal("", _user(alice), "")
        (shown,) = (await _quorums_of(bob).show(""))["proposals"]
        assert (shown["state"], shown["missing"], shown["approved_by"]) == ("open", 1, [_user(bob)])
        await together(bob, carol)
        await _quorums_of(carol).approve("", proposed["proposal"])
        (shown,) = (await _quorums_of(carol).show(""))["proposals"]
        assert (shown["state"], shown["missing"]) == ("approved", 0)

        before = alice.epoch().epoch_id
        alice.write(alice.branch(), "unseen")
        unseen = ids(alice)[-1]
        stranger = id_text(alice.key)  # any key
        await members_of(alice).grant("", stranger, "owner")
        await members_of(carol).remove("", _user(alice), "")
        assert carol.epoch().epoch_id != before, "a new epoch has begun"
        await meet(carol, alice)
        await together(carol, bob)
        carol.write(carol.branch(), "after")
        assert await _rights(alice) == await _rights(bob) == await _rights(carol)
        assert (await _rights(bob)).keys() == {_user(bob), _user(carol)}, (
            "nor did whom alice appointed become one"
        )
        assert carol.epoch().epoch_id not in alice.replica.tables.held_epochs(alice.repo().num)
        council = (await _quorums_of(bob).show(""))["council"]
        assert council is not None
        assert (council["threshold"], sorted(council["signers"])) == (2, sorted([_user(bob), _user(carol)]))
        assert unseen not in ids(carol), "what alice wrote unseen is void"


async def _rights(node: Node) -> dict[str, str]:
    members = (await members_of(node).list_all(""))["members"]
    return {one["user"]: one["permission"] for one in members}


def test_what_is_missing_is_counted_by_founders_places() -> None:
    history = History(make_council())
    history.do("ann", DeviceGrant(USERS["tab"], Permission.READ), 0)
    history.do("ben", DeviceGrant(USERS["tab"], Permission.READ), 0)
    moves = [
        history.do(name, Move(USERS["tab"], commit_id(0)), lent) for lent, name in ((1, "ann"), (2, "ben"))
    ]
    proposal = history.do("cat", ProposeRemoval(USERS["cat"], None), *moves)
    proposed = history.membership.operations[commit_id(proposal)]
    assert _count_missing(history.membership, proposed) == 2
    history.do("tab", Approve(commit_id(proposal)))
    assert _count_missing(history.membership, proposed) == 0


async def test_who_founds_and_how_many_sign_is_asked_for_rightly(tmp_path: Path, nodes: list[Node]) -> None:
    _, bob, carol = nodes
    async with served(tmp_path / "served") as one:

        async def create(name: str, **values: object) -> tuple[int, str]:
            answer = await one.client.post("/api/v1/repos", json={"name": name, **values})
            return answer.status_code, answer.json().get("error", {}).get("message", "")

        others = [_user(bob), _user(carol), _user(bob)]
        for council, count in ((1, 3), (4, 3), (65, 3)):
            status, message = await create("refused", founders=others, council=council)
            assert status == 400, (council, count, message)
        assert await create("refused", council=2) == (
            400,
            "2 of 1 founders are no council: it is more than half of them, and at most all",
        )
        assert "no user's id" in (await create("refused", founders=["bob"]))[1]
        computers = (one.node.key, bob.key)
        network = one.service.branches.repos._network
        network.inbound.append(network.new_state(bob.key, "", "in", "connected", AddressSource.INCOMING))
        for key in computers:
            assert "the id of a computer" in (await create("refused", founders=[id_text(key)]))[1]
        assert await create("three", founders=others, council=2) == (200, "")
        assert await create("two owners", founders=others[:1]) == (200, "")
        (shown,) = [repo for repo in one.node.replica.repos.values() if repo.name == "three"]
        assert len(one.node.replica.members(shown)) == 3
        state = (await one.client.get("/api/v1/repos/three/quorum")).json()
        assert state["council"]["threshold"] == 2
        assert (await one.client.get("/api/v1/repos/two owners/quorum")).json()["council"] is None
