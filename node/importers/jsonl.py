"""A graph as JSON Lines: one object a line with `id`, `parents`, `author`, `time` (unix seconds) and `text`.

Lines stand in causal order, parents before children. A name that ends in .gz is decompressed as it is read; nothing is
held but one bounded line and the ids seen.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from node.importers.item import SourceItem, fit_text
from node.importers.lines import read_lines
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
