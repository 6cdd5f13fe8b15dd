"""The Noise handshake pattern XK (25519, ChaChaPoly, BLAKE2s; specification revision 34) and its ciphers.

The initiator knows the responder's static key before the first byte; the responder learns the initiator's in the third
message, where only the two of them can read it:

    <- s
    ...
    -> e, es        message 1: 32 + 16 bytes and its payload
    <- e, ee        message 2: 32 + 16 bytes and its payload
    -> s, se        message 3: 48 + 16 bytes and its payload

This module is the handshake pattern and no more: whose key a static key is, what the payloads say and how messages are
framed is left to `protocol.crypto.node_identity` and `node.wire.transport`. Ephemeral keys are drawn by the caller, afresh
for every handshake.

Faults of the peer raise HandshakeError and leave the handshake dead. Calls out of turn are faults of ours:
RuntimeError. Noise's bound of 65535 bytes per message is not enforced on CipherState, since Ravel's frames carry a
length of their own; one AEAD message may be as long as a frame.

    dialer = Handshake.initiator(b"prologue", static, ephemeral, remote_static)
    first = dialer.write_message(b"")
    dialer.read_message(second)
    third = dialer.write_message(b"payload")
    send, receive = dialer.split()
"""

import hmac
from hashlib import blake2s
from typing import Final, Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from protocol.crypto.keys import AgreementSecret, CipherKey
from protocol.ids import AgreementKey, Digest

Bytes = bytes | bytearray | memoryview
PROTOCOL_NAME: Final = b"Noise_XK_25519_ChaChaPoly_BLAKE2s"
KEY_SIZE: Final = 32
TAG_SIZE: Final = 16
MESSAGE_COUNT_MAX: Final = 2**48
"""Messages one cipher encrypts or decrypts: far below its 2**64 nonces, far above what one connection sends."""

_MESSAGES: Final = (("e", "es"), ("e", "ee"), ("s", "se"))
"""The tokens of each message; the initiator writes the first, and both take turns."""


class HandshakeError(Exception):
    """The peer's bytes are not what an honest peer would send; `reason` is stable, for logs and tests."""

    def __init__(self, reason: str) -> None:
        """`reason` is one word of the table in docs/specification/protocol.md."""
        super().__init__(reason)
        self.reason = reason


class CipherState:
    """One direction's key, and its count of messages as the nonce: none may be lost, doubled or reordered."""

    __slots__ = ("_aead", "_count")

    def __init__(self, key: CipherKey, count: int = 0) -> None:
        """`count` messages were encrypted or decrypted before."""
        self._aead = ChaCha20Poly1305(key)
        self._count = count

    def encrypt(self, plaintext: Bytes, associated: bytes = b"") -> bytes:
        """Ciphertext and tag of the next message."""
        ciphertext = self._aead.encrypt(self._nonce(), plaintext, associated)
        self._count += 1
        return ciphertext

    def encrypt_into(self, plaintext: Bytes, place: memoryview) -> None:
        """Encrypt without associated data into `place`, which is TAG_SIZE longer than the plaintext."""
        self._aead.encrypt_into(self._nonce(), plaintext, None, place)
        self._count += 1

    def decrypt(self, ciphertext: Bytes, associated: bytes = b"") -> bytes:
        """Plaintext of the next message. A message that is not authentic leaves the counter where it was."""
        try:
            plaintext = self._aead.decrypt(self._nonce(), ciphertext, associated)
        except InvalidTag:
            raise HandshakeError("not_authentic") from None
        self._count += 1
        return plaintext

    def _nonce(self) -> bytes:
        if self._count >= MESSAGE_COUNT_MAX:
            raise HandshakeError("exhausted")
        return b"\0\0\0\0" + self._count.to_bytes(8, "little")


class Handshake:
    """One side of one handshake: messages written and read in turn, then `split`."""

    def __init__(
        self,
        *,
        is_initiator: bool,
        prologue: bytes,
        static: AgreementSecret,
        ephemeral: AgreementSecret,
        remote_static: AgreementKey | None,
    ) -> None:
        """Use `initiator` or `responder`."""
        self._is_initiator = is_initiator
        self._static = X25519PrivateKey.from_private_bytes(static)
        self._ephemeral = X25519PrivateKey.from_private_bytes(ephemeral)
        self._remote_static = remote_static
        self._remote_ephemeral: AgreementKey | None = None
        self._turn = 0
        self._is_dead = False
        # The name has more than 32 bytes, so it is hashed (section 5.2).
        self._hash = blake2s(PROTOCOL_NAME).digest()
        self._chaining_key = self._hash
        self._cipher: CipherState | None = None
        self._mix_hash(prologue)
        self._mix_hash(remote_static if remote_static is not None else _public(self._static))

    @classmethod
    def initiator(
        cls, prologue: bytes, static: AgreementSecret, ephemeral: AgreementSecret, remote_static: AgreementKey
    ) -> Self:
        """Return the side that dials: its private keys, and the public key that the other side must have."""
        return cls(
            is_initiator=True,
            prologue=prologue,
            static=static,
            ephemeral=ephemeral,
            remote_static=remote_static,
        )

    @classmethod
    def responder(cls, prologue: bytes, static: AgreementSecret, ephemeral: AgreementSecret) -> Self:
        """Return the side that is dialed."""
        return cls(
            is_initiator=False, prologue=prologue, static=static, ephemeral=ephemeral, remote_static=None
        )

    @property
    def handshake_hash(self) -> Digest:
        """Hash of all that was said so far; at the end, a name of the session on both sides. Not secret."""
        return Digest(self._hash)

    @property
    def remote_static(self) -> AgreementKey:
        """The other side's static public key, proven once its message was read."""
        if self._remote_static is None:
            raise RuntimeError("the initiator's key is known after message 3")
        return self._remote_static

    def write_message(self, payload: bytes) -> bytes:
        """Return the next message of the pattern, with a payload."""
        tokens = self._tokens(is_ours=True)
        self._is_dead = True  # until everything below has held
        message = bytearray()
        for token in tokens:
            match token:
                case "e":
                    public = _public(self._ephemeral)
                    message += public
                    self._mix_hash(public)
                case "s":
                    message += self._encrypt_and_hash(_public(self._static))
                case _:
                    self._mix_shared_key(token)
        message += self._encrypt_and_hash(payload)
        self._is_dead = False
        self._turn += 1
        return bytes(message)

    def read_message(self, message: bytes) -> bytes:
        """Return the payload of the other side's next message."""
        tokens = self._tokens(is_ours=False)
        self._is_dead = True  # until everything below has held
        rest = message
        for token in tokens:
            match token:
                case "e":
                    ephemeral, rest = _cut(rest, KEY_SIZE)
                    self._remote_ephemeral = AgreementKey(ephemeral)
                    self._mix_hash(ephemeral)
                case "s":
                    ciphertext, rest = _cut(rest, KEY_SIZE + TAG_SIZE)
                    self._remote_static = AgreementKey(self._decrypt_and_hash(ciphertext))
                case _:
                    self._mix_shared_key(token)
        payload = self._decrypt_and_hash(rest)
        self._is_dead = False
        self._turn += 1
        return payload

    def split(self) -> tuple[CipherState, CipherState]:
        """Return the sending and the receiving cipher of this side, after message 3."""
        if self._is_dead or self._turn != len(_MESSAGES):
            raise RuntimeError("the handshake is not finished")
        first, second = _derive_two(self._chaining_key, b"")
        # Each cipher is for one direction; the first is the initiator's to send with.
        ours, theirs = (first, second) if self._is_initiator else (second, first)
        self._is_dead = True  # a second split would use the same nonces twice
        return CipherState(CipherKey(ours)), CipherState(CipherKey(theirs))

    def _tokens(self, *, is_ours: bool) -> tuple[str, ...]:
        initiator_writes = self._turn % 2 == 0
        ours_is_next = initiator_writes == self._is_initiator
        if self._is_dead or self._turn >= len(_MESSAGES) or is_ours != ours_is_next:
            raise RuntimeError("called out of turn")
        return _MESSAGES[self._turn]

    def _mix_shared_key(self, token: str) -> None:
        """Mix in a Diffie-Hellman result; a token names the initiator's key first, then the responder's."""
        own, other = (token[0], token[1]) if self._is_initiator else (token[1], token[0])
        private = self._ephemeral if own == "e" else self._static
        public = self._remote_ephemeral if other == "e" else self._remote_static
        if public is None:
            raise RuntimeError("the pattern uses a key that is not known yet")
        self._chaining_key, key = _derive_two(self._chaining_key, _shared_secret(private, public))
        self._cipher = CipherState(CipherKey(key))

    def _mix_hash(self, data: bytes) -> None:
        self._hash = blake2s(self._hash + data).digest()

    def _encrypt_and_hash(self, plaintext: bytes) -> bytes:
        ciphertext = self._current_cipher().encrypt(plaintext, self._hash)
        self._mix_hash(ciphertext)
        return ciphertext

    def _decrypt_and_hash(self, ciphertext: bytes) -> bytes:
        plaintext = self._current_cipher().decrypt(ciphertext, self._hash)
        self._mix_hash(ciphertext)
        return plaintext

    def _current_cipher(self) -> CipherState:
        # In XK a key is there before anything is encrypted: message 1 mixes `es` before its payload.
        if self._cipher is None:
            raise RuntimeError("nothing to encrypt with yet")
        return self._cipher


def _public(private: X25519PrivateKey) -> bytes:
    return private.public_key().public_bytes_raw()


def _shared_secret(private: X25519PrivateKey, public: AgreementKey) -> bytes:
    try:
        secret = private.exchange(X25519PublicKey.from_public_bytes(public))
    except ValueError:
        # OpenSSL refuses the all-zero result, which points of small order give whatever our key is.
        raise HandshakeError("zero_shared_secret") from None
    if not any(secret):
        raise HandshakeError("zero_shared_secret")
    return secret


def _derive_two(chaining_key: bytes, material: bytes) -> tuple[bytes, bytes]:
    """Noise's HKDF with two outputs (section 4.3)."""
    extracted = hmac.digest(chaining_key, material, "blake2s")
    first = hmac.digest(extracted, b"\x01", "blake2s")
    return first, hmac.digest(extracted, first + b"\x02", "blake2s")


def _cut(message: bytes, size: int) -> tuple[bytes, bytes]:
    if len(message) < size:
        raise HandshakeError("message_too_short")
    return message[:size], message[size:]
