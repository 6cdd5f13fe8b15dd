"""Keeps one process of `text_worker`, which holds the texts in use as documents: a key stroke starts no process.

What it says yes to is as good as what a process for one request says. Where it says no, fails, or takes too long, it is
asked no more about that text, and `run_worker`, which starts a process for one request, finds out why.
"""

import os
import select
import subprocess
import sys
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
import structlog

from node.runtime.errors import ServiceError
from protocol.limits.users import TEXT_MERGE_SECONDS

log = structlog.get_logger()

WORKER: Final = Path(__file__).with_name("text_worker.py")
_FRAME_SIZE: Final = 4
_READ_AT_ONCE: Final = 1 << 16
_END_SECONDS: Final = 5.0
_VERSIONS_MAX: Final = 1024
"""Texts whose version in the process is remembered. The process holds fewer."""


Typed = tuple[int, list[tuple[str, list[tuple[int, int, str]]]]]
"""Edits that the worker makes: see `text_worker.Typed`."""


class Looked(msgspec.Struct, frozen=True, array_like=True):
    """Answer of the worker: see `text_worker.look`."""

    taken: list[bool]
    text: str | None
    lacking: bytes | None
    clear: list["ClearText"] | None
    typed: bytes | None


class ClearText(msgspec.Struct, frozen=True, array_like=True):
    """One of the texts that a branch has: the name of its root, its title or "", and what it says."""

    root: str
    title: str
    text: str


class TextAnswer(msgspec.Struct, frozen=True, array_like=True):
    """Answer of the process about a text: see `text_worker.Held.look`."""

    is_taken: bool
    text: str | None
    lacking: bytes | None
    clear: list[tuple[str, str, str]] | None


class HeldText(msgspec.Struct, frozen=True):
    """Text that is asked for: which one, its version, what it grew by since the version `before`, and all of it.

    A version is the number of updates that it shows. `before` is -1 where only all of it can be told.
    """

    key: int
    version: int
    whole: bytes
    before: int = -1
    news: Sequence[bytes] = ()


class TextProcess:
    """The process, started when it is needed. Thread-safe. It ends with this object."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._end: weakref.finalize[..., TextProcess] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._versions: OrderedDict[int, int] = OrderedDict()  # by key, the one told last

    def version_of(self, key: int) -> int:
        """Return the version of a text that was told last; -1 where none was. It may be held no more."""
        return self._versions.get(key, -1)

    def look(
        self,
        text: HeldText,
        tried: Sequence[bytes] = (),
        root: str | None = None,
        vector: bytes | None = None,
        clear_size: int | None = None,
    ) -> TextAnswer | None:
        """Show a text, once it takes the updates `tried` as well; None where another process has to look at it."""
        with self._lock:
            shown: TextAnswer | None = None
            asked = (list(tried), root, vector, clear_size)
            if text.before >= 0:
                shown = self._ask((text.key, text.before, text.version, list(text.news), *asked))
            if shown is None or not shown.is_taken:
                shown = self._ask((text.key, -1, text.version, [text.whole], *asked))
            self._versions.pop(text.key, None)
            if shown is None or not shown.is_taken:
                return None
            self._versions[text.key] = text.version
            while len(self._versions) > _VERSIONS_MAX:
                self._versions.popitem(last=False)
            return shown

    def _ask(self, request: object) -> TextAnswer | None:
        deadline = time.monotonic() + TEXT_MERGE_SECONDS
        try:
            process = self._process or self._start()
            body = msgspec.msgpack.encode(request)
            _write(process, len(body).to_bytes(_FRAME_SIZE, "big") + body, deadline)
            size = int.from_bytes(_read(process, _FRAME_SIZE, deadline), "big")
            return msgspec.msgpack.decode(_read(process, size, deadline), type=TextAnswer)
        except (OSError, EOFError, msgspec.DecodeError) as error:
            log.warning("the process that holds texts was ended", error=str(error))
            self._stop()
            return None

    def _start(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-P", str(WORKER), "--kept"],  # -P: never a module of the current folder
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,  # a Ctrl-C meant for the daemon is not for it
        )
        assert process.stdin is not None, "it is a pipe"
        os.set_blocking(process.stdin.fileno(), False)
        self._process = process
        self._end = weakref.finalize(self, _end, process)
        return process

    def _stop(self) -> None:
        if self._end is not None:
            self._end()
        self._process = self._end = None


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    process.wait(_END_SECONDS)


def _write(process: subprocess.Popen[bytes], data: bytes, deadline: float) -> None:
    assert process.stdin is not None, "it is a pipe"
    number, left = process.stdin.fileno(), memoryview(data)
    while left:
        if not select.select([], [number], [], max(deadline - time.monotonic(), 0))[1]:
            raise TimeoutError("it takes no request")
        left = left[os.write(number, left[:_READ_AT_ONCE]) :]


def _read(process: subprocess.Popen[bytes], size: int, deadline: float) -> bytes:
    assert process.stdout is not None, "it is a pipe"
    number, parts = process.stdout.fileno(), bytearray()
    while len(parts) < size:
        if not select.select([number], [], [], max(deadline - time.monotonic(), 0))[0]:
            raise TimeoutError("it gives no answer")
        part = os.read(number, min(_READ_AT_ONCE, size - len(parts)))
        if not part:
            raise EOFError("it ended")
        parts += part
    return bytes(parts)


def run_worker(
    updates: list[bytes],
    root: str | None = None,
    vector: bytes | None = None,
    clear_size: int | None = None,
    typed: Typed | None = None,
) -> Looked:
    """Run `text_worker.look` in a process of its own.

    Raises ServiceError: `bad_input` where that fails, `busy` where the machine lacks memory, processes or time for it.
    """
    try:
        finished = subprocess.run(
            [sys.executable, "-P", str(WORKER)],  # -P: never a module of the current folder
            input=msgspec.msgpack.encode((updates, root, vector, clear_size, typed)),
            capture_output=True,
            timeout=TEXT_MERGE_SECONDS,
            check=True,
            start_new_session=True,  # a Ctrl-C meant for the daemon is not for it
        )
    except (OSError, subprocess.TimeoutExpired) as error:  # another time may go well: editors try again
        log.error("merging a text found no room or no time", error=str(error))
        raise ServiceError(
            "busy", f"the text's updates could not be merged now: {error}", "try again later"
        ) from None
    except subprocess.CalledProcessError as error:
        log.error(
            "merging a text failed", error=str(error), said=error.stderr[-1000:].decode(errors="replace")
        )
        raise ServiceError("bad_input", f"the text's updates could not be merged: {error}") from None
    return msgspec.msgpack.decode(finished.stdout, type=Looked)
