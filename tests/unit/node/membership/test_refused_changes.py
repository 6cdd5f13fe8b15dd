"""Changes of members that would do nothing, or something else than they say, are refused with what to do instead."""

from pathlib import Path
from unittest.mock import Mock

import pytest

from node.authoring.refusals import refuse
from node.runtime.errors import ServiceError
from protocol.formats.text import id_text
from protocol.ids import PeerId, RepoId, UserId
from tests.support.nodes import members_of, open_nodes
from tests.support.sources import Source
from verifier.refusal import CommitRefused, Seniors


async def test_who_is_no_member_cannot_leave_once_more(tmp_path: Path) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo("garden")
        await members_of(alice).leave("", force=True)
        with pytest.raises(ServiceError, match="you are no member of garden") as caught:
            await members_of(alice).leave("", force=True)
        assert caught.value.code == "already_exists"


async def test_what_the_rules_say_comes_before_the_number_of_the_rule(tmp_path: Path) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        _, branch = alice.create_repo()
        await members_of(alice).leave("", force=True)
        with pytest.raises(ServiceError) as caught:
            alice.write(branch, "too late")
        assert caught.value.message == "the rules refuse it: the author may not write here (rule M5)"


async def test_the_id_of_a_connected_computer_is_made_no_member(tmp_path: Path) -> None:
    with open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        alice.create_repo()
        source = Source()
        source.peer = PeerId(bob.key)
        alice.hub.sources.append(source)
        with pytest.raises(ServiceError, match="id of a computer") as caught:
            await members_of(alice).grant("", id_text(bob.key), "write")
        assert caught.value.code == "bad_request"
        await members_of(alice).grant("", id_text(bob.author.user), "write")
        assert set(alice.replica.members(alice.repo())) == {alice.author.user, bob.author.user}


def test_a_senior_person_with_two_devices_is_named_once() -> None:
    desk, lap, cat = (UserId(bytes([one]) * 32) for one in range(3))
    names = Mock()
    names.name = lambda _, user: "Cat" if user == cat else "Ann K"
    verdict = CommitRefused("not_senior", "M7: not senior", Seniors(cat, (desk, lap)))
    assert refuse(names, RepoId(bytes(32)), desk, verdict).advice == "senior to Cat: Ann K; ask one of them"
