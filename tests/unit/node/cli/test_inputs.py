"""What commands read from standard input or a file, whole or line by line."""

import io
import sys
from pathlib import Path

import pytest

from node.cli.inputs import group_lines, read_input, read_typed, unix_moment, write_lines
from node.cli.search_commands import search_moment
from node.runtime.errors import ServiceError
from protocol.limits.formats import TEXT_SIZE_MAX


@pytest.fixture(params=["file", "standard input"])
def path(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A source of 10 bytes."""
    if request.param == "file":
        (tmp_path / "source").write_bytes(b"0123456789")
        return str(tmp_path / "source")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"0123456789")))
    return "-"


def test_all_is_read_up_to_the_bound(path: str) -> None:
    assert read_input(path, 10) == b"0123456789"


def test_more_than_the_bound_is_refused(path: str) -> None:
    with pytest.raises(ServiceError, match="at most 9 bytes") as caught:
        read_input(path, 9)
    assert caught.value.code == "too_large"


def test_what_has_no_end_is_refused_at_the_bound() -> None:
    with pytest.raises(ServiceError, match="at most 1000 bytes"):
        read_input("/dev/zero", 1000)


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(ServiceError, match=f"{path} cannot be read: ") as caught:
            read_input(str(path), 10)
        assert caught.value.code == "bad_input"


def test_of_a_pipe_all_is_taken_without_a_byte_order_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xef\xbb\xbfone\ntwo\xff")))
    assert read_typed(100) == "one\ntwo\ufffd"


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


def test_input_without_a_line_is_refused_and_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\n  \n")))
    with pytest.raises(ServiceError, match="no line came"):
        write_lines(lambda _: pytest.fail("nothing is to be written"), "post", 10)


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


def test_a_time_of_a_bundle_is_a_date_or_a_time_ago_and_has_passed() -> None:
    now = 1793491200 + 3600
    assert unix_moment("2026-11-01T00:00:00+00:00", now) == 1793491200
    assert unix_moment("12h", now) == now - 12 * 3600
    assert unix_moment("0002-01-01", now) == 0
    for future in ("2026-11-02T00:00:00+00:00", "9999-12-31"):
        with pytest.raises(ServiceError, match="is still to come"):
            unix_moment(future, now)
    for other in ("tomorrow", "0001-01-01", "2026-13-01", "-7d"):
        with pytest.raises(ServiceError, match="is no date") as refused:
            unix_moment(other, now)
        assert "12h or 7d" in refused.value.advice


@pytest.mark.parametrize("text", ["soon", "0d", "2026-02-30", "1w"])
def test_a_time_of_a_search_that_is_none_says_how_dates_are_written(text: str) -> None:
    with pytest.raises(ServiceError, match="is no date") as refused:
        search_moment(text)
    assert refused.value.advice == "say 2026-01-31, 12h or 7d"


def test_lines_that_are_stopped_say_how_many_were_written(monkeypatch: pytest.MonkeyPatch) -> None:
    def write(part: list[str]) -> None:
        if part == ["three"]:
            raise KeyboardInterrupt

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"one\ntwo\nthree\n")))
    with pytest.raises(ServiceError, match="the command was stopped; written before that: 2 posts") as caught:
        write_lines(write, "post", 1)
    assert caught.value.code == "interrupted"
