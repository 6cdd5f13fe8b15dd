"""Acts about places: let devices in, pass one's own on, name friends, sign as one, and publish what friends have signed."""

from typing import Final

from node.membership.devices import DevicesHome
from protocol.formats.body import Permission
from protocol.formats.links import parse_recovery
from protocol.formats.text import id_text
from tests.promise.actions import Act, Skipped, follow, lend, pick
from tests.promise.people import Person
from tests.promise.world import Signed, World


async def pair(world: World, person: Person, args: tuple[int | str, ...]) -> None:
    """Let a device in, which follows the repo from then on."""
    name, level = map(str, args)
    device = world.people[name]
    if device is person or not device.is_running:
        raise Skipped
    held = person.replica.permission(person.repo(), person.user) or Permission.READ
    await lend(world, person, (name, level or held.name.lower()))
    if not device.has_repo:
        await follow(world, device, (person.name,))


async def move(world: World, person: Person, args: tuple[int | str, ...]) -> None:
    """Pass one's place on to a device, or to another member, by the service that does it in all repos.

    Not to who is no member: devices are handed the epoch on another way, and nobody may be left here to do it.
    """
    device, repo = world.people[str(args[0])], person.repo()
    if device is person or person.replica.permission(repo, device.user) is None:
        raise Skipped
    home = DevicesHome(repo, person.user, frozenset({person.user}))
    done = await person.promotion.pass_all(home, device.user, [])
    if not any(one["moved"] for one in done):
        raise Skipped


async def friends(world: World, person: Person, args: tuple[int | str, ...]) -> None:
    """Name friends, or nobody."""
    done = await person.recovery.name_friends(
        [id_text(world.people[str(name)].user) for name in args], None, ""
    )
    if not done["repos"][0]["changed"]:
        raise Skipped
    world.named += [(person.name, str(name)) for name in args]


async def vouch(world: World, person: Person, args: tuple[int | str, ...]) -> None:
    """Sign as a friend of a member that a key is its device."""
    member, key = (id_text(world.people[str(name)].user) for name in args)
    answer = await person.recovery.sign(member, key)
    for text in answer["texts"]:
        given = parse_recovery(text)
        world.signed += [
            Signed(given.user, one.friends, given.friend, one.permission, one.signature, text)
            for one in given.signed
        ]


async def let_in(world: World, person: Person, args: tuple[int | str, ...]) -> None:
    """Publish what friends have signed of a key, all of it or some."""
    name, number = str(args[0]), int(args[1])
    device = world.people[name]
    texts = list(dict.fromkeys(one.text for one in world.signed if one.user == device.user))
    if number % 4 == 0 and texts:
        texts = [pick(texts, number)]
    if not texts:
        raise Skipped
    done = await person.recovery.finish(texts)
    if not any(one["let_in"] for one in done["repos"]):
        raise Skipped
    if not device.has_repo and device is not person and device.is_running:
        await follow(world, device, (person.name,))


ACTS: Final[dict[str, Act]] = {
    "pair": pair,
    "move": move,
    "friends": friends,
    "vouch": vouch,
    "let in": let_in,
}
