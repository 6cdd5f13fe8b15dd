"""`RelayClient`: what this node asks of a peer that is a relay, beyond the comparing of topics: files and accounts."""

from collections.abc import MutableMapping
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

import trio

from node.runtime.backoff import Backoff
from node.sync.block_requests import NotFetched
from node.sync.conversation import Conversation
from protocol.crypto.keys import AccountToken
from protocol.ids import PeerId, ShortId, TopicKey
from protocol.limits.peers import (
    FILES_DEPOSITED_COUNT_MAX,
    REFUSED_PAUSE_MAX_SECONDS,
    REFUSED_PAUSE_MIN_SECONDS,
)
from protocol.session.deposits import short_file
from protocol.session.events import AccountWanted, FileListWanted, FilesOffered
from protocol.session.features import RELAY_ACCOUNTS, RELAY_FILES
from protocol.session.messages import FileDeposit
from protocol.session.outputs import AccountAnswered, FilesAnswered, FilesListed

T = TypeVar("T")
RelayAnswer = FilesListed | FilesAnswered | AccountAnswered

OFFERS_AGAIN: Final = "offers_again"
"""Reason to leave a relay that has refused topics: the next session, in which they are offered again, begins at
once."""
_REFUSALS_LOOK_SECONDS: Final = 60.0
"""Seconds between two looks whether a relay has refused anything."""
_KEPT_AGAIN_SECONDS: Final = 600.0
"""Seconds until topics are offered again that this relay had forgotten and keeps again. A full relay may forget with each
message, and a session with a partner compares all topics of both."""


@dataclass(slots=True)
class _Answer(Generic[T]):
    """Slot for the peer's answer; None if the peer left without one."""

    value: T | None = None
    is_there: trio.Event = field(default_factory=trio.Event)

    def give(self, value: T | None) -> None:
        self.value = value
        self.is_there.set()


class RelayClient:
    """Questions to one peer, if it turns out to be a relay."""

    def __init__(self, conversation: Conversation, refusing: MutableMapping[PeerId, Backoff]) -> None:
        """`refusing` has relays that refused topics in the last session, and when these are offered again."""
        self._conversation = conversation
        self._refusing = refusing
        self._room = trio.Semaphore(FILES_DEPOSITED_COUNT_MAX)
        self._lists: dict[TopicKey, _Answer[tuple[ShortId, ...]]] = {}
        self._asking: dict[TopicKey, trio.Lock] = {}
        self._offers: dict[tuple[TopicKey, ShortId], _Answer[str]] = {}
        self._accounts: list[_Answer[AccountAnswered]] = []
        self._is_lost = False
        self._keeps_again = trio.Event()
        self.peer = conversation.peer

    @property
    def keeps_files(self) -> bool:
        """Return True if the peer is a relay that keeps files, and connected."""
        return self._is_relay_with(RELAY_FILES)

    @property
    def gives_accounts(self) -> bool:
        """Return True if the peer is a relay that has accounts, and connected."""
        return self._is_relay_with(RELAY_ACCOUNTS)

    def _is_relay_with(self, feature: str) -> bool:
        return not self._is_lost and self._conversation.peer_is_relay and self._conversation.knows(feature)

    @property
    def joined_count(self) -> int:
        """Return how many topics were joined so far."""
        return self._conversation.session.joined_count

    def entrusted(self) -> list[TopicKey]:
        """List joined topics that the peer was asked to keep."""
        return [one.topic for one in self._conversation.topics if one.is_joined and one.is_entrusted]

    def refused(self) -> list[TopicKey]:
        """List topics that the peer was asked to keep and does not: one that is joined is kept."""
        asked = [one for one in self._conversation.topics if one.is_entrusted and not one.is_joined]
        return [one.topic for one in asked if one.outbox.refusal]

    async def offer_again(self) -> None:
        """End the session with a relay that has refused topics, after a while: each is offered once in a session.

        Quotas are raised, accounts given, and other topics forgotten, which a relay does not tell. The pause is shorter for
        what this side, a relay itself, has refused and keeps again.
        """
        while True:
            await trio.sleep(_REFUSALS_LOOK_SECONDS)
            if not self._conversation.peer_is_relay:
                return  # it would have said so first
            if not self._has_refused():
                self._refusing.pop(self.peer, None)
                continue
            pauses = (REFUSED_PAUSE_MIN_SECONDS, REFUSED_PAUSE_MAX_SECONDS)
            backoff = self._refusing.setdefault(self.peer, Backoff(*pauses))
            with trio.move_on_after(backoff.fail()):
                await self._keeps_again.wait()
                await trio.sleep(_KEPT_AGAIN_SECONDS)
                backoff.reset()  # the peer was not asked in vain
            if self._has_refused():
                self._conversation.part(OFFERS_AGAIN)
                return

    def note_kept_again(self) -> None:
        """Note that this relay keeps topics again that it had refused to the peer."""
        self._keeps_again.set()

    def _has_refused(self) -> bool:
        return any(one.outbox.refusal for one in self._conversation.topics)

    async def ask_list(self, topic: TopicKey, after: ShortId) -> tuple[ShortId, ...]:
        """Ask for files of a topic above an id, the first ones. Raises NotFetched when the peer leaves."""
        asking = self._asking.setdefault(topic, trio.Lock())
        async with asking:  # deposits of this node's files and a partner's may list the same topic
            answer = self._lists[topic] = _Answer[tuple[ShortId, ...]]()
            self._conversation.happen(FileListWanted(topic, after))
            return await self._wait(answer)

    async def offer(self, topic: TopicKey, deposit: FileDeposit) -> str:
        """Deposit a file at the peer. Return the reason of a refusal, or an empty text. Raises NotFetched when the
        peer leaves."""
        name = (topic, short_file(deposit.file))
        async with self._room:
            answer = self._offers.get(name)
            if answer is None:  # another commit may have added the same content
                answer = self._offers[name] = _Answer[str]()
                self._conversation.happen(FilesOffered(topic, (deposit,)))
            return await self._wait(answer)

    async def join_account(self, token: AccountToken) -> AccountAnswered:
        """Show the peer the secret of a link. Raises NotFetched when it leaves."""
        answer = _Answer[AccountAnswered]()
        self._accounts.append(answer)
        self._conversation.happen(AccountWanted(token))
        return await self._wait(answer)

    async def _wait(self, answer: _Answer[T]) -> T:
        if not self._is_lost:
            await answer.is_there.wait()
        if answer.value is None:
            raise NotFetched
        return answer.value

    def perform(self, output: RelayAnswer) -> None:
        """Give an answer of the peer to the task that waits for it."""
        match output:
            case AccountAnswered():
                self._accounts.pop(0).give(output)
            case FilesListed(topic, listed):
                self._lists.pop(topic).give(listed)
            case FilesAnswered(topic, answered, refusal):
                for file in answered:
                    self._offers.pop((topic, file)).give(refusal)

    def lose(self) -> None:
        """Wake all who wait: the connection has ended."""
        self._is_lost = True
        waiting = [one.is_there for one in self._lists.values()]
        waiting += [one.is_there for one in self._offers.values()]
        waiting += [one.is_there for one in self._accounts]
        for event in waiting:
            event.set()
