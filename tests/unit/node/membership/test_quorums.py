"""Checkpoints and removals that signers approve of, on whole nodes."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from trio.testing import MockClock

from node.membership.quorums import Quorums
from node.runtime.errors import ServiceError
from node.timelines.why import explain, list_voids
from protocol.formats.text import id_text
from storage.repos.repos import Branch
from tests.support.builders import give, publications_of
from tests.support.machine import fail_after
from tests.support.nodes import Node, ids, members_of, open_nodes, share, together


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[list[Node]]:
    with open_nodes(tmp_path, "alice", "bob", "carol") as opened:
        yield opened


def _quorums_of(node: Node) -> Quorums:
    return Quorums(node.hub, node.author, lambda _: node.repo(), lambda text: _branch(node, text))


def _branch(node: Node, text: str) -> Branch:
    return next(
        branch
        for branch in node.replica.branches.values()
        if text.rpartition(":")[2] in (branch.name, id_text(branch.branch_id))
    )


def _user(node: Node) -> str:
    return id_text(node.author.user)


async def _with_quorum(alice: Node, bob: Node, carol: Node, *, removals: bool = False) -> None:
    """Let Alice found the repo with bob and carol; two of the three must approve."""
    await share(alice, bob, carol)
    signers = [_user(node) for node in (alice, bob, carol)]
    await _quorums_of(alice).name("", signers, 2, removals=removals)
    await together(alice, bob, carol)


@pytest.mark.slow
async def test_a_checkpoint_is_made_by_the_last_signature_and_moves_what_is_beside_it(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob, carol = nodes
    with fail_after(120):
        await _with_quorum(alice, bob, carol)
        alice.write(alice.branch(), "first")
        await together(alice, bob)
        carol.write(carol.branch(), "beside")
        for text in ("second", "third"):
            alice.write(alice.branch(), text)
        proposed = await _quorums_of(alice).propose_checkpoint("main")
        assert proposed["checkpoint"] is None
        (shown,) = (await _quorums_of(alice).show(""))["proposals"]
        assert (shown["state"], shown["missing"], shown["approved_by"]) == ("open", 1, [_user(alice)])
        with pytest.raises(ServiceError, match="too few signers"):
            await _quorums_of(alice).finish("", proposed["proposal"])
        heads = alice.heads(alice.replica.root_branch(alice.repo()))
        assert await _quorums_of(alice).propose_checkpoint("main") == proposed
        assert await _quorums_of(alice).approve("", proposed["proposal"]) == proposed
        assert alice.heads(alice.replica.root_branch(alice.repo())) == heads, "it is so already"
        await together(alice, bob)
        made = await _quorums_of(bob).approve("", proposed["proposal"][:10])
        assert made["checkpoint"] == ids(bob)[-1]
        assert len(bob.heads(bob.branch())) == 1
        (shown,) = (await _quorums_of(bob).show(""))["proposals"]
        assert shown["state"] == "done"
        with pytest.raises(ServiceError, match="made already"):
            await _quorums_of(bob).finish("", proposed["proposal"])
        heads = bob.heads(bob.replica.root_branch(bob.repo()))
        assert await _quorums_of(bob).approve("", proposed["proposal"]) == made
        assert await _quorums_of(bob).propose_checkpoint("main") == made, "nothing came after it"
        assert bob.heads(bob.replica.root_branch(bob.repo())) == heads, "nothing was written"

        beside = ids(carol)[-1]
        await together(alice, bob, carol)
        assert ids(alice) == ids(bob) == ids(carol)
        order = ids(alice)
        assert order[-2:] == [made["checkpoint"], beside], "it is of a lower rank, and was written before"
        assert explain(alice.replica, str(made["checkpoint"]))["verdict"] == "accepted"
        alice.write(alice.branch(), "after")
        assert len(alice.heads(alice.branch())) == 1


@pytest.mark.slow
async def test_a_checkpoint_is_void_when_an_approval_falls_and_everything_takes_its_old_place(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob, carol = nodes
    with fail_after(120):
        await _with_quorum(alice, bob, carol)
        carol.write(carol.branch(), "beside")
        beside = ids(carol)[-1]
        for text in ("first", "second"):
            bob.write(bob.branch(), text)
        proposed = await _quorums_of(bob).propose_checkpoint("main")
        await members_of(alice).remove("", _user(bob), "")
        await together(bob, carol)
        made = await _quorums_of(carol).approve("", proposed["proposal"])
        assert ids(carol)[-2:] == [made["checkpoint"], beside]
        await together(alice, carol)
        assert ids(alice) == ids(carol)
        assert made["checkpoint"] not in ids(alice), (
            "what the excluded approved of is not approved by him any more"
        )
        assert ids(alice)[-1] == beside, "what bob wrote unseen is void, too"
        void = next(
            one for one in list_voids(carol.replica, carol.branch()) if one["commit"] == made["checkpoint"]
        )
        assert (void["rule"], void["author"]) == ("N4", _user(carol))
        assert explain(alice.replica, str(made["checkpoint"]))["reason"].startswith("too few")
        (shown,) = (await _quorums_of(alice).show(""))["proposals"]
        assert (shown["state"], shown["approved_by"]) == ("void", [_user(carol)])


@pytest.mark.slow
async def test_excluding_needs_the_signers_where_the_quorum_covers_it(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob, carol = nodes
    with fail_after(120):
        await _with_quorum(alice, bob, carol, removals=True)
        with pytest.raises(ServiceError, match="too few signers") as refused:
            await members_of(alice).remove("", _user(carol), "")
        assert "propose-removal" in refused.value.advice
        assert refused.value.code == "needs_quorum"
        with pytest.raises(
            ServiceError, match="too few signers"
        ) as refused:  # a writer may publish what they approve
            await members_of(carol).remove("", _user(bob), "")
        assert refused.value.code == "needs_quorum"
        with pytest.raises(ServiceError, match="not senior") as refused:
            await members_of(carol).remove("", _user(alice), "")
        assert refused.value.code == "not_permitted", "no approval mends that"
        proposed = await _quorums_of(alice).propose_removal("", _user(carol), "")
        await together(alice, bob)
        await _quorums_of(bob).approve("", proposed["proposal"])
        await together(alice, bob)
        await members_of(alice).remove("", _user(carol), "")
        await together(alice, bob)
        assert bob.replica.permission(bob.repo(), carol.author.user) is None
        (shown,) = (await _quorums_of(bob).show(""))["proposals"]
        assert (shown["kind"], shown["state"], shown["missing"]) == ("removal", "done", 0)


@pytest.mark.slow
async def test_nobody_signs_what_has_not_come(nodes: list[Node], autojump_clock: MockClock) -> None:
    alice, bob, carol = nodes
    with fail_after(120):
        await _with_quorum(alice, bob, carol)
        alice.write(alice.branch(), "not at bob's")
        proposed = await _quorums_of(alice).propose_checkpoint("main")
        give(bob.replica, publications_of(alice.replica, alice.replica.root_branch(alice.repo())))
        with pytest.raises(ServiceError, match="have not come") as refused:
            await _quorums_of(bob).approve("", proposed["proposal"])
        assert refused.value.code == "incomplete"


async def test_what_a_user_can_get_wrong_is_said(nodes: list[Node], autojump_clock: MockClock) -> None:
    alice, bob, carol = nodes
    with fail_after(120):
        await share(alice, bob)
        quorums = _quorums_of(alice)
        for signers, threshold, says in (
            ([_user(bob)], 2, "threshold"),
            ([_user(bob), _user(bob)], 2, "threshold"),
            ([_user(carol)], 1, "no member"),
            (["nobody"], 1, "no member is called"),
        ):
            with pytest.raises(ServiceError, match=says):
                await quorums.name("", signers, threshold, removals=False)
        proposed = await quorums.propose_checkpoint("main")
        with pytest.raises(ServiceError, match="M14"):
            await quorums.approve("", proposed["proposal"])
        with pytest.raises(ServiceError, match="M13"):
            await quorums.finish("", proposed["proposal"])
        with pytest.raises(ServiceError, match="no proposal is called"):
            await quorums.approve("", "nothing")
        with pytest.raises(ServiceError, match="permission is one of"):
            await quorums.propose_removal("", _user(bob), "king")
        with pytest.raises(ServiceError, match="holds no more"):
            await quorums.propose_removal("", _user(bob), "write")
        removal = await quorums.propose_removal("", _user(bob), "read")
        with pytest.raises(ServiceError, match="no proposal of a checkpoint"):
            await quorums.finish("", removal["proposal"])
