"""Tracks in memory which commits wait for which parents; shared by all simulated timelines.

A commit *waits* while it lacks a cause: something that it acks is not here, or waits itself. When it waits no longer its
rank is final, and nothing about its causes or effects is remembered. Names need not be hashes, so commits may be handed
over that ack one another in a circle; whichever would close the circle is refused, before anything was changed.

Circles are found by the two-way search of Bender, Fineman, Gilbert and Tarjan ("A new approach to incremental cycle
detection and related problems", 2015, sparse graphs), among waiting commits only. Each stands in a *stratum*, which never
falls from cause to effect: a circle could close only where an effect of the new commit stands no higher than one of its
causes, and then a few steps back within one stratum decide. Where they do not, the effects rise by a stratum.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final

from analytics.reading.limits import BLOCK_ACK_COUNT_MAX

# Steps back within a stratum. More make fewer strata and longer searches; 10 was the fastest of 1 to 300 for random
# feeds at widths 16 to 512, by a little.
_STEPS_BACK_MAX: Final = 10


class Refusal(StrEnum):
    """Reason why a commit was not taken. Nothing of it is remembered, and it may be delivered again."""

    CIRCLE = "circle"
    """It would be its own cause."""
    TOO_MANY_ACKS = "too_many_acks"
    """It acks more than any commit may."""
    TOO_MANY_WAIT = "too_many_wait"
    """It lacks causes, and as many commits as may wait do so already."""


class Entry:
    """State of one commit. Compared by identity."""

    __slots__ = (
        "causes",
        "commit_id",
        "effects",
        "is_placed",
        "lacking",
        "level",
        "number",
        "rank",
        "stratum",
    )

    def __init__(self, commit_id: bytes, rank: int, lacking: int, causes: Sequence["Entry"]) -> None:
        self.commit_id = commit_id
        self.rank = rank  # the longest path that is known; final when it lacks nothing
        self.lacking = lacking  # how many of what it acks are not here, or wait
        self.causes: list[Entry] = list(causes)  # what it acks that is here and waits
        self.effects: list[Entry] = []  # while it waits: what acks it
        self.stratum = 0
        # For anyone who keeps the order:
        self.level = rank  # the rank by which it was placed last
        self.is_placed = False
        self.number = 0


class Causes:
    """All commits that were taken, and what the waiting ones wait for.

    Memory: about 250 bytes for a commit, and 16 for each ack of one that waits.
    """

    def __init__(self, pending_max: int) -> None:
        self.pending_count = 0
        self.rank_max = -1
        """The highest rank of what waits no longer."""
        self._pending_max = pending_max
        self._entries: dict[bytes, Entry] = {}
        self._awaited: dict[bytes, list[Entry]] = {}

    def __contains__(self, commit_id: object) -> bool:
        return commit_id in self._entries

    def __getitem__(self, commit_id: bytes) -> Entry:
        return self._entries[commit_id]

    def missing(self) -> list[bytes]:
        """Return what is acked and not here, sorted: what to ask others for."""
        return sorted(self._awaited)

    def add(self, commit_id: bytes, acks: Iterable[bytes]) -> Entry | Refusal:
        """Take a commit that is not here yet. Its effects, if any came before it, are in the entry until `complete`."""
        distinct = dict.fromkeys(acks)
        if commit_id in distinct:
            return Refusal.CIRCLE
        if len(distinct) > BLOCK_ACK_COUNT_MAX:
            return Refusal.TOO_MANY_ACKS
        rank, causes, missing = 0, list[Entry](), list[bytes]()
        for ack in distinct:
            cause = self._entries.get(ack)
            if cause is None:
                missing.append(ack)
                continue
            if cause.rank >= rank:
                rank = cause.rank + 1
            if cause.lacking:
                causes.append(cause)
        lacking = len(causes) + len(missing)
        if lacking and self.pending_count >= self._pending_max:
            return Refusal.TOO_MANY_WAIT
        entry = Entry(commit_id, rank, lacking, causes)
        effects = self._awaited.get(commit_id)
        if causes:
            entry.stratum = max(cause.stratum for cause in causes)
            if effects and _closes_circle(entry, effects):
                return Refusal.CIRCLE
        self._entries[commit_id] = entry
        for cause in causes:
            cause.effects.append(entry)
        for ack in missing:
            self._awaited.setdefault(ack, []).append(entry)
        if effects:
            entry.effects = self._awaited.pop(commit_id)
            for effect in effects:
                effect.causes.append(entry)
        if lacking:
            self.pending_count += 1
        return entry

    def complete(self, entry: Entry) -> list[Entry]:
        """Return all commits that this one completes, itself included, causes first. Ranks are final."""
        if entry.lacking:
            return []
        completed = [entry]
        for cause in completed:  # grows while it is read
            if cause.rank > self.rank_max:
                self.rank_max = cause.rank
            above = cause.rank + 1
            for effect in cause.effects:
                if effect.rank < above:
                    effect.rank = above
                effect.lacking -= 1
                if not effect.lacking:
                    completed.append(effect)
            cause.effects, cause.causes = [], []
        self.pending_count -= len(completed) - 1  # it did not wait itself
        return completed


def _closes_circle(entry: Entry, effects: Sequence[Entry]) -> bool:
    """Return True if one of the effects leads to a cause of this entry. If not, all strata are in order; else as before."""
    behind = set(entry.causes)
    if not behind.isdisjoint(effects):
        return True
    if all(effect.stratum > entry.stratum for effect in effects):
        return False
    if not _look_back(entry.stratum, behind):
        entry.stratum += 1
    elif not behind.isdisjoint(effects):
        return True
    return _lift(effects, entry.stratum, behind)


def _look_back(stratum: int, behind: set[Entry]) -> bool:
    """Add to `behind` all that leads to it within a stratum; False, and no more than a few, where that takes long."""
    ahead = [cause for cause in behind if cause.stratum == stratum]
    steps = 0
    while ahead:
        for cause in ahead.pop().causes:
            if cause.stratum == stratum and cause.lacking and cause not in behind:
                steps += 1
                if steps > _STEPS_BACK_MAX:
                    return False
                behind.add(cause)
                ahead.append(cause)
    return True


def _lift(effects: Sequence[Entry], stratum: int, behind: set[Entry]) -> bool:
    """Raise what stands below this stratum, and what follows from it; where that leads to `behind`, undo it: True."""
    lifted = [effect for effect in effects if effect.stratum < stratum]
    strata = [effect.stratum for effect in lifted]
    for entry in lifted:
        entry.stratum = stratum
    for entry in lifted:  # grows while it is read
        for effect in entry.effects:
            if effect.stratum < stratum:
                lifted.append(effect)
                strata.append(effect.stratum)
                effect.stratum = stratum
    if all(behind.isdisjoint(entry.effects) for entry in lifted):
        return False
    for entry, before in zip(lifted, strata, strict=True):
        entry.stratum = before
    return True
