"""Calls: devices. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ravel.callers import SyncCaller
from ravel.operations import Operation

if TYPE_CHECKING:  # a command calls one or two, and imports their types
    from ravel.types.devices import DeviceLinkView, DeviceList, DeviceSync, RemovedDevice

LIST_DEVICES: Final[Operation[DeviceList]] = Operation("GET", "/devices", "devices.DeviceList")
INVITE_DEVICE: Final[Operation[DeviceLinkView]] = Operation(
    "POST",
    "/devices/invitations",
    "devices.DeviceLinkView",
    defaults={"expires_seconds": 3600, "reach": "machine"},
)
JOIN_AS_DEVICE: Final[Operation[DeviceList]] = Operation("POST", "/devices/join", "devices.DeviceList")
SYNC_DEVICES: Final[Operation[DeviceSync]] = Operation("POST", "/devices/sync", "devices.DeviceSync")
REMOVE_DEVICE: Final[Operation[RemovedDevice]] = Operation(
    "DELETE", "/devices/{device}", "devices.RemovedDevice"
)


class DevicesCalls(SyncCaller):
    """Methods that wait for the answer."""

    def list_devices(self) -> DeviceList:
        """List the devices of this user's person, and how each stands in the repos."""
        return self._call(LIST_DEVICES, {})

    def invite_device(self, *, expires_seconds: int = 3600, reach: str = "machine") -> DeviceLinkView:
        """Make a link by which another user becomes a device of this one."""
        return self._call(INVITE_DEVICE, {"expires_seconds": expires_seconds, "reach": reach})

    def join_as_device(self, link: str) -> DeviceList:
        """Become a device of the person who made a link."""
        return self._call(JOIN_AS_DEVICE, {"link": link})

    def sync_devices(self) -> DeviceSync:
        """Hand on again, as the first device, what other devices lack."""
        return self._call(SYNC_DEVICES, {})

    def remove_device(self, device: str) -> RemovedDevice:
        """Exclude a device from all repos where this user may, and take back that it is the same person's."""
        return self._call(REMOVE_DEVICE, {"device": device})
