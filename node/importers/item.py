"""The item type that every importer yields, and its packing into batches for the API."""

import threading
from collections.abc import Generator, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, Queue
from typing import Final, TypedDict

from protocol.limits.formats import NAME_SIZE_MAX, TEXT_SIZE_MAX

BATCH_COUNT: Final = 500
BATCH_SIZE_TARGET: Final = 1 << 20
_MARK: Final = "\n[truncated by import: {} more characters]"


@dataclass(frozen=True, slots=True)
class SourceItem:
    """One commit of another system, as the API takes it; `time` in unix seconds."""

    id: str
    parents: tuple[str, ...]
    author: str
    time: int
    text: str


class PackedItem(TypedDict):
    """JSON form of an item: `node.contract.files.ImportItem`."""

    id: str
    parents: list[str]
    author: str
    time: int
    text: str


def fit_text(text: str) -> str:
    """Cut a text to what a commit can carry, and say the cut in the text."""
    if len(text) <= TEXT_SIZE_MAX // 4:  # four bytes a character at most
        return text
    kept = TEXT_SIZE_MAX // 4 - len(_MARK) - 20
    return text[:kept] + _MARK.format(len(text) - kept)


def fit_name(name: str) -> str:
    """Cut a name to what a commit can carry, with a mark at its end."""
    return name if len(name) <= NAME_SIZE_MAX else name[: NAME_SIZE_MAX - 1] + "…"


def pack(items: Iterable[SourceItem]) -> Iterator[list[PackedItem]]:
    """Group items into batches of JSON objects, bounded in number and size."""
    batch: list[PackedItem] = []
    size = 0
    for item in items:
        batch.append(
            {
                "id": item.id,
                "parents": list(item.parents),
                "author": item.author,
                "time": item.time,
                "text": item.text,
            }
        )
        size += len(item.text) + 100 * (1 + len(item.parents))
        if len(batch) >= BATCH_COUNT or size >= BATCH_SIZE_TARGET:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def read_ahead(batches: Iterator[list[PackedItem]]) -> Generator[list[PackedItem], None, None]:
    """Yield batches; a thread reads the next two while the caller works on one.

    Raises the errors of `batches` at their place. The thread ends with the caller's loop, as soon as it has read its
    batch.
    """
    found: Queue[list[PackedItem] | BaseException | None] = Queue(1)
    is_over = threading.Event()

    def read() -> None:
        try:
            for batch in batches:
                found.put(batch)
                if is_over.is_set():
                    return
        except BaseException as error:  # the caller waits: it must hear of any failure, and raises it
            found.put(error)
        else:
            found.put(None)

    # Not waited for at the end of the process: a pipe may give nothing for long.
    threading.Thread(target=read, name="read ahead", daemon=True).start()
    try:
        while (batch := found.get()) is not None:
            if isinstance(batch, BaseException):
                raise batch
            yield batch
    finally:
        is_over.set()
        with suppress(Empty):  # it may wait for room
            found.get_nowait()
