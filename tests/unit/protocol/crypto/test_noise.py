"""Noise XK against a published vector, node identity against its definition, and what neither may pass."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from nacl import bindings

from protocol.crypto.keys import AgreementSecret, CipherKey, NodeSeed, UserSeed
from protocol.crypto.node_identity import (
    PROLOGUE,
    AcceptorHandshake,
    DialerHandshake,
    HandshakeResult,
    static_private_key,
    static_public_key,
)
from protocol.crypto.noise import MESSAGE_COUNT_MAX, CipherState, Handshake, HandshakeError
from protocol.crypto.signing import key_pair, public_key, sign
from protocol.ids import AgreementKey, PeerId

VECTOR_PATH = Path(__file__).parents[3] / "vectors" / "noise_xk.json"
DIALER_SEED = NodeSeed(bytes(range(32)))
ACCEPTOR_SEED = NodeSeed(bytes(range(100, 132)))
DIALER_EPHEMERAL = AgreementSecret(b"\x21" * 32)
ACCEPTOR_EPHEMERAL = AgreementSecret(b"\x43" * 32)
FIELD_PRIME = 2**255 - 19

# u coordinates of small order, canonical or not: each gives the all-zero secret with every private key.
SMALL_ORDER_U = [
    (0).to_bytes(32, "little"),
    (1).to_bytes(32, "little"),
    bytes.fromhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"),
    bytes.fromhex("5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157"),
    (FIELD_PRIME - 1).to_bytes(32, "little"),
    FIELD_PRIME.to_bytes(32, "little"),
    (FIELD_PRIME + 1).to_bytes(32, "little"),
]


def noise_pair(
    prologue: bytes = b"p", remote_static: AgreementKey | None = None
) -> tuple[Handshake, Handshake]:
    """An initiator and a responder with fixed keys."""
    responder_static = X25519PrivateKey.from_private_bytes(b"\x07" * 32)
    expected = AgreementKey(remote_static or responder_static.public_key().public_bytes_raw())
    initiator = Handshake.initiator(prologue, AgreementSecret(b"\x05" * 32), DIALER_EPHEMERAL, expected)
    return initiator, Handshake.responder(b"p", AgreementSecret(b"\x07" * 32), ACCEPTOR_EPHEMERAL)


def node_pair() -> tuple[DialerHandshake, AcceptorHandshake]:
    """Both machines with fixed seeds and ephemerals."""
    dialer = DialerHandshake(DIALER_SEED, public_key(ACCEPTOR_SEED), DIALER_EPHEMERAL)
    return dialer, AcceptorHandshake(ACCEPTOR_SEED, ACCEPTOR_EPHEMERAL)


def reason_of(error: pytest.ExceptionInfo[HandshakeError]) -> str:
    """The stable word of a caught error."""
    return error.value.reason


@pytest.fixture(name="vector")
def _vector() -> dict[str, Any]:
    vector: dict[str, Any] = json.loads(VECTOR_PATH.read_text())
    return vector


class TestHandshake:
    """The pattern itself."""

    def test_published_vector(self, vector: dict[str, Any]) -> None:
        initiator = Handshake.initiator(
            bytes.fromhex(vector["init_prologue"]),
            AgreementSecret(bytes.fromhex(vector["init_static"])),
            AgreementSecret(bytes.fromhex(vector["init_ephemeral"])),
            AgreementKey(bytes.fromhex(vector["init_remote_static"])),
        )
        responder = Handshake.responder(
            bytes.fromhex(vector["resp_prologue"]),
            AgreementSecret(bytes.fromhex(vector["resp_static"])),
            AgreementSecret(bytes.fromhex(vector["resp_ephemeral"])),
        )
        messages = [(bytes.fromhex(m["payload"]), bytes.fromhex(m["ciphertext"])) for m in vector["messages"]]
        writer, reader = initiator, responder
        hashes = []
        for payload, ciphertext in messages[:3]:
            assert writer.write_message(payload) == ciphertext
            assert reader.read_message(ciphertext) == payload
            assert writer.handshake_hash == reader.handshake_hash
            hashes.append(writer.handshake_hash)
            writer, reader = reader, writer
        # The vector's hash is that after message 2. Message 3 adds its two sealed parts: 48 bytes, the rest.
        after_second, third = bytes.fromhex(vector["handshake_hash"]), messages[2][1]
        assert hashes[1] == after_second
        after_static = hashlib.blake2s(after_second + third[:48]).digest()
        assert hashes[2] == hashlib.blake2s(after_static + third[48:]).digest()
        own = X25519PrivateKey.from_private_bytes(bytes.fromhex(vector["init_static"]))
        assert responder.remote_static == own.public_key().public_bytes_raw()
        initiator_send, initiator_receive = initiator.split()
        responder_send, responder_receive = responder.split()
        directions = [(responder_send, initiator_receive), (initiator_send, responder_receive)]
        for number, (payload, ciphertext) in enumerate(messages[3:]):
            send, receive = directions[number % 2]
            assert send.encrypt(payload) == ciphertext
            assert receive.decrypt(ciphertext) == payload

    def test_a_flipped_bit_in_any_byte_is_refused(self) -> None:
        for altered_message, size in enumerate((48, 48, 64)):
            for position in range(size):
                writer, reader = noise_pair()
                for _ in range(altered_message):
                    reader.read_message(writer.write_message(b""))
                    writer, reader = reader, writer
                message = bytearray(writer.write_message(b""))
                # The top bit of a public key is ignored by X25519, but not by the hash.
                message[position] ^= 0x80
                with pytest.raises(HandshakeError):
                    reader.read_message(bytes(message))

    @pytest.mark.parametrize("size", [0, 1, 31, 32, 47])
    def test_short_message_is_refused(self, size: int) -> None:
        initiator, responder = noise_pair()
        with pytest.raises(HandshakeError) as error:
            responder.read_message(initiator.write_message(b"")[:size])
        assert reason_of(error) == ("message_too_short" if size < 32 else "not_authentic")

    @pytest.mark.parametrize("point", SMALL_ORDER_U)
    def test_zero_shared_secret_is_refused(self, point: AgreementKey) -> None:
        _, responder = noise_pair()
        with pytest.raises(HandshakeError) as error:
            responder.read_message(point + bytes(16))
        assert reason_of(error) == "zero_shared_secret"
        initiator, _ = noise_pair(remote_static=point)
        with pytest.raises(HandshakeError) as error:
            initiator.write_message(b"")
        assert reason_of(error) == "zero_shared_secret"

    def test_other_prologue_or_key_does_not_open(self) -> None:
        for initiator, responder in (
            noise_pair(prologue=b"q"),
            noise_pair(
                remote_static=AgreementKey(
                    X25519PrivateKey.from_private_bytes(b"\x08" * 32).public_key().public_bytes_raw()
                )
            ),
        ):
            with pytest.raises(HandshakeError) as error:
                responder.read_message(initiator.write_message(b""))
            assert reason_of(error) == "not_authentic"

    def test_out_of_turn_is_our_own_fault(self) -> None:
        initiator, responder = noise_pair()
        with pytest.raises(RuntimeError):
            responder.write_message(b"")
        with pytest.raises(RuntimeError):
            initiator.read_message(b"")
        with pytest.raises(RuntimeError):
            initiator.split()
        with pytest.raises(RuntimeError):
            _ = responder.remote_static
        initiator.write_message(b"")
        with pytest.raises(RuntimeError):
            initiator.write_message(b"")

    def test_failed_handshake_is_dead(self) -> None:
        initiator, responder = noise_pair()
        good = initiator.write_message(b"")
        with pytest.raises(HandshakeError):
            responder.read_message(good[:-1] + bytes([good[-1] ^ 1]))
        with pytest.raises(RuntimeError):
            responder.read_message(good)

    def test_split_only_once(self) -> None:
        initiator, responder = noise_pair()
        responder.read_message(initiator.write_message(b""))
        initiator.read_message(responder.write_message(b""))
        responder.read_message(initiator.write_message(b""))
        initiator.split()
        with pytest.raises(RuntimeError):
            initiator.split()


class TestCipherState:
    """One direction of a session."""

    def test_order_loss_and_repetition_are_noticed(self) -> None:
        send, receive = CipherState(CipherKey(b"k" * 32)), CipherState(CipherKey(b"k" * 32))
        first, second, third = send.encrypt(b"1"), send.encrypt(b"2"), send.encrypt(b"3")
        assert receive.decrypt(first) == b"1"
        for wrong in (first, third, b"", second[:-1]):
            with pytest.raises(HandshakeError) as error:
                receive.decrypt(wrong)
            assert reason_of(error) == "not_authentic"
        assert receive.decrypt(second) == b"2"

    def test_refuses_past_its_bound(self) -> None:
        send = CipherState(CipherKey(b"k" * 32), MESSAGE_COUNT_MAX - 1)
        receive = CipherState(CipherKey(b"k" * 32), MESSAGE_COUNT_MAX - 1)
        assert receive.decrypt(send.encrypt(b"last")) == b"last"
        for refuse in (send.encrypt, receive.decrypt):
            with pytest.raises(HandshakeError) as error:
                refuse(b"one more than fits, long enough")
            assert reason_of(error) == "exhausted"


class TestNodeIdentity:
    """Ed25519 node keys on top."""

    def test_both_sides_prove_their_key(self) -> None:
        dialer, acceptor = node_pair()
        second = acceptor.read_first(dialer.first_message())
        third, dialer_session = dialer.read_second(second)
        acceptor_session = acceptor.read_third(third)
        assert dialer_session.peer_key == public_key(ACCEPTOR_SEED)
        assert acceptor_session.peer_key == public_key(DIALER_SEED)
        assert dialer_session.session_id == acceptor_session.session_id
        assert acceptor_session.receive.decrypt(dialer_session.send.encrypt(b"there")) == b"there"
        assert dialer_session.receive.decrypt(acceptor_session.send.encrypt(b"back")) == b"back"

    def test_session_id_differs_with_either_ephemeral(self) -> None:
        def session(
            dialer_ephemeral: AgreementSecret, acceptor_ephemeral: AgreementSecret
        ) -> HandshakeResult:
            dialer = DialerHandshake(DIALER_SEED, public_key(ACCEPTOR_SEED), dialer_ephemeral)
            acceptor = AcceptorHandshake(ACCEPTOR_SEED, acceptor_ephemeral)
            return dialer.read_second(acceptor.read_first(dialer.first_message()))[1]

        ids = {
            session(AgreementSecret(a * 32), AgreementSecret(b * 32)).session_id
            for a in (b"1", b"2")
            for b in (b"3", b"4")
        }
        assert len(ids) == 4

    def test_conversion_is_the_birational_map(self) -> None:
        for number in range(20):
            seed = hashlib.sha256(bytes([number])).digest()
            y = int.from_bytes(public_key(UserSeed(seed)), "little") & (2**255 - 1)
            u = (1 + y) * pow(1 - y, -1, FIELD_PRIME) % FIELD_PRIME
            assert static_public_key(public_key(NodeSeed(seed))) == u.to_bytes(32, "little")
            private = X25519PrivateKey.from_private_bytes(static_private_key(NodeSeed(seed)))
            assert private.public_key().public_bytes_raw() == u.to_bytes(32, "little")

    @pytest.mark.parametrize(
        "key",
        [
            bytes(32),  # order 4
            (1).to_bytes(32, "little"),  # the identity
            (FIELD_PRIME - 1).to_bytes(32, "little"),  # order 2
            bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"),  # order 8
            FIELD_PRIME.to_bytes(32, "little"),  # 0, not canonical
            (FIELD_PRIME + 1).to_bytes(32, "little"),  # the identity, not canonical
            b"\xff" * 32,
            (2).to_bytes(32, "little"),  # not on the curve
            b"",
            b"\x11" * 31,
        ],
    )
    def test_bad_peer_key_is_refused(self, key: PeerId) -> None:
        with pytest.raises(HandshakeError) as error:
            DialerHandshake(DIALER_SEED, key, DIALER_EPHEMERAL)
        assert reason_of(error) == "bad_key"

    def test_mixed_order_peer_key_is_refused(self) -> None:
        order_two = (FIELD_PRIME - 1).to_bytes(32, "little")
        mixed = PeerId(bindings.crypto_core_ed25519_add(public_key(DIALER_SEED), order_two))
        with pytest.raises(HandshakeError) as error:
            static_public_key(mixed)
        assert reason_of(error) == "bad_key"

    def test_acceptor_with_the_mirrored_key_is_refused(self) -> None:
        """A and -A share their X25519 key, so only the signature tells them apart."""
        mirrored = negated(public_key(ACCEPTOR_SEED))
        assert static_public_key(mirrored) == static_public_key(public_key(ACCEPTOR_SEED))
        dialer = DialerHandshake(DIALER_SEED, mirrored, DIALER_EPHEMERAL)
        acceptor = AcceptorHandshake(ACCEPTOR_SEED, ACCEPTOR_EPHEMERAL)
        with pytest.raises(HandshakeError) as error:
            dialer.read_second(acceptor.read_first(dialer.first_message()))
        assert reason_of(error) == "wrong_key"

    @pytest.mark.parametrize(
        "claim, reason",
        [
            ("nothing", "bad_payload"),
            ("too long", "bad_payload"),
            ("mirrored key", "wrong_key"),
            ("another's key", "wrong_key"),
            ("other context", "wrong_key"),
            ("other session", "wrong_key"),
            ("small order key", "bad_key"),
        ],
    )
    def test_false_claim_in_message_three_is_refused(self, claim: str, reason: str) -> None:
        own_key, secret_key = key_pair(DIALER_SEED)
        noise = Handshake.initiator(
            PROLOGUE,
            static_private_key(DIALER_SEED),
            DIALER_EPHEMERAL,
            static_public_key(public_key(ACCEPTOR_SEED)),
        )
        acceptor = AcceptorHandshake(ACCEPTOR_SEED, ACCEPTOR_EPHEMERAL)
        noise.read_message(acceptor.read_first(noise.write_message(b"")))
        context = b"ravel/1 dialer proves its node key:"
        proof = sign(secret_key, context + noise.handshake_hash)
        other_key, other_secret = key_pair(UserSeed(b"\x55" * 32))
        payload = {
            "nothing": b"",
            "too long": own_key + proof + b"\0",
            "mirrored key": negated(own_key) + proof,
            "another's key": other_key + sign(other_secret, context + noise.handshake_hash),
            "other context": own_key
            + sign(secret_key, b"ravel/1 acceptor proves its node key:" + noise.handshake_hash),
            "other session": own_key + sign(secret_key, context + bytes(32)),
            "small order key": bytes(32) + proof,
        }[claim]
        with pytest.raises(HandshakeError) as error:
            acceptor.read_third(noise.write_message(payload))
        assert reason_of(error) == reason

    @pytest.mark.parametrize("payload", [b"", bytes(63), bytes(64), bytes(65)])
    def test_false_proof_in_message_two_is_refused(self, payload: bytes) -> None:
        dialer, _ = node_pair()
        noise = Handshake.responder(PROLOGUE, static_private_key(ACCEPTOR_SEED), ACCEPTOR_EPHEMERAL)
        noise.read_message(dialer.first_message())
        with pytest.raises(HandshakeError) as error:
            dialer.read_second(noise.write_message(payload))
        assert reason_of(error) == ("wrong_key" if len(payload) == 64 else "bad_payload")

    def test_payload_in_message_one_is_refused(self) -> None:
        remote_static = static_public_key(public_key(ACCEPTOR_SEED))
        noise = Handshake.initiator(
            PROLOGUE, static_private_key(DIALER_SEED), DIALER_EPHEMERAL, remote_static
        )
        with pytest.raises(HandshakeError) as error:
            AcceptorHandshake(ACCEPTOR_SEED, ACCEPTOR_EPHEMERAL).read_first(noise.write_message(b"x"))
        assert reason_of(error) == "bad_payload"


def negated(key: bytes) -> PeerId:
    """-A of A: the same y, the other sign of x."""
    return PeerId(key[:31] + bytes([key[31] ^ 0x80]))
