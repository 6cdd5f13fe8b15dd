"""Topics that a relay has forgotten while it works on them for a peer."""

from pathlib import Path

import pytest
from trio.testing import MockClock, wait_all_tasks_blocked

from node.sync.session_queries import Followed
from protocol.ids import TopicKey
from tests.support.machine import fail_after
from tests.support.nodes import Node, connected, open_nodes, share
from tests.support.relays import open_relay


def _forget_after(relay: Node, looks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a relay find so many topics and no more: it forgets empty ones for others, and tells nobody."""
    find = relay.hub.find_followed
    count = 0

    def look(topic: TopicKey) -> Followed | None:
        nonlocal count
        count += 1
        return find(topic) if count <= looks else None

    monkeypatch.setattr(relay.hub, "find_followed", look)


@pytest.mark.parametrize("looks", range(7))
async def test_a_peer_is_told_that_a_topic_is_forgotten_and_keeps_its_connection(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, looks: int
) -> None:
    """Whatever the relay is about to read or take in. Both sides hold what the other lacks."""
    with (
        fail_after(60),
        open_nodes(tmp_path, "alice", "bob") as (alice, bob),
        open_relay(tmp_path) as relay,
    ):
        await share(alice, bob)
        async with connected(alice, relay):
            await wait_all_tasks_blocked()
        bob.write(bob.branch(), "of bob")
        async with connected(bob, relay):
            await wait_all_tasks_blocked()
        alice.write(alice.branch(), "of alice")
        _forget_after(relay, looks, monkeypatch)
        async with connected(alice, relay) as (ours, theirs):
            await wait_all_tasks_blocked()
            alice.write(alice.branch(), "on a forgotten topic")
            await wait_all_tasks_blocked()
            assert (ours.reason, theirs.reason) == ("", "")
            assert "refused: relay_full" in {one.state for one in ours.topics}
