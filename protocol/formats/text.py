"""Text forms of ids: lower-case base32 without padding; and words as they are pasted.

An id has exactly one text form; ids given by people may be prefixes, which the node resolves.
"""

import base64
import binascii
import re
import unicodedata
from functools import lru_cache
from typing import Final

from protocol.codec import DecodeError
from protocol.ids import AnyId, Id

_ID_TEXT_SIZE: Final = 52
_IDS_REMEMBERED_MAX: Final = 1024  # 300 KB for each kind of reading
ID_TEXT: Final = re.compile(r"[a-z2-7]{52}")
"""What every full text id matches."""
_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz234567"


def id_text(raw: Id) -> str:
    """Return the text form of 32 bytes: 52 characters."""
    return _id_text(raw)


@lru_cache(maxsize=_IDS_REMEMBERED_MAX)
def _id_text(raw: Id) -> str:
    """Cached text of an id: those of repos, branches and authors are asked for again and again."""
    return base32_text(raw)


@lru_cache(maxsize=_IDS_REMEMBERED_MAX)  # each request names the same branch again
def parse_id_prefix(text: str) -> tuple[AnyId, AnyId]:
    """Return the least and the greatest id whose text begins with `text`. Raises DecodeError `bad_id`."""
    digits = [_ALPHABET.find(char) for char in text]
    loose_bits = 0b1111 if len(text) == _ID_TEXT_SIZE else 0
    if not 0 < len(text) <= _ID_TEXT_SIZE or -1 in digits or digits[-1] & loose_bits:
        raise DecodeError("bad_id", text)
    value = 0
    for digit in digits:
        value = value << 5 | digit
    free = 5 * (_ID_TEXT_SIZE - len(text))
    # 52 characters carry 260 bits, the last four of them zero.
    low, high = value << free >> 4, ((value + 1 << free) - 1) >> 4
    return AnyId(low.to_bytes(32, "big")), AnyId(high.to_bytes(32, "big"))


@lru_cache(maxsize=_IDS_REMEMBERED_MAX)
def parse_id(text: str) -> AnyId:
    """Return the 32 bytes of a full text id. Raises DecodeError `bad_id`."""
    raw = parse_base32(text, "bad_id")
    if len(raw) != 32:
        raise DecodeError("bad_id", "an id has 52 characters")
    return AnyId(raw)


def base32_text(raw: bytes) -> str:
    """Bytes as base32 in lower case, without padding."""
    return base64.b32encode(raw).decode("ascii").rstrip("=").lower()


def parse_base32(text: str, reason: str) -> bytes:
    """Return the bytes that `text` stands for. Raises DecodeError `reason` for any text but the one that `base32_text`
    gives.
    """
    padded = text.upper() + "=" * (-len(text) % 8)
    try:
        raw = base64.b32decode(padded)
    except (binascii.Error, ValueError):
        raise DecodeError(reason, "not base32") from None
    if base32_text(raw) != text:
        raise DecodeError(reason, "not the one form (lower case, no padding)")
    return raw


def pasted_word(text: str) -> str:
    """Return the text without white space and invisible marks, which mail, chats and clipboards put into and around a long
    word.
    """
    return "".join(char for char in text if not char.isspace() and unicodedata.category(char) != "Cf")
