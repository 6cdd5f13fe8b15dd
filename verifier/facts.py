"""Facts and lookups that the rules need about commits; callers such as node.ingest implement the lookups."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from protocol.codec import Value
from verifier.ancestry import AckWalks, GraphNode


class CommitFacts(Value, frozen=True):
    """What the rules need to know of an accepted commit."""

    branch_id: bytes
    author: bytes
    feed_sequence: int
    rank: int
    acks: tuple[bytes, ...]


class CommitLookup(Protocol):
    """Accepted and rejected commits of one node, as they stand now."""

    @property
    def walks(self) -> AckWalks:
        """What earlier looks for implied acks have walked."""
        ...

    def accepted(self, commit_id: bytes) -> CommitFacts | None:
        """Facts of an accepted commit, or None."""
        ...

    def ancestors(self, ids: Iterable[bytes]) -> Mapping[bytes, GraphNode]:
        """Places of commits that accepted ones ack, which are thus accepted too."""
        ...

    def is_acked(self, commit_id: bytes) -> bool:
        """Whether any accepted commit acks this accepted one."""
        ...

    def is_rejected(self, commit_id: bytes) -> bool:
        """Whether the commit was rejected here (which is for good)."""
        ...


@dataclass(frozen=True, slots=True)
class BranchFacts:
    """What pins a branch on a topic: its repo, the one commit that may stand at its root, and the topic's epoch."""

    repo_id: bytes
    init_id: bytes  # the root branch's first commit
    branch_id: bytes
    root_id: bytes
    epoch_id: bytes
    has_members: bool = True  # whether the root branch is followed too, so that rights can be judged

    @property
    def is_root_branch(self) -> bool:
        """Whether this is the repo's root branch, which holds the membership."""
        return self.branch_id == self.repo_id
