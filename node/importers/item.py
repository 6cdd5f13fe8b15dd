"""The item type that every importer yields, and its packing into batches for the API."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
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
    """The same as JSON: `node.contract.files.ImportItem`."""

    id: str
    parents: list[str]
    author: str
    time: int
    text: str


def fit_text(text: str) -> str:
    """A text that a commit can carry: what is over the bound is cut, and the cut is said in the text."""
    if len(text) <= TEXT_SIZE_MAX // 4:  # four bytes a character at most
        return text
    kept = TEXT_SIZE_MAX // 4 - len(_MARK) - 20
    return text[:kept] + _MARK.format(len(text) - kept)


def fit_name(name: str) -> str:
    """A name that a commit can carry: one that is cut ends with a mark."""
    return name if len(name) <= NAME_SIZE_MAX else name[: NAME_SIZE_MAX - 1] + "…"


def pack(items: Iterable[SourceItem]) -> Iterator[list[PackedItem]]:
    """Batches of JSON objects, bounded in number and size."""
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
