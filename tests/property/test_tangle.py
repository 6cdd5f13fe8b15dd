"""Any graph, in any order of arrival, against a reference that walks everything: sets of ancestors, written for clarity."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.ids import CommitId
from tests.support.ids import as_commit_id
from verifier.tangle import Tangle


def _id(number: int) -> CommitId:
    return as_commit_id(bytes([number % 7]) * 16 + number.to_bytes(16, "big"))  # not in the order of numbers


@dataclass(frozen=True)
class _Graph:
    """Commit `number` follows `followed[number]`, of lower numbers; 0 is the root; some are hidden."""

    followed: list[set[int]]
    hidden: set[int]

    def ancestors(self, number: int) -> set[int]:
        """Shown ones."""
        return self._reached(number) - self.hidden

    def previous(self, number: int) -> set[int]:
        past = self.ancestors(number)
        return past - {far for near in past for far in self.ancestors(near)}

    def _reached(self, number: int) -> set[int]:
        return self.followed[number].union(*map(self._reached, self.followed[number]))

    def rank(self, number: int) -> int:
        return 1 + max((self.rank(other) for other in self.previous(number)), default=-1)

    def shown(self) -> list[int]:
        numbers = set(range(len(self.followed))) - self.hidden
        return sorted(numbers, key=lambda number: (self.rank(number), _id(number)))


@st.composite
def _graphs(draw: st.DrawFn) -> _Graph:
    count = draw(st.integers(min_value=1, max_value=16))
    followed: list[set[int]] = [set()]
    for number in range(1, count):
        # Near ones mostly, so that there are long graphs too.
        nearest = draw(st.integers(min_value=0, max_value=number - 1))
        followed.append(
            draw(st.sets(st.integers(min_value=nearest, max_value=number - 1), min_size=1, max_size=4))
        )
    hidden = draw(st.sets(st.integers(min_value=1, max_value=count), max_size=4))
    return _Graph(followed, hidden & set(range(count)))


def _grow(graph: _Graph, order: list[int]) -> tuple[Tangle, list[bytes]]:
    tangle = Tangle(_id(0))
    entered: list[bytes] = []
    for number in order:
        previous = [_id(other) for other in sorted(graph.followed[number])]
        entered += tangle.add(_id(number), previous, is_shown=number not in graph.hidden)
    return tangle, entered


@pytest.mark.slow
@given(graph=_graphs(), data=st.data())
def test_every_question_is_answered_as_the_reference_does(graph: _Graph, data: st.DataObject) -> None:
    arriving = list(range(1, len(graph.followed)))
    order = data.draw(st.permutations(arriving + arriving[:3]))
    tangle, entered = _grow(graph, order)
    shown = graph.shown()
    assert sorted([tangle.root, *entered]) == sorted(map(_id, shown)), "each enters once"
    assert list(tangle.in_order()) == [_id(number) for number in shown]
    assert (len(tangle), tangle.pending_count, tangle.missing()) == (len(shown), 0, [])
    followers = {number: {other for other in shown if number in graph.previous(other)} for number in shown}
    assert tangle.tips() == sorted(_id(number) for number in shown if not followers[number])
    for number in shown:
        name, past, previous = _id(number), graph.ancestors(number), graph.previous(number)
        assert tangle.rank(name) == graph.rank(number)
        assert set(tangle.previous(name)) == set(map(_id, previous))
        assert tangle.is_tip(name) == (not followers[number])
        assert tangle.is_branch(name) == (len(followers[number]) > 1)
        assert tangle.is_merge(name) == (len(previous) > 1)
        for other in shown:
            assert tangle.precedes(_id(other), name) == (other in past)


@given(graph=_graphs(), data=st.data())
def test_what_lacks_a_cause_is_set_aside_and_named(graph: _Graph, data: st.DataObject) -> None:
    withheld = data.draw(st.sets(st.integers(min_value=1, max_value=16), max_size=3))
    arriving = [number for number in range(1, len(graph.followed)) if number not in withheld]
    tangle, _ = _grow(graph, data.draw(st.permutations(arriving)))
    present = {0}
    for number in arriving:
        if graph.followed[number] <= present:
            present.add(number)
    assert list(tangle.in_order()) == [_id(number) for number in graph.shown() if number in present]
    assert tangle.pending_count == len(arriving) + 1 - len(present)
    named = {other for number in arriving for other in graph.followed[number]}
    assert tangle.missing() == sorted(_id(other) for other in named & withheld)
