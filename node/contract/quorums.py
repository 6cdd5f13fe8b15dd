"""Quorums: who must approve checkpoints and removals, and what was proposed."""

from typing import Annotated, Final

from msgspec import Meta

from node.contract.access import ADMIN_BRANCH, ADMIN_REPO, READ_REPO
from node.contract.endpoint import WRITE_ERRORS, Endpoint
from node.contract.values import Request, UserText
from protocol.limits.formats import QUORUM_SIGNER_COUNT_MAX
from ravel.types.quorums import Proposal, QuorumState
from ravel.types.values import RootCommit


class QuorumRequest(Request, frozen=True):
    """Sets a quorum."""

    signers: Annotated[list[UserText], Meta(min_length=1, max_length=QUORUM_SIGNER_COUNT_MAX)]
    threshold: Annotated[
        int, Meta(ge=1, le=QUORUM_SIGNER_COUNT_MAX, description="How many signers must approve.")
    ]
    removals: Annotated[bool, Meta(description="Removals need approval, too.")] = False


class RemovalProposalRequest(Request, frozen=True):
    """Proposes a removal."""

    user: UserText
    keeps: Annotated[
        str, Meta(max_length=16, description="A lower permission. Empty: the user is excluded.")
    ] = ""
    person: Annotated[bool, Meta(description="Also propose it for all other devices of the same person.")] = (
        True
    )


SHOW_QUORUM: Final = Endpoint(
    name="show_quorum",
    method="GET",
    path="/repos/{repo}/quorum",
    scopes=READ_REPO,
    summary="Show the quorums in force and the latest proposals.",
    answer=QuorumState,
    errors=("not_permitted",),
)
SET_QUORUM: Final = Endpoint(
    name="set_quorum",
    method="PUT",
    path="/repos/{repo}/quorum",
    scopes=ADMIN_REPO,
    summary="Set who must approve checkpoints and, optionally, removals.",
    request=QuorumRequest,
    answer=RootCommit,
    errors=WRITE_ERRORS,
)
PROPOSE_REMOVAL: Final = Endpoint(
    name="propose_removal",
    method="POST",
    path="/repos/{repo}/proposals",
    scopes=ADMIN_REPO,
    summary="Ask the signers to exclude a member, or to lower a member's permission.",
    request=RemovalProposalRequest,
    answer=Proposal,
    errors=WRITE_ERRORS,
)
PROPOSE_CHECKPOINT: Final = Endpoint(
    name="propose_checkpoint",
    method="POST",
    path="/branches/{branch}/proposals",
    scopes=ADMIN_BRANCH,
    summary="Ask the signers for a checkpoint of a branch as it is now.",
    answer=Proposal,
    errors=(*WRITE_ERRORS, "needs_quorum", "too_large"),
)
APPROVE_PROPOSAL: Final = Endpoint(
    name="approve_proposal",
    method="POST",
    path="/repos/{repo}/proposals/{proposal}/approvals",
    scopes=ADMIN_REPO,
    summary="Sign a proposal. The last approval that a checkpoint lacks makes it.",
    answer=Proposal,
    errors=(*WRITE_ERRORS, "needs_quorum"),
)
MAKE_CHECKPOINT: Final = Endpoint(
    name="make_checkpoint",
    method="POST",
    path="/repos/{repo}/proposals/{proposal}/checkpoint",
    scopes=ADMIN_REPO,
    summary="Make a checkpoint that enough signers have approved.",
    answer=Proposal,
    errors=(*WRITE_ERRORS, "needs_quorum"),
)
