"""The order of many tangles at once, against its definition, on sound input and on any other."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.order import kernel
from tests.support.exports import id_of

# (tangle, name, acked names, mark); a name may be missing, the commit's own, or a later one.
Commits = list[tuple[int, str, tuple[str, ...], int]]
_MARKS = st.sampled_from([kernel.UNMARKED, kernel.UNMARKED, kernel.MARKED_VOID, kernel.MARKED_CHECKPOINT])


@st.composite
def _any_commits(draw: st.DrawFn) -> Commits:
    """Up to three tangles whose acks go anywhere: to earlier commits, later ones, themselves, and to what is not there."""
    commits: Commits = []
    for tangle in range(draw(st.integers(0, 3))):
        names = [f"c{number}" for number in range(draw(st.integers(1, 8)))]
        for name in names:
            acks = draw(st.lists(st.sampled_from([*names, "missing"]), max_size=3))
            commits.append((tangle, name, tuple(acks), draw(_MARKS)))
    return draw(st.permutations(commits))


@st.composite
def _sound_commits(draw: st.DrawFn) -> Commits:
    """Acks of earlier commits only, in causal order: what takes the fast way."""
    commits: Commits = []
    for number in range(draw(st.integers(1, 12))):
        earlier = [name for _, name, _, _ in commits]
        acks = draw(st.lists(st.sampled_from(earlier), max_size=3, unique=True)) if earlier else []
        commits.append((0, f"c{number}", tuple(acks), draw(_MARKS)))
    return commits


def _columns(commits: Commits) -> kernel.Tangles:
    acks = [id_of(ack) for _, _, listed, _ in commits for ack in listed]
    return kernel.Tangles(
        tangle=np.array([tangle for tangle, _, _, _ in commits], np.int64),
        commit_ids=_matrix([id_of(name) for _, name, _, _ in commits]),
        ack_offsets=np.cumsum([0, *(len(listed) for _, _, listed, _ in commits)], dtype=np.int64),
        acks=_matrix(acks),
        sequence=np.arange(len(commits), dtype=np.int64),
        marks=np.array([mark for _, _, _, mark in commits], np.int8),
    )


def _matrix(ids: list[bytes]) -> kernel.Bytes:
    return np.frombuffer(b"".join(ids), np.uint8).reshape(-1, kernel.ID_SIZE)


def _by_definition(commits: Commits) -> dict[tuple[int, str], tuple[int, int, int, int]]:
    """(tangle, name) -> (passed, rank, position, fault)."""
    marks = {(tangle, name): mark for tangle, name, _, mark in commits}
    acks = {(tangle, name): [(tangle, ack) for ack in listed] for tangle, name, listed, _ in commits}
    ranks: dict[tuple[int, str], int] = {}
    for _ in commits:
        for key, causes in acks.items():
            if key not in ranks and all(cause in ranks for cause in causes):
                ranks[key] = 1 + max((ranks[cause] for cause in causes), default=-1)
    settled = set(ranks)  # with a rank, or without one for no other reason than what is missing
    for _ in commits:
        settled |= {
            key
            for key, causes in acks.items()
            if all(cause in settled or cause not in acks for cause in causes)
        }
    pasts: dict[tuple[int, str], set[tuple[int, str]]] = {}
    for key in sorted(ranks, key=ranks.__getitem__):
        pasts[key] = {key}.union(*(pasts[cause] for cause in acks[key]))
    checkpoints = [key for key in ranks if marks[key] == kernel.MARKED_CHECKPOINT]
    heads = {(one[0], frozenset(acks[one])) for one in checkpoints}  # those that merge the same count once
    passed = {
        key: sum(
            tangle == key[0]
            and not any(key in pasts[one] for one in merged)
            and not (key in checkpoints and frozenset(acks[key]) == merged)
            for tangle, merged in heads
        )
        for key in ranks
    }
    shown = [key for key in ranks if marks[key] != kernel.MARKED_VOID]
    order = sorted(shown, key=lambda key: (key[0], passed[key], ranks[key], id_of(key[1])))
    places = {}
    for key, causes in acks.items():
        if key in shown:
            first = next(index for index, other in enumerate(order) if other[0] == key[0])
            places[key] = passed[key], ranks[key], order.index(key) - first, kernel.NO_FAULT
        elif key in ranks:
            places[key] = -1, -1, -1, kernel.VOID
        elif any(cause not in acks for cause in causes):
            places[key] = -1, -1, -1, kernel.MISSING_CAUSE
        else:
            places[key] = -1, -1, -1, kernel.BEHIND_MISSING if key in settled else kernel.CYCLE
    return places


def _check(commits: Commits) -> None:
    order = kernel.linearize_tangles(_columns(commits))
    assert sorted(order.row.tolist()) == list(range(len(commits)))
    found = {
        commits[row][:2]: (passed, rank, position, fault)
        for row, passed, rank, position, fault in zip(
            order.row.tolist(),
            order.passed.tolist(),
            order.rank.tolist(),
            order.position.tolist(),
            order.fault.tolist(),
            strict=True,
        )
    }
    assert found == _by_definition(commits)
    tangles = [commits[row][0] for row in order.row.tolist()]
    assert tangles == sorted(tangles)


@pytest.mark.slow
@given(_any_commits())
def test_any_graph_is_ordered_as_defined_and_what_has_no_place_says_why(commits: Commits) -> None:
    _check(commits)


@given(_sound_commits())
def test_causal_order_takes_the_fast_way_to_the_same_order(commits: Commits) -> None:
    _check(commits)
    _check(commits[::-1])


@given(_any_commits(), st.integers(-1, 9), st.integers(0, 7))
def test_false_stated_ranks_change_nothing(commits: Commits, false: int, at: int) -> None:
    columns = _columns(commits)
    found = kernel.linearize_tangles(columns)
    stated = np.zeros(len(commits), np.int64)
    stated[found.row] = found.rank
    stated[at : at + 1] = false
    _assert_equal(kernel.linearize_tangles(replace(columns, stated=stated)), found)


@given(_sound_commits())
def test_true_stated_ranks_are_taken_and_not_computed_again(commits: Commits) -> None:
    columns = _columns(commits)
    unmarked = replace(columns, marks=np.zeros_like(columns.marks))
    stated = np.empty(len(commits), np.int64)
    order = kernel.linearize_tangles(unmarked)
    stated[order.row] = order.rank
    found = kernel.linearize_tangles(columns)
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(kernel, "_ranks")
        _assert_equal(kernel.linearize_tangles(replace(columns, stated=stated)), found)


def _assert_equal(one: kernel.Linearization, other: kernel.Linearization) -> None:
    for name in kernel.Linearization.__slots__:
        assert getattr(one, name).tolist() == getattr(other, name).tolist(), name


def test_equal_prefixes_of_ids_are_told_apart() -> None:
    low, high = bytes(32), bytes(31) + b"\x01"
    order = kernel.linearize_tangles(
        kernel.Tangles(
            tangle=np.zeros(3, np.int64),
            commit_ids=_matrix([high, low, id_of("effect")]),
            ack_offsets=np.array([0, 0, 1, 2], np.int64),
            acks=_matrix([high, low]),
            sequence=np.arange(3, dtype=np.int64),
            marks=np.zeros(3, np.int8),
        )
    )
    assert order.row.tolist() == [0, 1, 2]
    assert order.rank.tolist() == [0, 1, 2]


def test_a_long_chain_needs_no_recursion_in_either_direction() -> None:
    chain: Commits = [(0, f"c{number}", (f"c{number - 1}",) if number else (), 0) for number in range(5_000)]
    for commits in (chain, chain[::-1]):
        order = kernel.linearize_tangles(_columns(commits))
        assert order.rank.tolist() == list(range(5_000))


def test_an_id_twice_in_a_tangle_is_refused_and_in_two_tangles_is_not() -> None:
    with pytest.raises(ValueError, match="twice"):
        kernel.linearize_tangles(_columns([(0, "a", (), 0), (0, "a", (), 0)]))
    assert kernel.linearize_tangles(_columns([(0, "a", (), 0), (1, "a", (), 0)])).position.tolist() == [0, 0]


def test_columns_that_do_not_fit_together_are_refused() -> None:
    sound = _columns([(0, "a", (), 0), (0, "b", ("a",), 0)])
    for broken in (
        {"sequence": sound.sequence[:1]},
        {"ack_offsets": sound.ack_offsets[:2]},
        {"ack_offsets": np.array([0, 0, 2], np.int64)},
        {"commit_ids": sound.commit_ids[:, :31]},
    ):
        with pytest.raises(ValueError, match=r"length|bytes|span"):
            kernel.linearize_tangles(replace(sound, **broken))
