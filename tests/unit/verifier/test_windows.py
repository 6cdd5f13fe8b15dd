"""What of a window is confirmed, and what hostile writers, sources and witnesses make of it."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.histories.real_commits import Founded, found, make_commits
from tests.histories.tales import FOUNDING, Tale
from tests.support.ids import as_commit_id
from tests.support.reference_histories import ROOT, Step
from tests.support.reference_membership import ADMIN, WRITE
from tests.support.windows import confirm_window, open_copy

_ROOT = (
    Step(5, "ann", "grant", acks=(3,), sequence=4, previous=3, skip=0, user="ben", level=ADMIN),
    Step(6, "ann", "grant", acks=(5,), sequence=5, previous=5, user="cat", level=WRITE),
)
_REMOVED = Step(7, "ann", "remove", acks=(6,), sequence=6, previous=6, user="cat")


def _post(number: int, author: str, *acks: int) -> Step:
    return Step(number, author, "post", "main", acks, (6,))


_LINE = (
    _post(10, "ann", 2),
    _post(11, "cat", 10),
    _post(12, "cat", 11),
    _post(13, "ann", 12),
    _post(14, "cat", 13),
)
"""A branch by an owner and a writer; 20 is a post that the writer keeps to itself."""


@dataclass(frozen=True)
class Case:
    """Posts after the line, what a source sends, and what becomes of it."""

    sent: set[int]
    listed: set[int]
    waiting: set[int] = field(default_factory=set)
    rejected: set[int] = field(default_factory=set)
    more: tuple[Step, ...] = ()
    ranks: dict[int, int] = field(default_factory=dict)
    is_removed: bool = False
    is_withheld: bool = False
    """Whether a source keeps the removal back."""
    vouched: set[int] = field(default_factory=set)
    by_word: set[int] = field(default_factory=set)


_FLOATING = (_post(20, "cat", 2), _post(21, "cat", 20), _post(22, "cat", 21))
_FAULTY = (_post(20, "cat", 14), _post(21, "cat", 14, 20))
CASES = {
    "all_of_it": Case({10, 11, 12, 13, 14}, {10, 11, 12, 13, 14}),
    "the_newest": Case({12, 13, 14}, {12, 13, 14}),
    "what_stands_on_a_middle_that_is_left_out": Case({10, 11, 12, 14}, {10, 11, 12}, {14}),
    "nobody_who_is_trusted": Case({11, 12, 14}, set(), {11, 12, 14}),
    "a_floating_chain_at_a_huge_rank": Case(
        {13, 14, 21, 22}, {13, 14}, {21, 22}, more=_FLOATING, ranks={20: 2**50, 21: 2**50 + 1, 22: 2**50 + 2}
    ),
    "a_head_that_leads_nowhere": Case({14, 21}, set(), {14, 21}, more=_FAULTY),
    "a_false_rank": Case({13, 14, 20}, {13, 14}, set(), {20}, more=_FAULTY, ranks={20: 100}),
    "a_false_rank_whose_past_is_not_here": Case({13, 20}, {13}, {20}, more=_FAULTY, ranks={20: 100}),
    "its_own_rejected_commit_beside_a_good_one": Case(
        {13, 14, 20, 21}, {13, 14}, set(), {20, 21}, more=_FAULTY, ranks={20: 100}
    ),
    "an_ack_of_another_branch": Case({13, 15}, {13}, set(), {15}, more=(_post(15, "cat", 4),)),
    "posts_of_who_was_excluded": Case({10, 11, 12, 13, 14}, {10, 13}, {11, 12, 14}, is_removed=True),
    "posts_of_who_was_excluded_while_that_is_withheld_and_of_who_knew_it": Case(
        {12, 13, 14, 16},
        {12, 13, 14},
        {16},
        more=(Step(16, "ann", "post", "main", (14,), (7,)),),
        is_removed=True,
        is_withheld=True,
    ),
    "what_stands_before_the_heads_that_a_link_names": Case(
        {11, 12, 14}, {11, 12}, {14}, vouched={12}, by_word={11, 12}
    ),
    "what_a_witness_confirms_needs_no_link": Case({12, 13, 14}, {12, 13, 14}, vouched={14}, by_word=set()),
    "a_link_that_names_what_nobody_sends": Case({11, 12, 14}, set(), {11, 12, 14}, vouched={13}),
    "a_link_that_names_a_post_above_a_fault": Case(
        {14, 20, 21}, set(), {14}, {20, 21}, more=_FAULTY, ranks={20: 100}, vouched={21}
    ),
    "the_same_while_the_fault_is_hidden": Case(
        {14, 21}, {14, 21}, more=_FAULTY, ranks={20: 100, 21: 101}, vouched={21}, by_word={14, 21}
    ),
    "a_link_that_names_posts_of_who_was_excluded": Case(
        {11, 12, 14}, set(), {11, 12, 14}, is_removed=True, vouched={14}, by_word={14}
    ),
    "a_witness_who_lies_is_believed_until_the_fault_is_here": Case(
        {13, 14, 30}, {13, 14, 30}, more=(*_FAULTY, _post(30, "ben", 20)), ranks={20: 100}
    ),
    "a_witness_who_lies_and_the_fault": Case(
        {14, 20, 30, 31},
        set(),
        {14, 31},
        {20, 30},
        more=(*_FAULTY, _post(30, "ben", 20), _post(31, "ben", 12)),
        ranks={20: 100},
    ),
}


@pytest.fixture(scope="module")
def founded(tmp_path_factory: pytest.TempPathFactory) -> Founded:
    return found(tmp_path_factory.mktemp("founded") / "founded")


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_window_is_confirmed_by_who_is_trusted_and_by_nobody_else(
    founded: Founded, tmp_path: Path, case: Case
) -> None:
    of_root = (*_ROOT, _REMOVED) if case.is_removed else _ROOT
    commits = make_commits(
        founded, Tale(frozenset(), (*FOUNDING, *of_root, *_LINE, *case.more)), dict(case.ranks)
    )
    known = _ROOT if case.is_withheld else of_root
    of_root_items = [commits.items[step.number] for step in known if step.branch == ROOT]
    with open_copy(founded, tmp_path / "partial", of_root_items) as partial:
        items = [commits.items[number] for number in case.sent]
        heads = {as_commit_id(commits.ids[one]) for one in case.vouched & commits.ids.keys()}
        standing = confirm_window(partial, items, "main", frozenset(), heads)
    numbers = {as_commit_id(raw): number for number, raw in commits.ids.items()}
    assert [numbers[one] for one in standing.listed] == sorted(case.listed)
    assert {numbers[one] for one in standing.waiting} == case.waiting
    assert {numbers[one] for one in standing.rejected} == case.rejected
    assert {numbers[one] for one in standing.by_word} == case.by_word
