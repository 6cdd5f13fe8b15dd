"""Bodies of commits: the table of all kinds (post, grant, invite, ...), with their encoding and decoding.

Root branch kinds change the repo (init, branch-add, invite, join, ...); the others are content, most of which stands in
`protocol.formats.content` and `protocol.formats.document_kinds`. A body of a kind that this node does not know is carried
and ordered, not interpreted (`UnknownBody`); a body of a known kind that does not decode is refused, unless no rule looks at
it (`protocol.formats.devices`, `protocol.formats.profiles`, `protocol.formats.lobbies`, `Hide`, `MembersCheckpoint`, JSON
documents).
"""

from enum import IntEnum
from functools import cache
from typing import TYPE_CHECKING, Annotated, Final, Union, get_args

from msgspec import Meta

from protocol.codec import DecodeError, Value, Wire, decode, encode, peek_tag
from protocol.formats.block import Reference
from protocol.formats.content import Compaction, Files, Imported, Name, Post, UnixMilliseconds
from protocol.formats.devices import DeviceBody
from protocol.formats.document_kinds import DOCUMENT_KINDS, JSON, DocumentBody
from protocol.formats.epochs import EpochHand, EpochInit, EpochOpen, EpochStatement, Prekey
from protocol.formats.lobbies import LobbyBody
from protocol.formats.profiles import Profile
from protocol.ids import BranchId, CommitId, Digest, InvitationKey, Signature, UserId
from protocol.limits.formats import (
    ACK_COUNT_MAX,
    ADOPTED_COUNT_MAX,
    BODY_SIZE_MAX,
    FEED_SEQUENCE_MAX,
    HIDDEN_COUNT_MAX,
    INVITATION_USE_COUNT_MAX,
    LINK_SIZE_MAX,
    OFFER_NOTE_SIZE_MAX,
    OWNER_COUNT_MAX,
    QUORUM_SIGNER_COUNT_MAX,
    RECOVERY_FRIEND_COUNT_MAX,
    REMOVED_FEED_COUNT_MAX,
)


class Permission(IntEnum):
    """Permission of a member; each value includes those below it."""

    READ = 1
    WRITE = 2
    MANAGE = 3  # branches
    ADMIN = 4
    OWNER = 5


class RepoInit(Wire, frozen=True, tag="init2"):
    """The root branch's first commit: founding owners, certified once by the repo's key, which is then forgotten.

    It starts the founding epoch; `states` has what other inits state of their epochs.
    """

    name: Name
    owners: Annotated[tuple[UserId, ...], Meta(min_length=1, max_length=OWNER_COUNT_MAX)]
    certificate: Signature
    states: EpochStatement


class CouncilInit(RepoInit, frozen=True, tag="init3"):
    """A root branch's first commit that also states how many of its owners, together, are above each of them."""

    council: Annotated[int, Meta(ge=2, le=OWNER_COUNT_MAX)]


class BranchAdd(Wire, frozen=True, tag="branch-add2"):
    """A branch of the repo: its id, its name, and the first commit that it alone may have."""

    branch: BranchId
    name: Name
    root: Reference


class BranchLink(Wire, frozen=True, tag="branch-link1"):
    """A link to a branch was made: nodes of writers publish the branch on its link topics from now on."""

    branch: BranchId


class Invite(Wire, frozen=True, tag="invite1"):
    """Admits anyone who can sign with the invitation's key, `uses` times, until `expires_at` (unix milliseconds)."""

    invitation_key: InvitationKey
    permission: Permission
    uses: Annotated[int, Meta(ge=1, le=INVITATION_USE_COUNT_MAX)]
    expires_at: UnixMilliseconds


class Join(Wire, frozen=True, tag="join1"):
    """The author becomes a member by an invitation: `proof` is the invitation key's signature of repo and author."""

    invitation: CommitId
    proof: Signature


class Grant(Wire, frozen=True, tag="grant2"):
    """Gives a user a permission: makes a member, or raises one."""

    user: UserId
    permission: Permission


class DeviceGrant(Wire, frozen=True, tag="device-grant1"):
    """Gives a permission to a device of its author, who holds it."""

    user: UserId
    permission: Permission


class Move(Wire, frozen=True, tag="move1"):
    """Passes the author's place, which this credential gives, to a device of the author; the author leaves."""

    user: UserId
    credential: CommitId


class RecoveryFriends(Wire, frozen=True, tag="recovery-friends1"):
    """Names who together may grant a device in the author's place, and how many of them must sign."""

    friends: Annotated[tuple[UserId, ...], Meta(max_length=RECOVERY_FRIEND_COUNT_MAX)]
    threshold: Annotated[int, Meta(ge=0, le=RECOVERY_FRIEND_COUNT_MAX)]


class FriendSignature(Wire, frozen=True):
    """A recovery friend's signature over the recovery digest."""

    friend: UserId
    signature: Signature


class RecoveryGrant(Wire, frozen=True, tag="recovery-grant1"):
    """Gives a permission to a device of the member who named these friends, who sign in its place."""

    friends: CommitId
    user: UserId
    permission: Permission
    signatures: Annotated[tuple[FriendSignature, ...], Meta(max_length=RECOVERY_FRIEND_COUNT_MAX)]


class FeedEnd(Wire, frozen=True):
    """The last commit of a member's feed in one branch, as somebody had it."""

    branch: BranchId
    sequence: Annotated[int, Meta(ge=1, le=FEED_SEQUENCE_MAX)]
    commit: CommitId


class Remove(Wire, frozen=True, tag="remove1"):
    """Takes a member's permissions down to `keeps` (None: excludes it).

    `feeds` say where the member's feeds ended for the author: what comes up to there stays, whenever it arrives.
    """

    user: UserId
    keeps: Permission | None
    feeds: Annotated[tuple[FeedEnd, ...], Meta(max_length=REMOVED_FEED_COUNT_MAX)]


class Revoke(Wire, frozen=True, tag="revoke1"):
    """Ends an invitation: joins by it that this commit does not have in its past are void."""

    invitation: CommitId


class Adopt(Wire, frozen=True, tag="adopt1"):
    """Makes void commits of a branch count."""

    branch: BranchId
    commits: Annotated[tuple[CommitId, ...], Meta(min_length=1, max_length=ADOPTED_COUNT_MAX)]


class Hide(Wire, frozen=True, tag="hide1"):
    """Hides commits of a branch, or (not `hides`) shows them again. It says nothing unless its author is an admin.

    No rule of membership looks at it: nodes that do not know the kind judge alike.
    """

    branch: BranchId
    commits: Annotated[tuple[CommitId, ...], Meta(min_length=1, max_length=HIDDEN_COUNT_MAX)]
    hides: bool


class BranchEdit(Wire, frozen=True, tag="branch-edit1"):
    """Renames a branch, archives it, or takes it back from the archive. None leaves as it is."""

    branch: BranchId
    name: Name | None
    archived: bool | None


class Tag(Wire, frozen=True, tag="tag1"):
    """Gives one commit of a branch a name in the repo, moves that name, or (None) takes it away."""

    name: Name
    branch: BranchId
    commit: CommitId | None


class Offer(Wire, frozen=True, tag="offer1"):
    """Offers a branch of one's own to the readers of a document: comments on it, or commits to be taken over (`pulls`).

    `link` is the encoding of what opens it (`text.BranchCapability`).
    """

    branch: BranchId
    pulls: bool
    note: Annotated[str, Meta(max_length=OFFER_NOTE_SIZE_MAX)]
    link: Annotated[bytes, Meta(max_length=LINK_SIZE_MAX)]


class Answer(Wire, frozen=True, tag="answer1"):
    """Accepts an offer, or refuses or withdraws it; the last word counts."""

    offer: CommitId
    accepts: bool


class Quorum(Wire, frozen=True, tag="quorum1"):
    """Names who signs checkpoints, and how many must; with `removals`, also what others take away from members."""

    signers: Annotated[tuple[UserId, ...], Meta(min_length=1, max_length=QUORUM_SIGNER_COUNT_MAX)]
    threshold: Annotated[int, Meta(ge=1, le=QUORUM_SIGNER_COUNT_MAX)]
    removals: bool


class ProposeCheckpoint(Wire, frozen=True, tag="propose-checkpoint1"):
    """Asks the signers for a checkpoint that merges these heads of a branch."""

    branch: BranchId
    commits: Annotated[tuple[CommitId, ...], Meta(min_length=1, max_length=ACK_COUNT_MAX)]


class ProposeRemoval(Wire, frozen=True, tag="propose-removal1"):
    """Asks the signers to take a member's permissions down to `keeps` (None: to exclude it)."""

    user: UserId
    keeps: Permission | None


class Approve(Wire, frozen=True, tag="approve1"):
    """A signer's signature under a proposal."""

    proposal: CommitId


class Checkpoint(Wire, frozen=True, tag="checkpoint1"):
    """Merges the heads that a proposal names. What the signers approved stands before this, and nothing that came later."""

    proposal: CommitId


class MembersCheckpoint(Wire, frozen=True, tag="members-checkpoint1"):
    """Signs the digest of the membership statement that follows from the root branch commits in its past.

    No rule of membership looks at it: nodes that do not know the kind judge alike.
    """

    digest: Digest


class BranchRoot(Wire, frozen=True, tag="branch-root1"):
    """First commit of a branch: says nothing but that the branch begins."""


class BranchFork(Wire, frozen=True, tag="fork1"):
    """First commit of a branch that continues another one from these commits."""

    origin: BranchId
    commits: Annotated[tuple[CommitId, ...], Meta(min_length=1, max_length=ACK_COUNT_MAX)]


class Carried(Wire, frozen=True, tag="carried1"):
    """A commit of another branch, copied into this one: its id, author, time and content."""

    branch: BranchId
    commit: CommitId
    author: UserId
    time: UnixMilliseconds
    body: Annotated[bytes, Meta(min_length=1, max_length=BODY_SIZE_MAX)]


class Merge(Wire, frozen=True, tag="merge1"):
    """Another branch was merged into this one: what it had up to these commits is in this commit's past."""

    branch: BranchId
    commits: Annotated[tuple[CommitId, ...], Meta(min_length=1, max_length=ACK_COUNT_MAX)]


class UnknownBody(Value, frozen=True, tag="unknown-body"):
    """A body of a kind that this node does not know; `tag` as it stands in the bytes."""

    tag: str


class ErasedBody(UnknownBody, frozen=True, tag="erased-body"):
    """A body that is not here: of content of this kind (`tag` has no version)."""


class UnreadableBody(UnknownBody, frozen=True, tag="unreadable-body"):
    """A body that is not what its commit's header says (`tag` has no version): it says nothing (`declared_kind`)."""


class UnopenedBody(UnknownBody, frozen=True, tag="unopened-body"):
    """A body that is here and was not decoded: its commit's header declares the kind (`tag` has no version).

    `encoded` are its bytes, where rows of documents are made of them, and they could be decrypted. Else it is empty.
    """

    encoded: bytes = b""


Body = (
    RepoInit
    | CouncilInit
    | BranchAdd
    | BranchLink
    | Invite
    | Join
    | Grant
    | DeviceGrant
    | Move
    | RecoveryFriends
    | RecoveryGrant
    | Remove
    | Revoke
    | Adopt
    | Hide
    | BranchEdit
    | Tag
    | EpochInit
    | EpochOpen
    | EpochHand
    | Prekey
    | Offer
    | Answer
    | Quorum
    | ProposeCheckpoint
    | ProposeRemoval
    | Approve
    | Checkpoint
    | MembersCheckpoint
    | BranchRoot
    | BranchFork
    | Carried
    | Merge
    | Post
    | Imported
    | Files
    | DocumentBody
    | Compaction
    | DeviceBody
    | Profile
    | LobbyBody
)
_CARRIED_AND_CHECKED: Final = frozenset({"post1", "imported1", "files1", "set1", "dict1", "text1"})
"""Tags of bodies that must have their shape to be carried by a `carried1`. What else is carried says nothing, or (a kind
that was added later) nothing where it does not decode. So this list is part of the format and never grows: a tag more would
change verdicts on commits that are older than its kind."""
_NEVER_REFUSED: Final = (
    *get_args(DeviceBody),
    Profile,
    Hide,
    MembersCheckpoint,
    *get_args(LobbyBody),
    *JSON.bodies,
)
_KINDS: Final[tuple[type[Body], ...]] = (
    *(kind for kind in get_args(Body) if kind is not DocumentBody),
    *(body for kind in DOCUMENT_KINDS for body in kind.bodies),
)
if TYPE_CHECKING:
    AnyBody = Body | UnknownBody
else:  # each type by its name, as decoding such a value takes it
    AnyBody = Union[(*_KINDS, UnknownBody, ErasedBody, UnreadableBody, UnopenedBody)]
_KIND_BY_TAG: Final[dict[str, type[Body]]] = {str(kind.__struct_config__.tag): kind for kind in _KINDS}
_CARRIED: Final[dict[str, type[Body]]] = {
    tag: kind
    for tag, kind in _KIND_BY_TAG.items()
    if tag in _CARRIED_AND_CHECKED or any(kind in document.carried for document in DOCUMENT_KINDS)
}
"""Kinds that say something where they are carried."""


def encode_body(body: Body) -> bytes:
    """Return the encoding of a body. Raises DecodeError when it would not be a legal one."""
    encoded = encode(body)
    decode_body(encoded)
    return encoded


def decode_body(encoded: bytes) -> Body | UnknownBody:
    """Return the body whose encoding is given. Raises DecodeError for a known kind of bad shape, or no tag at all."""
    if len(encoded) > BODY_SIZE_MAX:
        raise DecodeError("too_large", f"a body of {len(encoded)} bytes")
    tag = peek_tag(encoded)
    kind = _KIND_BY_TAG.get(tag)
    if kind is not None:
        try:
            body: Body = decode(kind, encoded, size_max=BODY_SIZE_MAX)
        except DecodeError:
            if kind in _NEVER_REFUSED:
                return UnknownBody(tag)
            raise
        content_of(body)
        return body
    if not tag:
        raise DecodeError("bad_shape", "a body without a tag")
    return UnknownBody(tag)


def content_of(body: Body | UnknownBody) -> Body | UnknownBody:
    """Return what a body says: itself, or what it carries.

    A carried body of a kind that is not content, a `carried1` too, says nothing: it is an UnknownBody, and is not decoded.

    Raises:
        DecodeError: What is carried has no tag, or not the shape that its tag asks for.
    """
    if not isinstance(body, Carried):
        return body
    tag = peek_tag(body.body)
    if not tag:
        raise DecodeError("bad_shape", "it carries a body without a tag")
    kind = _CARRIED.get(tag)
    if kind is None:
        return UnknownBody(tag)
    try:
        return decode(kind, body.body, size_max=BODY_SIZE_MAX)
    except DecodeError:
        if tag in _CARRIED_AND_CHECKED:
            raise
        return UnknownBody(tag)


def body_kind(body: Body | UnknownBody) -> str:
    """Return the kind's name without its version, for people and exports: `post`, `branch-add`, `unknown:poll7`."""
    if isinstance(body, UnknownBody):
        return f"unknown:{body.tag}" if type(body) is UnknownBody else body.tag
    return kind_name(type(body))


@cache
def kind_name(kind: type[Body]) -> str:
    """Return the name without its version of a type of bodies."""
    return tag_of(kind).rstrip("0123456789")


def tag_of(kind: type[Body]) -> str:
    """Return the tag with which bodies of a type begin: `post1`."""
    return str(kind.__struct_config__.tag)
