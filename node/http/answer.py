"""`AnswerWriter`: the bytes of one answer of HTTP/1.1, its head and the framing of its body. Pure."""

from collections.abc import Iterable
from http import HTTPStatus
from typing import Final

CONTINUE: Final = b"HTTP/1.1 100 \r\n\r\n"
"""Asks a client for the body that it holds back."""
_FIRST_LINES: Final = {status.value: b"HTTP/1.1 %d \r\n" % status for status in HTTPStatus}
_BODILESS: Final = frozenset({204, 304})
_LENGTH: Final = b"content-length"
_CODING: Final = b"transfer-encoding"
_CONNECTION: Final = b"connection"


class WrongAnswer(Exception):
    """The application sends something that is no HTTP answer: a defect of the application."""


class AnswerWriter:
    """Writes the answer to one request: its head once, then parts of its body."""

    __slots__ = (
        "_has_body",
        "_is_chunked",
        "_is_http11",
        "_length_left",
        "is_begun",
        "is_over",
        "keeps_open",
    )

    def __init__(self, method: str, version: str, *, keeps_open: bool) -> None:
        """Method and version of the request, and whether the connection may be used for another."""
        self.keeps_open = keeps_open
        """True if it still may, when the answer is over."""
        self.is_begun = False
        self.is_over = False
        self._is_http11 = version == "1.1"
        self._has_body = method != "HEAD"
        self._is_chunked = False
        self._length_left: int | None = None

    def write_head(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
        """Return the head; names of `headers` are in lower case. Raises WrongAnswer for a line break in a header."""
        lines = [_FIRST_LINES.get(status) or b"HTTP/1.1 %d \r\n" % status]
        states_close = False
        for name, value in headers:
            if name == _CODING:  # of an answer that is passed on; how this one is framed is decided here
                continue
            lines.append(b"%b: %b\r\n" % (name, value))
            if name == _LENGTH:
                self._length_left = int(value)
            elif name == _CONNECTION:
                states_close = True
                self.keeps_open &= value.lower() != b"close"
        if status in _BODILESS:
            self._has_body = False
        elif self._length_left is None:
            if self._is_http11:
                self._is_chunked = True
                lines.append(b"Transfer-Encoding: chunked\r\n")
            else:  # it ends with the connection
                self.keeps_open = False
        if not self.keeps_open and not states_close:
            lines.append(b"connection: close\r\n")
        lines.append(b"\r\n")
        head = b"".join(lines)
        # Names of files are in headers. One with a line break would be headers of another's choice.
        if head.count(b"\n") != len(lines) or head.count(b"\r") != len(lines):
            raise WrongAnswer("a line break in a header")
        self.is_begun = True
        return head

    def write_part(self, content: bytes, *, is_last: bool) -> bytes:
        """Return a part of the body in its framing. Raises WrongAnswer if the length differs from the head's."""
        self.is_over |= is_last
        if not self._has_body:
            return b""
        if self._length_left is not None:
            self._length_left -= len(content)
            if self._length_left < 0 or (is_last and self._length_left):
                raise WrongAnswer("a body of another length than its head states")
            return content
        if not self._is_chunked:
            return content
        part = b"%x\r\n%b\r\n" % (len(content), content) if content else b""
        return part + b"0\r\n\r\n" if is_last else part
