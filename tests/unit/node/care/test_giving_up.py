"""Contents of old posts are given up where a member's node shows that it has them, and come again when they are opened."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from sqlalchemy import Connection as StoreConnection
from sqlalchemy import select
from trio.testing import MockClock

from node.api.value_documents import edit_set, show_set
from node.care import giving_up
from node.care.fsck import check_store
from node.care.giving_up import PostAges
from node.content import erasing
from node.content.documents import Documents
from node.content.erasing import find_erasable, make_erasures
from node.ingest.replica import Replica
from node.sync import session_queries
from node.sync.body_fetching import BodyFetcher
from node.sync.body_proofs import BodyProofs
from node.sync.connection import Connection
from node.sync.conversation import Conversation
from node.sync.kept_parts import find_keepers, keep_contents
from node.timelines.timelines import Timelines
from protocol.formats.body import Permission
from protocol.formats.content import Compaction
from protocol.ids import CommitId, TopicKey, UserId
from protocol.limits.users import KEPT_DAYS_MAX
from storage.commits.absent_bodies import OldPosts, count_erased, erase_bodies, load_old_posts
from storage.commits.blocks import DamagedBlock
from storage.repos.repos import DAY_MS, Repo, posts_from
from storage.schema.schema import commits
from storage.topics.difference import find_nums
from storage.topics.topic_sets import TopicSet
from tests.support.builders import STORE_KEY
from tests.support.machine import fail_after
from tests.support.nodes import Node, connected, open_nodes, renewing_of, share, together, until_equal

pytestmark = pytest.mark.slow
START_MS = 1_700_000_000_000
NOW_MS = START_MS + 200 * DAY_MS
OLD = ["old 0", "old 1", "old 2"]
NEW = ["new 0", "new 1"]
GONE = [None, None, None]


@pytest.fixture
async def nodes(tmp_path: Path, autojump_clock: MockClock) -> AsyncIterator[list[Node]]:
    """Alice, carol and bob, whose clocks show the 200th day. Alice wrote posts and a set on the first, and writes now."""
    with open_nodes(tmp_path, "alice", "carol", "bob") as (alice, carol, bob):
        await share(alice, carol, bob)
        for text in OLD:
            alice.write(alice.branch(), text)
        await edit_set(Documents(alice.hub, alice.author, alice.branch), "main", ["hammer"], ())
        for node in (alice, carol, bob):
            node.set_clock(NOW_MS)
        for text in NEW:
            alice.write(alice.branch(), text)
        yield [alice, carol, bob]


def rule(node: Node, days: int) -> None:
    """Keep posts of some days from now on, as the API does."""
    node.hub.lacking_bodies |= {one.topic for one in node.replica.topics.values()}
    node.hub.proofs.rules.ring()
    keep_contents(node.replica, node.repo(), None, days, node.now())
    node.hub.topics_changed()
    node.hub.opened |= {one.topic for one in node.replica.topics.values()}
    node.hub.absences.ring()
    node.hub.proofs.rules.ring()


@asynccontextmanager
async def online(*pairs: tuple[Node, Node], seconds: float = 300) -> AsyncIterator[None]:
    """Connect pairs of nodes that know each other's users, with what fetches bodies on each, for so long at most."""
    with fail_after(seconds):
        async with trio.open_nursery() as nursery:

            async def connect(one: Node, other: Node) -> None:
                async with connected(one, other) as (ours, theirs):
                    one.hub.owners.note(ours.peer, other.author.user, one.repo().repo_id)
                    other.hub.owners.note(theirs.peer, one.author.user, one.repo().repo_id)
                    await trio.sleep_forever()

            for node in {id(one): one for pair in pairs for one in pair}.values():
                nursery.start_soon(BodyFetcher(node.hub).run)
            for pair in pairs:
                nursery.start_soon(connect, *pair)
            for one, other in pairs:
                await until_equal(one, other, "root")
                await until_equal(one, other)
            await trio.sleep(5)  # receipts, and bodies that are missing
            yield
            nursery.cancel_scope.cancel()


async def look(node: Node) -> int:
    return await PostAges(node.hub, node.author.user).look()


async def posts(node: Node) -> list[str | None]:
    """Texts of the posts of main, without asking anybody; None where they are not here."""
    window = await Timelines(_Deaf(node), node.branch).window("main", -1, 100)  # type: ignore[arg-type]
    return [one["text"] for one in window["items"] if one["kind"] == "post"]


class _Deaf:
    """A node's hub that has nobody to ask."""

    def __init__(self, node: Node) -> None:
        self.replica, self.run_blocking, self.windows = node.replica, node.hub.run_blocking, node.hub.windows
        self.store_name = node.hub.store_name

    async def write(self, *_: object) -> dict[int, int]:
        return {}

    sources = ()


async def opened(node: Node) -> list[str | None]:
    window = await Timelines(node.hub, node.branch).window("main", -1, 100)
    return [one["text"] for one in window["items"] if one["kind"] == "post"]


async def test_old_posts_are_given_up_once_a_member_has_shown_them(
    nodes: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    alice, carol, _ = nodes
    async with online((carol, alice)):
        assert await posts(carol) == [*OLD, *NEW]
        assert await look(carol) == 0, "there is no rule"
        rule(carol, 90)
        before = carol.digest(carol.branch())
        assert await look(carol) == len(OLD)
        assert await look(carol) == 0
        assert await posts(carol) == [*GONE, *NEW]
        assert await posts(alice) == [*OLD, *NEW]
        items = (await show_set(Documents(carol.hub, carol.author, carol.branch), "main", 0, 9))["items"]
        assert [row["item"] for row in items] == ["hammer"], "documents are kept whole"
        assert carol.digest(carol.branch()) == before == alice.digest(alice.branch())
        await trio.sleep(5)
        assert await posts(carol) == [*GONE, *NEW], "they do not come by themselves"
        assert await opened(carol) == [*OLD, *NEW]
        assert await look(carol) == len(OLD), "what was opened goes again"
    assert await opened(carol) == [*GONE, *NEW]
    carol.replica.close()
    assert check_store(tmp_path / "carol", STORE_KEY).problems == []
    carol.open()
    assert carol.repo().kept_days == 90
    async with online((carol, alice)):
        rule(carol, 0)
        await trio.sleep(5)
        assert await posts(carol) == [*OLD, *NEW], "the rule is gone, and all comes"


async def test_a_post_that_came_again_has_the_size_that_it_had(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, carol, _ = nodes

    def sizes() -> dict[CommitId, int]:
        with carol.replica.database.read() as connection:
            rows = connection.execute(select(commits.c.commit_id, commits.c.size))
            return dict(map(tuple, rows))

    async with online((carol, alice)):
        before = sizes()
        rule(carol, 90)
        assert await look(carol) == len(OLD)
        assert await opened(carol) == [*OLD, *NEW]
        assert sizes() == before


async def test_a_post_that_nobody_has_keeps_no_older_ones_away_once_all_are_kept(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, carol, _ = nodes
    async with online((carol, alice)):
        rule(carol, 90)
        assert await look(carol) == len(OLD)
        erase(alice, OLD[2:])
        assert await opened(carol) == [*OLD[:2], None, *NEW]
        assert await look(carol) == 2
        rule(carol, 0)
        await trio.sleep(5)
        assert await posts(carol) == [*OLD[:2], None, *NEW]


async def test_they_are_asked_for_a_part_at_a_time(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    alice, carol, _ = nodes
    monkeypatch.setattr(giving_up, "ASKED_AT_ONCE", 2)
    async with online((carol, alice)):
        rule(carol, 90)
        assert await look(carol) == len(OLD)


async def test_posts_of_ended_epochs_whose_topics_rest_go_too(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, carol, bob = nodes
    await together(alice, carol, bob)
    await renewing_of(alice).renew("")
    alice.write(alice.branch(), "of the next epoch")
    async with online((carol, alice)):
        pass
    async with online((carol, alice)):
        rule(carol, 90)
        assert await look(carol) == len(OLD)
        assert await posts(carol) == [*GONE, *NEW, "of the next epoch"]
    async with online((carol, alice)):
        assert await opened(carol) == [*OLD, *NEW, "of the next epoch"], "their topics rest again, until then"


async def test_what_this_user_wrote_stays(nodes: list[Node], autojump_clock: MockClock) -> None:
    """So no author's posts are lost by what others say, as long as the author's node is there."""
    alice, carol, _ = nodes
    async with online((carol, alice)):
        rule(alice, 90)
        assert await look(alice) == 0
        assert await posts(alice) == [*OLD, *NEW]


def _forget_owner(alice: Node, carol: Node) -> None:
    carol.hub.owners.load(())


def _be_the_same_user(alice: Node, carol: Node) -> None:
    carol.hub.owners.me = alice.author.user


def _be_no_member(alice: Node, carol: Node) -> None:
    for source in carol.hub.sources:
        carol.hub.owners.note(source.peer, UserId(bytes(32)), carol.repo().repo_id)


def _keep_no_branch(alice: Node, carol: Node) -> None:
    keep_contents(alice.replica, alice.repo(), set())
    alice.hub.topics_changed()


def _keep_recent_posts(alice: Node, carol: Node) -> None:
    rule(alice, 3650)


def _have_erased(alice: Node, carol: Node) -> None:
    erase(alice)


def _leave(alice: Node, carol: Node) -> None:
    for source in carol.hub.sources:
        source.part("stopping")


def erase(node: Node, texts: Sequence[str] = OLD) -> None:
    """Erase the last of the old posts for good, as many as these are."""
    with node.replica.database.write() as connection:
        branch = node.branch()
        rows = load_old_posts(connection, OldPosts(branch.num, None, NOW_MS - 90 * DAY_MS), 0, 100)[
            -len(texts) :
        ]
        erase_bodies(connection, branch.num, list(make_erasures(node.replica, connection, rows)), NOW_MS)


@pytest.mark.parametrize(
    "become",
    [
        _forget_owner,
        _be_the_same_user,
        _be_no_member,
        _keep_no_branch,
        _keep_recent_posts,
        _have_erased,
        _leave,
    ],
)
async def test_for_whose_sake_nothing_is_given_up(
    nodes: list[Node], become: Callable[[Node, Node], None], autojump_clock: MockClock
) -> None:
    """A reader by a link is unknown; a relay compares publications; a second node of this user may be this one's copy."""
    alice, carol, _ = nodes
    async with online((carol, alice)):
        rule(carol, 90)
        become(alice, carol)
        await trio.sleep(3)
        assert await look(carol) == 0
        assert await posts(carol) == [*OLD, *NEW]


async def test_two_who_keep_less_give_nothing_up_for_each_other(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    _, carol, bob = nodes
    async with online((carol, nodes[0]), (bob, nodes[0])):
        pass
    async with online((carol, bob)):
        for node in (carol, bob):
            rule(node, 90)
        assert [await look(node) for node in (carol, bob, carol)] == [0, 0, 0]
        rule(bob, 0)
        await trio.sleep(3)
        assert await look(bob) == 0
        assert await look(carol) == len(OLD), "bob keeps all again, and shows it"
        rule(bob, 90)
        await trio.sleep(3)
        assert await look(bob) == 0
        assert await posts(bob) == [*OLD, *NEW], "the last copy stays"


async def test_both_who_keep_less_rely_on_the_one_who_keeps_all(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, carol, bob = nodes
    async with online((carol, alice), (bob, alice), (carol, bob)):
        for node in (carol, bob):
            rule(node, 90)
        found = {}
        async with trio.open_nursery() as nursery:  # at the same time

            async def run(node: Node) -> None:
                found[node] = await look(node)

            for node in (carol, bob):
                nursery.start_soon(run, node)
        assert found == {carol: len(OLD), bob: len(OLD)}
        assert await posts(alice) == [*OLD, *NEW]


def _between_showing_and_giving_up(monkeypatch: pytest.MonkeyPatch, happen: Callable[[], None]) -> None:
    """Let something happen once a peer has shown posts, before they are given up."""
    ask = BodyProofs.ask

    async def ask_then_wait(
        self: BodyProofs, source: Conversation, topic: TopicKey, ids: list[CommitId]
    ) -> set[CommitId]:
        shown = await ask(self, source, topic, ids)
        assert len(shown) == len(OLD)
        happen()
        await trio.sleep(3)
        return shown

    monkeypatch.setattr(BodyProofs, "ask", ask_then_wait)


def _keep_less_at_the_holder(alice: Node, carol: Node) -> None:
    rule(alice, 90)


def _change_the_rule(alice: Node, carol: Node) -> None:
    rule(carol, 0)


def _change_the_rule_and_back(alice: Node, carol: Node) -> None:
    """Between, this node has said that it keeps all, and another may have relied on that."""
    rule(carol, 0)
    rule(carol, 90)


@pytest.mark.parametrize(
    "happen", [_keep_less_at_the_holder, _change_the_rule, _change_the_rule_and_back, _leave]
)
async def test_what_was_shown_is_of_no_use_once_something_has_changed(
    nodes: list[Node],
    monkeypatch: pytest.MonkeyPatch,
    happen: Callable[[Node, Node], None],
    autojump_clock: MockClock,
) -> None:
    alice, carol, _ = nodes
    async with online((carol, alice)):
        rule(carol, 90)
        _between_showing_and_giving_up(monkeypatch, lambda: happen(alice, carol))
        assert await look(carol) == 0
        assert await posts(carol) == [*OLD, *NEW]


def _exclude(monkeypatch: pytest.MonkeyPatch, user: UserId) -> None:
    members = Replica.members

    def find(self: Replica, repo: Repo) -> dict[UserId, Permission]:
        return {one: may for one, may in members(self, repo).items() if one != user}

    monkeypatch.setattr(Replica, "members", find)


def _count_asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count the posts that peers are asked to show, by question."""
    ask, counts = BodyProofs.ask, list[int]()

    async def count(
        self: BodyProofs, source: Conversation, topic: TopicKey, ids: list[CommitId]
    ) -> set[CommitId]:
        counts.append(len(ids))
        return await ask(self, source, topic, ids)

    monkeypatch.setattr(BodyProofs, "ask", count)
    return counts


def _stop_being_a_member(monkeypatch: pytest.MonkeyPatch, alice: Node, carol: Node) -> None:
    _exclude(monkeypatch, carol.author.user)


def _exclude_the_holder(monkeypatch: pytest.MonkeyPatch, alice: Node, carol: Node) -> None:
    _exclude(monkeypatch, alice.author.user)


def _damage_the_membership(monkeypatch: pytest.MonkeyPatch, alice: Node, carol: Node) -> None:
    def find(self: Replica, repo: Repo) -> dict[UserId, Permission]:
        raise DamagedBlock("of a root commit")

    monkeypatch.setattr(Replica, "members", find)


def _declare_no_kinds(monkeypatch: pytest.MonkeyPatch, alice: Node, carol: Node) -> None:
    monkeypatch.setattr(erasing, "declared_kind", lambda *_, **__: None)


@pytest.mark.parametrize(
    "become", [_stop_being_a_member, _exclude_the_holder, _damage_the_membership, _declare_no_kinds]
)
async def test_nobody_is_asked_to_show_what_could_not_be_given_up_then(
    nodes: list[Node],
    monkeypatch: pytest.MonkeyPatch,
    become: Callable[[pytest.MonkeyPatch, Node, Node], None],
    autojump_clock: MockClock,
) -> None:
    """The posts would cross the line again at each look."""
    alice, carol, _ = nodes
    async with online((carol, alice)):
        rule(carol, 90)
        with monkeypatch.context() as patch:
            asked = _count_asked(monkeypatch)
            become(patch, alice, carol)
            assert await look(carol) == 0
            assert asked == []
        assert await look(carol) == len(OLD)
        assert asked == [len(OLD)]


@pytest.mark.parametrize("gone", ["alice", "carol"])
async def test_who_is_no_member_as_the_transaction_sees_it_counts_for_nothing(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch, gone: str, autojump_clock: MockClock
) -> None:
    """Excluded meanwhile: the holder serves this node no more, or this one is served no more."""
    alice, carol, _ = nodes
    user = (alice if gone == "alice" else carol).author.user
    async with online((carol, alice)):
        rule(carol, 90)
        _between_showing_and_giving_up(monkeypatch, lambda: _exclude(monkeypatch, user))
        assert await look(carol) == 0
        assert await posts(carol) == [*OLD, *NEW]


async def test_who_says_to_have_them_and_sends_none_is_not_believed(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    alice, carol, _ = nodes
    async with online((carol, alice)):
        rule(carol, 90)
        erase(alice)
        said: list[int] = []

        def find_all(connection: StoreConnection, kept: TopicSet, ids: Sequence[CommitId]) -> list[int]:
            said.extend(find_nums(connection, kept.num, ids, kept.tables))
            return said

        monkeypatch.setattr(session_queries, "find_whole", find_all)
        assert await look(carol) == 0
        assert len(said) == len(OLD), "she was asked, and said that she had all"
        assert await posts(carol) == [*OLD, *NEW]


async def test_what_was_on_its_way_before_the_answer_shows_nothing(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    """The peer read these posts at another time: its later rule may still be on its way."""
    alice, carol, _ = nodes
    async with online((carol, alice)):
        rule(carol, 90)
        monkeypatch.setattr(Connection, "bodies_found", lambda *_: None)
        assert await look(carol) == 0
        assert await posts(carol) == [*OLD, *NEW]


async def test_a_node_that_stops_before_it_gives_up_has_all(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    alice, carol, _ = nodes
    async with online((carol, alice)):
        rule(carol, 90)
        with trio.CancelScope() as scope:
            _between_showing_and_giving_up(monkeypatch, scope.cancel)
            await look(carol)
        assert scope.cancelled_caught
    carol.replica.close()
    carol.open()
    assert await posts(carol) == [*OLD, *NEW]
    assert await look(carol) == 0, "nobody is there"


async def test_what_a_compaction_released_stays_for_who_has_it_may_erase_it(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, carol, _ = nodes
    _, ingested = alice.author.write(alice.branch(), Compaction(()))
    alice.hub.announce(ingested)
    alice.set_clock(START_MS)
    alice.write(alice.branch(), "later")
    alice.set_clock(NOW_MS)
    async with online((carol, alice)):
        with alice.replica.database.read() as connection:
            assert len(find_erasable(alice.replica, connection, alice.branch(), NOW_MS + DAY_MS)) == 5
        rule(carol, 90)
        carol.set_clock(NOW_MS + 100 * DAY_MS)
        assert await look(carol) == 1
        assert await posts(carol) == [*OLD, *NEW, None]


async def test_only_peers_that_share_the_topic_are_keepers(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, carol, _ = nodes
    topic = next(one for one in carol.replica.topics.values() if one.topic == carol.epoch().topic)
    assert find_keepers(carol.hub, topic) == []
    async with online((carol, alice)):
        assert [user for _, user in find_keepers(carol.hub, topic, carol.branch().num)] == [alice.author.user]
        assert len(find_keepers(carol.hub, topic)) == 1
        keep_contents(alice.replica, alice.repo(), {alice.branch().num})
        alice.hub.topics_changed()
        await trio.sleep(1)
        assert len(find_keepers(carol.hub, topic, carol.branch().num)) == 1
        assert find_keepers(carol.hub, topic) == [], "branches that are added are not kept"


def test_a_rule_of_any_length_leaves_times_in_range(tmp_path: Path) -> None:
    assert posts_from(0, NOW_MS) == 0
    assert posts_from(KEPT_DAYS_MAX, 0) == 1, "a clock that shows 1970 gives nothing up"
    with open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        alice.write(alice.branch(), "text")
        rule(alice, KEPT_DAYS_MAX)
        with alice.replica.database.read() as connection:
            assert count_erased(connection, alice.branch().num) == 0
