"""Profile statements: the latest that counts is shown, of a bounded number, and no rule looks at them."""

from typing import Final

import msgspec
import pytest

from protocol.codec import encode
from protocol.formats.body import Body, Permission, Remove, UnknownBody, decode_body, encode_body
from protocol.formats.profiles import Profile
from protocol.limits.formats import PROFILE_INTERVAL_MS, PROFILE_STATEMENTS_MAX
from tests.support.memberships import USERS, commit_id, make_commit, replay
from tests.support.memberships import parse as steps_of
from verifier.refusal import CommitRefused

ALL: Final = """
ann + ben write < 0
ann + cat admin < 1
ann + dan read < 2
"""
MINUTE: Final = PROFILE_INTERVAL_MS


class Repo:
    """A repo of ann's with ben, cat, and dan who reads; each commit follows the last unless it says otherwise."""

    def __init__(self) -> None:
        self.membership = replay(steps_of(ALL)).real
        self._number = 3

    def say(self, author: str, body: Body | UnknownBody, at: int = 0, *, after: int | None = None) -> int:
        """Write a body that states the time `at`; gives its number. Raises CommitRefused."""
        acks = self.membership.operations.heads() if after is None else (commit_id(after),)
        self._number += 1
        commit = msgspec.structs.replace(make_commit(self._number, author, ()), acks=acks)
        commit = msgspec.structs.replace(
            commit, content=msgspec.structs.replace(commit.content, timestamp=at)
        )
        self.membership.add(self.membership.authorise_root_commit(commit, body), acks)
        return self._number

    def names(self) -> dict[str, str | None]:
        """Return what is shown."""
        called = {user: name for name, user in USERS.items()}
        membership = self.membership
        found = membership.profiles.find_latest(membership.operations, membership.now())
        bodies = {called[user]: one.body for user, one in found.items()}
        assert all(isinstance(body, Profile) for body in bodies.values())
        return {user: body.name for user, body in bodies.items() if isinstance(body, Profile)}


def test_the_latest_statement_is_shown() -> None:
    repo = Repo()
    repo.say("ben", Profile("Ben", None), 1 * MINUTE)
    repo.say("cat", Profile("Ben", 3), 1 * MINUTE)
    repo.say("ben", Profile("Benjamin", 15), 2 * MINUTE)
    assert repo.names() == {"ben": "Benjamin", "cat": "Ben"}
    repo.say("ben", Profile(None, None), 3 * MINUTE)
    assert repo.names() == {"ben": None, "cat": "Ben"}


def test_of_a_stated_minute_the_first_is_shown() -> None:
    repo = Repo()
    repo.say("ben", Profile("first", None), MINUTE)
    repo.say("ben", Profile("second", None), 2 * MINUTE - 1)
    assert repo.names() == {"ben": "first"}
    repo.say("ben", Profile("third", None), 2 * MINUTE)
    assert repo.names() == {"ben": "third"}


def test_a_clock_that_was_ahead_hides_nothing_that_comes_later() -> None:
    repo = Repo()
    repo.say("ben", Profile("ahead", None), 1000 * MINUTE)
    repo.say("ben", Profile("right", None), 5 * MINUTE)
    assert repo.names() == {"ben": "right"}


def test_a_flood_keeps_a_bounded_number() -> None:
    repo = Repo()
    for minute in range(100):
        for _ in range(3):
            repo.say("ben", Profile(f"Ben {minute}", None), minute * MINUTE)
    assert repo.names() == {"ben": "Ben 99"}
    profiles = repo.membership.profiles
    assert not profiles.is_free(USERS["ben"], 99 * MINUTE + 1)
    assert not profiles.is_free(USERS["ben"], (99 - PROFILE_STATEMENTS_MAX) * MINUTE)
    assert profiles.is_free(USERS["ben"], 100 * MINUTE)
    assert profiles.is_free(USERS["cat"], 0)
    assert profiles.change_count == 100


@pytest.mark.parametrize("name", ["", "x" * 65, "A\u202eB", " Ann", "a2" * 26, "A[b]"])
def test_a_name_that_breaks_the_rules_says_nothing(name: str) -> None:
    repo = Repo()
    repo.say("ben", Profile("Ben", None), MINUTE)
    repo.say("ben", decode_body(encode(["profile1", name, None])), 2 * MINUTE)
    assert repo.names() == {"ben": "Ben"}


def test_what_an_exclusion_voids_is_not_shown() -> None:
    repo = Repo()
    known = repo.say("ben", Profile("Ben", None), MINUTE)
    repo.say("cat", Remove(USERS["ben"], None, ()))
    repo.say("ben", Profile("Ann", None), 2 * MINUTE, after=known)
    assert repo.names() == {"ben": "Ben"}, "what was said before is shown of former members too"


@pytest.mark.parametrize("author", ["ann", "ben", "dan", "hal"])
def test_a_node_that_does_not_know_the_kind_judges_alike(author: str) -> None:
    verdicts = []
    for said in (Profile("Ann", None), UnknownBody("profile1")):
        repo = Repo()
        try:
            number = repo.say(author, said)
        except CommitRefused as error:
            verdicts.append(error.code)
        else:
            assert repo.membership.operations[commit_id(number)].needs is Permission.WRITE
            verdicts.append("accepted")
    expected = {"dan": "not_permitted", "hal": "unknown_author"}.get(author, "accepted")
    assert verdicts == [expected, expected]


def test_what_does_not_decode_is_carried_as_where_the_kind_is_unknown() -> None:
    body = Profile("Ann", 3)
    assert decode_body(encode_body(body)) == body
    wrong: tuple[list[object], ...] = (
        [],
        ["Ann"],
        ["Ann", 3, 0],
        [b"Ann", 3],
        ["Ann", 16],
        ["Ann", -1],
        ["x" * 65, None],
    )
    for fields in wrong:
        assert decode_body(encode(["profile1", *fields])) == UnknownBody("profile1")
