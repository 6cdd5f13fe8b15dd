"""The client's HTTP against a server that says exactly what a test tells it to."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import pytest

from ravel import connect
from ravel.errors import RavelError
from ravel.transport import ConnectionLost, HttpClient, NoAnswer
from tests.support.machine import patience

EMPTY: Final = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


class Line:
    """One connection as the server has it."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection

    def request(self) -> bytes:
        """A request, to the end of its headers or of its content of known length."""
        data = b""
        while b"\r\n\r\n" not in data:
            piece = self.connection.recv(65536)
            if not piece:
                return data
            data += piece
        head, _, rest = data.partition(b"\r\n\r\n")
        for line in head.split(b"\r\n"):
            if line.lower().startswith(b"content-length:"):
                while len(rest) < int(line.split(b":")[1]):
                    rest += self.connection.recv(65536)
        return head + b"\r\n\r\n" + rest

    def say(self, data: bytes) -> None:
        """Send."""
        self.connection.sendall(data)


@contextmanager
def _server(*roles: Callable[[Line], object]) -> Iterator[str]:
    """A server whose connections, in the order in which they are made, play these roles and close. Gives its URL."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(patience(20))

    def serve(role: Callable[[Line], object], connection: socket.socket) -> None:
        connection.settimeout(patience(20))
        with connection:
            role(Line(connection))

    def accept() -> None:
        threads = []
        for role in roles:
            threads.append(threading.Thread(target=serve, args=(role, listener.accept()[0])))
            threads[-1].start()
        for thread in threads:
            thread.join()

    accepting = threading.Thread(target=accept)
    accepting.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        accepting.join()
        listener.close()


def _client(url: str) -> HttpClient:
    return HttpClient(url, {"Authorization": "Bearer t"}, patience(20))


def test_requests_one_after_the_other_share_a_connection() -> None:
    seen: list[bytes] = []

    def role(line: Line) -> None:
        for _ in range(2):
            seen.append(line.request())
            line.say(EMPTY)

    with _server(role) as url:
        client = _client(url)
        assert client.request("GET", "/a", query={"q": "x y", "n": 1}).content == b"{}"
        assert client.request("POST", "/b", body='{"text":"é"}'.encode()).content == b"{}"
        client.close()
    assert seen[0].startswith(b"GET /a?q=x+y&n=1 HTTP/1.1\r\n")
    assert b"Authorization: Bearer t\r\n" in seen[0]
    assert seen[1].endswith('\r\n\r\n{"text":"é"}'.encode())


def test_a_connection_that_the_daemon_has_closed_is_not_used_again() -> None:
    closed = threading.Event()

    def first(line: Line) -> None:
        line.request()
        line.say(EMPTY)
        line.connection.shutdown(socket.SHUT_RDWR)
        closed.set()

    def second(line: Line) -> None:
        line.request()
        line.say(EMPTY)

    with _server(first, second) as url:
        client = _client(url)
        client.request("GET", "/")
        assert closed.wait(patience(20))
        assert client.request("GET", "/").content == b"{}"
        client.close()


def test_a_stream_has_a_connection_of_its_own() -> None:
    def stream(line: Line) -> None:
        line.request()
        line.say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\na\r\nb\r\n")
        assert line.request() == b"", "the client closes what it has not read to the end"

    def call(line: Line) -> None:
        line.request()
        line.say(EMPTY)

    with _server(stream, call) as url:
        client = _client(url)
        with client.open("GET", "/stream") as response:
            lines = response.lines()
            assert next(lines) == "a"
            assert client.request("GET", "/").content == b"{}"
        client.close()


def test_a_cut_answer_is_lost_whatever_its_form() -> None:
    def known(line: Line) -> None:
        line.request()
        line.say(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")

    def chunked(line: Line) -> None:
        line.request()
        line.say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")

    def silent(line: Line) -> None:
        line.request()

    with _server(known, known, chunked, chunked, silent) as url:
        client = _client(url)
        for _ in range(2):
            with pytest.raises(ConnectionLost):
                client.request("GET", "/")
            with client.open("GET", "/") as response, pytest.raises(ConnectionLost):
                assert b"".join(response.pieces(2)) == b""
        with pytest.raises(ConnectionLost):
            client.request("GET", "/")


def test_a_daemon_that_says_nothing_does_not_answer_in_time() -> None:
    done = threading.Event()
    with _server(lambda _line: done.wait(patience(20))) as url:
        with pytest.raises(NoAnswer):
            _client(url).request("GET", "/", timeout=0.01)
        done.set()


def test_a_refusal_that_comes_before_all_is_sent_is_the_answer() -> None:
    error = b'{"error":{"code":"too_large","message":"x"}}'
    answer = b"HTTP/1.1 413 Too Large\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(error) + error

    def refuse(line: Line) -> None:
        line.request()
        line.say(answer)

    with _server(refuse) as url:
        api = connect(url=url, token="t")
        with pytest.raises(RavelError) as caught:
            api.add_file("b", (bytes(1 << 16) for _ in range(64)), name="name")
        assert caught.value.code == "too_large"


def test_an_error_of_what_is_to_be_sent_stays_itself() -> None:
    def content() -> Iterator[bytes]:
        yield b"abc"
        raise ConnectionResetError("of the file's own disk")

    with _server(lambda line: line.request()) as url, pytest.raises(ConnectionResetError, match="own disk"):
        _client(url).request("PUT", "/", content=content())
