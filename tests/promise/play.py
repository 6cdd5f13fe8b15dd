"""Plays a history on whole nodes: founding, steps, healing, and checks at the end."""

import shutil
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import process_time
from typing import Any, Final

import structlog
import trio
from trio.testing import MockClock

from node.runtime.errors import ServiceError
from tests.promise import actions, checks, healing, hostile, place_acts
from tests.promise.chance import fixed_chance
from tests.promise.draw import NAMES, RELAY, Drawing, History
from tests.promise.people import Person
from tests.promise.steps import Step
from tests.promise.texts import texts_in_this_process
from tests.promise.world import Broken, World

_MEMORY: Final = Path("/dev/shm")  # noqa: S108  # a folder of its own is made there
"""Where stores lie, if it is there: nothing here is about disks."""


_ACTS: Final = {**actions.ACTS, **place_acts.ACTS}


class Hung(BaseException):
    """A history does not come to an end. No exception: nodes take these at the borders of what they do, and go on."""


@dataclass
class Outcome:
    """What a history came to."""

    history: History
    check: str = ""
    """The check that failed; empty where all hold."""
    detail: str = ""
    log: list[str] = field(default_factory=list)
    done: dict[str, int] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    seconds: float = 0.0
    accepted: int = 0
    """Commits that the last to join accepted."""

    def describe(self) -> str:
        """Say it in a line, the check that fails first."""
        said = f"history {self.history.seed}: {self.check or 'holds'}: {self.seconds:.2f} s, {self.accepted} commits"
        return f"{said}\n{self.detail}" if self.check else said


@contextmanager
def _folder() -> Iterator[Path]:
    where = _MEMORY if _MEMORY.is_dir() else None
    made = tempfile.mkdtemp(prefix="promise-", dir=where)
    try:
        yield Path(made)
    finally:
        shutil.rmtree(made, ignore_errors=True)


@contextmanager
def _listening(faults: list[str]) -> Iterator[None]:
    """Note what nodes log as errors."""

    def note(_: object, method: str, event: Any) -> Any:  # noqa: ANN401  # structlog's own
        if method in ("error", "exception", "critical"):
            error = event.get("exc_info")
            said = {key: value for key, value in event.items() if key != "exc_info"}
            faults.append(f"{said} {traceback.format_exc() if error else ''}")
        raise structlog.DropEvent

    before = structlog.get_config()
    structlog.configure(processors=[note], cache_logger_on_first_use=False)
    try:
        yield
    finally:
        structlog.configure(**before)


def play(history: History) -> Outcome:
    """Play a history, and say what it came to."""
    outcome = Outcome(history)
    began = process_time()
    faults: list[str] = []
    try:
        with (
            _folder() as folder,
            fixed_chance(history.seed),
            _listening(faults),
            texts_in_this_process(),
        ):

            async def main() -> None:
                async with trio.open_nursery() as nursery:
                    world = World(history, folder, nursery)
                    world.faults = faults
                    outcome.log, outcome.done, outcome.steps = world.log, world.done, world.steps
                    try:
                        outcome.accepted = await _play(world)
                    finally:
                        nursery.cancel_scope.cancel()
                        with trio.CancelScope(shield=True):
                            await trio.testing.wait_all_tasks_blocked()
                        world.close()

            trio.run(main, clock=MockClock(autojump_threshold=0))
    except BaseExceptionGroup as group:
        _note_failure(outcome, _first(group))
    except (Exception, Hung) as error:  # whatever a node does that it should not is what is looked for
        _note_failure(outcome, error)
    outcome.seconds = process_time() - began
    return outcome


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    one: BaseException = group
    while isinstance(one, BaseExceptionGroup):
        one = next(
            (inner for inner in one.exceptions if not isinstance(inner, trio.Cancelled)), one.exceptions[0]
        )
    return one


def _note_failure(outcome: Outcome, error: BaseException) -> None:
    if isinstance(error, Broken):
        outcome.check, outcome.detail = error.check, error.detail
        return
    if not isinstance(error, Exception | Hung):
        raise error
    outcome.check = "crashes"
    outcome.detail = "".join(traceback.format_exception(error))[-4000:]


async def _play(world: World) -> int:
    await found(world)
    if world.history.steps is None:
        drawing = Drawing(world.history)
        for _ in range(world.history.length):
            world.steps.append(drawing.draw_step(world))
            await take(world, len(world.steps) - 1, world.steps[-1])
    else:
        for number, step in enumerate(world.history.steps):
            world.steps.append(step)
            await take(world, number, step)
    return await healing.heal_and_check(world)


async def found(world: World) -> None:
    """Found the repo, and let everybody in who is a member at first."""
    history = world.history
    names = (*history.names, *((RELAY,) if history.has_relay else ()))
    for name in names:
        world.add_person(name)
    ann = world.people[NAMES[0]]
    ann.create_repo(others=[world.people[name].user for name in history.founders], council=history.council)
    world.branches.append(ann.branch().branch_id)
    world.view_of(ann)
    ann.start(world.nursery)
    if history.has_relay:
        world.people[RELAY].become_relay()
    readers = [name for name, level in history.levels if level == "read"]
    writers = [name for name, level in history.levels if level != "read"]
    for level, joining in (("read", readers), ("write", writers)):
        if not joining:
            continue
        await actions.invite(world, ann, (level, len(joining)))
        _, link = world.links[-1]
        for name in joining:
            person = world.people[name]
            await person.joiner.begin(link)
            person.start(world.nursery)
            await world.meet(person, ann, 2)
    for name, level in history.levels:
        if level not in ("read", "write") and name not in history.founders:
            await actions.grant(world, ann, (name, level))
    for name in (*readers, *writers):
        await world.meet(world.people[name], ann, 2)
    for name in history.strangers:
        world.people[name].start(world.nursery)


async def take(world: World, number: int, step: Step) -> None:
    """Do one step, or pass over it."""
    person = world.people[step.who]
    said = "done"
    try:
        await _do(world, person, step)
        world.done[step.act] = world.done.get(step.act, 0) + 1
    except actions.Skipped:
        said = "-"
    except ServiceError as error:
        said = f"refused: {error.code} {error.message}"
    world.log.append(f"{number:3} {step}  {said}")
    checks.check_faults(world)


async def _do(world: World, person: Person, step: Step) -> None:
    match step.act:
        case "meet" | "visit":
            other = world.people[str(step.args[0])]
            await encounter(world, person, other, float(step.args[-1]))
        case "gather":
            people = [person, *(world.people[str(name)] for name in step.args[:-1])]
            for one in people[1:]:
                await encounter(world, person, one, float(step.args[-1]))
            for one in people[1:]:
                await encounter(world, person, one, float(step.args[-1]))
        case "wait":
            await trio.sleep(float(step.args[0]))
        case _ if step.act.startswith("forge "):
            number, *names = step.args
            kind = step.act.removeprefix("forge ")
            await hostile.forge(world, person, kind, int(number), [str(name) for name in names])
        case _:
            if step.act not in actions.ANYWAY and not (person.is_running and person.has_repo):
                raise actions.Skipped
            await _ACTS[step.act](world, person, step.args)
            await trio.sleep(0.1)


async def encounter(world: World, one: Person, other: Person, seconds: float) -> None:
    """Let two meet who are running. Adversaries also give what they have forged."""
    if not all(person.is_running or person.name == RELAY for person in (one, other)):
        raise actions.Skipped
    await world.meet(one, other, seconds)
    await hostile.give_forged(world, one, other)
