"""One way to change what memory shows: the next writer begins when memory shows the store."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from node.ingest.acceptance import accept_own
from node.ingest.publication_parsing import open_batch
from node.ingest.replica import Replica
from node.ingest.tables import load_tables
from node.membership.offers import follow_accepted
from node.runtime.errors import ServiceError
from protocol.codec import encode
from protocol.crypto.keys import BranchSecret, ConvergenceSecret
from protocol.formats.body import Answer, Grant, Offer, Permission, Remove
from protocol.formats.links import BranchCapability, BranchChannel
from protocol.ids import BranchId, RepoId, TopicKey
from storage.engine.database import StorageError
from storage.repos.deletion import forget_repo
from storage.repos.repos import add_branch_alone
from tests.support.ids import as_commit_id, as_epoch_id
from tests.support.machine import patience
from tests.support.nodes import Node, open_nodes


class _Watched:
    """The lock of writers: says each time that it is let go whether memory shows the store."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._lock = threading.Lock()
        self.shown: list[bool] = []

    @contextmanager
    def held(self, *, is_patient: bool = False) -> Iterator[None]:
        with self._lock:
            try:
                yield
            finally:
                self._look()

    def _look(self) -> None:
        with self._replica.database.read() as connection:
            stored = load_tables(connection)
        memory = self._replica.tables
        self.shown.append(
            (memory.repos, memory.epochs, memory.by_topic.keys())
            == (stored.repos, stored.epochs, stored.by_topic.keys())
        )


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[list[Node]]:
    with open_nodes(tmp_path, "alice", "bob") as opened:
        yield opened


@pytest.fixture
def watched(nodes: list[Node], monkeypatch: pytest.MonkeyPatch) -> _Watched:
    """Bob's lock."""
    watched = _Watched(nodes[1].replica)
    monkeypatch.setattr(nodes[1].replica.database, "_lock", watched)
    return watched


def _link(number: int = 0) -> BranchCapability:
    """Return what opens some branch of some repo."""
    some = iter(bytes([number, kind]) * 16 for kind in range(6))
    repo, init, branch, epoch, topic, secret = some
    channel = BranchChannel(
        as_epoch_id(epoch), TopicKey(topic), BranchSecret(secret), ConvergenceSecret(secret)
    )
    return BranchCapability(RepoId(repo), as_commit_id(init), BranchId(branch), "main", (channel,), ())


@pytest.mark.slow  # a writer of each kind
async def test_no_writer_begins_before_memory_shows_what_the_last_one_stored(
    nodes: list[Node], watched: _Watched
) -> None:
    alice, bob = nodes
    repo, _ = alice.create_repo()
    await bob.joiner.begin(alice.invite(repo))
    own, main = bob.create_repo("own")
    await bob.joiner.follow_branch(_link())
    root = bob.replica.root_branch(own)
    offer, _ = bob.author.write(root, Offer(main.branch_id, False, "", encode(_link(1))))
    bob.author.write(root, Answer(offer.commit_id, True))
    assert follow_accepted(bob.replica, own)
    bob.author.write(root, Grant(alice.author.user, Permission.WRITE))
    bob.author.write(root, Remove(alice.author.user, None, ()))
    bob.author.start_epoch(own)
    bob.replica.forget_invitation(next(one for one in bob.replica.repos.values() if one.invitation))
    with bob.replica.change() as change:
        forget_repo(
            change.connection, next(num for num, one in change.tables.repos.items() if not one.has_members)
        )
    assert len(watched.shown) >= 12
    assert all(watched.shown)


def test_a_batch_that_waited_for_the_writer_judges_by_what_that_has_left(nodes: list[Node]) -> None:
    bob = nodes[1]
    with bob.replica.change() as change:
        assert add_branch_alone(bob.replica.database, change.connection, _link())
    branch = bob.branch()
    (topic,) = bob.replica.topics.values()
    began, found = threading.Event(), list[str]()

    def take() -> None:
        began.set()
        try:
            accept_own(bob.replica, lambda _: [(topic, open_batch(topic, ()))], 0)
        except ServiceError as error:
            found.append(error.code)

    waiting = threading.Thread(target=take)
    with bob.replica.change() as change:
        waiting.start()
        assert began.wait(patience(10))
        forget_repo(change.connection, branch.repo_num)
    waiting.join(patience(10))
    assert found == ["not_found"]  # the branch is not judged at all
    assert not bob.replica.repos


def test_what_cannot_be_shown_is_not_stored(nodes: list[Node], monkeypatch: pytest.MonkeyPatch) -> None:
    bob = nodes[1]

    def fail(*_arguments: object) -> None:
        raise StorageError("the tables cannot be read")

    monkeypatch.setattr("node.ingest.replica.renew_tables", fail)
    with pytest.raises(StorageError), bob.replica.change() as change:
        add_branch_alone(bob.replica.database, change.connection, _link())
    monkeypatch.undo()
    with bob.replica.database.read() as connection:
        assert not load_tables(connection).repos
