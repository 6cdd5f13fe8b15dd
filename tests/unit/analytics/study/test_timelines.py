"""Bounds and names of timelines in memory; their order and edits are tested for all inputs in `tests/property`."""

import random

import pytest

from analytics.reading.limits import TIMELINE_PENDING_COUNT_MAX
from analytics.study.causes import Refusal
from analytics.study.ranked_order import RankedOrder
from analytics.study.timelines import (
    CausalTimeline,
    EagerTimeline,
    InsertEdit,
    TimelineChange,
    WaitingRoomTimeline,
)
from protocol.limits.formats import ACK_COUNT_MAX
from tests.support.timeline_models import fewest_edits, ordered, replay

WAYS = [CausalTimeline, WaitingRoomTimeline, EagerTimeline]
Way = type[CausalTimeline] | type[WaitingRoomTimeline] | type[EagerTimeline]


@pytest.mark.parametrize("way", WAYS)
def test_one_more_than_may_wait_is_refused_and_may_come_again(way: Way) -> None:
    timeline = way(pending_max=2)
    timeline.add(b"a", [b"late"])
    timeline.add(b"b", [b"a"])
    shown = list(timeline)
    assert timeline.add(b"c", [b"b"]).refused == ((b"c", Refusal.TOO_MANY_WAIT),)
    assert (list(timeline), b"c" in timeline, timeline.pending_count) == (shown, False, 2)
    assert not timeline.add(b"late", []).refused, "what lacks nothing is always taken"
    assert not timeline.add(b"c", [b"b"]).refused
    assert list(timeline) == [b"late", b"a", b"b", b"c"]


@pytest.mark.slow
def test_as_many_wait_by_default_as_the_limit_says() -> None:
    timeline = CausalTimeline()
    waiting = [(number.to_bytes(3, "big"), [b"late"]) for number in range(TIMELINE_PENDING_COUNT_MAX + 1)]
    assert timeline.add_many(waiting).refused == ((waiting[-1][0], Refusal.TOO_MANY_WAIT),)


@pytest.mark.parametrize("way", WAYS)
def test_one_ack_too_many_is_refused(way: Way) -> None:
    acks = [bytes([number]) for number in range(ACK_COUNT_MAX + 1)]
    timeline = way()
    assert timeline.add(b"wide", acks).refused == ((b"wide", Refusal.TOO_MANY_ACKS),)
    assert not timeline.missing()
    assert not timeline.add(b"wide", [*acks[1:], acks[1]]).refused, "named twice is acked once"


@pytest.mark.parametrize("way", WAYS)
def test_what_acks_itself_is_refused(way: Way) -> None:
    assert way().add(b"a", [b"a"]) == TimelineChange((), ((b"a", Refusal.CIRCLE),))


@pytest.mark.parametrize("way", WAYS)
def test_a_circle_through_long_chains_is_refused(way: Way) -> None:
    timeline = way()
    names = [number.to_bytes(2, "big") for number in range(100)]
    # Even ones first, so that strata rise when the odd ones come between.
    rest = [(names[number], [names[number - 1]]) for number in [*range(2, 100, 2), *range(3, 100, 2), 1]]
    assert not timeline.add_many(rest).refused
    assert timeline.add(names[0], [names[99]]).refused == ((names[0], Refusal.CIRCLE),)
    assert not timeline.add(names[0], []).refused
    assert list(timeline) == names


@pytest.mark.parametrize("way", WAYS)
def test_what_was_delivered_before_has_no_effect(way: Way) -> None:
    timeline = way()
    timeline.add_many([(b"b", [b"a"]), (b"a", [])])
    assert timeline.add_many([(b"a", []), (b"b", [])]) == TimelineChange(())


@pytest.mark.parametrize("way", WAYS)
def test_a_commit_that_is_void_before_it_comes_is_not_shown_and_counts_for_ranks(way: Way) -> None:
    timeline = way()
    assert timeline.void([b"a"]) == TimelineChange(())
    assert timeline.add(b"a", []).edits == ()
    assert timeline.add(b"b", [b"a"]).edits == (InsertEdit(b"b", 0),)
    assert timeline.position(b"a") is None
    assert timeline.restore([b"a"]).edits == (InsertEdit(b"a", 0),)


@pytest.mark.slow
def test_positions_are_right_across_the_blocks_that_are_counted_together() -> None:
    timeline = CausalTimeline()
    names = [number.to_bytes(2, "big") for number in range(4200)]
    for number, name in enumerate(names):
        assert timeline.add(name, names[max(number - 1, 0) : number]).edits == (InsertEdit(name, number),)
    assert timeline.add(b"beside", [names[4100]]).edits == (InsertEdit(b"beside", 4102),)
    assert [timeline.position(names[number]) for number in (0, 63, 64, 4095, 4096, 4101, 4102)] == [
        0, 63, 64, 4095, 4096, 4101, 4103,
    ]  # fmt: skip
    assert timeline.position(names[4199]) == 4200


def test_few_may_leave_a_rank_of_many() -> None:
    timeline = EagerTimeline()
    for number in range(100):
        timeline.add(bytes([number]), [b"late"] if number == 50 else [])
    timeline.add(b"late", [])
    assert list(timeline)[-2:] == [b"late", bytes([50])]
    assert len(RankedOrder()) == 0


@pytest.mark.parametrize("batch_max", [1, 3])
@pytest.mark.parametrize("is_voiding", [False, True])
def test_what_is_shifted_together_stands_where_it_should(*, batch_max: int, is_voiding: bool) -> None:
    """Deeper than what property tests draw: most of what rises here is shifted, across ranks that are counted together."""
    dice = random.Random(batch_max)
    feeds: list[list[bytes]] = [[] for _ in range(4)]
    commits: dict[bytes, list[bytes]] = {}
    for number in range(320):
        feed, other = dice.sample(feeds, 2)
        commit_id = (number * 40_503 % 65_536).to_bytes(2, "big")
        commits[commit_id] = feed[-1:] + other[-1:]
        feed.append(commit_id)
    timeline = EagerTimeline()
    known: dict[bytes, list[bytes]] = {}
    void: set[bytes] = set()
    shown: list[bytes] = []
    while rest := [feed for feed in feeds if feed]:
        feed = dice.choice(rest)
        batch, feed[:] = feed[: (size := dice.randint(1, batch_max))], feed[size:]
        before = shown
        edits = timeline.add_many([(commit_id, commits[commit_id]) for commit_id in batch]).edits
        known |= {commit_id: commits[commit_id] for commit_id in batch}
        *_, shown = replay(shown, edits)
        assert shown == [commit_id for commit_id in ordered(known) if commit_id not in void]
        assert len(edits) == fewest_edits(before, shown)
        last = shown[-1]
        assert timeline.position(last) == len(shown) - 1
        if is_voiding and dice.random() < 0.2:
            void ^= {last}
            timeline.void([last])
            shown = shown[:-1]
