"""Finds what the members of a repo have to settle where a key moved, was copied or was lost. No verdict rests on it."""

from dataclasses import dataclass, field
from shlex import quote

from node.ingest.people import SHORT_ID_LENGTH, People
from node.ingest.replica import Replica
from node.membership.persons import held_otherwise, users_of
from protocol.formats.body import Permission, Quorum, RecoveryGrant
from protocol.formats.text import id_text
from protocol.ids import RepoId, UserId
from storage.repos.repos import Repo
from verifier.membership import Membership
from verifier.places import find_claims
from verifier.quorums import find_in_force

_CLAIMS_MAX = 8
"""Users whose places several claim, and claimants of each, that are told of: who copied a key makes any number."""


@dataclass(frozen=True, slots=True)
class NextStep:
    """Way in which a key that friends let in gets a place of its own."""

    command: str
    """Empty: nobody who is left can."""
    admins: tuple[UserId, ...]
    """Users who can run the command: the key itself, if it may."""

    def names(self, people: People, repo_id: RepoId, user: UserId) -> list[str]:
        """Return what those are called who can run it; nothing where it is the user itself that was let in."""
        others = [one for one in self.admins if one != user]
        return [people.name(repo_id, one) or id_text(one)[:SHORT_ID_LENGTH] for one in others]


@dataclass(frozen=True, slots=True)
class Unsettled:
    """Things to settle in a repo, as far as one of its members can do something about them."""

    claims: dict[UserId, list[UserId]] = field(default_factory=dict)
    """Users whose place several others claim, with these."""
    signers_gone: tuple[UserId, ...] = ()
    """Signers of quorums in force who are members no more; told to owners, who name signers."""
    next_step: NextStep | None = None
    """For this user, if friends let it in and it has no place of its own."""


NOTHING_UNSETTLED = Unsettled()


def find_unsettled(replica: Replica, repo: Repo, me: UserId) -> Unsettled:
    """Find what a user has to know. Costs O(removals + quorums + recovery grants)."""
    with replica.membership_lock:
        membership = replica.membership(repo.repo_id)
        now, operations = membership.now(), membership.operations
        claims = claims_of(membership)
        gone: list[UserId] = []
        if now.permission(me) is Permission.OWNER:
            in_force = [one.body for one in find_in_force(operations, now)]
            signers = {user for one in in_force if isinstance(one, Quorum) for user in one.signers}
            gone = sorted(user for user in signers if now.permission(user) is None)
    return Unsettled(claims, tuple(gone), find_next_step(replica, repo, me))


def claims_of(membership: Membership) -> dict[UserId, list[UserId]]:
    """Map users whose place several others claim to these, some of each. Hold `membership_lock`."""
    claims = find_claims(membership.operations, membership.now())
    return {user: takers[:_CLAIMS_MAX] for user, takers in sorted(claims.items())[:_CLAIMS_MAX]}


def called_claimant(people: People, repo_id: RepoId, user: UserId) -> str:
    """Return a claimant's own name with the beginning of its id: whoever copied a key can call itself anything."""
    name, short = people.device_name(repo_id, user), id_text(user)[:SHORT_ID_LENGTH]
    return short if name == short else f"{name} [{short}]"


def find_next_step(replica: Replica, repo: Repo, user: UserId) -> NextStep | None:
    """Find how a key that friends let in as somebody's device gets a place of its own; None where it is none, or has one.

    A device holds all that a grant needs, so that who holds admin or owner by friends' grants gives itself the same.
    """
    persons = replica.persons(repo.repo_id)
    with replica.membership_lock:
        membership = replica.membership(repo.repo_id)
        now = membership.now()
        held = now.permission(user)
        by_friends = [one for one in now.credentials_of(user) if isinstance(one.body, RecoveryGrant)]
        if held is None or not by_friends or (held_otherwise(membership, user) or 0) >= held:
            return None
        lost = {one.author for one in by_friends}
        if held >= Permission.ADMIN:
            admins = [user]
        else:
            mine = {user}.union(*(users_of(persons, one) for one in lost))
            admins = sorted(
                one for one, may in now.members().items() if may >= Permission.ADMIN and one not in mine
            )
    command = f"ravel member grant {quote(repo.name)} {id_text(user)} {held.name.lower()}"
    return NextStep(command if admins else "", tuple(admins))
