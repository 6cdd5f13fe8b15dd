"""What each commit is told of those that it acks and of those that ack it, against plain Python on any graph."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from analytics.order.shapes import find_shapes

Commits = list[tuple[list[int], int, bool]]
"""For each: rows that it acks, which may stand there twice; its time; whether it has a place."""


@st.composite
def _any_commits(draw: st.DrawFn) -> Commits:
    count = draw(st.integers(1, 8))
    row = st.tuples(st.lists(st.integers(0, count - 1), max_size=4), st.integers(-5, 50), st.booleans())
    return draw(st.lists(row, min_size=count, max_size=count))


@given(_any_commits())
def test_each_commit_is_told_what_plain_python_finds(commits: Commits) -> None:
    times = [time for _, time, _ in commits]
    shown = [7 * time % 50 for time in times]
    is_placed = [has_place for _, _, has_place in commits]
    found = find_shapes(
        np.array([cause for acks, _, _ in commits for cause in acks], np.int64),
        np.cumsum([0, *(len(acks) for acks, _, _ in commits)], dtype=np.int64),
        np.array(times, np.int64),
        np.array(shown, np.int64),
        np.array(is_placed, np.bool_),
    )
    for row in range(len(commits)):
        acks = set(commits[row][0]) if is_placed[row] else set()
        assert found.acks_count[row] == len(acks)
        ackers = [n for n, (acked, _, has_place) in enumerate(commits) if has_place and row in acked]
        told = [shown[n] for n in ackers] if is_placed[row] else []
        assert (found.acked_count[row], found.acked_from[row]) == (len(told), min(told, default=0))
        merged = [times[cause] for cause in acks if is_placed[cause]] if len(acks) > 1 else []
        assert found.has_causes[row] == bool(merged)
        assert found.causes_from[row] == min(merged, default=0)
        assert found.causes_until[row] == max(merged, default=0)


def test_what_lacks_a_cause_is_not_looked_at() -> None:
    missing = 2  # as `kernel.Linearization.causes` has it: the number of rows
    found = find_shapes(
        np.array([missing, 0]),
        np.array([0, 0, 2]),
        np.array([5, 6]),
        np.array([5, 6]),
        np.array([True, False]),
    )
    assert found.acks_count.tolist() == [0, 0]
    assert found.acked_count.tolist() == [0, 0]
