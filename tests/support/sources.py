"""Connected peers as the hub knows them, without a connection."""

from node.sync.conversation import Conversation
from protocol.ids import BlockId, CommitId, ItemId, PeerId, TopicKey


class Source(Conversation):
    """A peer of an older version that follows all topics, and has nothing."""

    peer = PeerId(b"s" * 32)
    subnet = ""
    answers_bodies = False
    compares_publications = False

    def __init__(self) -> None:
        pass  # there is no session

    def has_joined(self, _topic: TopicKey) -> bool:
        """It follows all."""
        return True

    def is_level(self, topic: TopicKey) -> bool:
        """It has nothing more of what it follows."""
        return self.has_joined(topic)

    def want(self, topic: TopicKey, ids: tuple[CommitId, ...]) -> None:
        """It has no commits."""

    def want_bodies(self, _topic: TopicKey, _ids: tuple[ItemId, ...]) -> bool:
        """It has no bodies."""
        return True

    def bodies_found(self, _topic: TopicKey) -> int | None:
        """It says nothing."""
        return None

    async def fetch(self, _topic: TopicKey, _wanted: BlockId) -> bytes | None:
        """It has no blocks."""
        return None
