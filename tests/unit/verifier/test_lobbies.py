"""Requests that a lobby shows, and what became of them, in whatever order its commits come."""

from typing import Final

import msgspec
import pytest

from protocol.crypto.keys import BlockKey, InvitationSeed
from protocol.crypto.sealed_keys import SEALED_KEY_SIZE
from protocol.crypto.signing import key_pair
from protocol.formats.block import Reference
from protocol.formats.body import Body, BranchAdd, Invite, Join, Permission, Remove, Revoke
from protocol.formats.lobbies import Admission, Lobby, LobbyAnswer, encode_note
from protocol.formats.proofs import prove_invitation
from protocol.ids import EpochId, InvitationKey, RepoId, branch_begun_by
from tests.support.ids import as_object_id
from tests.support.memberships import REPO, USERS, commit_id, make_commit, replay
from tests.support.memberships import parse as steps_of
from verifier.lobbies import FoundRequest
from verifier.refusal import CommitRefused

TARGET: Final = RepoId(b"t" * 32)
SEED: Final = InvitationSeed(b"i" * 32)
ADMISSION: Final = Admission(
    Reference(as_object_id(b"s" * 32), BlockKey(b"k" * 32)), EpochId(commit_id(0)), bytes(SEALED_KEY_SIZE)
)


class LobbyRepo:
    """A lobby of ann's, with ben as an owner; each commit follows the last unless it says otherwise."""

    def __init__(self, uses: int = 9) -> None:
        self.membership = replay(steps_of("ann + ben owner < 0")).real
        self._number = 1
        self.said = self.say("ann", Lobby(TARGET))
        self.invitation = self.say(
            "ann", Invite(InvitationKey(key_pair(SEED)[0]), Permission.READ, uses, 2**50)
        )

    def say(
        self, author: str, body: Body, *, after: int | None = None, metadata: bytes = b"", at: int = 0
    ) -> int:
        """Write a body; gives its number. Raises CommitRefused."""
        acks = self.membership.operations.heads() if after is None else (commit_id(after),)
        self._number += 1
        commit = make_commit(self._number, author, ())
        content = msgspec.structs.replace(commit.content, metadata=metadata, timestamp=at)
        commit = msgspec.structs.replace(commit, acks=acks, content=content)
        self.membership.add(self.membership.authorise_root_commit(commit, body), acks)
        return self._number

    def ask(self, user: str, name: str | None = None, *, after: int | None = None) -> int:
        """Ask as a user; gives the number of the request."""
        body = Join(commit_id(self.invitation), prove_invitation(SEED, REPO, USERS[user]))
        return self.say(user, body, after=after, metadata=encode_note(name))

    def answer(self, author: str, request: int, *, accepts: bool, after: int | None = None) -> None:
        """Answer a request."""
        self.say(author, LobbyAnswer(commit_id(request), ADMISSION if accepts else None), after=after)

    def requests(self) -> dict[str, FoundRequest]:
        """Return what is shown, by user."""
        called = {user: name for name, user in USERS.items()}
        membership = self.membership
        found = membership.lobbies.find_requests(membership.operations, membership.now())
        return {called[one.user]: one for one in found}


def test_a_join_of_a_lobby_is_a_request_under_the_name_that_it_states() -> None:
    lobby = LobbyRepo()
    membership = lobby.membership
    assert membership.lobbies.target(membership.operations) == TARGET
    lobby.ask("cat", "Cat")
    lobby.ask("dan")
    assert {user: one.operation.asks_as for user, one in lobby.requests().items()} == {
        "cat": "Cat",
        "dan": None,
    }
    assert not any(one.admissions or one.refused_by or one.is_withdrawn for one in lobby.requests().values())


def test_asking_again_changes_nothing() -> None:
    lobby = LobbyRepo()
    first = lobby.ask("cat", "Cat")
    lobby.ask("cat", "Ann")
    assert [one.operation.commit_id for one in lobby.requests().values()] == [commit_id(first)]


def test_of_requests_made_at_once_the_first_in_canonical_order_is_shown() -> None:
    # Whatever came first: all nodes that follow the lobby show the same.
    lobby = LobbyRepo()
    asked = [lobby.ask("cat", name, after=lobby.invitation) for name in ("One", "Two", "Three", "Four")]
    (request,) = lobby.requests().values()
    assert request.operation.commit_id == min(map(commit_id, asked))
    assert min(map(commit_id, asked)) != commit_id(asked[0]), "another one came first"


@pytest.mark.parametrize("accepts_first", [True, False])
def test_an_acceptance_goes_before_a_concurrent_refusal(accepts_first: bool) -> None:
    lobby = LobbyRepo()
    request = lobby.ask("cat")
    lobby.answer("ann", request, accepts=accepts_first, after=request)
    lobby.answer("ben", request, accepts=not accepts_first, after=request)
    found = lobby.requests()["cat"]
    assert [who for who, _ in found.admissions] == [USERS["ann" if accepts_first else "ben"]]
    assert found.refused_by is None


def test_two_who_accept_at_once_are_both_heard() -> None:
    lobby = LobbyRepo()
    request = lobby.ask("cat")
    for admin in ("ann", "ben"):
        lobby.answer(admin, request, accepts=True, after=request)
    assert {who for who, _ in lobby.requests()["cat"].admissions} == {USERS["ann"], USERS["ben"]}


def test_a_refusal_is_shown_with_who_refused() -> None:
    lobby = LobbyRepo()
    request = lobby.ask("cat")
    lobby.answer("ben", request, accepts=False)
    assert lobby.requests()["cat"].refused_by == USERS["ben"]


def test_who_asks_answers_nobody() -> None:
    lobby = LobbyRepo()
    lobby.ask("cat")
    request = lobby.ask("dan")
    with pytest.raises(CommitRefused, match="M5"):
        lobby.answer("cat", request, accepts=True)


def test_leaving_takes_a_request_back() -> None:
    lobby = LobbyRepo()
    lobby.ask("cat")
    lobby.say("cat", Remove(USERS["cat"], None, ()))
    assert lobby.requests()["cat"].is_withdrawn
    with pytest.raises(CommitRefused, match="later invitation"):
        lobby.ask("cat")


def test_a_revoked_link_is_closed_and_what_was_asked_unseen_is_no_request() -> None:
    lobby = LobbyRepo()
    asked = lobby.ask("cat")
    lobby.say("ben", Revoke(commit_id(lobby.invitation)), after=asked)
    lobby.ask("dan", after=asked)
    assert {user: one.is_closed for user, one in lobby.requests().items()} == {"cat": True}
    with pytest.raises(CommitRefused, match="revoked"):
        lobby.ask("eve")


def test_a_link_lets_no_more_users_ask_than_it_says() -> None:
    lobby = LobbyRepo(uses=1)
    lobby.ask("cat")
    with pytest.raises(CommitRefused, match="no use left"):
        lobby.ask("dan")


def test_a_forged_proof_asks_nothing() -> None:
    lobby = LobbyRepo()
    for seed, repo, user in ((b"j", REPO, "cat"), (b"i", TARGET, "cat"), (b"i", REPO, "dan")):
        proof = prove_invitation(InvitationSeed(seed * 32), repo, USERS[user])
        with pytest.raises(CommitRefused, match="M4"):
            lobby.say("cat", Join(commit_id(lobby.invitation), proof))
    assert lobby.requests() == {}


def test_only_the_founder_makes_a_repo_a_lobby_and_the_first_word_holds() -> None:
    membership = replay(steps_of("ann + ben owner < 0")).real
    lobby = LobbyRepo.__new__(LobbyRepo)
    lobby.membership, lobby._number = membership, 1
    lobby.say("ben", Lobby(TARGET))
    assert membership.lobbies.target(membership.operations) is None
    lobby.say("ann", Lobby(TARGET))
    lobby.say("ann", Lobby(REPO))
    assert membership.lobbies.target(membership.operations) == TARGET


def test_a_repo_with_branches_is_no_lobby() -> None:
    # Nodes forget lobbies by themselves: the founder of a repo must not make members forget its content.
    lobby = LobbyRepo()
    root = Reference(as_object_id(commit_id(0)), BlockKey(b"k" * 32))
    body = BranchAdd(branch_begun_by(commit_id(0)), "main", root)
    lobby.say("ann", body)
    assert lobby.membership.lobbies.target(lobby.membership.operations) is None
