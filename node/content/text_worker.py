"""Isolated process that merges Yjs updates: a separate script, one request and one answer.

Updates are bytes that others wrote, and the library that reads them is native code: it fails by exceptions, by panics,
and (on values nested some ten thousand deep) by ending its process. So the daemon never reads them itself, and this
process does it in children that it forks: what a child does not survive is found and passed over, and the rest merged.

Whatever the order and however they were merged before, updates merge to the same bytes; a document is then made of the
whole at once. (Given updates one by one, out of causal order, pycrdt 0.14 loses some.)

Runs as a file and imports nothing of ours, so that it starts fast.
"""

import os
import resource
import signal
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import msgspec
import pycrdt

_MEMORY_SIZE_MAX: Final = 1 << 30
"""Bytes of address space: a text of 64 MiB in 175 updates was merged within it."""
_CHILD_SECONDS: Final = 25
"""Seconds after which a child is ended, whatever it does: that text took 14 in all, beside much else at work."""
_TITLES: Final = "ravel-titles"
"""The root in which the page keeps titles of texts, by the names of their roots."""
_NOTHING: Final = b"\0\0"
"""The update that says nothing."""


def merge(
    updates: Sequence[bytes],
    new_count: int,
    root: str | None,
    vector: bytes | None,
    clear_size: int | None,
) -> tuple[list[bool], bytes, bytes, bytes, str | None, bytes | None, list[tuple[str, str, str]] | None]:
    """The union of all updates that can be taken: those that decode and that go with the ones before them.

    Gives which were taken; what they come to, all of them, without the last `new_count`, and these alone; the text of the
    root called so, what an editor lacks whose state vector this is, and names, titles and texts of all roots, so much that
    these have `clear_size` characters. Each of the last three is None where it was not asked for or cannot be made.
    """
    taken = _readable(updates)
    while True:
        chosen = [place for place, is_taken in enumerate(taken) if is_taken]
        merged = _in_child(partial(_merge, updates, chosen), is_tried=True)
        if merged is not None:
            break
        taken[chosen[_first_misfit(updates, chosen)]] = False
    start = len(taken) - new_count
    before = [place for place in chosen if place < start]
    news = [place for place in chosen if place >= start]
    text = None if root is None else _in_child(partial(_render, merged, root))
    clear = None if clear_size is None else _in_child(partial(_render_all, merged, clear_size))
    return (
        taken,
        merged,
        merged if before == chosen else _merge(updates, before),
        _merge(updates, news),
        None if text is None else text.decode(),
        None if vector is None else _in_child(partial(_lacking, merged, vector)),
        None if clear is None else msgspec.msgpack.decode(clear, type=list[tuple[str, str, str]]),
    )


def _readable(updates: Sequence[bytes]) -> list[bool]:
    """Which updates decode. A child that one of them ends has said so much of those before it."""
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


def _first_misfit(updates: Sequence[bytes], chosen: Sequence[int]) -> int:
    """The place among `chosen` of the first update that does not go with those before it."""
    good, bad = 0, len(chosen)
    while bad - good > 1:
        middle = (good + bad) // 2
        if _in_child(partial(_merge, updates, chosen[:middle]), is_tried=True) is None:
            bad = middle
        else:
            good = middle
    return bad - 1


def _merge(updates: Sequence[bytes], chosen: Sequence[int]) -> bytes:
    return pycrdt.merge_updates(*(updates[place] for place in chosen)) if chosen else _NOTHING


def _lacking(update: bytes, vector: bytes) -> bytes:
    return pycrdt.get_update(update, vector)


def _render(update: bytes, root: str) -> bytes:
    document = pycrdt.Doc[pycrdt.Text]()
    document.apply_update(update)
    return str(document.get(root, type=pycrdt.Text)).encode()


def _render_all(update: bytes, size: int) -> bytes:
    """Names, titles and texts of the roots that are texts, encoded; at most `size` characters of these together."""
    document = pycrdt.Doc[Any]()  # of roots of several types
    document.apply_update(update)
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


def _in_child(make: Callable[[], bytes], *, is_tried: bool = False) -> bytes | None:
    """What a child makes, or None where it fails or ends. What `is_tried` is an update that makes a document, too."""

    def run(write: Callable[[bytes], None]) -> None:
        made = make()
        if is_tried:
            pycrdt.Doc[pycrdt.Text]().apply_update(made)
        write(made)

    said, is_whole = _say(run)
    return said if is_whole else None


def _say(run: Callable[[Callable[[bytes], None]], None]) -> tuple[bytes, bool]:
    """All that `run` writes in a child, and whether the child came to its end."""
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


def main() -> None:
    """Answer the one request."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_SIZE_MAX, _MEMORY_SIZE_MAX))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    kind = tuple[list[bytes], int, str | None, bytes | None, int | None]
    asked = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=kind)
    sys.stdout.buffer.write(msgspec.msgpack.encode(merge(*asked)))


if __name__ == "__main__":
    main()
