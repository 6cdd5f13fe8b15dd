"""Power cuts, replayed: a node's record is cut at any place, and a node starts on what strict POSIX may have left.

`python -m tests.powercut.run --states 10000 --seed 1` plays a long scenario and prints one JSON object; exit code 1 where
something that was acknowledged is lost. Of each chosen place three kinds of states are tried: all that was not synced is
lost, all is kept, and some of it by chance. A seed says what is done and what is kept, but not how threads take turns.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.powercut.checks import Checker, Ledger
from tests.powercut.disk import KEPT, LOST, Disk, random_choice
from tests.powercut.lies import replay_lies
from tests.powercut.looking import in_memory, sharing_statements
from tests.powercut.recording import Event
from tests.powercut.scenario import LONG, SHORT, record

_EXAMPLES_MAX: Final = 3
"""Of each kind of problem; the rest is counted."""
_SAID_MAX: Final = 12


@dataclass(slots=True)
class Report:
    """What came of a replay."""

    events: int = 0
    places: int = 0
    states: int = 0
    bad_states: int = 0
    promises: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    examples: list[dict[str, Any]] = field(default_factory=list)


def replay(events: Sequence[Event], checker: Checker, states: int, seed: int) -> Report:
    """Cut a record in about so many states, and check each."""
    report = Report(len(events), promises=sum(event.op == "P" for event in events))
    places = _choose_places(events, max(1, states // 4), random.Random(seed))
    more, extra = divmod(max(0, states - 2 * len(places)), len(places))
    disk, ledger = Disk(), Ledger()
    report.places = len(places)
    for place, event in enumerate(events):
        if event.op == "P":
            ledger.note(event.said)
        disk.apply(event)
        if place not in places:
            continue
        chance = random.Random(f"{seed} {place}")
        choices = [("lost", LOST), ("kept", KEPT)]
        choices += [
            (f"some {number}", random_choice(chance)) for number in range(more + (place in places[:extra]))
        ]
        for name, choice in choices:
            report.states += 1
            problems = checker.check(disk.state(choice), ledger)
            report.bad_states += bool(problems)
            for problem in problems:
                _note(report, problem, name, place, events, disk)
    return report


def _note(report: Report, problem: str, choice: str, place: int, events: Sequence[Event], disk: Disk) -> None:
    kind = problem.partition(":")[0]
    report.kinds[kind] += 1
    if report.kinds[kind] <= _EXAMPLES_MAX:
        before = [event for event in events[max(0, place - 400) : place + 1] if event.op not in "WT"]
        report.examples.append(
            {
                "problem": problem,
                "kept": choice,
                "place": place,
                "unsynced": disk.unsynced()[:_SAID_MAX],
                "before": [_say(event) for event in before[-_SAID_MAX:]],
            }
        )


def _say(event: Event) -> str:
    if event.op == "P":
        return f"promise {event.data.decode()[:100]}"
    return " ".join(part for part in (event.op, event.path, event.other) if part)


def _choose_places(events: Sequence[Event], count: int, chance: random.Random) -> list[int]:
    """Places to cut behind: all if there are not more, else those around syncs, names and promises first."""
    everywhere = range(len(events))
    if len(events) <= count:
        return list(everywhere)
    telling = [place for place in everywhere if events[place].op not in "WT"]
    around = sorted({max(0, place - shift) for place in telling for shift in (0, 1)})
    chosen = set(chance.sample(around, min(len(around), count * 3 // 4)))
    rest = [place for place in everywhere if place not in chosen]
    chosen.update(chance.sample(rest, count - len(chosen)))
    return sorted(chosen)


def play(folder: Path, acts: Sequence[str], states: int, seed: int, *, lies: bool = False) -> dict[str, Any]:
    """Record and replay on an honest disk, or on one that lies; gives the report."""
    began = time.monotonic()
    with record(folder, acts, seed) as scenario:
        scenario.close()
        events = list(scenario.recording.events())
        check_whole(events, scenario.recording.root)
        seeds = scenario.seeds
    recorded = time.monotonic()
    with tempfile.TemporaryDirectory(dir=in_memory()) as scratch, sharing_statements():
        checker = Checker(Path(scratch), seeds)
        if lies:
            told = replay_lies(events, checker, states, seed)
            return {
                "seed": seed,
                "events": len(events),
                "states": sum(told.verdicts.values()),
                "nodes_started": checker.started,
                "bad_states": told.verdicts["bad"],
                "verdicts": dict(told.verdicts),
                "replayed_seconds": round(time.monotonic() - recorded, 1),
                "examples": told.examples,
            }
        report = replay(events, checker, states, seed)
    return {
        "seed": seed,
        "acts": len(acts),
        "events": report.events,
        "promises": report.promises,
        "places": report.places,
        "states": report.states,
        "nodes_started": checker.started,
        "bad_states": report.bad_states,
        "problems": dict(report.kinds),
        "recorded_seconds": round(recorded - began, 1),
        "replayed_seconds": round(time.monotonic() - recorded, 1),
        "examples": report.examples,
    }


def check_whole(events: Sequence[Event], root: Path) -> None:
    """See that the record is whole: played to its end it gives the folder that is there."""
    disk = Disk()
    for event in events:
        disk.apply(event)
    state = disk.state(KEPT)
    for path, (_, content) in state.files.items():
        assert (root / path).read_bytes() == content, f"{path} was written in a way that is not recorded"
    there = {str(path.relative_to(root)) for path in _files_in(root)}
    unseen = {path for path in there - state.files.keys() if not path.endswith(("-shm", "daemon.log"))}
    assert not unseen, f"made in a way that is not recorded: {unseen}"


def _files_in(root: Path) -> Iterator[Path]:
    return (path for path in root.rglob("*") if path.is_file())


def main() -> None:
    """Replay the states of a seed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--states", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--short", action="store_true", help="the scenario of the tests")
    parser.add_argument("--lies", action="store_true", help="a disk that says of syncs that they are done")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, suppress(KeyboardInterrupt):
        acts = SHORT if arguments.short else LONG
        found = play(Path(folder), acts, arguments.states, arguments.seed, lies=arguments.lies)
        print(json.dumps(found, indent=1))
        sys.exit(1 if found["bad_states"] else 0)


if __name__ == "__main__":
    main()
