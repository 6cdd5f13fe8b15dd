"""Who may do what, as a function of the root branch's commits alone.

The state after a commit is the union of the states after its acks, and the commit's own effect; so it depends on the
commit's causal past and on nothing else, in whatever order commits arrive. Rules (docs/membership.md has them in
words):

  M1  The init commit has no acks, is authored by a founding owner, and is certified by the repo's key.
  M2  Only an owner adds a branch, and a branch is added once.
  M3  Only an owner invites, and nobody invites to more than writing.
  M4  A join names an invitation in its own past, carries that invitation's proof for its author, is dated before the
      expiry, and finds a use left.
  M5  Everything else needs the permission to write, held in the commit's own past.

This module judges; it does not look at signatures (see `verify`), nor does it keep anything beyond memory.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from protocol.body import (
    Body,
    BranchAdd,
    Invite,
    Join,
    Permission,
    RepoInit,
    UnknownBody,
    verify_certificate,
    verify_invitation_proof,
)
from protocol.commit import Commit
from protocol.signing import BadSignature, verify_public_key


class Refused(Exception):
    """A commit lacks authority; `code` is stable, and names the rule in its detail."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail


@dataclass(frozen=True, slots=True)
class MemberState:
    """Membership after some commits: owners, invitations made, who joined by which, and the branches added."""

    owners: frozenset[bytes] = frozenset()
    invitations: Mapping[bytes, Invite] = field(default_factory=dict)
    joined: Mapping[bytes, frozenset[bytes]] = field(default_factory=dict)
    branches: frozenset[bytes] = frozenset()

    def permission(self, user: bytes) -> Permission | None:
        """The highest permission that a chain of grants gave this user, or None for a stranger."""
        if user in self.owners:
            return Permission.OWNER
        held = [
            self.invitations[invitation].permission
            for invitation, users in self.joined.items()
            if user in users
        ]
        return max(held, default=None)

    def members(self) -> dict[bytes, Permission]:
        """Every member with the highest permission held."""
        users = set(self.owners).union(*self.joined.values())
        return {user: held for user in users if (held := self.permission(user)) is not None}


_EMPTY: Final = MemberState()


class Membership:
    """The membership of one repo, grown commit by commit. Memory: one state per root branch commit."""

    def __init__(self, repo_id: bytes) -> None:
        self._repo_id = repo_id
        self._after: dict[bytes, MemberState] = {}
        self._merged: tuple[tuple[bytes, ...], MemberState] = ((), _EMPTY)

    def after(self, commit_ids: tuple[bytes, ...]) -> MemberState:
        """The state after these root branch commits, all of which must have been added."""
        if len(commit_ids) == 1:
            return self._after[commit_ids[0]]
        if self._merged[0] != commit_ids:  # content commits name the same heads again and again
            self._merged = (commit_ids, _union(self._after[commit_id] for commit_id in commit_ids))
        return self._merged[1]

    def authorise_root_commit(self, commit: Commit, body: Body | UnknownBody) -> MemberState:
        """The state after a root branch commit whose acks were all added. Raises Refused."""
        author = commit.content.author
        if isinstance(body, RepoInit):
            return self._init(commit, body)
        before = self.after(commit.acks)
        match body:
            case BranchAdd():
                _need(before.permission(author), Permission.OWNER, "M2: only an owner adds branches")
                if body.branch in before.branches or body.branch == self._repo_id:
                    raise Refused("branch_exists", "M2: the branch was added before")
                return MemberState(
                    before.owners, before.invitations, before.joined, before.branches | {body.branch}
                )
            case Invite():
                _need(before.permission(author), Permission.OWNER, "M3: only an owner invites")
                if body.permission > Permission.WRITE:
                    raise Refused("not_permitted", "M3: an invitation grants writing at most")
                invitations = {**before.invitations, commit.commit_id: body}
                return MemberState(before.owners, invitations, before.joined, before.branches)
            case Join():
                return self._join(commit, body, before)
            case _:
                _need(before.permission(author), Permission.WRITE, "M5: the author may not write here")
                return before

    def authorise_content(self, author: bytes, seen: tuple[bytes, ...]) -> None:
        """Raise Refused unless `author` may write after the root branch commits `seen` (M5)."""
        _need(self.after(seen).permission(author), Permission.WRITE, "M5: the author may not write here")

    def add(self, commit_id: bytes, state: MemberState) -> None:
        """Keep the state after an accepted root branch commit."""
        self._after[commit_id] = state

    def discard(self, commit_ids: Iterable[bytes]) -> None:
        """Take back what was added in a transaction that then failed."""
        for commit_id in commit_ids:
            self._after.pop(commit_id, None)
        self._merged = ((), _EMPTY)

    def _init(self, commit: Commit, body: RepoInit) -> MemberState:
        if commit.acks:
            raise Refused("not_permitted", "M1: an init acks nothing")
        if commit.content.author not in body.owners:
            raise Refused("not_permitted", "M1: an init is authored by a founding owner")
        try:
            verify_certificate(self._repo_id, body)
            for owner in body.owners:
                verify_public_key(owner)
        except BadSignature as error:
            raise Refused("bad_certificate", f"M1: {error}") from None
        return MemberState(owners=frozenset(body.owners))

    def _join(self, commit: Commit, body: Join, before: MemberState) -> MemberState:
        user = commit.content.author
        invitation = before.invitations.get(body.invitation)
        if invitation is None:
            raise Refused("unknown_invitation", "M4: no such invitation in the commit's past")
        joined = before.joined.get(body.invitation, frozenset())
        if commit.content.timestamp > invitation.expires_at:
            raise Refused("invitation_expired", "M4: dated after the expiry")
        if user not in joined and len(joined) >= invitation.uses:
            raise Refused("invitation_used", "M4: no use left")
        try:
            verify_public_key(user)
            verify_invitation_proof(invitation.invitation_key, self._repo_id, user, body.proof)
        except BadSignature as error:
            raise Refused("bad_proof", f"M4: {error}") from None
        all_joined = {**before.joined, body.invitation: joined | {user}}
        return MemberState(before.owners, before.invitations, all_joined, before.branches)


def _need(held: Permission | None, needed: Permission, rule: str) -> None:
    if held is None:
        raise Refused("unknown_author", rule)
    if held < needed:
        raise Refused("not_permitted", rule)


def _union(states: Iterable[MemberState]) -> MemberState:
    owners: frozenset[bytes] = frozenset()
    branches: frozenset[bytes] = frozenset()
    invitations: dict[bytes, Invite] = {}
    joined: dict[bytes, frozenset[bytes]] = {}
    for state in states:
        owners |= state.owners
        branches |= state.branches
        invitations.update(state.invitations)
        for invitation, users in state.joined.items():
            joined[invitation] = joined.get(invitation, frozenset()) | users
    return MemberState(owners, invitations, joined, branches)
