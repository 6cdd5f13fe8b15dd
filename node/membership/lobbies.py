"""Keeps lobbies without being asked: follows those of one's repos, asks, takes up acceptances, and forgets what is over.

A lobby (`protocol.formats.lobbies`) is a small repo in which users ask to be let into another one. The admins' nodes follow
it because the other repo's root branch says so; the node of who asks, because its user took up a link. All of it is commits
and the kept link, so a restart loses nothing. `node.membership.requests` has what users ask for.

Everything here runs in worker threads, and again after each change, until there is nothing left to do.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import structlog

from node.authoring.author import Author
from node.authoring.drafting import Draft
from node.home.people_file import OwnProfile
from node.ingest.ingest_result import IngestResult
from node.ingest.replica import Replica
from node.membership.devices import coming_repo
from node.runtime.errors import ServiceError
from protocol.crypto.sealed_keys import NotForUs
from protocol.formats.body import Invite, Join, Permission, Revoke
from protocol.formats.links import AskLink, InvitationLink, find_kept_ask
from protocol.formats.lobbies import LobbyAdd, encode_note
from protocol.formats.proofs import prove_invitation
from protocol.formats.text import id_text
from protocol.ids import EpochId, RepoId
from protocol.limits.peers import LOBBY_COUNT_MAX
from storage.peers.peers import unlink_repo
from storage.repos.deletion import forget_repo
from storage.repos.epochs import Epoch
from storage.repos.repos import Repo
from verifier.lobbies import FoundRequest
from verifier.operations import Operation

log = structlog.get_logger()

FORGOTTEN_AFTER_MS: Final = 7 * 86_400_000
"""How long after its expiry a lobby is kept: an answer that was given at the last moment still arrives."""
_OTHER_REPO: Final = "the link names another repo than its lobby does"


@dataclass(frozen=True, slots=True)
class MadeLobby:
    """A lobby of a repo whose admin this user is, as the repo's root branch states it."""

    target: Repo
    operation: Operation
    body: LobbyAdd


def is_lobby(replica: Replica, repo: Repo) -> bool:
    """Return True if a repo is a lobby, of others or of one's own, and so is shown as requests and not as a repo."""
    return repo.repo_id in replica.lobbies or find_kept_ask(repo.invitation) is not None


def count_lobbies(replica: Replica) -> int:
    """Count the repos that are lobbies."""
    tables = replica.tables
    asking = {repo.repo_id for repo, _ in find_asked(replica)}
    return len(asking.union(replica.lobbies) & tables.of_id.keys())


def find_lobbies_of(replica: Replica, target: Repo) -> list[MadeLobby]:
    """Lobbies of a repo that count: their makers are admins still. The latest first. Takes `membership_lock`."""
    with replica.membership_lock:
        membership = replica.membership(target.repo_id)
        now = membership.now()
        return [
            MadeLobby(target, one, one.body)
            for one in reversed(membership.lobbies.additions)
            if isinstance(one.body, LobbyAdd)
            and now.counts(one)
            and (now.permission(one.author) or 0) >= Permission.ADMIN
        ]


def find_requests(replica: Replica, lobby: Repo) -> list[FoundRequest]:
    """Find the requests of a lobby. Takes `membership_lock`."""
    with replica.membership_lock:
        membership = replica.membership(lobby.repo_id)
        return membership.lobbies.find_requests(membership.operations, membership.now())


def find_repo(replica: Replica, repo_id: RepoId) -> Repo | None:
    """Find a repo that is here whole, by its id."""
    repo = replica.tables.of_id.get(repo_id)
    return repo if repo is not None and repo.has_members else None


def find_asked(replica: Replica) -> list[tuple[Repo, AskLink]]:
    """Find the links by which this user asks, with their lobbies."""
    kept = [(repo, find_kept_ask(repo.invitation)) for repo in replica.tables.invited.values()]
    return [(repo, link) for repo, link in kept if link is not None]


class LobbyKeeper:
    """Keeps the lobbies of one user. Not for two threads at a time."""

    def __init__(
        self, replica: Replica, author: Author, clock_ms: Callable[[], int], me: Callable[[], OwnProfile]
    ) -> None:
        """`me` gives what the user calls itself."""
        self._replica = replica
        self._author = author
        self._clock_ms = clock_ms
        self._me = me
        self.refused: dict[RepoId, str] = {}
        """Lobbies whose link does not let this user ask, by what the rules say, and why."""
        self._taken: set[tuple[RepoId, EpochId]] = set()

    # --- who asks ---

    def ask(self, lobby: Repo, link: AskLink, stored: IngestResult) -> None:
        """Write the request that a kept link is for, once what it needs is here. Raises StorageError."""
        invitation = link.opened()
        with self._replica.membership_lock:
            membership = self._replica.membership(lobby.repo_id)
            operations = membership.operations
            if invitation.invitation not in operations or lobby.repo_id in self.refused:
                return
            target = membership.lobbies.target(operations)
            has_asked = bool(operations.grants_of(self._author.user))
        if target != link.repo:
            self.refused[lobby.repo_id] = _OTHER_REPO
        elif not has_asked:
            self._write_request(lobby, invitation, stored)

    def _write_request(self, lobby: Repo, invitation: InvitationLink, stored: IngestResult) -> None:
        root, me = self._replica.root_branch(lobby), self._author.user
        body = Join(invitation.invitation, prove_invitation(invitation.invitation_seed, lobby.repo_id, me))
        draft = Draft(body, metadata=encode_note(self._me().name))
        try:
            self._author.write_many(root, [draft], stored=stored)
        except ServiceError as error:
            log.warning("a request is refused", lobby=id_text(lobby.repo_id), reason=error.message)
            self.refused[lobby.repo_id] = error.message

    def find_admitted(self) -> list[tuple[Repo, Epoch]]:
        """Repos that this user asked for and was let into, in epochs that are not here; to be followed."""
        return [
            found for lobby, link in find_asked(self._replica) for found in self._admitted_to(lobby, link)
        ]

    def _admitted_to(self, lobby: Repo, link: AskLink) -> Iterator[tuple[Repo, Epoch]]:
        if lobby.repo_id in self.refused:
            return
        for request in find_requests(self._replica, lobby):
            if request.user != self._author.user or request.is_withdrawn:
                continue
            for who, admission in request.admissions:
                if (link.repo, admission.epoch) in self._taken:
                    continue
                repo = coming_repo(link.repo, admission.root)
                try:
                    key = self._author.open_key(link.repo, who, admission.key)
                except NotForUs:
                    log.warning("an acceptance does not open the repo", repo=id_text(link.repo))
                    self.note_taken(link.repo, admission.epoch)
                    continue
                yield repo, Epoch(0, 0, link.repo, admission.epoch, key)

    def note_taken(self, repo_id: RepoId, epoch: EpochId) -> None:
        """Note that this epoch of a repo or lobby was taken up, or does not open: it is not tried again."""
        self._taken.add((repo_id, epoch))

    # --- who is asked ---

    def find_stated(self, targets: Iterable[Repo]) -> list[tuple[Repo, Epoch]]:
        """Lobbies of these repos that are open and not here; to be followed, at most LOBBY_COUNT_MAX in all."""
        replica, me, now_ms = self._replica, self._author.user, self._clock_ms()
        here = replica.tables.of_id
        new: set[RepoId] = set()
        room = LOBBY_COUNT_MAX - count_lobbies(replica)
        found: list[tuple[Repo, Epoch]] = []
        for target in targets:
            if not target.has_members or (replica.permission(target, me) or 0) < Permission.ADMIN:
                continue
            for made in find_lobbies_of(replica, target):
                body = made.body
                if body.lobby in here or body.lobby in new or now_ms >= body.expires_at or len(found) >= room:
                    continue
                opened = self._open_lobby(made)
                if opened is not None:
                    new.add(body.lobby)
                    found.append(opened)
        return found

    def _open_lobby(self, made: MadeLobby) -> tuple[Repo, Epoch] | None:
        body = made.body
        box = next((one for one in body.boxes if one.user == self._author.user), None)
        if box is None or (body.lobby, body.epoch) in self._taken:
            return None
        lobby = coming_repo(body.lobby, body.root)
        try:
            key = self._author.open_key(body.lobby, made.operation.author, box.key)
        except NotForUs:
            log.warning("a lobby does not open", lobby=id_text(body.lobby))
            self.note_taken(body.lobby, body.epoch)
            return None
        return lobby, Epoch(0, 0, body.lobby, body.epoch, key)

    # --- both ---

    def forget_ended(self) -> bool:
        """Forget lobbies that are over: joined, expired long ago, or of a repo in which they count no more; whether any."""
        replica = self._replica
        lobbies = [repo for repo, _ in find_asked(replica)]
        found = (replica.tables.of_id.get(repo_id) for repo_id in replica.lobbies)
        lobbies += [repo for repo in found if repo is not None]
        ended = [repo for repo in {one.num: one for one in lobbies}.values() if self._has_ended(repo)]
        self.forget(ended)
        return bool(ended)

    def forget(self, lobbies: list[Repo]) -> None:
        """Forget these lobbies, and all that was asked there."""
        if not lobbies:
            return
        with self._replica.change() as change:
            for lobby in lobbies:
                if self._may_return(lobby):  # else it would begin its feed there a second time
                    self._replica.own_feeds.note_deletion(lobby.repo_id)
                forget_repo(change.connection, lobby.num)
                unlink_repo(change.connection, lobby.repo_id)
                self._replica.forget_membership(lobby.repo_id)
                change.changed_repos.add(lobby.repo_id)
        for lobby in lobbies:
            self.refused.pop(lobby.repo_id, None)
            log.info("a lobby is forgotten", lobby=id_text(lobby.repo_id))

    def _may_return(self, lobby: Repo) -> bool:
        """Return True if this user wrote into a lobby that may be followed again: by the same link, or as an admin anew."""
        with self._replica.membership_lock:
            operations = self._replica.membership(lobby.repo_id).operations
            expiries = [one.body.expires_at for one in operations.invitations if isinstance(one.body, Invite)]
            return bool(operations.authored_by(self._author.user)) and self._clock_ms() <= max(
                expiries, default=0
            )

    def _has_ended(self, lobby: Repo) -> bool:
        replica, me, now_ms = self._replica, self._author.user, self._clock_ms()
        link = find_kept_ask(lobby.invitation)
        if link is not None:
            target = find_repo(replica, link.repo)
            if target is not None and replica.permission(target, me) is not None:
                return True
            return now_ms > link.opened().expires_at + FORGOTTEN_AFTER_MS
        target_id = replica.lobbies.get(lobby.repo_id)
        if target_id is None:
            return False
        target = find_repo(replica, target_id)
        if target is None or (replica.permission(target, me) or 0) < Permission.ADMIN:
            return True
        with replica.membership_lock:
            additions = replica.membership(target_id).lobbies.additions
            stated = [one for one in additions if _opens(one, lobby)]
            revoked = [
                one.timestamp
                for one in replica.membership(lobby.repo_id).operations.removals
                if isinstance(one.body, Revoke)
            ]
        if not stated:
            return False  # it is being made
        counting = [made.body for made in find_lobbies_of(replica, target) if _opens(made.operation, lobby)]
        return not any(now_ms <= min([body.expires_at, *revoked]) + FORGOTTEN_AFTER_MS for body in counting)


def _opens(operation: Operation, lobby: Repo) -> bool:
    return isinstance(operation.body, LobbyAdd) and operation.body.lobby == lobby.repo_id
