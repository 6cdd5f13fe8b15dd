"""Fuzz targets for the local HTTP API: raw bytes on its socket, requests to its endpoints, answers to its client.

The service behind it is a fake that notes what reaches it: what must not get further than the API does not. See
`targets` for what a target is.
"""

import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, is_dataclass
from pathlib import Path
from typing import Any, Final, cast

import msgspec
import trio
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from trio.testing import MockClock

from node.api.api import create_app
from node.api.callers import Callers
from node.api.services import Services
from node.content.files import OpenFile
from node.contract.document_values import WrittenValues
from node.home.tokens import TokenFile
from protocol.formats.document_kinds import DocumentKind
from protocol.ids import NO_COMMIT
from ravel.errors import error_of
from tests.support.connections import serve_alone
from tests.support.ids import as_commit_id
from tests.support.machine import fail_after
from tests.support.streams import ScriptedStream
from verifier.documents import DocumentEntry, DocumentValue

TOKEN: Final = "t" * 64
CONTENT: Final = bytes(range(100))
"""Of the one file that there is."""
REQUESTS: Final = (
    ("POST", "/repos"),
    ("POST", "/repos/r/invitations"),
    ("POST", "/repos/r/branches"),
    ("POST", "/join"),
    ("POST", "/follow"),
    ("POST", "/branches/b/commits"),
    ("POST", "/branches/b/import"),
    ("POST", "/peers"),
    ("GET", "/branches/b/timeline"),
    ("GET", "/branches/b/files"),
    ("POST", "/branches/b/files"),
    ("GET", "/branches/b/files/f"),
    ("POST", "/repos/r/members"),
    ("POST", "/repos/r/removals"),
    ("POST", "/repos/r/leave"),
    ("POST", "/branches/b/adoptions"),
    ("POST", "/branches/b/edits"),
    ("PUT", "/repos/r/tags/t"),
    ("GET", "/repos/r/tangles/group"),
    ("GET", "/branches/b/past/c"),
    ("POST", "/branches/b/forks"),
    ("POST", "/branches/b/merges"),
    ("POST", "/branches/b/offers"),
    ("POST", "/branches/b/comments"),
    ("POST", "/repos/r/offers/o/answers"),
    ("POST", "/repos/r/forks"),
    ("POST", "/branches/b/set"),
    ("POST", "/branches/b/dict"),
    ("POST", "/branches/b/text"),
    ("GET", "/branches/b/dict/entry"),
    ("GET", "/branches/b/edits"),
    ("GET", "/branches/b/imported"),
    ("PUT", "/me"),
    ("PUT", "/petnames"),
    ("POST", "/commits/c/replies"),
    ("PUT", "/commits/c/text"),
    ("PUT", "/commits/c/hidden"),
    ("GET", "/commits/c/versions"),
    ("GET", "/commits/c/thread"),
)
"""What a request may be made to, by the number in its first byte: with a body, a query, or a range of the file."""
_QUERIES: Final = {
    "/branches/b/timeline",
    "/branches/b/files",
    "/repos/r/tangles/group",
    "/branches/b/past/c",
    "/branches/b/dict/entry",
    "/branches/b/edits",
    "/branches/b/imported",
    "/commits/c/versions",
    "/commits/c/thread",
}
"""Paths of which the query is given, where they are read."""
_SECONDS: Final = 60
_HOST: Final = (b"host", b"127.0.0.1:7475")
_AUTHORIZATION: Final = (b"authorization", f"Bearer {TOKEN}".encode())


def take_http(data: bytes) -> str:
    """All that comes over a connection to the API's socket: the first line of the last answer, if one is no 200."""
    service, faults, stream = _Service(), list[str](), _ApiStream(data)
    app = _watched(create_app(cast(Services, service), _callers()), faults)

    async def serve() -> None:
        with fail_after(_SECONDS):
            await serve_alone(app, stream)  # type: ignore[arg-type]  # a stream is enough

    # A connection may wait for seconds: for its client, or until it is idle.
    trio.run(serve, clock=MockClock(autojump_threshold=0))
    assert faults == []
    said = bytes(stream.sent)
    assert not service.calls or f"Bearer {TOKEN}".encode() in data or not said.startswith(b"HTTP/1"), (
        "unasked"
    )
    heads = [line for line in said.split(b"\r\n") if line.startswith(b"HTTP/1")]
    refused = [head for head in heads if not head.startswith((b"HTTP/1.1 100", b"HTTP/1.1 200"))]
    return "" if heads and not refused else (refused or [b"no answer"])[-1].decode("latin-1")


def take_request(data: bytes) -> str:
    """A request with the token: the first byte says to which endpoint, the rest is its body, query or range."""
    method, path = REQUESTS[sum(data[:1]) % len(REQUESTS)]
    content = data[1:]
    headers, query = [_HOST, _AUTHORIZATION], b""
    if method == "GET" and path in _QUERIES:
        query, content = content, b"content"
    elif method == "GET":
        headers.append((b"range", content))
    service, faults = _Service(), list[str]()
    app = _watched(create_app(cast(Services, service), _callers()), faults)
    status, answer, body = trio.run(_ask, app, method, f"/api/v1{path}", query, headers, content)
    assert faults == []
    if status in (200, 206) and path.endswith("/f"):
        start, stop = 0, len(CONTENT)
        if status == 206:
            start, last = map(
                int, answer["content-range"].removeprefix("bytes ").partition("/")[0].split("-")
            )
            stop = last + 1
        assert (body, int(answer["content-length"])) == (CONTENT[start:stop], stop - start)
        return "" if status == 206 else "no range"
    if status == 200:
        assert len(service.calls) == 1
        return ""
    assert service.calls == [] or status == 416
    return answer["content-range"] if status == 416 else str(json.loads(body)["error"]["message"])


def take_answer(data: bytes) -> str:
    """What a client is answered that is no success, by the daemon or by what else has its port."""
    error = error_of(500, data)
    for text in (error.code, error.message, error.advice):
        text.encode()  # it is printed
    return error.message if error.code == "incompatible" else ""


@dataclass(frozen=True, slots=True)
class _Service:
    """In the place of the services: takes every call, and notes it."""

    name: str = ""
    calls: list[tuple[object, ...]] = field(default_factory=list)

    def __getattr__(self, name: str) -> "_Service":
        return _Service(f"{self.name}.{name}".lstrip("."), self.calls)

    def __call__(self, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401  # as the method of that name
        if self.name == "node.watching.answered":  # the one call that is no request, and is not awaited
            return None
        if self.name == "hub.user_requests.at_work":  # no request either: others give way to one meanwhile
            return nullcontext()
        return (
            _read(*arguments)
            if self.name == "branches.files.read"
            else self._take(*arguments, *named.values())
        )

    async def _take(self, *arguments: object) -> object:
        if self.name == "node.revoking.make":  # it does what it is given, and writes down what that made
            return await cast(Callable[[], Awaitable[object]], arguments[-1])()
        plain: list[object] = []
        for argument in arguments:
            if isinstance(argument, AsyncIterator):  # an upload
                plain.append(sum([len(chunk) async for chunk in argument]))
            elif isinstance(argument, DocumentKind):
                plain.append(argument.name)
            elif is_dataclass(argument) and not isinstance(argument, type):
                plain.append(asdict(argument))
            else:
                plain.append(argument.hex() if isinstance(argument, bytes) else argument)
        # What gets here can be kept: its text is Unicode.
        assert msgspec.msgpack.decode(msgspec.msgpack.encode(plain)) == json.loads(
            json.dumps(plain, default=msgspec.to_builtins)
        )
        self.calls.append((self.name, *plain))
        # There is one file, and it is always found.
        answers = {
            "branches.files.open": OpenFile(
                "name", cast(Any, None), "id", "id", len(CONTENT), cast(Any, None), cast(Any, None)
            ),
            "node.watching.readiness": (True, {}),
            "node.watching.metrics": "",
            "branches.documents.edit": WrittenValues("", [], [], []),
            "branches.documents.read_entry": (
                "",
                DocumentEntry((DocumentValue(as_commit_id(bytes(32)), (0, 0, 0, NO_COMMIT), ""),)),
            ),
        }
        return answers.get(self.name, {})


async def _read(_file: OpenFile, start: int, stop: int) -> AsyncIterator[bytes]:
    assert 0 <= start < stop <= len(CONTENT)
    yield CONTENT[start:stop]


class Loopback:
    """What the server asks of a socket."""

    family: Final = socket.AF_INET

    def getpeername(self) -> tuple[str, int]:
        return "127.0.0.1", 50_000

    def getsockname(self) -> tuple[str, int]:
        return "127.0.0.1", 7475


class _ApiStream(ScriptedStream):
    """A client that waits for what is answered before it closes."""

    socket: Final = Loopback()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        some = await super().receive_some(max_bytes)
        if not some:
            await trio.sleep(1)  # of the mock clock: when nothing else is left to do
        return some

    async def send_eof(self) -> None:
        await trio.lowlevel.checkpoint()


def _callers() -> Callers:
    """Of a node with its own token alone."""
    return Callers(TOKEN, TokenFile(Path("/nonexistent"), lambda: 0.0))


def _watched(app: ASGIApp, faults: list[str]) -> ASGIApp:
    """The application; what it raises, and an answer that it failed, is noted."""

    async def run(scope: Scope, receive: Receive, send: Send) -> None:
        async def watch(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] == 500:
                faults.append("500")
            await send(message)

        try:
            await app(scope, receive, watch)
        except Exception as error:  # the server would answer 500 and go on
            faults.append(repr(error))

    return run


async def _ask(
    app: ASGIApp, method: str, path: str, query: bytes, headers: list[tuple[bytes, bytes]], content: bytes
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of the answer."""
    said: list[Message] = []
    requests = [{"type": "http.request", "body": content}]

    async def receive() -> Message:
        if requests:
            return requests.pop()
        await trio.sleep_forever()
        raise AssertionError("the client does not leave")

    async def send(message: Message) -> None:
        await trio.lowlevel.checkpoint()
        said.append(message)

    scope: Scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query,
        "headers": headers,
        "client": ("127.0.0.1", 50_000),
        "server": ("127.0.0.1", 7475),
    }
    await app(scope, receive, send)
    start, *parts = said
    answer = {name.decode(): value.decode("latin-1") for name, value in start["headers"]}
    return start["status"], answer, b"".join(part.get("body", b"") for part in parts)
