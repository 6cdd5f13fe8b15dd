"""Tangles in memory: what a commit costs to insert in a small and in a large one, and what questions cost there.

python benchmarks/bench_tangle.py [commits of the large one]

The graph is that of a busy branch: eight authors, each following its own last commit, every fourth commit following
all tips. Ids are made before. A window of 10,000 commits is timed from 10,000 commits on and again from the large
number on; each is repeated in a fresh tangle and the fastest is taken, since neighbours only ever slow it.
"""

import hashlib
import random
import sys
import time

from benchmarks.common import figure, note
from protocol.ids import BlockId, CommitId
from verifier.tangle import Tangle

_SMALL = 10_000
_WINDOW = 10_000
_AUTHORS = 8
_QUESTIONS = 10_000
_ROUNDS = 3
Edges = list[tuple[CommitId, tuple[CommitId, ...]]]


def busy_branch(count: int) -> Edges:
    """Ids and what they follow, causes first."""
    generator = random.Random(1)  # noqa: S311  # the same graph in every run
    ids = [
        CommitId(BlockId(hashlib.blake2b(number.to_bytes(8), digest_size=32).digest()))
        for number in range(count)
    ]
    last = [ids[0]] * _AUTHORS
    made: Edges = []
    for commit_id in ids[1:]:
        author = generator.randrange(_AUTHORS)
        if generator.random() < 0.25:
            made.append((commit_id, tuple(last)))
            last = [commit_id] * _AUTHORS
        else:
            made.append((commit_id, (last[author],)))
            last[author] = commit_id
    return made


def insert(tangle: Tangle, edges: Edges) -> float:
    """Microseconds for each commit."""
    began = time.perf_counter()
    for commit_id, previous in edges:
        tangle.add(commit_id, previous)
    return (time.perf_counter() - began) / len(edges) * 1e6


def ask(tangle: Tangle, ids: list[CommitId], seed: int) -> float:
    """Microseconds for each question whether one commit precedes another, both drawn at random."""
    generator = random.Random(seed)  # noqa: S311  # the same questions in every run
    pairs = [(generator.choice(ids), generator.choice(ids)) for _ in range(_QUESTIONS)]
    began = time.perf_counter()
    for earlier, later in pairs:
        tangle.precedes(earlier, later)
    return (time.perf_counter() - began) / _QUESTIONS * 1e6


def main() -> None:
    """Print the figures."""
    large = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    edges = busy_branch(large + _WINDOW + 1)
    ids = [commit_id for commit_id, _ in edges]
    root = edges[0][1][0]
    small_costs, large_costs, small_asked, large_asked = [], [], [], []
    for number in range(_ROUNDS):
        note(f"round {number + 1} of {_ROUNDS}")
        tangle = Tangle(root)
        insert(tangle, edges[:_SMALL])
        small_costs.append(insert(tangle, edges[_SMALL : _SMALL + _WINDOW]))
        small_asked.append(ask(tangle, ids[: len(tangle) - 1], number))
        insert(tangle, edges[_SMALL + _WINDOW : large])
        large_costs.append(insert(tangle, edges[large : large + _WINDOW]))
        large_asked.append(ask(tangle, ids[: len(tangle) - 1], number))
        assert len(tangle) == large + _WINDOW + 1
    figure("tangle_insert", min(small_costs), "us/commit", commits=_SMALL)
    figure("tangle_insert", min(large_costs), "us/commit", commits=large)
    figure("tangle_insert_large_to_small", min(large_costs) / min(small_costs), "ratio", limit=1.5)
    figure("tangle_precedes", min(small_asked), "us/question", commits=_SMALL)
    figure("tangle_precedes", min(large_asked), "us/question", commits=large)


if __name__ == "__main__":
    main()
