"""What the API's parser takes, h11 takes in the same way: method, target, headers and body of each request.

A request that two parsers read in two ways is how one is smuggled past the first of them.
"""

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.http.parsing import BadRequest, RequestParser

_Found = list[tuple[bytes, bytes, list[tuple[bytes, bytes]], bytes]]
_FIRST = st.sampled_from(
    [
        b"GET / HTTP/1.1",
        b"POST /a?b HTTP/1.1",
        b"PUT /c HTTP/1.0",
        b"HEAD * HTTP/1.1",
        b"CONNECT a:1 HTTP/1.1",
    ]
)
_HEADERS = st.sampled_from(
    [
        b"Host: localhost",
        b"Content-Length: 3",
        b"content-length: 0",
        b"Content-Length: 3, 3",
        b"Content-Length : 3",
        b"Content-Length: 03",
        b"Content-Length:\t3\t",
        b"Content-Length: 3 3",
        b"Content-Length: 0x3",
        b"Transfer-Encoding: chunked",
        b"Transfer-Encoding: Chunked \t",
        b"Transfer-Encoding: identity",
        b"Transfer-Encoding:\x0bchunked",
        b"Transfer-Encoding: chunked, chunked",
        b"Transfer-Encoding",
        b" Transfer-Encoding: chunked",
        b"X: y\r\n folded",
        b"X: y\nTransfer-Encoding: chunked",
        b"X: y\rTransfer-Encoding: chunked",
        b"X: \x00",
        b"X: \xff",
        b"Connection: close",
        b"Connection: upgrade",
        b"Upgrade: h2c",
        b"Expect: 100-continue",
    ]
)
_BODIES = st.sampled_from(
    [
        b"",
        b"abc",
        b"3\r\nabc\r\n0\r\n\r\n",
        b"3;x=y\r\nabc\r\n0\r\nX: y\r\n\r\n",
        b"03\r\nabc\r\n0\r\n\r\n",
        b"3\nabc\n0\n\n",
        b"3 \r\nabc\r\n0\r\n\r\n",
        b"-3\r\nabc\r\n0\r\n\r\n",
        b"0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ]
)


@st.composite
def _requests(draw: st.DrawFn) -> bytes:
    headers = [b"Host: localhost", *draw(st.lists(_HEADERS, max_size=4))]
    return b"\r\n".join([draw(_FIRST), *draw(st.permutations(headers)), b"", draw(_BODIES)])


def _found_by_us(said: bytes, size: int) -> _Found:
    parser, found = RequestParser(), []
    for start in range(0, len(said), size):
        parser.feed(said[start : start + size])
    try:
        while parser.has_request:
            one = parser.pop_request()
            if one.is_whole:
                found.append((one.method.encode(), one.target, one.headers, one.take()))
            if not one.keeps_open:
                break
    except BadRequest:
        pass
    parser.close()
    return found


def _found_by_h11(said: bytes) -> _Found:
    found: _Found = []
    while said:
        connection = h11.Connection(h11.SERVER)
        connection.receive_data(said.lstrip(b"\r\n"))  # RFC 9112, 2.2; h11 takes none of these
        try:
            head, body = connection.next_event(), b""
            if not isinstance(head, h11.Request):
                break
            while isinstance(event := connection.next_event(), h11.Data):
                body += event.data
        except h11.RemoteProtocolError:
            break
        if not isinstance(event, h11.EndOfMessage):
            break
        found.append((head.method, head.target, list(head.headers), body))
        said, _ = connection.trailing_data
    return found


@pytest.mark.slow
@given(st.lists(_requests(), min_size=1, max_size=3).map(b"".join), st.sampled_from([1, 5, 1 << 16]))
def test_a_request_is_what_another_parser_reads(said: bytes, size: int) -> None:
    ours, theirs = _found_by_us(said, size), _found_by_h11(said)
    assert ours == theirs[: len(ours)]
