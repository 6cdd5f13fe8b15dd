"""Sets of commits that differ, and conversations that reconcile them, for tests and benchmarks."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from protocol.crypto.keys import HashKey
from protocol.ids import CommitId, ItemId
from protocol.session.reconciliation.range_items import Item, SortedItems
from protocol.session.reconciliation.ranges import RangesAsker, answer_ranges
from protocol.session.reconciliation.riblt import Prefix
from protocol.session.reconciliation.symbols import SymbolsAsker, answer, opening
from tests.support.ids import as_commit_id

KEY = HashKey(bytes(range(32)))


def ids(count: int, what: str = "") -> list[CommitId]:
    """So many ids, the same in every run."""
    return [
        as_commit_id(hashlib.blake2b(f"{what}{number}".encode(), digest_size=32).digest())
        for number in range(count)
    ]


def prefix_of(members: Iterable[CommitId], length: int = 4096, key: HashKey = KEY) -> Prefix:
    """The prefix of a set."""
    made = Prefix(key, length)
    made.add(members)
    return made


@dataclass(frozen=True, slots=True)
class Talk:
    """What one reconciliation took: bytes of the asker, bytes of the answerer, frames of each."""

    asked: int
    answered: int
    asks: int
    answers: int


def _as_sent(frame: bytes) -> bytes:
    return frame


def talk_symbols(
    asker: SymbolsAsker, symbols: Sequence[int], change: Callable[[bytes], bytes] = _as_sent
) -> Talk:
    """Both machines until the asker is done or raises; `change` is what the network does to the answerer's frames."""
    asked = answered = asks = answers = 0
    frames: Iterable[bytes] = [opening(symbols)]
    while True:
        question = None
        for frame in frames:
            answers += 1
            answered += len(frame)
            question = asker.handle_frame(change(frame))
        if question is None:
            return Talk(asked, answered, asks, answers)
        asks += 1
        asked += len(question)
        frames = answer(symbols, question)


def talk_ranges(
    asker: RangesAsker, items: SortedItems, key: HashKey = KEY, change: Callable[[bytes], bytes] = _as_sent
) -> Talk:
    """The same for ranges."""
    asked = answered = asks = 0
    question: bytes | None = asker.start()
    while question is not None:
        asks += 1
        asked += len(question)
        reply = answer_ranges(items, key, question)
        answered += len(reply)
        question = asker.handle_frame(change(reply))
    return Talk(asked, answered, asks, asks)


def at_depths(members: Sequence[ItemId], bucket: int = 8) -> list[Item]:
    """Items of which so many stand at each depth."""
    return [(number // bucket, commit_id) for number, commit_id in enumerate(members)]
