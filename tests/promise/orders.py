"""Three orders of arrival: all that was accepted, given to fresh replicas in three orders, comes to the same."""

from collections.abc import Sequence

import trio

from protocol.formats.publication import decode_publication
from protocol.ids import CommitId, TopicKey
from tests.promise import checks
from tests.promise.meetings import Nothing, find_publications
from tests.promise.people import Person
from tests.promise.texts import show_documents
from tests.promise.world import Broken, World

Item = tuple[TopicKey, bytes]


async def check_orders(world: World) -> None:
    """Give it, and compare. Raises Broken."""
    members = world.members()
    if not members:
        return
    source = members[-1]
    items = find_items(source)
    wanted = checks.accepted_by(source)
    shuffled = list(items)
    world.rng.shuffle(shuffled)
    for name, order in (("as it came", items), ("reversed", items[::-1]), ("shuffled", shuffled)):
        await _check_order(world, source, name, order, wanted)


def find_items(person: Person) -> list[Item]:
    """Find all publications of accepted commits of a node, as they came."""
    ids = [row.commit_id for row in checks.rows_of(person)]
    found = [(topic, item) for topic, items in find_publications(person, set(ids)).items() for item in items]
    places = {commit_id: place for place, commit_id in enumerate(ids)}
    return sorted(found, key=lambda one: places[decode_publication(one[1]).commit_id])


async def _check_order(
    world: World, source: Person, name: str, items: Sequence[Item], wanted: set[CommitId]
) -> None:
    fresh = world.add_person(f"fresh {name}")
    try:
        await fresh.joiner.follow(source.capability())
        fresh.start(world.nursery)
        await give_all(fresh, items)
        held = checks.accepted_by(fresh)
        if held != wanted:
            lacking = ", ".join(checks.say_commit(world, one) for one in sorted(wanted - held)[:4])
            raise Broken(
                "same_in_any_order",
                f"{name}: {len(wanted - held)} of {len(wanted)} are not accepted: {lacking}",
            )
        for what, of in (
            ("members", lambda one: one.replica.members(one.repo())),
            ("places", checks.places_of),
            ("voids", checks.voids_of),
            ("order", checks.orders_of),
        ):
            if of(fresh) != of(source):
                raise Broken("same_in_any_order", f"{name}: other {what}")
        if await _epochs(fresh) != await _epochs(source):
            raise Broken("same_in_any_order", f"{name}: other epochs")
        for branch_id in world.branches:
            if await show_documents(fresh, branch_id) != await show_documents(source, branch_id):
                raise Broken("same_in_any_order", f"{name}: other documents of {branch_id.hex()[:8]}")
        await fresh.stop()
    finally:
        world.people.pop(fresh.name, None)
        fresh.replica.close()


async def _epochs(person: Person) -> dict[str, dict[str, object]]:
    """What a node shows of epochs, but for where it writes: who follows writes nowhere."""
    return {name: {**one, "current": None} for name, one in (await checks.epochs_of(person)).items()}


async def give_all(person: Person, items: Sequence[Item]) -> None:
    """Give publications to a node, each once its topic is followed, until nothing more is taken."""
    left = list(items)
    while left:
        batches: dict[TopicKey, list[bytes]] = {}
        later: list[Item] = []
        for topic, item in left:
            if topic in person.replica.by_topic:
                batches.setdefault(topic, []).append(item)
            else:
                later.append((topic, item))
        if not batches:
            return
        for topic, part in batches.items():
            await person.hub.intake.ingest(person.replica.by_topic[topic], part, Nothing(), None)
        await trio.sleep(1)
        left = later
