"""User actions on members: list, grant, remove, leave, manage invitations, adopt void commits.

Each change is one commit in the repo's root branch, which every node judges by the rules of `verifier.membership`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from shlex import quote
from typing import Final, TypedDict

from node.authoring.drafting import Draft
from node.authoring.refusals import refuse
from node.authoring.writing import write_job
from node.ingest.ingest_result import IngestResult
from node.ingest.people import People
from node.ingest.replica import Replica
from node.membership.member_changes import find_arrival
from node.membership.persons import find_companions, find_granted, find_persons_in, held_otherwise, users_of
from node.membership.repo_actions import RepoActions
from node.membership.unsettled import called_claimant, claims_of
from node.runtime.errors import ServiceError
from node.runtime.resolve import PREFIX_SIZE_MIN, did_you_mean, resolve
from protocol.codec import DecodeError
from protocol.crypto.signing import BadSignature, verify_public_key
from protocol.formats.body import Adopt, Body, FeedEnd, Grant, Invite, Join, Permission, Remove, Revoke
from protocol.formats.text import id_text, parse_id
from protocol.ids import BlockId, CommitId, RepoId, UserId
from protocol.limits.formats import ADOPTED_COUNT_MAX, REMOVED_FEED_COUNT_MAX
from ravel.types.members import (
    ClaimedPlace,
    InvitationList,
    InvitationView,
    MemberArrival,
    MemberList,
    MembershipChange,
    MemberView,
    RemovalResult,
)
from storage.commits.feeds import load_feed_tip
from storage.commits.void_marks import load_void_ids
from storage.repos.repos import Branch, Repo
from verifier.membership import Membership
from verifier.operations import Operation
from verifier.places import find_keys
from verifier.refusal import CommitRefused
from verifier.removal_check import authorise_removal

_REVOKED_AT_ONCE_MAX: Final = 1000
"""Invitations that end with an exclusion, the newest: more are revoked by hand."""
PERMISSIONS: Final = {permission.name.lower(): permission for permission in Permission}


@dataclass(frozen=True, slots=True)
class _Removal:
    """Members that are taken down together."""

    users: dict[UserId, Permission | None]
    """Members and what each keeps; the named member comes first."""
    user: UserId
    """The member that the request names."""
    others: list[UserId]
    """Users of the same person that stay members: as they are, or as others than the person let them in."""


class _JoinedFields(TypedDict):
    joined: list[str]
    joined_names: list[str]


class Members(RepoActions):
    """Lists and changes who is in a repo."""

    async def list_all(self, repo: str) -> MemberList:
        """Members and what they may do."""
        target = self._find_repo(repo)
        held = await self._members(target)
        persons, came = await self._hub.run_blocking(self._persons, target, [*held])
        members: list[MemberView] = [
            {
                "user": id_text(user),
                "permission": permission.name.lower(),
                "person": id_text(persons.get(user, user)),
                **_name_fields(self._hub.replica.people, target.repo_id, user, persons.get(user, user)),
                "came": came[user],
            }
            for user, permission in held.items()
        ]
        # A person's devices stand together, the first one first.
        order = sorted(members, key=lambda one: (one["person"], one["person"] != one["user"], one["user"]))
        return {"members": order, "claims": await self._hub.run_blocking(self._claims, target)}

    async def grant(self, repo: str, user: str, permission: str) -> MembershipChange:
        """Make a user a member, or raise the permission of one. Hand over the epoch's key if the user lacks it."""
        target = self._find_repo(repo)
        wanted = _permission(permission)
        held = await self._members(target)
        find = partial(
            find_user, everyone=True, advice="give the whole id: `ravel id` on their node prints it"
        )
        key = await self._hub.run_blocking(find, user, self._hub.replica, target)
        self._check_right(target, held, max(Permission.ADMIN, wanted), f"granting {wanted.name.lower()}")
        if any(bytes(source.peer) == bytes(key) for source in self._hub.sources):
            raise ServiceError(
                "bad_request",
                "that is the id of a computer, and of no user",
                "`ravel id` there prints the user's, too",
            )
        of_others = await self._hub.run_blocking(find_granted, self._hub.replica, target, key)
        if of_others is not None and of_others >= wanted:
            raise ServiceError(
                "already_exists",
                f"{id_text(key)} holds {of_others.name.lower()}",
                "`ravel member revoke` takes away",
            )
        return {**await self._write(target, Grant(key, wanted)), "user": id_text(key)}

    async def remove(self, repo: str, user: str, keeps: str, *, person: bool = True) -> RemovalResult:
        """Lower a member's permission to `keeps`. Empty: the user is excluded.

        With `person`, also those of all other devices of the same person, all or none; of one's own person that of the user
        alone. Devices that this user may not remove stay, and are told.
        """
        target = self._find_repo(repo)
        kept = _permission(keeps) if keeps else None
        held = await self._members(target)
        key = await self._hub.run_blocking(self._find_removed, user, target)
        if key == self._author.user and kept is None:
            raise ServiceError(
                "bad_request", "that is this computer", f"`ravel repo leave {quote(target.name)}`"
            )
        if key != self._author.user:
            needed = await self._hub.run_blocking(self._find_needed, target, key, kept)
            doing = "excluding a member" if kept is None else "lowering a member's permission"
            self._check_right(target, held, needed, doing)
        if not await self._hub.run_blocking(self._takes, target, key, kept):
            raise ServiceError("bad_request", "the user holds no more than that", "`ravel member list` shows")
        removal = await self._hub.run_blocking(self._plan_removal, target, key, kept, person)
        self._check_last_owner([*removal.users], held)
        return await self._remove(target, removal)

    async def leave(self, repo: str, *, force: bool) -> RemovalResult:
        """Stop being a member, with all devices of the person if this is its first, all or none.

        The last owner has to force it: nobody could invite or remove any more.
        """
        target = self._find_repo(repo)
        held = await self._members(target)
        if self._author.user not in held:
            raise ServiceError(
                "already_exists",
                f"you are no member of {target.name}",
                "`ravel repo forget` deletes it from this computer",
            )
        removal = await self._hub.run_blocking(self._plan_removal, target, self._author.user, None, True)
        if not force:
            self._check_last_owner([*removal.users], held)
        return await self._remove(target, removal)

    async def invitations(self, repo: str) -> InvitationList:
        """List invitations that were used or still can be, with author, right, expiry, and the users who joined by them."""
        target = self._find_repo(repo)
        return {"invitations": await self._hub.run_blocking(self._invitations, target)}

    async def revoke_invitation(self, repo: str, invitation: str) -> MembershipChange:
        """End an invitation: who joins by it without having been seen is no member."""
        target = self._find_repo(repo)
        held = await self._members(target)
        self._check_right(target, held, Permission.ADMIN, "revoking an invitation")
        known = await self._hub.run_blocking(self._invitations, target)
        found = resolve(
            "invitation",
            invitation,
            [(one, "", CommitId(BlockId(one))) for one in (parse_id(item["invitation"]) for item in known)],
        )
        return await self._write(target, Revoke(found))

    async def adopt(self, branch: str, commits: list[str]) -> MembershipChange:
        """Make void commits of a branch count again, those of these ids or unique prefixes."""
        target = self._find_branch(branch)
        repo = self._hub.replica.repos[target.repo_num]
        self._check_right(repo, await self._members(repo), Permission.ADMIN, "adopting commits")
        void = await self._hub.run_blocking(self._void_ids, target)
        chosen = tuple(
            dict.fromkeys(resolve("void commit", text, [(raw, "", raw) for raw in void]) for text in commits)
        )
        if not 0 < len(chosen) <= ADOPTED_COUNT_MAX:
            raise ServiceError("bad_request", f"adopt 1 to {ADOPTED_COUNT_MAX} commits at once")
        return await self._write(repo, Adopt(target.branch_id, chosen))

    def _check_right(
        self, repo: Repo, held: dict[UserId, Permission], needed: Permission, doing: str
    ) -> None:
        """Refuse what the rules would refuse for lack of permission, before anything else that stands against it."""
        own = held.get(self._author.user)
        if own is None or own < needed:
            held_now = "are no member of" if own is None else f"hold {own.name.lower()} in"
            raise ServiceError(
                "not_permitted",
                f"{doing} needs the permission {needed.name.lower()}, and you {held_now} {repo.name}",
                f"ask one who holds it: `ravel member list {id_text(repo.repo_id)[:12]}` shows who",
            )

    def _find_removed(self, text: str, repo: Repo) -> UserId:
        """Find a member, else somebody who left: the key still writes beside its leave. Raises ServiceError."""
        try:
            return find_user(text, self._hub.replica, repo)
        except ServiceError as error:
            if error.code != "not_found":
                raise
            with self._hub.replica.membership_lock:
                membership = self._hub.replica.membership(repo.repo_id)
                users = [one for one in membership.operations.users() if _takes(membership, one, None)]
            named = self._hub.replica.people.find(repo.repo_id, text, users)
            if named is None and not any(id_text(one).startswith(text) for one in users):
                raise
            shown = partial(self._hub.replica.people.name, repo.repo_id)
            return named or resolve("member", text, [(one, "", one) for one in users], shown)

    def _takes(self, repo: Repo, user: UserId, keeps: Permission | None) -> bool:
        with self._hub.replica.membership_lock:
            membership = self._hub.replica.membership(repo.repo_id)
            if user == self._author.user:
                return (membership.now().permission(user) or 0) > (keeps or 0)
            return _takes(membership, user, keeps)

    def _find_needed(self, repo: Repo, user: UserId, keeps: Permission | None) -> Permission:
        """Return the permission that taking down another member needs: what one's own device grants gave needs read (M7)."""
        with self._hub.replica.membership_lock:
            membership = self._hub.replica.membership(repo.repo_id)
            otherwise = held_otherwise(membership, user, _keys(membership, self._author.user))
        return Permission.READ if (otherwise or 0) <= (keeps or 0) else Permission.WRITE

    def _plan_removal(
        self, repo: Repo, user: UserId, keeps: Permission | None, with_person: bool
    ) -> "_Removal":
        """Plan to take down a member, and who goes along. Raises ServiceError where the rules refuse it (M7).

        Companions that the rules do not let go, also for lack of approvals, stay.
        """
        replica, me = self._hub.replica, self._author.user
        stated = replica.persons(repo.repo_id)
        with replica.membership_lock:
            membership = replica.membership(repo.repo_id)
            persons, now = find_persons_in(membership, stated), membership.now()
            companions = find_companions(membership, persons, me, user, keeps) if with_person else {}
            users: dict[UserId, Permission | None] = {}
            staying = set[UserId]()
            for one, left in {user: keeps, **companions}.items():
                refusal = _find_refusal(membership, me, one, left)
                if refusal is not None and one == user:
                    raise refuse(replica.people, repo.repo_id, me, refusal) from None
                if refusal is None:
                    users[one] = left
                elif user == me:  # who leaves takes back what it gave, where others let a device in, too
                    kept = held_otherwise(membership, one, _keys(membership, me))
                    if _find_refusal(membership, me, one, kept) is None:
                        users[one], staying = kept, {*staying, one}
            same = users_of(persons, user)
            if user != me and me in same:  # who removes one device of its own goes on with the others
                same = set()
            others = sorted({*same, *companions, *staying} - (users.keys() - staying))
            others = [one for one in others if now.permission(one) is not None]
        return _Removal(users, user, others)

    def _check_last_owner(self, users: Sequence[UserId], held: dict[UserId, Permission]) -> None:
        owners = {one for one, permission in held.items() if permission is Permission.OWNER}
        if owners and owners.issubset(users):
            raise ServiceError(
                "not_permitted",
                "that is the last owner: without one nobody can make another",
                "make another owner with `ravel member grant`, or leave with `ravel repo leave --force`",
            )

    def _persons(
        self, repo: Repo, users: Sequence[UserId]
    ) -> tuple[dict[UserId, UserId], dict[UserId, MemberArrival | None]]:
        replica = self._hub.replica
        name_of = partial(replica.people.name, repo.repo_id)
        with replica.membership_lock:
            membership = replica.membership(repo.repo_id)
            persons = find_persons_in(membership, replica.persons(repo.repo_id))
            return persons, {user: find_arrival(membership, user, name_of) for user in users}

    def _claims(self, repo: Repo) -> list[ClaimedPlace]:
        people = self._hub.replica.people
        with self._hub.replica.membership_lock:
            claims = claims_of(self._hub.replica.membership(repo.repo_id))
        return [
            {
                "user": id_text(user),
                "name": people.name(repo.repo_id, user),
                "claimants": [*map(id_text, takers)],
                "claimant_names": [called_claimant(people, repo.repo_id, one) for one in takers],
            }
            for user, takers in claims.items()
        ]

    async def _members(self, repo: Repo) -> dict[UserId, Permission]:
        return await self._hub.run_blocking(self._hub.replica.members, repo)

    async def _remove(self, repo: Repo, removal: "_Removal") -> RemovalResult:
        run, me = self._hub.run_blocking, self._author.user
        held = await run(self._hub.replica.permission, repo, me)
        bodies: list[Body] = []
        for user, keeps in removal.users.items():
            bodies.append(Remove(user, keeps, await run(self._feed_ends, repo, user)))
            if keeps is None and user != me and (held or 0) >= Permission.ADMIN:
                # Else the member, or a friend, comes back by the same link under another key.
                revoked = await run(self._revocations, repo, user)
                bodies += [body for body in revoked if body not in bodies]
        if removal.user == me:  # last: what follows would lack the right
            bodies.append(bodies.pop(0))
        change = await self._write(repo, *bodies, named=-1 if removal.user == me else 0)
        await write_job(self._hub, partial(self._author.preparation.prepare, repo))
        epoch = self._hub.replica.writing_epoch(repo).epoch_id
        return {
            **change,
            "epoch": id_text(epoch),
            "devices": [id_text(one) for one in removal.users if one not in (removal.user, *removal.others)],
            "other_devices": [id_text(one) for one in removal.others],
        }

    async def _write(self, repo: Repo, *bodies: Body, named: int = 0) -> MembershipChange:
        """Write some commits of the root branch, one after the other, all or none. The answer names one of them."""
        root = self._hub.replica.root_branch(repo)

        def write(stored: IngestResult) -> tuple[CommitId, int]:
            written, _ = self._author.write_many(root, [Draft(body) for body in bodies], stored=stored)
            return written[named].commit_id, stored.voided

        commit_id, voided = await write_job(self._hub, write)
        return {"commit": id_text(commit_id), "repo": id_text(repo.repo_id), "voided": voided}

    def _feed_ends(self, repo: Repo, user: UserId) -> tuple[FeedEnd, ...]:
        replica = self._hub.replica
        branches = replica.branches_in(repo.num)
        with replica.database.read() as connection:
            tips = [
                (branch.branch_id, tip)
                for branch in branches
                if not branch.facts.is_root_branch
                and (tip := load_feed_tip(connection, branch.num, user)) is not None
            ]
        return tuple(
            FeedEnd(branch_id, tip.sequence, tip.commit_id)
            for branch_id, tip in tips[:REMOVED_FEED_COUNT_MAX]
        )

    def _revocations(self, repo: Repo, user: UserId) -> list[Revoke]:
        """Plan to revoke the invitations that the user joined by, and those that the user made."""
        replica = self._hub.replica
        with replica.membership_lock:
            membership = replica.membership(repo.repo_id)
            now, operations = membership.now(), membership.operations
            ids = [one.commit_id for one in operations.authored_by(user) if isinstance(one.body, Invite)]
            ids += [
                grant.body.invitation for grant in operations.grants_of(user) if isinstance(grant.body, Join)
            ]
            open_ones = [
                one
                for one in dict.fromkeys(ids)
                if not any(map(now.has_effect, operations.revocations_of(one)))
            ]
        return [Revoke(one) for one in open_ones[-_REVOKED_AT_ONCE_MAX:]]

    def _invitations(self, repo: Repo) -> list[InvitationView]:
        replica = self._hub.replica
        with replica.membership_lock:
            membership = replica.membership(repo.repo_id)
            now, operations = membership.now(), membership.operations
            return [
                {
                    "invitation": id_text(one.commit_id),
                    "author": id_text(one.author),
                    "author_name": replica.people.name(repo.repo_id, one.author),
                    "permission": one.body.permission.name.lower(),
                    "uses": one.body.uses,
                    "expires_at": one.body.expires_at // 1000,
                    "renews": one.renews,
                    **self._joined(
                        repo, [join for join in operations.joins_by(one.commit_id) if now.counts(join)]
                    ),
                    "revoked": not now.counts(one)
                    or any(map(now.has_effect, operations.revocations_of(one.commit_id))),
                }
                for one in operations.invitations
                if isinstance(one.body, Invite)
            ]

    def _joined(self, repo: Repo, joins: Sequence[Operation]) -> _JoinedFields:
        users = sorted({join.author for join in joins}, key=id_text)
        people = self._hub.replica.people
        return {
            "joined": [id_text(user) for user in users],
            "joined_names": [people.name(repo.repo_id, user) for user in users],
        }

    def _void_ids(self, branch: Branch) -> list[CommitId]:
        with self._hub.replica.database.read() as connection:
            return load_void_ids(connection, branch.num)


def _find_refusal(
    membership: Membership, author: UserId, user: UserId, keeps: Permission | None
) -> CommitRefused | None:
    """Return why the rules refuse a removal now, None where they do not. Hold `membership_lock`."""
    try:
        authorise_removal(membership.operations, author, Remove(user, keeps, ()), membership.now())
    except CommitRefused as error:
        return error
    return None


def _takes(membership: Membership, user: UserId, keeps: Permission | None) -> bool:
    """Return True if a removal takes something from a user, or would had it not left (M7). Hold `membership_lock`."""
    return bool(membership.now().find_taken(user, keeps))


def _keys(membership: Membership, user: UserId) -> set[UserId]:
    """Return a user and those from whom its place came. Hold `membership_lock`."""
    return find_keys(membership.operations, membership.now(), user)


def _permission(text: str) -> Permission:
    found = PERMISSIONS.get(text)
    if found is None:
        raise ServiceError("bad_request", f"a permission is one of {', '.join(PERMISSIONS)}, not {text!r}")
    return found


def find_user(text: str, replica: Replica, repo: Repo, *, everyone: bool = False, advice: str = "") -> UserId:
    """Find a member by name or unique prefix, or anyone by a full id; with `everyone`, also a named user who is no member.

    `advice` is for a user who is not found, in place of a list of members.
    Raises ServiceError `not_found`, and `ambiguous` also where a name is the beginning of another's id.
    """
    try:
        user = UserId(parse_id(text))
        verify_public_key(user)
    except (DecodeError, BadSignature):
        pass
    else:
        return user
    users = list(replica.members(repo))
    if everyone:
        users = list(dict.fromkeys([*users, *replica.people.of(repo.repo_id)]))
    named = replica.people.find(repo.repo_id, text, users)
    if named is None:
        _check_stated(text, replica.people, repo.repo_id, users)
        shown = partial(replica.people.name, repo.repo_id)
        try:
            return resolve("member", text, [(one, "", one) for one in users], shown)
        except ServiceError as error:
            if advice and error.code == "not_found":
                near = did_you_mean(text, sorted(filter(None, map(shown, users))))
                raise ServiceError("not_found", f"nobody here is called {text!r}{near}", advice) from None
            raise
    prefixed = [one for one in users if len(text) >= PREFIX_SIZE_MIN and id_text(one).startswith(text)]
    if others := [one for one in prefixed if one != named]:
        raise ServiceError(
            "ambiguous",
            f"{text!r} is the name of {id_text(named)[:12]}, and the id of {id_text(others[0])[:12]} begins so",
            "give the whole id",
        )
    return named


def _check_stated(text: str, people: People, repo_id: RepoId, users: Iterable[UserId]) -> None:
    """Raise ServiceError `not_found` where a user states that name and has a petname here, which hides it."""
    stated = people.stated(repo_id)
    for user in users:
        petname, said = people.petname(user), stated.get(user)
        if petname and said is not None and said.name == text:
            message = f"nobody is called {text!r} here: who states that name is called {petname!r}"
            raise ServiceError("not_found", message, "give that name, or the id")


class _NameFields(TypedDict):
    name: str
    stated_name: str | None
    petname: str | None
    looks_alike: bool
    color: int | None


def _name_fields(people: People, repo_id: RepoId, user: UserId, person: UserId) -> _NameFields:
    shown = people.of(repo_id).get(user)
    stated = people.stated(repo_id)
    said = stated.get(user)
    of_person = said if said is not None and said.color is not None else stated.get(person)
    return {
        "name": "" if shown is None else shown.text,
        "stated_name": None if said is None else said.name,
        "petname": people.petname(user) or people.person_petname(repo_id, person) or None,
        "looks_alike": shown is not None and shown.is_like_another,
        "color": None if of_person is None else of_person.color,
    }
