"""Facts and lookups that the rules need about commits; callers such as node.ingest implement the lookups."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from protocol.codec import Value
from protocol.ids import BranchId, CommitId, EpochId, RepoId, UserId, root_branch
from verifier.ancestry import AckWalks, GraphNode


class CommitFacts(Value, frozen=True):
    """What the rules need to know of an accepted commit."""

    branch_id: BranchId
    author: UserId
    feed_sequence: int
    rank: int
    acks: tuple[CommitId, ...]


class CommitLookup(Protocol):
    """Accepted and rejected commits of one node, as they stand now."""

    @property
    def walks(self) -> AckWalks:
        """What earlier looks for implied acks have walked."""
        ...

    def accepted(self, commit_id: CommitId) -> CommitFacts | None:
        """Facts of an accepted commit, or None."""
        ...

    def ancestors(self, ids: Iterable[CommitId]) -> Mapping[CommitId, GraphNode]:
        """Places of commits that accepted ones ack, which are thus accepted too."""
        ...

    def is_acked(self, commit_id: CommitId) -> bool:
        """Whether any accepted commit acks this accepted one."""
        ...

    def is_rejected(self, commit_id: CommitId) -> bool:
        """Whether the commit was rejected here (which is for good)."""
        ...


@dataclass(frozen=True, slots=True)
class BranchFacts:
    """What pins a branch on a topic: its repo, the one commit that may stand at its root, and the topic's epoch."""

    repo_id: RepoId
    init_id: CommitId  # the root branch's first commit
    branch_id: BranchId
    root_id: CommitId
    epoch_id: EpochId
    has_members: bool = True  # whether the root branch is followed too, so that rights can be judged
    is_root_branch: bool = field(init=False)
    """Whether this is the repo's root branch, which holds the membership. Judging asks this ten times a commit."""

    def __post_init__(self) -> None:
        """Compare the ids once."""
        object.__setattr__(self, "is_root_branch", self.branch_id == root_branch(self.repo_id))
