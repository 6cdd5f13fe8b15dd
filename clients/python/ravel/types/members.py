"""Types of answers: members. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class MemberList(TypedDict):
    """The members of a repo."""

    members: list[MemberView]
    """Devices of one person stand together, the first device first."""


class MemberChangeList(TypedDict):
    """The latest changes of who is in a repo."""

    changes: list[MemberChangeView]
    """By time, the latest last."""


class MembershipChange(TypedDict):
    """A change of who is in a repo, or of what counts there."""

    commit: str
    repo: str
    voided: int
    """Count of commits that became void by it, or ceased to be void."""
    user: NotRequired[str]
    """User that a grant names."""


class RemovalResult(TypedDict):
    """A removal of a member."""

    commit: str
    repo: str
    voided: int
    """Count of commits that became void by it, or ceased to be void."""
    user: NotRequired[str]
    """User that a grant names."""
    epoch: str
    other_devices: list[str]
    """Users of the same person that are members still."""


class LeaveResult(TypedDict):
    """A removal, with the epoch that this node writes in now."""

    commit: str
    repo: str
    voided: int
    """Count of commits that became void by it, or ceased to be void."""
    user: NotRequired[str]
    """User that a grant names."""
    epoch: str


class InvitationList(TypedDict):
    """The invitations of a repo."""

    invitations: list[InvitationView]


class InvitationLinkView(TypedDict):
    """A new invitation."""

    invitation: str
    """The link. It is a secret until it is used or expires."""
    id: str
    """The id of its commit, by which it is listed and revoked."""
    expires_at: int
    """Unix seconds."""
    addresses: list[str]
    """Addresses (`host:port`) that the link names."""
    reach: str
    """From where the link's addresses can be dialed, at the farthest."""


class CheckpointList(TypedDict):
    """The membership checkpoints of a repo."""

    checkpoints: list[CheckpointView]
    """The latest 64, of one author 8, the newest first."""


class MemberView(TypedDict):
    """A member of a repo."""

    user: str
    permission: str
    """A permission; each includes those before."""
    person: str
    """The user by whom the person is known whose device this is."""
    name: str
    """Name of the person: this user's, else its own, as of the time of the answer. In brackets follows the
    beginning of the id, where another person looks alike. Empty: only the id is known. A name proves nothing.
    """
    stated_name: str | None
    """What the member calls itself. Null: nothing."""
    petname: str | None
    """What this user calls the member or its person. Null: nothing."""
    looks_alike: bool
    """Another person has a name that looks like this one."""
    color: int | None


class MemberChangeView(TypedDict):
    """A change of who is in a repo, that counts now."""

    commit: str
    time: int
    """Unix seconds, as the author states them."""
    kind: str
    """`joined`: by a link. `granted`: by a member. `lowered`: may do less."""
    user: str
    """The user whose membership or name has changed."""
    user_name: str
    """Name of the person: this user's, else its own, as of the time of the answer. In brackets follows the
    beginning of the id, where another person looks alike. Empty: only the id is known. A name proves nothing.
    """
    author: str
    """The user who made the change; of `joined`, `left` and `renamed`, the same one."""
    author_name: str
    """Name of the person: this user's, else its own, as of the time of the answer. In brackets follows the
    beginning of the id, where another person looks alike. Empty: only the id is known. A name proves nothing.
    """
    permission: str | None
    """The user's permission from then on. Null: the change says nothing of it."""
    earlier_name: str | None
    """Of `renamed`: what the user called itself before. It proves nothing."""


class InvitationView(TypedDict):
    """An invitation that was made."""

    invitation: str
    """The id of its commit."""
    author: str
    author_name: str
    """Name of the person: this user's, else its own, as of the time of the answer. In brackets follows the
    beginning of the id, where another person looks alike. Empty: only the id is known. A name proves nothing.
    """
    permission: str
    """A permission; each includes those before."""
    uses: int
    expires_at: int
    """Unix seconds."""
    joined: list[str]
    """Users who joined by it."""
    joined_names: list[str]
    """What they are called, in the same order."""
    revoked: bool
    renews: bool
    """Its author's node renews the repo once it is used up or revoked."""


class CheckpointView(TypedDict):
    """A membership checkpoint: an admin's signature under what follows from the root branch."""

    checkpoint: str
    """The id of its commit."""
    author: str
    author_name: str
    """Name of the person: this user's, else its own, as of the time of the answer. In brackets follows the
    beginning of the id, where another person looks alike. Empty: only the id is known. A name proves nothing.
    """
    time: int
    """Unix seconds."""
    admin: bool
    """The author is an admin now."""
    state: str
    """`false`: the same commits say something else here. `unchecked`: looked at later, or too large."""
