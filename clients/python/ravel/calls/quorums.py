"""Calls: quorums. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ravel.callers import SyncCaller
from ravel.operations import Operation

if TYPE_CHECKING:  # a command calls one or two, and imports their types
    from collections.abc import Sequence

    from ravel.types.quorums import Proposal, QuorumState
    from ravel.types.values import RootCommit

SHOW_QUORUM: Final[Operation[QuorumState]] = Operation("GET", "/repos/{repo}/quorum", "quorums.QuorumState")
SET_QUORUM: Final[Operation[RootCommit]] = Operation(
    "PUT", "/repos/{repo}/quorum", "values.RootCommit", defaults={"removals": False}
)
PROPOSE_REMOVAL: Final[Operation[Proposal]] = Operation(
    "POST", "/repos/{repo}/proposals", "quorums.Proposal", defaults={"keeps": ""}
)
PROPOSE_CHECKPOINT: Final[Operation[Proposal]] = Operation(
    "POST", "/branches/{branch}/proposals", "quorums.Proposal"
)
APPROVE_PROPOSAL: Final[Operation[Proposal]] = Operation(
    "POST", "/repos/{repo}/proposals/{proposal}/approvals", "quorums.Proposal"
)
MAKE_CHECKPOINT: Final[Operation[Proposal]] = Operation(
    "POST", "/repos/{repo}/proposals/{proposal}/checkpoint", "quorums.Proposal"
)


class QuorumsCalls(SyncCaller):
    """Methods that wait for the answer."""

    def show_quorum(self, repo: str) -> QuorumState:
        """Show the quorums in force and the latest proposals."""
        return self._call(SHOW_QUORUM, {"repo": repo})

    def set_quorum(
        self, repo: str, signers: Sequence[str], threshold: int, *, removals: bool = False
    ) -> RootCommit:
        """Set who must approve checkpoints and, optionally, removals."""
        return self._call(
            SET_QUORUM, {"repo": repo, "signers": signers, "threshold": threshold, "removals": removals}
        )

    def propose_removal(self, repo: str, user: str, *, keeps: str = "") -> Proposal:
        """Ask the signers to exclude a member, or to lower a member's permission."""
        return self._call(PROPOSE_REMOVAL, {"repo": repo, "user": user, "keeps": keeps})

    def propose_checkpoint(self, branch: str) -> Proposal:
        """Ask the signers for a checkpoint of a branch as it is now."""
        return self._call(PROPOSE_CHECKPOINT, {"branch": branch})

    def approve_proposal(self, repo: str, proposal: str) -> Proposal:
        """Sign a proposal. The last approval that a checkpoint lacks makes it."""
        return self._call(APPROVE_PROPOSAL, {"repo": repo, "proposal": proposal})

    def make_checkpoint(self, repo: str, proposal: str) -> Proposal:
        """Make a checkpoint that enough signers have approved."""
        return self._call(MAKE_CHECKPOINT, {"repo": repo, "proposal": proposal})
