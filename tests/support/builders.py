"""Histories from short descriptions: real signed commits, opened and judged like anyone's.

    World(tmp_path).write("a, a <- b, a <- c, b c <- d")

makes four posts in a branch, `a` on the branch's root, and gives their publications in that order.
"""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import ClassVar

from sqlalchemy import select

from node.authoring.author import Author
from node.authoring.drafting import Draft, WrittenCommit, aim
from node.ingest.ingest_result import IngestResult
from node.ingest.publication_parsing import open_batch
from node.ingest.replica import Replica
from protocol.crypto.keys import StoreKey, UserSeed
from protocol.formats.body import Approve, Checkpoint, Grant, Permission, ProposeCheckpoint, Quorum, Remove
from protocol.formats.content import Post
from protocol.formats.publication import decode_publication
from protocol.ids import CommitId
from storage.commits.commits import load_timeline
from storage.repos.epochs import Topic
from storage.repos.repos import Branch, add_repo
from storage.schema.schema import commits
from storage.topics.publishing import load_publications
from tests.support.batches import accept_whole
from tests.support.ids import as_commit_id
from tests.support.stores import KeptFolder

NOW_MS = 1_700_000_000_000
STORE_KEY = StoreKey(b"store key".ljust(32, b"-"))


class World:
    """A node that writes histories, and copies of its repo on other nodes."""

    _kept: ClassVar[dict[Callable[["World"], object], tuple[KeptFolder, dict[str, WrittenCommit]]]] = {}
    """Folders and commits of earlier worlds, by what was told in them: founding one alone takes 15 ms."""

    def __init__(
        self,
        folder: Path,
        *,
        tell: "Callable[[World], object]" = lambda _: None,
        is_another: bool = False,
    ) -> None:
        """World in which `tell` has told something. With `is_another`, its repo is not that of other worlds."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.commits: dict[str, WrittenCommit] = {}
        self._copies: list[Replica] = []
        is_kept = not is_another and KeptFolder.are_rows_kept()
        if is_kept and tell in self._kept:
            kept, commits = self._kept[tell]
            kept.write_to(folder)
            self.commits |= commits
            self._open()
            return
        self._open()
        tell(self)
        if is_kept:
            self.replica.close()
            self._kept[tell] = KeptFolder(folder), dict(self.commits)
            self._open()

    def _open(self) -> None:
        self.replica = Replica(self.folder, STORE_KEY)
        self.author = Author(self.replica, UserSeed(b"w" * 32), lambda: NOW_MS)
        if not self.replica.repos:
            repo, _ = self.author.founding.create_repo("world")
            self.author.founding.create_branch(repo, "main")
        (self.repo,) = self.replica.repos.values()
        self.branch: Branch = next(it for it in self.replica.branches.values() if it.name == "main")

    def close(self) -> None:
        """Close this node and all copies."""
        for replica in [self.replica, *self._copies]:
            replica.close()

    def write(self, description: str) -> list[bytes]:
        """Write the described posts in order; gives their publications."""
        return [self.write_one(name, acks) for acks, name in _parse(description)]

    def write_one(self, name: str, acks: list[str], author: Author | None = None) -> bytes:
        """One post that acks the named ones, or the branch's root."""
        ids = tuple(self.commits[ack].commit_id for ack in acks) or (self.branch.facts.root_id,)
        written, _ = (author or self.author).write_many(
            self.branch, lambda _: [Draft(Post(name), ids)], lambda _connection, _written: None
        )
        self.commits[name] = written[0]
        return as_commit_id(written[0].encoded)

    def name_quorum(self) -> None:
        """From now on this node's user alone approves of checkpoints."""
        root = self.replica.root_branch(self.repo)
        self.author.write(root, Quorum((self.author.user,), 1, removals=False))

    def checkpoint_one(self, name: str, acks: list[str], author: Author | None = None) -> bytes:
        """A checkpoint, proposed and approved, of the named ones or the branch's root."""
        ids = tuple(self.commits[ack].commit_id for ack in acks) or (self.branch.facts.root_id,)
        root = self.replica.root_branch(self.repo)
        proposal, _ = self.author.write(root, ProposeCheckpoint(self.branch.branch_id, ids))
        self.author.write(root, Approve(proposal.commit_id))
        draft = Draft(Checkpoint(proposal.commit_id), ids)
        self.commits[name], _ = (author or self.author).write(self.branch, draft)
        return as_commit_id(self.commits[name].encoded)

    def tell_story(self) -> None:
        """Posts a to i, of which bob's f is void, and two checkpoints among them: e, which c has passed, and j."""
        self.name_quorum()
        bob = Author(self.replica, UserSeed(b"b" * 32), lambda: NOW_MS)
        root = self.replica.root_branch(self.repo)
        self.author.write(root, Grant(bob.user, Permission.WRITE))
        self.write("a, a <- b, a <- c, b <- d")
        self.checkpoint_one("e", ["d"])
        self.write_one("f", ["c"], bob)
        self.write("c <- g, e <- h")
        self.author.write(root, Remove(bob.user, None, ()))
        self.write("f <- i")
        self.checkpoint_one("j", ["g", "h"])

    def copy(self, *, is_writer: bool = True) -> tuple[Replica, Branch]:
        """Another node that has the repo's root branch and the branch's root, and nothing else yet.

        It holds the epoch that is written in, and with `is_writer` the writers' secret.
        """
        folder = self.folder / secrets.token_hex(4)
        folder.mkdir()
        replica = Replica(folder, STORE_KEY)
        self._copies.append(replica)
        epoch = self.replica.writing_epoch(self.repo)
        if not is_writer:
            epoch = replace(epoch, writers_secret=None)
        with replica.change() as change:
            repo = replace(self.repo, name="copy")
            add_repo(replica.database, change.connection, repo, replace(epoch, writers_topic=None))
        give(replica, self.publications(self.replica.root_branch(self.repo)))
        give(replica, self.publications(self.branch)[:1])
        repo = replica.tables.of_id[self.repo.repo_id]
        branch = replica.tables.find_branch(repo.num, self.branch.branch_id)
        assert branch is not None, "the root branch adds it"
        return replica, branch

    def topic(self, branch: Branch | None = None) -> Topic:
        """The topic on which this node's user publishes commits of a branch."""
        return writing_topic(self.replica, branch or self.branch)

    def publications(self, branch: Branch) -> list[bytes]:
        """All publications of a branch, causes before effects."""
        return publications_of(self.replica, branch)


def writing_topic(replica: Replica, branch: Branch) -> Topic:
    """The topic on which a node publishes commits of a branch."""
    epoch = replica.writing_epoch(replica.repos[branch.repo_num])
    return replica.by_topic[aim(branch.facts, branch.num, epoch).topic]


def publications_of(replica: Replica, branch: Branch) -> list[bytes]:
    """All publications of a branch, each on the topic that its commit says, causes before effects."""
    query = select(commits.c.num, commits.c.topic_num).where(commits.c.branch_num == branch.num)
    with replica.database.read() as connection:
        rows = connection.execute(query.order_by(commits.c.num)).all()
        return [
            item
            for num, topic_num in rows
            for item in load_publications(connection, replica.topics[topic_num], [num], 1)
        ]


def give(replica: Replica, items: Sequence[bytes]) -> IngestResult:
    """Take publications in, a batch for each run of one topic. Tests forge some as the node's own user, and write on."""
    ingested, uncertain = IngestResult(), replica.own_feeds.uncertain
    for name, group in groupby(items, key=lambda item: decode_publication(item).topic):
        topic = replica.by_topic[name]
        ingested.add(accept_whole(replica, topic, open_batch(topic, list(group)), NOW_MS))
    for repo_id in replica.own_feeds.uncertain - uncertain:
        replica.own_feeds.settle(repo_id)
    return ingested


def count_accepted(ingested: IngestResult) -> int:
    """How many commits were accepted, on whichever topic."""
    return sum(map(len, ingested.accepted.values()))


def timeline(replica: Replica, branch: Branch) -> list[CommitId]:
    """Commit ids of a branch's timeline."""
    with replica.database.read() as connection:
        return [row.commit_id for row in load_timeline(connection, branch.num, 0, 1_000_000)]


def _parse(description: str) -> list[tuple[list[str], str]]:
    described = []
    for part in description.split(","):
        acks, arrow, name = part.rpartition("<-")
        described.append((acks.split() if arrow else [], name.strip()))
    return described
