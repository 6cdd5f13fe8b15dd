"""Text forms: prefixes of ids. Full ids and links have their vectors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.codec import DecodeError
from protocol.text import id_text, parse_id_prefix


@given(raw=st.binary(min_size=32, max_size=32), size=st.integers(1, 51))
def test_a_prefix_stands_for_exactly_the_ids_that_begin_so(raw: bytes, size: int) -> None:
    low, high = parse_id_prefix(id_text(raw)[:size])
    assert low <= raw <= high
    assert id_text(low)[:size] == id_text(high)[:size] == id_text(raw)[:size]
    for outside in (int.from_bytes(low, "big") - 1, int.from_bytes(high, "big") + 1):
        if 0 <= outside < 2**256:
            assert not id_text(outside.to_bytes(32, "big")).startswith(id_text(raw)[:size])


@pytest.mark.parametrize("text", ["", "A", "1", "a" * 53, "ä"])
def test_what_no_id_begins_with_is_no_prefix(text: str) -> None:
    with pytest.raises(DecodeError, match="bad_id"):
        parse_id_prefix(text)
