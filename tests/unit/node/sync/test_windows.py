"""Newest first: a newcomer has the newest posts of a branch, confirmed, before the branch's past comes."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from node.authoring.drafting import Draft, aim
from node.ingest.batch_order import ByteBudget
from node.ingest.kept_windows import KeptWindows, ShownWindow
from node.ingest.publication_parsing import Opened, open_batch
from node.sync import session_queries
from node.sync.topic_work import TopicWork
from node.timelines.timelines import Timelines
from protocol.crypto.keys import SigningKey, UserSeed
from protocol.crypto.signing import key_pair
from protocol.formats.content import Post
from protocol.formats.text import id_text
from protocol.ids import PeerId, TopicKey, UserId
from protocol.limits.peers import WINDOW_HOLD_SECONDS, WINDOW_SUMMARY_SECONDS
from protocol.session.events import WindowLoaded
from protocol.session.outputs import LoadWindow
from ravel.types.timelines import TimelineWindow
from storage.relay.quotas import Visitor
from storage.relay.relay import load_kept_topics, store_publications
from tests.support.builders import give
from tests.support.machine import fail_after
from tests.support.nodes import Node, connected, ids, open_nodes
from tests.support.relays import PLENTY, open_relay
from tests.support.windows import forge
from verifier.posts import Relation, make_place

_POSTS, _WINDOW = 60, 20


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("node.sync.windows.WINDOW_BEHIND_MIN", 30)
    monkeypatch.setattr("node.sync.windows.WINDOW_ASK_COUNT", _WINDOW)


@asynccontextmanager
async def _noting(node: Node) -> AsyncIterator[list[tuple[int, ShownWindow]]]:
    """Notes each window that the node shows of the branch main, with how many of its commits are accepted."""
    seen: list[tuple[int, ShownWindow]] = []

    async def look() -> None:
        while True:
            count = node.hub.changes.count
            for branch in node.replica.read_tables().branches.values():
                shown = node.hub.windows.find(branch.num)
                if branch.name == "main" and shown is not None and shown.listed:
                    seen.append((branch.commit_count, shown))
            await node.hub.changes.wait(count)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(look)
        yield seen
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("by_relay", [False, True])
async def test_a_newcomer_has_the_newest_posts_before_the_past(
    tmp_path: Path, autojump_clock: MockClock, by_relay: bool
) -> None:
    with (
        fail_after(120),
        open_nodes(tmp_path, "alice", "bob") as (alice, bob),
        open_relay(tmp_path) as relay,
    ):
        repo, branch = alice.create_repo()
        for number in range(_POSTS):
            alice.write(branch, str(number))
        await bob.joiner.begin(alice.invite(repo))
        if by_relay:
            async with connected(alice, relay):
                await wait_all_tasks_blocked()
        async with _noting(bob) as seen, connected(bob, relay if by_relay else alice):
            await wait_all_tasks_blocked()
        accepted, first = seen[0]
        assert accepted == 0
        assert [id_text(one.commit_id) for one in first.listed] == ids(alice)[-_WINDOW:]
        assert first.waiting == 0
        assert first.earlier == _POSTS + 1 - _WINDOW
        assert ids(bob) == ids(alice)
        assert bob.hub.windows.find(bob.branch().num) is None, "settled in place"


async def test_a_relay_full_of_a_floating_chain_is_asked_again_below_it(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """A writer states huge ranks on a parent that nobody has, to be every newcomer's newest posts."""
    with (
        fail_after(120),
        open_nodes(tmp_path, "alice", "bob") as (alice, bob),
        open_relay(tmp_path) as relay,
    ):
        repo, branch = alice.create_repo()
        for number in range(_POSTS):
            alice.write(branch, str(number))
        epoch = alice.epoch()
        target = aim(branch.facts, branch.num, epoch)
        liar = key_pair(UserSeed(b"l" * 32))
        floating = [
            forge(target, liar, alice.repo().init_id, rank) for rank in range(2**50, 2**50 + _WINDOW + 5)
        ]
        await bob.joiner.begin(alice.invite(repo))
        async with connected(alice, relay):
            await wait_all_tasks_blocked()
        with relay.replica.database.write() as connection:
            kept = next(
                one for one in load_kept_topics(connection).values() if one.topic == floating[0].topic
            )
            items = [(one, one.encoded) for one in floating]
            visitor = Visitor(PeerId(b"v" * 32), is_known=True)
            store_publications(relay.replica.database, connection, kept.num, visitor, items, PLENTY, 1)
        async with _noting(bob) as seen, connected(bob, relay):
            await wait_all_tasks_blocked()
        accepted, first = seen[0]
        assert accepted == 0
        assert [id_text(one.commit_id) for one in first.listed] == ids(alice)[-len(first.listed) :]
        assert first.waiting == len(floating)
        assert ids(bob) == ids(alice)


def _owner(node: Node) -> tuple[UserId, SigningKey]:
    return key_pair(node.user_seed)


async def test_an_answer_with_another_mark_ends_the_connection(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lie(*args: object, **kwargs: object) -> tuple[list[int], bool]:
        """Send the first commits of all, whatever is asked for."""
        del args, kwargs
        return [1, 2, 3], True

    monkeypatch.setattr("node.sync.session_queries.find_newest", lie)
    with fail_after(120), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        repo, branch = alice.create_repo()
        for number in range(_POSTS):
            alice.write(branch, str(number))
        await bob.joiner.begin(alice.invite(repo))
        async with connected(bob, alice) as (ours, theirs):
            await wait_all_tasks_blocked()
        assert ours.reason == "wrong_window"
        assert theirs.goodbye == "wrong_window"


async def test_who_only_reads_fills_nobodys_window(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only writers hold the topic's key: what it has not signed was made by who may not write."""

    def forge(*args: object, **kwargs: object) -> WindowLoaded:
        answer = load_window(*args, **kwargs)  # type: ignore[arg-type]  # as it was called
        return replace(answer, items=tuple(one[:-1] + bytes([one[-1] ^ 1]) for one in answer.items))

    load_window = session_queries._load_window  # what a forger puts another in the place of
    monkeypatch.setattr(session_queries, "_load_window", forge)
    with fail_after(120), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        repo, branch = alice.create_repo()
        await bob.joiner.begin(alice.invite(repo))
        async with connected(bob, alice):
            await wait_all_tasks_blocked()
        for number in range(_POSTS):
            alice.write(branch, str(number))
        async with _noting(bob) as seen, connected(bob, alice) as (ours, _):
            await wait_all_tasks_blocked()
        assert (ours.reason, seen) == ("bad_topic_signature", [])


def test_a_window_is_kept_up_to_its_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is confirmed stays, of what waits what came last: a source that sends much waste hides nobody else's posts."""
    monkeypatch.setattr("node.ingest.kept_windows.WINDOW_KEPT_COUNT_MAX", 6)
    with open_nodes(tmp_path, "alice") as (alice,):
        repo, branch = alice.create_repo()
        target = aim(branch.facts, branch.num, alice.epoch())
        authors = [key_pair(UserSeed(bytes([number]) * 32)) for number in range(3)]
        topic = alice.replica.by_topic[target.topic]
        windows = KeptWindows(alice.replica)

        def waste(author: int) -> list[Opened]:
            items = [forge(target, authors[author], repo.init_id, rank).encoded for rank in range(100, 104)]
            return open_batch(topic, items).opened

        def count() -> tuple[int, int]:
            found = windows.find(branch.num)
            assert found is not None
            return len(found.listed), found.waiting

        for author, waiting in ((0, 3), (1, 6), (2, 6)):
            assert windows.keep(branch.num, topic, waste(author)) == 3, "half for one author"
            assert windows.keep(branch.num, topic, waste(author)[:3]) == 0, "each once"
            assert count() == (0, waiting)
        own = [forge(target, _owner(alice), repo.init_id, rank).encoded for rank in range(100, 103)]
        assert windows.keep(branch.num, topic, open_batch(topic, own).opened) == 3
        assert count() == (3, 3), "an owner confirms them"
        for author in range(3):
            windows.keep(branch.num, topic, waste(author))
            assert count() == (3, 3)
        monkeypatch.setattr("node.ingest.kept_windows.WINDOWS_KEPT_SIZE_MAX", 0)
        assert windows.keep(branch.num + 1, topic, []) == 0
        assert windows.find(branch.num) is None, "of all branches, the one without news goes first"


async def test_a_peer_holds_nobodys_past_back_for_longer_than_is_said(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says its summary as late as it may, and answers no question for a window."""
    asked: list[float] = []
    load_summaries, load = TopicWork._load_summaries, TopicWork._load

    with fail_after(120), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        repo, branch = alice.create_repo()
        for number in range(_POSTS):
            alice.write(branch, str(number))
        await bob.joiner.begin(alice.invite(repo))

        async def summarise(work: TopicWork, topics: Sequence[TopicKey]) -> None:
            if work._hub is alice.hub:
                await trio.sleep(WINDOW_SUMMARY_SECONDS - 0.1)
            else:
                asked.append(trio.current_time())
            await load_summaries(work, topics)

        async def answer(work: TopicWork, wanted: session_queries.Load) -> None:
            if not isinstance(wanted, LoadWindow):
                await load(work, wanted)

        monkeypatch.setattr(TopicWork, "_load_summaries", summarise)
        monkeypatch.setattr(TopicWork, "_load", answer)
        began = trio.current_time()
        async with connected(bob, alice):
            await trio.sleep(20)
        first, second = asked  # the second topic is known by what comes on the first
        assert first - began <= WINDOW_HOLD_SECONDS
        assert 1 < second - first <= WINDOW_HOLD_SECONDS
        assert ids(bob) == ids(alice)


async def test_windows_that_wait_to_be_read_count_as_what_else_has_come(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each peer could have eight answers of the largest kind in memory, beside all bounds."""
    held: list[bool] = []
    with fail_after(120), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        repo, branch = alice.create_repo()
        for number in range(_POSTS):
            alice.write(branch, str(number))
        await bob.joiner.begin(alice.invite(repo))
        bob.hub.byte_budget = ByteBudget(1)
        keep = bob.hub.windows.keep

        def note(*args: Any) -> int:  # noqa: ANN401  # as it is called
            held.append(not bob.hub.byte_budget.is_open)
            return keep(*args)

        monkeypatch.setattr(bob.hub.windows, "keep", note)
        async with connected(bob, alice):
            await wait_all_tasks_blocked()
        assert set(held) == {True}
        assert ids(bob) == ids(alice)


async def test_nothing_of_a_window_stays_when_its_repo_is_forgotten(tmp_path: Path) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        repo, branch = alice.create_repo()
        target = aim(branch.facts, branch.num, alice.epoch())
        topic = alice.replica.by_topic[target.topic]
        item = forge(target, _owner(alice), repo.init_id, 100).encoded
        windows = alice.hub.windows
        assert windows.keep(branch.num, topic, open_batch(topic, [item]).opened) == 1
        await alice.joiner.forget(alice.repo())
        assert not windows._kept


def test_what_an_owner_says_above_a_fault_leaves_the_window_when_the_fault_is_here(tmp_path: Path) -> None:
    """A rejection counts no commit of the branch, and nothing else may ever come."""
    with open_nodes(tmp_path, "alice") as (alice,):
        repo, branch = alice.create_repo()
        target = aim(branch.facts, branch.num, alice.epoch())
        topic = alice.replica.by_topic[target.topic]
        (head,) = alice.heads(branch)
        fault = forge(target, _owner(alice), repo.init_id, 100, (head,))
        above = forge(target, _owner(alice), repo.init_id, 101, (fault.commit_id,))
        windows = alice.hub.windows
        windows.keep(branch.num, topic, open_batch(topic, [above.encoded]).opened)
        found = windows.find(branch.num)
        assert found is not None
        assert [one.commit_id for one in found.listed] == [above.commit_id]
        give(alice.replica, [fault.encoded])
        found = windows.find(branch.num)
        assert found is not None
        assert found.listed == ()
        another = forge(target, _owner(alice), repo.init_id, 102)
        windows.keep(branch.num, topic, open_batch(topic, [another.encoded]).opened)
        give(alice.replica, [above.encoded])  # so that no window has the proof any more
        for _ in range(2):
            found = windows.find(branch.num)
            assert found is not None
            assert (found.listed, found.waiting) == ((), 1), "who has lied is believed no more"


@pytest.mark.slow
async def test_a_device_that_is_far_behind_has_the_newest_posts_beside_the_past(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("protocol.session.transfer.BATCH_COUNT_MAX", 2)
    with fail_after(120), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        repo, branch = alice.create_repo()
        await bob.joiner.begin(alice.invite(repo))
        async with connected(bob, alice):
            await wait_all_tasks_blocked()
        assert ids(bob) == ids(alice)
        for number in range(_POSTS):
            alice.write(branch, str(number))
        added, ingested = alice.author.founding.create_branch(alice.repo(), "side")
        alice.hub.announce(ingested)
        for number in range(_POSTS):
            alice.write(added, str(number))
        async with _noting(bob) as seen, connected(bob, alice):
            await wait_all_tasks_blocked()
        accepted, first = seen[0]
        assert 1 <= accepted < _POSTS
        newest = ids(alice)[-_WINDOW:]
        assert {id_text(one.commit_id) for one in first.listed} <= {*newest}
        assert first.earlier == max(0, _POSTS + 1 - len(first.listed) - accepted)
        assert ids(bob) == ids(alice)
        side = bob.branch("side")
        assert bob.digest(side) == alice.digest(added)
        assert bob.hub.windows.find(side.num) is None


async def test_a_timeline_shows_them_at_its_end_with_edits_and_deletions_and_says_what_is_on_its_way(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with fail_after(120), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        repo, branch = alice.create_repo()
        for number in range(_POSTS):
            alice.write(branch, str(number))
        said = [alice.author.write(branch, Post(text))[0].commit_id for text in ("one", "two", "three")]
        for relation, about, text in (
            (Relation.EDIT, said[0], "first"),
            (Relation.DELETE, said[1], ""),
            (Relation.REPLY, said[2], "an answer"),
        ):
            alice.author.write(branch, Draft(Post(text), tangles=(make_place(relation, about),)))
        await bob.joiner.begin(alice.invite(repo))
        windows: list[TimelineWindow] = []

        async def look() -> None:
            while not windows or "arriving" not in windows[-1]:
                count = bob.hub.changes.count
                if any(one.name == "main" for one in bob.replica.branches.values()):
                    timelines = Timelines(bob.hub, lambda _: bob.branch())
                    windows.append(await timelines.window_before("", 2**52, 5))
                await bob.hub.changes.wait(count)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(look)
            async with connected(bob, alice):
                await wait_all_tasks_blocked()
        window = windows[-1]
        assert (window["items"], window["total"], window["next"]) == ([], 0, None)
        arriving = window["arriving"]
        assert [item["text"] for item in arriving["items"]] == [
            str(_POSTS - 1),
            "first",
            None,
            "three",
            "an answer",
        ]
        assert arriving["items"][2]["deleted"]
        assert arriving["items"][4]["reply_to"]["commit"] == id_text(said[2])
        assert "edited_at" in arriving["items"][1]
        assert (arriving["earlier"], arriving["waiting"]) == (_POSTS + 7 - _WINDOW, 0)
        settled = await Timelines(bob.hub, lambda _: bob.branch()).window_before("", 2**52, 5)
        assert "arriving" not in settled
        assert settled["total"] == _POSTS + 7
