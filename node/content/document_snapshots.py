"""Snapshots of documents of values: what stands, divided into as few bodies as hold it. Pure."""

from collections.abc import Iterator, Mapping
from typing import Final

from node.runtime.errors import ServiceError
from protocol.formats.document_kinds import SNAPSHOT_COMMIT_COUNT_MAX, ValuesKind, ValuesSnapshot
from protocol.limits.formats import BODY_SIZE_MAX
from storage.engine.id_keys import chunks
from verifier.documents import DocumentEntry, in_byte_order, snapshot_values
from verifier.json_contents import find_increment

_SNAPSHOT_NAME_SIZE: Final = 48
"""Bytes of a body for a commit's name and the beginnings of lists, rounded up; each operation is taken to begin one."""
_SNAPSHOT_OVERHEAD: Final = 8192
"""Bytes of a body for its range and what is not counted."""


def snapshot(entries: Mapping[str, DocumentEntry], kind: ValuesKind) -> Iterator[ValuesSnapshot]:
    """Snapshots of a document, their ranges one after another over all keys. Raises ServiceError `too_large`."""
    firsts = _divide(entries, kind)
    for first, end in zip(firsts, [*firsts[1:], None], strict=True):
        operations = (
            (name, dict(part))
            for name, values in snapshot_values(entries, first, end).items()
            for part in chunks(list(values.items()), kind.edit_count_max)
        )
        yield kind.snapshot.make(first, end, operations)


def _divide(entries: Mapping[str, DocumentEntry], kind: ValuesKind) -> list[str]:
    """Choose the first keys of ranges that each fit into a body. The first range begins at the empty key."""
    firsts = [""]
    size = count = 0
    for key in in_byte_order(entries):
        values = [operation.value or "" for operation in entries[key].values]
        more = sum(len(key.encode()) + len(value.encode()) + _SNAPSHOT_NAME_SIZE for value in values)
        if more > BODY_SIZE_MAX - _SNAPSHOT_OVERHEAD or len(values) > SNAPSHOT_COMMIT_COUNT_MAX:
            raise ServiceError(
                "too_large",
                f"the conflicts of {key!r} are too long for one commit",
                "who added to the counter sums that up (`ravel branch compact`), or put a number in its place"
                if any(find_increment(key, value) is not None for value in values)
                else f"write one value in their place first (`ravel {kind.name}`)",
            )
        if (
            size + more > BODY_SIZE_MAX - _SNAPSHOT_OVERHEAD
            or count + len(values) > SNAPSHOT_COMMIT_COUNT_MAX
        ):
            firsts.append(key)
            size = count = 0
        size, count = size + more, count + len(values)
    return firsts
