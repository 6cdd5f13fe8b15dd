"""A reference of what a text is, written from profiles/documents.md: clock by clock, and nothing of the product.

It knows what each update says because it made it. The document is pycrdt's. Where items stand is the second reader's.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pycrdt import Doc, Text, get_update, merge_updates

from tests.vectors.second_texts import Clock, Units, place, read_update

SESSION_BITS: Final = 13


@dataclass(frozen=True)
class Word:
    """One update: structs without deletions as pycrdt writes them, and which clocks it says and deletes."""

    name: str
    place: tuple[int, ...]
    clients: int
    structs: bytes
    said: Mapping[int, range] = field(default_factory=dict)
    deletes: frozenset[Clock] = frozenset()
    replaces: tuple[str, ...] = ()
    is_copy: bool = False
    is_stray: bool = False

    @property
    def update(self) -> bytes:
        """The update, as its commit has it."""
        assert self.structs.endswith(b"\0"), "no deletions"
        return self.structs[:-1] + encode_deletes(self.deletes)


@dataclass
class Reduced:
    """A text: the document, and names of updates of which something is left out."""

    document: Doc[Any]
    passed_over: set[str]

    @property
    def text(self) -> str:
        """Plain text of the root "t"."""
        return str(self.document.get("t", type=Text))


def reduce(words: Iterable[Word]) -> Reduced:
    """Walk all words, those of their own authors first."""
    taken: dict[Clock, str] = {}
    kept: list[tuple[Word, dict[int, int]]] = []
    passed_over: set[str] = set()
    first_names: set[str] = set()
    for word in sorted(words, key=lambda one: (one.is_copy, one.place)):
        starts: dict[int, int] = {}
        for client, said in word.said.items():
            start = said.start
            while start < said.stop and (client, start) in taken:
                start += 1
            starts[client] = start
        left = [
            (client, clock)
            for client, said in word.said.items()
            for clock in range(starts[client], said.stop)
        ]
        is_foreign = word.is_stray or any(client >> SESSION_BITS != word.clients for client in word.said)
        meets = any(clock in taken for clock in left)
        cut = any(starts[client] != said.start for client, said in word.said.items())
        if is_foreign or ((meets or cut) and word.name not in first_names):
            passed_over.add(word.name)
        if is_foreign or meets:
            continue
        first_names.add(word.name)
        for clock in left:
            taken[clock] = word.name
        kept.append((word, starts))
    units: Units = {}
    for word, starts in kept:
        read = read_update(word.structs)[0]
        units |= {clock: unit for clock, unit in read.items() if clock[1] >= starts[clock[0]]}
    here, misplaced = place(units)
    passed_over |= {taken[clock] for clock in misplaced}
    parts: list[bytes] = []
    deleted: set[Clock] = set()
    for word, starts in kept:
        own = {
            (client, clock)
            for client, said in word.said.items()
            for clock in range(starts[client], said.stop)
        }
        named = {clock for clock, name in taken.items() if name in word.replaces}
        deleted |= word.deletes & (own | named) & here
        if own & here:
            assert own <= here, "each is one struct"
            parts.append(get_update(word.structs, encode_vector(starts)))
    document: Doc[Any] = Doc(client_id=1)
    document.apply_update(merge_updates(*parts, b"\0" + encode_deletes(deleted)))
    return Reduced(document, passed_over)


def encode_vector(clocks: Mapping[int, int]) -> bytes:
    """Return a Yjs state vector."""
    return varint(len(clocks)) + b"".join(varint(client) + varint(clock) for client, clock in clocks.items())


def encode_deletes(deletes: Iterable[Clock]) -> bytes:
    """Return the end of an update that deletes these clocks, each by itself."""
    by_client: dict[int, list[int]] = {}
    for client, clock in sorted(deletes):
        by_client.setdefault(client, []).append(clock)
    out = varint(len(by_client))
    for client, clocks in by_client.items():
        out += varint(client) + varint(len(clocks)) + b"".join(varint(clock) + b"\1" for clock in clocks)
    return out


def varint(number: int) -> bytes:
    """Return a number as Yjs writes it."""
    return bytes([number & 127 | 128]) + varint(number >> 7) if number > 127 else bytes([number])


def fill(client: int, clocks: range) -> bytes:
    """Return an update that says of clocks that something was deleted there."""
    return b"\1\1" + varint(client) + varint(clocks.start) + b"\1\1\1t" + varint(len(clocks)) + b"\0"


def in_groups(updates: Sequence[bytes], size: int) -> bytes:
    """Merge updates in groups of a size, and these with each other, as pycrdt does."""
    groups = [merge_updates(*updates[start : start + size]) for start in range(0, len(updates), size)]
    return merge_updates(*groups) if groups else b"\0\0"
