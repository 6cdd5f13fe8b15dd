"""Strict parser: turns bytes into typed values with MessagePack, and refuses every encoding but the one legal one.

The encoding is MessagePack, array-like and tagged, with exactly one form for every value: `decode` refuses bytes that
do not encode again to themselves, so trailing bytes, non-minimal integers, map forms and unknown fields never get in,
and equal values have equal ids. Every field is bounded by its annotated type, and the input by `size_max` before it is
looked at.

A tag names a type and its version (`block1`). `peek_tag` reads it without decoding the rest, so that a version this
node does not know can be kept instead of refused.
"""

from typing import Any, Final, TypeVar

import msgspec

_TAG_SIZE_MAX: Final = 31  # bytes: a MessagePack fixstr

_encoder: Final = msgspec.msgpack.Encoder()


class DecodeError(Exception):
    """The bytes are not the one encoding of a value of the expected type; `reason` is a stable code."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail


class Wire(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """Base of every value with an encoding."""


class Value(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Base of values that are made for every commit and not stored so: a tenth of a frozen dataclass's time to make.

    The collector does not look at them, so they hold what cannot come back to them: bytes, numbers, other values. They have
    an encoding for compiled code of the same program (`node.ingest.native_reading`).
    """


WireT = TypeVar("WireT", bound=msgspec.Struct)


# One for each type, made when first needed.
_decoders: Final[dict[type[Any], msgspec.msgpack.Decoder[Any]]] = {}


def _decoder(kind: type[Any]) -> msgspec.msgpack.Decoder[Any]:
    decoder = _decoders.get(kind)
    if decoder is None:
        decoder = _decoders[kind] = msgspec.msgpack.Decoder(kind)
    return decoder


def encode(value: object) -> bytes:
    """Return the one encoding of `value`."""
    return _encoder.encode(value)


def decode(kind: type[WireT], data: bytes, *, size_max: int, takes_more: bool = False) -> WireT:
    """Return the value of type `kind` whose encoding `data` is; with `takes_more`, of the fields that are known here.

    Raises DecodeError with reason `too_large`, `unknown_version`, `bad_shape` or `not_canonical`; nothing else, for any
    bytes.
    """
    if len(data) > size_max:
        raise DecodeError("too_large", f"{len(data)} bytes, at most {size_max}")
    try:
        value: WireT = _decoder(kind).decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        tag, known = peek_tag(data), kind.__struct_config__.tag
        if isinstance(known, str) and is_other_version(tag, known):
            raise DecodeError("unknown_version", f"{tag}, and this is {known}") from None
        raise DecodeError("bad_shape", str(error)[:200]) from None
    encoded = _encoder.encode(value)
    if encoded != data and not (takes_more and _has_more_fields(data, encoded)):
        raise DecodeError("not_canonical")
    return value


def _has_more_fields(data: bytes, known: bytes) -> bool:
    """Return True if an array (with the shortest header) is that of the known fields and some behind them."""
    return known[0] < data[0] <= 0x9F and data.startswith(known[1:], 1)


def peek_tag(data: bytes) -> str:
    """Return the tag of an encoded value, or "" where there is none: any text of 1 to 31 bytes that is UTF-8.

    It says what to decode, and promises nothing about the rest.
    """
    if len(data) < 2 or not 0x91 <= data[0] <= 0x9F:
        return ""
    size = data[1] - 0xA0
    if not 0 < size <= _TAG_SIZE_MAX or len(data) < 2 + size:
        return ""
    try:
        return data[2 : 2 + size].decode()
    except UnicodeDecodeError:
        return ""


def peek_loose_tag(data: bytes) -> str:
    """Return the tag of a tagged array in any form of MessagePack, only to name what is wrong with the bytes."""
    start = {0xDC: 3, 0xDD: 5}.get(data[0], 1) if data else 1
    if not data or not (0x90 <= data[0] <= 0x9F or start > 1) or len(data) <= start:
        return ""
    kind = data[start]
    length_size = {0xD9: 1, 0xDA: 2, 0xDB: 4}.get(kind, 0)
    begin = start + 1 + length_size
    size = int.from_bytes(data[start + 1 : begin], "big") if length_size else kind - 0xA0
    if not 0 < size <= _TAG_SIZE_MAX:
        return ""
    return data[begin : begin + size].decode("ascii", "replace")


def is_other_version(tag: str, known: str) -> bool:
    """Return True if `tag` names the type of `known` (`block1`) in a version that is not known here (`block7`)."""
    name = known.rstrip("0123456789")
    version = tag.removeprefix(name)
    return (
        tag.startswith(name)
        and tag != known
        and version.isascii()
        and version.isdigit()
        and len(version) <= 4
    )
