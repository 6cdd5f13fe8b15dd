"""Names of branches and commits: the same on every node, no matter who says something at the same time."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from trio.testing import MockClock

from node.api.targets import Targets
from node.membership.names import Names
from node.runtime.errors import ServiceError
from protocol.formats.body import Tag
from protocol.formats.text import id_text
from storage.commits.heads import load_heads
from tests.support.machine import fail_after
from tests.support.nodes import Node, connected, meet, members_of, open_nodes, share, together, until_equal


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[list[Node]]:
    with open_nodes(tmp_path, "alice", "bob") as opened:
        yield opened


def _names(node: Node) -> Names:
    return Names(node.hub, node.author, lambda _: node.repo(), lambda text: node.branch(text))


async def _share(alice: Node, bob: Node) -> None:
    """Bob may manage."""
    await share(alice, bob)
    await members_of(alice).grant("", id_text(bob.author.user), "manage")
    await together(alice, bob)


def _shown(node: Node) -> list[tuple[str, bool]]:
    return sorted((branch.name, branch.is_archived) for branch in node.replica.branches.values())


@pytest.mark.slow
async def test_concurrent_names_end_equal(nodes: list[Node], autojump_clock: MockClock) -> None:
    alice, bob = nodes
    with fail_after(60):
        await _share(alice, bob)
        await _names(alice).edit_branch("main", "drafts", archived=None)
        await _names(bob).edit_branch("main", "trunk", archived=True)
        await _names(bob).edit_branch("trunk", None, archived=False)
        assert _shown(alice) == [("drafts", False), ("root", False)]
        assert _shown(bob) == [("root", False), ("trunk", False)]
        async with connected(bob, alice):
            await until_equal(alice, bob, "root")
        assert _shown(alice) == _shown(bob)
        (agreed,) = {name for name, _ in _shown(alice)} - {"root"}
        await _names(alice).edit_branch(agreed, "main", archived=True)
        assert _shown(alice) == [("main", True), ("root", False)]


async def test_an_edit_that_changes_nothing_is_refused_and_writes_nothing(tmp_path: Path) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        before = alice.digest(alice.branch("root"))
        for name, archived in (("main", None), (None, False), ("main", False)):
            with pytest.raises(ServiceError, match="the branch 'main' is so already") as refused:
                await _names(alice).edit_branch("main", name, archived=archived)
            assert refused.value.code == "already_exists"
        assert alice.digest(alice.branch("root")) == before
        await _names(alice).edit_branch("main", "main", archived=True)
        assert _shown(alice) == [("main", True), ("root", False)]


@pytest.mark.slow
async def test_what_a_removed_member_named_is_forgotten(nodes: list[Node], autojump_clock: MockClock) -> None:
    alice, bob = nodes
    with fail_after(60):
        await _share(alice, bob)
        await _names(bob).edit_branch("main", "mine", archived=True)
        bob.hub.announce(bob.author.founding.create_branch(bob.repo(), "spam")[1])
        await members_of(alice).remove("", id_text(bob.author.user), "")
        await meet(bob, alice)
        assert _shown(alice) == _shown(bob) == [("main", False), ("root", False), ("spam", True)]


@pytest.mark.slow
async def test_tags_are_set_moved_and_taken_away(nodes: list[Node], autojump_clock: MockClock) -> None:
    alice, bob = nodes
    with fail_after(60):
        await _share(alice, bob)
        heads = []
        for text in ("one", "two"):
            alice.write(alice.branch(), text)
            with alice.replica.database.read() as connection:
                heads.append(id_text(load_heads(connection, alice.branch().num, 1)[0][0]))
        await _names(alice).set_tag("", "1.0", heads[0][:8])
        await _names(alice).set_tag("", "1.0", heads[1])
        await _names(alice).set_tag("", "old", heads[0])
        async with connected(bob, alice):
            await until_equal(alice, bob)
            await until_equal(alice, bob, "root")
        shown = (await _names(bob).list_tags(""))["tags"]
        assert [(tag["name"], tag["commit"]) for tag in shown] == [("1.0", heads[1]), ("old", heads[0])]
        await _names(bob).remove_tag("", "old")
        assert [tag["name"] for tag in (await _names(bob).list_tags(""))["tags"]] == ["1.0"]
        for bad in ("old", "never"):
            with pytest.raises(ServiceError, match=f"no tag is called '{bad}'") as caught:
                await _names(bob).remove_tag("", bad)
            assert caught.value.code == "not_found"
        root_head = id_text(bob.replica.membership(bob.repo().repo_id).operations.heads()[0])
        with pytest.raises(ServiceError, match="no commit is called"):
            await _names(bob).set_tag("", "x", root_head)


async def test_main_means_the_branch_that_it_points_at_and_the_earlier_one_stays_readable(
    tmp_path: Path,
) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        await _point_main(alice)
        alice.replica.close()
        alice.open()
        assert Targets(alice.replica, alice.author.user).branch("main").name == "main"


async def _point_main(alice: Node) -> None:
    repo, earlier = alice.create_repo()
    alice.author.founding.create_branch(repo, "v2")
    targets = Targets(alice.replica, alice.author.user)
    names = Names(alice.hub, alice.author, lambda _: alice.repo(), targets.branch)
    alice.write(earlier, "said before")
    assert targets.branch("main").num == earlier.num
    await names.point_main("v2")
    assert targets.branch("main").name == targets.branch("repo:main").name == "v2"
    assert targets.branch(id_text(earlier.branch_id)).commit_count == 2
    for branch, code in (("main", "already_exists"), ("v3", "not_found"), ("root", "not_found")):
        with pytest.raises(ServiceError) as caught:
            await names.point_main(branch)
        assert caught.value.code == code
    with pytest.raises(ServiceError, match="there is a branch called 'main'"):
        await names.edit_branch("v2", "main", archived=None)  # lists show the earlier one by it
    await names.edit_branch("v2", None, archived=True)
    assert targets.branch("main").num == earlier.num, "main leads to no archived branch"
    with pytest.raises(ServiceError, match="is archived"):
        await names.point_main("v2")
    with pytest.raises(ServiceError, match="ravel branch main"):
        await names.set_tag("", "main", id_text(alice.heads(earlier)[0]))


async def test_names_are_checked(nodes: list[Node], autojump_clock: MockClock) -> None:
    alice, _ = nodes
    with fail_after(60):
        repo, _ = alice.create_repo()
        alice.hub.announce(alice.author.founding.create_branch(repo, "other")[1])
        for name, code in (("a:b", "bad_request"), ("", "bad_request"), ("other", "already_exists")):
            with pytest.raises(ServiceError) as caught:
                await _names(alice).edit_branch("main", name, archived=None)
            assert caught.value.code == code
        with pytest.raises(ServiceError, match="RIGHT-TO-LEFT OVERRIDE"):
            await _names(alice).edit_branch("main", "right\u202eleft", archived=None)
        with pytest.raises(ServiceError, match="say a name"):
            await _names(alice).edit_branch("main", None, archived=None)


async def test_names_are_kept_composed_and_one_made_decomposed_elsewhere_is_the_same(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, _ = nodes
    composed, decomposed = "R\xe9sum\xe9", "Re\u0301sume\u0301"
    with fail_after(60):
        repo, _ = alice.create_repo()
        await _names(alice).edit_branch("main", decomposed, archived=None)
        assert _shown(alice) == [(composed, False), ("root", False)]
        alice.hub.announce(alice.author.founding.create_branch(repo, "other " + decomposed)[1])
        with pytest.raises(ServiceError) as caught:
            await _names(alice).edit_branch(composed, "other " + composed, archived=None)
        assert caught.value.code == "already_exists"
        branch = alice.branch(composed)
        alice.write(branch, "text")
        with alice.replica.database.read() as connection:
            head = load_heads(connection, branch.num, 1)[0][0]
        await _names(alice)._write_root(repo, Tag(decomposed, branch.branch_id, head))
        await _names(alice).set_tag("", composed, id_text(head))
        assert len((await _names(alice).list_tags(""))["tags"]) == 1
        await _names(alice).remove_tag("", composed)
        assert (await _names(alice).list_tags(""))["tags"] == []
