"""`Founding`: creates repos and branches."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from node.authoring.drafting import (
    CommitPosition,
    Draft,
    Target,
    WrittenCommit,
    aim,
    encode_dated,
    make_publication,
)
from node.authoring.epoch_starts import find_writers_topic, make_founding
from node.authoring.feed_writer import FeedWriter
from node.authoring.preparing import Preparation
from node.ingest.ingest_result import IngestResult
from node.runtime.errors import ServiceError
from protocol.crypto.keys import RepoSeed
from protocol.formats.block import Reference
from protocol.formats.body import Body, BranchAdd, BranchFork, BranchRoot
from protocol.formats.commit import NO_BRANCH, NO_EPOCH
from protocol.ids import CommitId, EpochId, ObjectId, UserId, branch_begun_by, root_branch
from protocol.limits.formats import ACK_COUNT_MAX
from storage.commits.heads import load_heads
from storage.repos.epochs import Epoch
from storage.repos.repos import Branch, Repo, add_repo
from verifier.facts import BranchFacts


@dataclass(frozen=True, slots=True)
class _NewBranch:
    """Branch that is about to be added: its first commit with where that is published, and the body that pins it."""

    target: Target
    first: WrittenCommit
    pin: BranchAdd


class Founding:
    """Creator of one user's repos and branches."""

    def __init__(self, writer: FeedWriter, preparation: Preparation) -> None:
        self._writer = writer
        self._preparation = preparation

    def create_repo(
        self,
        name: str,
        branch: str = "",
        *,
        is_unique: bool = False,
        others: Sequence[UserId] = (),
        council: int | None = None,
    ) -> tuple[Repo, IngestResult]:
        """Create a repo with this user and `others` as owners, and a branch of that name if any, in one transaction.

        A `council` is how many of the owners remove any of them together.

        Its root branch has the init, and what adds the branch. Raises ServiceError `already_exists` if `is_unique` and a
        repo here has that name; nobody else can take the name meanwhile.
        """
        writer, seed = self._writer, RepoSeed(secrets.token_bytes(32))
        epoch, body = make_founding(seed, name, (writer.keys.user, *others), council)
        repo_id = epoch.repo_id
        # The init's own id is not known before it is encrypted.
        facts = BranchFacts(repo_id, NO_EPOCH, root_branch(repo_id), NO_EPOCH)
        root = Target(facts, 0, epoch, by_writer=False)
        with writer.lock:
            if is_unique and writer.replica.tables.repos_with_name(name):
                raise ServiceError(
                    "already_exists", f"there is a repo called {name!r}", "choose another name"
                )
            init = self._publish(root, body, CommitPosition(NO_EPOCH, sequence=1))
            repo = Repo(0, repo_id, name, init.commit_id, init.key, 0, is_behind=False, invitation=None)
            epoch = replace(epoch, epoch_id=EpochId(init.commit_id))
            followups = [(root.topic, init.encoded)]
            if branch:
                stated = replace(epoch, writers_topic=find_writers_topic(epoch))
                new = self._draft_branch(repo, stated, branch, BranchRoot(), (init.commit_id,))
                known = replace(facts, init_id=repo.init_id, root_id=repo.init_id)
                pinning = Target(known, 0, stated, by_writer=True)
                acks = (init.commit_id,)
                place = CommitPosition(epoch.epoch_id, 2, init.commit_id, acks=acks, rank=init.rank + 1)
                pin = self._publish(pinning, new.pin, place)
                followups += [(pinning.topic, pin.encoded), (new.target.topic, new.first.encoded)]

            def add(connection: Connection) -> None:
                add_repo(writer.replica.database, connection, repo, epoch)

            ingested = writer.store(lambda _: (), before=add, followups=followups)
        tables = writer.replica.tables
        return tables.repos[tables.roots[repo_id].repo_num], ingested

    def create_branch(
        self,
        repo: Repo,
        name: str,
        first: BranchRoot | BranchFork | None = None,
        *,
        is_unique: bool = False,
        stored: IngestResult | None = None,
    ) -> tuple[Branch, IngestResult]:
        """Add a branch: its root commit, and the root branch's commit that pins it, in one transaction.

        Returns also the stored commits, with those of an epoch that was due; `stored` gets them even if the branch is
        refused. Raises ServiceError if the rules refuse it, or if its name must be unique and another branch has it.
        """
        stored = IngestResult() if stored is None else stored
        writer = self._writer
        root = writer.replica.root_branch(repo)

        def write() -> Branch:
            named = writer.replica.tables.taking_name(name) if is_unique else ()
            if any(one.repo_num == repo.num for one in named):
                raise ServiceError(
                    "already_exists", f"there is a branch called {name!r}", "choose another name"
                )
            epoch = writer.choose_epoch(root)
            with writer.replica.database.read() as connection:
                seen = tuple(raw for raw, _ in load_heads(connection, root.num, ACK_COUNT_MAX))
            new = self._draft_branch(repo, epoch, name, first or BranchRoot(), seen)
            followups = [(new.target.topic, new.first.encoded)]
            stored.add(writer.write_in(root, epoch, Draft(new.pin), followups=followups)[1])
            made = writer.replica.tables.find_branch(repo.num, new.pin.branch)
            assert made is not None, "it was stored"
            return made

        return self._preparation.write(root, write, stored), stored

    def _draft_branch(
        self, repo: Repo, epoch: Epoch, name: str, first: BranchRoot | BranchFork, seen: tuple[CommitId, ...]
    ) -> _NewBranch:
        # The branch's id is that of its first commit, so that nobody can pin another.
        unnamed = aim(BranchFacts(repo.repo_id, repo.init_id, NO_BRANCH, NO_EPOCH), 0, epoch)
        written = self._publish(unnamed, first, CommitPosition(epoch.epoch_id, sequence=1, seen=seen))
        branch_id = branch_begun_by(written.commit_id)
        pin = BranchAdd(branch_id, name, Reference(ObjectId(written.commit_id), written.key))
        return _NewBranch(unnamed, written, pin)

    def _publish(self, target: Target, body: Body, place: CommitPosition) -> WrittenCommit:
        drafted = encode_dated(self._writer.keys, self._writer.clock_ms, target, Draft(body), place)
        return make_publication(target, drafted)
