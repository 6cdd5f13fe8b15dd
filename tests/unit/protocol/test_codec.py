"""Strict decoding, defect by defect."""

import msgspec
import pytest

from protocol.codec import DecodeError, decode, is_other_version
from protocol.formats.body import UnknownBody, decode_body, encode_body
from protocol.formats.content import Post
from protocol.limits.formats import BODY_SIZE_MAX, TEXT_SIZE_MAX
from protocol.session.messages import Want, decode_message

_GOOD = encode_body(Post("hello"))

DEFECTS: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "bad_shape"),
    "not_an_array": (msgspec.msgpack.encode({"text": "hello"}), "bad_shape"),
    "no_tag": (msgspec.msgpack.encode([1, "hello"]), "bad_shape"),
    "too_few_fields": (msgspec.msgpack.encode(["post1"]), "bad_shape"),
    "too_many_fields": (msgspec.msgpack.encode(["post1", "hello", 1]), "bad_shape"),
    "wrong_type": (msgspec.msgpack.encode(["post1", 7]), "bad_shape"),
    "bytes_for_text": (msgspec.msgpack.encode(["post1", b"hello"]), "bad_shape"),
    "trailing_byte": (_GOOD + b"\xc0", "bad_shape"),
    "truncated": (_GOOD[:-1], "bad_shape"),
    "not_utf8": (_GOOD[:-1] + b"\xff", "bad_shape"),
    "long_form_of_a_short_string": (b"\x92\xa5post1\xd9\x05hello", "not_canonical"),
    "long_form_of_the_array": (b"\xdc\x00\x02\xa5post1\xa5hello", "bad_shape"),
    "deep_nesting": (b"\x92\xa5post1" + b"\x91" * 100_000, "bad_shape"),
    "huge_declared_length": (b"\x92\xa5post1\xdb\xff\xff\xff\xff", "bad_shape"),
    "text_over_its_bound": (msgspec.msgpack.encode(["post1", "x" * (TEXT_SIZE_MAX + 1)]), "bad_shape"),
    "over_the_size": (b"\x92" * (BODY_SIZE_MAX + 1), "too_large"),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_is_refused_with_its_reason(defect: str) -> None:
    data, reason = DEFECTS[defect]
    with pytest.raises(DecodeError) as caught:
        decode_body(data)
    assert caught.value.reason == reason


def test_an_unknown_kind_of_body_is_carried_not_interpreted() -> None:
    assert decode_body(msgspec.msgpack.encode(["poll7", {"any": "thing"}])) == UnknownBody("poll7")


@pytest.mark.parametrize("tag", ["Zzz", "a b", "\0", "ä", "日本語の投票", "x" * 31, "é" * 15, "\U0001f5f3"])
def test_a_tag_of_a_body_is_any_text_of_1_to_31_bytes(tag: str) -> None:
    assert decode_body(msgspec.msgpack.encode([tag])) == UnknownBody(tag)


@pytest.mark.parametrize(
    "data",
    [
        msgspec.msgpack.encode([""]),
        msgspec.msgpack.encode(["x" * 32]),
        msgspec.msgpack.encode(["é" * 16]),
        b"\x91\xa2\xc3\x28",
        b"\x91\xa3\xed\xa0\x80",
        b"\x91\xa1\xff",
    ],
)
def test_what_is_no_such_text_is_no_tag(data: bytes) -> None:
    """Too long, too short, or not UTF-8: a surrogate, or half a character."""
    with pytest.raises(DecodeError, match="bad_shape"):
        decode_body(data)


@pytest.mark.parametrize("tag", ["want9", "Want1", "wänt1", "a b"])
def test_an_unknown_message_is_refused(tag: str) -> None:
    with pytest.raises(DecodeError, match="unknown_message"):
        decode_message(msgspec.msgpack.encode([tag, b"x"]))


def test_a_bound_of_a_list_is_refused_one_over() -> None:
    ids = [bytes([number % 256]) * 32 for number in range(257)]
    with pytest.raises(DecodeError, match="bad_shape"):
        decode(Want, msgspec.msgpack.encode(["want1", ids[0], ids]), size_max=1 << 20)


@pytest.mark.parametrize(
    "tag, expected",
    [
        ("commit2", True),
        ("commit1", False),
        ("commit", False),
        ("commitx", False),
        ("commit99999", False),
        ("", False),
    ],
)
def test_versions_are_told_apart(tag: str, expected: bool) -> None:
    assert is_other_version(tag, "commit1") is expected
