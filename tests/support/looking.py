"""Answers of the worker of texts without its processes, which take longer than all else that a test of texts does.

For what honest editors make, and what is refused before it comes to a library: bytes that no library survives end a process.
"""

from collections.abc import Callable
from unittest.mock import patch

import msgspec

from node.content import text_worker
from node.content.text_process import Looked, Typed


def _say(run: Callable[[Callable[[bytes], None]], None]) -> tuple[bytes, bool]:
    said: list[bytes] = []
    try:
        run(said.append)
    except BaseException:  # a panic in Rust is no Exception
        return b"".join(said), False
    return b"".join(said), True


def look_here(
    updates: list[bytes],
    root: str | None = None,
    vector: bytes | None = None,
    clear_size: int | None = None,
    typed: Typed | None = None,
) -> Looked:
    """Look at updates as `node.content.text_process.run_worker` does."""
    with patch.object(text_worker, "_say", _say):
        return msgspec.convert(text_worker.look(updates, root, vector, clear_size, typed), Looked)
