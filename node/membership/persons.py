"""Finds the users of one person, and who else goes along where a person is removed from a repo.

Statements of both keys show who is a device of whom. But a person may give rights to a key that never says whose it is: so
who holds all its rights by device grants goes along with who gave them, and is shown with that member while it only reads.
No verdict rests on it.
"""

from collections.abc import Collection, Mapping

from node.ingest.replica import Replica
from protocol.formats.body import DeviceGrant, Permission, RecoveryGrant
from protocol.ids import UserId
from storage.repos.repos import Repo
from verifier.membership import Membership
from verifier.operations import Operation
from verifier.places import find_claims, find_heirs, find_keys, find_moves


def find_persons_in(membership: Membership, stated: Mapping[UserId, UserId]) -> dict[UserId, UserId]:
    """Map each device that is a member to the first device of its person. Hold `membership_lock`.

    `stated` has the devices that statements show. Who may write is a device by its own word alone: else another would be
    shown as the author of what it writes. A person may be no member any more. Costs O(credentials).
    """
    now, operations = membership.now(), membership.operations
    heirs, found = find_heirs(find_moves(operations, now)), dict(stated)
    for user in operations.users():
        if user in found or not any(one.is_device_grant for one in operations.grants_of(user)):
            continue
        if (now.permission(user) or 0) >= Permission.WRITE:
            continue
        credentials = now.credentials_of(user)
        givers = {
            heirs.get(giver, giver) for giver in (stated.get(one.author, one.author) for one in credentials)
        }
        if len(givers) == 1 and all(one.is_device_grant for one in credentials):
            found[user] = givers.pop()
    return {user: first for user in found if (first := _first_of(found, user)) != user}


def _first_of(persons: Mapping[UserId, UserId], user: UserId) -> UserId:
    """Return the end of a chain of devices. Two who let each other in make a circle: then the smallest id of it."""
    seen: dict[UserId, None] = {}
    while user in persons and user not in seen:
        seen[user] = None
        user = persons[user]
    circle = [*seen][[*seen].index(user) :] if user in seen else [user]
    return min(circle)


def find_rights_otherwise(
    membership: Membership, user: UserId, givers: Collection[UserId] | None = None
) -> list[tuple[Permission, Operation]]:
    """Find the rights of a user that are not by device grants of `givers`, or of anybody, each with its credential.

    Hold `membership_lock`.
    """
    rights, operations = membership.now().rights_held(user), membership.operations
    found = [(Permission(right.permission), operations[right.credential]) for right in rights]
    return [
        (permission, one)
        for permission, one in found
        if not one.is_device_grant or (givers is not None and one.author not in givers)
    ]


def held_otherwise(
    membership: Membership, user: UserId, givers: Collection[UserId] | None = None
) -> Permission | None:
    """Return the highest permission of `find_rights_otherwise`; None if there is none. Hold `membership_lock`."""
    return max((held for held, _ in find_rights_otherwise(membership, user, givers)), default=None)


def find_granted(replica: Replica, repo: Repo, user: UserId) -> Permission | None:
    """Return the highest permission of a user that is not by device grants, whose giver may take them back at any time."""
    with replica.membership_lock:
        return held_otherwise(replica.membership(repo.repo_id), user)


def users_of(persons: Mapping[UserId, UserId], user: UserId) -> set[UserId]:
    """Return all users of the person that a user is of, itself included."""
    first = persons.get(user, user)
    return {user, first, *(one for one, person in persons.items() if person == first)}


def find_companions(
    membership: Membership,
    persons: Mapping[UserId, UserId],
    me: UserId,
    user: UserId,
    keeps: Permission | None,
) -> dict[UserId, Permission | None]:
    """Find who goes along where `me` lowers a user's permission to `keeps`, each with what it keeps.

    These are the person's other users that hold more, who is in by device grants of these alone, and so on; and who holds
    more by device grants of all these: that is taken alone. Keys from which the place came left: they would hold more, had
    they not. Of one's own devices each goes by itself, and the first one with the others. Nobody takes oneself along.
    `persons` are those of `find_persons_in`. Hold `membership_lock`. Costs O(credentials).
    """
    now, operations, same = membership.now(), membership.operations, users_of(persons, user)
    same = same.union(*(find_keys(operations, now, one) for one in same))
    earlier = same & (find_moves(operations, now).keys() | find_claims(operations, now).keys())
    if me in same and (me != user or me in persons):
        return {}
    given, ahead = set[UserId](), [*same]
    while ahead:
        for grant in operations.deciding_by(ahead.pop()):
            if isinstance(grant.body, DeviceGrant | RecoveryGrant):
                one = grant.body.user
                if one in same or one == me or now.permission(one) is None:
                    continue
                given.add(one)
                if held_otherwise(membership, one, same) is None:
                    same.add(one)
                    ahead.append(one)
    found: dict[UserId, Permission | None] = {}
    for one in sorted((same | given) - {user, me}):
        left = keeps
        if one not in same:
            otherwise = held_otherwise(membership, one, same)
            left = max((some for some in (keeps, otherwise) if some is not None), default=None)
        if (now.permission(one) or 0) > (left or 0) or (
            one in earlier and me not in same and now.find_taken(one, left)
        ):
            found[one] = left
    return found
