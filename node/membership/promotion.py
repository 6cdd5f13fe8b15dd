"""User action that passes a person's place on: in each repo from the first device to another, which is the first then."""

from collections.abc import Collection
from functools import partial
from shlex import quote

from node.authoring.author import Author
from node.authoring.drafting import Draft
from node.authoring.writing import write_job
from node.ingest.ingest_result import IngestResult
from node.ingest.replica import Replica
from node.membership.devices import DeviceKeeper, DevicesHome, handed_on
from node.membership.persons import find_rights_otherwise
from node.runtime.errors import ServiceError
from node.sync.hub import Hub
from protocol.formats.body import Body, DeviceGrant, Move, Permission, Quorum, Remove
from protocol.formats.text import id_text
from protocol.ids import CommitId, UserId
from ravel.types.devices import MovedRepo
from storage.repos.repos import Repo
from verifier.membership import Membership
from verifier.operations import Operation
from verifier.places import find_heirs, find_moves
from verifier.quorums import find_in_force


class Promotion:
    """Passes this user's place on to a device, repo by repo. What was done stays so, and is not done again."""

    def __init__(self, hub: Hub, author: Author, keeper: DeviceKeeper) -> None:
        self._hub = hub
        self._author = author
        self._keeper = keeper

    async def pass_all(
        self, home: DevicesHome, device: UserId, others: Collection[UserId]
    ) -> list[MovedRepo]:
        """Pass the place on in every repo in which this user holds one, or passed it on before.

        Raises ServiceError if it passed to another one of these `others` in some repo: the device would have no place there,
        and neither of the two could give it that.
        """
        repos = await self._hub.run_blocking(self._find_repos, home, {*others} - {device})
        return [await self._pass_on(home, repo, device) for repo in repos]

    async def _pass_on(self, home: DevicesHome, repo: Repo, device: UserId) -> MovedRepo:
        done: MovedRepo = {
            "repo": id_text(repo.repo_id),
            "name": repo.name,
            "moved": False,
            "already": False,
            "signs": await self._hub.run_blocking(self._signs, repo),
            "advice": "",
        }
        try:
            done["moved"] = await write_job(self._hub, partial(self._write, home, repo, device))
            done["already"] = not done["moved"]
        except ServiceError as error:
            done["advice"] = f"{error.message}; {error.advice or 'try again'}"
        return done

    def _find_repos(self, home: DevicesHome, others: Collection[UserId]) -> list[Repo]:
        """List the repos; that of the devices comes last, so that what fails before can be tried again.

        Raises ServiceError if the place passed to one of these `others`.
        """
        replica, me = self._hub.replica, self._author.user
        found = []
        with replica.membership_lock:
            for repo in replica.repos.values():
                if not repo.has_members or repo.repo_id in replica.lobbies:
                    continue
                membership = replica.membership(repo.repo_id)
                is_member = membership.now().permission(me) is not None
                heir = None if is_member else find_heir(replica, repo, me)
                if heir is not None and heir in others:
                    raise ServiceError(
                        "bad_request",
                        f"your place in {repo.name} has passed to {id_text(heir)}",
                        f"run `ravel device promote {id_text(heir)}` to the end: that device can then pass all on",
                    )
                if is_member or heir is not None:
                    found.append(repo)
        return sorted(found, key=lambda one: one.num == home.repo.num)

    def _signs(self, repo: Repo) -> bool:
        """Return True if a quorum in force names this user as a signer."""
        with self._hub.replica.membership_lock:
            membership = self._hub.replica.membership(repo.repo_id)
            in_force = find_in_force(membership.operations, membership.now())
            return any(
                isinstance(one.body, Quorum) and self._author.user in one.body.signers for one in in_force
            )

    def _write(self, home: DevicesHome, repo: Repo, device: UserId, stored: IngestResult) -> bool:
        """Write what passes the place on; return False if it has passed. Raises ServiceError, StorageError."""
        replica, me = self._hub.replica, self._author.user
        is_home = repo.num == home.repo.num
        with replica.membership_lock:
            membership = replica.membership(repo.repo_id)
            now = membership.now()
            if now.permission(me) is None:
                return False
            credential, permission = _find_place(membership, me)
            otherwise = find_rights_otherwise(membership, device, home.keys)
            bodies: list[Body] = []
            if otherwise and not is_home:
                raise ServiceError(
                    "not_permitted",
                    "others let the device in here",
                    f"have an admin run `ravel member exclude --alone {quote(repo.name)} {id_text(device)}`; run this again "
                    "once that has come here",
                )
            if otherwise:  # it joined by a link: a place passes to who holds by device grants alone
                bodies.append(Remove(device, None, ()))
            if otherwise or now.permission(device) is None:
                bodies.append(DeviceGrant(device, permission))
            bodies.append(Move(device, credential.commit_id))
            of_home = replica.membership(home.repo.repo_id)
            is_new = not is_home and repo.repo_id not in handed_on(of_home, home, device)
        if is_new:
            self._keeper.hand_repo_to(home, device, repo, None, stored)
        self._author.write_many(replica.root_branch(repo), [Draft(body) for body in bodies], stored=stored)
        return True


def _find_place(membership: Membership, user: UserId) -> tuple[Operation, Permission]:
    """Find the most senior credential that a member may pass on, with what it gives. Hold `membership_lock`."""
    operations = membership.operations
    held = find_rights_otherwise(membership, user)
    if not held:
        raise ServiceError("not_permitted", "this user is itself a device of somebody here", "run it there")

    def seniority(pair: tuple[Permission, Operation]) -> tuple[int, tuple[int, CommitId]]:
        return -pair[0], operations.place(operations.origin(pair[1].commit_id))

    permission, credential = min(held, key=seniority)
    return credential, permission


def find_heir(replica: Replica, repo: Repo, user: UserId) -> UserId | None:
    """Return who has the place that a user passed on in a repo; None if it passed none on, or is a member."""
    with replica.membership_lock:
        membership = replica.membership(repo.repo_id)
        return find_heirs(find_moves(membership.operations, membership.now(), user)).get(user)


def find_move_time(replica: Replica, repo: Repo, user: UserId) -> int:
    """Return when a user passed its place on in a repo, by its own clock, in Unix seconds; 0 if it did not."""
    with replica.membership_lock:
        membership = replica.membership(repo.repo_id)
        move = find_moves(membership.operations, membership.now(), user).get(user)
        return 0 if move is None else move.timestamp // 1000
