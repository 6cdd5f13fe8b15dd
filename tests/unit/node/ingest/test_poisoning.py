"""A writer who publishes others' commits in forms that do not open keeps nobody from those that do."""

from pathlib import Path

import pytest
from sqlalchemy import func, select, update
from trio.testing import MockClock

from protocol.crypto.keys import BlockKey
from storage.engine.column_encryption import cipher_of, commit_key_context
from storage.schema.schema import commits
from tests.support.builders import writing_topic
from tests.support.machine import fail_after
from tests.support.nodes import Node, connected, ids, open_nodes, share, until_equal
from tests.support.relays import open_relay, visit

FAULTS = ("wrong_key", "missing_body", "surplus_blocks")
"""Why `node.ingest.publication_parsing` drops a publication whose topic's signature holds."""


def _tamper(mallory: Node) -> None:
    """Spoil how each commit of the branch is published; Mallory holds the topic's key, and signs it all the same."""
    branch = mallory.branch()
    with mallory.replica.database.write() as connection:
        query = select(commits.c.num, commits.c.commit_id, commits.c.commit_key, commits.c.block_nums)
        rows = connection.execute(query.where(commits.c.branch_num == branch.num)).all()
        for place, row in enumerate(rows):
            key, nums = row.commit_key, row.block_nums
            match FAULTS[place % len(FAULTS)]:
                case "wrong_key":
                    key = cipher_of(connection).mask(commit_key_context(row.commit_id), BlockKey(b"k" * 32))
                case "missing_body":
                    nums = nums[:8]
                case "surplus_blocks":
                    nums += rows[place - 1].block_nums[:8]
            values = {"commit_key": key, "block_nums": nums, "is_proven": False}
            connection.execute(update(commits).where(commits.c.num == row.num).values(values))


async def _count_kept(relay: Node, member: Node) -> int:
    """Return how many publications the relay keeps of the topic of a member's branch, beside those of the root branch."""
    assert relay.hub.relay is not None
    kept, topic = await relay.hub.relay.list_all(), writing_topic(member.replica, member.branch())
    root = member.replica.root_branch(member.repo())
    query = select(func.count()).where(commits.c.branch_num == root.num, commits.c.topic_num == topic.num)
    with member.replica.database.read() as connection:
        others = connection.execute(query).scalar_one()
    return next(one.commit_count for one in kept if one.topic == topic.topic) - others


@pytest.mark.slow
async def test_a_relay_that_was_given_bad_publications_first_hands_on_the_good_ones(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """Alice and Bob are never online together. Mallory is before Alice at the relay, with all that she wrote."""
    with (
        fail_after(600),
        open_nodes(tmp_path, "alice", "bob", "mallory") as (alice, bob, mallory),
        open_relay(tmp_path / "r") as relay,
    ):
        await share(alice, bob, mallory)
        async with connected(mallory, alice):
            for number in range(5):
                alice.write(alice.branch(), f"post {number}")
            await until_equal(alice, mallory)
        _tamper(mallory)
        await visit(mallory, relay)
        await visit(bob, relay)
        assert len(ids(bob)) == 1, "nothing that Mallory gave opens"
        assert set(bob.hub.totals.refused) == set(FAULTS)
        await visit(alice, relay)
        await visit(bob, relay)
        assert ids(bob) == ids(alice)
        assert await _count_kept(relay, alice) == 12, "both forms of each of six commits"

        bob.write(bob.branch(), "seen")
        await visit(bob, relay)
        await visit(alice, relay)
        assert ids(alice) == ids(bob)
        assert await _count_kept(relay, alice) == 13, "and none of them twice"


@pytest.mark.slow
async def test_a_bad_publication_that_is_passed_on_live_does_not_stand_in_for_the_good_one(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    # All are there at once: Bob has refused Mallory's form when Alice's comes, and both come from the relay.
    with (
        fail_after(600),
        open_nodes(tmp_path, "alice", "bob", "mallory") as (alice, bob, mallory),
        open_relay(tmp_path / "r") as relay,
    ):
        await share(alice, bob, mallory)
        async with connected(mallory, alice):
            alice.write(alice.branch(), "a post")
            await until_equal(alice, mallory)
        _tamper(mallory)
        async with connected(bob, relay):
            await visit(mallory, relay)
            assert len(ids(bob)) == 1
            async with connected(alice, relay):
                await until_equal(alice, bob)
