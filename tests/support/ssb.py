"""Classic Scuttlebutt feeds for tests: messages made with known keys, and lines of a log."""

import base64
import hashlib
import hmac
import json
from typing import Any

from nacl import bindings

Value = dict[str, Any]


class Feed:
    """An author, who writes one message after the other."""

    def __init__(self, letter: str, hmac_key: bytes | None = None) -> None:
        key, self._secret = bindings.crypto_sign_seed_keypair(letter.encode() * 32)
        self.id = f"@{base64.b64encode(key).decode()}.ed25519"
        self._hmac_key = hmac_key
        self._sequence, self._previous = 0, ""

    def write(self, text: str = "hello", /, **fields: object) -> bytes:
        """The next message as a line of a log; `fields` stand instead of the right ones."""
        value: Value = {
            "previous": self._previous or None,
            "author": self.id,
            "sequence": self._sequence + 1,
            "timestamp": 1_500_000_000_000 + self._sequence,
            "hash": "sha256",
            "content": {"type": "post", "text": text},
        }
        line = self.sign(value | fields)
        self._sequence, self._previous = self._sequence + 1, json.loads(line)["key"]
        return line

    def sign(self, value: Value) -> bytes:
        """A line with a value of any form, signed."""
        text = encode(value).encode()
        if self._hmac_key is not None:
            text = hmac.digest(self._hmac_key, text, "sha512")[:32]
        signature = bindings.crypto_sign(text, self._secret)[:64]
        return line_of(value | {"signature": f"{base64.b64encode(signature).decode()}.sig.ed25519"})

    def back(self, line: bytes) -> None:
        """Go on from an earlier message."""
        whole = json.loads(line)
        self._sequence, self._previous = whole["value"]["sequence"], whole["key"]


def line_of(value: Value) -> bytes:
    """A value under its id, as a line."""
    low_bytes = encode(value).encode("utf-16-le", "surrogatepass")[::2]
    key = f"%{base64.b64encode(hashlib.sha256(low_bytes).digest()).decode()}.sha256"
    return json.dumps({"key": key, "value": value, "timestamp": 1.5}).encode() + b"\n"


def key_of_line(line: bytes) -> str:
    """The id that a line states."""
    return str(json.loads(line)["key"])


def encode(value: Value) -> str:
    """The canonical text, of values without fractions and array indices."""
    return json.dumps(value, indent=2, ensure_ascii=False)
