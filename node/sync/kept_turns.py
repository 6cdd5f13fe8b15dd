"""Turns of topics that a relay keeps for others, in which its partner is to keep them too.

They may be more than a connection takes at once. Who brought them takes turns, an account with all its nodes, and all
strangers together: so one who brings thousands holds up nobody. Topics that are new go first, as far as others let them:
every other turn is of what was kept before, so that new ones without end do not end the turns of these.
"""

from collections import OrderedDict
from collections.abc import Iterable

from node.relay.relay import RelayService
from protocol.ids import PeerId, TopicKey
from storage.relay.relay import KeptTopic

_Bringer = int | PeerId | None
"""Account by its number, a known peer by its key, or nobody: all strangers."""


class KeptTurns:
    """Topics of a relay that wait for their turn on one connection, each once. Each operation costs O(1) a topic."""

    def __init__(self) -> None:
        self._new, self._old = _Turns(), _Turns()
        self._is_old_next = False

    def __len__(self) -> int:
        return len(self._new) + len(self._old)

    def add(self, kept: Iterable[KeptTopic], relay: RelayService, *, are_new: bool) -> None:
        """Queue topics in order, each in the turns of the peer that brought it."""
        turns = self._new if are_new else self._old
        for one in kept:
            turns.add(_bringer_of(one, relay), one.topic)

    def drop(self, topics: Iterable[TopicKey]) -> None:
        """Let go of topics that the relay has forgotten: on a connection that takes no more they would pile up."""
        for topic in topics:
            self._new.drop(topic)
            self._old.drop(topic)

    def pop(self) -> TopicKey:
        """Take out the topic whose turn it is. Raises KeyError where none waits."""
        turns = self._new if len(self._new) and not (self._is_old_next and len(self._old)) else self._old
        self._is_old_next = turns is self._new
        return turns.pop()


class _Turns:
    def __init__(self) -> None:
        self._bringers: dict[TopicKey, _Bringer] = {}
        self._topics: OrderedDict[_Bringer, OrderedDict[TopicKey, None]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._bringers)

    def add(self, bringer: _Bringer, topic: TopicKey) -> None:
        if topic not in self._bringers:
            self._bringers[topic] = bringer
            self._topics.setdefault(bringer, OrderedDict())[topic] = None

    def drop(self, topic: TopicKey) -> None:
        if topic in self._bringers:
            bringer = self._bringers.pop(topic)
            del self._topics[bringer][topic]
            if not self._topics[bringer]:
                del self._topics[bringer]

    def pop(self) -> TopicKey:
        bringer, topics = self._topics.popitem(last=False)
        topic, _ = topics.popitem(last=False)
        del self._bringers[topic]
        if topics:
            self._topics[bringer] = topics  # behind the others
        return topic


def _bringer_of(kept: KeptTopic, relay: RelayService) -> _Bringer:
    if kept.brought_by is None or not kept.is_known:
        return None
    account = relay.accounts.get(kept.brought_by)
    return kept.brought_by if account is None else account.num
