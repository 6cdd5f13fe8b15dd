"""Implied acks: exactly those that the naive definition names, near the top at a bounded cost."""

from collections.abc import Iterable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier.ancestry import Place, find_implied


def _id(number: int) -> bytes:
    return number.to_bytes(32, "big")


class _Graph:
    """A graph by lists of acks, which counts what is looked up."""

    def __init__(self, dag: list[set[int]]) -> None:
        self.places: dict[bytes, Place] = {}
        self.loaded = 0
        for number, acks in enumerate(dag):
            rank = 1 + max((self.places[_id(ack)].rank for ack in acks), default=-1)
            self.places[_id(number)] = Place(rank, [_id(ack) for ack in sorted(acks)])

    def load(self, ids: Iterable[bytes]) -> Mapping[bytes, Place]:
        found = {raw: self.places[raw] for raw in ids}
        self.loaded += len(found)
        return found

    def implied(self, acks: set[int], *, floor: int = 0, visits_max: int = 10**9) -> set[int]:
        found = find_implied(
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
