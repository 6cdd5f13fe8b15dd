"""The way out: a body becomes a commit, its blocks and a publication, which then takes the way in like everyone's.

`Author` writes for one user. It holds a lock from reading the heads to the end of the transaction, so that two requests
at a time never give the user's feed two commits of one sequence.
"""

import secrets
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from sqlalchemy import Connection

from node.errors import ServiceError
from node.inbound import Intake, InTransaction, OwnCommitRejected, accept_batch
from node.opening import open_batch
from node.replica import Replica
from protocol import sealing, signing
from protocol.block import Block, Reference
from protocol.body import Body, BranchAdd, BranchRoot, RepoInit, certify_repo, encode_body
from protocol.codec import DecodeError
from protocol.commit import (
    NO_BRANCH,
    NO_EPOCH,
    Commit,
    Content,
    HeaderKeys,
    Links,
    TanglePlace,
    lipmaa,
    seal_commit,
)
from protocol.hashing import branch_read_key, branch_secret, convergence_secret
from protocol.limits import ACK_COUNT_MAX
from protocol.object import build_object
from protocol.publication import NONCE_SIZE, encode_publication, seal_publication
from storage.commits import load_commit_keys, load_heads
from storage.database import Database
from storage.feeds import load_feed_ids, load_feed_tip
from storage.repos import Branch, Repo, add_repo, topic_seed
from verifier.facts import BranchFacts
from verifier.tangle_kinds import GROUP

_DONE_ALREADY: Final = frozenset({"already_holds", "nothing_to_remove", "branch_exists"})


@dataclass(frozen=True, slots=True)
class Draft:
    """A commit to be written: its body, what it acks (None: the branch's heads), its time in unix milliseconds (None: now).

    It adds `files` and removes others by their object ids; `deps` are the commits that had added these. An ack is a commit
    id, or the index of an earlier draft of the same call, whose id is not known yet.
    """

    body: Body
    acks: tuple[bytes | int, ...] | None = None
    timestamp: int | None = None
    deps: tuple[bytes, ...] = ()
    files: tuple[Reference, ...] = ()
    removed_files: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Written:
    """A commit as written, ready for the way in."""

    commit_id: bytes
    key: bytes
    encoded: bytes


@dataclass(frozen=True, slots=True)
class _Sealed:
    """A commit in its blocks: its own, then its body's."""

    commit: Commit
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a new commit stands: its epoch, its place in the author's feed, what it follows, and the keys to that."""

    epoch: bytes
    sequence: int
    previous: bytes | None = None
    skip: bytes | None = None
    seen: tuple[bytes, ...] = ()
    acks: tuple[bytes, ...] = ()
    keys: HeaderKeys = field(default_factory=HeaderKeys)


class Author:
    """Writes commits as one user."""

    def __init__(self, replica: Replica, user_seed: bytes, clock_ms: Callable[[], int]) -> None:
        self._replica = replica
        self.user, self._secret = signing.key_pair(user_seed)
        self._clock_ms = clock_ms
        self._lock = threading.Lock()

    @property
    def database(self) -> Database:
        """The store that it writes to."""
        return self._replica.database

    def write(
        self, branch: Branch, draft: Draft | Body, *, after: InTransaction | None = None
    ) -> tuple[Written, Intake]:
        """Write one commit; a body alone goes on the branch's heads. `after` runs in its transaction.

        Raises ServiceError where the rules refuse it.
        """
        with self._lock, self._replica.database.read() as connection:
            written = self._seal(connection, branch, [draft if isinstance(draft, Draft) else Draft(draft)])
            intake = self._take(branch, written, after=after)
        return written[0], intake

    def write_many(
        self,
        branch: Branch,
        plan: Callable[[Connection], Sequence[Draft]],
        after: Callable[[Connection, Sequence[Written]], None],
    ) -> tuple[list[Written], Intake]:
        """Write the commits that `plan` makes of the store as it stands; `after` runs in their transaction."""
        with self._lock, self._replica.database.read() as connection:
            written = self._seal(connection, branch, plan(connection))
            if not written:
                return [], Intake()
            intake = self._take(branch, written, after=lambda transaction: after(transaction, written))
        return written, intake

    def seal_write_secret(self, repo: Repo, user: bytes) -> bytes:
        """The repo's write secret for another user. Raises ServiceError where this node has none."""
        if repo.write_secret is None:
            raise ServiceError("not_permitted", "this node may read the repo and not write to it")
        nonce = secrets.token_bytes(sealing.NONCE_SIZE)
        return sealing.seal_secret(self._secret, user, repo.repo_id, repo.write_secret, nonce)

    def open_write_secret(self, repo: Repo, author: bytes, sealed: bytes) -> bytes:
        """The write secret that a member sealed for this user. Raises NotForUs."""
        return sealing.open_secret(self._secret, author, repo.repo_id, sealed)

    def create_repo(self, name: str) -> tuple[Repo, Intake]:
        """Create a repo with this user as its owner; its root branch has one commit, the init."""
        repo_seed, read_secret, write_secret = (secrets.token_bytes(32) for _ in range(3))
        repo_id = signing.public_key(repo_seed)
        owners = (self.user,)
        body = RepoInit(name, owners, certify_repo(repo_seed, name, owners))
        # The init's own id is not known before it is sealed.
        facts = BranchFacts(repo_id, NO_EPOCH, repo_id, NO_EPOCH)
        branch = _new_branch(facts, read_secret, write_secret)
        with self._lock:
            init = self._seal_one(branch, Draft(body), _Place(NO_EPOCH, sequence=1))
            repo = Repo(0, repo_id, name, init.commit_id, init.key, read_secret, write_secret, None)
            intake = accept_batch(
                self._replica,
                None,
                open_batch(branch, ()),
                self._clock_ms(),
                before=lambda connection: _store_repo(self._replica, connection, repo),
                followups=[(branch.topic, init.encoded)],
            )
        return next(repo for repo in self._replica.repos.values() if repo.repo_id == repo_id), intake

    def create_branch(self, repo: Repo, name: str) -> tuple[Branch, Intake]:
        """Add a branch: its root commit, and the root branch's commit that pins it, in one transaction.

        Raises ServiceError where the rules refuse it.
        """
        if repo.write_secret is None:
            raise ServiceError("not_permitted", "only an owner adds branches to this repo")
        root = self._replica.root_branch(repo)
        with self._lock, self._replica.database.read() as connection:
            seen = tuple(commit_id for commit_id, _ in load_heads(connection, root.num, ACK_COUNT_MAX))
            # The branch's id is that of its first commit, so that nobody can pin another.
            unnamed = _new_branch(
                BranchFacts(repo.repo_id, repo.init_id, NO_BRANCH, NO_EPOCH),
                repo.read_secret,
                repo.write_secret,
            )
            sealed = self._seal_commit(
                unnamed, Draft(BranchRoot()), _Place(repo.init_id, sequence=1, seen=seen)
            )
            branch_id = sealed.commit.commit_id
            facts = BranchFacts(repo.repo_id, repo.init_id, branch_id, branch_id)
            branch = _new_branch(facts, repo.read_secret, repo.write_secret)
            first = _publish(branch, sealed)
            body = BranchAdd(branch_id, name, 0, branch.topic, Reference(branch_id, first.key))
            pin = self._seal(connection, root, [Draft(body)])
            intake = self._take(root, pin, followups=[(branch.topic, first.encoded)])
        return self._replica.by_topic[branch.topic], intake

    def _take(
        self,
        branch: Branch,
        written: Sequence[Written],
        *,
        after: InTransaction | None = None,
        followups: Sequence[tuple[bytes, bytes]] = (),
    ) -> Intake:
        batch = open_batch(branch, [item.encoded for item in written])
        if batch.dropped or batch.rejected:
            reasons = [*batch.dropped, *(item.code for item in batch.rejected)]
            raise ServiceError("bad_request", f"the commit is not a legal one: {', '.join(reasons)}")
        try:
            return accept_batch(
                self._replica,
                branch,
                batch,
                self._clock_ms(),
                after=after,
                followups=followups,
                is_own=True,
            )
        except OwnCommitRejected as error:
            # Somebody, perhaps a second click, was faster.
            code = "already_exists" if error.verdict.code in _DONE_ALREADY else "not_permitted"
            raise ServiceError(code, f"the rules refuse it: {error}") from None

    def _seal(self, connection: Connection, branch: Branch, drafts: Sequence[Draft]) -> list[Written]:
        """Seal drafts in order as the next commits of the user's feed."""
        tip = load_feed_tip(connection, branch.num, self.user)
        sequence = tip.sequence if tip else 0
        previous = tip.commit_id if tip else None
        wanted = [lipmaa(number) for number in range(sequence + 1, sequence + 1 + len(drafts))]
        feed = load_feed_ids(
            connection, branch.num, self.user, [number for number in wanted if 0 < number <= sequence]
        )
        heads = tuple(commit_id for commit_id, _ in load_heads(connection, branch.num, ACK_COUNT_MAX))
        named = {ack for draft in drafts for ack in (heads if draft.acks is None else draft.acks)}
        named.update(dep for draft in drafts for dep in draft.deps)
        keys = load_commit_keys(connection, sorted(raw for raw in named if isinstance(raw, bytes)))
        seen: tuple[bytes, ...] = ()
        if not branch.facts.is_root_branch:
            root = self._replica.root_branch(self._replica.repos[branch.repo_num])
            seen = tuple(commit_id for commit_id, _ in load_heads(connection, root.num, ACK_COUNT_MAX))
        written: list[Written] = []
        for draft in drafts:
            acks = heads
            if draft.acks is not None:
                acks = tuple(written[ack].commit_id if isinstance(ack, int) else ack for ack in draft.acks)
            sequence += 1
            skip = lipmaa(sequence)
            place = _Place(
                branch.facts.init_id,
                sequence,
                previous,
                feed[skip] if skip != sequence - 1 else None,
                seen,
                acks,
                HeaderKeys(
                    tuple(keys[ack] for ack in acks),
                    tuple(keys[dep] for dep in draft.deps),
                    tuple(file.key for file in draft.files),
                ),
            )
            item = self._seal_one(branch, draft, place)
            previous = feed[sequence] = item.commit_id
            keys[item.commit_id] = item.key
            heads = (item.commit_id,)
            written.append(item)
        return written

    def _seal_one(self, branch: Branch, draft: Draft, place: "_Place") -> Written:
        return _publish(branch, self._seal_commit(branch, draft, place))

    def _seal_commit(self, branch: Branch, draft: Draft, place: "_Place") -> _Sealed:
        try:
            reference, body_blocks = build_object(encode_body(draft.body), branch.convergence_secret)
            group = TanglePlace(GROUP, branch.facts.init_id, place.seen)
            content = Content(
                self.user,
                branch.branch_id,
                place.epoch,
                place.sequence,
                place.previous,
                () if branch.facts.is_root_branch else (group,),
                self._clock_ms() if draft.timestamp is None else draft.timestamp,
                b"",
                reference,
                place.keys,
            )
            files = tuple(file.object_id for file in draft.files)
            links = Links(deps=draft.deps, files=files, nfiles=draft.removed_files, lipmaa=place.skip)
            commit, block = seal_commit(place.acks, links, content, self._secret, branch.convergence_secret)
        except DecodeError as error:
            raise ServiceError("bad_request", f"this cannot be a commit: {error}") from None
        return _Sealed(commit, (block, *body_blocks))


def _publish(branch: Branch, sealed: _Sealed) -> Written:
    """A sealed commit as it travels in its branch."""
    if branch.topic_seed is None:
        raise ServiceError("not_permitted", "this node may read the branch and not write to it")
    try:
        publication = seal_publication(
            branch.topic_seed,
            branch.read_key,
            sealed.commit.key,
            sealed.blocks,
            secrets.token_bytes(NONCE_SIZE),
        )
        encoded = encode_publication(
            publication.topic,
            publication.sealed_key,
            tuple(item.encoded for item in publication.blocks),
            publication.signature,
        )
    except DecodeError as error:
        raise ServiceError("bad_request", f"this cannot be a commit: {error}") from None
    return Written(sealed.commit.commit_id, sealed.commit.key, encoded)


def _new_branch(facts: BranchFacts, read_secret: bytes, write_secret: bytes) -> Branch:
    seed = topic_seed(facts.repo_id, read_secret, write_secret, facts.branch_id, 0)
    assert seed is not None, "the write secret is there"
    return Branch(
        num=0,
        repo_num=0,
        name="",
        generation=0,
        topic=signing.public_key(seed),
        commit_count=0,
        void_count=0,
        is_archived=False,
        facts=facts,
        convergence_secret=convergence_secret(read_secret),
        read_key=branch_read_key(branch_secret(read_secret, facts.branch_id, 0)),
        topic_seed=seed,
    )


def _store_repo(replica: Replica, connection: Connection, repo: Repo) -> None:
    add_repo(replica.database, connection, repo)
