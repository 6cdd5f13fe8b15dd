"""Pieces that updates add to a text, in bytes, and what these come to. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from protocol.formats.clock_spans import Span, join_spans
from protocol.formats.yjs_structs import WrittenStructs, cut_structs, encode_update, whole_runs
from protocol.formats.yjs_updates import read_update
from verifier.texts import WHOLE, Run, TextShape


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of a text that one update adds: an update of its own, and what it consists of."""

    encoded: bytes
    """Empty where nothing was opened for it."""
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


def _start_of(run: WrittenStructs) -> int:
    return run.clock
