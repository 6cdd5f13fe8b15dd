"""A node that keeps posts of some days gets older ones without contents, and is counted for recent ones alone."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from node.network.network import Network
from node.network.peer_state import PeerState
from node.observe.standing import Standings
from node.observe.standing_view import RepoFacts, Unheld, describe_standing, view_holder
from node.sync.addresses import AddressSource
from node.sync.body_fetching import BodyFetcher
from node.sync.connection import Connection
from node.sync.kept_parts import keep_contents
from node.timelines.views import timeline_items
from protocol.formats.publication import is_bare
from protocol.session.messages import Message, Publications
from protocol.session.topic_progress import KEEPS_ALL, KeptPart
from storage.commits.absent_bodies import OldPosts, count_old_posts, find_topics_missing_bodies
from storage.commits.commits import load_timeline
from storage.repos.repos import DAY_MS, posts_from
from tests.support.machine import fail_after
from tests.support.nodes import Node, connected, open_nodes, share, until_equal

pytestmark = pytest.mark.slow
START_MS = 1_700_000_000_000
NOW_MS = START_MS + 200 * DAY_MS
OLD = ["old 0", "old 1", "old 2"]
NEW = ["new 0", "new 1"]
MEMBER = RepoFacts(
    is_member=True, was_member=True, is_joining=False, is_damaged=False, is_behind=False, has_members=True
)


@pytest.fixture
async def nodes(tmp_path: Path, autojump_clock: MockClock) -> AsyncIterator[list[Node]]:
    """Alice and carol, whose clocks show the 200th day. Alice wrote posts on the first, and writes now."""
    with open_nodes(tmp_path, "alice", "carol") as (alice, carol):
        await share(alice, carol)
        for text in OLD:
            alice.write(alice.branch(), text)
        for node in (alice, carol):
            node.set_clock(NOW_MS)
        for text in NEW:
            alice.write(alice.branch(), text)
        yield [alice, carol]


def _rule(node: Node, days: int) -> None:
    keep_contents(node.replica, node.repo(), None, days, node.now())
    node.hub.topics_changed()
    node.hub.absences.ring()


@asynccontextmanager
async def _online(carol: Node, alice: Node) -> AsyncIterator[Connection]:
    """Connect both, with what fetches bodies at carol; the side of alice."""
    with fail_after(60):
        async with connected(carol, alice) as (_, theirs), trio.open_nursery() as nursery:
            nursery.start_soon(BodyFetcher(carol.hub).run)
            await until_equal(alice, carol)
            await trio.sleep(5)  # receipts, and bodies that are missing
            yield theirs
            nursery.cancel_scope.cancel()


def _posts(node: Node) -> list[object]:
    """Texts of the posts of main; None where they are not here."""
    with node.replica.database.read() as connection:
        rows = load_timeline(connection, node.branch().num, 1, 1000)
        return [item["text"] for item in timeline_items(connection, node.replica, rows, 1)]


async def test_old_posts_come_without_contents_until_the_rule_is_gone(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    alice, carol = nodes
    _rule(carol, 90)
    sent: list[bytes] = []
    say = Connection.say

    def note(self: Connection, message: Message) -> None:
        if isinstance(message, Publications):
            sent.extend(message.items)
        say(self, message)

    monkeypatch.setattr(Connection, "say", note)
    async with _online(carol, alice):
        assert _posts(carol) == [None, None, None, *NEW]
        with carol.replica.database.read() as connection:
            assert find_topics_missing_bodies(connection) == {}
        assert sum(map(is_bare, sent)) == len(OLD), "they cost nobody's line"
        _rule(carol, 0)
        await trio.sleep(5)
        assert _posts(carol) == [*OLD, *NEW]


async def test_the_age_of_a_post_has_bounds_by_its_causes_and_by_when_it_came(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, carol = nodes
    _rule(carol, 90)
    alice.set_clock(START_MS)  # behind, on top of what was written now
    alice.write(alice.branch(), "backdated")
    alice.set_clock(NOW_MS + 5000 * DAY_MS)
    alice.write(alice.branch(), "to come")
    async with _online(carol, alice):
        assert _posts(carol) == [None, None, None, *NEW, "backdated", "to come"]
    with carol.replica.database.read() as connection:
        later = OldPosts(carol.branch().num, None, posts_from(90, NOW_MS + 91 * DAY_MS))
        assert count_old_posts(connection, later) == (4, 3), "nothing stays for ever"


async def test_who_keeps_recent_posts_is_counted_for_these_alone(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    """And as no holder of all any more: alice would forget the repo for the sake of who relies on her."""
    alice, carol = nodes
    network = Network(alice.hub, alice.seed, lambda: 0.0)
    standings = Standings(alice.hub, network)
    async with _online(carol, alice) as theirs:
        state = PeerState(theirs.peer, "", "in", "connected", 0, AddressSource.INCOMING, None)
        state.connection = theirs
        network.inbound.append(state)
        outlook = standings.outlook(alice.repo())
        assert standings.is_held(alice.repo(), outlook)
        _rule(carol, 90)
        await trio.sleep(5)
        outlook = standings.outlook(alice.repo())
        [link] = outlook.links
        assert (link.is_level, link.has_all, link.days, link.keeps) == (True, False, 90, None)
        assert not standings.is_held(alice.repo(), outlook)
        unheld = standings.count_unheld(alice.author.user, {alice.repo().num: outlook})
        assert unheld[alice.repo().num].commits == len(OLD), "documents and new posts are there"
        said = describe_standing(MEMBER, outlook, Unheld(), lambda _: {"name": "carol", "owner": None})
        assert [(part["code"], part["count"]) for part in said["parts"]] == [("keeps_recent", 90)]
        [holder] = standings.holders(alice.repo())
        seen = view_holder(holder, {"name": "carol", "owner": None})
        assert (seen["has_all"], seen["keeps"], seen["keeps_days"]) == (False, None, 90)
        alice.set_clock(NOW_MS + 89 * DAY_MS)
        outlook = standings.outlook(alice.repo())
        standings.look()
        await standings.save()
    assert Standings(alice.hub, network).outlook(alice.repo()).last is None


def test_what_has_been_kept_ever_since_is_the_least_of_what_was_said() -> None:
    some, days = KeptPart(frozenset()), KeptPart(None, 90)
    assert [one.is_all for one in (KEEPS_ALL, some, days)] == [True, False, False]
    assert KEEPS_ALL.meet(days) == days.meet(KEEPS_ALL) == days
    assert days.meet(KeptPart(None, 30)) == KeptPart(None, 30)
    assert some.meet(days) == days.meet(some) == KeptPart(frozenset(), 90)
