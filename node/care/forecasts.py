"""Forecasts: when a bound is met if a node goes on to grow as it did lately. Pure.

Each is a straight line. What a start and memory cost beyond those of an empty node has come with commits of root branches,
whose memberships each start loads. Topics have come with epochs. What the disk holds has come with all commits.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from node.home.starting import START_SECONDS_MAX
from node.runtime.wording import counted, date_text
from protocol.limits.peers import TOPIC_COUNT_MAX
from storage.commits.growth import EPOCHS, MEMBERS, Day, Held

PACE_DAYS_MIN: Final = 7
"""Days that must be known: weeks are alike, and a first sync is no pace."""
_YEARS_MAX: Final = 10
"""Nothing is said of a bound that is farther off: nobody knows that much."""
_DAY_SECONDS: Final = 86_400
_EMPTY_START_SECONDS: Final = 0.8
_EMPTY_MEMORY: Final = 70_000_000
"""Seconds of a start, and bytes of the daemon's memory, with an empty folder (`bench_processes`)."""
_START_METRIC: Final = "ravel_start_seconds"
_TOPICS_METRIC: Final = "ravel_topics"
_MEMORY_METRIC: Final = "process_resident_memory_bytes"


@dataclass(frozen=True, slots=True)
class Pace:
    """Growth of so many days until now, and what is held of it all."""

    days: float
    commits: int
    root_commits: int
    inits: int
    held: Held


@dataclass(frozen=True, slots=True)
class Forecast:
    """Bound with a text for people, and the unix time at which it is reached; None if far off or never."""

    what: str
    detail: str
    at: float | None


def find_pace(days: Sequence[Day], held: Held, now: float) -> Pace | None:
    """Find the pace of the days that are known, the latest first; None where they are too few, or all that there is.

    The day on which most came is left out: a repo was joined then, or a history imported.
    """
    known = sum(one.all.commits for one in days)
    span = now / _DAY_SECONDS - days[-1].day if days else 0.0
    if span < PACE_DAYS_MIN or known >= held.commits:
        return None
    most = max(days, key=lambda one: one.all.commits)
    usual = [one for one in days if one is not most]
    root = sum(one.causes[cause].commits for one in usual for cause in (MEMBERS, EPOCHS))
    inits = sum(held.inits.get(one.day, 0) for one in usual)
    return Pace(span, sum(one.all.commits for one in usual), root, inits, held)


def forecast_disk(pace: Pace, size: int, room: int, now: float) -> Forecast:
    """Forecast when the disk is full: `size` bytes are taken by what is held, and `room` are left."""
    each_day = size * pace.commits / pace.held.commits / pace.days
    detail = f"{_mib(room)} MiB are left, and {_mib(each_day * 30)} MiB come in a month"
    return _forecast("disk", detail, room, each_day, pace, now)


def forecast_daemon(pace: Pace, metrics: str, machine: int, now: float) -> Iterator[Forecast]:
    """Forecast a start, the memory and the topics of a daemon by its metrics, on a machine of so many bytes."""
    if not pace.held.root_commits:
        return
    share = pace.root_commits / pace.held.root_commits / pace.days
    start, memory = _read(metrics, _START_METRIC), _read(metrics, _MEMORY_METRIC)
    if start is not None:
        each_day = max(0.0, start - _EMPTY_START_SECONDS) * share
        detail = f"the last one took {start:.1f} s, and `ravel up` waits {START_SECONDS_MAX:.0f} s"
        yield _forecast("start", detail, START_SECONDS_MAX - start, each_day, pace, now)
    if memory is not None and machine:
        each_day = max(0.0, memory - _EMPTY_MEMORY) * share
        detail = f"the daemon has {_mib(memory)} MiB of the {_mib(machine)} MiB of this machine"
        yield _forecast("memory", detail, machine - memory, each_day, pace, now)
    topics = _read(metrics, _TOPICS_METRIC)
    if topics is not None:
        detail = f"{topics:,.0f} are followed, and a relay compares {TOPIC_COUNT_MAX:,} at a time"
        each_day = topics * pace.inits / pace.held.epochs / pace.days
        yield _forecast("topics", detail, TOPIC_COUNT_MAX - topics, each_day, pace, now)


def _forecast(what: str, detail: str, room: float, each_day: float, pace: Pace, now: float) -> Forecast:
    left = max(0.0, room) / each_day if each_day > 0 else float("inf")
    at = now + left * _DAY_SECONDS if left <= _YEARS_MAX * 365 else None
    met = f"is met on {date_text(at)[:10]}" if at is not None else f"is not met within {_YEARS_MAX} years"
    known = counted(round(pace.days), "day")
    return Forecast(what, f"{what}: {detail}; at the pace of the last {known} that bound {met}", at)


def _read(metrics: str, name: str) -> float | None:
    found = re.search(rf"^{name} (\S+)$", metrics, re.MULTILINE)
    return None if found is None else float(found[1])


def _mib(size: float) -> str:
    return f"{size / (1 << 20):,.1f}" if size < 10 << 20 else f"{size / (1 << 20):,.0f}"
