"""Main is one branch on all nodes: a function of the statements that are here, whatever order they came in."""

from itertools import permutations
from typing import Final

import pytest

from protocol.crypto.keys import BlockKey
from protocol.formats.block import Reference
from protocol.formats.body import Body, BranchAdd, BranchEdit, Grant, Permission, Remove, Tag
from protocol.ids import BranchId, CommitId
from tests.support.ids import as_commit_id, as_object_id
from tests.support.memberships import KEY, REPO, USERS, commit_id, make_commit, make_init
from verifier.membership import Membership
from verifier.names import find_branch_names, find_tags
from verifier.refusal import CommitRefused

ROOTS: Final = {name: as_commit_id(name.encode() * 32) for name in "mabcu"}
BRANCHES: Final = {name: BranchId(root) for name, root in ROOTS.items()}

Said = tuple[str, Body, tuple[int, ...]]
"""Author, body, and numbers of what it follows: 0 is the init, the first one is 1."""


def point(name: str, commit: CommitId | None = None) -> Tag:
    """Return what points main at a branch."""
    return Tag("main", BRANCHES[name], commit or ROOTS[name])


def add(name: str, called: str) -> BranchAdd:
    """Return what adds a branch."""
    return BranchAdd(BRANCHES[name], called, Reference(as_object_id(ROOTS[name]), BlockKey(b"k" * 32)))


BEGIN: Final[list[Said]] = [
    ("ann", add("m", "main"), (0,)),
    ("ann", add("a", "a"), (1,)),
    ("ann", add("b", "b"), (2,)),
    ("ann", Grant(USERS["ben"], Permission.MANAGE), (3,)),
    ("ann", Grant(USERS["cat"], Permission.WRITE), (4,)),
]
"""Five commits: main, a and b are there; ben may manage, and cat write."""


def main_of(said: list[Said], order: list[int] | None = None) -> str | None:
    """Return which branch is main once all this has come, in this order, after what is in BEGIN."""
    membership = grow(said, order)
    assert "main" not in find_tags(membership)
    mains = [branch for branch, shown in find_branch_names(membership).items() if shown.is_main]
    assert len(mains) <= 1
    return next((name for name in BRANCHES if BRANCHES[name] in mains), None)


def grow(said: list[Said], order: list[int] | None = None) -> Membership:
    """Return the membership once all this has come, in this order, after what is in BEGIN."""
    membership = Membership(REPO)
    init = make_commit(0, "ann", ())
    membership.add(membership.authorise_root_commit(init, make_init(), KEY), ())
    whole = [*BEGIN, *said]
    for number in [*range(1, len(BEGIN) + 1), *(order or range(len(BEGIN) + 1, len(whole) + 1))]:
        author, body, acks = whole[number - 1]
        commit = make_commit(number, author, acks)
        membership.add(membership.authorise_root_commit(commit, body), commit.acks)
        find_branch_names(membership)  # asked for after each step: nothing of it is kept
    return membership


@pytest.mark.parametrize(
    "said, expected",
    [
        ([], "m"),
        ([("ann", point("a"), (5,))], "a"),
        ([("ann", point("a"), (5,)), ("ben", point("b"), (6,))], "b"),
        # One that is taken back, or pointed at the earlier one.
        ([("ann", point("a"), (5,)), ("ann", Tag("main", BRANCHES["a"], None), (6,))], "m"),
        ([("ann", point("a"), (5,)), ("ann", point("m"), (6,))], "m"),
        # Its author is removed by who had not seen it: the one before counts again.
        ([("ann", point("a"), (5,)), ("ben", point("b"), (6,)), ("ann", Remove(USERS["ben"], None, ()), (6,))], "a"),
        # One at a branch that nobody has added, and one at a branch that ends.
        ([("ann", point("a"), (5,)), ("ann", point("u"), (6,))], "a"),
        ([("ann", point("b"), (5,)), ("ann", point("a"), (6,)), ("ann", BranchEdit(BRANCHES["a"], None, True), (7,))], "b"),
        ([("ann", point("a"), (5,)), ("ann", BranchEdit(BRANCHES["a"], None, True), (6,))], "m"),
        (
            [
                ("ann", point("a"), (5,)),
                ("ann", BranchEdit(BRANCHES["a"], None, True), (6,)),
                ("ann", BranchEdit(BRANCHES["a"], None, False), (7,)),
            ],
            "a",
        ),
        # A branch is added only later, or elsewhere at the same time.
        ([("ann", point("c"), (5,)), ("ben", add("c", "c"), (5,))], "c"),
        # Without a pointing: the first of the name that is not archived, or none.
        ([("ann", BranchEdit(BRANCHES["a"], "main", None), (5,))], "m"),
        ([("ann", BranchEdit(BRANCHES["m"], "old", None), (5,))], None),
        ([("ann", BranchEdit(BRANCHES["m"], "old", None), (5,)), ("ann", point("m"), (6,))], "m"),
        # A commit of the branch says the same as its first: the branch is what counts.
        ([("ann", point("a", commit_id(77)), (5,))], "a"),
    ],
)  # fmt: skip
def test_main_is_where_the_last_pointing_leads(said: list[Said], expected: str | None) -> None:
    assert main_of(said) == expected


def test_concurrent_pointings_come_to_one_in_every_order_of_arrival() -> None:
    said: list[Said] = [
        ("ann", point("a"), (5,)),
        ("ben", point("b"), (5,)),
        ("ann", point("m"), (5,)),
        ("ben", Tag("main", BRANCHES["a"], None), (5,)),
        ("ann", add("c", "c"), (5,)),
    ]
    assert len({main_of(said, list(order)) for order in permutations(range(6, 11))}) == 1


@pytest.mark.parametrize("is_first", [True, False])
def test_of_several_additions_of_a_branch_the_last_that_counts_names_it(is_first: bool) -> None:
    by_ben, by_ann = ("ben", add("c", "by ben"), (5,)), ("ann", add("c", "by ann"), (5,))
    both: list[Said] = [by_ben, by_ann] if is_first else [by_ann, by_ben]
    membership = grow(both)
    operations = membership.operations
    last = list(operations.in_order(operations.branch_adds(BRANCHES["c"])))[-1].body
    assert isinstance(last, BranchAdd)
    assert find_branch_names(membership)[BRANCHES["c"]].name == last.name
    removed = grow([*both, ("ann", Remove(USERS["ben"], None, ()), (5,))])
    assert find_branch_names(removed)[BRANCHES["c"]].name == "by ann"


def test_who_may_not_manage_points_main_nowhere() -> None:
    with pytest.raises(CommitRefused):
        main_of([("cat", point("a"), (5,))])


def test_a_foreign_branch_of_the_same_name_is_not_main() -> None:
    foreign = BranchId(b"f" * 32)
    assert main_of([("ann", Tag("main", foreign, CommitId(ROOTS["a"])), (5,))]) == "m"
