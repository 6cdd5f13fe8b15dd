"""Defines every hash context string and key derivation. Changing one changes every id or key made with it.

A context string names what is derived from what. A new meaning gets a new string, never an
old one. What is taken and given has the types of `protocol.ids` and
`protocol.crypto.keys`.

BLAKE3's three modes (plain, keyed, derive_key) are domain separated from each other by its specification.
"""

from base64 import b32encode
from collections.abc import Iterable
from typing import Final

from blake3 import blake3

from protocol.crypto.keys import (
    AccountToken,
    AgreementSecret,
    BlockKey,
    BranchSecret,
    CipherKey,
    ConvergenceSecret,
    EpochKey,
    HashKey,
    ReadKey,
    StoreKey,
    TopicSeed,
    WritersSecret,
)
from protocol.ids import (
    AnnouncedTopic,
    BlindTopic,
    BlockId,
    BranchId,
    BranchMark,
    CircuitAddress,
    CommitId,
    Digest,
    ItemId,
    Mark,
    PeerId,
    RepoId,
    SessionId,
    TopicKey,
    UserId,
)
from protocol.limits.peers import EARLIER_FINGERPRINT_SIZE

_CONTEXT: Final = "ravel 2026-11 "
_CONVERGENCE: Final = _CONTEXT + "epoch key to convergence secret v1"
_EPOCH_READ_KEY: Final = _CONTEXT + "epoch key to epoch read key v1"
_EPOCH_CIPHER_KEY: Final = _CONTEXT + "epoch key to epoch cipher key v1"
_EPOCH_TOPIC_SEED: Final = _CONTEXT + "epoch key and repo to epoch topic seed v1"
_EPOCH_SEALING_KEY: Final = _CONTEXT + "epoch key and repo to sealing key v1"
_WRITERS_SEALING_KEY: Final = _CONTEXT + "writers secret and repo to sealing key v1"
_WRITERS_TOPIC_SEED: Final = _CONTEXT + "writers secret, repo and mark to writers topic seed v1"
_BOX_PAD: Final = _CONTEXT + "shared point, mark and user to box v1"
BRANCH_SECRET: Final = _CONTEXT + "epoch key and branch to branch secret v1"
_BRANCH_READ_KEY: Final = _CONTEXT + "branch secret to branch read key v1"
BRANCH_MARK: Final = _CONTEXT + "branch secret to branch mark v1"
_LINK_TOPIC_SEED: Final = _CONTEXT + "writers secret and branch to link topic seed v1"
_WAIT_MARK: Final = _CONTEXT + "awaited to wait mark v1"
COMMIT_SIGNED: Final = _CONTEXT + "commit signature v1"
_REPO_SIGNED: Final = _CONTEXT + "repo certificate signature v1"
PUBLICATION_SIGNED: Final = _CONTEXT + "publication signature v1"
_FILE_DEPOSIT_SIGNED: Final = _CONTEXT + "file deposit signature v1"
_INVITATION_SIGNED: Final = _CONTEXT + "invitation proof signature v1"
_RECOVERY_SIGNED: Final = _CONTEXT + "recovery grant signature v1"
_DEVICE_SIGNED: Final = _CONTEXT + "device statement signature v1"
_DEVICE_END_SIGNED: Final = _CONTEXT + "device end signature v1"
_REQUEST_CODE: Final = _CONTEXT + "join request to short code v1"
_TOPIC_BLIND: Final = _CONTEXT + "topic and session to blinded topic v1"
_TOPIC_ANNOUNCED: Final = _CONTEXT + "topic, session and side to announced topic v1"
_LAN_MARK: Final = _CONTEXT + "salt and node key to mark on the local network v1"
_CIRCUIT_ADDRESS: Final = _CONTEXT + "relay and node to circuit address v1"
_SYMBOL_KEY: Final = _CONTEXT + "topic to symbol key v1"
_RANGE_KEY: Final = _CONTEXT + "topic and session to range key v1"
_SET_LANES: Final = _CONTEXT + "commit id to set lanes v1"
_SET_DIGEST: Final = _CONTEXT + "set lanes to set digest v1"
_EARLIER: Final = _CONTEXT + "topics and set digests to earlier digest v1"
_MEMBERS: Final = _CONTEXT + "repo and statement to members digest v1"
_VOUCHER_SIGNED: Final = _CONTEXT + "link voucher signature v1"
_STORE_MARK: Final = _CONTEXT + "store key to store mark v1"
_STORE_MASK_KEY: Final = _CONTEXT + "store key to mask key v1"
_STORE_BOX_KEY: Final = _CONTEXT + "store key to box key v1"
_STORE_NONCE_KEY: Final = _CONTEXT + "store key to nonce key v1"
_MEMBERSHIP_SNAPSHOT: Final = _CONTEXT + "membership snapshot to digest v1"
_PRESENCE_KEY: Final = _CONTEXT + "epoch read key to presence key v1"
_PRESENCE_SIGNED: Final = _CONTEXT + "presence signature v1"
_ACCOUNT_MARK: Final = _CONTEXT + "account token to account mark v1"
_TEXT_CLIENTS: Final = _CONTEXT + "user and branch to Yjs client ids v1"
_LINK_CHECKSUM: Final = _CONTEXT + "link checksum v1"


def block_id(encoded: bytes) -> BlockId:
    """Id of a block: plain BLAKE3 of its encoding."""
    return BlockId(blake3(encoded).digest())


def block_key(convergence_secret: ConvergenceSecret, plaintext: bytes) -> BlockKey:
    """Key of a block: keyed BLAKE3 of its plaintext, so that equal plaintexts share a block inside one epoch only."""
    return BlockKey(blake3(plaintext, key=convergence_secret).digest())


def convergence_secret(key: EpochKey) -> ConvergenceSecret:
    """Derive the convergence secret of an epoch. Its holders can confirm guesses about content; it opens nothing."""
    return ConvergenceSecret(_derive(_CONVERGENCE, key))


def epoch_read_key(key: EpochKey) -> ReadKey:
    """Derive the key under which the keys of commits travel sealed on an epoch's two topics."""
    return ReadKey(_derive(_EPOCH_READ_KEY, key))


def epoch_cipher_key(key: EpochKey) -> CipherKey:
    """Derive the key under which an init states the writers' topic and the keys of earlier epochs."""
    return CipherKey(_derive(_EPOCH_CIPHER_KEY, key))


def epoch_topic_seed(key: EpochKey, repo_id: RepoId) -> TopicSeed:
    """Derive the Ed25519 seed of an epoch's topic: all who hold the key publish there, readers too."""
    return TopicSeed(_derive(_EPOCH_TOPIC_SEED, key + repo_id))


def epoch_sealing_key(key: EpochKey, repo_id: RepoId) -> AgreementSecret:
    """Derive the X25519 key with which an epoch's boxes are made. Its public key is the epoch's mark."""
    return AgreementSecret(_derive(_EPOCH_SEALING_KEY, key + repo_id))


def writers_sealing_key(secret: WritersSecret, repo_id: RepoId) -> AgreementSecret:
    """Derive the X25519 key with which the writers' boxes of an epoch are made."""
    return AgreementSecret(_derive(_WRITERS_SEALING_KEY, secret + repo_id))


def writers_topic_seed(secret: WritersSecret, repo_id: RepoId, mark: Mark) -> TopicSeed:
    """Derive the Ed25519 seed of the writers' topic of the epoch that has this mark."""
    return TopicSeed(_derive(_WRITERS_TOPIC_SEED, secret + repo_id + mark))


def box_pad(shared: bytes, mark: Mark, user: UserId) -> bytes:
    """Derive the 32 bytes that hide a secret from all but a user, from the point that the user shares with the mark."""
    return _derive(_BOX_PAD, shared + mark + user)


def branch_secret(key: EpochKey, branch_id: BranchId) -> BranchSecret:
    """Derive the secret of one branch in one epoch, which followers of a single branch get."""
    return BranchSecret(_derive(BRANCH_SECRET, key + branch_id))


def branch_read_key(secret: BranchSecret) -> ReadKey:
    """Derive the key under which the keys of a branch's commits travel sealed on its link topic."""
    return ReadKey(_derive(_BRANCH_READ_KEY, secret))


def branch_mark(secret: BranchSecret) -> BranchMark:
    """Derive the mark of a branch in one epoch. Only who can derive it knows which branch it names."""
    return BranchMark(_derive(BRANCH_MARK, secret)[:8])


def link_topic_seed(secret: WritersSecret, branch_id: BranchId) -> TopicSeed:
    """Derive the Ed25519 seed of the topic on which followers of one branch find it in an epoch."""
    return TopicSeed(_derive(_LINK_TOPIC_SEED, secret + branch_id))


def commit_key_pad(read_key: ReadKey, topic: TopicKey, commit_id: CommitId) -> bytes:
    """Compute the 32 bytes that hide a commit's key on one topic. No other key is ever hidden by them."""
    return blake3(topic + commit_id, key=read_key).digest()


def wait_mark(what: bytes, commit_id: CommitId) -> Mark:
    """Compute the stored mark of something that a commit waits for and that is no commit."""
    return Mark(_derive(_WAIT_MARK, what + commit_id))


def commit_digest(encoded: bytes) -> Digest:
    """Return what a commit's author signs."""
    return Digest(_derive(COMMIT_SIGNED, encoded))


def repo_digest(encoded: bytes) -> Digest:
    """Return what the repo's key signs, once."""
    return Digest(_derive(_REPO_SIGNED, encoded))


def publication_digest(encoded: bytes) -> Digest:
    """Return what the topic's key signs."""
    return Digest(_derive(PUBLICATION_SIGNED, encoded))


def file_deposit_digest(encoded: bytes) -> Digest:
    """Return what the topic's key signs so that a relay keeps a file."""
    return Digest(_derive(_FILE_DEPOSIT_SIGNED, encoded))


def invitation_digest(encoded: bytes) -> Digest:
    """Return what an invitation's key signs to admit one user."""
    return Digest(_derive(_INVITATION_SIGNED, encoded))


def recovery_digest(encoded: bytes) -> Digest:
    """Return what recovery friends sign to grant a device in a member's place."""
    return Digest(_derive(_RECOVERY_SIGNED, encoded))


def device_digest(encoded: bytes) -> Digest:
    """Return what a person's first device and another sign to be shown as one person."""
    return Digest(_derive(_DEVICE_SIGNED, encoded))


def device_end_digest(encoded: bytes) -> Digest:
    """Return the digest that the person or the device signs to end their bond."""
    return Digest(_derive(_DEVICE_END_SIGNED, encoded))


def request_digest(encoded: bytes) -> Digest:
    """Return what the short code of a request to join is made of: `encoded` is [lobby, repo, user, request]."""
    return Digest(_derive(_REQUEST_CODE, encoded))


def blind_topic(topic: TopicKey, session_id: SessionId) -> BlindTopic:
    """Return how a topic is called on one connection: recognised by those who know it, meaningless to all others."""
    return BlindTopic(_derive(_TOPIC_BLIND, session_id + topic))


def announced_topic(topic: TopicKey, session_id: SessionId, *, by_dialer: bool) -> AnnouncedTopic:
    """Return how a side announces a topic on one connection. Who has heard the other's cannot make its own from it."""
    return AnnouncedTopic(_derive(_TOPIC_ANNOUNCED, session_id + (b"\1" if by_dialer else b"\0") + topic))


def lan_mark(salt: bytes, node_key: PeerId) -> Mark:
    """Return how a node is announced on its local network: recognised by those who know its key, another with each salt."""
    return Mark(_derive(_LAN_MARK, salt + node_key))


def circuit_address(relay: PeerId, node_key: PeerId) -> CircuitAddress:
    """Return how a node is called at a relay: recognised by those who know its key, another at each relay."""
    return CircuitAddress(_derive(_CIRCUIT_ADDRESS, relay + node_key))


def presence_key(read_key: ReadKey) -> CipherKey:
    """Derive the key that seals presences of an epoch: open texts and cursors of members."""
    return CipherKey(_derive(_PRESENCE_KEY, read_key))


def presence_digest(encoded: bytes) -> Digest:
    """Return what a user signs to say so."""
    return Digest(_derive(_PRESENCE_SIGNED, encoded))


def text_clients(user: UserId, branch_id: BranchId) -> int:
    """Return the 40 bits that all Yjs client ids of a user in a branch's text begin with."""
    return int.from_bytes(_derive(_TEXT_CLIENTS, user + branch_id)[:5], "little")


def symbol_key(topic: TopicKey) -> HashKey:
    """Return the key of a topic's coded symbols. It depends on the topic alone, so a prefix can be kept."""
    return HashKey(_derive(_SYMBOL_KEY, topic))


def symbol_bits(key: HashKey, material: bytes) -> bytes:
    """64 bytes for one short id: the check that its symbols carry, and the draws that choose them."""
    return blake3(material, key=key).digest(64)


def range_key(topic: TopicKey, session_id: SessionId) -> HashKey:
    """Return the key of range fingerprints in one session: nobody knows it when ids are made."""
    return HashKey(_derive(_RANGE_KEY, session_id + topic))


def range_fingerprint(key: HashKey, ids: Iterable[ItemId]) -> bytes:
    """16 bytes that stand for these ids in this order."""
    return blake3(b"".join(ids), key=key).digest(16)


def set_lanes(commit_id: ItemId) -> bytes:
    """Return what one commit adds to the lanes of a set digest: 2048 bytes."""
    return blake3(commit_id, derive_key_context=_SET_LANES).digest(2048)


def set_digest(lanes: bytes) -> Digest:
    """Return the digest of a set, from its lanes."""
    return Digest(_derive(_SET_DIGEST, lanes))


def earlier_fingerprint(sets: Iterable[tuple[TopicKey, Digest]]) -> bytes:
    """Return the fingerprint of sets on several topics, in any order."""
    whole = _derive(_EARLIER, b"".join(topic + digest for topic, digest in sorted(sets)))
    return whole[:EARLIER_FINGERPRINT_SIZE]


def members_digest(repo_id: RepoId, statement: bytes) -> Digest:
    """Return what a membership checkpoint signs, from the encoded statement of its past."""
    return Digest(_derive(_MEMBERS, repo_id + statement))


def voucher_digest(encoded: bytes) -> Digest:
    """Return what the maker of a link signs of the newest posts, from the encoded repo, invitation and statement."""
    return Digest(_derive(_VOUCHER_SIGNED, encoded))


def account_mark(token: AccountToken) -> Mark:
    """Return what a relay keeps of an account's link: a reader of its store cannot use the link."""
    return Mark(_derive(_ACCOUNT_MARK, token))


def link_checksum(payload: bytes) -> bytes:
    """Five bytes that detect a mistyped link (one wrong link in 2**40 passes)."""
    return _derive(_LINK_CHECKSUM, payload)[:5]


def store_mark(store_key: StoreKey) -> Mark:
    """Return what tells whether a store was sealed with a key, and opens nothing."""
    return Mark(_derive(_STORE_MARK, store_key))


def store_mask_key(store_key: StoreKey) -> HashKey:
    """Return the key of the masks over 32-byte keys in a store."""
    return HashKey(_derive(_STORE_MASK_KEY, store_key))


def store_box_key(store_key: StoreKey) -> CipherKey:
    """Return the key of the boxes in a store."""
    return CipherKey(_derive(_STORE_BOX_KEY, store_key))


def store_nonce_key(store_key: StoreKey) -> HashKey:
    """Return the key from which nonces of a store's boxes are made."""
    return HashKey(_derive(_STORE_NONCE_KEY, store_key))


def snapshot_digest(content: bytes) -> Digest:
    """Return what tells that a membership's snapshot was changed, in a store without a key too."""
    return Digest(_derive(_MEMBERSHIP_SNAPSHOT, content))


def mask(key: HashKey, place: bytes) -> bytes:
    """Derive the 32 bytes that mask a key at its place in the store. No place ever keeps two keys."""
    return blake3(place, key=key).digest()


def box_nonce(key: HashKey, place: bytes, plaintext: bytes) -> bytes:
    """Return 24 bytes, different for every place and plaintext: equal ones have equal boxes, which reveal nothing else."""
    return blake3(len(place).to_bytes(4, "little") + place + plaintext, key=key).digest(24)


def search_part_key(key: HashKey, part_num: int) -> HashKey:
    """Return the key of the words in one part of a search index: equal words of two parts have different hashes."""
    return HashKey(blake3(part_num.to_bytes(8, "little", signed=True), key=key).digest())


def search_word(part_key: HashKey, word: str) -> int:
    """Return what stands for a word in a part of a search index: 48 bits, so that few of a part's words share one."""
    return int.from_bytes(blake3(word.encode(), key=part_key).digest(6), "little")


def value_name(content: bytes) -> str:
    """Return a name by which a long value of a JSON document is told from others: 80 bits in base32."""
    return b32encode(blake3(content).digest(length=10)).decode().lower()


def timeline_digest() -> blake3:
    """Return a hasher that takes the commit ids of a timeline in order."""
    return blake3()


def bundle_digest() -> blake3:
    """Return a hasher that takes the bytes of a bundle in order."""
    return blake3()


def _derive(context: str, material: bytes) -> bytes:
    return blake3(material, derive_key_context=context).digest()
