"""Bundles: files that carry publications of a repo, sealed as on the wire, by a stick or by mail.

A bundle begins with BUNDLE_START. Records follow: a length of 4 bytes, little-endian, and so many bytes of one value. The
first is a `bundle-head1`, the last a `bundle-end1`, those between are `bundle-batch1`. Then comes the digest of all bytes
before it. A batch stands on its own: whoever reads a bundle that was cut takes what came whole.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Final

from msgspec import Meta

from protocol.codec import DecodeError, Wire, decode, encode, peek_loose_tag
from protocol.crypto import hashing
from protocol.formats.content import UnixMilliseconds
from protocol.ids import CommitId, TopicKey
from protocol.limits.files import (
    BUNDLE_COUNT_MAX,
    BUNDLE_RECORD_SIZE_MAX,
    BUNDLE_STANDS_ON_MAX,
)
from protocol.limits.formats import PUBLICATION_SIZE_MAX
from protocol.limits.peers import BATCH_COUNT_MAX

BUNDLE_START: Final = b"ravel bundle 1\n"
_NAME: Final = b"ravel bundle "
_LENGTH_SIZE: Final = 4
_DIGEST_SIZE: Final = 32


class BundleHead(Wire, frozen=True, tag="bundle-head1"):
    """First record of a bundle: since when the writer's received commits are in it; None for all."""

    since: UnixMilliseconds | None


class BundleBatch(Wire, frozen=True, tag="bundle-batch1"):
    """Publications of one topic, causes before effects."""

    topic: TopicKey
    items: Annotated[
        tuple[Annotated[bytes, Meta(max_length=PUBLICATION_SIZE_MAX)], ...],
        Meta(min_length=1, max_length=BATCH_COUNT_MAX),
    ]


class BundleEnd(Wire, frozen=True, tag="bundle-end1"):
    """Last record: how many commits are carried, how many damaged ones are left out, and what carried ones ack outside."""

    count: Annotated[int, Meta(ge=0, le=BUNDLE_COUNT_MAX)]
    left_out: Annotated[int, Meta(ge=0, le=BUNDLE_COUNT_MAX)]
    stands_on: Annotated[tuple[CommitId, ...], Meta(max_length=BUNDLE_STANDS_ON_MAX)]


BundleRecord = BundleHead | BundleBatch | BundleEnd
_KINDS: Final[dict[str, type[BundleRecord]]] = {
    "bundle-head1": BundleHead,
    "bundle-batch1": BundleBatch,
    "bundle-end1": BundleEnd,
}


class BundleEncoder:
    """Encodes the parts of one bundle, in order, and keeps their digest."""

    def __init__(self) -> None:
        self._hasher = hashing.bundle_digest()

    def start(self, since: int | None) -> bytes:
        """Return the bundle's first bytes; `since` in unix milliseconds."""
        return self._add(BUNDLE_START + _framed(BundleHead(since)))

    def encode_batch(self, topic: TopicKey, items: Sequence[bytes]) -> bytes:
        """Return the bytes of a batch of publications."""
        return self._add(_framed(BundleBatch(topic, tuple(items))))

    def encode_end(self, count: int, left_out: int, stands_on: Sequence[CommitId]) -> bytes:
        """Return the bundle's last bytes."""
        last = self._add(_framed(BundleEnd(count, left_out, tuple(stands_on))))
        return last + self._hasher.digest()

    def _add(self, some: bytes) -> bytes:
        self._hasher.update(some)
        return some


def _framed(record: BundleRecord) -> bytes:
    encoded = encode(record)
    return len(encoded).to_bytes(_LENGTH_SIZE, "little") + encoded


class BundleDecoder:
    """Takes a bundle's bytes as they come, and gives its records. Holds one record that is not whole yet at most."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._hasher = hashing.bundle_digest()
        self._has_begun = self._has_head = self._has_end = self._is_over = False
        self.size = 0
        """Bytes of all that was given out whole."""

    def feed(self, data: bytes) -> Iterator[BundleRecord]:
        """Yield the records that are whole with these bytes.

        Raises DecodeError `not_a_bundle`, `unknown_version`, `too_large`, `out_of_turn`, `bad_digest`, `bytes_behind`, and
        those of `decode`.
        """
        self._held += data
        while (record := self._next()) is not None:
            yield record

    def finish(self) -> None:
        """Raise DecodeError unless all of the bundle came: `cut`, or `not_a_bundle` where not even its start did."""
        if not self._has_begun and not BUNDLE_START.startswith(self._held):
            raise _not_a_bundle()
        if not self._is_over:
            raise DecodeError("cut", f"it ends after {self.size + len(self._held)} bytes")

    def _next(self) -> BundleRecord | None:
        if not self._has_begun and not self._begin():
            return None
        if self._has_end:
            self._check_end()
            return None
        if len(self._held) < _LENGTH_SIZE:
            return None
        length = int.from_bytes(self._held[:_LENGTH_SIZE], "little")
        if length > BUNDLE_RECORD_SIZE_MAX:  # before it is waited for
            raise DecodeError("too_large", f"a part of {length} bytes, at most {BUNDLE_RECORD_SIZE_MAX}")
        if len(self._held) < _LENGTH_SIZE + length:
            return None
        encoded = self._take(_LENGTH_SIZE + length)[_LENGTH_SIZE:]
        return self._in_turn(_decode(encoded))

    def _begin(self) -> bool:
        size = len(BUNDLE_START)
        if len(self._held) < size:
            if not BUNDLE_START.startswith(self._held) and not _NAME.startswith(self._held[: len(_NAME)]):
                raise _not_a_bundle()
            return False
        start = bytes(self._held[:size])
        if start != BUNDLE_START:
            version = start.removeprefix(_NAME).split(b"\n")[0]
            if start.startswith(_NAME) and version.isdigit():
                raise DecodeError("unknown_version", f"bundle {version.decode()}, and this is bundle 1")
            raise _not_a_bundle()
        self._take(size)
        self._has_begun = True
        return True

    def _in_turn(self, record: BundleRecord) -> BundleRecord:
        if isinstance(record, BundleHead) == self._has_head:
            raise DecodeError("out_of_turn", "a bundle has one head, and begins with it")
        self._has_head = True
        self._has_end = isinstance(record, BundleEnd)
        return record

    def _check_end(self) -> None:
        if not self._is_over and len(self._held) >= _DIGEST_SIZE:
            if bytes(self._held[:_DIGEST_SIZE]) != self._hasher.digest():
                raise DecodeError("bad_digest", "its bytes are not those that were written")
            self._take(_DIGEST_SIZE)
            self._is_over = True
        if self._is_over and self._held:
            raise DecodeError("bytes_behind", f"more follows its end at byte {self.size}")

    def _take(self, size: int) -> bytes:
        taken = bytes(self._held[:size])
        del self._held[:size]
        self._hasher.update(taken)
        self.size += size
        return taken


def _decode(encoded: bytes) -> BundleRecord:
    tag = peek_loose_tag(encoded)
    kind = _KINDS.get(tag)
    if kind is None:
        raise DecodeError("bad_shape", f"a part of the unknown kind {tag!r}")
    found: BundleRecord = decode(kind, encoded, size_max=BUNDLE_RECORD_SIZE_MAX)
    return found


def _not_a_bundle() -> DecodeError:
    return DecodeError("not_a_bundle", "it does not begin as bundles do")
