"""Vectors of what two nodes say to each other: a handshake with its first frames, and comparisons from end to end.

All inputs are fixed. The bytes of the handshake are those that `node.wire.transport` writes.
"""

from typing import Any, Final
from unittest.mock import patch

import trio
import trio.testing

from node.wire.transport import SecureStream, accept, dial
from protocol.codec import encode
from protocol.crypto import hashing
from protocol.crypto.keys import AgreementSecret, HashKey, NodeSeed, TopicSeed
from protocol.crypto.node_identity import PROLOGUE, static_private_key, static_public_key
from protocol.crypto.noise import Handshake
from protocol.crypto.noise import _derive_two as noise_keys
from protocol.crypto.signing import key_pair, public_key, sign
from protocol.ids import SHORT_ID_SIZE, CommitId, SessionId, ShortId, TopicKey
from protocol.session.messages import Announce, Goodbye, encode_message
from protocol.session.reconciliation.range_items import SortedItems
from protocol.session.reconciliation.ranges import (
    LIST,
    NOTHING,
    PRINT,
    Range,
    Ranges,
    RangesAsker,
    answer_ranges,
)
from protocol.session.reconciliation.riblt import Prefix, prefix_length
from protocol.session.reconciliation.set_digest import SetDigest
from protocol.session.reconciliation.symbols import AskSymbols, answer, encode_lacks, opening
from tests.support.ids import as_commit_id
from tests.support.streams import Recording

JsonObject = dict[str, Any]

DIALER_SEED: Final = NodeSeed(bytes(range(32)))
ACCEPTOR_SEED: Final = NodeSeed(bytes(range(32, 64)))
DIALER_EPHEMERAL: Final = AgreementSecret(bytes(range(64, 96)))
ACCEPTOR_EPHEMERAL: Final = AgreementSecret(bytes(range(96, 128)))
TOPIC: Final = public_key(TopicSeed(bytes(range(128, 160))))


def handshake() -> JsonObject:
    """A whole handshake, what each side signs, and all that both write: an announcement, a goodbye and the end."""
    dialer_key, acceptor_key = public_key(DIALER_SEED), public_key(ACCEPTOR_SEED)
    dialer_static, acceptor_static = static_private_key(DIALER_SEED), static_private_key(ACCEPTOR_SEED)
    dialer = Handshake.initiator(PROLOGUE, dialer_static, DIALER_EPHEMERAL, static_public_key(acceptor_key))
    acceptor = Handshake.responder(PROLOGUE, acceptor_static, ACCEPTOR_EPHEMERAL)
    steps: list[tuple[bytes, bytes, bytes]] = []
    derived: list[tuple[bytes, bytes]] = []

    def note(one: Handshake) -> None:
        steps.append((one.handshake_hash, *derived[-1]))

    def derive_two(chaining_key: bytes, material: bytes) -> tuple[bytes, bytes]:
        derived.append(noise_keys(chaining_key, material))
        return derived[-1]

    with patch("protocol.crypto.noise._derive_two", derive_two):
        first = dialer.write_message(b"")
        note(dialer)
        acceptor.read_message(first)
        by_acceptor = b"ravel/1 acceptor proves its node key:" + acceptor.handshake_hash
        second = acceptor.write_message(sign(key_pair(ACCEPTOR_SEED)[1], by_acceptor))
        note(acceptor)
        dialer.read_message(second)
        by_dialer = b"ravel/1 dialer proves its node key:" + dialer.handshake_hash
        third = dialer.write_message(dialer_key + sign(key_pair(DIALER_SEED)[1], by_dialer))
        note(dialer)
    hashes, chaining_keys, message_keys = (
        [value.hex() for value in values] for values in zip(*steps, strict=True)
    )
    dialer_sends, acceptor_sends = noise_keys(steps[-1][1], b"")
    session_id = SessionId(dialer.handshake_hash)
    frames = {
        side: [
            encode_message(Announce((hashing.announced_topic(TOPIC, session_id, by_dialer=by),))),
            encode_message(Goodbye(reason)),
        ]
        for side, by, reason in (("dialer", True, "unknown_topic"), ("acceptor", False, "peer_left"))
    }
    written = trio.run(_converse, frames["dialer"], frames["acceptor"])
    assert written[0].startswith(_framed(first) + _framed(third)), "the transport's handshake is this one"
    assert written[1].startswith(_framed(second))
    sides = {"dialer": (DIALER_SEED, DIALER_EPHEMERAL), "acceptor": (ACCEPTOR_SEED, ACCEPTOR_EPHEMERAL)}
    return {
        "prologue": PROLOGUE.hex(),
        **{
            f"{side}_{name}": value.hex()
            for side, (seed, ephemeral) in sides.items()
            for name, value in (
                ("seed", seed),
                ("node_key", public_key(seed)),
                ("static_private", static_private_key(seed)),
                ("static_public", static_public_key(public_key(seed))),
                ("ephemeral", ephemeral),
            )
        },
        "messages": [message.hex() for message in (first, second, third)],
        "hashes": hashes,
        "chaining_keys": chaining_keys,
        "message_keys": message_keys,
        "dialer_sends_with": dialer_sends.hex(),
        "acceptor_sends_with": acceptor_sends.hex(),
        "acceptor_signs": by_acceptor.hex(),
        "dialer_signs": by_dialer.hex(),
        "session_id": session_id.hex(),
        "topic": TOPIC.hex(),
        "blinded_topic": hashing.blind_topic(TOPIC, session_id).hex(),
        "dialer_frames": [frame.hex() for frame in frames["dialer"]],
        "acceptor_frames": [frame.hex() for frame in frames["acceptor"]],
        "dialer_writes": written[0].hex(),
        "acceptor_writes": written[1].hex(),
    }


def _framed(message: bytes) -> bytes:
    return len(message).to_bytes(2, "big") + message


async def _converse(dialer_frames: list[bytes], acceptor_frames: list[bytes]) -> tuple[bytes, bytes]:
    """All that each side writes, when it sends these frames and ends."""
    written = bytearray(), bytearray()
    ours, theirs = trio.testing.memory_stream_pair()
    sides: list[SecureStream] = []

    async def be_dialer() -> None:
        stream = Recording(ours, written[0])
        sides.append(await dial(stream, DIALER_SEED, public_key(ACCEPTOR_SEED), DIALER_EPHEMERAL))
        await sides[-1].send_frames(dialer_frames)

    async def be_acceptor() -> None:
        sides.append(await accept(Recording(theirs, written[1]), ACCEPTOR_SEED, ACCEPTOR_EPHEMERAL))
        await sides[-1].send_frames(acceptor_frames)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(be_dialer)
        nursery.start_soon(be_acceptor)
    async with trio.open_nursery() as nursery:
        for side in sides:
            nursery.start_soon(side.aclose)
    return bytes(written[0]), bytes(written[1])


def numbered_ids(count: int) -> list[CommitId]:
    """Ids of the vectors: id number i is the BLAKE3 of i in two bytes, little-endian."""
    return [as_commit_id(hashing.block_id(number.to_bytes(2, "little"))) for number in range(count)]


def comparisons() -> JsonObject:
    """Two comparisons of the ids with numbers in these ranges: the first frame of symbols with marks, and all of ranges."""
    topic, session = hashing.block_id(b"topic"), hashing.block_id(b"session")
    many = numbered_ids(600)
    prefix = Prefix(hashing.symbol_key(TopicKey(topic)), prefix_length(len(many)))
    prefix.add(many)
    asker_ids, answerer_ids = many[10:300], many[:290]
    frames, asker = _compare_ranges(
        asker_ids, answerer_ids, hashing.range_key(TopicKey(topic), SessionId(session))
    )
    lacking = sorted(ShortId(commit_id[:SHORT_ID_SIZE]) for commit_id in asker.there)
    return {
        "topic": topic.hex(),
        "session_id": session.hex(),
        "ids": "id number i is the BLAKE3 of i in two bytes, little-endian",
        "symbols": {
            "numbers": [0, 600],
            "length": prefix_length(len(many)),
            "opening": opening(prefix.symbols()).hex(),
        },
        "ranges": {
            "asker_numbers": [10, 300],
            "answerer_numbers": [0, 290],
            "depth_of_all": 0,
            "frames": [frame.hex() for frame in frames],
            "asker_alone": sorted(commit_id.hex() for commit_id in asker.here),
            "answerer_alone": sorted(commit_id.hex() for commit_id in asker.there),
            "lacks": [frame.hex() for frame in encode_lacks(lacking)],
        },
    }


def _compare_ranges(
    ours: list[CommitId], theirs: list[CommitId], key: HashKey
) -> tuple[list[bytes], RangesAsker]:
    """All frames, the asker's and the answerer's in turn."""
    asker = RangesAsker(SortedItems((0, one) for one in ours), key)
    held = SortedItems((0, one) for one in theirs)
    frames: list[bytes] = []
    question: bytes | None = asker.start()
    while question is not None:
        frames += [question, answer_ranges(held, key, question)]
        question = asker.handle_frame(frames[-1])
    return frames, asker


def reconciliation() -> JsonObject:
    """One topic's ids: what is kept of them, and one frame of each kind."""
    ids = [CommitId(hashing.block_id(bytes([number]))) for number in range(40)]
    topic, session = TopicKey(hashing.block_id(b"topic")), SessionId(hashing.block_id(b"session"))
    key, ranges_key = (
        hashing.symbol_key(topic),
        hashing.range_key(topic, session),
    )
    prefix, digest = Prefix(key, prefix_length(len(ids))), SetDigest()
    prefix.add(ids)
    digest.add(ids)
    depths = [number // 8 for number in range(len(ids))]  # the format has them; this version's are all 0
    items = SortedItems(zip(depths, ids, strict=True))
    question = encode(
        Ranges(
            (
                Range(1, b"", PRINT, items.fingerprint((0, b""), (1, b""), ranges_key)),
                Range(2, b"\x80", NOTHING, b""),
                Range(3, b"", LIST, b""),
            )
        )
    )
    ask = encode(AskSymbols(48, 8))
    return {
        "topic": topic.hex(),
        "session_id": session.hex(),
        "ids": [commit_id.hex() for commit_id in ids],
        "depths_in_ranges": depths,
        "symbol_key": key.hex(),
        "range_key": ranges_key.hex(),
        "set_digest": digest.digest().hex(),
        "opening": opening(prefix.symbols()).hex(),
        "ask": ask.hex(),
        "symbols": [frame.hex() for frame in answer(prefix.symbols(), ask)],
        "lacks": [
            frame.hex()
            for frame in encode_lacks([ShortId(commit_id[:SHORT_ID_SIZE]) for commit_id in ids[:3]])
        ],
        "ranges_question": question.hex(),
        "ranges_answer": answer_ranges(items, ranges_key, question).hex(),
    }
