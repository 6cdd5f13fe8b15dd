"""Heals a history: everybody meets everybody until nothing changes, time passes, and somebody joins last.

Then members write once more, and all meet again. After that the promise must hold (`checks`).
"""

from collections.abc import Sequence
from itertools import combinations, pairwise
from typing import Final

import trio
from sqlalchemy import select

from node.runtime.errors import ServiceError
from protocol.formats.body import Permission
from protocol.ids import CommitId, EpochId, TopicKey
from storage.schema.schema import commits, pending
from tests.promise import actions, checks, hostile, judging, orders
from tests.promise.draw import LAST, RELAY
from tests.promise.people import Person
from tests.promise.world import Broken, World

_ROUNDS_MAX: Final = 30
"""Rounds of meetings after which a history does not come to an end."""
_CLAIM_ROUNDS: Final = 3
"""Rounds in which nothing changed but the topics of keys that are tried, and what waits there: of three turns each."""
_LONG: Final = 900.0
"""Seconds beyond the delays of all duties."""

Waiting = tuple[TopicKey | None, CommitId]
State = tuple[set[CommitId], set[Waiting], set[TopicKey], set[tuple[TopicKey, EpochId]], set[Waiting]]


async def heal_and_check(world: World) -> int:
    """Heal, let the last join, and check the promise. Return how many commits the last accepted. Raises Broken."""
    world.log.append("healing")
    for person in world.people.values():
        if person.name != RELAY and not person.is_running:
            person.start(world.nursery)
    await settle(world, each=True)
    await checks.check_duties(world)
    last = await let_last_join(world)
    await settle(world)
    await write_once_more(world)
    await settle(world)
    checks.check_faults(world)
    await checks.check_promise(world)
    await checks.check_documents(world)
    judging.check_judge(world)
    await orders.check_orders(world)
    await checks.check_restarts(world)
    return 0 if last is None else len(checks.accepted_by(last))


async def settle(world: World, *, each: bool = False) -> None:
    """Let all meet, at first `each` two, until neither meetings nor time change anything."""
    before, known, rounds = None, None, 0
    for number in range(_ROUNDS_MAX):
        await gather(world, each=each and not number)
        now = _state(world)
        rounds = rounds + 1 if _known(now) == known else 0
        if now == before or rounds == _CLAIM_ROUNDS:
            return
        before, known = now, _known(now)
        await trio.sleep(world.rng.choice((6.0, 70.0, _LONG)))
        if _known(_state(world)) == known:
            await trio.sleep(_LONG)
    raise Broken("settles", f"after {_ROUNDS_MAX} rounds things still change")


def _state(world: World) -> list[State]:
    """What everybody has accepted, and what waits there."""
    return [_state_of(one) for one in world.people.values() if one.has_repo and one.name != RELAY]


async def gather(world: World, *, each: bool) -> None:
    """Let all meet, in some order: `each` two, or in a row forth and back. Adversaries give what they have forged."""
    names = [name for name, one in world.people.items() if name != RELAY and one.has_repo]
    world.rng.shuffle(names)
    if each:
        pairs = list(combinations(names, 2))
        world.rng.shuffle(pairs)
    else:
        held = world.best_view()
        insiders = [name for name in names if world.is_honest(name) and world.people[name].user in held]
        row = list(pairwise(insiders))
        # Others may follow nothing that is new: what is told by way of them may not arrive.
        others = (
            [(name, world.rng.choice(insiders)) for name in names if name not in insiders] if insiders else []
        )
        pairs = [*others, *row, *row[::-1]]
    for one, other in pairs:
        person, taker = world.people[one], world.people[other]
        if _state_of(person) != _state_of(taker):  # else a session finds nothing to say
            await world.meet(person, taker, 2)
        await hostile.give_forged(world, person, taker)


def _state_of(person: Person) -> State:
    """Return what a node has accepted, what waits, topics followed; then claims by topics and epochs, what waits there."""
    replica = person.replica
    of = {name: (*topic.epochs, *topic.writers_of) for name, topic in replica.by_topic.items()}
    # Also of a topic that it follows anyway: what an adversary gives there may be placed now (`hostile`).
    claimed = {(name, one.epoch_id) for name in of for one in of[name] if one.claimed_by is not None}
    settled = {name for name in of if not of[name] or any(one.claimed_by is None for one in of[name])}
    names = {num: topic.topic for num, topic in replica.topics.items()}
    with replica.database.read() as connection:
        accepted = set(connection.execute(select(commits.c.commit_id)).scalars())
        rows = connection.execute(select(pending.c.topic_num, pending.c.commit_id)).all()
    waiting = {(names.get(num), commit_id) for num, commit_id in rows}
    tried = {one for one in waiting if one[0] in of and one[0] not in settled}
    return accepted, waiting - tried, settled, claimed, tried


def _known(states: Sequence[State]) -> list[object]:
    """All but the topics of keys that are tried, and what waits there: false ones take turns for ever (E7)."""
    return [state[:3] for state in states]


async def let_last_join(world: World) -> Person | None:
    """Have an admin invite the last, who joins from one member who may write. None where no admin is left."""
    held = world.best_view()
    members = [one for one in world.members() if held[one.user] >= Permission.WRITE]
    admins = [one for one in members if held[one.user] >= Permission.ADMIN]
    if not admins:
        return None
    admin = world.rng.choice(admins)
    level = world.rng.choice(("read", "write", "write"))
    try:
        await actions.invite(world, admin, (level, 1))
    except ServiceError as error:
        raise Broken(
            "goes_on", f"{admin.name}, an admin, cannot invite: {error.code} {error.message}"
        ) from None
    await settle(world)
    giver = world.rng.choice(members)
    last = world.add_person(LAST)
    await last.joiner.begin(world.links[-1][1])
    last.start(world.nursery)
    world.log.append(f"{LAST} joins to {level} by {admin.name}, from {giver.name}")
    for _ in range(4):
        await world.meet(last, giver, 5)
        await trio.sleep(_LONG)
    if last.user not in giver.replica.members(giver.repo()):
        raise Broken("joins", f"{LAST} did not become a member by {giver.name}: {last.joiner.refused}")
    return last


async def write_once_more(world: World) -> None:
    """Have each honest member who may write do so, and an admin let a reader write."""
    held = world.best_view()
    for person in world.members():
        if held[person.user] >= Permission.WRITE and world.rng.random() < 0.7:
            branch = next(one for one in person.content_branches() if one.branch_id == world.branches[0])
            try:
                world.write(person, branch)
            except ServiceError as error:
                raise Broken("goes_on", f"{person.name} cannot write: {error.code} {error.message}") from None
    readers = [one for one in world.members() if held[one.user] == Permission.READ]
    admins = [one for one in world.members() if held[one.user] >= Permission.ADMIN]
    if readers and admins:
        await actions.grant(world, admins[0], (readers[-1].name, "write"))
