"""Difference of two clocks, found by commits that arrive one after the other, each just after it was written."""

from pathlib import Path

import pytest
from trio.testing import MockClock

from node.ingest.author_clocks import AuthorClocks
from protocol.ids import UserId
from tests.support.machine import fail_after
from tests.support.nodes import connected, open_nodes, share, until_equal

ANN, BEN = UserId(b"a" * 32), UserId(b"b" * 32)
NOW = 1_800_000_000_000
DAY = 86_400_000


def _hear(author: UserId, said_and_arrived: list[tuple[int, int]]) -> list[int]:
    clocks = AuthorClocks()
    for said, arrived in said_and_arrived:
        clocks.note(author, NOW + said, NOW + arrived)
    return clocks.find_ahead()


@pytest.mark.parametrize("ahead", [0, 3 * DAY, -3 * DAY])
def test_commits_that_come_as_they_are_written_tell_the_difference(ahead: int) -> None:
    heard = [(at, at + ahead + delay) for at, delay in ((0, 100), (20_000, 900), (300_000, 40), (400_000, 0))]
    (found,) = _hear(ANN, heard)
    assert abs(found - ahead) < 1000


@pytest.mark.parametrize(
    "heard",
    [
        [],
        [(0, 3 * DAY)],
        [(0, 3 * DAY), (20_000, 3 * DAY + 20_000)],
        # What was written days ago, and comes now: in one batch, or in some with pauses.
        [(at * 60_000, 3 * DAY + at * 10) for at in range(50)],
        [(at * DAY // 50, 3 * DAY + at * 10_000) for at in range(50)],
        [(0, 3 * DAY + at * 10_000) for at in range(50)],
    ],
)
def test_what_was_written_before_tells_nothing(heard: list[tuple[int, int]]) -> None:
    assert _hear(ANN, heard) == []


def test_a_clock_that_was_set_right_is_believed_again() -> None:
    clocks = AuthorClocks()
    for ahead in (3 * DAY, 0):
        for at in range(0, 60_000, 10_000):
            clocks.note(ANN, NOW + at, NOW + at + ahead)
    assert clocks.find_ahead() == [0]


def test_so_many_authors_are_remembered() -> None:
    clocks = AuthorClocks()
    for at in range(0, 60_000, 10_000):
        for number in range(200):
            clocks.note(UserId(number.to_bytes(32)), NOW + at, NOW + at + number)
    assert len(clocks.find_ahead()) == 0, "each was forgotten before it was heard again"
    for at in range(60_000, 120_000, 10_000):
        for number in range(64):
            clocks.note(UserId(number.to_bytes(32)), NOW + at, NOW + at + number)
    assert clocks.find_ahead() == list(range(64))


async def test_a_node_tells_its_clock_from_those_who_write_now(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with fail_after(300), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await share(alice, bob)
        async with connected(alice, bob):
            times = [NOW]
            alice.hub.clock_ms = alice.hub.intake._clock_ms = lambda: times[-1] + 3 * DAY
            bob.hub.clock_ms = bob.hub.intake._clock_ms = bob.author.writer.clock_ms = lambda: times[-1]
            for number in range(6):
                times.append(NOW + number * 10_000)
                bob.write(bob.branch(), f"post {number}")
                await until_equal(alice, bob)
        (ahead,) = alice.replica.author_clocks.find_ahead()
        assert abs(ahead - 3 * DAY) < 1000
        assert bob.replica.author_clocks.find_ahead() == []
