"""What honest people do, each by the services that a user has. What cannot be done now raises `Skipped` or ServiceError."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from node.content.erasing import erase_store
from node.membership.joining import link_of
from node.runtime.errors import ServiceError
from protocol.crypto.keys import InvitationSeed
from protocol.crypto.signing import key_pair
from protocol.formats.body import (
    Answer,
    Body,
    BranchEdit,
    BranchLink,
    DeviceGrant,
    Invite,
    Offer,
    Permission,
    Remove,
    Tag,
)
from protocol.formats.devices import Device
from protocol.formats.document_kinds import DICT, SET
from protocol.formats.proofs import device_digest
from protocol.formats.text import id_text, parse_id
from protocol.ids import BlockId, CommitId
from storage.commits.void_marks import load_void_ids
from storage.repos.repos import Branch
from tests.promise.people import Person
from tests.promise.texts import type_into
from tests.promise.theft import Theft, copy_home
from tests.promise.world import World
from tests.support.builders import STORE_KEY

T = TypeVar("T")
Act = Callable[[World, Person, tuple[int | str, ...]], Awaitable[None]]
FOREVER: Final = 2**52
_PERMISSIONS: Final = {one.name.lower(): one for one in Permission}


class Skipped(Exception):
    """There is nothing now that this could be done to."""


def pick(found: Sequence[T], number: int | str) -> T:
    """Choose one of several by a number. Raises Skipped where there is none."""
    if not found:
        raise Skipped
    return found[int(number) % len(found)]


def _branch(world: World, person: Person, number: int | str) -> Branch:
    known = set(world.branches)
    return pick([one for one in person.content_branches() if one.branch_id in known], number)


def _text(branch: Branch) -> str:
    return id_text(branch.branch_id)


async def write(world: World, person: Person, args: tuple[int | str, ...]) -> None:
    """Write a post."""
    world.write(person, _branch(world, person, args[0]))


async def words(world: World, person: Person, args: tuple[int | str, ...]) -> None:
    """Change a set or a dict."""
    number = int(args[0])
    branch = _branch(world, person, number)
    kind, key = (SET, DICT)[number // 7 % 2], f"k{number // 14 % 3}"
    value = None if number % 5 == 0 else "" if kind is SET else f"{person.name} {number % 97}"
    await person.documents.edit(kind, _text(branch), {key: value})


async def text(world: World, person: Person, args: tuple[int | str, ...]) -> None:
    """Type into a text."""
    await type_into(person, _text(_branch(world, person, args[0])), int(args[0]))


async def branch(world: World, person: Person, args: tuple[int | str, ...]) -> None:
    """Add a branch."""
    made, ingested = person.author.founding.create_branch(person.repo(), f"b{len(world.branches)}")
    person.hub.announce(ingested)
    world.branches.append(made.branch_id)


async def fork(world: World, person: Person, args: tuple[int | str, ...]) -> None:
    """Fork a branch."""
    made = await person.merging.fork(_text(_branch(world, person, args[0])), f"f{len(world.branches)}", "")
    world.branches.append(made.branch_id)


async def merge(world: World, person: Person, args: tuple[int | str, ...]) -> None:
    """Merge a branch into another."""
    number = int(args[0])
    source, target = _branch(world, person, number), _branch(world, person, number // 16)
    if source.num == target.num:
        raise Skipped
    await person.merging.merge(_text(source), _text(target))


async def _write_root(person: Person, body: Body) -> CommitId:
    made, ingested = person.author.write(person.replica.root_branch(person.repo()), body)
    person.hub.announce(ingested)
    return made.commit_id


async def edit_branch(world: World, person: Person, args: tuple[int | str, ...]) -> None:
    """Name or archive a branch, or name a commit."""
    number = int(args[0])
    target = _branch(world, person, number)
    body: Body = BranchEdit(target.branch_id, None if number % 3 else f"n{number % 100}", bool(number % 2))
    if number % 4 == 3:
        body = Tag(
            f"t{number % 5}", target.branch_id, person.heads(target)[0] if person.heads(target) else None
        )
    await _write_root(person, body)


async def link_branch(world: World, person: Person, args: tuple[int | str, ...]) -> None:
    """Make a branch followable by itself."""
    await _write_root(person, BranchLink(_branch(world, person, args[0]).branch_id))
    person.hub.topics_changed()


async def renew(world: World, person: Person, args: tuple[int | str, ...]) -> None:
    """Start an epoch."""
    await person.rotation.renew("")


async def refresh(world: World, person: Person, args: tuple[int | str, ...]) -> None:
    """State a fresh prekey, right after the home was copied; admins start an epoch."""
    keys, secrets = copy_home(person)
    answer = await person.rotation.refresh("")
    stated = CommitId(BlockId(parse_id(answer["commit"])))
    world.thefts.append(Theft(person.user, keys, secrets, stated))


def _user(world: World, name: int | str) -> str:
    return id_text(world.people[str(name)].user)


async def exclude(world: World, person: Person, args: tuple[int | str, ...]) -> None:
    """Exclude a member."""
    await person.members.remove("", _user(world, args[0]), "")


async def demote(world: World, person: Person, args: tuple[int | str, ...]) -> None:
    """Lower a member's permission."""
    await person.members.remove("", _user(world, args[0]), str(args[1]))


async def exclude_and_stop(world: World, person: Person, args: tuple[int | str, ...]) -> None:
    """Exclude a member, and stop before the next epoch is started."""
    was_running = person.is_running
    await person.stop()
    try:
        await _write_root(person, Remove(world.people[str(args[0])].user, None, ()))
    except ServiceError:
        if was_running:
            person.start(world.nursery)
        raise


async def leave(world: World, person: Person, args: tuple[int | str, ...]) -> None:
    """Leave."""
    await person.members.leave("", force=False)


async def grant(world: World, person: Person, args: tuple[int | str, ...]) -> None:
    """Grant a permission."""
    await person.members.grant("", _user(world, args[0]), str(args[1]))


async def lend(world: World, person: Person, args: tuple[int | str, ...]) -> None:
    """Grant what one holds to somebody else, as to a device."""
    name, level = map(str, args)
    await _write_root(person, DeviceGrant(world.people[name].user, _PERMISSIONS[level]))
    world.lent.append((person.name, name))


async def take_back(world: World, person: Person, args: tuple[int | str, ...]) -> None:
    """Take away what one lent to a device, by the service or without it."""
    number = int(args[0])
    name = pick([device for giver, device in world.lent if giver == person.name], number)
    if number % 2:
        await person.members.remove("", _user(world, name), "")
    else:
        keeps = Permission.READ if number % 3 == 0 else None
        await _write_root(person, Remove(world.people[name].user, keeps, ()))


async def invite(world: World, person: Person, args: tuple[int | str, ...]) -> None:
    """Make a link."""
    permission, uses = _PERMISSIONS[str(args[0])], int(args[1])
    seed = InvitationSeed(f"invitation {len(world.links)}".encode().ljust(32, b"-"))
    made = await _write_root(person, Invite(key_pair(seed)[0], permission, uses, FOREVER))
    repo = person.repo()
    epoch = person.replica.writing_epoch(repo)
    world.links.append((person.name, link_of(repo, epoch, made, seed, permission, FOREVER, ())))


async def join(world: World, person: Person, args: tuple[int | str, ...]) -> None:
    """Join by a link, for the first time or again."""
    _, link = pick(world.links, args[0])
    world.give_link(person, link.epoch)
    await person.joiner.begin(link)


async def follow(world: World, person: Person, args: tuple[int | str, ...]) -> None:
    """Follow the repo by somebody's read link."""
    giver = world.people[str(args[0])]
    if not giver.has_repo or giver is person:
        raise Skipped
    capability = giver.capability()
    world.give_link(person, capability.epoch)
    await person.joiner.follow(capability)


async def revoke(world: World, person: Person, args: tuple[int | str, ...]) -> None:
    """Revoke an invitation."""
    _, link = pick(world.links, args[0])
    await person.members.revoke_invitation("", id_text(link.invitation))


async def adopt(world: World, person: Person, args: tuple[int | str, ...]) -> None:
    """Adopt what is void in a branch."""
    target = _branch(world, person, args[0])
    with person.replica.database.read() as connection:
        void = load_void_ids(connection, target.num)
    if not void:
        raise Skipped
    await person.members.adopt(_text(target), [id_text(one) for one in sorted(void)[:3]])


async def quorum(world: World, person: Person, args: tuple[int | str, ...]) -> None:
    """Name a quorum: of people who all decide on removals, or of some members by a number."""
    number, *names = args
    members = sorted(person.replica.members(person.repo()))
    signers = [_user(world, name) for name in names]
    threshold, removals = len(signers), True
    if not signers:
        signers = [id_text(one) for one in members[: 1 + int(number) % 3]]
        threshold, removals = 1 + int(number) // 3 % len(signers), int(number) % 4 != 0
    await person.quorums.name("", signers, threshold, removals=removals)


async def propose(world: World, person: Person, args: tuple[int | str, ...]) -> None:
    """Propose to remove a member."""
    await person.quorums.propose_removal("", _user(world, args[0]), str(args[1]))


async def approve(world: World, person: Person, args: tuple[int | str, ...]) -> None:
    """Approve the latest proposal, or another."""
    shown = (await person.quorums.show(""))["proposals"]
    await person.quorums.approve("", pick(shown, int(args[0]) % 2)["proposal"])


async def checkpoint(world: World, person: Person, args: tuple[int | str, ...]) -> None:
    """Propose a checkpoint."""
    await person.quorums.propose_checkpoint(_text(_branch(world, person, args[0])))


async def finish(world: World, person: Person, args: tuple[int | str, ...]) -> None:
    """Make a checkpoint of which enough signers have approved."""
    shown = (await person.quorums.show(""))["proposals"]
    approved = [one for one in shown if one["kind"] == "checkpoint" and one["state"] == "approved"]
    await person.quorums.finish("", pick(approved, args[0])["proposal"])


async def sign(world: World, person: Person, args: tuple[int | str, ...]) -> None:
    """Sign who the members are."""
    await person.checkpoints.sign("")


async def offer(world: World, person: Person, args: tuple[int | str, ...]) -> None:
    """Offer something to the inbox. The link opens nothing: rules look at none."""
    made = await _write_root(person, Offer(_branch(world, person, args[0]).branch_id, False, "", b""))
    world.offers.append(made)


async def withdraw(world: World, person: Person, args: tuple[int | str, ...]) -> None:
    """Withdraw an offer of one's own, or answer one."""
    known = [one for one in world.offers if one in person.roots()]
    await _write_root(person, Answer(pick(known, args[0]), bool(int(args[0]) % 2)))


async def device(world: World, person: Person, args: tuple[int | str, ...]) -> None:
    """State that one is a device of somebody else, as both would."""
    other = world.people[str(args[0])]
    if other is person:
        raise Skipped
    digest = device_digest(person.repo().repo_id, other.user, person.user, 1)
    await _write_root(
        person, Device(other.user, person.user, 1, other.author.sign(digest), person.author.sign(digest))
    )


async def compact(world: World, person: Person, args: tuple[int | str, ...]) -> None:
    """Compact a branch."""
    await person.compacting.compact(
        _text(_branch(world, person, args[0])), dry_run=False, without_missing=int(args[0]) % 4 == 0
    )


async def erase(world: World, person: Person, args: tuple[int | str, ...]) -> None:
    """Erase what compactions let go, while the node is closed."""
    await restart(world, person, args, erases=True)


async def restart(world: World, person: Person, args: tuple[int | str, ...], *, erases: bool = False) -> None:
    """Restart a node."""
    was_running = person.is_running
    await person.stop()
    if erases:
        person.replica.close()
        erase_store(person.folder, STORE_KEY, 2**53, 1)
        person.open()
        person.take_up()
    else:
        person.reopen()
    world.watch(person)
    if was_running:
        person.start(world.nursery)


async def stop(world: World, person: Person, args: tuple[int | str, ...]) -> None:
    """Stop a node."""
    if not person.is_running:
        raise Skipped
    await person.stop()


async def start(world: World, person: Person, args: tuple[int | str, ...]) -> None:
    """Start a node that was stopped."""
    if person.is_running:
        raise Skipped
    person.start(world.nursery)


ACTS: Final[dict[str, Act]] = {
    "write": write,
    "words": words,
    "text": text,
    "branch": branch,
    "fork": fork,
    "merge": merge,
    "edit-branch": edit_branch,
    "link-branch": link_branch,
    "renew": renew,
    "refresh": refresh,
    "exclude": exclude,
    "demote": demote,
    "exclude and stop": exclude_and_stop,
    "leave": leave,
    "grant": grant,
    "lend": lend,
    "take back": take_back,
    "invite": invite,
    "join": join,
    "follow": follow,
    "revoke": revoke,
    "adopt": adopt,
    "quorum": quorum,
    "propose": propose,
    "approve": approve,
    "checkpoint": checkpoint,
    "finish": finish,
    "sign": sign,
    "offer": offer,
    "withdraw": withdraw,
    "device": device,
    "compact": compact,
    "erase": erase,
    "restart": restart,
    "stop": stop,
    "start": start,
}
ANYWAY: Final = frozenset({"stop", "start", "restart", "erase", "join", "follow"})
"""Acts that a node does though it is stopped, or does not follow the repo."""
