"""Makes what no Ravel would: commits of a member, or a former one, with any field as it likes, on any topic.

`Forge` belongs to one adversary, whose own node shows it what there is. What it makes is kept with its audience, and given
to whom the adversary meets.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from node.authoring.drafting import Target, aim
from node.ingest.publication_reading import branch_mark_in
from protocol.crypto import signing
from protocol.crypto.keys import InvitationSeed, SigningKey, TopicSeed
from protocol.formats.block import Block, Reference
from protocol.formats.body import Body, encode_body
from protocol.formats.commit import (
    NO_BRANCH,
    NO_EPOCH,
    NO_MARK,
    Content,
    Links,
    TanglePlace,
    create_commit,
    lipmaa,
)
from protocol.formats.declared_kind import declare_kind
from protocol.formats.object import build_object
from protocol.formats.publication import create_publication
from protocol.ids import BranchId, BranchMark, CommitId, EpochId, TopicKey, UserId, root_branch
from storage.commits.commits import TimelineRow, iterate_arrivals
from storage.repos.epochs import Epoch
from storage.repos.repos import Branch
from tests.promise.people import Person
from tests.promise.world import Leak, World
from verifier.facts import BranchFacts
from verifier.tangle_kinds import GROUP

NOW_MS: Final = 1_700_000_000_000


@dataclass(frozen=True, slots=True)
class Known:
    """A commit as an adversary knows it: one of its node's, or one that it forged."""

    commit_id: CommitId
    rank: int
    branch_id: BranchId
    acks: tuple[CommitId, ...] = ()


@dataclass(slots=True)
class Forged:
    """A publication to be given away."""

    topic: TopicKey
    encoded: bytes
    audience: str | None
    """Who alone is given it; None: everybody."""


@dataclass(slots=True, eq=False)
class Signer:
    """A key that an adversary signs with, and the feed that it has forged with it."""

    user: UserId
    secret: SigningKey
    sequence: int = 0
    last: CommitId | None = None


class Forge:
    """What one adversary knows and has made."""

    def __init__(self, world: World, person: Person) -> None:
        self.world, self.person = world, person
        self.own = Signer(person.user, signing.key_pair(person.user_seed)[1])
        self.puppets: list[Signer] = []
        """Users that it made up."""
        self.made: list[Known] = []
        self.epochs = world.forged_epochs.setdefault(person.name, [])
        self.given: list[Forged] = []
        self.rng = Random(0)

    # --- what it knows ---

    @property
    def user(self) -> UserId:
        """Whom it signs for."""
        return self.person.user

    def branches(self) -> list[Branch]:
        """Return the branches that are no root branch."""
        return self.person.content_branches()

    @property
    def root_facts(self) -> BranchFacts:
        """Facts of the root branch."""
        return self.person.replica.root_branch(self.person.repo()).facts

    def held(self) -> list[Epoch]:
        """Return the epochs of which it has a key, its own forged ones last."""
        return [*self.person.replica.tables.epochs.values(), *self.epochs]

    def some_epoch(self) -> Epoch:
        """Choose an epoch: often the one that its node writes in."""
        if self.rng.random() < 0.5:
            return self.person.epoch()
        return self.rng.choice(self.held())

    def commits_of(self, branch_id: BranchId) -> list[Known]:
        """Return the commits of a branch that it knows."""
        person = self.person
        nums = [one.num for one in person.replica.branches.values() if one.branch_id == branch_id]
        rows: list[TimelineRow] = []
        if nums:
            with person.replica.database.read() as connection:
                rows = list(iterate_arrivals(connection, nums))
        known = [Known(row.commit_id, row.rank, branch_id, row.acks) for row in rows]
        return [*known, *(one for one in self.made if one.branch_id == branch_id)]

    def heads_of(self, branch: Branch) -> list[Known]:
        """Return the heads of a branch at its node."""
        heads = self.person.heads(branch)
        return [one for one in self.commits_of(branch.branch_id) if one.commit_id in heads]

    def roots(self) -> list[Known]:
        """Return the commits of the root branch that it knows."""
        return self.commits_of(root_branch(self.root_facts.repo_id))

    def some_roots(self) -> list[Known]:
        """Choose root branch commits to follow: the heads, or others, one of them older."""
        rng, root = self.rng, self.person.replica.root_branch(self.person.repo())
        draw = rng.random()
        if draw < 0.5:
            return self.heads_of(root)
        if draw < 0.8:
            return [rng.choice(self.roots())]
        return rng.sample(self.roots(), min(len(self.roots()), rng.randint(1, 3)))

    # --- making ---

    def make_puppet(self) -> Signer:
        """Make a user up."""
        user, secret = signing.key_pair(InvitationSeed(self.rng.randbytes(32)))
        self.puppets.append(Signer(UserId(user), secret))
        return self.puppets[-1]

    def target(self, branch_id: BranchId, epoch: Epoch) -> Target:
        """Return where commits of a branch are published in an epoch."""
        repo = self.person.repo()
        facts = BranchFacts(repo.repo_id, repo.init_id, branch_id, NO_EPOCH)
        return aim(facts, 0, epoch)

    def write(
        self,
        why: str,
        branch_id: BranchId,
        epoch: Epoch,
        body: Body | bytes,
        acks: Sequence[Known],
        *,
        seen: Sequence[CommitId] | None = None,
        rank: int | None = None,
        mark: BranchMark | None = None,
        metadata: bytes | None = None,
        further: Sequence[Block] = (),
        tangles: tuple[TanglePlace, ...] | None = None,
        on: Sequence[tuple[TopicSeed, Epoch]] | None = None,
        links: Links | None = None,
        gives: Sequence[EpochId] = (),
        says: dict[str, object] | None = None,
        by: Signer | None = None,
    ) -> CommitId:
        """Forge a commit, right but for what is said, and keep its publications.

        `on` are topics by their seeds, each with the epoch under whose key the commit's is hidden. `gives` are epochs whose
        keys it gives; `by` signs, in place of the adversary. Raises DecodeError where nobody could even encode it.
        """
        is_root = branch_id == root_branch(self.root_facts.repo_id)
        target = self.target(branch_id, epoch)
        encoded = body if isinstance(body, bytes) else encode_body(body)
        reference, blocks = build_object(encoded, epoch.convergence_secret)
        heads = tuple(
            one.commit_id for one in self.heads_of(self.person.replica.root_branch(self.person.repo()))
        )
        group = TanglePlace(
            GROUP, self.root_facts.init_id, tuple(dict.fromkeys(heads if seen is None else seen))
        )
        by = by or self.own
        sequence, previous = by.sequence + 1, by.last
        if lipmaa(sequence) != sequence - 1 and links is None:
            links = Links(lipmaa=self.root_facts.init_id)
        declared = b"" if is_root or isinstance(body, bytes) else declare_kind(body)
        fields: dict[str, object] = {
            "author": by.user,
            "branch": branch_id,
            "epoch": epoch.epoch_id,
            "by_writer": target.by_writer,
            "whole": True,
            "feed_sequence": sequence,
            "feed_previous": previous,
            "tangles": () if is_root else (group,),
            "timestamp": NOW_MS,
            "metadata": declared if metadata is None else metadata,
            "body": Reference(reference.object_id, reference.key),
        }
        if tangles is not None:
            fields["tangles"] = tangles
        content = Content(**(fields | (says or {})))  # type: ignore[arg-type]  # a table of overrides
        placed = 1 + max((one.rank for one in acks), default=-1) if rank is None else rank
        default_mark = NO_MARK if branch_id == NO_BRANCH else branch_mark_in(epoch.key, branch_id)
        commit, block = create_commit(
            tuple(dict.fromkeys(one.commit_id for one in acks)),
            placed,
            default_mark if mark is None else mark,
            links or Links(),
            content,
            by.secret,
            epoch.convergence_secret,
        )
        by.sequence, by.last = sequence, commit.commit_id
        self.made.append(Known(commit.commit_id, commit.rank, commit.branch_id, commit.acks))
        self.world.forged[commit.commit_id] = f"{why} by {self.person.name}"
        self.world.leaks += [Leak(commit.commit_id, one) for one in gives]
        pieces = (block, *blocks, *further)
        places = [(target.seed, epoch)] if on is None else list(on)
        audience = self._audience()
        for seed, under in places:
            made = create_publication(seed, under.keys.read_key, commit.key, pieces)
            self.keep(made.topic, made.encoded, audience)
        return commit.commit_id

    def _audience(self) -> str | None:
        others = [name for name in self.world.history.names if name not in self.world.history.hostile]
        return self.rng.choice(others) if self.rng.random() < 0.3 else None

    def keep(self, topic: TopicKey, encoded: bytes, audience: str | None = None) -> None:
        """Keep a publication to be given to whom the adversary meets."""
        self.given.append(Forged(topic, encoded, audience))
