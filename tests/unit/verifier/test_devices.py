"""Members that are shown as one person: by both signatures, never by a chain, and without a word in any rule."""

from typing import Final

import msgspec
import pytest

from protocol.codec import encode
from protocol.crypto.keys import RepoSeed, UserSeed
from protocol.crypto.sealed_keys import SEALED_KEY_SIZE
from protocol.crypto.signing import key_pair, sign
from protocol.formats.body import (
    Body,
    DeviceGrant,
    Grant,
    Permission,
    Remove,
    UnknownBody,
    body_kind,
    decode_body,
    encode_body,
)
from protocol.formats.devices import Device, DeviceBody, DeviceEnd, DevicesRepo, HandOn
from protocol.formats.proofs import device_digest, device_end_digest
from protocol.ids import RepoId, Signature
from protocol.limits.formats import DEVICE_COUNT_MAX, DEVICE_GRANT_COUNT_MAX
from tests.support.ids import as_epoch_id
from tests.support.memberships import REPO, USERS, commit_id, make_commit, replay
from tests.support.memberships import parse as steps_of
from verifier.devices import find_persons
from verifier.refusal import CommitRefused

ALL: Final = """
ann + ben write < 0
ann + cat write < 1
ann + dan read < 2
ann + eve write < 3
"""
OTHER_REPO: Final = key_pair(RepoSeed(b"another".ljust(32)))[0]


def signature(digest: bytes, name: str) -> Signature:
    """Sign as one of the members."""
    return sign(key_pair(UserSeed(name.encode().ljust(32)))[1], digest)


def device(person: str, other: str, since: int = 1, repo: RepoId = REPO) -> Device:
    """Make a statement that both signed."""
    digest = device_digest(repo, USERS[person], USERS[other], since)
    return Device(USERS[person], USERS[other], since, signature(digest, person), signature(digest, other))


def end(person: str, other: str, until: int, *, by_person: bool = True) -> DeviceEnd:
    """Make a statement that takes it back."""
    digest = device_end_digest(REPO, USERS[person], USERS[other], until)
    signed = signature(digest, person if by_person else other)
    return DeviceEnd(USERS[person], USERS[other], until, by_person, signed)


class Repo:
    """A repo of ann's with ben, cat, dan (who reads) and eve, in which each commit follows the last."""

    def __init__(self) -> None:
        self.membership = replay(steps_of(ALL)).real
        self._number = 4

    def say(self, author: str, body: Body | UnknownBody, *, after: int | None = None) -> int:
        """Write a body after all that there is, or after an earlier commit; gives its number. Raises CommitRefused."""
        acks = self.membership.operations.heads() if after is None else (commit_id(after),)
        self._number += 1
        commit = msgspec.structs.replace(make_commit(self._number, author, ()), acks=acks)
        self.membership.add(self.membership.authorise_root_commit(commit, body), acks)
        return self._number

    def persons(self) -> dict[str, str]:
        """Return devices by name, with whose they are."""
        names = {user: name for name, user in USERS.items()}
        found = find_persons(self.membership.now(), self.membership.device_statements)
        return {names[one]: names[person] for one, person in found.items()}


def test_two_who_say_so_are_one_person_whoever_publishes_it() -> None:
    repo = Repo()
    repo.say("eve", device("ben", "cat"))
    repo.say("cat", device("ben", "dan"))  # dan may only read
    assert repo.persons() == {"cat": "ben", "dan": "ben"}


def _half(name: str) -> Device:
    """Make a statement about ann and ben in which both signatures are the same one's."""
    digest = device_digest(REPO, USERS["ann"], USERS["ben"], 1)
    return Device(USERS["ann"], USERS["ben"], 1, signature(digest, name), signature(digest, name))


def _crossed(**changes: object) -> Device:
    good = device("ann", "ben")
    return Device(
        **{name: changes.get(name, getattr(good, name)) for name in good.__struct_fields__}  # type: ignore[arg-type]  # as named
    )


FORGED: Final = {
    "by the person alone": _half("ann"),
    "by the device alone": _half("ben"),
    "by neither": _half("eve"),
    "the other way round": _crossed(person=USERS["ben"], device=USERS["ann"]),
    "of another time": _crossed(since=2),
    "for somebody else": _crossed(device=USERS["cat"]),
    "by somebody else": _crossed(person=USERS["cat"]),
    "in another repo": device("ann", "ben", repo=OTHER_REPO),
    "of oneself": device("ann", "ann"),
    "with an end's signatures": _crossed(
        person_signature=end("ann", "ben", 1).signature,
        device_signature=end("ann", "ben", 1, by_person=False).signature,
    ),
    "by keys that are none": _crossed(person=bytes(32)),
    "with signatures of zeros": _crossed(person_signature=bytes(64), device_signature=bytes(64)),
    "of a stranger": device("ann", "hal"),
    "by a stranger": device("hal", "ben"),
}


@pytest.mark.parametrize("defect", FORGED)
def test_what_is_forged_is_accepted_and_shows_nothing(defect: str) -> None:
    repo = Repo()
    repo.say("eve", FORGED[defect])
    assert repo.persons() == {}
    repo.say("eve", device("ann", "ben"))
    assert repo.persons() == {"ben": "ann"}, "what is forged does not speak against the true one either"


def test_a_chain_claims_nobody() -> None:
    repo = Repo()
    repo.say("ann", device("ann", "ben"))
    repo.say("ben", device("ben", "cat"))
    assert repo.persons() == {"ben": "ann"}
    repo.say("ben", device("eve", "ann"))  # so ann is a device herself, and nobody's person
    assert repo.persons() == {"ann": "eve"}


def test_a_device_of_two_is_one_of_neither() -> None:
    repo = Repo()
    repo.say("ann", device("ann", "ben"))
    repo.say("cat", device("cat", "ben", since=7))
    assert repo.persons() == {}
    repo.say("ben", end("cat", "ben", until=7, by_person=False))
    assert repo.persons() == {"ben": "ann"}


def test_each_in_a_circle_stands_alone() -> None:
    repo = Repo()
    for person, other in (("ann", "ben"), ("ben", "cat"), ("cat", "ann")):
        repo.say("eve", device(person, other))
    assert repo.persons() == {}


@pytest.mark.parametrize("by_person", [True, False])
def test_either_takes_it_back_and_a_later_statement_stands(by_person: bool) -> None:
    repo = Repo()
    repo.say("ann", device("ann", "ben", since=5))
    repo.say("eve", end("ann", "ben", until=4, by_person=by_person))
    assert repo.persons() == {"ben": "ann"}, "of what was said before"
    repo.say("eve", end("ann", "ben", until=5, by_person=by_person))
    assert repo.persons() == {}
    repo.say("eve", device("ann", "ben", since=5))
    assert repo.persons() == {}, "somebody says the old one again"
    repo.say("ann", device("ann", "ben", since=6))
    assert repo.persons() == {"ben": "ann"}


def test_nobody_else_takes_it_back() -> None:
    repo = Repo()
    repo.say("ann", device("ann", "ben"))
    digest = device_end_digest(REPO, USERS["ann"], USERS["ben"], 9)
    for by_person in (True, False):
        repo.say("cat", DeviceEnd(USERS["ann"], USERS["ben"], 9, by_person, signature(digest, "cat")))
    assert repo.persons() == {"ben": "ann"}


def test_what_is_void_and_whom_is_excluded_is_not_shown() -> None:
    repo = Repo()
    before = repo.say("ann", device("ann", "ben"))
    repo.say("eve", device("cat", "dan"))
    assert repo.persons() == {"ben": "ann", "dan": "cat"}
    repo.say("ann", Remove(USERS["eve"], None, ()), after=before)  # who had not seen what eve said
    assert repo.persons() == {"ben": "ann"}
    repo.say("ann", Remove(USERS["ben"], None, ()))
    assert repo.persons() == {}
    repo.say("ann", Grant(USERS["ben"], Permission.READ))
    assert repo.persons() == {"ben": "ann"}


def test_a_person_has_so_many_devices() -> None:
    repo = Repo()
    first = key_pair(UserSeed(b"ann".ljust(32)))
    made = [key_pair(UserSeed(f"device {number}".encode().ljust(32))) for number in range(DEVICE_COUNT_MAX)]
    for number, (user, secret) in enumerate(made):
        repo.say("ann", Grant(user, Permission.READ))
        digest = device_digest(REPO, first[0], user, 100 - number)
        repo.say("ann", Device(first[0], user, 100 - number, sign(first[1], digest), sign(secret, digest)))
    found = find_persons(repo.membership.now(), repo.membership.device_statements)
    assert len(found) == DEVICE_COUNT_MAX - 1, "with the first"
    assert made[0][0] not in found, "the one that came last"


WORDS: Final[tuple[DeviceBody, ...]] = (
    device("ann", "ben"),
    end("ann", "ben", 1),
    DevicesRepo(USERS["ann"]),
    HandOn(
        USERS["ben"],
        REPO,
        make_commit(0, "ann", ()).content.body,
        as_epoch_id(REPO),
        bytes(SEALED_KEY_SIZE),
        1,
        signature(device_digest(REPO, USERS["ann"], USERS["ben"], 1), "ann"),
    ),
)


@pytest.mark.parametrize("body", WORDS, ids=body_kind)
@pytest.mark.parametrize("author", ["ann", "eve", "dan", "hal"])
def test_a_node_that_does_not_know_the_kind_judges_alike(body: DeviceBody, author: str) -> None:
    known, unknown = Repo(), Repo()
    verdicts = []
    for repo, said in ((known, body), (unknown, UnknownBody("device1"))):
        try:
            number = repo.say(author, said)
        except CommitRefused as error:
            verdicts.append(error.code)
        else:
            verdicts.append("")
            operation = repo.membership.operations[commit_id(number)]
            assert operation.needs is Permission.WRITE
            repo.say("ann", Remove(USERS["eve"], None, ()), after=number - 1)
            verdicts.append(str(repo.membership.now().counts(operation)))
    assert verdicts[: len(verdicts) // 2] == verdicts[len(verdicts) // 2 :]
    assert known.membership.now().members() == unknown.membership.now().members()


@pytest.mark.parametrize("body", WORDS, ids=body_kind)
def test_what_does_not_decode_is_carried_as_where_the_kind_is_unknown(body: DeviceBody) -> None:
    assert decode_body(encode_body(body)) == body
    tag = str(body.__struct_config__.tag)
    fields = [getattr(body, name) for name in body.__struct_fields__]
    for said in ([tag], [tag, *fields[:-1]], [tag, *fields, 0], [tag, *fields[:-1], "text"]):
        assert decode_body(encode(said)) == UnknownBody(tag)


def test_one_member_gives_to_so_many_devices() -> None:
    repo = Repo()
    others = [key_pair(UserSeed(f"tablet {number}".encode().ljust(32)))[0] for number in range(64)]
    for user in others[: DEVICE_COUNT_MAX - 1]:
        repo.say("dan", DeviceGrant(user, Permission.READ))
    with pytest.raises(CommitRefused, match="too_many_devices"):
        repo.say("dan", DeviceGrant(others[15], Permission.READ))
    for number in range(DEVICE_COUNT_MAX - 1, DEVICE_GRANT_COUNT_MAX):
        repo.say("dan", Remove(others[number - DEVICE_COUNT_MAX + 1], None, ()))
        repo.say("dan", DeviceGrant(others[number], Permission.READ))
    repo.say("dan", Remove(others[-1], None, ()))
    with pytest.raises(CommitRefused, match="too_many_devices"):
        repo.say("dan", DeviceGrant(others[0], Permission.READ))
    repo.say("ben", DeviceGrant(others[0], Permission.WRITE))


def test_an_exclusion_beside_device_grants_of_a_forked_feed_takes_all_at_once() -> None:
    repo = Repo()
    before = repo.say("eve", UnknownBody("before the fork"))
    others = [key_pair(UserSeed(f"tablet {number}".encode().ljust(32)))[0] for number in range(70)]
    for user in others:
        repo.say("dan", DeviceGrant(user, Permission.READ), after=before)
    assert repo.membership.now().members().keys() > set(others), "each is judged by its own past"
    repo.say("ann", Remove(USERS["dan"], None, ()), after=before)
    assert repo.membership.now().members().keys().isdisjoint({*others, USERS["dan"]})


def test_what_an_epoch_s_device_may_hold_makes_one_due_once_it_is_removed() -> None:
    repo = Repo()
    tablet = key_pair(UserSeed(b"tablet".ljust(32)))[0]
    repo.say("dan", DeviceGrant(tablet, Permission.READ))
    assert not repo.membership.epochs.is_due(repo.membership.now())
    repo.say("dan", Remove(tablet, None, ()))
    assert repo.membership.epochs.is_due(repo.membership.now())
