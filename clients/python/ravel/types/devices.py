"""Types of answers: devices. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TypedDict


class DeviceList(TypedDict):
    """The devices of this user's person."""

    person: str
    repo: str | None
    """The repo in which devices find each other. Null: none."""
    joining: bool
    """No peer of the link has answered yet."""
    devices: list[DeviceView]


class DeviceLinkView(TypedDict):
    """A link for a new device."""

    link: str
    """A secret. The first user who uses it gets all repos."""
    person: str
    repo: str
    id: str
    """The id of the invitation in it, by which it is listed and revoked."""
    expires_at: int
    """Unix seconds."""
    addresses: list[str]
    """Addresses (`host:port`) that the link names."""
    reach: str
    """From where the link's addresses can be dialed, at the farthest."""


class DeviceSync(TypedDict):
    """Repos that were handed on to other devices."""

    given: list[GivenRepo]


class RemovedDevice(TypedDict):
    """A device that was removed."""

    device: str
    repos: list[LeftRepo]


class DeviceView(TypedDict):
    """A device of a person."""

    user: str
    name: str
    """What the device calls itself, or this user calls it. Empty: nothing."""
    first: bool
    """The device that hands repos on to the others."""
    this: bool
    """The device that answers."""
    repos: list[DeviceRepo]


class GivenRepo(TypedDict):
    """A repo that was handed on, or could not be."""

    repo: str
    name: str
    advice: str
    """What somebody has to do. Empty: nothing."""
    device: str


class LeftRepo(TypedDict):
    """Steps that were done in one repo to remove a device."""

    repo: str
    name: str
    taken_back: bool
    """The statement that both are one person was taken back."""
    excluded: bool
    """The device was excluded from the repo."""
    left: bool
    """This user left the repo."""
    advice: str
    """What somebody has to do. Empty: nothing."""


class DeviceRepo(TypedDict):
    """State of a device in a repo of the first device."""

    repo: str
    name: str
    permission: str | None
    """What the device holds. Null: nothing."""
    shown: bool
    """Members see that the device is of the same person."""
    advice: str
    """What somebody has to do. Empty: nothing."""
