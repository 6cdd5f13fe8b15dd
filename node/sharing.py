"""Sharing a repo by links: invitations, which make members, and read capabilities, which let anyone follow.

Links are secrets. They are made and shown when a user asks for one, and never logged.
"""

import secrets
from collections.abc import Callable
from typing import Any, Final, TypeVar

import trio

from node.config import is_dialable
from node.errors import ServiceError
from node.hub import Hub
from node.joining import Joiner, link_of
from node.network import Network
from node.outbound import Author
from node.peers import Peers, check_dialable
from protocol.block import Reference
from protocol.body import Invite, Permission
from protocol.codec import DecodeError
from protocol.limits import LINK_PEER_COUNT_MAX
from protocol.signing import key_pair
from protocol.text import (
    PeerAddress,
    ReadCapability,
    capability_text,
    invitation_text,
    parse_capability,
    parse_invitation,
)
from storage.repos import Repo

_ARRIVAL_TIMEOUT_SECONDS: Final = 30.0
"""How long a request waits for a repo's first commits; the node goes on without it."""
JsonObject = dict[str, Any]
T = TypeVar("T")


class Sharing:
    """Makes links of repos, and takes up those of others. `own_address` is what a link says of this node, if dialable."""

    def __init__(
        self,
        hub: Hub,
        network: Network,
        peers: Peers,
        author: Author,
        joiner: Joiner,
        *,
        own_address: PeerAddress,
        clock: Callable[[], float],
    ) -> None:
        self._hub = hub
        self._network = network
        self._peers = peers
        self._author = author
        self._joiner = joiner
        self._own_address = own_address
        self._clock = clock

    async def invite(self, repo: Repo, permission: str, expires_seconds: int, uses: int) -> JsonObject:
        """Make an invitation link for so many people; it is a secret until it is used or expires."""
        wanted = {"read": Permission.READ, "write": Permission.WRITE}.get(permission)
        if wanted is None:
            raise ServiceError("bad_request", f"permission is read or write, not {permission!r}")
        if expires_seconds <= 0:
            raise ServiceError("bad_request", "an invitation expires in the future")
        peers = self._ways_to(repo)
        seed = secrets.token_bytes(32)
        expires_at = int((self._clock() + expires_seconds) * 1000)
        body = Invite(key_pair(seed)[0], wanted, uses, expires_at)
        root = self._hub.replica.root_branch(repo)
        written, intake = await self._hub.run_blocking(self._author.write, root, body)
        self._hub.announce(intake)
        epoch = self._hub.replica.writing_epoch(repo)
        link = link_of(repo, epoch, written.commit_id, seed, wanted, expires_at, peers)
        return {
            "invitation": invitation_text(link),
            "expires_at": expires_at // 1000,
            "addresses": [peer.address for peer in peers],
        }

    async def join(self, text: str) -> Repo:
        """Join a repo by an invitation link; waits a while for the membership to arrive, and goes on without it."""
        link = _parse(parse_invitation, text, "an invitation")
        if link.expires_at < self._clock() * 1000:
            raise ServiceError("expired", "the invitation has expired", "ask for a new one")
        _check_peers(link.peers)
        repo = await self._joiner.begin(link)
        await self._reach(link.peers)
        with trio.move_on_after(_ARRIVAL_TIMEOUT_SECONDS):
            while await self._hub.run_blocking(self.permission, repo) is None:
                await self._hub.wait_for_change()
        return repo

    async def capability(self, repo: Repo) -> JsonObject:
        """The repo's read capability as a link: a secret that does not expire, and makes nobody a member."""
        peers = self._ways_to(repo)
        epoch = self._hub.replica.writing_epoch(repo)
        root = Reference(repo.init_id, repo.init_key)
        capability = ReadCapability(
            repo.repo_id, root, epoch.epoch_id, epoch.author, epoch.read_secret, peers
        )
        return {"capability": capability_text(capability), "addresses": [peer.address for peer in peers]}

    async def follow(self, text: str) -> Repo:
        """Read and replicate a repo by its read capability; waits a while for its init, and goes on without it."""
        capability = _parse(parse_capability, text, "a read capability")
        _check_peers(capability.peers)
        repo = await self._joiner.follow(capability)
        await self._reach(capability.peers)
        with trio.move_on_after(_ARRIVAL_TIMEOUT_SECONDS):
            while not await self._hub.run_blocking(self._hub.replica.members, repo):
                await self._hub.wait_for_change()
        return repo

    def permission(self, repo: Repo) -> Permission | None:
        """What this node's user may do as a member; None for who is none. Reads the store."""
        return self._hub.replica.permission(repo, self._author.user)

    async def _reach(self, peers: tuple[PeerAddress, ...]) -> None:
        for peer in peers:
            await self._peers.keep(peer.peer, peer.address)

    def _ways_to(self, repo: Repo) -> tuple[PeerAddress, ...]:
        """Where the repo can be had: here, and at peers that follow it. Others are nobody's business."""
        topics = {
            branch.topic for branch in self._hub.replica.by_topic.values() if branch.repo_num == repo.num
        }
        ways = [self._own_address] if is_dialable(self._own_address.address) else []
        ways += [
            PeerAddress(state.address, state.peer)
            for state in self._network.peers
            if state.direction == "out"
            and state.connection is not None
            and any(progress.topic in topics and progress.is_joined for progress in state.connection.topics)
        ]
        if not ways:
            raise ServiceError(
                "bad_config",
                f"this node listens on {self._own_address.address}, which tells nobody how to reach it",
                "set [network] advertise in its config.toml to host:port, and start it again",
            )
        return tuple(ways[:LINK_PEER_COUNT_MAX])


def _parse(parse: Callable[[str], T], text: str, what: str) -> T:
    try:
        return parse(text)
    except DecodeError as error:
        advice = "copy the link whole, or ask for a new one"
        if error.reason == "other_kind":
            advice = "`ravel repo join` takes invitations, `ravel repo follow` read capabilities"
        raise ServiceError("bad_link", f"this is not {what}: {error}", advice) from None


def _check_peers(peers: tuple[PeerAddress, ...]) -> None:
    for peer in peers:
        check_dialable(peer.address, "bad_link")
