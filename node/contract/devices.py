"""Several devices of one person: list, add and remove them, and hand repos on to them."""

from typing import Annotated, Final, TypedDict

from msgspec import Meta

from node.contract.access import NODE, PERSON
from node.contract.endpoint import LINK_ERRORS, WRITE_ERRORS, Endpoint
from node.contract.made import Makes
from node.contract.values import DemandedReach, HeldPermission, Id, LinkReach, Request, UnixSeconds, link_of

Advice = Annotated[str, Meta(description="What somebody has to do. Empty: nothing.")]


class DeviceInvitationRequest(Request, frozen=True):
    """Makes a link for a device."""

    expires_seconds: Annotated[int, Meta(ge=1, le=7 * 86_400)] = 3600
    reach: DemandedReach = "machine"


class DeviceJoinRequest(Request, frozen=True):
    """Makes this node a device of another user."""

    link: Annotated[str, link_of("device")]


class DeviceRepo(TypedDict):
    """State of a device in a repo of the first device."""

    repo: Id
    name: str
    permission: Annotated[HeldPermission | None, Meta(description="What the device holds. Null: nothing.")]
    shown: Annotated[bool, Meta(description="Members see that the device is of the same person.")]
    advice: Advice


class DeviceView(TypedDict):
    """A device of a person."""

    user: Id
    name: Annotated[
        str, Meta(description="What the device calls itself, or this user calls it. Empty: nothing.")
    ]
    first: Annotated[bool, Meta(description="The device that hands repos on to the others.")]
    this: Annotated[bool, Meta(description="The device that answers.")]
    repos: list[DeviceRepo]


class DeviceList(TypedDict):
    """The devices of this user's person."""

    person: Id
    repo: Annotated[Id | None, Meta(description="The repo in which devices find each other. Null: none.")]
    joining: Annotated[bool, Meta(description="No peer of the link has answered yet.")]
    devices: list[DeviceView]


class DeviceLinkView(TypedDict):
    """A link for a new device."""

    link: Annotated[str, Meta(description="A secret. The first user who uses it gets all repos.")]
    person: Id
    repo: Id
    id: Annotated[Id, Meta(description="The id of the invitation in it, by which it is listed and revoked.")]
    expires_at: UnixSeconds
    addresses: Annotated[list[str], Meta(description="Addresses (`host:port`) that the link names.")]
    reach: LinkReach


class LackingRepo(TypedDict):
    """A repo that a device lacks, or is not shown in."""

    repo: Id
    name: str
    advice: Advice


class GivenRepo(LackingRepo):
    """A repo that was handed on, or could not be."""

    device: Id


class DeviceSync(TypedDict):
    """Repos that were handed on to other devices."""

    given: list[GivenRepo]


class LeftRepo(TypedDict):
    """Steps that were done in one repo to remove a device."""

    repo: Id
    name: str
    taken_back: Annotated[bool, Meta(description="The statement that both are one person was taken back.")]
    excluded: Annotated[bool, Meta(description="The device was excluded from the repo.")]
    left: Annotated[bool, Meta(description="This user left the repo.")]
    advice: Advice


class RemovedDevice(TypedDict):
    """A device that was removed."""

    device: Id
    repos: list[LeftRepo]


LIST_DEVICES: Final = Endpoint(
    name="list_devices",
    method="GET",
    path="/devices",
    scopes=NODE,
    summary="List the devices of this user's person, and how each stands in the repos.",
    answer=DeviceList,
)
INVITE_DEVICE: Final = Endpoint(
    name="invite_device",
    method="POST",
    path="/devices/invitations",
    scopes=PERSON,
    summary="Make a link by which another user becomes a device of this one.",
    request=DeviceInvitationRequest,
    answer=DeviceLinkView,
    makes=Makes(kind="device_link", repo="repo", what="id", until="expires_at"),
    errors=(*WRITE_ERRORS, *LINK_ERRORS),
)
JOIN_AS_DEVICE: Final = Endpoint(
    name="join_as_device",
    method="POST",
    path="/devices/join",
    scopes=PERSON,
    summary="Become a device of the person who made a link.",
    request=DeviceJoinRequest,
    answer=DeviceList,
    errors=(*WRITE_ERRORS, "bad_link", "expired"),
)
SYNC_DEVICES: Final = Endpoint(
    name="sync_devices",
    method="POST",
    path="/devices/sync",
    scopes=PERSON,
    summary="Hand on again, as the first device, what other devices lack.",
    answer=DeviceSync,
    errors=WRITE_ERRORS,
)
REMOVE_DEVICE: Final = Endpoint(
    name="remove_device",
    method="DELETE",
    path="/devices/{device}",
    scopes=PERSON,
    summary="Exclude a device from all repos where this user may, and take back that it is the same person's.",
    answer=RemovedDevice,
    errors=WRITE_ERRORS,
)
