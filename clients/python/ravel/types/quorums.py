"""Types of answers: quorums."""

from typing import Annotated, NotRequired, TypedDict

from ravel.types.values import Count, HeldPermission, Id, PersonText, means, one_of


class QuorumView(TypedDict):
    """A quorum in force."""

    quorum: Annotated[Id, means("The id of its commit.")]
    author: Id
    author_name: PersonText
    threshold: Count
    signers: list[Id]
    signer_names: Annotated[list[PersonText], means("In the same order.")]
    removals: bool


class CouncilView(TypedDict):
    """The founders who exclude and demote any member together, founders too."""

    threshold: Count
    signers: Annotated[list[Id], means("Founders who are still owners.")]
    signer_names: Annotated[list[PersonText], means("In the same order.")]


class ProposalSubject(TypedDict):
    """Subject of a proposal."""

    kind: Annotated[str, one_of("checkpoint", "removal", description="What is proposed.")]
    user: NotRequired[Annotated[Id, means("Of a removal: the member.")]]
    user_name: NotRequired[Annotated[PersonText, means("Of a removal: what the member is called.")]]
    keeps: NotRequired[
        Annotated[HeldPermission | None, means("Of a removal: what the member keeps. Null: nothing.")]
    ]
    branch: NotRequired[Annotated[Id, means("Of a checkpoint: the branch.")]]
    commits: NotRequired[Annotated[list[Id], means("Of a checkpoint: the heads that it covers.")]]


class ProposalView(ProposalSubject):
    """A proposal and how far it has come."""

    proposal: Annotated[Id, means("The id of its commit.")]
    author: Id
    author_name: PersonText
    approved_by: list[Id]
    approved_by_names: Annotated[list[PersonText], means("In the same order.")]
    missing: Annotated[int, means("How many approvals are missing.", ge=0)]
    state: Annotated[
        str, one_of("open", "approved", "done", "void", description="How far the proposal has come.")
    ]


class QuorumState(TypedDict):
    """The quorums of a repo."""

    council: Annotated[CouncilView | None, means("Null: the repo was founded without one.")]
    quorums: Annotated[list[QuorumView], means("Quorums in force.")]
    proposals: Annotated[list[ProposalView], means("The latest 100, the newest first.")]


class Proposal(TypedDict):
    """A proposal that was made, signed or carried out."""

    proposal: Id
    repo: Id
    checkpoint: Annotated[Id | None, means("The checkpoint's commit, once it is made.")]
    devices: NotRequired[
        Annotated[list[Id], means("Other users whose removal was proposed at the same time.")]
    ]
