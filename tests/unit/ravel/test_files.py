"""What is given to an upload: bytes of any kind, pieces, or a text, which is refused."""

from collections.abc import AsyncIterator

import pytest

from ravel.errors import RavelError
from ravel.files import pieces_of


async def _later() -> AsyncIterator[bytes]:
    yield b"later"


@pytest.mark.parametrize("content", [b"abc", bytearray(b"abc"), memoryview(b"abc")])
def test_bytes_are_one_piece(content: bytes) -> None:
    assert pieces_of(content) == (b"abc",)


async def test_pieces_stay_as_they_are() -> None:
    pieces, later = [b"a", b"b"], _later()
    assert pieces_of(pieces) is pieces
    assert pieces_of(later) is later
    assert [one async for one in later] == [b"later"]


def test_a_text_is_refused_with_what_to_do() -> None:
    with pytest.raises(RavelError) as caught:
        pieces_of("abc")  # type: ignore[arg-type]  # the mistake
    assert (caught.value.code, caught.value.advice) == ("bad_request", "encode it: text.encode()")
