"""Isolated process that looks at Yjs updates with a library: a separate script, one request and one answer; or, with
`--kept`, many, about texts that it holds as documents.

Updates are bytes that others wrote, and the library that reads them is native code: it fails by exceptions, by panics,
and (on values nested some ten thousand deep) by ending its process. So the daemon never reads them itself, and this
process does it in children that it forks: what a child does not survive is found and passed over. It is the second wall:
what comes here was read by `protocol.formats.yjs_updates` before.

A document is made of all updates at once. (Given them one by one, out of causal order, pycrdt 0.14 loses some.) One that is
held grows by updates that have all that they stand beside, once a child has survived them.

Runs as a file and imports nothing of ours, so that it starts fast.
"""

import os
import resource
import signal
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

import msgspec
import pycrdt

_MEMORY_SIZE_MAX: Final = 1 << 30
"""Bytes of address space: a text of 64 MiB in 175 updates was read within it."""
_CHILD_SECONDS: Final = 25
"""Seconds after which a child is ended: a text of 64 MiB in 175 updates took 14, on a busy machine."""
_TITLES: Final = "ravel-titles"
"""The root in which the page keeps titles of texts, by the names of their roots."""
_NOTHING: Final = b"\0\0"
"""The update that says nothing."""
HELD_SIZE_MAX: Final = 32 << 20
"""Bytes of updates whose documents are held: some ten times as much memory."""
_FRAME_SIZE: Final = 4
"""Bytes of a frame's length, before each request and answer."""
Typed = tuple[int, list[tuple[str, list[tuple[int, int, str]]]]]
"""A client id, and its edits of roots by name: in the order of the text, what stands from one place to another becomes a
text. Places are counted in characters; one behind the end is the end."""
_GROUP: Final = 64
"""Updates that are merged at once: 10,000 take 13 ms so, and half a second all together."""


def look(
    updates: Sequence[bytes],
    root: str | None,
    vector: bytes | None,
    clear_size: int | None,
    typed: "Typed | None",
) -> tuple[list[bool], str | None, bytes | None, list[tuple[str, str, str]] | None, bytes | None]:
    """Apply updates that decode and fit those before them, and answer questions about the resulting text.

    Returns which updates were applied, and four answers, each None if it was not asked for or cannot be made: the text
    of a root; the update that an editor with this state vector lacks; names, titles and texts of all roots, up to
    `clear_size` characters; and the update by which a client id makes edits of roots.
    """
    taken = _readable(updates)
    while True:
        places = [place for place, is_taken in enumerate(taken) if is_taken]
        chosen = [updates[place] for place in places]
        if _in_child(partial(_try, chosen)) is not None:
            break
        taken[places[_first_misfit(chosen)]] = False
    merged = _merge(chosen)
    text = None if root is None else _in_child(partial(_render, merged, root))
    clear = None if clear_size is None else _in_child(partial(_render_all, merged, clear_size))
    return (
        taken,
        None if text is None else text.decode(),
        None if vector is None else _in_child(partial(_lacking, merged, vector)),
        None if clear is None else msgspec.msgpack.decode(clear, type=list[tuple[str, str, str]]),
        None if typed is None else _in_child(partial(_type, merged, *typed)),
    )


class Held:
    """Cache of the texts used last, bounded by HELD_SIZE_MAX bytes of updates."""

    def __init__(self) -> None:
        self._documents: OrderedDict[int, tuple[int, int, pycrdt.Doc[Any]]] = OrderedDict()

    def look(
        self,
        key: int,
        before: int,
        now: int,
        updates: Sequence[bytes],
        tried: Sequence[bytes],
        root: str | None,
        vector: bytes | None,
        clear_size: int | None,
    ) -> tuple[bool, str | None, bytes | None, list[tuple[str, str, str]] | None]:
        """Bring a text from the version `before` (-1: from nothing) to `now` by updates, try others on it, and show it.

        False where it is not held at that version, or does not take them: then it is held no more, and nothing is shown.
        """
        version, size, document = self._documents.pop(key, (-1, 0, None))
        if before == -1:
            version, size, document = -1, 0, pycrdt.Doc[Any]()
        if document is None or version != before:
            return False, None, None, None
        if updates:
            if _in_child(partial(_apply, document, updates)) is None:
                return False, None, None, None
            _apply(document, updates)
        if before == -1:
            _give_back_memory()
        size += sum(map(len, updates))
        self._documents[key] = now, size, document
        while (
            sum(size for _, size, _ in self._documents.values()) > HELD_SIZE_MAX and len(self._documents) > 1
        ):
            self._documents.popitem(last=False)
        if tried and _in_child(partial(_apply, document, tried)) is None:
            return False, None, None, None
        text = None if root is None else _in_child(partial(_show, document, root))
        clear = None if clear_size is None else _in_child(partial(_show_all, document, clear_size))
        return (
            True,
            None if text is None else text.decode(),
            None if vector is None else _in_child(partial(document.get_update, vector)),
            None if clear is None else msgspec.msgpack.decode(clear, type=list[tuple[str, str, str]]),
        )


def _give_back_memory() -> None:
    """Return freed memory to the system after a whole text was read: every fork copies the tables of all memory.

    Of 10,000 key strokes that was 68 MB, and a fork took three times as long. Only glibc has to be asked.
    """
    import ctypes  # takes longer to import than the rest, and one request alone needs it not

    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


def _apply(document: "pycrdt.Doc[Any]", updates: Sequence[bytes]) -> bytes:
    document.apply_update(_merge(updates))
    return b""


def _readable(updates: Sequence[bytes]) -> list[bool]:
    """Find which updates decode. A child that one of them ends has told of those before it."""
    taken: list[bool] = []
    while len(taken) < len(updates):
        said = _say(partial(_try_each, updates[len(taken) :]))[0]
        taken += [byte == 1 for byte in said]
        if len(taken) < len(updates):
            taken.append(False)
    return taken


def _try_each(updates: Sequence[bytes], write: Callable[[bytes], None]) -> None:
    for update in updates:
        try:
            pycrdt.merge_updates(update)
        except BaseException:  # a panic in Rust is no Exception
            write(b"\0")
        else:
            write(b"\1")


def _first_misfit(updates: Sequence[bytes]) -> int:
    """Return the place of the first update that does not go with those before it."""
    good, bad = 0, len(updates)
    while bad - good > 1:
        middle = (good + bad) // 2
        if _in_child(partial(_try, updates[:middle])) is None:
            bad = middle
        else:
            good = middle
    return bad - 1


def _merge(updates: Sequence[bytes]) -> bytes:
    """Merge in groups: all at once costs the square of their number."""
    while len(updates) > 1:
        groups = (updates[start : start + _GROUP] for start in range(0, len(updates), _GROUP))
        updates = [pycrdt.merge_updates(*group) for group in groups]
    return updates[0] if updates else _NOTHING


def _try(updates: Sequence[bytes]) -> bytes:
    """Make a document of updates."""
    pycrdt.Doc[pycrdt.Text]().apply_update(_merge(updates))
    return b""


def _type(update: bytes, client: int, texts: Sequence[tuple[str, Sequence[tuple[int, int, str]]]]) -> bytes:
    """Apply edits of texts, and return the update that holds them. Raises ValueError if a place is not found."""
    document = pycrdt.Doc[pycrdt.Text](client_id=client)
    document.apply_update(update)
    before = document.get_state()
    for root, edits in texts:
        typed_into = document.get(root, type=pycrdt.Text)
        said = str(typed_into)
        size = len(said.encode())
        is_plain = len(typed_into) == size
        with document.transaction():
            for start, stop, text in reversed([*_in_bytes(said, edits)]):
                if start >= size:
                    typed_into += text
                elif is_plain:
                    typed_into[start:stop] = text
                else:
                    raise ValueError("it holds more than characters")
    return document.get_update(before)


def _in_bytes(said: str, edits: Sequence[tuple[int, int, str]]) -> Iterator[tuple[int, int, str]]:
    """Yield edits whose places are counted in bytes of UTF-8, as the library counts them."""
    reached, size = 0, 0
    for start, stop, text in edits:
        before, gone = said[reached:start], said[start:stop]
        size += len(before.encode())
        yield size, size + len(gone.encode()), text
        reached, size = stop, size + len(gone.encode())


def _lacking(update: bytes, vector: bytes) -> bytes:
    return pycrdt.get_update(update, vector)


def _render(update: bytes, root: str) -> bytes:
    document = pycrdt.Doc[Any]()
    document.apply_update(update)
    return _show(document, root)


def _show(document: "pycrdt.Doc[Any]", root: str) -> bytes:
    return str(document.get(root, type=pycrdt.Text)).encode()


def _render_all(update: bytes, size: int) -> bytes:
    """Names, titles and texts of the roots that are texts, encoded; at most `size` characters of these together."""
    document = pycrdt.Doc[Any]()  # of roots of several types
    document.apply_update(update)
    return _show_all(document, size)


def _show_all(document: "pycrdt.Doc[Any]", size: int) -> bytes:
    said = document.get(_TITLES, type=pycrdt.Map).to_py() or {}
    found: list[tuple[str, str, str]] = []
    for root in sorted(document.keys()):
        title = said.get(root)
        shown = title if isinstance(title, str) else ""
        text = "" if root == _TITLES else str(document.get(root, type=pycrdt.Text))
        size -= len(root) + len(shown) if text else 0
        if size <= 0:
            break
        if text:  # another type of root shows as nothing
            found.append((root, shown, text[:size]))
            size -= len(text)
    return msgspec.msgpack.encode(found)


def _in_child(make: Callable[[], bytes]) -> bytes | None:
    """Run work in a child process; return its result, or None if the child fails."""
    said, is_whole = _say(lambda write: write(make()))
    return said if is_whole else None


def _say(run: Callable[[Callable[[bytes], None]], None]) -> tuple[bytes, bool]:
    """Return all that `run` writes in a child, and whether the child came to its end."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        signal.alarm(_CHILD_SECONDS)
        with open(writing, "wb") as pipe:

            def write(data: bytes) -> None:
                pipe.write(data)
                pipe.flush()

            try:
                run(write)
            except BaseException:  # a panic in Rust is no Exception
                os._exit(1)
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as answer:
        said = answer.read()
    return said, os.waitpid(child, 0)[1] == 0


def _read_frame() -> bytes | None:
    """Return the next request; None once nobody asks any more."""
    head = sys.stdin.buffer.read(_FRAME_SIZE)
    if len(head) < _FRAME_SIZE:
        return None
    size = int.from_bytes(head, "big")
    body = sys.stdin.buffer.read(size)
    return body if len(body) == size else None


def _serve() -> None:
    """Answer requests about texts that are held, until nobody asks any more."""
    held = Held()
    kind = tuple[int, int, int, list[bytes], list[bytes], str | None, bytes | None, int | None]
    while (request := _read_frame()) is not None:
        answer = msgspec.msgpack.encode(held.look(*msgspec.msgpack.decode(request, type=kind)))
        sys.stdout.buffer.write(len(answer).to_bytes(_FRAME_SIZE, "big") + answer)
        sys.stdout.buffer.flush()


def main() -> None:
    """Answer one request, or all that come."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_SIZE_MAX, _MEMORY_SIZE_MAX))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.argv[1:] == ["--kept"]:
        _serve()
        return
    kind = tuple[list[bytes], str | None, bytes | None, int | None, Typed | None]
    asked = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=kind)
    sys.stdout.buffer.write(msgspec.msgpack.encode(look(*asked)))


if __name__ == "__main__":
    main()
