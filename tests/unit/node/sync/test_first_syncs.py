"""First syncs over many epochs: what later ones follow comes first."""

from pathlib import Path

import pytest
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.support.machine import fail_after
from tests.support.nodes import connected, ids, open_nodes
from tests.support.relays import open_relay

pytestmark = pytest.mark.slow  # writes and moves a repo of many epochs
_EPOCHS, _POSTS = 6, 24


@pytest.mark.parametrize("by_relay", [False, True])
async def test_a_newcomer_to_many_epochs_gets_the_older_ones_first_so_that_few_commits_wait(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, by_relay: bool
) -> None:
    """In turns, two of three commits are written as pending."""
    monkeypatch.setattr("protocol.session.transfer.BATCH_COUNT_MAX", 4)
    with (
        fail_after(120),
        open_nodes(tmp_path, "alice", "bob") as (alice, bob),
        open_relay(tmp_path) as relay,
    ):
        repo, branch = alice.create_repo()
        for epoch in range(_EPOCHS):
            if epoch:
                alice.author.start_epoch(repo)
            for number in range(_POSTS):
                alice.write(branch, f"{epoch}.{number}")
        await bob.joiner.begin(alice.invite(alice.repo()))
        if by_relay:
            async with connected(alice, relay):
                await wait_all_tasks_blocked()
        async with connected(bob, relay if by_relay else alice):
            await wait_all_tasks_blocked()
        assert len(ids(bob)) == _EPOCHS * _POSTS + 1
        assert bob.hub.totals.waiting <= _EPOCHS * _POSTS // 2
