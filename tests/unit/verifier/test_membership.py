"""The membership rules: named cases with their outcomes, and histories against the reference, in any order of arrival."""

import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from protocol.formats.commit import Commit
from protocol.ids import CommitId
from tests.support.memberships import (
    NAME_OF,
    NAMES,
    USERS,
    Step,
    Twins,
    antichains,
    commit_id,
    make_commit,
    parse,
    replay,
)
from tests.support.reference_membership import ADMIN, MANAGE, OWNER, READ, WRITE, Right
from verifier.membership import Membership
from verifier.operations import Operation
from verifier.refusal import CommitRefused

STORIES = Path(__file__).parents[2] / "verdicts/scenarios.txt"
SCENARIO = re.compile(
    r"\*\*(?P<title>[^*]+)\.\*\*\n\n```\n(?P<steps>[^`]+?)(?:refused: (?P<refused>[\d ]+)\n)?"
    r"members: (?P<members>[a-z ]+)\n```"
)
CASES = {
    found["title"]: (
        found["steps"],
        [int(number) for number in (found["refused"] or "").split()],
        found["members"].split(),
    )
    for found in SCENARIO.finditer(STORIES.read_text(encoding="utf-8"))
}
"""Each: a history (`ann` founded the repo), which of its operations are refused, and who is a member after it."""
REFUSED = {
    "a_stranger_grants": ("ann . < 0", "ben + cat read < 1"),
    "a_writer_grants": ("ann + ben write < 0", "ben + cat read < 1"),
    "an_admin_grants_owner": ("ann + ben admin < 0", "ben + cat owner < 1"),
    "one_raises_oneself": ("ann + ben admin < 0", "ben + ben owner < 1"),
    "what_is_held_is_granted": ("ann + ben admin < 0", "ann + ben write < 1"),
    "an_admin_removes_an_owner": (
        "ann + ben owner < 0\nann + cat admin < 1",
        "cat - ben < 2",
    ),
    "an_owner_removes_the_founder": ("ann + ben owner < 0", "ben - ann < 1"),
    "a_junior_removes_a_senior": ("ann + ben admin < 0\nann + cat admin < 1", "cat - ben < 2"),
    "an_admin_removes_an_equal": ("ann + ben admin < 0\nann + cat admin < 0", "ben - cat < 1 2"),
    "one_senior_right_is_not_enough": (
        "ann + ben admin < 0\nann + cat admin < 1\nann + cat owner < 2",
        "ben - cat < 3",
    ),
    "a_junior_demotes_a_senior": ("ann + ben admin < 0\nann + cat admin < 1", "cat - ben write < 2"),
    "a_writer_removes_a_reader": ("ann + ben write < 0\nann + cat read < 1", "ben - cat < 2"),
    "an_admin_invites_to_manage": ("ann + ben admin < 0", "ben invite manage < 1"),
    "a_stranger_is_removed": ("ann . < 0", "ann - ben < 1"),
    "the_removed_goes_on": ("ann + ben admin < 0\nann - ben < 1", "ben . < 2"),
    "a_reader_gives_a_device_more": ("ann + ben read < 0", "ben * cat write < 1"),
    "a_device_has_a_device": ("ann + ben write < 0\nben * cat write < 1", "cat * dan read < 2"),
    "a_device_removes_its_person": ("ann + ben admin < 0\nben * cat admin < 1", "cat - ben < 2"),
    "a_device_removes_another": (
        "ann + ben write < 0\nben * cat write < 1\nben * dan write < 2",
        "cat - dan < 3",
    ),
    "a_writer_removes_what_an_admin_gave": (
        "ann + ben write < 0\nann + cat read < 1\nben * cat write < 2",
        "ben - cat < 3",
    ),
    "somebody_else_removes_a_device": (
        "ann + ben write < 0\nann + dan write < 1\nben * cat write < 2",
        "dan - cat < 3",
    ),
    "a_reader_writes": ("ann + ben read < 0", "ben . < 1"),
}
OPERATIONS = int(os.environ.get("RAVEL_OPERATIONS", "4"))
"""Operations in each history of the exhaustive test: `make histories` takes 5."""
LEVELS = (READ, WRITE, MANAGE, ADMIN, ADMIN, ADMIN, OWNER)


@pytest.mark.parametrize("name", CASES)
def test_named_case(name: str) -> None:
    description, refused, members = CASES[name]
    assert sorted(replay(parse(description), refused).check()) == members


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    before, step = REFUSED[name]
    twins = replay(parse(before))
    assert not twins.take(parse(f"{before}\n{step}")[-1])


def test_all_scenarios_are_read() -> None:
    assert len(CASES) == STORIES.read_text(encoding="utf-8").count("members: ") > 20


@pytest.mark.parametrize("timestamp, is_taken", [(99, True), (100, False), (101, False)])
def test_a_join_is_dated_before_the_expiry(timestamp: int, is_taken: bool) -> None:
    twins = replay([])
    twins.real.add(*_invite(twins.real, uses=1, expires_at=100))
    commit = _dated(make_commit(2, "ben", (1,)), timestamp)
    join = Step("ben", "join", "ben", 0, (1,), target=1).body()
    if is_taken:
        twins.real.authorise_root_commit(commit, join)
    else:
        with pytest.raises(CommitRefused, match="invitation_expired"):
            twins.real.authorise_root_commit(commit, join)


def test_a_use_is_a_user_and_who_has_joined_joins_again() -> None:
    # Also when no use is left; and joins that do not count take none.
    twins = replay([])
    assert twins.take(Step("ann", "invite", "ann", WRITE, (0,), uses=2))
    for count, name in enumerate(("ben", "ben", "cat", "ben", "cat")):
        assert twins.take(Step(name, "join", name, 0, (1 + count,), 1))
    assert not twins.take(Step("dan", "join", "dan", 0, (6,), 1))
    assert twins.take(Step("dan", "join", "dan", 0, (2,), 1)), "unseen, a third use is not to be helped"
    assert sorted(twins.check()) == ["ann", "ben", "cat", "dan"]


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_order_of_arrival_does_not_matter(name: str) -> None:
    description, refused, members = CASES[name]
    twins = replay(parse(description), refused)
    for seed in range(20):
        assert sorted(twins.check_order(_any_order(Random(seed), twins))) == members


@pytest.mark.parametrize("count", [10, 20])
def test_an_arrival_asks_each_right_once_that_rests_on_it(count: int) -> None:
    # Each of n admins excludes the next, the most junior first: the worst found, n + 1 questions for one arrival.
    names = tuple(f"user {number}" for number in range(count + 1))
    twins = _appoint(names)
    asked = []
    for number in reversed(range(count)):
        before = twins.real.questions_asked
        assert twins.take(Step(names[number], "remove", names[number + 1], 0, (count,)))
        asked.append(twins.real.questions_asked - before)
    assert max(asked) == asked[-1] == count + 1


@pytest.mark.slow
def test_a_chain_of_grants_may_be_longer_than_the_stack() -> None:
    # Each admin appoints the next, and the first is excluded beside the third: nothing recurses.
    names = tuple(f"user {number}" for number in range(1200))
    real = Twins(names[:1]).real
    for number in range(1, len(names)):
        _do(real, number, Step(names[number - 1], "grant", names[number], ADMIN, (number - 1,)))
    assert len(real.now().members()) == len(names)
    _do(real, len(names), Step(names[0], "remove", names[1], 0, (1,)))
    assert [NAME_OF[user] for user in real.now().members()] == [names[0]]
    last = real.at((commit_id(len(names) - 1),))
    assert last.permission(USERS[names[-1]]) == ADMIN, "in its own past nothing is known of that"


@pytest.mark.extended
@pytest.mark.slow
def test_every_small_history_is_judged_as_the_reference_does() -> None:
    count = sum(1 for _ in _histories([], OPERATIONS))
    assert count > 2000


@pytest.mark.slow
@pytest.mark.same_examples
@settings(max_examples=120, deadline=None)
@given(seed=st.integers(0, 2**32), size=st.integers(4, 18), founders=st.integers(1, 2))
def test_random_histories_are_judged_as_the_reference_does(seed: int, size: int, founders: int) -> None:
    rng = Random(seed)
    twins = _tell(rng, size, NAMES[:founders])
    members = twins.check()
    left = {step.author for number, step in enumerate(twins.steps) if twins.reference.ops[number].is_leave}
    assert all(members.get(name) == OWNER or name in left for name in NAMES[:founders]), "founders stay"
    assert twins.check_order(_any_order(rng, twins)) == members
    twins.check_restored(rng)
    for _ in range(4):
        twins.check_at(_heads(twins, rng.sample(range(len(twins)), rng.randint(1, min(3, len(twins))))))
    _check_strong_removal(twins)


def _check_strong_removal(twins: Twins) -> None:
    """Expect that nothing unseen counts of a member excluded by a senior of all its rights."""
    reference, whole = twins.reference, frozenset(range(len(twins)))
    world = reference.world(whole)
    for number, step in enumerate(twins.steps):
        acting = [one for one in world.rights(number) if world.holds(world.deed(number), one)]
        if step.kind != "remove" or step.level or step.user == step.author:
            continue
        rights = [Right(one, level) for one in whole if (level := reference.carried(one, step.user))]
        after = {right.credential for right in rights if number in twins.pasts[right.credential]}
        own = [right for right in rights if right.credential not in after]
        if reference.ops[number].is_of_device and not all(
            reference.is_own(one, step.author, twins.pasts[number]) for one in own
        ):
            continue
        if not acting or not all(any(reference.is_senior(one, right) for one in acting) for right in own):
            continue
        assert step.user not in world.members() or after
        for late in whole - twins.pasts[number]:
            op = reference.ops[late]
            if (
                op.author == step.user
                and op.needed
                and not after & op.past
                and not _is_of_quorum(twins, late)
            ):
                assert not world.counts(late), (number, late)


def _is_of_quorum(twins: Twins, number: int) -> bool:
    """Return True if an operation is an act of a quorum's signers, no matter who publishes it."""
    world = twins.reference.world(frozenset(range(len(twins))))
    return any(twins.steps[right.credential].kind == "quorum" for right in world.rights(number))


def _invite(membership: Membership, uses: int, expires_at: int) -> tuple[Operation, tuple[CommitId, ...]]:
    body = replace(Step("ann", "invite", "ann", WRITE, (0,), uses=uses).body(), expires_at=expires_at)
    commit = make_commit(1, "ann", (0,))
    return membership.authorise_root_commit(commit, body), commit.acks


def _dated(commit: Commit, timestamp: int) -> Commit:
    return replace(commit, content=replace(commit.content, timestamp=timestamp))


def _do(membership: Membership, number: int, step: Step) -> None:
    commit = make_commit(number, step.author, step.acks)
    membership.add(membership.authorise_root_commit(commit, step.body()), commit.acks)


def _appoint(names: tuple[str, ...]) -> Twins:
    """Return twins in which the first has founded a repo and made the others admins, one after the other."""
    twins = Twins(names[:1])
    for number, name in enumerate(names[1:]):
        assert twins.take(Step(names[0], "grant", name, ADMIN, (number,)))
    return twins


def _tell(rng: Random, size: int, founders: tuple[str, ...]) -> Twins:
    """Return twins after random operations with any pasts; some by a quorum's signers."""
    twins = Twins(founders)
    names = NAMES[: rng.randint(3, 6)]
    for name in rng.sample(names, rng.randint(1, len(names))):
        acks = _heads(twins, range(len(twins))) if rng.random() < 0.7 else (0,)
        twins.take(Step(names[0], "grant", name, rng.choice(LEVELS), acks))
    if rng.random() < 0.5:
        signers = tuple(rng.sample(names, rng.randint(1, 3)))
        acks = _heads(twins, range(len(twins)))
        threshold, covers = rng.randint(1, len(signers)), rng.random() < 0.8
        twins.take(Step(names[0], "quorum", names[0], threshold, acks, names=signers, covers=covers))
        acks, user = _heads(twins, range(len(twins))), rng.choice(names)
        twins.take(Step(signers[0], "propose", user, rng.choice((0, 0, READ)), acks))
        acks, proposal = _heads(twins, range(len(twins))), len(twins) - 1
        for signer in signers:
            twins.take(Step(signer, "approve", user, 0, acks, proposal))
    for _ in range(6 * size):
        if len(twins) >= size:
            break
        chosen = rng.sample(range(len(twins)), rng.randint(1, min(3, len(twins))))
        acks = _heads(twins, range(len(twins)) if rng.random() < 0.35 else chosen)
        twins.take(_idea(rng, twins, names, acks))
    return twins


def _idea(rng: Random, twins: Twins, names: tuple[str, ...], acks: tuple[int, ...]) -> Step:
    author, user = rng.choice(names), rng.choice(names)
    past = frozenset(acks).union(*(twins.pasts[ack] for ack in acks))

    def some(kind: str) -> int:
        return rng.choice([one for one in sorted(past) if twins.steps[one].kind == kind] or [0])

    keeps = rng.choice((0, 0, 0, READ, WRITE, ADMIN))
    kinds = ["remove"] * 8 + ["grant"] * 6 + ["lend"] * 4 + ["invite", "join", "join", "revoke", "act"]
    if lent := some("lend"):
        kinds += ["move"] * 5
    kinds += ["friends"] * 2 + ["recover"] * (4 if some("friends") else 0)
    if any(twins.steps[one].kind == "quorum" for one in past):
        kinds += ["propose"] * 4 + ["approve"] * 8 + ["quorum"]
    match rng.choice(kinds):
        case "remove" if (approved := some("approve")) and rng.random() < 0.7:
            proposed = twins.steps[twins.steps[approved].target]
            return Step(author, "remove", proposed.user, proposed.level, acks)
        case "remove":
            return Step(author, "remove", user, keeps, acks)
        case "grant" | "lend" as kind:
            return Step(author, kind, user, rng.choice(LEVELS), acks)
        case "move":
            given = [one for one in sorted(past) if twins.reference.carried(one, twins.steps[lent].author)]
            target = rng.choice(given or [0])
            person = author if rng.random() < 0.1 else twins.steps[lent].author
            return Step(person, "move", twins.steps[lent].user, 0, acks, target)
        case "friends":
            friends = tuple(rng.sample(names, rng.randint(0, 3)))
            return Step(
                author, "friends", user, (len(friends) + 2) // 2 if friends else 0, acks, names=friends
            )
        case "recover":
            naming = some("friends")
            signers = twins.steps[naming].names
            signers = signers if rng.random() < 0.8 else tuple(rng.sample(names, rng.randint(0, 2)))
            return Step(
                author, "recover", user, rng.choice((READ, WRITE, ADMIN, OWNER)), acks, naming, signers
            )
        case "invite":
            level, uses = rng.choice((READ, WRITE, WRITE, MANAGE)), rng.randint(1, 2)
            return Step(author, "invite", user, level, acks, uses=uses, is_late=rng.random() < 0.1)
        case "join" | "revoke" as kind:
            return Step(author, kind, user, 0, acks, some("invite"))
        case "propose":
            return Step(author, "propose", user, rng.choice((0, 0, keeps)), acks)
        case "approve":
            return Step(author, "approve", user, 0, acks, some("propose"))
        case "quorum":
            signers = tuple(rng.sample(names, rng.randint(1, 2)))
            covers = rng.random() < 0.8
            return Step(author, "quorum", user, rng.randint(1, 2), acks, names=signers, covers=covers)
    return Step(author, "act", user, rng.choice((WRITE, MANAGE, ADMIN)), acks)


def _heads(twins: Twins, chosen: Collection[int]) -> tuple[int, ...]:
    return tuple(one for one in chosen if not any(one in twins.pasts[other] for other in chosen))


def _any_order(rng: Random, twins: Twins) -> list[int]:
    """Return a random order with causes first."""
    order: list[int] = []
    left = set(range(len(twins)))
    while left:
        order.append(rng.choice(sorted(one for one in left if not twins.pasts[one] & left)))
        left.remove(order[-1])
    return order


def _histories(steps: list[Step], more: int) -> Iterator[list[Step]]:
    """Yield all histories of at most so many more operations of admins, once each up to names and order."""
    twins = replay(steps)
    twins.check()
    yield steps
    if not more:
        return
    known = {"ann"} | {step.user for step in steps}
    newcomer = next((name for name in NAMES[:4] if name not in known), None)
    for acks in antichains(twins.pasts):
        past = frozenset(acks).union(*(twins.pasts[ack] for ack in acks))
        for author in sorted(known):
            for user in sorted(known | ({newcomer} if newcomer else set())):
                for kind, level in (("grant", ADMIN), ("remove", 0)):
                    step = Step(author, kind, user, level, acks)
                    if steps and len(steps) not in past and _key(step) < _key(steps[-1]):
                        continue  # beside the last one, and before it in the history that has both in order
                    if replay(steps).take(step):
                        yield from _histories([*steps, step], more - 1)


def _key(step: Step) -> tuple[str, str, str, tuple[int, ...]]:
    return step.author, step.kind, step.user, step.acks
