"""Fuzz targets for the protocol's decoders: blocks, commits, bodies, publications, messages, objects, texts, signatures.

See `targets` for what a target is.
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Final
from unittest import mock

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from node.ingest.publication_parsing import OpenedBatch, open_batch
from node.ingest.publication_reading import branch_mark_in
from protocol.codec import DecodeError, encode
from protocol.crypto.epoch_boxes import epoch_mark
from protocol.crypto.hashing import commit_digest, convergence_secret, link_checksum
from protocol.crypto.keys import BlockKey, EpochKey, TopicSeed, UserSeed
from protocol.crypto.signing import BadSignature, check_claims, key_pair, public_key, sign, verify_signature
from protocol.formats import object as object_module
from protocol.formats.block import Block, Reference, WrongKey, decode_block, encrypt_block
from protocol.formats.body import UnknownBody, decode_body, encode_body
from protocol.formats.bundle import BundleBatch, BundleDecoder, BundleEncoder, BundleEnd, BundleHead
from protocol.formats.commit import Content, Links, UnknownVersion, create_commit, open_commit
from protocol.formats.content import Post
from protocol.formats.epochs import NONCE_SIZE, EpochInit, EpochStatement, _seal, seal_topic
from protocol.formats.links import (
    ask_link_text,
    branch_capability_text,
    capability_text,
    device_link_text,
    invitation_text,
    parse_ask_link,
    parse_branch_capability,
    parse_capability,
    parse_device_link,
    parse_invitation,
)
from protocol.formats.object import MissingBlocks, ObjectReader, build_object, open_object
from protocol.formats.publication import (
    create_publication,
    decode_publication,
    encode_bare,
    encode_publication,
)
from protocol.formats.text import id_text, parse_id, parse_id_prefix
from protocol.formats.yjs_structs import WrittenStructs, cut_structs, encode_update, whole_runs
from protocol.formats.yjs_updates import BadUpdate, read_update
from protocol.ids import (
    AnyId,
    BlockId,
    BranchId,
    Digest,
    EpochId,
    Mark,
    ObjectId,
    RepoId,
    Signature,
    TopicKey,
    UserId,
    root_branch,
)
from protocol.session.messages import decode_message, encode_message
from storage.repos.epochs import Epoch, Topic
from tests.support.ids import as_commit_id, as_epoch_id

KEY: Final = EpochKey(bytes(range(200, 232)))
"""Of the epoch that commits are published in."""
CONVERGENCE: Final = convergence_secret(KEY)
LEAF_SIZE: Final = 4
"""Bytes of a leaf in the object's target: trees of several levels are then quick to build, of the same shapes."""
_CHILD_COUNT_MAX: Final = 3
_SIZE_MAX: Final = 64
_SEED: Final = bytes(range(32))
_ID: Final = b"\x11" * 32
_AUTHOR, _SECRET = key_pair(UserSeed(_SEED))
POST: Final = encode_body(Post("hello"))
_REPO: Final = RepoId(_ID)
_EPOCH: Final = Epoch(1, 1, _REPO, as_epoch_id(_ID), KEY, None, public_key(TopicSeed(_SEED)))
# A reader's: without the topic's seed, so that the topic's signature counts.
_TOPIC: Final = Topic(1, public_key(TopicSeed(_SEED)), 1, writers_of=(_EPOCH,))
_MARK: Final = branch_mark_in(KEY, BranchId(_ID))
_ROOT_MARK: Final = branch_mark_in(KEY, root_branch(_REPO))
_STARTED_KEY: Final = EpochKey(bytes(range(100, 132)))
"""Of an epoch that an init starts."""
_STATES: Final = EpochStatement(
    epoch_mark(_STARTED_KEY, _REPO),
    Mark(_ID),
    seal_topic(_STARTED_KEY, _REPO, epoch_mark(_STARTED_KEY, _REPO), TopicKey(_ID), bytes(NONCE_SIZE)),
)


def take_block(data: bytes) -> str:
    try:
        block = decode_block(data)
    except DecodeError as error:
        return str(error)
    assert encode(["block2", block.child_ids, block.acks, block.rank, block.mark, block.ciphertext]) == data
    return ""


def take_commit(data: bytes) -> str:
    """The first byte says how many acks the block has, the rest is the commit's plaintext."""
    acks = tuple(as_commit_id(bytes([number]) * 32) for number in range(1, 1 + sum(data[:1]) % 4))
    block, key = encrypt_block(data[1:], CONVERGENCE, acks=acks, rank=len(acks), mark=_MARK)
    try:
        commit = open_commit(block, key, CONVERGENCE)
    except (DecodeError, UnknownVersion) as error:
        return str(error) or "unknown version"
    assert encode(["commit2", commit.links, commit.content, commit.signature]) == data[1:]
    assert len(commit.digest) == 32
    return ""


def take_body(data: bytes) -> str:
    try:
        body = decode_body(data)
    except DecodeError as error:
        return str(error)
    assert isinstance(body, UnknownBody) or encode_body(body) == data
    return ""


def take_publication(data: bytes) -> str:
    try:
        made = decode_publication(data)
    except DecodeError as error:
        return str(error)
    blocks = tuple(block.encoded for block in made.blocks)
    assert data == (
        encode_publication(made.topic, made.hidden_key, blocks, made.signature)
        if made.body_id is None
        else encode_bare(made.topic, made.hidden_key, blocks[0], made.body_id, made.signature)
    )
    assert len(made.digest) == 32
    return ""


def take_message(data: bytes) -> str:
    try:
        message = decode_message(data)
    except DecodeError as error:
        return str(error)
    known = encode_message(message)
    assert known == data or (known[0] < data[0] and data.startswith(known[1:], 1)), (
        "but for fields that are new"
    )
    return ""


def take_bundle(data: bytes) -> str:
    """The records of a bundle, in two parts that end at the first byte's place; what is taken encodes again to it."""
    decoder, encoder, place = BundleDecoder(), BundleEncoder(), sum(data[:1])
    content, again = data[1:], b""
    try:
        for part in (content[:place], content[place:]):
            for record in decoder.feed(part):
                match record:
                    case BundleHead(since):
                        again += encoder.start(since)
                    case BundleBatch(topic, items):
                        again += encoder.encode_batch(topic, items)
                    case BundleEnd(count, left_out, stands_on):
                        again += encoder.encode_end(count, left_out, stands_on)
        decoder.finish()
    except DecodeError as error:
        return str(error)
    assert again == content
    return ""


def take_opening(data: bytes) -> str:
    """What a node makes of a publication: of any bytes, or of an honest one with this commit (c) or this body (b)."""
    kind, content = data[:1], data[1:]
    if kind == b"c":
        data = published(content, POST)
    elif kind == b"b":
        data = published(signed_commit(content), content)
    batch = open_batch(_TOPIC, [data])
    return _became(batch, data)


def _became(batch: OpenedBatch, data: bytes) -> str:
    """What became of one publication."""
    if batch.opened:
        assert batch.opened[0].publication.encoded == data
        return ""
    assert len(batch.rejected) + len(batch.waiting) + batch.dropped.total() == 1
    return " ".join(
        [*batch.dropped, *[f"{rejected.code} {rejected.detail}" for rejected in batch.rejected]]
        + [waiting.reason for waiting in batch.waiting]
    )


def take_start(data: bytes) -> str:
    """What a node makes of an init on the topic of the epoch that it starts (E6), by that epoch's key alone.

    It has these earlier epochs' keys (k), or this body.
    """
    kind, content = data[:1], data[1:]
    keys, key_blocks = build_object(sealed_keys(content if kind == b"k" else given_keys()), CONVERGENCE)
    boxes, box_blocks = build_object(_ID, CONVERGENCE)
    body = content if kind != b"k" else encode_body(EpochInit(_STATES, boxes, boxes, keys))
    reference, body_blocks = build_object(body, CONVERGENCE)
    commit, block = create_commit(
        (as_commit_id(_ID),),
        1,
        _ROOT_MARK,
        Links(),
        _content(reference, root_branch(_REPO)),
        _SECRET,
        CONVERGENCE,
    )
    started = replace(_EPOCH, epoch_id=EpochId(commit.commit_id), key=_STARTED_KEY)
    blocks = {one.block_id: one for one in (block, *body_blocks, *box_blocks, *key_blocks)}
    try:
        made = create_publication(
            started.keys.topic_seed, started.keys.read_key, commit.key, tuple(blocks.values())
        )
        batch = open_batch(Topic(2, started.topic, 1, (started,)), [made.encoded])
    except DecodeError as error:  # too much for one publication
        return str(error)
    return _became(batch, made.encoded)


def given_keys() -> bytes:
    """The key of the epoch that an init is published in, as the init gives it."""
    return encode([[[_EPOCH.epoch_id, KEY]]])


def sealed_keys(plaintext: bytes) -> bytes:
    """Any bytes where keys of earlier epochs are to stand in an init."""
    return _seal(_STARTED_KEY, b"keys" + _REPO + _STATES.mark, plaintext, bytes(NONCE_SIZE))


def take_invitation(data: bytes) -> str:
    """What stands in an invitation: the checksum is made to match."""
    return _take_link("ravel:invite:" + id_text(AnyId(data + link_checksum(b"invite" + data))))


def take_capability(data: bytes) -> str:
    """What stands in a read capability: the checksum is made to match."""
    return _take_link("ravel:read:" + id_text(AnyId(data + link_checksum(b"read" + data))))


def take_branch_capability(data: bytes) -> str:
    """What stands in a branch's capability: the checksum is made to match."""
    return _take_link("ravel:branch:" + id_text(AnyId(data + link_checksum(b"branch" + data))))


def take_device_link(data: bytes) -> str:
    """What stands in a link for a device: the checksum is made to match."""
    return _take_link("ravel:device:" + id_text(AnyId(data + link_checksum(b"device" + data))))


def take_ask_link(data: bytes) -> str:
    """What stands in a link that asks: the checksum is made to match."""
    return _take_link("ravel:ask:" + id_text(AnyId(data + link_checksum(b"ask" + data))))


def take_link(data: bytes) -> str:
    return _take_link(_argument(data))


def take_id(data: bytes) -> str:
    text = _argument(data)
    try:
        low, high = parse_id_prefix(text)
    except DecodeError as error:
        prefix_refusal = str(error)
    else:
        prefix_refusal = ""
        assert low <= high
        assert id_text(low).startswith(text)
        assert id_text(high).startswith(text)
    try:
        raw = parse_id(text)
    except DecodeError as error:
        return prefix_refusal and str(error)
    assert id_text(raw) == text
    assert not prefix_refusal
    assert (low, high) == (raw, raw)
    return ""


def take_object(data: bytes) -> str:
    """Instructions of one byte put a tree together: three bits say what, five how much."""
    with ExitStack() as stack:
        for name, value in (("LEAF_SIZE", LEAF_SIZE), ("INNER_CHILD_COUNT_MAX", _CHILD_COUNT_MAX)):
            stack.enter_context(mock.patch.object(object_module, name, value))
        reference, blocks = _tree(data)
        try:
            reader = ObjectReader(reference, blocks.get, CONVERGENCE)
            start, stop = sorted((sum(data) % (reader.size + 1), len(data) % (reader.size + 1)))
            # First, when nothing of the tree is known but its right edge.
            part = b"".join(reader.read(start, stop))
            plaintext = open_object(reference, blocks.get, CONVERGENCE, size_max=_SIZE_MAX)
        except (DecodeError, WrongKey, MissingBlocks) as error:
            return type(error).__name__ + (str(error) if isinstance(error, DecodeError) else "")
        assert build_object(plaintext, CONVERGENCE)[0] == reference, "only what the builder makes is taken"
        assert part == plaintext[start:stop]
    return ""


def take_signature(data: bytes) -> str:
    """A key, a signature and what is signed. What is taken, another library takes too."""
    key, signature, digest = UserId(data[:32]), Signature(data[32:96]), Digest(data[96:])
    try:
        verify_signature(key, digest, signature)
    except BadSignature as error:
        assert check_claims([(key, digest, signature)]) == [False]
        return str(error)
    assert check_claims([(key, digest, signature)]) == [True]
    Ed25519PublicKey.from_public_bytes(key).verify(signature, digest)
    return ""


def take_yjs_update(data: bytes) -> str:
    """An update of a text. What is taken is written again as it was, and cut anywhere it is taken too."""
    try:
        read = read_update(data)
    except BadUpdate as error:
        return str(error)
    whole: dict[int, list[WrittenStructs]] = {}
    for client, run in whole_runs(read):
        whole.setdefault(client, []).append(run)
    again = read_update(encode_update(whole, read.deletes))
    assert (sorted(again.runs()), again.deletes) == (sorted(read.runs()), read.deletes)
    for client, start, end in read.runs():
        middle = (start + end) // 2
        parts = [
            cut_structs(read, client, [span])
            for span in ((start, middle), (middle, end))
            if span[0] < span[1]
        ]
        said = read_update(encode_update({client: [one for part in parts for one in part]}, {}))
        assert [*said.runs()] == [(client, start, end)]
    return ""


def signed_commit(body: bytes) -> bytes:
    """The plaintext of a commit with this body."""
    content = _content(build_object(body, CONVERGENCE)[0], BranchId(_ID))
    digest = commit_digest(encode([(), 0, _MARK, Links(), content]))
    return encode(["commit2", Links(), content, sign(_SECRET, digest)])


def _content(body: Reference, branch: BranchId) -> Content:
    return Content(_AUTHOR, branch, _EPOCH.epoch_id, True, True, 1, None, (), 0, b"", body)


def published(commit: bytes, body: bytes) -> bytes:
    """A publication, whatever commit and body are, that a holder of the topic's key has signed."""
    block, key = encrypt_block(commit, CONVERGENCE, mark=_MARK)
    blocks = (block, *build_object(body, CONVERGENCE)[1])
    return create_publication(TopicSeed(_SEED), _EPOCH.keys.read_key, key, blocks).encoded


def _argument(data: bytes) -> str:
    """Bytes as a program's arguments become text: those that are not UTF-8 too."""
    return data.decode("utf-8", "surrogateescape")


def _take_link(text: str) -> str:
    """As each kind of link, until it is one."""
    again = refusal = ""
    for take in _LINKS:
        try:
            again = take(text)
        except DecodeError as error:
            refusal = str(error)
            if error.reason == "other_kind":
                continue
        break
    if not again:
        return refusal
    assert again == text.strip()
    return ""


def _invitation(text: str) -> str:
    return invitation_text(parse_invitation(text))


def _capability(text: str) -> str:
    return capability_text(parse_capability(text))


def _branch_capability(text: str) -> str:
    return branch_capability_text(parse_branch_capability(text))


def _device_link(text: str) -> str:
    return device_link_text(parse_device_link(text))


def _ask_link(text: str) -> str:
    return ask_link_text(parse_ask_link(text))


_LINKS: Final[tuple[Callable[[str], str], ...]] = (
    _invitation,
    _capability,
    _branch_capability,
    _device_link,
    _ask_link,
)
"""Each reads a link of one kind and writes it again."""


def _tree(program: bytes) -> tuple[Reference, dict[BlockId, Block]]:
    """The tree that a program makes: what lies on top of the stack at its end, and all blocks that were not dropped."""
    blocks: dict[BlockId, Block] = {}
    stack: list[tuple[BlockId, BlockKey]] = []

    def push(
        plaintext: bytes, children: list[tuple[BlockId, BlockKey]], *, is_of_commit: bool = False
    ) -> None:
        ids = tuple(child_id for child_id, _ in children)
        block, key = encrypt_block(plaintext, CONVERGENCE, ids, mark=_MARK if is_of_commit else b"")
        blocks[block.block_id] = block
        stack.append((block.block_id, key))

    for byte in program:
        what, much = byte & 7, byte >> 3
        if what < 4:  # a leaf, most of them full; that none has more is `decode_block`'s to see
            push(bytes([what]) * min(much, LEAF_SIZE), [])
            continue
        size = min(much & 3, len(stack))
        children = stack[len(stack) - size :]
        if what < 6 and not children:  # would be a leaf
            continue
        if what == 4:  # a parent of what lies on top
            del stack[len(stack) - size :]
            push(b"".join(key for _, key in children), children)
        elif what == 5:  # the same with one fault
            del stack[len(stack) - size :]
            keys = [key for _, key in children]
            faulty = [keys[::-1], keys[1:], [*keys, BlockKey(CONVERGENCE)], keys, keys, keys, keys, keys][
                much >> 2
            ]
            push(b"".join(faulty), children, is_of_commit=much >> 2 == 3)
        elif what == 6:
            stack += children
        elif stack:  # gone from the store
            blocks.pop(stack[-1][0], None)
    root_id, key = stack[-1] if stack else (BlockId(CONVERGENCE), BlockKey(CONVERGENCE))
    return Reference(ObjectId(root_id), key), blocks
