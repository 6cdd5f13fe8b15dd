"""Joining a repo: from the invitation link to the join commit, across restarts and whenever a peer turns up; and taking
up the write secret that a member has sealed for this user.

The link is kept with the repo until the join was accepted. Each time the root branch has grown, the joiner looks
whether the invitation has arrived, and then writes the join commit as this user, proven by the invitation's key.
"""

import math
from typing import Final

import structlog
import trio

from node.errors import ServiceError
from node.hub import Hub
from node.outbound import Author
from protocol.block import Reference
from protocol.body import Grant, Join, Permission, prove_invitation
from protocol.codec import decode, encode
from protocol.hashing import branch_topic_seed
from protocol.limits import LINK_SIZE_MAX
from protocol.sealing import NotForUs
from protocol.signing import public_key
from protocol.text import InvitationLink, PeerAddress, ReadCapability, id_text
from storage.database import StorageError
from storage.repos import Repo, add_repo, keep_write_secret

log = structlog.get_logger()

_RETRY_SECONDS: Final = 30.0
"""Pause after the store has failed: a disk may have room again."""


class Joiner:
    """Finishes joins. A hub listener; `run` owns the work."""

    def __init__(self, hub: Hub, author: Author) -> None:
        self._hub = hub
        self._author = author
        self._wake = trio.Event()

    async def run(self) -> None:
        """Finish what can be finished now, and again after each change, until cancelled."""
        self._hub.add(self)
        try:
            while True:
                has_failed = False
                for repo in list(self._hub.replica.repos.values()):
                    try:
                        if repo.invitation is not None:
                            await self._try(repo)
                        if repo.write_secret is None:
                            await self._take_write_secret(repo)
                    except StorageError as error:
                        log.error(
                            "join failed, to be tried again", repo=id_text(repo.repo_id), error=str(error)
                        )
                        has_failed = True
                with trio.move_on_after(_RETRY_SECONDS if has_failed else math.inf):
                    await self._wake.wait()
                self._wake = trio.Event()
        finally:
            self._hub.remove(self)

    def commits_accepted(self, topic: bytes, nums: tuple[int, ...]) -> None:
        """The hub's word."""
        del topic, nums
        self._wake.set()

    def topics_changed(self) -> None:
        """The hub's word."""
        self._wake.set()

    async def begin(self, link: InvitationLink) -> Repo:
        """Keep the repo and its link; its topics are followed from now on."""
        repo = Repo(
            0,
            link.repo,
            "(joining)",
            link.root.object_id,
            link.root.key,
            link.read_secret,
            link.write_secret,
            encode(link),
        )
        kept = await self._hub.run_blocking(self._store, repo)
        self._hub.topics_changed()
        return kept

    async def follow(self, capability: ReadCapability) -> Repo:
        """Keep a repo that this user reads without being a member; its topics are followed from now on."""
        root = capability.root
        repo = Repo(
            0,
            capability.repo,
            "(not here yet)",
            root.object_id,
            root.key,
            capability.read_secret,
            write_secret=None,
            invitation=None,
        )
        kept = await self._hub.run_blocking(self._store, repo)
        self._hub.topics_changed()
        return kept

    async def _try(self, repo: Repo) -> None:
        assert repo.invitation is not None, "run() looked"
        link = decode(InvitationLink, repo.invitation, size_max=LINK_SIZE_MAX)
        if not await self._hub.run_blocking(self._has_arrived, repo, link.invitation):
            return
        held = await self._hub.run_blocking(self._hub.replica.permission, repo, self._author.user)
        if held is not None and held >= link.permission:
            await self._hub.run_blocking(self._forget_link, repo)
            return
        proof = prove_invitation(link.invitation_seed, repo.repo_id, self._author.user)
        root = self._hub.replica.root_branch(repo)
        try:
            _, intake = await self._hub.run_blocking(self._author.write, root, Join(link.invitation, proof))
        except ServiceError as error:
            log.warning("join refused", repo=id_text(repo.repo_id), reason=error.message)
            await self._hub.run_blocking(self._forget_link, repo)
            return
        log.info("joined", repo=id_text(repo.repo_id), permission=link.permission.name.lower())
        await self._hub.run_blocking(self._forget_link, repo)
        self._hub.announce(intake)

    async def _take_write_secret(self, repo: Repo) -> None:
        if await self._hub.run_blocking(self._find_write_secret, repo):
            log.info("may write now", repo=id_text(repo.repo_id))
            self._hub.topics_changed()

    def _find_write_secret(self, repo: Repo) -> bool:
        """Whether a member has sealed the write secret for this user; if so, it is kept."""
        replica = self._hub.replica
        with replica.judging:
            grants = list(replica.membership(repo.repo_id).operations.grants_of(self._author.user))
        for grant in grants:
            if not isinstance(grant.body, Grant) or grant.body.write_secret is None:
                continue
            try:
                secret = self._author.open_write_secret(repo, grant.author, grant.body.write_secret)
            except NotForUs:
                continue
            if not self._is_write_secret(repo, secret):
                continue  # sealed by somebody who wished us to write where nobody reads
            with replica.database.write() as connection:
                keep_write_secret(connection, repo.num, secret)
            replica.refresh()
            return True
        return False

    def _is_write_secret(self, repo: Repo, secret: bytes) -> bool:
        """Whether the topics of the repo's branches follow from it."""
        branches = [
            branch
            for branch in self._hub.replica.branches.values()
            if branch.repo_num == repo.num and not branch.facts.is_root_branch
        ]
        return bool(branches) and all(
            public_key(branch_topic_seed(secret, branch.branch_id, branch.generation)) == branch.topic
            for branch in branches
        )

    def _store(self, repo: Repo) -> Repo:
        replica = self._hub.replica
        with replica.database.write() as connection:
            kept = add_repo(replica.database, connection, repo)
        replica.refresh()
        return kept

    def _has_arrived(self, repo: Repo, commit_id: bytes) -> bool:
        replica = self._hub.replica
        with replica.judging:
            return commit_id in replica.membership(repo.repo_id).operations

    def _forget_link(self, repo: Repo) -> None:
        self._hub.replica.forget_invitation(repo)


def link_of(
    repo: Repo,
    invitation: bytes,
    seed: bytes,
    permission: Permission,
    expires_at: int,
    peers: tuple[PeerAddress, ...],
) -> InvitationLink:
    """The link of an invitation: the write secret goes only to those who may write."""
    return InvitationLink(
        repo.repo_id,
        Reference(repo.init_id, repo.init_key),
        repo.read_secret,
        repo.write_secret if permission >= Permission.WRITE else None,
        invitation,
        seed,
        permission,
        expires_at,
        peers,
    )
