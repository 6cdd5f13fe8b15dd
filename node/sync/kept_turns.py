"""Turns of topics that a relay keeps for others, in which its partner is to keep them too.

They may be more than a connection takes at once. Who brought them takes turns, an account with all its nodes, and all
strangers together: so one who brings thousands holds up nobody. Topics that are new go first, as far as others let them:
every other turn is of what was kept before, so that new ones without end do not end the turns of these.
"""

from collections import OrderedDict, deque
from collections.abc import Iterable

from node.relay.relay import RelayService
from protocol.ids import PeerId, TopicKey
from storage.relay.relay import KeptTopic

_Bringer = int | PeerId | None
"""Account by its number, a known peer by its key, or nobody: all strangers."""


class KeptTurns:
    """Topics of a relay that wait for their turn on one connection. Each operation costs O(1) a topic."""

    def __init__(self) -> None:
        self._new, self._old = _Turns(), _Turns()
        self._is_old_next = False

    def __len__(self) -> int:
        return self._new.count + self._old.count

    def add(self, kept: Iterable[KeptTopic], relay: RelayService, *, are_new: bool) -> None:
        """Have these topics wait, in their order, each in the turns of who brought it."""
        turns = self._new if are_new else self._old
        for one in kept:
            turns.add(_bringer_of(one, relay), one.topic)

    def pop(self) -> TopicKey:
        """Take out the topic whose turn it is. Raises KeyError where none waits."""
        turns = self._new if self._new.count and not (self._is_old_next and self._old.count) else self._old
        self._is_old_next = turns is self._new
        return turns.pop()


class _Turns:
    def __init__(self) -> None:
        self.count = 0
        self._topics: OrderedDict[_Bringer, deque[TopicKey]] = OrderedDict()

    def add(self, bringer: _Bringer, topic: TopicKey) -> None:
        self._topics.setdefault(bringer, deque()).append(topic)
        self.count += 1

    def pop(self) -> TopicKey:
        bringer, topics = self._topics.popitem(last=False)
        topic = topics.popleft()
        self.count -= 1
        if topics:
            self._topics[bringer] = topics  # behind the others
        return topic


def _bringer_of(kept: KeptTopic, relay: RelayService) -> _Bringer:
    if kept.brought_by is None or not kept.is_known:
        return None
    account = relay.accounts.get(kept.brought_by)
    return kept.brought_by if account is None else account.num
