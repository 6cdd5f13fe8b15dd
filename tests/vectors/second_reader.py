"""A second reader of the formats, written from protocol.md: it knows public libraries and nothing of Ravel.

It opens what a capability opens: an invitation link gives the secrets, these open a publication, its commit, the body
and the files. Everything else is `Refused`, without the reason codes. Bounds that the docs leave to `protocol/limits`
are not here. Where the docs leave something to another document (RFC 8439, RFC 4648), so does this. The handshake is
`second_handshake`'s.
"""

import base64
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from blake3 import blake3
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from nacl import bindings
from nacl.exceptions import BadSignatureError, CryptoError

Blocks = dict[bytes, bytes]
Reference = Sequence[bytes]
Shapes = Mapping[str, object]

CONTEXT = "ravel 2026-11 "
LEAF_SIZE = 1_048_544
ERASABLE = (
    "post1",
    "imported1",
    "set1",
    "set-squeeze1",
    "dict1",
    "dict-squeeze1",
    "json1",
    "json-squeeze1",
    "text1",
)
CHILD_COUNT_MAX = 15_887
ID = KEY = 32
SIGNATURE = 64
NUMBER = range(2**64)
REFERENCE = (ID, KEY)
SEALED_KEY = 24 + 16 + 64
STATES = (ID, ID, 24 + 16 + 32)
BRANCH_MARK = 8
LEFT = {range(1, 6), None}
FOUNDING: Shapes = {"name": str, "owners": [ID], "certificate": SIGNATURE, "states": STATES}
BODIES: dict[str, Shapes] = {
    "init2": FOUNDING,
    "init3": {**FOUNDING, "council": range(2, 65)},
    "branch-add2": {"branch": ID, "name": str, "root": REFERENCE},
    "branch-link1": {"branch": ID},
    "invite1": {"invitation_key": ID, "permission": range(1, 6), "uses": NUMBER, "expires_at": NUMBER},
    "join1": {"invitation": ID, "proof": SIGNATURE},
    "grant2": {"user": ID, "permission": range(1, 6)},
    "device-grant1": {"user": ID, "permission": range(1, 6)},
    "move1": {"user": ID, "credential": ID},
    "recovery-friends1": {"friends": [ID], "threshold": range(16)},
    "recovery-grant1": {
        "friends": ID,
        "user": ID,
        "permission": range(1, 6),
        "signatures": [(ID, SIGNATURE)],
    },
    "remove1": {"user": ID, "keeps": LEFT, "feeds": [(ID, range(1, 2**64), ID)]},
    "revoke1": {"invitation": ID},
    "branch-edit1": {"branch": ID, "name": {str, None}, "archived": {bool, None}},
    "tag1": {"name": str, "branch": ID, "commit": {ID, None}},
    "epoch-init3": {"states": STATES, "boxes": REFERENCE, "writers_boxes": REFERENCE, "keys": REFERENCE},
    "epoch-open1": {"epochs": [(ID, KEY)]},
    "epoch-hand1": {"epoch": ID, "mark": ID, "writers_mark": ID, "boxes": [(ID, 32, {32, None})]},
    "prekey1": {"key": ID},
    "adopt1": {"branch": ID, "commits": [ID]},
    "hide1": {"branch": ID, "commits": [ID], "hides": bool},
    "branch-root1": {},
    "offer1": {"branch": ID, "pulls": bool, "note": str, "link": bytes},
    "answer1": {"offer": ID, "accepts": bool},
    "quorum1": {"signers": [ID], "threshold": range(1, 65), "removals": bool},
    "propose-checkpoint1": {"branch": ID, "commits": [ID]},
    "propose-removal1": {"user": ID, "keeps": LEFT},
    "approve1": {"proposal": ID},
    "checkpoint1": {"proposal": ID},
    "members-checkpoint1": {"digest": ID},
    "fork1": {"origin": ID, "commits": [ID]},
    "carried1": {"branch": ID, "commit": ID, "author": ID, "time": NUMBER, "body": bytes},
    "merge1": {"branch": ID, "commits": [ID]},
    "post1": {"text": str},
    "imported1": {"source_id": str, "author": str, "time": range(-(2**63), 2**63), "text": str},
    "files1": {"added": [(str, NUMBER)]},
    "set1": {"added": [str], "deleted": [str], "replaces": [(ID, [int])]},
    "dict1": {"put": [(str, str)], "erased": [str], "replaces": [(ID, [int])]},
    "json1": {"put": [(str, str)], "erased": [str], "replaces": [(ID, [int])]},
    "set-squeeze1": {"first": str, "end": {str, None}, "operations": [(ID, [str])]},
    "dict-squeeze1": {"first": str, "end": {str, None}, "operations": [(ID, [(str, str)])]},
    "json-squeeze1": {"first": str, "end": {str, None}, "operations": [(ID, [(str, str)])]},
    "compaction1": {"given_up": [ID]},
    "text1": {"update": bytes, "replaces": [ID]},
    "text-snapshot1": {"updates": [(ID, bytes, [ID])]},
    "devices1": {"person": ID},
    "hand-on2": {
        "device": ID,
        "repo": ID,
        "root": REFERENCE,
        "epoch": ID,
        "key": SEALED_KEY,
        "since": NUMBER,
        "signature": SIGNATURE,
    },
    "device1": {
        "person": ID,
        "device": ID,
        "since": NUMBER,
        "person_signature": SIGNATURE,
        "device_signature": SIGNATURE,
    },
    "device-end1": {"person": ID, "device": ID, "until": NUMBER, "by_person": bool, "signature": SIGNATURE},
    "profile1": {"name": {str, None}, "color": {range(16), None}},
    "lobby1": {"repo": ID},
    "lobby-add2": {
        "lobby": ID,
        "root": REFERENCE,
        "epoch": ID,
        "invitation": ID,
        "permission": range(1, 3),
        "expires_at": NUMBER,
        "boxes": [(ID, SEALED_KEY)],
    },
    "lobby-answer2": {"request": ID, "admission": {(REFERENCE, ID, SEALED_KEY), None}},
}
LINKS = {"deps": [ID], "ndeps": [ID], "files": [ID], "nfiles": [ID], "lipmaa": {ID, None}}
CONTENT = {
    "author": ID, "branch": ID, "epoch": ID, "by_writer": bool, "whole": bool, "feed_sequence": range(1, 2**53),
    "feed_previous": {ID, None}, "tangles": [(str, ID, [ID])], "timestamp": NUMBER, "metadata": bytes,
    "body": REFERENCE, "file_keys": [bytes],
}  # fmt: skip
PEERS = [(str, ID)]


class Maybe(list[object]):
    """What may be absent: the shape, or nil in its place."""


EARLIER = ((ID, KEY), ID)
VOUCHER = ((ID, Maybe([str]), NUMBER, ID, Maybe([EARLIER]), ID, str, range(2**53 - 1), [ID]), SIGNATURE)
LINK_KINDS: dict[str, dict[str, Shapes]] = {
    "read": {
        "read4": {"repo": ID, "root": REFERENCE, "epoch": ID, "key": KEY, "peers": PEERS, "name": str},
    },
    "device": {"device-link1": {"person": ID, "invitation": bytes}},
    "ask": {"ask-link1": {"repo": ID, "name": str, "permission": range(1, 3), "lobby": bytes}},
    "branch": {
        "branch2": {
            "repo": ID, "init": ID, "branch": ID, "name": str, "channels": [(ID, ID, KEY, KEY)], "peers": PEERS,
        },
    },
    "invite": {
        "invitation5": {
            "repo": ID, "root": REFERENCE, "epoch": ID, "key": KEY, "writers_secret": {KEY, None},
            "invitation": ID, "invitation_seed": KEY, "permission": range(1, 6), "expires_at": NUMBER,
            "peers": PEERS, "voucher": Maybe([VOUCHER]), "name": str, "by": {str, None},
        },
    },
}  # fmt: skip
MESSAGES: dict[str, Shapes] = {
    "features1": {"features": [str]},
    "announce2": {"topics": [ID]},
    "sum3": {"topic": ID, "round": range(2**32), "heads": [16], "count": NUMBER, "digest": ID},
    "earlier2": {"topic": ID, "count": NUMBER, "fingerprints": bytes},
    "reconcile1": {"topic": ID, "kind": range(8), "frame": bytes},
    "publications1": {"topic": ID, "items": [bytes]},
    "receipt1": {"topic": ID},
    "want1": {"topic": ID, "ids": [ID]},
    "want-bodies1": {"topic": ID, "ids": [ID]},
    "found-bodies1": {"topic": ID, "count": range(257)},
    "relay2": {},
    "deposit1": {"topics": [ID]},
    "join-account1": {"token": ID},
    "account-joined1": {"refusal": str, "quota": NUMBER, "used": NUMBER},
    "list-files1": {"topic": ID, "after": 16},
    "listed-files1": {"topic": ID, "files": [16]},
    "deposit-files1": {"topic": ID, "files": [(ID, NUMBER, 64)]},
    "settled-files1": {"topic": ID, "files": [16], "refusal": str},
    "introductions1": {},
    "introduce1": {"topic": ID, "peers": PEERS},
    "seen1": {"address": str},
    "punch1": {"addresses": [str]},
    "punch-now1": {},
    "circuits1": {},
    "circuit-open1": {"circuit": NUMBER, "address": ID},
    "circuit-data1": {"circuit": NUMBER, "data": bytes},
    "circuit-credit1": {"circuit": NUMBER, "count": NUMBER},
    "meet1": {"topic": ID},
    "nodes1": {"topic": ID, "nodes": [ID]},
    "presence1": {"topic": ID, "box": bytes},
    "want-window1": {"topic": ID, "mark": 8, "rank": NUMBER, "upwards": bool, "count": NUMBER},
    "keeps1": {"topic": ID, "all": bool, "marks": [8], "days": range(36_501)},
    "window1": {"topic": ID, "mark": 8, "items": [bytes], "last": bool},
    "circuit-close1": {"circuit": NUMBER, "reason": str},
    "refused1": {"topic": ID, "reason": str},
    "fetch1": {"topic": ID, "ids": [ID]},
    "blocks1": {"topic": ID, "items": [bytes]},
    "alive1": {},
    "goodbye1": {"reason": str},
}


class Refused(Exception):
    """The bytes are not what the docs say they must be."""


def require(holds: bool, rule: str) -> None:
    """Refuse unless a rule holds."""
    if not holds:
        raise Refused(rule)


# --- section 1: encoding ---


def unpack(data: bytes) -> Any:  # noqa: ANN401  # an array, text, bytes, number or nil
    """The value that these bytes, and all of them, encode; refused unless they are its one encoding."""
    try:
        value = msgspec.msgpack.decode(data)
    except (ValueError, RecursionError) as error:
        raise Refused(f"not MessagePack: {error}") from None
    require(pack(value) == data, "the one encoding")
    return value


def pack(value: object) -> bytes:
    """The one encoding of a value: this library writes the shortest forms."""
    return msgspec.msgpack.encode(value)


def fits(value: object, shape: object) -> bool:
    """Whether a value has a shape: so many bytes, a number of a range, one of a set, each of a list, all of a tuple."""
    match shape:
        case int():
            return isinstance(value, bytes) and len(value) == shape
        case range():
            return type(value) is int and value in shape
        case set():
            return any(fits(value, one) for one in shape)
        case Maybe():
            return value is None or fits(value, shape[0])
        case list():
            return isinstance(value, list) and all(fits(item, shape[0]) for item in value)
        case tuple():
            return isinstance(value, list) and len(value) == len(shape) and all(map(fits, value, shape))
        case None:
            return value is None
        case type():
            return isinstance(value, shape)
    raise TypeError(f"no such shape: {shape}")


def named(fields: object, shapes: Shapes) -> dict[str, Any]:
    """The fields by name."""
    require(
        isinstance(fields, list) and fits(fields, tuple(shapes.values())), f"fields are {', '.join(shapes)}"
    )
    return dict(zip(shapes, fields, strict=True))  # type: ignore[call-overload]  # a list, see above


def tagged(encoded: bytes, table: Mapping[str, Shapes]) -> tuple[str, dict[str, Any]]:
    """The tag, which must be in the table, and the fields by name."""
    value = unpack(encoded)
    require(isinstance(value, list) and bool(value) and value[0] in list(table), "a known tag")
    return value[0], named(value[1:], table[value[0]])


# --- section 2: hashes, keys, signatures ---


def derive(words: str, material: bytes) -> bytes:
    """`derive(context, material)` of the docs."""
    return blake3(material, derive_key_context=f"{CONTEXT}{words}").digest()


def convergence_secret(epoch_key: bytes) -> bytes:
    return derive("epoch key to convergence secret v1", epoch_key)


def epoch_read_key(epoch_key: bytes) -> bytes:
    return derive("epoch key to epoch read key v1", epoch_key)


def epoch_cipher_key(epoch_key: bytes) -> bytes:
    return derive("epoch key to epoch cipher key v1", epoch_key)


def epoch_topic_seed(epoch_key: bytes, repo: bytes) -> bytes:
    return derive("epoch key and repo to epoch topic seed v1", epoch_key + repo)


def writers_topic_seed(writers_secret: bytes, repo: bytes, mark: bytes) -> bytes:
    return derive("writers secret, repo and mark to writers topic seed v1", writers_secret + repo + mark)


def branch_secret(epoch_key: bytes, branch: bytes) -> bytes:
    return derive("epoch key and branch to branch secret v1", epoch_key + branch)


def branch_read_key(secret: bytes) -> bytes:
    return derive("branch secret to branch read key v1", secret)


def branch_mark(secret: bytes) -> bytes:
    return derive("branch secret to branch mark v1", secret)[:BRANCH_MARK]


def link_topic_seed(writers_secret: bytes, branch: bytes) -> bytes:
    return derive("writers secret and branch to link topic seed v1", writers_secret + branch)


def commit_key_pad(read_key: bytes, topic: bytes, commit_id: bytes) -> bytes:
    return blake3(topic + commit_id, key=read_key).digest()


def presence_key(read_key: bytes) -> bytes:
    return derive("epoch read key to presence key v1", read_key)


def xor(one: bytes, other: bytes) -> bytes:
    return bytes(left ^ right for left, right in zip(one, other, strict=True))


def code_numbers(lobby: bytes, repo: bytes, user: bytes, request: bytes) -> list[int]:
    """Six times 11 bits from the front of the digest."""
    digest = derive("join request to short code v1", pack([lobby, repo, user, request]))
    bits = "".join(f"{byte:08b}" for byte in digest)
    return [int(bits[start : start + 11], 2) for start in range(0, 66, 11)]


def blinded_topic(topic: bytes, session_id: bytes) -> bytes:
    return derive("topic and session to blinded topic v1", session_id + topic)


def announced_topic(topic: bytes, session_id: bytes, side: int) -> bytes:
    return derive("topic, session and side to announced topic v1", session_id + bytes([side]) + topic)


def circuit_address(relay: bytes, node_key: bytes) -> bytes:
    return derive("relay and node to circuit address v1", relay + node_key)


def public_key(seed: bytes) -> bytes:
    return bindings.crypto_sign_seed_keypair(seed)[0]


def check_signature(key: bytes, words: str, signed: list[Any], signature: bytes) -> bytes:
    """The digest that was signed."""
    digest = derive(words, pack(signed))
    check_ed25519(key, digest, signature)
    return digest


def check_ed25519(key: bytes, message: bytes, signature: bytes) -> None:
    """Refuse what is not strict: libsodium looks at S and R, and when asked at the key's group."""
    require(bindings.crypto_core_ed25519_is_valid_point(key), "a key of the prime-order group")
    try:
        bindings.crypto_sign_open(signature + message, key)
    except BadSignatureError:
        raise Refused("a signature that holds") from None


# --- section 3: blocks and objects ---


def chacha20(key: bytes, data: bytes) -> bytes:
    return Cipher(ChaCha20(key, bytes(16)), mode=None).encryptor().update(data)


def read_block(encoded: bytes) -> dict[str, Any]:
    require(len(encoded) <= 1 << 20, "at most 1 MiB")
    shape: Shapes = {
        "child_ids": [ID],
        "acks": [ID],
        "rank": range(2**53),
        "mark": bytes,
        "ciphertext": bytes,
    }
    block = tagged(encoded, {"block2": shape})[1]
    if block["mark"]:
        require(len(block["mark"]) == BRANCH_MARK, "a mark of 8 bytes")
    else:
        require(not block["acks"] and block["rank"] == 0, "acks and a rank in commits alone")
    return block


def decrypt_unchecked(encoded: bytes, key: bytes) -> bytes:
    """The plaintext by the key alone, where the convergence secret is not known yet."""
    return chacha20(key, read_block(encoded)["ciphertext"])


def decrypt_block(encoded: bytes, key: bytes, convergence: bytes) -> tuple[dict[str, Any], bytes]:
    """The block's fields, and the plaintext."""
    plaintext = decrypt_unchecked(encoded, key)
    require(blake3(plaintext, key=convergence).digest() == key, "a key that is the hash of what it opens")
    return read_block(encoded), plaintext


def open_object(reference: Reference, blocks: Blocks, convergence: bytes) -> bytes:
    """The plaintext; it must be in the one tree that its length makes."""
    plaintext = b"".join(_leaves(reference, blocks, convergence))
    require(make_object(plaintext, convergence)[0] == list(reference), "the one tree")
    return plaintext


def _leaves(reference: Reference, blocks: Blocks, convergence: bytes) -> list[bytes]:
    block_id, key = reference
    require(blake3(blocks.get(block_id, b"")).digest() == block_id, "a block of that id")
    block, plaintext = decrypt_block(blocks[block_id], key, convergence)
    child_ids = block["child_ids"]
    require(not block["mark"], "no mark but in commits")
    if not child_ids:
        return [plaintext]
    require(len(plaintext) == 32 * len(child_ids), "a key for each child")
    keys = [plaintext[at : at + 32] for at in range(0, len(plaintext), 32)]
    below = [_leaves(child, blocks, convergence) for child in zip(child_ids, keys, strict=True)]
    return [leaf for leaves in below for leaf in leaves]


def make_object(plaintext: bytes, convergence: bytes) -> tuple[list[bytes], Blocks]:
    """The reference and the blocks, leaves first."""
    blocks: Blocks = {}

    def seal(content: bytes, child_ids: list[bytes]) -> list[bytes]:
        key = blake3(content, key=convergence).digest()
        encoded = pack(["block2", child_ids, [], 0, b"", chacha20(key, content)])
        blocks[blake3(encoded).digest()] = encoded
        return [blake3(encoded).digest(), key]

    starts = range(0, max(len(plaintext), 1), LEAF_SIZE)
    level = [seal(plaintext[at : at + LEAF_SIZE], []) for at in starts]
    while len(level) > 1:
        groups = [level[at : at + CHILD_COUNT_MAX] for at in range(0, len(level), CHILD_COUNT_MAX)]
        level = [seal(b"".join(key for _, key in group), [name for name, _ in group]) for group in groups]
    return level[0], blocks


# --- sections 4 and 5: commits and bodies ---


def lipmaa(number: int) -> int:
    """Where a feed's skip link leads: in the row 1, 4, 13, 40, ... to the one before; else back by the last divisor."""
    row = [0, 1]
    while row[-1] < number:
        row.append(3 * row[-1] + 1)
    if row[-1] == number:
        return row[-2]
    rest = number
    while rest:
        rest %= row[-1]
        divisor = row.pop()
    return number - divisor


def read_commit(encoded: bytes, key: bytes, convergence: bytes) -> dict[str, Any]:
    """All fields by name, and what is signed."""
    block, plaintext = decrypt_block(encoded, key, convergence)
    return parse_commit(block, plaintext)


def parse_commit(block: Mapping[str, Any], plaintext: bytes) -> dict[str, Any]:
    """The same of a block that was decrypted."""
    require(not block["child_ids"] and bool(block["mark"]), "one block, with a mark")
    shape: Shapes = {
        "links": tuple(LINKS.values()),
        "content": tuple(CONTENT.values()),
        "signature": SIGNATURE,
    }
    signed = tagged(plaintext, {"commit2": shape})[1]
    links, content = named(signed["links"], LINKS), named(signed["content"], CONTENT)
    acks = block["acks"]
    for ids in (acks, links["deps"] + links["ndeps"], links["files"] + links["nfiles"]):
        require(len(set(ids)) == len(ids), "nothing twice, or there and not there")
    require(
        [len(key) in (0, 32) for key in content["file_keys"]] == [True] * len(links["files"]), "their keys"
    )
    sequence = content["feed_sequence"]
    require((content["feed_previous"] is None) == (sequence == 1), "a feed link unless it is the first")
    require((links["lipmaa"] is None) == (lipmaa(sequence) == sequence - 1), "a skip link where one belongs")
    kinds = [kind for kind, _, _ in content["tangles"]]
    require(kinds == sorted(set(kinds)), "tangles sorted by kind, each once")
    require(all(len(set(tips)) == len(tips) for _, _, tips in content["tangles"]), "nothing twice")
    placed = {name: block[name] for name in ("acks", "rank", "mark")}
    said = [*placed.values(), signed["links"], signed["content"]]
    return {**placed, **links, **content, "signed": said, "signature": signed["signature"]}


def open_commit(encoded: bytes, key: bytes, convergence: bytes) -> dict[str, Any]:
    """The same, the signature checked."""
    commit = read_commit(encoded, key, convergence)
    digest = check_signature(commit["author"], "commit signature v1", commit["signed"], commit["signature"])
    return {**commit, "digest": digest}


def open_body(encoded: bytes) -> tuple[str, dict[str, Any]]:
    """The tag, and the fields by name."""
    require(len(encoded) <= 512 << 10, "at most 512 KiB")
    return tagged(encoded, BODIES)


def declared_kind(metadata: bytes) -> str:
    """The tag of the body that a commit with such metadata says it has; empty where it says nothing of it."""
    return said_of_body(metadata)[0]


def said_of_body(metadata: bytes) -> tuple[str, str]:
    """The tag that metadata declares, and the name of the document; empty where it says nothing of them."""
    try:
        tag, said = tagged(
            metadata, {"kind1": {"body_tag": str}, "kind2": {"body_tag": str, "document": str}}
        )
    except Refused:
        return "", ""
    body, name = (said["body_tag"], said.get("document", "")) if tag else ("", "")
    if tag == "kind1":
        return (body if body in ERASABLE else ""), ""
    if body not in (*ERASABLE[2:], "carried1") or not 0 < len(name.encode()) <= 128:
        return "", ""
    if any(ord(one) < 32 or 127 <= ord(one) < 160 for one in name) or {"", ".", ".."} & {*name.split("/")}:
        return "", ""
    return ("" if body == "carried1" else body), name


def open_sealed_key(seed: bytes, author: bytes, repo_id: bytes, sealed: bytes) -> bytes:
    """A key of the repo that `author` sealed for the user of this seed (profile devices)."""
    ours = bindings.crypto_sign_ed25519_sk_to_curve25519(bindings.crypto_sign_seed_keypair(seed)[1])
    theirs = bindings.crypto_sign_ed25519_pk_to_curve25519(author)
    try:
        opened = bindings.crypto_box_open(sealed[24:], sealed[:24], theirs, ours)
    except CryptoError:
        raise Refused("not sealed for this user") from None
    require(opened[:32] == repo_id, "sealed for this repo")
    return opened[32:]


# --- section 7: publications ---


def read_publication(encoded: bytes) -> dict[str, Any]:
    """The fields by name; of a bare one as if it had come with its body, whose id is in `body_id`."""
    head: Shapes = {"topic": ID, "hidden_key": KEY}
    shapes = {
        "publication1": {**head, "blocks": [bytes], "signature": SIGNATURE},
        "bare1": {**head, "block": bytes, "body_id": ID, "signature": SIGNATURE},
    }
    tag, publication = tagged(encoded, shapes)
    if tag == "bare1":
        publication["blocks"] = [publication.pop("block")]
    require(bool(publication["blocks"]), "a commit's block first")
    for block in publication["blocks"]:
        read_block(block)
    return publication


def publication_id(encoded: bytes) -> bytes:
    """What tells publications of one commit apart."""
    topic, hidden_key, blocks, _ = read_publication(encoded).values()
    ids = [blake3(block).digest() for block in blocks]
    return ids[0][:8] + derive("publication signature v1", pack([topic, hidden_key, ids]))[:24]


def open_publication(encoded: bytes, read_key: bytes) -> tuple[bytes, bytes, Blocks]:
    """The topic, the commit's key, and the blocks by id, the commit's first; the signature checked."""
    publication = read_publication(encoded)
    names = ("topic", "hidden_key", "blocks", "signature")
    topic, hidden_key, blocks, signature = (publication[name] for name in names)
    ids = [blake3(block).digest() for block in blocks]
    ids += [publication["body_id"]] if "body_id" in publication else []
    check_signature(topic, "publication signature v1", [topic, hidden_key, ids], signature)
    key = xor(hidden_key, commit_key_pad(read_key, topic, ids[0]))
    return topic, key, dict(zip(ids, blocks, strict=False))


# --- section 9: messages ---


def open_message(frame: bytes) -> tuple[str, dict[str, Any]]:
    """The tag, and the fields by name."""
    tag, fields = tagged(frame, MESSAGES)
    require(len(fields.get("heads", ())) <= 256, "at most 256 heads")
    features = fields.get("features", ())
    require(len(features) <= 64, "at most 64 features")
    require(all(re.fullmatch("[a-z][a-z0-9-]{0,31}", one) for one in features), "names of features")
    require(len(fields.get("items", ())) <= 1024, "at most 1,024 publications")
    require(len(fields.get("peers", [None])) in range(1, 17), "1 to 16 peers")
    return tag, fields


def take_message(frame: bytes) -> tuple[str, dict[str, Any]] | None:
    """The same of what a newer version may have said; None: its kind is not known, so it is passed over."""
    tag = re.match(rb"[\x91-\x9f][\xa1-\xbf]([a-z][a-z0-9-]*)", frame)
    require(tag is not None and len(tag[1]) >= frame[1] - 0xA0, "a tag behind the shortest headers")
    name = frame[2 : 2 + frame[1] - 0xA0].decode()
    if name not in MESSAGES:
        return None
    try:
        value = msgspec.msgpack.decode(frame, strict=False)
    except (ValueError, RecursionError) as error:
        raise Refused(f"not MessagePack: {error}") from None
    known = pack(value[: 1 + len(MESSAGES[name])])
    require(frame[1:].startswith(known[1:]), "known fields in their one encoding")
    return open_message(known)


# --- section 10: links and text ---


def id_text(raw: bytes) -> str:
    return base64.b32encode(raw).decode().lower().rstrip("=")


def read_text(text: str) -> bytes:
    """The bytes of base32, which has one form."""
    try:
        raw = base64.b32decode(text.upper() + "=" * (-len(text) % 8))
    except ValueError:
        raise Refused("base32") from None
    require(id_text(raw) == text, "lower case, no padding, no loose bits")
    return raw


def read_id(text: str) -> bytes:
    raw = read_text(text)
    require(len(raw) == ID, "52 characters")
    return raw


def link_text(kind: str, encoded: bytes) -> str:
    return f"ravel:{kind}:{id_text(encoded + derive('link checksum v1', kind.encode() + encoded)[:5])}"


def open_link(kind: str, text: str) -> tuple[str, dict[str, Any]]:
    """The tag, and the fields by name; the checksum checked."""
    require(text.startswith(f"ravel:{kind}:"), "a link of that kind")
    encoded = read_text(text.removeprefix(f"ravel:{kind}:"))[:-5]
    require(link_text(kind, encoded) == text, "the checksum")
    return tagged(encoded, LINK_KINDS[kind])
