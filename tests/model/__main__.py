"""Run the model: `python -m tests.model [--part NAME] [--seconds N] [--seed N] [--deeper N] [--salt 0|1]`.

Without arguments every part runs with fixed numbers of cases, in half a minute. With `--seconds` each part runs as
long as that, and further. It ends with 1 if the rules break the promise, or a weakened rule is not found.
"""

import argparse
import random
import sys
import time
from collections.abc import Callable

from tests.model.cases import HISTORIES, WORLDS, draw_world
from tests.model.mutants import MUTANTS, SMALL, UNNEEDED
from tests.model.promise import find_fault
from tests.model.search import Result, draw, run_history, search, tell
from tests.model.switches import use


class Run:
    """Arguments of this run, and the outcome so far."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self.seconds, self.seed = asked.seconds, asked.seed
        self.deeper, self.salt, self.absent = asked.deeper, asked.salt, asked.absent
        self.is_right = True

    def say(self, line: str, is_right: bool = True) -> None:
        """Print a line; note that something is wrong."""
        self.is_right &= is_right
        print(("" if is_right else "WRONG ") + line, flush=True)

    def share(self, parts: int) -> float:
        """Return the seconds for one of several parts; without end where cases are counted instead."""
        return self.seconds / parts if self.seconds else 1e9


def run_worlds(run: Run) -> None:
    """Known histories; then all histories of each world, up to a length."""
    for name, (world_name, steps) in HISTORIES.items():
        use("", **WORLDS[world_name].settings)
        fault = find_fault(run_history(WORLDS[world_name], steps), WORLDS[world_name].evil, "all")
        run.say(f"{name}: {fault or 'no fault'}", not fault)
    for world in WORLDS.values():
        result = search(
            world, "", run.share(len(WORLDS)), run.absent, world.length + run.deeper, run.salt, stop=False,
            checked_max=0 if run.seconds else 60,
        )  # fmt: skip
        run.say(_figures(result), not result.faults)
        for fault, history in result.faults.values():
            run.say(f"    {fault}: {tell(history)}")


def _figures(result: Result) -> str:
    cut = ", then cut" if result.is_cut else ""
    figures = f"{result.steps:>7} steps {result.states:>6} states {result.checked:>5} sets, length {result.length}{cut}"
    return f"{result.world:<16} {figures}: {'no fault' if not result.faults else ''}"


def run_random(run: Run) -> None:
    """Random longer histories of everybody."""
    until, number, steps, faults = time.monotonic() + run.share(1), 0, 0, 0
    while (time.monotonic() < until if run.seconds else number < 250) and faults < 5:
        chance = random.Random(f"{run.seed} {number}")
        world = draw_world(chance)
        use("", **world.settings)
        history = draw(world, chance, chance.randint(5, 12))
        fault = find_fault(run_history(world, history), world.evil, "all")
        number, steps = number + 1, steps + len(history)
        if fault:
            faults += 1
            run.say(
                f"random history {number - 1} of seed {run.seed}: {fault} (changed: {world.evil}): {tell(tuple(history))}",
                False,
            )
    run.say(f"{number} random histories of seed {run.seed}, {steps} steps, faults: {faults}")


def run_mutants(run: Run) -> None:
    """Each rule left out or weakened: the shortest history that shows it, and how many sets were looked at."""
    for name, worlds in MUTANTS.items():
        found, looked = _find(name, worlds)
        if found is None:
            run.say(f"without {name}: NOT FOUND in {looked} sets", False)
            continue
        fault, history = next(iter(found.faults.values()))
        run.say(f"without {name}: {looked} sets; {found.world}: {tell(history) or 'at once'}: {fault}")
    run.say(f"{len(MUTANTS)} weakened rules")
    if run.seconds:
        for name in UNNEEDED:
            looked, found = 0, None
            for world in SMALL.values():
                result = search(world, name, run.seconds / len(UNNEEDED) / len(SMALL))
                looked += result.checked
                if result.faults:
                    found = result
            seen = f"FOUND in {found.world}: {next(iter(found.faults.values()))}" if found else "not found"
            run.say(f"unneeded: {name}: {seen} in {looked} sets: {UNNEEDED[name]}", found is None)


def _find(name: str, worlds: tuple[str, ...]) -> tuple[Result | None, int]:
    looked = 0
    for length in range(1, 5):
        for world in (SMALL[one] for one in worlds if SMALL[one].length >= length):
            for salt in (0, 1):
                result = search(world, name, 60, length=length, salt=salt)
                looked += result.checked
                if result.faults:
                    return result, looked
    return None, looked


PARTS: dict[str, Callable[[Run], None]] = {
    "worlds": run_worlds,
    "random": run_random,
    "mutants": run_mutants,
}


def main() -> None:
    """Run the parts that were asked for."""
    parser = argparse.ArgumentParser(description="Run the model of members, epochs, verdicts and transport.")
    parser.add_argument("--part", choices=PARTS, action="append")
    parser.add_argument(
        "--seconds", type=float, default=0, help="for each part, instead of fixed numbers of cases"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--deeper", type=int, default=0, help="so many steps more than each world says")
    parser.add_argument(
        "--salt", type=int, default=0, choices=(0, 1), help="1: the order of ids turned round"
    )
    parser.add_argument(
        "--absent", choices=("none", "some", "all"), default="some", help="who may be gone at the end"
    )
    asked = parser.parse_args()
    run = Run(asked)
    for name in asked.part or PARTS:
        began = time.monotonic()
        run.say(f"== {name} (seed {asked.seed})")
        PARTS[name](run)
        print(f"   {time.monotonic() - began:.0f} s", flush=True)
    print("as expected" if run.is_right else "NOT AS EXPECTED")
    sys.exit(not run.is_right)


if __name__ == "__main__":
    main()
