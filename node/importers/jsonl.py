"""A graph as JSON Lines: one object a line with `id`, `parents`, `author`, `time` (unix seconds) and `text`.

Lines stand in causal order, parents before children. A name that ends in .gz is decompressed as it is read; nothing is
held but one bounded line and the ids seen.
"""

import gzip
import zlib
from codecs import BOM_UTF8
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Annotated, Final

import msgspec
from msgspec import Meta

from node.importers.item import SourceItem, fit_text
from node.runtime.errors import ServiceError
from protocol.limits.formats import ACK_COUNT_MAX, MIB, NAME_SIZE_MAX
from protocol.limits.users import IMPORTED_SECONDS_MAX

LINE_SIZE_MAX: Final = 2 * MIB
"""Bytes of one line: a text at its bound, escaped, and room for everything else."""

_Id = Annotated[str, Meta(min_length=1, max_length=NAME_SIZE_MAX)]


class _Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: _Id
    parents: Annotated[list[_Id], Meta(max_length=ACK_COUNT_MAX)]
    author: Annotated[str, Meta(max_length=NAME_SIZE_MAX)]
    time: Annotated[int, Meta(ge=-IMPORTED_SECONDS_MAX, le=IMPORTED_SECONDS_MAX)]
    text: str


def read_jsonl(path: Path) -> Iterator[SourceItem]:
    """Yield the items of a file. Raises ServiceError `bad_input` naming the file and the line."""
    decoder = msgspec.json.Decoder(_Line)
    seen: set[str] = set()
    for number, line in read_lines(path, LINE_SIZE_MAX):
        if len(line) > LINE_SIZE_MAX:
            raise _bad(path, number, f"longer than {LINE_SIZE_MAX} bytes")
        yield _item(path, number, line, decoder, seen)


def _item(
    path: Path, number: int, line: bytes, decoder: "msgspec.json.Decoder[_Line]", seen: set[str]
) -> SourceItem:
    try:
        value = decoder.decode(line)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise _bad(path, number, str(error)) from None
    if value.id in seen:
        raise _bad(path, number, f"the id {value.id!r} stands on an earlier line")
    if len(set(value.parents)) != len(value.parents):
        raise _bad(path, number, "a parent is named twice")
    for parent in value.parents:
        if parent == value.id:
            raise _bad(path, number, "it names itself as a parent")
        if parent not in seen:
            raise _bad(path, number, f"the parent {parent!r} stands on no earlier line")
    seen.add(value.id)
    return SourceItem(value.id, tuple(value.parents), value.author, value.time, fit_text(value.text))


def _bad(path: Path, number: int, problem: str) -> ServiceError:
    return ServiceError(
        "bad_input",
        f"{path} line {number}: {problem}",
        "mend the line; what was imported before it stays, and a second run goes on from there",
    )


def read_lines(path: Path, size_max: int) -> Iterator[tuple[int, bytes]]:
    """Yield number and bytes of each line that is not blank; of one over `size_max` bytes, the first `size_max` + 1.

    A byte order mark at the start is no part of the first. A name that ends in .gz is decompressed as it
    is read. Raises ServiceError `bad_input`.
    """
    number = 0
    try:
        with _open(path) as file:
            while line := file.readline(size_max + 1):
                number += 1
                if number == 1 and line.startswith(BOM_UTF8):
                    line = line.removeprefix(BOM_UTF8)
                    line += b"" if line.endswith(b"\n") else file.readline(len(BOM_UTF8))
                if line.strip() or len(line) > size_max:
                    yield number, line
                while len(line) > size_max and not line.endswith(b"\n"):
                    line = file.readline(size_max + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise ServiceError("bad_input", f"{path} cannot be read: {error}", "give a readable file") from None


def _open(path: Path) -> IO[bytes]:
    if path.suffix == ".gz":
        return gzip.open(path, "rb")  # type: ignore[return-value]  # a GzipFile reads like any binary file
    return path.open("rb")
