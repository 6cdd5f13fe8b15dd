"""Counts of unseen commits by branch from a mark, with mentions, bounded."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import trio
from sqlalchemy import Connection

from node.content.documents import Documents
from node.content.merging import Merging
from node.content.posts import Posts
from node.ingest.replica import Replica
from node.timelines.unseen import UnseenCommits
from protocol.formats.document_kinds import SET
from protocol.formats.text import id_text
from protocol.ids import UserId
from ravel.types.unseen import UnseenList
from storage.commits.commits import TimelineRow, load_numbered
from storage.commits.local_state import Unseen, load_marks, load_unseen, put_mark
from storage.repos.deletion import forget_repo
from storage.repos.repos import Branch
from tests.support.machine import fail_after
from tests.support.nodes import Node, connected, ids, open_nodes, share, until_equal
from tests.support.served import served


def _news(node: Node) -> UnseenCommits:
    return UnseenCommits(node.hub, node.author.user, lambda _: node.branch("main"), lambda: 1_700_000_000.0)


async def test_what_others_wrote_is_new_until_it_was_seen(tmp_path: Path, autojump_clock: object) -> None:
    with fail_after(600), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await share(alice, bob)
        news = _news(alice)
        alice.write(alice.branch("main"), "my own")
        assert (await news.list_all())["branches"] == []
        async with connected(bob, alice):
            await until_equal(alice, bob)
            bob.write(bob.branch("main"), "one")
            bob.write(bob.branch("main"), f"two for @{id_text(alice.author.user)}")
            await until_equal(alice, bob)
            (found,) = (await news.list_all())["branches"]
            assert (found["unseen"], found["more"], found["mentions"]) == (2, False, 1)
            shown = await news.show("main")
            assert found["latest_mention"] is not None
            assert shown["commits"][0] == found["latest_mention"]["commit"], "the latest first"
            bob.write(bob.branch("main"), "meanwhile")
            await until_equal(alice, bob)
            await news.mark("main", shown["up_to"])
            (found,) = (await news.list_all())["branches"]
            assert (found["unseen"], found["mentions"]) == (1, 0), "what came after it was shown stays new"
            await news.mark("main", 2**53)
            assert (await news.list_all())["branches"] == []
            await news.mark("main", 0)
            assert (await news.list_all())["branches"] == [], "a mark never goes back"
            bob.write(bob.branch("main"), "and later")
            await until_equal(alice, bob)
            assert (await news.list_all())["branches"][0]["unseen"] == 1, "nor beyond what was here"
        assert (await _news(bob).list_all())["branches"][0]["unseen"] == 1, "alice's, since bob never looked"


async def test_posts_that_say_nothing_any_more_are_not_new(tmp_path: Path, autojump_clock: object) -> None:
    with fail_after(600), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await share(alice, bob)
        news = _news(alice)
        posts = Posts(bob.hub, bob.author, bob.branch)
        async with connected(bob, alice):
            gone, hidden = [
                (await posts.write("main", f"{text} @{id_text(alice.author.user)}"))["commit"]
                for text in ("one", "two")
            ]
            await until_equal(alice, bob)
            (found,) = (await news.list_all())["branches"]
            assert (found["unseen"], found["mentions"]) == (2, 2)
            await posts.delete(gone)
            await until_equal(alice, bob)
            (found,) = (await news.list_all())["branches"]
            assert (found["unseen"], found["mentions"]) == (1, 1), "its author has deleted it"
            await Posts(alice.hub, alice.author, alice.branch).hide(hidden, True)
            assert (await news.list_all())["branches"] == [], "an admin has hidden it"


async def test_who_mentions_one_device_of_a_person_is_told_to_the_others(
    tmp_path: Path, autojump_clock: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = UserId(b"f" * 32)
    with fail_after(600), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await share(alice, bob)
        async with connected(bob, alice):
            bob.write(bob.branch("main"), f"for @{id_text(first)}")
            await until_equal(alice, bob)
        assert (await _news(alice).list_all())["branches"][0]["mentions"] == 0
        monkeypatch.setattr(Replica, "persons", lambda *_: {alice.author.user: first})
        assert (await _news(alice).list_all())["branches"][0]["mentions"] == 1


@pytest.mark.slow
async def test_posts_that_a_merge_carried_are_new_and_edits_of_documents_and_own_posts_are_not(
    tmp_path: Path, autojump_clock: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fail_after(600), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await share(alice, bob)
        merging = Merging(bob.hub, bob.author, bob.branch)
        alice.write(alice.branch("main"), "first")
        async with connected(bob, alice):
            await Merging(alice.hub, alice.author, alice.branch).fork("main", "draft", ids(alice)[0])
            await until_equal(alice, bob, "draft")
            bob.write(bob.branch("main"), f"beside, for @{id_text(alice.author.user)}")
            bob.write(bob.branch("draft"), f"for @{id_text(alice.author.user)}")
            await Documents(bob.hub, bob.author, bob.branch).edit(SET, "draft", {"a": ""})
            await until_equal(alice, bob, "draft")
            alice.write(alice.branch("draft"), "my own")
            await until_equal(alice, bob, "draft")
            assert (await merging.merge("draft", "main"))["carried"] == 3
            await until_equal(alice, bob)
            by_branch = {one["branch"]: one for one in (await _news(alice).list_all())["branches"]}
            main = by_branch[id_text(alice.branch("main").branch_id)]
            assert (main["unseen"], main["mentions"]) == (2, 2)
            assert main["latest_mention"] is not None
            assert main["latest_mention"]["author"] == id_text(bob.author.user)
            monkeypatch.setattr("node.timelines.unseen.UNSEEN_OPENED_MAX", 1)
            by_branch = {one["branch"]: one for one in (await _news(alice).list_all())["branches"]}
            main = by_branch[id_text(alice.branch("main").branch_id)]
            assert (main["unseen"], main["more"], main["mentions"]) == (1, True, 1), "posts are opened first"


async def test_only_so_many_commits_are_looked_at(
    tmp_path: Path, autojump_clock: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("node.timelines.unseen.UNSEEN_COUNT_MAX", 3)
    monkeypatch.setattr("node.timelines.unseen.UNSEEN_OPENED_MAX", 1)
    with fail_after(600), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await share(alice, bob)
        async with connected(bob, alice):
            for number in range(2):
                bob.write(bob.branch("main"), f"@{id_text(alice.author.user)} {number}")
            await until_equal(alice, bob)
        (found,) = (await _news(alice).list_all())["branches"]
        assert (found["unseen"], found["mentions"]) == (2, 1), "of the newest, those that mention"
        async with connected(bob, alice):
            for number in range(2):
                bob.write(bob.branch("main"), str(number))
            await until_equal(alice, bob)
        (found,) = (await _news(alice).list_all())["branches"]
        assert (found["unseen"], found["more"], found["mentions"]) == (3, True, 0)


def test_a_repo_that_is_forgotten_leaves_no_mark(tmp_path: Path) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        repo, branch = alice.create_repo()
        alice.write(branch, "one")
        with alice.replica.change() as change:
            connection = change.connection
            put_mark(connection, branch.num, 2**40, 1)
            (mark,) = load_marks(connection).values()
            assert load_unseen(connection, branch.num, mark, 10) == ([], mark, False)
            forget_repo(connection, repo.num)
            assert load_marks(connection) == {}
            put_mark(connection, branch.num, 5, 1)
            assert load_marks(connection) == {}, "nor does one come back by a page that shows it still"


async def test_the_endpoints_say_and_take_marks(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        one.node.create_repo()
        await one.client.post("/api/v1/branches/main/commits", json={"text": "mine"})
        assert (await one.client.get("/api/v1/unseen")).json() == {"branches": []}
        shown = (await one.client.get("/api/v1/branches/main/unseen")).json()
        assert (shown["unseen"], shown["commits"]) == (0, [])
        for up_to, status in ((shown["up_to"], 200), (-1, 400), (2**53 + 1, 400)):
            answer = await one.client.put("/api/v1/branches/main/seen", json={"up_to": up_to})
            assert answer.status_code == status


async def test_one_list_opens_only_so_many_commits_of_all_branches(
    tmp_path: Path, autojump_clock: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("node.timelines.unseen.UNSEEN_LIST_OPENED_MAX", 1)
    opened: list[int] = []

    def load(connection: Connection, nums: Sequence[int]) -> list[TimelineRow]:
        opened.extend(nums)
        return load_numbered(connection, nums)

    monkeypatch.setattr("node.timelines.unseen.load_numbered", load)
    with fail_after(600), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await share(alice, bob)
        alice.hub.announce(alice.author.founding.create_branch(alice.repo(), "side")[1])
        async with connected(bob, alice):
            await until_equal(alice, bob, "side")
            for branch in ("main", "side"):
                bob.write(bob.branch(branch), f"@{id_text(alice.author.user)}")
                await until_equal(alice, bob, branch)
        news = _news(alice)
        answers: list[UnseenList] = []

        async def ask() -> None:
            answers.append(await news.list_all())

        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(ask)
        found = [[(one["unseen"], one["mentions"]) for one in answer["branches"]] for answer in answers]
        assert sorted(found[0]) == [(1, 0), (1, 1)], "the second branch is counted"
        assert found[1:] == [[(1, 1), (1, 1)]] * 2, "and its mentions are found by the next list"
        assert len(opened) == len(set(opened)) == 2, "none is opened twice"


async def test_a_list_looks_at_what_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[int] = []

    def load(
        connection: Connection, branch_num: int, mark: int, limit: int
    ) -> tuple[list[Unseen], int, bool]:
        looked_at.append(branch_num)
        return load_unseen(connection, branch_num, mark, limit)

    monkeypatch.setattr("node.timelines.unseen.load_unseen", load)
    with open_nodes(tmp_path, "alice") as (alice,):
        repo, _ = alice.create_repo()
        for number in range(5):
            alice.author.founding.create_branch(repo, f"side {number}")
        other, _ = alice.author.founding.create_repo("other", "elsewhere")
        news = _news(alice)
        visits: list[int] = []
        monkeypatch.setattr(news, "_look_at", _counted(news._look_at, visits))
        await news.list_all()
        assert (len(looked_at), len(visits)) == (7, 9), "of two root branches nothing is new"
        await news.list_all()
        assert (len(looked_at), len(visits)) == (7, 9)
        alice.write(alice.branch("elsewhere"), "hello")
        await news.list_all()
        assert (len(looked_at), len(visits)) == (8, 11), "branches of that repo"
        await news.mark("main", 2**53)
        await news.list_all()
        assert (len(looked_at), len(visits)) == (9, 12)
        with alice.replica.change() as change:
            forget_repo(change.connection, other.num)
            alice.replica.forget_membership(other.repo_id)
        await news.list_all()
        assert len(news._known) == 6


def _counted(look: Callable[..., None], visits: list[int]) -> Callable[..., None]:
    def counted(connection: Connection, branch: Branch, budget: object) -> None:
        visits.append(branch.num)
        look(connection, branch, budget)

    return counted
