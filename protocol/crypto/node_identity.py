"""Authenticated handshake between two node keys (Noise XK plus Ed25519 signatures), as two pure state machines.

A node has one Ed25519 key; its public half is the peer id. Noise needs X25519 keys, which come from it by the standard
conversion (RFC 7748's birational map), so a peer id is all that one needs to dial. The conversion forgets a sign: A and
-A give one X25519 key. Therefore each side also signs, with the Ed25519 key itself, the handshake so far; that proves
which of the two keys is meant, and ties the claim to this session alone.

    message 1   dialer -> acceptor   empty
    message 2   acceptor -> dialer   signature (64) over the acceptor's context and the hash after message 1
    message 3   dialer -> acceptor   public key (32), signature (64) over the dialer's context and the hash
                                     after message 2

The hash covers the prologue (name and version of the protocol), the acceptor's static key and all bytes exchanged, so a
signature is worthless in any other session, version or role. Node keys sign handshakes only.

Framing, deadlines and the drawing of ephemeral keys are left to `node.wire.transport`; whether a proven peer is welcome, to
its caller.
"""

from dataclasses import dataclass
from typing import Final

from nacl import bindings

from protocol.crypto.keys import AgreementSecret, NodeSeed
from protocol.crypto.noise import CipherState, Handshake, HandshakeError
from protocol.crypto.signing import BadSignature, key_pair, sign, verify_public_key, verify_signature
from protocol.ids import AgreementKey, PeerId, SessionId, Signature

PROLOGUE: Final = b"ravel/1"
_DIALER_CONTEXT: Final = b"ravel/1 dialer proves its node key:"
_ACCEPTOR_CONTEXT: Final = b"ravel/1 acceptor proves its node key:"
_PUBLIC_KEY_SIZE: Final = 32
_SIGNATURE_SIZE: Final = 64


@dataclass(frozen=True, slots=True)
class HandshakeResult:
    """Result of a handshake: two ciphers, the proven peer, and a name of the session."""

    send: CipherState
    receive: CipherState
    peer_key: PeerId
    session_id: SessionId
    """32 bytes, equal on both sides, different in every session; not secret from an eavesdropper."""


class DialerHandshake:
    """Dialer's side of the handshake, which knows the acceptor's key: `first_message`, then `read_second`."""

    def __init__(self, seed: NodeSeed, peer_key: PeerId, ephemeral: AgreementSecret) -> None:
        """HandshakeError `bad_key` when nobody can hold `peer_key`. `ephemeral` is 32 fresh random bytes."""
        self._public_key, self._secret_key = key_pair(seed)
        self._peer_key = peer_key
        remote_static = static_public_key(peer_key)
        self._noise = Handshake.initiator(PROLOGUE, static_private_key(seed), ephemeral, remote_static)

    def first_message(self) -> bytes:
        """Message 1: tells the acceptor that someone knows its id, and all others nothing."""
        return self._noise.write_message(b"")

    def read_second(self, message: bytes) -> tuple[bytes, HandshakeResult]:
        """Message 3 and the session, once message 2 has proven the acceptor's key (else HandshakeError)."""
        signed = _ACCEPTOR_CONTEXT + self._noise.handshake_hash
        proof = Signature(self._noise.read_message(message))
        _verify(self._peer_key, signed, proof)
        signature = sign(self._secret_key, _DIALER_CONTEXT + self._noise.handshake_hash)
        third = self._noise.write_message(self._public_key + signature)
        return third, _session(self._noise, self._peer_key)


class AcceptorHandshake:
    """Acceptor's side of the handshake, which learns the dialer's key: `read_first`, then `read_third`."""

    def __init__(self, seed: NodeSeed, ephemeral: AgreementSecret) -> None:
        """`ephemeral` is 32 fresh random bytes."""
        self._secret_key = key_pair(seed)[1]
        self._noise = Handshake.responder(PROLOGUE, static_private_key(seed), ephemeral)

    def read_first(self, message: bytes) -> bytes:
        """Message 2; HandshakeError `not_authentic` if the dialer wants another key or another version."""
        if self._noise.read_message(message):
            raise HandshakeError("bad_payload")
        signature = sign(self._secret_key, _ACCEPTOR_CONTEXT + self._noise.handshake_hash)
        return self._noise.write_message(signature)

    def read_third(self, message: bytes) -> HandshakeResult:
        """Return the session, once message 3 has proven the dialer's key (else HandshakeError)."""
        signed = _DIALER_CONTEXT + self._noise.handshake_hash
        payload = self._noise.read_message(message)
        if len(payload) != _PUBLIC_KEY_SIZE + _SIGNATURE_SIZE:
            raise HandshakeError("bad_payload")
        peer_key, signature = PeerId(payload[:_PUBLIC_KEY_SIZE]), Signature(payload[_PUBLIC_KEY_SIZE:])
        if static_public_key(peer_key) != self._noise.remote_static:
            raise HandshakeError("wrong_key")
        _verify(peer_key, signed, signature)
        return _session(self._noise, peer_key)


def static_private_key(seed: NodeSeed) -> AgreementSecret:
    """Return the X25519 private key of a node's seed."""
    return AgreementSecret(bindings.crypto_sign_ed25519_sk_to_curve25519(key_pair(seed)[1]))


def static_public_key(peer_key: PeerId) -> AgreementKey:
    """Return the X25519 public key of a peer id; HandshakeError `bad_key` unless `verify_public_key` passes it."""
    try:
        verify_public_key(peer_key)
    except BadSignature:
        raise HandshakeError("bad_key") from None
    return AgreementKey(bindings.crypto_sign_ed25519_pk_to_curve25519(peer_key))


def _verify(key: PeerId, signed: bytes, signature: Signature) -> None:
    if len(signature) != _SIGNATURE_SIZE:
        raise HandshakeError("bad_payload")
    try:
        verify_signature(key, signed, signature)
    except BadSignature:
        raise HandshakeError("wrong_key") from None


def _session(noise: Handshake, peer_key: PeerId) -> HandshakeResult:
    session_id = SessionId(noise.handshake_hash)
    send, receive = noise.split()
    return HandshakeResult(send, receive, peer_key, session_id)
