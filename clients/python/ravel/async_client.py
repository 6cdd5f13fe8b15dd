"""The client to be awaited, under asyncio or trio: as `ravel.client`, by the same rules, over httpx."""

import math
import ssl
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import anyio
import anyio.abc
import httpx

from ravel.calls.all_calls import AsyncAllCalls
from ravel.calls.documents import GET_FILE
from ravel.calls.node import WRITE_BUNDLE
from ravel.client import RAW_SECONDS_MAX
from ravel.errors import RavelError, error_of, incompatible
from ravel.event_streams import AsyncEventStream, Following, StreamCut
from ravel.exchange import (
    RUN_HEADER,
    Answer,
    Lost,
    Memory,
    Outcome,
    Send,
    Wait,
    check_size,
    exchange,
    new_key,
    too_slow,
)
from ravel.files import Download, cut_short, download_of, pieces_of, range_headers
from ravel.json_documents import AsyncJsonDocument, AsyncJsonDocuments
from ravel.operations import Operation, Request, raw_path, request_of
from ravel.post_writers import OWED_MAX, BegunPost, Outbox
from ravel.target import Target, find_target
from ravel.transport import LINE_SIZE_MAX
from ravel.types.commits import WrittenCommitView

_TIMEOUT_SECONDS: Final = 60.0
A = TypeVar("A")


def connect_async(
    home: str | Path | None = None,
    url: str | None = None,
    token: str | None = None,
    *,
    repo: str = "",
    seconds_max: float = math.inf,
) -> "AsyncClient":
    """Return a client like that of `connect`, with methods to await: `async with ravel.connect_async() as client: ...`."""
    return AsyncClient(find_target(home, url, token, repo), seconds_max)


class AsyncClient(AsyncAllCalls):
    """Calls one daemon, from one event loop. `connect_async` makes one."""

    def __init__(self, target: Target, seconds_max: float = math.inf) -> None:
        self._memory = Memory(target)
        self._seconds_max = seconds_max
        # The daemon is on this machine: what the environment says of proxies is meant for others. To read all certificates
        # that the system trusts takes 25 ms, for nothing where none is asked for.
        is_plain = target.url.startswith("http:")
        self._http = httpx.AsyncClient(
            verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if is_plain else True,
            headers={"Accept-Encoding": "identity"},
            timeout=min(_TIMEOUT_SECONDS, seconds_max),
            trust_env=False,
            limits=httpx.Limits(keepalive_expiry=4.0),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Give up the connections."""
        await self._http.aclose()

    @property
    def url(self) -> str:
        """Address at which the daemon answers."""
        return self._memory.target.url

    async def request(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """Return the content of the answer to a request that this client has no method for. Raises RavelError.

        `path` is below `/api/v1`, and may have a query. `body` is JSON. A write whose answer is lost is not repeated.
        """
        return await self._run(Request(method, raw_path(path), body=body, seconds_max=RAW_SECONDS_MAX))

    async def page(self, path: str) -> str:
        """Return what the daemon serves beside the API, whatever its status: `/metrics`, `/readyz`. Raises RavelError."""
        outcome = await self._send(Send(self._memory.target, Request("GET", path)), None)
        if not isinstance(outcome, Answer):
            raise self._memory.target.lost()
        return outcome.content.decode("utf-8", "replace")

    def document(
        self, branch: str, name: str = "", schema: Mapping[str, object] | None = None
    ) -> AsyncJsonDocument:
        """Return a JSON document of a branch, whether it has been written to or not. `schema` is checked on writes."""
        return AsyncJsonDocument(self, branch, name, schema)

    def documents(
        self,
        branch: str | Sequence[str] | None = None,
        prefix: str = "",
        where: Mapping[str, object] | None = None,
        sort: Sequence[str] = (),
        limit: int = 100,
        *,
        repo: str = "",
    ) -> AsyncJsonDocuments:
        """Return the first JSON documents of a branch that have such a name and meet a filter (docs/apps/json.md).

        `branch`: several in a list, or None for all of `repo`, or of all repos.
        """
        return AsyncJsonDocuments(self, branch, prefix, where, sort, limit, repo)

    def writer(self, branch: str) -> "AsyncPostWriter":
        """Return a writer of many posts that does not wait for each: `async with client.writer(branch) as writer: ...`."""
        return AsyncPostWriter(self._run, branch)

    @asynccontextmanager
    async def get_file(
        self, branch: str, file: str, *, start: int = 0, stop: int | None = None
    ) -> AsyncIterator[Download[AsyncIterator[bytes]]]:
        """Stream a file's bytes from `start` to before `stop`.

        Raises RavelError, on the way `interrupted` where the daemon or the connection stops: the rest may be asked for.
        """
        request = request_of(GET_FILE, {"branch": branch, "file": file})
        send = Send(self._memory.target, Request("GET", request.path, headers=range_headers(start, stop)))
        async with self._opened(send) as response, aclosing(_pieces(response)) as pieces:
            yield download_of(lambda name: response.headers.get(name, ""), pieces)

    @asynccontextmanager
    async def write_bundle(
        self, repo: str, *, since: int | None = None, branches: str = ""
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Stream a bundle of a repo: all of it, or what the node accepted from `since` (unix seconds) on.

        `branches`: names or ids, with commas between them. Raises RavelError, on the way `interrupted`.
        """
        request = request_of(WRITE_BUNDLE, {"repo": repo, "since": since, "branches": branches})
        send = Send(self._memory.target, request)
        async with self._opened(send) as response, aclosing(_pieces(response)) as pieces:
            yield pieces

    async def _call(
        self,
        operation: Operation[A],
        arguments: Mapping[str, object],
        content: bytes | Iterable[bytes] | AsyncIterable[bytes] | None = None,
    ) -> A:
        key = "" if operation.method == "GET" or operation.takes_bytes else new_key()
        pieces = None if content is None else pieces_of(content)
        return operation.read(await self._run(request_of(operation, arguments, key), pieces))

    def _watch(
        self, operation: Operation[Any], arguments: Mapping[str, object], *, reconnect: bool
    ) -> AsyncEventStream:
        following = Following(self._memory, request_of(operation, arguments), reconnect=reconnect)
        return AsyncEventStream(following, self._stream_lines, anyio.sleep)

    async def _run(
        self, request: Request, content: Iterable[bytes] | AsyncIterable[bytes] | None = None
    ) -> bytes:
        steps = exchange(self._memory, request, is_streamed=content is not None)
        outcome: Outcome = None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as done:
                answer: bytes = done.value
                return answer
            if isinstance(step, Wait):
                await anyio.sleep(step.seconds)
                outcome = None
            else:
                outcome = await self._send(step, content)

    async def _send(
        self, step: Send, content: Iterable[bytes] | AsyncIterable[bytes] | None
    ) -> Answer | Lost:
        request = _built(
            self._http, step, _streamed(content), min(step.request.seconds_max, self._seconds_max)
        )
        try:
            response = await self._http.send(request, stream=True)
            whole = bytearray()
            async with aclosing(_raw(response)) as pieces:
                async for piece in pieces:
                    whole += piece
                    check_size(len(whole))
        except httpx.ConnectError:
            return Lost(was_sent=False)
        except httpx.TimeoutException:
            return Lost(was_sent=True, is_slow=True)
        except httpx.TransportError:
            return Lost(was_sent=True)
        return Answer(response.status_code, bytes(whole), response.headers.get(RUN_HEADER, ""))

    @asynccontextmanager
    async def _opened(self, step: Send) -> AsyncIterator[httpx.Response]:
        """Open an answer whose content is read while the block runs. Raises RavelError."""
        request = _built(self._http, step, None, _TIMEOUT_SECONDS)
        try:
            response = await self._http.send(request, stream=True)
        except httpx.TimeoutException:
            raise too_slow() from None
        except httpx.TransportError:
            raise self._memory.target.lost() from None
        async with aclosing(response):
            if response.is_error:
                raise error_of(response.status_code, await response.aread())
            yield response

    @asynccontextmanager
    async def _stream_lines(self, step: Send) -> AsyncIterator[AsyncIterator[str]]:
        async with self._opened(step) as response, aclosing(_lines(response)) as lines:
            yield lines


class AsyncPosted(BegunPost):
    """A post that is being written."""

    def __init__(self, text: str, is_over: anyio.Event) -> None:
        super().__init__(text)
        self.is_over: Final = is_over

    async def result(self) -> WrittenCommitView:
        """Wait until it is durable; returns its commit. Raises RavelError."""
        await self.is_over.wait()
        return self.say()


class AsyncPostWriter:
    """Writer of posts into a branch, for one task. A task of its own sends them."""

    def __init__(self, send: Callable[[Request], Awaitable[bytes]], branch: str) -> None:
        self._send = send
        self._outbox: Outbox[AsyncPosted] = Outbox(branch)
        self._changed = anyio.Event()
        self._is_closed = False
        self._tasks: anyio.abc.TaskGroup

    async def __aenter__(self) -> Self:
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        self._tasks.start_soon(self._run)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_closed = True
        self._change()
        await self._tasks.__aexit__(kind, error, trace)
        if kind is None:
            self._outbox.check()

    async def post(self, text: str) -> AsyncPosted:
        """Write a post behind those before it. Waits while 256 are not answered. Raises RavelError `bad_request`."""
        posted = AsyncPosted(text, anyio.Event())
        while self._outbox.owed >= OWED_MAX:
            await self._changed.wait()
        self._outbox.add(posted)
        self._change()
        return posted

    def _change(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    async def _run(self) -> None:
        while True:
            while not self._outbox.waiting:
                if self._is_closed:
                    return
                await self._changed.wait()
            posts, request = self._outbox.take()
            outcome: bytes | RavelError
            try:
                outcome = await self._send(request)
            except RavelError as error:
                outcome = error
            self._outbox.settle(posts, outcome)
            for one in posts:
                one.is_over.set()
            self._change()


def _built(
    http: httpx.AsyncClient, step: Send, content: AsyncIterable[bytes] | None, seconds: float
) -> httpx.Request:
    request = step.request
    headers = {**step.target.headers, **request.headers}
    if request.body is not None:
        headers["Content-Type"] = "application/json"
    return http.build_request(
        request.method,
        step.target.url + request.path,
        params=dict(request.query) or None,
        headers=headers,
        content=request.body if content is None else content,
        timeout=seconds,
    )


def _streamed(content: Iterable[bytes] | AsyncIterable[bytes] | None) -> AsyncIterable[bytes] | None:
    """Yield what is sent as it comes. An iterable that does not await is read in the event loop."""
    if content is None or isinstance(content, AsyncIterable):
        return content

    async def pieces() -> AsyncIterator[bytes]:
        for piece in content:
            yield piece

    return pieces()


async def _lines(response: httpx.Response) -> AsyncGenerator[str]:
    begun = b""
    async with aclosing(_raw(response)) as pieces:
        try:
            async for piece in pieces:
                *lines, begun = (begun + piece).split(b"\n")
                for line in lines:
                    yield line.decode("utf-8", "replace").rstrip("\r")
                if len(begun) > LINE_SIZE_MAX:
                    raise incompatible(f"the daemon sent a line of over {LINE_SIZE_MAX} bytes")
        except httpx.TransportError:
            raise StreamCut from None


async def _pieces(response: httpx.Response) -> AsyncGenerator[bytes]:
    async with aclosing(_raw(response)) as pieces:
        try:
            async for piece in pieces:
                yield piece
        except httpx.TransportError as error:
            raise cut_short(error) from None


async def _raw(response: httpx.Response) -> AsyncGenerator[bytes]:
    """Yield the content as it comes.

    httpx nests generators, which trio complains of when they are dropped before their end. So all end: they are closed
    underneath, and asked once more.
    """
    pieces = response.aiter_raw()
    try:
        async for piece in pieces:
            yield piece
    finally:
        await response.aclose()
        with suppress(Exception):  # of httpx and httpcore, of many kinds: the content is closed
            async for _ in pieces:
                pass
