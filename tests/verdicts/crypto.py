"""Hashes, keys, signatures, boxes and seals of section 2."""

import ctypes
from functools import lru_cache

import nacl._sodium
from blake3 import blake3
from nacl import bindings
from nacl.exceptions import CryptoError

from .codec import Refused, decode, encode

# PyNaCl binds no plain ChaCha20, which section 3 asks for, so it is taken from the library beneath.
_sodium = ctypes.CDLL(nacl._sodium.__file__)
_stream = _sodium.crypto_stream_chacha20_ietf_xor
_stream.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulonglong, ctypes.c_char_p, ctypes.c_char_p]
_NONCE = bytes(12)
ZEROS = bytes(32)


def digest(data):
    """Hash with BLAKE3."""
    return blake3(data).digest()


def keyed(key, data):
    """Hash under a key."""
    return blake3(data, key=key).digest()


def derive(words, material, length=32):
    """Derive a key in the context that these words name."""
    return blake3(material, derive_key_context="ravel 2026-11 " + words).digest(length)


def chacha(key, data):
    """Encrypt or decrypt with ChaCha20, nonce and counter zero."""
    out = ctypes.create_string_buffer(len(data))
    _stream(out, data, len(data), _NONCE, key)
    return out.raw


def mix(left, right):
    """Combine 32 bytes by exclusive or."""
    return (int.from_bytes(left, "little") ^ int.from_bytes(right, "little")).to_bytes(32, "little")


@lru_cache(65536)
def is_public_key(key):
    """Whether this is a canonical key of the prime-order group."""
    return len(key) == 32 and bool(bindings.crypto_core_ed25519_is_valid_point(key))


@lru_cache(4096)
def pair(seed):
    """The public and the secret key of a seed."""
    return bindings.crypto_sign_seed_keypair(seed)


def public(seed):
    """The public key of a seed."""
    return pair(seed)[0]


def sign(seed, message):
    """Sign a digest."""
    key, secret = pair(seed)
    signature = bindings.crypto_sign(message, secret)[:64]
    if len(_made) > 100_000:
        _made.clear()
    _made.add((key, message, signature))
    return signature


# Signatures that were made here, in this run: they hold, so a maker of histories need not verify them again.
_made = set()


def verify(key, message, signature):
    """Verify strictly: a key of the prime-order group, R not of small order, S reduced, no cofactor.

    PyNaCl's library compares R's bytes with what the equation gives, so R is canonical where they are equal.
    """
    return (key, message, signature) in _made or _verify(key, message, signature)


@lru_cache(65536)
def _verify(key, message, signature):
    if not is_public_key(key):
        return False
    try:
        bindings.crypto_sign_open(signature + message, key)
    except CryptoError:
        return False
    return True


# Keys of an epoch.


@lru_cache(65536)
def convergence(key):
    """The convergence secret of an epoch."""
    return derive("epoch key to convergence secret v1", key)


@lru_cache(65536)
def read_key(key):
    """The read key of an epoch."""
    return derive("epoch key to epoch read key v1", key)


@lru_cache(65536)
def own_topic_seed(key, repo):
    """The seed of an epoch's own topic."""
    return derive("epoch key and repo to epoch topic seed v1", key + repo)


@lru_cache(65536)
def own_topic(key, repo):
    """The id of an epoch's own topic."""
    return public(own_topic_seed(key, repo))


def writers_topic_seed(secret, repo, mark):
    """The seed of an epoch's writers' topic."""
    return derive("writers secret, repo and mark to writers topic seed v1", secret + repo + mark)


@lru_cache(65536)
def sealing_key(key, repo):
    """The sealing key of an epoch's key."""
    return derive("epoch key and repo to sealing key v1", key + repo)


@lru_cache(65536)
def writers_sealing_key(secret, repo):
    """The sealing key of a writers' secret."""
    return derive("writers secret and repo to sealing key v1", secret + repo)


@lru_cache(65536)
def point(sealing):
    """The mark that belongs to a sealing key."""
    return bindings.crypto_scalarmult_base(sealing)


def mark_of(key, repo):
    """The mark of an epoch's key."""
    return point(sealing_key(key, repo))


def writers_mark_of(secret, repo):
    """The mark of a writers' secret."""
    return point(writers_sealing_key(secret, repo))


@lru_cache(65536)
def _user_point(user):
    return bindings.crypto_sign_ed25519_pk_to_curve25519(user)


def _pad(shared, mark, user):
    return derive("shared point, mark and user to box v1", shared + mark + user)


def is_prekey(key):
    """Whether a shared point with this key is not zero: the same for every private key."""
    try:
        return bindings.crypto_scalarmult(ZEROS, key) != ZEROS
    except (CryptoError, RuntimeError):
        return False


@lru_cache(65536)
def box(secret, sealing, user, prekey=None):
    """The box of a user: a secret under what its sealing key and the user's prekey share, or the user's own key."""
    shared = bindings.crypto_scalarmult(sealing, prekey or _user_point(user))
    return mix(secret, _pad(shared, point(sealing), user))


def key_box(key, repo, user, prekey=None):
    """The box of a user with an epoch's key."""
    return box(key, sealing_key(key, repo), user, prekey)


def writers_box(secret, repo, user, prekey=None):
    """The box of a user with a writers' secret."""
    return box(secret, writers_sealing_key(secret, repo), user, prekey)


@lru_cache(65536)
def _shared(seed, mark):
    return _shared_of(bindings.crypto_sign_ed25519_sk_to_curve25519(pair(seed)[1]), mark)


def _shared_of(private, mark):
    try:
        return bindings.crypto_scalarmult(private, mark)
    except (CryptoError, RuntimeError):
        return None


def open_box(seed, mark, boxed, private=None):
    """Take the secret out of a box with the private half of a prekey, else of the user's own key; None by a small mark."""
    shared = _shared(seed, mark) if private is None else _shared_of(private, mark)
    if shared is None or shared == ZEROS:
        return None
    return mix(boxed, _pad(shared, mark, public(seed)))


def _cipher_key(key):
    return derive("epoch key to epoch cipher key v1", key)


def seal(key, letters, repo, mark, nonce, plain):
    """Seal under an epoch's key: the nonce and what XChaCha20-Poly1305 makes."""
    data = bindings.crypto_aead_xchacha20poly1305_ietf_encrypt(
        plain, letters + repo + mark, nonce, _cipher_key(key)
    )
    return nonce + data


@lru_cache(65536)
def unseal(key, letters, repo, mark, sealed):
    """Open what was sealed under an epoch's key, or None."""
    if len(sealed) < 40:
        return None
    try:
        return bindings.crypto_aead_xchacha20poly1305_ietf_decrypt(
            sealed[24:], letters + repo + mark, sealed[:24], _cipher_key(key)
        )
    except CryptoError:
        return None


@lru_cache(65536)
def sealed_keys(key, repo, mark, sealed):
    """The pairs of epoch and key that an init seals, or None where that does not open."""
    plain = unseal(key, b"keys", repo, mark, sealed)
    if plain is None:
        return None
    try:
        value = decode(plain)
    except Refused:
        return None
    if type(value) is not list or len(value) != 1 or type(value[0]) is not list or len(value[0]) > 2048:
        return None
    for item in value[0]:
        if type(item) is not list or [type(part) for part in item] != [bytes, bytes]:
            return None
        if len(item[0]) != 32 or len(item[1]) != 32:
            return None
    return tuple((epoch, secret) for epoch, secret in value[0])


@lru_cache(65536)
def branch_mark(key, branch):
    """The mark of a branch in an epoch."""
    secret = derive("epoch key and branch to branch secret v1", key + branch)
    return derive("branch secret to branch mark v1", secret)[:8]


# Digests that are signed.


def repo_digest(repo, name, owners, *council):
    """What the repo's key signs to certify the init, and the council that it states, if any."""
    return derive("repo certificate signature v1", encode([repo, name, owners, *council]))


def publication_digest(topic, hidden, ids):
    """What a topic's key signs."""
    return derive("publication signature v1", encode([topic, hidden, ids]))


def recovery_digest(repo, friends, user, permission):
    """The digest that a member's friends sign for a recovery grant."""
    return derive("recovery grant signature v1", encode([repo, friends, user, permission]))


def invitation_digest(repo, user):
    """What an invitation's key signs for who joins."""
    return derive("invitation proof signature v1", encode([repo, user]))
