"""Membership checkpoints on whole nodes: who signs them, and who is told of a false one."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from node.authoring.writing import create_branch
from node.cli.repo_commands import list_checkpoints
from node.membership import member_checkpoints as member_checkpoints_node
from node.membership.member_checkpoints import (
    _COMPUTED_MAX,
    CHECKPOINTS_SHOWN_MAX,
    MemberCheckpoints,
    find_false_signers,
)
from node.observe.sentences import standing_sentence
from node.observe.standing_view import NO_OUTLOOK, RepoFacts, Unheld, describe_standing
from node.runtime.errors import ServiceError
from protocol.formats.body import MembersCheckpoint
from protocol.formats.text import id_text
from protocol.ids import Digest, PeerId
from ravel.types.peers import CalledPeer
from tests.support.machine import fail_after
from tests.support.nodes import Node, members_of, open_nodes, share, together
from verifier import member_checkpoints
from verifier.member_checkpoints import CheckpointStatements


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[list[Node]]:
    with open_nodes(tmp_path, "alice", "bob") as opened:
        yield opened


def _of(node: Node) -> MemberCheckpoints:
    return MemberCheckpoints(node.hub, node.author, lambda _: node.repo(), lambda _: node.branch())


async def _states(node: Node) -> list[tuple[str, str, bool]]:
    shown = (await _of(node).list_all(""))["checkpoints"]
    return [(one["author"], one["state"], one["admin"]) for one in shown]


def _lie(node: Node, number: int = 0) -> None:
    root = node.replica.root_branch(node.repo())
    body = MembersCheckpoint(Digest(number.to_bytes(32, "big")))
    node.hub.announce(node.author.write(root, body)[1])


@pytest.mark.slow
async def test_a_signature_is_true_on_other_nodes_and_a_lie_is_told_with_its_author(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob = nodes
    ann, ben = id_text(alice.author.user), id_text(bob.author.user)
    with fail_after(120):
        await share(alice, bob)
        await members_of(alice).grant("", ben, "admin")
        await together(alice, bob)
        await _of(bob).sign("")
        await together(alice, bob)
        assert await _states(alice) == [(ben, "true", True)]
        _lie(bob)
        await _of(alice).sign("")
        await together(alice, bob)
        for node in nodes:
            assert sorted(await _states(node)) == sorted(
                [(ann, "true", True), (ben, "false", True), (ben, "true", True)]
            )
            assert find_false_signers(node.replica, node.repo()) == ([bob.author.user], True)
        await members_of(alice).remove("", ben, "")
        assert (ben, "false", False) in await _states(alice), "it stays listed"
        assert find_false_signers(alice.replica, alice.repo()) == ([], True), "nobody is told of it for ever"
        alice.replica.close()
        alice.open()
        assert (ben, "false", False) in await _states(alice)


@pytest.mark.slow
async def test_signatures_that_are_asked_for_at_once_are_each_true_of_what_they_follow(
    nodes: list[Node],
) -> None:
    alice = nodes[0]
    repo, _ = alice.create_repo()
    signed: list[str] = []

    async def sign(name: str) -> None:
        await create_branch(alice.hub, alice.author, repo, name)
        signed.append((await _of(alice).sign(""))["commit"])

    async with trio.open_nursery() as nursery:
        for name in ("a", "b", "c", "d"):
            nursery.start_soon(sign, name)
    assert [state for _, state, _ in await _states(alice)] == ["true"] * len({*signed})


async def test_what_is_signed_already_is_not_signed_again_until_something_follows(nodes: list[Node]) -> None:
    alice = nodes[0]
    repo, _ = alice.create_repo()
    signed = await _of(alice).sign("")
    assert await _of(alice).sign("") == signed
    await create_branch(alice.hub, alice.author, repo, "draft")
    assert await _of(alice).sign("") != signed
    assert len(await _states(alice)) == 2


@pytest.mark.slow
async def test_who_is_no_admin_cannot_sign(nodes: list[Node], autojump_clock: MockClock) -> None:
    alice, bob = nodes
    with fail_after(120):
        await share(alice, bob)
        with pytest.raises(ServiceError, match="admin") as refused:
            await _of(bob).sign("")
        assert refused.value.code == "not_permitted"
        _lie(bob)
        assert await _states(bob) == []


@pytest.mark.slow
async def test_many_are_listed_as_far_as_the_bound_and_computed_a_few_at_a_time(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = nodes[0]
    alice.create_repo()
    monkeypatch.setattr(member_checkpoints, "CONSIDERED_MAX", CHECKPOINTS_SHOWN_MAX + 1)
    for number in range(CHECKPOINTS_SHOWN_MAX + 1):
        _lie(alice, number)
    shown = [state for _, state, _ in await _states(alice)]
    assert shown == ["false"] * _COMPUTED_MAX + ["unchecked"] * (CHECKPOINTS_SHOWN_MAX - _COMPUTED_MAX)
    while "unchecked" in [state for _, state, _ in await _states(alice)]:
        pass
    assert len(await _states(alice)) == CHECKPOINTS_SHOWN_MAX


@pytest.mark.slow
async def test_who_is_no_admin_any_more_keeps_no_false_checkpoint_out(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    alice, bob = nodes
    monkeypatch.setattr(member_checkpoints_node, "CHECKPOINTS_SHOWN_MAX", 1)
    with fail_after(120):
        await share(alice, bob)
        await members_of(alice).grant("", id_text(bob.author.user), "admin")
        await together(alice, bob)
        for number in range(_COMPUTED_MAX + 1):
            _lie(alice, number)
        await together(alice, bob)
        await _of(bob).sign("")
        await members_of(alice).remove("", id_text(bob.author.user), "")
    alice.replica.close()
    alice.open()
    computed: list[object] = []
    compare = CheckpointStatements.compare

    def note(self: CheckpointStatements, *given: Any) -> bool | None:  # noqa: ANN401  # as they are
        computed.append(given)
        return compare(self, *given)

    monkeypatch.setattr(CheckpointStatements, "compare", note)
    assert find_false_signers(alice.replica, alice.repo()) == ([alice.author.user], False)
    assert len(computed) == _COMPUTED_MAX
    assert find_false_signers(alice.replica, alice.repo()) == ([alice.author.user], True)
    assert len(computed) == _COMPUTED_MAX + 1, "bob's own are looked at where they are listed"


@pytest.mark.slow
async def test_the_command_prints_who_signed_when_and_whether_it_is_true(
    nodes: list[Node], capsys: pytest.CaptureFixture[str]
) -> None:
    alice = nodes[0]
    alice.create_repo()
    vars(list_checkpoints)["printer"](await _of(alice).list_all(""))
    assert "Nobody has signed" in capsys.readouterr().out
    await _of(alice).sign("")
    vars(list_checkpoints)["printer"](await _of(alice).list_all(""))
    [_, row] = capsys.readouterr().out.splitlines()
    assert row.split("\t")[2:] == ["2023-11-14 22:13 UTC", "true"]


def _nobody(_: PeerId) -> CalledPeer:
    return {"name": "", "owner": None}


def test_a_standing_names_who_signed_something_false() -> None:
    facts = RepoFacts(True, True, False, False, False, True, false_signers=("ben", "cat"))
    said = describe_standing(facts, NO_OUTLOOK, Unheld(), _nobody)
    assert {"code": "false_checkpoint", "people": ["ben", "cat"]} in said["parts"]
    assert "ben and cat signed other members than follow from what is here" in standing_sentence(said)
    alone = describe_standing(replace(facts, false_signers=()), NO_OUTLOOK, Unheld(), _nobody)
    assert "false_checkpoint" not in {one["code"] for one in alone["parts"]}
