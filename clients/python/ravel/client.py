"""The client that waits: a method for each endpoint, answers with the types of `ravel.types`, errors as RavelError."""

from __future__ import annotations  # a command that follows nothing does not import what follows

import math
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from ravel.calls.all_calls import AllCalls
from ravel.calls.documents import GET_FILE
from ravel.calls.node import WRITE_BUNDLE
from ravel.errors import error_of
from ravel.exchange import Answer, Lost, Memory, Send, Wait, exchange, new_key, too_slow
from ravel.operations import Operation, Request, raw_path, request_of
from ravel.target import Target, find_target
from ravel.transport import ConnectionLost, HttpClient, HttpResponse, NoAnswer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from types import TracebackType

    from ravel.event_streams import EventStream
    from ravel.exchange import Outcome
    from ravel.files import Download
    from ravel.json_documents import JsonDocument, JsonDocuments
    from ravel.post_writers import PostWriter

_TIMEOUT_SECONDS: Final = 60.0
_PIECE_SIZE: Final = 1 << 20
RAW_SECONDS_MAX: Final = 3600.0
"""Seconds for which the answer to a raw request is waited for, as for the slowest of the operations."""
A = TypeVar("A")


def connect(
    home: str | Path | None = None,
    url: str | None = None,
    token: str | None = None,
    *,
    repo: str = "",
    seconds_max: float = math.inf,
) -> Client:
    """Return a client of the daemon of a folder (`home`, else RAVEL_HOME, else ~/.local/share/ravel), or of the one at
    `url`.

    Without `token`, it shows the token in the folder. Names of branches mean first those of `repo`, an id, if one is
    given. An answer may take `seconds_max`. Raises RavelError `not_running`, `not_initialised`, `bad_config`,
    `bad_request`.
    """
    return Client(find_target(home, url, token, repo), seconds_max)


class Client(AllCalls):
    """Calls one daemon. Thread-safe. `connect` makes one."""

    def __init__(self, target: Target, seconds_max: float = math.inf) -> None:
        self._memory = Memory(target)
        self._seconds_max = seconds_max
        self._http = self._open_http(target)
        self._http_of = target.url

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give up the connections."""
        self._http.close()

    @property
    def url(self) -> str:
        """Address at which the daemon answers."""
        return self._memory.target.url

    def request(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """Return the content of the answer to a request that this client has no method for. Raises RavelError.

        `path` is below `/api/v1`, and may have a query. `body` is JSON. A write whose answer is lost is not repeated.
        """
        return self._run(Request(method, raw_path(path), body=body, seconds_max=RAW_SECONDS_MAX))

    def page(self, path: str) -> str:
        """Return what the daemon serves beside the API, whatever its status: `/metrics`, `/readyz`. Raises RavelError."""
        outcome = self._send(Send(self._memory.target, Request("GET", path)), None)
        if not isinstance(outcome, Answer):
            raise self._memory.target.lost()
        return outcome.content.decode("utf-8", "replace")

    def document(
        self, branch: str, name: str = "", schema: Mapping[str, object] | None = None
    ) -> JsonDocument:
        """Return a JSON document of a branch, whether it has been written to or not. `schema` is checked on writes."""
        from ravel.json_documents import JsonDocument

        return JsonDocument(self, branch, name, schema)

    def documents(
        self,
        branch: str | Sequence[str] | None = None,
        prefix: str = "",
        where: Mapping[str, object] | None = None,
        sort: Sequence[str] = (),
        limit: int = 100,
        *,
        repo: str = "",
    ) -> JsonDocuments:
        """Return the first JSON documents of a branch that have such a name and meet a filter (docs/apps/json.md).

        `branch`: several in a list, or None for all of `repo`, or of all repos.
        """
        from ravel.json_documents import JsonDocuments

        return JsonDocuments(self, branch, prefix, where, sort, limit, repo)

    def writer(self, branch: str) -> PostWriter:
        """Return a writer of many posts that does not wait for each: `with client.writer(branch) as writer: ...`."""
        from ravel.post_writers import PostWriter

        return PostWriter(self._run, branch)

    @contextmanager
    def get_file(
        self, branch: str, file: str, *, start: int = 0, stop: int | None = None
    ) -> Iterator[Download[Iterator[bytes]]]:
        """Stream a file's bytes from `start` to before `stop`.

        Raises RavelError, on the way `interrupted` where the daemon or the connection stops: the rest may be asked for.
        """
        from ravel.files import download_of, range_headers

        request = request_of(GET_FILE, {"branch": branch, "file": file})
        headers = range_headers(start, stop)
        with self._opened(
            Send(self._memory.target, Request("GET", request.path, headers=headers))
        ) as response:
            yield download_of(response.header, _pieces(response))

    @contextmanager
    def write_bundle(
        self, repo: str, *, since: int | None = None, branches: str = ""
    ) -> Iterator[Iterator[bytes]]:
        """Stream a bundle of a repo: all of it, or what the node accepted from `since` (unix seconds) on.

        `branches`: names or ids, with commas between them. Raises RavelError, on the way `interrupted`.
        """
        request = request_of(WRITE_BUNDLE, {"repo": repo, "since": since, "branches": branches})
        with self._opened(Send(self._memory.target, request)) as response:
            yield _pieces(response)

    def _call(
        self,
        operation: Operation[A],
        arguments: Mapping[str, object],
        content: bytes | Iterable[bytes] | None = None,
    ) -> A:
        key = "" if operation.method == "GET" or operation.takes_bytes else new_key()
        request = request_of(operation, arguments, key)
        if content is None:
            return operation.read(self._run(request))
        from ravel.files import pieces_of

        return operation.read(self._run(request, pieces_of(content)))

    def _watch(
        self, operation: Operation[Any], arguments: Mapping[str, object], *, reconnect: bool
    ) -> EventStream:
        from ravel.event_streams import EventStream, Following

        following = Following(self._memory, request_of(operation, arguments), reconnect=reconnect)
        return EventStream(following, self._stream_lines)

    def _run(self, request: Request, content: Iterable[bytes] | None = None) -> bytes:
        steps = exchange(self._memory, request, is_streamed=content is not None)
        outcome: Outcome = None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as done:
                answer: bytes = done.value
                return answer
            if isinstance(step, Wait):
                time.sleep(step.seconds)  # before a retry: the caller of this client waits in its own thread
                outcome = None
            else:
                outcome = self._send(step, content)

    def _send(self, step: Send, content: Iterable[bytes] | None) -> Answer | Lost:
        request = step.request
        try:
            return self._http_for(step.target).request(
                request.method,
                request.path,
                query=request.query,
                headers=request.headers,
                body=request.body,
                content=content,
                timeout=min(request.seconds_max, self._seconds_max),
            )
        except ConnectionLost as lost:
            return Lost(lost.was_sent, isinstance(lost, NoAnswer))

    @contextmanager
    def _opened(self, step: Send) -> Iterator[HttpResponse]:
        """Open an answer whose content is read while the block runs. Raises RavelError."""
        try:
            with self._http_for(step.target).open(
                "GET", step.request.path, query=step.request.query, headers=step.request.headers
            ) as response:
                if response.is_error:
                    raise error_of(response.status, response.read())
                yield response
        except NoAnswer:
            raise too_slow() from None
        except ConnectionLost:
            raise self._memory.target.lost() from None

    @contextmanager
    def _stream_lines(self, step: Send) -> Iterator[Iterator[str]]:
        with self._opened(step) as response:
            yield _lines(response)

    def _http_for(self, target: Target) -> HttpClient:
        if self._http_of != target.url:  # the daemon was started again
            self._http.close()
            self._http, self._http_of = self._open_http(target), target.url
        return self._http

    def _open_http(self, target: Target) -> HttpClient:
        return HttpClient(target.url, target.headers, min(_TIMEOUT_SECONDS, self._seconds_max))


def _lines(response: HttpResponse) -> Iterator[str]:
    from ravel.event_streams import StreamCut

    try:
        yield from response.lines()
    except ConnectionLost:
        raise StreamCut from None


def _pieces(response: HttpResponse) -> Iterator[bytes]:
    from ravel.files import cut_short

    try:
        yield from response.pieces(_PIECE_SIZE)
    except ConnectionLost as error:
        raise cut_short(error) from None
