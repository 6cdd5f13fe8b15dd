"""What adversaries forge about places: device grants, moves, friends and recovery grants, also by users that they made up.

Most of it is right, and stands beside something or in an old place: an old key moves on when it was excluded, to several
devices at once; friends who were dismissed sign, or what they signed comes again.
"""

from collections.abc import Sequence
from typing import Final

from protocol.crypto.keys import InvitationSeed
from protocol.crypto.signing import key_pair, sign
from protocol.formats.body import (
    Body,
    BranchLink,
    DeviceGrant,
    FriendSignature,
    Grant,
    Invite,
    Move,
    Permission,
    ProposeRemoval,
    RecoveryFriends,
    RecoveryGrant,
    Remove,
)
from protocol.formats.content import Post
from protocol.formats.proofs import recovery_digest
from protocol.ids import CommitId, Signature, UserId
from protocol.limits.formats import RECOVERY_FRIEND_COUNT_MAX
from storage.repos.epochs import Epoch
from tests.promise.actions import FOREVER
from tests.promise.forging import Forge, Known, Signer
from tests.promise.hostile_epochs import resolution_at
from verifier.operations import Operation
from verifier.resolution import Resolution

_WORDS: Final = Post("forged")


def forge_device(forge: Forge) -> str:
    """A device grant, to a user that it made up or to another, of what it holds or of more."""
    signer, acks, before, epoch = _ground(forge)
    device = forge.rng.choice([forge.make_puppet(), *forge.puppets]).user
    if forge.rng.random() < 0.3:
        device = forge.rng.choice(_users(forge))
    level = before.permission(signer.user) or Permission.READ
    if forge.rng.random() < 0.3:
        level = forge.rng.choice(list(Permission))
    _act(forge, "a device grant", epoch, DeviceGrant(device, level), acks, signer)
    return "a device grant"


def forge_move(forge: Forge) -> str:
    """Moves of one place to one or two devices beside each other, and what these do then, by old pasts or new ones."""
    rng = forge.rng
    signer, acks, before, epoch = _ground(forge)
    credential = _place(forge, signer.user, before)
    devices = [one for one in forge.puppets if one is not signer and before.permission(one.user)]
    rng.shuffle(devices)
    devices = devices[: rng.choice((1, 1, 2))]
    for _ in range(rng.choice((1, 2)) if not devices else 0):
        devices.append(forge.make_puppet())
        level = before.permission(signer.user) or Permission.READ
        acks = [_act(forge, "a device grant", epoch, DeviceGrant(devices[-1].user, level), acks, signer)]
    heirs = [one.user for one in devices]
    if rng.random() < 0.15:
        heirs[-1] = rng.choice(_users(forge))
    moves = [_act(forge, "a move", epoch, Move(heir, credential), acks, signer) for heir in heirs]
    for one, move in zip(devices, moves, strict=True):
        for _ in range(rng.choice((0, 1, 2))):
            move = _puppet_acts(forge, one, [move], epoch)
    if rng.random() < 0.3:  # the old key goes on beside its moves, as it may
        _act(forge, "beside a move", epoch, _some_body(forge), acks, signer)
    return f"moves to {len(moves)}"


def forge_friends(forge: Forge) -> str:
    """Friends named: some, nobody, too many to be asked, or twice at once."""
    rng = forge.rng
    signer, acks, _, epoch = _ground(forge)
    if not forge.puppets:
        forge.make_puppet()
    for _ in range(rng.choice((1, 1, 2))):
        everybody = [*_users(forge), *(one.user for one in forge.puppets)]
        count = min(len(everybody), RECOVERY_FRIEND_COUNT_MAX)
        friends = rng.sample(everybody, rng.randint(0, count))
        threshold = len(friends) // 2 + 1 if friends else 0
        if rng.random() < 0.2:
            threshold = rng.randint(0, count)
        body = RecoveryFriends(tuple(sorted(set(friends))), threshold)
        _act(forge, "friends", epoch, body, acks, signer)
    return "names friends"


def forge_recovery(forge: Forge) -> str:
    """A recovery grant, by friends whose keys it has or who once signed: enough or too few, once or again."""
    rng, repo_id = forge.rng, forge.root_facts.repo_id
    signer, acks, before, epoch = _ground(forge)
    namings = _namings(forge)
    keys = _secrets(forge)
    good = [one for one in namings if keys.keys() & set(_friends(one).friends)]
    texts = forge.world.signed
    if texts and rng.random() < 0.4:
        user, friends = rng.choice(sorted({(one.user, one.friends) for one in texts}))
        some = [one for one in texts if (one.user, one.friends) == (user, friends)]
        permission = some[-1].permission
        signed = {one.friend: one.signature for one in some if one.permission == permission}
    else:
        naming = rng.choice(good if good and rng.random() < 0.8 else namings)
        friends = naming.commit_id
        user = rng.choice([forge.make_puppet(), *forge.puppets]).user
        permission = before.permission(naming.author) or Permission.READ
        if rng.random() < 0.2:
            user, permission = rng.choice(_users(forge)), rng.choice(list(Permission))
        digest = recovery_digest(repo_id, friends, user, permission)
        named = [one for one in _friends(naming).friends if one in keys]
        signed = {one: sign(keys[one].secret, digest) for one in named}
    if signed and rng.random() < 0.2:
        del signed[rng.choice(sorted(signed))]
    if rng.random() < 0.15:
        signed[rng.choice(_users(forge))] = Signature(rng.randbytes(64))
    signatures = tuple(FriendSignature(one, signed[one]) for one in sorted(signed))
    body = RecoveryGrant(friends, user, permission, signatures)
    for _ in range(rng.choice((1, 1, 2))):
        made = _act(forge, "a recovery grant", epoch, body, acks, signer)
    recovered = next((one for one in forge.puppets if one.user == user), None)
    if recovered is not None:
        _puppet_acts(forge, recovered, [made], epoch)
    return f"recovers by {len(signatures)}"


def forge_puppet(forge: Forge) -> str:
    """What a user does that it made up: in the root branch, or a post."""
    puppet = forge.rng.choice(forge.puppets)
    _puppet_acts(forge, puppet, forge.some_roots(), forge.some_epoch())
    return "a puppet acts"


# --- what it is made of ---


def _ground(forge: Forge) -> tuple[Signer, list[Known], Resolution, Epoch]:
    """Choose who signs, where it stands, what holds there, and in which epoch."""
    signer = forge.rng.choice([forge.own, forge.own, *forge.puppets])
    acks = forge.some_roots()
    return signer, acks, resolution_at(forge, acks), forge.some_epoch()


def _act(forge: Forge, why: str, epoch: Epoch, body: Body, acks: Sequence[Known], signer: Signer) -> Known:
    forge.write(why, forge.root_facts.branch_id, epoch, body, acks, by=signer)
    return forge.made[-1]


def _puppet_acts(forge: Forge, puppet: Signer, acks: Sequence[Known], epoch: Epoch) -> Known:
    """Let a user that it made up do something that follows these, or write a post; return what follows is to follow."""
    if forge.rng.random() < 0.3:
        branch = forge.rng.choice(forge.branches())
        seen = [one.commit_id for one in acks]
        forge.write(
            "a puppet's post", branch.branch_id, epoch, _WORDS, forge.heads_of(branch), seen=seen, by=puppet
        )
        return acks[0]
    return _act(forge, "a puppet's act", epoch, _some_body(forge), acks, puppet)


def _some_body(forge: Forge) -> Body:
    rng = forge.rng
    users = [*_users(forge), *(one.user for one in forge.puppets)]
    level = rng.choice(list(Permission))
    match rng.randrange(7):
        case 0:
            return Grant(rng.choice(users), level)
        case 1 | 2:
            return Remove(rng.choice(users), rng.choice((None, None, Permission.READ, Permission.WRITE)), ())
        case 3:
            seed = InvitationSeed(rng.randbytes(32))
            return Invite(key_pair(seed)[0], Permission.WRITE, 1, FOREVER)
        case 4:
            return ProposeRemoval(rng.choice(users), None)
        case 5:
            return DeviceGrant(forge.make_puppet().user, level)
        case _:
            return BranchLink(rng.choice(forge.branches()).branch_id)


def _users(forge: Forge) -> list[UserId]:
    return [one.user for one in forge.world.people.values()]


def _secrets(forge: Forge) -> dict[UserId, Signer]:
    """Map the keys that adversaries have: their own, and those of who they made up."""
    world = forge.world
    found = {one.user: one for one in (forge.own, *forge.puppets)}
    for name in sorted(world.history.hostile & world.people.keys()):
        user, secret = key_pair(world.people[name].user_seed)
        found[UserId(user)] = Signer(UserId(user), secret)
    return found


def _place(forge: Forge, user: UserId, before: Resolution) -> CommitId:
    """Choose what a user passes on: as a rule what it holds."""
    held = sorted({one.credential for one in before.rights_held(user)})
    if not held or forge.rng.random() < 0.1:
        held = [one.commit_id for one in forge.roots()]
    return forge.rng.choice(held)


def _namings(forge: Forge) -> list[Operation]:
    replica = forge.person.replica
    with replica.membership_lock:
        namings = replica.membership(forge.root_facts.repo_id).operations.namings
        return [one for user in sorted(namings) for one in namings[user]]


def _friends(naming: Operation) -> RecoveryFriends:
    assert isinstance(naming.body, RecoveryFriends), "as it is listed"
    return naming.body
