"""Implied acks: exactly those that the naive definition names, near the top at a bounded cost."""

from collections.abc import Iterable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.ids import CommitId
from tests.support.ids import as_commit_id
from verifier.ancestry import AckWalks, GraphNode, find_implied_once


def _id(number: int) -> CommitId:
    return as_commit_id(number.to_bytes(32, "big"))


class _Graph:
    """A graph by lists of acks, which counts what is looked up."""

    def __init__(self, dag: list[set[int]]) -> None:
        self.places: dict[bytes, GraphNode] = {}
        self.loaded = 0
        for number, acks in enumerate(dag):
            rank = 1 + max((self.places[_id(ack)].rank for ack in acks), default=-1)
            self.places[_id(number)] = GraphNode(rank, [_id(ack) for ack in sorted(acks)])

    def load(self, ids: Iterable[CommitId]) -> Mapping[CommitId, GraphNode]:
        found = {raw: self.places[raw] for raw in ids}
        self.loaded += len(found)
        return found

    def implied(self, acks: set[int], *, floor: int = 0, visits_max: int = 10**9) -> set[int]:
        found = find_implied_once(
            [_id(ack) for ack in sorted(acks)], self.load, floor=floor, visits_max=visits_max
        )
        return {int.from_bytes(raw, "big") for raw in found}


def _pasts(dag: list[set[int]]) -> list[set[int]]:
    """All ancestors of each, written for clarity."""
    pasts: list[set[int]] = []
    for acks in dag:
        pasts.append(acks.union(*(pasts[ack] for ack in acks)))
    return pasts


@st.composite
def _dags(draw: st.DrawFn) -> list[set[int]]:
    count = draw(st.integers(2, 30))
    some = [st.sets(st.integers(max(0, n - 6), n - 1), min_size=1, max_size=4) for n in range(1, count)]
    return [set(), *(draw(acks) for acks in some)]


@given(dag=_dags(), data=st.data())
def test_implied_are_those_in_the_past_of_another(dag: list[set[int]], data: st.DataObject) -> None:
    graph, pasts = _Graph(dag), _pasts(dag)
    acks = data.draw(st.sets(st.integers(0, len(dag) - 1), min_size=1, max_size=5))
    expected = {ack for ack in acks if any(ack in pasts[other] for other in acks)}
    assert graph.implied(acks) == expected
    lowest = min((graph.places[_id(ack)].rank for ack in expected), default=10**6)
    assert graph.implied(acks, floor=lowest) == expected


@given(dag=_dags(), data=st.data())
def test_a_bound_finds_what_the_latest_so_many_ack(dag: list[set[int]], data: st.DataObject) -> None:
    graph, pasts = _Graph(dag), _pasts(dag)
    acks = data.draw(st.sets(st.integers(0, len(dag) - 1), min_size=1, max_size=5))
    bound = data.draw(st.integers(0, 10))
    reached = acks.union(*(pasts[ack] for ack in acks))
    latest = sorted(reached, key=lambda number: (graph.places[_id(number)].rank, _id(number)), reverse=True)[
        :bound
    ]
    assert graph.implied(acks, visits_max=bound) == acks & set[int]().union(
        *(dag[number] for number in latest)
    )


@pytest.mark.slow
def test_a_long_chain_is_walked_no_further_than_the_bound_or_the_floor() -> None:
    graph = _Graph([set(), *({number} for number in range(50_000))])
    assert graph.implied({10, 50_000}, visits_max=1000) == set()
    assert graph.loaded < 1100
    assert graph.implied({49_990, 50_000}, floor=49_990) == {49_990}
    assert graph.loaded < 1200


@given(dag=_dags(), bound=st.integers(1, 40), rank_gain=st.integers(0, 2))
def test_walks_that_go_on_from_earlier_ones_find_what_fresh_ones_find(
    dag: list[set[int]], bound: int, rank_gain: int
) -> None:
    graph, walks = _Graph(dag), AckWalks(bound)
    for number, acks in enumerate(dag):
        named = [_id(ack) for ack in sorted(acks)]
        floor = min((graph.places[raw].rank for raw in named), default=0) + rank_gain
        found = walks.find_implied(_id(number), named, graph.load, floor=floor)
        assert found == find_implied_once(named, graph.load, floor=floor, visits_max=bound)


def _merges(count: int, *, every: int, back: int) -> list[set[int]]:
    """A chain in which each so many-th commit acks an old side commit of one that lies so far back, too."""
    dag: list[set[int]] = [set()]
    tip = 0
    for number in range(1, count + 1):
        if number % every:
            dag.append({tip})
        else:
            dag += [{max(0, tip - back)}, {tip, len(dag)}]
        tip = len(dag) - 1
    return dag


def test_a_history_of_merges_is_walked_once_and_not_for_each_merge() -> None:
    dag = _merges(3000, every=2, back=900)
    graph, walks = _Graph(dag), AckWalks(10_000)
    merges = 0
    for number, acks in enumerate(dag):
        if len(acks) > 1:
            merges += 1
            assert not walks.find_implied(_id(number), [_id(ack) for ack in sorted(acks)], graph.load)
    assert merges == 1500
    assert walks.visits < 6 * len(dag), "a fresh walk for each merge would visit over 500 commits each"


@pytest.mark.slow
def test_merges_with_an_old_ack_cost_one_walk_of_the_chain() -> None:
    graph, walks = _Graph([set(), *({number} for number in range(2000))]), AckWalks(10_000)
    for old in range(30):
        assert walks.find_implied(as_commit_id(b""), [_id(old), _id(2000)], graph.load) == {_id(old)}
    assert walks.visits < 2 * 30 * 2100
    assert graph.loaded < 30 * 2100


def test_what_one_search_visits_is_bounded_when_much_has_come_since_the_walk_that_it_goes_on_from() -> None:
    chain = [set(), *({number} for number in range(100))]
    wide = [{0} for _ in range(400)]
    graph = _Graph([*chain, {100, 5}, *wide, {102, *range(103, 103 + 398)}])
    walks = AckWalks(100)
    walks.find_implied(_id(101), [_id(5), _id(100)], graph.load)
    before = walks.visits
    assert walks.find_implied(
        as_commit_id(b""), [_id(5), _id(101), _id(501)], graph.load
    ) == find_implied_once([_id(5), _id(101), _id(501)], graph.load, visits_max=100)
    assert walks.visits - before < 3 * 500
