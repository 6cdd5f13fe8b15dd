"""Exports as large as a benchmark wants: rows as exports have them, without what statistics do not read."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from analytics.order import columns
from analytics.reading.times import bucket_for
from analytics.tables.periods import Period
from benchmarks.tangle_tables import ROWS_PER_PART, Ints, find_ranks, zipf_tangles

_COMMITS_PER_AUTHOR: Final = 100
_BRANCHES_PER_REPO: Final = 10
_START_MS: Final = 1_700_000_000_000
_YEAR_MS: Final = 365 * 86_400_000
_KINDS: Final = ("post", "post", "post", "edit", "imported")
_FORK_SHARE: Final = 0.2
Graph = Callable[[int, np.random.Generator], tuple[Ints, Ints, Ints]]
"""Makes so many commits as functions of `tangle_tables` do."""


def zipf_graph(count: int, generator: np.random.Generator) -> tuple[Ints, Ints, Ints]:
    """Make tangles of Zipf sizes with forks."""
    return zipf_tangles(count, generator, _FORK_SHARE)


def write_commits(folder: Path, count: int, graph: Graph = zipf_graph) -> Period:
    """Write files of so many commits that hang together as a `graph` says; return the period that their times span."""
    generator = np.random.default_rng(count)
    tangle, acks, counts = graph(count, generator)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    ranks = find_ranks(acks.tolist(), offsets.tolist(), count)
    tangles = int(tangle.max()) + 1
    ids, branches, authors, repos = (
        generator.integers(0, 256, (size, 32), np.uint8)
        for size in (count, tangles, count // _COMMITS_PER_AUTHOR + 1, tangles // _BRANCHES_PER_REPO + 1)
    )
    # A few people write in a branch, and some of them in very many; clocks are a minute wrong, so merges may be backdated.
    author = (tangle + (generator.pareto(1.0, count) * 2).astype(np.int64)) % len(authors)
    index = np.arange(count) - np.searchsorted(tangle, tangle)
    length = np.bincount(tangle, minlength=tangles)[tangle]
    time = _START_MS + index * (_YEAR_MS // length) + generator.integers(0, 60_000, count)
    sizes = generator.integers(300, 5_000, count)
    kinds = generator.integers(0, len(_KINDS), count)
    names = [f"branch {number}" for number in range(tangles)]
    folder.mkdir(parents=True)
    for start in range(0, count, ROWS_PER_PART):
        part = slice(start, min(start + ROWS_PER_PART, count))
        low, high = offsets[part.start], offsets[part.stop]
        listed = columns.binary(ids[acks[low:high]])
        starts = pa.array((offsets[part.start : part.stop + 1] - low).astype(np.int32))
        own = tangle[part]
        table = pa.table(
            {
                "sequence": pa.array(np.arange(part.start, part.stop)),
                "commit_id": columns.binary(ids[part]),
                "topic": columns.binary(branches[own]),
                "repo_id": columns.binary(repos[own // _BRANCHES_PER_REPO]),
                "branch_id": columns.binary(branches[own]),
                "repo_name": pa.array([f"repo {number // _BRANCHES_PER_REPO}" for number in own.tolist()]),
                "branch_name": pa.array([names[number] for number in own.tolist()]),
                "author": columns.binary(authors[author[part]]),
                "acks": pa.ListArray.from_arrays(starts, listed),
                "rank": pa.array(ranks[part]),
                "body_kind": pa.array([_KINDS[kind] for kind in kinds[part].tolist()]),
                "size": pa.array(sizes[part]),
                "time": pa.array(time[part]),
                "received_at": pa.array(time[part]),
                "shown_at": pa.array(time[part]),
            }
        )
        pq.write_table(table, folder / f"part-{start:09d}.parquet", compression="zstd")
    first, last = int(time.min()), int(time.max())
    return Period(first, last, bucket_for(first, last))
