"""Posts of a day that is not here yet: somebody goes there while the branch's past is on its way."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from node.ingest.publication_parsing import Opened
from node.ingest.publication_reading import branch_mark_in
from node.sync.connection import Connection
from node.sync.hub import Hub
from node.sync.session_queries import Load
from node.sync.topic_work import TopicWork
from node.timelines.timelines import Timelines
from node.timelines.views import show_opened
from protocol.ids import BranchMark, TopicKey
from protocol.limits.peers import (
    BATCHES_IN_FLIGHT_MAX,
    DAY_SECONDS,
    WINDOW_ANSWER_SECONDS,
    WINDOW_RANK_MAX,
)
from protocol.session.outputs import LoadPlan, LoadWindow
from ravel.types.timelines import TimelineWindow
from storage.repos.epochs import Topic
from tests.support.machine import fail_after
from tests.support.nodes import Node, connected, open_nodes, share, until_equal
from tests.support.relays import open_relay

_DAY, _POSTS, _WINDOW = 86_400_000, 120, 8
_BEGIN = 1_700_000_000_000


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("node.sync.windows.WINDOW_BEHIND_MIN", 30)
    for name in ("node.sync.windows", "node.sync.day_windows"):
        monkeypatch.setattr(f"{name}.WINDOW_ASK_COUNT", _WINDOW)
    monkeypatch.setattr("node.sync.day_windows._LOOKED_AT", 1)


def _found(alice: Node) -> None:
    """A repo with a post a day, but for fifty days in which nobody wrote."""
    alice.set_clock(_BEGIN)
    _, branch = alice.create_repo()
    for number in range(_POSTS):
        alice.set_clock(_BEGIN + _day(number) * _DAY)
        alice.write(branch, str(number))


def _day(number: int) -> int:
    return number if number < _POSTS // 2 else number + 50


@contextmanager
def _withheld_from(node: Node, posts: TopicKey | None, asked: list[LoadWindow]) -> Iterator[None]:
    """Others send a node of this topic what it asks for, and nothing else; notes its questions for newest commits."""
    plan, load = TopicWork.plan, TopicWork._load

    def withhold(work: TopicWork, wanted: LoadPlan) -> None:
        if work._hub is node.hub or wanted.topic != posts:
            plan(work, wanted)

    async def note(work: TopicWork, wanted: Load) -> None:
        if isinstance(wanted, LoadWindow):
            asked.append(wanted)
        await load(work, wanted)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(TopicWork, "plan", withhold)
        patched.setattr(TopicWork, "_load", note)
        yield


async def _since(node: Node, day: int, limit: int = 5) -> TimelineWindow:
    timelines = Timelines(node.hub, lambda _: node.branch())
    return await timelines.read(
        "",
        limit=limit,
        order="time",
        after_position=None,
        before_position=None,
        after=None,
        before=None,
        since=(_BEGIN + day * _DAY) // 1000,
    )


def _texts(window: TimelineWindow) -> list[str | None]:
    return [item["text"] for item in window.get("arriving", {"items": []})["items"]]


@pytest.mark.slow
@pytest.mark.parametrize("by_relay", [False, True])
async def test_posts_of_any_day_are_shown_while_the_past_is_on_its_way(
    tmp_path: Path, autojump_clock: MockClock, by_relay: bool
) -> None:
    asked: list[LoadWindow] = []
    with fail_after(120), open_nodes(tmp_path, "alice", "bob") as (alice, bob), open_relay(tmp_path) as relay:
        _found(alice)
        bob.set_clock(_BEGIN + 400 * _DAY)
        await bob.joiner.begin(alice.invite(alice.repo()))
        if by_relay:
            async with connected(alice, relay):
                await wait_all_tasks_blocked()
        with _withheld_from(bob, alice.epoch().writers_topic, asked):
            async with connected(bob, relay if by_relay else alice):
                await trio.sleep(20)
                assert bob.branch().commit_count == 0
                for number in (0, 1, 7, 33, _POSTS // 2, 80, 100):
                    del asked[:]
                    window = await _since(bob, _day(number))
                    assert window["items"] == []
                    assert _texts(window)[:3] == [str(one) for one in range(number, number + 3)]
                    assert len(asked) <= 12, "a few questions find it"
                window = await _since(bob, _day(_POSTS // 2) - 20)
                assert _texts(window)[:1] == [str(_POSTS // 2)], "nobody wrote then"
                del asked[:]
                assert _texts(await _since(bob, _day(_POSTS - 3))) == ["117", "118", "119"]
                assert not asked, "the newest posts are here"
        async with connected(bob, relay if by_relay else alice):
            await wait_all_tasks_blocked()
        del asked[:]
        settled = await _since(bob, _day(33), limit=2)
        assert [item["text"] for item in settled["items"]] == ["33", "34"]
        assert "arriving" not in settled


@pytest.mark.slow
async def test_each_of_two_viewers_sees_the_day_that_it_asks_for(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fail_after(120), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        _found(alice)
        bob.set_clock(_BEGIN + 400 * _DAY)
        await bob.joiner.begin(alice.invite(alice.repo()))
        with _withheld_from(bob, alice.epoch().writers_topic, []):
            async with connected(bob, alice):
                await trio.sleep(20)
                other: list[TimelineWindow] = []

                async def view_beside(hub: Hub, read: Callable[[], TimelineWindow]) -> TimelineWindow:
                    if not other:
                        other.append({"items": [], "total": 0, "next": None, "previous": None})
                        other[0] = await _since(bob, _day(80))
                    return await show_opened(hub, read)

                monkeypatch.setattr("node.timelines.timelines.show_opened", view_beside)
                assert _texts(await _since(bob, _day(7)))[:3] == ["7", "8", "9"]
                assert _texts(other[0])[:3] == ["80", "81", "82"]


@pytest.mark.slow
@pytest.mark.parametrize("is_silent", [True, False])
async def test_a_peer_that_is_silent_or_tells_what_nobody_confirms_is_not_the_only_one_asked(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, is_silent: bool
) -> None:
    look = Connection.look_at_window
    with fail_after(120), open_nodes(tmp_path, "alice", "bob", "carol") as (alice, bob, carol):
        for node in (alice, carol):
            node.set_clock(_BEGIN)
        await share(alice, carol)
        for writer, numbers in ((alice, range(60)), (carol, range(60, 70)), (alice, range(70, _POSTS))):
            for number in numbers:
                for node in (alice, carol):
                    node.set_clock(_BEGIN + _day(number) * _DAY)
                writer.write(writer.branch(), str(number))
            async with connected(carol, alice):
                await until_equal(carol, alice)
        bob.set_clock(_BEGIN + 400 * _DAY)
        await bob.joiner.begin(alice.invite(alice.repo()))

        async def tell_less(
            self: Connection, topic: Topic, mark: BranchMark, below: int, count: int
        ) -> list[Opened] | None:
            if self is not bob.hub.sources[0]:
                return await look(self, topic, mark, below, count)
            if is_silent:
                await trio.sleep_forever()
            opened = await look(self, topic, mark, below, count)
            told = [one for one in opened or () if one.signed.commit.content.author == carol.author.user]
            return told if count == _WINDOW else opened

        monkeypatch.setattr(Connection, "look_at_window", tell_less)
        with _withheld_from(bob, alice.epoch().writers_topic, []):
            async with connected(bob, carol), connected(bob, alice):
                await trio.sleep(20)
                assert _texts(await _since(bob, _day(64)))[:3] == ["64", "65", "66"]


@pytest.mark.slow
async def test_the_past_waits_while_a_day_is_asked_for(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each answer would come behind the batches that are on their way, a second's worth on a slow line."""
    batch = 8
    monkeypatch.setattr("protocol.session.transfer.BATCH_COUNT_MAX", batch)
    with fail_after(120), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        _found(alice)
        await bob.joiner.begin(alice.invite(alice.repo()))
        async with connected(bob, alice):
            with bob.hub.asking_first():
                await trio.sleep(DAY_SECONDS - 1)
                came = sum(branch.commit_count for branch in bob.replica.branches.values())
                assert came <= BATCHES_IN_FLIGHT_MAX * batch, "what was on its way"
                await until_equal(bob, alice)  # however long somebody asks
            await wait_all_tasks_blocked()
        assert bob.digest(bob.branch()) == alice.digest(alice.branch())


@pytest.mark.slow
async def test_an_answer_that_comes_late_is_not_taken_for_that_to_the_next_question(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A peer on a slow line would be left for it: it seems to answer with other ranks than were asked for."""
    load = TopicWork._load
    late: list[float] = []

    async def wait(work: TopicWork, wanted: Load) -> None:
        if isinstance(wanted, LoadWindow) and late:
            await trio.sleep(late.pop())
        await load(work, wanted)

    monkeypatch.setattr(TopicWork, "_load", wait)
    with fail_after(300), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        _found(alice)
        await bob.joiner.begin(alice.invite(alice.repo()))
        async with connected(bob, alice):
            await until_equal(bob, alice)
            await wait_all_tasks_blocked()
            late.append(WINDOW_ANSWER_SECONDS + 10)
            (source,), epoch = bob.hub.sources, bob.epoch()
            assert epoch.writers_topic is not None
            topic = bob.replica.by_topic[epoch.writers_topic]
            mark = branch_mark_in(epoch.key, bob.branch().branch_id)
            assert await source.look_at_window(topic, mark, WINDOW_RANK_MAX, _WINDOW) is None
            assert await source.look_at_window(topic, mark, 10, _WINDOW) is None
            assert not source.is_ending()
            assert len(await source.look_at_window(topic, mark, 10, _WINDOW) or ()) == _WINDOW
