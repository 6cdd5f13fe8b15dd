"""Tangles at sizes where recursion or a walk over everything would show, and what never fits."""

from collections.abc import Sequence

import pytest

from protocol.ids import CommitId
from tests.support.ids import as_commit_id
from verifier.tangle import Tangle

CHAIN_LENGTH = 50_000
DIAMOND_COUNT = 10_000


def _id(number: int) -> CommitId:
    return as_commit_id(number.to_bytes(32, "big"))


class _Counted(Tangle):
    """Counts the commits whose edges were looked at."""

    visits = 0

    def _previous(self, num: int) -> Sequence[int]:
        self.visits += 1
        return super()._previous(num)


@pytest.fixture(scope="module")
def chain() -> _Counted:
    tangle = _Counted(_id(0))
    for number in range(1, CHAIN_LENGTH):
        tangle.add(_id(number), (_id(number - 1),))
    return tangle


@pytest.fixture(scope="module")
def ladder() -> _Counted:
    """Make diamonds one above the other: `3 n` is the top of one and the foot of the next."""
    tangle = _Counted(_id(0))
    for foot in range(0, 3 * DIAMOND_COUNT, 3):
        tangle.add(_id(foot + 1), (_id(foot),))
        tangle.add(_id(foot + 2), (_id(foot),))
        tangle.add(_id(foot + 3), (_id(foot + 1), _id(foot + 2)))
    return tangle


def test_a_long_chain_answers_at_once(chain: _Counted) -> None:
    last = CHAIN_LENGTH - 1
    chain.visits = 0
    assert chain.tips() == [_id(last)]
    assert chain.precedes(_id(0), _id(last))
    assert chain.precedes(_id(3), _id(last))
    assert chain.precedes(_id(CHAIN_LENGTH // 2), _id(last))
    assert not chain.precedes(_id(last), _id(CHAIN_LENGTH // 2))
    assert [next(order) for order in [chain.in_order()] * 3] == [_id(0), _id(1), _id(2)]
    assert chain.visits < 10


@pytest.mark.slow
def test_a_long_chain_is_walked_without_recursion(chain: _Counted) -> None:
    assert sum(1 for _ in chain.in_order()) == CHAIN_LENGTH


def test_a_ladder_of_diamonds_answers_at_once(ladder: _Counted) -> None:
    top = 3 * DIAMOND_COUNT
    middle = top // 2
    ladder.visits = 0
    assert ladder.tips() == [_id(top)]
    assert ladder.precedes(_id(1), _id(top))
    assert ladder.precedes(_id(2), _id(middle + 1))
    assert not ladder.precedes(_id(middle + 1), _id(middle + 2))
    assert not ladder.precedes(_id(middle + 2), _id(middle + 1))
    assert ladder.precedes(_id(middle + 1), _id(top - 1))
    assert ladder.visits < 30


def test_a_ladder_of_diamonds_is_walked_without_recursion(ladder: _Counted) -> None:
    top = 3 * DIAMOND_COUNT
    assert sum(1 for _ in ladder.in_order()) == top + 1


@pytest.mark.slow
def test_a_long_history_that_waits_for_one_commit_enters_whole() -> None:
    tangle = Tangle(_id(0), pending_max=CHAIN_LENGTH)
    for number in range(CHAIN_LENGTH, 1, -1):
        assert tangle.add(_id(number), (_id(number - 1),)) == ()
    assert tangle.missing() == [_id(1)]
    entered = tangle.add(_id(1), (_id(0),))
    assert entered == tuple(map(_id, range(1, CHAIN_LENGTH + 1)))
    assert tangle.pending_count == 0


def test_two_long_histories_meet_without_a_walk() -> None:
    tangle = _Counted(_id(0))
    for number in range(1, 20_001):
        tangle.add(_id(number), (_id(max(number - 2, 0)),))  # odd and even ones
    tangle.add(_id(20_001), (_id(19_999), _id(20_000)))
    tangle.visits = 0
    assert tangle.precedes(_id(17), _id(20_001))
    assert tangle.precedes(_id(18), _id(20_001))
    assert not tangle.precedes(_id(17), _id(20_000))
    assert tangle.visits < 10


def test_what_can_never_enter_waits_and_raises_nothing() -> None:
    tangle = Tangle(_id(0))
    assert tangle.add(_id(1), (_id(1),)) == (), "follows itself"
    assert tangle.add(_id(2), (_id(3),)) == tangle.add(_id(3), (_id(2),)) == (), "a cycle"
    assert tangle.add(_id(4), ()) == (), "a second root"
    assert tangle.add(_id(0), (_id(1),)) == (), "the root follows nothing"
    assert tangle.add(_id(5), (_id(0), _id(0))) == (_id(5),)
    assert tangle.previous(_id(5)) == [_id(0)]
    assert (len(tangle), tangle.pending_count, tangle.missing()) == (2, 3, [])
    assert _id(4) not in tangle
    with pytest.raises(KeyError):
        tangle.precedes(_id(4), _id(5))


def test_one_more_than_may_wait_is_not_kept_and_may_come_again() -> None:
    tangle = Tangle(_id(0), pending_max=2)
    for number in (2, 3, 4):
        tangle.add(_id(number), (_id(number - 1),))
    assert (tangle.pending_count, tangle.missing()) == (2, [_id(1)])
    assert tangle.add(_id(1), (_id(0),)) == (_id(1), _id(2), _id(3))
    assert tangle.add(_id(4), (_id(3),)) == (_id(4),)
