"""Branches that fork from others and are merged back."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from node.authoring.drafting import Draft
from node.authoring.writing import create_branch, create_repo, write_commit
from node.content.files import FileService
from node.content.merging import MergePlan, Merging, run_merge
from node.runtime.errors import ServiceError
from node.sync.hub import Hub
from protocol.formats.body import Tag
from protocol.formats.content import Post
from protocol.formats.text import id_text
from storage.repos.repos import Branch
from tests.support.machine import fail_after
from tests.support.nodes import Node, connected, ids, members_of, open_nodes, share, together, until_equal


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[list[Node]]:
    with open_nodes(tmp_path, "alice", "bob") as opened:
        yield opened


def _merging(node: Node) -> Merging:
    return Merging(node.hub, node.author, lambda name: node.branch(name))


async def _texts(node: Node, branch: str) -> list[str]:
    """Return the texts of the whole state."""
    return [item["text"] for item in (await _merging(node).state(branch, 1000))["items"] if item["text"]]


@pytest.mark.slow
async def test_a_fork_continues_a_commit_and_is_merged_back_once(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob = nodes
    with fail_after(120):
        await share(alice, bob)
        for text in ("one", "two", "three"):
            alice.write(alice.branch(), text)
        fork = await _merging(alice).fork("main", "draft", ids(alice)[2])
        assert await _texts(alice, "draft") == ["one", "two"]
        alice.write(fork, "instead of three")
        alice.write(alice.branch("draft"), "and four")
        assert await _texts(alice, "draft") == ["one", "two", "instead of three", "and four"]
        await together(alice, bob)
        async with connected(alice, bob):
            await until_equal(alice, bob, "draft")
        merged = await _merging(bob).merge("draft", "main")
        assert merged["carried"] == 2
        shown = await _texts(bob, "main")
        assert sorted(shown) == ["and four", "instead of three", "one", "three", "two"]
        assert shown[:2] == ["one", "two"], "what was carried follows what it continues"
        assert shown.index("instead of three") < shown.index("and four")
        assert len(bob.heads(bob.branch())) == 1
        assert (await _merging(bob).merge("draft", "main"))["commit"] is None, "nothing is carried twice"
        items = (await _merging(bob).state("main", 1000))["items"]
        origin = next(item["origin"] for item in items if item["text"] == "and four")
        assert origin["author"] == id_text(alice.author.user)
        assert origin["branch"] == id_text(fork.branch_id)
        await together(alice, bob)
        assert ids(alice) == ids(bob)


async def test_a_merge_is_in_no_group_that_would_be_written_again(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, _ = nodes
    alice.create_repo()
    alice.write(alice.branch(), "base")
    fork = await _merging(alice).fork("main", "draft", "")
    alice.write(fork, "one")

    async def group(_hub: Hub, *_arguments: object) -> None:
        raise AssertionError("where another request of the group fails, a plan would run twice")

    monkeypatch.setattr(Hub, "write_grouped", group)
    assert (await _merging(alice).merge("draft", "main"))["carried"] == 1
    assert await _texts(alice, "main") == ["base", "one"]


@pytest.mark.slow
async def test_both_ways_and_between_siblings_only_what_is_new_is_carried(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, _ = nodes
    with fail_after(120):
        alice.create_repo()
        alice.write(alice.branch(), "base")
        left = await _merging(alice).fork("main", "left", "")
        right = await _merging(alice).fork("main", "right", "")
        alice.write(left, "of the left")
        alice.write(right, "of the right")
        alice.write(alice.branch(), "of the trunk")
        assert (await _merging(alice).merge("main", "left"))["carried"] == 1
        assert sorted(await _texts(alice, "left")) == ["base", "of the left", "of the trunk"]
        assert (await _merging(alice).merge("left", "main"))["carried"] == 1, "its own does not come back"
        assert (await _merging(alice).merge("left", "right"))["carried"] == 2
        assert (await _merging(alice).merge("right", "main"))["carried"] == 1
        assert (await _merging(alice).merge("main", "right"))["commit"] is None
        for name in ("main", "right"):
            assert sorted(await _texts(alice, name)) == [
                "base",
                "of the left",
                "of the right",
                "of the trunk",
            ]
        inner = await _merging(alice).fork("right", "inner", "")
        alice.write(inner, "of the inner")
        assert (await _merging(alice).merge("inner", "main"))["carried"] == 1


@pytest.mark.slow
async def test_what_was_carried_already_is_known_to_forks_of_the_repo(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, _ = nodes
    with fail_after(120):
        repo, _ = alice.create_repo()
        fork = await _merging(alice).fork("main", "draft", "")
        alice.write(fork, "in the draft")
        await _merging(alice).merge("draft", "main")
        main = alice.branch()
        await _merging(alice).fork_repo(repo, "mine")
        (copy,) = [
            one for one in alice.replica.branches.values() if one.name == "main" and one.num != main.num
        ]
        for source, target in ((copy, main), (main, copy)):
            merge = MergePlan(alice.replica, source, target)
            with alice.replica.database.read() as connection:
                assert merge.plan(connection) == [], "it is all there"


def _branch_of(node: Node, repo: str, name: str = "main") -> Branch:
    return next(
        one
        for one in node.replica.branches.values()
        if (node.replica.repos[one.repo_num].name, one.name) == (repo, name)
    )


@pytest.mark.slow
@pytest.mark.parametrize("points_at", ["main", "v2"])
async def test_main_of_a_fork_continues_what_main_means_in_the_repo(
    nodes: list[Node], autojump_clock: MockClock, points_at: str
) -> None:
    alice, _ = nodes
    with fail_after(120):
        repo, _ = alice.create_repo()
        v2 = await create_branch(alice.hub, alice.author, repo, "v2")
        if points_at == "v2":
            pointed = Tag("main", v2.branch_id, v2.facts.root_id)
            await write_commit(alice.hub, alice.author, alice.replica.root_branch(repo), pointed)
        made = await _merging(alice).fork_repo(repo, "mine")
        copies = [
            one for one in alice.replica.branches.values() if id_text(one.branch_id) in str(made["branches"])
        ]
        assert {one.name: one.is_main for one in copies} == {
            name: name == points_at for name in ("main", "v2")
        }


class _Cut(Exception):
    """A stop of the node, in place of a write."""


@pytest.mark.slow
@pytest.mark.parametrize("done", range(6))
async def test_a_fork_of_a_repo_that_was_cut_short_is_finished_by_the_next_call(
    nodes: list[Node], autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, done: int
) -> None:
    alice, _ = nodes
    left = done

    def cut(real: Callable[..., Awaitable[object]]) -> Callable[..., Awaitable[object]]:
        async def write(*arguments: object) -> object:
            nonlocal left
            left -= 1
            if left < 0:
                raise _Cut
            return await real(*arguments)

        return write

    with fail_after(120):
        repo, _ = alice.create_repo()
        v2 = await create_branch(alice.hub, alice.author, repo, "v2")
        pointed = Tag("main", v2.branch_id, v2.facts.root_id)
        await write_commit(alice.hub, alice.author, alice.replica.root_branch(repo), pointed)
        alice.write(_branch_of(alice, "repo"), "one")
        alice.write(_branch_of(alice, "repo", "v2"), "two")
        with monkeypatch.context() as patched:
            for name in ("write", "write_grouped"):
                patched.setattr(alice.hub, name, cut(getattr(alice.hub, name)))
            with pytest.raises(_Cut):
                await _merging(alice).fork_repo(repo, "mine")
        made = await _merging(alice).fork_repo(repo, "mine")
        assert len(made["branches"]) == 2
        assert [one.name for one in alice.replica.repos.values()].count("mine") == 1
        mine = {
            one.name: one
            for one in alice.replica.branches.values()
            if id_text(one.branch_id) in str(made["branches"])
        }
        assert {one.name: one.is_main for one in mine.values()} == {"main": False, "v2": True}
        in_fork = Merging(alice.hub, alice.author, partial(_branch_of, alice, "mine"))
        for name, text in (("main", "one"), ("v2", "two")):
            items = (await in_fork.state(name, 10))["items"]
            assert [item["text"] for item in items if item["text"]] == [text]
        with pytest.raises(ServiceError, match="there is a repo called"):
            await _merging(alice).fork_repo(repo, "mine")


async def test_two_forks_of_a_repo_at_once_make_one(
    nodes: list[Node], autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, _ = nodes
    refused: list[str] = []
    with fail_after(60):
        repo, _ = alice.create_repo()
        await create_branch(alice.hub, alice.author, repo, "v2")
        merging = _merging(alice)
        merge = merging._merge

        async def merge_later(source: Branch, target: Branch, *, begins_fork: bool = False) -> object:
            await trio.sleep(1)
            return await merge(source, target, begins_fork=begins_fork)

        monkeypatch.setattr(merging, "_merge", merge_later)

        async def fork(seconds: float) -> None:
            await trio.sleep(seconds)
            try:
                await merging.fork_repo(repo, "mine")
            except ServiceError as error:
                refused.append(error.code)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(fork, 0)
            nursery.start_soon(fork, 0.5)
        [mine] = [one for one in alice.replica.repos.values() if one.name == "mine"]
        names = [one.name for one in alice.replica.branches_in(mine.num) if not one.facts.is_root_branch]
        assert (sorted(names), refused) == (["main", "v2"], ["already_exists"])


async def test_a_repo_in_which_something_was_written_is_no_fork_that_was_cut_short(nodes: list[Node]) -> None:
    alice, _ = nodes
    repo, _ = alice.create_repo()
    await create_repo(alice.hub, alice.author, "mine", "main")
    alice.write(_branch_of(alice, "mine"), "of its own")
    with pytest.raises(ServiceError, match="there is a repo called"):
        await _merging(alice).fork_repo(repo, "mine")


@pytest.mark.slow
async def test_a_fork_of_a_repo_that_has_only_files_is_merged_back(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, _ = nodes
    with fail_after(120):
        repo, _ = alice.create_repo()
        await FileService(alice.hub, alice.author, alice.branch).add("main", "plan", _stream(b"step one"))
        await _merging(alice).fork("main", "draft", "")
        made = await _merging(alice).fork_repo(repo, "mine")
        assert made["files_left"] == ["plan", "plan"], "of main, and of draft, which continues it"
        assert [one["carried"] for one in made["branches"]] == [0, 0]
        alice.write(_branch_of(alice, "mine"), "better")
        merge = MergePlan(alice.replica, _branch_of(alice, "mine"), _branch_of(alice, "repo"))
        merged = await run_merge(alice.hub, alice.author, merge)
        assert (merged["carried"], merged["files_left"]) == (1, [])
        assert "better" in await _texts(alice, "main")
        alice.write(_branch_of(alice, "mine", "draft"), "better still")
        merge = MergePlan(alice.replica, _branch_of(alice, "mine", "draft"), _branch_of(alice, "repo"))
        assert (await run_merge(alice.hub, alice.author, merge))["carried"] == 1, "of a fork in the repo"
        alice.write(_branch_of(alice, "repo"), "meanwhile")
        merge = MergePlan(alice.replica, _branch_of(alice, "repo"), _branch_of(alice, "mine"))
        assert (await run_merge(alice.hub, alice.author, merge))["carried"] == 2, "the other way round"


@pytest.mark.slow
async def test_a_merge_within_a_repo_makes_it_no_fork_of_another(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, _ = nodes
    with fail_after(120):
        alice.create_repo()
        alice.create_repo("other")
        merging = Merging(alice.hub, alice.author, lambda name: _branch_of(alice, "other", name))
        alice.write(await merging.fork("main", "draft", ""), "of the draft")
        await merging.merge("draft", "main")
        with (
            alice.replica.database.read() as connection,
            pytest.raises(ServiceError, match="no common ancestor"),
        ):
            MergePlan(alice.replica, _branch_of(alice, "other"), _branch_of(alice, "repo")).plan(connection)


async def test_branches_without_a_common_ancestor_are_not_merged(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, _ = nodes
    with fail_after(120):
        repo, _ = alice.create_repo()
        alice.hub.announce(alice.author.founding.create_branch(repo, "other")[1])
        with pytest.raises(ServiceError, match="no common ancestor"):
            await _merging(alice).merge("other", "main")
        with pytest.raises(ServiceError, match="no commit is called"):
            await _merging(alice).fork("other", "fork", ids(alice)[0])


async def test_the_shape_of_the_source_is_kept(nodes: list[Node], autojump_clock: MockClock) -> None:
    alice, _ = nodes
    with fail_after(120):
        alice.create_repo()
        fork = await _merging(alice).fork("main", "fork", "")
        root = fork.facts.root_id
        drafts = [
            Draft(Post("a"), (root,)),
            Draft(Post("b"), (root,)),
            Draft(Post("c"), (0, 1)),
            Draft(Post("d"), (0,)),
        ]
        alice.author.write_many(fork, drafts)
        await _merging(alice).merge("fork", "main")
        items = {
            item["text"] or item["kind"]: item for item in (await _merging(alice).state("main", 100))["items"]
        }
        acks = {
            text: sorted(other for other, shown in items.items() if shown["commit"] in item["acks"])
            for text, item in items.items()
        }
        assert acks["c"] == ["a", "b"]
        assert acks["d"] == ["a"]
        assert acks["merge"] == ["c", "d"]


@pytest.mark.slow
async def test_files_are_carried_within_an_epoch(nodes: list[Node], autojump_clock: MockClock) -> None:
    alice, _ = nodes
    with fail_after(120):
        repo, _ = alice.create_repo()
        files = FileService(alice.hub, alice.author, alice.branch)
        await _merging(alice).fork("main", "fork", "")
        await files.add("fork", "early", _stream(b"sealed before"))
        alice.hub.announce(alice.author.start_epoch(repo))
        await files.add("fork", "kept", _stream(b"stays"))
        await files.add("fork", "gone", _stream(b"goes"))
        await files.remove("fork", "gone")
        await files.remove("fork", "early")
        merged = await _merging(alice).merge("fork", "main")
        assert merged["files_left"] == ["early"]
        shown = (await files.window("main", 0, 100))["files"]
        assert [item["name"] for item in shown] == ["kept"]
        assert shown[0]["origin"]["author"] == id_text(alice.author.user)
        file = await files.open("main", "kept")
        assert b"".join([part async for part in files.read(file, 0, file.size)]) == b"stays"


@pytest.mark.slow
async def test_what_is_void_is_not_carried_and_who_may_not_write_merges_nothing(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob = nodes
    with fail_after(120):
        await share(alice, bob)
        await _merging(alice).fork("main", "fork", "")
        await together(alice, bob)
        bob.write(bob.branch("fork"), "unseen")
        alice.write(alice.branch("fork"), "seen")
        await members_of(alice).remove("", id_text(bob.author.user), "read")
        await together(alice, bob)
        async with connected(alice, bob):
            await until_equal(alice, bob, "fork")
        assert (await _merging(alice).merge("fork", "main"))["carried"] == 1
        alice.write(alice.branch(), "to be carried by who may")
        await together(alice, bob)
        with pytest.raises(ServiceError, match="M5"):
            await _merging(bob).merge("main", "fork")


async def _stream(content: bytes) -> AsyncGenerator[bytes]:
    await trio.lowlevel.checkpoint()
    yield content
