"""`ravel:` links: invitations, links that ask, read capabilities, those of branches, links for devices; with a checksum.

A link is base32 of an encoded struct. Its kind stands in clear, and the checksum (5 bytes) finds what was mistyped.
"""

from hmac import compare_digest
from typing import Annotated, Final

from msgspec import Meta

from protocol.codec import DecodeError, Wire, decode, encode, peek_tag
from protocol.crypto import hashing
from protocol.crypto.keys import (
    AccountToken,
    BranchSecret,
    ConvergenceSecret,
    EpochKey,
    InvitationSeed,
    WritersSecret,
)
from protocol.formats.block import Reference
from protocol.formats.body import Permission
from protocol.formats.content import Name, UnixMilliseconds
from protocol.formats.epochs import GivenEpoch
from protocol.formats.text import base32_text, id_text, parse_base32
from protocol.ids import (
    BranchId,
    CommitId,
    EpochId,
    PeerId,
    RepoId,
    Signature,
    TopicKey,
    UserId,
    root_branch,
)
from protocol.limits.formats import (
    ADDRESS_SIZE_MAX,
    LINK_CHANNEL_COUNT_MAX,
    LINK_HEAD_COUNT_MAX,
    LINK_PEER_COUNT_MAX,
    LINK_SIZE_MAX,
    RECOVERY_TEXT_COUNT_MAX,
)

_LINK_SCHEME: Final = "ravel:"
_INVITATION_KIND: Final = "invite"
_CAPABILITY_KIND: Final = "read"
_BRANCH_KIND: Final = "branch"
_DEVICE_KIND: Final = "device"
_ASK_KIND: Final = "ask"
_RELAY_KIND: Final = "relay"
_RECOVERY_KIND: Final = "recovery"
_KIND_NAMES: Final = {
    _INVITATION_KIND: "a bearer link",
    _ASK_KIND: "a link that asks",
    _CAPABILITY_KIND: "a read capability",
    _BRANCH_KIND: "a branch's capability",
    _DEVICE_KIND: "a link for a device",
    _RELAY_KIND: "a link to a relay",
    _RECOVERY_KIND: "a friend's signatures",
}
_CHECKSUM_SIZE: Final = 5


class PeerAddress(Wire, frozen=True):
    """Address of a peer: host:port, and the key that it must prove."""

    address: Annotated[str, Meta(min_length=3, max_length=ADDRESS_SIZE_MAX)]
    peer: PeerId


class EarlierPosts(Wire, frozen=True):
    """Epoch before the link's, with its writers' topic: most of the newest posts stand there soon after an exclusion."""

    epoch: GivenEpoch
    topic: TopicKey


class NewestPosts(Wire, frozen=True):
    """Statement of who made a link: all up to these heads of a branch was accepted there.

    `name` is what the maker calls itself, `at` when it said so. The commits stand on the `topic`, the writers' topic of the
    link's epoch, and on that of an `earlier` one; `rank` is that of the highest head.
    """

    maker: UserId
    name: Name | None
    at: UnixMilliseconds
    topic: TopicKey
    earlier: EarlierPosts | None
    branch: BranchId
    branch_name: Name
    rank: Annotated[int, Meta(ge=0, lt=2**53 - 1)]
    heads: Annotated[tuple[CommitId, ...], Meta(min_length=1, max_length=LINK_HEAD_COUNT_MAX)]


class Voucher(Wire, frozen=True):
    """Newest posts as the maker of a link has signed them: read by its word until the root branch is here."""

    states: NewestPosts
    signature: Signature


class InvitationLink(Wire, frozen=True, tag="invitation5"):
    """All that a newcomer needs: an epoch's key, the invitation's key, and where to find a peer.

    `name` is the repo's and `by` its maker's, as they were called then: claims, to be read before one joins.

    It is a bearer secret: anyone who has the link can read the repo. `writers_secret` is there only when it grants writing.
    The keys of earlier epochs are in the epoch (`protocol.formats.epochs`). `voucher` is there where much is to come.
    """

    repo: RepoId
    root: Reference
    epoch: EpochId
    key: EpochKey
    writers_secret: WritersSecret | None
    invitation: CommitId
    invitation_seed: InvitationSeed
    permission: Permission
    expires_at: UnixMilliseconds
    peers: Annotated[tuple[PeerAddress, ...], Meta(max_length=LINK_PEER_COUNT_MAX)]
    voucher: Voucher | None
    name: Name
    by: Name | None

    def __repr__(self) -> str:
        """Show the link without the secrets, as logs get it."""
        return f"InvitationLink(repo={id_text(self.repo)}, permission={self.permission.name.lower()})"


class RenewalNote(Wire, frozen=True, tag="renew1"):
    """The metadata of an `invite1` whose author renews the repo's secrets once the link is used up or revoked.

    A bearer link holds the secrets of its epoch, and goes on reading what is written there. Old nodes ignore these
    metadata, and no rule looks at them.
    """


RENEWAL_NOTE: Final = encode(RenewalNote())
"""The one encoding."""


class DeviceLink(Wire, frozen=True, tag="device-link1"):
    """All that makes a user a device of `person`: the encoded invitation to the repo of that person's devices.

    It is a bearer secret: anyone who uses it first is given all that the person has.
    """

    person: UserId
    invitation: Annotated[bytes, Meta(max_length=LINK_SIZE_MAX)]

    def __repr__(self) -> str:
        """Show the link without the secrets."""
        return f"DeviceLink(person={id_text(self.person)})"

    def opened(self) -> InvitationLink:
        """Return the invitation. Raises DecodeError."""
        return decode(InvitationLink, self.invitation, size_max=LINK_SIZE_MAX)


class AskLink(Wire, frozen=True, tag="ask-link1"):
    """All that lets a user ask to be let into `repo`: the encoded invitation to a lobby (`protocol.formats.lobbies`).

    It has no secret of the repo. It does open the lobby: its holders see who asked by the same link. `name` is the repo's,
    as it was called when the link was made, and `permission` is what an acceptance is to give (1 read, 2 write).
    """

    repo: RepoId
    name: Name
    permission: Annotated[int, Meta(ge=1, le=2)]
    lobby: Annotated[bytes, Meta(max_length=LINK_SIZE_MAX)]

    def __repr__(self) -> str:
        """Show the link without the lobby's secrets."""
        return f"AskLink(repo={id_text(self.repo)})"

    def opened(self) -> InvitationLink:
        """Return the invitation to the lobby. Raises DecodeError."""
        return decode(InvitationLink, self.lobby, size_max=LINK_SIZE_MAX)


class ReadCapability(Wire, frozen=True, tag="read4"):
    """All that opens a repo for reading, and where to find a peer: who holds it reads and follows, and is no member.

    `name` is the repo's, as it was called then.

    It is a bearer secret that does not expire; what is written in later epochs it does not open.
    """

    repo: RepoId
    root: Reference
    epoch: EpochId
    key: EpochKey
    peers: Annotated[tuple[PeerAddress, ...], Meta(max_length=LINK_PEER_COUNT_MAX)]
    name: Name

    def __repr__(self) -> str:
        """Show the link without the secret."""
        return f"ReadCapability(repo={id_text(self.repo)})"


class BranchChannel(Wire, frozen=True):
    """Key of one branch on its link topic in an epoch, which opens nothing else of the epoch."""

    epoch: EpochId
    topic: TopicKey
    branch_secret: BranchSecret
    convergence_secret: ConvergenceSecret


class BranchCapability(Wire, frozen=True, tag="branch2"):
    """Keys that open one branch for reading, and addresses of peers. Shows nothing of other branches or of members.

    It is a bearer secret: it opens the commits written in these epochs, and later ones of the last epoch.
    """

    repo: RepoId
    init: CommitId
    branch: BranchId
    name: Name
    channels: Annotated[tuple[BranchChannel, ...], Meta(min_length=1, max_length=LINK_CHANNEL_COUNT_MAX)]
    peers: Annotated[tuple[PeerAddress, ...], Meta(max_length=LINK_PEER_COUNT_MAX)]

    def __repr__(self) -> str:
        """Show the link without the secrets."""
        return f"BranchCapability(branch={id_text(self.branch)})"


class RelayLink(Wire, frozen=True, tag="relay-link1"):
    """Link that gives a node an account at a relay, once: its address, and a secret that only the relay knows."""

    token: AccountToken
    peers: Annotated[tuple[PeerAddress, ...], Meta(min_length=1, max_length=LINK_PEER_COUNT_MAX)]

    def __repr__(self) -> str:
        """Show the link without the secret."""
        return f"RelayLink(relay={id_text(self.peers[0].peer)})"


class SignedRecovery(Wire, frozen=True):
    """A friend's signature over the recovery digest of one repo: for a commit that names friends, and what it gives."""

    repo: RepoId
    friends: CommitId
    permission: Permission
    signature: Signature


class RecoveryText(Wire, frozen=True, tag="recovery-text1"):
    """Signatures by which `friend` lets `user` in again, in each repo that the friend shares. No secret."""

    user: UserId
    friend: UserId
    signed: Annotated[tuple[SignedRecovery, ...], Meta(min_length=1, max_length=RECOVERY_TEXT_COUNT_MAX)]


def recovery_text(signatures: RecoveryText) -> str:
    """`ravel:recovery:` and the signatures in base32, checksum last."""
    return _link_text(_RECOVERY_KIND, signatures)


def parse_recovery(text: str) -> RecoveryText:
    """Return the signatures that `text` is. Raises DecodeError as `parse_invitation` does."""
    return decode(RecoveryText, _payload(_RECOVERY_KIND, text), size_max=LINK_SIZE_MAX)


def relay_link_text(link: RelayLink) -> str:
    """`ravel:relay:` and the link in base32, checksum last."""
    return _link_text(_RELAY_KIND, link)


def parse_relay_link(text: str) -> RelayLink:
    """Return the link to a relay that `text` is. Raises DecodeError as `parse_invitation` does; `bad_shape` where it names
    two.
    """
    link: RelayLink = decode(RelayLink, _payload(_RELAY_KIND, text), size_max=LINK_SIZE_MAX)
    if len({one.peer for one in link.peers}) > 1:
        raise DecodeError("bad_shape", "more than one relay")
    return link


def invitation_text(link: InvitationLink) -> str:
    """`ravel:invite:` and the link in base32, checksum last."""
    return _link_text(_INVITATION_KIND, link)


def parse_invitation(text: str) -> InvitationLink:
    """Return the invitation that `text` is.

    Raises DecodeError: `not_a_link`, `other_kind`, `mistyped` (checksum), or what `decode` says of an unknown version.
    """
    return decode(InvitationLink, _payload(_INVITATION_KIND, text), size_max=LINK_SIZE_MAX)


def device_link_text(link: DeviceLink) -> str:
    """`ravel:device:` and the link in base32, checksum last."""
    return _link_text(_DEVICE_KIND, link)


def parse_device_link(text: str) -> DeviceLink:
    """Return the link for a device that `text` is. Raises DecodeError as `parse_invitation` does."""
    link: DeviceLink = decode(DeviceLink, _payload(_DEVICE_KIND, text), size_max=LINK_SIZE_MAX)
    link.opened()
    return link


def ask_link_text(link: AskLink) -> str:
    """`ravel:ask:` and the link in base32, checksum last."""
    return _link_text(_ASK_KIND, link)


def parse_ask_link(text: str) -> AskLink:
    """Return the link that asks that `text` is. Raises DecodeError as `parse_invitation` does."""
    link: AskLink = decode(AskLink, _payload(_ASK_KIND, text), size_max=LINK_SIZE_MAX)
    link.opened()
    return link


def find_kept_ask(encoded: bytes | None) -> AskLink | None:
    """Return the link that asks, as stored with its lobby; None for stored values of another kind. Raises
    DecodeError."""
    if encoded is None or peek_tag(encoded) != AskLink.__struct_config__.tag:
        return None
    return decode(AskLink, encoded, size_max=LINK_SIZE_MAX)


def decode_kept_link(encoded: bytes) -> tuple[InvitationLink, UserId | None]:
    """Return an invitation as it is kept until its use, and the person of the device, if any. Raises DecodeError."""
    if peek_tag(encoded) != DeviceLink.__struct_config__.tag:
        return decode(InvitationLink, encoded, size_max=LINK_SIZE_MAX), None
    link: DeviceLink = decode(DeviceLink, encoded, size_max=LINK_SIZE_MAX)
    return link.opened(), link.person


def capability_text(capability: ReadCapability) -> str:
    """`ravel:read:` and the capability in base32, checksum last."""
    return _link_text(_CAPABILITY_KIND, capability)


def parse_capability(text: str) -> ReadCapability:
    """Return the read capability that `text` is. Raises DecodeError as `parse_invitation` does."""
    return decode(ReadCapability, _payload(_CAPABILITY_KIND, text), size_max=LINK_SIZE_MAX)


def branch_capability_text(capability: BranchCapability) -> str:
    """`ravel:branch:` and the capability in base32, checksum last. Raises DecodeError `too_large`."""
    return _link_text(_BRANCH_KIND, capability)


def parse_branch_capability(text: str) -> BranchCapability:
    """Return the capability of a branch that `text` is. Raises DecodeError as `parse_invitation` does."""
    return decode_branch_capability(_payload(_BRANCH_KIND, text))


def decode_branch_capability(encoded: bytes) -> BranchCapability:
    """Return the capability of a branch whose encoding is given. Raises DecodeError, also for a root branch: that opens a
    repo.
    """
    capability: BranchCapability = decode(BranchCapability, encoded, size_max=LINK_SIZE_MAX)
    if capability.branch == root_branch(capability.repo):
        raise DecodeError("bad_shape", "a root branch is not followed by itself")
    return capability


def link_kind(text: str) -> str:
    """Return the kind of link that a text says it is, as `invite`, `ask`, `read` or `branch`; empty for no link."""
    scheme, _, rest = text.strip().partition(":")
    kind, mark, _ = rest.partition(":")
    return kind if f"{scheme}:" == _LINK_SCHEME and mark else ""


def _link_text(kind: str, link: Wire) -> str:
    payload = encode(link)
    if len(payload) * 8 // 5 + 64 > LINK_SIZE_MAX:
        raise DecodeError("too_large", "a link")
    return f"{_LINK_SCHEME}{kind}:{base32_text(payload + _checksum(kind, payload))}"


def _payload(kind: str, text: str) -> bytes:
    """Return what a link of that kind encodes."""
    text = text.strip()
    if len(text) > LINK_SIZE_MAX:
        raise DecodeError("too_large", "a link")
    if not text.startswith(_LINK_SCHEME):
        raise DecodeError("not_a_link", f"a link starts with {_LINK_SCHEME}")
    found, _, coded = text.removeprefix(_LINK_SCHEME).partition(":")
    if found != kind:
        raise DecodeError("other_kind", _KIND_NAMES.get(found, f"a link of kind {found[:20]!r}"))
    raw = parse_base32(coded, "mistyped")
    payload, checksum = raw[:-_CHECKSUM_SIZE], raw[-_CHECKSUM_SIZE:]
    if not compare_digest(_checksum(kind, payload), checksum):
        raise DecodeError("mistyped", "the checksum does not match")
    return payload


def _checksum(kind: str, payload: bytes) -> bytes:
    return hashing.link_checksum(kind.encode() + payload)
