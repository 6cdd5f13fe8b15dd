"""Reconciliation of one topic's commit ids between two nodes: bytes, round trips and time on either side.

python benchmarks/bench_reconcile.py [ids]

Both sides hold so many ids, of which d differ, half of them on each side. *Symbols*
(`protocol.session.reconciliation.symbols`) depend neither on the number of ids nor on where differences lie; ids are drawn
anew for each repetition, and the median and the worst of them are given. *Ranges* (`protocol.session.reconciliation.ranges`)
depend on both: `tail` is the newest ids, `spread` evenly drawn ones, and items stand 1,024 to a depth.

Bytes are those of encoded frames before any publication: the digests of both sides (here in a frame of 80 bytes with the
topic and a count), what compares, and the short ids that the asker asks for. Round trips are those until the asker knows
the difference. Figures of others, for n = 100,000, stand in the notes: Negentropy's JavaScript reference and git, measured
on another machine, where 1,000 spread differences cost 1,750,000 bytes.

Times are of the processor, since neighbours only ever add to those of the clock.
The prefix of the common ids is made once and timed; each repetition adds its own to a copy.
"""

import os
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.common import figure, note, percentile
from protocol.codec import encode
from protocol.crypto.hashing import range_key, symbol_key
from protocol.crypto.keys import HashKey
from protocol.ids import SHORT_ID_SIZE, CommitId, SessionId, ShortId, TopicKey
from protocol.session.reconciliation.range_items import Item, SortedItems
from protocol.session.reconciliation.ranges import RangesAsker, answer_ranges
from protocol.session.reconciliation.riblt import Prefix, prefix_length
from protocol.session.reconciliation.set_digest import SetDigest
from protocol.session.reconciliation.symbols import SymbolsAsker, answer, encode_lacks, opening
from tests.support.ids import as_commit_id

_DIFFERENCES = (0, 1, 20, 1000, 10_000)
_REPETITIONS = {0: 1, 1: 100, 20: 100, 1000: 20, 10_000: 5}
_RANGE_DIFFERENCES = (0, 1, 20, 1000)
_NEGENTROPY = {
    (0, "tail"): 642,
    (0, "spread"): 642,
    (20, "tail"): 3_466,
    (20, "spread"): 54_636,
    (1000, "tail"): 35_400,
    (1000, "spread"): 1_750_000,
}
_DIGEST_FRAME = len(encode(["digest", bytes(32), 10**6, bytes(32)]))
_TOPIC, _SESSION = TopicKey(bytes(range(32))), SessionId(bytes(range(32, 64)))


@dataclass(slots=True)
class _Cost:
    to_answerer: int = _DIGEST_FRAME
    to_asker: int = _DIGEST_FRAME
    rounds: int = 1
    asker_seconds: float = 0.0
    answerer_seconds: float = 0.0

    @property
    def size(self) -> int:
        return self.to_answerer + self.to_asker


def _ids(count: int) -> list[CommitId]:
    return [as_commit_id(os.urandom(32)) for _ in range(count)]


def _by_symbols(common: bytes, key: HashKey, difference: int) -> _Cost:
    """One reconciliation, checked, whose cost is counted as the module says."""
    here, there = _ids(difference // 2), _ids(difference - difference // 2)
    ours, theirs = Prefix.from_bytes(key, common), Prefix.from_bytes(key, common)
    ours.add(here)
    theirs.add(there)
    cost = _Cost()
    if not difference:
        return cost  # the digests are equal
    began = time.process_time()
    symbols = theirs.symbols()
    frames = [opening(symbols)]
    cost.answerer_seconds += time.process_time() - began
    asker = SymbolsAsker(key, ours.symbols())
    while True:
        cost.to_asker += sum(map(len, frames))
        began = time.process_time()
        question = [asker.handle_frame(frame) for frame in frames][-1]
        cost.asker_seconds += time.process_time() - began
        if question is None:
            break
        cost.to_answerer += len(question)
        cost.rounds += 1
        began = time.process_time()
        frames = list(answer(symbols, question))
        cost.answerer_seconds += time.process_time() - began
    assert asker.is_done
    assert set(asker.differences) == {commit_id[:SHORT_ID_SIZE] for commit_id in here + there}
    cost.to_answerer += sum(
        map(len, encode_lacks([ShortId(commit_id[:SHORT_ID_SIZE]) for commit_id in there]))
    )
    return cost


def _by_ranges(items: Sequence[Item], chosen: set[int]) -> _Cost:
    key = range_key(_TOPIC, _SESSION)
    here = [item for number, item in enumerate(items) if number not in chosen or number % 2]
    there = [item for number, item in enumerate(items) if number not in chosen or not number % 2]
    ours, theirs = SortedItems(here), SortedItems(there)
    cost = _Cost()
    asker = RangesAsker(ours, key)
    began = time.process_time()
    question: bytes | None = asker.start()
    cost.asker_seconds += time.process_time() - began
    while question is not None:
        cost.rounds += 1
        cost.to_answerer += len(question)
        began = time.process_time()
        reply = answer_ranges(theirs, key, question)
        middle = time.process_time()
        cost.to_asker += len(reply)
        question = asker.handle_frame(reply)
        cost.answerer_seconds += middle - began
        cost.asker_seconds += time.process_time() - middle
    assert len(asker.here) + len(asker.there) == len(chosen)
    return cost


def _keep(ids: list[CommitId], key: HashKey) -> bytes:
    """Return the prefix of all ids, in batches as they are taken in; prints what one costs."""
    best = best_digest = float("inf")
    prefix, digest = Prefix(key, prefix_length(len(ids))), SetDigest()
    step = max(len(ids) // 10, 1)
    for start in range(0, len(ids), step):
        batch = ids[start : start + step]
        began = time.process_time()
        prefix.add(batch)
        middle = time.process_time()
        digest.add(batch)
        best = min(best, (middle - began) / len(batch))
        best_digest = min(best_digest, (time.process_time() - middle) / len(batch))
    figure("reconcile_keep_prefix", best * 1e6, "us/id", symbols=len(prefix), goal=10)
    figure("reconcile_keep_digest", best_digest * 1e6, "us/id")
    kept = prefix.to_bytes()
    figure("reconcile_kept", len(kept), "bytes", ids=len(ids))
    return kept


def _print(name: str, difference: int, costs: list[_Cost], **more: object) -> None:
    sizes = [cost.size for cost in costs]
    middle = sorted(costs, key=lambda cost: cost.size)[len(costs) // 2]
    figure(
        name,
        percentile(sizes, 0.5),
        "bytes",
        difference=difference,
        worst_bytes=max(sizes),
        to_asker=middle.to_asker,
        to_answerer=middle.to_answerer,
        round_trips=percentile([cost.rounds for cost in costs], 0.5),
        worst_round_trips=max(cost.rounds for cost in costs),
        bytes_per_difference=round(percentile(sizes, 0.5) / difference, 1) if difference else None,
        asker_ms=round(1000 * min(cost.asker_seconds for cost in costs), 2),
        answerer_ms=round(1000 * min(cost.answerer_seconds for cost in costs), 2),
        **more,
    )


def main() -> None:
    """Print the figures."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    generator = random.Random(1)  # noqa: S311  # the same places in every run
    key = symbol_key(_TOPIC)
    note(f"{count} ids")
    ids = _ids(count)
    common = _keep(ids, key)
    for difference in _DIFFERENCES:
        costs = [_by_symbols(common, key, difference) for _ in range(_REPETITIONS[difference])]
        _print("reconcile_symbols", difference, costs, ids=count)
    items = sorted((number // 1024, commit_id) for number, commit_id in enumerate(ids))
    for difference in _RANGE_DIFFERENCES:
        for shape in ("tail", "spread"):
            places = range(count - difference, count)
            chosen = set(places if shape == "tail" else generator.sample(range(count), difference))
            cost = _by_ranges(items, chosen)
            negentropy = _NEGENTROPY.get((difference, shape))
            _print("reconcile_ranges", difference, [cost], ids=count, shape=shape, negentropy=negentropy)


if __name__ == "__main__":
    main()
