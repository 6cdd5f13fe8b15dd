"""Whole nodes in one process: real stores and real connections, over memory or loopback streams, work run inline."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from itertools import count
from pathlib import Path

import trio
from trio.testing import memory_stream_pair

from node.authoring.author import Author
from node.ingest.ingest_result import IngestResult
from node.ingest.replica import Replica
from node.membership.joining import Joiner, link_of
from node.membership.key_rotation import KeyRotation
from node.membership.members import Members
from node.sync.connection import Connection
from node.sync.hub import Hub
from node.wire.transport import accept, dial
from protocol.crypto.keys import AgreementSecret, InvitationSeed, NodeSeed, UserSeed
from protocol.crypto.signing import key_pair
from protocol.formats.block import Reference
from protocol.formats.body import Invite, Permission
from protocol.formats.content import Post
from protocol.formats.links import InvitationLink, ReadCapability
from protocol.formats.text import id_text
from protocol.ids import CommitId, ObjectId, UserId
from storage.commits.commits import count_commits, digest_timeline, load_timeline
from storage.commits.heads import load_heads
from storage.repos.epochs import Epoch
from storage.repos.repos import Branch, Repo
from tests.support.blocking import inline
from tests.support.builders import STORE_KEY
from tests.support.stores import KeptFolder
from tests.support.tables import assert_tables_are_stored


class Node:
    """One node without a network of its own. Seeds are its name, its clock counts milliseconds."""

    def __init__(self, folder: Path, name: str) -> None:
        self.seed = NodeSeed(name.encode().ljust(32, b"-"))
        self.key = key_pair(self.seed)[0]
        self.user_seed = UserSeed(b"user of " + self.seed[:24])
        self.folder = folder
        self.is_damaged = False
        """Whether a test has changed rows behind the node's back."""
        self.open(1_700_000_000_000)

    def open(self, now: int | None = None) -> None:
        """Open the store, at first or after it was closed; `now` sets the clock, in unix milliseconds."""
        if now is not None:
            self.set_clock(now)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.replica = Replica(self.folder, STORE_KEY)
        self.hub = Hub(self.replica, inline(), lambda: next(self._clock))
        self.author = Author(self.replica, self.user_seed, lambda: next(self._clock))
        self.joiner = Joiner(self.hub, self.author)

    def now(self) -> int:
        """What its clock shows, in unix milliseconds; it shows the next one then."""
        return next(self._clock)

    def set_clock(self, now: int) -> None:
        """Set the clock, in unix milliseconds."""
        self._clock = count(now)

    def create_repo(
        self, name: str = "repo", others: Sequence[UserId] = (), council: int | None = None
    ) -> tuple[Repo, Branch]:
        """A repo with a branch called main."""
        repo, ingested = self.author.founding.create_repo(name, others=others, council=council)
        self.hub.announce(ingested)
        branch, ingested = self.author.founding.create_branch(repo, "main")
        self.hub.announce(ingested)
        return repo, branch

    def write(self, branch: Branch, text: str) -> IngestResult:
        """Write a post."""
        _, ingested = self.author.write(branch, Post(text))
        self.hub.announce(ingested)
        return ingested

    def invite(
        self,
        repo: Repo,
        permission: Permission = Permission.WRITE,
        expires_at: int = 2**52,
        uses: int = 1,
    ) -> InvitationLink:
        """An invitation link without addresses."""
        seed = InvitationSeed(bytes(reversed(self.seed)))
        body = Invite(key_pair(seed)[0], permission, uses, expires_at)
        written, ingested = self.author.write(self.replica.root_branch(repo), body)
        self.hub.announce(ingested)
        return link_of(
            repo, self.replica.writing_epoch(repo), written.commit_id, seed, permission, expires_at, ()
        )

    def capability(self) -> ReadCapability:
        """What opens the node's one repo, without addresses."""
        repo, epoch = self.repo(), self.epoch()
        root = Reference(ObjectId(repo.init_id), repo.init_key)
        return ReadCapability(repo.repo_id, root, epoch.epoch_id, epoch.key, (), repo.name)

    def repo(self) -> Repo:
        """The node's one repo."""
        (repo,) = self.replica.repos.values()
        return repo

    def epoch(self) -> Epoch:
        """The epoch in which the node writes to its one repo."""
        return self.replica.writing_epoch(self.repo())

    def branch(self, name: str = "main") -> Branch:
        """A branch by name."""
        return next(branch for branch in self.replica.branches.values() if branch.name == name)

    def digest(self, branch: Branch) -> tuple[str, int]:
        """Digest and length of the branch's timeline."""
        with self.replica.database.read() as connection:
            return digest_timeline(connection, branch.num)

    def heads(self, branch: Branch) -> list[CommitId]:
        """Ids of the branch's heads."""
        with self.replica.database.read() as connection:
            return [commit_id for commit_id, _ in load_heads(connection, branch.num, 1000)]


@contextmanager
def open_nodes(folder: Path, *names: str) -> Iterator[list[Node]]:
    """Nodes in folders of their own, closed at the end; then their memory has shown what their stores have."""
    nodes = [Node(folder / name, name) for name in names]
    try:
        yield nodes
        for node in nodes:
            if not node.is_damaged:
                assert_tables_are_stored(node.replica)
    finally:
        for node in nodes:
            node.replica.close()


@asynccontextmanager
async def connected(dialer: Node, acceptor: Node) -> AsyncIterator[tuple[Connection, Connection]]:
    """A connection between two nodes over memory streams, with both joiners at work."""
    ours, theirs = memory_stream_pair()
    connections: dict[str, Connection] = {}

    async def open_side(side: str) -> None:
        if side == "dialer":
            stream = await dial(ours, dialer.seed, acceptor.key, AgreementSecret(b"d" * 32))
            connections[side] = Connection(dialer.hub, stream, lambda _: True)
        else:
            stream = await accept(theirs, acceptor.seed, AgreementSecret(b"a" * 32))
            connections[side] = Connection(acceptor.hub, stream)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(open_side, "dialer")
        nursery.start_soon(open_side, "acceptor")
    async with trio.open_nursery() as nursery:
        for node in (dialer, acceptor):
            nursery.start_soon(node.joiner.run)
        for connection in connections.values():
            nursery.start_soon(connection.run)
        yield connections["dialer"], connections["acceptor"]
        nursery.cancel_scope.cancel()


async def until_equal(first: Node, second: Node, name: str = "main") -> None:
    """Wait until both nodes show the same timeline of a branch."""
    while True:
        names = [{branch.name for branch in node.replica.branches.values()} for node in (first, second)]
        if all(name in known for known in names) and first.digest(first.branch(name)) == second.digest(
            second.branch(name)
        ):
            return
        await trio.sleep(0.1)


def ids(node: Node) -> list[str]:
    """Ids of the timeline of the branch called main."""
    branch = node.branch()
    with node.replica.database.read() as connection:
        rows = load_timeline(connection, branch.num, 0, 1000)
        assert len(rows) == count_commits(connection, branch.num)
    return [id_text(row.commit_id) for row in rows]


def members_of(node: Node) -> Members:
    """What changes the members of a node's one repo."""

    def find_branch(text: str) -> Branch:
        return node.branch(text)

    return Members(node.hub, node.author, lambda _: node.repo(), find_branch)


def renewing_of(node: Node) -> KeyRotation:
    """What renews the secrets of a node's one repo."""
    return KeyRotation(node.hub, node.author, lambda _: node.repo(), lambda text: node.branch(text))


async def together(*nodes: Node) -> None:
    """Connect all to the first until they agree about everything."""
    first, *others = nodes
    for other in [*others, *others]:
        async with connected(other, first):
            await until_equal(first, other, "root")
            await until_equal(first, other)


async def meet(*nodes: Node) -> None:
    """Connect all to the first for a while; they need not come to agree."""
    first, *others = nodes
    for other in [*others, *others]:
        async with connected(other, first):
            await trio.sleep(10)


async def share(alice: Node, *others: Node, permission: Permission = Permission.WRITE) -> None:
    """Nodes whose first has created a repo that the others have joined, all of them opened anew."""
    nodes = (alice, *others)
    if not KeptFolder.are_rows_kept() or any(node.replica.repos for node in nodes):
        await found_and_join(alice, *others, permission=permission)
        return
    case = (permission, *((node.seed, node.user_seed, node.now()) for node in nodes))
    is_new = case not in _SHARED
    if is_new:
        await found_and_join(alice, *others, permission=permission)
    for node in nodes:
        node.replica.close()
    if is_new:
        _SHARED[case] = [(KeptFolder(node.folder), node.now()) for node in nodes]
    for node, (kept, now) in zip(nodes, _SHARED[case], strict=True):
        kept.write_to(node.folder)
        node.open(now)


_SHARED: dict[tuple[object, ...], list[tuple[KeptFolder, int]]] = {}
"""Folders of nodes that share a repo, and what their clocks show, by how it was asked for: joining takes 80 ms each."""


async def found_and_join(alice: Node, *others: Node, permission: Permission = Permission.WRITE) -> None:
    """Alice creates a repo, and the others join it, one after the other."""
    repo, _ = alice.create_repo()
    for other in others:
        link = alice.invite(repo, permission)
        await other.joiner.begin(link)
        async with connected(other, alice):
            await until_equal(alice, other)
            await until_equal(alice, other, "root")
            while alice.replica.permission(repo, other.author.user) is None:
                await alice.hub.changes.wait(alice.hub.changes.count)
            await until_equal(alice, other, "root")
