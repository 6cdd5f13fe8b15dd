"""First syncs over many epochs: what later ones follow comes first."""

from dataclasses import replace
from pathlib import Path

import pytest
from trio.testing import MockClock, wait_all_tasks_blocked

from storage.relay.relay import load_kept_topics
from tests.support.machine import fail_after
from tests.support.nodes import connected, ids, open_nodes
from tests.support.relays import PLENTY, open_relay

pytestmark = pytest.mark.slow  # writes and moves a repo of many epochs
_EPOCHS, _POSTS = 6, 24


@pytest.mark.parametrize("by_relay", [False, True])
async def test_a_newcomer_to_many_epochs_gets_the_older_ones_first_so_that_few_commits_wait(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, by_relay: bool
) -> None:
    """In turns, two of three commits are written as pending. A relay met late has the present epoch's topic first."""
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
        assert bob.hub.totals.waiting <= 2 * _EPOCHS + by_relay * _POSTS


async def test_a_newcomer_gets_every_branch_of_all_epochs_by_a_relay_with_room_for_two_topics_an_epoch(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """With a topic for each branch and epoch there were 45, and peers ran out of those that they announce."""
    epochs, branches = 5, 8
    quotas = replace(PLENTY, topic_count=2 * epochs, peer_topic_count=2 * epochs)
    with (
        fail_after(120),
        open_nodes(tmp_path, "alice", "bob") as (alice, bob),
        open_relay(tmp_path, quotas) as relay,
    ):
        repo, main = alice.create_repo()
        made = [main, *(alice.author.founding.create_branch(repo, f"b{n}")[0] for n in range(1, branches))]
        for epoch in range(epochs):
            if epoch:
                alice.author.start_epoch(repo)
            for branch in made:
                alice.write(branch, f"epoch {epoch}")
        await bob.joiner.begin(alice.invite(alice.repo()))
        async with connected(alice, relay):
            await wait_all_tasks_blocked()
        with relay.replica.database.read() as connection:
            assert len(load_kept_topics(connection)) == 2 * epochs
        async with connected(bob, relay):
            await wait_all_tasks_blocked()
        assert [bob.digest(bob.branch(one.name)) for one in made] == [alice.digest(one) for one in made]
