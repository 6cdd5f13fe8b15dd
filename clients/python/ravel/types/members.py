"""Types of answers: members."""

from typing import Annotated, NotRequired, TypedDict

from msgspec import Meta

from ravel.types.values import Count, HeldPermission, Id, LinkReach, PersonText, UnixSeconds, means, one_of


class MemberArrival(TypedDict):
    """Way by which a member came to a repo: by the oldest right that it holds now."""

    kind: Annotated[
        str,
        one_of(
            *("founded", "invited", "granted", "device_added", "recovered"),
            description="`invited`: by a link. `granted`: by a member. `device_added`: by a device of the person. "
            "`recovered`: by `friends`.",
        ),
    ]
    time: Annotated[
        int | None,
        means("Unix seconds, as the author of the change states them. Null: a founding states none."),
    ]
    author: Annotated[
        Id, means("Who founded the repo, made the link or gave the right. Of `recovered`: the lost key.")
    ]
    author_name: PersonText
    friends: Annotated[list[Id], means("Who signed. Empty unless `recovered`.")]
    friend_names: Annotated[list[PersonText], means("What they are called, in the same order.")]
    place_of: Annotated[Id | None, means("User whose place passed to this one, and who came so. Null: none.")]
    place_since: Annotated[int | None, means("When it passed, in Unix seconds. Null: it did not.")]


class MemberView(TypedDict):
    """A member of a repo."""

    user: Id
    permission: HeldPermission
    person: Annotated[
        Id,
        means(
            "User id of the person who owns this device: by its word or, if it only reads, by device grants alone."
        ),
    ]
    name: PersonText
    stated_name: Annotated[str | None, means("What the member calls itself. Null: nothing.")]
    petname: Annotated[str | None, means("What this user calls the member or its person. Null: nothing.")]
    looks_alike: Annotated[bool, means("Another person has a name that looks like this one.")]
    color: Annotated[int, Meta(ge=0, lt=16, description="The number of the member's color.")] | None
    came: Annotated[MemberArrival | None, means("How it came. Null: not known.")]


class ClaimedPlace(TypedDict):
    """A place in a repo that several users claim: the key that had it was copied."""

    user: Annotated[Id, means("User who had the place.")]
    name: PersonText
    claimants: Annotated[list[Id], means("Users who claim the place, each by a move that the key signed.")]
    claimant_names: Annotated[list[PersonText], means("What they are called, in the same order.")]


class MemberList(TypedDict):
    """The members of a repo."""

    members: Annotated[
        list[MemberView], means("Devices of one person stand together, the first device first.")
    ]
    claims: Annotated[
        list[ClaimedPlace], means("Places that several users claim. Nobody is shown to have one.")
    ]


class CheckpointView(TypedDict):
    """A membership checkpoint: an admin's signature under what follows from the root branch."""

    checkpoint: Annotated[Id, means("The id of its commit.")]
    author: Id
    author_name: PersonText
    time: UnixSeconds
    admin: Annotated[bool, means("The author is an admin now.")]
    state: Annotated[
        str,
        one_of(
            "true", "false", "unchecked",
            description="`false`: the same commits say something else here. `unchecked`: looked at later, or too large."
        )
    ]  # fmt: skip


class CheckpointList(TypedDict):
    """The membership checkpoints of a repo."""

    checkpoints: Annotated[list[CheckpointView], means("The latest 64, of one author 8, the newest first.")]


class MembershipChange(TypedDict):
    """A change of who is in a repo, or of what counts there."""

    commit: Id
    repo: Id
    voided: Annotated[int, means("Count of commits that became void by it, or ceased to be void.")]
    user: NotRequired[Annotated[Id, means("User that a grant names.")]]


class LeaveResult(MembershipChange):
    """A removal, with the epoch that this node writes in now."""

    epoch: Id
    devices: Annotated[
        list[Id],
        means("Other users that were removed with it: devices, and who holds by their device grants."),
    ]
    other_devices: Annotated[list[Id], means("Users of the same person that are members still.")]


class RemovalResult(LeaveResult):
    """A removal of a member."""


class InvitationLinkView(TypedDict):
    """A new invitation."""

    invitation: Annotated[str, means("The link. It is a secret until it is used or expires.")]
    id: Annotated[Id, means("The id of its commit, by which it is listed and revoked.")]
    expires_at: UnixSeconds
    addresses: Annotated[list[str], means("Addresses (`host:port`) that the link names.")]
    reach: LinkReach


class InvitationView(TypedDict):
    """An invitation that was made."""

    invitation: Annotated[Id, means("The id of its commit.")]
    author: Id
    author_name: PersonText
    permission: HeldPermission
    uses: Count
    expires_at: UnixSeconds
    joined: Annotated[list[Id], means("Users who joined by it.")]
    joined_names: Annotated[list[PersonText], means("What they are called, in the same order.")]
    revoked: bool
    renews: Annotated[bool, means("Its author's node renews the repo once it is used up or revoked.")]


class MemberChangeView(TypedDict):
    """A change of who is in a repo, that counts now."""

    commit: Id
    time: Annotated[int, means("Unix seconds, as the author states them.")]
    kind: Annotated[
        str,
        one_of(
            *(
                "joined",
                "granted",
                "lowered",
                "excluded",
                "left",
                "renamed",
                "device_added",
                "device_removed",
                "moved",
                "recovered",
                "friends_named",
            ),
            description="`joined`: by a link. `granted`: by a member. `lowered`: may do less. "
            "`device_added`: its author gave what it holds to a device of its own. "
            "`moved`: its author's place passed to a device, and it left. "
            "`recovered`: friends let a device of its author in. "
            "`friends_named`: its author named recovery friends, or none.",
        ),
    ]
    user: Annotated[Id, means("The user whose membership or name has changed.")]
    user_name: PersonText
    device_name: Annotated[
        str | None,
        means(
            "Of `device_added`, `device_removed`, `moved`: what the device calls itself; empty: nothing. It proves nothing."
        ),
    ]
    author: Annotated[
        Id, means("The user who made the change; of `joined`, `left` and `renamed`, the same one.")
    ]
    author_name: PersonText
    permission: Annotated[
        HeldPermission | None,
        means("The user's permission from then on. Null: the change says nothing of it."),
    ]
    earlier_name: Annotated[
        str | None, means("Of `renamed`: what the user called itself before. It proves nothing.")
    ]
    friends: Annotated[
        list[Id], means("Of `recovered`: who signed. Of `friends_named`: who are named. Else empty.")
    ]
    friend_names: Annotated[list[PersonText], means("What they are called, in the same order.")]


class MemberChangeList(TypedDict):
    """The latest changes of who is in a repo."""

    changes: Annotated[list[MemberChangeView], means("By time, the latest last.")]


class InvitationList(TypedDict):
    """The invitations of a repo."""

    invitations: list[InvitationView]
