"""A relay between members who never meet: what it keeps, what it refuses, and what it cannot know."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest
import trio
from sqlalchemy import Connection
from trio.testing import MockClock, wait_all_tasks_blocked

from node.api.relay_admin import Relaying
from node.relay import relay as relay_module
from node.relay.relay import RelayService
from node.runtime.errors import ServiceError
from protocol.codec import encode
from protocol.crypto.keys import AccountToken
from protocol.crypto.signing import check_claims
from protocol.formats.text import id_text
from protocol.ids import AnyId, PeerId, TopicKey
from storage.relay.accounts import invite_to_account, join_account, revoke_account
from storage.relay.quotas import Visitor
from storage.relay.relay import KeptTopic
from tests.support.builders import writing_topic
from tests.support.machine import fail_after
from tests.support.nodes import connected, ids, open_nodes, share
from tests.support.relays import PLENTY, is_settled, open_relay, states, until, visit

T = TypeVar("T")


@pytest.mark.slow
async def test_with_a_relay_only_what_differs_is_sent(tmp_path: Path, autojump_clock: MockClock) -> None:
    """Both compare publications: nothing where all is equal, and where both hold something new, that alone."""
    with (
        fail_after(300),
        open_nodes(tmp_path, "alice", "bob") as (alice, bob),
        open_relay(tmp_path / "r") as relay,
    ):
        await share(alice, bob)
        for number in range(30):
            alice.write(alice.branch(), f"post {number}")
        for member in (alice, bob):
            await visit(member, relay)
        bob.write(bob.branch(), "from bob")
        await visit(bob, relay)
        alice.write(alice.branch(), "from alice")
        for new in (1, 0):
            async with connected(alice, relay) as (of_alice, _):
                await trio.sleep(1)
                await until(lambda: is_settled(alice))
                await trio.sleep(1)
                topic = writing_topic(alice.replica, alice.branch()).topic
                progress = next(one for one in of_alice.topics if one.topic == topic)
                assert (progress.sent, progress.received) == (new, new)
        assert progress.rounds.own is not None
        assert progress.rounds.peer is not None
        assert progress.rounds.own.digest == progress.rounds.peer.digest


@pytest.mark.slow
async def test_what_is_published_while_both_are_there_is_passed_on_at_once(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with (
        fail_after(300),
        open_nodes(tmp_path, "alice", "bob") as (alice, bob),
        open_relay(tmp_path / "r") as relay,
    ):
        await share(alice, bob)
        async with connected(alice, relay), connected(bob, relay):
            await until(lambda: is_settled(alice) and is_settled(bob))
            alice.write(alice.branch(), "news")
            await until(lambda: ids(bob) == ids(alice))


@pytest.mark.slow
async def test_nothing_that_a_relay_keeps_opens_anything(tmp_path: Path, autojump_clock: MockClock) -> None:
    with fail_after(300), open_nodes(tmp_path, "alice") as (alice,), open_relay(tmp_path / "r") as relay:
        alice.create_repo("a name of a repo")
        alice.write(alice.branch(), "a text that nobody else reads")
        await visit(alice, relay)
        assert relay.hub.relay is not None
        assert sum(one.commit_count for one in await relay.hub.relay.list_all()) == 4
        epoch = alice.epoch()
        secrets: set[bytes] = {
            epoch.key,
            epoch.keys.read_key,
            epoch.keys.convergence_secret,
            epoch.keys.topic_seed,
            epoch.keys.mark,
            epoch.writers_secret or b"",
            epoch.writers_seed or b"",
            alice.author.user,
            alice.repo().repo_id,
        }
        secrets |= {branch.branch_id for branch in alice.replica.branches.values()}
        assert b"" not in secrets
        root_ids = {branch.facts.root_id for branch in alice.replica.branches.values()}
        kept = b"".join(path.read_bytes() for path in (tmp_path / "r").rglob("*") if path.is_file())
        for secret in secrets - root_ids:
            assert secret not in kept
            assert id_text(AnyId(secret)).encode() not in kept
        # The branch's name as it is encoded: a column has it in its own.
        for text in (b"a name of a repo", b"a text that nobody", encode("main")):
            assert text not in kept


@pytest.mark.slow
async def test_over_its_quota_a_relay_says_so_and_goes_on(tmp_path: Path, autojump_clock: MockClock) -> None:
    tight = replace(PLENTY, topic=2_000)
    with (
        fail_after(300),
        open_nodes(tmp_path, "alice") as (alice,),
        open_relay(tmp_path / "r", tight) as relay,
    ):
        alice.create_repo()
        for number in range(20):
            alice.write(alice.branch(), f"post {number}")
        async with connected(alice, relay):
            await trio.sleep(1)
            await until(lambda: is_settled(alice))
            assert states(alice) == ["in sync", "refused: topic_full"]
            alice.write(alice.branch(), "one more")
            await trio.sleep(10)
            assert is_settled(alice), "nothing more is sent there"


@pytest.mark.slow
async def test_a_stranger_is_told_that_only_known_peers_add_topics_and_uses_those_of_others(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with (
        fail_after(300),
        open_nodes(tmp_path, "alice", "bob") as (alice, bob),
        open_relay(tmp_path / "r", replace(PLENTY, takes_strangers=False)) as relay,
    ):
        await share(alice, bob)
        alice.write(alice.branch(), "news")
        relaying = Relaying(relay.hub)
        for member in (bob, alice):
            async with connected(member, relay):
                await trio.sleep(1)
                assert states(member) == ["refused: not_known"] * 2
        with pytest.raises(ServiceError, match="not a peer id"):
            await relaying.allow("alice")
        await relaying.allow(id_text(alice.key))
        await visit(alice, relay)
        await visit(bob, relay)
        assert ids(bob) == ids(alice)
        bob.create_repo("another")
        async with connected(bob, relay):
            await trio.sleep(5)
            assert states(bob) == ["in sync"] * 2 + ["refused: not_known"] * 2
        listed = await relaying.list_all()
        assert (listed["takes_strangers"], listed["allowed"]) == (False, [id_text(alice.key)])
        assert {one["brought_by"] for one in listed["topics"]} == {id_text(alice.key)}
        await relaying.deny(id_text(alice.key)[:8])
        assert (await relaying.list_all())["allowed"] == []


async def test_topics_are_entrusted_to_whom_one_dials_and_to_nobody_who_comes(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with fail_after(300), open_nodes(tmp_path, "alice") as (alice,), open_relay(tmp_path / "r") as relay:
        alice.create_repo()
        async with connected(relay, alice):
            await trio.sleep(10)
            assert relay.hub.relay is not None
            assert not relay.hub.relay.topics


async def test_an_operator_lists_pins_and_unpins(tmp_path: Path, autojump_clock: MockClock) -> None:
    with fail_after(300), open_nodes(tmp_path, "alice") as (alice,), open_relay(tmp_path / "r") as relay:
        alice.create_repo()
        await visit(alice, relay)
        relaying = Relaying(relay.hub)
        listed = await relaying.list_all()
        assert len(listed["topics"]) == 2
        assert listed["size"] == sum(one["size"] for one in listed["topics"]) > 0
        topic = listed["topics"][0]["topic"]
        assert (await relaying.pin(topic[:8]))["pinned"]
        assert not (await relaying.unpin(topic[:8]))["pinned"]
        absent = id_text(AnyId(b"t" * 32))
        assert (await relaying.pin(absent)) == {
            "topic": absent, "commits": 0, "size": 0,
            "file_size": 0, "pinned": True, "touched_at": 0,
            "brought_by": None, "known": True, "shared": False,
        }  # fmt: skip
        with pytest.raises(ServiceError, match="no relayed topic"):
            await relaying.unpin("nothing")
        with pytest.raises(ServiceError, match="keeps nothing for others"):
            await Relaying(alice.hub).list_all()


@pytest.mark.slow
async def test_who_follows_a_topic_that_a_known_peers_took_the_place_of_is_left(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with (
        fail_after(300),
        open_nodes(tmp_path, "alice", "bob") as (alice, bob),
        open_relay(tmp_path / "r", replace(PLENTY, topic_count=2)) as relay,
    ):
        alice.create_repo("one")
        bob.create_repo("two")
        await Relaying(relay.hub).allow(id_text(bob.key))
        async with connected(alice, relay):
            await trio.sleep(1)
            await until(lambda: is_settled(alice))
            async with connected(bob, relay):
                await until(lambda: not alice.hub.sources)  # the relay has hung up
        async with connected(alice, relay):
            await trio.sleep(5)
            assert states(alice) == ["refused: relay_full"] * 2


@pytest.mark.slow
async def test_who_follows_a_forgotten_topic_is_left_and_entrusts_it_again(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """The relay has room for one of two repos: the longest untouched goes, and comes back when its member does."""
    with (
        fail_after(300),
        open_nodes(tmp_path, "alice", "bob") as (alice, bob),
        open_relay(tmp_path / "r") as relay,
    ):
        alice.create_repo("one")
        await visit(alice, relay)
        assert relay.hub.relay is not None
        size = sum(one.size for one in await relay.hub.relay.list_all())
        relay.hub.relay.quotas = replace(PLENTY, total=size + 100)
        bob.create_repo("two")
        async with connected(alice, relay):
            await trio.sleep(1)
            await until(lambda: is_settled(alice))
            async with connected(bob, relay):
                await until(lambda: not alice.hub.sources)  # the relay has hung up
        assert not any(topic in relay.hub.relay.topics for topic in alice.replica.by_topic)
        await visit(alice, relay)
        assert any(topic in relay.hub.relay.topics for topic in alice.replica.by_topic)


async def test_a_list_that_is_asked_for_meanwhile_forgets_nothing_of_what_is_being_taken(
    tmp_path: Path,
) -> None:
    calls: list[str] = []
    goes_on = trio.Event()

    async def run(work: Callable[..., T], *args: object) -> T:
        calls.append(getattr(work, "__name__", ""))
        if calls == ["_timed"]:
            await goes_on.wait()
        return work(*args)

    with open_nodes(tmp_path, "relay") as (node,):
        relay = RelayService(node.replica.database, PLENTY, run, lambda: 0, check_claims)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(relay.open, [TopicKey(b"t" * 32)], Visitor(PeerId(b"p" * 32)))
            await wait_all_tasks_blocked()
            nursery.start_soon(relay.list_all)
            await wait_all_tasks_blocked()
            assert calls == ["_timed"], "what was read before it would be taken for what is there after it"
            goes_on.set()
        assert list(relay.topics) == [b"t" * 32]


async def test_who_leaves_while_an_account_is_changed_leaves_no_account_that_is_gone(tmp_path: Path) -> None:
    with open_relay(tmp_path) as relay:
        service = relay.hub.relay
        assert service is not None
        ann, token = PeerId(b"a" * 32), AccountToken(b"t" * 32)
        with relay.replica.database.write() as connection:
            invite_to_account(relay.replica.database, connection, "ann", 1 << 20, token, 1000, 0)
            assert not join_account(connection, token, ann, 1).refusal
        await service.list_all()
        assert service.visitor(ann, "").account is not None
        with trio.CancelScope() as scope:

            def revoke(connection: Connection) -> bool:
                scope.cancel()  # the operator's browser has left
                return revoke_account(connection, "ann")

            await service.change(revoke)
        assert service.visitor(ann, "").account is None


MANY = replace(PLENTY, topic_count=5000, peer_topic_count=5000, subnet_topic_count=2000)


def _new_topics(count: int) -> list[TopicKey]:
    return [TopicKey(os.urandom(32)) for _ in range(count)]


async def test_others_write_between_the_slices_of_a_large_deposit(tmp_path: Path) -> None:
    """A connection may entrust thousands of topics at once: the operator's own write waits for some of them."""
    with open_relay(tmp_path, MANY) as relay:
        service, database = relay.hub.relay, relay.replica.database
        assert service is not None
        before = database.commit_count
        kept = await service.open(_new_topics(1000), Visitor(PeerId(b"s" * 32), "8.8.8"))
        assert len(kept.kept) == 1000
        assert database.commit_count - before == 4
        assert service.topics.keys() == {one.topic for one in await service.list_all()}


async def test_strangers_without_room_cost_no_write(tmp_path: Path) -> None:
    """New keys cost nothing: a thousand strangers of a subnet that has all it may would else hold up every writer."""
    with open_relay(tmp_path, MANY) as relay:
        service, database = relay.hub.relay, relay.replica.database
        assert service is not None
        kept = (await service.open(_new_topics(2500), Visitor(PeerId(b"s" * 32), "8.8.8"))).kept
        assert len(kept) == 2000
        before = database.commit_count
        for number in range(10):
            stranger = Visitor(PeerId(bytes([number]) * 32), "8.8.8")
            refused = await service.open(_new_topics(1000), stranger)
            assert (len(refused.refused), refused.reason) == (1000, "subnet_full")
        assert database.commit_count == before
        again = await service.open([kept[0].topic, *_new_topics(1)], Visitor(PeerId(b"t" * 32), "8.8.8"))
        assert [one.topic for one in again.kept] == [kept[0].topic], "what is kept is shared all the same"
        assert again.kept[0].is_shared
        assert (await service.open(_new_topics(1), Visitor(PeerId(b"t" * 32), "9.9.9"))).kept


async def test_of_places_without_room_the_latest_are_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once as many are as may be, strangers of a new subnet would cost a write each time for good."""
    monkeypatch.setattr(relay_module, "_FULL_PLACES_MAX", 2)
    with open_relay(tmp_path, replace(PLENTY, subnet_topic_count=0)) as relay:
        service, database = relay.hub.relay, relay.replica.database
        assert service is not None

        async def writes_of(place: str) -> int:
            before = database.commit_count
            refused = await service.open(_new_topics(1), Visitor(PeerId(b"t" * 32), place))
            assert refused.reason == "subnet_full"
            return database.commit_count - before

        assert [await writes_of(place) for place in ("1.1.1", "2.2.2", "3.3.3")] == [1, 1, 1]
        assert [await writes_of(place) for place in ("2.2.2", "3.3.3", "2.2.2")] == [0, 0, 0]
        assert await writes_of("1.1.1") == 1, "the oldest was dropped"
        assert [await writes_of(place) for place in ("2.2.2", "3.3.3")] == [0, 1], (
            "3.3.3 had asked before 2.2.2"
        )


class _Counted(dict[TopicKey, KeptTopic]):
    """Topics that are kept; counts how often it was asked for one."""

    asked = 0

    def __contains__(self, key: object) -> bool:
        self.asked += 1
        return super().__contains__(key)


async def test_a_refused_deposit_looks_at_each_topic_a_few_times(tmp_path: Path) -> None:
    """Not at all of them again for each slice: thousands may be entrusted at once."""
    with open_relay(tmp_path, replace(PLENTY, subnet_topic_count=1)) as relay:
        service = relay.hub.relay
        assert service is not None
        visitor, topics = Visitor(PeerId(b"s" * 32), "8.8.8"), _new_topics(5121)
        await service.open(topics[-1:], visitor)
        counted = service.topics = _Counted(service.topics)
        found = await service.open(topics, visitor)
        assert [one.topic for one in found.kept] == topics[-1:]
        assert counted.asked <= 6 * len(topics)
