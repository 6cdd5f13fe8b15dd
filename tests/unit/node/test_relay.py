"""A relay between members who never meet: what it keeps, what it refuses, and what it cannot know."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from node.blocking import inline
from node.connection import Connection
from node.errors import ServiceError
from node.relay import Relay
from node.relaying import Relaying
from protocol.signing import check_claims
from protocol.text import id_text
from storage.relay import RelayQuotas
from tests.nodes import Node, connected, ids, open_nodes, share

PLENTY = RelayQuotas(total=1 << 30, topic=1 << 30, peer=1 << 30, topic_count=100)


@contextmanager
def _relay(folder: Path, quotas: RelayQuotas = PLENTY) -> Iterator[Node]:
    with open_nodes(folder, "relay") as (node,):
        node.hub.relay = Relay(node.replica.database, quotas, inline(), lambda: 0, check_claims)
        yield node


async def _until(condition: Callable[[], bool]) -> None:
    while True:
        if condition():
            return
        await trio.sleep(0.1)


def _states(node: Node) -> list[str]:
    """How each topic stands on the node's one connection."""
    (source,) = node.hub.sources
    assert isinstance(source, Connection)
    return sorted(progress.state for progress in source.topics)


def _is_settled(node: Node) -> bool:
    """Whether the node's one connection has nothing to do."""
    states = _states(node)
    return bool(states) and all(state == "in sync" or state.startswith("refused") for state in states)


async def _visit(node: Node, relay: Node) -> None:
    """Connect to the relay until all is said."""
    async with connected(node, relay):
        await trio.sleep(1)
        await _until(lambda: _is_settled(node))
        await trio.sleep(1)


async def test_members_who_never_meet_agree_through_a_relay(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with (
        trio.fail_after(300),
        open_nodes(tmp_path, "alice", "bob") as (alice, bob),
        _relay(tmp_path / "r") as relay,
    ):
        repo, _ = alice.create_repo()
        alice.write(alice.branch(), "from alice")
        link = alice.invite(repo)
        await _visit(alice, relay)
        await bob.joiner.begin(link)
        await _visit(bob, relay)
        assert ids(bob) == ids(alice)
        bob.write(bob.branch(), "from bob")
        await _visit(bob, relay)
        await _visit(alice, relay)
        assert ids(bob) == ids(alice)
        assert len(ids(alice)) == 3
        assert alice.replica.permission(repo, bob.author.user) is not None
        assert not relay.replica.branches


async def test_what_is_published_while_both_are_there_is_passed_on_at_once(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with (
        trio.fail_after(300),
        open_nodes(tmp_path, "alice", "bob") as (alice, bob),
        _relay(tmp_path / "r") as relay,
    ):
        await share(alice, bob)
        async with connected(alice, relay), connected(bob, relay):
            await _until(lambda: _is_settled(alice) and _is_settled(bob))
            alice.write(alice.branch(), "news")
            await _until(lambda: ids(bob) == ids(alice))


async def test_nothing_that_a_relay_keeps_opens_anything(tmp_path: Path, autojump_clock: MockClock) -> None:
    with trio.fail_after(300), open_nodes(tmp_path, "alice") as (alice,), _relay(tmp_path / "r") as relay:
        alice.create_repo("a name of a repo")
        alice.write(alice.branch(), "a text that nobody else reads")
        await _visit(alice, relay)
        assert relay.hub.relay is not None
        assert sum(one.commit_count for one in await relay.hub.relay.list_all()) == 4
        epoch = alice.epoch()
        secrets = {epoch.read_secret, epoch.write_secret or b"", alice.author.user, alice.repo().repo_id}
        for branch in alice.replica.branches.values():
            secrets |= {
                branch.read_key,
                branch.convergence_secret,
                branch.topic_seed or b"",
                branch.branch_id,
            }
        root_ids = {branch.facts.root_id for branch in alice.replica.branches.values()}
        kept = b"".join(path.read_bytes() for path in (tmp_path / "r").rglob("*") if path.is_file())
        for secret in secrets - root_ids - {b""}:
            assert secret not in kept
            assert id_text(secret).encode() not in kept
        for text in (b"a name of a repo", b"a text that nobody", b"main"):
            assert text not in kept


async def test_over_its_quota_a_relay_says_so_and_goes_on(tmp_path: Path, autojump_clock: MockClock) -> None:
    tight = RelayQuotas(total=1 << 30, topic=2_000, peer=1 << 30, topic_count=100)
    with (
        trio.fail_after(300),
        open_nodes(tmp_path, "alice") as (alice,),
        _relay(tmp_path / "r", tight) as relay,
    ):
        alice.create_repo()
        for number in range(20):
            alice.write(alice.branch(), f"post {number}")
        async with connected(alice, relay):
            await trio.sleep(1)
            await _until(lambda: _is_settled(alice))
            assert _states(alice) == ["in sync", "refused: topic_full"]
            alice.write(alice.branch(), "one more")
            await trio.sleep(10)
            assert _is_settled(alice), "nothing more is sent there"


async def test_topics_are_entrusted_to_whom_one_dials_and_to_nobody_who_comes(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with trio.fail_after(300), open_nodes(tmp_path, "alice") as (alice,), _relay(tmp_path / "r") as relay:
        alice.create_repo()
        async with connected(relay, alice):
            await trio.sleep(10)
            assert relay.hub.relay is not None
            assert not relay.hub.relay.topics


async def test_an_operator_lists_pins_and_unpins(tmp_path: Path, autojump_clock: MockClock) -> None:
    with trio.fail_after(300), open_nodes(tmp_path, "alice") as (alice,), _relay(tmp_path / "r") as relay:
        alice.create_repo()
        await _visit(alice, relay)
        relaying = Relaying(relay.hub)
        listed = await relaying.list_all()
        assert len(listed["topics"]) == 2
        assert listed["size"] == sum(one["size"] for one in listed["topics"]) > 0
        topic = listed["topics"][0]["topic"]
        assert (await relaying.pin(topic[:8]))["pinned"]
        assert not (await relaying.unpin(topic[:8]))["pinned"]
        absent = id_text(b"t" * 32)
        assert (await relaying.pin(absent)) == {
            "topic": absent, "commits": 0, "size": 0, "pinned": True, "touched_at": 0,
        }  # fmt: skip
        with pytest.raises(ServiceError, match="no relayed topic"):
            await relaying.unpin("nothing")
        with pytest.raises(ServiceError, match="keeps nothing for others"):
            await Relaying(alice.hub).list_all()


async def test_who_follows_a_forgotten_topic_is_left_and_entrusts_it_again(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """The relay has room for one of two repos: the longest untouched goes, and comes back when its member does."""
    with (
        trio.fail_after(300),
        open_nodes(tmp_path, "alice", "bob") as (alice, bob),
        _relay(tmp_path / "r") as relay,
    ):
        alice.create_repo("one")
        await _visit(alice, relay)
        assert relay.hub.relay is not None
        size = sum(one.size for one in await relay.hub.relay.list_all())
        relay.hub.relay.quotas = RelayQuotas(total=size + 100, topic=1 << 30, peer=1 << 30, topic_count=100)
        bob.create_repo("two")
        async with connected(alice, relay):
            await trio.sleep(1)
            await _until(lambda: _is_settled(alice))
            async with connected(bob, relay):
                await _until(lambda: not alice.hub.sources)  # the relay has hung up
        assert not any(topic in relay.hub.relay.topics for topic in alice.replica.by_topic)
        await _visit(alice, relay)
        assert any(topic in relay.hub.relay.topics for topic in alice.replica.by_topic)
