"""`Author`: creates a user's commits, repos, branches and epochs, and passes them through ingest like others'.

`Author` writes for one user. It holds a lock from reading the heads to the end of the transaction, so that two requests
at a time never give the user's feed two commits of one sequence. Where a new epoch is due and the user may, it starts
that first, so that who was excluded reads nothing of what follows.
"""

import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

import structlog
from sqlalchemy import Connection

from node.authoring.choosing_heads import choose_followed
from node.authoring.drafting import (
    AuthorKeys,
    CommitPosition,
    Draft,
    EncodedCommit,
    Target,
    WrittenCommit,
    aim,
    make_publication,
)
from node.authoring.epoch_starts import find_writers_topic, make_founding, make_init
from node.authoring.feed_encoder import Encoders, FeedEncoder, OpenStore, encode_dated
from node.authoring.opening import PART_COUNT, Opener, open_own
from node.authoring.preparing import Preparation
from node.authoring.refusals import refuse
from node.authoring.write_group import (
    AfterWrite,
    EncodedWrite,
    Plan,
    WriteGroup,
    WriteRequest,
    as_draft,
    nothing_more,
    open_when_asked,
)
from node.ingest.acceptance import InTransaction, accept_own
from node.ingest.acceptance_transaction import OwnCommitRejected
from node.ingest.ingest_result import IngestResult
from node.ingest.publication_parsing import OpenedBatch
from node.ingest.reading_workers import ReadingWorkers
from node.ingest.replica import Replica
from node.runtime.errors import ServiceError
from protocol import sealing, signing
from protocol.block import Reference
from protocol.body import Body, BranchAdd, BranchFork, BranchRoot, Permission
from protocol.boxes import BoxOpener
from protocol.commit import NO_BRANCH, NO_EPOCH
from protocol.ids import (
    CommitId,
    Digest,
    EpochId,
    Mark,
    ObjectId,
    RepoId,
    Signature,
    TopicKey,
    UserId,
    branch_begun_by,
    root_branch,
)
from protocol.keys import EpochKey, RepoSeed, UserSeed
from protocol.limits.formats import ACK_COUNT_MAX
from protocol.links import decode_kept_link, find_kept_ask
from storage.commits.heads import load_heads
from storage.engine.database import Database, StorageError
from storage.repos.epochs import Epoch, Topic, add_epoch
from storage.repos.repos import Branch, Repo, add_repo
from verifier.facts import BranchFacts

log = structlog.get_logger()


class Author:
    """Writes commits as one user."""

    def __init__(
        self,
        replica: Replica,
        user_seed: UserSeed,
        clock_ms: Callable[[], int],
        workers: ReadingWorkers | None = None,
    ) -> None:
        """`workers` open long batches; without them all is opened here."""
        self._replica = replica
        self._opener = Opener(workers)
        self._keys = AuthorKeys(*signing.key_pair(user_seed))
        replica.own_feeds.user = self._keys.user
        self._clock_ms = clock_ms
        self._lock = threading.RLock()
        self._encoders = Encoders()
        self._begun = IngestResult()  # what an epoch that was started for a write came to, until that is told
        self._preparation = Preparation(replica, self.user, self.write_begun, self._start_epoch)

    @property
    def user(self) -> UserId:
        """Whom it writes for."""
        return self._keys.user

    @property
    def database(self) -> Database:
        """The store that it writes to."""
        return self._replica.database

    def write(
        self, branch: Branch, draft: Draft | Body, *, after: AfterWrite = nothing_more
    ) -> tuple[WrittenCommit, IngestResult]:
        """Write one commit on the branch's current topic; a body alone goes on its heads. `after` runs in its transaction.

        Raises ServiceError where the rules refuse it, or the secrets to write with are not here.
        """
        written, ingested = self._write_alone(WriteRequest(branch, [as_draft(draft)], after))
        return written[0], ingested

    def write_many(
        self, branch: Branch, plan: Plan, after: AfterWrite = nothing_more
    ) -> tuple[list[WrittenCommit], IngestResult]:
        """Write the commits that `plan` makes of the store as it stands; `after` runs in their transaction."""
        return self._write_alone(WriteRequest(branch, plan, after))

    def _write_alone(self, request: WriteRequest) -> tuple[list[WrittenCommit], IngestResult]:
        [outcome], ingested = self.write_group([request])
        if isinstance(outcome, Exception):
            self.hold(ingested)  # the next write tells of an epoch that was started for this one
            raise outcome
        return outcome, ingested

    def write_group(
        self, requests: Sequence[WriteRequest]
    ) -> tuple[list[list[WrittenCommit] | Exception], IngestResult]:
        """Write what several requests ask for, each whole or not at all, in few transactions.

        Gives for each what it wrote, or why not. Requests on one branch follow one another: each acks the one before it.
        Where the rules refuse one, or it fails at the end, the group is written again one by one, and only that one fails.
        """
        outcomes: list[list[WrittenCommit] | Exception] = [[] for _ in requests]
        together = IngestResult()
        with self._lock:
            waiting = self._prepare_all(requests, outcomes)
            while waiting:
                try:
                    group = self._encode_group(requests, waiting, outcomes)
                except StorageError as error:  # the caller still learns what was stored before
                    outcomes = [error if place in waiting else one for place, one in enumerate(outcomes)]
                    break
                tried, waiting = waiting[: group.taken], waiting[group.taken :]
                if not group.encoded:
                    continue
                try:
                    together = together.with_more(self._store_group(requests, group, outcomes))
                    waiting = [*group.deferred, *waiting]
                except Exception as error:  # what one request raises, of any type, must not fail the others
                    group.drop()
                    left = [place for place in tried if not isinstance(outcomes[place], Exception)]
                    if len(left) == 1:
                        outcomes[left[0]] = error
                        continue
                    for place in left:
                        [outcomes[place]], ingested = self.write_group([requests[place]])
                        together = together.with_more(ingested)
        return outcomes, self._with_begun(together)

    def _prepare_all(
        self, requests: Sequence[WriteRequest], outcomes: list[list[WrittenCommit] | Exception]
    ) -> list[int]:
        """Places of the requests that can be written, each branch looked at once; what keeps the others is their outcome."""
        faults: dict[int, Exception | None] = {}
        waiting = []
        for place, request in enumerate(requests):
            branch = request.branch
            if branch.num not in faults:
                faults[branch.num] = None
                try:
                    self._prepare(branch)
                except (ServiceError, StorageError) as error:
                    faults[branch.num] = error
            if (fault := faults[branch.num]) is None:
                waiting.append(place)
            else:
                outcomes[place] = fault
        return waiting

    def _encode_group(
        self,
        requests: Sequence[WriteRequest],
        waiting: Sequence[int],
        outcomes: list[list[WrittenCommit] | Exception],
    ) -> WriteGroup:
        """Encode what the first of those that wait ask for, as much as one transaction is to hold."""
        database = self._replica.database
        group = WriteGroup(follows=database.commit_count)
        group.encoders = self._encoders.take(group.follows)
        # Closed before it is stored: a snapshot that is older than a transaction keeps SQLite from using its log anew.
        with ExitStack() as stack:
            open_store = open_when_asked(database, stack)
            for place in waiting:
                if group.is_full:
                    break
                group.taken += 1
                request = requests[place]
                if callable(request.drafts) and group.writes_on(request.branch):
                    group.deferred.append(place)
                else:
                    outcomes[place] = self._encode(open_store, request, group)
        return group

    def _encode(
        self, open_store: OpenStore, request: WriteRequest, group: WriteGroup
    ) -> list[WrittenCommit] | Exception:
        """Encode one request into a group: what it will have written, or why not."""
        write: EncodedWrite | None = None
        try:
            branch, epoch = request.branch, self._writing_epoch(request.branch)
            if request.files_in not in (None, epoch.num):
                raise ServiceError(
                    "interrupted", "the repo got new secrets while the file was coming in", "add it again"
                )
            self._replica.own_feeds.check(branch.facts.repo_id)
            encoder = group.encoders.get(branch.num)
            if encoder is None or encoder.target.epoch != epoch:
                encoder = group.encoders[branch.num] = self._make_encoder(open_store(), branch, epoch)
            write = EncodedWrite(branch, self._replica.by_topic[encoder.target.topic], request.after)
            for part in encoder.encode_parts(request.make_drafts(open_store), PART_COUNT, open_store):
                write.add(part, self._opener)
        except Exception as error:  # a plan may raise anything, and must fail its own request alone
            if write is not None:
                write.drop()
            return self._replica.database.as_failure(error)
        if write.written:
            group.add(write)
        return write.written

    def _store_group(
        self,
        requests: Sequence[WriteRequest],
        group: WriteGroup,
        outcomes: list[list[WrittenCommit] | Exception],
    ) -> IngestResult:
        """Judge and store a group in one transaction, in which what was deferred is encoded too."""
        openings = group.open_all(self._opener)
        for _, opening in openings[:1]:
            opening.wait()  # others may write until it is there

        def make_batches(connection: Connection) -> Iterator[tuple[Topic, OpenedBatch]]:
            yield from ((topic, opening.wait()) for topic, opening in openings)
            while group.deferred and not group.is_full:
                place = group.deferred.pop(0)
                group.encoders.clear()  # what they knew has been stored, and more
                before = len(group.encoded)
                outcomes[place] = self._encode(lambda: connection, requests[place], group)
                for one in group.encoded[before:]:
                    yield from ((one.topic, opening.wait()) for opening in one.open_all(self._opener))

        has_deferred = bool(group.deferred)
        ingested = self._ingest(make_batches, after=group.after)
        # Only where this was the one transaction since. What encoders have seen of a root branch is older than its new end.
        is_next = self._replica.database.commit_count == group.follows + 1
        if is_next and not has_deferred and not any(one.branch.facts.is_root_branch for one in group.encoded):
            self._encoders.keep(group.encoders, group.follows + 1)
        return ingested

    def write_in(
        self, branch: Branch, epoch: Epoch, draft: Draft | Body
    ) -> tuple[WrittenCommit, IngestResult]:
        """Write one commit in a given epoch, whichever is written in now. Raises as `write`."""
        with self._lock:
            with self._replica.database.read() as connection:  # closed before it is stored, as above
                encoder = self._make_encoder(connection, branch, epoch)
                written = encoder.encode([as_draft(draft)], lambda: connection)
            topic = self._replica.by_topic[encoder.target.topic]
            batch = open_own(topic, [written[0].encoded])
            ingested = self._ingest(lambda _: [(topic, batch)])
        return written[0], ingested

    def seal_key(self, repo_id: RepoId, user: UserId, key: EpochKey) -> bytes:
        """The key of an epoch of a repo for another user, who gets it elsewhere."""
        nonce = secrets.token_bytes(sealing.NONCE_SIZE)
        return sealing.seal_key(self._keys.secret, user, repo_id, key, nonce)

    def open_key(self, repo_id: RepoId, author: UserId, sealed: bytes) -> EpochKey:
        """The key that another user sealed for this one. Raises NotForUs."""
        return sealing.open_key(self._keys.secret, author, repo_id, sealed)

    def open_boxes(self, mark: Mark) -> BoxOpener:
        """Return what opens this user's boxes of a mark."""
        return BoxOpener(self._keys.user, self._keys.secret, mark)

    def sign(self, digest: Digest) -> Signature:
        """The user's signature of something beside commits, of which `protocol.proofs` makes the digest."""
        return signing.sign(self._keys.secret, digest)

    def create_repo(
        self, name: str, branch: str = "", *, is_unique: bool = False, others: Sequence[UserId] = ()
    ) -> tuple[Repo, IngestResult]:
        """Create a repo with this user and `others` as owners, and a branch of that name if any, in one transaction.

        Its root branch has the init, and what adds the branch. Raises ServiceError `already_exists` where the name is to be
        unique here and is not: nobody else makes one of that name meanwhile.
        """
        repo_seed = RepoSeed(secrets.token_bytes(32))
        epoch, body = make_founding(repo_seed, name, (self.user, *others))
        repo_id = epoch.repo_id
        # The init's own id is not known before it is encrypted.
        facts = BranchFacts(repo_id, NO_EPOCH, root_branch(repo_id), NO_EPOCH)
        root = Target(facts, 0, epoch, by_writer=False)
        with self._lock:
            if is_unique and self._replica.tables.repos_with_name(name):
                raise ServiceError(
                    "already_exists", f"there is a repo called {name!r}", "choose another name"
                )
            init = make_publication(
                root, self._encode_draft(root, Draft(body), CommitPosition(NO_EPOCH, sequence=1))
            )
            repo = Repo(0, repo_id, name, init.commit_id, init.key, 0, is_behind=False, invitation=None)
            epoch = replace(epoch, epoch_id=EpochId(init.commit_id))
            followups = [(root.topic, init.encoded)]
            if branch:
                stated = replace(epoch, writers_topic=find_writers_topic(epoch))
                new = self._draft_branch(repo, stated, branch, BranchRoot(), (init.commit_id,))
                known = replace(facts, init_id=repo.init_id, root_id=repo.init_id)
                pinning = Target(known, 0, stated, by_writer=True)
                place = CommitPosition(
                    epoch.epoch_id, 2, init.commit_id, acks=(init.commit_id,), rank=init.rank + 1
                )
                pin = make_publication(pinning, self._encode_draft(pinning, Draft(new.pin), place))
                followups += [(pinning.topic, pin.encoded), (new.target.topic, new.first.encoded)]
            ingested = accept_own(
                self._replica,
                lambda _: (),
                self._clock_ms(),
                before=lambda connection: _store_repo(self._replica, connection, repo, epoch),
                followups=followups,
            )
        return self._replica.repos[self._replica.tables.roots[repo_id].repo_num], ingested

    def create_branch(
        self,
        repo: Repo,
        name: str,
        first: BranchRoot | BranchFork | None = None,
        *,
        is_unique: bool = False,
    ) -> tuple[Branch, IngestResult]:
        """Add a branch: its root commit, and the root branch's commit that pins it, in one transaction.

        Raises ServiceError where the rules refuse it, or the name is to be unique in the repo and is not.
        """
        with self._lock:
            root = self._replica.root_branch(repo)
            self._prepare(root)
            named = self._replica.tables.with_name(name) if is_unique else ()
            if any(one.repo_num == repo.num for one in named):
                raise ServiceError(
                    "already_exists", f"there is a branch called {name!r}", "choose another name"
                )
            return self._create_branch(repo, root, name, first)

    def _create_branch(
        self, repo: Repo, root: Branch, name: str, first: BranchRoot | BranchFork | None
    ) -> tuple[Branch, IngestResult]:
        epoch = self._writing_epoch(root)
        with self._replica.database.read() as connection:  # closed before it is stored, as above
            seen = tuple(commit_id for commit_id, _ in load_heads(connection, root.num, ACK_COUNT_MAX))
            new = self._draft_branch(repo, epoch, name, first or BranchRoot(), seen)
            encoder = self._make_encoder(connection, root, epoch)
            pin = encoder.encode([Draft(new.pin)], lambda: connection)
        topic = self._replica.by_topic[encoder.target.topic]
        batch = open_own(topic, [pin[0].encoded])
        ingested = self._ingest(lambda _: [(topic, batch)], followups=[(new.target.topic, new.first.encoded)])
        made = self._replica.tables.find_branch(repo.num, new.pin.branch)
        assert made is not None, "it was stored"
        return made, self._with_begun(ingested)

    def _draft_branch(
        self, repo: Repo, epoch: Epoch, name: str, first: BranchRoot | BranchFork, seen: tuple[CommitId, ...]
    ) -> "_NewBranch":
        # The branch's id is that of its first commit, so that nobody can pin another.
        unnamed = aim(BranchFacts(repo.repo_id, repo.init_id, NO_BRANCH, NO_EPOCH), 0, epoch)
        place = CommitPosition(epoch.epoch_id, sequence=1, seen=seen)
        written = make_publication(unnamed, self._encode_draft(unnamed, Draft(first), place))
        branch_id = branch_begun_by(written.commit_id)
        pin = BranchAdd(branch_id, name, Reference(ObjectId(written.commit_id), written.key))
        return _NewBranch(unnamed, written, pin)

    def start_epoch(self, repo: Repo) -> IngestResult:
        """Start an epoch after everything that this node knows of. Raises ServiceError where the rules refuse it."""
        with self._lock:
            self._preparation.start(repo)
            return self.pop_begun()

    def may_write(self, branch: Branch) -> bool:
        """Return True if the user may write in a branch now, as far as is known here."""
        repo = self._replica.repos[branch.repo_num]
        return (
            branch.facts.has_members and (self._replica.permission(repo, self.user) or 0) >= Permission.WRITE
        )

    def prepare(self, repo: Repo) -> IngestResult:
        """Do what is due before a write in a repo (`begin`). Raises ServiceError, StorageError."""
        with self._lock:
            self.begin(repo)
            return self.pop_begun()

    def begin(self, repo: Repo) -> None:
        """Do what is due before a write in a repo: start an epoch (E9), and open what the epoch does not open (E4).

        What it came to is told with the write. Raises ServiceError, StorageError.
        """
        with self._lock:
            if repo.repo_id not in self._replica.own_feeds.uncertain:  # else what is written says why not
                self._preparation.begin(repo)

    def write_begun(self, branch: Branch, epoch: Epoch, draft: Draft | Body) -> None:
        """Write one of several commits, as `write_in` does. Its result is told with the others, also if a later fails."""
        with self._lock:
            self.hold(self.write_in(branch, epoch, draft)[1])

    def hold(self, ingested: IngestResult) -> None:
        """Keep what one of several writes came to until the last is made, or one fails: `pop_begun` gives it."""
        with self._lock:
            self._begun = self._begun.with_more(ingested)

    def pop_begun(self) -> IngestResult:
        """What was written as one of several, and was told to nobody yet."""
        return self._with_begun(IngestResult())

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Nobody else writes as this user meanwhile: what is looked at here still holds when it is written about."""
        with self._lock:
            yield

    def _prepare(self, branch: Branch) -> None:
        """Do what is due before a write. Raises ServiceError where this node may not write."""
        if not branch.facts.has_members:
            raise ServiceError(
                "not_permitted",
                "this node follows the branch by a link, and may read it only",
                "ask a member for an invitation to the repo",
            )
        self.begin(self._replica.repos[branch.repo_num])

    def _writing_epoch(self, branch: Branch) -> Epoch:
        """The epoch to write in. Raises ServiceError `incomplete` while its key is not here."""
        repo = self._replica.repos[branch.repo_num]
        if (
            repo.is_behind
            and not branch.facts.is_root_branch
            and self._replica.permission(repo, self.user) is not None
        ):
            raise ServiceError(
                "incomplete",
                "the repo has new secrets since an exclusion, and this node lacks them",
                "it gets them when it meets the node of a member who may write",
            )
        return self._replica.writing_epoch(repo)

    def _make_encoder(self, connection: Connection, branch: Branch, epoch: Epoch) -> FeedEncoder:
        """What encodes the user's next commits in a branch. Raises ServiceError `feed_uncertain`, `incomplete`."""
        self._replica.own_feeds.check(branch.facts.repo_id)
        repo = self._replica.repos[branch.repo_num]
        is_root = branch.facts.is_root_branch
        root_num = None if is_root else self._replica.root_branch(repo).num
        encoder = FeedEncoder(
            connection, self._keys, self._clock_ms, aim(branch.facts, branch.num, epoch), root_num
        )
        if is_root:
            with self._replica.membership_lock:
                membership = self._replica.membership(branch.facts.repo_id)
                heads = membership.now().heads
                if heads:  # who may not open epochs names what this one opens
                    named = _find_invitation(repo)
                    followed = choose_followed(membership, self.user, epoch.epoch_id, heads, named)
                    encoder.follow(followed, lambda: connection)
        if not encoder.has_begun:
            raise ServiceError(
                "incomplete",
                "the branch's first commit has not come here yet, and what is written must follow it",
                "wait until a peer has sent it: `ravel status` shows how far each is",
            )
        return encoder

    def _with_begun(self, ingested: IngestResult) -> IngestResult:
        """Also what was begun for this write or for one that failed."""
        with self._lock:
            begun, self._begun = self._begun, IngestResult()
        return begun.with_more(ingested)

    def _start_epoch(self, repo: Repo, published_in: Epoch, heads: tuple[CommitId, ...]) -> None:
        """Start an epoch after some heads, published in another."""
        root = self._replica.root_branch(repo)
        with self._replica.database.read() as connection:
            with self._replica.membership_lock:
                membership = self._replica.membership(repo.repo_id)
                made = make_init(membership, self._replica.tables, repo, heads, published_in)
            encoder = self._make_encoder(connection, root, published_in)
            draft = Draft(made.body, heads, further_blocks=made.blocks)
            written = encoder.encode([draft], lambda: connection)
        epoch = made.named(EpochId(written[0].commit_id))
        topic = self._replica.by_topic[encoder.target.topic]
        batch = open_own(topic, [written[0].encoded])
        ingested = self._ingest(
            lambda _: [(topic, batch)],
            before=lambda transaction: _store_epoch(self._replica, transaction, epoch),
        )
        self.hold(ingested)

    def _ingest(
        self,
        make_batches: Callable[[Connection], Iterable[tuple[Topic, OpenedBatch]]],
        *,
        before: InTransaction | None = None,
        after: InTransaction | None = None,
        followups: Sequence[tuple[TopicKey, bytes]] = (),
    ) -> IngestResult:
        """Judge and store what was encoded for some branches, in one transaction. Raises ServiceError and StorageError."""
        try:
            return accept_own(
                self._replica,
                make_batches,
                self._clock_ms(),
                before=before,
                after=after,
                followups=followups,
            )
        except OwnCommitRejected as error:
            verdict, people = error.verdict, self._replica.people
            raise refuse(
                people, error.repo_id, self.user, verdict.code, verdict.detail, verdict.seniors
            ) from None

    def _encode_draft(self, target: Target, draft: Draft, place: CommitPosition) -> EncodedCommit:
        return encode_dated(self._keys, self._clock_ms, target, draft, place)


@dataclass(frozen=True, slots=True)
class _NewBranch:
    """A branch that is about to be added: its first commit and where that is published, and what pins it."""

    target: Target
    first: WrittenCommit
    pin: BranchAdd


def _find_invitation(repo: Repo) -> CommitId | None:
    """The invitation that the user is about to join by."""
    if repo.invitation is None or find_kept_ask(repo.invitation) is not None:
        return None
    return decode_kept_link(repo.invitation)[0].invitation


def _store_repo(replica: Replica, connection: Connection, repo: Repo, epoch: Epoch) -> None:
    add_repo(replica.database, connection, repo, epoch)


def _store_epoch(replica: Replica, connection: Connection, epoch: Epoch) -> None:
    add_epoch(replica.database, connection, epoch)
