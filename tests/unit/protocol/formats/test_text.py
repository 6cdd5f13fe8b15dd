"""Text forms: prefixes of ids, and links that were mistyped. Full ids and links have their vectors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.codec import DecodeError
from protocol.crypto.keys import BlockKey, EpochKey
from protocol.formats.block import Reference
from protocol.formats.links import (
    PeerAddress,
    ReadCapability,
    capability_text,
    parse_capability,
    parse_invitation,
)
from protocol.formats.text import id_text, parse_id_prefix, pasted_word
from protocol.ids import AnyId, PeerId, RepoId
from tests.support.ids import as_epoch_id, as_object_id

CAPABILITY = ReadCapability(
    RepoId(b"r" * 32),
    Reference(as_object_id(b"i" * 32), BlockKey(b"k" * 32)),
    as_epoch_id(b"e" * 32),
    EpochKey(b"s" * 32),
    (PeerAddress("host:7474", PeerId(b"p" * 32)),),
    "garden",
)


@given(raw=st.binary(min_size=32, max_size=32), size=st.integers(1, 51))
def test_a_prefix_stands_for_exactly_the_ids_that_begin_so(raw: AnyId, size: int) -> None:
    low, high = parse_id_prefix(id_text(raw)[:size])
    assert low <= raw <= high
    assert id_text(low)[:size] == id_text(high)[:size] == id_text(raw)[:size]
    for outside in (int.from_bytes(low, "big") - 1, int.from_bytes(high, "big") + 1):
        if 0 <= outside < 2**256:
            assert not id_text(AnyId(outside.to_bytes(32, "big"))).startswith(id_text(raw)[:size])


@pytest.mark.parametrize("text", ["", "A", "1", "a" * 53, "ä"])
def test_what_no_id_begins_with_is_no_prefix(text: str) -> None:
    with pytest.raises(DecodeError, match="bad_id"):
        parse_id_prefix(text)


def test_a_read_capability_is_read_back_and_shows_no_secret() -> None:
    text = capability_text(CAPABILITY)
    assert text.startswith("ravel:read:")
    assert parse_capability(f" {text}\n") == CAPABILITY
    assert id_text(AnyId(CAPABILITY.key))[:8] not in repr(CAPABILITY)
    assert "ssss" not in repr(CAPABILITY)
    with pytest.raises(DecodeError, match="other_kind: a read capability"):
        parse_invitation(text)


@given(data=st.data())
def test_what_was_mistyped_is_found(data: st.DataObject) -> None:
    text = capability_text(CAPABILITY)
    place = data.draw(st.integers(len("ravel:read:"), len(text) - 1))
    instead = data.draw(st.sampled_from("abcdefghijklmnopqrstuvwxyz234567").filter(text[place].__ne__))
    swapped = text[: place - 1] + text[place] + text[place - 1] + text[place + 1 :]
    for typed in (
        text[:place] + instead + text[place + 1 :],
        text[:place] + text[place + 1 :],
        text[:place] + instead + text[place:],
        text[:place],
        swapped,
    ):
        if typed != text:
            with pytest.raises(DecodeError):
                parse_capability(typed)


@pytest.mark.parametrize("mark", [" ", "\n", "\u00a0", "\ufeff", "\u200b", "\u2060", "\u00ad", "\u200e"])
def test_a_pasted_word_has_no_spaces_and_invisible_marks(mark: str) -> None:
    assert pasted_word(f"{mark}ravel:read:{mark}abc{mark}{mark}") == "ravel:read:abc"
    assert pasted_word(mark) == ""
