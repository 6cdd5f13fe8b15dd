"""Text as the store keeps it: its words in blocks of neighbouring clocks, and a summary of all else. Pure.

A block ends once it has BLOCK_SIZE bytes. What was added since a text was kept changes the last block of each client id, and
those in which something was deleted.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from node.content.text_words import ClientWords, TextWords
from protocol.formats.clock_spans import Span, join_spans, overlap_spans
from protocol.ids import CommitId
from storage.commits.kept_texts import TextBlock
from verifier.documents import OrderKey
from verifier.text_places import PlacesDump, restore_places
from verifier.texts import TextFault

BLOCK_SIZE: Final = 16_384
"""Bytes of structs and names: a key stroke rewrites one block, and a first reading opens few."""
KEPT_AFTER: Final = 64
"""Updates after which a text is kept again. As many commits are opened by the first reading at most, where no summary is
large."""
_SUMMARY_SHARE: Final = 256
"""Bytes of a summary that one update may cost: a larger one is written less often."""
_FORMAT: Final = 1


class _Summary(msgspec.Struct, frozen=True, array_like=True):
    format: int
    places: PlacesDump
    waiting: dict[int, list[Span]]
    beyond: dict[int, list[Span]]
    ends: dict[int, int]
    lacked: list[int]
    unmet: list[CommitId]
    copied: list[CommitId]
    given_up: list[CommitId]
    faults: list[tuple[CommitId, TextFault]]
    fault_counts: dict[TextFault, int]
    last: OrderKey | None
    depth: int
    count: int
    size: int
    weight: int
    looks: int


class _Block(msgspec.Struct, frozen=True, array_like=True):
    end: int
    starts: list[int]
    counts: list[int]
    offsets: list[int]
    names: list[CommitId]
    data: bytes
    struct_count: int
    deleted: list[Span]


def is_due(words: TextWords) -> bool:
    """Return True if a text is to be kept again."""
    return words.is_simple and words.unkept >= max(KEPT_AFTER, words.summary_size // _SUMMARY_SHARE)


def dump(words: TextWords) -> tuple[bytes, list[TextBlock]]:
    """Return the summary of a text, and the blocks that are new or changed since it was kept."""
    summary = _Summary(
        _FORMAT,
        words.places.dump(),
        words.waiting,
        words.beyond,
        words.ends,
        sorted(words.lacked),
        sorted(words.unmet),
        sorted(words.copied),
        sorted(words.given_up),
        [*words.faults],
        dict(words.fault_counts),
        words.last,
        words.depth,
        words.count,
        words.size,
        words.weight,
        words.looks,
    )
    blocks = [
        (client, found.starts[first], msgspec.msgpack.encode(_block(found, first, last)))
        for client, spans in words.touched.items()
        if (found := words.clients.get(client)) is not None
        for first, last in _changed_blocks(found, join_spans(spans))
    ]
    return msgspec.msgpack.encode(summary), blocks


def _changed_blocks(words: ClientWords, touched: list[Span]) -> Iterator[tuple[int, int]]:
    """Divide the runs that are not in blocks yet, and yield (first run, last run) of the blocks that have such clocks."""
    size = 0
    place = words.blocks[-1] if words.blocks else 0
    for run in range(place, len(words.starts)):
        if not words.blocks or size >= BLOCK_SIZE:
            words.blocks.append(run)
            size = 0
        stop = words.offsets[run + 1] if run + 1 < len(words.offsets) else len(words.data)
        size += stop - words.offsets[run] + len(words.names[run])
    for number, first in enumerate(words.blocks):
        last = words.blocks[number + 1] if number + 1 < len(words.blocks) else len(words.starts)
        if overlap_spans([(words.starts[first], words.end_of(last - 1))], touched):
            yield first, last


def _block(words: ClientWords, first: int, last: int) -> _Block:
    begin, end = words.starts[first], words.end_of(last - 1)
    offset = words.offsets[first]
    stop = words.offsets[last] if last < len(words.offsets) else len(words.data)
    return _Block(
        end,
        words.starts[first:last],
        words.counts[first:last],
        [one - offset for one in words.offsets[first:last]],
        list(words.names[first:last]),
        bytes(words.data[offset:stop]),
        sum(words.counts[first:last]),
        overlap_spans(words.deleted, [(begin, end)]),
    )


def restore(summary: bytes, blocks: Iterable[TextBlock]) -> TextWords | None:
    """Make a text from its stored form; None if that is incomplete."""
    try:
        said = msgspec.msgpack.decode(summary, type=_Summary)
        if said.format != _FORMAT:
            return None
        clients: dict[int, ClientWords] = {}
        for client, clock, content in blocks:
            block = msgspec.msgpack.decode(content, type=_Block)
            words = clients.setdefault(client, ClientWords())
            if clock != words.end:
                return None
            _extend(words, block)
    except msgspec.DecodeError:
        return None
    places = restore_places(said.places)
    if {client: words.end for client, words in clients.items()} != places.ends():
        return None
    text = TextWords(
        clients,
        places,
        said.waiting,
        said.beyond,
        said.ends,
        set(said.lacked),
        set(said.unmet),
        set(said.copied),
        set(said.given_up),
        said.faults,
        Counter(said.fault_counts),
        said.last,
        said.depth,
        said.count,
        said.size,
        said.weight,
        said.looks,
    )
    text.summary_size = len(summary)
    return text


def _extend(words: ClientWords, block: _Block) -> None:
    offset = len(words.data)
    words.blocks.append(len(words.starts))
    words.end = block.end
    words.starts += block.starts
    words.counts += block.counts
    words.offsets += [one + offset for one in block.offsets]
    words.names += block.names
    words.data += block.data
    words.struct_count += block.struct_count
    deleted = block.deleted
    if words.deleted and deleted and words.deleted[-1][1] == deleted[0][0]:
        words.deleted[-1] = (words.deleted[-1][0], deleted[0][1])
        deleted = deleted[1:]
    words.deleted += deleted
