"""Choice of root branch heads, of too many to ack: the commit is rightful, whatever some of them take away."""

import random
from collections.abc import Callable
from itertools import count

import pytest

from node.authoring import choosing_heads
from node.authoring.choosing_heads import choose_heads
from protocol.ids import CommitId
from protocol.limits.formats import ACK_COUNT_MAX
from tests.support.ids import as_commit_id

HEADS = [as_commit_id(number.to_bytes(32, "big")) for number in range(10 * ACK_COUNT_MAX)]
GOOD, BAD, BACK = HEADS[700], HEADS[0], HEADS[900]


def has_good(acks: tuple[CommitId, ...]) -> bool:
    """Return True if the author may write, by one head alone."""
    return GOOD in acks


def is_given_back(acks: tuple[CommitId, ...]) -> bool:
    """Another head takes that away, and a third one gives it back."""
    return GOOD in acks and (BAD not in acks or BACK in acks)


def needs_all_three(acks: tuple[CommitId, ...]) -> bool:
    """Return True if all three heads are acked, from which the rights follow together."""
    return {GOOD, BAD, BACK} <= {*acks}


@pytest.mark.parametrize("is_rightful", [has_good, is_given_back, needs_all_three])
def test_as_many_as_a_commit_can_ack(is_rightful: Callable[[tuple[CommitId, ...]], bool]) -> None:
    chosen = choose_heads(HEADS, is_rightful)
    assert is_rightful(chosen)
    assert len(chosen) == len({*chosen}) == ACK_COUNT_MAX


def test_few_questions_where_one_head_suffices() -> None:
    asked = count()

    def is_rightful(acks: tuple[CommitId, ...]) -> bool:
        next(asked)
        return has_good(acks)

    choose_heads(HEADS, is_rightful)
    assert next(asked) < 30


def test_what_would_take_the_right_away_is_left_out() -> None:
    # Every second head does, and none gives it back.
    harmful = {*HEADS[::2]} - {GOOD}
    chosen = choose_heads(HEADS, lambda acks: GOOD in acks and harmful.isdisjoint(acks))
    assert harmful.isdisjoint(chosen)
    assert len(chosen) == ACK_COUNT_MAX


def test_one_head_alone_where_all_together_are_wrong() -> None:
    assert choose_heads([BAD, GOOD], lambda acks: acks == (GOOD,)) == (GOOD,)


def test_none_where_it_cannot_be() -> None:
    assert choose_heads(HEADS, lambda _: False) == ()
    assert choose_heads([], lambda _: True) == ()
    assert choose_heads(HEADS, lambda acks: {*acks} == {*HEADS}) == ()


def test_random_needs_and_harms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing_heads, "ACK_COUNT_MAX", 6)
    for seed in range(200):
        chance = random.Random(seed)
        heads = HEADS[: chance.randint(1, 30)]
        needed = {*chance.sample(heads, min(len(heads), chance.randint(0, 3)))}
        pairs = [tuple(chance.choices(heads, k=2)) for _ in range(chance.randint(0, 5))]

        def is_rightful(acks: tuple[CommitId, ...]) -> bool:
            return needed <= {*acks} and all(one not in acks or other in acks for one, other in pairs)  # noqa: B023  # asked now

        chosen = choose_heads(heads, is_rightful)
        assert len(chosen) <= 6
        assert not chosen or is_rightful(chosen)
