"""Types of answers: quorums. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class QuorumState(TypedDict):
    """The quorums of a repo."""

    quorums: list[QuorumView]
    """Quorums in force."""
    proposals: list[ProposalView]
    """The latest 100, the newest first."""


class Proposal(TypedDict):
    """A proposal that was made, signed or carried out."""

    proposal: str
    repo: str
    checkpoint: str | None
    """The checkpoint's commit, once it is made."""


class QuorumView(TypedDict):
    """A quorum in force."""

    quorum: str
    """The id of its commit."""
    author: str
    author_name: str
    """Name of the person: this user's, else its own, as of the time of the answer. In brackets follows the
    beginning of the id, where another person looks alike. Empty: only the id is known. A name proves nothing.
    """
    threshold: int
    signers: list[str]
    signer_names: list[str]
    """In the same order."""
    removals: bool


class ProposalView(TypedDict):
    """A proposal and how far it has come."""

    kind: str
    """What is proposed."""
    user: NotRequired[str]
    """Of a removal: the member."""
    user_name: NotRequired[str]
    """Of a removal: what the member is called."""
    keeps: NotRequired[str | None]
    """Of a removal: what the member keeps. Null: nothing."""
    branch: NotRequired[str]
    """Of a checkpoint: the branch."""
    commits: NotRequired[list[str]]
    """Of a checkpoint: the heads that it covers."""
    proposal: str
    """The id of its commit."""
    author: str
    author_name: str
    """Name of the person: this user's, else its own, as of the time of the answer. In brackets follows the
    beginning of the id, where another person looks alike. Empty: only the id is known. A name proves nothing.
    """
    approved_by: list[str]
    approved_by_names: list[str]
    """In the same order."""
    missing: int
    """How many approvals are missing."""
    state: str
    """How far the proposal has come."""
