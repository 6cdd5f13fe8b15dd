"""Several devices of one person: list, add, promote and remove them, and hand repos on to them."""

from typing import Annotated, Final

from msgspec import Meta

from node.contract.access import NODE, PERSON
from node.contract.endpoint import LINK_ERRORS, WRITE_ERRORS, Endpoint
from node.contract.made import Makes
from node.contract.values import DemandedReach, Request, link_of
from ravel.types.devices import DeviceLinkView, DeviceList, DeviceSync, PromotedDevice, RemovedDevice


class DeviceInvitationRequest(Request, frozen=True):
    """Makes a link for a device."""

    expires_seconds: Annotated[int, Meta(ge=1, le=7 * 86_400)] = 3600
    reach: DemandedReach = "machine"


class DeviceJoinRequest(Request, frozen=True):
    """Makes this node a device of another user."""

    link: Annotated[str, link_of("device")]


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
    summary="Take a device out of all repos, and take back that it is the same person's.",
    answer=RemovedDevice,
    errors=WRITE_ERRORS,
)
PROMOTE_DEVICE: Final = Endpoint(
    name="promote_device",
    method="POST",
    path="/devices/{device}/promotion",
    scopes=PERSON,
    summary="Pass this user's place to a device in all repos. This user is no member any more.",
    answer=PromotedDevice,
    errors=WRITE_ERRORS,
)
