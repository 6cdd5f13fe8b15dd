"""Writes the vectors from the code as it is: `make vectors` runs it and must leave git clean.

A vector that changes is a format that changed: then the version in the tag changes too, and the old file stays. All
inputs are fixed; nothing is random.
"""

import json
from pathlib import Path
from typing import Any

from protocol import hashing, signing
from protocol.block import Block, Reference, decrypt_block
from protocol.body import (
    Adopt,
    Answer,
    Approve,
    Body,
    BranchAdd,
    BranchEdit,
    BranchFork,
    BranchRenew,
    BranchRoot,
    Carried,
    Checkpoint,
    FeedEnd,
    Grant,
    Hide,
    Invite,
    Join,
    Merge,
    Offer,
    Permission,
    ProposeCheckpoint,
    ProposeRemoval,
    Quorum,
    Remove,
    RepoInit,
    Revoke,
    Tag,
    encode_body,
)
from protocol.codec import encode
from protocol.commit import Commit, Content, HeaderKeys, Links, TanglePlace, create_commit, lipmaa
from protocol.content import Compaction, FileEntry, Files, Imported, Post
from protocol.declared_kind import declare_kind
from protocol.deposits import sign_deposit
from protocol.devices import Device, DeviceEnd, DevicesRepo, HandOn
from protocol.document_kinds import (
    DictEdit,
    DictEntry,
    DictSnapshot,
    SaidUpdate,
    SetEdit,
    SetSnapshot,
    SnapshotEntries,
    SnapshotItems,
    TextSnapshot,
    TextUpdate,
)
from protocol.epochs import BranchTopic, EarlierEpoch, EpochAdd, EpochBox, EpochHistory, EpochInit
from protocol.ids import (
    AnyId,
    BlockId,
    BranchId,
    CircuitAddress,
    CommitId,
    Digest,
    ObjectId,
    PeerId,
    RepoId,
    SessionId,
    ShortId,
    TopicKey,
    UserId,
)
from protocol.keys import (
    AccountToken,
    BlockKey,
    GivenKey,
    InvitationSeed,
    ReadSecret,
    RepoSeed,
    UserSeed,
    WriteSecret,
)
from protocol.limits.formats import LEAF_SIZE
from protocol.links import (
    RENEWAL_NOTE,
    AskLink,
    BranchCapability,
    BranchChannel,
    DeviceLink,
    InvitationLink,
    PeerAddress,
    ReadCapability,
    ask_link_text,
    branch_capability_text,
    capability_text,
    device_link_text,
    invitation_text,
)
from protocol.lobbies import Admission, Lobby, LobbyAdd, LobbyAnswer, code_numbers, encode_note
from protocol.messages import (
    AccountJoined,
    Announce,
    Blocks,
    CircuitClose,
    CircuitCredit,
    CircuitData,
    CircuitOpen,
    Circuits,
    Deposit,
    DepositFiles,
    Features,
    Fetch,
    FileDeposit,
    FoundBodies,
    Goodbye,
    Introduce,
    Introductions,
    JoinAccount,
    KeepAlive,
    ListedFiles,
    ListFiles,
    Meet,
    Message,
    Nodes,
    PresenceSaid,
    Publications,
    PunchAddresses,
    PunchNow,
    Receipt,
    Reconcile,
    Refused,
    Relay,
    Seen,
    SettledFiles,
    Summary,
    Want,
    WantBodies,
    encode_message,
)
from protocol.object import build_object
from protocol.profiles import Profile
from protocol.proofs import certify_repo, device_digest, device_end_digest, prove_invitation
from protocol.publication import Publication, create_publication, encode_bare, encode_publication
from protocol.sealing import seal_secret
from protocol.text import id_text
from tests.support.ids import as_commit_id, as_epoch_id, as_object_id
from tests.vectors.conversations import comparisons, handshake, reconciliation
from tests.vectors.defects import refused
from tests.vectors.newer_messages import newer_messages
from tests.vectors.person_names import person_names
from tests.vectors.repo_histories import checkpoint_order, epoch_change, root_commit
from tests.vectors.syncs import syncs
from tests.vectors.text_cases import texts

FOLDER = Path(__file__).parent
# "hello" by the client 1 in the root "text", as pycrdt 0.14 writes it.
YJS_UPDATE = bytes.fromhex("0101010004010474657874") + b"\x05hello\x00"
JsonObject = dict[str, Any]
SIZE_SPELT_OUT = 300
"""Bytes up to which an object's plaintext and blocks stand in the vectors whole."""

READ_SECRET = ReadSecret(bytes(range(32)))
WRITE_SECRET = WriteSecret(bytes(range(32, 64)))
USER_SEED = UserSeed(bytes(range(64, 96)))
REPO_SEED = RepoSeed(bytes(range(96, 128)))
INVITATION_SEED = InvitationSeed(bytes(range(128, 160)))
BRANCH_ID = BranchId(bytes(range(160, 192)))
EPOCH = as_epoch_id(bytes(range(192, 224)))
NONCE = bytes(range(24))
MEMBER_SEED = UserSeed(bytes(range(224, 256)))
MEMBER = signing.public_key(MEMBER_SEED)
USER, USER_SECRET = signing.key_pair(USER_SEED)
REPO_ID = signing.public_key(REPO_SEED)
CONVERGENCE = hashing.convergence_secret(READ_SECRET)


def derivations() -> JsonObject:
    """Every derivation of `protocol.hashing`."""
    secret = hashing.branch_secret(READ_SECRET, BRANCH_ID, 1)
    return {
        "read_secret": READ_SECRET.hex(),
        "write_secret": WRITE_SECRET.hex(),
        "repo_id": REPO_ID.hex(),
        "branch_id": BRANCH_ID.hex(),
        "generation": 1,
        "session_id": EPOCH.hex(),
        "epoch_read_secret": hashing.epoch_read_secret(WRITE_SECRET).hex(),
        "convergence_secret": CONVERGENCE.hex(),
        "branch_secret": secret.hex(),
        "branch_read_key": hashing.branch_read_key(secret).hex(),
        "root_topic_seed": hashing.root_topic_seed(READ_SECRET, REPO_ID).hex(),
        "branch_topic_seed": hashing.branch_topic_seed(WRITE_SECRET, BRANCH_ID, 1).hex(),
        "branch_id_mark": hashing.epoch_mark(TopicKey(BRANCH_ID)).hex(),
        "blinded_branch_id": hashing.blind_topic(TopicKey(BRANCH_ID), SessionId(EPOCH)).hex(),
        "branch_id_announced_by_dialer": hashing.announced_topic(
            TopicKey(BRANCH_ID), SessionId(EPOCH), by_dialer=True
        ).hex(),
        "branch_id_announced_by_acceptor": hashing.announced_topic(
            TopicKey(BRANCH_ID), SessionId(EPOCH), by_dialer=False
        ).hex(),
        "circuit_address_of_branch_id_at_repo_id": hashing.circuit_address(
            PeerId(REPO_ID), PeerId(BRANCH_ID)
        ).hex(),
        "branch_id_text": id_text(BRANCH_ID),
        "text_clients_of_repo_id_in_branch_id": hashing.text_clients(UserId(REPO_ID), BRANCH_ID),
    }


def objects() -> list[JsonObject]:
    """Objects of telling sizes."""
    return [_object(size) for size in (0, 1, 300, LEAF_SIZE, LEAF_SIZE + 1, 2 * LEAF_SIZE + 5)]


def _object(size: int) -> JsonObject:
    plaintext = (bytes(range(251)) * (size // 251 + 1))[:size]
    reference, blocks = build_object(plaintext, CONVERGENCE)
    case: JsonObject = {
        "size": size,
        "plaintext": plaintext.hex() if size <= SIZE_SPELT_OUT else "byte number i is i mod 251",
        "plaintext_hash": hashing.block_id(plaintext).hex(),
        "convergence_secret": CONVERGENCE.hex(),
        "object_id": reference.object_id.hex(),
        "key": reference.key.hex(),
        "block_ids": [block.block_id.hex() for block in blocks],
    }
    if size <= SIZE_SPELT_OUT:
        case["blocks"] = [block.encoded.hex() for block in blocks]
    elif len(blocks) > 1:  # the keys of its leaves, one after another, are what the root carries
        case["root_block"] = blocks[-1].encoded.hex()
        case["root_plaintext"] = decrypt_block(blocks[-1], reference.key, CONVERGENCE).hex()
    return case


def bodies() -> list[JsonObject]:
    """One body of each kind."""
    owners, since = (USER,), 1_790_000_000_000
    paired = device_digest(REPO_ID, USER, MEMBER, since)
    member_secret = signing.key_pair(MEMBER_SEED)[1]
    reference = Reference(ObjectId(EPOCH), BlockKey(BRANCH_ID))
    made: dict[str, Body] = {
        "init": RepoInit("demo", owners, certify_repo(REPO_SEED, "demo", owners)),
        "branch-add": BranchAdd(BRANCH_ID, "main", 0, TopicKey(EPOCH), reference),
        "branch-root": BranchRoot(),
        "invite": Invite(signing.public_key(INVITATION_SEED), Permission.WRITE, 1, 1_900_000_000_000),
        "join": Join(EPOCH, prove_invitation(INVITATION_SEED, REPO_ID, USER)),
        "grant": Grant(MEMBER, Permission.WRITE, _seal(WRITE_SECRET)),
        "remove": Remove(MEMBER, None, (FeedEnd(BRANCH_ID, 3, EPOCH),)),
        "revoke": Revoke(EPOCH),
        "branch-renew": BranchRenew(BRANCH_ID, 1, TopicKey(EPOCH)),
        "branch-edit": BranchEdit(BRANCH_ID, None, True),  # as it stands in the encoding
        "tag": Tag("1.0", BRANCH_ID, EPOCH),
        "adopt": Adopt(BRANCH_ID, (EPOCH, as_commit_id(BRANCH_ID))),
        "hide": Hide(BRANCH_ID, (EPOCH, as_commit_id(BRANCH_ID)), hides=True),
        "epoch-init": EpochInit(
            (EPOCH,),
            hashing.epoch_mark(TopicKey(MEMBER)),
            (EpochBox(MEMBER, _seal(WRITE_SECRET)),),
        ),
        "epoch-add": EpochAdd(
            EPOCH,
            USER,
            hashing.epoch_mark(TopicKey(MEMBER)),
            (BranchTopic(BRANCH_ID, TopicKey(USER)),),
            (EpochBox(MEMBER, _seal(WRITE_SECRET)),),
        ),
        "epoch-history": EpochHistory((EarlierEpoch(EPOCH, USER, READ_SECRET),)),
        "offer": Offer(BRANCH_ID, True, "please", b"a link"),
        "answer": Answer(EPOCH, True),
        "quorum": Quorum(
            (UserId(BRANCH_ID), UserId(EPOCH)), 2, removals=True
        ),  # signers in ascending order (M13)
        "propose-checkpoint": ProposeCheckpoint(BRANCH_ID, (EPOCH, as_commit_id(REPO_ID))),
        "propose-removal": ProposeRemoval(MEMBER, Permission.READ),
        "approve": Approve(EPOCH),
        "checkpoint": Checkpoint(EPOCH),
        "fork": BranchFork(BRANCH_ID, (EPOCH,)),
        "carried": Carried(BRANCH_ID, EPOCH, MEMBER, 1_790_000_000_000, encode_body(Post("hello"))),
        "merge": Merge(BRANCH_ID, (EPOCH,)),
        "post": Post("Grüße"),
        "imported": Imported("59931ee9", "author-0000", -1_000, "before 1970"),
        "files": Files((FileEntry("notes.txt", 7), FileEntry("Fotos/Grüße.jpg", 2**40))),
        "set": SetEdit(("Äpfel", "pears"), ("plums",), (EPOCH, as_commit_id(BRANCH_ID))),
        "dict": DictEdit((DictEntry("colour", "grün"), DictEntry("size", "")), ("shape",), (EPOCH,)),
        "set-squeeze": SetSnapshot("", "Äpfel", (SnapshotItems(EPOCH, ("pears", "plums")),)),
        "dict-squeeze": DictSnapshot("b", None, (SnapshotEntries(EPOCH, (DictEntry("colour", "grün"),)),)),
        "compaction": Compaction((EPOCH,)),
        "text": TextUpdate(YJS_UPDATE, (EPOCH,)),
        "text-snapshot": TextSnapshot((SaidUpdate(EPOCH, YJS_UPDATE, (as_commit_id(BRANCH_ID),)),)),
        "devices": DevicesRepo(USER),
        "hand-on": HandOn(
            MEMBER,
            REPO_ID,
            reference,
            EPOCH,
            USER,
            _seal(READ_SECRET),
            since,
            signing.sign(USER_SECRET, paired),
        ),
        "device": Device(
            USER, MEMBER, since, signing.sign(USER_SECRET, paired), signing.sign(member_secret, paired)
        ),
        "device-end": DeviceEnd(
            USER,
            MEMBER,
            since,
            by_person=False,
            signature=signing.sign(member_secret, device_end_digest(REPO_ID, USER, MEMBER, since)),
        ),
        "profile": Profile("Zoë", 3),
        "lobby": Lobby(REPO_ID),
        "lobby-add": LobbyAdd(
            RepoId(BRANCH_ID), reference, EPOCH, EPOCH, 2, since, (EpochBox(MEMBER, _seal(WRITE_SECRET)),)
        ),
        "lobby-answer": LobbyAnswer(EPOCH, Admission(reference, EPOCH, USER, _seal(READ_SECRET))),
    }
    sealed = {"member_seed": MEMBER_SEED.hex(), "author": USER.hex(), "write_secret": WRITE_SECRET.hex()}
    return [
        {"kind": kind, "encoded": encode_body(body).hex()} | (sealed if kind == "grant" else {})
        for kind, body in made.items()
    ]


def _seal(secret: ReadSecret | WriteSecret) -> bytes:
    return seal_secret(USER_SECRET, MEMBER, REPO_ID, secret, NONCE)


def commits() -> JsonObject:
    """A commit with every header field, from its body to its publication."""
    reference, body_blocks = build_object(encode_body(Post("hello")), CONVERGENCE)
    ids = [bytes([number]) * 32 for number in range(1, 8)]
    links = Links(
        deps=(as_commit_id(ids[2]),),
        ndeps=(as_commit_id(ids[3]),),
        files=(as_object_id(ids[4]),),
        nfiles=(as_object_id(ids[5]),),
        lipmaa=as_commit_id(ids[6]),
    )
    keys = HeaderKeys(
        acks=(GivenKey(b"k" * 32), GivenKey(b"")), deps=(GivenKey(b""),), files=(GivenKey(b"f" * 32),)
    )
    place = TanglePlace("group", EPOCH, (EPOCH,))
    content = Content(
        USER,
        BRANCH_ID,
        EPOCH,
        4,
        as_commit_id(ids[0]),
        (place,),
        1_790_000_000_000,
        b"metadata",
        reference,
        keys,
    )
    commit, block = create_commit(
        (as_commit_id(ids[0]), as_commit_id(ids[1])), links, content, USER_SECRET, CONVERGENCE
    )
    publication = _publish(commit, (block, *body_blocks))
    return {
        "read_secret": READ_SECRET.hex(),
        "branch_id": BRANCH_ID.hex(),
        "generation": 0,
        "author": USER.hex(),
        "acks": [ids[0].hex(), ids[1].hex()],
        "text": "hello",
        "signed_digest": commit.digest.hex(),
        "commit_id": commit.commit_id.hex(),
        "commit_key": commit.key.hex(),
        "topic": publication.topic.hex(),
        "publication": _encoded(publication).hex(),
        "publication_id": publication.publication_id.hex(),
        "bare_publication": encode_bare(
            publication.topic,
            publication.sealed_key,
            block.encoded,
            reference.object_id,
            publication.signature,
        ).hex(),
    }


def declared_kinds() -> JsonObject:
    """The metadata of a commit that says its body's kind, by the body's tag."""
    made: tuple[Body, ...] = (
        Post(""),
        Imported("1", "", 0, ""),
        SetEdit((), (), ()),
        SetSnapshot("", None, ()),
        DictEdit((), (), ()),
        DictSnapshot("", None, ()),
        TextUpdate(b"u", ()),
    )
    return {str(type(body).__struct_config__.tag): declare_kind(body).hex() for body in made}


def files() -> JsonObject:
    """Files of a branch: a commit that adds two, and the next, which removes one of them and adds a third.

    The contents give the keys of what the headers name, so that a branch's secrets open all of it; the first ack and the
    negative dep are of no commit here. Plaintext byte i is i mod 251.
    """
    objects = [_object(size) for size in (7, 300, LEAF_SIZE + 1)]
    small, middle, large = (
        Reference(as_object_id(bytes.fromhex(made["object_id"])), BlockKey(bytes.fromhex(made["key"])))
        for made in objects
    )
    first, published = _file_commit(
        (as_commit_id(REPO_ID),),
        Links(files=(small.object_id, large.object_id)),
        HeaderKeys(acks=(GivenKey(b""),), files=(GivenKey(small.key), GivenKey(large.key))),
        Files((FileEntry("small.txt", 7), FileEntry("large.bin", LEAF_SIZE + 1))),
    )
    second, published_after = _file_commit(
        (first.commit_id,),
        Links((first.commit_id,), (EPOCH,), (middle.object_id,), (small.object_id,)),
        HeaderKeys((GivenKey(first.key),), (GivenKey(first.key),), (GivenKey(middle.key),)),
        Files((FileEntry("Grüße.txt", 300),)),
        feed_previous=first.commit_id,
    )
    return {
        "read_secret": READ_SECRET.hex(),
        "branch_id": BRANCH_ID.hex(),
        "generation": 0,
        "commit_ids": [first.commit_id.hex(), second.commit_id.hex()],
        "publications": [published.hex(), published_after.hex()],
        "there_after_both": ["large.bin", "Grüße.txt"],
        "objects": objects,
    }


def _file_commit(
    acks: tuple[CommitId, ...],
    header: Links,
    keys: HeaderKeys,
    body: Files,
    feed_previous: CommitId | None = None,
) -> tuple[Commit, bytes]:
    """A commit and its publication."""
    reference, body_blocks = build_object(encode_body(body), CONVERGENCE)
    sequence = 1 if feed_previous is None else 2
    place = TanglePlace("group", EPOCH, (EPOCH,))
    content = Content(
        USER, BRANCH_ID, EPOCH, sequence, feed_previous, (place,), 1_790_000_000_000, b"", reference, keys
    )
    commit, block = create_commit(acks, header, content, USER_SECRET, CONVERGENCE)
    return commit, _encoded(_publish(commit, (block, *body_blocks)))


def _publish(commit: Commit, blocks: tuple[Block, ...]) -> Publication:
    topic_seed = hashing.branch_topic_seed(WRITE_SECRET, BRANCH_ID, 0)
    read_key = hashing.branch_read_key(hashing.branch_secret(READ_SECRET, BRANCH_ID, 0))
    return create_publication(topic_seed, read_key, commit.key, blocks, NONCE)


def _encoded(publication: Publication) -> bytes:
    blocks = tuple(block.encoded for block in publication.blocks)
    return encode_publication(publication.topic, publication.sealed_key, blocks, publication.signature)


def _file_deposit() -> FileDeposit:
    return sign_deposit(hashing.branch_topic_seed(WRITE_SECRET, BRANCH_ID, 0), ObjectId(EPOCH), 1_048_832)


def messages() -> list[JsonObject]:
    """One message of each kind."""
    topic = hashing.blind_topic(TopicKey(BRANCH_ID), SessionId(EPOCH))
    made: list[Message] = [
        Features(("documents", "files")),
        Announce((hashing.announced_topic(TopicKey(BRANCH_ID), SessionId(EPOCH), by_dialer=True),)),
        Summary(topic, 0, (ShortId(EPOCH[:16]),), 300, Digest(BRANCH_ID)),
        Reconcile(topic, 0, b"a frame"),
        Publications(topic, (b"one", b"two")),
        Receipt(topic),
        Want(topic, (EPOCH,)),
        WantBodies(topic, (AnyId(EPOCH), AnyId(BRANCH_ID))),
        FoundBodies(topic, 1),
        Fetch(topic, (EPOCH, BlockId(BRANCH_ID))),
        Relay(),
        Deposit((TopicKey(BRANCH_ID), TopicKey(EPOCH))),
        JoinAccount(AccountToken(BRANCH_ID)),
        AccountJoined("", 5 << 30, 7),
        ListFiles(topic, ShortId(EPOCH[:16])),
        ListedFiles(topic, (ShortId(EPOCH[:16]),)),
        DepositFiles(topic, (_file_deposit(),)),
        SettledFiles(topic, (ShortId(EPOCH[:16]),), "topic_full"),
        Introductions(),
        Introduce(
            topic,
            (
                PeerAddress("192.0.2.7:7474", PeerId(BRANCH_ID)),
                PeerAddress("[2001:db8::7]:7474", PeerId(EPOCH)),
            ),
        ),
        Seen("198.51.100.7:50123"),
        PunchAddresses(("198.51.100.7:50123", "192.168.1.7:41000")),
        PunchNow(),
        Circuits(),
        CircuitOpen(7, CircuitAddress(BRANCH_ID)),
        CircuitData(7, b"bytes"),
        CircuitCredit(7, 262_144),
        CircuitClose(7, "not_here"),
        Meet(topic),
        Nodes(topic, (PeerId(BRANCH_ID), PeerId(EPOCH))),
        PresenceSaid(topic, b"a box"),
        Refused(topic, "topic_full"),
        Blocks(topic, (b"", b"a block")),
        KeepAlive(),
        Goodbye("idle"),
    ]
    return [
        {"tag": str(message.__struct_config__.tag), "encoded": encode_message(message).hex()}
        for message in made
    ]


def _invitation() -> InvitationLink:
    return InvitationLink(
        REPO_ID,
        Reference(ObjectId(EPOCH), BlockKey(BRANCH_ID)),
        EPOCH,
        USER,
        READ_SECRET,
        WRITE_SECRET,
        EPOCH,
        INVITATION_SEED,
        Permission.WRITE,
        1_900_000_000_000,
        (PeerAddress("127.0.0.1:7474", PeerId(USER)),),
    )


def links() -> JsonObject:
    """An invitation link."""
    link = _invitation()
    return {"encoded": encode(link).hex(), "text": invitation_text(link)}


def device_links() -> JsonObject:
    """A link for a device."""
    link = DeviceLink(USER, encode(_invitation()))
    return {"encoded": encode(link).hex(), "text": device_link_text(link)}


def ask_links() -> JsonObject:
    """A link that asks, what a request by it says, and the request's code."""
    link = AskLink(RepoId(BRANCH_ID), "Fotos", 2, encode(_invitation()))
    return {
        "encoded": encode(link).hex(),
        "text": ask_link_text(link),
        "name": "Zoë",
        "metadata": encode_note("Zoë").hex(),
        "renewal_metadata": RENEWAL_NOTE.hex(),
        "user": MEMBER.hex(),
        "request": EPOCH.hex(),
        "code_numbers": list(code_numbers(REPO_ID, RepoId(BRANCH_ID), MEMBER, EPOCH)),
    }


def capabilities() -> JsonObject:
    """A read capability, as a link."""
    capability = ReadCapability(
        REPO_ID,
        Reference(ObjectId(EPOCH), BlockKey(BRANCH_ID)),
        EPOCH,
        USER,
        READ_SECRET,
        (PeerAddress("[::1]:7474", PeerId(USER)),),
    )
    return {"encoded": encode(capability).hex(), "text": capability_text(capability)}


def branch_capabilities() -> JsonObject:
    """A branch's capability, as a link."""
    secret = hashing.branch_secret(READ_SECRET, BRANCH_ID, 1)
    channel = BranchChannel(EPOCH, TopicKey(MEMBER), secret, CONVERGENCE)
    peers = (PeerAddress("[::1]:7474", PeerId(USER)),)
    capability = BranchCapability(REPO_ID, EPOCH, BRANCH_ID, "main", (channel,), peers)
    return {"encoded": encode(capability).hex(), "text": branch_capability_text(capability)}


def skip_links() -> list[int]:
    """`lipmaa(1)` to `lipmaa(60)`."""
    return [lipmaa(sequence) for sequence in range(1, 61)]


FILES = {
    "derivations.json": derivations,
    "objects.json": objects,
    "bodies.json": bodies,
    "person_names.json": person_names,
    "commits.json": commits,
    "said_kinds.json": declared_kinds,
    "files.json": files,
    "messages.json": messages,
    "newer_messages.json": newer_messages,
    "links.json": links,
    "device_links.json": device_links,
    "ask_links.json": ask_links,
    "capabilities.json": capabilities,
    "branch_capabilities.json": branch_capabilities,
    "skip_links.json": skip_links,
    "reconciliation.json": reconciliation,
    "comparisons.json": comparisons,
    "handshake.json": handshake,
    "syncs.json": syncs,
    "root_commit.json": root_commit,
    "epoch_change.json": epoch_change,
    "checkpoint_order.json": checkpoint_order,
    "texts.json": texts,
    "refused.json": refused,
}


def render(name: str) -> str:
    """The text of one vector file."""
    return json.dumps(FILES[name](), indent=1, ensure_ascii=True) + "\n"


def main() -> None:
    """Write all files."""
    for name in FILES:
        (FOLDER / name).write_text(render(name), encoding="utf-8")


if __name__ == "__main__":
    main()
