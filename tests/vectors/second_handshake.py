"""The handshake and the frames, read a second time: from the Noise specification (revision 34), with public libraries.

Section 8 of protocol.md says what Ravel adds to it: whose keys they are, what is signed, and how it is framed.
"""

import hashlib
import hmac
from collections.abc import Sequence

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from nacl import bindings

NOISE_NAME = b"Noise_XK_25519_ChaChaPoly_BLAKE2s"
PROLOGUE = b"ravel/1"
ACCEPTOR_CONTEXT = b"ravel/1 acceptor proves its node key:"
DIALER_CONTEXT = b"ravel/1 dialer proves its node key:"
FRAME_SIZE_MAX = 3 << 19


def open_handshake(
    prologue: bytes, dialer: dict[str, bytes], acceptor: dict[str, bytes], messages: Sequence[bytes]
) -> tuple[list[bytes], list[bytes], list[tuple[bytes, bytes]], tuple[bytes, bytes]]:
    """Payloads, the hash after each message, the chaining key and key behind each agreement, and both sides' sending keys.

    It is read by someone who knows both sides' private keys, static (`s`) and ephemeral (`e`).
    """
    chaining = hashlib.blake2s(NOISE_NAME).digest()
    said = hashlib.blake2s(
        hashlib.blake2s(chaining + prologue).digest() + x25519_public(acceptor["s"])
    ).digest()
    key, count = b"", 0
    payloads, hashes, steps = [], [], []
    for message, tokens in zip(messages, (("e", "es", 32), ("e", "ee", 32), ("s", "se", 48)), strict=True):
        public, agreement, size = tokens
        head, sealed = message[:size], message[size:]
        if public == "s":
            assert open_sealed(key, count, head, said) == x25519_public(dialer["s"])
        else:
            ephemeral = (dialer if agreement == "es" else acceptor)["e"]
            assert head == x25519_public(ephemeral)
        said = hashlib.blake2s(said + head).digest()
        ours, theirs = agreement[0], agreement[1]
        shared = X25519PrivateKey.from_private_bytes(dialer[ours]).exchange(
            X25519PublicKey.from_public_bytes(x25519_public(acceptor[theirs]))
        )
        chaining, key = two_keys(chaining, shared)
        steps.append((chaining, key))
        payloads.append(open_sealed(key, 0, sealed, said))
        count = 1  # of what this key has sealed
        said = hashlib.blake2s(said + sealed).digest()
        hashes.append(said)
    return payloads, hashes, steps, two_keys(chaining, b"")


def open_sealed(key: bytes, count: int, sealed: bytes, associated: bytes = b"") -> bytes:
    return ChaCha20Poly1305(key).decrypt(bytes(4) + count.to_bytes(8, "little"), sealed, associated)


def x25519_public(private: bytes) -> bytes:
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def two_keys(chaining: bytes, material: bytes) -> tuple[bytes, bytes]:
    """Noise's HKDF with two outputs."""
    secret = hmac.digest(chaining, material, "blake2s")
    first = hmac.digest(secret, b"\x01", "blake2s")
    return first, hmac.digest(secret, first + b"\x02", "blake2s")


def node_keys(seed: bytes) -> tuple[bytes, bytes]:
    """A node's public Ed25519 key and its private X25519 key."""
    public, secret = bindings.crypto_sign_seed_keypair(seed)
    return public, bindings.crypto_sign_ed25519_sk_to_curve25519(secret)


def check_signature(key: bytes, signed: bytes, signature: bytes) -> None:
    """Raise unless the node key signed this."""
    assert len(signature) == 64
    bindings.crypto_sign_open(signature + signed, key)


def cut_messages(stream: bytes, count: int) -> tuple[list[bytes], bytes]:
    """The first messages of one direction, each behind its length of 2 bytes, and what follows them."""
    messages: list[bytes] = []
    for _ in range(count):
        size = int.from_bytes(stream[:2], "big")
        assert size <= 1024
        messages.append(stream[2 : 2 + size])
        stream = stream[2 + size :]
    return messages, stream


def open_frames(key: bytes, stream: bytes) -> list[bytes]:
    """All frames of one direction, which must end with a length of 0."""
    frames: list[bytes] = []
    count = 0
    while True:
        size = int.from_bytes(open_sealed(key, count, stream[:20]), "big")
        assert size <= FRAME_SIZE_MAX
        stream = stream[20:]
        count += 1
        if not size:
            assert not stream, "nothing after the end"
            return frames
        frames.append(open_sealed(key, count, stream[: size + 16]))
        stream = stream[size + 16 :]
        count += 1
