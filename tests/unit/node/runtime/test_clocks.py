"""Clocks that are ten years off: nothing is lost or refused for it, and what is shown by time follows from who was seen."""

from itertools import count
from pathlib import Path

import pytest
from sqlalchemy import select

from node.authoring.author import Author
from node.authoring.drafting import Draft
from node.runtime.clock import LATEST_MS, now_ms, now_seconds
from node.runtime.errors import ServiceError
from protocol.formats.content import Post
from protocol.limits.peers import CLOCK_DRIFT_MAX_SECONDS
from storage.commits.display import load_display_window
from storage.schema.schema import commits
from tests.support.machine import fail_after
from tests.support.nodes import Node, connected, ids, open_nodes, share, until_equal

_TEN_YEARS_MS = 10 * 365 * 24 * 3600 * 1000


def _display_times(node: Node) -> list[int]:
    """Of all commits of the branch, as they stand in the order by time."""
    branch = node.branch()
    with node.replica.database.read() as connection:
        nums = load_display_window(connection, branch.num, 100, after=None, before=None)
        query = select(commits.c.num, commits.c.display_time).where(commits.c.num.in_(nums))
        times = {row.num: row.display_time for row in connection.execute(query)}
    return [times[num] for num in nums]


@pytest.mark.slow
@pytest.mark.parametrize("off", [_TEN_YEARS_MS, -_TEN_YEARS_MS])
async def test_a_clock_that_is_ten_years_off_loses_nothing(tmp_path: Path, off: int) -> None:
    assert abs(off) > 1000 * CLOCK_DRIFT_MAX_SECONDS
    with fail_after(60), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await share(alice, bob)
        right = alice._clock
        alice._clock = count(next(right) + off)
        alice.write(alice.branch(), "by a wrong clock")
        bob.write(bob.branch(), "beside it")
        async with connected(bob, alice):
            await until_equal(alice, bob)
            bob.write(bob.branch(), "after it")
            await until_equal(alice, bob)
            alice._clock = right  # it was set right: back, or forth
            alice.write(alice.branch(), "by a right clock")
            await until_equal(alice, bob)
        assert ids(alice) == ids(bob)
        for node in (alice, bob):
            times = _display_times(node)
            assert len(times) == len(ids(node))
            assert times == sorted(times)
        latest = next(bob._clock)
        assert max(times) <= latest, "who has a right clock shows nothing in ten years' time"


@pytest.mark.parametrize(
    "says, ms, when",
    [(-1000.0, 0, "before 1970"), (0.0, 0, "before 1970"), (None, LATEST_MS, "past the year 2262")],
)
def test_a_clock_that_cannot_be_used_is_named_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: float | None, ms: int, when: str
) -> None:
    def read() -> float:
        if says is None:
            raise OverflowError("timestamp too large to convert to C _PyTime_t")
        return says

    with open_nodes(tmp_path, "alice") as (alice,):
        _, branch = alice.create_repo()
        before = ids(alice)
        monkeypatch.setattr("node.runtime.clock.time.time", read)
        assert (now_ms(), now_seconds()) == (ms, ms / 1000)
        author = Author(alice.replica, alice.user_seed, now_ms)
        with pytest.raises(ServiceError, match=when) as refused:
            author.write(branch, Post("when?"))
        assert "set the clock" in refused.value.advice
        author.write(branch, Draft(Post("dated elsewhere"), timestamp=1_700_000_000_000))
        assert len(ids(alice)) == len(before) + 1
