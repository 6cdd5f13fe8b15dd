"""Answers as bytes: how a body is framed, and what is no answer."""

import pytest

from node.http.answer import AnswerWriter, WrongAnswer

_LENGTH = (b"content-length", b"2")


def _write(writer: AnswerWriter, headers: list[tuple[bytes, bytes]], status: int = 200) -> bytes:
    head = writer.write_head(status, headers)
    return head + writer.write_part(b"o", is_last=False) + writer.write_part(b"k", is_last=True)


@pytest.mark.parametrize(
    "method, version, headers, said, keeps_open",
    [
        ("GET", "1.1", [_LENGTH], b"content-length: 2\r\n\r\nok", True),
        ("GET", "1.1", [], b"Transfer-Encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n", True),
        ("HEAD", "1.1", [_LENGTH], b"content-length: 2\r\n\r\n", True),
        ("GET", "1.1", [_LENGTH, (b"transfer-encoding", b"chunked")], b"content-length: 2\r\n\r\nok", True),
        # It knows no chunks: the connection's end is that of the body.
        ("GET", "1.0", [], b"connection: close\r\n\r\nok", False),
        (
            "GET",
            "1.1",
            [_LENGTH, (b"connection", b"Close")],
            b"content-length: 2\r\nconnection: Close\r\n\r\nok",
            False,
        ),
    ],
)
def test_a_body_is_framed_as_its_reader_understands(
    method: str, version: str, headers: list[tuple[bytes, bytes]], said: bytes, keeps_open: bool
) -> None:
    writer = AnswerWriter(method, version, keeps_open=True)
    assert _write(writer, headers) == b"HTTP/1.1 200 \r\n" + said
    assert (writer.is_begun, writer.is_over, writer.keeps_open) == (True, True, keeps_open)


def test_an_answer_tells_that_it_is_the_last() -> None:
    writer = AnswerWriter("GET", "1.1", keeps_open=False)
    assert (
        writer.write_head(200, [_LENGTH])
        == b"HTTP/1.1 200 \r\ncontent-length: 2\r\nconnection: close\r\n\r\n"
    )


@pytest.mark.parametrize("status", [204, 304])
def test_some_answers_have_no_body(status: int) -> None:
    assert _write(AnswerWriter("GET", "1.1", keeps_open=True), [], status) == b"HTTP/1.1 %d \r\n\r\n" % status


def test_a_status_without_a_name_is_one() -> None:
    assert (
        AnswerWriter("GET", "1.1", keeps_open=True)
        .write_head(299, [_LENGTH])
        .startswith(b"HTTP/1.1 299 \r\n")
    )


@pytest.mark.parametrize("text", [b"a\nb", b"a\rb", b"a\r\nset-cookie: x"])
def test_a_header_with_a_line_break_is_not_sent(text: bytes) -> None:
    for header in ((b"x", text), (text, b"x")):
        writer = AnswerWriter("GET", "1.1", keeps_open=True)
        with pytest.raises(WrongAnswer):
            writer.write_head(200, [_LENGTH, header])
        assert not writer.is_begun


@pytest.mark.parametrize("content, is_last", [(b"too long", False), (b"o", True)])
def test_a_body_has_the_length_that_its_head_states(content: bytes, is_last: bool) -> None:
    writer = AnswerWriter("GET", "1.1", keeps_open=True)
    writer.write_head(200, [_LENGTH])
    with pytest.raises(WrongAnswer):
        writer.write_part(content, is_last=is_last)
