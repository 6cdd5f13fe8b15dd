"""Tables of commits as large as a benchmark wants: graphs by numbers, and Parquet with ids in place of the numbers."""

from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from analytics.order import columns

COMMITS_PER_TANGLE: Final = 50
"""In the mean of Zipf sizes."""
ROWS_PER_PART: Final = 500_000
_FEEDS: Final = 64
_MERGE_SHARE: Final = 0.25
Ints = NDArray[np.int64]


def zipf_tangles(
    count: int, generator: np.random.Generator, fork_share: float = 0.0
) -> tuple[Ints, Ints, Ints]:
    """Tangle of every commit, and its acks as numbers of commits with their counts: a chain each, with some merges.

    Of `fork_share` of the commits the author has not seen the newest one.
    """
    tangles = max(1, count // COMMITS_PER_TANGLE)
    weights = 1 / np.arange(1, tangles + 1)
    tangle = np.sort(generator.choice(tangles, count, p=weights / weights.sum()))
    first = np.searchsorted(tangle, tangle)
    number = np.arange(count)
    back = number - first
    one = np.where(back > 0, number - 1, -1)
    if fork_share:
        one -= (back > 1) & (generator.random(count) < fork_share)
    merges = (back > 2) & (generator.random(count) < _MERGE_SHARE)
    other = np.where(
        merges, number - 2 - (generator.random(count) * np.minimum(back - 1, 8)).astype(np.int64), -1
    )
    pairs = np.stack([one, np.maximum(other, np.where(merges, first, -1))], axis=1)
    return tangle, pairs[pairs >= 0], (pairs >= 0).sum(axis=1)


def large_tangle(count: int, generator: np.random.Generator) -> tuple[Ints, Ints, Ints]:
    """One tangle of feeds that follow themselves, and now and then another's end."""
    feed = generator.integers(0, _FEEDS, count)
    other = generator.integers(0, _FEEDS, count)
    merges = generator.random(count) < _MERGE_SHARE
    ends = [0] * _FEEDS
    acks: list[int] = []
    counts = [0] * count
    for number, (own, seen, merge) in enumerate(
        zip(feed.tolist(), other.tolist(), merges.tolist(), strict=True)
    ):
        if number:
            acks.append(ends[own])
            counts[number] = 1
            if merge and ends[seen] != ends[own]:
                acks.append(ends[seen])
                counts[number] = 2
        ends[own] = number
    return np.zeros(count, np.int64), np.array(acks, np.int64), np.array(counts, np.int64)


def write_table(folder: Path, tangle: Ints, acks: Ints, counts: Ints) -> None:
    """Write a table like an export's, without what ordering does not read. Ranks are the right ones."""
    generator = np.random.default_rng(1)
    count = len(tangle)
    ids = generator.integers(0, 256, (count, 32), np.uint8)
    branch_ids = generator.integers(0, 256, (int(tangle.max()) + 1, 32), np.uint8)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    ranks = find_ranks(acks.tolist(), offsets.tolist(), count)
    folder.mkdir(parents=True)
    for start in range(0, count, ROWS_PER_PART):
        stop = min(start + ROWS_PER_PART, count)
        listed = columns.binary(ids[acks[offsets[start] : offsets[stop]]])
        starts = pa.array((offsets[start : stop + 1] - offsets[start]).astype(np.int32))
        table = pa.table(
            {
                "branch_id": columns.binary(branch_ids[tangle[start:stop]]),
                "commit_id": columns.binary(ids[start:stop]),
                "acks": pa.ListArray.from_arrays(starts, listed),
                "sequence": pa.array(np.arange(start, stop)),
                "rank": pa.array(ranks[start:stop]),
                "body_kind": pa.array(["post"] * (stop - start)),
                "is_void": pa.array(np.zeros(stop - start, np.bool_)),
            }
        )
        pq.write_table(table, folder / f"part-{start:09d}.parquet", compression="zstd")


def find_ranks(acks: list[int], offsets: list[int], count: int) -> Ints:
    """Longest paths; commit i acks `acks[offsets[i]:offsets[i + 1]]`, all of smaller numbers."""
    ranks = [0] * count
    for number in range(count):
        low, high = offsets[number], offsets[number + 1]
        if high > low:
            ranks[number] = 1 + max([ranks[cause] for cause in acks[low:high]])
    return np.array(ranks, np.int64)
