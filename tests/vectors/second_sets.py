"""A second implementation of sets and their comparison, from protocol.md, section 12. It knows nothing of Ravel."""

import math
import struct
from collections.abc import Sequence

from blake3 import blake3

from tests.vectors.second_reader import CONTEXT, derive, require, tagged


def symbol_key(topic: bytes) -> bytes:
    return derive("topic to symbol key v1", topic)


def range_key(topic: bytes, session: bytes) -> bytes:
    return derive("topic and session to range key v1", session + topic)


def set_digest(ids: Sequence[bytes]) -> bytes:
    sums = [0] * 1024
    for commit_id in ids:
        hasher = blake3(commit_id, derive_key_context=f"{CONTEXT}commit id to set lanes v1")
        for lane, value in enumerate(struct.unpack("<1024H", hasher.digest(2048))):
            sums[lane] = (sums[lane] + value) % 2**16
    return derive("set lanes to set digest v1", struct.pack("<1024H", *sums))


def places_of(short_id: bytes, key: bytes, length: int) -> tuple[bytes, list[int]]:
    """What an id adds to a symbol, and the symbols to which it does."""
    bits = blake3(short_id, key=key).digest(64)
    places, place = [], 0
    for draw in struct.unpack("<28H", bits[8:]):
        places.append(place)
        jump = math.isqrt(2**64 // (draw + 1)) - 2**24
        place += 1 + (2 * place + 3) * jump // 2**25
        if place >= length:
            break
    return short_id + bits[:8], places


def prefix_length(id_count: int) -> int:
    """How many symbols are kept of so many ids."""
    lengths = (64, 256, 1024, 4096, 16_384, 65_536)
    return next((length for length in lengths if 8 * length >= id_count), lengths[-1])


def symbols_of(ids: Sequence[bytes], key: bytes, length: int) -> list[bytes]:
    symbols = [bytes(24)] * length
    for commit_id in ids:
        value, places = places_of(commit_id[:16], key, length)
        for place in places:
            symbols[place] = xor(symbols[place], value)
    return symbols


def marks_of(symbols: Sequence[bytes]) -> bytes:
    marks: list[int] = []
    octave = 64
    while octave < len(symbols):
        marks += [symbols[octave + part * octave // 64][-1] % 16 for part in range(64)]
        octave *= 2
    return bytes(low + 16 * high for low, high in zip(marks[::2], marks[1::2], strict=True))


def peel(ours: Sequence[bytes], theirs: Sequence[bytes], key: bytes) -> list[bytes]:
    """The short ids that one side alone holds."""
    sums = [xor(own, other) for own, other in zip(ours, theirs, strict=True)]
    found: list[bytes] = []
    while any(map(any, sums)):
        alone = [one[:16] for one in sums if any(one) and places_of(one[:16], key, 1)[0] == one]
        require(bool(alone) and alone[0] not in found, "ids that can be told apart")
        found.append(alone[0])
        value, places = places_of(alone[0], key, len(sums))
        for place in places:
            sums[place] = xor(sums[place], value)
    return found


def xor(first: bytes, second: bytes) -> bytes:
    return bytes(one ^ other for one, other in zip(first, second, strict=True))


def fingerprint(key: bytes, ids: Sequence[bytes]) -> bytes:
    return blake3(b"".join(ids), key=key).digest(16)


def open_ranges(frame: bytes) -> list[tuple[tuple[int, bytes], tuple[int, bytes], int, bytes]]:
    """From where to where, of which kind, with which content."""
    _, fields = tagged(frame, {"ranges1": {"ranges": [(range(2**53), bytes, range(4), bytes)]}})
    opened = []
    low: tuple[int, bytes] = (0, b"")
    for depth, prefix, kind, content in fields["ranges"]:
        require(low < (depth, prefix), "bounds ascend")
        opened.append((low, (depth, prefix), kind, content))
        low = (depth, prefix)
    return opened
