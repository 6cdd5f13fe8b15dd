"""Bodies that link several devices to one person: the devices repo, and device statements signed by both keys.

A device is a user like any other. `DevicesRepo` and `HandOn` stand in a repo of the person's own, `Device` and `DeviceEnd`
in the root branch of each repo that two of them are in. No rule of membership looks at any of them: a body of these kinds
that does not decode is carried like one of an unknown kind, so that nodes which do not know the kinds judge alike.
"""

from protocol.codec import Wire
from protocol.crypto.sealed_keys import SealedKey
from protocol.formats.block import Reference
from protocol.formats.content import UnixMilliseconds
from protocol.ids import EpochId, RepoId, Signature, UserId


class DevicesRepo(Wire, frozen=True, tag="devices1"):
    """The author is `person`, or agrees to be a device of that person, who hands on in this repo what it has."""

    person: UserId


class HandOn(Wire, frozen=True, tag="hand-on2"):
    """Opens a repo for a device of the author: where it begins, and an epoch, whose key is sealed to the device.

    `signature` is the author's half of the statement (`Device`) for that repo, made at `since`.
    """

    device: UserId
    repo: RepoId
    root: Reference
    epoch: EpochId
    key: SealedKey
    since: UnixMilliseconds
    signature: Signature


class Device(Wire, frozen=True, tag="device1"):
    """Both say that `device` is a device of `person` in this repo, since then; both signatures are over one digest."""

    person: UserId
    device: UserId
    since: UnixMilliseconds
    person_signature: Signature
    device_signature: Signature


class DeviceEnd(Wire, frozen=True, tag="device-end1"):
    """Statement that two devices belong together no longer, up to `until`. `by_person` says which of the two signed it."""

    person: UserId
    device: UserId
    until: UnixMilliseconds
    by_person: bool
    signature: Signature


DeviceBody = DevicesRepo | HandOn | Device | DeviceEnd
