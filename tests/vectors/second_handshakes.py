"""Makes the vectors of handshakes again, with the second implementation alone."""

from typing import Any

from tests.vectors import second_handshake as handshake
from tests.vectors import second_reader as reader

Vector = Any  # whatever a file holds


def remake_handshake(vector: Vector) -> Vector:
    """From the two seeds and the two streams: who is who, what was signed, and the frames."""
    sides: dict[str, dict[str, bytes]] = {}
    for side in ("dialer", "acceptor"):
        public, static = handshake.node_keys(bytes.fromhex(vector[f"{side}_seed"]))
        ephemeral = bytes.fromhex(vector[f"{side}_ephemeral"])
        sides[side] = {"s": static, "e": ephemeral, "key": public}
    streams = {side: bytes.fromhex(vector[f"{side}_writes"]) for side in sides}
    (first, third), dialer_rest = handshake.cut_messages(streams["dialer"], 2)
    (second,), acceptor_rest = handshake.cut_messages(streams["acceptor"], 1)
    payloads, hashes, steps, keys = handshake.open_handshake(
        handshake.PROLOGUE, sides["dialer"], sides["acceptor"], [first, second, third]
    )
    by_acceptor, by_dialer = handshake.ACCEPTOR_CONTEXT + hashes[0], handshake.DIALER_CONTEXT + hashes[1]
    assert (payloads[0], payloads[2][:32]) == (b"", sides["dialer"]["key"])
    handshake.check_signature(sides["acceptor"]["key"], by_acceptor, payloads[1])
    handshake.check_signature(sides["dialer"]["key"], by_dialer, payloads[2][32:])
    session_id, topic = hashes[2], bytes.fromhex(vector["topic"])
    frames = [
        handshake.open_frames(key, rest) for key, rest in zip(keys, (dialer_rest, acceptor_rest), strict=True)
    ]
    for number, said in enumerate(frames):
        announced = {"topics": [reader.announced_topic(topic, session_id, 1 - number)]}
        assert [reader.open_message(frame)[0] for frame in said] == ["announce2", "goodbye1"]
        assert reader.open_message(said[0])[1] == announced
    return {
        "prologue": handshake.PROLOGUE,
        **{
            f"{side}_{name}": value
            for side, own in sides.items()
            for name, value in (
                ("seed", vector[f"{side}_seed"]),
                ("node_key", own["key"]),
                ("static_private", own["s"]),
                ("static_public", handshake.x25519_public(own["s"])),
                ("ephemeral", own["e"]),
            )
        },
        "messages": [first, second, third],
        "hashes": hashes,
        "chaining_keys": [chaining for chaining, _ in steps],
        "message_keys": [key for _, key in steps],
        "dialer_sends_with": keys[0],
        "acceptor_sends_with": keys[1],
        "acceptor_signs": by_acceptor,
        "dialer_signs": by_dialer,
        "session_id": session_id,
        "topic": topic,
        "blinded_topic": reader.blinded_topic(topic, session_id),
        "dialer_frames": frames[0],
        "acceptor_frames": frames[1],
        "dialer_writes": streams["dialer"],
        "acceptor_writes": streams["acceptor"],
    }


def remake_noise(vector: Vector) -> Vector:
    """The published handshake: its hash is the one after message 2, and messages go on in turn after message 3."""
    initiator, responder = (
        {"s": bytes.fromhex(vector[f"{side}_static"]), "e": bytes.fromhex(vector[f"{side}_ephemeral"])}
        for side in ("init", "resp")
    )
    prologue = bytes.fromhex(vector["init_prologue"])
    messages = [bytes.fromhex(message["ciphertext"]) for message in vector["messages"]]
    payloads, hashes, _, keys = handshake.open_handshake(prologue, initiator, responder, messages[:3])
    for number, sealed in enumerate(messages[3:]):
        payloads.append(handshake.open_sealed(keys[1 - number % 2], number // 2, sealed))
    said = {name: vector[name] for name in ("description", "provenance", "note")}
    pairs = zip(payloads, messages, strict=True)
    return said | {
        "protocol_name": handshake.NOISE_NAME.decode(),
        "init_prologue": prologue,
        "init_static": initiator["s"],
        "init_ephemeral": initiator["e"],
        "init_remote_static": handshake.x25519_public(responder["s"]),
        "resp_prologue": prologue,
        "resp_static": responder["s"],
        "resp_ephemeral": responder["e"],
        "handshake_hash": hashes[1],
        "messages": [{"payload": payload, "ciphertext": message} for payload, message in pairs],
    }
