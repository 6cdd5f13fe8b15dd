"""What the hub asks of others: who listens, who brings commits, and which peers have blocks or keep files."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Protocol

from protocol.ids import BlockId, CommitId, ItemId, PeerId, ShortId, TopicKey
from protocol.keys import AccountToken
from protocol.messages import FileDeposit
from protocol.session_outputs import AccountAnswered
from storage.relay.quotas import Visitor
from storage.relay.relay import KeptTopic


class Listener(Protocol):
    """Somebody to be told."""

    def commits_accepted(
        self, topic: TopicKey, nums: tuple[int, ...], branches: AbstractSet[int] = frozenset()
    ) -> None:
        """Take note that commits of a topic were accepted (or, with numbers below 0, kept to be passed on).

        `branches` are the numbers of the branches that got any with them; of what is kept for others none are known.
        """
        ...

    def topics_changed(self) -> None:
        """Root branches have grown, or something waits in one: there may be more topics than before."""
        ...

    def missed(self) -> None:
        """It raised when it was told, so it has missed something. Must not fail."""
        ...


class Sender(Listener, Protocol):
    """A peer that brings commits."""

    def commits_released(self, topic: TopicKey, count: int) -> None:
        """Take note that so many commits of a topic were accepted that it had brought, and that had waited."""
        ...


class BlockSource(Protocol):
    """A peer that may have blocks of files, and commits."""

    def has_joined(self, topic: TopicKey) -> bool:
        """Whether it follows a topic."""
        ...

    def is_level(self, topic: TopicKey) -> bool:
        """Whether it follows a topic, and has nothing of it that is not here."""
        ...

    def want(self, topic: TopicKey, ids: tuple[CommitId, ...]) -> None:
        """Ask it for publications of commits of a topic, if it follows that; each id once on a connection."""
        ...

    @property
    def answers_bodies(self) -> bool:
        """Whether it can be asked for bodies, and says how many it has."""
        ...

    @property
    def compares_publications(self) -> bool:
        """Whether commits are named to it by the ids of their publications."""
        ...

    def want_bodies(self, topic: TopicKey, ids: tuple[ItemId, ...]) -> bool:
        """Ask it for commits of a topic whole; whether it was asked: so many may be asked for on a connection."""
        ...

    def bodies_found(self, topic: TopicKey) -> int | None:
        """How many it has of those that it was asked for last; None: it has not said yet."""
        ...

    def visitor(self) -> Visitor:
        """The peer as the quotas of this relay see it."""
        ...

    async def fetch(self, topic: TopicKey, wanted: BlockId) -> bytes | None:
        """A block, encoded, of just that id, or None. Raises NotFetched."""
        ...


class Neighbour(Listener, BlockSource, Protocol):
    """A connected peer."""


class FileTaker(Protocol):
    """A peer that may be a relay, which keeps files for this node."""

    @property
    def peer(self) -> PeerId:
        """Its key."""
        ...

    @property
    def keeps_files(self) -> bool:
        """Whether it is a relay that keeps files, and connected."""
        ...

    def topics_forgotten(self, topics: AbstractSet[TopicKey]) -> None:
        """This node, a relay, has forgotten topics: what was agreed about them does not hold any more."""
        ...

    @property
    def is_partner(self) -> bool:
        """Whether this node and the peer are relays that keep the same topics."""
        ...

    def follow_new(self, kept: Sequence[KeptTopic]) -> None:
        """Have it keep these topics, if it is a partner. Never waits."""
        ...

    @property
    def gives_accounts(self) -> bool:
        """Whether it is a relay that has accounts, and connected."""
        ...

    async def join_account(self, token: AccountToken) -> AccountAnswered:
        """Show it the secret of a link. Raises NotFetched when it leaves."""
        ...

    def entrusted(self) -> list[TopicKey]:
        """Topics that it was asked to keep, and keeps."""
        ...

    def refused(self) -> list[TopicKey]:
        """Topics that it was asked to keep, and does not."""
        ...

    async def ask_list(self, topic: TopicKey, after: ShortId) -> tuple[ShortId, ...]:
        """Files of a topic that it keeps, above an id, the first ones. Raises NotFetched when it leaves."""
        ...

    async def offer(self, topic: TopicKey, deposit: FileDeposit) -> str:
        """Have it keep a file; why it does not, or an empty text. Raises NotFetched when it leaves."""
        ...


class NotFetched(Exception):
    """A peer did not answer for a block."""
