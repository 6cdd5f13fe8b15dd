"""Both topics of an epoch, and links' views of single branches, as peers compare them and are sent them."""

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, groupby, repeat
from pathlib import Path

import pytest
import trio
from sqlalchemy import select
from trio.testing import MockClock, wait_all_tasks_blocked

from node.authoring.drafting import Draft
from node.ingest.batch_order import BatchOrder
from node.sync import topic_work
from node.sync.session_queries import read_plans, read_store, read_summaries, topic_set
from node.sync.topic_work import LeftOut
from protocol.crypto.hashing import branch_secret, link_topic_seed
from protocol.crypto.signing import public_key
from protocol.formats.body import BranchLink, Grant, Permission
from protocol.formats.content import Post
from protocol.formats.links import BranchCapability, BranchChannel
from protocol.formats.publication import decode_publication
from protocol.ids import SHORT_ID_SIZE, CommitId, Digest, ShortId, TopicKey
from protocol.limits.peers import SUMMARY_HEAD_COUNT_MAX
from protocol.session.events import BatchLoaded, PlanLoaded
from protocol.session.messages import Goodbye, Publications, Summary
from protocol.session.outputs import LoadBatch, LoadPlan
from storage.repos.epochs import Topic, state_writers_topic
from storage.repos.repos import Branch
from storage.schema.schema import commits
from storage.topics.publishing import load_publications
from storage.topics.topic_sets import load_set
from tests.support.builders import writing_topic
from tests.support.machine import fail_after
from tests.support.nodes import Node, connected, open_nodes, share, together, until_equal
from tests.support.relays import is_settled, open_relay, until
from tests.support.strangers import met

_TURN = 256
"""Commits of one branch that are sent before another has its turn."""


@pytest.fixture
def alice(tmp_path: Path) -> Iterator[Node]:
    with open_nodes(tmp_path, "alice") as (node,):
        node.create_repo()
        yield node


def _write(node: Node, branch: Branch, count: int, acks: tuple[CommitId, ...] | None = None) -> None:
    """Posts, each on the heads of its branch or on what it is to ack."""
    drafts = [Draft(Post(f"post {number}"), acks) for number in range(count)]
    node.author.write_many(branch, lambda _: drafts)


def _link(node: Node, branch: Branch) -> Topic:
    """The topic of a branch that is followed by links, in the epoch that is written in."""
    root = node.replica.root_branch(node.repo())
    node.hub.announce(node.author.write(root, BranchLink(branch.branch_id))[1])
    return node.replica.tables.links_of(branch.num)[-1]


def _ids_of(node: Node, branch: Branch) -> set[bytes]:
    query = select(commits.c.commit_id).where(commits.c.branch_num == branch.num)
    with node.replica.database.read() as connection:
        return set(connection.execute(query).scalars())


def _ids(node: Node, topic: Topic) -> set[bytes]:
    with node.replica.database.read() as connection:
        return set(load_set(connection, topic_set(topic, of_publications=False))[1])


def _plan(node: Node, topic: Topic, held: Sequence[bytes] = ()) -> PlanLoaded:
    load = LoadPlan(topic.topic, tuple(ShortId(one[:SHORT_ID_SIZE]) for one in held))
    (plan,) = read_plans(node.replica, [(topic, load)])
    return plan


def _nums_of(node: Node, branch: Branch) -> set[int]:
    query = select(commits.c.num).where(commits.c.branch_num == branch.num)
    with node.replica.database.read() as connection:
        return set(connection.execute(query).scalars())


def _turns(node: Node, nums: Sequence[int]) -> list[tuple[str, int]]:
    """Names of branches, and how many commits of each are sent in a row."""
    with node.replica.database.read() as connection:
        rows = connection.execute(select(commits.c.num, commits.c.branch_num)).all()
    names = {num: node.replica.branches[branch_num].name for num, branch_num in rows}
    return [(name, len(list(group))) for name, group in groupby(names[num] for num in nums)]


@pytest.mark.slow
async def test_both_topics_of_an_epoch_are_compared(tmp_path: Path, autojump_clock: MockClock) -> None:
    """A reader's join goes on the epoch's own topic, what writers write on theirs."""
    with fail_after(60), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        repo, branch = alice.create_repo()
        await bob.joiner.begin(alice.invite(repo, Permission.READ))
        async with connected(bob, alice) as (of_bob, of_alice):
            await until_equal(alice, bob)
            while alice.replica.permission(repo, bob.author.user) is None:
                await alice.hub.changes.wait(alice.hub.changes.count)
            alice.write(branch, "for all who follow")
            await until_equal(alice, bob)
            own, writers = alice.epoch().topic, alice.epoch().writers_topic
            assert writers is not None
            for connection, sent in ((of_alice, {own: 1, writers: 4}), (of_bob, {own: 1, writers: 0})):
                assert {one.topic: one.sent for one in connection.topics} == sent
                assert {one.state for one in connection.topics} == {"in sync"}


@pytest.mark.slow
async def test_who_meets_several_epochs_is_level_at_once_and_sends_nothing_back(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """Inits wait for keys, and stand on two topics each: that they were sent is remembered, by whichever they came."""
    with fail_after(60), open_nodes(tmp_path, "alice", "bob", "carol") as (alice, bob, carol):
        await share(alice, carol)
        for number in range(3):
            alice.write(alice.branch(), f"in epoch {number}")
            alice.hub.announce(alice.author.start_epoch(alice.repo()))
        await bob.joiner.begin(alice.invite(alice.repo()))
        async with connected(bob, alice) as (of_bob, _), connected(carol, alice) as (of_carol, _):
            for node in (bob, carol):
                await until_equal(alice, node)
            while alice.replica.permission(alice.repo(), bob.author.user) is None:
                await alice.hub.changes.wait(alice.hub.changes.count)
            await trio.sleep(1)
            for connection, sent in ((of_bob, 1), (of_carol, 0)):
                assert len(connection.topics) == 2 * 4
                assert {(one.state, one.behind) for one in connection.topics} == {("in sync", 0)}
                assert sum(one.sent for one in connection.topics) == sent, "bob's join"


@pytest.mark.parametrize("is_own", [True, False])
async def test_a_peer_that_follows_one_topic_of_an_epoch_gets_what_is_on_it_alone(
    alice: Node, autojump_clock: MockClock, is_own: bool
) -> None:
    branch, epoch = alice.branch(), alice.epoch()
    topic = alice.replica.by_topic[epoch.topic] if is_own else writing_topic(alice.replica, branch)
    async with met(alice) as stranger:
        await stranger.compare(topic.topic)
        heard = [decode_publication(one) for one in (await stranger.hear(Publications)).items]
        assert {one.topic for one in heard} == {topic.topic}
        assert {one.commit_id for one in heard} == _ids(alice, topic)
        (source,) = alice.hub.sources
        both = (epoch.topic, epoch.writers_topic)
        assert [one for one in both if one is not None and source.has_joined(one)] == [topic.topic]
        await stranger.say(Goodbye("bye"))


def test_a_link_topic_is_a_view_of_one_branch_in_one_epoch(alice: Node) -> None:
    branch, other = alice.branch(), alice.author.founding.create_branch(alice.repo(), "other")[0]
    alice.write(branch, "before the link")
    link = _link(alice, branch)
    alice.write(other, "nothing of it is there")
    first = _ids(alice, link)
    assert first == _ids_of(alice, branch)
    alice.author.start_epoch(alice.repo())
    alice.write(branch, "in another epoch")
    of_epochs = alice.replica.tables.links_of(branch.num)
    assert [one.epochs[0].num for one in of_epochs] == [link.epochs[0].num, alice.epoch().num]
    assert _ids(alice, of_epochs[0]) == first
    assert _ids(alice, of_epochs[1]) == _ids_of(alice, branch) - first
    for topic, ids in ((of_epochs[0], first), (of_epochs[1], _ids(alice, of_epochs[1]))):
        (summary,) = read_summaries(alice.replica, [topic], of_publications=False)
        assert (summary.count, len(summary.heads)) == (len(ids), 1)
        nums = _plan(alice, topic).nums
        sent = read_store(alice.replica, topic, LoadBatch(topic.topic, tuple(nums)), of_publications=True)
        assert isinstance(sent, BatchLoaded)
        made = [decode_publication(one) for one in sent.items]
        assert {(one.topic, one.commit_id) for one in made} == {(topic.topic, one) for one in ids}


def test_a_link_topic_that_an_init_stated_before_is_followed_as_one(alice: Node) -> None:
    """An init may state what it likes as its writers' topic, and who may write knows what the link will be."""
    branch, epoch, root = alice.branch(), alice.epoch(), alice.replica.root_branch(alice.repo())
    assert epoch.writers_secret is not None
    stated = public_key(link_topic_seed(epoch.writers_secret, branch.branch_id))
    other = alice.author.founding.create_repo("other")[0]
    with alice.replica.change() as change:
        of_other = alice.replica.writing_epoch(other)
        state_writers_topic(alice.replica.database, change.connection, of_other, stated)
    alice.write(branch, "before the link")
    alice.author.write(root, BranchLink(branch.branch_id))
    (link,) = alice.replica.tables.links_of(branch.num)
    assert (link.topic, link.branch_id) == (stated, branch.branch_id)
    assert [one.epoch_id for one in link.writers_of] == [of_other.epoch_id]
    assert _ids(alice, link) == _ids_of(alice, branch)


@pytest.mark.slow
async def test_members_compare_a_linked_branch_by_the_epochs_topics_alone(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """Each commit of it would come twice, and go back."""
    with fail_after(60), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await share(alice, bob)
        link = _link(alice, alice.branch())
        await together(alice, bob)
        assert bob.replica.by_topic[link.topic].is_view
        for number in range(3):
            alice.write(alice.branch(), f"before {number}")
        async with connected(bob, alice) as (of_bob, of_alice):
            await until_equal(alice, bob)
            for number in range(3):
                alice.write(alice.branch(), f"meanwhile {number}")
                await until_equal(alice, bob)
            await trio.sleep(1)
            for connection, sent in ((of_bob, 0), (of_alice, 6)):
                assert len(connection.topics) == 2
                assert [one.sent for one in connection.topics] == [0, sent]


def _by_link(node: Node, branch: Branch, topic: Topic) -> BranchCapability:
    """What opens a branch alone, in the epoch that is written in."""
    repo, epoch = node.repo(), node.epoch()
    secret = branch_secret(epoch.key, branch.branch_id)
    channel = BranchChannel(epoch.epoch_id, topic.topic, secret, epoch.convergence_secret)
    return BranchCapability(repo.repo_id, repo.init_id, branch.branch_id, branch.name, (channel,), ())


@pytest.mark.slow
@pytest.mark.parametrize("is_by_relay", [True, False])
async def test_who_follows_a_branch_by_a_link_gets_it_from_members_and_from_a_relay(
    tmp_path: Path, autojump_clock: MockClock, is_by_relay: bool
) -> None:
    with (
        fail_after(120),
        open_nodes(tmp_path, "alice", "carol") as (alice, carol),
        open_relay(tmp_path / "r") as relay,
    ):
        _, branch = alice.create_repo()
        link = _link(alice, branch)
        alice.write(branch, "for all who have the link")
        async with connected(alice, relay) as (of_alice, _):
            await trio.sleep(1)
            await until(lambda: is_settled(alice))
            assert len(of_alice.topics) == 3, "the relay keeps it, too"
        async with connected(carol, relay if is_by_relay else alice):
            await trio.sleep(1)
            await carol.joiner.follow_branch(_by_link(alice, branch, link))
            await until_equal(alice, carol)
        async with connected(carol, alice) as (of_carol, _):
            await trio.sleep(1)
            assert [one.topic for one in of_carol.topics] == [link.topic]
            alice.write(branch, "as it is written")
            await until_equal(alice, carol)


async def test_a_link_that_is_made_meanwhile_is_announced_to_relays_and_to_who_has_announced_its_topic(
    tmp_path: Path, alice: Node, autojump_clock: MockClock
) -> None:
    branch, epoch = alice.branch(), alice.epoch()
    assert epoch.writers_secret is not None
    topic = public_key(link_topic_seed(epoch.writers_secret, branch.branch_id))
    with fail_after(60), open_relay(tmp_path / "r") as relay:
        async with connected(alice, relay) as (of_alice, _), met(alice) as stranger:
            await stranger.say(stranger.announcement(topic))
            await trio.sleep(1)
            assert _link(alice, branch).topic == topic
            said = await stranger.hear(Summary)
            await stranger.say(Summary(said.topic, 0, (), 0, Digest(bytes(32))))
            made = [decode_publication(one) for one in (await stranger.hear(Publications)).items]
            assert {one.commit_id for one in made} == _ids_of(alice, branch)
            await trio.sleep(1)
            assert [one.state for one in of_alice.topics] == ["in sync"] * 3
            await stranger.say(Goodbye("bye"))


@pytest.mark.slow
async def test_a_member_gets_commits_from_who_follows_a_branch_by_a_link(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with fail_after(120), open_nodes(tmp_path, "alice", "bob", "carol") as (alice, bob, carol):
        await share(alice, bob)
        link = _link(alice, alice.branch())
        await together(alice, bob)
        for number in range(2):
            alice.write(alice.branch(), f"bob is away {number}")
        await carol.joiner.follow_branch(_by_link(alice, alice.branch(), link))
        async with connected(carol, alice):
            await until_equal(alice, carol)
        async with connected(bob, carol) as (of_bob, _):
            await until_equal(alice, bob)
            await trio.sleep(1)
            (progress,) = [one for one in of_bob.topics if one.is_joined]
            assert (progress.topic, progress.state) == (link.topic, "in sync")
            assert (progress.received, progress.behind) == (2, 0)


@pytest.mark.slow
def test_the_root_branch_is_sent_first_and_the_others_in_turns(alice: Node) -> None:
    branch, other = alice.branch(), alice.author.founding.create_branch(alice.repo(), "other")[0]
    topic = writing_topic(alice.replica, branch)
    _write(alice, branch, 2 * _TURN)
    _write(alice, other, _TURN + 10)
    nums = _plan(alice, topic).nums
    assert _turns(alice, nums) == [
        ("root", 2),
        ("main", _TURN),
        ("other", _TURN),
        ("main", _TURN),
        ("other", 11),
        ("main", 1),
    ]
    assert len(nums) == len(_ids(alice, topic))
    for one in (branch, other):
        of_branch = [num for num in nums if num in _nums_of(alice, one)]
        assert of_branch == sorted(of_branch), "causes first"


@pytest.mark.slow
def test_what_a_peer_lacks_is_sent_in_turns_too(alice: Node) -> None:
    branch, other = alice.branch(), alice.author.founding.create_branch(alice.repo(), "other")[0]
    topic = writing_topic(alice.replica, branch)
    (before,) = read_summaries(alice.replica, [topic], of_publications=False)
    _write(alice, other, _TURN + 10)
    _write(alice, branch, _TURN + 5)
    plan = _plan(alice, topic, before.heads)
    assert plan.is_exact
    assert _turns(alice, plan.nums) == [("main", _TURN), ("other", _TURN), ("main", 5), ("other", 10)]


@pytest.mark.slow
async def test_of_more_heads_than_a_summary_names_nothing_is_concluded_and_all_is_sent(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """A topic has the heads of all branches of a repo, and each has as many as were written apart."""
    each = SUMMARY_HEAD_COUNT_MAX + 20
    with fail_after(120), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await share(alice, bob)
        topic, root_id = writing_topic(alice.replica, alice.branch()), alice.branch().facts.root_id
        for node in (alice, bob):
            _write(node, node.branch(), each, (root_id,))
            (summary,) = read_summaries(node.replica, [topic], of_publications=False)
            assert len(summary.heads) == SUMMARY_HEAD_COUNT_MAX == 256
            assert not _plan(node, topic, summary.heads).is_exact
        async with connected(bob, alice) as both:
            await until_equal(alice, bob)
            for connection in both:
                progress = connection.session.progress_of(topic.topic)
                assert progress is not None
                assert progress.sent == each


@pytest.mark.slow
async def test_what_was_dropped_before_its_epoch_was_taken_up_comes_on_the_same_connection(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two who do not hear of each other start epochs with one key, and so with one topic: that of the first is level."""
    with fail_after(60), open_nodes(tmp_path, "alice", "bob", "carol") as (alice, bob, carol):
        await share(alice, bob, carol)
        root = alice.replica.root_branch(alice.repo())
        alice.hub.announce(alice.author.write(root, Grant(carol.author.user, Permission.ADMIN))[1])
        await together(alice, bob, carol)
        for node in (alice, carol):
            drawn = chain([b"k" * 32], map(secrets.token_bytes, repeat(32)))
            with monkeypatch.context() as patch:
                patch.setattr(secrets, "token_bytes", lambda size, drawn=drawn: next(drawn)[:size])
                started = node.author.start_epoch(node.repo())
            node.hub.announce(started)
        await together(alice, bob)
        ((name, nums),) = started.accepted.items()
        with carol.replica.database.read() as connection:
            items = load_publications(connection, carol.replica.by_topic[name], nums, 1_000_000)
        take, is_held = bob.joiner._keys.take, True
        monkeypatch.setattr(bob.joiner._keys, "take", lambda *given: not is_held and take(*given))
        async with connected(bob, alice):
            await wait_all_tasks_blocked()
            previous, _ = BatchOrder().next(alice.repo().num, is_own=True)
            await alice.hub.intake.ingest(alice.replica.by_topic[name], items, previous, None)
            await trio.sleep(61)
            assert bob.hub.totals.refused["wrong_key"] == 3, "live, and in two rounds"
            is_held = False
            await bob.joiner.keep_up(bob.repo())
            await trio.sleep(31)
            assert bob.digest(bob.branch("root")) == alice.digest(alice.branch("root"))


def test_topics_of_which_commits_were_left_out_are_the_latest_and_due_with_an_epoch_that_is_no_claim(
    alice: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_work, "LEFT_OUT_TOPICS_MAX", 2)
    opened, epoch = alice.replica.by_topic[alice.epoch().topic], alice.epoch()
    claim = replace(epoch, claimed_by=alice.author.user)
    topics = [replace(opened, topic=TopicKey(bytes((number,)) * 32)) for number in range(3)]
    left_out = LeftOut()
    for topic in (*topics, topics[1]):
        left_out.note(topic)
    grown = {one.topic: replace(one, epochs=(*one.epochs, claim)) for one in topics}
    assert left_out.take_due(grown) == []
    grown = {one.topic: replace(one, epochs=(*one.epochs, epoch)) for one in topics}
    assert left_out.take_due(grown) == [topics[2].topic, topics[1].topic], "two, the latest"
    assert left_out.take_due(grown) == []
    left_out.note(topics[0])
    assert left_out.take_due({}) == [topics[0].topic]
