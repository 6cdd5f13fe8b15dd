"""Bundles: one form, read as the bytes come, refused by name wherever they differ from what was written."""

import tracemalloc
from collections.abc import Callable

import pytest

from protocol.codec import DecodeError
from protocol.formats.bundle import (
    BUNDLE_START,
    BundleBatch,
    BundleDecoder,
    BundleEncoder,
    BundleEnd,
    BundleHead,
    BundleRecord,
)
from protocol.ids import BlockId, CommitId, TopicKey
from protocol.limits.files import BUNDLE_RECORD_SIZE_MAX

_TOPIC = TopicKey(b"t" * 32)
_OTHER = TopicKey(b"u" * 32)
_RECORDS: list[BundleRecord] = [
    BundleHead(1_700_000_000_000),
    BundleBatch(_TOPIC, (b"one", b"two")),
    BundleBatch(_OTHER, (b"three",)),
    BundleEnd(3, 1, (CommitId(BlockId(b"c" * 32)),)),
]


def _parts() -> list[bytes]:
    encoder = BundleEncoder()
    return [
        encoder.start(1_700_000_000_000),
        encoder.encode_batch(_TOPIC, [b"one", b"two"]),
        encoder.encode_batch(_OTHER, [b"three"]),
        encoder.encode_end(3, 1, [CommitId(BlockId(b"c" * 32))]),
    ]


def _read(content: bytes, step: int = 1 << 20) -> tuple[list[BundleRecord], str]:
    """What is given out, and the code with which it is refused."""
    decoder, found = BundleDecoder(), list[BundleRecord]()
    try:
        for start in range(0, len(content), step):
            found += decoder.feed(content[start : start + step])
        decoder.finish()
    except DecodeError as error:
        return found, error.reason
    return found, ""


@pytest.mark.parametrize("step", [1, 7, 1 << 20])
def test_a_bundle_reads_back_however_its_bytes_come(step: int) -> None:
    """By single bytes, too."""
    assert _read(b"".join(_parts()), step) == (_RECORDS, "")


def test_a_bundle_that_is_cut_at_any_byte_gives_what_came_whole() -> None:
    """And says that it is cut, wherever that was."""
    content = b"".join(_parts())
    seen = set()
    for stop in range(len(content)):
        found, code = _read(content[:stop])
        assert code == "cut"
        assert found == _RECORDS[: len(found)]
        seen.add(len(found))
    assert seen == set(range(len(_RECORDS) + 1))


def _length(size: int) -> bytes:
    return size.to_bytes(4, "little")


@pytest.mark.parametrize(
    "change, code",
    [
        (lambda parts: b"\xff\xd8\xff\xe0\x00\x10JFIF" + bytes(100), "not_a_bundle"),
        (lambda parts: b"not", "not_a_bundle"),
        (lambda parts: b"ravel bundle x\n" + bytes(9), "not_a_bundle"),
        (lambda parts: b"".join(parts).replace(b"bundle 1\n", b"bundle 2\n", 1), "unknown_version"),
        (lambda parts: parts[0].replace(b"head1", b"head2"), "bad_shape"),
        (lambda parts: parts[0] + _length(BUNDLE_RECORD_SIZE_MAX + 1), "too_large"),
        (lambda parts: parts[0] + _length(2**32 - 1), "too_large"),
        (lambda parts: parts[0] + _length(0), "bad_shape"),
        (lambda parts: parts[0] + _length(3) + b"abc", "bad_shape"),
        (lambda parts: parts[0] + parts[0][len(BUNDLE_START) :], "out_of_turn"),
        (lambda parts: BUNDLE_START + parts[1], "out_of_turn"),
        (lambda parts: parts[0] + parts[2] + parts[1] + parts[3], "bad_digest"),
        (lambda parts: parts[0] + parts[1] + parts[1] + parts[2] + parts[3], "bad_digest"),
        (lambda parts: parts[0] + parts[1] + parts[3], "bad_digest"),
        (lambda parts: b"".join(parts)[:-1] + b"x", "bad_digest"),
        (lambda parts: b"".join(parts).replace(b"two", b"twp"), "bad_digest"),
        (lambda parts: b"".join(parts) + b"x", "bytes_behind"),
        (lambda parts: b"".join(parts) * 2, "bytes_behind"),
    ],
)
@pytest.mark.parametrize("step", [1, 1 << 20])
def test_what_no_writer_makes_is_refused_by_name(
    change: Callable[[list[bytes]], bytes], code: str, step: int
) -> None:
    """What stands before it is given out all the same."""
    assert _read(change(_parts()), step)[1] == code


def test_a_part_at_its_bound_is_waited_for() -> None:
    """One byte more is refused before it comes."""
    head = _parts()[0]
    assert _read(head + _length(BUNDLE_RECORD_SIZE_MAX) + b"x")[1] == "cut"


def test_the_decoder_holds_one_part_whatever_the_bundle_has() -> None:
    """Twice as many batches take no more memory."""

    def peak(count: int) -> int:
        encoder, decoder, item = BundleEncoder(), BundleDecoder(), bytes(100_000)
        first, batch = encoder.start(None), encoder.encode_batch(_TOPIC, [item])
        tracemalloc.start()
        for part in (first, *([batch] * count)):
            for _ in decoder.feed(part):
                pass
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    assert peak(40) < 1.2 * peak(20)
