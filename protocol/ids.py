"""Types of what names things: blocks, commits, branches, repos, epochs, and the public keys of users, nodes and topics.

Each is `bytes` at run time and a type of its own to mypy, so that a repo's id in place of a branch's is a type error. The
length stands in the type: a field of a decoded value needs no other bound. Secrets are in `protocol.crypto.keys`. Encodings,
plaintexts and ciphertexts stay `bytes`.

Ids that are read from the wire, from a store's rows or from a hash function of `protocol.crypto.hashing` have their type.
Where an id changes its meaning, the code calls the type (`EpochId(commit_id)`), which checks nothing and costs some 60 ns:
such calls stand where the meaning changes and never in loops over many ids.
"""

from typing import Annotated, Final, NewType

from msgspec import Meta

SHORT_ID_SIZE: Final = 16
"""Bytes of a `ShortId`."""

_Bytes32 = Annotated[bytes, Meta(min_length=32, max_length=32)]

# --- hashes ---

BlockId = NewType("BlockId", _Bytes32)
"""32 bytes: the hash of a block's encoding."""

ObjectId = NewType("ObjectId", BlockId)
"""32 bytes: names an object, which is a tree of blocks. It is the id of the tree's root block."""

CommitId = NewType("CommitId", BlockId)
"""32 bytes: names a commit. It is the id of the block that the commit is sealed in."""

NO_COMMIT: Final = CommitId(BlockId(b""))
"""No bytes: no commit's id. Sorts before all of them."""

EpochId = NewType("EpochId", CommitId)
"""32 bytes: names an epoch. It is the id of the commit that starts the epoch."""

PublicationId = NewType("PublicationId", _Bytes32)
"""32 bytes: names a publication by the first 8 bytes of its commit's id and 24 of what its topic's key signs."""

ShortId = NewType("ShortId", Annotated[bytes, Meta(min_length=SHORT_ID_SIZE, max_length=SHORT_ID_SIZE)])
"""16 bytes: the first of the id of a commit, of a publication, or of a file's object."""

Digest = NewType("Digest", _Bytes32)
"""32 bytes: the hash that is signed for a value, or that two nodes compare for a set."""

Mark = NewType("Mark", _Bytes32)
"""32 bytes: follows from a key or secret, tells its holders that it is meant, and opens nothing."""

BranchMark = NewType("BranchMark", Annotated[bytes, Meta(min_length=8, max_length=8)])
"""8 bytes: names a branch in one epoch to who can derive it. It stands in clear in each commit's block."""

# --- public keys ---

RepoId = NewType("RepoId", _Bytes32)
"""32 bytes: names a repo. It is the Ed25519 public key that certifies the repo's founders."""

UserId = NewType("UserId", _Bytes32)
"""32 bytes: a user's Ed25519 public key, which commits name as their author. A person's device is a user too."""

PeerId = NewType("PeerId", _Bytes32)
"""32 bytes: a node's Ed25519 public key."""

TopicKey = NewType("TopicKey", _Bytes32)
"""32 bytes: a topic's Ed25519 public key."""

InvitationKey = NewType("InvitationKey", _Bytes32)
"""32 bytes: an invitation's Ed25519 public key."""

AgreementKey = NewType("AgreementKey", _Bytes32)
"""32 bytes: an X25519 public key, which agrees on secrets and signs nothing."""

Signature = NewType("Signature", Annotated[bytes, Meta(min_length=64, max_length=64)])
"""64 bytes: an Ed25519 signature."""

# --- one or the other ---

BranchId = NewType("BranchId", _Bytes32)
"""32 bytes: names a branch. It is the id of the branch's first commit, or of the repo for the repo's root branch."""

# --- names on one connection ---

SessionId = NewType("SessionId", _Bytes32)
"""32 bytes: names a connection between two nodes, the same on both sides."""

BlindTopic = NewType("BlindTopic", _Bytes32)
"""32 bytes: names a topic that both sides follow on one connection."""

AnnouncedTopic = NewType("AnnouncedTopic", _Bytes32)
"""32 bytes: names a topic on one connection before the sender knows whether the other side follows it."""

CircuitAddress = NewType("CircuitAddress", _Bytes32)
"""32 bytes: names a node at one relay, so that a circuit to it can be asked for. A relay that does not know the node's key
learns nothing of it."""

# --- several ---

AnyId = NewType("AnyId", _Bytes32)
"""32 bytes: an id of which the text or the frame does not say what it names."""

ItemId = CommitId | PublicationId | AnyId
"""What two nodes compare sets of: commits, or publications where one of the two opens none."""

PublicKey = RepoId | UserId | PeerId | TopicKey | InvitationKey
"""An Ed25519 public key of any of these."""

Id = (
    AnyId
    | BlockId
    | ObjectId
    | CommitId
    | EpochId
    | PublicationId
    | Digest
    | Mark
    | RepoId
    | UserId
    | PeerId
    | TopicKey
    | InvitationKey
    | BranchId
    | SessionId
)
"""32 bytes that people may see."""


def root_branch(repo_id: RepoId) -> BranchId:
    """Return the id of a repo's root branch, which holds the repo's membership: the repo's own."""
    return BranchId(repo_id)


def branch_begun_by(commit_id: CommitId) -> BranchId:
    """Return the id of the branch that this commit begins: the commit's own."""
    return BranchId(commit_id)


def first_commit(branch_id: BranchId) -> CommitId:
    """Return the id of the commit that begins a branch other than a root branch: the branch's own."""
    return CommitId(BlockId(branch_id))
