"""Validates one classic Scuttlebutt message: form, id and signature.

Pure. The rules are those of ssb-validate 4 and ssb-keys (MIT); docs/research/scuttlebutt.md states them. Whether a
message follows those before it is `node.importers.ssb_feeds`' to say. Everything is about the canonical text
(`canonical_json`):

- the id is SHA-256 of its UTF-16 units, of each the low byte alone: the reference hashed a string as "binary", and every
  id since depends on it. So texts that differ in high bytes alone share an id;
- the signature is Ed25519 of the text without the last field, in UTF-8, or of its HMAC under the network's key.
"""

import base64
import binascii
import hashlib
import hmac
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import msgspec
from nacl import bindings, exceptions

from node.scuttlebutt.canonical_json import JsonValue, NotJson, canonical, parse_by_rules, write_by_rules
from protocol.limits.files import SSB_LINE_SIZE_MAX, SSB_MESSAGE_SIZE_MAX, SSB_SEQUENCE_MAX

_FIELDS: Final = ("previous", "author", "sequence", "timestamp", "hash", "content", "signature")
_FIELDS_SWAPPED: Final = ("previous", "sequence", "author", "timestamp", "hash", "content", "signature")
_FEED_PREFIX, _FEED_SUFFIX = "@", ".ed25519"
_MESSAGE_PREFIX, _MESSAGE_SUFFIX = "%", ".sha256"
_SIGNATURE_SUFFIX: Final = ".sig.ed25519"
_SIGNATURE_FIELD: Final = b',\n  "signature": "'
_BOX: Final = re.compile(
    "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?"
    r"\.box[^\n\r\u2028\u2029]*"
)
"""Canonical base64 and how it was sealed; what follows on the line is left to later kinds of boxes, as in ssb-validate."""
_TYPE_LENGTHS: Final = range(3, 53)


class Reason(StrEnum):
    """Reasons of refused messages; stable, scripts may depend on them (docs/research/scuttlebutt.md)."""

    LINE_TOO_LONG = "line_too_long"
    NOT_A_MESSAGE = "not_a_message"
    BAD_FIELDS = "bad_fields"
    BAD_PREVIOUS = "bad_previous"
    BAD_AUTHOR = "bad_author"
    BAD_SEQUENCE = "bad_sequence"
    BAD_TIMESTAMP = "bad_timestamp"
    BAD_HASH = "bad_hash"
    BAD_CONTENT = "bad_content"
    BAD_SIGNATURE = "bad_signature"
    TOO_LARGE = "too_large"
    WRONG_ID = "wrong_id"
    GAP = "gap"
    FORK = "fork"
    FOLLOWS_REFUSED = "follows_refused"
    TOO_MANY_FEEDS = "too_many_feeds"


class MessageRefused(Exception):
    """A line that is not imported: the reason, a sentence about it, and the message's id if it has one."""

    def __init__(self, reason: Reason, problem: str, message_id: str = "") -> None:
        super().__init__(f"{reason}: {problem}")
        self.reason = reason
        self.problem = problem
        self.message_id = message_id


@dataclass(frozen=True, slots=True)
class SsbMessage:
    """A message whose shape and id are right; its signature is checked by `verify_ssb_signature`."""

    id: str
    """`%...sha256`."""
    digest: bytes
    """The 32 bytes of the id."""
    author: str
    """`@...ed25519`."""
    key: bytes
    sequence: int
    previous: str | None
    timestamp: float
    """Unix milliseconds, as the author says; any double."""
    text: str
    """The canonical text."""
    signed: bytes
    signature: bytes


class _Line(msgspec.Struct, frozen=True):
    key: str
    value: msgspec.Raw


_LINES: Final = msgspec.json.Decoder(_Line)


def read_ssb_message(line: bytes) -> SsbMessage:
    """Parse the message of a line `{"key": ..., "value": ..., ...}`. Raises MessageRefused alone, for any bytes."""
    if len(line) > SSB_LINE_SIZE_MAX:
        raise MessageRefused(Reason.LINE_TOO_LONG, f"a line of more than {SSB_LINE_SIZE_MAX} bytes")
    try:
        key, value, text = _open(line)
    except NotJson as error:
        raise MessageRefused(Reason.NOT_A_MESSAGE, str(error)) from None
    message_id, digest = ssb_id(text)
    try:
        return _check_shape(key, value, text, message_id, digest)
    except MessageRefused as refused:
        refused.message_id = message_id
        raise


def ssb_id(text: str) -> tuple[str, bytes]:
    """Return the id of a canonical text, as it is written and as 32 bytes."""
    try:
        low_bytes = text.encode("latin-1")
    except UnicodeEncodeError:
        low_bytes = text.encode("utf-16-le")[::2]
    digest = hashlib.sha256(low_bytes).digest()
    return message_id_of(digest), digest


def message_id_of(digest: bytes) -> str:
    """Write an id of 32 bytes."""
    return f"{_MESSAGE_PREFIX}{binascii.b2a_base64(digest, newline=False).decode()}{_MESSAGE_SUFFIX}"


def digest_of(message_id: str) -> bytes | None:
    """Decode a message's id to 32 bytes; return None if it is none."""
    return _unwrap(message_id, _MESSAGE_PREFIX, _MESSAGE_SUFFIX, 32)


def key_of(feed: str) -> bytes | None:
    """Decode the public key of a feed's id; return None if it is none."""
    return _unwrap(feed, _FEED_PREFIX, _FEED_SUFFIX, 32)


def verify_ssb_signature(message: SsbMessage, hmac_key: bytes | None = None) -> None:
    """Raise MessageRefused unless the author signed it; `hmac_key` (32 bytes) is of the network, if it has one.

    libsodium decides alone, as in the reference. Ravel's own rules (`protocol.crypto.signing`) are stricter and would leave
    feeds with gaps.
    """
    signed = message.signed
    if hmac_key is not None:
        # libsodium's crypto_auth: HMAC-SHA-512, the first half.
        signed = hmac.digest(hmac_key, signed, "sha512")[:32]
    try:
        bindings.crypto_sign_open(message.signature + signed, message.key)
    except exceptions.BadSignatureError:
        raise MessageRefused(Reason.BAD_SIGNATURE, "the author did not sign this", message.id) from None


def _open(line: bytes) -> tuple[str, JsonValue, str]:
    """Parse a line into key, value and the value's canonical text."""
    try:
        envelope = _LINES.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # msgspec takes no lone surrogates, and messages may have them.
        whole = parse_by_rules(line)
        if (
            not isinstance(whole, dict)
            or not isinstance(key := whole.get("key"), str)
            or "value" not in whole
        ):
            raise NotJson("not an object with key and value") from None
        return key, whole["value"], write_by_rules(whole["value"])
    return envelope.key, *canonical(bytes(envelope.value))


def _check_shape(key: str, value: JsonValue, text: str, message_id: str, digest: bytes) -> SsbMessage:
    if not isinstance(value, dict) or tuple(value) not in (_FIELDS, _FIELDS_SWAPPED):
        raise MessageRefused(Reason.BAD_FIELDS, "not the seven fields of a message in their order")
    previous, author, sequence = value["previous"], value["author"], value["sequence"]
    timestamp, signature = value["timestamp"], value["signature"]
    author_key = key_of(author) if isinstance(author, str) else None
    if author_key is None:
        raise MessageRefused(Reason.BAD_AUTHOR, "the author is no Ed25519 feed of the classic format")
    if previous is not None and not (isinstance(previous, str) and digest_of(previous)):
        raise MessageRefused(Reason.BAD_PREVIOUS, "previous is neither null nor the id of a message")
    number = _whole(sequence)
    if number is None:
        raise MessageRefused(
            Reason.BAD_SEQUENCE, f"the sequence is no whole number from 1 to {SSB_SEQUENCE_MAX}"
        )
    if isinstance(timestamp, bool) or not isinstance(timestamp, (int, float)):
        raise MessageRefused(Reason.BAD_TIMESTAMP, "the timestamp is no number")
    if value["hash"] != "sha256":
        raise MessageRefused(Reason.BAD_HASH, "the hash is not sha256")
    _check_content(value["content"])
    proof = _unwrap(signature, "", _SIGNATURE_SUFFIX, 64) if isinstance(signature, str) else None
    if proof is None:
        raise MessageRefused(Reason.BAD_SIGNATURE, "the signature is not one of Ed25519 in canonical base64")
    size = len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2
    if size > SSB_MESSAGE_SIZE_MAX:
        raise MessageRefused(Reason.TOO_LARGE, f"{size} characters, at most {SSB_MESSAGE_SIZE_MAX}")
    if key != message_id:
        raise MessageRefused(Reason.WRONG_ID, f"the key of the line is {key[:60]!r}")
    encoded = text.encode()
    assert isinstance(author, str), "it was unwrapped"
    # The signature stands last, as canonical base64, so that the text ends with it, a quotation mark and the brace.
    signed = encoded[: encoded.rindex(_SIGNATURE_FIELD)] + b"\n}"
    return SsbMessage(
        message_id, digest, author, author_key, number, previous, timestamp, text, signed, proof
    )


def _unwrap(value: str, prefix: str, suffix: str, size: int) -> bytes | None:
    """Decode canonical base64 between a prefix and a suffix; return None if it is anything else."""
    if not (value.startswith(prefix) and value.endswith(suffix)):
        return None
    encoded = value[len(prefix) : len(value) - len(suffix)]
    try:
        raw = base64.b64decode(encoded, validate=True)
    except ValueError:
        return None
    # Bits beyond the last byte must be zero; encoding again tells.
    return raw if len(raw) == size and binascii.b2a_base64(raw, newline=False).decode() == encoded else None


def _whole(value: JsonValue) -> int | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return int(value) if 1 <= value <= SSB_SEQUENCE_MAX and value == int(value) else None


def _check_content(content: JsonValue) -> None:
    if isinstance(content, str):
        if _BOX.fullmatch(content) is None:
            raise MessageRefused(
                Reason.BAD_CONTENT, "the content is a string, and not base64 that ends with .box"
            )
        return
    kind = content.get("type") if isinstance(content, dict) else None
    if not isinstance(kind, str):
        raise MessageRefused(Reason.BAD_CONTENT, "the content is neither a box nor an object with a type")
    if len(kind.encode("utf-16-le", "surrogatepass")) // 2 not in _TYPE_LENGTHS:
        raise MessageRefused(
            Reason.BAD_CONTENT, f"the type has not {_TYPE_LENGTHS[0]} to {_TYPE_LENGTHS[-1]} characters"
        )
