"""Recovery friends (M19) and recovery grants (M20): named cases, also judged by the reference."""

from typing import Final

import pytest
from msgspec.structs import replace

from protocol.formats.body import FriendSignature, Permission, RecoveryFriends, RecoveryGrant, Remove
from protocol.ids import Signature, UserId
from tests.support.memberships import USERS, commit_id, make_commit, parse, replay
from tests.support.reference_membership import READ, WRITE
from tests.unit.verifier.test_moves import refusal
from verifier.membership import Membership
from verifier.refusal import CommitRefused

NAMED: Final = """
ann + ben write < 0
ann + cat read < 1
ann + dan read < 2
f: ben friends 2 cat dan eve < 3
"""
"""eve is no member."""
REFUSED: Final = {
    "a_stranger_names_friends": ("ann . < 0", "ben friends 1 ann < 1", "unknown_author"),
    "one_is_ones_own_friend": ("ann . < 0", "ann friends 2 ann ben < 1", "bad_recovery"),
    "a_friend_is_named_twice": ("ann . < 0", "ann friends 2 ben ben < 1", "bad_recovery"),
    "half_of_the_friends_suffice": ("ann . < 0", "ann friends 1 ben cat < 1", "bad_recovery"),
    "more_than_all_are_asked": ("ann . < 0", "ann friends 2 ben < 1", "bad_recovery"),
    "nobody_is_asked": ("ann . < 0", "ann friends 0 ben < 1", "bad_recovery"),
    "one_of_no_friends_is_asked": ("ann . < 0", "ann friends 1 < 1", "bad_recovery"),
    "too_few_sign": (NAMED, "cat recover f tab read cat < f", "bad_recovery"),
    "a_stranger_signs": (NAMED, "cat recover f tab read cat dan fay < f", "bad_recovery"),
    "one_signs_twice": (NAMED, "cat recover f tab read cat cat < f", "bad_recovery"),
    "nobody_signs_where_no_friends_are": (
        "f: ann friends 0 < 0\nann + cat read < f",
        "cat recover f tab read < 2",
        "bad_recovery",
    ),
    "a_stranger_publishes": (NAMED, "eve recover f tab read cat dan < f", "unknown_author"),
    "no_naming_is_named": (NAMED, "cat recover 3 tab read cat dan < f", "bad_recovery"),
    "a_naming_beside_is_named": (NAMED, "cat recover f tab read cat dan < 3", "bad_recovery"),
    "an_earlier_naming_is_named": (
        f"{NAMED}ben friends 1 eve < f",
        "cat recover f tab read cat dan < 5",
        "bad_recovery",
    ),
    "friends_were_dismissed": (
        f"{NAMED}ben friends 0 < f",
        "cat recover f tab read cat dan < 5",
        "bad_recovery",
    ),
    "a_device_comes_back_by_the_same_naming": (
        f"{NAMED}cat recover f tab read cat dan < f\nben - tab < 5",
        "cat recover f tab write cat dan < 6",
        "bad_recovery",
    ),
    "it_gives_more_than_the_member_holds": (NAMED, "cat recover f tab manage cat dan < f", "not_permitted"),
    "it_adds_nothing": (f"{NAMED}ben * tab write < f", "cat recover f tab read cat dan < 5", "already_holds"),
    "the_member_was_excluded": (
        f"{NAMED}ann - ben < f",
        "cat recover f tab read cat dan < 5",
        "unknown_author",
    ),
    "a_device_of_a_device": (
        "ann + ben write < 0\nben * tab write < 1\nf: tab friends 1 ann < 2",
        "ann recover f pad read ann < f",
        "not_permitted",
    ),
}
KEPT: Final = {
    "friends_let_a_device_in": (
        f"{NAMED}cat recover f tab write cat dan < f\ntab . < 5",
        "ann ben cat dan tab",
    ),
    "who_is_no_member_signs": (
        f"{NAMED}cat recover f tab write cat eve < f\ntab . < 5",
        "ann ben cat dan tab",
    ),
    "of_two_namings_beside_each_other_either": (
        f"{NAMED}g: ben friends 1 cat < 3\ncat recover f tab read cat dan < f g\ncat recover g pad read cat < 6",
        "ann ben cat dan pad tab",
    ),
    "it_counts_beside_a_later_naming": (
        f"{NAMED}ben friends 1 eve < f\ncat recover f tab read cat dan < f",
        "ann ben cat dan tab",
    ),
    "the_member_removes_the_device": (
        f"{NAMED}cat recover f tab write cat dan < f\nben - tab < 5",
        "ann ben cat dan",
    ),
    "an_exclusion_of_the_member_beside_takes_it": (
        f"{NAMED}cat recover f tab write cat dan < f\nann - ben < f",
        "ann cat dan",
    ),
    "an_exclusion_of_the_publisher_beside_does_not": (
        f"{NAMED}cat recover f tab write cat dan < f\nann - cat < f",
        "ann ben dan tab",
    ),
    "the_member_moves_to_the_device": (
        f"{NAMED}cat recover f tab read cat dan < f\nben > tab 1 < 5\ntab . < 6",
        "ann cat dan tab",
    ),
    "a_later_naming_lets_the_device_in_again": (
        f"{NAMED}cat recover f tab read cat dan < f\nben - tab < 5\ng: ben friends 1 cat < 6\n"
        "cat recover g tab read cat < g",
        "ann ben cat dan tab",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    history, last, code = REFUSED[name]
    assert refusal(history, last) == code


@pytest.mark.parametrize("name", KEPT)
def test_members_after(name: str) -> None:
    steps, members = KEPT[name]
    twins = replay(parse(steps))
    assert sorted(twins.check()) == members.split()
    twins.check_order(range(len(twins)))


def _judge(membership: Membership, author: str, body: RecoveryFriends | RecoveryGrant | Remove) -> str:
    """Return the code with which a body after the fourth commit is refused."""
    with pytest.raises(CommitRefused) as raised:
        membership.authorise_root_commit(make_commit(9, author, (4,)), body)
    return raised.value.code


def test_each_signature_holds_and_they_are_in_order() -> None:
    membership = replay(parse(NAMED)).real
    body = parse(f"{NAMED}cat recover f tab read cat dan < f")[-1].body()
    assert isinstance(body, RecoveryGrant)
    other = replace(body, permission=Permission.WRITE)  # what they did not sign
    forged = replace(
        body, signatures=(body.signatures[0], FriendSignature(USERS["eve"], Signature(bytes(64))))
    )
    backwards = replace(body, signatures=body.signatures[::-1])
    for each in (other, forged, backwards):
        assert _judge(membership, "cat", each) == "bad_recovery"


def test_friends_are_public_keys_in_order() -> None:
    membership = replay(parse(NAMED)).real
    one, other = sorted((USERS["cat"], USERS["dan"]))
    assert _judge(membership, "ben", RecoveryFriends((other, one), 2)) == "bad_recovery"
    assert _judge(membership, "ben", RecoveryFriends((UserId(bytes(32)),), 1)) == "bad_recovery"


def test_the_rules_take_the_member_as_author_and_epochs_the_publisher() -> None:
    twins = replay(parse(f"{NAMED}cat recover f tab write cat dan < f"))
    operation = twins.real.operations[commit_id(5)]
    assert (operation.author, operation.publisher) == (USERS["ben"], USERS["cat"])
    assert operation.needs == WRITE
    assert operation in twins.real.operations.authored_by(USERS["ben"])


def test_friends_signatures_are_judged_for_any_permission_that_the_member_holds() -> None:
    twins = replay(parse(f"{NAMED}cat recover f tab read cat dan < f"))
    assert twins.check()["tab"] == READ
    assert (
        refusal(f"{NAMED}cat recover f tab read cat dan < f", "dan recover f tab write cat dan < 5")
        == "bad_recovery"
    )
