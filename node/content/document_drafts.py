"""Drafts of commits that say what is wanted of documents of values, within what one commit holds. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from node.authoring.drafting import Draft
from node.content.document_operations import deps_of
from node.runtime.errors import ServiceError
from protocol.formats.document_kinds import (
    DICT_VALUE_SIZE_MAX,
    DOCUMENT_KEY_SIZE_MAX,
    REPLACED_COUNT_MAX,
    ValuesKind,
    is_document_key,
)
from protocol.limits.formats import BODY_SIZE_MAX, DEP_COUNT_MAX
from verifier.documents import DocumentEntry, DocumentValue

FILE_ADVICE: Final = "add it as a file (`add_file`, `ravel file add`), and put the file's id in its place"
"""Next step of who puts a value that no commit holds."""
_ROOM: Final = 1024
"""Bytes of a body that are not its operations and names: tags, lengths, and the origin that a merge adds."""
_REPLACED_SIZE: Final = 44
"""Bytes of a body for a commit that an operation replaces, rounded up."""


@dataclass(frozen=True, slots=True)
class NewValue:
    """An operation to be written: its value, or None where the item or key is to go, and the tips that it replaces."""

    key: str
    value: str | None
    replaces: tuple[DocumentValue, ...]

    @property
    def size(self) -> int:
        """Size of the operation in a body in bytes, with what it replaces, rounded up."""
        names = _REPLACED_SIZE * len(self.replaces)
        return len(self.key.encode()) + len((self.value or "").encode()) + 16 + names


def group_values(operations: Iterable[NewValue], count_max: int) -> Iterator[list[NewValue]]:
    """Yield the operations of one commit each: no key twice, and no more that they replace than one edit can name.

    Of a key with more tips than one commit can name, the surplus is replaced by operations before the last, which say
    that it is gone; they will be replaced with it.
    """
    group: dict[str, NewValue] = {}
    size = pairs = 0
    for operation in _split(operations):
        more = len(operation.replaces)
        is_full = len(group) == count_max or size + operation.size > BODY_SIZE_MAX - _ROOM
        if group and (is_full or operation.key in group or pairs + more > REPLACED_COUNT_MAX):
            yield list(group.values())
            group, size, pairs = {}, 0, 0
        group[operation.key] = operation
        size, pairs = size + operation.size, pairs + more
    if group:
        yield list(group.values())


def check_sizes(key: str, value: str) -> None:
    """Raise ServiceError for an item or key about which no commit says anything, and for a value that none can put."""
    if not is_document_key(key):
        raise ServiceError(
            "bad_request",
            f"an item or a key has at most {DOCUMENT_KEY_SIZE_MAX} bytes, and {key[:40]!r} has {len(key.encode())}",
            "give it in fewer: letters beyond ASCII have two bytes and more",
        )
    if len(value) > DICT_VALUE_SIZE_MAX:
        message = f"the value of {key[:40]!r} has over {DICT_VALUE_SIZE_MAX} characters"
        raise ServiceError("too_large", message, FILE_ADVICE)
    if NewValue(key, value, ()).size > BODY_SIZE_MAX - _ROOM:
        room = BODY_SIZE_MAX - _ROOM - NewValue(key, "", ()).size
        raise ServiceError("too_large", f"the value of {key[:40]!r} has over {room} bytes", FILE_ADVICE)


def _split(operations: Iterable[NewValue]) -> Iterator[NewValue]:
    for operation in operations:
        tips = operation.replaces
        while len(tips) > REPLACED_COUNT_MAX:
            yield NewValue(operation.key, None, tips[:REPLACED_COUNT_MAX])
            tips = tips[REPLACED_COUNT_MAX:]
        yield NewValue(operation.key, operation.value, tips)


def make_draft(kind: ValuesKind, name: str, group: Sequence[NewValue], own: int) -> Draft:
    """Make the draft of a group of operations. `own` is the depth of the branch: deps are commits of it alone."""
    replaced = {operation.key: [tip.name for tip in operation.replaces] for operation in group}
    tips = (tip for operation in group for tip in operation.replaces)
    there = {operation.key: operation.value for operation in group if operation.value is not None}
    gone = tuple(operation.key for operation in group if operation.value is None)
    deps = deps_of(tips, own)[:DEP_COUNT_MAX]
    return Draft(kind.edit.make(there, gone, replaced), deps=deps, document=name)


def has_value(entry: DocumentEntry, value: str | None) -> bool:
    """Return True if the entry has just this value, or for None, if it is gone."""
    values = {operation.value for operation in entry.values}
    return values == (set() if value is None else {value})
