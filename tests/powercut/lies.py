"""Disks that lie: syncs are said to be done from some place in a record on, and a power cut then takes of it what it likes.

No program can keep what such a disk takes back. What a node owes its user is not to hide it: it does not start and says
why, it writes nothing before a peer was compared, `ravel fsck` reports damage, or it is as it was at an earlier moment, as
after a snapshot was put back. It never shows another content, and no state is a defect.
"""

import random
import re
from collections import Counter
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Final

from tests.powercut.checks import Checker, Found, Ledger
from tests.powercut.disk import LOST, Disk, State, random_choice
from tests.powercut.recording import Event

_CUTS: Final = 4
"""Power cuts of one lie: right behind where it begins, and ever later."""
_CHOICES: Final = 4
"""States of each cut: all is lost that was said to be durable, and some of it by chance."""
_LASTS_MAX: Final = 3_000
"""Operations for which a disk lies."""
_HASH: Final = re.compile("[0-9a-f]{64}")
_EXAMPLES_MAX: Final = 5


@dataclass(slots=True)
class LieReport:
    """What came of lies: states by verdict, and examples of bad ones."""

    verdicts: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)


def replay_lies(events: Sequence[Event], checker: Checker, states: int, seed: int) -> LieReport:
    """Have a disk lie from chosen places of a record on, in about so many states, and judge each."""
    chance = random.Random(seed)
    begun = next(place for place, event in enumerate(events) if event.op == "P" and "branch" in event.said)
    last = max(place for place, event in enumerate(events) if event.op == "P")
    count = max(1, states // (_CUTS * _CHOICES))
    starts = sorted(chance.sample(range(begun, last), min(count, last - begun)))
    honest, promised, at = Disk(), Ledger(), 0
    report = LieReport()
    for start in starts:
        while at < start:
            _play(honest, promised, events[at])
            at += 1
        disk, ledger = deepcopy(honest), deepcopy(promised)
        disk.lies = True
        lasts = chance.randint(1, _LASTS_MAX)
        cuts = {min(start + 1 + lasts * number // _CUTS, last) for number in range(1, _CUTS + 1)}
        for place in range(start, max(cuts) + 1):
            if events[place].op == "O":  # what was left then is all that there is, whoever lied
                break
            _play(disk, ledger, events[place])
            if place in cuts:
                for number in range(_CHOICES):
                    state = disk.state(LOST if number == 0 else random_choice(chance))
                    verdict, said = _judge(checker, state, ledger)
                    report.verdicts[verdict] += 1
                    if verdict == "bad" and len(report.examples) < _EXAMPLES_MAX:
                        report.examples.append(f"lies from {start}, cut at {place}, state {number}: {said}")
    return report


def _play(disk: Disk, ledger: Ledger, event: Event) -> None:
    if event.op == "P":
        ledger.note(event.said)
    disk.apply(event)


def _judge(checker: Checker, state: State, ledger: Ledger) -> tuple[str, str]:
    """Judge one state, and say why it is bad.

    kept: all that was acknowledged is there. told: it is not, and the node says so. earlier: the node is as it was at an
    earlier moment, which no store alone can tell.
    """
    checker.check_copies(state, ledger)  # they are whole or said not to be: anything else is raised
    found = checker.start(state, ledger.branch)
    if any("by a defect" in problem for problem in found.problems):
        return "bad", "; ".join(found.problems)
    wrong = [
        name
        for name, content in ledger.files.items()
        if _HASH.fullmatch(found.files.get(name, "")) and found.files[name] != content
    ]
    if wrong:
        return "bad", f"another content of {', '.join(wrong)}"
    if found.problems:
        return "told", ""
    if ledger.commits.keys() <= found.commits:
        return "kept", ""
    return ("earlier", "") if _is_earlier(found, ledger) else ("bad", "commits are absent between others")


def _is_earlier(found: Found, ledger: Ledger) -> bool:
    """Return True if of the acknowledged commits just the last are absent."""
    order = list(ledger.commits)
    return found.commits.isdisjoint(order[len(found.commits & ledger.commits.keys()) :])
