"""Progress of transfers on one connection: how fast they go, and how long the rest will take.

Each batch that was stored and each that the peer has confirmed is noted with the time. A rate is that of the last few
seconds, so it follows the line. What is left of a topic is what the peer states: a number that nothing comes of ends as
unknown, and not as a time.
"""

import math
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from protocol.ids import TopicKey
from protocol.limits.peers import STATED_COUNT_MAX
from protocol.session.topic_progress import TopicProgress
from ravel.types.values import SyncProgress

RATED_TOPICS_MAX: Final = 256
"""Topics of one connection and one direction whose rates are remembered, the latest: 0.5 MB."""
_SAMPLE_SECONDS: Final = 1.0
_SAMPLES_MAX: Final = 16
"""Samples of a rate: it is measured over so many seconds or, where batches are rare, over so many batches."""
_SPAN_SECONDS_MIN: Final = 0.2
"""Between the first batch and now, for a rate: less would be chance."""
_QUIET_SECONDS: Final = 10.0
"""Seconds without a batch (and three times as long as between batches before) after which a transfer counts as over."""
_FIRST_SECONDS: Final = 60.0
"""Seconds after which a transfer counts as over while its second batch is awaited: nothing tells yet how slow the
line is."""
_LEFT_SECONDS_MAX: Final = 30 * 86_400
"""A longer estimate is shown as unknown: the rate of a few seconds says nothing of months."""


class _Sample(NamedTuple):
    at: float
    done: int
    batches: int  # that were noted by then


@dataclass(slots=True)
class _Transfer:
    samples: deque[_Sample]
    last: _Sample

    def is_quiet(self, now: float) -> bool:
        batches = self.last.batches - self.samples[0].batches
        usual = (self.last.at - self.samples[0].at) / batches if batches else _FIRST_SECONDS / 3
        return now - self.last.at > max(_QUIET_SECONDS, 3 * usual)


class TransferRates:
    """Rates of one connection's topics in one direction, in commits a second. Times are trio's."""

    def __init__(self) -> None:
        self._transfers: OrderedDict[TopicKey, _Transfer] = OrderedDict()
        self._latest: float | None = None

    def note(self, topic: TopicKey, done: int, left: int, now: float) -> None:
        """Note how many commits are done on this connection, and how many are left. With none left it is forgotten."""
        one = self._transfers.pop(topic, None)
        self._latest = now
        if not left:
            return
        if one is None or (done > one.last.done and one.is_quiet(now)):
            first = _Sample(now, done, 0)
            one = _Transfer(deque([first], _SAMPLES_MAX), first)
        elif done > one.last.done:
            one.last = _Sample(now, done, one.last.batches + 1)
            if now - one.samples[-1].at >= _SAMPLE_SECONDS:
                one.samples.append(one.last)
        self._transfers[topic] = one
        if len(self._transfers) > RATED_TOPICS_MAX:
            self._transfers.popitem(last=False)

    def rate(self, topic: TopicKey, now: float) -> float | None:
        """Commits a second of late; 0.0 where none comes any more; None where that is not known."""
        one = self._transfers.get(topic)
        if one is None:
            return None
        if one.is_quiet(now):
            return 0.0
        first = one.samples[0]
        if one.last.done == first.done or now - first.at < _SPAN_SECONDS_MIN:
            return None
        return (one.last.done - first.done) / (now - first.at)

    def last_at(self, topic: TopicKey) -> float | None:
        """Return when something was done last, or the transfer began; of a topic that is not remembered, of any topic.

        None: nothing was noted on the connection.
        """
        one = self._transfers.get(topic)
        return self._latest if one is None else one.last.at


@dataclass(frozen=True, slots=True)
class ConnectionRates:
    """Rates of both directions of one connection."""

    arriving: TransferRates = field(default_factory=TransferRates)
    leaving: TransferRates = field(default_factory=TransferRates)


def seconds_left(left: int, rate: float | None) -> int | None:
    """Estimate the seconds that this many commits take at a rate; None without a rate."""
    if not rate or left >= STATED_COUNT_MAX:
        return None
    seconds = left / rate
    return None if seconds > _LEFT_SECONDS_MAX else math.ceil(seconds)


def progress_of(here: int, left: int, rate: float | None, *, is_receiving: bool) -> SyncProgress:
    """Describe a transfer: `left` commits are not done, `here` are on this node."""
    if is_receiving:
        done, total = here, None if left >= STATED_COUNT_MAX else here + left
    else:
        done, total = max(0, here - left), here
    return {
        "direction": "receiving" if is_receiving else "sending",
        "done": done,
        "total": total,
        "rate": None if rate is None else math.ceil(rate),
        "seconds_left": seconds_left(left, rate),
    }


def topic_progress(topic: TopicProgress, rates: ConnectionRates, now: float) -> SyncProgress | None:
    """Describe one topic's transfer on a connection; None where nothing is transferred."""
    here = topic.here or 0
    if topic.behind:
        return progress_of(here, topic.behind, rates.arriving.rate(topic.topic, now), is_receiving=True)
    if topic.unconfirmed and topic.here is not None:
        return progress_of(here, topic.unconfirmed, rates.leaving.rate(topic.topic, now), is_receiving=False)
    return None
