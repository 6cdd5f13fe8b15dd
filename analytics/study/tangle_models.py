"""Generates random commit graphs and delivery orders for the study.

Commits are numbered as they were written, so causes have smaller numbers than effects. `names` stand for commit ids:
a random permutation, for ids are hashes and their order says nothing of the graph. Pure, and repeatable by the seed.

The models, each with `width` feeds:

- *two feeds*: section 4 of the paper on ScuttleSort. In each step two feeds, drawn at random, add a commit each; it acks
  the last of its own feed, and the last of the longest other feed as it was before the step. All ranks then hold
  exactly two commits, as in the paper's figure 8. Which of two equally long feeds is meant the paper does not say; here
  it is drawn.
- *two feeds, first of ties*: the same, but the first of equally long feeds is meant, as a search for the longest finds it
  in any list of feeds.
- *two feeds, 4 references*: as *two feeds*, and each commit also acks the last of two other feeds, drawn at random: what
  the paper leaves for later.
- *lurkers*: the mix that the paper leaves for later. 32 feeds write nearly all, and 16 times as many a commit now and then.
- *bursts*: one feed after the other writes a run of commits, 20 in the mean, and looks at the others before it begins only.
- *partitions*: two halves that for 500 commits at a time do not see each other; else as two feeds.

A real tangle, from an export, takes the place of a model with `from_rows`.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

LURKERS_PER_ACTIVE: Final = 16
"""512 to 32, as the paper has it."""
LURKER_SHARE: Final = 0.02
"""Of the commits: every fiftieth is a lurker's."""
BURST_MEAN: Final = 20
PARTITION_COMMITS: Final = 500
MORE_REFERENCES: Final = 2
"""Of a commit of *two feeds, 4 references*, beside its own feed's and the longest feed's last commit."""


@dataclass(frozen=True, slots=True)
class Graph:
    """Commits 0..n-1 with their acks, feeds, and places in the order of ids."""

    causes: Sequence[tuple[int, ...]]
    feeds: Sequence[int]
    names: Sequence[int]  # a permutation of 0..n-1

    def __len__(self) -> int:
        return len(self.causes)


def two_feeds(height: int, width: int, seed: int) -> Graph:
    """Return the paper's model. `width` is at least 2."""
    return _two_feeds(_Growing(width, seed), height, width)


def two_feeds_first(height: int, width: int, seed: int) -> Graph:
    """Return the paper's model, where the first of equally long feeds is meant."""
    return _two_feeds(_Growing(width, seed, is_first_of_ties=True), height, width)


def two_feeds_more(height: int, width: int, seed: int) -> Graph:
    """Return the paper's model with `MORE_REFERENCES` more for each commit."""
    return _two_feeds(_Growing(width, seed, more_references=MORE_REFERENCES), height, width)


def _two_feeds(growing: "_Growing", height: int, width: int) -> Graph:
    while growing.count < height:
        growing.step(growing.random.sample(range(width), 2))
    return growing.graph(height)


def lurkers(height: int, width: int, seed: int) -> Graph:
    """`width` active feeds, and `LURKERS_PER_ACTIVE` times as many that write little."""
    everybody = range(width * (1 + LURKERS_PER_ACTIVE))
    growing = _Growing(len(everybody), seed)
    while growing.count < height:
        is_lurker = growing.random.random() < LURKER_SHARE
        writers = everybody[width:] if is_lurker else everybody[:width]
        growing.step(growing.random.sample(writers, 1))
    return growing.graph(height)


def bursts(height: int, width: int, seed: int) -> Graph:
    """One feed at a time writes, for a while."""
    growing = _Growing(width, seed)
    while growing.count < height:
        writer = growing.random.randrange(width)
        growing.step([writer])
        while growing.count < height and growing.random.random() >= 1 / BURST_MEAN:
            growing.step([writer], ())
    return growing.graph(height)


def partitions(height: int, width: int, seed: int) -> Graph:
    """Build a tangle whose halves are apart for every other `PARTITION_COMMITS` commits. `width` is at least 4."""
    growing = _Growing(width, seed)
    halves = (range(width // 2), range(width // 2, width))
    while growing.count < height:
        if growing.count // PARTITION_COMMITS % 2:
            for half, feeds in enumerate(halves):
                growing.step(growing.random.sample(feeds, 1), (half,))
        else:
            growing.step(growing.random.sample(range(width), 2))
    return growing.graph(height)


MODELS: Final[Mapping[str, Callable[[int, int, int], Graph]]] = {
    "two feeds": two_feeds,
    "two feeds, first of ties": two_feeds_first,
    "two feeds, 4 references": two_feeds_more,
    "lurkers": lurkers,
    "bursts": bursts,
    "partitions": partitions,
}


def deliver_in_order(graph: Graph, seed: int) -> list[int]:
    """Deliver in the order of writing: every cause before its effects."""
    del seed  # all deliveries take one
    return list(range(len(graph)))


def deliver_random_feed(graph: Graph, seed: int) -> list[int]:
    """Deliver, step by step, the next commit of a feed drawn at random: the paper's delivery, harsh on purpose."""
    by_feed: dict[int, list[int]] = {}
    for commit in range(len(graph) - 1, -1, -1):
        by_feed.setdefault(graph.feeds[commit], []).append(commit)
    rest = [by_feed[feed] for feed in sorted(by_feed)]
    generator = random.Random(seed)  # noqa: S311  # a study must be repeatable
    delivered = []
    while rest:
        drawn = generator.randrange(len(rest))
        delivered.append(rest[drawn].pop())
        if not rest[drawn]:
            rest[drawn] = rest[-1]
            rest.pop()
    return delivered


DELIVERIES: Final[Mapping[str, Callable[[Graph, int], list[int]]]] = {
    "in order": deliver_in_order,
    "random feed": deliver_random_feed,
}


def from_rows(rows: Sequence[tuple[bytes, Sequence[bytes], bytes]]) -> Graph:
    """Return the graph of (commit id, acks, author), causes before effects. Acks of absent rows are left out."""
    number = {commit_id: index for index, (commit_id, _, _) in enumerate(rows)}
    feeds: dict[bytes, int] = {}
    names = [0] * len(rows)
    for name, (commit_id, _, _) in enumerate(sorted(rows)):
        names[number[commit_id]] = name
    return Graph(
        [tuple(dict.fromkeys(number[ack] for ack in acks if ack in number)) for _, acks, _ in rows],
        [feeds.setdefault(author, len(feeds)) for _, _, author in rows],
        names,
    )


class _Growing:
    """A graph while it is made: knows the last commit of each feed, and which feeds of either half are the longest."""

    def __init__(
        self, width: int, seed: int, *, is_first_of_ties: bool = False, more_references: int = 0
    ) -> None:
        self.random = random.Random(seed)  # noqa: S311  # as above
        self._is_first_of_ties = is_first_of_ties
        self._more_references = more_references
        self._half = width // 2
        self._causes: list[tuple[int, ...]] = []
        self._feeds: list[int] = []
        self._last: list[int | None] = [None] * width
        self._rank = [-1] * width  # of the last commit
        self._longest = [_Longest(-1, []), _Longest(-1, [])]

    @property
    def count(self) -> int:
        """Commits so far."""
        return len(self._causes)

    def step(self, writers: Sequence[int], seen: Sequence[int] = (0, 1)) -> None:
        """Add a commit by each writer, who sees the halves in `seen` as they were before the step."""
        top = max((self._longest[half].rank for half in seen), default=-1)
        longest = [
            feed for half in seen if self._longest[half].rank == top for feed in self._longest[half].feeds
        ]
        written = []
        for writer in writers:
            causes, rank = [self._last[writer]], self._rank[writer]
            # Where the one longest feed is the writer's own, any other adds nothing to it.
            others = [feed for feed in longest if feed != writer]
            if others:
                causes.append(
                    self._last[min(others) if self._is_first_of_ties else self.random.choice(others)]
                )
                rank = max(rank, top)
            if self._more_references:  # none of a higher rank than the longest feed's
                causes += [self._last[feed] for feed in self._draw_others(writer)]
            acked = tuple(dict.fromkeys(cause for cause in causes if cause is not None))
            written.append((writer, acked, rank + 1))
        for writer, acked, rank in written:
            self._last[writer], self._rank[writer] = len(self._causes), rank
            self._causes.append(acked)
            self._feeds.append(writer)
            half = int(writer >= self._half)
            # A feed that is among the longest and grows is longer than all others of its half: none stays there stale.
            if rank > self._longest[half].rank:
                self._longest[half] = _Longest(rank, [writer])
            elif rank == self._longest[half].rank:
                self._longest[half].feeds.append(writer)

    def _draw_others(self, writer: int) -> list[int]:
        others = len(self._last) - 1
        drawn = self.random.sample(range(others), min(self._more_references, others))
        return [feed + (feed >= writer) for feed in drawn]

    def graph(self, height: int) -> Graph:
        """Return what was made, cut to `height` commits."""
        names = list(range(height))
        self.random.shuffle(names)
        return Graph(self._causes[:height], self._feeds[:height], names)


@dataclass(frozen=True, slots=True)
class _Longest:
    """The feeds of one half whose last commit has the highest rank."""

    rank: int
    feeds: list[int]
