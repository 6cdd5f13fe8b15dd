"""What one connection has to do with a relay, beyond the comparing of topics: topics that are entrusted, and files.

Where this node is the relay, the port opens topics and brings files in (`node.sync.file_keeping`). Where the peer is one,
the port asks which files it keeps and offers it others, for `node.sync.file_deposits`.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import partial
from heapq import nlargest
from typing import Final, Generic, Protocol, TypeVar

import structlog
import trio

from node.runtime.backoff import Backoff
from node.sync.file_keeping import FilePull
from node.sync.hub import Hub
from node.sync.neighbours import NotFetched
from node.sync.relay_refusals import FILE, LINK
from node.sync.scheduling import WorkAccount, WorkBill
from node.sync.session_queries import Load, topic_place
from protocol.deposits import short_file
from protocol.features import RELAY_ACCOUNTS, RELAY_FILES
from protocol.ids import BlockId, PeerId, ShortId, TopicKey
from protocol.keys import AccountToken
from protocol.limits.peers import (
    BYTE_SECONDS,
    FILES_DEPOSITED_COUNT_MAX,
    REFUSED_PAUSE_MAX_SECONDS,
    REFUSED_PAUSE_MIN_SECONDS,
)
from protocol.messages import FileDeposit
from protocol.session_events import (
    AccountSettled,
    AccountWanted,
    BlocksLoaded,
    Event,
    FileListLoaded,
    FileListWanted,
    FileSettled,
    FilesOffered,
)
from protocol.session_outputs import (
    AccountAnswered,
    FilesAnswered,
    FilesListed,
    GiveAccount,
    KeepFiles,
    LoadFileList,
    OpenTopics,
)
from protocol.text import id_text
from protocol.topic_progress import TopicProgress
from storage.relay.files import DamagedKeptBlock
from storage.relay.quotas import Visitor
from storage.relay.relay import KeptTopic
from storage.topics.difference import TopicTables

log = structlog.get_logger()
T = TypeVar("T")

RelayOutput = (
    OpenTopics | LoadFileList | KeepFiles | FilesListed | FilesAnswered | GiveAccount | AccountAnswered
)

OFFERS_AGAIN: Final = "offers_again"
"""Why a session ends with a relay that has refused topics: the next one begins at once."""
_REFUSALS_LOOK_SECONDS: Final = 60.0
"""Seconds between two looks whether a relay has refused anything."""
NOT_KEPT: Final = "not_kept"
"""Why a file is refused whose topic this relay does not keep for others."""
_SHORT_ID_SIZE: Final = 16
_FILES_AT_ONCE: Final = 4
"""Files that one peer brings at a time: small ones take one block each."""


class RelayOwner(Protocol):
    """A connection, as far as a relay goes."""

    peer: PeerId
    subnet: str
    account: WorkAccount

    @property
    def peer_is_relay(self) -> bool:
        """Whether the peer has said that it keeps topics for others."""
        ...

    @property
    def topics(self) -> list[TopicProgress]:
        """Progress of each topic."""
        ...

    def knows(self, feature: str) -> bool:
        """Whether the peer has said so."""
        ...

    @property
    def topic_room(self) -> int:
        """How many more topics this side may announce."""
        ...

    def followed(self) -> Mapping[TopicKey, tuple[TopicTables, int]]:
        """Topics that this side has announced, and what they were here then."""
        ...

    def follow_kept(
        self, kept: Sequence[KeptTopic], refused: tuple[TopicKey, ...] = (), reason: str = ""
    ) -> None:
        """Follow topics that this relay keeps; tell the peer of those that it does not, and why."""
        ...

    async def fetch(self, topic: TopicKey, wanted: BlockId) -> bytes | None:
        """A block, encoded, of just that id, or None. Raises NotFetched."""
        ...

    def part(self, reason: str) -> None:
        """End the connection, and tell the peer why."""
        ...

    def happen(self, event: Event) -> None:
        """Tell the session machine of this, and do what it says. Never waits."""
        ...

    def start(self, work: Callable[..., Awaitable[None]], *args: object) -> None:
        """Do work of this connection's, and end it where that fails."""
        ...


@dataclass(slots=True)
class _Answer(Generic[T]):
    """What the peer was asked for."""

    value: T | None = None
    is_there: trio.Event = field(default_factory=trio.Event)

    def give(self, value: T | None) -> None:
        self.value = value
        self.is_there.set()


class RelayPort:
    """Both sides of it: a relay may use another one."""

    def __init__(self, owner: RelayOwner, hub: Hub) -> None:
        self._owner = owner
        self._hub = hub
        self._places = trio.CapacityLimiter(_FILES_AT_ONCE)
        self._room = trio.Semaphore(FILES_DEPOSITED_COUNT_MAX)
        self._lists: dict[TopicKey, _Answer[tuple[ShortId, ...]]] = {}
        self._asking: dict[TopicKey, trio.Lock] = {}
        self._offers: dict[tuple[TopicKey, ShortId], _Answer[str]] = {}
        self._accounts: list[_Answer[AccountAnswered]] = []
        self._is_lost = False
        hub.relay_ports.append(self)

    @property
    def keeps_files(self) -> bool:
        """Whether the peer is a relay that keeps files."""
        return not self._is_lost and self._owner.peer_is_relay and self._owner.knows(RELAY_FILES)

    @property
    def peer(self) -> PeerId:
        """The peer's key."""
        return self._owner.peer

    @property
    def is_partner(self) -> bool:
        """Whether this node and the peer are relays that keep the same topics."""
        relay = self._hub.relay
        return relay is not None and relay.is_partner(self._owner.peer)

    def follow_partners(self) -> None:
        """Have a partner keep what this relay keeps, the latest touched first, as far as one connection has room.

        Not all topics are sorted, nor looked at where there is no room: this runs whenever this node's own topics change.
        """
        room = self._owner.topic_room
        if self._hub.relay is not None and room and self.is_partner:
            followed = self._owner.followed()
            new = (one for one in self._hub.relay.topics.values() if one.topic not in followed)
            self._owner.follow_kept(nlargest(room, new, key=lambda one: (one.touched_at, -one.num)))

    def topics_forgotten(self, topics: AbstractSet[TopicKey]) -> None:
        """Part from a peer that follows one of these as it was: what was agreed about it does not hold any more."""
        followed = self._owner.followed()
        for topic in followed.keys() & topics:  # as many look-ups as the smaller one of both has topics
            now = self._hub.find_followed(topic)
            if now is None or topic_place(now) != followed[topic]:
                self._owner.part("topic_forgotten")
                return

    def follow_new(self, kept: Sequence[KeptTopic]) -> None:
        """Have a partner keep these topics, too: not all are looked at, since each deposit of a stranger comes here."""
        if self.is_partner:
            self._owner.follow_kept(kept)

    def entrusted(self) -> list[TopicKey]:
        """Joined topics that the peer was asked to keep."""
        return [one.topic for one in self._owner.topics if one.is_joined and one.is_entrusted]

    def refused(self) -> list[TopicKey]:
        """Topics that the peer was asked to keep and does not: one that is joined is kept, whatever else is refused."""
        asked = [one for one in self._owner.topics if one.is_entrusted and not one.is_joined]
        return [one.topic for one in asked if one.outbox.refusal]

    def perform(self, output: RelayOutput) -> None:
        """Start what the session says. Never waits."""
        match output:
            case OpenTopics(topics):
                self._owner.start(self._open_topics, topics)
            case LoadFileList(topic, after):
                self._owner.start(self._list, topic, after)
            case KeepFiles(topic, files):
                self._owner.start(self._check, topic, files)
            case GiveAccount(token):
                self._owner.start(self._give_account, token)
            case AccountAnswered():
                self._accounts.pop(0).give(output)
            case FilesListed(topic, listed):
                self._lists.pop(topic).give(listed)
            case FilesAnswered(topic, answered, refusal):
                for file in answered:
                    self._offers.pop((topic, file)).give(refusal)

    def lose(self) -> None:
        """The connection has ended."""
        self._is_lost = True
        self._hub.relay_ports.remove(self)
        waiting = [one.is_there for one in self._lists.values()]
        waiting += [one.is_there for one in self._offers.values()]
        waiting += [one.is_there for one in self._accounts]
        for event in waiting:
            event.set()

    # --- the peer is a relay ---

    def has_none(self, wanted: BlockId) -> bool:
        """Whether it is of no use to ask for a block: the peer has lied, or is a relay that keeps none or has lost it."""
        is_useless = self._hub.useless_sources.is_useless(self._owner.peer, wanted)
        return is_useless or (self._owner.peer_is_relay and not self._owner.knows(RELAY_FILES))

    def note_absent(self, wanted: BlockId) -> None:
        """The peer has not got a block. Of others than relays it may come at any time."""
        if self._owner.peer_is_relay:
            self._hub.useless_sources.note_lost(self._owner.peer, wanted)

    async def offer_again(self) -> None:
        """End the session with a relay that has refused topics, after a while: each is offered once in a session.

        Quotas are raised, accounts given, and other topics forgotten, which a relay does not tell.
        """
        while True:
            await trio.sleep(_REFUSALS_LOOK_SECONDS)
            if not self._owner.peer_is_relay:
                return  # it would have said so first
            if not self._has_refused():
                self._hub.refusing.pop(self.peer, None)
                continue
            pauses = (REFUSED_PAUSE_MIN_SECONDS, REFUSED_PAUSE_MAX_SECONDS)
            await trio.sleep(self._hub.refusing.setdefault(self.peer, Backoff(*pauses)).fail())
            if self._has_refused():
                self._owner.part(OFFERS_AGAIN)
                return

    def _has_refused(self) -> bool:
        return any(one.outbox.refusal for one in self._owner.topics)

    async def ask_list(self, topic: TopicKey, after: ShortId) -> tuple[ShortId, ...]:
        """Files of a topic that the peer keeps, above an id, the first ones. Raises NotFetched when it leaves."""
        asking = self._asking.setdefault(topic, trio.Lock())
        async with asking:  # deposits of this node's files and a partner's may list the same topic
            answer = self._lists[topic] = _Answer[tuple[ShortId, ...]]()
            self._owner.happen(FileListWanted(topic, after))
            return await self._wait(answer)

    async def offer(self, topic: TopicKey, deposit: FileDeposit) -> str:
        """Have the peer keep a file; why it does not, or an empty text. Raises NotFetched when it leaves."""
        name = (topic, short_file(deposit.file))
        async with self._room:
            answer = self._offers.get(name)
            if answer is None:  # another commit may have added the same content
                answer = self._offers[name] = _Answer[str]()
                self._owner.happen(FilesOffered(topic, (deposit,)))
            return await self._wait(answer)

    @property
    def gives_accounts(self) -> bool:
        """Whether the peer is a relay that has accounts."""
        return not self._is_lost and self._owner.peer_is_relay and self._owner.knows(RELAY_ACCOUNTS)

    async def join_account(self, token: AccountToken) -> AccountAnswered:
        """Show the peer the secret of a link. Raises NotFetched when it leaves."""
        answer = _Answer[AccountAnswered]()
        self._accounts.append(answer)
        self._owner.happen(AccountWanted(token))
        return await self._wait(answer)

    async def _wait(self, answer: _Answer[T]) -> T:
        if not self._is_lost:
            await answer.is_there.wait()
        if answer.value is None:
            raise NotFetched
        return answer.value

    # --- this node is one ---

    def visitor(self) -> Visitor:
        """The peer as this relay's quotas see it."""
        assert self._hub.relay is not None, "who asks keeps a topic for others"
        return self._hub.relay.visitor(self._owner.peer, self._owner.subnet)

    async def _open_topics(self, topics: tuple[TopicKey, ...]) -> None:
        """Follow what the peer entrusts to this relay, unless it is followed already."""
        relay = self._hub.relay
        assert relay is not None, "the session says no otherwise"
        visitor = self.visitor()
        new = [topic for topic in topics if topic not in self._owner.followed()]
        if not new:
            return
        entrusted = await relay.open(new, visitor, WorkBill(self._owner.account))
        if entrusted.has_lost:
            self._hub.relay_forgot()
        self._owner.follow_kept(entrusted.kept, entrusted.refused, entrusted.reason)
        if entrusted.kept:
            for port in self._hub.relay_ports:
                port.follow_new(entrusted.kept)

    async def drop_damaged(self, load: Load, damage: DamagedKeptBlock) -> BlocksLoaded:
        """Take out a block that is damaged here, and say that there is none: others may have it."""
        if self._hub.relay is not None:  # else this node was a relay once
            await self._hub.relay.drop_damaged(damage)
        return BlocksLoaded(load.topic, (b"",))

    async def _give_account(self, token: AccountToken) -> None:
        relay = self._hub.relay
        assert relay is not None, "the session says no otherwise"
        joined = await relay.join_account(token, self._owner.peer, WorkBill(self._owner.account))
        if joined.refusal:
            relay.refusals.count(LINK, self.visitor().kind, joined.refusal)
            log.info("account link refused", peer=id_text(self._owner.peer), reason=joined.refusal)
        self._owner.happen(AccountSettled(joined.refusal, joined.quota, joined.used))

    async def _list(self, topic: TopicKey, after: ShortId) -> None:
        kept = self._find_kept(topic)
        found: tuple[ShortId, ...] = ()
        if kept is not None:
            assert self._hub.relay is not None, "it keeps the topic"
            bill = WorkBill(self._owner.account)
            found = await self._hub.look(bill, self._hub.relay.list_files, kept, after)
            bill.charge(len(found) * _SHORT_ID_SIZE * BYTE_SECONDS)
        self._owner.happen(FileListLoaded(topic, found))

    async def _check(self, topic: TopicKey, files: tuple[FileDeposit, ...]) -> None:
        relay = self._hub.relay
        assert relay is not None, "the session says no otherwise"
        signed = await relay.check_deposits(topic, files, WorkBill(self._owner.account))
        for deposit, is_signed in zip(files, signed, strict=True):
            if is_signed:
                self._owner.start(self._keep, topic, deposit)
            else:
                self._settle(topic, deposit, "bad_topic_signature")

    async def _keep(self, topic: TopicKey, deposit: FileDeposit) -> None:
        """Bring one file in, at its turn."""
        relay = self._hub.relay
        assert relay is not None, "the session says no otherwise"
        async with self._places:
            kept = self._find_kept(topic)
            refusal = NOT_KEPT
            visitor = self.visitor()
            account = self._owner.account
            if kept is not None and not (visitor.is_known or relay.quotas.takes_strangers):
                refusal = "not_known"
            elif kept is not None:
                fetch = partial(self._owner.fetch, topic)
                pull = FilePull(self._hub, relay, kept, deposit, self.visitor, fetch, account)
                try:
                    refusal = await pull.run()
                except NotFetched:
                    return  # the peer has left
            self._settle(topic, deposit, refusal)

    def _settle(self, topic: TopicKey, deposit: FileDeposit, refusal: str) -> None:
        if refusal:
            assert self._hub.relay is not None, "it was to keep the file"
            self._hub.relay.refusals.count(FILE, self.visitor().kind, refusal)
            log.info("file not kept", peer=id_text(self._owner.peer), reason=refusal)
        self._hub.totals.files_settled[refusal or "kept"] += 1
        self._owner.happen(FileSettled(topic, short_file(deposit.file), refusal))

    def _find_kept(self, topic: TopicKey) -> KeptTopic | None:
        followed = self._hub.find_followed(topic)
        return followed if isinstance(followed, KeptTopic) else None
