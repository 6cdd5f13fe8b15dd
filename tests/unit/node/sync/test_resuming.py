"""A sync that is cut goes on where it was: what is durable on the receiver's side is not sent again."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest
import trio
from sqlalchemy import Connection as SqlConnection
from trio.testing import MockClock

from node.authoring.drafting import Draft, WrittenCommit
from node.sync.connection import Connection
from protocol.formats.content import Post
from protocol.ids import TopicKey
from protocol.limits.peers import BATCHES_OF_TOPIC_MAX, IDLE_TIMEOUT_SECONDS
from protocol.session import transfer
from tests.support.builders import writing_topic
from tests.support.machine import fail_after
from tests.support.nodes import Node, connected, open_nodes, share, until_equal
from tests.support.relays import open_relay, until

_COUNT = 120
_OTHERS = 2
"""Commits of the root branch on the same topic: what adds the branch, and an invitation."""
_BATCH_COUNT = 4
_TURNS = 1000
"""Of other tasks, after which nothing can begin without time passing."""


def _write(node: Node) -> None:
    """Write _COUNT posts, in one transaction."""
    drafts = [Draft(Post(f"post {number}")) for number in range(_COUNT)]

    def same(drafts: Sequence[Draft], _connection: SqlConnection) -> Sequence[Draft]:
        return drafts

    def nothing_more(_connection: SqlConnection, _written: Sequence[WrittenCommit]) -> None:
        pass

    node.author.write_many(node.branch(), partial(same, drafts), nothing_more)


def _has(node: Node) -> int:
    """How many commits of the branch are in a node's store."""
    return (
        node.digest(node.branch())[1]
        if any(one.name == "main" for one in node.replica.branches.values())
        else 0
    )


def _topic(node: Node) -> TopicKey:
    """The topic of the branch's commits, on which stand others, too, and are sent first."""
    return writing_topic(node.replica, node.branch()).topic


def _reopen(node: Node) -> None:
    """As after a kill: nothing is left but the store."""
    node.replica.close()
    node.open()


async def _cut_after(sender: Connection, count: int, node: Node) -> int:
    """Wait until the peer has confirmed so many commits of the branch; gives how many were sent to it."""
    topic = _topic(node)
    turns = 0
    while True:
        progress = sender.session.progress_of(topic)
        if progress is not None and progress.confirmed >= count:
            return progress.sent
        turns = 0 if progress is not None and progress.confirmed else turns + 1
        # While it moves, no time passes, or all of it would be over; before, some things wait for the time.
        await trio.sleep(0 if turns < _TURNS else 0.01)


def _restart_none(*_nodes: Node) -> None:
    """Both nodes run on: only the line was cut."""


_CUTS: dict[str, Callable[[Node, Node], None]] = {
    "line": _restart_none,
    "receiver": lambda _sender, receiver: _reopen(receiver),
    "sender": lambda sender, _receiver: _reopen(sender),
}


@pytest.mark.slow
@pytest.mark.parametrize("cut", _CUTS)
@pytest.mark.parametrize("dials", ["receiver", "sender"])
async def test_after_a_cut_only_the_rest_is_sent(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, cut: str, dials: str
) -> None:
    monkeypatch.setattr(transfer, "BATCH_COUNT_MAX", _BATCH_COUNT)
    with fail_after(60), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        repo, _ = alice.create_repo()
        _write(alice)
        await bob.joiner.begin(alice.invite(repo))
        sent = []
        for wanted in (_COUNT // 3, 2 * _COUNT // 3):
            had = _has(bob)
            pair = (bob, alice) if dials == "receiver" else (alice, bob)
            async with connected(*pair) as (dialer, acceptor):
                sender = acceptor if dials == "receiver" else dialer
                sent.append(await _cut_after(sender, wanted + _OTHERS - had, alice))
            assert wanted <= _has(bob) < _COUNT, "it was cut in the middle"
            _CUTS[cut](alice, bob)
        had = _has(bob)
        async with connected(bob, alice) as (receiver, sender):
            await until_equal(alice, bob)
            progress, there = (one.session.progress_of(_topic(alice)) for one in (sender, receiver))
            assert progress is not None
            assert there is not None
            sent.append(progress.sent)
        total = _COUNT + 1
        assert (sent[-1], there.received, there.known) == (total - had, total - had, 0)
        # Of each cut, what was on its way is sent again, and nothing else.
        assert sum(sent) <= total + _OTHERS + 2 * BATCHES_OF_TOPIC_MAX * _BATCH_COUNT


@pytest.mark.slow
async def test_a_relay_that_is_started_anew_in_the_middle_gets_and_gives_only_the_rest(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "BATCH_COUNT_MAX", _BATCH_COUNT)
    with fail_after(120), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        repo, _ = alice.create_repo()
        _write(alice)
        await bob.joiner.begin(alice.invite(repo))
        total, sent = _COUNT + 1, []
        for _ in range(2):
            with open_relay(tmp_path / "r") as relay:
                async with connected(alice, relay) as (sender, _side):
                    sent.append(await _cut_after(sender, _COUNT // 3, alice))
        with open_relay(tmp_path / "r") as relay:
            async with connected(alice, relay) as (sender, _side):
                await trio.sleep(10)
                progress = sender.session.progress_of(_topic(alice))
                assert progress is not None
                sent.append(progress.sent)
                assert progress.confirmed == progress.sent
        assert total + _OTHERS <= sum(sent) <= total + _OTHERS + 2 * BATCHES_OF_TOPIC_MAX * _BATCH_COUNT
        with open_relay(tmp_path / "r") as relay:
            async with connected(bob, relay) as (_receiver, side):
                await _cut_after(side, _COUNT // 3 + _OTHERS, alice)
        had = _has(bob)
        assert _COUNT // 3 <= had < total
        with open_relay(tmp_path / "r") as relay:
            async with connected(bob, relay) as (receiver, _side):
                await until_equal(alice, bob)
                there = receiver.session.progress_of(_topic(bob))
                assert there is not None
                assert there.received == total - had


@pytest.mark.slow
async def test_of_two_peers_that_send_the_same_neither_shows_as_ahead_when_all_is_here(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the other one brought first counted as missing until topics were compared again."""
    monkeypatch.setattr(transfer, "BATCH_COUNT_MAX", _BATCH_COUNT)
    with fail_after(60), open_nodes(tmp_path, "alice", "bob", "carol") as (alice, bob, carol):
        await share(alice, carol)
        _write(alice)
        async with connected(carol, alice):
            await until_equal(alice, carol)
        await bob.joiner.begin(alice.invite(alice.repo()))
        topic = _topic(alice)
        async with connected(bob, alice) as (first, _), connected(bob, carol) as (second, _):
            began = trio.current_time()
            await until_equal(alice, bob)
            sides = [one.session.progress_of(topic) for one in (first, second)]
            await until(lambda: all(side is not None and side.is_quiet for side in sides))
            assert trio.current_time() - began < IDLE_TIMEOUT_SECONDS / 3, "nothing was compared again"
            known = [side.known for side in sides if side is not None]
            assert sum(known) > _BATCH_COUNT, "both have sent the same"
            assert [side.behind for side in sides if side is not None] == [0, 0]
