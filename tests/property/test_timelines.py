"""Any commits, in any order and batches: one final timeline; edits lead through lists that respect what is known."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.study.causes import Refusal
from analytics.study.net_moves import net_moves
from analytics.study.timelines import CausalTimeline, EagerTimeline, InsertEdit, MoveEdit, WaitingRoomTimeline
from tests.support.timeline_models import (
    ScuttleSort,
    complete,
    fewest_edits,
    ordered,
    past,
    replay,
    respects_causes,
)

WAYS = [CausalTimeline, WaitingRoomTimeline, EagerTimeline]
Way = type[CausalTimeline] | type[WaitingRoomTimeline] | type[EagerTimeline]
Commits = dict[bytes, list[bytes]]


@dataclass(frozen=True)
class _Story:
    """Commits without a circle, and how they arrive."""

    commits: Commits
    batches: list[list[bytes]]


@st.composite
def _stories(draw: st.DrawFn, batch_max: int = 8) -> _Story:
    names = draw(st.lists(st.binary(max_size=2), min_size=1, max_size=20, unique=True))
    commits: Commits = {}
    for number, name in enumerate(names):
        acks = draw(st.sets(st.integers(0, number - 1), max_size=3)) if number else set()
        commits[name] = [names[ack] for ack in acks]
    arriving = draw(st.permutations(names))
    batches = []
    while arriving:
        size = draw(st.integers(1, batch_max))
        batches.append(arriving[:size])
        arriving = arriving[size:]
    return _Story(commits, batches)


@pytest.mark.parametrize("way", WAYS)
@given(story=_stories())
def test_all_ways_end_in_the_order_by_rank_and_id(way: Way, story: _Story) -> None:
    timeline = way()
    shown: list[bytes] = []
    for batch in story.batches:
        taken = timeline.add_many([(name, story.commits[name]) for name in batch])
        assert not taken.refused
        shown = [shown, *replay(shown, taken.edits)][-1]
        assert list(timeline) == shown, "edits replayed on an empty list give the timeline at every step"
        assert [timeline.position(name) for name in shown] == list(range(len(shown)))
        assert len(timeline) == len(shown)
    assert shown == ordered(story.commits)
    assert (timeline.pending_count, timeline.missing()) == (0, [])


@given(story=_stories())
def test_causally_each_is_one_insert_once_its_causes_are_here(story: _Story) -> None:
    timeline = CausalTimeline()
    known: Commits = {}
    inserted = []
    shown: list[bytes] = []
    for batch in story.batches:
        taken = timeline.add_many([(name, story.commits[name]) for name in batch])
        known |= {name: story.commits[name] for name in batch}
        assert all(isinstance(edit, InsertEdit) for edit in taken.edits)
        inserted += [edit.commit_id for edit in taken.edits]
        for between in replay(shown, taken.edits):
            assert respects_causes(between, story.commits)
            shown = between
        assert shown == ordered(complete(known))
        assert timeline.pending_count == len(known) - len(shown)
        assert timeline.missing() == sorted({ack for acks in known.values() for ack in acks} - known.keys())
    assert len(set(inserted)) == len(inserted)


@given(story=_stories())
def test_in_the_waiting_room_each_costs_two_edits_at_most(story: _Story) -> None:
    timeline = WaitingRoomTimeline()
    known: Commits = {}
    touched: list[bytes] = []
    shown: list[bytes] = []
    for batch in story.batches:
        taken = timeline.add_many([(name, story.commits[name]) for name in batch])
        known |= {name: story.commits[name] for name in batch}
        names = [edit.commit_id for edit in taken.edits]
        assert len(set(names)) == len(names), "one edit in one batch"
        touched += names
        *_, shown = replay(shown, taken.edits)
        placed = ordered(complete(known))
        assert shown[: len(placed)] == placed
        room = [name for before in story.batches for name in before if name in known and name not in placed]
        assert shown[len(placed) :] == room, "what waits stands behind, in the order of arrival"
    assert max(touched.count(name) for name in touched) <= 2


@given(story=_stories())
def test_eagerly_every_list_between_respects_what_is_known(story: _Story) -> None:
    timeline = EagerTimeline()
    known: Commits = {}
    shown: list[bytes] = []
    for batch in story.batches:
        before = shown
        taken = timeline.add_many([(name, story.commits[name]) for name in batch])
        known |= {name: story.commits[name] for name in batch}
        for between in replay(shown, taken.edits):
            assert respects_causes(between, story.commits)
            shown = between
        assert shown == ordered(known), "the order by the longest known path and id"
        assert len(taken.edits) == fewest_edits(before, shown)


@pytest.mark.slow
@given(story=_stories(batch_max=1))
def test_eagerly_no_delivery_costs_more_than_scuttlesort(story: _Story) -> None:
    timeline, reference = EagerTimeline(), ScuttleSort()
    for (name,) in story.batches:
        cost = reference.add(name, story.commits[name])
        assert len(timeline.add(name, story.commits[name]).edits) <= cost
        assert list(timeline) == reference.shown


@pytest.mark.parametrize("way", WAYS)
@given(data=st.data())
def test_what_closes_a_circle_is_refused_and_changes_nothing(way: Way, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 20))
    names = [bytes([number]) for number in range(count)]
    timeline = way()
    known: Commits = {}
    for name in data.draw(st.permutations(names)):
        acks = data.draw(st.lists(st.sampled_from(names), max_size=3, unique=True))
        before = (list(timeline), timeline.pending_count, timeline.missing())
        taken = timeline.add(name, acks)
        if name in past({**known, name: acks}, name):
            assert taken.refused == ((name, Refusal.CIRCLE),)
            assert (list(timeline), timeline.pending_count, timeline.missing()) == before
            assert not taken.edits
            assert name not in timeline
        else:
            assert not taken.refused
            known[name] = acks
    placed = ordered(known if way is EagerTimeline else complete(known))
    assert list(timeline)[: len(placed)] == placed


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@given(story=_stories(), data=st.data())
def test_void_commits_leave_and_come_back(way: Way, story: _Story, data: st.DataObject) -> None:
    timeline = way()
    void: set[bytes] = set()
    shown: list[bytes] = []
    for batch in story.batches:
        edits = [*timeline.add_many([(name, story.commits[name]) for name in batch]).edits]
        chosen = data.draw(st.sets(st.sampled_from(sorted(story.commits)), max_size=3))
        edits += timeline.void(sorted(chosen - void)).edits
        edits += timeline.restore(sorted(chosen & void)).edits
        void ^= chosen
        shown = [shown, *replay(shown, edits)][-1]
        assert list(timeline) == shown
        assert not void & set(shown)
    assert shown == [name for name in ordered(story.commits) if name not in void]


@given(before=st.permutations(range(12)), after=st.permutations(range(12)))
def test_net_moves_are_the_fewest_and_no_list_between_is_worse(before: list[int], after: list[int]) -> None:
    def pairs(items: list[int]) -> set[tuple[int, int]]:
        return {(one, other) for at, one in enumerate(items) for other in items[at + 1 :]}

    moves = net_moves(before, after)
    names = {item: bytes([item]) for item in before}
    assert len(moves) == fewest_edits([names[item] for item in before], [names[item] for item in after])
    both = pairs(before) & pairs(after)
    items = list(before)
    for item, old, new in moves:
        assert items.pop(old) == item
        items.insert(new, item)
        assert both <= pairs(items)
    assert items == list(after)


def test_a_run_that_shifts_together_costs_the_fewer_of_both_sides() -> None:
    timeline = EagerTimeline()
    chain = [bytes([100, number]) for number in range(9)]
    timeline.add(b"root", [])
    timeline.add_many([(b"x1", [b"root"]), (b"x2", [b"x1"])])
    timeline.add_many([(chain[0], [b"late"]), *zip(chain[1:], [[name] for name in chain], strict=False)])
    taken = timeline.add(b"late", [b"x2"])
    assert [type(edit) for edit in taken.edits].count(MoveEdit) == 3, (
        "root, x1 and x2, not the nine that depend on it"
    )
