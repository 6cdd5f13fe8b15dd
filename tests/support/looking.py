"""Answers of the worker of texts to good updates, without a process."""

from collections.abc import Sequence

import msgspec

from node.content import text_worker
from node.content.texts import ClearText, Looked


def look_here(
    updates: Sequence[bytes],
    root: str | None = None,
    vector: bytes | None = None,
    clear_size: int | None = None,
    typed: tuple[int, list[tuple[str, str]]] | None = None,
) -> Looked:
    """Look at updates, all of which can be taken. What an editor lacks is not asked."""
    assert vector is None
    merged = text_worker._merge(updates)
    text = None if root is None else text_worker._render(merged, root).decode()
    clear = None
    if clear_size is not None:
        said = text_worker._render_all(merged, clear_size)
        clear = msgspec.msgpack.decode(said, type=list[ClearText])
    made = None if typed is None else text_worker._type(merged, *typed)
    text_worker._try(updates)
    return Looked([True] * len(updates), text, None, clear, made)
