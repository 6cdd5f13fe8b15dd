"""Presence of people in open texts, of this node's browsers and of connected nodes'. Nothing of it is stored.

A presence is of one *session*, a tab of a browser. It is said again every ten seconds, and forgotten after thirty. It goes
as `presence1` to peers that have joined the own topic of the epoch that is written in, and know the message. They do not
pass it on, so what one connection brought ends with it. What is said is sealed for members (`protocol.session.presence`).

What is said first on a connection is that a session which never began has ended: its signature shows whose node this is.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog
import trio

from node.ingest.replica import Replica
from node.runtime.token_bucket import TokenBucket
from node.sync.conversation import Conversation
from node.sync.owners import Owners
from protocol.formats.text import id_text
from protocol.ids import Digest, Signature, TopicKey, UserId, root_branch
from protocol.limits.peers import (
    FORGED_PRESENCE_SECONDS,
    PRESENCE_CHECK_SECONDS,
    PRESENCE_PEERS_MAX,
    PRESENCE_SECONDS,
    PRESENCES_AT_ONCE_MAX,
    PRESENCES_HELD_MAX,
    PRESENCES_OF_PEER_MAX,
    PRESENCES_PER_SECOND_MAX,
)
from protocol.session.events import PresenceTold
from protocol.session.presence import (
    PRESENCE_NONCE_SIZE,
    PRESENCE_SESSION_SIZE,
    ForgedPresence,
    Presence,
    open_presence,
    seal_presence,
)
from storage.repos.epochs import Epoch
from storage.repos.repos import Branch

log = structlog.get_logger()


@dataclass(eq=False)
class PresencePort:
    """The presences that one connection brings."""

    connection: Conversation
    bucket: TokenBucket = field(
        default_factory=lambda: TokenBucket(PRESENCES_AT_ONCE_MAX, PRESENCES_PER_SECOND_MAX)
    )
    held: "dict[tuple[int, bytes], Here]" = field(default_factory=dict)
    """By the branch's number and the session."""
    introduced_in: tuple[int, TopicKey] | None = None
    """The repo's number and the topic in which the peer was told whose node this is; None until then."""


@dataclass(frozen=True, slots=True)
class Here:
    """A presence, whose it is, and until when it holds, in trio's seconds."""

    presence: Presence
    user: UserId
    until: float
    is_told: bool = False
    """Of this node's own: whether peers were told of it."""


class Presences:
    """All presences that this node knows. Lives in trio's thread; nothing here waits."""

    def __init__(self, replica: Replica, owners: Owners) -> None:
        self._replica = replica
        self._owners = owners
        self._speaker: tuple[UserId, Callable[[Digest], Signature]] | None = None
        self._own: dict[tuple[int, bytes], Here] = {}
        self._ports: list[PresencePort] = []
        self._bucket = TokenBucket(PRESENCES_AT_ONCE_MAX, PRESENCES_PER_SECOND_MAX)
        self._listeners: dict[int, list[Callable[[], None]]] = {}  # by the branch's number

    def speak_as(self, user: UserId, sign: Callable[[Digest], Signature]) -> None:
        """State whose browsers ask this node, and how that user signs. Until then no presence goes to peers."""
        self._speaker = user, sign
        self._owners.me = user

    def connect(self, port: PresencePort) -> None:
        """Take up a connection that has begun."""
        self._ports.append(port)

    def lose(self, port: PresencePort) -> None:
        """Forget a connection that has ended, and all that it told."""
        if port in self._ports:
            self._ports.remove(port)
        for num in {num for num, _ in port.held}:
            self._changed(num)

    def introduce(self, port: PresencePort, topic: TopicKey) -> None:
        """Tell a peer whose node this is, where both follow a repo of which the user is, or was, a member. Costs O(1).

        It is told once, and again in each later epoch of that repo: a peer that has gone on to it heard nothing before.

        Of who was one, a name is known there, or whose device it is. Who reads by a link stays unknown.
        """
        if self._speaker is None:
            return
        tables = self._replica.tables
        opened = tables.by_topic.get(topic)
        repo = None if opened is None else tables.repos.get(opened.repo_num)
        epoch = None if repo is None else tables.epochs.get(repo.epoch_num)
        if repo is None or epoch is None:
            return
        if port.introduced_in is not None and (
            port.introduced_in[0] != repo.num or port.introduced_in[1] == epoch.topic
        ):
            return
        stated, devices = self._replica.people.stated(repo.repo_id), self._replica.persons(repo.repo_id)
        is_member = self._replica.has_own_user(repo.repo_id)
        if not is_member and self._speaker[0] not in stated and self._speaker[0] not in devices:
            return
        ended = Presence(secrets.token_bytes(PRESENCE_SESSION_SIZE), root_branch(repo.repo_id))
        if self._announce_to(port, epoch, ended):
            port.introduced_in = repo.num, epoch.topic

    def listen(self, branch_num: int, changed: Callable[[], None]) -> Callable[[], None]:
        """Register `changed`, which is called when a branch's presences change; return a function that ends this."""
        self._listeners.setdefault(branch_num, []).append(changed)

        def end() -> None:
            self._listeners[branch_num].remove(changed)
            if not self._listeners[branch_num]:
                del self._listeners[branch_num]

        return end

    def announce_presence(self, branch: Branch, presence: Presence) -> bool:
        """Note a presence of one of this node's browsers, and tell peers, unless too many were told of just now.

        Whether there was room for it.
        """
        assert self._speaker is not None, "the service has said whose browsers these are"
        key = (branch.num, presence.session)
        now = trio.current_time()
        before = self._own.get(key)
        was_told = before is not None and before.is_told
        if presence.has_left:
            if self._own.pop(key, None) is None:
                return True
        elif key not in self._own and len(self._own) >= PRESENCES_HELD_MAX:
            self._own = {one: here for one, here in self._own.items() if here.until > now}
            if len(self._own) >= PRESENCES_HELD_MAX:
                return False
        # Peers drop more, and each is sealed and signed for each of them: any token that reads could keep us busy. One that
        # leaves is told once for each that came.
        is_telling = was_told if presence.has_left else self._bucket.try_acquire(now)
        if not presence.has_left:
            until = now + PRESENCE_SECONDS
            self._own[key] = Here(presence, self._speaker[0], until, was_told or is_telling)
        self._changed(branch.num)
        if not is_telling:
            return True
        tables = self._replica.tables
        repo = tables.repos.get(branch.repo_num)
        epoch = None if repo is None else tables.epochs.get(repo.epoch_num)
        if epoch is None:  # the repo was forgotten meanwhile, or this node follows the branch by itself
            return True
        told = 0
        for port in self._ports:
            told += told < PRESENCE_PEERS_MAX and self._announce_to(port, epoch, presence)
        return True

    def leave(self, branch: Branch, session: bytes) -> None:
        """Announce that a browser has left the text."""
        if (branch.num, session) in self._own:
            self.announce_presence(branch, Presence(session, branch.branch_id))

    def received(self, port: PresencePort, topic: TopicKey, box: bytes) -> None:
        """Take a presence from a peer. What is too much or forged is dropped, and charged."""
        # A relay keeps a topic for others, and cannot read it; who was excluded speaks in an earlier epoch.
        account, epoch = port.connection.account, self._replica.tables.written_on(topic)
        if epoch is None:
            return
        account.charge(PRESENCE_CHECK_SECONDS)
        now = trio.current_time()
        if not port.bucket.try_acquire(now):
            return
        try:
            user, presence = open_presence(
                epoch.keys.read_key, port.connection.session.presence_place(topic, by_us=False), box
            )
        except ForgedPresence as error:
            account.charge(FORGED_PRESENCE_SECONDS)
            log.warning("forged presence dropped", peer=id_text(port.connection.peer), reason=str(error))
            return
        self._owners.note(port.connection.peer, user, self._replica.tables.repos[epoch.repo_num].repo_id)
        branch = self._replica.tables.find_branch(epoch.repo_num, presence.branch)
        if branch is None:
            return
        key = (branch.num, presence.session)
        port.held.pop(key, None)
        if not presence.has_left:
            for old in [one for one, here in port.held.items() if here.until <= now]:
                del port.held[old]
            if len(port.held) >= PRESENCES_OF_PEER_MAX:
                return
            port.held[key] = Here(presence, user, now + PRESENCE_SECONDS)
        self._changed(branch.num)

    def editors(self, branch_num: int, *, but: bytes = b"") -> list[Here]:
        """List who has the text of a branch open now, except the session `but`: each session once, in a lasting order."""
        now = trio.current_time()
        found: dict[tuple[UserId, bytes], Here] = {}  # of both: a member may state another's session
        for held in (*(port.held for port in self._ports), self._own):
            for (num, session), one in held.items():
                if num == branch_num and one.until > now and (session != but or held is not self._own):
                    found[one.user, session] = one
        return [found[key] for key in sorted(found)]

    def has_other_editors(self, branch_num: int) -> bool:
        """Return True if more than one has the text of a branch open."""
        return len(self.editors(branch_num)) > 1

    def _announce_to(self, port: PresencePort, epoch: Epoch, presence: Presence) -> bool:
        if self._speaker is None or not port.connection.session.takes_presence(epoch.topic):
            return False
        place = port.connection.session.presence_place(epoch.topic, by_us=True)
        nonce = secrets.token_bytes(PRESENCE_NONCE_SIZE)
        box = seal_presence(epoch.keys.read_key, place, *self._speaker, presence, nonce)
        port.connection.happen(PresenceTold(epoch.topic, box))
        return True

    def _changed(self, branch_num: int) -> None:
        for changed in [*self._listeners.get(branch_num, ())]:
            changed()
