"""Ranges of a giant without Spark: each says of its commits what the whole graph says, once it knows its externals."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from analytics.order import kernel
from analytics.order import range_ranks as waves
from analytics.order.range_ranks import MISSING, NO_ACK, RANGE_SHIFT, UNKNOWN, CommitRange

Graph = list[tuple[int, list[int]]]
"""Each commit's range, and the commits it acks: indexes, -1 for one that is not there."""


@st.composite
def _graphs(draw: st.DrawFn) -> Graph:
    count = draw(st.integers(1, 14))
    acks = st.lists(st.integers(-1, count - 1), max_size=3, unique=True)
    return [(draw(st.integers(0, 2)), draw(acks)) for _ in range(count)]


def _num(graph: Graph, index: int) -> int:
    return graph[index][0] << RANGE_SHIFT | index


def _blocks(graph: Graph, hints: list[int]) -> list[CommitRange]:
    blocks = []
    for number in sorted({number for number, _ in graph}):
        edges = []
        for index, (own, acks) in enumerate(graph):
            if own == number:
                causes = [MISSING if ack < 0 else _num(graph, ack) for ack in acks] or [NO_ACK]
                edges += [(_num(graph, index), cause, hints[index]) for cause in causes]
        effects, causes, hinted = np.array(edges[::-1], np.int64).T
        blocks.append(waves.build_block(effects, causes, hinted))
    return blocks


def _ranks(graph: Graph) -> list[int]:
    """By definition: UNKNOWN on or behind a cycle, NO_RANK behind what is missing."""
    ranks: dict[int, int] = {}
    for _ in graph:
        for index, (_, acks) in enumerate(graph):
            if all(ack < 0 or ack in ranks for ack in acks):
                found = [kernel.NO_RANK if ack < 0 else ranks[ack] + 1 for ack in acks]
                ranks[index] = min(max(found, default=0), kernel.NO_RANK)
    return [ranks.get(index, UNKNOWN) for index in range(len(graph))]


@given(_graphs(), st.integers(0, 2**14))
def test_a_range_knows_what_its_externals_determine(graph: Graph, hidden: int) -> None:
    ranks = _ranks(graph)
    for block in _blocks(graph, [0] * len(graph)):
        of_externals = [ranks[num & 0xFFFF] for num in block.externals.tolist()]
        found = waves.rank_block(block, np.array(of_externals, np.int64))
        own = [ranks[num & 0xFFFF] for num in block.nums.tolist()]
        assert np.minimum(found, kernel.NO_RANK).tolist() == own
        known = [
            UNKNOWN if hidden >> (num & 0xFFFF) & 1 else rank
            for num, rank in zip(block.externals.tolist(), of_externals, strict=True)
        ]
        less = np.minimum(waves.rank_block(block, np.array(known, np.int64)), kernel.NO_RANK)
        assert all(part in (UNKNOWN, whole) for part, whole in zip(less.tolist(), own, strict=True))


@given(_graphs())
def test_checkpoints_are_handed_to_everything_in_their_past(drawn: Graph) -> None:
    graph = [
        (number, [ack for ack in acks if 0 <= ack < index]) for index, (number, acks) in enumerate(drawn)
    ]
    ranks = _ranks(graph)
    pasts = [{index} for index in range(len(graph))]
    for index, (_, acks) in enumerate(graph):
        pasts[index].update(*(pasts[ack] for ack in acks))
    bits = {_num(graph, index): 1 << index for index in range(len(graph))}  # each is a checkpoint
    told: dict[int, dict[int, int]] = {number: {} for number in range(3)}
    for num, bit in bits.items():
        told[num >> RANGE_SHIFT][num] = bit
    for _ in range(len(graph)):  # more often than anything has to be handed on
        for block in _blocks(graph, ranks):
            _, handed = waves.lead_block(block, told[block.range])
            for num, more in zip(block.externals.tolist(), handed, strict=True):
                told[num >> RANGE_SHIFT][num] |= more
    for block in _blocks(graph, ranks):
        led, _ = waves.lead_block(block, told[block.range])
        for num, own in zip(block.nums.tolist(), led, strict=True):
            index = num & 0xFFFF
            assert own == sum(1 << later for later in range(len(graph)) if index in pasts[later])
