"""Lines of standard input as they come."""

import io

import pytest

from node.cli.lines import group_lines
from node.runtime.errors import ServiceError
from protocol.limits.formats import TEXT_SIZE_MAX


class Pipe(io.BufferedIOBase):
    """Gives what was written to it in the same pieces."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = [*pieces]

    def read1(self, _size: int = -1, /) -> bytes:
        return self._pieces.pop(0) if self._pieces else b""


def test_what_has_come_is_one_group() -> None:
    pipe = Pipe(b"a\nb\nc", b"c\n", b"\n \n", b"d\r\n", b"the last")
    assert [*group_lines(pipe)] == [["a", "b"], ["cc"], ["d"], ["the last"]]


def test_a_byte_order_mark_is_no_part_of_the_first_line() -> None:
    assert [*group_lines(Pipe(b"\xef\xbb", b"\xbfa\n\xef\xbb\xbfb\n"))] == [["a", "\ufeffb"]]
    assert [*group_lines(Pipe(b"\xef\xbb\xbf"))] == []


def test_nothing_gives_nothing() -> None:
    assert [*group_lines(Pipe())] == []


def test_what_is_not_utf_8_is_named_by_its_line() -> None:
    groups = group_lines(Pipe(b"a\n", b"b\n\xff\n"))
    assert next(groups) == ["a"]
    with pytest.raises(ServiceError, match="line 3 is not UTF-8"):
        next(groups)


def test_a_line_has_a_largest_size() -> None:
    size = 4 * TEXT_SIZE_MAX
    assert [*group_lines(Pipe(b"x" * size))] == [["x" * size]]
    with pytest.raises(ServiceError, match="line 1"):
        [*group_lines(Pipe(b"x" * size, b"x"))]
