"""Vouchers: a newcomer reads the newest posts by the word of who made the link, before the root branch is here."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import trio
from msgspec import structs
from trio.testing import MockClock, wait_all_tasks_blocked

from node.authoring.drafting import aim
from node.ingest.kept_windows import ShownWindow
from node.ingest.publication_parsing import open_batch
from node.ingest.vouchers import Vouched, find_vouched
from node.membership.sharing import _POSTS_SHOWN_SECONDS, Sharing
from node.membership.vouching import make_voucher
from node.observe.sentences import standing_sentence
from node.observe.standing_view import NO_OUTLOOK, RepoFacts, Unheld, describe_standing
from node.sync.session_queries import Load
from node.sync.topic_work import TopicWork
from node.timelines.timelines import Timelines
from protocol.codec import encode
from protocol.crypto.hashing import writers_topic_seed
from protocol.crypto.keys import UserSeed, WritersSecret
from protocol.crypto.signing import key_pair, sign
from protocol.formats.body import Grant, Permission, Remove
from protocol.formats.links import InvitationLink, NewestPosts, Voucher
from protocol.formats.proofs import voucher_digest
from protocol.formats.text import id_text
from protocol.ids import BranchId, CommitId, Signature, TopicKey
from protocol.limits.formats import LINK_HEAD_COUNT_MAX
from protocol.session.outputs import LoadWindow
from ravel.types.repos import StandingPart
from tests.support.builders import give, timeline
from tests.support.ids import as_commit_id
from tests.support.machine import fail_after
from tests.support.nodes import Node, connected, ids, open_nodes, share, together
from tests.support.relays import open_relay
from tests.support.served import service_of
from tests.support.windows import forge
from tests.unit.node.sync.test_windows import _owner

_POSTS, _WINDOW, _AT = 40, 20, 1_700_000_000_000


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("node.sync.windows", "node.membership.vouching"):
        monkeypatch.setattr(f"{name}.WINDOW_BEHIND_MIN", 30)
        monkeypatch.setattr(f"{name}.WINDOW_ASK_COUNT", _WINDOW)


def _invite(node: Node) -> InvitationLink:
    """A link of the node's one repo, with what it vouches for."""
    link = node.invite(node.repo())
    voucher = make_voucher(
        node.replica, node.author, node.repo(), node.epoch(), link.invitation, "Ann", _AT + 999
    )
    return structs.replace(link, voucher=voucher)


def _state(link: InvitationLink, seed: UserSeed, **changes: object) -> InvitationLink:
    """The link with another statement, signed by this user."""
    assert link.voucher is not None
    maker, secret = key_pair(seed)
    states: NewestPosts = structs.replace(link.voucher.states, maker=maker, **changes)
    digest = voucher_digest(link.repo, link.invitation, states)
    return structs.replace(link, voucher=Voucher(states, sign(secret, digest)))


def _shown(node: Node) -> ShownWindow | None:
    return node.hub.windows.find(node.branch().num)


async def _told(node: Node, folder: Path) -> list[StandingPart]:
    """What people are told of the node's one repo."""
    [shown] = (await service_of(node, folder).branches.repo_list.list())["repos"]
    return shown["standing"]["parts"]


@contextmanager
def _withheld_from(node: Node) -> Iterator[None]:
    """Others answer the node's questions for newest posts, and no other."""
    load = TopicWork._load

    async def withhold(work: TopicWork, wanted: Load) -> None:
        if work._hub is node.hub or (isinstance(wanted, LoadWindow) and not wanted.is_upwards):
            await load(work, wanted)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(TopicWork, "_load", withhold)
        yield


@pytest.mark.slow
@pytest.mark.parametrize("by_relay", [False, True])
async def test_a_newcomer_reads_the_newest_posts_while_nothing_of_the_root_branch_is_here(
    tmp_path: Path, autojump_clock: MockClock, by_relay: bool
) -> None:
    with fail_after(120), open_nodes(tmp_path, "alice", "bob") as (alice, bob), open_relay(tmp_path) as relay:
        _, branch = alice.create_repo()
        for number in range(_POSTS):
            alice.write(branch, str(number))
        link, known = _invite(alice), ids(alice)
        alice.write(branch, "later")
        if by_relay:
            async with connected(alice, relay):
                await wait_all_tasks_blocked()
        await bob.joiner.begin(link)
        source = relay if by_relay else alice
        with _withheld_from(bob):
            async with connected(bob, source):
                await trio.sleep(20)
        assert bob.replica.read_tables().roots[link.repo].commit_count == 0
        shown = _shown(bob)
        assert shown is not None
        assert [id_text(one.commit_id) for one in shown.listed] == known[-_WINDOW:]
        assert shown.vouched is not None
        window = await Timelines(bob.hub, lambda _: bob.branch()).window_before("", 2**52, 5)
        maker = {"user": id_text(alice.author.user), "name": "Ann", "at": _AT // 1000}
        assert window["arriving"].get("vouched") == maker
        told = {"code": "vouched", "people": ["Ann"], "at": _AT // 1000}
        assert told in await _told(bob, tmp_path / "told")
        assert [one["commit"] for one in window["arriving"]["items"]] == known[-5:]
        async with connected(bob, source):
            await wait_all_tasks_blocked()
        assert ids(bob) == ids(alice)
        assert _shown(bob) is None, "the word is not needed any more"
        assert bob.hub.windows.vouchers.promised() == []


async def test_soon_after_an_exclusion_posts_of_the_epoch_before_are_read_with_the_new_ones(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with fail_after(120), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        repo, branch = alice.create_repo()
        for number in range(_POSTS):
            alice.write(branch, str(number))
        root, eve = alice.replica.root_branch(repo), key_pair(UserSeed(b"e" * 32))[0]
        for body in (Grant(eve, Permission.READ), Remove(eve, None, ())):
            alice.hub.announce(alice.author.write(root, body)[1])
        alice.write(branch, "after")
        await bob.joiner.begin(_invite(alice))
        with _withheld_from(bob):
            async with connected(bob, alice):
                await trio.sleep(20)
        shown = _shown(bob)
        assert shown is not None
        assert [id_text(one.commit_id) for one in shown.listed] == ids(alice)[-_WINDOW - 1 :]
        async with connected(bob, alice):
            await wait_all_tasks_blocked()
        assert ids(bob) == ids(alice)
        assert bob.hub.windows.vouchers.promised() == []


async def test_a_join_ends_soon_after_posts_can_be_read(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def reach(*_: object) -> None:
        """Dial nobody: the two are connected."""

    monkeypatch.setattr(Sharing, "_reach", reach)
    with fail_after(120), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        _, branch = alice.create_repo()
        for number in range(_POSTS):
            alice.write(branch, str(number))
        made = await service_of(alice, tmp_path).people.invite("repo", "write", 3600, 1, "machine", False)
        with _withheld_from(bob):
            async with connected(bob, alice):
                began = trio.current_time()
                await service_of(bob, tmp_path).people.sharing.join(made["invitation"])
                assert trio.current_time() - began <= _POSTS_SHOWN_SECONDS + 0.1
                assert bob.replica.permission(bob.repo(), bob.author.user) is None
                shown = _shown(bob)
                assert shown is not None
                assert len(shown.listed) == _WINDOW


async def test_posts_stay_while_the_root_branch_comes(tmp_path: Path, autojump_clock: MockClock) -> None:
    """Its first commit says that their author is an owner, a witness; the places on which they stand come later."""
    with fail_after(120), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        _, branch = alice.create_repo()
        for number in range(_POSTS):
            alice.write(branch, str(number))
        link, seen = _invite(alice), dict[int, tuple[int, bool]]()
        await bob.joiner.begin(link)

        async def look() -> None:
            while True:
                count = bob.hub.changes.count
                tables, shown = bob.replica.read_tables(), _shown(bob)
                if shown is not None and not ids(bob):
                    seen[tables.roots[link.repo].commit_count] = len(shown.listed), shown.vouched is not None
                await bob.hub.changes.wait(count)

        async with trio.open_nursery() as nursery, connected(bob, alice):
            nursery.start_soon(look)
            await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        assert {count for count, _ in seen.values()} == {_WINDOW}
        assert [seen[0][1], seen[1][1], seen[max(seen)][1]] == [True, True, False], "by whose word"


async def test_posts_leave_when_the_link_turns_out_to_name_a_rejected_one_and_its_maker_is_named(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with fail_after(120), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        repo, branch = alice.create_repo()
        for number in range(_POSTS):
            alice.write(branch, str(number))
        target = aim(branch.facts, branch.num, alice.epoch())
        (head,) = alice.heads(branch)
        fault = forge(target, _owner(alice), repo.init_id, 100, (head,))
        link = _state(_invite(alice), alice.user_seed, rank=100, heads=(fault.commit_id,))
        await bob.joiner.begin(link)
        (topic,) = bob.hub.windows.vouchers.promised()
        bob.hub.windows.keep(bob.branch().num, topic, open_batch(topic, [fault.encoded]).opened)
        shown = _shown(bob)
        assert shown is not None
        assert [one.commit_id for one in shown.listed] == [fault.commit_id]
        assert shown.vouched is not None
        async with connected(bob, alice):
            await wait_all_tasks_blocked()
        assert ids(bob) == ids(alice)
        give(bob.replica, [fault.encoded])
        shown = _shown(bob)
        assert shown is None or not shown.listed
        with bob.replica.database.read() as connection:
            false = bob.hub.windows.vouchers.find_false(connection, bob.repo().num)
        assert false is not None
        assert false.states.maker == alice.author.user
        assert {"code": "false_voucher", "people": ["Ann"]} in await _told(bob, tmp_path / "told")


async def test_the_word_of_who_was_removed_or_did_not_make_the_invitation_is_not_believed(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with fail_after(120), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await share(alice, bob)
        root, branch = alice.replica.root_branch(alice.repo()), alice.branch()
        for number in range(_POSTS):
            alice.write(branch, str(number))
        alice.hub.announce(alice.author.write(root, Grant(bob.author.user, Permission.ADMIN))[1])
        await together(alice, bob)
        link = _invite(bob)
        await together(alice, bob)
        target = aim(branch.facts, branch.num, alice.epoch())
        mallory, eve = UserSeed(b"m" * 32), key_pair(UserSeed(b"e" * 32))
        granted, _ = alice.author.write(root, Grant(eve[0], Permission.WRITE))
        post = forge(target, eve, alice.repo().init_id, 100, None, (granted.commit_id,))
        windows, topic = alice.hub.windows, alice.replica.by_topic[target.topic]
        windows.keep(branch.num, topic, open_batch(topic, [post.encoded]).opened)

        def look(seed: UserSeed, invitation: CommitId = link.invitation) -> tuple[int, int]:
            said = _state(link, seed, rank=100, heads=(post.commit_id,)).voucher
            assert said is not None
            windows.vouchers._found[alice.repo().num] = Vouched(invitation, link.epoch, said.states)
            found = windows.find(branch.num)
            assert found is not None
            assert (found.vouched is not None) == bool(found.listed)
            return len(found.listed), found.waiting

        assert look(bob.user_seed) == (1, 0)
        assert look(mallory) == (0, 1)
        above = forge(target, eve, alice.repo().init_id, 101, (post.commit_id,), (granted.commit_id,))
        windows.keep(branch.num, topic, open_batch(topic, [above.encoded]).opened)
        assert look(bob.user_seed) == (2, 0)
        assert look(bob.user_seed, above.commit_id) == (1, 1), (
            "who wrote it may be removed before the link was made"
        )
        alice.hub.announce(alice.author.write(root, Remove(bob.author.user, None, ()))[1])
        assert look(bob.user_seed) == (0, 2)


@pytest.mark.parametrize("is_replaced", [False, True])
async def test_a_branch_that_a_link_alone_names_is_gone_when_the_join_is_over(
    tmp_path: Path, autojump_clock: MockClock, is_replaced: bool
) -> None:
    with fail_after(120), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        _, branch = alice.create_repo()
        for number in range(_POSTS):
            alice.write(branch, str(number))
        other, link = BranchId(b"b" * 32), _invite(alice)
        await bob.joiner.begin(_state(link, alice.user_seed, branch=other, branch_name="made up"))
        assert bob.branch("made up").branch_id == other
        if is_replaced:
            await bob.joiner.begin(link)
        async with connected(bob, alice):
            await wait_all_tasks_blocked()
        assert ids(bob) == ids(alice)
        assert {one.name for one in bob.replica.branches.values()} == {"root", "main"}


async def test_posts_on_a_topic_that_only_a_link_calls_the_writers_leave_when_the_epoch_names_another(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """Who reads has all that a link needs but the writers' secret, and makes one up with a topic of its own."""
    with fail_after(120), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        repo, branch = alice.create_repo()
        for number in range(_POSTS):
            alice.write(branch, str(number))
        secret, epoch, mallory = WritersSecret(b"w" * 32), alice.epoch(), UserSeed(b"m" * 32)
        seed = writers_topic_seed(secret, repo.repo_id, epoch.keys.mark)
        own = replace(epoch, writers_secret=secret, writers_topic=TopicKey(key_pair(seed)[0]))
        target = aim(branch.facts, branch.num, own)
        post = forge(target, key_pair(mallory), repo.init_id, 100)
        never = structs.replace(_invite(alice), invitation=post.commit_id)
        link = _state(never, mallory, topic=target.topic, rank=100, heads=(post.commit_id,))
        await bob.joiner.begin(link)
        windows = bob.hub.windows
        (topic,) = windows.vouchers.promised()
        windows.keep(bob.branch().num, topic, open_batch(topic, [post.encoded]).opened)
        shown = _shown(bob)
        assert shown is not None
        assert [one.commit_id for one in shown.listed] == [post.commit_id]
        async with connected(bob, alice):
            await wait_all_tasks_blocked()
        assert ids(bob) == ids(alice)
        assert _shown(bob) is None
        assert windows.vouchers.promised() == [], "it is announced to nobody more"


async def test_posts_of_nobody_that_a_link_names_leave_when_the_past_comes(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """A writer may make up authors and an invitation, which never comes: nothing shows who did not make that."""
    with fail_after(120), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        repo, branch = alice.create_repo()
        for number in range(_POSTS):
            alice.write(branch, str(number))
        target, made_up = aim(branch.facts, branch.num, alice.epoch()), as_commit_id(b"u" * 32)
        forged = [
            forge(target, key_pair(UserSeed(b"o" * 32)), repo.init_id, 100, None, seen)
            for seen in ((made_up,), (repo.init_id,))
        ]
        never = structs.replace(_invite(alice), invitation=made_up)
        heads = tuple(one.commit_id for one in forged)
        await bob.joiner.begin(_state(never, UserSeed(b"m" * 32), rank=100, heads=heads))
        (topic,) = bob.hub.windows.vouchers.promised()
        items = [one.encoded for one in forged]
        bob.hub.windows.keep(bob.branch().num, topic, open_batch(topic, items).opened)
        shown = _shown(bob)
        assert shown is not None
        assert len(shown.listed) == 2
        async with connected(bob, alice):
            await wait_all_tasks_blocked()
        assert ids(bob) == ids(alice)
        shown = _shown(bob)
        assert shown is not None
        assert (shown.listed, shown.waiting) == ((), 2)


async def test_links_are_not_looked_through_for_each_topic_that_is_joined(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thousands may be joined at once, while many links wait."""
    with fail_after(120), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await share(alice, bob)
        alice.write(alice.branch(), "news")
        looked_for: list[TopicKey] = []
        monkeypatch.setattr(
            "node.ingest.vouchers.Vouchers.find_promised", lambda _, topic: looked_for.append(topic)
        )
        await together(alice, bob)
        assert (ids(bob), looked_for) == (ids(alice), [])


async def test_a_link_of_a_repo_that_is_here_states_nothing_of_its_posts(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """Any writer could else have a member shown posts of authors that it made up, as whoever's word it likes."""
    with fail_after(120), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await share(alice, bob)
        for number in range(_POSTS):
            alice.write(alice.branch(), str(number))
        await together(alice, bob)
        target = aim(alice.branch().facts, alice.branch().num, alice.epoch())
        post = forge(target, key_pair(UserSeed(b"o" * 32)), alice.repo().init_id, 100)
        never = structs.replace(_invite(alice), invitation=post.commit_id)
        link = _state(never, UserSeed(b"m" * 32), rank=100, heads=(post.commit_id,))
        await bob.joiner.begin(link)
        windows, topic = bob.hub.windows, bob.replica.by_topic[target.topic]
        windows.keep(bob.branch().num, topic, open_batch(topic, [post.encoded]).opened)
        shown = _shown(bob)
        assert shown is not None
        assert (shown.listed, shown.waiting) == ((), 1)


def test_nothing_is_taken_of_a_voucher_that_its_maker_has_not_signed_for_this_invitation(
    tmp_path: Path,
) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        repo, branch = alice.create_repo()
        for number in range(_POSTS):
            alice.write(branch, str(number))
        link = _invite(alice)
        assert link.voucher is not None
        assert find_vouched(repo.repo_id, encode(link)) == (link.invitation, link.epoch, link.voucher.states)
        other = structs.replace(link.voucher, signature=Signature(b"s" * 64))
        for wrong in (
            structs.replace(link, voucher=other),
            structs.replace(link, invitation=repo.init_id),
            _state(link, alice.user_seed, branch=alice.branch("root").branch_id),
            structs.replace(link, voucher=None),
        ):
            assert find_vouched(repo.repo_id, encode(wrong)) is None


def test_a_link_vouches_for_the_highest_heads_that_stand_in_its_epoch(tmp_path: Path) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        repo, branch = alice.create_repo()
        assert _invite(alice).voucher is None, "all of so few comes as soon"
        for number in range(_POSTS):
            alice.write(branch, str(number))
        target = aim(branch.facts, branch.num, alice.epoch())
        below = timeline(alice.replica, branch)[-LINK_HEAD_COUNT_MAX - 1 :]
        seen = tuple(alice.heads(alice.branch("root")))
        ranks = range(_POSTS - LINK_HEAD_COUNT_MAX + 1, _POSTS + 2)
        forks = [
            forge(target, _owner(alice), repo.init_id, rank, (ack,), seen)
            for rank, ack in zip(ranks, below, strict=True)
        ]
        give(alice.replica, [one.encoded for one in forks])
        voucher = _invite(alice).voucher
        assert voucher is not None
        states = voucher.states
        assert (states.rank, states.branch_name, states.topic) == (_POSTS + 1, "main", target.topic)
        assert states.heads == tuple(one.commit_id for one in forks[:0:-1])
        root, eve = alice.replica.root_branch(repo), key_pair(UserSeed(b"e" * 32))[0]
        alice.author.write(root, Grant(eve, Permission.READ))
        alice.author.write(root, Remove(eve, None, ()))
        voucher = _invite(alice).voucher
        assert voucher is not None
        assert (voucher.states.topic == target.topic, voucher.states.heads) == (False, states.heads)
        assert voucher.states.earlier is not None
        assert voucher.states.earlier.topic == target.topic
        for number in range(2 * _WINDOW):
            alice.write(branch, str(number))
        voucher = _invite(alice).voucher
        assert voucher is not None
        assert (voucher.states.earlier, len(voucher.states.heads)) == (None, 1)


def test_people_are_told_whose_word_is_shown_and_whose_was_false() -> None:
    said: StandingPart = {"code": "vouched", "people": ["Ann"], "at": _AT // 1000}
    facts = RepoFacts(False, False, True, False, False, True, vouched=said, false_voucher="Ben")
    standing = describe_standing(facts, NO_OUTLOOK, Unheld(), lambda _: {"name": "", "owner": None})
    sentence = standing_sentence(standing)
    assert "newest posts as Ann had them (2023-11-14 22:13 UTC)" in sentence
    assert "the link of Ben names posts that were rejected here" in sentence
