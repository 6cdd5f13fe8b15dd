"""Quorums: what they ask for, who may approve, and that approvals fall with their authors."""

import pytest

from protocol.formats.body import (
    Approve,
    Body,
    CouncilInit,
    DeviceGrant,
    Grant,
    Move,
    Permission,
    ProposeCheckpoint,
    ProposeRemoval,
    Quorum,
    Remove,
    RepoInit,
)
from protocol.formats.proofs import certify_repo
from protocol.ids import BranchId, CommitId
from tests.support.ids import as_commit_id
from tests.support.memberships import KEY, REPO, REPO_SEED, USERS, commit_id, make_commit, make_init
from verifier.membership import Membership
from verifier.operations import Right
from verifier.quorums import find_council_signers
from verifier.refusal import CommitRefused, Seniors

BRANCH = BranchId(b"b" * 32)
HEADS = (as_commit_id(b"h" * 32), as_commit_id(b"i" * 32))


class History:
    """A repo that ann founded; `do` gives the number of what somebody did after some numbers (default: the last)."""

    def __init__(self, init: RepoInit | None = None) -> None:
        self.membership = Membership(REPO)
        self._count = 0
        self.do("ann", init or make_init())

    def do(self, author: str, body: Body, *after: int) -> int:
        number = self._count
        acks = after or ((number - 1,) if number else ())
        commit = make_commit(number, author, acks)
        operation = self.membership.authorise_root_commit(commit, body, KEY)
        self.membership.add(operation, commit.acks)
        self._count += 1
        return number

    def admins(self, *names: str) -> None:
        for name in names:
            self.do("ann", Grant(USERS[name], Permission.ADMIN))

    def holds(self, name: str) -> Permission | None:
        return self.membership.now().permission(USERS[name])


def make_council() -> CouncilInit:
    """Make the init of a repo that ann, ben and cat founded, of whom two are its council."""
    init = make_init(("ann", "ben", "cat"))
    certificate = certify_repo(REPO_SEED, init.name, init.owners, 2)
    return CouncilInit(init.name, init.owners, certificate, init.states, 2)


def _quorum(*names: str, threshold: int, removals: bool = True) -> Quorum:
    return Quorum(tuple(sorted(USERS[name] for name in names)), threshold, removals)


def _exclude(name: str) -> Remove:
    return Remove(USERS[name], None, ())


@pytest.fixture
def history() -> History:
    """Make ann's repo with the admins ben, cat, dan and eve; two of ben, cat and dan must approve of removals."""
    history = History()
    history.admins("ben", "cat", "dan", "eve")
    history.do("ann", _quorum("ben", "cat", "dan", threshold=2))
    return history


@pytest.mark.parametrize(
    "author, body, says",
    [
        ("ben", _quorum("ben", threshold=1), "M13: naming"),
        ("ann", _quorum("ben", "cat", threshold=3), "threshold"),
        ("ann", _quorum("ben", "fay", threshold=1), "no member"),
        ("ann", Quorum((USERS["ben"], USERS["ben"]), 2, removals=True), "twice"),
        ("ben", Approve(commit_id(1)), "no such proposal"),
        ("ben", Approve(as_commit_id(b"?" * 32)), "no such proposal"),
        ("fay", ProposeRemoval(USERS["eve"], None), "M5"),
        ("ben", _exclude("eve"), "needs_quorum"),
        ("ann", _exclude("eve"), "needs_quorum"),
    ],
)
def test_what_the_rules_refuse(history: History, author: str, body: Body, says: str) -> None:
    with pytest.raises(CommitRefused, match=says):
        history.do(author, body)


def test_a_removal_needs_as_many_signers_as_the_quorum_says(history: History) -> None:
    proposal = history.do("eve", ProposeRemoval(USERS["cat"], None))
    with pytest.raises(CommitRefused, match="M14: no quorum in force names"):
        history.do("eve", Approve(commit_id(proposal)))
    history.do("ben", Approve(commit_id(proposal)))
    history.do("ben", Approve(commit_id(proposal)))
    with pytest.raises(CommitRefused, match="needs_quorum"):
        history.do("eve", _exclude("cat"))
    history.do("dan", Approve(commit_id(proposal)))
    with pytest.raises(CommitRefused, match="needs_quorum"):
        history.do("eve", Remove(USERS["cat"], Permission.READ, ()))
    with pytest.raises(CommitRefused, match="needs_quorum"):
        history.do("eve", _exclude("ben"))
    history.do("eve", _exclude("cat"))
    assert history.holds("cat") is None


def test_approvals_are_used_up_by_the_removal(history: History) -> None:
    proposal = history.do("eve", ProposeRemoval(USERS["cat"], None))
    history.do("ben", Approve(commit_id(proposal)))
    history.do("dan", Approve(commit_id(proposal)))
    history.do("eve", _exclude("cat"))
    history.do("ann", Grant(USERS["cat"], Permission.WRITE))
    with pytest.raises(CommitRefused, match="needs_quorum"):
        history.do("eve", _exclude("cat"))


def test_who_is_to_be_removed_does_not_use_up_the_approvals(history: History) -> None:
    proposal = history.do("eve", ProposeRemoval(USERS["cat"], None))
    history.do("ben", Approve(commit_id(proposal)))
    history.do("dan", Approve(commit_id(proposal)))
    history.do("cat", Remove(USERS["cat"], Permission.MANAGE, ()))
    history.do("eve", _exclude("cat"))
    assert history.holds("cat") is None


def test_who_leaves_asks_nobody_and_other_quorums_cover_no_removals(history: History) -> None:
    history.do("cat", _exclude("cat"))
    assert history.holds("cat") is None
    history.do("ann", _quorum("ben", threshold=1, removals=False))
    history.do("dan", _exclude("eve"))
    assert history.holds("eve") is None


def _backdated(history: History, name: str, by: str = "eve") -> int:
    """Have cat and dan exclude ben; ben backdates an approval of excluding somebody, as dan does, and eve does it."""
    start = history.do("eve", ProposeRemoval(USERS["ben"], None))
    history.do("cat", Approve(commit_id(start)))
    history.do("dan", Approve(commit_id(start)))
    history.do(by, _exclude("ben"))
    proposal = history.do("ben", ProposeRemoval(USERS[name], None), start)
    history.do("ben", Approve(commit_id(proposal)))
    history.do("dan", Approve(commit_id(proposal)))
    return history.do("eve", _exclude(name))


@pytest.mark.parametrize("by, is_held", [("eve", True), ("ann", False)])
def test_the_approvals_of_a_signer_go_by_who_is_senior_to_the_quorum(
    history: History, by: str, is_held: bool
) -> None:
    # Ben was excluded by the quorum, which is not senior to itself, or by ann, who named it.
    history.do("ann", Grant(USERS["fay"], Permission.WRITE))
    removal = _backdated(history, "fay", by)
    now = history.membership.now()
    operation = history.membership.operations[commit_id(removal)]
    assert (operation.commit_id in now.counting, now.counts(operation)) == (is_held, is_held)
    assert (history.holds("fay"), history.holds("ben")) == (None if is_held else Permission.WRITE, None)
    quorum = Right(commit_id(5), Permission.OWNER)
    assert now.acts_of(operation) == ({quorum} if is_held else frozenset())


def test_who_are_excluded_by_the_approvals_of_one_another_are_both_out(history: History) -> None:
    _backdated(history, "cat")
    assert (history.holds("cat"), history.holds("ben")) == (None, None)


def test_a_writer_publishes_what_a_quorum_removes_and_a_reader_does_not(history: History) -> None:
    # The quorum's right is senior to every admin's, whoever uses it; without approvals a writer removes nobody.
    history.do("ann", Grant(USERS["fay"], Permission.WRITE))
    history.do("ann", Grant(USERS["gus"], Permission.READ))
    proposal = history.do("fay", ProposeRemoval(USERS["ben"], None))
    with pytest.raises(CommitRefused, match="needs_quorum"):
        history.do("fay", _exclude("ben"))
    history.do("cat", Approve(commit_id(proposal)))
    history.do("dan", Approve(commit_id(proposal)))
    with pytest.raises(
        CommitRefused, match="not_permitted: M7: removing another needs the permission to write"
    ):
        history.do("gus", _exclude("ben"))
    history.do("fay", _exclude("ben"))
    assert history.holds("ben") is None


def test_what_is_senior_to_the_quorum_is_refused_before_signers_are_asked(history: History) -> None:
    with pytest.raises(CommitRefused, match="M7: what it would take is not junior") as caught:
        history.do("eve", _exclude("ann"))
    assert caught.value.seniors == Seniors(USERS["ann"], ())


def test_the_first_approved_proposal_in_canonical_order_is_what_a_removal_rests_on(history: History) -> None:
    # Nobody names it, so it is the same on every node whatever came first.
    start = history.do("eve", ProposeRemoval(USERS["cat"], None))
    other = history.do("ben", ProposeRemoval(USERS["cat"], None), start - 1)
    first, second = sorted((start, other), key=commit_id)  # of one rank
    approvals = [history.do(name, Approve(commit_id(first)), start, other) for name in ("ben", "dan")]
    approvals += [history.do(name, Approve(commit_id(second)), start, other) for name in ("dan", "ben")]
    again = history.do("dan", Approve(commit_id(first)), approvals[1])
    removal = history.do("eve", _exclude("cat"), approvals[0], *approvals[2:], again)
    for demands in history.membership.operations[commit_id(removal)].demands:
        (demand,) = demands.of_each
        assert set(demand.approvals) == {commit_id(one) for one in approvals[:2]}


def test_a_proposal_need_not_count_and_a_removal_that_does_not_uses_it_up(history: History) -> None:
    history.do("ann", Grant(USERS["fay"], Permission.ADMIN))
    start = history.do("ann", Grant(USERS["gus"], Permission.WRITE))
    proposal = history.do("fay", ProposeRemoval(USERS["cat"], None))
    history.do("ben", Approve(commit_id(proposal)))
    approved = history.do("dan", Approve(commit_id(proposal)))
    asked = history.do("ann", ProposeRemoval(USERS["fay"], None), start)
    history.do("ben", Approve(commit_id(asked)))
    history.do("dan", Approve(commit_id(asked)))
    excluded = history.do("ann", _exclude("fay"))  # without having seen the proposal
    assert not history.membership.now().counts(history.membership.operations[commit_id(proposal)])
    removal = history.do("gus", _exclude("cat"), approved, excluded)
    assert history.holds("cat") is None
    history.do("ann", Grant(USERS["cat"], Permission.WRITE), removal)
    with pytest.raises(CommitRefused, match="needs_quorum"):
        history.do("gus", _exclude("cat"))


def test_of_quorums_that_were_named_at_the_same_time_each_must_approve() -> None:
    history = History()
    history.admins("ben", "cat", "eve")
    start = history.do("ann", Grant(USERS["dan"], Permission.OWNER))
    history.do("ann", _quorum("ben", threshold=1), start)
    other = history.do("dan", _quorum("cat", threshold=1), start)
    proposal = history.do("eve", ProposeRemoval(USERS["eve"], None), other - 1, other)
    history.do("ben", Approve(commit_id(proposal)))
    with pytest.raises(CommitRefused, match="needs_quorum"):
        history.do("ben", _exclude("eve"))
    history.do("cat", Approve(commit_id(proposal)))
    history.do("ben", _exclude("eve"))
    assert history.holds("eve") is None


def test_who_was_an_admin_before_can_still_backdate_to_before_the_quorum(history: History) -> None:
    # docs/understanding/membership.md says so: name the quorum before the admins. Who became one after it cannot.
    history.do("ben", _exclude("eve"), 4)
    assert history.holds("eve") is None
    late = history.do("ann", Grant(USERS["fay"], Permission.ADMIN), 5)
    for past in (late, 4):
        with pytest.raises(CommitRefused):
            history.do("fay", _exclude("cat"), past)


def test_a_checkpoint_is_what_was_proposed_and_approved(history: History) -> None:
    proposal = history.do("eve", ProposeCheckpoint(BRANCH, HEADS))
    asked = commit_id(proposal)
    before = history.do("ben", Approve(asked))
    after = history.do("cat", Approve(asked))
    check = history.membership.authorise_checkpoint

    def refused(
        says: str, proposal_id: CommitId, branch: BranchId, heads: tuple[CommitId, ...], seen: int
    ) -> None:
        with pytest.raises(CommitRefused, match=says):
            check(proposal_id, branch, heads, (commit_id(seen),))

    check(asked, BRANCH, HEADS[::-1], (commit_id(after),))
    repeating = history.do("eve", ProposeCheckpoint(BRANCH, HEADS + HEADS))
    approved = [history.do(signer, Approve(commit_id(repeating))) for signer in ("ben", "cat")]
    check(commit_id(repeating), BRANCH, HEADS, (commit_id(approved[-1]),))
    refused("needs_quorum", asked, BRANCH, HEADS, before)
    refused("bad_checkpoint", asked, BRANCH, HEADS[:1], after)
    refused("bad_checkpoint", asked, BranchId(b"o" * 32), HEADS, after)
    refused("unknown_proposal", asked, BRANCH, HEADS, proposal - 1)
    refused("unknown_proposal", commit_id(before), BRANCH, HEADS, after)


@pytest.fixture
def council() -> History:
    """Make a repo that ann, ben and cat founded, of whom two together are above each; dan is an admin."""
    history = History(make_council())
    history.admins("dan")
    return history


def _approve(history: History, user: str, *names: str) -> int:
    """Propose to exclude a user, and approve by these; gives the last number. Raises CommitRefused."""
    proposal = history.do("dan", ProposeRemoval(USERS[user], None))
    return [history.do(name, Approve(commit_id(proposal))) for name in names][-1]


def _move(history: History, author: str, user: str, credential: int) -> int:
    """Pass a place on to a device."""
    if history.holds(user) is None:
        history.do(author, DeviceGrant(USERS[user], Permission.READ))
    return history.do(author, Move(USERS[user], commit_id(credential)))


def test_who_has_a_founders_place_signs_for_that_founder(council: History) -> None:
    moved = _move(council, "ann", "tab", 0)
    _move(council, "tab", "pad", moved)
    with pytest.raises(CommitRefused, match="nor does the council"):
        _approve(council, "cat", "dan")
    signers = find_council_signers(council.membership.operations, council.membership.now())
    assert signers == {
        USERS[name]: {USERS[whose]} for name, whose in (("ben", "ben"), ("cat", "cat"), ("pad", "ann"))
    }
    _approve(council, "cat", "ben")
    with pytest.raises(CommitRefused, match="needs_quorum"):
        council.do("dan", _exclude("cat"))
    _approve(council, "cat", "ben", "pad")
    council.do("dan", _exclude("cat"))
    assert council.holds("cat") is None


def test_two_who_have_one_founders_place_sign_for_one(council: History) -> None:
    for device in ("tab", "pad"):
        council.do("ann", DeviceGrant(USERS[device], Permission.READ))
    before = council.do("ann", Grant(USERS["eve"], Permission.READ))
    moves = [council.do("ann", Move(USERS[device], commit_id(0)), before) for device in ("tab", "pad")]
    council.do("dan", Grant(USERS["fay"], Permission.READ), *moves)
    _approve(council, "cat", "tab", "pad")
    with pytest.raises(CommitRefused, match="needs_quorum"):
        council.do("dan", _exclude("cat"))


def test_who_has_two_founders_places_signs_for_two(council: History) -> None:
    council.do("ann", DeviceGrant(USERS["tab"], Permission.READ))
    before = council.do("ben", DeviceGrant(USERS["tab"], Permission.WRITE), 1)
    council.do("dan", Grant(USERS["eve"], Permission.READ), 2)
    moves = [
        council.do("ann", Move(USERS["tab"], commit_id(0)), 2),
        council.do("ben", Move(USERS["tab"], commit_id(0)), before),
    ]
    council.do("dan", Grant(USERS["fay"], Permission.READ), *moves)
    _approve(council, "cat", "tab")
    council.do("dan", _exclude("cat"))
    assert council.holds("cat") is None


def test_a_founder_who_moved_signs_no_more(council: History) -> None:
    _move(council, "ann", "tab", 0)
    with pytest.raises(CommitRefused, match="M14: approving"):
        _approve(council, "cat", "ann")
