"""Parses HTTP/1.1: pieces of a connection in, requests with their bodies out. Pure.

llhttp, which Node.js uses, does the grammar (by httptools), and refuses framing that can be read in two ways. It leaves to
its callers, and here is: how large a head may be, what must stand in it, and an `Upgrade` that is not heeded.
"""

import re
from collections import deque
from typing import Final

import httptools

from protocol.limits.formats import KIB

HEADERS_SIZE_MAX: Final = 16 * KIB
"""Bytes of a request's line and headers: browsers send a few hundred, and a token at most 256. Of a body's framing between
two parts of its content, too. More is refused once that much has come beyond the piece in which it began."""
HEADERS_COUNT_MAX: Final = 128
"""Headers of a request, its trailers too: browsers send some twenty. Each costs a call from C, 0.5 us: 2,000 of the shortest
fit the first 8 KiB of a connection, which are parsed before its turn."""
_VERSIONS: Final = frozenset({"1.0", "1.1"})
_ABSOLUTE: Final = re.compile(rb"(?is)https?://([^/?#]*)(.*)")
"""A target with scheme and host, as clients send it to proxies."""
_HTTP2_MESSAGE: Final = "Pause on PRI/Upgrade"
"""What llhttp says of the first line of HTTP/2."""


class BadRequest(Exception):
    """Raised for bytes that are no request to serve. `status` is the HTTP status of the refusal."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Request:
    """A request whose head has come. Its body comes by and by."""

    __slots__ = (
        "awaits_continue",
        "fault",
        "headers",
        "is_whole",
        "keeps_open",
        "method",
        "parts",
        "target",
        "version",
    )

    def __init__(
        self, method: str, target: bytes, version: str, headers: list[tuple[bytes, bytes]], keeps_open: bool
    ) -> None:
        """Names in `headers` are in lower case. `keeps_open`: the client may send another request afterwards."""
        self.method = method
        self.target = target
        self.version = version
        self.headers = headers
        self.keeps_open = keeps_open
        self.awaits_continue = False
        """True if its client sends the body only when it is asked for it."""
        self.parts: list[bytes] = []
        """What has come of its body and was not taken yet."""
        self.is_whole = False
        self.fault: BadRequest | None = None
        """Why no more of its body can come."""

    def take(self) -> bytes:
        """Return the bytes of the body that have come since the last call."""
        parts, self.parts = self.parts, []
        return parts[0] if len(parts) == 1 else b"".join(parts)


class RequestParser:
    """The requests of one connection. After the first fault there are no more."""

    def __init__(self) -> None:
        self._requests: deque[Request] = deque()
        self._last: Request | None = None  # whose body comes
        self._target = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._head_size = 0
        self._header_count = 0
        self._unsettled_size = 0
        """Bytes of all pieces since one of them brought a head to its end, some content or the end of a body."""
        self._fault: BadRequest | None = None
        self._skipped_framing = b""
        """Of a request that names another protocol: the header that tells how long its body is."""
        self._is_repeated = False
        """True if a head is parsed for the second time."""
        self._llhttp = httptools.HttpRequestParser(self)

    @property
    def has_failed(self) -> bool:
        """True after a fault: nothing more is parsed."""
        return self._fault is not None

    @property
    def has_request(self) -> bool:
        """True if a request's head, or the fault in its place, can be taken."""
        return bool(self._requests) or self._fault is not None

    def pop_request(self) -> Request:
        """Return the next request. Raises BadRequest if it is none."""
        if self._requests:
            return self._requests.popleft()
        assert self._fault is not None, "one is there"
        raise BadRequest(
            self._fault.status
        )  # anew: one that is raised holds who called, and would be held here

    def feed(self, piece: bytes | memoryview) -> None:
        """Parse the next bytes; empty bytes are the end. Faults are reported in their turn."""
        if self._fault is not None or not piece:
            return
        rest, self._unsettled_size = memoryview(piece), self._unsettled_size + len(piece)
        while True:
            try:
                self._llhttp.feed_data(rest)
            except httptools.HttpParserUpgrade as upgrade:
                rest = rest[upgrade.args[0] :]
                self._pass_over_upgrade()
                continue
            except httptools.HttpParserError as error:
                self._fail(_fault_of(error))
            break
        if self._unsettled_size > HEADERS_SIZE_MAX:
            self._fail(BadRequest(431))

    def close(self) -> None:
        """Parse no more, and hold no memory until Python's next look for cycles: llhttp and this refer to each other."""
        del self._llhttp

    def _pass_over_upgrade(self) -> None:
        """Go on as if no other protocol had been named, as a server may (RFC 9110, section 7.8).

        llhttp ends a request there, and would take its body for the next one.
        """
        self._llhttp = httptools.HttpRequestParser(self)
        if self._skipped_framing:
            head = b"POST / HTTP/1.1\r\n%b\r\n\r\n" % self._skipped_framing
            self._skipped_framing, self._is_repeated = b"", True
            self._llhttp.feed_data(head)

    def _fail(self, fault: BadRequest) -> None:
        # Without the frames that it came through, which hold the connection and all that came by it.
        self._fault = self._fault or BadRequest(fault.status)
        if self._last is not None:
            self._last.fault = self._fault

    # --- called by httptools ---

    def on_message_begin(self) -> None:
        """Note the start of a request."""
        if not self._is_repeated:
            self._target, self._headers, self._head_size, self._header_count = b"", [], 0, 0

    def on_url(self, part: bytes) -> None:
        """Add a part of a request's target."""
        if not self._is_repeated:
            self._target += part

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take one header; ignore a trailer behind a body."""
        self._head_size += len(name) + len(value)
        self._header_count += 1
        if self._head_size > HEADERS_SIZE_MAX or self._header_count > HEADERS_COUNT_MAX:
            raise BadRequest(431)
        if self._last is None:
            self._headers.append((name.lower(), value.rstrip(b" \t")))

    def on_headers_complete(self) -> None:
        """Check a whole head, and queue its request. Raises BadRequest if it cannot be served."""
        self._unsettled_size = 0
        if self._is_repeated:
            self._is_repeated = False
            return
        version = self._llhttp.get_http_version()
        if version not in _VERSIONS:
            raise BadRequest(505)
        if len(self._target) > HEADERS_SIZE_MAX:
            raise BadRequest(431)
        headers = self._headers
        names = [name for name, _ in headers]
        hosts = names.count(b"host")
        if hosts > 1 or (not hosts and version == "1.1"):
            raise BadRequest(400)
        if b"transfer-encoding" in names:
            if version != "1.1":  # it does not know the header, and something on the way may not either
                raise BadRequest(400)
            if headers[names.index(b"transfer-encoding")][1].lower() != b"chunked":
                raise BadRequest(501)
        method = self._llhttp.get_method().decode("ascii")
        if method == "CONNECT":  # what follows it is of no request
            raise BadRequest(501)
        target = self._target
        if (absolute := _ABSOLUTE.match(target)) is not None:
            target, headers = _origin_form(absolute, headers)
        keeps_open = version == "1.1" and self._llhttp.should_keep_alive()
        last = self._last = Request(method, target, version, headers, keeps_open)
        if b"expect" in names and version == "1.1":
            expected = headers[names.index(b"expect")][1]
            last.awaits_continue = expected.lower() == b"100-continue"
        if self._llhttp.should_upgrade():
            self._skipped_framing = _framing_of(headers)
        self._requests.append(last)

    def on_body(self, part: bytes) -> None:
        """Add a part of a body's content."""
        self._unsettled_size = 0
        assert self._last is not None, "its head is whole"
        self._last.parts.append(part)

    def on_message_complete(self) -> None:
        """Note that a request has come whole."""
        self._unsettled_size = 0
        if not self._skipped_framing and self._last is not None:
            self._last.is_whole = True
            self._last = None


def _origin_form(
    absolute: re.Match[bytes], headers: list[tuple[bytes, bytes]]
) -> tuple[bytes, list[tuple[bytes, bytes]]]:
    """Return the target below its host, and the headers with that host as the only one (RFC 9112, section 3.2.2).

    Raises BadRequest where the target names a user: a host that looks like one must not pass for it.
    """
    host, rest = absolute[1], absolute[2]
    if b"@" in host:
        raise BadRequest(400)
    others = [header for header in headers if header[0] != b"host"]
    return rest if rest.startswith(b"/") else b"/" + rest, [*others, (b"host", host)]


def _framing_of(headers: list[tuple[bytes, bytes]]) -> bytes:
    """Return the header that states the length of a body, as it came; empty if none. llhttp refuses several."""
    for name, value in headers:
        if name in (b"content-length", b"transfer-encoding"):
            return b"%b: %b" % (name, value)
    return b""


def _fault_of(error: httptools.HttpParserError) -> BadRequest:
    if isinstance(error.__context__, BadRequest):
        return error.__context__
    return BadRequest(505 if _HTTP2_MESSAGE in error.args else 400)
