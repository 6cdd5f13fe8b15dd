"""Classic Scuttlebutt messages: the vectors that Node.js wrote, one defect each, and any bytes at all."""

import base64
import json
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from node.scuttlebutt.canonical_json import NotJson, canonical, format_number, parse_by_rules, write_by_rules
from node.scuttlebutt.messages import MessageRefused, Reason, read_ssb_message, verify_ssb_signature
from protocol.limits.files import SSB_LINE_SIZE_MAX, SSB_MESSAGE_SIZE_MAX, SSB_NESTING_MAX, SSB_SEQUENCE_MAX
from tests.support.ssb import Feed, encode, line_of

VECTORS: Final = json.loads((Path(__file__).parents[3] / "vectors" / "ssb.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", VECTORS["messages"], ids=lambda case: case["description"])
def test_messages_that_node_js_made_are_read_and_verified(case: dict[str, Any]) -> None:
    message = read_ssb_message(case["line"].encode())
    assert message.id == case["id"]
    hmac_key = base64.b64decode(case["hmac_key"]) if case["hmac_key"] else None
    verify_ssb_signature(message, hmac_key)
    with pytest.raises(MessageRefused) as caught:
        verify_ssb_signature(message, None if hmac_key else b"n" * 32)
    assert (caught.value.reason, caught.value.message_id) == (Reason.BAD_SIGNATURE, message.id)


@pytest.mark.parametrize("case", VECTORS["texts"], ids=lambda case: case["text"])
def test_the_canonical_text_is_that_of_v8(case: dict[str, str]) -> None:
    assert canonical(case["text"].encode())[1] == case["canonical"]
    assert write_by_rules(parse_by_rules(case["text"].encode())) == case["canonical"]


# Published by ssbc/ssb-validate (MIT), test/data/test_messages.json; the ids are those of ssb-validation-dataset.
PUBLISHED: Final = {
    "%ybJG6SQH63+71OtO9r7cnxeOgEZyZQdecsGaPQXo/CM=.sha256": (
        {"type": "TTT"},
        "8XdA3TwXsWasY8PGo5zI/QJAi6XsyCklzQv8dVtgOEZk4jRCVFDLb4OCK7H/s+lxOcxjpKn4NGocbQ7Z5mF5CQ==",
    ),
    "": (
        {"type": "TT"},
        "R+JBGREcbpreyGVSRPJCrr/nJFHLkzztHPXmCmu8yuGygl7hU1X4W7aPN9uT2ZuVVn97S6wdVK1Ym++/YflQCA==",
    ),
}


@pytest.mark.parametrize("message_id", PUBLISHED)
def test_published_messages_are_judged_as_by_the_reference(message_id: str) -> None:
    content, signature = PUBLISHED[message_id]
    value = {
        "previous": None,
        "sequence": 1,
        "author": "@AzvddyStfk/T95/3VuHxuJRwqqpBkCyoW7qHRCui2N4=.ed25519",
        "timestamp": 1491901740000,
        "hash": "sha256",
        "content": content,
        "signature": f"{signature}.sig.ed25519",
    }
    if not message_id:
        assert _reason(line_of(value)) == Reason.BAD_CONTENT
        return
    message = read_ssb_message(line_of(value))
    verify_ssb_signature(message)
    assert message.id == message_id


def _reason(line: bytes) -> Reason | None:
    try:
        verify_ssb_signature(read_ssb_message(line))
    except MessageRefused as refused:
        return refused.reason
    return None


def _signed(**fields: object) -> bytes:
    return Feed("a").write(**fields)


def _with(**fields: object) -> bytes:
    """A good message of which a field of the line was changed after it was signed."""
    return json.dumps(json.loads(Feed("a").write()) | fields).encode()


def _signature(text: str) -> bytes:
    value = json.loads(Feed("a").write())["value"]
    return line_of(value | {"signature": text})


def _reordered(*names: str) -> bytes:
    value = json.loads(Feed("a").write())["value"]
    value.pop("signature")
    return Feed("a").sign({name: value[name] for name in names})


AUTHOR: Final = Feed("a").id
DEFECTS: Final[dict[str, tuple[bytes, Reason]]] = {
    "nothing": (b"", Reason.NOT_A_MESSAGE),
    "not_json": (b"{", Reason.NOT_A_MESSAGE),
    "a_list": (b"[]", Reason.NOT_A_MESSAGE),
    "no_value": (b'{"key": "x"}', Reason.NOT_A_MESSAGE),
    "no_key": (b'{"value": {}}', Reason.NOT_A_MESSAGE),
    "no_key_beside_a_lone_surrogate": (b'{"value": "\\ud800"}', Reason.NOT_A_MESSAGE),
    "key_of_another_type": (b'{"key": 1, "value": {}}', Reason.NOT_A_MESSAGE),
    "not_utf8": (b'{"key": "\xff", "value": {}}', Reason.NOT_A_MESSAGE),
    "not_a_number": (b'{"key": "x", "value": [NaN, "\\ud800"]}', Reason.NOT_A_MESSAGE),
    "number_out_of_range": (b'{"key": "x", "value": 1e999}', Reason.NOT_A_MESSAGE),
    "a_number_of_5000_digits": (b'{"key": "x", "value": %s}' % (b"9" * 5000), Reason.NOT_A_MESSAGE),
    "deep": (b'{"key": "x", "value": %s}' % (b"[" * 10_000), Reason.NOT_A_MESSAGE),
    "line_one_byte_over": (
        Feed("a").write().rstrip().ljust(SSB_LINE_SIZE_MAX) + b"\n",
        Reason.LINE_TOO_LONG,
    ),
    "value_is_null": (b'{"key": "x", "value": null}', Reason.BAD_FIELDS),
    "private_fields": (_signed(private=True), Reason.BAD_FIELDS),
    "another_order": (
        _reordered("author", "previous", "sequence", "timestamp", "hash", "content"),
        Reason.BAD_FIELDS,
    ),
    "a_field_less": (
        _reordered("previous", "author", "sequence", "timestamp", "content"),
        Reason.BAD_FIELDS,
    ),
    "author_is_a_number": (_signed(author=1), Reason.BAD_AUTHOR),
    "author_of_another_kind": (_signed(author=AUTHOR.replace(".ed25519", ".sha256")), Reason.BAD_AUTHOR),
    "author_without_sigil": (_signed(author=AUTHOR[1:]), Reason.BAD_AUTHOR),
    "author_too_short": (_signed(author="@aGVsbG8=.ed25519"), Reason.BAD_AUTHOR),
    "author_in_other_base64": (_signed(author=f"@{AUTHOR[1:43]}9=.ed25519"), Reason.BAD_AUTHOR),
    "previous_is_an_object": (_signed(previous={}), Reason.BAD_PREVIOUS),
    "previous_is_a_feed": (_signed(previous=AUTHOR), Reason.BAD_PREVIOUS),
    "sequence_zero": (_signed(sequence=0), Reason.BAD_SEQUENCE),
    "sequence_one_over": (_signed(sequence=SSB_SEQUENCE_MAX + 1), Reason.BAD_SEQUENCE),
    "sequence_true": (_signed(sequence=True), Reason.BAD_SEQUENCE),
    "sequence_a_text": (_signed(sequence="1"), Reason.BAD_SEQUENCE),
    "sequence_a_fraction": (_signed(sequence=1.5), Reason.BAD_SEQUENCE),
    "timestamp_null": (_signed(timestamp=None), Reason.BAD_TIMESTAMP),
    "timestamp_true": (_signed(timestamp=True), Reason.BAD_TIMESTAMP),
    "another_hash": (_signed(hash="sha512"), Reason.BAD_HASH),
    "content_null": (_signed(content=None), Reason.BAD_CONTENT),
    "content_a_list": (_signed(content=[]), Reason.BAD_CONTENT),
    "content_a_text": (_signed(content="hello"), Reason.BAD_CONTENT),
    "content_without_type": (_signed(content={"tyfe": "post"}), Reason.BAD_CONTENT),
    "type_of_2_characters": (_signed(content={"type": "ab"}), Reason.BAD_CONTENT),
    "type_of_53_characters": (_signed(content={"type": "x" * 53}), Reason.BAD_CONTENT),
    "type_of_27_characters_of_two_units": (_signed(content={"type": "😀" * 27}), Reason.BAD_CONTENT),
    "box_that_is_no_base64": (_signed(content="hello!.box"), Reason.BAD_CONTENT),
    "box_with_a_second_line": (_signed(content="aGVsbG8=.box\n"), Reason.BAD_CONTENT),
    "box_in_other_base64": (_signed(content="aGVsbG9=.box"), Reason.BAD_CONTENT),
    "no_signature": (_signature(""), Reason.BAD_SIGNATURE),
    "signature_of_another_kind": (_signature("aGVsbG8=.sig"), Reason.BAD_SIGNATURE),
    "signature_too_short": (_signature("aGVsbG8=.sig.ed25519"), Reason.BAD_SIGNATURE),
    "signature_of_zeros": (
        _signature(base64.b64encode(bytes(64)).decode() + ".sig.ed25519"),
        Reason.BAD_SIGNATURE,
    ),
    "key_of_small_order": (
        _signed(author=f"@{base64.b64encode(bytes(32)).decode()}.ed25519"),
        Reason.BAD_SIGNATURE,
    ),
    "key_of_another": (_with(key=f"%{base64.b64encode(bytes(32)).decode()}.sha256"), Reason.WRONG_ID),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_is_refused_with_its_reason(defect: str) -> None:
    line, reason = DEFECTS[defect]
    assert _reason(line) == reason


def test_a_line_at_its_bound_is_taken() -> None:
    assert _reason(Feed("a").write().rstrip().ljust(SSB_LINE_SIZE_MAX - 1) + b"\n") is None


@pytest.mark.parametrize("letter, units", [("x", 1), ("ü", 1), ("€", 1), ("😀", 2)])
def test_the_size_is_counted_in_utf16_units_with_the_signature(letter: str, units: int) -> None:
    empty = len(encode(json.loads(Feed("a").write(""))["value"]))
    room = SSB_MESSAGE_SIZE_MAX - empty
    fits = letter * (room // units) + "x" * (room % units)
    assert _reason(Feed("a").write(fits)) is None
    assert _reason(Feed("a").write(fits + "x")) == Reason.TOO_LARGE


def test_nesting_that_fits_no_message_is_not_followed() -> None:
    for depth, fails in ((SSB_NESTING_MAX, False), (SSB_NESTING_MAX + 1, True)):
        value: Any = "x"
        for _ in range(depth):
            value = [value]
        if fails:
            with pytest.raises(NotJson):
                write_by_rules(value)
        else:
            assert len(write_by_rules(value)) > SSB_MESSAGE_SIZE_MAX


def test_texts_whose_low_bytes_agree_share_an_id() -> None:
    # U+0141 ends with the byte of "A". An id says a little less of a text than it seems; the signature tells the two apart.
    good = Feed("a").write("A")
    twin = json.loads(good)
    twin["value"]["content"]["text"] = "\u0141"
    assert read_ssb_message(json.dumps(twin).encode()).id == read_ssb_message(good).id
    assert _reason(json.dumps(twin).encode()) == Reason.BAD_SIGNATURE


_VALUES: Final = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=3) | st.integers(0, 99).map(str), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(_VALUES, st.sampled_from([None, 1]), st.booleans())
def test_both_ways_to_the_canonical_text_agree_and_end_there(
    value: object, indent: int | None, ascii_only: bool
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode()
    try:
        by_rules = write_by_rules(parse_by_rules(text))
    except NotJson:  # an integer that no double holds
        return
    assert canonical(text)[1] == by_rules
    again = by_rules.encode()
    assert canonical(again)[1] == by_rules
    assert write_by_rules(parse_by_rules(again)) == by_rules


@given(st.floats(allow_nan=False, allow_infinity=False))
@example(1e21)
@example(123456789012345680000.0)
def test_numbers_are_written_as_they_are_read(value: float) -> None:
    assert float(format_number(value)) == value


@given(st.binary(max_size=200))
def test_any_bytes_have_a_reason(data: bytes) -> None:
    assert _reason(data) in (Reason.NOT_A_MESSAGE, Reason.BAD_FIELDS)


@given(st.integers(min_value=0), st.binary(max_size=3), st.integers(min_value=0, max_value=3))
def test_a_changed_line_is_the_same_message_or_has_a_reason(
    place: int, inserted: bytes, removed: int
) -> None:
    good = Feed("a").write("Grüße €")
    place %= len(good)
    changed = good[:place] + inserted + good[place + removed :]
    if _reason(changed) is None:
        assert read_ssb_message(changed) == read_ssb_message(good)


@given(_VALUES, st.sampled_from(["previous", "author", "sequence", "timestamp", "hash", "content"]))
def test_a_field_of_any_value_has_a_reason_or_is_one_of_the_rules(value: object, name: str) -> None:
    line = json.dumps({"key": "x", "value": json.loads(Feed("a").write(**{name: value}))["value"]}).encode()
    assert _reason(line) in set(Reason) - {Reason.GAP, Reason.FORK, Reason.LINE_TOO_LONG}
