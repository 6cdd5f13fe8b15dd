"""Which statements are shown is a function of the set of commits: whatever the order in which they arrive."""

from random import Random
from typing import Final

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from protocol.formats.body import Body, Grant, Permission, Remove
from protocol.formats.commit import Commit
from protocol.formats.profiles import Profile, find_fault
from protocol.ids import CommitId, UserId
from protocol.limits.formats import PROFILE_INTERVAL_MS, PROFILE_STATEMENTS_MAX
from tests.support.memberships import USERS, commit_id, make_commit, make_init, replay_shuffled
from verifier.membership import Membership

AUTHORS: Final = ("ann", "ben", "cat")
Statement = tuple[Commit, Body]


@st.composite
def histories(draw: st.DrawFn) -> list[Statement]:
    """A repo of three in which statements, good and bad, are made concurrently, and some members are excluded."""
    made: list[Statement] = [(make_commit(0, "ann", ()), make_init())]
    for number, name in enumerate(AUTHORS[1:], 1):
        body = Grant(USERS[name], Permission.ADMIN)
        made.append((make_commit(number, "ann", (number - 1,)), body))
    for number in range(len(made), len(made) + draw(st.integers(1, 40))):
        author = draw(st.sampled_from(AUTHORS))
        seen = draw(st.sets(st.integers(max(2, number - 6), number - 1), min_size=1, max_size=3))
        said: Body
        if draw(st.integers(0, 15)):
            said = Profile(draw(st.sampled_from(["Ann", "Ben", "A\u202eB", "x" * 64])), None)
        else:
            said = Remove(USERS[draw(st.sampled_from(AUTHORS[1:]))], None, ())
        commit = make_commit(number, author, tuple(seen))
        minute = draw(st.integers(0, 2 * PROFILE_STATEMENTS_MAX))
        at = minute * PROFILE_INTERVAL_MS + draw(st.sampled_from([0, PROFILE_INTERVAL_MS - 1]))
        content = msgspec.structs.replace(commit.content, timestamp=at)
        made.append((msgspec.structs.replace(commit, content=content), said))
    return made


def _shown(membership: Membership) -> dict[UserId, CommitId]:
    found = membership.profiles.find_latest(membership.operations, membership.now())
    return {user: one.commit_id for user, one in found.items()}


def _by_the_rules(membership: Membership, size: int) -> dict[UserId, CommitId]:
    """The same over the whole set at once, as docs/specification/protocol.md says it."""
    operations, now = membership.operations, membership.now()
    every = [found for number in range(size) if (found := operations.find(commit_id(number))) is not None]
    shown = {}
    for user in USERS.values():
        valid = [
            one
            for one in operations.in_order(every)
            if one.author == user and isinstance(one.body, Profile) and not find_fault(one.body.name or "a")
        ]
        minutes = sorted({one.timestamp // PROFILE_INTERVAL_MS for one in valid})[-PROFILE_STATEMENTS_MAX:]
        firsts = [
            next(one for one in valid if one.timestamp // PROFILE_INTERVAL_MS == minute) for minute in minutes
        ]
        counting = [one for one in operations.in_order(firsts) if now.counts(one)]
        if counting:
            shown[user] = counting[-1].commit_id
    return shown


@given(histories(), st.integers(0, 1000))
def test_every_order_of_arrival_shows_the_same(history: list[Statement], seed: int) -> None:
    first = replay_shuffled(history, Random(seed))
    second = replay_shuffled(history, Random(seed + 1))
    expected = _by_the_rules(first, len(history))
    assert _shown(first) == _shown(second) == expected
