"""Invitation links: what one holds, joining a repo by it across restarts, and the automatic work of members.

The link is kept with the repo until the join was accepted. Each time the root branch has grown, the joiner looks
whether the invitation has arrived, and then writes the join commit as this user, proven by the invitation's key.
"""

import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import structlog
import trio
from msgspec import structs
from sqlalchemy import Connection

from node.authoring.author import Author
from node.authoring.drafting import Draft
from node.authoring.refusals import RefusedByRules
from node.authoring.writing import write_commits, write_job
from node.ingest.ingest_result import IngestResult
from node.ingest.vouchers import find_vouched
from node.membership.devices import DeviceKeeper, coming_repo
from node.membership.epoch_duties import EpochDuties
from node.membership.epoch_keys import KeyTaker
from node.membership.lobbies import LobbyKeeper
from node.membership.offers import follow_accepted
from node.membership.prekeys import PrekeyKeeper
from node.membership.profiles import ProfileKeeper
from node.runtime.backoff import Backoff, store_backoff
from node.runtime.errors import ServiceError
from node.runtime.scheduling import rest_after
from node.sync.hub import Hub
from protocol.codec import encode
from protocol.crypto.keys import InvitationSeed
from protocol.formats.block import Reference
from protocol.formats.body import Body, Join, Permission
from protocol.formats.devices import DevicesRepo
from protocol.formats.links import (
    AskLink,
    BranchCapability,
    DeviceLink,
    InvitationLink,
    PeerAddress,
    ReadCapability,
    Voucher,
    decode_kept_link,
    find_kept_ask,
)
from protocol.formats.proofs import prove_invitation
from protocol.formats.text import id_text
from protocol.ids import CommitId, ObjectId, RepoId, TopicKey, UserId, first_commit
from storage.commits.own_commits import load_author_num, load_latest
from storage.engine.database import StorageError
from storage.repos.deletion import forget_branch, forget_repo
from storage.repos.epochs import Epoch
from storage.repos.repos import Repo, add_branch, add_branch_alone, add_repo

log = structlog.get_logger()

_REFUSALS: Final = {
    "invitation_revoked": "it was revoked",
    "invitation_used": "it has been used up",
    "invitation_expired": "it has expired",
    "not_permitted": "you were removed after it was made",
    "unknown_invitation": "it does not count any more",
    "bad_proof": "it is not of this repo",
}
"""A code of what the rules say of a join (M4) -> what that means for who wants to join."""


@dataclass(slots=True)
class _Kept:
    """Results of keeping up a repo so far."""

    has_keys: bool = False
    follows_more: bool = False
    ingested: IngestResult = field(default_factory=IngestResult)
    wait: float | None = None
    """In how many seconds more is due."""
    is_whole: bool = True


class Joiner:
    """Finishes joins. A hub listener; `run` owns the work."""

    def __init__(self, hub: Hub, author: Author) -> None:
        self._hub = hub
        self._author = author
        self._keys = KeyTaker(hub.replica, author)
        self._duties = EpochDuties(hub.replica, author)
        self._prekeys = PrekeyKeeper(hub.replica, author)
        self._devices = DeviceKeeper(hub.replica, author, hub.clock_ms)
        self.profiles = ProfileKeeper(hub.replica, author, hub.clock_ms, hub.replica.database.folder)
        """States what this user calls itself in each repo."""
        self.lobbies = LobbyKeeper(hub.replica, author, hub.clock_ms, lambda: self.profiles.me)
        """Follows lobbies, asks there, and takes up what comes of it."""
        self._wake = trio.Event()
        self._tick: int | None = None
        self._due: set[int] = set()
        """Repos to be kept up: they have changed since they were, or that did not come to an end."""
        self._later: dict[int, float] = {}
        """When repos are to be kept up again though nothing changes, in trio's seconds."""
        self._failing: dict[int, Backoff] = {}
        """Pauses of repos that could not be kept up."""
        self.refused: dict[RepoId, str] = {}
        """Repos whose invitation the rules refused since the daemon's start, and why: their user reads, and is no member."""

    async def run(self) -> None:
        """Finish what can be finished now, and again after each change, until cancelled."""
        self._hub.add(self)
        backoff = store_backoff()
        try:
            while True:
                self._wake = trio.Event()  # what changes from here on is looked at in the next round
                began = trio.current_time()
                changed = self._look()
                for num in sorted(changed):
                    repo = self._hub.replica.repos.get(num)
                    if repo is None or not repo.has_members:
                        self._due.discard(num)
                        self._failing.pop(num, None)
                        continue
                    is_certain = repo.repo_id not in self._hub.replica.own_feeds.uncertain
                    try:
                        if repo.invitation is not None and is_certain:
                            await self._try(repo)
                        if await self.keep_up(repo) and is_certain:
                            self._due.discard(num)
                        self._failing.pop(num, None)
                    except StorageError as error:
                        log.error(
                            "join failed, to be tried again", repo=id_text(repo.repo_id), error=str(error)
                        )
                        self._put_off(num)
                    except (
                        Exception
                    ):  # the border of one repo: whatever others wrote there, the daemon goes on
                        log.exception("a repo cannot be kept up", repo=id_text(repo.repo_id))
                        self._put_off(num)
                is_kept_up = await self._keep_lobbies(changed)
                is_kept_up &= await self._keep_devices()
                wait = await self._state_names()
                if is_kept_up and wait is not None:
                    backoff.reset()
                else:
                    wait = min(math.inf if wait is None else wait, backoff.fail())
                ended = trio.current_time()
                wait = min(wait, min(self._later.values(), default=math.inf) - ended)
                with trio.move_on_after(max(0.0, wait)):
                    await self._wake.wait()
                await rest_after(began, ended)
        finally:
            self._hub.remove(self)

    def _put_off(self, num: int) -> None:
        """Keep a repo up later, or when it changes: whatever else changes, it would most likely fail again."""
        self._due.discard(num)
        self._later[num] = trio.current_time() + self._failing.setdefault(num, store_backoff()).fail()

    def _look(self) -> set[int]:
        """Repos to be kept up in this round. Of thousands, most have not changed since the last.

        Where one has gone it is all: an accepted offer, or a lobby, may be of it.
        """
        replica = self._hub.replica
        self._tick, changed = replica.shown.roots_since(self._tick)
        here = replica.repos
        self._due |= set(changed) if all(num in here for num in changed) else here.keys()
        now = trio.current_time()
        for num in [num for num, at in self._later.items() if at <= now]:
            del self._later[num]
            self._due.add(num)
        return set(self._due)

    def commits_accepted(self, topic: TopicKey, nums: tuple[int, ...]) -> None:
        """Do nothing (`Listener`): new root branch commits come by `topics_changed`."""

    def topics_changed(self) -> None:
        """Look again (`Listener`)."""
        self._wake.set()

    def missed(self) -> None:
        """Look again (`Listener`)."""
        self._wake.set()

    async def begin(self, link: InvitationLink, person: UserId | None = None) -> Repo:
        """Keep the repo and its link; its topics are followed from now on.

        With a `person`, the repo is the one of that person's devices, and the user becomes one.
        """
        self.refused.pop(link.repo, None)
        here = self._hub.replica.tables.of_id.get(link.repo)
        if here is not None and here.has_members and here.invitation is None:
            link = structs.replace(link, voucher=None)  # of what is here, the link says nothing
        kept_link = encode(link if person is None else DeviceLink(person, encode(link)))
        return await self._begin(link, kept_link)

    async def begin_asking(self, link: AskLink) -> Repo:
        """Keep a link that asks, with its lobby, which is followed from now on; the user asks there when that is here."""
        invitation = link.opened()
        self.lobbies.refused.pop(invitation.repo, None)
        return await self._begin(invitation, encode(link))

    async def _begin(self, link: InvitationLink, kept_link: bytes) -> Repo:
        repo = coming_repo(link.repo, link.root, kept_link)
        epoch = Epoch(0, 0, link.repo, link.epoch, link.key, link.writers_secret)
        return await self._keep(repo, epoch)

    async def follow(self, capability: ReadCapability) -> Repo:
        """Keep a repo that this user reads without being a member; its topics are followed from now on."""
        repo = coming_repo(capability.repo, capability.root)
        epoch = Epoch(0, 0, capability.repo, capability.epoch, capability.key)
        return await self._keep(repo, epoch)

    async def follow_branch(self, capability: BranchCapability) -> Repo:
        """Keep a branch that this node follows by itself; its topics are followed from now on."""
        await self._hub.write(self._store_alone, capability)
        self._hub.topics_changed()
        repo = self._hub.replica.tables.of_id.get(capability.repo)
        if repo is not None and not repo.has_members:
            return repo
        raise ServiceError("bad_link", "the branch is here already, as another repo's than the link says")

    async def forget(self, repo: Repo) -> None:
        """Delete a repo from this node; its topics are followed no more."""
        await self._hub.write(self._forget, repo)
        self.refused.pop(repo.repo_id, None)
        self._hub.topics_changed()

    def _forget(self, repo: Repo) -> None:
        replica = self._hub.replica
        with replica.change() as change:
            if repo.has_members and self._may_have_written(change.connection, repo):
                # First: a crash between leaves a feed that waits for a peer, and no forked one.
                replica.own_feeds.note_deletion(repo.repo_id)
            forget_repo(change.connection, repo.num)
            change.changed_repos.add(repo.repo_id)
            replica.forget_membership(repo.repo_id)
        self._keys.forget(repo)

    def _may_have_written(self, connection: Connection, repo: Repo) -> bool:
        """Return True if this user's feeds in a repo have begun, here or perhaps elsewhere: not where a join was refused."""
        number = load_author_num(connection, self._author.user)
        is_written = number is not None and bool(load_latest(connection, [repo.num], number))
        return is_written or repo.repo_id in self._hub.replica.own_feeds.uncertain

    async def _keep(self, repo: Repo, epoch: Epoch) -> Repo:
        try:
            return await self._hub.write(self._store, repo, epoch)
        finally:  # also where the second of its transactions failed: the first has brought topics
            self._hub.topics_changed()

    async def _try(self, repo: Repo) -> None:
        assert repo.invitation is not None, "run() looked"
        if (ask := find_kept_ask(repo.invitation)) is not None:
            await write_job(self._hub, partial(self.lobbies.ask, repo, ask))
            self._hub.changes.ring()  # a refusal stores nothing, and who asked waits to hear of it
            return
        link, person = decode_kept_link(repo.invitation)
        if not await self._hub.run_blocking(self._has_arrived, repo, link.invitation):
            return
        held = await self._hub.run_blocking(self._hub.replica.permission, repo, self._author.user)
        bodies: list[Body] = []
        if held is None or held < link.permission:
            proof = prove_invitation(link.invitation_seed, repo.repo_id, self._author.user)
            bodies.append(Join(link.invitation, proof))
        if person is not None:
            bodies.append(DevicesRepo(person))
        if not bodies:
            await self._hub.write(self._forget_link, repo)
            return
        root = self._hub.replica.root_branch(repo)
        try:
            await write_commits(self._hub, self._author, root, [Draft(body) for body in bodies])
        except ServiceError as error:
            log.warning("join refused", repo=id_text(repo.repo_id), reason=error.message)
            await self._hub.write(self._forget_link, repo)
            # After that: who waits would else be shown a repo that is still being joined.
            self.refused[repo.repo_id] = _why_refused(error)
            self._hub.replica.shown.restate([repo.num])
            self._hub.changes.ring()  # nothing was stored, and who joins waits to hear of it
            return
        log.info("joined", repo=id_text(repo.repo_id), permission=link.permission.name.lower())
        await self._hub.write(self._forget_link, repo)

    async def keep_up(self, repo: Repo) -> bool:
        """Take up keys that others give, and perform duties for others; return True if nothing was refused."""
        hub = self._hub
        while True:
            kept = _Kept()
            try:
                await hub.write(self._keep_up, repo, kept, trio.current_time())
            except ServiceError as error:  # tried again after the next change
                kept.is_whole = False
                log.warning("could not give others access", repo=id_text(repo.repo_id), reason=error.message)
            finally:  # what was stored before something failed is told all the same
                if kept.has_keys or kept.follows_more:
                    hub.topics_changed()
                hub.announce(kept.ingested)
            if not kept.has_keys:
                break
            log.info("new secrets", repo=id_text(repo.repo_id))
            await hub.intake.release(repo.num)
        if kept.wait is not None:
            self._later[repo.num] = trio.current_time() + kept.wait
        return kept.is_whole

    def _keep_up(self, repo: Repo, kept: "_Kept", now: float) -> None:
        """Do all steps in one thread job, and note what each stored. A job for each took most of the time of many repos."""
        kept.has_keys = self._keys.take(repo, now)
        if kept.has_keys:
            return  # what waited for them is judged before anything else is done
        kept.follows_more = follow_accepted(self._hub.replica, repo)
        waits = self._duties.perform(repo, now, kept.ingested), self._keys.wait(repo, now)
        kept.wait = min((one for one in waits if one is not None), default=None)
        self._prekeys.keep_up(repo, kept.ingested)

    async def _keep_devices(self) -> bool:
        """Hand this user's repos on to its devices, and take up those handed on to it; return True if nothing failed."""
        run = self._hub.run_blocking
        try:
            for repo, epoch in await run(self._devices.find_unfollowed):
                await self._keep(repo, epoch)
                self._devices.followed.add((repo.repo_id, epoch.epoch_id))
            await write_job(self._hub, self._devices.hand_on)
        except StorageError as error:
            log.error("devices cannot be kept up, to be tried again", error=str(error))
            return False
        except Exception:  # the border of what is done for devices: repos are kept up all the same
            log.exception("devices cannot be kept up")
            return False
        return True

    async def _keep_lobbies(self, changed: set[int]) -> bool:
        """Follow lobbies and what was accepted there, and forget those that are over; whether that went well."""
        run, repos = self._hub.run_blocking, self._hub.replica.repos
        targets = [repos[num] for num in changed if num in repos]
        try:
            stated = await run(self.lobbies.find_stated, targets)
            for repo, epoch in [*stated, *await run(self.lobbies.find_admitted)]:
                await self._keep(repo, epoch)
                self.lobbies.note_taken(repo.repo_id, epoch.epoch_id)
            if await self._hub.write(self.lobbies.forget_ended):
                self._hub.topics_changed()
        except StorageError as error:
            log.error("lobbies cannot be kept up, to be tried again", error=str(error))
            self._due |= changed
            return False
        except Exception:  # the border of what is done for lobbies: repos are kept up all the same
            log.exception("lobbies cannot be kept up")
            self._due |= changed
            return False
        return True

    async def _state_names(self) -> float | None:
        """State this user's name where that is missing; return the seconds until the next look, None if it failed."""
        try:
            wait = await write_job(self._hub, self.profiles.state)
        except StorageError as error:
            log.error("names cannot be stated, to be tried again", error=str(error))
            return None
        except Exception:  # the border of what is done for names: repos are kept up all the same
            log.exception("names cannot be stated")
            return None
        return math.inf if wait is None else wait

    def _store(self, repo: Repo, epoch: Epoch) -> Repo:
        replica = self._hub.replica
        with replica.change() as change:
            here = change.tables.of_id.get(repo.repo_id)
            if here is None or not here.has_members:
                # First: a crash between leaves a feed that waits for a peer, and no forked one.
                replica.own_feeds.note_return(repo.repo_id)
            kept = add_repo(replica.database, change.connection, repo, epoch)
            vouched = None if repo.invitation is None else find_vouched(repo.repo_id, repo.invitation)
            states = None if vouched is None else vouched.states
            if states is not None and here is None and not change.tables.with_id(states.branch):
                # Shown from now on, while the root branch comes. Of what is here, the link says nothing.
                first = first_commit(states.branch)
                add_branch(
                    replica.database,
                    change.connection,
                    kept.num,
                    states.branch,
                    states.branch_name,
                    first,
                )
        known = change.tables.repos[kept.num]  # as it was stored: others may delete it by now
        self._keys.keep(known, [replace(epoch, repo_num=kept.num, repo_id=kept.repo_id)])
        return kept

    def _store_alone(self, capability: BranchCapability) -> None:
        replica = self._hub.replica
        with replica.change() as change:
            add_branch_alone(replica.database, change.connection, capability)

    def _has_arrived(self, repo: Repo, commit_id: CommitId) -> bool:
        replica = self._hub.replica
        with replica.membership_lock:
            return commit_id in replica.membership(repo.repo_id).operations

    def _forget_link(self, repo: Repo) -> None:
        """Forget the link of a join that is over, and first branches that links alone name: also one that it replaced."""
        replica = self._hub.replica
        with replica.membership_lock:
            operations = replica.membership(repo.repo_id).operations
            named = [
                one
                for one in replica.read_tables().branches_in(repo.num)
                if not (one.facts.is_root_branch or operations.branch_adds(one.branch_id))
            ]
        for branch in named:
            with replica.change() as change:
                forget_branch(change.connection, branch.num, replica.root_branch(repo).num)
        replica.forget_invitation(repo)


def _why_refused(error: ServiceError) -> str:
    """Explain why a join was refused, to the user who holds the link."""
    verdict = error.verdict if isinstance(error, RefusedByRules) else ""
    return _REFUSALS.get(verdict, error.message)


def link_of(
    repo: Repo,
    epoch: Epoch,
    invitation: CommitId,
    seed: InvitationSeed,
    permission: Permission,
    expires_at: int,
    peers: tuple[PeerAddress, ...],
    voucher: Voucher | None = None,
    by: str | None = None,
) -> InvitationLink:
    """Make the link of an invitation: the writers' secret goes only to those who may write."""
    return InvitationLink(
        repo.repo_id,
        Reference(ObjectId(repo.init_id), repo.init_key),
        epoch.epoch_id,
        epoch.key,
        epoch.writers_secret if permission >= Permission.WRITE else None,
        invitation,
        seed,
        permission,
        expires_at,
        peers,
        voucher,
        repo.name,
        by,
    )
