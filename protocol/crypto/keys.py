"""Types of what opens or signs things: seeds, secrets and keys that nobody else may know.

As in `protocol.ids`, each is `bytes` at run time and a type of its own to mypy, so that an epoch's key in place of a
writers' secret, or a seed in place of a public key, is a type error.
"""

from typing import Annotated, NewType

from msgspec import Meta

_Bytes32 = Annotated[bytes, Meta(min_length=32, max_length=32)]

# --- what signs ---

UserSeed = NewType("UserSeed", _Bytes32)
"""32 bytes: a user's Ed25519 private key, as RFC 8032 has it."""

NodeSeed = NewType("NodeSeed", _Bytes32)
"""32 bytes: a node's Ed25519 private key."""

RepoSeed = NewType("RepoSeed", _Bytes32)
"""32 bytes: a repo's Ed25519 private key, which signs once and is forgotten."""

InvitationSeed = NewType("InvitationSeed", _Bytes32)
"""32 bytes: an invitation's Ed25519 private key, which its link carries."""

TopicSeed = NewType("TopicSeed", _Bytes32)
"""32 bytes: a topic's Ed25519 private key. All who may publish on the topic derive the same one."""

Seed = UserSeed | NodeSeed | RepoSeed | InvitationSeed | TopicSeed
"""An Ed25519 private key of any of these."""

SigningKey = NewType("SigningKey", Annotated[bytes, Meta(min_length=64, max_length=64)])
"""64 bytes: a seed and its public key, as libsodium signs with them."""

AgreementSecret = NewType("AgreementSecret", _Bytes32)
"""32 bytes: an X25519 private key, which agrees on secrets and signs nothing."""

# --- what opens ---

EpochKey = NewType("EpochKey", _Bytes32)
"""32 random bytes: the key of an epoch, from which all that opens or names the epoch follows."""

WritersSecret = NewType("WritersSecret", _Bytes32)
"""32 random bytes: what members who may write hold of an epoch beside its key. The writers' topic follows from it."""

BranchSecret = NewType("BranchSecret", _Bytes32)
"""32 bytes: what opens one branch in one epoch."""

ReadKey = NewType("ReadKey", _Bytes32)
"""32 bytes: what the keys of commits are sealed under in an epoch, or on the link topic of one branch in it."""

ConvergenceSecret = NewType("ConvergenceSecret", _Bytes32)
"""32 bytes: what an epoch's block keys are derived with. It confirms guesses about content, and opens nothing."""

BlockKey = NewType("BlockKey", _Bytes32)
"""32 bytes: what opens one block, and by it the object or the commit that the block is the root of."""

GivenKey = NewType("GivenKey", Annotated[bytes, Meta(max_length=32)])
"""32 or no bytes: a block's key as a commit's header gives it, or none where the author gives none."""

# --- what a store and a connection are sealed with ---

StoreKey = NewType("StoreKey", _Bytes32)
"""32 bytes: what all secrets in a store's rows are sealed under."""

CipherKey = NewType("CipherKey", _Bytes32)
"""32 bytes: the key of an authenticated cipher: of the boxes in a store's rows, or of one direction of a connection."""

# --- what makes hashes unforeseeable ---

HashKey = NewType("HashKey", _Bytes32)
"""32 bytes: the key of a keyed hash: of a topic's symbols, a session's ranges, a store's masks or its nonces."""

# --- what a relay's operator gives ---

AccountToken = NewType("AccountToken", _Bytes32)
"""32 bytes: the secret of a link that gives one node an account at a relay."""
