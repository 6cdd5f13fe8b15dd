"""The parser, for any bytes: a value that encodes to the same bytes, or DecodeError; nothing else."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.codec import DecodeError, encode, peek_tag
from protocol.crypto.keys import ConvergenceSecret
from protocol.formats.block import decode_block, encrypt_block
from protocol.formats.body import Body, UnknownBody, decode_body, encode_body
from protocol.formats.document_kinds import JSON
from protocol.formats.links import parse_invitation
from protocol.formats.publication import decode_publication
from protocol.formats.text import id_text, parse_id
from protocol.ids import AnyId, BlindTopic, BlockId, CommitId
from protocol.session.messages import Message, Receipt, Want, decode_message, encode_message
from tests.support.strategies import bodies, ids

DECODERS: dict[str, Callable[[bytes], object]] = {
    "block": decode_block,
    "body": decode_body,
    "message": decode_message,
    "publication": decode_publication,
}


@pytest.mark.parametrize("name", DECODERS)
@given(data=st.binary(max_size=300))
def test_any_bytes_decode_or_raise_the_one_error(name: str, data: bytes) -> None:
    try:
        value = DECODERS[name](data)
    except DecodeError:
        return
    if name == "message":
        known = encode_message(value)  # type: ignore[arg-type]  # a message by construction
        has_more = known[0] < data[0] and data.startswith(known[1:], 1)
        assert known == data or has_more, "but for fields of a newer version, behind the others"


@given(bodies)
def test_bodies_round_trip(body: Body) -> None:
    assert decode_body(encode_body(body)) == body


@given(bodies, st.integers(min_value=0), st.integers(min_value=0, max_value=255))
def test_a_changed_body_is_another_body_or_none(body: Body, place: int, value: int) -> None:
    encoded = bytearray(encode_body(body))
    encoded[place % len(encoded)] = value
    try:
        changed = decode_body(bytes(encoded))
    except DecodeError:
        return
    assert isinstance(changed, UnknownBody) or encode_body(changed) == bytes(encoded)


@given(st.binary(max_size=200), ids, st.lists(ids, max_size=5, unique=True))
def test_blocks_round_trip(plaintext: bytes, secret: ConvergenceSecret, child_ids: list[BlockId]) -> None:
    block, _ = encrypt_block(plaintext, secret, tuple(child_ids))
    assert decode_block(block.encoded) == block


@given(st.binary(min_size=1, max_size=50), bodies)
def test_trailing_bytes_are_refused(tail: bytes, body: Body) -> None:
    try:
        found = decode_body(encode_body(body) + tail)
    except DecodeError:
        return
    # No verdict rests on a JSON document: what cannot be read says nothing.
    assert isinstance(body, JSON.bodies)
    assert isinstance(found, UnknownBody)


@given(ids)
def test_ids_have_one_text_form(raw: AnyId) -> None:
    text = id_text(raw)
    assert (len(text), parse_id(text)) == (52, raw)
    for other in (text.upper(), text + "=", text[:-1], text + "a"):
        with pytest.raises(DecodeError):
            parse_id(other)


@given(st.text(max_size=120))
def test_any_text_is_an_invitation_or_the_one_error(text: str) -> None:
    for candidate in (text, "ravel:invite:" + text):
        with pytest.raises(DecodeError):
            parse_invitation(candidate)


@given(st.lists(ids, min_size=1, max_size=20))
def test_messages_round_trip(wanted: list[CommitId]) -> None:
    messages: list[Message] = [Want(BlindTopic(wanted[0]), tuple(wanted)), Receipt(BlindTopic(wanted[0]))]
    for message in messages:
        assert decode_message(encode_message(message)) == message


@given(st.binary(max_size=40))
def test_peeking_at_a_tag_never_fails(data: bytes) -> None:
    assert isinstance(peek_tag(data), str)


@given(bodies)
def test_the_tag_of_an_encoding_is_peeked(body: Body) -> None:
    assert peek_tag(encode(body)) == body.__struct_config__.tag
