"""Timelines in memory: edits for each commit and commits for each second, three ways and ScuttleSort, by width.

python benchmarks/bench_timelines.py [commits, 32768 by default] [widths, all of 4 to 1024 by default]

The commits are those of ScuttleSort's paper (section 4): in each step two random feeds of `width` grow by one commit,
which acks the feed's last one and one of the other two that the step before made; so there are two commits of each rank.
They are delivered feed by feed at random, each feed in its own order. All ways take the same deliveries in turns of 256,
so that neighbours disturb all alike; figures are of the process's own time on the processor.

ScuttleSort's edits are those that `analytics.study.edit_streams` counts for the same deliveries. Its speed is measured where
the package is: in the folder that SCUTTLESORT_PATH names, or installed (`pip install scuttlesort`). Its edits and its list
are then compared with ours.
"""

import contextlib
import hashlib
import importlib
import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from itertools import count

from analytics.study.edit_streams import replay
from analytics.study.tangle_models import Graph
from analytics.study.timelines import CausalTimeline, EagerTimeline, WaitingRoomTimeline
from benchmarks.common import figure, note

_WIDTHS = [4, 8, 16, 32, 64, 128, 256, 512, 1024]
_TURN = 256
_COMMITS = 32_768

Deliveries = list[tuple[str, list[str]]]
IngestBatch = Callable[[str, Sequence[str]], int]
"""Takes a commit and says how many edits that gave."""


def grow(width: int, commit_count: int, generator: random.Random) -> list[Deliveries]:
    """Return the feeds: ids and acks."""
    feeds: list[Deliveries] = [[] for _ in range(width)]
    numbers = count()
    newest: list[int] = []
    for _ in range(commit_count // 2):
        growing = generator.sample(range(width), 2)
        made = []
        for feed in growing:
            acks = [feeds[feed][-1][0]] if feeds[feed] else []
            others = [other for other in newest if other != feed]
            if others:
                acks.append(feeds[generator.choice(others)][-1][0])
            made.append((hashlib.blake2b(next(numbers).to_bytes(8), digest_size=16).hexdigest(), acks))
        for feed, commit in zip(growing, made, strict=True):
            feeds[feed].append(commit)
        newest = growing
    return feeds


def deliver(feeds: list[Deliveries], generator: random.Random) -> Deliveries:
    """Return a random feed's next commit, again and again."""
    rest = [feed[::-1] for feed in feeds if feed]
    delivered: Deliveries = []
    while rest:
        at = generator.randrange(len(rest))
        delivered.append(rest[at].pop())
        if not rest[at]:
            rest[at] = rest[-1]
            rest.pop()
    return delivered


def ours(timeline: CausalTimeline | WaitingRoomTimeline | EagerTimeline) -> IngestBatch:
    """One of the three ways."""

    def take(commit_id: str, acks: Sequence[str]) -> int:
        taken = timeline.add(commit_id.encode(), [ack.encode() for ack in acks])
        assert not taken.refused
        return len(taken.edits)

    return take


def scuttlesort() -> tuple[IngestBatch, Callable[[], list[str]]] | None:
    """Return the reference and its list, where it can be had."""
    if path := os.environ.get("SCUTTLESORT_PATH"):
        sys.path.insert(0, path)
    try:
        module = importlib.import_module("scuttlesort")
    except ImportError:
        return None
    edits: list[object] = []
    timeline = module.Timeline(lambda *edit: edits.append(edit))

    def take(commit_id: str, acks: Sequence[str]) -> int:
        edits.clear()
        timeline.add(commit_id, acks)
        return len(edits)

    return take, lambda: list(timeline)


def count_reference(deliveries: Deliveries) -> int:
    """Return the edits of the published algorithm, counted without its list."""
    number = {commit_id: at for at, (commit_id, _) in enumerate(deliveries)}
    names = {commit_id: at for at, commit_id in enumerate(sorted(number))}
    graph = Graph(
        [tuple(number[ack] for ack in acks) for _, acks in deliveries],
        [0] * len(deliveries),
        [names[commit_id] for commit_id, _ in deliveries],
    )
    return replay(graph, range(len(deliveries))).reference


def measure(width: int, commit_count: int) -> None:
    """Print the figures of one width."""
    generator = random.Random(width)  # noqa: S311  # the same commits in every run
    deliveries = deliver(grow(width, commit_count, generator), generator)
    timelines: dict[str, CausalTimeline | WaitingRoomTimeline | EagerTimeline] = {
        "causal": CausalTimeline(pending_max=commit_count),
        "waiting_room": WaitingRoomTimeline(pending_max=commit_count),
        "eager": EagerTimeline(pending_max=commit_count),
    }
    takes: dict[str, IngestBatch] = {name: ours(timeline) for name, timeline in timelines.items()}
    reference = scuttlesort()
    if reference:
        takes["scuttlesort"] = reference[0]
    edits = dict.fromkeys(takes, 0)
    seconds = dict.fromkeys(takes, 0.0)
    for start in range(0, len(deliveries), _TURN):
        turn = deliveries[start : start + _TURN]
        for name, take in takes.items():
            began = time.process_time()
            # Old versions of ScuttleSort print what they add.
            with contextlib.redirect_stdout(None) if name == "scuttlesort" else contextlib.nullcontext():
                edits[name] += sum(take(commit_id, acks) for commit_id, acks in turn)
            seconds[name] += time.process_time() - began
    final = list(timelines["causal"])
    assert all(list(timeline) == final for timeline in timelines.values())
    assert not reference or [name.encode() for name in reference[1]()] == final
    commits = len(deliveries)
    for name in takes:
        figure(f"timeline_{name}_edits", edits[name] / commits, "edits/commit", width=width, commits=commits)
        figure(f"timeline_{name}_rate", commits / seconds[name], "commits/s", width=width, commits=commits)
    counted = count_reference(deliveries)
    assert not reference or edits["scuttlesort"] == counted
    figure("timeline_reference_edits", counted / commits, "edits/commit", width=width, commits=commits)
    figure("timeline_eager_to_reference_edits", edits["eager"] / counted, "ratio", width=width)
    if reference:
        rate = seconds["scuttlesort"] / seconds["eager"]
        figure("timeline_eager_to_scuttlesort_rate", rate, "ratio", width=width)


def main() -> None:
    """Print the figures."""
    commit_count = int(sys.argv[1]) if len(sys.argv) > 1 else _COMMITS
    for width in [int(text) for text in sys.argv[2:]] or _WIDTHS:
        note(f"width {width}")
        measure(width, commit_count)


if __name__ == "__main__":
    main()
