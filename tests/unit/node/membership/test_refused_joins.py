"""Reasons of refused joins, by the rules' codes: the words of a rule are for people, and may change."""

from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from node.authoring.refusals import RefusedByRules
from node.membership import joining
from node.membership.sharing import Sharing
from node.runtime.errors import ServiceError
from protocol.formats.links import parse_invitation
from protocol.formats.text import id_text
from tests.support.machine import fail_after
from tests.support.nodes import connected, open_nodes
from tests.support.served import service_of


@pytest.mark.slow
@pytest.mark.parametrize(
    "fate, reason",
    [
        ("used", "it has been used up"),
        ("revoked", "it was revoked"),
        ("expired", "it has expired"),
    ],
)
async def test_who_joins_is_told_why_the_link_makes_no_member(
    autojump_clock: MockClock, tmp_path: Path, fate: str, reason: str
) -> None:
    with fail_after(120), open_nodes(tmp_path, "alice", "bob", "carol") as (alice, bob, carol):
        repo, _ = alice.create_repo()
        service = service_of(alice, tmp_path)
        made = await service.people.invite("repo", "write", 3600, 1, "machine", False)
        link = parse_invitation(made["invitation"])
        if fate == "used":
            await carol.joiner.begin(link)
            async with connected(carol, alice):
                await trio.sleep(10)
        if fate == "revoked":
            await service.people.members.revoke_invitation("repo", id_text(link.invitation))
        if fate == "expired":
            bob.hub.clock_ms = lambda: link.expires_at
            bob.author.writer.clock_ms = lambda: link.expires_at
        await bob.joiner.begin(link)
        async with connected(bob, alice):
            await trio.sleep(10)
        assert bob.joiner.refused[repo.repo_id] == reason


@pytest.mark.slow
async def test_a_link_that_makes_no_member_leaves_something_here_only_where_that_is_wanted(
    autojump_clock: MockClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def reach(*_: object) -> None:
        """Dial nobody: the two are connected."""

    monkeypatch.setattr(Sharing, "_reach", reach)
    with fail_after(120), open_nodes(tmp_path, "alice", "bob", "carol") as (alice, bob, carol):
        alice.create_repo()
        inviting = service_of(alice, tmp_path).people
        link = (await inviting.invite("repo", "write", 3600, 1, "machine", False))["invitation"]
        await inviting.members.revoke_invitation("repo", id_text(parse_invitation(link).invitation))
        sharing_of_bob, sharing_of_carol = (service_of(one, tmp_path).people.sharing for one in (bob, carol))
        async with connected(bob, alice), connected(carol, alice):
            with pytest.raises(ServiceError, match="makes you no member: it was revoked") as caught:
                await sharing_of_bob.join(link)
            assert "--follow" in caught.value.advice
            assert not bob.replica.repos
            await sharing_of_carol.join(link, follow=True)
            with pytest.raises(ServiceError, match="makes you no member"):
                await sharing_of_carol.join(link)
            assert carol.replica.repos, "it was followed before"
        async with connected(bob, alice):
            began = trio.current_time()
            await sharing_of_bob.join(link, follow=True)
            assert bob.joiner.refused
            assert trio.current_time() - began < 5, "it wrote nothing there, and waits for no feed"


def test_the_words_of_a_rule_decide_nothing() -> None:
    error = RefusedByRules("not_permitted", "the rules refuse it: reworded", "", "invitation_expired")
    assert joining._why_refused(error) == "it has expired"
