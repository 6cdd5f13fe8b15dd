"""Writes the vectors from the code as it is: `make vectors` runs it and must leave git clean.

A vector that changes is a format that changed: then the version in the tag changes too, and the old file stays. All
inputs are fixed; nothing is random.
"""

import json
from pathlib import Path

from protocol.codec import encode
from protocol.crypto import hashing, signing
from protocol.crypto.keys import AccountToken, BlockKey, GivenKey
from protocol.formats.block import Block, Reference, decrypt_block
from protocol.formats.body import Body, Carried, Permission, encode_body, tag_of
from protocol.formats.commit import Commit, Content, Links, TanglePlace, create_commit, lipmaa
from protocol.formats.content import FileEntry, Files, Imported, Post
from protocol.formats.declared_kind import declare_kind
from protocol.formats.document_kinds import (
    DictEdit,
    DictSnapshot,
    JsonEdit,
    JsonSnapshot,
    SetEdit,
    SetSnapshot,
    TextUpdate,
)
from protocol.formats.epochs import GivenEpoch
from protocol.formats.links import (
    RENEWAL_NOTE,
    AskLink,
    BranchCapability,
    BranchChannel,
    DeviceLink,
    EarlierPosts,
    InvitationLink,
    NewestPosts,
    PeerAddress,
    ReadCapability,
    Voucher,
    ask_link_text,
    branch_capability_text,
    capability_text,
    device_link_text,
    invitation_text,
)
from protocol.formats.lobbies import code_numbers, encode_note
from protocol.formats.object import build_object
from protocol.formats.proofs import voucher_digest
from protocol.formats.publication import Publication, create_publication, encode_bare
from protocol.formats.text import id_text
from protocol.ids import (
    AnyId,
    BlockId,
    BranchMark,
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
from protocol.limits.formats import LEAF_SIZE
from protocol.session.deposits import sign_deposit
from protocol.session.messages import (
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
    Earlier,
    Features,
    Fetch,
    FileDeposit,
    FoundBodies,
    Goodbye,
    Introduce,
    Introductions,
    JoinAccount,
    KeepAlive,
    Keeps,
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
    WantWindow,
    Window,
    encode_message,
)
from tests.support.ids import as_commit_id, as_object_id
from tests.vectors.body_cases import bodies
from tests.vectors.box_cases import boxes
from tests.vectors.bundle_cases import bundle_vector
from tests.vectors.conversations import comparisons, handshake, reconciliation
from tests.vectors.defects import refused
from tests.vectors.fixed import (
    BRANCH_ID,
    CONVERGENCE,
    EPOCH,
    EPOCH_KEY,
    INVITATION_SEED,
    MARK,
    MEMBER,
    READ_KEY,
    REPO_ID,
    TOPIC_SEED,
    USER,
    USER_SECRET,
    WRITERS_SECRET,
    WRITERS_SEED,
    JsonObject,
)
from tests.vectors.newer_messages import newer_messages
from tests.vectors.person_names import person_names
from tests.vectors.repo_histories import checkpoint_order, epoch_change, root_commit
from tests.vectors.syncs import syncs
from tests.vectors.text_cases import texts
from tests.verdicts.histories import write_vectors

FOLDER = Path(__file__).parent
SIZE_SPELT_OUT = 300
"""Bytes up to which an object's plaintext and blocks stand in the vectors whole."""


def derivations() -> JsonObject:
    """Every derivation of `protocol.crypto.hashing` that a format rests on, but for boxes and reconciliation."""
    topic, session = TopicKey(BRANCH_ID), SessionId(EPOCH)
    own_topic = signing.public_key(TOPIC_SEED)
    secret = hashing.branch_secret(EPOCH_KEY, BRANCH_ID)
    link_seed = hashing.link_topic_seed(WRITERS_SECRET, BRANCH_ID)
    return {
        "epoch_key": EPOCH_KEY.hex(),
        "writers_secret": WRITERS_SECRET.hex(),
        "repo_id": REPO_ID.hex(),
        "branch_id": BRANCH_ID.hex(),
        "session_id": EPOCH.hex(),
        "convergence_secret": CONVERGENCE.hex(),
        "epoch_read_key": READ_KEY.hex(),
        "epoch_cipher_key": hashing.epoch_cipher_key(EPOCH_KEY).hex(),
        "epoch_topic_seed": TOPIC_SEED.hex(),
        "epoch_topic": own_topic.hex(),
        "mark": MARK.hex(),
        "writers_topic_seed": WRITERS_SEED.hex(),
        "writers_topic": signing.public_key(WRITERS_SEED).hex(),
        "branch_secret": secret.hex(),
        "branch_read_key": hashing.branch_read_key(secret).hex(),
        "branch_mark": hashing.branch_mark(secret).hex(),
        "link_topic_seed": link_seed.hex(),
        "link_topic": signing.public_key(link_seed).hex(),
        "key_pad_of_commit_branch_id_on_epoch_topic": hashing.commit_key_pad(
            READ_KEY, own_topic, as_commit_id(BRANCH_ID)
        ).hex(),
        "presence_key": hashing.presence_key(READ_KEY).hex(),
        "blinded_branch_id": hashing.blind_topic(topic, session).hex(),
        "branch_id_announced_by_dialer": hashing.announced_topic(topic, session, by_dialer=True).hex(),
        "branch_id_announced_by_acceptor": hashing.announced_topic(topic, session, by_dialer=False).hex(),
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


def commits() -> JsonObject:
    """A commit with every header field, from its body to its publications: on the writers' topic, and on the link topic."""
    reference, body_blocks = build_object(encode_body(Post("hello")), CONVERGENCE)
    ids = [bytes([number]) * 32 for number in range(1, 8)]
    links = Links(
        deps=(as_commit_id(ids[2]),),
        ndeps=(as_commit_id(ids[3]),),
        files=(as_object_id(ids[4]),),
        nfiles=(as_object_id(ids[5]),),
        lipmaa=as_commit_id(ids[6]),
    )
    content = Content(
        author=USER,
        branch=BRANCH_ID,
        epoch=EPOCH,
        by_writer=True,
        whole=True,
        feed_sequence=4,
        feed_previous=as_commit_id(ids[0]),
        tangles=(TanglePlace("group", EPOCH, (EPOCH,)),),
        timestamp=1_790_000_000_000,
        metadata=b"metadata",
        body=reference,
        file_keys=(GivenKey(b"f" * 32),),
    )
    secret = hashing.branch_secret(EPOCH_KEY, BRANCH_ID)
    mark = hashing.branch_mark(secret)
    acks = (as_commit_id(ids[0]), as_commit_id(ids[1]))
    commit, block = create_commit(acks, 7, mark, links, content, USER_SECRET, CONVERGENCE)
    blocks = (block, *body_blocks)
    publication = _publish(commit, blocks)
    link_seed = hashing.link_topic_seed(WRITERS_SECRET, BRANCH_ID)
    on_link_topic = create_publication(link_seed, hashing.branch_read_key(secret), commit.key, blocks)
    return {
        "epoch_key": EPOCH_KEY.hex(),
        "branch_id": BRANCH_ID.hex(),
        "author": USER.hex(),
        "acks": [ids[0].hex(), ids[1].hex()],
        "rank": 7,
        "mark": mark.hex(),
        "text": "hello",
        "signed_digest": commit.digest.hex(),
        "commit_id": commit.commit_id.hex(),
        "commit_key": commit.key.hex(),
        "topic": publication.topic.hex(),
        "publication": publication.encoded.hex(),
        "publication_id": publication.publication_id.hex(),
        "bare_publication": encode_bare(
            publication.topic,
            publication.hidden_key,
            block.encoded,
            reference.object_id,
            publication.signature,
        ).hex(),
        "link_topic": on_link_topic.topic.hex(),
        "publication_on_link_topic": on_link_topic.encoded.hex(),
    }


def declared_kinds() -> JsonObject:
    """The metadata of a commit that says its body's kind, by the body's tag; behind a space, the document's name."""
    made: tuple[Body, ...] = (
        Post(""),
        Imported("1", "", 0, ""),
        SetEdit((), (), ()),
        SetSnapshot("", None, ()),
        DictEdit((), (), ()),
        DictSnapshot("", None, ()),
        JsonEdit((), (), ()),
        JsonSnapshot("", None, ()),
        TextUpdate(b"u", ()),
    )
    said = {tag_of(type(body)): declare_kind(body).hex() for body in made}
    carried = Carried(BRANCH_ID, as_commit_id(BRANCH_ID), USER, 0, b"x")
    named: tuple[tuple[Body, str], ...] = (
        (SetEdit((), (), ()), "follows"),
        (carried, "notes/ä.b/..."),
        (made[-1], "x" * 128),
    )
    for body, name in named:
        said[f"{tag_of(type(body))} {name}"] = declare_kind(body, name).hex()
    return said


def files() -> JsonObject:
    """Files of a branch: a commit that adds two, the next, which removes one of them and adds a third, and a post of both.

    The contents give the keys of the files that the headers name. The first ack and the negative dep are of no commit here.
    Plaintext byte i is i mod 251.
    """
    objects = [_object(size) for size in (7, 300, LEAF_SIZE + 1)]
    small, middle, large = (
        Reference(as_object_id(bytes.fromhex(made["object_id"])), BlockKey(bytes.fromhex(made["key"])))
        for made in objects
    )
    first, published = _file_commit(
        (as_commit_id(REPO_ID),),
        Links(files=(small.object_id, large.object_id)),
        (GivenKey(small.key), GivenKey(large.key)),
        Files((FileEntry("small.txt", 7), FileEntry("large.bin", LEAF_SIZE + 1))),
    )
    second, published_after = _file_commit(
        (first.commit_id,),
        Links((first.commit_id,), (EPOCH,), (middle.object_id,), (small.object_id,)),
        (GivenKey(middle.key),),
        Files((FileEntry("Grüße.txt", 300),)),
        feed=(first,),
    )
    named = (first.commit_id, second.commit_id)
    text = Post("Beds and seeds")
    post, published_post = _file_commit((second.commit_id,), Links(), (), text, (first, second), named)
    return {
        "epoch_key": EPOCH_KEY.hex(),
        "branch_id": BRANCH_ID.hex(),
        "commit_ids": [first.commit_id.hex(), second.commit_id.hex()],
        "publications": [published.hex(), published_after.hex()],
        "there_after_both": ["large.bin", "Grüße.txt"],
        "post": {
            "publication": published_post.hex(),
            "commit_id": post.commit_id.hex(),
            "text": text.text,
            "attached": [commit_id.hex() for commit_id in named],
            "files": ["large.bin", "Grüße.txt"],
        },
        "objects": objects,
    }


def _file_commit(
    acks: tuple[CommitId, ...],
    header: Links,
    keys: tuple[GivenKey, ...],
    body: Files | Post,
    feed: tuple[Commit, ...] = (),
    named: tuple[CommitId, ...] = (),
) -> tuple[Commit, bytes]:
    """A commit behind those of its author's feed, and its publication. A post names commits that added its files."""
    group = TanglePlace("group", EPOCH, (EPOCH,))
    reference, body_blocks = build_object(encode_body(body), CONVERGENCE)
    content = Content(
        author=USER,
        branch=BRANCH_ID,
        epoch=EPOCH,
        by_writer=True,
        whole=True,
        feed_sequence=1 + len(feed),
        feed_previous=feed[-1].commit_id if feed else None,
        tangles=(TanglePlace("attach", named[0], named), group) if named else (group,),
        timestamp=1_790_000_000_000,
        metadata=declare_kind(body) if isinstance(body, Post) else b"",
        body=reference,
        file_keys=keys,
    )
    mark = hashing.branch_mark(hashing.branch_secret(EPOCH_KEY, BRANCH_ID))
    commit, block = create_commit(acks, 1 + len(feed), mark, header, content, USER_SECRET, CONVERGENCE)
    return commit, _publish(commit, (block, *body_blocks)).encoded


def _publish(commit: Commit, blocks: tuple[Block, ...]) -> Publication:
    return create_publication(WRITERS_SEED, READ_KEY, commit.key, blocks)


def _file_deposit() -> FileDeposit:
    return sign_deposit(WRITERS_SEED, ObjectId(EPOCH), 1_048_832)


def messages() -> list[JsonObject]:
    """One message of each kind."""
    topic = hashing.blind_topic(TopicKey(BRANCH_ID), SessionId(EPOCH))
    made: list[Message] = [
        Features(("documents", "files")),
        Announce((hashing.announced_topic(TopicKey(BRANCH_ID), SessionId(EPOCH), by_dialer=True),)),
        Summary(topic, 0, (ShortId(EPOCH[:16]),), 300, Digest(BRANCH_ID)),
        Earlier(topic, 2, bytes(BRANCH_ID)[:16]),
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
        WantWindow(topic, BranchMark(EPOCH[:8]), 1_000, is_upwards=False, count=200),
        Window(topic, BranchMark(EPOCH[:8]), (b"one", b"two"), is_last=False),
        Keeps(topic, is_all=False, marks=(BranchMark(EPOCH[:8]),), days=90),
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
    heads = (as_commit_id(BRANCH_ID),)
    earlier = EarlierPosts(GivenEpoch(EPOCH, EPOCH_KEY), TopicKey(BRANCH_ID))
    states = NewestPosts(
        USER, "Zoë", 1_700_000_000_000, TopicKey(EPOCH), earlier, BRANCH_ID, "main", 1_000, heads
    )
    return InvitationLink(
        REPO_ID,
        Reference(ObjectId(EPOCH), BlockKey(BRANCH_ID)),
        EPOCH,
        EPOCH_KEY,
        WRITERS_SECRET,
        EPOCH,
        INVITATION_SEED,
        Permission.WRITE,
        1_900_000_000_000,
        (PeerAddress("127.0.0.1:7474", PeerId(USER)),),
        Voucher(states, signing.sign(USER_SECRET, voucher_digest(REPO_ID, EPOCH, states))),
        "Garten",
        "Zoë",
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
        EPOCH_KEY,
        (PeerAddress("[::1]:7474", PeerId(USER)),),
        "Garten",
    )
    return {"encoded": encode(capability).hex(), "text": capability_text(capability)}


def branch_capabilities() -> JsonObject:
    """A branch's capability, as a link."""
    secret = hashing.branch_secret(EPOCH_KEY, BRANCH_ID)
    topic = signing.public_key(hashing.link_topic_seed(WRITERS_SECRET, BRANCH_ID))
    channel = BranchChannel(EPOCH, topic, secret, CONVERGENCE)
    peers = (PeerAddress("[::1]:7474", PeerId(USER)),)
    capability = BranchCapability(REPO_ID, EPOCH, BRANCH_ID, "main", (channel,), peers)
    return {"encoded": encode(capability).hex(), "text": branch_capability_text(capability)}


def bundles() -> JsonObject:
    """A bundle of the commit's publications on its two topics."""
    made = commits()
    return bundle_vector([bytes.fromhex(made[name]) for name in ("publication", "publication_on_link_topic")])


def skip_links() -> list[int]:
    """`lipmaa(1)` to `lipmaa(60)`."""
    return [lipmaa(sequence) for sequence in range(1, 61)]


FILES = {
    "derivations.json": derivations,
    "objects.json": objects,
    "bodies.json": bodies,
    "boxes.json": boxes,
    "person_names.json": person_names,
    "commits.json": commits,
    "said_kinds.json": declared_kinds,
    "files.json": files,
    "bundles.json": bundles,
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
    write_vectors()


if __name__ == "__main__":
    main()
