"""Forges what breaks one rule of moves, friends or recovery grants alone, by users that the adversary made up."""

from collections.abc import Callable, Sequence
from typing import Final

from protocol.crypto.signing import sign
from protocol.formats.body import (
    DeviceGrant,
    FriendSignature,
    Move,
    Permission,
    RecoveryFriends,
    RecoveryGrant,
    Remove,
)
from protocol.formats.proofs import recovery_digest
from protocol.ids import CommitId, Signature, UserId
from tests.promise.forging import Known, Signer
from tests.promise.ground import Ground

_READ: Final = Permission.READ


def _lend(on: Ground, acks: Sequence[Known] | None = None) -> tuple[Signer, Known]:
    """Let in a device that the adversary made up, to read."""
    puppet = on.forge.make_puppet()
    return puppet, on.act(DeviceGrant(puppet.user, _READ), acks, why="a device")


def _place(on: Ground) -> CommitId:
    """What the adversary holds otherwise than as a device. Raises IndexError where it holds nothing so."""
    now, replica = on.resolution(), on.forge.person.replica
    with replica.membership_lock:
        operations = replica.membership(on.forge.root_facts.repo_id).operations
        held = sorted({one.credential for one in now.rights_held(on.forge.user)})
        found = [one for one in held if not operations[one].is_device_grant]
    return found[0]


def _move_what_another_holds(on: Ground) -> None:
    device, lent = _lend(on)
    if on.forge.user == next(iter(on.forge.world.people.values())).user:
        raise IndexError
    on.act(Move(device.user, on.forge.root_facts.init_id), [lent])


def _move_what_was_lent(on: Ground) -> None:
    """Have a device move what it was lent to another that its forerunner let in."""
    place = _place(on)
    device, lent = _lend(on)
    other, last = _lend(on, [lent])
    moved = on.act(Move(device.user, place), [last], why="a move")
    on.act(Move(other.user, lent.commit_id), [moved], by=device)


def _move_to(is_member: bool) -> Callable[[Ground], None]:
    def forge(on: Ground) -> None:
        others = sorted(on.members().keys() - {on.forge.user} - {one.user for one in on.forge.puppets})
        user = on.forge.rng.choice(others) if is_member else on.stranger()
        on.act(Move(user, _place(on)))

    return forge


def _friends(wrong: str) -> Callable[[Ground], None]:
    def forge(on: Ground) -> None:
        friends = sorted(on.stranger() for _ in range(3))
        threshold = 2
        match wrong:
            case "order":
                friends.reverse()
            case "self":
                friends = sorted([*friends, on.forge.user])
                threshold = 3
            case "threshold":
                threshold = on.forge.rng.choice((0, 1))
        on.act(RecoveryFriends(tuple(friends), threshold))

    return forge


def _signed(on: Ground, naming: CommitId, user: UserId, friends: Sequence[Signer]) -> RecoveryGrant:
    digest = recovery_digest(on.forge.root_facts.repo_id, naming, user, _READ)
    by = sorted(friends, key=lambda one: one.user)
    signatures = tuple(FriendSignature(one.user, sign(one.secret, digest)) for one in by)
    return RecoveryGrant(naming, user, _READ, signatures)


def _recover(wrong: str) -> Callable[[Ground], None]:
    """A recovery grant by two of three friends, with one thing wrong."""

    def forge(on: Ground) -> None:
        friends = [on.forge.make_puppet() for _ in range(3)]
        named = RecoveryFriends(tuple(sorted(one.user for one in friends)), 2)
        if wrong == "nobody":
            named, friends = RecoveryFriends((), 0), []
        naming = on.act(named, why="friends")
        user, acks, by = on.stranger(), [naming], on.forge.own
        signers = friends[:1] if wrong == "threshold" else friends[:2]
        body = _signed(on, naming.commit_id, user, signers)
        match wrong:
            case "publisher":
                by = on.forge.make_puppet()
            case "later":
                acks = [on.act(RecoveryFriends((), 0), acks, why="friends")]
            case "once":
                recovered = on.act(body, acks, why="a recovery grant")
                acks = [on.act(Remove(user, None, ()), [recovered], why="a device removal")]
            case "friends":
                body = _signed(on, naming.commit_id, user, [*friends[:2], on.forge.make_puppet()])
            case "signed":
                junk = tuple(
                    FriendSignature(one.friend, Signature(on.forge.rng.randbytes(64)))
                    for one in body.signatures
                )
                body = RecoveryGrant(naming.commit_id, user, _READ, junk)
        on.act(body, acks, by=by)

    return forge


PLACE_RULES: Final[dict[str, Callable[[Ground], None]]] = {
    "M18 held": _move_what_another_holds,
    "M18 kind": _move_what_was_lent,
    "M18 user": _move_to(is_member=True),
    "M18 stranger": _move_to(is_member=False),
    "M19 order": _friends("order"),
    "M19 self": _friends("self"),
    "M19 threshold": _friends("threshold"),
    **{
        f"M20 {wrong}": _recover(wrong)
        for wrong in ("publisher", "later", "once", "friends", "threshold", "nobody", "signed")
    },
}
"""By what they are against."""
