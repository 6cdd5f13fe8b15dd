"""List of a repo's epochs, and epochs started by hand."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from trio.testing import MockClock

from node.runtime.errors import ServiceError
from protocol.formats.body import Permission, Remove
from protocol.formats.text import id_text
from ravel.types.repos import EpochView
from tests.support.machine import fail_after
from tests.support.nodes import Node, open_nodes, renewing_of, share, together


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[list[Node]]:
    with open_nodes(tmp_path, "alice", "bob") as opened:
        yield opened


async def _epochs(node: Node) -> list[EpochView]:
    return (await renewing_of(node).list_epochs(""))["epochs"]


def _marks(view: EpochView) -> tuple[bool, bool, bool, bool, bool]:
    return view["counts"], view["tip"], view["clean"], view["open"], view["current"]


@pytest.mark.slow
async def test_epochs_are_listed_with_who_may_read_them_and_whether_they_are_clean(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob = nodes
    with fail_after(120):
        await share(alice, bob)
        (founding,) = await _epochs(alice)
        assert (founding["readers"], founding["follows"]) == (0, [])
        assert founding["author"] == id_text(alice.author.user)
        assert _marks(founding) == (True, True, True, True, True)
        answer = await renewing_of(alice).renew("")
        assert answer["epoch"] == id_text(alice.epoch().epoch_id)
        before, after = await _epochs(alice)
        assert _marks(before) == (True, False, False, True, False)
        assert (after["epoch"], after["follows"], after["readers"]) == (
            answer["epoch"],
            [before["epoch"]],
            2,
        )
        assert _marks(after) == (True, True, True, True, True)
        await together(alice, bob)
        root = alice.replica.root_branch(alice.repo())
        alice.hub.announce(alice.author.write(root, Remove(bob.author.user, None, ()))[1])
        *_, after = await _epochs(alice)
        assert _marks(after) == (True, True, False, True, True), "bob holds it"


@pytest.mark.slow
async def test_a_fresh_key_is_followed_by_an_epoch_of_an_admin_and_waits_for_one_elsewhere(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob = nodes
    with fail_after(120):
        await share(alice, bob, permission=Permission.WRITE)
        answer = await renewing_of(bob).refresh("")
        assert answer["epoch"] is None
        assert answer["repo"] == id_text(bob.repo().repo_id)
        await together(alice, bob)
        assert len(await _epochs(alice)) == 1
        answer = await renewing_of(alice).refresh("")
        assert answer["epoch"] == id_text(alice.epoch().epoch_id)
        await together(alice, bob)
        assert bob.epoch().epoch_id == alice.epoch().epoch_id, "both opened it with what they had stated"
        assert len(await _epochs(bob)) == 2


@pytest.mark.slow
async def test_who_may_not_start_an_epoch_is_told(nodes: list[Node], autojump_clock: MockClock) -> None:
    alice, bob = nodes
    with fail_after(120):
        await share(alice, bob, permission=Permission.WRITE)
        with pytest.raises(ServiceError, match="M9") as refused:
            await renewing_of(bob).renew("")
        assert refused.value.code == "not_permitted"
        assert len(await _epochs(bob)) == 1
