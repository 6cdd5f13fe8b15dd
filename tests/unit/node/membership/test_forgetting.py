"""A repo that is deleted leaves nothing behind, and may come back without forking its user's feed."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, func, select
from trio.testing import MockClock

from node.care.fsck import check_store
from node.runtime.errors import ServiceError
from node.sync.feed_recovery import FeedRecovery
from protocol.formats.content import Post
from storage.commits.feeds import load_feeds
from storage.engine.losses import Loss, read_loss, write_loss
from storage.repos.deletion import forget_repo
from storage.schema.columns import metadata
from tests.support.builders import STORE_KEY
from tests.support.machine import fail_after
from tests.support.nodes import Node, connected, ids, open_nodes, together, until_equal

_KEPT = {"authors", "blocks", "packs", "pack_blocks", "sequences", "store_seal", "alembic_version"}
"""Tables whose rows are of no repo, or that garbage collection empties."""


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[list[Node]]:
    with open_nodes(tmp_path, "alice", "bob") as opened:
        yield opened


def _rows(connection: Connection) -> dict[str, int]:
    counts = {
        table.name: connection.execute(select(func.count()).select_from(table)).scalar_one()
        for table in metadata.sorted_tables
        if table.name not in _KEPT
    }
    return {name: count for name, count in counts.items() if count}


def _forget(node: Node) -> None:
    repo = node.repo()
    with node.replica.change() as change:
        node.replica.own_feeds.note_deletion(repo.repo_id)
        forget_repo(change.connection, repo.num)
        change.changed_repos.add(repo.repo_id)
        node.replica.forget_membership(repo.repo_id)
    node.hub.topics_changed()


@pytest.mark.slow
async def test_a_repo_is_deleted_whole_and_its_feed_goes_on_once_it_is_back(
    nodes: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    alice, bob = nodes
    with bob.replica.database.read() as connection:
        before = _rows(connection)
    with fail_after(300):
        repo, _ = alice.create_repo()
        link = alice.invite(repo, uses=2)
        await bob.joiner.begin(link)
        await together(alice, bob)
        for number in range(3):
            bob.write(bob.branch(), f"post {number}")
        await together(alice, bob)
        whole = ids(alice)
        repo_id = bob.repo().repo_id
        _forget(bob)
        assert not bob.replica.repos
        with bob.replica.database.read() as connection:
            assert _rows(connection) == before
        bob.replica.close()
        assert check_store(tmp_path / "bob", STORE_KEY).problems == []
        bob.open()
        assert bob.replica.own_feeds.uncertain == {repo_id}
        await bob.joiner.begin(link)
        async with connected(bob, alice):
            await until_equal(alice, bob)
            with pytest.raises(ServiceError, match="deleted here once"):
                bob.author.write(bob.branch(), Post("before a peer was asked"))
            await FeedRecovery(bob.hub).settle_all()
            assert ids(bob) == whole
            bob.write(bob.branch(), "behind what others hold")
            await until_equal(alice, bob)
        assert read_loss(tmp_path / "bob") is None
        with alice.replica.database.read() as connection:
            assert sum(feed.forks for feed in load_feeds(connection, alice.branch().num)) == 0


@pytest.mark.slow
async def test_a_repo_that_comes_back_to_a_daemon_that_runs_on_has_all_its_epochs(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob = nodes
    with fail_after(300):
        repo, _ = alice.create_repo()
        link = alice.invite(repo, uses=2)
        await bob.joiner.begin(link)
        await together(alice, bob)
        for _ in range(2):
            alice.hub.announce(alice.author.start_epoch(alice.repo()))
            alice.write(alice.branch(), "in a new epoch")
            await together(alice, bob)
        held = {*bob.replica.tables.held_epochs(bob.repo().num)}
        assert len(held) == 3
        await bob.joiner.forget(bob.repo())
        await bob.joiner.begin(link)
        await together(alice, bob)
        assert {*bob.replica.tables.held_epochs(bob.repo().num)} == held


def test_a_deletion_is_remembered_beside_a_loss(nodes: list[Node], tmp_path: Path) -> None:
    alice, _ = nodes
    repo, _ = alice.create_repo()
    other, _ = alice.author.founding.create_repo("other")
    folder = tmp_path / "alice"
    write_loss(folder, Loss(9, 3, repos=[other.repo_id.hex()], has_past=False))
    alice.replica.own_feeds.load([])
    alice.replica.own_feeds.note_deletion(repo.repo_id)
    assert alice.replica.own_feeds.uncertain == {repo.repo_id, other.repo_id}
    alice.replica.own_feeds.settle(other.repo_id)
    left = read_loss(folder)
    assert left is not None
    assert (left.repos, left.deleted, left.is_lost) == ([], [repo.repo_id.hex()], False)
    alice.replica.own_feeds.settle(repo.repo_id)
    assert read_loss(folder) is None
