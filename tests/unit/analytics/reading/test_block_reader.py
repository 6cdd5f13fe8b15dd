"""The auditor's own reader of blocks takes exactly what the node's takes and says the same of it; else it has one error."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.reading import limits
from analytics.reading.block_reader import NotABlock, read_clear
from protocol.codec import DecodeError
from protocol.crypto.keys import ConvergenceSecret
from protocol.formats.block import decode_block, encrypt_block
from protocol.ids import BlockId, CommitId
from protocol.limits import formats as format_limits

SECRET = ConvergenceSecret(b"s" * 32)
IDS = st.lists(st.binary(min_size=32, max_size=32), max_size=20)
_ARRAYS = [b"\x90", b"\x91", b"\xdc\x00\x0f", b"\xdc\x00\x10", b"\xdd\x00\x00\x00\x01"]
_BYTES = [
    b"\xc4\x20" + b"i" * 32,
    b"\xc4\x00",
    b"\xc4\x03abc",
    b"\xc5\x00\x03abc",
    b"\xc5\x01\x00" + bytes(256),
]
_OTHERS = [
    b"\x96",
    b"\xa6block2",
    b"\xc4\x08markmark",
    b"\xcc\x7f",
    b"\xcc\x80",
    b"\xcf" + bytes(8),
    b"\xc6\x00\x01\x00\x00" + bytes(65_536),
    b"\xc0",
    b"\xc1",
    b"\x80",
]
PIECES = st.sampled_from([*_ARRAYS, *_BYTES, *_OTHERS])


MARK = b"m" * 8


def _encode(
    child_ids: list[bytes], acks: list[bytes], ciphertext: bytes, rank: int = 0, mark: bytes = b""
) -> bytes:
    return msgspec.msgpack.encode(["block2", child_ids, acks, rank, mark, ciphertext])


def _agrees(encoded: bytes) -> bool:
    """Both readers take it, and read the same, or neither does; whether they take it."""
    try:
        block = decode_block(encoded)
    except DecodeError:
        with pytest.raises(NotABlock):
            read_clear(encoded)
        return False
    assert read_clear(encoded) == (list(block.child_ids), list(block.acks), block.rank, block.mark)
    return True


@pytest.mark.slow
@pytest.mark.same_examples
@settings(max_examples=200)
@given(
    plaintext=st.binary(max_size=300),
    child_ids=IDS,
    acks=IDS,
    rank=st.integers(0, format_limits.RANK_MAX),
    is_of_commit=st.booleans(),
    data=st.data(),
)
def test_of_blocks_both_read_the_same_and_of_damaged_ones_too(
    plaintext: bytes,
    child_ids: list[BlockId],
    acks: list[CommitId],
    rank: int,
    is_of_commit: bool,
    data: st.DataObject,
) -> None:
    of_commit = (tuple(acks), rank, MARK) if is_of_commit else ((), 0, b"")
    encoded = encrypt_block(plaintext, SECRET, tuple(child_ids), *of_commit)[0].encoded
    assert _agrees(encoded)
    at = data.draw(st.integers(0, len(encoded) - 1))
    _agrees(encoded[:at] + bytes([data.draw(st.integers(0, 255))]) + encoded[at + 1 :])
    assert not _agrees(encoded[:at])
    assert not _agrees(encoded + b"\0")


@pytest.mark.slow
@pytest.mark.same_examples
@settings(max_examples=300)
@given(st.one_of(st.binary(max_size=100), st.lists(PIECES, max_size=6).map(b"".join)))
def test_arbitrary_bytes_end_in_the_one_error(encoded: bytes) -> None:
    _agrees(encoded)
    _agrees(b"\x96\xa6block2" + encoded)


@pytest.mark.parametrize("rank", [0, 1, 127, 128, 255, 256, 65_535, 65_536, 2**32 - 1, 2**32, 2**53 - 1])
def test_every_form_of_a_number_is_read(rank: int) -> None:
    encoded = _encode([], [], b"", rank, MARK)
    assert _agrees(encoded)
    start, end = encoded.index(b"\x90\x90") + 2, encoded.index(b"\xc4\x08")
    for first, size in ((b"\xcc", 1), (b"\xcd", 2), (b"\xce", 4), (b"\xcf", 8)):
        if rank < 256**size:
            written = encoded[:start] + first + rank.to_bytes(size, "big") + encoded[end:]
            assert _agrees(written) == (written == encoded), "in its shortest form alone"


@pytest.mark.parametrize("size", [0, 1, 255, 256, 65_535, 65_536])
def test_every_form_of_a_length_is_read(size: int) -> None:
    assert _agrees(_encode([], [], bytes(size)))


def test_bounds_are_those_of_the_format_and_one_over_each_is_refused() -> None:
    assert limits.BLOCK_SIZE_MAX == format_limits.BLOCK_SIZE_MAX
    assert limits.BLOCK_CHILD_COUNT_MAX == format_limits.INNER_CHILD_COUNT_MAX
    assert limits.BLOCK_ACK_COUNT_MAX == format_limits.ACK_COUNT_MAX
    assert limits.STATED_NUMBER_MAX == format_limits.TIMESTAMP_MAX_MS == format_limits.FEED_SEQUENCE_MAX
    assert limits.STATED_NUMBER_MAX == format_limits.RANK_MAX
    assert limits.BLOCK_MARK_SIZE == format_limits.MARK_SIZE
    assert limits.BLOCK_CIPHERTEXT_SIZE_MAX == format_limits.LEAF_SIZE
    raw = b"i" * 32
    for within, over in [
        (_encode([raw] * 15_887, [], b""), _encode([raw] * 15_888, [], b"")),
        (_encode([], [raw] * 128, b"", 1, MARK), _encode([], [raw] * 129, b"", 1, MARK)),
        (_encode([], [], b"", 2**53 - 1, MARK), _encode([], [], b"", 2**53, MARK)),
        (_encode([], [], b"", 0, MARK), _encode([], [], b"", 0, MARK + b"m")),
        (_encode([], [], b""), _encode([], [], b"", 1)),
        (_encode([], [], b"", 1, MARK), _encode([], [], b"", 1, MARK[:7])),
        (_encode([], [raw], b"", 0, MARK), _encode([], [raw], b"")),
        (_encode([], [], bytes(limits.BLOCK_CIPHERTEXT_SIZE_MAX)), _encode([], [], bytes(1_048_545))),
        (_encode([raw], [], bytes(1_048_524)), _encode([raw], [], bytes(1_048_525))),
    ]:
        assert _agrees(within)
        assert not _agrees(over)
    assert len(_encode([raw], [], bytes(1_048_525))) == limits.BLOCK_SIZE_MAX + 1
