"""Fixed inputs of the vectors, and what follows from them: nothing in a vector is random."""

from typing import Any, Final

from protocol.crypto import hashing, signing
from protocol.crypto.epoch_boxes import epoch_mark, writers_mark
from protocol.crypto.keys import EpochKey, InvitationSeed, RepoSeed, UserSeed, WritersSecret
from protocol.formats.epochs import EpochStatement, seal_topic
from protocol.ids import BranchId
from tests.support.ids import as_epoch_id

JsonObject = dict[str, Any]

EPOCH_KEY: Final = EpochKey(bytes(range(32)))
WRITERS_SECRET: Final = WritersSecret(bytes(range(32, 64)))
USER_SEED: Final = UserSeed(bytes(range(64, 96)))
REPO_SEED: Final = RepoSeed(bytes(range(96, 128)))
INVITATION_SEED: Final = InvitationSeed(bytes(range(128, 160)))
BRANCH_ID: Final = BranchId(bytes(range(160, 192)))
EPOCH: Final = as_epoch_id(bytes(range(192, 224)))
NONCE: Final = bytes(range(24))
MEMBER_SEED: Final = UserSeed(bytes(range(224, 256)))
MEMBER: Final = signing.public_key(MEMBER_SEED)
USER, USER_SECRET = signing.key_pair(USER_SEED)
REPO_ID: Final = signing.public_key(REPO_SEED)
CONVERGENCE: Final = hashing.convergence_secret(EPOCH_KEY)
READ_KEY: Final = hashing.epoch_read_key(EPOCH_KEY)
MARK: Final = epoch_mark(EPOCH_KEY, REPO_ID)
TOPIC_SEED: Final = hashing.epoch_topic_seed(EPOCH_KEY, REPO_ID)
WRITERS_SEED: Final = hashing.writers_topic_seed(WRITERS_SECRET, REPO_ID, MARK)
STATEMENT: Final = EpochStatement(
    MARK,
    writers_mark(WRITERS_SECRET, REPO_ID),
    seal_topic(EPOCH_KEY, REPO_ID, MARK, signing.public_key(WRITERS_SEED), NONCE),
)
YJS_UPDATE: Final = bytes.fromhex("0101010004010474657874") + b"\x05hello\x00"
"""The word "hello" by the client 1 in the root "text", as pycrdt 0.14 writes it."""
