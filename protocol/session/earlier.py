"""Comparison of all topics of a repo that two sides hold and have not announced: those of ended epochs. Pure.

A repo has two topics for each epoch that it ever had, and nearly all are level. So a side announces those of the epoch that
is written in, and the founding epoch's own topic, which every member knows. Once that is joined each side says one
fingerprint of what it holds on all others. Where these are equal none of them is announced. Else both divide them into 16
parts, by the first hexadecimal digit of their blinded names, and each part that differs again, until
a part has one topic at most, nearly always. What is in parts that differ then is announced.

Both sides see the same fingerprints, so both find the same parts to differ, and say those of the next round unasked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from protocol.crypto.hashing import blind_topic, earlier_fingerprint
from protocol.ids import BlindTopic, Digest, SessionId, TopicKey
from protocol.limits.peers import (
    EARLIER_DEPTH_MAX,
    EARLIER_FINGERPRINT_SIZE,
    EARLIER_PART_COUNT,
    EARLIER_PARTS_MAX,
)
from protocol.session.events import EarlierLoaded
from protocol.session.machines.table import PeerFault
from protocol.session.messages import Earlier
from protocol.session.outputs import EarlierCompared, LoadEarlier, Output, Send
from protocol.session.topic_progress import TopicProgress

_DIGITS: Final = "0123456789abcdef"


class EarlierEpochs:
    """Comparisons of one session, by topic. Each ends after EARLIER_DEPTH_MAX + 1 messages of a side at most."""

    def __init__(self, session_id: SessionId) -> None:
        self._session_id = session_id
        self._comparisons: dict[TopicKey, _Comparison] = {}

    def joined(self, progress: TopicProgress) -> list[Output]:
        """Begin: an epoch's own topic was joined."""
        return [LoadEarlier(progress.topic, is_asked=False)] if progress.is_own else []

    def loaded(self, progress: TopicProgress, event: EarlierLoaded) -> list[Output]:
        """Say what this side holds, once. Costs O(topics that rest)."""
        comparison = self._of(progress)
        if comparison.has_begun:
            return []
        said, first = comparison.begin(event.held), comparison.first
        comparison.first = None
        return [said, *([] if first is None else comparison.go_on(first))]

    def heard(self, progress: TopicProgress, message: Earlier) -> list[Output]:
        """Compare the peer's fingerprints with this side's, and ask for topics that this side holds.

        Raises PeerFault if more came than there are rounds, or a second one before this side has stated its own. The peer
        may know epochs that this side does not, so it alone says whose own topic it names. Costs O(topics that rest).
        """
        comparison = self._of(progress)
        if comparison.came_count > EARLIER_DEPTH_MAX:
            raise PeerFault("unasked_earlier")
        comparison.came_count += 1
        if comparison.has_begun:
            return comparison.go_on(message)
        if comparison.first is not None or len(message.fingerprints) != EARLIER_FINGERPRINT_SIZE:
            raise PeerFault("unasked_earlier")  # it would be held in memory, for each topic
        comparison.first = message
        return [LoadEarlier(progress.topic, is_asked=True)]

    def _of(self, progress: TopicProgress) -> "_Comparison":
        made = _Comparison(progress.topic, progress.blind, self._session_id)
        return self._comparisons.setdefault(progress.topic, made)


@dataclass(slots=True)
class _Comparison:
    """Comparison by one topic: parts by the first digits of their topics' names, as many as the round's number."""

    topic: TopicKey
    blind: BlindTopic
    session_id: SessionId
    first: Earlier | None = None  # the peer's, that waits for what this side says
    came_count: int = 0
    has_begun: bool = False
    count: int = 0
    parts: dict[str, list[TopicKey]] = field(default_factory=dict)  # of this round; none before and after
    _round: int = 0
    _depth: int = 0
    _said: bytes = b""
    _held: dict[TopicKey, Digest] = field(default_factory=dict)
    _names: dict[TopicKey, str] = field(default_factory=dict)

    def begin(self, held: Sequence[tuple[TopicKey, Digest]]) -> Output:
        """Take over the topics that rest here, and state their fingerprint."""
        self.has_begun = True
        self._held = dict(held)
        self.count = len(self._held)
        return self._say({"": list(self._held)})

    def go_on(self, message: Earlier) -> list[Output]:
        """Handle the peer's fingerprints of this round."""
        return [self._take(message)] if self.parts else []  # else it is over

    def _take(self, message: Earlier) -> Output:
        if not self._round:
            self._depth = _depth(max(self.count, message.count))
        differing = self._find_differing(message.fingerprints)
        is_one_empty = not self.count or not message.count
        is_last = self._round >= self._depth or len(differing) > EARLIER_PARTS_MAX or is_one_empty
        if is_last or not differing or len(message.fingerprints) != len(self._said):
            topics = [topic for part in differing.values() for topic in part]
            self.parts, self._held, self._names = {}, {}, {}
            return EarlierCompared(self.topic, tuple(topics))
        self._round += 1
        return self._say(self._divide(differing))

    def _find_differing(self, theirs: bytes) -> dict[str, list[TopicKey]]:
        """Find the parts that differ. If the peer compared other parts, all differ, and all topics are announced."""
        if len(theirs) != len(self._said):
            return self.parts
        size = EARLIER_FINGERPRINT_SIZE
        places = zip(range(0, len(theirs), size), self.parts.items(), strict=True)
        return {
            name: part for at, (name, part) in places if theirs[at : at + size] != self._said[at : at + size]
        }

    def _divide(self, parts: Mapping[str, Sequence[TopicKey]]) -> dict[str, list[TopicKey]]:
        divided: dict[str, list[TopicKey]] = {name + digit: [] for name in parts for digit in _DIGITS}
        for part in parts.values():
            for topic in part:
                if topic not in self._names:
                    self._names[topic] = blind_topic(topic, self.session_id).hex()
                divided[self._names[topic][: self._round]].append(topic)
        return divided

    def _say(self, parts: dict[str, list[TopicKey]]) -> Output:
        self.parts = parts
        sets = ([(topic, self._held[topic]) for topic in part] for part in parts.values())
        self._said = b"".join(map(earlier_fingerprint, sets))
        return Send(Earlier(self.blind, self.count, self._said))


def _depth(count: int) -> int:
    """Return the number of rounds after the first: enough that few topics share a part with one that differs."""
    depth = 1
    while depth < EARLIER_DEPTH_MAX and EARLIER_PART_COUNT**depth < EARLIER_PART_COUNT * count:
        depth += 1
    return depth
