"""Comparison of all topics of a repo that two sides hold and have not announced: those of ended epochs. Pure.

A repo has two topics for each epoch that it ever had, and nearly all are level. So a side announces those of the epoch that
is written in, and the founding epoch's own topic, which every member knows. Once that is joined each side says one digest of
what it holds on all others. Where these are equal none of them is announced; else both sides announce all.
"""

from collections import Counter

from protocol.ids import Digest, TopicKey
from protocol.limits.peers import EARLIER_COUNT_MAX
from protocol.session.events import EarlierLoaded
from protocol.session.machines.table import PeerFault
from protocol.session.messages import Earlier
from protocol.session.outputs import EarlierCompared, LoadEarlier, Output, Send
from protocol.session.topic_progress import TopicProgress


class EarlierEpochs:
    """Digests that both sides of one session have said, by topic: one of each side."""

    def __init__(self) -> None:
        self._own: dict[TopicKey, Digest] = {}
        self._peer: dict[TopicKey, Digest] = {}
        self._counts: Counter[TopicKey] = Counter()  # what the peer has said

    def joined(self, progress: TopicProgress) -> list[Output]:
        """Begin: an epoch's own topic was joined."""
        return [LoadEarlier(progress.topic, is_asked=False)] if progress.is_own else []

    def loaded(self, progress: TopicProgress, event: EarlierLoaded) -> list[Output]:
        """Say this side's digest, once."""
        if progress.topic in self._own:
            return []
        self._own[progress.topic] = event.digest
        return [Send(Earlier(progress.blind, event.digest)), *self._compare(progress.topic)]

    def heard(self, progress: TopicProgress, message: Earlier) -> list[Output]:
        """Take the peer's latest digest, and ask for the own one. Raises PeerFault beyond EARLIER_COUNT_MAX.

        The peer may know of epochs that this side does not, so of which of them a topic is the own says the peer alone.
        """
        count = self._counts[progress.topic] + 1
        if count > EARLIER_COUNT_MAX:
            raise PeerFault("unasked_earlier")
        self._counts[progress.topic] = count
        self._peer[progress.topic] = message.digest
        if progress.topic not in self._own:
            return [LoadEarlier(progress.topic, is_asked=True)]
        return self._compare(progress.topic)

    def _compare(self, topic: TopicKey) -> list[Output]:
        own, peer = self._own.get(topic), self._peer.get(topic)
        return [] if own is None or peer is None else [EarlierCompared(topic, own == peer)]
