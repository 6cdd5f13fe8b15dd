"""HTTP to one daemon, over the standard library's client, for the client that waits.

A command speaks to a loopback address, without proxies, redirects or compression. httpx serves all of these and takes
five times as long to import as the rest of a command needs; so only the client that awaits uses it.

Connections stay open between requests. A stream holds its own, so that other calls can be made while it is read.
"""

import http.client
import select
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final
from urllib.parse import urlencode, urlsplit

from ravel.exchange import RUN_HEADER, Answer, check_size

_IDLE_SECONDS_MAX: Final = 4.0
"""A connection that was idle for longer is not used again: the daemon closes it after 5 s."""
_PIECE_SIZE: Final = 1 << 20
LINE_SIZE_MAX: Final = 1 << 26
"""Bytes of a line of a stream, of which one holds an event: far more than the daemon sends."""


class ConnectionLost(Exception):
    """No answer came, or not the whole of it."""

    was_sent = True
    """A part of the request may have reached the daemon."""


class NotSent(ConnectionLost):
    """No connection could be made, so that nothing reached the daemon."""

    was_sent = False


class NoAnswer(ConnectionLost):
    """No answer came in time."""


_KINDS: Final[Mapping[str, type[http.client.HTTPConnection]]] = {
    "http": http.client.HTTPConnection,
    "https": http.client.HTTPSConnection,
}


class HttpResponse:
    """An answer whose content has not been read yet."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self._response = response
        self.status: Final = response.status

    @property
    def is_error(self) -> bool:
        """True if the status says that the request failed."""
        return self.status >= http.client.BAD_REQUEST

    @property
    def is_whole(self) -> bool:
        """True if all of the content has been read."""
        return self._response.isclosed()

    @property
    def keeps_open(self) -> bool:
        """True if the connection serves another request afterwards."""
        return not self._response.will_close

    def header(self, name: str) -> str:
        """Return a header's value; empty where there is none."""
        return self._response.headers.get(name, "")

    def read(self) -> bytes:
        """Return the rest of the content. Raises ConnectionLost."""
        with _lost():
            return self._response.read()

    def pieces(self, size: int) -> Iterator[bytes]:
        """Yield the content in pieces of at most `size` bytes. Raises ConnectionLost."""
        with _lost():
            while piece := self._response.read(size):
                yield piece
            # Of a content of known length, `read` with a size gives what came before the end of the connection.
            if self._response.length:
                raise http.client.IncompleteRead(b"", self._response.length)

    def lines(self) -> Iterator[str]:
        """Yield the content's lines, as they come, without their ends. Raises ConnectionLost."""
        with _lost():
            while line := self._response.readline(LINE_SIZE_MAX):
                yield line.decode("utf-8", "replace").rstrip("\r\n")


class HttpClient:
    """Requests to one origin. Thread-safe: each request has a connection to itself."""

    def __init__(self, base_url: str, headers: Mapping[str, str], timeout: float) -> None:
        """`base_url` is of the scheme http or https; its path stands before those of requests. `timeout`: seconds."""
        parts = urlsplit(base_url)
        self._kind = _KINDS[parts.scheme]
        self._host = parts.hostname or ""
        self._port = parts.port
        self._prefix = parts.path
        self._headers = dict(headers)
        self._timeout = timeout
        self._lock = threading.Lock()
        self._idle: list[
            tuple[http.client.HTTPConnection, float]
        ] = []  # the latest last; until when it is good
        self._is_closed = False

    def close(self) -> None:
        """Close the connections that no request uses, and each of the others at its end."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for connection, _ in idle:
            connection.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, int | str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content: Iterable[bytes] | None = None,
        timeout: float | None = None,
    ) -> Answer:
        """Return the whole answer. Raises ConnectionLost.

        `body` is JSON, `content` any bytes, streamed. `timeout`: seconds without a byte after which no answer is expected.
        """
        with self.open(
            method, path, query=query, headers=headers, body=body, content=content, timeout=timeout
        ) as response:
            whole = bytearray()
            for piece in response.pieces(_PIECE_SIZE):
                whole += piece
                check_size(len(whole))
            return Answer(response.status, bytes(whole), response.header(RUN_HEADER))

    @contextmanager
    def open(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, int | str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content: Iterable[bytes] | None = None,
        timeout: float | None = None,
    ) -> Iterator[HttpResponse]:
        """Send a request whose answer is read while the block runs. Raises ConnectionLost."""
        sent: bytes | _Content | None = body if content is None else _Content(content)
        told = {**self._headers, **(headers or {})}
        if body is not None:
            told["Content-Type"] = "application/json"
        target = self._prefix + path + (f"?{urlencode(query)}" if query else "")
        connection = self._take(self._timeout if timeout is None else timeout)
        is_reusable = False
        try:
            try:
                with _lost():
                    _send(connection, method, target, sent, told)
                    response = HttpResponse(connection.getresponse())
            except ConnectionLost:
                if isinstance(sent, _Content) and sent.error is not None:
                    raise sent.error from None  # of the file that was to be sent, say, and not of the connection
                raise
            yield response
            is_reusable = response.is_whole and response.keeps_open
        finally:
            self._put_back(connection) if is_reusable else connection.close()

    def _take(self, timeout: float) -> http.client.HTTPConnection:
        """Return a connection to the daemon: one that is idle, or another, which is opened by its first request."""
        while True:
            with self._lock:
                if not self._idle:
                    break
                connection, good_until = self._idle.pop()
            if time.monotonic() < good_until and _is_open(connection):
                connection.sock.settimeout(timeout)
                return connection
            connection.close()
        return self._kind(self._host, self._port, timeout=timeout)

    def _put_back(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if not self._is_closed:
                self._idle.append((connection, time.monotonic() + _IDLE_SECONDS_MAX))
                return
        connection.close()


class _Content:
    """Content that is sent, and the error that ended it, if any."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = pieces
        self.error: Exception | None = None

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._pieces
        except Exception as error:  # of the caller's own, of any type: it is noted and raised again
            self.error = error
            raise


def _is_open(connection: http.client.HTTPConnection) -> bool:
    """Return True if an idle connection can be used. Anything readable before a request means that the daemon closed it."""
    waiting = select.poll()
    waiting.register(connection.sock, select.POLLIN)
    return not waiting.poll(0)


def _send(
    connection: http.client.HTTPConnection,
    method: str,
    target: str,
    content: bytes | _Content | None,
    headers: Mapping[str, str],
) -> None:
    """Send a request. A daemon may refuse a long content before all of it is sent, and close: then its answer counts."""
    if connection.sock is None:
        try:
            connection.connect()
        except TimeoutError:
            raise
        except OSError as error:
            raise NotSent(str(error)) from None
    try:
        connection.request(method, target, content, headers)
    except (BrokenPipeError, ConnectionResetError):
        if isinstance(content, _Content) and content.error is not None:
            raise


@contextmanager
def _lost() -> Iterator[None]:
    """Raises what goes wrong with a connection as ConnectionLost."""
    try:
        yield
    except TimeoutError as error:  # also of the connection, whose daemon is too busy to accept it
        raise NoAnswer(str(error)) from None
    except (OSError, http.client.HTTPException) as error:
        raise ConnectionLost(str(error) or type(error).__name__) from None
