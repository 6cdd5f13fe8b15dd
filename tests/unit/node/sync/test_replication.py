"""Two whole nodes over a real secure connection: joining, first sync, concurrent writing, merging, resuming."""

from pathlib import Path

import pytest
from trio.testing import MockClock

from node.ingest.publication_reading import branch_mark_in
from node.runtime.errors import ServiceError
from node.sync.hub import Hub
from protocol.formats.block import encrypt_block
from protocol.formats.body import Permission
from protocol.formats.publication import create_publication
from storage.commits.pending import UNREAD, count_pending
from storage.engine.database import StorageError
from storage.repos.repos import Branch
from tests.support.builders import give, writing_topic
from tests.support.machine import fail_after
from tests.support.nodes import Node, connected, open_nodes, until_equal


async def _join(alice: Node, bob: Node, permission: Permission = Permission.WRITE) -> None:
    repo, _ = alice.create_repo()
    await bob.joiner.begin(alice.invite(repo, permission))


@pytest.mark.slow
async def test_who_follows_by_a_read_capability_reads_and_is_no_member(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with fail_after(60), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        repo, branch = alice.create_repo()
        alice.write(branch, "for all to read")
        followed = await bob.joiner.follow(alice.capability())
        async with connected(bob, alice):
            await until_equal(alice, bob)
            alice.write(branch, "and this")
            await until_equal(alice, bob)
        assert bob.replica.permission(followed, bob.author.user) is None
        assert set(alice.replica.members(repo)) == {alice.author.user}
        with pytest.raises(ServiceError, match="may not write here"):
            bob.write(bob.branch(), "not heard")


@pytest.mark.slow
async def test_a_reader_follows_and_cannot_write(tmp_path: Path, autojump_clock: MockClock) -> None:
    with fail_after(60), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await _join(alice, bob, Permission.READ)
        async with connected(bob, alice):
            await until_equal(alice, bob)
            await until_equal(alice, bob, "root")
            alice.write(alice.branch(), "news")
            await until_equal(alice, bob)
        with pytest.raises(ServiceError, match="may not write here"):
            bob.write(bob.branch(), "no")


@pytest.mark.slow
async def test_a_writer_who_adds_a_branch_or_invites_is_refused_and_nothing_changes(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with fail_after(60), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await _join(alice, bob)
        async with connected(bob, alice):
            await until_equal(alice, bob)
            await until_equal(alice, bob, "root")
        repo = next(iter(bob.replica.repos.values()))
        before = bob.digest(bob.branch("root"))
        with pytest.raises(ServiceError) as caught:
            bob.author.founding.create_branch(repo, "second")
        assert caught.value.code == "not_permitted"
        with pytest.raises(ServiceError) as caught:
            bob.invite(repo, Permission.READ)
        assert caught.value.code == "not_permitted"
        assert bob.digest(bob.branch("root")) == before
        bob.write(bob.branch(), "still a writer")


async def test_a_join_is_finished_after_the_store_has_failed(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = iter([StorageError("disk full")] * 2)
    write = Hub.write_grouped

    async def fail_first(hub: Hub, *arguments: object) -> object:
        error = next(failures, None)
        if error is not None:
            raise error
        return await write(hub, *arguments)  # type: ignore[arg-type]  # passed on as they are

    with fail_after(600), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await _join(alice, bob)
        monkeypatch.setattr(Hub, "write_grouped", fail_first)
        async with connected(bob, alice):
            await until_equal(alice, bob)
            repo = next(iter(bob.replica.repos.values()))
            while bob.replica.permission(repo, bob.author.user) is None:
                await bob.hub.changes.wait(bob.hub.changes.count)
        assert next(failures, None) is None


def _write_of_a_later_version(node: Node, branch: Branch, number: int) -> None:
    """A commit of a format that nobody here knows, on the topic on which the node writes."""
    epoch = node.epoch()
    block, key = encrypt_block(
        b"\x92\xa7commit3" + bytes([number]),
        epoch.convergence_secret,
        acks=(branch.facts.root_id,),
        rank=1,
        mark=branch_mark_in(epoch.key, branch.branch_id),
    )
    topic = writing_topic(node.replica, branch)
    assert topic.seed is not None
    item = create_publication(topic.seed, epoch.keys.read_key, key, (block,)).encoded
    node.hub.announce(give(node.replica, [item]))


def _unread(node: Node) -> int:
    with node.replica.database.read() as connection:
        return count_pending(connection, node.branch("root").num, reason=UNREAD)


@pytest.mark.slow
async def test_commits_of_a_later_version_are_passed_on_to_readers_too(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """Carol has only ever met bob, who can read as little of it as she can."""
    with fail_after(60), open_nodes(tmp_path, "alice", "bob", "carol") as (alice, bob, carol):
        repo, branch = alice.create_repo()
        await bob.joiner.begin(alice.invite(repo))
        await carol.joiner.begin(alice.invite(repo, Permission.READ))
        _write_of_a_later_version(alice, branch, 1)
        async with connected(bob, alice), connected(carol, bob):
            await until_equal(alice, bob)
            await until_equal(bob, carol)
            while _unread(carol) < 1:
                await carol.hub.changes.wait(carol.hub.changes.count)
            _write_of_a_later_version(alice, branch, 2)
            while _unread(carol) < 2:
                await carol.hub.changes.wait(carol.hub.changes.count)
        assert (_unread(alice), _unread(bob), _unread(carol)) == (2, 2, 2)
        assert carol.digest(carol.branch()) == alice.digest(branch)
