"""Keeps a person's devices in step automatically: shares repos and grants rights between them.

They find each other in a *devices repo* that the person's first user founds (`protocol.formats.devices`): who joins it by a
link for a device is one. There the first device's node hands on each repo that its user is a member of, once; in the repo
itself it gives the device what the user holds (a device grant, M17), and more where the user gets more. The other's node
follows, and publishes the statement that both are one person's. All of it is commits, so nothing is remembered beside them.
`node.membership.pairing` has what a user asks for.

Everything here runs in worker threads, and again after each change, until there is nothing left to do.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Final

import structlog

from node.authoring.author import Author
from node.authoring.drafting import Draft
from node.ingest.ingest_result import IngestResult
from node.ingest.replica import Replica
from node.membership.persons import find_rights_otherwise
from node.runtime.errors import ServiceError
from protocol.crypto.sealed_keys import NotForUs
from protocol.formats.block import Reference
from protocol.formats.body import Body, DeviceGrant, Invite, Permission, Remove
from protocol.formats.devices import Device, DeviceEnd, DevicesRepo, HandOn
from protocol.formats.proofs import device_digest
from protocol.formats.text import id_text
from protocol.ids import CommitId, EpochId, ObjectId, RepoId, UserId
from protocol.limits.formats import DEVICE_COUNT_MAX
from storage.repos.epochs import Epoch
from storage.repos.repos import Repo
from verifier.membership import Membership
from verifier.operations import Operation
from verifier.places import find_heirs, find_keys, find_moves

log = structlog.get_logger()

_HANDED_AT_ONCE: Final = 16
"""Repos that are handed on before other repos are looked after again: some tenths of a second."""


@dataclass(frozen=True, slots=True)
class DevicesHome:
    """The devices repo of this user, and the first device: whose devices find each other there."""

    repo: Repo
    person: UserId
    keys: frozenset[UserId]
    """The first device, and those from which its place came."""


def find_home(replica: Replica, user: UserId) -> DevicesHome | None:
    """Find the devices repo that a user agreed to, and is a member of; one of somebody else's before its own."""
    found = [
        home for home, membership in _homes(replica, user) if membership.now().permission(user) is not None
    ]
    return min(found, key=lambda home: (home.person == user, home.repo.num), default=None)


def find_remover(replica: Replica, user: UserId) -> DevicesHome | None:
    """Find the devices repo that a user agreed to, and was removed from by another; None if there is none."""
    with replica.membership_lock:
        for home, membership in _homes(replica, user):
            if membership.now().permission(user) is None and _removers_of(membership, user):
                return home
    return None


def find_left_home(replica: Replica, user: UserId) -> DevicesHome | None:
    """Find the devices repo in which a user's place passed to another device; None if there is none."""
    found = [home for home, _ in _homes(replica, user) if home.person != user and user in home.keys]
    return min(found, key=lambda home: home.repo.num, default=None)


def _homes(replica: Replica, user: UserId) -> list[tuple[DevicesHome, Membership]]:
    """List the devices repos that a user agreed to, former ones too."""
    found: list[tuple[DevicesHome, Membership]] = []
    with replica.membership_lock:
        for repo in map(replica.tables.of_id.get, replica.with_devices):
            if repo is None or not repo.has_members:
                continue
            membership = replica.membership(repo.repo_id)
            now, founder = membership.now(), _founder(membership)
            heirs = find_heirs(find_moves(membership.operations, now, user))
            person = heirs.get(founder, founder)
            keys = frozenset({founder, person, *(one for one, heir in heirs.items() if heir == person)})
            if any(
                isinstance(one.body, DevicesRepo)
                and one.author == user
                and one.body.person in keys
                and now.counts(one)
                for one in membership.device_statements
            ):
                found.append((DevicesHome(repo, person, keys), membership))
    return found


def find_removed(replica: Replica, home: DevicesHome) -> list[UserId]:
    """List the users whom the first device removed from the devices repo."""
    with replica.membership_lock:
        membership = replica.membership(home.repo.repo_id)
        now, users = membership.now(), membership.operations.users()
        return [
            user
            for user in users
            if now.permission(user) is None and home.keys & _removers_of(membership, user)
        ]


def _removers_of(membership: Membership, user: UserId) -> set[UserId]:
    """Return who removed a user, other than by a leave. Hold `membership_lock`."""
    return {one.author for one in membership.now().counting_removals_of(user) if not one.is_leave}


def is_devices_repo(replica: Replica, repo: Repo, user: UserId) -> bool:
    """Return True if a user agreed that devices of a person find each other in this repo.

    An invitation to it, or a grant in it, makes a device. That others say so of their repos does not count.
    """
    if not repo.has_members or not replica.tells_of_devices(repo.repo_id):
        return False
    with replica.membership_lock:
        statements = replica.membership(repo.repo_id).device_statements
        return any(isinstance(one.body, DevicesRepo) and one.author == user for one in statements)


def find_devices(replica: Replica, home: DevicesHome, now_ms: int) -> list[UserId]:
    """List the other devices in the order of their invitations; at most DEVICE_COUNT_MAX - 1.

    Of each invitation by the first device there is one: to whom something was handed on, else (as the first device sees
    it) who joined first, and before the invitation expired, as the clock there says. The date of a join is its author's.
    """
    with replica.membership_lock:
        membership = replica.membership(home.repo.repo_id)
        now, operations = membership.now(), membership.operations
        agreed = {
            one.author
            for one in membership.device_statements
            if isinstance(one.body, DevicesRepo) and one.body.person in home.keys and now.counts(one)
        }
        found: list[UserId] = []
        for invitation in operations.invitations:
            if invitation.author not in home.keys or not now.counts(invitation):
                continue
            assert isinstance(invitation.body, Invite), "as it is listed"
            joined = [
                one.author
                for one in operations.joins_by(invitation.commit_id)
                if one.author in agreed and one in now.credentials_of(one.author)
            ]
            handed = [user for user in joined if handed_on(membership, home, user)]
            if not handed and now_ms < invitation.body.expires_at:
                handed = joined
            found += [user for user in handed[:1] if user not in found and user not in home.keys]
    return found[: DEVICE_COUNT_MAX - 1]


def _find_let_in_by_copies(replica: Replica, home: DevicesHome) -> set[UserId]:
    """Find who joined the devices repo by what an earlier key made beside the move of its place: a copy of that key did.

    The earlier first device itself invites nobody once it has moved. They stay in the list, to be removed.
    """
    with replica.membership_lock:
        membership = replica.membership(home.repo.repo_id)
        operations = membership.operations
        moves = find_moves(operations, membership.now(), home.person)
        return {
            join.author
            for invitation in operations.invitations
            if invitation.author in moves and not operations.precedes(invitation, moves[invitation.author])
            for join in operations.joins_by(invitation.commit_id)
        }


def find_person(replica: Replica, user: UserId, now_ms: int) -> set[UserId]:
    """Find the users of this person's devices, to which each repo is handed on."""
    home = find_home(replica, user)
    return {user} if home is None else {user, home.person, *find_devices(replica, home, now_ms)}


def handed_on(
    membership: Membership, home: DevicesHome, device: UserId
) -> dict[RepoId, tuple[UserId, HandOn]]:
    """Find what was handed on to a device since it has become one, the last for each repo, with by whom.

    Hold `membership_lock`.
    """
    now, operations = membership.now(), membership.operations
    found: dict[RepoId, tuple[UserId, HandOn]] = {}
    grants = now.credentials_of(device)
    for one in membership.device_statements:
        body = one.body
        if (
            isinstance(body, HandOn)
            and one.author in home.keys
            and body.device == device
            and now.counts(one)
            and (device in home.keys or any(operations.precedes(grant, one) for grant in grants))
        ):
            found[body.repo] = one.author, body
    return found


def find_due(membership: Membership, person: UserId, device: UserId, *, is_new: bool) -> Permission | None:
    """Return what a device is to get by itself; None where it has that, or somebody took it from the device alone.

    Hold `membership_lock`. A device that `is_new` gets what its person holds; another one what its person got since the
    last device grant, but where the person excluded it from this repo. A removal by others that took down the person as
    well is no drop of the device.
    """
    now, operations = membership.now(), membership.operations
    has = now.permission(device) or 0
    if (now.permission(person) or 0) <= has:
        return None
    keys = find_keys(operations, now, person)
    grants = [
        one
        for key in keys
        for one in operations.deciding_by(key)
        if isinstance(one.body, DeviceGrant) and one.body.user == device
    ]

    def is_known(one: Operation) -> bool:
        return any(operations.precedes(operations.origin(one.commit_id), grant) for grant in grants)

    def lowerings(users: Iterable[UserId]) -> set[tuple[UserId, Permission | None]]:
        return {
            (one.author, one.body.keeps)
            for user in users
            for one in now.counting_removals_of(user)
            if isinstance(one.body, Remove) and one.author not in keys and not is_known(one)
        }

    if not lowerings([device]) <= lowerings(keys):
        return None
    leaves = [one for one in now.counting_removals_of(person) if one.is_leave]
    if not is_new and any(
        # With its person it comes back.
        not any(operations.precedes(one, leave) for leave in leaves)
        for one in now.counting_removals_of(device)
        if one.author in keys
        and isinstance(one.body, Remove)
        and one.body.keeps is None
        and not is_known(one)
    ):
        return None
    held = find_rights_otherwise(membership, person)
    highest = max((permission for permission, _ in held), default=None)
    known = max((permission for permission, one in held if not is_new and is_known(one)), default=0)
    return highest if (highest or 0) > max(known, has) else None


class DeviceKeeper:
    """Hands on, and takes up, for one user."""

    def __init__(self, replica: Replica, author: Author, clock_ms: Callable[[], int]) -> None:
        self._replica = replica
        self._author = author
        self._clock_ms = clock_ms
        self.followed: set[tuple[RepoId, EpochId]] = set()
        """Repos and epochs that were taken up; what the store does not keep is not tried for ever."""

    def hand_on(self, stored: IngestResult) -> None:
        """Hand on some repos, and rights, if this is the first device; on another, publish statements.

        `stored` gets what was written. Raises StorageError. A refusal by the rules is logged, and tried again after the
        next change.
        """
        home = find_home(self._replica, self._author.user)
        if home is None:
            return
        is_first, is_device = home.person == self._author.user, home.keys != {self._author.user}
        plans = [self._plan_hand_ons(home)] if is_first else []
        plans += [self._plan_statements(home)] if is_device else []
        left = _HANDED_AT_ONCE
        for repo, write in chain(*plans):
            try:
                write(stored)
            except ServiceError as error:
                log.warning("not handed on to a device", repo=id_text(repo.repo_id), reason=error.message)
                continue
            left -= 1
            if not left:
                break

    def hand_repo_to(
        self,
        home: DevicesHome,
        device: UserId,
        repo: Repo,
        gives: Permission | None,
        stored: IngestResult,
    ) -> None:
        """Give a device a permission in a repo, if any, and hand the repo on. Raises ServiceError."""
        if gives is not None:
            self._write(repo, DeviceGrant(device, gives), stored)
        self._write(home.repo, lambda: self._hand_on(repo, device), stored)

    def find_unfollowed(self) -> list[tuple[Repo, Epoch]]:
        """Repos that were handed on to this user, and are not here or not in that epoch; to be followed."""
        home = find_home(self._replica, self._author.user)
        if home is None or home.keys == {self._author.user}:
            return []
        found = []
        here = {repo.repo_id: repo for repo in self._replica.repos.values() if repo.has_members}
        for giver, body in self._handed_on(home).values():
            repo = here.get(body.repo)
            if (body.repo, body.epoch) in self.followed or (
                repo is not None
                and any(epoch.epoch_id == body.epoch for epoch in self._replica.tables.epochs_in(repo.num))
            ):
                continue
            handed = coming_repo(body.repo, body.root)
            try:
                key = self._author.open_key(body.repo, giver, body.key)
            except NotForUs:
                log.warning("what the first device handed on does not open", repo=id_text(body.repo))
                continue
            found.append((handed, Epoch(0, 0, body.repo, body.epoch, key)))
        return found

    # --- steps ---

    def _handed_on(self, home: DevicesHome) -> dict[RepoId, tuple[UserId, HandOn]]:
        with self._replica.membership_lock:
            return handed_on(self._replica.membership(home.repo.repo_id), home, self._author.user)

    def _plan_hand_ons(self, home: DevicesHome) -> Iterator[tuple[Repo, Callable[[IngestResult], None]]]:
        """Plan what was never handed on, and what this user got since.

        The devices repo comes first: that chooses a device among those who used one link.
        """
        replica, me = self._replica, self._author.user
        let_in_by_copies = _find_let_in_by_copies(replica, home)
        for device in find_devices(replica, home, self._clock_ms()):
            if device in let_in_by_copies:
                continue
            with replica.membership_lock:
                done = handed_on(replica.membership(home.repo.repo_id), home, device)
            others = [
                repo
                for repo in replica.repos.values()
                if repo.num != home.repo.num and repo.repo_id not in replica.lobbies
            ]
            for repo in [home.repo, *others]:
                if not repo.has_members or repo.is_behind or replica.permission(repo, me) is None:
                    continue
                due, is_new = None, repo.repo_id not in done
                if repo.num != home.repo.num:
                    with replica.membership_lock:
                        due = find_due(replica.membership(repo.repo_id), me, device, is_new=is_new)
                if is_new:
                    yield repo, partial(self.hand_repo_to, home, device, repo, due)
                elif due is not None:
                    yield repo, partial(self._write, repo, DeviceGrant(device, due))

    def _plan_statements(self, home: DevicesHome) -> Iterator[tuple[Repo, Callable[[IngestResult], None]]]:
        """Plan for each repo that was handed on, and may be written to by now, the statement that both have signed, once."""
        replica, user = self._replica, self._author.user
        here = {repo.repo_id: repo for repo in replica.repos.values() if repo.has_members}
        for giver, body in self._handed_on(home).values():
            repo = here.get(body.repo)
            if repo is None:
                continue
            with replica.membership_lock:
                membership = replica.membership(repo.repo_id)
                now = membership.now()
                is_said = any(
                    isinstance(one.body, Device)
                    and (one.body.person, one.body.device, one.body.since) == (giver, user, body.since)
                    for one in membership.device_statements
                )
                may_write = (now.permission(user) or 0) >= Permission.WRITE
                heirs = find_heirs(find_moves(membership.operations, now, user))
                if is_said or not may_write or now.permission(heirs.get(giver, giver)) is None:
                    continue
            digest = device_digest(body.repo, giver, user, body.since)
            said = Device(giver, user, body.since, body.signature, self._author.sign(digest))
            yield repo, partial(self._write, repo, said)

    def _hand_on(self, repo: Repo, device: UserId) -> HandOn:
        author, epoch = self._author, self._replica.writing_epoch(repo)
        with self._replica.membership_lock:
            ended = last_end(self._replica.membership(repo.repo_id), [author.user], device)
        since = max(self._clock_ms(), ended + 1)
        return HandOn(
            device,
            repo.repo_id,
            Reference(ObjectId(repo.init_id), repo.init_key),
            epoch.epoch_id,
            author.seal_key(repo.repo_id, device, epoch.key),
            since,
            author.sign(device_digest(repo.repo_id, author.user, device, since)),
        )

    def _write(self, repo: Repo, said: Body | Callable[[], Body], stored: IngestResult) -> None:
        """Write a body, or one that is made when it is settled in which epoch it is published."""
        root = self._replica.root_branch(repo)
        self._author.write_many(root, lambda _: [Draft(said() if callable(said) else said)], stored=stored)


def last_end(membership: Membership, persons: Collection[UserId], device: UserId) -> int:
    """Return until when one of a device and its person took back what both stated; -1 if neither did.

    `persons` are the person's first device and those from which its place came. Hold `membership_lock`.
    """
    ends = [
        one.body.until
        for one in membership.device_statements
        if isinstance(one.body, DeviceEnd) and one.body.person in persons and one.body.device == device
    ]
    return max(ends, default=-1)


def _founder(membership: Membership) -> UserId:
    """Return the founder of the repo; zeros while its init is not here."""
    founding: list[Operation] = membership.operations.epochs[:1]
    return founding[0].author if founding else UserId(bytes(32))


def coming_repo(repo_id: RepoId, root: Reference, invitation: bytes | None = None) -> Repo:
    """Make the row of a repo that is not here yet, with the link that it is joined or asked for by, if any."""
    name = "(not here yet)" if invitation is None else "(joining)"
    init_id = CommitId(root.object_id)
    return Repo(0, repo_id, name, init_id, root.key, 0, is_behind=False, invitation=invitation)
