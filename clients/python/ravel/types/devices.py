"""Types of answers: devices."""

from typing import Annotated, TypedDict

from ravel.types.values import HeldPermission, Id, LinkReach, PersonText, UnixSeconds, means

Advice = Annotated[str, means("Action that a person must take. Empty: none.")]


class DeviceRepo(TypedDict):
    """State of a device in a repo of the first device."""

    repo: Id
    name: str
    permission: Annotated[HeldPermission | None, means("What the device holds. Null: nothing.")]
    shown: Annotated[bool, means("Members see that the device is of the same person.")]
    lacking: Annotated[
        bool, means("The device holds less than the first one. `sync_devices` there gives it.")
    ]


class DeviceView(TypedDict):
    """A device of a person."""

    user: Id
    name: Annotated[str, means("What the device calls itself, or this user calls it. Empty: nothing.")]
    first: Annotated[bool, means("The device that hands repos on to the others.")]
    this: Annotated[bool, means("The device that answers.")]
    repos: list[DeviceRepo]


class StayedDevice(TypedDict):
    """A removed device that is still a member of a repo."""

    device: Id
    called: Annotated[str, means("What the device called itself, or this user calls it. Empty: nothing.")]
    repo: Id
    name: str
    permission: HeldPermission
    advice: Advice


class LetInDevice(TypedDict):
    """A key that friends let in, in one repo, as a device of this person."""

    device: Id
    this: Annotated[bool, means("It is this user.")]
    repo: Id
    name: str
    friends: Annotated[list[Id], means("Who signed.")]
    friend_names: Annotated[list[PersonText], means("What they are called, in the same order.")]
    time: Annotated[int, means("Unix seconds, as who published it states them.")]
    grant: Annotated[
        str,
        means(
            "Command that gives the key a place of its own. Empty: the key has one, or nobody can give it."
        ),
    ]
    grantors: Annotated[
        list[PersonText], means("What the members are called who can run it. None: the key's own user can.")
    ]


class DeviceList(TypedDict):
    """The devices of this user's person."""

    person: Id
    repo: Annotated[Id | None, means("The repo in which devices find each other. Null: none.")]
    joining: Annotated[bool, means("No peer of the link has answered yet.")]
    devices: list[DeviceView]
    stayed: list[StayedDevice]
    let_in: Annotated[list[LetInDevice], means("Keys that friends let in and that are members now.")]
    removed_by: Annotated[
        Id | None,
        means("First device of the person, which removed this user. Null: it did not."),
    ]
    removed_by_name: PersonText
    moved_to: Annotated[
        Id | None, means("Device to which the place of this user passed. Null: it has its place.")
    ]
    moved_to_name: PersonText


class DeviceLinkView(TypedDict):
    """A link for a new device."""

    link: Annotated[str, means("A secret. The first user who uses it gets all repos.")]
    person: Id
    repo: Id
    id: Annotated[Id, means("The id of the invitation in it, by which it is listed and revoked.")]
    expires_at: UnixSeconds
    addresses: Annotated[list[str], means("Addresses (`host:port`) that the link names.")]
    reach: LinkReach


class GivenRepo(TypedDict):
    """A repo that was handed on, or could not be."""

    device: Id
    repo: Id
    name: str
    advice: Advice


class DeviceSync(TypedDict):
    """Repos that were handed on to other devices."""

    given: list[GivenRepo]


class LeftRepo(TypedDict):
    """Steps that were done in one repo to remove a device."""

    repo: Id
    name: str
    taken_back: Annotated[bool, means("The statement that both are one person was taken back.")]
    excluded: Annotated[bool, means("The device is no member any more.")]
    renewed: Annotated[
        bool, means("New secrets keep the device out. False: the next member who may write makes them.")
    ]
    left: Annotated[bool, means("This user left the repo.")]
    advice: Advice


class RemovedDevice(TypedDict):
    """A device that was removed."""

    device: Id
    repos: list[LeftRepo]


class MovedRepo(TypedDict):
    """State of a repo when the place of this user passes to a device."""

    repo: Id
    name: str
    moved: Annotated[bool, means("The place passed to the device now.")]
    already: Annotated[bool, means("The place had passed to a device before.")]
    signs: Annotated[
        bool, means("A quorum names this user, who signs no more: an owner names the signers anew.")
    ]
    advice: Advice


class PromotedDevice(TypedDict):
    """The device that is the first one now."""

    device: Id
    repos: list[MovedRepo]
