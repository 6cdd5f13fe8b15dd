"""A node that keeps contents of some branches alone has all headers, says so, and fetches what is opened."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from node.care.fsck import check_store
from node.network.network import Network
from node.network.peer_state import PeerState
from node.observe.standing import Standings
from node.observe.standing_view import RepoFacts, Unheld, describe_standing, view_holder
from node.sync.addresses import AddressSource
from node.sync.body_fetching import OPENED_SECONDS, BodyFetcher
from node.sync.connection import Connection
from node.sync.hub import find_lacking
from node.sync.kept_parts import keep_contents
from node.timelines.timelines import Timelines
from node.timelines.views import timeline_items
from protocol.codec import DecodeError
from protocol.formats.publication import is_bare
from protocol.ids import BlindTopic, BlockId, BranchMark, ObjectId
from protocol.limits.users import KEPT_BRANCHES_MAX, KEPT_DAYS_MAX
from protocol.session.messages import Keeps, Message, Publications, decode_message, encode_message
from storage.commits.absent_bodies import Erasure, await_opened, erase_bodies, find_topics_missing_bodies
from storage.commits.commits import load_timeline
from tests.support.builders import STORE_KEY, give, publications_of
from tests.support.machine import fail_after
from tests.support.nodes import Node, connected, open_nodes, share, until_equal

pytestmark = pytest.mark.slow
MAIN = ["main 0", "main 1", "main 2"]
DESIGN = ["design 0", "design 1", "design 2"]
MEMBER = RepoFacts(
    is_member=True, was_member=True, is_joining=False, is_damaged=False, is_behind=False, has_members=True
)


@pytest.fixture
async def nodes(tmp_path: Path) -> AsyncIterator[list[Node]]:
    """Alice, and carol who keeps main alone; there is a branch design, too."""
    with open_nodes(tmp_path, "alice", "carol") as (alice, carol):
        await share(alice, carol)
        _keep(carol, "main")
        _, ingested = alice.author.founding.create_branch(alice.repo(), "design")
        alice.hub.announce(ingested)
        for name in ("main", "design"):
            for number in range(3):
                alice.write(alice.branch(name), f"{name} {number}")
        yield [alice, carol]


def _keep(node: Node, *names: str) -> None:
    keep_contents(node.replica, node.repo(), {node.branch(name).num for name in names})
    node.hub.topics_changed()
    node.hub.absences.ring()


def _texts(node: Node, name: str) -> list[object]:
    """Texts of a branch's posts, "absent" where they are not kept."""
    with node.replica.database.read() as connection:
        rows = load_timeline(connection, node.branch(name).num, 1, 1000)
        items = timeline_items(connection, node.replica, rows, 1)
    return ["absent" if item.get("not_kept") and item.get("erased") else item["text"] for item in items]


@asynccontextmanager
async def _fetching(node: Node) -> AsyncIterator[None]:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(BodyFetcher(node.hub).run)
        yield
        nursery.cancel_scope.cancel()


async def _until_all_there(carol: Node) -> None:
    """Wait for all posts of design."""
    absences = carol.hub.absences.count
    while _texts(carol, "design") != DESIGN:
        await carol.hub.absences.wait(absences)
        absences = carol.hub.absences.count


async def _level(alice: Node, carol: Node) -> None:
    for name in ("root", "main", "design"):
        await until_equal(alice, carol, name)


def _watch(side: Connection, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Publications that a side says from now on."""
    said: list[bytes] = []
    say = side.say

    def note(message: Message) -> None:
        if isinstance(message, Publications):
            said.extend(message.items)
        say(message)

    monkeypatch.setattr(side, "say", note)
    return said


async def test_of_a_branch_that_is_not_kept_headers_come_and_no_bodies(
    nodes: list[Node], tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, carol = nodes
    with fail_after(30):
        async with _fetching(carol), connected(carol, alice) as (_, theirs):
            sent = _watch(theirs, monkeypatch)
            await _level(alice, carol)
            kept = [one.keeps.marks for one in theirs.topics if one.is_joined]
            assert {len(one or ()) for one in kept} == {1}
            carol.write(carol.branch("design"), "carol's own")
            await until_equal(alice, carol, "design")
            await trio.sleep(5)
    assert sum(is_bare(one) for one in sent) == 3, "the posts of design"
    assert _texts(carol, "main") == MAIN
    assert _texts(carol, "design") == ["absent"] * 3 + ["carol's own"]
    assert _texts(alice, "design") == [*DESIGN, "carol's own"]
    with carol.replica.database.read() as connection:
        assert find_topics_missing_bodies(connection) == {}, "none is awaited"
    carol.replica.close()
    assert check_store(tmp_path / "carol", STORE_KEY).problems == []
    carol.open()
    assert [one.is_kept for one in carol.replica.branches.values()] == [True, True, False]


async def test_bodies_that_somebody_sends_all_the_same_are_not_stored(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    """A relay sees no kinds, and sends all."""
    alice, carol = nodes
    async with connected(carol, alice):
        await until_equal(alice, carol, "root")
    give(carol.replica, publications_of(alice.replica, alice.branch("design")))
    assert carol.digest(carol.branch("design")) == alice.digest(alice.branch("design"))
    give(carol.replica, publications_of(alice.replica, alice.branch("design")))
    assert _texts(carol, "design") == ["absent"] * 3


async def test_what_is_opened_comes_from_a_peer_and_stays(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, carol = nodes
    timelines = Timelines(carol.hub, carol.branch)

    async def read() -> list[object]:
        return [one["text"] for one in (await timelines.window_before("design", 100, 2))["items"]]

    with fail_after(60):
        async with _fetching(carol), connected(carol, alice):
            await _level(alice, carol)
            began = trio.current_time()
            assert await read() == DESIGN[1:]
            assert trio.current_time() - began < OPENED_SECONDS
            assert _texts(carol, "design") == ["absent", *DESIGN[1:]], "what was not asked for is not here"
    assert await read() == DESIGN[1:]
    began = trio.current_time()
    assert [one["text"] for one in (await timelines.window("design", -1, 9))["items"]] == [
        None,
        None,
        *DESIGN[1:],
    ]
    assert trio.current_time() == began, "nobody is there to wait for"
    async with _fetching(carol), connected(carol, alice):
        await _until_all_there(carol)


async def test_a_branch_that_is_kept_again_comes_whole(nodes: list[Node], autojump_clock: MockClock) -> None:
    alice, carol = nodes
    with fail_after(60):
        async with _fetching(carol), connected(carol, alice) as (_, theirs):
            await _level(alice, carol)
            keep_contents(carol.replica, carol.repo(), None)
            carol.hub.topics_changed()
            carol.hub.absences.ring()
            await _until_all_there(carol)
            assert [one.keeps.marks for one in theirs.topics if one.is_joined] == [None] * 2
            _keep(carol, "main")
            assert _texts(carol, "design") == DESIGN, "what is here stays"


async def test_who_keeps_a_part_is_counted_for_that_part_alone(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, carol = nodes
    network = Network(alice.hub, alice.seed, lambda: 0.0)
    standings = Standings(alice.hub, network)

    def unheld() -> int | None:
        outlook = standings.outlook(alice.repo())
        return standings.count_unheld(alice.author.user, {alice.repo().num: outlook})[
            alice.repo().num
        ].commits

    with fail_after(60):
        async with connected(carol, alice) as (_, theirs):
            state = PeerState(theirs.peer, "", "in", "connected", 0, AddressSource.INCOMING, None)
            state.connection = theirs
            network.inbound.append(state)
            await _level(alice, carol)
            await trio.sleep(5)
            outlook = standings.outlook(alice.repo())
            [link] = outlook.links
            assert (link.is_level, link.has_all, outlook.level_since) == (True, False, {})
            assert link.keeps == frozenset((alice.branch("main").num,))
            said = describe_standing(MEMBER, outlook, Unheld(), lambda _: {"name": "carol", "owner": None})
            assert [part["code"] for part in said["parts"]] == ["keeps_parts"]
            assert said["in_sync_with"] == []
            [holder] = standings.holders(alice.repo())
            seen = view_holder(holder, {"name": "carol", "owner": None})
            assert (seen["has_all"], seen["keeps"], seen["lacks"]) == (False, 1, 0)
            keep_contents(carol.replica, carol.repo(), None)
            carol.hub.topics_changed()
            await trio.sleep(5)
            [link] = standings.outlook(alice.repo()).links
            assert not link.has_all, "carol lacks yet what came before"
        network.inbound.clear()
        standings.look()
        with alice.replica.database.read() as connection:
            design = len(load_timeline(connection, alice.branch("design").num, 0, 1000))
        assert unheld() == design == 4, "the others are held, and those of the root branch"


async def test_who_is_still_fetching_is_counted_as_having_all_once_it_has(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, carol = nodes
    network = Network(alice.hub, alice.seed, lambda: 0.0)
    standings = Standings(alice.hub, network)
    with fail_after(60):
        async with connected(carol, alice):
            await _level(alice, carol)
        keep_contents(carol.replica, carol.repo(), None)
        carol.hub.lacking_bodies = find_lacking(carol.replica)
        async with connected(carol, alice) as (_, theirs):
            state = PeerState(theirs.peer, "", "in", "connected", 0, AddressSource.INCOMING, None)
            state.connection = theirs
            network.inbound.append(state)
            await _level(alice, carol)
            alice.write(alice.branch("design"), "whole")
            await _level(alice, carol)
            await trio.sleep(5)
            outlook = standings.outlook(alice.repo())
            assert [(link.is_level, link.has_all) for link in outlook.links] == [(True, False)]
            assert not outlook.level_since
            assert [one.keeps.is_all for one in theirs.topics if one.is_joined] == [True] * 2
            assert _texts(carol, "design")[-1] == "whole", "what is new comes with its body"
            async with _fetching(carol):
                await trio.sleep(5)
            assert "absent" not in _texts(carol, "design")
            assert [link.has_all for link in standings.outlook(alice.repo()).links] == [True]


def test_what_was_erased_here_does_not_come_back_as_what_is_kept_changes(tmp_path: Path) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        alice.write(alice.branch("main"), "erased")
        with alice.replica.database.write() as connection:
            row = load_timeline(connection, alice.branch("main").num, 0, 1000)[-1]
            body_id = ObjectId(BlockId(bytes(32)))  # any id
            erased = Erasure(row.num, row.topic_num, row.block_nums, body_id)
            erase_bodies(connection, row.branch_num, [erased], 1)
        for kept in (("main",), (), ("main",), None):
            keep_contents(
                alice.replica,
                alice.repo(),
                None if kept is None else {alice.branch(name).num for name in kept},
            )
            with alice.replica.database.write() as connection:
                assert await_opened(connection, [row.commit_id]) == {}
                assert find_topics_missing_bodies(connection) == {}


def test_a_branch_to_come_is_kept_as_the_repo_says(tmp_path: Path) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        for name, kept in (("first", True), ("second", False)):
            if not kept:
                _keep(alice, "main", "first")
            _, ingested = alice.author.founding.create_branch(alice.repo(), name)
            alice.hub.announce(ingested)
            assert alice.branch(name).is_kept is kept
        assert alice.branch("root").is_kept
        keep_contents(alice.replica, alice.repo(), None)
        assert all(one.is_kept for one in alice.replica.branches.values())


def test_more_marks_or_days_than_a_user_may_name_are_refused() -> None:
    def said(count: int, days: int) -> bytes:
        marks = tuple(BranchMark(number.to_bytes(8)) for number in range(count))
        return encode_message(Keeps(BlindTopic(bytes(32)), is_all=False, marks=marks, days=days))

    assert isinstance(decode_message(said(KEPT_BRANCHES_MAX, KEPT_DAYS_MAX)), Keeps)
    for count, days in ((KEPT_BRANCHES_MAX + 1, 0), (0, KEPT_DAYS_MAX + 1), (0, -1)):
        with pytest.raises(DecodeError):
            decode_message(said(count, days))
