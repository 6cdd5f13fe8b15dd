"""Timelines in memory: edits for each commit and commits for each second, three ways and ScuttleSort, by width.

python benchmarks/bench_timelines.py [commits, 32768 by default] [widths, all of 4 to 1024 by default]

The commits are those of ScuttleSort's paper (section 4): in each step two random feeds of `width` grow by one commit,
which acks the feed's last one and one of the other two that the step before made; so there are two commits of each rank.
They are delivered feed by feed at random, each feed in its own order. All ways take the same deliveries in turns of 256,
so that neighbours disturb all alike; figures are of the process's own time on the processor.

ScuttleSort is taken from the folder that SCUTTLESORT_PATH names, or as installed (`pip install scuttlesort`). Where there
is none, its figures are those that were measured once for version 0.0.6 with 32,768 commits, and say so.
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

from analytics.study.timelines import CausalTimeline, EagerTimeline, WaitingRoomTimeline
from benchmarks.common import figure, note

_WIDTHS = [4, 8, 16, 32, 64, 128, 256, 512, 1024]
_TURN = 256
_COMMITS = 32_768
# Edits and events per second, by width: ScuttleSort 0.0.6 in Python on two shared cores.
_MEASURED_ONCE = {
    4: (1.35, 23_476), 8: (2.34, 11_217), 16: (3.13, 5_385), 32: (4.55, 2_914), 64: (6.27, 1_609),
    128: (8.87, 994), 256: (13.09, 736), 512: (16.07, 480), 1024: (17.84, 258),
}  # fmt: skip

Deliveries = list[tuple[str, list[str]]]
IngestBatch = Callable[[str, Sequence[str]], int]
"""Takes a commit and says how many edits that gave."""


def grow(width: int, commit_count: int, generator: random.Random) -> list[Deliveries]:
    """The feeds: ids and acks."""
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
    """A random feed's next commit, again and again."""
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
    """The reference and its list, where it can be had."""
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
    if reference:
        sent, rate, source = edits["scuttlesort"] / commits, commits / seconds["scuttlesort"], "this run"
    elif width in _MEASURED_ONCE and commits == _COMMITS:
        sent, rate = _MEASURED_ONCE[width]
        source = "measured once, with ScuttleSort 0.0.6 on another day; not in this run"
    else:
        return
    shares = {"width": width, "scuttlesort": source}
    figure("timeline_eager_to_scuttlesort_edits", edits["eager"] / commits / sent, "ratio", **shares)
    figure("timeline_eager_to_scuttlesort_rate", commits / seconds["eager"] / rate, "ratio", **shares)


def main() -> None:
    """Print the figures."""
    commit_count = int(sys.argv[1]) if len(sys.argv) > 1 else _COMMITS
    for width in [int(text) for text in sys.argv[2:]] or _WIDTHS:
        note(f"width {width}")
        measure(width, commit_count)


if __name__ == "__main__":
    main()
