"""History of who is in a repo, for people: who came, left, was excluded, may do something else, or has another name."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from node.ingest.replica import Replica
from node.sync.hub import Hub
from protocol.formats.body import (
    DeviceGrant,
    Grant,
    Invite,
    Join,
    Move,
    Permission,
    RecoveryFriends,
    RecoveryGrant,
    Remove,
    RepoInit,
)
from protocol.formats.profiles import Profile
from protocol.formats.text import id_text
from protocol.ids import UserId
from ravel.types.members import MemberArrival, MemberChangeList, MemberChangeView
from storage.repos.repos import Repo
from verifier.membership import Membership
from verifier.operations import Operation, Operations
from verifier.resolution import Resolution

_CHANGING: Final = (Join, Grant, DeviceGrant, RecoveryGrant, Move, Remove, RecoveryFriends)


class MemberChanges:
    """Reads the changes of members that count, as the rules see them now."""

    def __init__(self, hub: Hub, find_repo: Callable[[str], Repo]) -> None:
        self._hub = hub
        self._find_repo = find_repo

    async def list_latest(self, repo: str, limit: int, since: int) -> MemberChangeList:
        """List the latest changes by their authors' times, from `since` (Unix seconds) on.

        Costs O(root branch commits of the repo): one look at each, and the rules' word on those that change members.
        Raises ServiceError.
        """
        target = self._find_repo(repo)
        return {
            "changes": await self._hub.run_blocking(list_changes, self._hub.replica, target, limit, since)
        }


def list_changes(replica: Replica, repo: Repo, limit: int, since: int) -> list[MemberChangeView]:
    """List the latest changes of a repo's members in order of time, from `since` (Unix seconds) on.

    Costs O(root branch commits).
    """
    with replica.membership_lock:
        membership = replica.membership(repo.repo_id)
        operations = membership.operations.since(0)
        # Of names those alone that are considered: others can be any number.
        changes = [one for one in operations if isinstance(one.body, _CHANGING)]
        changes += membership.profiles.considered()
        # Of equal times the order of arrival stays, in which causes come first.
        changes.sort(key=lambda one: one.timestamp)
        name_of, stated = partial(replica.people.name, repo.repo_id), replica.people.stated(repo.repo_id)

        def device_name(user: UserId) -> str:
            return (stated[user].name or "") if user in stated else ""

        views = _views(changes, membership.now(), membership.operations, name_of, device_name)
        return [*deque((one for one in views if one["time"] >= since), maxlen=limit)]


def find_arrival(
    membership: Membership, user: UserId, name_of: Callable[[UserId], str]
) -> MemberArrival | None:
    """Find how a member came: the oldest credential of which it holds a right, a device grant only where there is no other.

    Who has somebody's place came as that one did. Hold `membership_lock`. Costs O(credentials of the user).
    """
    held = membership.now().credentials_of(user)
    origins = [membership.operations.origin(one.commit_id) for one in held]
    first = min(origins, key=lambda one: (one.is_device_grant, one.timestamp), default=None)
    if first is None:
        return None
    kind, author = "granted", first.author
    time: int | None = first.timestamp // 1000
    friends: list[UserId] = []
    move = max(
        (one for one in held if isinstance(one.body, Move)), key=lambda one: one.timestamp, default=None
    )
    match first.body:
        case RepoInit():
            kind, time = "founded", None
        case DeviceGrant():
            kind = "device_added"
        case RecoveryGrant():
            kind, friends = "recovered", [one.friend for one in first.body.signatures]
        case Join():
            invitation = membership.operations.find(first.body.invitation)
            kind, author = "invited", first.author if invitation is None else invitation.author
        case _:
            pass
    return {
        "kind": kind,
        "time": time,
        "author": id_text(author),
        "author_name": name_of(author),
        "friends": [*map(id_text, friends)],
        "friend_names": [*map(name_of, friends)],
        "place_of": None if move is None else id_text(move.author),
        "place_since": None if move is None else move.timestamp // 1000,
    }


def _views(
    changes: list[Operation],
    now: Resolution,
    operations: Operations,
    name_of: Callable[[UserId], str],
    device_name: Callable[[UserId], str],
) -> Iterator[MemberChangeView]:
    called: dict[UserId, str | None] = {}
    there: set[UserId] = set()

    def view(
        kind: str, one: Operation, user: UserId, permission: Permission | None = None
    ) -> MemberChangeView:
        return {
            "commit": id_text(one.commit_id),
            "time": one.timestamp // 1000,
            "kind": kind,
            "user": id_text(user),
            "user_name": name_of(user),
            "device_name": device_name(user) if kind.startswith(("device_", "moved")) else None,
            "author": id_text(one.author),
            "author_name": name_of(one.author),
            "permission": None if permission is None else permission.name.lower(),
            "earlier_name": None,
            "friends": [],
            "friend_names": [],
        }

    def with_friends(seen: MemberChangeView, friends: Sequence[UserId]) -> MemberChangeView:
        seen["friends"], seen["friend_names"] = [*map(id_text, friends)], [*map(name_of, friends)]
        return seen

    for one in changes:
        match one.body:
            case Join() if now.counts(one):
                invitation = operations.find(one.body.invitation)
                body = None if invitation is None else invitation.body
                there.add(one.author)
                yield view("joined", one, one.author, body.permission if isinstance(body, Invite) else None)
            case Grant() | DeviceGrant() if now.counts(one):
                user = one.body.user
                is_new = isinstance(one.body, DeviceGrant) and user not in there
                there.add(user)
                yield view("device_added" if is_new else "granted", one, user, one.body.permission)
            case Move() if now.counts(one):
                there.discard(one.author)
                there.add(one.body.user)
                yield view("moved", one, one.body.user, operations.granted(one))
            case RecoveryGrant() if now.counts(one):
                there.add(one.body.user)
                signers = [each.friend for each in one.body.signatures]
                yield with_friends(view("recovered", one, one.body.user, one.body.permission), signers)
            case RecoveryFriends() if now.counts(one):
                yield with_friends(view("friends_named", one, one.author), one.body.friends)
            case Remove() if now.has_effect(one):
                kind = "left" if one.is_leave else "lowered"
                if one.body.keeps is None:
                    there.discard(one.body.user)
                    if not one.is_leave:
                        kind = "device_removed" if one.is_device_removal else "excluded"
                yield view(kind, one, one.body.user, one.body.keeps)
            case Profile() if now.counts(one):
                before, after = called.get(one.author), one.body.name
                called[one.author] = after
                if before and after and before != after:
                    yield {**view("renamed", one, one.author), "earlier_name": before}
            case _:
                pass
