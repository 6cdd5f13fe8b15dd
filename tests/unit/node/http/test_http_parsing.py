"""Requests out of bytes: how they may be cut, what is refused and with which status, and what bounds there are."""

import pytest

from node.http.parsing import HEADERS_COUNT_MAX, HEADERS_SIZE_MAX, BadRequest, Request, RequestParser

_HOST = b"Host: localhost\r\n"
_CHUNKED = b"POST / HTTP/1.1\r\n" + _HOST + b"Transfer-Encoding: chunked\r\n\r\n"
_UPGRADE = b"Connection: upgrade\r\nUpgrade: h2c\r\n"


def _parse(*pieces: bytes) -> list[tuple[str, bytes, bytes] | int]:
    """Method, target and body of each request that comes whole, and at the end the status of a fault."""
    parser = RequestParser()
    for piece in pieces:
        parser.feed(piece)
    found: list[tuple[str, bytes, bytes] | int] = []
    try:
        while parser.has_request:
            request = parser.pop_request()
            if request.is_whole:
                found.append((request.method, request.target, request.take()))
    except BadRequest as fault:
        found.append(fault.status)
    parser.close()
    return found


def _parse_one(said: bytes) -> Request:
    parser = RequestParser()
    parser.feed(said)
    return parser.pop_request()


_TWO = (
    b"POST /a?b HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc"
    b"PUT /b HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: Chunked\r\n\r\n"
    b"2;x=y\r\nde\r\n1\r\nf\r\n0\r\nTrailer: ignored\r\n\r\n"
)


@pytest.mark.parametrize("size", [1, 7, 50, 1000])
def test_requests_are_the_same_however_they_are_cut(size: int) -> None:
    pieces = [_TWO[start : start + size] for start in range(0, len(_TWO), size)]
    assert _parse(*pieces) == [("POST", b"/a?b", b"abc"), ("PUT", b"/b", b"def")]


def test_a_head_is_told_as_it_came() -> None:
    request = _parse_one(b"GET / HTTP/1.1\r\nHOST: a\r\nX:\t b  c \t\r\nx:\r\n\r\n")
    assert request.headers == [(b"host", b"a"), (b"x", b"b  c"), (b"x", b"")]
    assert (request.version, request.keeps_open, request.awaits_continue) == ("1.1", True, False)


@pytest.mark.parametrize(
    "head, keeps_open",
    [
        (b"GET / HTTP/1.1\r\n" + _HOST, True),
        (b"GET / HTTP/1.1\r\nConnection: Keep-Alive, Close\r\n" + _HOST, False),
        (b"GET / HTTP/1.0\r\n", False),
        # It would have to be promised, and its clients have died out.
        (b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n", False),
    ],
)
def test_a_client_says_whether_it_may_send_another_request(head: bytes, keeps_open: bool) -> None:
    assert _parse_one(head + b"\r\n").keeps_open is keeps_open


def test_only_a_request_of_its_version_waits_to_be_asked_for_its_body() -> None:
    rest = b"Content-Length: 1\r\nExpect: 100-Continue\r\n\r\n"
    assert _parse_one(b"POST / HTTP/1.1\r\n" + _HOST + rest).awaits_continue
    assert not _parse_one(b"POST / HTTP/1.0\r\n" + _HOST + rest).awaits_continue


_FAULTS = {
    "nonsense": (b"nonsense\r\n\r\n", 400),
    "no method": (b"get / HTTP/1.1\r\n" + _HOST + b"\r\n", 400),
    "no host": (b"GET / HTTP/1.1\r\n\r\n", 400),
    "two hosts": (b"GET / HTTP/1.1\r\n" + _HOST * 2 + b"\r\n", 400),
    "target's characters": (b"GET /\xc3\xa9 HTTP/1.1\r\n" + _HOST + b"\r\n", 400),
    "host's characters in target": (b"GET http://\xff/ HTTP/1.1\r\n" + _HOST + b"\r\n", 400),
    "no version": (b"GET /\r\n\r\n", 505),
    "version 1.2": (b"GET / HTTP/1.2\r\n" + _HOST + b"\r\n", 400),
    "version 2": (b"GET / HTTP/2.0\r\n" + _HOST + b"\r\n", 505),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    "two lengths": (b"POST / HTTP/1.1\r\n" + _HOST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\na", 400),
    "equal lengths": (
        b"POST / HTTP/1.1\r\n" + _HOST + b"Content-Length: 1\r\nContent-Length: 1\r\n\r\na",
        400,
    ),
    "list of lengths": (b"POST / HTTP/1.1\r\n" + _HOST + b"Content-Length: 1, 1\r\n\r\na", 400),
    "signed length": (b"POST / HTTP/1.1\r\n" + _HOST + b"Content-Length: +1\r\n\r\na", 400),
    "empty length": (b"POST / HTTP/1.1\r\n" + _HOST + b"Content-Length:\r\n\r\na", 400),
    "huge length": (b"POST / HTTP/1.1\r\n" + _HOST + b"Content-Length: 18446744073709551616\r\n\r\na", 400),
    "length and chunks": (_CHUNKED[:-2] + b"Content-Length: 3\r\n\r\n0\r\n\r\n", 400),
    "chunks and length": (
        b"POST / HTTP/1.1\r\nContent-Length: 3\r\n" + _HOST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
    ),
    "chunks twice": (_CHUNKED[:-2] + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    "chunks of 1.0": (b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    "a coding": (b"POST / HTTP/1.1\r\n" + _HOST + b"Transfer-Encoding: gzip\r\n\r\n", 501),
    "a coding before": (b"POST / HTTP/1.1\r\n" + _HOST + b"Transfer-Encoding: gzip, chunked\r\n\r\n", 501),
    "almost chunked": (b"POST / HTTP/1.1\r\n" + _HOST + b"Transfer-Encoding: xchunked\r\n\r\n", 501),
    "space before colon": (b"POST / HTTP/1.1\r\n" + _HOST + b"Content-Length : 3\r\n\r\nabc", 400),
    "space before name": (b"GET / HTTP/1.1\r\n " + _HOST + b"\r\n", 400),
    "no name": (b"GET / HTTP/1.1\r\n" + _HOST + b": x\r\n\r\n", 400),
    "name's characters": (b"GET / HTTP/1.1\r\n" + _HOST + b"a(b: x\r\n\r\n", 400),
    "folded": (b"GET / HTTP/1.1\r\n" + _HOST + b"A: b\r\n c\r\n\r\n", 400),
    "bare line feeds": (b"GET / HTTP/1.1\nHost: localhost\n\n", 400),
    "bare line feed": (b"GET / HTTP/1.1\r\nHost: localhost\nX: y\r\n\r\n", 400),
    "bare carriage return": (b"GET / HTTP/1.1\r\nHost: localhost\rX: y\r\n\r\n", 400),
    "a tunnel": (b"CONNECT a:1 HTTP/1.1\r\n" + _HOST + b"\r\n", 501),
    "null": (b"GET / HTTP/1.1\r\nHost: localhost\0\r\n\r\n", 400),
}


@pytest.mark.parametrize("name", _FAULTS)
def test_what_could_be_read_in_two_ways_is_refused(name: str) -> None:
    said, status = _FAULTS[name]
    assert _parse(said) == [status]
    assert _parse(*(bytes([byte]) for byte in said)) == [status]
    good = b"GET /before HTTP/1.1\r\n" + _HOST + b"\r\n"
    assert _parse(good + said + good) == [("GET", b"/before", b""), status], "what came before it counts"


@pytest.mark.parametrize(
    "chunks", [b"x\r\n", b"0x1\r\na\r\n", b"1\r\nab\r\n", b"1 \r\na\r\n", b"1\na\n", b"f" * 17 + b"\r\na"]
)
def test_a_chunk_that_is_none_ends_the_body(chunks: bytes) -> None:
    parser = RequestParser()
    parser.feed(_CHUNKED)
    request = parser.pop_request()
    parser.feed(chunks)
    assert not request.is_whole
    assert request.fault is not None
    assert request.fault.status == 400


@pytest.mark.parametrize(
    "rest, body", [(b"", b""), (b"Content-Length: 3\r\n", b"abc"), (b"Content-Length: 0\r\n", b"")]
)
@pytest.mark.parametrize("size", [1, 1000])
def test_another_protocol_is_passed_over_and_a_body_is_no_request(
    rest: bytes, body: bytes, size: int
) -> None:
    """llhttp ends a request that names one, and would parse its body as the next request."""
    one = b"POST /1 HTTP/1.1\r\n" + _HOST + _UPGRADE + rest + b"\r\n" + body
    said = one * 3 + b"GET /2 HTTP/1.1\r\n" + _HOST + b"\r\n"
    pieces = [said[start : start + size] for start in range(0, len(said), size)]
    assert _parse(*pieces) == [("POST", b"/1", body)] * 3 + [("GET", b"/2", b"")]


def test_a_smuggled_request_behind_an_upgrade_is_content() -> None:
    inner = b"GET /secret HTTP/1.1\r\n" + _HOST + b"\r\n"
    head = b"POST / HTTP/1.1\r\n" + _HOST + _UPGRADE
    length = b"Content-Length: %d\r\n\r\n" % len(inner)
    assert _parse(head + length + inner) == [("POST", b"/", inner)]
    chunks = b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(inner), inner)
    assert _parse(head + chunks + inner) == [("POST", b"/", inner), ("GET", b"/secret", b"")]


_PIECE = b"a" * 1000
_MANY = HEADERS_SIZE_MAX // 1000 + 2


@pytest.mark.parametrize(
    "begin, piece",
    [
        (b"GET /", _PIECE),
        (b"GET / HTTP/1.1\r\nX: ", _PIECE),
        (b"GET / HTTP/1.1\r\n", b"X: y\r\n" * 167),
        (b"", b"\r\n" * 500),
        (_CHUNKED + b"1;", _PIECE),
        (_CHUNKED, b"0" * 1000),
        (_CHUNKED + b"0\r\n", _PIECE),
        (_CHUNKED + b"0\r\n", b"X: y\r\n" * 167),
    ],
    ids=["target", "header", "headers", "line breaks", "chunk's name", "chunk's size", "trailer", "trailers"],
)
def test_what_does_not_end_is_refused(begin: bytes, piece: bytes) -> None:
    assert _parse(begin, *[piece] * _MANY)[-1] == 431
    # What follows a head in its piece is bounded by the size of pieces.
    assert begin.startswith(_CHUNKED) or _parse(begin + piece * _MANY) == [431]


def test_a_head_may_be_as_large_as_the_bound() -> None:
    head = b"GET / HTTP/1.1\r\n" + _HOST + b"X: "
    value = b"a" * (HEADERS_SIZE_MAX - len(b"HostlocalhostX"))
    assert _parse(head + value + b"\r\n\r\n") == [("GET", b"/", b"")]
    assert _parse(head + value + b"a\r\n\r\n") == [431]


@pytest.mark.parametrize("size", [1, 100_000])
def test_a_head_has_so_many_headers_and_the_next_one_is_not_looked_at(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the shortest thousands fit a piece, each at the cost of a call."""
    seen = list[bytes]()
    note = RequestParser.on_header

    def on_header(self: RequestParser, name: bytes, value: bytes) -> None:
        seen.append(name)
        note(self, name, value)

    monkeypatch.setattr(RequestParser, "on_header", on_header)
    head = b"GET / HTTP/1.1\r\n" + _HOST + b"a:\r\n" * (HEADERS_COUNT_MAX - 1)
    for more, status, count in ((b"", ("GET", b"/", b""), 0), (b"b:\r\n" * 1000, 431, 1)):
        seen.clear()
        said = head + more + b"\r\n"
        assert _parse(*(said[start : start + size] for start in range(0, len(said), size))) == [status]
        assert len(seen) == HEADERS_COUNT_MAX + count
    trailers = b"0\r\n" + b"a:\r\n" * HEADERS_COUNT_MAX + b"\r\n"
    assert _parse(_CHUNKED + trailers) == [431]


def test_headers_of_a_later_request_are_counted_anew() -> None:
    one = b"GET / HTTP/1.1\r\n" + _HOST + b"a:\r\n" * (HEADERS_COUNT_MAX - 1) + b"\r\n"
    assert _parse(one * 3) == [("GET", b"/", b"")] * 3


def test_a_body_has_no_bound_here() -> None:
    parser = RequestParser()
    parser.feed(_CHUNKED)
    request = parser.pop_request()
    for _ in range(_MANY):
        parser.feed(b"3e8\r\n" + _PIECE + b"\r\n")
    assert request.fault is None
    assert request.take() == _PIECE * _MANY
    assert request.take() == b""


@pytest.mark.parametrize(
    "target, path, host",
    [
        (b"http://localhost:7475/api/v1/status?x=1", b"/api/v1/status?x=1", b"localhost:7475"),
        (b"HTTP://127.0.0.1", b"/", b"127.0.0.1"),
        (b"https://[::1]:1?x", b"/?x", b"[::1]:1"),
    ],
)
def test_a_target_in_absolute_form_names_the_host(target: bytes, path: bytes, host: bytes) -> None:
    request = _parse_one(b"GET " + target + b" HTTP/1.1\r\nHost: evil.example\r\nX: y\r\n\r\n")
    assert (request.target, request.headers) == (path, [(b"x", b"y"), (b"host", host)])


def test_a_target_whose_host_has_a_user_is_refused() -> None:
    assert _parse(b"GET http://localhost@evil.example/ HTTP/1.1\r\n" + _HOST + b"\r\n") == [400]
