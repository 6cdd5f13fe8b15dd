"""`RelayPort`: what this node does as a relay for one peer: opens topics, lists files and brings them in.

What it asks of a peer that is a relay itself is `node.sync.relay_client`'s.
"""

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Final

import structlog
import trio

from node.relay.refusals import FILE, LINK, TOPIC
from node.runtime.scheduling import WorkBill
from node.sync.block_requests import NotFetched
from node.sync.conversation import Conversation
from node.sync.file_keeping import FilePull
from node.sync.followed_topics import FollowedTopics
from node.sync.hub import Hub
from node.sync.session_queries import Load, topic_place
from protocol.crypto.keys import AccountToken
from protocol.formats.text import id_text
from protocol.ids import ShortId, TopicKey
from protocol.limits.peers import BYTE_SECONDS
from protocol.session.deposits import short_file
from protocol.session.events import AccountSettled, BlocksLoaded, FileListLoaded, FileSettled
from protocol.session.messages import FileDeposit
from protocol.session.outputs import GiveAccount, KeepFiles, LoadFileList, OpenTopics, say_together
from storage.engine.id_keys import chunks
from storage.relay.files import DamagedKeptBlock
from storage.relay.quotas import Visitor
from storage.relay.relay import KeptTopic

log = structlog.get_logger()

RelayQuestion = OpenTopics | LoadFileList | KeepFiles | GiveAccount

NOT_KEPT: Final = "not_kept"
"""Why a file is refused whose topic this relay does not keep for others."""
_PEER_FULL: Final = "peer_full"
_SHORT_ID_SIZE: Final = 16
_ENTRUSTED_AT_ONCE: Final = 1024
"""Topics of a slice: under 1 ms."""
_ANSWERED_AT_ONCE: Final = 64
"""Topics of a deposit that are answered before others have their turn: 1 to 2 ms."""
_FILES_AT_ONCE: Final = 4
"""Files that one peer brings at a time: small ones take one block each."""


class RelayPort:
    """Work of this node, where it is a relay, for one peer."""

    def __init__(
        self,
        conversation: Conversation,
        followed: FollowedTopics,
        hub: Hub,
        kept_again: Callable[[], None],
    ) -> None:
        """Call `kept_again` when topics are kept again of which a partner was told that they are not."""
        self._kept_again = kept_again
        self._conversation = conversation
        self._has_entrusted = False
        self._entrusted: set[TopicKey] = set()  # by the peer on this connection, and not refused
        self._followed = followed
        self._hub = hub
        self._places = trio.CapacityLimiter(_FILES_AT_ONCE)

    @property
    def _is_partner(self) -> bool:
        return self._hub.is_partner(self._conversation.peer)

    def entrust_all(self) -> None:
        """Entrust a partner relay with all that this relay keeps, for each owner in order of arrival.

        `kept_changed` adds what comes later.
        """
        if self._has_entrusted or self._hub.relay is None or not self._is_partner:
            return
        self._has_entrusted = True
        kept = sorted(self._hub.relay.topics.values(), key=lambda one: one.num)  # of 100,000: 6 ms
        self._conversation.start(self._entrust, kept)

    async def _entrust(self, kept: Sequence[KeptTopic]) -> None:
        """Queue topics, a slice at a time: 100,000 take 80 ms, in which nobody else is served."""
        assert self._hub.relay is not None, "it keeps them"
        for part in chunks(kept, _ENTRUSTED_AT_ONCE):
            here = self._hub.relay.topics  # some may be forgotten by now
            self._followed.entrust([one for one in part if one.topic in here], are_new=False)
            self._conversation.topics_changed()
            await trio.lowlevel.checkpoint()

    def kept_changed(self, forgotten: AbstractSet[TopicKey], new: Sequence[KeptTopic]) -> None:
        """Part from a peer that follows a topic which was forgotten, and have a partner keep new ones.

        Part, too, from one that was told that a topic is not kept, if it is now: a session knows no way back. A partner is
        told that the topic is kept no more: a full relay forgets with each message that brings something. Only these topics
        are looked at: each deposit of a stranger comes here.
        """
        self._followed.forget_kept(forgotten)
        places = self._followed.places
        for topic in places.keys() & forgotten:  # as many look-ups as the smaller one of both has topics
            now = self._hub.find_followed(topic)
            if now is None and self._is_partner:
                self.refuse_forgotten(topic)
                continue
            if now is None or topic_place(now) != places[topic]:
                self._conversation.part("topic_forgotten")
                return
        if new and self._is_partner:
            self._followed.entrust(new, are_new=True)
            if self._followed.are_refused(new):
                self._kept_again()
            self._conversation.topics_changed()
        elif self._followed.are_refused(new):
            self._conversation.part("topic_forgotten")

    def refuse_forgotten(self, topic: TopicKey) -> None:
        """Tell the peer that a topic is here no more. Part if this is no relay: the peer is to see what is followed now."""
        if self._hub.relay is None:
            self._conversation.part("topic_forgotten")
        else:
            self._conversation.perform(say_together(self._followed.refuse_forgotten(topic)))

    def perform(self, output: RelayQuestion) -> None:
        """Start what the peer asks of this relay. Never waits."""
        match output:
            case OpenTopics(topics):
                self._conversation.start(self._open_topics, topics)
            case LoadFileList(topic, after):
                self._conversation.start(self._list, topic, after)
            case KeepFiles(topic, files):
                self._conversation.start(self._check, topic, files)
            case GiveAccount(token):
                self._conversation.start(self._give_account, token)

    def visitor(self) -> Visitor:
        """Return the peer as this relay's quotas see it."""
        assert self._hub.relay is not None, "who asks keeps a topic for others"
        return self._hub.relay.visitor(self._conversation.peer, self._conversation.subnet)

    async def _open_topics(self, topics: tuple[TopicKey, ...]) -> None:
        """Follow the topics that the peer entrusts to this relay, unless they are followed already.

        A connection opens at most as many topics as one peer may bring, since topics of others take memory too. A node
        of an account has the relay's whole number, and a partner no bound.
        """
        relay = self._hub.relay
        assert relay is not None, "the session says no otherwise"
        visitor = self.visitor()
        new = [one for one in topics if one not in self._followed.places and one not in self._entrusted]
        room = len(new)
        if not visitor.is_partner:
            quotas = relay.quotas
            most = quotas.peer_topic_count if visitor.account is None else quotas.topic_count
            room = max(0, most - len(self._entrusted))
        # Also what is refused, until that is said: of each topic one answer is prepared at a time.
        self._entrusted.update(new)
        new, surplus = new[:room], new[room:]
        if surplus:
            relay.refusals.count(TOPIC, visitor.kind, _PEER_FULL, len(surplus))
            await self._answer((), surplus, _PEER_FULL)
        if not new:
            return
        entrusted = await relay.open(new, visitor, WorkBill(self._conversation.account))
        if entrusted.has_lost:
            self._hub.relay_forgot()
        if entrusted.kept:
            self._hub.relay_opened(entrusted.kept)
        await self._answer(entrusted.kept, entrusted.refused, entrusted.reason)

    async def _answer(self, kept: Sequence[KeptTopic], refused: Sequence[TopicKey], reason: str) -> None:
        """Say which topics of a deposit this relay keeps, and why not the others, a slice at a time.

        In one turn TOPIC_COUNT_MAX of them would take a tenth of a second. The peer's account pays.
        """
        relay = self._hub.relay
        assert relay is not None, "the session says no otherwise"
        topics = [*(one.topic for one in kept), *refused]
        for start in range(0, len(topics), _ANSWERED_AT_ONCE):
            part = topics[start : start + _ANSWERED_AT_ONCE]
            if self._conversation.has_ended:
                return
            began = self._hub.cpu_clock()
            # Some may be forgotten by now.
            here = {
                one: relay.topics[one] for one in part[: max(0, len(kept) - start)] if one in relay.topics
            }
            others = tuple(one for one in part if one not in here)
            outputs = self._followed.answer_deposit(tuple(here.values()), others, reason)
            self._conversation.perform(say_together(outputs))
            self._entrusted.difference_update(others)
            self._conversation.charge(self._hub.cpu_clock() - began)
            if self._conversation.account.gives_way:
                await self._hub.giving_way.wait()
            await trio.lowlevel.checkpoint()

    async def drop_damaged(self, load: Load, damage: DamagedKeptBlock) -> BlocksLoaded:
        """Take out a block that is damaged here, and answer that there is none: others may have it."""
        if self._hub.relay is not None:  # else this node was a relay once
            await self._hub.relay.drop_damaged(damage)
        return BlocksLoaded(load.topic, (b"",))

    async def _give_account(self, token: AccountToken) -> None:
        relay = self._hub.relay
        assert relay is not None, "the session says no otherwise"
        joined = await relay.join_account(
            token, self._conversation.peer, WorkBill(self._conversation.account)
        )
        if joined.refusal:
            relay.refusals.count(LINK, self.visitor().kind, joined.refusal)
            log.info("account link refused", peer=id_text(self._conversation.peer), reason=joined.refusal)
        self._conversation.happen(AccountSettled(joined.refusal, joined.quota, joined.used))

    async def _list(self, topic: TopicKey, after: ShortId) -> None:
        kept = self._find_kept(topic)
        found: tuple[ShortId, ...] = ()
        if kept is not None:
            assert self._hub.relay is not None, "it keeps the topic"
            bill = WorkBill(self._conversation.account)
            found = await self._hub.look(bill, self._hub.relay.list_files, kept, after)
            bill.charge(len(found) * _SHORT_ID_SIZE * BYTE_SECONDS)
        self._conversation.happen(FileListLoaded(topic, found))

    async def _check(self, topic: TopicKey, files: tuple[FileDeposit, ...]) -> None:
        relay = self._hub.relay
        assert relay is not None, "the session says no otherwise"
        signed = await relay.check_deposits(topic, files, WorkBill(self._conversation.account))
        for deposit, is_signed in zip(files, signed, strict=True):
            if is_signed:
                self._conversation.start(self._keep, topic, deposit)
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
            account = self._conversation.account
            if kept is not None and not (visitor.is_known or relay.quotas.takes_strangers):
                refusal = "not_known"
            elif kept is not None:
                fetch = partial(self._conversation.fetch, topic)
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
            log.info("file not kept", peer=id_text(self._conversation.peer), reason=refusal)
        self._hub.totals.files_settled[refusal or "kept"] += 1
        self._conversation.happen(FileSettled(topic, short_file(deposit.file), refusal))

    def _find_kept(self, topic: TopicKey) -> KeptTopic | None:
        followed = self._hub.find_followed(topic)
        return followed if isinstance(followed, KeptTopic) else None
