"""Real signed commits and publications of a told history. Keys and ids follow from the history alone, in every run."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from node.authoring.author import Author
from node.authoring.drafting import Target, aim
from node.ingest.replica import Replica
from protocol.crypto.keys import InvitationSeed, UserSeed
from protocol.crypto.signing import key_pair
from protocol.formats.body import (
    Adopt,
    Body,
    FeedEnd,
    Grant,
    Invite,
    Join,
    Permission,
    Remove,
    Revoke,
    encode_body,
)
from protocol.formats.commit import Content, Links, TanglePlace, create_commit
from protocol.formats.content import Post
from protocol.formats.object import build_object
from protocol.formats.proofs import prove_invitation
from protocol.formats.publication import create_publication
from protocol.ids import EpochId, UserId
from storage.repos.epochs import Epoch
from storage.repos.repos import Branch, Repo
from tests.histories.tales import BRANCHES, FOUNDING, Tale
from tests.support.builders import NOW_MS, timeline
from tests.support.ids import as_commit_id
from tests.support.reference_histories import ROOT, Step
from verifier.tangle_kinds import GROUP


@dataclass(frozen=True)
class Founded:
    """A repo with two branches, and a store that has it; its secrets are the same in every run."""

    folder: Path
    repo: Repo
    branches: Mapping[str, Branch]
    epoch: Epoch
    ids: tuple[bytes, ...]
    ranks: tuple[int, ...]

    def target(self, branch: str) -> Target:
        """Where members publish in a branch: all of them may write, or say so."""
        found = self.branches[branch]
        return aim(found.facts, found.num, self.epoch)


def found(folder: Path) -> Founded:
    """Found the repo of all histories."""
    folder.mkdir(parents=True)
    replica = Replica(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("secrets.token_bytes", Random(0).randbytes)
        author = Author(replica, seed_of("ann"), lambda: NOW_MS)
        repo = author.founding.create_repo("histories")[0]
        branches = {name: author.founding.create_branch(repo, name)[0] for name in BRANCHES}
    branches[ROOT] = replica.root_branch(repo)
    main, side = (branches[name].facts.root_id for name in BRANCHES)
    init, added_main, added_side = timeline(replica, branches[ROOT])
    epoch = replica.writing_epoch(repo)
    replica.close()
    return Founded(folder, repo, branches, epoch, (init, added_main, main, added_side, side), (0, 1, 0, 2, 0))


@dataclass(frozen=True)
class RealCommits:
    """Ids of all commits of a history, and publications of those that are not the founding's."""

    ids: dict[int, bytes]
    items: dict[int, bytes]


def make_commits(founded: Founded, tale: Tale, stated: Mapping[int, int] | None = None) -> RealCommits:
    """Make real commits of the steps. `stated` are ranks that some state falsely."""
    commits, ranks = RealCommits(dict(enumerate(founded.ids)), {}), dict(enumerate(founded.ranks))
    for step in tale.steps[len(FOUNDING) :]:
        ranks[step.number] = 1 + max((ranks[one] for one in step.acks), default=-1)
        ranks.update({step.number: stated[step.number]} if stated and step.number in stated else {})
        made = _make_commit(founded, step, commits.ids, ranks[step.number])
        commits.ids[step.number], commits.items[step.number] = made
    return commits


def _make_commit(founded: Founded, step: Step, ids: Mapping[int, bytes], rank: int) -> tuple[bytes, bytes]:
    target = founded.target(step.branch)
    reference, blocks = build_object(encode_body(_body(founded, step, ids)), target.convergence_secret)
    places: tuple[TanglePlace, ...] = ()
    if step.branch != ROOT:
        places = (
            TanglePlace(GROUP, founded.repo.init_id, tuple(as_commit_id(ids[one]) for one in step.seen)),
        )
    content = Content(
        author=user_of(step.author),
        branch=target.facts.branch_id,
        epoch=EpochId(founded.repo.init_id),
        by_writer=target.by_writer,
        whole=True,
        feed_sequence=step.sequence,
        feed_previous=None if step.previous is None else as_commit_id(ids[step.previous]),
        tangles=places,
        timestamp=NOW_MS + step.number,  # two commits that say the same are two
        metadata=b"",
        body=reference,
    )
    secret = key_pair(seed_of(step.signer or step.author))[1]
    links = Links(lipmaa=None if step.skip is None else as_commit_id(ids[step.skip]))
    acks = tuple(as_commit_id(ids[one]) for one in step.acks)
    commit, block = create_commit(acks, rank, target.mark, links, content, secret, target.convergence_secret)
    publication = create_publication(target.seed, target.epoch.keys.read_key, commit.key, (block, *blocks))
    return commit.commit_id, publication.encoded


def _body(founded: Founded, step: Step, ids: Mapping[int, bytes]) -> Body:
    match step.kind:
        case "grant":
            return Grant(user_of(step.user), Permission(step.level))
        case "remove":
            keeps = Permission(step.level) if step.level else None
            ends = (
                FeedEnd(
                    founded.branches[end.branch].branch_id,
                    end.sequence,
                    as_commit_id(ids.get(end.number, bytes(32))),
                )
                for end in step.ends
            )
            return Remove(user_of(step.user), keeps, tuple(ends))
        case "invite":
            expires_at = NOW_MS - 1 if step.is_late else 2 * NOW_MS
            return Invite(
                key_pair(_invitation_seed(step.number))[0], Permission(step.level), step.uses, expires_at
            )
        case "join":
            proof = prove_invitation(_invitation_seed(step.target), founded.repo.repo_id, user_of(step.user))
            return Join(as_commit_id(ids[step.target]), proof)
        case "revoke":
            return Revoke(as_commit_id(ids[step.target]))
        case "adopt":
            return Adopt(
                founded.branches[step.adopted_in].branch_id,
                tuple(as_commit_id(ids.get(one, bytes(32))) for one in step.adopted),
            )
        case "post":
            return Post(f"post {step.number}")
    raise AssertionError(step.kind)


def user_of(name: str) -> UserId:
    """A member's key."""
    return key_pair(seed_of(name))[0]


def seed_of(name: str) -> UserSeed:
    """A member's seed."""
    return UserSeed(name.encode().ljust(32))


def _invitation_seed(number: int) -> InvitationSeed:
    return InvitationSeed(f"invitation {number}".encode().ljust(32))
