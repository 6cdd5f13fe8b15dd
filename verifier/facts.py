"""Facts and lookups that the rules need about commits; callers such as node.ingest implement the lookups."""

from dataclasses import dataclass, field
from typing import Protocol

from protocol.codec import Value
from protocol.crypto.keys import EpochKey
from protocol.ids import BranchId, CommitId, EpochId, Mark, RepoId, UserId, root_branch


class CommitFacts(Value, frozen=True):
    """Facts of an accepted commit that the rules look at."""

    branch_id: BranchId
    author: UserId
    rank: int
    acks: tuple[CommitId, ...]
    seen: tuple[CommitId, ...]
    """Root branch commits that its place in the group tangle names; none in the root branch."""


class CommitLookup(Protocol):
    """Accepted and rejected commits of one node, and the epoch keys that it holds, as they stand now."""

    def accepted(self, commit_id: CommitId) -> CommitFacts | None:
        """Return the facts of an accepted commit, or None."""
        ...

    def is_rejected(self, commit_id: CommitId) -> bool:
        """Return True if the commit was rejected here (which is for good)."""
        ...

    def epoch_key(self, epoch: EpochId, mark: Mark) -> EpochKey | None:
        """Return the key of an epoch that gives this mark, if it is held here."""
        ...


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """Facts of a topic: the epochs whose own topic it is, and those whose writers' topic.

    A link topic carries one branch alone, whichever topic of the epoch a commit says.
    """

    epochs: frozenset[EpochId]
    writers_of: frozenset[EpochId] = frozenset()
    branch_id: BranchId | None = None


@dataclass(frozen=True, slots=True)
class BranchFacts:
    """Facts of a branch: its repo, and the one commit that may stand at its root."""

    repo_id: RepoId
    init_id: CommitId  # the root branch's first commit
    branch_id: BranchId
    root_id: CommitId
    has_members: bool = True  # whether the root branch is followed too, so that rights can be judged
    is_root_branch: bool = field(init=False)
    """True for the repo's root branch, which holds the membership. Judging asks this ten times a commit."""

    def __post_init__(self) -> None:
        """Compare the ids once."""
        object.__setattr__(self, "is_root_branch", self.branch_id == root_branch(self.repo_id))
