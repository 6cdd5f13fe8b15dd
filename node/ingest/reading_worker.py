"""Process that reads publications and checks signatures for the daemon: one request, one answer, until the daemon is gone.

It writes one byte once it is ready. A request is a header and its content. Claims have a fixed size, and the answer is one
byte for each. Keys and publications come encoded, and the answer is a length and an encoded `WorkerReading`.
Both ends are processes of one user and one program, and trust each other; what strangers sent are bytes inside.
"""

import select
import struct
import sys
import time
from collections.abc import Sequence
from typing import IO, Final

import msgspec

from node.ingest.publication_reading import OpeningKeys, ReadBatch, gather_claims, read_batch
from protocol.codec import Value, encode
from protocol.crypto.signing import Claim, check_claims
from protocol.ids import Digest, Signature, UserId

REQUEST_HEADER: Final = struct.Struct("<cI")
"""What is asked for, and the bytes that follow."""
ANSWER_HEADER: Final = struct.Struct("<I")
CHECK: Final = b"c"
READ: Final = b"r"
READY: Final = b"+"
CLAIM_SIZE: Final = 32 + 32 + 64
IDLE_SECONDS: Final = 120.0
"""Seconds without a request after which a worker ends: an idle node does not hold its 40 MB."""


class WorkerReading(Value, frozen=True):
    """A batch as `read_batch` gives it, which of its claims hold, and what reading it took of the processor."""

    batch: ReadBatch
    claims_hold: list[bool]
    seconds: float


class _ReadRequest(Value, frozen=True):
    keys: OpeningKeys
    items: list[bytes]


_requests: Final = msgspec.msgpack.Decoder(_ReadRequest)
_readings: Final = msgspec.msgpack.Decoder(WorkerReading)


def pack_claims(claims: Sequence[Claim]) -> bytes:
    """Claims, one after the other: key, digest and signature have fixed sizes."""
    packed = b"".join(part for claim in claims for part in claim)
    assert len(packed) == CLAIM_SIZE * len(claims), "claims of another shape"
    return packed


def pack_reading(keys: OpeningKeys, items: Sequence[bytes]) -> bytes:
    """Encode a request to read publications."""
    return encode(_ReadRequest(keys, list(items)))


def unpack_reading(encoded: bytes) -> WorkerReading:
    """Decode a worker's answer: values as `read_batch` makes them, for a fraction of its time."""
    return _readings.decode(encoded)


def read_exactly(pipe: IO[bytes], size: int) -> bytes:
    """Read so many bytes of a pipe with or without a buffer. Raises EOFError if the other end has closed it."""
    parts, left = [], size
    while left:
        part = pipe.read(left)
        if not part:
            raise EOFError("the pipe was closed")
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _check(packed: bytes) -> bytes:
    claims = (
        # Whose key each is, only who asked knows.
        Claim(
            UserId(packed[at : at + 32]),
            Digest(packed[at + 32 : at + 64]),
            Signature(packed[at + 64 : at + CLAIM_SIZE]),
        )
        for at in range(0, len(packed), CLAIM_SIZE)
    )
    return bytes(check_claims(claims))


def _read(packed: bytes) -> bytes:
    request = _requests.decode(packed)
    began = time.process_time()
    batch = read_batch(request.keys, request.items)
    claims = gather_claims(batch)
    seconds = time.process_time() - began
    encoded = encode(WorkerReading(batch, check_claims(claims), seconds))
    return ANSWER_HEADER.pack(len(encoded)) + encoded


def serve(requests: IO[bytes], answers: IO[bytes], idle_seconds: float = IDLE_SECONDS) -> None:
    """Answer requests until the daemon is gone, or asks for nothing for so long. `requests` has no buffer.

    The next request may have come before one is answered: in a buffer, `select` would not see it.
    """
    answers.write(READY)
    answers.flush()
    while select.select([requests], [], [], idle_seconds)[0]:
        try:
            kind, size = REQUEST_HEADER.unpack(read_exactly(requests, REQUEST_HEADER.size))
            packed = read_exactly(requests, size)
        except EOFError:
            return
        answers.write(_check(packed) if kind == CHECK else _read(packed))
        answers.flush()


if __name__ == "__main__":
    with open(sys.stdin.fileno(), "rb", buffering=0, closefd=False) as requests:
        serve(requests, sys.stdout.buffer)
