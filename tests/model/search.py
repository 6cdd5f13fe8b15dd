"""All histories of a world by growing length, and random longer ones."""

import random
import time
from dataclasses import dataclass, field

from tests.model.promise import find_fault
from tests.model.switches import use
from tests.model.worlds import RELAY, State, Step, World


@dataclass
class Result:
    """Findings and figures of a search."""

    world: str
    mutant: str
    faults: dict[str, tuple[str, tuple[Step, ...]]] = field(default_factory=dict)
    steps: int = 0
    states: int = 0
    checked: int = 0
    length: int = 0
    is_cut: bool = False


def search(
    world: World,
    mutant: str = "",
    seconds: float = 1e9,
    variants: str = "some",
    length: int = 0,
    salt: int = 0,
    stop: bool = True,
    checked_max: int = 0,
) -> Result:
    """Try all histories up to a length; each set that honest members have published is healed and checked once."""
    use(mutant, **{**world.settings, "salt": salt})
    until = time.monotonic() + seconds
    result = Result(world.name, mutant)
    start = world.start()
    layer: dict[State, tuple[Step, ...]] = {start: ()}
    seen = {start}
    steps = world.steps()
    checked: set[object] = set()
    for depth in range((length or world.length) + 1):
        for state, history in layer.items():
            key = _published(state, world.evil)
            if key in checked:
                continue
            checked.add(key)
            result.checked = len(checked)
            try:
                fault = find_fault(state, world.evil, variants)
            except RecursionError:
                fault = "end: a question about rights leads to itself"
            if fault:
                result.faults.setdefault(fault.split(":")[0], (fault, history))
                if stop:
                    return result
            if time.monotonic() > until or result.checked == checked_max:
                result.is_cut = True
                return result
        result.length = depth
        if depth == (length or world.length):
            break
        following: dict[State, tuple[Step, ...]] = {}
        for state, history in layer.items():
            for step in steps:
                result.steps += 1
                try:
                    after = world.step(state, step)
                except RecursionError:
                    result.faults["end"] = ("end: a question about rights leads to itself", (*history, step))
                    return result
                if after not in seen:
                    seen.add(after)
                    following[after] = (*history, step)
            if time.monotonic() > until:
                result.is_cut = True
                return result
        layer = following
        result.states = len(seen)
    return result


def _published(state: State, evil: str) -> object:
    given = tuple((user, place.given) for user, place in state)
    return given, frozenset().union(
        *(place.held for user, place in state if user not in evil or user == RELAY)
    )


def tell(history: tuple[Step, ...]) -> str:
    """Return a history in words."""
    return "; ".join(map(str, history))


def run_history(world: World, steps: list[Step]) -> State:
    """Return the state after these steps."""
    state = world.start()
    for step in steps:
        state = world.step(state, step)
    return state


def draw(world: World, chance: random.Random, length: int) -> list[Step]:
    """Return a random history of a world."""
    steps = []
    for _ in range(length):
        actor = chance.choice([user for user in world.people if world.actions.get(user)])
        others = [user for user in world.people if user != actor]
        pulled = tuple(sorted(chance.sample(others, chance.choice((0, 1, 1, 2, len(others))))))
        if world.by_relay:
            pulled = chance.choice(((), (RELAY,), (RELAY,)))
        steps.append(Step(actor, chance.choice(world.actions[actor]), pulled))
    return steps
