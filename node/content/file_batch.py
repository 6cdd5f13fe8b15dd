"""Many files of one request: read from a stream of bytes, and encrypted on the way.

Each file is a line of JSON (`node.contract.files.FileHead`) and its content. Blocks go to a sink as they are made, so that
memory stays flat; what is kept for each file is its name and what names and opens its content.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from node.authoring.drafting import Draft
from node.contract.files import FileHead, find_path_fault
from node.contract.values import find_repeated_key
from node.runtime.errors import ServiceError
from protocol.crypto.keys import ConvergenceSecret
from protocol.formats.block import Reference
from protocol.formats.content import FileEntry, Files
from protocol.formats.object import BlockSink, ObjectBuilder
from protocol.ids import ObjectId
from protocol.limits.formats import FILE_COUNT_MAX
from protocol.limits.users import FILE_BATCH_COUNT_MAX, FILE_BATCH_SIZE_MAX, FILE_HEAD_SIZE_MAX

_HEADS: Final = msgspec.json.Decoder(FileHead)


class EncryptedFile(NamedTuple):
    """A file whose blocks were made."""

    name: str
    size: int
    reference: Reference


class FileBatch:
    """Takes the body of a request in pieces of any size. For one thread at a time."""

    def __init__(self, convergence_secret: ConvergenceSecret, sink: BlockSink) -> None:
        self._secret = convergence_secret
        self._sink = sink
        self._line = bytearray()  # the part of a head that has come
        self._head: FileHead | None = None  # of the file whose content is coming
        self._builder: ObjectBuilder | None = None
        self._names: set[str] = set()
        self._size = 0
        self._files: list[EncryptedFile] = []

    def add(self, piece: memoryview) -> None:
        """Take more of the body. Raises ServiceError `bad_request` or `too_large`; the batch takes nothing after that."""
        start = 0
        while start < len(piece):
            if self._head is None or self._builder is None:
                start = self._add_to_line(piece, start)
                continue
            stop = min(len(piece), start + self._head.size - self._builder.size)
            self._builder.add(piece[start:stop])
            start = stop
            self._finish_if_whole(self._head, self._builder)

    def finish(self) -> list[EncryptedFile]:
        """Return all files, in order. Raises ServiceError `bad_request` where the last is not whole, or there is none."""
        if self._head is not None and self._builder is not None:
            came = f"{self._builder.size} of its {self._head.size} bytes came"
            raise ServiceError("bad_request", f"the request ends within {self._head.name!r}: {came}")
        if self._line:
            raise ServiceError("bad_request", f"the request ends within the line before file {self._number}")
        if not self._files:
            raise ServiceError("bad_request", "the request has no files")
        return self._files

    @property
    def _number(self) -> int:
        """Return the number of the file that is coming, or comes next, counted from 1."""
        return len(self._files) + 1

    def _add_to_line(self, piece: memoryview, start: int) -> int:
        """Read on in a head; gives where in the piece that stops."""
        # A head is short: no more than it may have is copied to look for its end.
        window = bytes(piece[start : start + FILE_HEAD_SIZE_MAX + 1 - len(self._line)])
        end = window.find(b"\n")
        self._line += window if end < 0 else window[:end]
        if len(self._line) > FILE_HEAD_SIZE_MAX:
            raise ServiceError(
                "too_large", f"the line before file {self._number} has over {FILE_HEAD_SIZE_MAX} bytes"
            )
        if end < 0:
            return start + len(window)
        self._begin(bytes(self._line))
        self._line.clear()
        return start + end + 1

    def _begin(self, line: bytes) -> None:
        if len(self._files) == FILE_BATCH_COUNT_MAX:
            raise ServiceError("too_large", f"a request has at most {FILE_BATCH_COUNT_MAX} files")
        try:
            head = _HEADS.decode(line)
            repeated = find_repeated_key(line)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            message = f"the line before file {self._number} is not of the expected form: {error}"
            raise ServiceError("bad_request", message) from None
        fault = find_path_fault(head.name)
        if repeated is not None:
            fault = f"the key {repeated[:100]!r} stands twice before it"
        if head.name in self._names:
            fault = "the request has another of that name"
        if fault:
            raise ServiceError("bad_request", f"file {self._number}, {head.name!r}: {fault}")
        self._names.add(head.name)
        self._size += head.size
        if self._size > FILE_BATCH_SIZE_MAX:
            raise ServiceError("too_large", f"a request's files have at most {FILE_BATCH_SIZE_MAX} bytes")
        self._head, self._builder = head, ObjectBuilder(self._secret, self._sink)
        self._finish_if_whole(head, self._builder)

    def _finish_if_whole(self, head: FileHead, builder: ObjectBuilder) -> None:
        if builder.size == head.size:
            self._files.append(EncryptedFile(head.name, head.size, builder.finish()))
            self._head = self._builder = None


def group_files(files: Sequence[EncryptedFile], places: Iterable[int]) -> list[list[int]]:
    """Group the files at these places into as few commits as possible: one names FILE_COUNT_MAX objects, and none twice."""
    groups: list[list[int]] = []
    first_open = 0
    after: dict[ObjectId, int] = {}  # the group behind the last that names the object
    for place in places:
        object_id = files[place].reference.object_id
        number = max(first_open, after.get(object_id, 0))
        while number < len(groups) and len(groups[number]) == FILE_COUNT_MAX:
            first_open += number == first_open
            number += 1
        if number == len(groups):
            groups.append([])
        groups[number].append(place)
        after[object_id] = number + 1
    return groups


def draft_files(files: Iterable[EncryptedFile]) -> Draft:
    """Draft the commit that names these files."""
    found = list(files)
    return Draft(
        Files(tuple(FileEntry(file.name, file.size) for file in found)),
        files=tuple(file.reference for file in found),
    )
