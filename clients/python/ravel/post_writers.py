"""Writers of many posts that do not wait for each: what waits goes by one request, whose lines are answered in order.

Each post has an idempotency key, so that a request whose answer was lost is sent again, and each is written once.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Final, Generic, Self, TypeVar

from ravel.callers import operation_of
from ravel.calls.branches import STREAM_POSTS, BranchesCalls
from ravel.errors import RavelError, incompatible, read_error
from ravel.exchange import new_key
from ravel.operations import Request, encode, request_of

if TYPE_CHECKING:
    from ravel.types.commits import WrittenCommitView

OWED_MAX: Final = 256
"""Posts that are not answered yet, as the node takes them: `post` waits while there are as many."""


class BegunPost:
    """A post that is being written, and its outcome."""

    def __init__(self, text: str) -> None:
        self.line: Final = encode({"text": text, "key": new_key()}) + b"\n"
        self.outcome: WrittenCommitView | RavelError | None = None
        self.was_asked = False

    def say(self) -> "WrittenCommitView":
        """Return the outcome that is there. Raises RavelError."""
        self.was_asked = True
        assert self.outcome is not None, "it was waited for"
        if isinstance(self.outcome, RavelError):
            raise self.outcome
        return self.outcome


P = TypeVar("P", bound=BegunPost)


class Outbox(Generic[P]):
    """Posts of a writer that are not answered yet."""

    def __init__(self, branch: str) -> None:
        self._request = request_of(STREAM_POSTS, {"branch": branch})
        self.waiting: list[P] = []
        self.owed = 0
        self._failed: list[P] = []

    def add(self, posted: P) -> None:
        """Have a post sent after those before it."""
        self.waiting.append(posted)
        self.owed += 1

    def take(self) -> tuple[list[P], Request]:
        """Take what waits, and the request that writes it."""
        posts, self.waiting = self.waiting, []
        body = b"".join(one.line for one in posts)
        return posts, replace(self._request, body=body, has_line_keys=True)

    def settle(self, posts: Sequence[P], outcome: bytes | RavelError) -> None:
        """Take the answer to a request for these posts, or the error in its place."""
        for one, each in zip(posts, _read(outcome, len(posts)), strict=True):
            one.outcome = each
            if isinstance(each, RavelError):
                self._failed.append(one)
        self.owed -= len(posts)

    def check(self) -> None:
        """Raise the first failure that no call of `result` has raised, if any."""
        failed, self._failed = self._failed, []
        for one in failed:
            if not one.was_asked:
                one.say()


def _read(outcome: bytes | RavelError, count: int) -> Iterable["WrittenCommitView | RavelError"]:
    """Return the outcome of each post of a request."""
    if isinstance(outcome, bytes):
        lines = outcome.splitlines()
        if len(lines) == count:
            return map(_read_line, lines)
        outcome = incompatible(f"the daemon answered {len(lines)} of {count} posts")
    return [outcome] * count


def _read_line(line: bytes) -> "WrittenCommitView | RavelError":
    error = read_error(line)
    if error is not None:
        return error
    try:
        return operation_of(BranchesCalls.write_post).read(line)
    except RavelError as unread:
        return unread


class Posted(BegunPost):
    """A post that is being written."""

    def __init__(self, text: str, changed: threading.Condition) -> None:
        super().__init__(text)
        self._changed = changed

    def result(self) -> "WrittenCommitView":
        """Wait until it is durable; returns its commit. Raises RavelError."""
        with self._changed:
            self._changed.wait_for(lambda: self.outcome is not None)
        return self.say()


class PostWriter:
    """Writer of posts into a branch, for one thread. A thread of its own sends them."""

    def __init__(self, send: Callable[[Request], bytes], branch: str) -> None:
        self._send = send
        self._outbox: Outbox[Posted] = Outbox(branch)
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._end()
        if kind is None:
            self._outbox.check()

    def post(self, text: str) -> Posted:
        """Write a post behind those before it. Waits while 256 are not answered. Raises RavelError `bad_request`."""
        posted = Posted(text, self._changed)
        with self._changed:
            if self._is_closed:
                raise RavelError("bad_request", "the writer is closed")
            self._changed.wait_for(lambda: self._outbox.owed < OWED_MAX)
            self._outbox.add(posted)
            self._changed.notify_all()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="post writer", daemon=True)
                self._thread.start()
        return posted

    def close(self) -> None:
        """Wait until all posts are answered. Raises the first RavelError that no `result` has raised."""
        self._end()
        self._outbox.check()

    def _end(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._outbox.waiting or self._is_closed)
                if not self._outbox.waiting:
                    return
                posts, request = self._outbox.take()
            outcome: bytes | RavelError
            try:
                outcome = self._send(request)
            except RavelError as error:
                outcome = error
            except Exception as error:  # of any type: who waits for the posts must learn it
                outcome = RavelError("internal", f"a defect of the client: {error!r}")
            with self._changed:
                self._outbox.settle(posts, outcome)
                self._changed.notify_all()
