"""Who is shown to have a place that passed on: nobody where several claim it, and never again who passed it on."""

import pytest

from protocol.formats.body import DeviceGrant as Lend
from protocol.formats.body import Grant, Move, Permission, Remove
from protocol.formats.devices import Device
from protocol.ids import CommitId, Signature, UserId
from tests.support.memberships import USERS
from tests.unit.verifier.test_floods import Repo
from verifier.devices import find_persons
from verifier.places import find_claims, find_heirs, find_moves


@pytest.fixture
def repo() -> Repo:
    return Repo()


def claims(repo: Repo) -> dict[UserId, list[UserId]]:
    """Return whose place several claim."""
    return find_claims(repo.membership.operations, repo.membership.now())


def heirs(repo: Repo) -> dict[UserId, UserId]:
    """Return who is shown to have the place of whom."""
    return find_heirs(find_moves(repo.membership.operations, repo.membership.now()))


def lend(repo: Repo) -> CommitId:
    """Let Cat lend to Eve, and to Fay: Cat's key is copied."""
    last = repo.say("cat", Lend(USERS["eve"], Permission.WRITE), repo.last)
    return repo.say("cat", Lend(USERS["fay"], Permission.WRITE), last)


def move(repo: Repo, user: str, after: CommitId) -> CommitId:
    """Pass Cat's place on."""
    place = repo.membership.operations.grants_of(USERS["cat"])[0].commit_id
    return repo.say("cat", Move(USERS[user], place), after)


def test_of_two_who_claim_a_place_neither_is_shown_to_have_it_until_one_is_excluded(repo: Repo) -> None:
    lent = lend(repo)
    moves = [move(repo, "eve", lent), move(repo, "fay", lent)]
    assert heirs(repo) == {}
    for user, taken in (("cat", None), ("eve", "eve"), ("fay", "fay"), ("ann", None)):
        of_cat = find_moves(repo.membership.operations, repo.membership.now(), USERS[user]).get(USERS["cat"])
        assert (of_cat.body.user if of_cat and isinstance(of_cat.body, Move) else None) == (
            taken and USERS[taken]
        )
    assert {user: set(by) for user, by in claims(repo).items()} == {
        USERS["cat"]: {USERS["eve"], USERS["fay"]}
    }
    out = repo.say("ann", Remove(USERS["fay"], None, ()), *moves)
    assert (heirs(repo), claims(repo)) == ({USERS["cat"]: USERS["eve"]}, {})
    repo.say("ann", Remove(USERS["eve"], None, ()), out)
    assert heirs(repo) == {}, "nobody has it, and who had it is not known"


def test_a_claim_stands_while_a_member_has_what_was_passed_on(repo: Repo) -> None:
    lent = lend(repo)
    first = move(repo, "eve", lent)
    move(repo, "fay", lent)
    last = repo.say("eve", Lend(USERS["ben"], Permission.WRITE), first)
    repo.say("ann", Remove(USERS["ben"], None, ()), last)
    gus = repo.say("eve", Lend(USERS["gus"], Permission.WRITE), first)
    repo.say("eve", Move(USERS["gus"], first), gus)
    assert set(claims(repo)[USERS["cat"]]) == {USERS["eve"], USERS["fay"]}
    assert heirs(repo) == {USERS["eve"]: USERS["gus"]}


def test_the_same_move_twice_is_one_claim(repo: Repo) -> None:
    lent = lend(repo)
    move(repo, "eve", lent)
    move(repo, "eve", lent)
    assert (heirs(repo), claims(repo)) == ({USERS["cat"]: USERS["eve"]}, {})


def test_who_passed_its_place_on_and_is_a_member_again_is_not_shown_as_the_first_device(repo: Repo) -> None:
    last = move(repo, "eve", lend(repo))
    repo.say("ann", Grant(USERS["cat"], Permission.WRITE), last)
    signature = Signature(bytes(64))
    said = repo.say("eve", Device(USERS["cat"], USERS["eve"], 1, signature, signature), last)
    assert repo.membership.now().permission(USERS["cat"]) is Permission.WRITE
    words = [repo.membership.operations[said]]
    persons = find_persons(repo.membership.now(), words, heirs(repo))
    assert persons == {USERS["cat"]: USERS["eve"]}
