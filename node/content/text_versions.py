"""A text as it stands: what each update adds to it, in bytes, and where clocks and deletions lie. Pure."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

from protocol.formats.clock_spans import Span, join_spans
from protocol.formats.yjs_structs import WrittenStructs, cut_structs, encode_update, whole_runs
from protocol.formats.yjs_updates import ReadUpdate, read_update
from protocol.ids import CommitId
from verifier.texts import WHOLE, Run, TextShape, TextState


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of a text that one update adds: an update of its own, and what it consists of."""

    encoded: bytes
    structs: tuple[tuple[int, WrittenStructs], ...]
    """By client, without overlaps."""
    deletes: tuple[Run, ...]

    @classmethod
    def whole(cls, encoded: bytes) -> Self:
        """Take an update as it is."""
        read = read_update(encoded)
        deletes = tuple((client, *span) for client, spans in read.deletes.items() for span in spans)
        return cls(encoded, tuple(whole_runs(read)), deletes)

    @classmethod
    def left_of(cls, encoded: bytes, shape: TextShape | None) -> Self:
        """Take what is left of an update."""
        if shape is WHOLE:
            return cls.whole(encoded)
        read = read_update(encoded)
        structs: dict[int, list[WrittenStructs]] = {}
        for client, start, end in shape.runs:
            structs[client] = cut_structs(read, client, [(start, end)])
        return cls.whole(encode_update(structs, _by_client(shape.deletes)))


@dataclass(frozen=True, slots=True)
class TextVersion:
    """A text as it stands.

    `pieces` are what each update adds, by its commit; `update` is what they come to. `refused` are commits whose pieces no
    editor could take.
    """

    state: TextState
    pieces: Mapping[CommitId, Piece]
    update: bytes
    refused: frozenset[CommitId] = frozenset()

    @property
    def size(self) -> int:
        """Bytes that are held of it."""
        return len(self.update) + sum(2 * len(piece.encoded) for piece in self.pieces.values())

    @property
    def shapes(self) -> dict[CommitId, TextShape | None]:
        """Shape of each update, by its commit."""
        return {one.edit.commit: one.shape for one in self.state.shown}


def merge_pieces(pieces: Iterable[Piece]) -> bytes:
    """Return what pieces that do not overlap come to. The same pieces give the same bytes, in any order.

    No library does it: pycrdt writes the keys of a map in another order each time. O(p log p + bytes) for p pieces.
    """
    structs: dict[int, list[WrittenStructs]] = {}
    deletes: list[Run] = []
    for piece in pieces:
        deletes += piece.deletes
        for client, run in piece.structs:
            structs.setdefault(client, []).append(run)
    for runs in structs.values():
        runs.sort(key=_start_of)
    joined = {client: join_spans(spans) for client, spans in _by_client(deletes).items()}
    return encode_update(structs, joined)


def _by_client(runs: Iterable[Run]) -> dict[int, list[Span]]:
    found: dict[int, list[Span]] = {}
    for client, start, end in runs:
        found.setdefault(client, []).append((start, end))
    return found


class Said(NamedTuple):
    """Clocks that a piece says, and whose piece it is: None for one that has no commit yet."""

    start: int
    end: int
    name: CommitId | None
    piece: int


class TextIndex:
    """Index of a text by clocks: who said them, and which are deleted. It takes in what is going to be written, too."""

    def __init__(self, version: TextVersion) -> None:
        """O(runs of the text)."""
        self._said: dict[int, list[Said]] = {}
        self._pieces: list[bytes | ReadUpdate] = []
        for shown in version.state.shown:
            self._add(version.pieces[shown.edit.commit].encoded, shown.edit.name, shown.runs)
        for found in self._said.values():
            found.sort(key=_start_of)
        self._waiting = {
            client: join_spans(spans) for client, spans in _by_client(version.state.waiting).items()
        }
        deletes = (run for shown in version.state.shown for run in shown.deletes)
        self._deleted = {client: join_spans(spans) for client, spans in _by_client(deletes).items()}

    def add(
        self, structs: Mapping[int, Sequence[WrittenStructs]], deletes: Mapping[int, Sequence[Span]]
    ) -> None:
        """Take in what is going to be written."""
        if structs:
            runs = [(client, one.clock, one.end) for client, found in structs.items() for one in found]
            self._add(encode_update(structs, {}), None, runs)
        for client in structs:
            self._said[client].sort(key=_start_of)
        for client, spans in deletes.items():
            self._deleted[client] = join_spans([*self._deleted.get(client, ()), *spans])

    def find(self, client: int, start: int, end: int) -> Iterator[tuple[Span, Said | None]]:
        """Cut a span into parts, in order: each with the piece that contains its clocks, or None where none does."""
        found = self._said.get(client, [])
        place = max(bisect_right(found, start, key=_start_of) - 1, 0)
        while start < end:
            while place < len(found) and found[place].end <= start:
                place += 1
            if place == len(found) or found[place].start >= end:
                yield (start, end), None
                return
            one = found[place]
            if one.start > start:
                yield (start, one.start), None
                start = one.start
            yield (start, min(end, one.end)), one
            start = min(end, one.end)

    def end(self, client: int) -> int:
        """Return the clock at which a client goes on."""
        said = self._said.get(client)
        return said[-1].end if said else 0

    def waiting(self, client: int) -> Sequence[Span]:
        """Return clocks of a client that are taken, and behind others that are missing."""
        return self._waiting.get(client, ())

    def deleted(self, client: int) -> Sequence[Span]:
        """Return the deleted clocks of a client."""
        return self._deleted.get(client, ())

    def read(self, said: Said) -> ReadUpdate:
        """Return the piece that says some clocks, taken apart once."""
        piece = self._pieces[said.piece]
        if isinstance(piece, bytes):
            piece = self._pieces[said.piece] = read_update(piece)
        return piece

    def _add(self, piece: bytes, name: CommitId | None, runs: Sequence[Run]) -> None:
        number = len(self._pieces)
        self._pieces.append(piece)
        for client, start, end in runs:
            self._said.setdefault(client, []).append(Said(start, end, name, number))


def _start_of(span: Said | WrittenStructs) -> int:
    return span[0]
