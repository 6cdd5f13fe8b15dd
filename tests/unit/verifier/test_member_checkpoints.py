"""Membership checkpoints: whose are considered, and which are true of their pasts."""

from typing import Final

import msgspec
import pytest

from protocol.codec import encode
from protocol.formats.body import (
    Body,
    Invite,
    MembersCheckpoint,
    Permission,
    Remove,
    UnknownBody,
    decode_body,
    encode_body,
)
from protocol.ids import CommitId, Digest, InvitationKey
from tests.support.memberships import REPO, USERS, commit_id, make_commit, replay
from tests.support.memberships import parse as steps_of
from tests.support.restored import restored, state_of
from verifier import member_checkpoints
from verifier import membership as membership_module
from verifier.member_checkpoints import CONSIDERED_MAX, StatementTooLarge
from verifier.membership_snapshots import encode_parts
from verifier.refusal import CommitRefused

WRONG: Final = Digest(b"w" * 32)


class Repo:
    """A repo of ann's with ben, who is an admin, cat, who writes, and eve, who reads."""

    def __init__(self) -> None:
        steps = "ann + ben admin < 0\nann + cat write < 1\nann + eve read < 2"
        self.membership = replay(steps_of(steps)).real
        self._number = 3

    def say(self, author: str, body: Body | UnknownBody, *after: int) -> int:
        """Write a body after some commits, or after all; gives its number. Raises CommitRefused."""
        acks = tuple(map(commit_id, after)) or self.membership.operations.heads()
        self._number += 1
        commit = msgspec.structs.replace(make_commit(self._number, author, ()), acks=acks)
        self.membership.add(self.membership.authorise_root_commit(commit, body), acks)
        return self._number

    def sign(self, author: str, *after: int) -> int:
        """Sign what follows from these commits."""
        acks = tuple(map(commit_id, after)) or self.membership.operations.heads()
        return self.say(author, MembersCheckpoint(self.membership.digest_members(acks)), *after)

    def found(self) -> dict[CommitId, bool | None]:
        """Return the considered checkpoints, and which are true."""
        considered = self.membership.checkpoints.considered(self.membership.operations)
        return {one.commit_id: self.membership.is_checkpoint_true(one) for one in considered}


def test_a_checkpoint_is_true_of_its_own_past_alone() -> None:
    repo = Repo()
    right = repo.sign("ben")
    wrong = repo.say("ben", MembersCheckpoint(WRONG))
    assert repo.found() == {commit_id(right): True, commit_id(wrong): False}
    before = repo.membership.digest_members((commit_id(right),))
    repo.say("ann", Remove(USERS["ben"], None, ()), right)
    beside = repo.sign("ben", wrong)
    assert repo.membership.digest_members((commit_id(right),)) == before
    assert repo.found() == {commit_id(right): True, commit_id(wrong): False, commit_id(beside): True}
    late = repo.say("ann", MembersCheckpoint(before))
    assert not repo.found()[commit_id(late)], "what was true of fewer"


def test_nothing_is_said_by_who_was_no_admin_nor_by_what_does_not_decode() -> None:
    repo = Repo()
    repo.sign("cat")
    with pytest.raises(CommitRefused, match="M5"):
        repo.sign("eve")
    encoded = encode_body(MembersCheckpoint(WRONG))
    assert decode_body(encoded) == MembersCheckpoint(WRONG)
    for bad in (
        ["members-checkpoint1"],
        ["members-checkpoint1", b"x" * 31],
        ["members-checkpoint1", WRONG, 1],
    ):
        assert decode_body(encode(bad)) == UnknownBody("members-checkpoint1")
    repo.say("ann", UnknownBody("members-checkpoint1"))
    assert repo.found() == {}
    repo.say("ann", Remove(USERS["ben"], Permission.WRITE, ()))
    repo.sign("ben")
    assert repo.found() == {}


def test_the_last_of_each_author_are_considered(monkeypatch: pytest.MonkeyPatch) -> None:
    repo = Repo()
    made = [repo.say("ben", MembersCheckpoint(WRONG)) for _ in range(CONSIDERED_MAX)]
    repo.sign("ann")
    assert len(repo.found()) == CONSIDERED_MAX + 1
    more = repo.sign("ben")
    found = repo.found()
    assert commit_id(made[0]) not in found
    assert found.keys() >= set(map(commit_id, (*made[1:], more)))
    assert len(found) == CONSIDERED_MAX + 1
    monkeypatch.setattr(membership_module, "digest_members", None)
    assert repo.found() == found, "each is looked at once"


def test_checkpoints_are_restored_from_a_snapshot() -> None:
    repo = Repo()
    repo.sign("ben")
    repo.say("cat", MembersCheckpoint(WRONG))
    repo.say("ann", MembersCheckpoint(WRONG))
    parts = [part for _, part in encode_parts(repo.membership, REPO, 0)]
    other = restored(REPO, parts)
    assert state_of(other) == state_of(repo.membership)
    considered = other.checkpoints.considered(other.operations)
    assert {one.commit_id: other.is_checkpoint_true(one) for one in considered} == repo.found()


def test_a_digest_costs_what_is_stated_and_not_how_it_came_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    repo = Repo()
    one = repo.membership.digest_members(repo.membership.operations.heads())
    repo.say("cat", UnknownBody("later1"))
    assert repo.membership.digest_members(repo.membership.operations.heads()) == one


def test_a_statement_of_more_pairs_than_the_bound_is_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    repo = Repo()
    for _ in range(3):
        repo.say("ben", Invite(InvitationKey(b"i" * 32), Permission.READ, 1, 2**40))
    repo.say("ann", Remove(USERS["cat"], None, ()))
    repo.say("eve", Remove(USERS["eve"], None, ()))
    pairs = 3 * 2 + 2**2 + 1**2  # links and removals, credentials of ann and ben, the founding epoch
    monkeypatch.setattr(member_checkpoints, "PAIRS_MAX", pairs)
    signed = commit_id(repo.sign("ben"))
    assert repo.found() == {signed: True}
    monkeypatch.setattr(member_checkpoints, "PAIRS_MAX", pairs - 1)
    with pytest.raises(StatementTooLarge):
        repo.sign("ben")
    other = commit_id(repo.say("ben", MembersCheckpoint(WRONG)))
    assert repo.found() == {signed: True, other: None}
    monkeypatch.setattr(membership_module, "digest_members", None)
    assert repo.found()[other] is None, "nor looked at again"
